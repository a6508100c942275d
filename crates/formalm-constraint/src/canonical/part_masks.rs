//! The masks of positions with equal [signatures](super::part_signatures), computed once for all
//! constraints of an encoder.

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, LruCache};
use formalm_vocabulary::VocabularyExtension;
use formalm_vocabulary::bpe::{PretokenState, SplitterState};

use crate::mask::Mask;

/// Maximum size of the table, in bytes; beyond it the least recently used masks are evicted. 12 MiB;
/// chosen, not measured.
const MAX_BYTES: usize = 12 << 20;

/// What the masks of a position depend on: the signature of its language state, and the state of
/// the tokenizer.
pub(super) type PartKey = (u128, SplitterState, PretokenState);

/// The tokens that continue a pre-token, without checking adjacency, and those that begin one.
pub(super) type MaskPair = (Mask, Mask);

/// The table.
#[derive(Debug, Default)]
pub(super) struct PartMasks {
    known: ForkSafeMutex<LruCache<PartKey, Arc<MaskPair>, MAX_BYTES>>,
}

impl PartMasks {
    /// Returns the masks of a position, if they are known.
    pub(super) fn get(&self, key: &PartKey) -> Option<MaskPair> {
        let known = self.known.lock().get(key);
        known.map(|masks| (*masks).clone())
    }

    pub(super) fn insert(&self, key: PartKey, masks: &MaskPair) {
        let bytes =
            size_of::<(PartKey, MaskPair)>() + masks.0.memory_bytes() + masks.1.memory_bytes();
        self.known.lock().insert(key, Arc::new(masks.clone()), bytes);
    }
}

impl VocabularyExtension for PartMasks {
    fn memory_bytes(&self) -> usize {
        self.known.lock().size()
    }
}
