//! The fewest canonical tokens to a member where tokens leave pieces open: Unigram and WordPiece.
//!
//! What follows a token depends on the open pieces, not on the token itself. So the elements of the
//! search are positions with their open pieces, and each has one number: the fewest tokens. The
//! bounds on it are those of `fewest_tokens.rs`: tokens of any kind, and the tokens of a known
//! completion after these open pieces.

use formalm_core::{Error, deadline::check_deadline};
use formalm_machines::{MaskClasses, SPECIAL_BYTE};
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, TokenOrigin, TokenSet};
use rustc_hash::{FxHashMap, FxHashSet};

use super::fewest_tokens::{FewestQuery, token_list};
use super::subsets::SubsetElement;
use crate::mask::{MaskWords, has, patch};

/// Bounds on the fewest tokens from an element to a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBounds {
    /// More tokens than this are needed, or it is zero.
    too_few: u32,
    /// So many do.
    enough: u32,
}

impl Default for TokenBounds {
    fn default() -> TokenBounds {
        TokenBounds { too_few: 0, enough: u32::MAX }
    }
}

impl<K: MaskClasses> FewestQuery<'_, K> {
    /// Returns `true` if a completion of at most `budget` tokens follows an element.
    pub(super) fn fits_with_pieces(
        &mut self,
        element: SubsetElement,
        budget: u32,
    ) -> Result<bool, Error> {
        check_deadline()?;
        let element = self.common(element)?;
        if self.may_end(element)? {
            return Ok(true);
        }
        let bounds = self.fewest.bounds.get(&element).copied().unwrap_or_default();
        if budget >= bounds.enough {
            return Ok(true);
        }
        if budget <= bounds.too_few {
            return Ok(false);
        }
        let known = self.completion(element)?;
        if known.is_some_and(|completion| completion.count <= budget) {
            return Ok(true);
        }
        if !self.is_searched(element, budget)? {
            return Ok(false);
        }
        let given_up = self.fewest.given_up.len();
        self.depth += 1;
        let found = self.search_with_pieces(element, budget - 1);
        self.depth -= 1;
        let found = found?;
        let is_complete = given_up == self.fewest.given_up.len();
        let bounds = self.fewest.bounds.entry(element).or_default();
        if found {
            bounds.enough = bounds.enough.min(budget);
        } else if is_complete {
            // What a search gave up may be found by another one.
            bounds.too_few = bounds.too_few.max(budget);
        }
        Ok(found)
    }

    /// Returns `true` if a completion of at most `left` tokens follows some next token.
    fn search_with_pieces(&mut self, element: SubsetElement, left: u32) -> Result<bool, Error> {
        let context = self.context;
        let is_inside = context.encoder.is_inside_character(context.open_pieces, element.pretoken);
        if !is_inside {
            for (_, next) in self.product.after_special(context, element.product_state)? {
                if self.fits_with_pieces(SubsetElement::new(next), left)? {
                    return Ok(true);
                }
            }
        }
        for boundary in BOUNDARIES {
            if is_inside && boundary != Boundary::Inside {
                continue;
            }
            for (group, tokens) in self.groups(element, boundary)? {
                if !self.within_reach(group, left)?.1 {
                    continue;
                }
                let mut seen = FxHashSet::default();
                for token in token_list(&tokens) {
                    let Some(next) = self.after_token(element, (group, boundary), token) else {
                        continue;
                    };
                    if seen.insert(next) && self.fits_with_pieces(next, left)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// Returns the element after a token of a group; `None` if it is not canonical there.
    fn after_token(
        &self,
        element: SubsetElement,
        (group, boundary): (SubsetElement, Boundary),
        token: u32,
    ) -> Option<SubsetElement> {
        let encoder = self.context.encoder;
        let splitter_state = self.product.parts(group.product_state).1;
        let in_added = encoder.splitter().is_in_added_token(splitter_state);
        if !encoder.origin(token).fits(boundary, in_added) {
            return None;
        }
        let begins = boundary != Boundary::Inside;
        let pretoken = self.context.pretoken_step(element.pretoken, token, begins)?;
        Some(SubsetElement { pretoken, ..group })
    }

    /// Sets those of the tokens in `allowed` after which a completion of at most `left` tokens is
    /// found, and perhaps others that are not allowed.
    pub(crate) fn keep_with_pieces(
        &mut self,
        element: SubsetElement,
        left: u32,
        allowed: &MaskWords,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let context = self.context;
        let element = self.common(element)?;
        let is_inside = context.encoder.is_inside_character(context.open_pieces, element.pretoken);
        if !is_inside {
            for (token, next) in self.product.after_special(context, element.product_state)? {
                if self.fits_with_pieces(SubsetElement::new(next), left)? {
                    patch(words, &[token], &[]);
                }
            }
        }
        for boundary in BOUNDARIES {
            if is_inside && boundary != Boundary::Inside {
                continue;
            }
            for (group, tokens) in self.groups(element, boundary)? {
                if !self.within_reach(group, left)?.1 {
                    continue;
                }
                if self.ends_pretoken_within(group, left)? {
                    tokens.add_to(words);
                    continue;
                }
                self.keep_each(element, (group, boundary), left, allowed, &tokens, words)?;
            }
        }
        Ok(())
    }

    /// Sets those of the allowed tokens of a group after which a completion is found.
    fn keep_each(
        &mut self,
        element: SubsetElement,
        group: (SubsetElement, Boundary),
        left: u32,
        allowed: &MaskWords,
        tokens: &TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let (encoder, vocabulary) = (self.context.encoder, self.context.vocabulary);
        let next_byte = self.short_completion(group.0, left)?;
        let is_apart = |token: u32| {
            let last = vocabulary.token_bytes(token).and_then(<[u8]>::last);
            encoder.origin(token) == TokenOrigin::Merged
                && next_byte.zip(last).is_some_and(|(next, &last)| !encoder.may_adjoin(last, next))
        };
        // Many tokens leave the same pieces open.
        let mut known: FxHashMap<SubsetElement, bool> = FxHashMap::default();
        for token in token_list(tokens) {
            if !has(allowed, token) || has(words, token) {
                continue;
            }
            if is_apart(token) {
                patch(words, &[token], &[]);
                continue;
            }
            let Some(next) = self.after_token(element, group, token) else { continue };
            let fits = match known.get(&next) {
                Some(&fits) => fits,
                None => {
                    let fits = self.fits_with_pieces(next, left)?;
                    known.insert(next, fits);
                    fits
                }
            };
            if fits {
                patch(words, &[token], &[]);
            }
        }
        Ok(())
    }

    /// Returns the first byte of a completion that has tokens, and no more bytes than `left`, so that
    /// it has no more tokens wherever a piece ends before it.
    fn short_completion(&mut self, group: SubsetElement, left: u32) -> Result<Option<u8>, Error> {
        let (encoder, product_state) = (self.context.encoder, group.product_state);
        let splitter_state = self.product.parts(product_state).1;
        let splitter = encoder.splitter();
        if !encoder.encodes_all()
            || !splitter.is_between_characters(splitter_state)
            || splitter.is_in_added_token(splitter_state)
        {
            return Ok(None);
        }
        let text = self.string(product_state)?;
        let text = text.filter(|text| text.len() <= left as usize && !text.contains(&SPECIAL_BYTE));
        Ok(text.and_then(|text| text.first().copied()))
    }

    /// Returns `true` if a known completion of at most `left` tokens follows every token of a group,
    /// because a pre-token begins there or the text ends.
    fn ends_pretoken_within(&mut self, group: SubsetElement, left: u32) -> Result<bool, Error> {
        if self.may_end(group)? {
            return Ok(true);
        }
        let completion = self.completion(group)?;
        Ok(completion.is_some_and(|one| one.count <= left && one.begins_pretoken()))
    }
}
