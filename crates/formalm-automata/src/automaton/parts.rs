//! Parts of a regular language: a repetition that is read before anything else, whatever follows.
//!
//! ```text
//!  "(c|\\e)*", …     after the first quote:   term   Cat( (c|\\e)* , Cat( '"' , … ))
//!                                                      part          the state after the part
//! ```
//!
//! The digest of a part is one of its structure, so it is the same in all automata and processes.

use formalm_core::{Error, StateId, digest, memory_bytes};
use rustc_hash::FxHashMap;

use crate::automaton::Automaton;
use crate::terms::dawg::DawgId;
use crate::terms::{TermArena, TermId, TermNode};

/// Maximum number of nodes of a part. Chosen, not measured.
const MAX_NODES: u32 = 4096;

/// Maximum depth of a part; bounds recursion. Chosen, not measured.
const MAX_DEPTH: u32 = 64;

/// The digests of parts so far; `None` where a part has none.
#[derive(Debug, Default)]
pub(crate) struct PartDigests {
    terms: FxHashMap<TermId, Option<u128>>,
    dawgs: FxHashMap<DawgId, u128>,
}

memory_bytes!(PartDigests { terms, dawgs });

impl PartDigests {
    /// Returns the digest of a term's structure, `None` if it has operands that have none.
    fn of_term(&mut self, terms: &TermArena, id: TermId, limit: &mut Limit) -> Option<u128> {
        if let Some(&known) = self.terms.get(&id) {
            return known;
        }
        limit.enter()?;
        let digest = self.compute(terms, id, limit);
        limit.depth += 1;
        if limit.nodes > 0 {
            self.terms.insert(id, digest);
        }
        digest
    }

    fn compute(&mut self, terms: &TermArena, id: TermId, limit: &mut Limit) -> Option<u128> {
        Some(match terms.get(id) {
            TermNode::Epsilon => combined("epsilon", &[]),
            TermNode::Full => combined("full", &[]),
            TermNode::Dawg(dawg) => combined("dawg", &[self.of_dawg(terms, *dawg, limit)?]),
            &TermNode::Custom(at) => {
                let description = terms.recognizers.description(at)?;
                combined("custom", &[digest(description.as_bytes())])
            }
            &TermNode::Cat(head, tail) => {
                let head = self.of_term(terms, head, limit)?;
                combined("cat", &[head, self.of_term(terms, tail, limit)?])
            }
            TermNode::Alt(list) => {
                let list = list.iter().map(|&one| self.of_term(terms, one, limit));
                let mut list: Vec<u128> = list.collect::<Option<_>>()?;
                // Numbers of terms, and so their order, differ between automata.
                list.sort_unstable();
                combined("alt", &list)
            }
            &TermNode::Repeat { body, min, max, .. } => {
                let body = self.of_term(terms, body, limit)?;
                combined("repeat", &[body, u128::from(min), u128::from(max)])
            }
            _ => return None,
        })
    }

    fn of_dawg(&mut self, terms: &TermArena, id: DawgId, limit: &mut Limit) -> Option<u128> {
        if let Some(&known) = self.dawgs.get(&id) {
            return Some(known);
        }
        limit.enter()?;
        let mut parts = vec![u128::from(terms.dawgs.is_accepting(id))];
        for &(low, high, child) in terms.dawgs.edges(id).iter() {
            parts.extend([u128::from(low), u128::from(high), self.of_dawg(terms, child, limit)?]);
        }
        limit.depth += 1;
        let digest = combined("words", &parts);
        self.dawgs.insert(id, digest);
        Some(digest)
    }
}

/// Returns the digest of a node of some kind, given its operands.
fn combined(kind: &str, parts: &[u128]) -> u128 {
    let mut description = kind.as_bytes().to_vec();
    parts.iter().for_each(|part| description.extend_from_slice(&part.to_le_bytes()));
    digest(&description)
}

/// The nodes and levels that a digest may still visit.
struct Limit {
    nodes: u32,
    depth: u32,
}

impl Limit {
    fn enter(&mut self) -> Option<()> {
        self.nodes = self.nodes.checked_sub(1)?;
        self.depth = self.depth.checked_sub(1)?;
        Some(())
    }
}

impl Automaton {
    /// Returns the digest of the repetition that a state reads first, and the state after it. What
    /// may follow the state is a string of the repetition and then what may follow that state.
    /// Returns `None` if the state reads anything else first, or if some string of the repetition
    /// may end inside a character.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn part(&self, state: StateId) -> Result<Option<(u128, StateId)>, Error> {
        if !self.is_pure() {
            return Ok(None);
        }
        let core = &mut *self.lock();
        let terms = &core.deriver.terms;
        let (head, tail) = terms.head_and_tail(core.index.term(state.number()));
        if terms.repetition(head).is_none() || !terms.is_utf8(head) {
            return Ok(None);
        }
        let mut limit = Limit { nodes: MAX_NODES, depth: MAX_DEPTH };
        let Some(digest) = core.parts.of_term(terms, head, &mut limit) else { return Ok(None) };
        let after = self.intern(core, tail)?;
        Ok(Some((digest, StateId::from_number(after))))
    }

    /// Returns a digest of the structure of what is read on from a state, the same in all automata
    /// and processes. States with equal ones read the same strings on. Returns `None` if what is
    /// read is too large, or has operands without a digest.
    pub fn structure(&self, state: StateId) -> Option<u128> {
        let core = &mut *self.lock();
        let mut limit = Limit { nodes: MAX_NODES, depth: MAX_DEPTH };
        core.parts.of_term(&core.deriver.terms, core.index.term(state.number()), &mut limit)
    }
}

