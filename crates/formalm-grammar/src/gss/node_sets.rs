//! Interned sets of nodes and of edges. Nearly all have one member, and that is in their number.

use std::ops::Deref;

use crate::interner::ListInterner;

/// Marks the number of a set of one.
const SINGLE: u32 = 1 << 31;

/// Sets by number; 0 is the empty one.
#[derive(Debug, Default)]
pub(super) struct NodeSets {
    several: ListInterner,
}

/// The members of a set, to be kept while others are made.
pub(super) enum SetElements {
    One(u32),
    Several(Box<[u32]>),
}

impl Deref for SetElements {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            SetElements::One(one) => std::slice::from_ref(one),
            SetElements::Several(list) => list,
        }
    }
}

impl NodeSets {
    /// The number of a set, given as a sorted list.
    pub(super) fn intern(&mut self, list: &[u32]) -> u32 {
        match list {
            // The last number below the mark would look like a set that is not known.
            &[one] if one < SINGLE - 1 => SINGLE | one,
            list => self.several.intern(list),
        }
    }

    /// The only member of a set of one.
    #[inline]
    pub(super) fn single(set: u32) -> Option<u32> {
        (set & SINGLE != 0).then_some(set & !SINGLE)
    }

    /// The number of a set of one.
    pub(super) fn of(&mut self, one: u32) -> u32 {
        self.intern(&[one])
    }

    pub(super) fn get(&self, set: u32) -> SetElements {
        match NodeSets::single(set) {
            Some(one) => SetElements::One(one),
            None => SetElements::Several(self.several.copy(set)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.several.len()
    }

    /// Forgets all sets of several from number `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.several.truncate(len);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.several.memory_bytes()
    }
}
