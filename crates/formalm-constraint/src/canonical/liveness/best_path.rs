//! Liveness for Unigram tokenizers, where the state of a pre-token holds open pieces.
//!
//! What is canonical so far stays so, whatever follows. An element is therefore live iff the
//! language can be completed by text for which the segmentation through its end stays the best. A
//! known completion of the language shows it nearly always: the text between the end and the next
//! boundary is segmented once ([`BpeEncoder::encode_rest`]). Where no token contains the last
//! character so far and the first one of a completion, all tokens of a group are settled at once.
//! A search over tokens decides the rest.
//!
//! [`BpeEncoder::encode_rest`]: formalm_vocabulary::bpe::BpeEncoder::encode_rest

use formalm_core::{Error, LazyDfa, ReadingHints, Resource, deadline::check_deadline};
use formalm_machines::{MaskClasses, SPECIAL_BYTE};
use formalm_vocabulary::bpe::{BOUNDARIES, Boundary, PretokenState, TokenOrigin, TokenSet};
use rustc_hash::FxHashSet;

use super::super::joint_targets::TokenChoice;
use super::super::product::{Product, ProductState};
use super::super::subsets::SubsetElement;
use super::super::{MAX_STEPS, ProductContext};
use super::{Liveness, MAX_POSITIONS};
use crate::mask::{MaskWords, has, patch};

/// Number of first bytes with which completions are tried. Chosen, not measured.
const FIRST_BYTES_TRIED: usize = 12;

/// Maximum length in bytes of the completion of a text that is tokenized as evidence. Chosen, not
/// measured.
const MAX_COMPLETION_BYTES: usize = 4096;

/// The state of the pre-token before a token, and the boundary before the token.
#[derive(Clone, Copy)]
struct TokenStart {
    pretoken: PretokenState,
    boundary: Boundary,
}

/// The tokens that open pieces forbid: all at once, and those that have to be asked one by one.
struct CrossedTokens {
    forbidden: Vec<u32>,
    near: Vec<u32>,
}

impl Liveness {
    /// Sets the tokens that may follow an element and can be completed; see [`Liveness::allowed`].
    pub(super) fn allowed_on_best_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        choice: TokenChoice,
        (inside, begins): (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        let mut crossed = CrossedTokens { forbidden: vec![0; inside.len()], near: Vec::new() };
        crossed.near = context.encoder.forbid_crossed(
            context.open_pieces,
            (element.pretoken, false),
            &mut crossed.forbidden,
        );
        for (token, _) in product.after_special(context, element.product_state)? {
            patch(begins, &[token], &[]);
        }
        for boundary in BOUNDARIES {
            if boundary == Boundary::Pretoken {
                crossed.forbidden.fill(0);
                crossed.near = context.encoder.forbid_crossed(
                    context.open_pieces,
                    (PretokenState::PLAIN, true),
                    &mut crossed.forbidden,
                );
            }
            let start = TokenStart { pretoken: element.pretoken, boundary };
            let words = if boundary == Boundary::Inside { &mut *inside } else { &mut *begins };
            for (next, tokens) in self.groups(context, product, (element, boundary), choice)? {
                let next = next.product_state;
                self.add_live_on_best_path(
                    context, product, start, next, &crossed, &tokens, words,
                )?;
            }
        }
        Ok(())
    }

