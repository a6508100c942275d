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
    /// The shortest completion after a value, by its parent.
    pub(crate) closings: CompactMap<FrameId, Box<[u8]>>,
}

impl TransitionCache {
    pub(crate) fn bytes(&self) -> usize {
        let heap = self.closings.memory_bytes() + 100 * self.closings.len();
        heap + self.min_value_bytes.memory_bytes()
    }
}
