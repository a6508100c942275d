//! An interner of recognizer states: a [`CharRecognizer`](formalm_automata::CharRecognizer) numbers
//! its states itself.

use std::hash::Hash;

use formalm_core::ForkSafeMutex;
use rustc_hash::FxHashMap;

/// Interned states, numbered in order of discovery, under a fork-safe lock.
#[derive(Debug)]
pub(in crate::formats) struct StateInterner<T>(ForkSafeMutex<(Vec<T>, FxHashMap<T, u32>)>);

impl<T> Default for StateInterner<T> {
    fn default() -> StateInterner<T> {
        StateInterner(ForkSafeMutex::default())
    }
}

impl<T: Clone> Clone for StateInterner<T> {
    fn clone(&self) -> StateInterner<T> {
        StateInterner(ForkSafeMutex::new(self.0.lock().clone()))
    }
}

impl<T: Clone + Eq + Hash> StateInterner<T> {
    /// Returns the number of a state.
    pub(in crate::formats) fn intern(&self, state: T) -> u32 {
        let (states, ids) = &mut *self.0.lock();
        *ids.entry(state.clone()).or_insert_with(|| {
            states.push(state);
            (states.len() - 1) as u32
        })
    }

    /// Returns a state by number.
    pub(in crate::formats) fn get(&self, id: u32) -> T {
        self.0.lock().0[id as usize].clone()
    }

    /// Returns how often all states were lost, see
    /// [`GrowingStates::losses`](formalm_automata::GrowingStates::losses).
    pub(in crate::formats) fn losses(&self) -> u32 {
        self.0.losses()
    }

    #[cfg(test)]
    pub(in crate::formats) fn count(&self) -> u32 {
        self.0.lock().0.len() as u32
    }
}
