//! Tokens grouped by their joint target in the language and the splitter.
//!
//! Between characters the two components are computed separately ([`LanguageTargets`] and
//! [`TransitionTargets`]), each reused for many states of the other. A token leads to the pair of
//! its targets. Inside a character few tokens can continue, and a walk over the vocabulary finds
//! them.

use std::sync::Arc;

use formalm_core::{ByteSet, CompactMap, Error, LazyDfa, StateId, deadline::check_deadline};
use formalm_machines::MaskClasses;
use formalm_vocabulary::bpe::{
    Boundary, BoundaryState, PretokenState, SplitterState, TokenOrigin, TokenSet, TokenTransitions,
    TokensByState, TransitionTargets,
};

use formalm_vocabulary::normalization::FilterState;

use super::language_targets::{LanguageTargetCache, LanguageTargets};
use super::{FEW_TOKENS, ProductContext};
use crate::mask::{MaskWords, has};

/// Group size, in tokens, up to which they are read one by one. Chosen, not measured.
const MAX_LISTED_TOKENS: u32 = 8192;

/// Number of slots, a power of two, of the hash-free lookup of targets. Chosen, not measured.
const RECENT_SLOTS: usize = 256;

/// The state after a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JointTarget {
    pub(crate) state: StateId,
    pub(crate) splitter_state: SplitterState,
    pub(crate) pretoken: PretokenState,
}

/// The tokens that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenChoice<'a> {
    All,
    /// All, in groups of one state of the normalizer's filter each.
    AllSplit,
    /// At least those that the filter does not allow after every text. Tokens in the masks, of
    /// those that continue a pre-token and of those that begin one, are left out.
    Besides(&'a [Vec<u32>; 2]),
}

impl TokenChoice<'_> {
    fn leaves_out(self, token: u32, boundary: Boundary) -> bool {
        match self {
            TokenChoice::All | TokenChoice::AllSplit => false,
            TokenChoice::Besides(masks) => {
                let words = &masks[usize::from(boundary != Boundary::Inside)];
                words[token as usize >> 5] >> (token & 31) & 1 != 0
            }
        }
    }
}

/// Tokens grouped by target.
pub(crate) type TargetGroups = Vec<(JointTarget, GroupTokens)>;

/// The tokens of one target: an own set, or a shared one.
#[derive(Debug)]
pub(crate) enum GroupTokens {
    Own(TokenSet),
    Shared(Arc<TokensByState>, usize),
}

impl GroupTokens {
    /// Returns the set, which is copied if it is shared.
    pub(crate) fn into_set(self) -> TokenSet {
        match self {
            GroupTokens::Own(tokens) => tokens,
            GroupTokens::Shared(group, at) => group[at].1.clone(),
        }
    }
}

impl std::ops::Deref for GroupTokens {
    type Target = TokenSet;

    fn deref(&self) -> &TokenSet {
        match self {
            GroupTokens::Own(tokens) => tokens,
            GroupTokens::Shared(group, at) => &group[*at].1,
        }
    }
}

/// Where tokens are found, and where those go that need no group.
#[derive(Debug)]
pub(crate) struct TokenSources<'a> {
    pub(crate) language_targets: &'a mut LanguageTargetCache,
    /// Takes the tokens after which free text goes on in every language; they are in no group.
    pub(crate) free: Option<&'a mut MaskWords>,
}

/// Collects tokens that are read one by one.
struct JointWalk {
    groups: CompactMap<JointTarget, Vec<u32>>,
    /// Groups by a few bits of their target; most tokens lead to one of few.
    recent: [u32; RECENT_SLOTS],
}

