//! Masks after pieces of a whole token: those that the position has otherwise, but for few tokens.
//!
//! Merging never makes the pieces of a whole token, so the tokens that would complete them are
//! forbidden. All others lead where they lead from the plain position.

use formalm_core::{Error, LazyDfa};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{Boundary, PretokenState, TokenSet};

use super::joint_targets::JointTarget;
use super::liveness::Liveness;
use super::lookahead_search::{LookaheadSearch, TextState};
use super::product::Product;
use super::subsets::{MaskSource, SubsetElement};
use super::{CanonicalMasks, CanonicalState, ProductContext, here, prompt};
use crate::mask::{Mask, MaskWords, patch};

impl<K: MaskClasses> CanonicalMasks<K> {
    /// Computes the masks of a source after pieces of a whole token from those that are the same
    /// but for these pieces. Returns `None` elsewhere.
    pub(super) fn compute_after_pieces(
        &self,
        keys: &K,
        MaskSource { masked, base, id }: MaskSource,
    ) -> Result<Option<(Mask, Mask)>, Error> {
        let pretoken = masked.pretoken;
        if pretoken == PretokenState::PLAIN || base.is_some() || !self.encoder.is_merging() {
            return Ok(None);
        }
        let plain = SubsetElement::new(masked.product_state);
        let (inside, begins) = self.compute(keys, MaskSource { masked: plain, base, id })?;
        let inside = match self.encoder.pretoken_must_end(pretoken) {
            true => Mask::Sparse(Box::default()),
            false => {
                let context = self.context(keys);
                let CanonicalState { positions, search } = &mut *self.lock();
                search.limit(keys);
                let mut words = vec![0; self.vocabulary.len().div_ceil(32)];
                inside.join(&mut words);
                search.correct_after_pieces(context, here(positions, masked), &mut words)?;
                Mask::from_words(words)
            }
        };
        let begins = match self.encoder.pretoken_may_end(pretoken) {
            true => begins,
            false => Mask::Sparse(Box::default()),
        };
        Ok(Some((inside, begins)))
    }
}

impl<K: MaskClasses> LookaheadSearch<K> {
    /// Corrects the tokens that continue a pre-token for a position after pieces of a whole token;
    /// see [`Liveness::correct_after_pieces`].
    fn correct_after_pieces(
        &mut self,
        context: ProductContext<'_, K>,
        (state, splitter_state, pretoken): TextState,
        inside: &mut MaskWords,
    ) -> Result<(), Error> {
        let (context, product, live, state) = self.enter(context, state)?;
        let product_state = product.intern(context, state, splitter_state)?;
        let element = SubsetElement { product_state, pretoken };
        live.correct_after_pieces(context, product, element, inside)
    }
}

impl Liveness {
    /// Corrects the tokens that continue a pre-token for an element after pieces of a whole token,
    /// given those of the plain element. Few tokens lead elsewhere.
    fn correct_after_pieces<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        inside: &mut MaskWords,
    ) -> Result<(), Error> {
        let (state, splitter_state) = product.parts(element.product_state);
        let from = (splitter_state, element.pretoken);
        for &token in context.encoder.tokens_after_pieces(element.pretoken) {
            patch(inside, &[], &[token]);
            let after = prompt::after_boundary(context, from, Boundary::Inside, token);
            let Some((splitter_state, pretoken)) = after else { continue };
            let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
            let Ok(state) = context.machine.walk(state, bytes)? else { continue };
            let target = JointTarget { state, splitter_state, pretoken };
            let tokens = TokenSet::List(vec![token]);
            self.add_live_target(context, product, target, &tokens, inside)?;
        }
        Ok(())
    }
}
