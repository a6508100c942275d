//! Masks of classes that machines share, kept with the vocabulary.

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, LruCache};

use crate::mask::Mask;

/// Maximum number of masks; the least recently used is evicted. An own bitmask counts as one for
/// each [`UNIT_BYTES`], so all take at most 4 MiB. In a study of 782 schemas, 1,024 bitmasks, most of
/// them short lists, were 87 % of all that were computed.
const MAX_MASKS: usize = 4096;

/// Memory that counts as one mask, in bytes.
const UNIT_BYTES: usize = 1024;

/// Maximum number of lists of trie nodes.
const MAX_END_LISTS: usize = 1024;

/// Maximum number of trie nodes in a list. Chosen, not measured.
const MAX_ENDS: usize = 1024;

/// The masks by the identities of their classes.
#[derive(Debug, Default)]
pub(crate) struct SharedMasks {
    known: ForkSafeMutex<LruCache<u128, Mask, MAX_MASKS>>,
    /// The trie nodes at which members end.
    ends: ForkSafeMutex<LruCache<u128, Arc<[u32]>, MAX_END_LISTS>>,
}

impl SharedMasks {
    /// Returns the mask of an identity.
    pub(crate) fn get(&self, id: u128) -> Option<Mask> {
        self.known.lock().get(&id)
    }

    /// Inserts a mask. Returns it in a form that copies share.
    pub(crate) fn insert(&self, id: u128, mask: Mask) -> Mask {
        let own_base = match &mask {
            Mask::Patched { base, .. } if Arc::strong_count(base) == 1 => 4 * base.len(),
            _ => 0,
        };
        let size = (mask.memory_bytes() + own_base).div_ceil(UNIT_BYTES);
        let mask = match mask {
            Mask::Dense(words) => Mask::patched(&words, Vec::new(), Vec::new()),
            mask => mask,
        };
        self.known.lock().insert(id, mask.clone(), size);
        mask
    }

    /// Returns the trie nodes at which members end that a class is inside of.
    pub(crate) fn ends(&self, id: u128) -> Option<Arc<[u32]>> {
        self.ends.lock().get(&id)
    }

    /// Inserts the trie nodes at which members end.
    pub(crate) fn insert_ends(&self, id: u128, nodes: &[u32]) {
        if nodes.len() <= MAX_ENDS {
            self.ends.lock().insert(id, nodes.into(), 1);
        }
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ends: usize = self.ends.lock().values().map(|nodes| 4 * nodes.len() + 64).sum();
        // An upper bound: many bases belong to other tables.
        ends + self.known.lock().size() * UNIT_BYTES
    }
}
