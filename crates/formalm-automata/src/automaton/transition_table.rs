//! The transition table of a lazy DFA: byte classes, rows of successors, and the index of terms.

use std::sync::MutexGuard;

use formalm_core::{AppendVec, ForkSafeMutex};
use rustc_hash::FxHashMap;

use crate::terms::TermId;

/// The value of a slot that is not computed yet.
pub(crate) const UNKNOWN: u32 = 0;
/// The state from which nothing is accepted.
pub(crate) const DEAD: u32 = 1;

/// The classes of bytes that no leaf of a language distinguishes.
#[derive(Clone, Debug)]
pub(crate) struct ByteClasses {
    of: [u8; 256],
    representatives: Vec<u8>,
}

impl ByteClasses {
    /// Creates classes from the bytes at which a new class starts (`starts[0]` is implied).
    pub(crate) fn new(starts: &[bool; 256]) -> ByteClasses {
        let mut classes = ByteClasses { of: [0; 256], representatives: Vec::new() };
        for byte in 0..=255u8 {
            if byte == 0 || starts[usize::from(byte)] {
                classes.representatives.push(byte);
            }
            classes.of[usize::from(byte)] = (classes.representatives.len() - 1) as u8;
        }
        classes
    }

    #[inline]
    pub(crate) fn of(&self, byte: u8) -> usize {
        usize::from(self.of[usize::from(byte)])
    }

    pub(crate) fn representatives(&self) -> &[u8] {
        &self.representatives
    }

    pub(crate) fn len(&self) -> usize {
        self.representatives.len()
    }
}

/// Rows of successors, read without a lock.
#[derive(Debug, Default)]
pub(crate) struct TransitionRows {
    slots: AppendVec,
    /// A sparse table for automata whose states are mostly read once, which would leave rows empty.
    sparse: Option<ForkSafeMutex<FxHashMap<usize, u32>>>,
}

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

    pub(crate) fn memory_bytes(&self) -> usize {
        let few = self.sparse.as_ref().map_or(0, |few| lock_sparse(few).capacity() * 18);
        self.slots.memory_bytes() + few
    }
}

fn lock_sparse(
    few: &ForkSafeMutex<FxHashMap<usize, u32>>,
) -> MutexGuard<'_, FxHashMap<usize, u32>> {
    few.lock()
}

/// The term of each state. Numbers start at 2.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateIndex {
    ids: FxHashMap<TermId, u32>,
    terms: Vec<TermId>,
}

impl StateIndex {
    pub(crate) fn find(&self, term: TermId) -> Option<u32> {
        self.ids.get(&term).copied()
    }

    pub(crate) fn add(&mut self, term: TermId) -> u32 {
        let state = self.terms.len() as u32 + DEAD + 1;
        self.terms.push(term);
        self.ids.insert(term, state);
        state
    }

    pub(crate) fn term(&self, state: u32) -> TermId {
        self.terms[(state - DEAD - 1) as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.terms.capacity() * size_of::<TermId>() + self.ids.capacity() * 8 / 7 * 9
    }
}
