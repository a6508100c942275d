//! The mask classes of the states seen so far.

use formalm_core::{AppendVec, MaskClassId, StateId};

/// Flag of states whose class leaves a few tokens undecided.
const UNDECIDED: u32 = 1 << 31;

/// The mask class of each state, where known. Reading it takes no lock.
#[derive(Debug, Default)]
pub struct ClassTable {
    /// For each state its class plus one, and the flag; 0 is unknown.
    classes: AppendVec,
}

impl ClassTable {
    /// Returns the class of a state, if it is known.
    #[inline]
    pub fn get(&self, state: StateId) -> Option<MaskClassId> {
        let class = self.classes.get(state.number() as usize) & !UNDECIDED;
        class.checked_sub(1).map(MaskClassId::from_number)
    }

    /// Returns `true` if the class of a state is known and leaves a few tokens undecided.
    #[inline]
    pub fn is_approximate(&self, state: StateId) -> bool {
        self.classes.get(state.number() as usize) & UNDECIDED != 0
    }

    /// Records and returns the class of a state.
    pub fn insert(&self, state: StateId, class: MaskClassId, is_approximate: bool) -> MaskClassId {
        let flag = if is_approximate { UNDECIDED } else { 0 };
        self.classes.set(state.number() as usize, (class.number() + 1) | flag);
        class
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.classes.memory_bytes()
    }
}
