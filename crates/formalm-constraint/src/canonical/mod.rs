//! Masks for canonical tokenization: token sequences that extend to the tokenizer's own encoding of
//! a string in the language.
//!
//! ```text
//!  language state  ×  splitter state  ×  last token
//!  (machine)          (pre-tokenizer)    (adjacency)
//!        └── product (product/), subsets (subsets) ──┘──► liveness ──► mask
//! ```
//!
//! A token is allowed iff four conditions hold. The language accepts its bytes; the splitter admits
//! the boundaries; it may be adjacent to the last token, unless it begins a pre-token; and from
//! there a string can be completed in the same way (`liveness`). Lookahead runs on a machine of its
//! own (`lookahead_search`).
//!
//! For machines with finitely many states nothing is approximated: a query that cannot be decided
//! within limits is an error. A stack can make searches infinite. These are bounded; whatever they
//! leave open counts as possible, and is counted.

mod after_pieces;
mod excluded_members;
mod fewest_tokens;
mod fewest_with_open_pieces;
mod joint_targets;
mod language_targets;
mod liveness;
mod lookahead_search;
mod part_interiors;
mod part_masks;
mod part_signatures;
#[cfg(test)]
mod part_tests;
mod product;
mod prompt;
mod reached_product_states;
mod special_tokens;
mod subsets;
#[cfg(test)]
mod tests;
mod token_distances;
mod tokens_by_target;

use std::sync::{Arc, MutexGuard};

use formalm_core::{
    AppendVec, CompletionHints, Error, ForkSafeMutex, LazyDfa, MemoryBytes, ReadingHints, StateId,
    memory_bytes,
};
use formalm_machines::MaskClasses;
use formalm_vocabulary::{
    Vocabulary,
    bpe::{BpeEncoder, LostText, PretokenState, SplitterState},
    normalization::FilterState,
    unigram::OpenPiecesTable,
};
use rustc_hash::FxHashMap;

use crate::epoch::NoContinuation;
use crate::mask::{Mask, MaskWords, has, patch};
use crate::mask_cache::MaskCache;
pub use excluded_members::ExcludedMembers;
use joint_targets::TokenChoice;
use lookahead_search::{LookaheadSearch, TextState};
use part_masks::PartMasks;
use reached_product_states::TextPositions;
use subsets::{MaskSource, NumberedElement, SubsetElement, Subsets};

/// The place at which the texts of a language begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextBegin {
    /// Each continues some text, and some string has canonical tokens of its own.
    #[default]
    Anywhere,
    /// After tokens that are given. No string needs canonical tokens of its own.
    AfterTokens,
    /// At the beginning of a text, with the space that the tokenizer inserts there.
    WithInsertedSpace,
}

/// No token has been read.
pub(crate) const NONE: u32 = u32::MAX;

/// Up to this many tokens are tested one by one. Chosen, not measured.
const FEW_TOKENS: usize = 32;

/// Number of forbidden neighbors above which their bitmask is used. Chosen, not measured.
const MANY_NEIGHBORS: usize = 2048;

/// Maximum steps of one search on a machine with a stack, where a search need not terminate.
/// Chosen, not measured.
const MAX_STEPS: usize = 1_000;

/// The mutable state.
#[derive(Debug)]
struct CanonicalState<K> {
    /// Positions of inputs.
    positions: TextPositions,
    /// Tables of the lookahead beyond inputs.
    search: LookaheadSearch<K>,
}

/// The canonical tokenizations of a language.
#[derive(Debug)]
pub(crate) struct CanonicalMasks<K> {
    encoder: Arc<BpeEncoder>,
    /// The vocabulary in which special tokens have no bytes.
    vocabulary: Arc<Vocabulary>,
    /// Special tokens that may occur between texts, with their bytes.
    special: Vec<(u32, Vec<u8>)>,
    open_pieces: OpenPiecesTable,
    begin: TextBegin,
    grown: ForkSafeMutex<CanonicalState<K>>,
    /// In a lock of its own, so that known masks are read while others are computed.
    subsets: ForkSafeMutex<Subsets>,
    /// Per subset, 1 if the text may end there.
    accepting: AppendVec,
    masks: MaskCache,
}