/// Returns the tokens that may be read from a state, grouped by target, if `boundary` stands before
/// the first byte. Each token is in one group. With a normalizer, the states of its filter in a
/// group may be mixed ([`SplitterState::is_mixed`]); [`split_by_filter`] separates them.
pub(crate) fn tokens<K: MaskClasses>(
    context: ProductContext<'_, K>,
    sources: TokenSources<'_>,
    from: JointTarget,
    boundary: Boundary,
    choice: TokenChoice<'_>,
) -> Result<TargetGroups, Error> {
    let TokenSources { language_targets, free } = sources;
    let mut groups = TargetGroups::new();
    let must_end = boundary == Boundary::Inside && context.encoder.pretoken_must_end(from.pretoken);
    if must_end || !context.encoder.splitter().admits(from.splitter_state, boundary) {
        return Ok(groups);
    }
    let mut walk = JointWalk::default();
    walk.bytes(context, from, boundary, |_| true)?;
    if !context.encoder.splitter().is_between_characters(from.splitter_state) {
        // Only tokens that continue the character.
        walk.trie(context, from, boundary, |byte| (0x80..=0xbf).contains(&byte))?;
    } else if let Some(transitions) = context.encoder.token_transitions(context.vocabulary) {
        let in_language = language_targets.of(context, transitions, from.state)?;
        if matches!(choice, TokenChoice::Besides(_)) {
            walk.untabulated(context, (&in_language, None), from, boundary, choice);
        } else {
            let (vocabulary, start) =
                (context.vocabulary, (from.splitter_state.boundaries, boundary));
            let targets = context.encoder.transition_targets(vocabulary, transitions, start);
            let target = |state, boundaries| JointTarget {
                state,
                splitter_state: context.encoder.splitter().with_mixed_filter(boundaries),
                pretoken: PretokenState::PLAIN,
            };
            let free_tokens = match (&free, in_language.loop_class) {
                (Some(_), Some(class)) => {
                    Some(context.encoder.free_tokens(vocabulary, transitions, class, start))
                }
                _ => None,
            };
            let settled = free_tokens.as_ref().map(|tokens| &*tokens.settled);
            walk.untabulated(context, (&in_language, settled), from, boundary, choice);
            let large = walk.listed(transitions, &in_language, (&targets, settled), target);
            if !large.is_empty() {
                let by_target = context.encoder.tokens_by_target(vocabulary, transitions, start);
                groups = dense(&large, &by_target, target);
            }
            if let Some((tokens, free)) = free_tokens.zip(free) {
                free.iter_mut().zip(&*tokens.settled).for_each(|(word, more)| *word |= more);
                for (boundaries, tokens) in &tokens.unsettled {
                    let target = target(from.state, *boundaries);
                    groups.push((target, GroupTokens::Own(tokens.clone())));
                }
            } else if let Some(loop_class) = in_language.loop_class {
                let joined = context.encoder.targets_within_class(
                    vocabulary,
                    transitions,
                    loop_class,
                    start,
                );
                for (at, &(boundaries, _)) in joined.iter().enumerate() {
                    let target = target(from.state, boundaries);
                    groups.push((target, GroupTokens::Shared(Arc::clone(&joined), at)));
                }
            }
        }
    } else {
        walk.trie(context, from, boundary, |_| true)?;
    }
    groups.extend(
        walk.groups
            .into_entries()
            .into_iter()
            .map(|(target, tokens)| (target, GroupTokens::Own(TokenSet::List(tokens)))),
    );
    Ok(groups)
}

/// Returns the tokens that begin with one of few bytes, grouped by target, by reading each.
pub(crate) fn tokens_beginning_with<K: MaskClasses>(
    context: ProductContext<'_, K>,
    from: JointTarget,
    boundary: Boundary,
    first: ByteSet,
) -> Result<TargetGroups, Error> {
    let mut walk = JointWalk::default();
    walk.bytes(context, from, boundary, |byte| first.contains(byte))?;
    walk.trie(context, from, boundary, |byte| first.contains(byte))?;
    let own = |(target, tokens)| (target, GroupTokens::Own(TokenSet::List(tokens)));
    Ok(walk.groups.into_entries().into_iter().map(own).collect())
}

