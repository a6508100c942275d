//! The lookahead machine of canonical masks and everything learned on it.
//!
//! Searches visit many more states than any input does. They run on a lookahead machine and number
//! the states themselves. Consecutive queries visit the same states, so results are kept for the
//! next query. Once they take too much memory all of them are dropped, together with the machine.

use std::sync::Arc;

use formalm_core::{ByteSet, Error, LazyDfa, MemoryBytes, ScratchCopies, StateId};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{PartPositionKey, PretokenState, SplitterState};

use super::excluded_members::{ExcludedMembers, excluded_members};
use super::fewest_tokens::{FewestQuery, FewestTokens};
use super::joint_targets::TokenChoice;
use super::liveness::Liveness;
use super::part_interiors::{
    Explored, NamedPart, PartPreparation, explore, explore_named, states_after,
};
use super::part_masks::PartMasks;
use super::part_signatures::PartSignatures;
use super::product::Product;
use super::subsets::SubsetElement;
use super::{ProductContext, prompt};
use crate::mask::MaskWords;

/// Memory of the results, in bytes, above which the next query starts afresh. 24 MiB; chosen, not
/// measured.
const MAX_BYTES: usize = 24 << 20;

/// Maximum number of bytes with which tokens leave a part at once; with more, masks are computed in
/// their context. Chosen, not measured.
const MAX_EXITS: usize = 16;

/// The results so far.
#[derive(Debug)]
pub(crate) struct LookaheadSearch<K> {
    /// Mask classes of the lookahead machine, or `None` if the machine itself serves.
    keys: Option<K>,
    product: Product,
    live: Liveness,
    fewest: FewestTokens,
    signatures: PartSignatures,
    /// Queries that dropped searches had left undecided.
    undecided: usize,
    /// Searches for the fewest tokens that gave up, of dropped ones.
    given_up: usize,
}

/// The state after an input: language state, splitter state, state of the pre-token.
pub(crate) type TextState = (StateId, SplitterState, PretokenState);

impl<K: MaskClasses> LookaheadSearch<K> {
    /// Creates a search without results.
    pub(crate) fn new(keys: &K) -> LookaheadSearch<K> {
        let ahead =
            keys.machine().scratch_copy().and_then(|ahead| keys.over_scratch(&Arc::new(ahead)));
        LookaheadSearch {
            keys: ahead,
            product: Product::default(),
            live: Liveness::default(),
            fewest: FewestTokens::default(),
            signatures: PartSignatures::default(),
            undecided: 0,
            given_up: 0,
        }
    }

    /// Starts afresh if the results take too much memory.
    pub(crate) fn limit(&mut self, keys: &K) {
        if self.memory_bytes() > MAX_BYTES {
            let (undecided, given_up) = (self.undecided_count(), self.given_up_count());
            *self = LookaheadSearch { undecided, given_up, ..LookaheadSearch::new(keys) };
        }
    }

