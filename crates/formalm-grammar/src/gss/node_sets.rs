//! Interned sets of nodes and edges. Almost all are singletons, which are encoded in the id.

use std::ops::Deref;

use formalm_core::ListInterner;

/// The bit that marks the id of a singleton.
const SINGLE: u32 = 1 << 31;

/// Interned sets; id 0 is the empty set.
#[derive(Debug, Default)]
pub(super) struct NodeSets {
    several: ListInterner,
}

/// A copy of a set's elements, for use while other sets are interned.
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
    /// Interns a set, given as a sorted list.
    pub(super) fn intern(&mut self, list: &[u32]) -> u32 {
        match list {
            // The largest id would equal the marker of an unknown set.
            &[one] if one < SINGLE - 1 => SINGLE | one,
            list => self.several.intern(list),
        }
    }

    /// Returns the only element of a singleton.
    #[inline]
    pub(super) fn single(set: u32) -> Option<u32> {
        (set & SINGLE != 0).then_some(set & !SINGLE)
    }

    /// Interns a singleton.
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

    /// Drops all larger sets with ids from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.several.truncate(len);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.several.memory_bytes()
    }
}