/// The definition: groups the tokens by reading every one.
#[cfg(test)]
pub(crate) fn tokens_by_reading<K: MaskClasses>(
    context: ProductContext<'_, K>,
    from: JointTarget,
    boundary: Boundary,
) -> Result<TargetGroups, Error> {
    let mut walk = JointWalk::default();
    walk.bytes(context, from, boundary, |_| true)?;
    walk.trie(context, from, boundary, |_| true)?;
    Ok(walk
        .groups
        .into_entries()
        .into_iter()
        .map(|(target, tokens)| (target, GroupTokens::Own(TokenSet::List(tokens))))
        .collect())
}

/// Separates the tokens of a mixed group by the state of the normalizer's filter.
pub(crate) fn split_by_filter<K: MaskClasses>(
    context: ProductContext<'_, K>,
    target: JointTarget,
    tokens: &TokenSet,
) -> TargetGroups {
    let mut groups: CompactMap<FilterState, Vec<u32>> = CompactMap::default();
    tokens.find(|token| {
        let filter = context.encoder.filter_state(context.vocabulary, token);
        let at = groups.position_or_insert_with(filter, Vec::new);
        groups.value_mut(at).push(token);
        None::<()>
    });
    let separate = |(filter, tokens): (FilterState, Vec<u32>)| {
        let splitter_state = target.splitter_state.with_filter(filter);
        (JointTarget { splitter_state, ..target }, GroupTokens::Own(TokenSet::List(tokens)))
    };
    groups.into_entries().into_iter().map(separate).collect()
}

/// Intersects large groups of the language with those of the splitter.
fn dense(
    in_language: &[(StateId, Vec<u32>)],
    by_target: &TokensByState,
    target: impl Fn(StateId, BoundaryState) -> JointTarget,
) -> TargetGroups {
    let mut groups = TargetGroups::new();
    for (state, words) in in_language {
        for (boundaries, group) in by_target {
            let both = group.within(words);
            if !both.is_empty() {
                groups.push((target(*state, *boundaries), GroupTokens::Own(both)));
            }
        }
    }
    groups
}

impl Default for JointWalk {
    fn default() -> JointWalk {
        JointWalk { groups: CompactMap::default(), recent: [u32::MAX; RECENT_SLOTS] }
    }
}

impl JointWalk {
    #[inline]
    fn add(&mut self, target: JointTarget, token: u32) {
        let boundaries = target.splitter_state.boundaries;
        let slot = (target.state.number() ^ boundaries ^ boundaries >> 8) as usize % RECENT_SLOTS;
        let recent = self.recent[slot];
        let at = match self.groups.as_slice().get(recent as usize) {
            Some((other, _)) if *other == target => recent,
            _ => self.groups.position_or_insert_with(target, Vec::new),
        };
        self.recent[slot] = at;
        self.groups.value_mut(at).push(token);
    }

    /// Adds the tokens with a transition, without those in a bitmask. Returns the bitmasks of groups
    /// that are left out because they are large.
    fn listed(
        &mut self,
        transitions: &TokenTransitions,
        in_language: &LanguageTargets,
        (targets, without): (&TransitionTargets, Option<&MaskWords>),
        target: impl Fn(StateId, BoundaryState) -> JointTarget,
    ) -> Vec<(StateId, Vec<u32>)> {
        let mut large = Vec::new();
        for (state, tokens) in &in_language.groups {
            let mut add = |token: u32| {
                if let Some(boundaries) = transitions.target(targets, token) {
                    self.add(target(*state, boundaries), token);
                }
            };
            match &**tokens {
                TokenSet::List(list) => {
                    let is_wanted = |token: &&u32| without.is_none_or(|words| !has(words, **token));
                    list.iter().filter(is_wanted).for_each(|&token| add(token));
                }
                TokenSet::Mask(words) => {
                    let mut words = words.clone();
                    for (word, without) in words.iter_mut().zip(without.unwrap_or_default()) {
                        *word &= !without;
                    }
                    let count: u32 = words.iter().map(|word| word.count_ones()).sum();
                    if count > MAX_LISTED_TOKENS {
                        large.push((*state, words));
                        continue;
                    }
                    TokenSet::Mask(words).find(|token| {
                        add(token);
                        None::<()>
                    });
                }
            }
        }
        large
    }