/// The inputs of the searches below.
#[derive(Debug)]
pub(crate) struct ProductContext<'a, K: MaskClasses> {
    pub(crate) keys: &'a K,
    pub(crate) machine: &'a K::Machine,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) encoder: &'a BpeEncoder,
    pub(crate) special: &'a [(u32, Vec<u8>)],
    /// The states of pre-tokens with open pieces.
    pub(crate) open_pieces: &'a OpenPiecesTable,
    pub(crate) begin: TextBegin,
}

impl<K: MaskClasses> Clone for ProductContext<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: MaskClasses> Copy for ProductContext<'_, K> {}

impl<K: MaskClasses> ProductContext<'_, K> {
    /// Returns the splitter state before any text.
    pub(crate) fn splitter_start(&self) -> SplitterState {
        match self.begin {
            TextBegin::Anywhere | TextBegin::AfterTokens => self.encoder.splitter().start(),
            TextBegin::WithInsertedSpace => self.encoder.splitter().text_start(),
        }
    }

    /// Returns `true` if every text may follow a splitter state, and so whatever a language state
    /// goes on with. `false` proves nothing.
    pub(crate) fn goes_on_after(&self, splitter_state: SplitterState) -> bool {
        self.reads_free_text() && self.is_open(splitter_state)
    }

    /// Returns `true` if whatever the language goes on with is text that no normalizer changes.
    pub(crate) fn reads_free_text(&self) -> bool {
        self.reads_exact_text() && self.encoder.splitter().text_filter().is_none()
    }

    /// Returns `true` if members are texts, and what masks know of states is exact.
    pub(crate) fn reads_exact_text(&self) -> bool {
        self.machine.reads_text() && self.machine.is_exact()
    }

    /// Returns `true` if a state accepts just when the one after a string does.
    pub(crate) fn ends_alike(&self, state: StateId, read: &[u8]) -> Result<bool, Error> {
        let Ok(next) = self.machine.walk(state, read)? else { return Ok(false) };
        Ok(self.machine.is_accepting(state)? == self.machine.is_accepting(next)?)
    }

    /// Returns `true` if every text may follow a splitter state, as far as boundaries are
    /// concerned.
    pub(crate) fn is_open(&self, splitter_state: SplitterState) -> bool {
        let encoder = self.encoder;
        encoder.unsettled_boundaries().is_open(encoder.splitter(), splitter_state.boundaries)
    }

    /// Returns the state of a pre-token after one more token, which `begins` it or not. Returns
    /// `None` if the token may not stand there.
    #[inline]
    pub(crate) fn pretoken_step(
        &self,
        from: PretokenState,
        token: u32,
        begins: bool,
    ) -> Option<PretokenState> {
        self.encoder.pretoken_step(self.open_pieces, from, token, begins)
    }

    /// Returns the same, or leaves the state open if it differs by token.
    #[inline]
    pub(crate) fn pretoken_of_group(
        &self,
        from: PretokenState,
        token: u32,
        begins: bool,
    ) -> Option<PretokenState> {
        match self.encoder.has_open_pieces() {
            true => Some(PretokenState::PLAIN),
            false => self.pretoken_step(from, token, begins),
        }
    }
}

/// The language states that go on with a character whose normalization may depend on the text
/// before it, such as a combining mark.
#[derive(Debug, Default)]
struct DependentStates {
    known: FxHashMap<u32, bool>,
}

memory_bytes!(DependentStates { known });

