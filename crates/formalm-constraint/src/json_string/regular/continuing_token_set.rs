//! The tokens that continue a string: a short list, or a shared bitmask.

use std::sync::Arc;

use crate::mask::{Mask, MaskWords, has, patch};

/// The tokens that continue a string.
#[derive(Clone, Debug)]
pub(super) enum ContinuingTokens {
    Few(Arc<[u32]>),
    Many(Arc<MaskWords>),
}

impl ContinuingTokens {
    pub(super) fn of(mask: Mask) -> ContinuingTokens {
        match mask {
            Mask::Sparse(ids) => ContinuingTokens::Few(ids.into()),
            Mask::Dense(words) => ContinuingTokens::Many(words),
            Mask::Patched { base, .. } => ContinuingTokens::Many(base),
        }
    }

    pub(super) fn has(&self, token: u32) -> bool {
        match self {
            ContinuingTokens::Few(ids) => ids.contains(&token),
            ContinuingTokens::Many(words) => has(words, token),
        }
    }

    /// Returns the union of two sets, given the number of words of a bitmask.
    pub(super) fn or(&self, other: &ContinuingTokens, words: usize) -> ContinuingTokens {
        let mut all = vec![0; words];
        for one in [self, other] {
            match one {
                ContinuingTokens::Few(ids) => patch(&mut all, ids, &[]),
                ContinuingTokens::Many(words) => {
                    all.iter_mut().zip(&**words).for_each(|(all, word)| *all |= word);
                }
            }
        }
        ContinuingTokens::of(Mask::from_words(all))
    }

    /// Returns the set without some tokens.
    pub(super) fn without(&self, tokens: &[u32]) -> ContinuingTokens {
        match self {
            _ if tokens.is_empty() => self.clone(),
            ContinuingTokens::Few(ids) => ContinuingTokens::Few(
                ids.iter().copied().filter(|id| !tokens.contains(id)).collect(),
            ),
            ContinuingTokens::Many(words) => {
                let mut words = words.to_vec();
                patch(&mut words, &[], tokens);
                ContinuingTokens::Many(words.into())
            }
        }
    }

    /// Returns the mask of these and other tokens, given the number of words of a bitmask.
    pub(super) fn with(&self, tokens: Vec<u32>, words: usize) -> Mask {
        match self {
            ContinuingTokens::Few(few) => Mask::from_ids(&[&few[..], &tokens[..]].concat(), words),
            ContinuingTokens::Many(base) => Mask::patched(base, tokens, Vec::new()),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * match self {
            ContinuingTokens::Few(ids) => ids.len(),
            ContinuingTokens::Many(words) => words.len(),
        }
    }
}
