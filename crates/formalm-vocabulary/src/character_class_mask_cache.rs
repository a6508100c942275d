//! A cache of bitmasks "every token within this character class", shared by all languages of a
//! vocabulary.

use std::sync::Arc;

use formalm_core::{CharSet, ClassCover, ForkSafeMutex, LruCache, WIDE_PARTS};

use crate::occurring_characters::ProfileFilter;
use crate::token_byte_table::TokenBytes;
use crate::{ClassMasks, MaskWords};

/// Maximum number of cached classes. A bitmask takes one bit per token and about 10 µs to
/// rebuild. The number was chosen, not measured.
const MAX_CACHED_CLASSES: usize = 256;

/// Cache key: the ASCII part of a class, its cover of each part beyond ASCII, and the exact class
/// if a partial cover leaves that undecided.
type ClassKey = (u128, [ClassCover; WIDE_PARTS], Option<CharSet>);

/// A class, and a maximum number of characters.
type CacheKey = (ClassKey, Option<u32>);

/// The cache.
#[derive(Debug, Default)]
pub(crate) struct ClassMaskCache {
    kept: ForkSafeMutex<LruCache<CacheKey, Arc<MaskWords>, MAX_CACHED_CLASSES>>,
}

impl ClassMaskCache {
    /// Returns the mask of the whole-character tokens within a class. Tokens that end in a partial
    /// character are included if the class has every character beyond ASCII.
    /// Tokens of more than `most` characters are not.
    pub(crate) fn get(
        &self,
        tables: (&TokenBytes, &ClassMasks),
        (ascii, wide): (u128, [ClassCover; WIDE_PARTS]),
        class: &CharSet,
        most: Option<u32>,
    ) -> Arc<MaskWords> {
        let set = (ascii, wide, wide.contains(&ClassCover::Partial).then(|| class.clone()));
        let key = (set, most);
        if let Some(mask) = self.kept.lock().get(&key) {
            return mask;
        }
        let mask: Arc<MaskWords> = match most {
            None => compute_class_mask(tables, &key.0).into(),
            Some(most) => {
                let mut words = self.get(tables, (ascii, wide), class, None).to_vec();
                tables.1.limit_characters(most, &mut words);
                words.into()
            }
        };
        self.kept.lock().insert(key, Arc::clone(&mask), 1);
        mask
    }
}

fn compute_class_mask(
    (tokens, classes): (&TokenBytes, &ClassMasks),
    (ascii, wide, class): &ClassKey,
) -> Vec<u32> {
    let inside = ProfileFilter::new(*ascii, *wide);
    let mut out = vec![0; tokens.len().div_ceil(32)];
    let mut undecided = Vec::new();
    classes.fill_mask(&inside, &mut out, &mut undecided);
    let within = |token: u32| {
        let text = tokens.get(token).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let mut wide = text.unwrap_or_default().chars().filter(|character| !character.is_ascii());
        wide.all(|character| class.as_ref().is_some_and(|class| class.contains(character)))
    };
    let mut set = |token: u32| out[token as usize >> 5] |= 1 << (token & 31);
    undecided.into_iter().filter(|&token| within(token)).for_each(&mut set);
    if *wide == [ClassCover::Full; WIDE_PARTS] {
        for ragged in classes.partial_tokens() {
            if inside.cover(ragged.before.atoms, ragged.before.ascii) == ClassCover::Full {
                set(ragged.token);
            }
        }
    }
    out
}
