//! Words that a class reads before anything else, to be read along a prefix tree without a state for
//! each of their prefixes.

use formalm_core::{Error, StateId};

use crate::automaton::bounded_viability_classes::BoundedQuotient;
use crate::terms::dawg::{DawgId, Dawgs, END};
use crate::terms::{EPSILON, TermNode};

/// Maximum number of nodes of the words: more are mostly read in part. Chosen, not measured.
const MAX_NODES: usize = 256;

/// Minimum length of the shortest word, in bytes: shorter ones are read as fast byte by byte.
const MIN_WORD_BYTES: u32 = 2;

/// Words, one of which a class reads before anything else. No word begins another.
///
/// They are the paths from the root of an acyclic automaton to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadingWords {
    /// Inclusive byte ranges with their successors, node by node.
    edges: Vec<(u8, u8, u32)>,
    /// The first edge of each node; one more entry at the end.
    first: Vec<u32>,
    /// The class after a word; `None` if nothing follows.
    pub exit: Option<StateId>,
}

impl LeadingWords {
    /// The node from which words are read.
    pub const ROOT: u32 = 0;
    /// The node after each word.
    pub const END: u32 = u32::MAX;

    /// Returns the inclusive byte ranges that are read from a node, with the nodes after them.
    #[inline]
    pub fn edges(&self, node: u32) -> &[(u8, u8, u32)] {
        let at = node as usize;
        &self.edges[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Copies the words of a node, if they are few and none begins another.
    fn of_node(dags: &Dawgs, root: DawgId) -> Option<LeadingWords> {
        let mut nodes = vec![root];
        let (mut edges, mut first) = (Vec::new(), vec![0]);
        let mut at = 0;
        while let Some(&node) = nodes.get(at) {
            if dags.is_accepting(node) {
                return None;
            }
            for &(low, high, next) in dags.edges(node) {
                let number = match nodes.iter().position(|&known| known == next) {
                    _ if next == END => LeadingWords::END,
                    Some(known) => known as u32,
                    None if nodes.len() == MAX_NODES => return None,
                    None => {
                        nodes.push(next);
                        nodes.len() as u32 - 1
                    }
                };
                edges.push((low, high, number));
            }
            first.push(edges.len() as u32);
            at += 1;
        }
        Some(LeadingWords { edges, first, exit: None })
    }
}

impl BoundedQuotient {
    /// Returns the words that a class reads first, if it reads nothing else and they are few.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn leading_words(&self, class: StateId) -> Result<Option<LeadingWords>, Error> {
        if !self.reads_live_bytes() {
            return Ok(None);
        }
        let term = self.term(class);
        let (words, tail) = {
            let terms = &self.automaton().lock().deriver.terms;
            let (head, tail) = terms.head_and_tail(term);
            let TermNode::Dawg(dag) = *terms.get(head) else { return Ok(None) };
            let dags = &terms.dawgs;
            if dags.min_len(dag) < MIN_WORD_BYTES || dags.class_cover(dag).is_some() {
                return Ok(None);
            }
            (LeadingWords::of_node(dags, dag), tail)
        };
        let Some(words) = words else { return Ok(None) };
        let exit = if tail == EPSILON { None } else { Some(self.class_of_term(tail)?) };
        Ok(Some(LeadingWords { exit, ..words }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use formalm_core::{ByteSet, LazyDfa};
    use formalm_regex::{PatternDialect, PatternFlags, parse};

    use super::*;
    use crate::{Automaton, AutomatonLimits, Expression};

    const PATTERNS: [&str; 12] = [
        "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
        "(EUR|USD|GBP) [1-9][0-9]{0,5}\\.[0-9]{2}",
        "(ab|abc)[0-9]",
        "(true|false)(,(true|false)){0,3}",
        "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])",
        "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?",
        "[0-9]{1,3}[0-4][a-f]*",
        "(é|ü|ab)x",
        "a?b{0,40}c",
        "\\w{2}-\\w+",
        "(?=a)[a-z]{1,3}",
        "x{0,1000}",
    ];

    fn quotient(pattern: &str) -> BoundedQuotient {
        let parsed = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
        let expression = Expression::pattern(parsed);
        let automaton = Automaton::new(&expression, AutomatonLimits::default()).unwrap();
        BoundedQuotient::new(Arc::new(automaton), 32)
    }

    /// Returns the classes that inputs of a few bytes lead to.
    fn classes(quotient: &BoundedQuotient) -> Vec<StateId> {
        let mut found = vec![quotient.class_of(quotient.automaton().start()).unwrap()];
        let mut at = 0;
        while at < found.len().min(60) {
            for byte in 0..=255 {
                let next = quotient.step(found[at], byte).unwrap();
                found.extend(next.filter(|next| !found.contains(next)));
            }
            at += 1;
        }
        found
    }

    #[test]
    fn words_are_the_only_strings_that_a_class_begins_with() {
        let mut count = 0;
        for pattern in PATTERNS {
            let quotient = quotient(pattern);
            for class in classes(&quotient) {
                let Some(words) = quotient.leading_words(class).unwrap() else { continue };
                count += 1;
                let mut open = vec![(LeadingWords::ROOT, class)];
                while let Some((node, class)) = open.pop() {
                    let mut read = ByteSet::default();
                    for &(low, high, next) in words.edges(node) {
                        read.insert_range(low, high);
                        for byte in low..=high {
                            let after = quotient.step(class, byte).unwrap().unwrap();
                            if next != LeadingWords::END {
                                open.push((next, after));
                            } else if let Some(exit) = words.exit {
                                assert_eq!(after, exit, "{pattern}");
                            } else {
                                assert!(quotient.live_bytes(after).unwrap().is_empty());
                            }
                        }
                    }
                    assert_eq!(quotient.live_bytes(class).unwrap(), read, "{pattern}");
                }
            }
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn live_bytes_read_off_a_term_are_those_of_steps() {
        let mut count = 0;
        for pattern in PATTERNS {
            let quotient = quotient(pattern);
            for class in classes(&quotient) {
                let Some(live) = quotient.cheap_live_bytes(class) else { continue };
                count += 1;
                for byte in 0..=255 {
                    let next = quotient.step(class, byte).unwrap();
                    assert_eq!(next.is_some(), live.contains(byte), "{pattern} {byte}");
                }
                assert_eq!(quotient.cheap_live_bytes(class), Some(live));
            }
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn any_string_of_the_characters_of_a_counter_may_follow() {
        let sets = ["0", "09", "0123456789", "04", "abcdef", "af", "x", "b"];
        for pattern in PATTERNS {
            let quotient = quotient(pattern);
            for class in classes(&quotient) {
                for set in sets {
                    let characters = set.bytes().fold(0, |all, byte| all | 1u128 << byte);
                    let count = quotient.reads_any_of(class, characters);
                    let mut reached = vec![class];
                    for _ in 0..count.min(8) {
                        let next = |&class: &StateId| {
                            let step = |byte| quotient.step(class, byte).unwrap().unwrap();
                            set.bytes().map(step).collect::<Vec<StateId>>()
                        };
                        reached = reached.iter().flat_map(next).collect();
                        reached.sort_unstable();
                        reached.dedup();
                    }
                }
            }
        }
        let count = |pattern: &str, set: u128| {
            let quotient = quotient(pattern);
            let start = quotient.class_of(quotient.automaton().start()).unwrap();
            quotient.reads_any_of(start, set)
        };
        let digits = 0x3FF << b'0';
        assert_eq!(count("[0-9]{3}[0-9-]{2}x", digits), 5);
        assert_eq!(count("[0-9]{3}[1-9]", digits), 3);
        assert_eq!(count("[0-9]*a", digits), u32::MAX);
        assert_eq!(count("[a-f]{2}", digits), 0);
    }
}
