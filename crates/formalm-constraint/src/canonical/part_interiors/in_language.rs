//! Masks inside parts, in the language around them.

use formalm_core::Error;
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::PretokenState;

use crate::canonical::part_masks::{PartKey, PartMasks};
use crate::canonical::subsets::{MaskSource, SubsetElement};
use crate::canonical::{CanonicalMasks, CanonicalState, here};
use crate::mask::Mask;

impl<K: MaskClasses> CanonicalMasks<K> {
    /// Returns what the masks of an element depend on, if positions elsewhere may share them.
    pub(in crate::canonical) fn part_key(
        &self,
        keys: &K,
        element: SubsetElement,
    ) -> Result<Option<PartKey>, Error> {
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        let (state, splitter_state, pretoken) = here(positions, element);
        // Signatures tell what may follow a whole character.
        if !self.encoder.splitter().is_between_characters(splitter_state) {
            return Ok(None);
        }
        let signature = search.signature(context, state)?;
        Ok(signature.map(|signature| (signature, splitter_state, pretoken)))
    }

    /// Computes the masks of a source inside a part, if its position there is prepared.
    pub(in crate::canonical) fn compute_inside_part(
        &self,
        keys: &K,
        MaskSource { masked, base, .. }: MaskSource,
        shared: &PartMasks,
    ) -> Result<Option<(Mask, Mask)>, Error> {
        let is_plain = masked.pretoken == PretokenState::PLAIN;
        if !is_plain || base.is_some() || self.encoder.part_library().is_empty() {
            return Ok(None);
        }
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        let words = self.vocabulary.len().div_ceil(32);
        let (mut inside, mut begins) = (vec![0; words], vec![0; words]);
        let here = positions.parts(masked.product_state);
        let masks = (&mut inside[..], &mut begins[..]);
        let is_prepared = search.allowed_in_part(context, here, shared, masks)?;
        Ok(is_prepared.then(|| (Mask::from_words(inside), Mask::from_words(begins))))
    }

    /// Prepares the part that a string of the language leads into, for the states of the splitter
    /// after each of some texts, in the library of the encoder. Returns the number of new positions.
    pub(crate) fn prepare_part(
        &self,
        keys: &K,
        string: &[u8],
        texts: &[Vec<u8>],
    ) -> Result<usize, Error> {
        let context = self.context(keys);
        let CanonicalState { search, .. } = &mut *self.lock();
        search.limit(keys);
        search.prepare_part(context, string, texts)
    }
}
