//! Tokens by where they lead in a language and the marked text.
//!
//! Between characters what the language makes of tokens ([`Reaches`]) and what the cuts make of
//! them ([`TransitionTargets`]) are known apart, each for many places of the other; a token leads to where
//! both say. Inside of a character few tokens go on, and a walk along the vocabulary finds them.

use std::sync::Arc;

use formalm_automata::deadline::check_deadline;
use formalm_automata::{Error, Keys, Machine, StateId};
use formalm_vocabulary::bpe::{
    Boundary, PretokenState, SplitterState, TokenOrigin, TokenSet, TokenTransitions, TokensByState,
    TransitionTargets,
};
use rustc_hash::FxHashMap;

use super::Context;
use super::language_targets::{Reach, Reaches};

/// Goals looked up without a hash, a power of two.
const RECENT: usize = 256;

/// Where a token leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Goal {
    pub(crate) state: StateId,
    pub(crate) place: SplitterState,
    pub(crate) path: PretokenState,
}

/// Tokens by where they lead.
pub(crate) type Groups = Vec<(Goal, Tokens)>;

/// Tokens that lead to one goal: a set of their own, or one that others share.
#[derive(Debug)]
pub(crate) enum Tokens {
    Own(TokenSet),
    Shared(Arc<TokensByState>, usize),
}

impl std::ops::Deref for Tokens {
    type Target = TokenSet;

    fn deref(&self) -> &TokenSet {
        match self {
            Tokens::Own(tokens) => tokens,
            Tokens::Shared(landed, at) => &landed[*at].1,
        }
    }
}

/// Tokens that are looked at one by one.
struct Walk {
    index: FxHashMap<Goal, u32>,
    groups: Vec<(Goal, Vec<u32>)>,
    /// Groups by a few bits of their goal; most tokens lead to one of few.
    recent: [u32; RECENT],
}

/// The tokens that may be read from somewhere, the first byte with a mark, by where they lead; none
/// is in several groups.
pub(crate) fn tokens<K: Keys>(
    context: Context<'_, K>,
    reaches: &mut Reaches,
    from: Goal,
    mark: Boundary,
) -> Result<Groups, Error> {
    let mut groups = Groups::new();
    if mark == Boundary::Inside && context.encoder.pretoken_must_end(from.path) {
        return Ok(groups);
    }
    let mut walk = Walk::default();
    walk.bytes(context, from, mark)?;
    if !context.encoder.splitter().is_between_characters(from.place) {
        // Only what goes on with the character.
        walk.trie(context, from, mark, 0x80..=0xbf)?;
    } else if let Some(passages) = context.encoder.token_transitions(context.vocabulary) {
        let reach = reaches.of(context, passages, from.state)?;
        let (vocabulary, start) = (context.vocabulary, (from.place, mark));
        let landing = context.encoder.transition_targets(vocabulary, passages, start);
        walk.listed(passages, &reach, &landing);
        walk.odd(context, &reach, from, mark);
        groups = dense(&reach, &landing);
        if let Some(stay) = reach.stay {
            let joined = context.encoder.targets_within_class(vocabulary, passages, stay, start);
            for (at, &(place, _)) in joined.iter().enumerate() {
                let goal = Goal { state: from.state, place, path: PretokenState::PLAIN };
                groups.push((goal, Tokens::Shared(Arc::clone(&joined), at)));
            }
        }
    } else {
        walk.trie(context, from, mark, 0..=0xff)?;
    }
    groups.extend(
        walk.groups.into_iter().map(|(goal, tokens)| (goal, Tokens::Own(TokenSet::List(tokens)))),
    );
    Ok(groups)
}

/// The same by reading every token: the definition.
#[cfg(test)]
pub(crate) fn plain_tokens<K: Keys>(
    context: Context<'_, K>,
    from: Goal,
    mark: Boundary,
) -> Result<Groups, Error> {
    let mut walk = Walk::default();
    walk.bytes(context, from, mark)?;
    walk.trie(context, from, mark, 0..=0xff)?;
    Ok(walk
        .groups
        .into_iter()
        .map(|(goal, tokens)| (goal, Tokens::Own(TokenSet::List(tokens))))
        .collect())
}

/// Tokens of which many lead to one state.
fn dense(reach: &Reach, landing: &TransitionTargets) -> Groups {
    let mut groups = Groups::new();
    for (state, tokens) in &reach.groups {
        let TokenSet::Mask(words) = &**tokens else { continue };
        for (place, landed) in landing.groups() {
            let both = landed.within(words);
            if !both.is_empty() {
                let goal = Goal { state: *state, place: *place, path: PretokenState::PLAIN };
                groups.push((goal, Tokens::Own(both)));
            }
        }
    }
    groups
}