    /// Enters a state in the lookahead machine.
    pub(super) fn enter<'a>(
        &'a mut self,
        context: ProductContext<'a, K>,
        state: StateId,
    ) -> Result<(ProductContext<'a, K>, &'a mut Product, &'a mut Liveness, StateId), Error> {
        let LookaheadSearch { keys, product, live, .. } = self;
        let (context, state) = match keys {
            Some(keys) => (
                ProductContext { keys, machine: keys.machine(), ..context },
                keys.machine().import_state(state)?,
            ),
            None => (context, state),
        };
        Ok((context, product, live, state))
    }

    /// Returns what may follow a state as far as it matters to its masks, if that has a signature.
    pub(crate) fn signature(
        &mut self,
        context: ProductContext<'_, K>,
        state: StateId,
    ) -> Result<Option<u128>, Error> {
        let LookaheadSearch { keys, product, signatures, .. } = self;
        let (context, state) = match keys {
            Some(keys) => (
                ProductContext { keys, machine: keys.machine(), ..context },
                keys.machine().import_state(state)?,
            ),
            None => (context, state),
        };
        signatures.of(context, product, state)
    }

    /// Returns `true` if some string completes the input from a state between pre-tokens and admits
    /// the boundaries.
    pub(crate) fn is_productive(
        &mut self,
        context: ProductContext<'_, K>,
        (state, splitter_state): (StateId, SplitterState),
    ) -> Result<bool, Error> {
        let (context, product, _, state) = self.enter(context, state)?;
        let product_state = product.intern(context, state, splitter_state)?;
        product.is_productive(context, product_state)
    }

    /// Returns `true` if the input can be completed after the token `last`.
    pub(crate) fn is_live(
        &mut self,
        context: ProductContext<'_, K>,
        (state, splitter_state, pretoken): TextState,
        last: u32,
    ) -> Result<bool, Error> {
        let (context, product, live, state) = self.enter(context, state)?;
        let element = SubsetElement {
            product_state: product.intern(context, state, splitter_state)?,
            pretoken,
        };
        live.is_live(context, product, element, last)
    }

    /// Returns the live targets of a token. A target after a special token comes first.
    pub(crate) fn after(
        &mut self,
        context: ProductContext<'_, K>,
        (state, splitter_state, pretoken): TextState,
        (last, token): (u32, u32),
    ) -> Result<Vec<(SplitterState, PretokenState)>, Error> {
        let mut list = Vec::new();
        let splitter = context.encoder.splitter();
        let special = context.special.iter().find(|one| one.0 == token);
        let (context, product, live, state) = self.enter(context, state)?;
        if let Some((_, bytes)) = special
            && context.encoder.pretoken_may_end(pretoken)
            && splitter.may_end(splitter_state)
            && let Ok(next) = context.machine.walk(state, bytes)?
        {
            let product_state = product.intern(context, next, splitter.start())?;
            if product.is_productive(context, product_state)? {
                list.push((splitter.start(), PretokenState::PLAIN));
            }
        }
        let Some(bytes) = context.vocabulary.token_bytes(token) else { return Ok(list) };
        let Ok(next) = context.machine.walk(state, bytes)? else { return Ok(list) };
        for target in prompt::after(context, (splitter_state, pretoken), last, token) {
            let element = SubsetElement {
                product_state: product.intern(context, next, target.0)?,
                pretoken: target.1,
            };
            if live.is_live(context, product, element, token)? && !list.contains(&target) {
                list.push(target);
            }
        }
        Ok(list)
    }

    /// Sets the chosen tokens that may follow and can be completed; see [`Liveness::allowed`].
    pub(crate) fn allowed(
        &mut self,
        context: ProductContext<'_, K>,
        (state, splitter_state, pretoken): TextState,
        choice: TokenChoice<'_>,
        masks: (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        let (context, product, live, state) = self.enter(context, state)?;
        let element = SubsetElement {
            product_state: product.intern(context, state, splitter_state)?,
            pretoken,
        };
        live.allowed(context, product, element, choice, masks)
    }

    /// Sets the tokens that may follow inside a part and can be completed, if the position is
    /// prepared. Returns `false` if it is not.
    pub(crate) fn allowed_in_part(
        &mut self,
        context: ProductContext<'_, K>,
        (state, splitter_state): (StateId, SplitterState),
        shared: &PartMasks,
        masks: (&mut MaskWords, &mut MaskWords),
    ) -> Result<bool, Error> {
        let (context, product, live, state) = self.enter(context, state)?;
        if !shares_parts(context)
            || !context.encoder.splitter().is_between_characters(splitter_state)
        {
            return Ok(false);
        }
        let library = context.encoder.part_library();
        let Some((name, exits)) = name_and_exits(context, state, shared)? else { return Ok(false) };
        let key = PartPositionKey { name, boundaries: splitter_state.boundaries };
        let Some(part) = library.get(&key) else { return Ok(false) };
        if exits.len() > MAX_EXITS
            || !goes_on_after_part(context, product, (state, splitter_state))?
        {
            return Ok(false);
        }
        let product_state = product.intern(context, state, splitter_state)?;
        live.allowed_in_part(context, product, product_state, (&part, exits), masks)?;
        Ok(true)
    }

    /// Prepares the part that a string of the language leads into, for the states of the splitter
    /// after each of some texts. Returns the number of positions that were added to the library of
    /// the encoder.
    pub(crate) fn prepare_part(
        &mut self,
        context: ProductContext<'_, K>,
        string: &[u8],
        texts: &[Vec<u8>],
    ) -> Result<usize, Error> {
        let start = context.machine.start();
        let (context, .., start) = self.enter(context, start)?;
        let Ok(state) = context.machine.walk(start, string)? else { return Ok(0) };
        if !shares_parts(context) {
            return Ok(0);
        }
        let (vocabulary, encoder) = (context.vocabulary, context.encoder);
        let states = texts.iter().flat_map(|text| states_after(encoder, text));
        if let Some(NamedPart { table, class, names }) = explore_named(context, state)? {
            let part = (&table, Some(names));
            return PartPreparation::new(part, vocabulary, encoder).prepare(class, states);
        }
        let Explored::Part(part) = explore(context, state)? else { return Ok(0) };
        let Some(&(_, class)) = part.classes.first() else { return Ok(0) };
        PartPreparation::new((&part.table, None), vocabulary, encoder).prepare(class, states)
    }

    /// Returns a query for the fewest tokens from an element of the lookahead machine.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn fewest<'a>(
        &'a mut self,
        context: ProductContext<'a, K>,
        (state, splitter_state, pretoken): TextState,
    ) -> Result<(FewestQuery<'a, K>, SubsetElement), Error> {
        let LookaheadSearch { keys, product, live, fewest, .. } = self;
        let (context, state) = match keys {
            Some(keys) => (
                ProductContext { keys, machine: keys.machine(), ..context },
                keys.machine().import_state(state)?,
            ),
            None => (context, state),
        };
        let product_state = product.intern(context, state, splitter_state)?;
        let query = FewestQuery::new(context, product, live, fewest);
        Ok((query, SubsetElement { product_state, pretoken }))
    }

    /// Returns `true` if a completion of at most `limit` tokens is found after the token `last`.
    pub(crate) fn completes_within(
        &mut self,
        context: ProductContext<'_, K>,
        from: TextState,
        last: u32,
        limit: u32,
    ) -> Result<bool, Error> {
        let (mut query, element) = self.fewest(context, from)?;
        query.fits(element, last, limit)
    }

    /// Returns the number of tokens of a known completion after the token `last`.
    pub(crate) fn known_count(
        &mut self,
        context: ProductContext<'_, K>,
        from: TextState,
        last: u32,
    ) -> Result<Option<u32>, Error> {
        let (mut query, element) = self.fewest(context, from)?;
        query.known_count(element, last)
    }

    /// Sets those of the tokens in `allowed` after which a completion of at most `left` tokens is
    /// found, and perhaps others that are not allowed.
    pub(crate) fn keep(
        &mut self,
        context: ProductContext<'_, K>,
        from: TextState,
        (last, left): (u32, u32),
        allowed: &MaskWords,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let (mut query, element) = self.fewest(context, from)?;
        match context.encoder.has_open_pieces() {
            true => query.keep_with_pieces(element, left, allowed, words),
            false => query.keep(element, last, left, words),
        }
    }

    /// Returns the first token of a known completion of at most `budget` tokens.
    pub(crate) fn first_of_known(
        &mut self,
        context: ProductContext<'_, K>,
        from: TextState,
        last: u32,
        budget: u32,
    ) -> Result<Option<u32>, Error> {
        let (mut query, element) = self.fewest(context, from)?;
        query.first_of_known(element, last, budget)
    }

    /// Returns the members that have no canonical tokens.
    pub(crate) fn excluded_members(
        &mut self,
        context: ProductContext<'_, K>,
    ) -> Result<ExcludedMembers, Error> {
        let start = context.machine.start();
        let (context, ..) = self.enter(context, start)?;
        excluded_members(context)
    }

    /// Returns the number of searches for the fewest tokens that gave up.
    pub(crate) fn given_up_count(&self) -> usize {
        self.given_up + self.fewest.given_up_count()
    }

    /// Returns the number of queries that a bounded search left undecided.
    pub(crate) fn undecided_count(&self) -> usize {
        self.undecided + self.product.undecided_count() + self.live.undecided_count()
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ahead = self.keys.as_ref();
        self.product.memory_bytes()
            + self.live.memory_bytes()
            + self.fewest.memory_bytes()
            + self.signatures.memory_bytes()
            + ahead.map_or(0, |keys| keys.memory_bytes() + keys.machine().memory_bytes())
    }
}

