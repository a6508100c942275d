//! Liveness of canonical tokens: can the token sequence be completed to a string in the language?
//!
//! After a token that leads to a *clean* product state any completion will do. Elsewhere the
//! pre-token continues, and must do so with a token that may be adjacent to the last one.
//! *Witnesses*, tokens known to lead to an accepting state, settle nearly every query. A search
//! answers the others; a search that ends without success proves that everything it visited is
//! dead.

mod best_path;
mod completion_tokens;
mod completions;
mod shared_verdicts;
mod witnesses;

use std::sync::Arc;

use formalm_core::{
    ByteSet, Error, LazyDfa, LruCache, MemoryBytes, ReadingHints, Resource,
    deadline::check_deadline, map_slot_bytes, set_slot_bytes,
};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{
    BOUNDARIES, Boundary, PartTokens, PretokenState, TokenOrigin, TokenSet, UnsettledTokens,
};
use rustc_hash::{FxHashMap, FxHashSet};

use self::completion_tokens::CompletionTokens;
use self::completions::Completions;
use self::shared_verdicts::SharedVerdicts;
use self::witnesses::{first_clean, first_witnesses};
use super::joint_targets::{GroupTokens, JointTarget, TargetGroups, TokenChoice, TokenSources};
use super::language_targets::LanguageTargetCache;
use super::product::{Product, ProductState};
use super::subsets::SubsetElement;
use super::{FEW_TOKENS, MAX_STEPS, ProductContext, joint_targets};
use crate::mask::{MaskWords, patch};

/// Maximum number of positions that one search may visit. Bounds time and memory; chosen, not
/// measured.
const MAX_POSITIONS: usize = 500_000;

/// Maximum number of witnesses kept per product state. Chosen, not measured.
const MAX_WITNESSES: usize = 8;

/// Maximum number of witnesses that are single bytes inside a character. Chosen, not measured.
const MAX_BYTE_WITNESSES: usize = 3;

/// Size of the kept groups of tokens, in bytes: those of a hundred states with a vocabulary of 32,000
/// tokens. 4 MiB; chosen, not measured.
const MAX_GROUP_BYTES: usize = 4 << 20;

/// Size of the kept verdicts that do not depend on open pieces, in bytes. 8 MiB; chosen, not measured.
const MAX_VERDICT_BYTES: usize = 8 << 20;

/// Tokens grouped by the element that they lead to.
pub(super) type ElementGroups = Vec<(SubsetElement, GroupTokens)>;

/// The results of past queries.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    witnesses: FxHashMap<ProductState, Vec<u32>>,
    completion_tokens: CompletionTokens,
    dead: FxHashSet<(SubsetElement, u32)>,
    /// Positions that a bounded search left undecided.
    undecided: FxHashSet<(SubsetElement, u32)>,
    language_targets: LanguageTargetCache,
    /// Per element with open pieces, whether it can be completed.
    best_path_verdicts: FxHashMap<SubsetElement, bool>,
    /// Per product state after the first byte of a character, whether one that occurs in no piece and
    /// can be completed begins so.
    apart: FxHashMap<ProductState, bool>,
    /// Per product state, completions that settle many elements with open pieces.
    completions: FxHashMap<ProductState, Completions>,
    /// Per product state, what elements with open pieces share.
    shared_verdicts: LruCache<ProductState, Arc<SharedVerdicts>, MAX_VERDICT_BYTES>,
    /// The tokens that begin a pre-token and can be completed, whatever was open before it.
    kept_beginnings: LruCache<(ProductState, Boundary), Arc<TokenSet>, MAX_GROUP_BYTES>,
    /// Tokens by target, which all elements of a product state with open pieces share.
    kept_groups: LruCache<(ProductState, Boundary), Arc<ElementGroups>, MAX_GROUP_BYTES>,
}

