//! The numbers by which machines name their states and the classes of their states.

/// Identifies a state of one machine; meaningless in any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(u32);

impl StateId {
    /// Returns the state with a number that its machine chose.
    #[inline]
    pub const fn from_number(number: u32) -> StateId {
        StateId(number)
    }

    /// Returns the number of the state: small, dense, never reused.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// Identifies a class of states that a mask does not distinguish, of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaskClassId(u32);

impl MaskClassId {
    /// Returns the class with a number that its machine chose.
    #[inline]
    pub const fn from_number(number: u32) -> MaskClassId {
        MaskClassId(number)
    }

    /// Returns the number of the class: small and dense.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}
