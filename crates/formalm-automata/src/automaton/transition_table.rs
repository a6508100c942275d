//! The transition table of a lazy DFA: rows of successors, flags of states, and the index of
//! terms.

use std::sync::MutexGuard;

use formalm_core::{AppendVec, ForkSafeMutex, Interner, memory_bytes};
use rustc_hash::FxHashMap;

use crate::automaton::byte_classes::ByteClasses;
use crate::terms::TermId;

/// The value of a slot that is not computed yet.
pub(crate) const UNKNOWN: u32 = 0;
/// The state from which nothing is accepted.
pub(crate) const DEAD: u32 = 1;

/// Rows of successors, read without a lock.
#[derive(Debug, Default)]
pub(crate) struct TransitionRows {
    slots: AppendVec,
    /// A sparse table for automata whose states are mostly read once, which would leave rows empty.
    sparse: Option<ForkSafeMutex<FxHashMap<usize, u32>>>,
}

memory_bytes!(TransitionRows { slots, sparse });

impl TransitionRows {
    /// Creates rows with few filled slots, which are read under a lock.
    pub(crate) fn sparse() -> TransitionRows {
        TransitionRows { slots: AppendVec::default(), sparse: Some(ForkSafeMutex::default()) }
    }

    #[inline]
    pub(crate) fn get(&self, classes: &ByteClasses, state: u32, class: usize) -> u32 {
        let slot = state as usize * classes.len() + class;
        match &self.sparse {
            None => self.slots.get(slot),
            Some(few) => lock_sparse(few).get(&slot).copied().unwrap_or(UNKNOWN),
        }
    }

    /// Sets the successor for an inclusive range of bytes, which must be whole classes.
    pub(crate) fn set(&self, classes: &ByteClasses, state: u32, bytes: (u8, u8), next: u32) {
        for class in classes.of(bytes.0)..=classes.of(bytes.1) {
            let slot = state as usize * classes.len() + class;
            match &self.sparse {
                None => self.slots.set(slot, next),
                Some(few) => {
                    lock_sparse(few).insert(slot, next);
                }
            }
        }
    }
}

fn lock_sparse(
    few: &ForkSafeMutex<FxHashMap<usize, u32>>,
) -> MutexGuard<'_, FxHashMap<usize, u32>> {
    few.lock()
}

/// The term of each state. Numbers start at 2.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateIndex(Interner<TermId>);

impl StateIndex {
    pub(crate) fn find(&self, term: TermId) -> Option<u32> {
        Some(self.0.find(&term)? + DEAD + 1)
    }

    pub(crate) fn add(&mut self, term: TermId) -> u32 {
        self.0.intern_new(term) + DEAD + 1
    }

    pub(crate) fn term(&self, state: u32) -> TermId {
        *self.0.get(state - DEAD - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.table_bytes()
    }
}

const ACCEPTING: u32 = 1;
const LIVE: u32 = 2;
const NOT_LIVE: u32 = 4;

/// Acceptance and liveness of each state, read without a lock.
#[derive(Debug, Default)]
pub(crate) struct StateFlags(AppendVec);

impl StateFlags {
    /// Sets the flags of a new state; liveness is unknown unless `live`.
    pub(crate) fn add(&self, state: u32, accepting: bool, live: bool) {
        let flags = if accepting { ACCEPTING } else { 0 } | if live { LIVE } else { 0 };
        self.0.set(state as usize, flags);
    }

    #[inline]
    pub(crate) fn is_accepting(&self, state: u32) -> bool {
        self.0.get(state as usize) & ACCEPTING != 0
    }

    /// Returns whether a state is live, if that is known.
    #[inline]
    pub(crate) fn liveness(&self, state: u32) -> Option<bool> {
        match self.0.get(state as usize) & (LIVE | NOT_LIVE) {
            0 => None,
            known => Some(known & LIVE != 0),
        }
    }

    /// Records that a state is live, or not.
    pub(crate) fn decide(&self, state: u32, live: bool) {
        let flags = self.0.get(state as usize);
        self.0.set(state as usize, flags | if live { LIVE } else { NOT_LIVE });
    }

    /// Returns a copy of the flags of the states of an index.
    pub(crate) fn copy(&self, index: &StateIndex) -> StateFlags {
        let copy = AppendVec::default();
        for number in (DEAD as usize + 1..).take(index.len()) {
            copy.set(number, self.0.get(number));
        }
        StateFlags(copy)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