impl Liveness {
    /// Returns `true` if a string in the language can be completed after the token `last`.
    pub(crate) fn is_live<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        last: u32,
    ) -> Result<bool, Error> {
        let element = SubsetElement {
            product_state: product.common(context, element.product_state)?,
            ..element
        };
        if context.encoder.has_open_pieces() {
            return self.is_live_on_best_path(context, product, element);
        }
        match self.without_search(context, product, element, last)? {
            Some(live) => Ok(live),
            None => self.search(context, product, element, last),
        }
    }

    /// Answers without a search, if possible.
    fn without_search<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        last: u32,
    ) -> Result<Option<bool>, Error> {
        let encoder = context.encoder;
        if encoder.pretoken_may_end(element.pretoken)
            && product.is_clean(context, element.product_state)?
        {
            return Ok(Some(true));
        }
        // Nothing continues an added token or a whole token.
        let complete = encoder.splitter().is_in_added_token(product.parts(element.product_state).1);
        if complete
            || encoder.pretoken_must_end(element.pretoken)
            || !product.is_productive(context, element.product_state)?
        {
            return Ok(Some(false));
        }
        if self.dead.contains(&(element, last)) {
            return Ok(Some(false));
        }
        if self.undecided.contains(&(element, last)) {
            return Ok(Some(true));
        }
        let plain = element == SubsetElement::new(element.product_state);
        let witnessed = plain
            && self
                .witnesses(context, product, element.product_state)?
                .iter()
                .any(|&witness| encoder.may_follow(last, witness));
        Ok(witnessed.then_some(true))
    }

    /// Returns tokens that continue the pre-token from a product state and lead to an accepting
    /// state.
    fn witnesses<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<&[u32], Error> {
        if !self.witnesses.contains_key(&product_state) {
            let mut found = self.next_bytes(context, product, product_state)?;
            if found.is_empty() {
                let tokens = &mut self.completion_tokens;
                found = first_witnesses(context, product, tokens, product_state)?;
            }
            self.witnesses.insert(product_state, found);
        }
        Ok(self.witnesses.get(&product_state).map(Vec::as_slice).unwrap_or_default())
    }

    /// Returns witnesses inside a character: single bytes that continue it, if bytes are symbols.
    fn next_bytes<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
    ) -> Result<Vec<u32>, Error> {
        let (state, splitter_state) = product.parts(product_state);
        let (encoder, splitter) = (context.encoder, context.encoder.splitter());
        let mut found = Vec::new();
        if splitter.is_between_characters(splitter_state)
            || splitter.is_in_added_token(splitter_state)
        {
            return Ok(found);
        }
        for byte in context.machine.live_bytes(state)?.iter() {
            let Some(symbol) = encoder.symbol(byte) else { break };
            let plain = encoder.origin(symbol) == TokenOrigin::Merged
                && context.pretoken_step(PretokenState::PLAIN, symbol, false)
                    == Some(PretokenState::PLAIN);
            let Some(next) = product.step(context, product_state, (byte, Boundary::Inside))? else {
                continue;
            };
            let (_, splitter_state) = product.parts(next);
            let leads = plain
                && !splitter.is_in_added_token(splitter_state)
                && match splitter.is_between_characters(splitter_state) {
                    true => product.is_clean(context, next)?,
                    false => {
                        let further = self.witnesses(context, product, next)?;
                        further.iter().any(|&witness| encoder.may_follow(symbol, witness))
                    }
                };
            if leads {
                found.push(symbol);
                if found.len() == MAX_BYTE_WITNESSES {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn add_witness(&mut self, product_state: ProductState, token: u32) {
        let list = self.witnesses.entry(product_state).or_default();
        if list.len() < MAX_WITNESSES && !list.contains(&token) {
            list.push(token);
        }
    }

    /// Searches for a completion that continues the pre-token.
    fn search<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        last: u32,
    ) -> Result<bool, Error> {
        // Visited positions, each with the index of its predecessor.
        let mut visited: Vec<(SubsetElement, u32, usize)> = vec![(element, last, 0)];
        let mut seen: FxHashSet<(SubsetElement, u32)> = FxHashSet::from_iter([(element, last)]);
        let mut pending = vec![0];
        while let Some(at) = pending.pop() {
            check_deadline()?;
            let (element, last, _) = visited[at];
            let from = (element, Boundary::Inside);
            let groups = self.kept_groups(context, product, from, TokenChoice::All)?;
            if let Some((next, token)) = first_clean(context, product, &groups, last)? {
                visited.push((next, token, at));
                self.learn_from(&visited);
                return Ok(true);
            }
            for (next, tokens) in &*groups {
                let next = *next;
                let mut fitting = Vec::new();
                tokens.find(|token| {
                    if context.encoder.may_follow(last, token) && seen.insert((next, token)) {
                        fitting.push(token);
                    }
                    None::<()>
                });
                for token in fitting {
                    visited.push((next, token, at));
                    match self.without_search(context, product, next, token)? {
                        Some(true) => {
                            self.learn_from(&visited);
                            return Ok(true);
                        }
                        Some(false) => {}
                        None => pending.push(visited.len() - 1),
                    }
                }
            }
            if !context.machine.is_finite() && visited.len() > MAX_STEPS {
                self.undecided.insert((visited[0].0, visited[0].1));
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
        self.dead.extend(visited.into_iter().map(|(element, last, _)| (element, last)));
        Ok(false)
    }

    /// Records witnesses along the path to the last position.
    fn learn_from(&mut self, visited: &[(SubsetElement, u32, usize)]) {
        let mut at = visited.len() - 1;
        while at != 0 {
            let (element, token, from) = visited[at];
            let before = visited[from].0;
            if before == SubsetElement::new(before.product_state)
                && element == SubsetElement::new(element.product_state)
            {
                self.add_witness(before.product_state, token);
            }
            at = from;
        }
    }

    /// Returns the tokens that may follow an element at a boundary, grouped by target. Adjacency
    /// has not been checked.
    pub(super) fn groups<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        from: (SubsetElement, Boundary),
        choice: TokenChoice<'_>,
    ) -> Result<ElementGroups, Error> {
        self.groups_besides(context, product, from, choice, None)
    }

    /// Returns the tokens that may follow an element at a boundary, grouped by target. They are
    /// kept for states of pre-tokens that most elements share. Groups do not depend on open pieces.
    fn kept_groups<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        (element, boundary): (SubsetElement, Boundary),
        choice: TokenChoice<'_>,
    ) -> Result<Arc<ElementGroups>, Error> {
        let key = (element.product_state, boundary);
        let is_plain =
            context.encoder.has_open_pieces() || element.pretoken == PretokenState::PLAIN;
        let is_kept = is_plain && choice == TokenChoice::All;
        if is_kept && let Some(known) = self.kept_groups.get(&key) {
            return Ok(known);
        }
        let groups = Arc::new(self.groups(context, product, (element, boundary), choice)?);
        if is_kept {
            let bytes = groups.iter().map(|(_, tokens)| 24 + tokens.memory_bytes()).sum();
            self.kept_groups.insert(key, Arc::clone(&groups), bytes);
        }
        Ok(groups)
    }

    /// Returns the same groups without the tokens after which free text goes on in every language.
    /// These are added to `free`, if given.
    fn groups_besides<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        (element, boundary): (SubsetElement, Boundary),
        choice: TokenChoice<'_>,
        free: Option<&mut MaskWords>,
    ) -> Result<ElementGroups, Error> {
        let (state, splitter_state) = product.parts(element.product_state);
        let reads_free_text = free.is_some() && product.reads_free_text(context, state)?;
        let free = free.filter(|_| reads_free_text);
        let from = JointTarget { state, splitter_state, pretoken: element.pretoken };
        let mut groups = ElementGroups::new();
        let sources = TokenSources { language_targets: &mut self.language_targets, free };
        for (target, tokens) in joint_targets::tokens(context, sources, from, boundary, choice)? {
            if !target.splitter_state.is_mixed() {
                add_group(context, product, &mut groups, (target, tokens))?;
                continue;
            }
            let joins = choice != TokenChoice::AllSplit;
            for group in unmixed(context, product, (target, tokens), joins)? {
                add_group(context, product, &mut groups, group)?;
            }
        }
        Ok(groups)
    }

    /// Sets the chosen tokens that may follow an element and can be completed: into `inside` those that
    /// continue the pre-token, without checking adjacency, and into `begins` those that begin one.
    pub(crate) fn allowed<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        element: SubsetElement,
        choice: TokenChoice<'_>,
        (inside, begins): (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        if context.encoder.has_open_pieces() {
            return self.allowed_on_best_path(context, product, element, choice, (inside, begins));
        }
        if !context.encoder.pretoken_must_end(element.pretoken) {
            let from = (element, Boundary::Inside);
            for (next, tokens) in
                self.groups_besides(context, product, from, choice, Some(&mut *inside))?
            {
                self.add_live(context, product, next, &tokens, inside)?;
            }
        }
        if context.encoder.pretoken_may_end(element.pretoken) {
            for (token, _) in product.after_special(context, element.product_state)? {
                patch(begins, &[token], &[]);
            }
            for boundary in [Boundary::Pretoken, Boundary::Added] {
                let from = (element, boundary);
                for (next, tokens) in
                    self.groups_besides(context, product, from, choice, Some(&mut *begins))?
                {
                    self.add_live(context, product, next, &tokens, begins)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the tokens that may follow a plain element inside a part and can be completed, as
    /// [`Liveness::allowed`] does. `exits` are the bytes with which tokens leave the part at once.
    pub(crate) fn allowed_in_part<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        product_state: ProductState,
        (part, exits): (&PartTokens, ByteSet),
        (inside, begins): (&mut MaskWords, &mut MaskWords),
    ) -> Result<(), Error> {
        let (state, splitter_state) = product.parts(product_state);
        part.settled[0].add_to(inside);
        part.settled[1].add_to(begins);
        for group in &part.unsettled {
            let UnsettledTokens { begins: is_first, splitter_state, pretoken, tokens } = &**group;
            // All tokens of a group lead to one state.
            let bytes = tokens.find(|token| Some(context.vocabulary.token_bytes(token)));
            let bytes = bytes.flatten().unwrap_or_default();
            let Ok(next) = context.machine.walk(state, bytes)? else { continue };
            let (splitter_state, pretoken) = (*splitter_state, *pretoken);
            let target = JointTarget { state: next, splitter_state, pretoken };
            let words = if *is_first { &mut *begins } else { &mut *inside };
            if !splitter_state.is_mixed() {
                self.add_live_target(context, product, target, tokens, words)?;
                continue;
            }
            let group = (target, GroupTokens::Own(TokenSet::clone(tokens)));
            for (target, tokens) in unmixed(context, product, group, true)? {
                self.add_live_target(context, product, target, &tokens, words)?;
            }
        }
        if exits.is_empty() {
            return Ok(());
        }
        let from = JointTarget { state, splitter_state, pretoken: PretokenState::PLAIN };
        for boundary in BOUNDARIES {
            let is_first = boundary != Boundary::Inside;
            let words = if is_first { &mut *begins } else { &mut *inside };
            let groups = joint_targets::tokens_beginning_with(context, from, boundary, exits)?;
            for (target, tokens) in groups {
                self.add_live_target(context, product, target, &tokens, words)?;
            }
        }
        Ok(())
    }

    /// Sets the tokens that lead to a target and can be completed from there.
    pub(in crate::canonical) fn add_live_target<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        JointTarget { state, splitter_state, pretoken }: JointTarget,
        tokens: &TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let product_state = product.intern(context, state, splitter_state)?;
        let product_state = product.common(context, product_state)?;
        if !product.is_productive(context, product_state)? {
            return Ok(());
        }
        self.add_live(context, product, SubsetElement { product_state, pretoken }, tokens, words)
    }

    /// Sets the tokens that lead to `next` and can be completed from there.
    fn add_live<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        next: SubsetElement,
        tokens: &TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        if context.encoder.pretoken_may_end(next.pretoken)
            && product.is_clean(context, next.product_state)?
        {
            tokens.add_to(words);
            return Ok(());
        }
        if let TokenSet::List(list) = tokens
            && list.len() <= FEW_TOKENS
        {
            for &token in list {
                if self.is_live(context, product, next, token)? {
                    patch(words, &[token], &[]);
                }
            }
            return Ok(());
        }
        self.add_live_of_many(context, product, next, tokens.clone(), words)
    }

    /// Sets the live tokens of a large set: each witness settles all tokens that it may follow at
    /// once.
    fn add_live_of_many<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        product: &mut Product,
        next: SubsetElement,
        mut pending: TokenSet,
        words: &mut MaskWords,
    ) -> Result<(), Error> {
        let added =
            context.encoder.splitter().is_in_added_token(product.parts(next.product_state).1);
        let may_witness = next == SubsetElement::new(next.product_state) && !added;
        let mut known = 0;
        loop {
            check_deadline()?;
            if may_witness {
                let witnesses = self.witnesses(context, product, next.product_state)?;
                for &witness in &witnesses[known..] {
                    let before = context.encoder.forbidden_mask(context.vocabulary, witness, false);
                    pending = split_settled(pending, &before, words);
                }
                known = witnesses.len();
            }
            // One by one; each token may have added a witness.
            let mut list = pending.into_list();
            let Some(token) = list.pop() else { return Ok(()) };
            if self.is_live(context, product, next, token)? {
                patch(words, &[token], &[]);
            }
            pending = TokenSet::List(list);
        }
    }

    /// Returns the number of positions that a bounded search left undecided.
    pub(crate) fn undecided_count(&self) -> usize {
        self.undecided.len()
    }

    /// Returns the approximate memory in use, in bytes. A list of witnesses counts as its first
    /// allocation.
    pub(crate) fn memory_bytes(&self) -> usize {
        map_slot_bytes(&self.witnesses)
            + 16 * self.witnesses.len()
            + map_slot_bytes(&self.best_path_verdicts)
            + map_slot_bytes(&self.apart)
            + map_slot_bytes(&self.completions)
            + self.completion_tokens.memory_bytes()
            + self.kept_groups.size()
            + self.shared_verdicts.size()
            + self.kept_beginnings.size()
            + self.completions.values().map(Completions::memory_bytes).sum::<usize>()
            + set_slot_bytes(&self.dead)
            + set_slot_bytes(&self.undecided)
            + self.language_targets.memory_bytes()
    }
}

/// Returns the groups of a mixed group by the state of the normalizer's filter. If it `joins` tokens,
/// those that are all live are one group.
fn unmixed<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    (target, tokens): (JointTarget, GroupTokens),
    joins: bool,
) -> Result<TargetGroups, Error> {
    // The weakest state answers for all, unless it cannot be completed.
    let splitter_state = target.splitter_state.weakest();
    let weakest = JointTarget { splitter_state, ..target };
    if context.encoder.splitter().is_between_characters(splitter_state) {
        let product_state = product.intern(context, target.state, splitter_state)?;
        let product_state = product.common(context, product_state)?;
        let is_same = !product.depends_on_text(context, target.state)?;
        if is_same || joins && product.is_clean(context, product_state)? {
            return Ok(vec![(weakest, tokens)]);
        }
    }
    Ok(joint_targets::split_by_filter(context, target, &tokens))
}

