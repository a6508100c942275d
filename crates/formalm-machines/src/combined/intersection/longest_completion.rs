//! The longest completions of a regular language's states, where there is one.

use formalm_automata::Automaton;
use formalm_core::{Error, LazyDfa, ReadingHints, Renewal, StateId};
use rustc_hash::FxHashMap;

/// Maximum number of states that are visited in all. Chosen, not measured.
const MAX_STATES: usize = 20_000;

/// States that one state may lead to.
const SUCCESSORS: usize = 256;

/// The lengths of the longest completions, in bytes, by state.
#[derive(Debug, Default)]
pub(super) struct LongestCompletions {
    /// [`usize::MAX`] where completions have no bound or none is known.
    known: FxHashMap<StateId, usize>,
}

/// A state whose successors are being visited.
struct OpenState {
    state: StateId,
    successors: Vec<StateId>,
    /// The longest completion through the successors visited so far.
    longest: usize,
}

impl LongestCompletions {
    /// Returns an upper bound on the bytes of every completion; [`usize::MAX`] if none is known.
    pub(super) fn of(&mut self, regular: &Automaton, state: StateId) -> Result<usize, Error> {
        if let Some(&known) = self.known.get(&state) {
            return Ok(known);
        }
        let mut open = vec![self.opened(regular, state)?];
        while let Some(last) = open.last_mut() {
            let Some(&next) = last.successors.last() else {
                self.known.insert(last.state, last.longest);
                open.pop();
                continue;
            };
            match self.known.get(&next) {
                // It is unbounded, or open itself, which is a cycle: so are all open ones.
                Some(&usize::MAX) => return Ok(usize::MAX),
                Some(&known) => {
                    last.longest = last.longest.max(known + 1);
                    last.successors.pop();
                }
                None if self.known.len() >= MAX_STATES || !regular.has_room(SUCCESSORS) => {
                    return Ok(usize::MAX);
                }
                None => {
                    let opened = self.opened(regular, next)?;
                    open.push(opened);
                }
            }
        }
        Ok(self.known[&state])
    }

    /// Begins a state: without a bound until all of its successors have one.
    fn opened(&mut self, regular: &Automaton, state: StateId) -> Result<OpenState, Error> {
        self.known.insert(state, usize::MAX);
        let mut successors = Vec::new();
        for class in regular.byte_classes(state)? {
            if let Some(byte) = class.iter().next()
                && let Some(next) = regular.step(state, byte)?
                && !successors.contains(&next)
            {
                successors.push(next);
            }
        }
        Ok(OpenState { state, successors, longest: 0 })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.known.capacity() * 17
    }
}
