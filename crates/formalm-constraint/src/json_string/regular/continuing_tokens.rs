//! Tokens after which a text goes on: a short list, or words of bits that are shared.

use std::sync::Arc;

use crate::mask::{Mask, MaskWords, has, patch};

/// Tokens after which a text goes on.
#[derive(Clone, Debug)]
pub(super) enum Inside {
    Few(Arc<[u32]>),
    Many(Arc<MaskWords>),
}

impl Inside {
    pub(super) fn of(mask: Mask) -> Inside {
        match mask {
            Mask::Sparse(ids) => Inside::Few(ids.into()),
            Mask::Dense(words) => Inside::Many(words.into()),
            Mask::Patched { base, .. } => Inside::Many(base),
        }
    }

    pub(super) fn has(&self, token: u32) -> bool {
        match self {
            Inside::Few(ids) => ids.contains(&token),
            Inside::Many(words) => has(words, token),
        }
    }

    /// The tokens of both, words of bits for all of them being so many.
    pub(super) fn or(&self, other: &Inside, words: usize) -> Inside {
        let mut all = vec![0; words];
        for one in [self, other] {
            match one {
                Inside::Few(ids) => patch(&mut all, ids, &[]),
                Inside::Many(words) => {
                    all.iter_mut().zip(&**words).for_each(|(all, word)| *all |= word);
                }
            }
        }
        Inside::of(Mask::from_words(all))
    }

    /// The same but some of its tokens.
    pub(super) fn without(&self, tokens: &[u32]) -> Inside {
        match self {
            _ if tokens.is_empty() => self.clone(),
            Inside::Few(ids) => {
                Inside::Few(ids.iter().copied().filter(|id| !tokens.contains(id)).collect())
            }
            Inside::Many(words) => {
                let mut words = words.to_vec();
                patch(&mut words, &[], tokens);
                Inside::Many(words.into())
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * match self {
            Inside::Few(ids) => ids.len(),
            Inside::Many(words) => words.len(),
        }
    }
}