/// Adds the tokens of a target if it can be completed.
fn add_group<K: MaskClasses>(
    context: ProductContext<'_, K>,
    product: &mut Product,
    groups: &mut ElementGroups,
    (target, tokens): (JointTarget, GroupTokens),
) -> Result<(), Error> {
    let product_state = product.intern(context, target.state, target.splitter_state)?;
    let product_state = product.common(context, product_state)?;
    if product.is_productive(context, product_state)? {
        groups.push((SubsetElement { product_state, pretoken: target.pretoken }, tokens));
    }
    Ok(())
}

/// Sets the tokens that are not in the bitmask `before`, and returns the others.
fn split_settled(tokens: TokenSet, before: &MaskWords, words: &mut MaskWords) -> TokenSet {
    match tokens {
        TokenSet::Mask(mut mask) => {
            for ((pending, before), word) in mask.iter_mut().zip(before).zip(words) {
                *word |= *pending & !before;
                *pending &= before;
            }
            TokenSet::from_words(mask)
        }
        TokenSet::List(mut list) => {
            list.retain(|&token| {
                let fits = before[token as usize >> 5] >> (token & 31) & 1 == 0;
                if fits {
                    patch(words, &[token], &[]);
                }
                !fits
            });
            TokenSet::List(list)
        }
    }
}
