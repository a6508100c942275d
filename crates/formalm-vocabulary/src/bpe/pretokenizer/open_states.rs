//! Open states of the automaton of boundaries: those after which every text may follow.
//!
//! Behind a boundary that no text to come can disprove, the rest of a text is split as any text is.
//! What follows then matters to nothing before it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::boundary_automaton::BoundaryAutomaton;

/// Maximum number of sets that one test visits; beyond it the state counts as not open. Chosen, not
/// measured.
const MAX_SETS: usize = 4096;

/// The results of past tests, by the number of the state between characters.
#[derive(Debug, Default)]
pub(in crate::bpe) struct OpenStates {
    known: FxHashMap<u32, bool>,
    /// Sets of states after which every text may follow, of past tests. Most tests meet the same.
    open_sets: FxHashSet<Box<[u32]>>,
}

impl OpenStates {
    /// Returns `true` if every text may follow a state between characters.
    ///
    /// A text may follow a set of states if it may follow one of them. So every text may follow if
    /// no sequence of characters leads to a set without a state in which the text may end.
    pub(in crate::bpe) fn contains(&mut self, automaton: &BoundaryAutomaton, state: u32) -> bool {
        if let Some(&known) = self.known.get(&state) {
            return known;
        }
        let is_open = self.test(automaton, state);
        self.known.insert(state, is_open);
        is_open
    }

    fn test(&mut self, automaton: &BoundaryAutomaton, state: u32) -> bool {
        let mut seen: FxHashSet<Box<[u32]>> = FxHashSet::default();
        let mut pending: Vec<Box<[u32]>> = vec![[state].into()];
        let mut next = Vec::new();
        while let Some(set) = pending.pop() {
            if !set.iter().any(|&state| automaton.state_may_end(state)) {
                return false;
            }
            for class in 0..automaton.class_count() {
                next.clear();
                for &state in &set {
                    next.extend(automaton.successors(state, class));
                }
                next.sort_unstable();
                next.dedup();
                // The shortest text that may not follow begins at a set without an open state.
                let is_known = |&next: &u32| next == state || self.known.get(&next) == Some(&true);
                if next.iter().any(is_known)
                    || self.open_sets.contains(&*next)
                    || seen.contains(&*next)
                {
                    continue;
                }
                if seen.len() == MAX_SETS {
                    return false;
                }
                seen.insert((&*next).into());
                pending.push((&*next).into());
            }
        }
        // Every set that was met leads to such sets, or to one with an open state.
        if self.open_sets.len() + seen.len() <= MAX_SETS {
            self.open_sets.extend(seen);
        }
        true
    }

    pub(in crate::bpe) fn memory_bytes(&self) -> usize {
        let sets = self.open_sets.iter().map(|set| 24 + 4 * set.len());
        8 * self.known.len() + sets.sum::<usize>()
    }
}