    /// Sets the live tokens of a group with one target.
    #[expect(clippy::too_many_arguments, reason = "a step of the function above")]
    fn add_live_on_best_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        start: TokenStart,
        next: ProductState,
        crossed: &CrossedTokens,
        tokens: &TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let encoder = context.encoder;
        let is_clean = self.is_settled(context, product, next)?;
        // No token contains the last byte of these tokens before the next character.
        let next_byte = match is_clean {
            true => None,
            false => self.safe_byte(context, product, next)?,
        };
        let mut single = Vec::new();
        tokens.find(|token| {
            if has(&crossed.forbidden, token) {
                return None::<()>;
            }
            let is_piece = encoder.origin(token) == TokenOrigin::Merged
                && crossed.near.binary_search(&token).is_err();
            let last = || context.vocabulary.token_bytes(token).and_then(<[u8]>::last).copied();
            let is_apart = || {
                next_byte.zip(last()).is_some_and(|(next, last)| !encoder.may_adjoin(last, next))
            };
            if is_piece && (is_clean || is_apart()) {
                patch(words, &[token], &[]);
            } else {
                single.push(token);
            }
            None
        });
        for token in single {
            check_deadline()?;
            let begins = start.boundary != Boundary::Inside;
            let Some(pretoken) = context.pretoken_step(start.pretoken, token, begins) else {
                continue;
            };
            let element = SubsetElement { product_state: next, pretoken };
            if self.is_live_on_best_path(context, product, element)? {
                patch(words, &[token], &[]);
            }
        }
        Ok(())
    }

    /// Returns `true` if the text can be completed after a boundary at a product state. `false`
    /// proves nothing.
    fn is_settled<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<bool, Error> {
        // What follows the boundary has tokens only if all characters have.
        Ok(product.is_end(context, product_state)?
            || context.encoder.encodes_all() && product.is_clean(context, product_state)?)
    }

    /// Returns a byte with which a completion begins that has canonical tokens if no piece is open
    /// before it.
    fn safe_byte<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<Option<u8>, Error> {
        let splitter = context.encoder.splitter();
        if !splitter.is_between_characters(product.parts(product_state).1)
            || !product.is_productive(context, product_state)?
        {
            return Ok(None);
        }
        let fresh = context.encoder.fresh_state(context.open_pieces);
        witness(context, product, SubsetElement { product_state, pretoken: fresh }, None)
    }

    /// Returns `true` if the text can be completed after an element.
    pub(super) fn is_live_on_best_path<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<bool, Error> {
        if let Some(&known) = self.best_path_verdicts.get(&element) {
            return Ok(known);
        }
        let live = match self.without_token_search(context, product, element)? {
            Some(live) => live,
            None => return self.search_tokens(context, product, element),
        };
        self.best_path_verdicts.insert(element, live);
        Ok(live)
    }

    fn without_token_search<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<Option<bool>, Error> {
        let SubsetElement { product_state, pretoken } = element;
        let (encoder, open_pieces) = (context.encoder, context.open_pieces);
        if !encoder.is_inside_character(open_pieces, pretoken)
            && self.is_settled(context, product, product_state)?
        {
            return Ok(Some(true));
        }
        if !product.is_productive(context, product_state)? {
            return Ok(Some(false));
        }
        if encoder.splitter().is_in_added_token(product.parts(product_state).1) {
            return Ok(None);
        }
        for first in firsts(context, product, product_state)? {
            check_deadline()?;
            if witness(context, product, element, first)?.is_some() {
                return Ok(Some(true));
            }
        }
        Ok(None)
    }

    /// Searches for a completion token by token.
    fn search_tokens<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
    ) -> Result<bool, Error> {
        // Visited elements, each with the index of its predecessor.
        let mut visited = vec![(element, 0)];
        let mut seen = FxHashSet::from_iter([element]);
        let mut pending = vec![0];
        while let Some(at) = pending.pop() {
            check_deadline()?;
            let here = visited[at].0;
            for boundary in BOUNDARIES {
                let inside_character =
                    context.encoder.is_inside_character(context.open_pieces, here.pretoken);
                if inside_character && boundary != Boundary::Inside {
                    continue;
                }
                let groups = self.groups(context, product, (here, boundary), TokenChoice::All)?;
                for (next, tokens) in groups {
                    let mut steps = Vec::new();
                    tokens.find(|token| {
                        let begins = boundary != Boundary::Inside;
                        steps.extend(context.pretoken_step(here.pretoken, token, begins));
                        None::<()>
                    });
                    for pretoken in steps {
                        let next = SubsetElement { pretoken, ..next };
                        if !seen.insert(next) {
                            continue;
                        }
                        visited.push((next, at));
                        let known = match self.best_path_verdicts.get(&next) {
                            Some(&known) => Some(known),
                            None => self.without_token_search(context, product, next)?,
                        };
                        match known {
                            Some(true) => {
                                let mut at = visited.len() - 1;
                                while at != 0 {
                                    self.best_path_verdicts.insert(visited[at].0, true);
                                    at = visited[at].1;
                                }
                                self.best_path_verdicts.insert(element, true);
                                return Ok(true);
                            }
                            Some(false) => {}
                            None => pending.push(visited.len() - 1),
                        }
                    }
                }
            }
            if !context.machine.is_finite() && visited.len() > MAX_STEPS {
                self.undecided.insert((element, 0));
                self.best_path_verdicts.insert(element, true);
                return Ok(true);
            }
            if visited.len() > MAX_POSITIONS {
                return Err(Error::Limit {
                    resource: Resource::States,
                    needed: visited.len() as u64,
                    allowed: MAX_POSITIONS as u64,
                });
            }
        }
        self.best_path_verdicts.extend(visited.into_iter().map(|(element, _)| (element, false)));
        Ok(false)
    }
}

