//! How a mask is kept, as something to find it by: masks of one form have the same tokens, which
//! is found out without reading them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use formalm_automata::{Error, Keys};

use crate::epoch::{Position, StateEpoch};
use crate::mask::{Mask, MaskWords};

/// A stored mask with or without the end tokens. What it shares with others lives as long as it.
#[derive(Clone, Debug)]
pub struct Form {
    mask: Mask,
    accepting: bool,
}

impl Form {
    /// Memory of its own, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Form>() + self.mask.memory_bytes()
    }

    /// Memory of the bitmask that it keeps alive and others share, in bytes.
    pub fn shared_bytes(&self) -> usize {
        self.base().map_or(0, |base| 4 * base.len())
    }

    /// How many masks, forms and tables keep that bitmask alive.
    pub fn owners(&self) -> usize {
        self.base().map_or(0, Arc::strong_count)
    }

    /// Whether both share a bitmask.
    pub fn shares(&self, other: &Form) -> bool {
        self.base().zip(other.base()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn base(&self) -> Option<&Arc<MaskWords>> {
        match &self.mask {
            Mask::Patched { base, .. } => Some(base),
            _ => None,
        }
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Form) -> bool {
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

impl Eq for Form {}

impl Hash for Form {
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

impl<K: Keys> StateEpoch<K> {
    /// The form of a position's mask, which is computed if it was not; `None` if there is no room
    /// for masks, or if the stored one is not all there is to it.
    ///
    /// # Errors
    ///
    /// As [`StateEpoch::fill`].
    pub fn form(&self, position: Position) -> Result<Option<Form>, Error> {
        if self.is_canonical() || !self.keeps_masks() {
            return Ok(None);
        }
        let state = self.state(position);
        // Stored, a mask shares its words with others that are much like it; and what its key
        // forgets is known.
        self.with_mask(state, |_| ())?;
        if !self.unsure_tokens(state).is_empty() {
            return Ok(None);
        }
        let mask = self.with_mask(state, Mask::clone)?;
        Ok(Some(Form { mask, accepting: self.is_accepting(position)? }))
    }
}