/// Whether a token may begin with a mark and end where an added token is being read or not.
#[inline]
pub(crate) fn fits_kind(kind: TokenOrigin, mark: Boundary, in_added: bool) -> bool {
    match kind {
        TokenOrigin::Never => false,
        TokenOrigin::Added => in_added && mark == Boundary::Added,
        TokenOrigin::Merged | TokenOrigin::Byte(_) => !in_added,
        TokenOrigin::Whole => !in_added && mark == Boundary::Pretoken,
    }
}

impl Default for Walk {
    fn default() -> Walk {
        Walk { index: FxHashMap::default(), groups: Vec::new(), recent: [u32::MAX; RECENT] }
    }
}

impl Walk {
    #[inline]
    fn add(&mut self, goal: Goal, token: u32) {
        let slot = (goal.state.number() ^ goal.place ^ goal.place >> 8) as usize % RECENT;
        let known = self.recent[slot] as usize;
        if let Some((other, tokens)) = self.groups.get_mut(known)
            && *other == goal
        {
            tokens.push(token);
            return;
        }
        let at = *self.index.entry(goal).or_insert_with(|| {
            self.groups.push((goal, Vec::new()));
            (self.groups.len() - 1) as u32
        });
        self.recent[slot] = at;
        self.groups[at as usize].1.push(token);
    }

    /// Tokens with a passage of which few lead to one state.
    fn listed(&mut self, passages: &TokenTransitions, reach: &Reach, landing: &TransitionTargets) {
        for (state, tokens) in &reach.groups {
            let TokenSet::List(list) = &**tokens else { continue };
            for &token in list {
                if let Some(place) = passages.target(landing, token) {
                    self.add(Goal { state: *state, place, path: PretokenState::PLAIN }, token);
                }
            }
        }
    }

    /// Tokens without a passage that begin where a character does.
    fn odd<K: Keys>(&mut self, context: Context<'_, K>, reach: &Reach, from: Goal, mark: Boundary) {
        let splitter = context.encoder.splitter();
        for &(token, state) in &reach.odd {
            let bytes = context.vocabulary.token_bytes(token).unwrap_or_default();
            let place = bytes.iter().enumerate().try_fold(from.place, |place, (at, &byte)| {
                splitter.step(place, byte, if at == 0 { mark } else { Boundary::Inside })
            });
            let kind = context.encoder.origin(token);
            if let Some(place) = place
                && fits_kind(kind, mark, splitter.is_in_added_token(place))
                && let Some(path) =
                    context.encoder.pretoken_step(from.path, token, mark != Boundary::Inside)
            {
                self.add(Goal { state, place, path }, token);
            }
        }
    }

    /// Tokens that are read byte by byte, those whose first byte is in a range.
    fn trie<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        from: Goal,
        mark: Boundary,
        first: std::ops::RangeInclusive<u8>,
    ) -> Result<(), Error> {
        let (trie, encoder) = (context.vocabulary.trie(), context.encoder);
        let splitter = encoder.splitter();
        let nodes = trie.nodes();
        let mut stack = vec![(from.state, from.place)];
        let mut at = 0;
        while (at as usize) < nodes.len() {
            let here = nodes[at as usize];
            let depth = here.depth();
            if depth == 1 && !first.contains(&here.byte()) {
                at = here.end();
                continue;
            }
            check_deadline()?;
            let (state, place) = stack[depth - 1];
            let mark_here = if depth == 1 { mark } else { Boundary::Inside };
            let Some(place) = splitter.step(place, here.byte(), mark_here) else {
                at = here.end();
                continue;
            };
            let Some(state) = context.machine.step(state, here.byte())? else {
                at = here.end();
                continue;
            };
            if here.word().is_some() {
                let in_added = splitter.is_in_added_token(place);
                for &token in trie.tokens_at(at) {
                    let kind = encoder.origin(token);
                    if matches!(kind, TokenOrigin::Byte(_)) || !fits_kind(kind, mark, in_added) {
                        continue;
                    }
                    if let Some(path) =
                        encoder.pretoken_step(from.path, token, mark != Boundary::Inside)
                    {
                        self.add(Goal { state, place, path }, token);
                    }
                }
            }
            stack.truncate(depth);
            stack.push((state, place));
            at += 1;
        }
        Ok(())
    }

    /// Tokens for single bytes of characters that are no symbols.
    fn bytes<K: Keys>(
        &mut self,
        context: Context<'_, K>,
        from: Goal,
        mark: Boundary,
    ) -> Result<(), Error> {
        for byte in 0..=255u8 {
            let Some(token) = context.encoder.byte_token(byte) else { return Ok(()) };
            let place = context.encoder.splitter().step_byte_token(from.place, byte, mark);
            if let Some(place) = place
                && context.vocabulary.token_bytes(token).is_some()
                && let Some(state) = context.machine.step(from.state, byte)?
            {
                self.add(Goal { state, place, path: PretokenState::PLAIN }, token);
            }
        }
        Ok(())
    }
}