/// Returns the first bytes with which completions are tried; `None` for the shortest one.
fn firsts<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &Product,
    product_state: ProductState,
) -> Result<impl Iterator<Item = Option<u8>> + use<K>, Error> {
    let live = context.machine.live_bytes(product.parts(product_state).0)?;
    let few: Vec<u8> = live.iter().take(FIRST_BYTES_TRIED).collect();
    Ok([None].into_iter().chain(few.into_iter().map(Some)))
}

/// Returns a completion of the language, which begins with a given byte, if short.
fn completion<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    product_state: ProductState,
    first: Option<u8>,
) -> Result<Option<Vec<u8>>, Error> {
    let mut state = product.parts(product_state).0;
    let mut text = Vec::new();
    if let Some(first) = first {
        let Some(next) = context.machine.step(state, first)? else { return Ok(None) };
        text.push(first);
        state = next;
    }
    while let Some((byte, next)) = product.completion_hop(context, state)? {
        if byte == SPECIAL_BYTE || text.len() == MAX_COMPLETION_BYTES {
            return Ok(None);
        }
        text.push(byte);
        state = next;
    }
    Ok(Some(text))
}

/// Returns `true` if a text that begins at a boundary has canonical tokens.
fn is_encoded<K: MaskClasses>(context: ProductContext<'_, K>, text: Vec<u8>) -> bool {
    String::from_utf8(text).is_ok_and(|text| context.encoder.encode(&text).is_some())
}

/// Returns the first byte of a completion that has canonical tokens after an element; `None` proves
/// nothing.
fn witness<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    element: SubsetElement,
    first: Option<u8>,
) -> Result<Option<u8>, Error> {
    let SubsetElement { product_state, pretoken } = element;
    let Some(rest) = product.rest_of_pretoken(context, product_state, first)? else {
        return Ok(None);
    };
    let continues = match rest.is_empty() {
        true => {
            context.encoder.pretoken_may_end(pretoken)
                && !context.encoder.is_inside_character(context.open_pieces, pretoken)
        }
        false => {
            let tokens = &mut Vec::new();
            context.encoder.encode_rest(context.open_pieces, pretoken, &rest, tokens)
        }
    };
    if !continues {
        return Ok(None);
    }
    // The end of the rest is a boundary, from which the language can be completed.
    if context.encoder.encodes_all() {
        return Ok(rest.first().copied());
    }
    let Some(text) = completion(context, product, product_state, first)? else {
        return Ok(None);
    };
    let is_witness = text.starts_with(&rest) && is_encoded(context, text[rest.len()..].to_vec());
    Ok(text.first().copied().filter(|_| is_witness))
}