    /// Adds the tokens without a transition that begin at a character boundary, without those in a
    /// bitmask.
    fn untabulated<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        (in_language, without): (&LanguageTargets, Option<&MaskWords>),
        from: JointTarget,
        boundary: Boundary,
        choice: TokenChoice<'_>,
    ) {
        if in_language.untabulated.is_empty() {
            return;
        }
        let (encoder, vocabulary) = (context.encoder, context.vocabulary);
        let tokens = encoder.untabulated_tokens(vocabulary);
        let start = (from.splitter_state, from.pretoken);
        let is_few = in_language.untabulated.len() <= FEW_TOKENS;
        let known = (!is_few).then(|| tokens.targets((encoder, vocabulary), start, boundary));
        for &(at, state) in &in_language.untabulated {
            let token = tokens.token(at);
            if without.is_some_and(|words| has(words, token)) {
                continue;
            }
            let target = match &known {
                Some(targets) => targets[at as usize],
                None => tokens.target((encoder, vocabulary), start, (boundary, token)),
            };
            if let Some((splitter_state, pretoken)) = target
                && !choice.leaves_out(token, boundary)
            {
                self.add(JointTarget { state, splitter_state, pretoken }, token);
            }
        }
    }

    /// Adds tokens by a walk over the vocabulary, restricted to some first bytes.
    fn trie<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        from: JointTarget,
        boundary: Boundary,
        first: impl Fn(u8) -> bool,
    ) -> Result<(), Error> {
        let (trie, encoder) = (context.vocabulary.trie(), context.encoder);
        let splitter = encoder.splitter();
        let nodes = trie.nodes();
        let mut stack = vec![(from.state, from.splitter_state)];
        let mut at = 0;
        while (at as usize) < nodes.len() {
            let here = nodes[at as usize];
            let depth = here.depth();
            if depth == 1 && !first(here.byte()) {
                at = here.end();
                continue;
            }
            check_deadline()?;
            let (state, splitter_state) = stack[depth - 1];
            let boundary_here = if depth == 1 { boundary } else { Boundary::Inside };
            let Some(splitter_state) = splitter.step(splitter_state, here.byte(), boundary_here)
            else {
                at = here.end();
                continue;
            };
            let Some(state) = context.machine.step(state, here.byte())? else {
                at = here.end();
                continue;
            };
            if here.word().is_some() {
                let in_added = splitter.is_in_added_token(splitter_state);
                for &token in trie.tokens_at(at) {
                    let kind = encoder.origin(token);
                    if matches!(kind, TokenOrigin::Byte(_)) || !kind.fits(boundary, in_added) {
                        continue;
                    }
                    if let Some(pretoken) = context.pretoken_of_group(
                        from.pretoken,
                        token,
                        boundary != Boundary::Inside,
                    ) {
                        self.add(JointTarget { state, splitter_state, pretoken }, token);
                    }
                }
            }
            stack.truncate(depth);
            stack.push((state, splitter_state));
            at += 1;
        }
        Ok(())
    }

    /// Adds the byte tokens of characters that are no symbols, restricted to some bytes.
    fn bytes<K: MaskClasses>(
        &mut self,
        context: ProductContext<'_, K>,
        from: JointTarget,
        boundary: Boundary,
        first: impl Fn(u8) -> bool,
    ) -> Result<(), Error> {
        if context.encoder.byte_token(0).is_none() {
            return Ok(());
        }
        let live = context.machine.live_bytes(from.state)?;
        for byte in live.iter().filter(|&byte| first(byte)) {
            let Some(token) = context.encoder.byte_token(byte) else { return Ok(()) };
            let splitter_state =
                context.encoder.splitter().step_byte_token(from.splitter_state, byte, boundary);
            if let Some(splitter_state) = splitter_state
                && context.vocabulary.token_bytes(token).is_some()
                && let Some(state) = context.machine.step(from.state, byte)?
            {
                self.add(
                    JointTarget { state, splitter_state, pretoken: PretokenState::PLAIN },
                    token,
                );
            }
        }
        Ok(())
    }
}
