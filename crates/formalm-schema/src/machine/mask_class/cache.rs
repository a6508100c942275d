//! Memo tables of the reader: interned parts of frames, and the transitions between them. All of
//! them are independent of the nesting depth, so a new state costs a few look-ups.

use crate::formula::FormulaId;
use crate::interner::CompactMap;
use crate::machine::frame::{FrameId, ObligationId};
use crate::schema_nodes::JsonType;

/// Memoized transitions, by interned parts.
#[derive(Debug, Default)]
pub(crate) struct TransitionCache {
    /// A lower bound on the bytes of a value, `None` if a deadline cut the search short.
    pub(crate) min_value_bytes: CompactMap<FormulaId, Option<usize>>,
    /// For arrays that cannot run out of items of a type (`None`: of any), their obligation at the
    /// first item.
    pub(crate) plenty_items: CompactMap<(ObligationId, Option<JsonType>), Option<ObligationId>>,
    /// Frames without the items read earlier.
    pub(crate) without_earlier_items: CompactMap<FrameId, FrameId>,
    /// The allowed types of values that are constrained by type only.
    pub(crate) value_types: CompactMap<ObligationId, Option<u8>>,
    /// An unconstrained array, the parent of values that are read in isolation.
    pub(crate) isolation_array: Option<FrameId>,
    /// The shortest completion after a value, by its parent.
    pub(crate) closings: CompactMap<FrameId, Box<[u8]>>,
}

impl TransitionCache {
    pub(crate) fn bytes(&self) -> usize {
        let heap = self.closings.memory_bytes() + 100 * self.closings.len();
        heap + self.min_value_bytes.memory_bytes()
            + self.plenty_items.memory_bytes()
            + self.value_types.memory_bytes()
            + self.without_earlier_items.memory_bytes()
    }
}
