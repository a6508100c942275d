//! The masks of positions with equal [signatures](super::part_signatures), computed once for all
//! constraints of an encoder.

use std::sync::Arc;

use formalm_core::{Error, ForkSafeMutex, LruCache, StateId};
use formalm_machines::MaskClasses;
use formalm_vocabulary::VocabularyExtension;
use formalm_vocabulary::bpe::{PretokenState, SplitterState};

use super::ProductContext;
use super::part_interiors::{Explored, ExploredPart, PartPlace, explore};
use crate::mask::Mask;

/// Maximum size of the table, in bytes; beyond it the least recently used masks are evicted. 12 MiB;
/// chosen, not measured.
const MAX_BYTES: usize = 12 << 20;

/// Maximum size of the tables of parts, in bytes; beyond it the least recently used are evicted.
/// 2 MiB; chosen, not measured.
const MAX_PLACE_BYTES: usize = 2 << 20;

/// What the masks of a position depend on: the signature of its language state, and the state of
/// the tokenizer.
pub(super) type PartKey = (u128, SplitterState, PretokenState);

/// The tokens that continue a pre-token, without checking adjacency, and those that begin one.
pub(super) type MaskPair = (Mask, Mask);

/// The table.
#[derive(Debug, Default)]
pub(super) struct PartMasks {
    known: ForkSafeMutex<LruCache<PartKey, Arc<MaskPair>, MAX_BYTES>>,
    /// The tables of parts that read their own last byte, by digests that machines name.
    places: ForkSafeMutex<LruCache<u128, Option<PartPlace>, MAX_PLACE_BYTES>>,
}

impl PartMasks {
    /// Returns the masks of a position, if they are known.
    pub(super) fn get(&self, key: &PartKey) -> Option<MaskPair> {
        let known = self.known.lock().get(key)?;
        Some((known.0.clone(), known.1.clone()))
    }

    /// Returns the table of the part that a state is inside of, and its class there.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub(super) fn place<K: MaskClasses>(
        &self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<Option<PartPlace>, Error> {
        let Some(part) = context.keys.part(state)? else { return Ok(None) };
        if let Some(known) = self.places.lock().get(&part.digest) {
            return Ok(known);
        }
        let ExploredPart { table, classes, is_delimited } = match explore(context, state)? {
            Explored::Part(part) => part,
            Explored::Nothing(digests) => {
                let places = &mut *self.places.lock();
                let bytes = size_of::<(u128, PartPlace)>();
                digests.into_iter().for_each(|digest| places.insert(digest, None, bytes));
                return Ok(None);
            }
        };
        let Some(&(_, class)) = classes.first() else { return Ok(None) };
        if is_delimited {
            let bytes = size_of::<(u128, PartPlace)>() + table.memory_bytes() / classes.len();
            let places = &mut *self.places.lock();
            for (digest, class) in classes {
                places.insert(digest, Some((Arc::clone(&table), class)), bytes);
            }
        }
        Ok(Some((table, class)))
    }

    /// Returns the number of positions whose masks are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.lock().values().count()
    }

    /// Keeps masks, and returns them in a form that costs little to copy.
    pub(super) fn insert(&self, key: PartKey, (inside, begins): MaskPair) -> MaskPair {
        let bytes =
            size_of::<(PartKey, MaskPair)>() + inside.memory_bytes() + begins.memory_bytes();
        let masks = (inside.with_shared_words(), begins.with_shared_words());
        self.known.lock().insert(key, Arc::new(masks.clone()), bytes);
        masks
    }
}

impl VocabularyExtension for PartMasks {
    fn memory_bytes(&self) -> usize {
        self.known.lock().size() + self.places.lock().size()
    }
}