impl DependentStates {
    /// Returns the splitter state that has the same future together with a language state. What the
    /// normalizer's filter has read matters in dependent states only.
    #[inline]
    fn settle<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
        splitter_state: SplitterState,
    ) -> Result<SplitterState, Error> {
        if !adds_to_weakest(splitter_state) || self.contains(context, state)? {
            return Ok(splitter_state);
        }
        Ok(splitter_state.weakest())
    }

    fn contains<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<bool, Error> {
        let Some(filter) = context.encoder.splitter().text_filter() else { return Ok(false) };
        if let Some(&known) = self.known.get(&state.number()) {
            return Ok(known);
        }
        let live = context.machine.live_bytes(state)?;
        let is_dependent = live.iter().any(|byte| filter.is_dependent(byte));
        self.known.insert(state.number(), is_dependent);
        Ok(is_dependent)
    }
}

impl<K: MaskClasses> CanonicalMasks<K> {
    /// Creates the product.
    ///
    /// # Errors
    ///
    /// Texts begin anywhere, and no string in the language has canonical tokens; [`Error::Limit`].
    pub(crate) fn new(
        keys: &K,
        (vocabulary, encoder): (&Arc<Vocabulary>, Arc<BpeEncoder>),
        memory_limit_bytes: usize,
        begin: TextBegin,
    ) -> Result<CanonicalMasks<K>, Error> {
        let plain = vocabulary.without_special_bytes();
        let special = match vocabulary.has_special_bytes() {
            false => Vec::new(),
            true => (0..vocabulary.len() as u32)
                .filter(|&token| plain.token_bytes(token).is_none())
                .filter_map(|token| Some((token, vocabulary.token_bytes(token)?.to_vec())))
                .collect(),
        };
        let canonical = CanonicalMasks {
            encoder,
            vocabulary: Arc::new(plain.clone()),
            special,
            open_pieces: OpenPiecesTable::default(),
            begin,
            grown: ForkSafeMutex::new(CanonicalState {
                positions: TextPositions::default(),
                search: LookaheadSearch::new(keys),
            }),
            subsets: ForkSafeMutex::new(Subsets::default()),
            accepting: AppendVec::default(),
            masks: MaskCache::new(memory_limit_bytes),
        };
        canonical.intern_start(keys)?;
        Ok(canonical)
    }

