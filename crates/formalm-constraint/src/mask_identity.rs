//! The identity of a cached mask: equal identities prove equal masks without reading them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::MaskClasses;

use crate::epoch::{ConstraintState, StateEpoch};
use crate::mask::{Mask, MaskWords};

/// A cached mask with or without the end tokens. It keeps the shared bitmask alive.
#[derive(Clone, Debug)]
pub struct MaskIdentity {
    mask: Mask,
    accepting: bool,
}

impl MaskIdentity {
    /// Returns the memory of its own, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<MaskIdentity>() + self.mask.memory_bytes()
    }

    /// Returns the memory of the shared bitmask that it keeps alive, in bytes.
    pub fn shared_bytes(&self) -> usize {
        self.base().map_or(0, |base| 4 * base.len())
    }

    /// Returns the number of owners of that bitmask.
    pub fn owners(&self) -> usize {
        self.base().map_or(0, Arc::strong_count)
    }

    /// Returns `true` if both share a bitmask.
    pub fn shares(&self, other: &MaskIdentity) -> bool {
        self.base().zip(other.base()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn base(&self) -> Option<&Arc<MaskWords>> {
        match &self.mask {
            Mask::Patched { base, .. } => Some(base),
            _ => None,
        }
    }
}

impl PartialEq for MaskIdentity {
    fn eq(&self, other: &MaskIdentity) -> bool {
        self.accepting == other.accepting
            && match (&self.mask, &other.mask) {
                (Mask::Sparse(ids), Mask::Sparse(others)) => ids == others,
                (Mask::Dense(words), Mask::Dense(others)) => words == others,
                (
                    Mask::Patched { base, add, remove },
                    Mask::Patched { base: other, add: added, remove: removed },
                ) => Arc::ptr_eq(base, other) && (add, remove) == (added, removed),
                _ => false,
            }
    }
}

impl Eq for MaskIdentity {}

impl Hash for MaskIdentity {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.accepting.hash(hasher);
        match &self.mask {
            Mask::Sparse(ids) => ids.hash(hasher),
            Mask::Dense(words) => words.hash(hasher),
            Mask::Patched { base, add, remove } => {
                (Arc::as_ptr(base).addr(), add, remove).hash(hasher);
            }
        }
    }
}

impl<K: MaskClasses> StateEpoch<K> {
    /// Returns the identity of a state's mask, computing the mask if needed. Returns `None` if the
    /// cache has no room for masks, or if the cached mask needs corrections.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    pub fn form(&self, position: ConstraintState) -> Result<Option<MaskIdentity>, Error> {
        if self.is_canonical() || !self.keeps_masks() {
            return Ok(None);
        }
        let state = self.state(position);
        // A cached mask shares its words with similar ones, and its undecided tokens are known.
        self.with_mask(state, |_| ())?;
        if !self.undecided_tokens(state).is_empty() {
            return Ok(None);
        }
        let mask = self.with_mask(state, Mask::clone)?;
        Ok(Some(MaskIdentity { mask, accepting: self.is_accepting(position)? }))
    }
}