#[cfg(test)]
mod tests {
    use formalm_core::LazyDfa;

    use crate::tests::automaton;

    /// Returns the digest of the part after some text, and the shortest string behind it.
    fn part(pattern: &str, text: &str) -> Option<(u128, String)> {
        let automaton = automaton(pattern);
        let state = automaton.walk(automaton.start(), text.as_bytes()).unwrap().unwrap();
        let (digest, after) = automaton.part(state).unwrap()?;
        let rest = automaton.shortest_completion(after).unwrap();
        Some((digest, String::from_utf8(rest).unwrap()))
    }

    #[test]
    fn equal_repetitions_are_one_part_in_all_automata() {
        let (one, rest) = part(r#"\{"a": "([^"\\]|\\[nt"])*"\}"#, "{\"a\": \"").unwrap();
        assert_eq!(rest, "\"}");
        let (other, rest) = part(r#"\[([0-9]+|"([^"\\]|\\[nt"])*"), x\]"#, "[\"é\\n").unwrap();
        assert_eq!(rest, "\", x]");
        assert_eq!(one, other);
        let (narrower, _) = part(r#"\{"a": "([^"\\]|\\[nt])*"\}"#, "{\"a\": \"").unwrap();
        assert_ne!(one, narrower);
        let (digits, _) = part("a[0-9]{2,5}b", "a1").unwrap();
        assert_eq!(digits, part("[0-9]{1,4}", "").unwrap().0);
        assert_ne!(digits, part("[0-9]{1,5}", "").unwrap().0);
    }

    /// Returns the structure after some text.
    fn structure(pattern: &str, text: &str) -> Option<u128> {
        let automaton = automaton(pattern);
        let state = automaton.walk(automaton.start(), text.as_bytes()).unwrap().unwrap();
        automaton.structure(state)
    }

    #[test]
    fn structures_are_the_same_in_all_automata_and_processes() {
        let date = structure("[0-9]{4}-[0-9]{2}-[0-9]{2}", "2024-").unwrap();
        assert_eq!(date, 147_318_790_294_775_182_441_288_033_132_762_365_837);
        assert_eq!(structure("x+[0-9]{2}-[0-9]{2}|y", "xx"), structure("x*[0-9]{2}-[0-9]{2}", "x"));
        assert_eq!(structure("[0-9]{4}-[0-9]{2}-[0-9]{2}", "1999-"), Some(date));
        assert_eq!(structure("(?:ab|ba)[0-9]{2}-[0-9]{2}", "ba"), Some(date));
        assert_ne!(structure("[0-9]{4}-[0-9]{2}-[0-9]{2}", "1999-1"), Some(date));
        assert_ne!(structure("a[0-9]{2}-[0-9]{1,2}", "a"), Some(date));
        assert_eq!(structure("a(?!b).*", ""), None);
    }

    #[test]
    fn recognizers_have_structures_by_their_names() {
        use std::sync::Arc;

        use crate::{Automaton, AutomatonLimits, CharRecognizer, Expression};

        /// Strings of some number of `a`.
        #[derive(Debug)]
        struct Some(u32);

        impl CharRecognizer for Some {
            fn start(&self) -> u32 {
                self.0
            }

            fn step(&self, left: u32, character: char) -> Option<u32> {
                if character == 'a' { left.checked_sub(1) } else { None }
            }

            fn accepts_some_in_range(&self, _: u32, _: char, _: char) -> bool {
                false
            }

            fn is_accepting(&self, left: u32) -> bool {
                left == 0
            }
        }

        let structure = |language: Expression, text: &str| {
            let automaton = Automaton::new(&language, AutomatonLimits::default()).unwrap();
            let state = automaton.walk(automaton.start(), text.as_bytes()).unwrap().unwrap();
            automaton.structure(state)
        };
        let named = |count| Expression::named_custom("many a", Arc::new(Some(count)));
        assert_eq!(structure(Expression::custom(Arc::new(Some(3))), ""), None);
        let three = structure(named(3), "").unwrap();
        assert_eq!(structure(named(5), "aa"), Option::Some(three));
        assert_ne!(structure(named(5), "a"), Option::Some(three));
    }

    #[test]
    fn literals_and_characters_in_progress_are_no_parts() {
        assert_eq!(part("abc*", "a"), None);
        assert_eq!(part("(foo|bar)x", ""), None);
        assert_eq!(part("(?:a*)(?=b)b*", "a"), None);
        let inside = {
            let automaton = automaton("é*b");
            let state = automaton.walk(automaton.start(), &[0xc3]).unwrap().unwrap();
            automaton.part(state).unwrap()
        };
        assert_eq!(inside, None);
    }
}
