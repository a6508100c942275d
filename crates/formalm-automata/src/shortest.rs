//! Shortest texts read off terms, where nothing has to be searched.
//!
//! A pure term is never empty and the length of its shortest text is known, so the text can be
//! written down part by part. A search would build every state on its way and beside it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::dag::DagId;
use crate::term::{Term, TermId, Terms};

/// Longer texts are searched, so that what they cost is counted.
const BYTES: u32 = 1 << 16;
/// Terms within each other.
const DEPTH: usize = 200;

/// Shortest texts of terms, where known.
type Known = FxHashMap<TermId, Option<Rc<[u8]>>>;

impl Terms {
    /// The shortest text of a pure term, the smallest of several; `None` if it is not told so.
    pub(crate) fn shortest(&self, id: TermId) -> Option<Vec<u8>> {
        let facts = self.facts(id);
        if !facts.pure || facts.min_len > BYTES {
            return None;
        }
        let mut text = Vec::with_capacity(facts.min_len as usize);
        self.write(id, &mut text, &mut Known::default(), DEPTH)?;
        Some(text)
    }

    fn write(&self, id: TermId, text: &mut Vec<u8>, known: &mut Known, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let mut id = id;
        loop {
            match *self.get(id) {
                Term::Epsilon | Term::Full => return Some(()),
                Term::Dag(node) => {
                    self.write_leaf(node, text);
                    return Some(());
                }
                // All shortest texts of the first are equally long, so the smallest goes in front.
                Term::Cat(first, rest) => {
                    self.write(first, text, known, depth)?;
                    id = rest;
                }
                Term::Alt(ref list) => {
                    let least = self.facts(id).min_len;
                    let mut best: Option<Rc<[u8]>> = None;
                    for &one in list.iter().filter(|&&one| self.facts(one).min_len == least) {
                        let one = self.known(one, known, depth)?;
                        best = Some(best.filter(|best| *best <= one).unwrap_or(one));
                    }
                    text.extend_from_slice(&best?);
                    return Some(());
                }
                Term::Repeat { body, min, .. } => {
                    if self.facts(body).min_len > 0 && min > 0 {
                        let one = self.known(body, known, depth)?;
                        (0..min).for_each(|_| text.extend_from_slice(&one));
                    }
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn known(&self, id: TermId, known: &mut Known, depth: usize) -> Option<Rc<[u8]>> {
        if let Some(text) = known.get(&id) {
            return text.clone();
        }
        let mut text = Vec::new();
        let text = self.write(id, &mut text, known, depth).map(|()| text.into());
        known.insert(id, text.clone());
        text
    }

    fn write_leaf(&self, node: DagId, text: &mut Vec<u8>) {
        let mut node = node;
        while let Some(left) = self.dags.min_len(node).checked_sub(1) {
            let next = self.dags.edges(node).iter().find(|one| self.dags.min_len(one.2) == left);
            let Some(&(byte, _, next)) = next else { return };
            text.push(byte);
            node = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::automaton::{Automaton, Limits};
    use crate::machine::Machine;
    use crate::syntax::{Dialect, Flags, parse};
    use crate::{Error, Expression};

    #[test]
    fn shortest_texts_are_those_of_a_search() -> Result<(), Error> {
        let patterns = [
            "",
            "a",
            "b|a",
            "ba|ab|c?x",
            "(b|a)(d|c)",
            "[c-f]{3,5}x?",
            "(ab|c){2}",
            "(a?b*)+",
            "é|ü|zz",
            "[é-ü]a|[a-z][0-9]",
            "(?i:select)",
            "(x{2}|y{2}){3}",
            "(a|b)*abb",
            "(|b)a",
            "(ab){0,2}(b|[^a])",
            "((a|bb){2,3}|c{4})d",
            "\"(\\\\.|[^\"\\\\])*\"",
            "a{0}b",
            "(aa|b)*?c",
        ];
        for pattern in patterns {
            let language = Expression::pattern(parse(pattern, Dialect::Python, Flags::default())?);
            let automaton = Automaton::new(&language, Limits::default())?;
            let mut states = vec![automaton.start()];
            for at in 0..40 {
                let Some(&state) = states.get(at) else { break };
                let core = automaton.lock();
                let told = core.terms.shortest(automaton.term(&core, state));
                drop(core);
                assert_eq!(told, Some(automaton.searched(state)?), "{pattern}");
                for &byte in automaton.class_starts() {
                    if let Some(next) = automaton.step(state, byte)?
                        && !states.contains(&next)
                    {
                        states.push(next);
                    }
                }
            }
        }
        Ok(())
    }
}
