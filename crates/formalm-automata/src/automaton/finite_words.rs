//! Words that may follow a state, where these are finitely many, to be read without a state for each
//! of their prefixes.

use formalm_core::{ByteSet, Error, StateId};

use crate::automaton::Automaton;
use crate::terms::dawg::{DawgId, Dawgs};
use crate::terms::{EPSILON, TermNode};

/// The words that may follow a state, as an acyclic automaton.
#[derive(Clone, Copy, Debug)]
pub struct FiniteWords<'a> {
    dawgs: &'a Dawgs,
    root: DawgId,
}

/// A place in some words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordPosition(DawgId);

impl FiniteWords<'_> {
    /// Returns the place before the words.
    pub fn start(&self) -> WordPosition {
        WordPosition(self.root)
    }

    /// Returns the place after a byte, `None` if no word continues so.
    pub fn step(&self, at: WordPosition, byte: u8) -> Option<WordPosition> {
        self.dawgs.step(at.0, byte).map(WordPosition)
    }

    /// Returns the bytes with which words continue.
    pub fn next_bytes(&self, at: WordPosition) -> ByteSet {
        let mut found = ByteSet::default();
        for &(low, high, _) in self.dawgs.edges(at.0) {
            found.insert_range(low, high);
        }
        found
    }

    /// Returns `true` if a word ends.
    pub fn is_end(&self, at: WordPosition) -> bool {
        self.dawgs.is_accepting(at.0)
    }
}

impl Automaton {
    /// Calls `read` with the words that may follow a state, if these are listed. Returns `None` if
    /// they are not, or if they are the characters of a class.
    ///
    /// A lock of the automaton is held meanwhile.
    pub fn read_finite_words<R>(
        &self,
        state: StateId,
        read: impl FnOnce(FiniteWords<'_>) -> R,
    ) -> Option<R> {
        let core = &self.lock();
        let terms = &core.deriver.terms;
        let &TermNode::Dawg(root) = terms.get(self.term(core, state)) else { return None };
        let dawgs = &terms.dawgs;
        dawgs.class_cover(root).is_none().then(|| read(FiniteWords { dawgs, root }))
    }

    /// Returns the state after which nothing may follow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if there are too many states.
    pub fn end_state(&self) -> Result<StateId, Error> {
        self.intern(&mut self.lock(), EPSILON).map(StateId::from_number)
    }
}

#[cfg(test)]
mod tests {
    use formalm_core::LazyDfa;
    use formalm_regex::{PatternDialect, PatternFlags, parse};

    use super::*;
    use crate::{AutomatonLimits, Expression};

    /// Returns the words that may follow a state, as they are listed.
    fn listed(automaton: &Automaton, state: StateId) -> Option<Vec<Vec<u8>>> {
        automaton.read_finite_words(state, |words| {
            let (mut found, mut open) = (Vec::new(), vec![(Vec::new(), words.start())]);
            while let Some((text, at)) = open.pop() {
                found.extend(words.is_end(at).then(|| text.clone()));
                let mut bytes = ByteSet::default();
                for byte in 0..=255 {
                    let Some(next) = words.step(at, byte) else { continue };
                    bytes.insert(byte);
                    open.push(([&text[..], &[byte]].concat(), next));
                }
                assert_eq!(words.next_bytes(at), bytes);
            }
            found.sort_unstable();
            found
        })
    }

    /// Returns the words that may follow a state, as steps tell; there must be finitely many.
    fn stepped(automaton: &Automaton, state: StateId) -> Vec<Vec<u8>> {
        let (mut found, mut open) = (Vec::new(), vec![(Vec::new(), state)]);
        while let Some((text, state)) = open.pop() {
            found.extend(automaton.is_accepting(state).then(|| text.clone()));
            for byte in 0..=255 {
                let next = automaton.step(state, byte).unwrap();
                open.extend(next.map(|next| ([&text[..], &[byte]].concat(), next)));
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn words_are_those_of_steps() {
        for (pattern, least) in [("red|green|gre(y|en)er|é", 5), ("a*(bc|bd)", 0), ("[ab]", 0)] {
            let parsed = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
            let expression = Expression::pattern(parsed);
            let automaton = Automaton::new(&expression, AutomatonLimits::default()).unwrap();
            let (mut states, mut at, mut count) = (vec![automaton.start()], 0, 0);
            while let Some(&state) = states.get(at) {
                if let Some(words) = listed(&automaton, state) {
                    assert_eq!(words, stepped(&automaton, state), "{pattern}");
                    count += 1;
                }
                for byte in 0..=255 {
                    let next = automaton.step(state, byte).unwrap();
                    states.extend(next.filter(|next| !states.contains(next)));
                }
                at += 1;
            }
            assert!(count >= least, "{pattern}: {count}");
        }
    }

    #[test]
    fn nothing_follows_the_end() {
        let words = Expression::literals(vec![b"ab".to_vec(), b"abc".to_vec()]);
        let automaton = Automaton::new(&words, AutomatonLimits::default()).unwrap();
        let end = automaton.end_state().unwrap();
        assert!(automaton.is_accepting(end));
        assert!(automaton.live_bytes(end).unwrap().is_empty());
        assert_eq!(automaton.min_bytes_by_term(automaton.start()), 2);
        assert_eq!(automaton.min_bytes_by_term(end), 0);
    }
}