/// Returns `true` if a normalizer does not change what is prepared of the part that a state is
/// inside of: the state of its filter is the weakest, and after the part the language goes on with
/// some text that it leaves unchanged, whatever came before.
fn goes_on_after_part<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    (state, splitter_state): (StateId, SplitterState),
) -> Result<bool, Error> {
    if context.encoder.splitter().text_filter().is_none() {
        return Ok(true);
    }
    let Some(part) = context.keys.part(state)? else { return Ok(false) };
    Ok(splitter_state == splitter_state.weakest()
        && product.reads_free_text(context, part.after)?)
}

/// Returns `true` if what is prepared of parts holds in a language: it is one of texts, and its
/// tokens are made by merging.
fn shares_parts<K: MaskClasses>(context: ProductContext<'_, K>) -> bool {
    context.reads_exact_text()
        && context.special.is_empty()
        && context.encoder.is_merging()
        && !context.encoder.has_open_pieces()
}

/// Returns the name of a position inside a part, and the bytes with which tokens leave the part at
/// once. Returns `None` if no part with this name was prepared.
fn name_and_exits<K: MaskClasses>(
    context: ProductContext<'_, K>,
    state: StateId,
    shared: &PartMasks,
) -> Result<Option<(u128, ByteSet)>, Error> {
    if let Some(name) = context.keys.part_name(state)? {
        return Ok(Some((name, ByteSet::default())));
    }
    // Reading the table of a part takes longer than a mask.
    let live_bytes = context.machine.live_bytes(state)?;
    let library = context.encoder.part_library();
    if !library.may_contain(live_bytes, MAX_EXITS) {
        if context.keys.part(state)?.is_some() {
            library.count_missed();
        }
        return Ok(None);
    }
    let Some((table, class)) = shared.place(context, state)? else { return Ok(None) };
    let mut exits = ByteSet::default();
    if table.may_end(class) {
        let read = table.bytes(class);
        let exit = |byte: &u8| !read.contains(*byte);
        live_bytes.iter().filter(exit).for_each(|byte| exits.insert(byte));
    }
    Ok(Some((table.name(class), exits)))
}
