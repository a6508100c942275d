//! Masks of tokens with at most n characters, for counted repetitions.

use formalm_core::memory_bytes;

use crate::MaskWords;

/// Largest number of characters with a bitmask of its own; longer tokens are listed. Chosen, not
/// measured.
const MAX_MASKED_LENGTH: usize = 16;

/// Bitmasks of the tokens with at most n characters.
#[derive(Debug)]
pub(crate) struct TokensByLength {
    /// One mask per count, from 0 to [`MAX_MASKED_LENGTH`].
    masks: Vec<Box<MaskWords>>,
    /// `(characters, token)` of longer tokens, longest first.
    longer: Vec<(u32, u32)>,
}

memory_bytes!(TokensByLength { masks, longer });

impl TokensByLength {
    /// Builds the masks from `(token, characters)`; each mask has `words` words.
    pub(crate) fn new(counts: &[(u32, u32)], words: usize) -> TokensByLength {
        let mut masks = vec![vec![0; words].into_boxed_slice(); MAX_MASKED_LENGTH + 1];
        let mut longer = Vec::new();
        for &(token, count) in counts {
            match masks.get_mut(count as usize) {
                Some(mask) => mask[token as usize >> 5] |= 1 << (token & 31),
                None => longer.push((count, token)),
            }
        }
        for at in 1..=MAX_MASKED_LENGTH {
            let (shorter, longer) = masks.split_at_mut(at);
            for (word, more) in longer[0].iter_mut().zip(&*shorter[at - 1]) {
                *word |= more;
            }
        }
        longer.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        TokensByLength { masks, longer }
    }

    /// Removes from `out` the tokens with more than `most` characters.
    pub(crate) fn limit(&self, most: u32, out: &mut MaskWords) {
        if let Some(mask) = self.mask(most as usize) {
            for (word, kept) in out.iter_mut().zip(mask) {
                *word &= kept;
            }
        } else {
            for &(_, token) in self.above(most) {
                if let Some(word) = out.get_mut(token as usize >> 5) {
                    *word &= !(1 << (token & 31));
                }
            }
        }
    }

    /// Returns the listed tokens with more than `most` characters.
    fn above(&self, most: u32) -> &[(u32, u32)] {
        &self.longer[..self.longer.partition_point(|&(count, _)| count > most)]
    }

    pub(crate) fn mask(&self, most: usize) -> Option<&MaskWords> {
        self.masks.get(most).map(|mask| &**mask)
    }

    pub(crate) fn longer(&self) -> &[(u32, u32)] {
        &self.longer
    }
}