    /// Interns the start state.
    fn intern_start(&self, keys: &K) -> Result<(), Error> {
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        let start = (context.machine.start(), context.splitter_start());
        let has_member = |search: &mut LookaheadSearch<K>| {
            Ok::<_, Error>(
                search.is_productive(context, start)?
                    && (self.encoder.is_merging()
                        || search.is_live(
                            context,
                            (start.0, start.1, PretokenState::PLAIN),
                            NONE,
                        )?),
            )
        };
        if self.begin == TextBegin::Anywhere && !has_member(search)? {
            return Err(no_canonical_member(context)?);
        }
        let start = positions.intern(context, start.0, start.1)?;
        self.set(context, positions, vec![SubsetElement::new(start)])?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, CanonicalState<K>> {
        // A panic while the lock was held leaves at worst some results unrecorded.
        self.grown.lock()
    }

    fn context<'a>(&'a self, keys: &'a K) -> ProductContext<'a, K> {
        let (vocabulary, encoder) = (&*self.vocabulary, &*self.encoder);
        ProductContext {
            keys,
            machine: keys.machine(),
            vocabulary,
            encoder,
            special: &self.special,
            open_pieces: &self.open_pieces,
            begin: self.begin,
        }
    }

    /// Returns the state before any input.
    pub(crate) fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    /// Returns the state before any input if the text continues the given tokens, none of them
    /// special, together with the last of them.
    ///
    /// # Errors
    ///
    /// [`NoContinuation`].
    pub(crate) fn start_after(
        &self,
        keys: &K,
        tokens: &[u32],
    ) -> Result<(StateId, u32), NoContinuation> {
        let context = self.context(keys);
        let splitter_states = prompt::splitter_states(context, tokens)
            .map_err(|good| NoContinuation::Prompt { good })?;
        let last = tokens.last().copied().unwrap_or(NONE);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        let start = context.machine.start();
        let mut elements = Vec::new();
        for (splitter_state, pretoken) in splitter_states {
            if search.is_live(context, (start, splitter_state, pretoken), last)? {
                elements.push(SubsetElement {
                    product_state: positions.intern(context, start, splitter_state)?,
                    pretoken,
                });
            }
        }
        if elements.is_empty() {
            return Err(NoContinuation::Language);
        }
        elements.sort_unstable();
        elements.dedup();
        Ok((self.set(context, positions, elements)?, last))
    }

    /// Interns a subset of elements, all with the same language state.
    fn set(
        &self,
        context: ProductContext<'_, K>,
        positions: &mut TextPositions,
        elements: Vec<SubsetElement>,
    ) -> Result<StateId, Error> {
        let machine = context.machine;
        let mut accepting = false;
        for element in &elements {
            let (state, splitter_state) = positions.parts(element.product_state);
            let may_end = self.encoder.splitter().may_end(splitter_state)
                && self.encoder.pretoken_may_end(element.pretoken);
            accepting = accepting || (may_end && machine.is_accepting(state)?);
        }
        let masked = elements.iter().map(|&SubsetElement { product_state, pretoken }| {
            let product_state = positions.common(context, product_state)?;
            let (state, splitter_state) = positions.parts(product_state);
            let mut base = None;
            if adds_to_weakest(splitter_state) {
                let weakest = splitter_state.weakest();
                let product_state = positions.intern(context, state, weakest)?;
                base = Some(SubsetElement { product_state, pretoken });
            }
            Ok((SubsetElement { product_state, pretoken }, base))
        });
        let masked: Vec<(SubsetElement, Option<SubsetElement>)> =
            masked.collect::<Result<_, Error>>()?;
        let mut subsets = self.subsets.lock();
        let set = subsets.intern(elements, masked);
        self.accepting.set(set as usize, u32::from(accepting));
        Ok(StateId::from_number(set))
    }

    /// Returns `true` if the text may end with the tokens read.
    #[inline]
    pub(crate) fn is_accepting(&self, state: StateId) -> bool {
        self.accepting.get(state.number() as usize) != 0
    }

    /// Returns the language state.
    pub(crate) fn machine_state(&self, state: StateId) -> StateId {
        let first = self.elements(state)[0].element;
        self.lock().positions.parts(first.product_state).0
    }

    /// Returns the state after a token, given the last one. Returns `None` if the token is not
    /// allowed.
    pub(crate) fn step(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        token: u32,
    ) -> Result<Option<StateId>, Error> {
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        let mut elements = Vec::new();
        for &NumberedElement { element, .. } in &*self.elements(state) {
            let here @ (state, ..) = here(positions, element);
            let found_targets = search.after(context, here, (last, token))?;
            let plain = context.vocabulary.token_bytes(token);
            let special = context.special.iter().find(|one| one.0 == token);
            let Some(bytes) = plain.or(special.map(|one| &one.1[..])) else { continue };
            if found_targets.is_empty() {
                continue;
            }
            let Ok(state) = context.machine.walk(state, bytes)? else { continue };
            for (splitter_state, pretoken) in found_targets {
                let next = SubsetElement {
                    product_state: positions.intern(context, state, splitter_state)?,
                    pretoken,
                };
                if !elements.contains(&next) {
                    elements.push(next);
                }
            }
        }
        elements.sort_unstable();
        if elements.is_empty() {
            return Ok(None);
        }
        self.set(context, positions, elements).map(Some)
    }

    /// Returns `true` if [`CanonicalMasks::step`] allows the token.
    pub(crate) fn allows(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        token: u32,
    ) -> Result<bool, Error> {
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        for &NumberedElement { element, .. } in &*self.elements(state) {
            let here = here(positions, element);
            if !search.after(context, here, (last, token))?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a completion of at most `limit` tokens is found.
    pub(crate) fn completes_within(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        limit: u32,
    ) -> Result<bool, Error> {
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        for &NumberedElement { element, .. } in &*self.elements(state) {
            if search.completes_within(context, here(positions, element), last, limit)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the fewest tokens of a completion that are found, at most `limit`. For a machine
    /// with a stack, a search may give up, so that fewer may do.
    pub(crate) fn fewest_tokens(
        &self,
        keys: &K,
        position: (StateId, u32),
        limit: u32,
    ) -> Result<Option<u32>, Error> {
        let known = {
            let context = self.context(keys);
            let CanonicalState { positions, search } = &mut *self.lock();
            search.limit(keys);
            let mut known: Option<u32> = None;
            for &NumberedElement { element, .. } in &*self.elements(position.0) {
                let count = search.known_count(context, here(positions, element), position.1)?;
                known = known.into_iter().chain(count).min();
            }
            known
        };
        if !keys.machine().is_finite() {
            let Some(mut found) = known else { return Ok(None) };
            while found > 0 && self.completes_within(keys, position, found - 1)? {
                found -= 1;
            }
            return Ok(Some(found).filter(|&found| found <= limit));
        }
        let limit = known.map_or(limit, |known| known.min(limit));
        for count in 0..=limit {
            if self.completes_within(keys, position, count)? {
                return Ok(Some(count));
            }
        }
        Ok(None)
    }

    /// Clears the tokens after which no completion of at most `left` tokens is found. End tokens
    /// are left alone; `ends` lists them.
    pub(crate) fn restrict(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        left: u32,
        ends: &[u32],
        out: &mut MaskWords,
    ) -> Result<(), Error> {
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        let mut kept = vec![0; out.len()];
        let elements = self.elements(state);
        for &NumberedElement { element, .. } in &*elements {
            search.keep(context, here(positions, element), (last, left), out, &mut kept)?;
        }
        let mut is_empty = true;
        for (kept, word) in kept.iter_mut().zip(&*out) {
            *kept &= word;
            is_empty &= *kept == 0;
        }
        if is_empty {
            // A completion that is known from here need not be known after its first token.
            for &NumberedElement { element, .. } in &*elements {
                let here = here(positions, element);
                let first = search.first_of_known(context, here, last, left + 1)?;
                patch(&mut kept, first.filter(|&first| has(out, first)).as_slice(), &[]);
            }
        }
        let ends: Vec<u32> = ends.iter().copied().filter(|&end| has(out, end)).collect();
        out.copy_from_slice(&kept);
        patch(out, &ends, &[]);
        Ok(())
    }

    /// Returns the members that have no canonical tokens.
    pub(crate) fn excluded_members(&self, keys: &K) -> Result<ExcludedMembers, Error> {
        let context = self.context(keys);
        let CanonicalState { search, .. } = &mut *self.lock();
        search.limit(keys);
        search.excluded_members(context)
    }

    /// Returns the number of searches for the fewest tokens that gave up.
    pub(crate) fn given_up_count(&self) -> usize {
        if self.grown.is_abandoned() {
            return 0;
        }
        self.lock().search.given_up_count()
    }

    /// Returns the elements of a subset.
    fn elements(&self, state: StateId) -> Arc<[NumberedElement]> {
        self.subsets.lock().elements(state.number())
    }

    /// Returns `true` if the masks of a state are cached.
    pub(crate) fn is_ready(&self, state: StateId) -> bool {
        let has = |id: u32| self.masks.has(2 * id) && self.masks.has(2 * id + 1);
        self.elements(state).iter().flat_map(NumberedElement::mask_sources).all(|one| has(one.id))
    }

    /// Overwrites `out` with the mask, without end tokens.
    pub(crate) fn fill(
        &self,
        keys: &K,
        (state, last): (StateId, u32),
        out: &mut MaskWords,
    ) -> Result<(), Error> {
        let elements = self.elements(state);
        out.fill(0);
        let mut many = false;
        for source in elements.iter().flat_map(NumberedElement::mask_sources) {
            self.with_mask(keys, source, false, |mask| match mask {
                Mask::Sparse(ids) if ids.len() <= FEW_TOKENS => {
                    let fits = |id: u32| last == NONE || self.encoder.may_follow(last, id);
                    for &id in ids.iter().filter(|&&id| fits(id)) {
                        patch(out, &[id], &[]);
                    }
                }
                mask => {
                    many = true;
                    mask.join(out);
                }
            })?;
        }
        if many && last != NONE {
            self.clear_after(last, out);
        }
        for source in elements.iter().flat_map(NumberedElement::mask_sources) {
            self.with_mask(keys, source, true, |mask| mask.join(out))?;
        }
        // A few tokens depend on details that mask classes abstract away.
        if keys.drops_seen_items() {
            let inner = self.machine_state(state);
            // The masks may be cached although the mask class was never computed.
            keys.mask_class(inner)?;
            let undecided = match keys.is_approximate(inner) {
                true => self.vocabulary.item_joining_tokens(),
                false => self.vocabulary.whole_item_tokens(),
            };
            for &token in undecided {
                match self.allows(keys, (state, last), token)? {
                    true => patch(out, &[token], &[]),
                    false => patch(out, &[], &[token]),
                }
            }
        }
        Ok(())
    }

    /// Passes one of the two masks of a source to `use_mask`: the tokens that begin a pre-token,
    /// or those that continue one, without checking adjacency.
    fn with_mask(
        &self,
        keys: &K,
        source: MaskSource,
        begins: bool,
        use_mask: impl FnOnce(&Mask),
    ) -> Result<(), Error> {
        let id = source.id;
        let key = 2 * id + u32::from(begins);
        let mut use_mask = Some(use_mask);
        if self.masks.with(key, |mask| use_mask.take().map(|f| f(mask))).is_some() {
            return Ok(());
        }
        let masks = self.compute(keys, source)?;
        // `use_mask` is still there: it is taken only on a hit.
        if let Some(f) = use_mask.take() {
            f(if begins { &masks.1 } else { &masks.0 });
        }
        self.masks.insert(2 * id, masks.0);
        self.masks.insert(2 * id + 1, masks.1);
        Ok(())
    }

    /// Clears the tokens that may not follow `last` inside a pre-token.
    fn clear_after(&self, last: u32, out: &mut MaskWords) {
        let mut count = 0;
        self.encoder.forbidden(last, true, |tokens| count += tokens.len());
        if count <= MANY_NEIGHBORS {
            self.encoder.forbidden(last, true, |tokens| patch(out, &[], tokens));
            return;
        }
        let row = self.encoder.forbidden_mask(&self.vocabulary, last, true);
        for (word, forbidden) in out.iter_mut().zip(&*row) {
            *word &= !forbidden;
        }
    }

    /// Computes the tokens that continue a pre-token, without checking adjacency, and those that
    /// begin one.
    fn compute(&self, keys: &K, source: MaskSource) -> Result<(Mask, Mask), Error> {
        let shared = self.encoder.extension::<PartMasks>();
        let key = self.part_key(keys, source.masked)?;
        if let Some((shared, key)) = shared.zip(key.as_ref())
            && let Some(masks) = shared.get(key)
        {
            return Ok(masks);
        }
        let mut masks = self.compute_after_pieces(keys, source)?;
        if masks.is_none()
            && let Some(shared) = shared
        {
            masks = self.compute_inside_part(keys, source, shared)?;
        }
        let masks = match masks {
            Some(masks) => masks,
            None => self.compute_here(keys, source)?,
        };
        // What a bounded search leaves open in one context may be decided in another. An answer that
        // was left open before is not counted again, so there must be none.
        match shared.zip(key) {
            Some((shared, key)) if self.undecided_count() == 0 => Ok(shared.insert(key, masks)),
            _ => Ok(masks),
        }
    }

    /// Computes the masks of a source in its own context.
    fn compute_here(&self, keys: &K, source: MaskSource) -> Result<(Mask, Mask), Error> {
        let mut known = None;
        if let Some((masked, id)) = source.base {
            let base = MaskSource { masked, id, base: None };
            let words = self.vocabulary.len().div_ceil(32);
            let mut masks = [vec![0; words], vec![0; words]];
            for (begins, words) in [false, true].into_iter().zip(&mut masks) {
                self.with_mask(keys, base, begins, |mask| mask.join(words))?;
            }
            known = Some(masks);
        }
        let choice = known.as_ref().map_or(TokenChoice::All, TokenChoice::Besides);
        let context = self.context(keys);
        let CanonicalState { positions, search } = &mut *self.lock();
        search.limit(keys);
        let words = self.vocabulary.len().div_ceil(32);
        let (mut inside, mut begins) = (vec![0; words], vec![0; words]);
        let here = here(positions, source.masked);
        search.allowed(context, here, choice, (&mut inside, &mut begins))?;
        Ok((Mask::from_words(inside), Mask::from_words(begins)))
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let grown = self.lock();
        grown.positions.memory_bytes()
            + grown.search.memory_bytes()
            + self.open_pieces.memory_bytes()
            + self.subsets.lock().memory_bytes()
    }

    /// Returns the memory of masks, in bytes.
    pub(crate) fn mask_bytes(&self) -> usize {
        self.masks.size().1
    }

    /// Returns the number of queries that a bounded search left undecided.
    pub(crate) fn undecided_count(&self) -> usize {
        if self.grown.is_abandoned() {
            return 0;
        }
        self.lock().search.undecided_count()
    }

    /// Returns `true` if a thread was modifying the state while the process was forked, see
    /// [`formalm_machines::ClassRenewal::is_abandoned`].
    pub(crate) fn is_abandoned(&self) -> bool {
        self.grown.is_abandoned() || self.subsets.is_abandoned() || self.open_pieces.is_abandoned()
    }

    /// Returns the number of cached masks.
    pub(crate) fn mask_count(&self) -> usize {
        self.masks.size().0 / 2
    }
}

/// Returns the error for a language of which no member has canonical tokens.
fn no_canonical_member<K: MaskClasses>(context: ProductContext<'_, K>) -> Result<Error, Error> {
    let member = context.machine.any_completion(context.machine.start())?;
    let why = std::str::from_utf8(&member).ok().and_then(|text| {
        let lost = LostText::of(context.encoder, text)?;
        let character = lost.at.and_then(|at| text.get(at..)?.chars().next());
        let because = character.map(|c| format!(" because of U+{:04X}", u32::from(c)));
        let text = text.escape_default();
        let reason = lost.reason;
        Some(format!("; {reason}, for example \"{text}\"{}", because.unwrap_or_default()))
    });
    let hint = match why {
        Some(_) => "write the language in texts that encoding and decoding give back",
        None => "members must be valid UTF-8 and must be strings that decoding can produce",
    };
    let why = why.unwrap_or_default();
    Ok(Error::Language {
        message: format!("no member of the language has a canonical tokenization{why}"),
        span: None,
        hint: Some(hint.to_owned()),
    })
}

/// Returns `true` if the masks of a splitter state are those of its weakest state and few more
/// tokens, those that depend on the text read. So most masks are shared by all of these states.
fn adds_to_weakest(splitter_state: SplitterState) -> bool {
    splitter_state.filter != FilterState::WEAKEST && splitter_state.filter.is_between_characters()
}

/// Returns the language state and the splitter state of an element.
fn here(
    positions: &TextPositions,
    SubsetElement { product_state, pretoken }: SubsetElement,
) -> TextState {
    let (state, splitter_state) = positions.parts(product_state);
    (state, splitter_state, pretoken)
}
