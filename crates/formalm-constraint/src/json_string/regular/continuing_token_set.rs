//! The tokens that continue a string: a short list, or a shared bitmask.

use std::sync::Arc;

use crate::mask::{Mask, MaskWords, has, patch};

/// The tokens that continue a string.
#[derive(Clone, Debug)]
pub(super) enum ContinuingTokens {
    Few(Arc<[u32]>),
    Many(Arc<MaskWords>),
    /// A shared bitmask with tokens to add and to remove.
    Changed(Arc<MaskWords>, Arc<[u32]>, Arc<[u32]>),
}

impl ContinuingTokens {
    pub(super) fn of(mask: Mask) -> ContinuingTokens {
        match mask {
            Mask::Sparse(ids) => ContinuingTokens::Few(ids.into()),
            Mask::Dense(words) => ContinuingTokens::Many(words),
            Mask::Patched { base, add, remove } if add.is_empty() && remove.is_empty() => {
                ContinuingTokens::Many(base)
            }
            Mask::Patched { base, add, remove } => {
                ContinuingTokens::Changed(base, add.into(), remove.into())
            }
        }
    }

    pub(super) fn has(&self, token: u32) -> bool {
        match self {
            ContinuingTokens::Few(ids) => ids.contains(&token),
            ContinuingTokens::Many(words) => has(words, token),
            ContinuingTokens::Changed(base, add, remove) => {
                add.contains(&token) || has(base, token) && !remove.contains(&token)
            }
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
                ContinuingTokens::Changed(base, add, remove) => {
                    let (base, add) = (Arc::clone(base), Box::from(&add[..]));
                    Mask::Patched { base, add, remove: Box::from(&remove[..]) }.join(&mut all);
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
                ContinuingTokens::of(Mask::patched(words, Vec::new(), tokens.to_vec()))
            }
            ContinuingTokens::Changed(base, add, remove) => {
                let mut words = base.to_vec();
                patch(&mut words, add, remove);
                patch(&mut words, &[], tokens);
                ContinuingTokens::Many(words.into())
            }
        }
    }

    /// Returns the set with some tokens and without others, given the number of words of a bitmask.
    pub(super) fn changed(
        &self,
        more: Vec<u32>,
        without: &[u32],
        words: usize,
    ) -> ContinuingTokens {
        if more.is_empty() {
            return self.without(without);
        }
        if without.is_empty() {
            return ContinuingTokens::of(self.with(more, words));
        }
        ContinuingTokens::of(self.without(without).with(more, words))
    }

    /// Returns the mask of these and other tokens, given the number of words of a bitmask.
    pub(super) fn with(&self, tokens: Vec<u32>, words: usize) -> Mask {
        match self {
            ContinuingTokens::Few(few) => Mask::from_ids(&[&few[..], &tokens[..]].concat(), words),
            ContinuingTokens::Many(base) => Mask::patched(base, tokens, Vec::new()),
            ContinuingTokens::Changed(base, add, remove) => {
                let kept = remove.iter().copied().filter(|id| !tokens.contains(id));
                Mask::patched(base, [&add[..], &tokens[..]].concat(), kept.collect())
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * match self {
            ContinuingTokens::Few(ids) => ids.len(),
            ContinuingTokens::Many(words) => words.len(),
            // Nobody else may keep the bitmask.
            ContinuingTokens::Changed(base, add, remove) => base.len() + add.len() + remove.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_the_same_tokens() {
        let base: Arc<MaskWords> = vec![0b1111, u32::MAX, 0, 0].into();
        let changed = ContinuingTokens::of(Mask::patched(&base, vec![100, 70], vec![1, 33]));
        assert!(matches!(changed, ContinuingTokens::Changed(..)));
        let of = |tokens: &ContinuingTokens, more: Vec<u32>| {
            let mut words = vec![0; 4];
            tokens.with(more, 4).fill(&mut words);
            words
        };
        let many = ContinuingTokens::Many(of(&changed, Vec::new()).into());
        let few = ContinuingTokens::Few([1, 2, 101].into());
        for token in 0..128 {
            assert_eq!(changed.has(token), many.has(token), "{token}");
        }
        for more in [vec![], vec![1], vec![126, 33]] {
            assert_eq!(of(&changed, more.clone()), of(&many, more));
        }
        for without in [vec![], vec![100, 2, 1]] {
            let (one, other) = (changed.without(&without), many.without(&without));
            assert_eq!(of(&one, Vec::new()), of(&other, Vec::new()));
        }
        assert_eq!(of(&changed.or(&few, 4), vec![]), of(&few.or(&many, 4), vec![]));
    }
}
