//! An interner of recognizer states: a [`CharRecognizer`](formalm_automata::CharRecognizer) numbers
//! its states itself.

use std::hash::Hash;

use formalm_core::{ForkSafeMutex, Interner};

/// Interned states, numbered in order of discovery, under a fork-safe lock.
#[derive(Debug)]
pub(in crate::formats) struct StateInterner<T>(ForkSafeMutex<Interner<T>>);

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
        self.0.lock().intern(state)
    }

    /// Returns a state by number.
    pub(in crate::formats) fn get(&self, id: u32) -> T {
        self.0.lock().get(id).clone()
    }

    /// Returns how often all states were lost, see
    /// [`GrowingStates::losses`](formalm_automata::GrowingStates::losses).
    pub(in crate::formats) fn losses(&self) -> u32 {
        self.0.losses()
    }

    #[cfg(test)]
    pub(in crate::formats) fn count(&self) -> u32 {
        self.0.lock().len() as u32
    }
}
