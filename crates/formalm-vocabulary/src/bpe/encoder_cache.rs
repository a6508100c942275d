//! Lazily computed tables of an encoder over its vocabulary, shared by all constraints.

use std::any::Any;
use std::convert::Infallible;
use std::hash::Hash;
use std::sync::Arc;

use formalm_core::{ForkSafeMutex, LruCache, MemoryBytes};
use rustc_hash::FxHashSet;

use super::encoder::{BpeEncoder, TokenOrigin};
use super::free_text::FreeTokens;
use super::pretokenizer::boundary_automaton::{Boundary, BoundaryState};
use super::pretokenizer::pretoken_splitter::SplitterState;
use super::token_set::TokenSet;
use super::token_transitions::{TokenTransitions, TransitionTargets};
use super::tokens_by_char_class_exit::{CoarseCharClass, ExitTargets};
use super::whole_tokens::PretokenState;
use crate::normalization::FilterState;
use crate::unigram::PieceEnds;
use crate::{Vocabulary, VocabularyExtension};

/// Maximum size of each table, in bytes; beyond it the least recently used entries are evicted. 12 MiB; chosen,
/// not measured.
const MAX_TABLE_BYTES: usize = 12 << 20;

/// Tokens by the splitter state they lead to.
pub type TokensByState = [(BoundaryState, TokenSet)];

/// The tables of how the tokens of a vocabulary move the splitter, built on first use.
#[derive(Debug)]
pub(super) struct TransitionTables {
    transitions: Option<TokenTransitions>,
    untabulated: UntabulatedTokens,
    /// With a normalizer, the state of its filter after each token with a transition.
    filter_states: Vec<FilterState>,
    /// The pieces of a model with open pieces.
    piece_ends: PieceEnds,
    targets: ByteBudgetCache<(BoundaryState, Boundary), TransitionTargets>,
    by_target: ByteBudgetCache<(BoundaryState, Boundary), TokensByState>,
    exits: ByteBudgetCache<CoarseCharClass, ExitTargets>,
    /// Tokens within a character class, by the state they lead to.
    targets_within_class:
        ByteBudgetCache<(CoarseCharClass, BoundaryState, Boundary), TokensByState>,
}

/// The states that the tokens without a transition lead to, in their order.
pub type UntabulatedTargets = [Option<(SplitterState, PretokenState)>];

/// The tokens without a transition that do not begin inside a character, in the order of their
/// bytes.
#[derive(Debug, Default)]
pub struct UntabulatedTokens {
    tokens: Vec<u32>,
    /// Per token, the number of bytes that it shares with the one before.
    shared: Vec<u16>,
    /// Per first byte, the position of the first token that does not begin with a lower byte.
    starts: Vec<u32>,
    targets: ByteBudgetCache<(SplitterState, PretokenState, Boundary), UntabulatedTargets>,
}

impl UntabulatedTokens {
    fn new(vocabulary: &Vocabulary, mut tokens: Vec<u32>) -> UntabulatedTokens {
        let bytes = |token: u32| vocabulary.token_bytes(token).unwrap_or_default();
        tokens.retain(|&token| !bytes(token).is_empty());
        tokens.sort_by_key(|&token| bytes(token));
        let mut last: &[u8] = &[];
        let shared = tokens.iter().map(|&token| {
            let pairs = last.iter().zip(bytes(token));
            let count = pairs.take_while(|(one, other)| one == other).count();
            last = bytes(token);
            u16::try_from(count).unwrap_or(u16::MAX)
        });
        let shared = shared.collect();
        let begins_below = |byte: u32, token: u32| u32::from(bytes(token)[0]) < byte;
        let starts = (0..=256)
            .map(|byte| tokens.partition_point(|&token| begins_below(byte, token)) as u32)
            .collect();
        let targets = ByteBudgetCache::default();
        UntabulatedTokens { tokens, shared, starts, targets }
    }

    /// Returns the token at a position.
    pub fn token(&self, at: u32) -> u32 {
        self.tokens[at as usize]
    }

    /// Reads the tokens that begin with some bytes from a state: `step` reads the byte at an offset.
    /// Passes the position of each token that can be read, and the state after it, to `each`.
    /// Common beginnings are read once.
    ///
    /// # Errors
    ///
    /// Those of `step`.
    pub fn read<S: Copy, E>(
        &self,
        vocabulary: &Vocabulary,
        (from, first_bytes): (S, impl Iterator<Item = u8>),
        mut step: impl FnMut(S, usize, u8) -> Result<Option<S>, E>,
        mut each: impl FnMut(u32, S),
    ) -> Result<(), E> {
        let mut path: Vec<S> = vec![from];
        for first in first_bytes {
            let first = usize::from(first);
            let (start, end) = (self.starts[first] as usize, self.starts[first + 1] as usize);
            // Number of bytes of the last token that was read, as far as they can be read.
            path.truncate(1);
            // Number of bytes of a beginning that cannot be read.
            let mut refused = usize::MAX;
            for at in start..end {
                let shared = usize::from(self.shared[at]);
                if at > start && shared >= refused {
                    continue;
                }
                refused = usize::MAX;
                let bytes = vocabulary.token_bytes(self.tokens[at]).unwrap_or_default();
                path.truncate(if at > start { shared + 1 } else { 1 });
                while path.len() <= bytes.len() {
                    let offset = path.len() - 1;
                    let Some(next) = step(path[offset], offset, bytes[offset])? else {
                        refused = path.len();
                        break;
                    };
                    path.push(next);
                }
                if refused == usize::MAX {
                    each(at as u32, path[bytes.len()]);
                }
            }
        }
        Ok(())
    }

    /// Returns the states that all tokens lead to from a state between characters, if `boundary`
    /// stands before the first byte. The state of a pre-token with open pieces is left open.
    pub fn targets(
        &self,
        (encoder, vocabulary): (&BpeEncoder, &Vocabulary),
        (state, pretoken): (SplitterState, PretokenState),
        boundary: Boundary,
    ) -> Arc<UntabulatedTargets> {
        let is_plain = boundary != Boundary::Inside || encoder.has_open_pieces();
        let pretoken = if is_plain { PretokenState::PLAIN } else { pretoken };
        self.targets.get_or_insert_with((state, pretoken, boundary), || {
            let mut targets = vec![None; self.tokens.len()];
            let step = |state, at, byte| {
                let boundary = if at == 0 { boundary } else { Boundary::Inside };
                Ok::<_, Infallible>(encoder.splitter.step(state, byte, boundary))
            };
            let each = |at: u32, state| {
                let token = self.token(at);
                targets[at as usize] = target_of(encoder, token, (state, pretoken), boundary);
            };
            let Ok(()) = self.read(vocabulary, (state, 0..=255), step, each);
            let bytes = size_of_val(&targets[..]);
            (targets.into(), bytes)
        })
    }

    /// Returns the states that one token leads to; see [`UntabulatedTokens::targets`].
    pub fn target(
        &self,
        (encoder, vocabulary): (&BpeEncoder, &Vocabulary),
        (state, pretoken): (SplitterState, PretokenState),
        (boundary, token): (Boundary, u32),
    ) -> Option<(SplitterState, PretokenState)> {
        let splitter = &encoder.splitter;
        let mut bytes = vocabulary.token_bytes(token)?.iter();
        let first = splitter.step(state, *bytes.next()?, boundary)?;
        let state =
            bytes.try_fold(first, |state, &byte| splitter.step(state, byte, Boundary::Inside));
        target_of(encoder, token, (state?, pretoken), boundary)
    }

    fn memory_bytes(&self) -> usize {
        6 * self.tokens.len() + 4 * self.starts.len() + self.targets.memory_bytes()
    }
}

/// Returns the state after a token, given that of the splitter and the one of the pre-token before.
/// Returns `None` if the token may not stand there.
fn target_of(
    encoder: &BpeEncoder,
    token: u32,
    (state, pretoken): (SplitterState, PretokenState),
    boundary: Boundary,
) -> Option<(SplitterState, PretokenState)> {
    if !encoder.origin(token).fits(boundary, encoder.splitter.is_in_added_token(state)) {
        return None;
    }
    let pretoken = match encoder.has_open_pieces() {
        true => PretokenState::PLAIN,
        false => encoder.whole_tokens.step(pretoken, token, boundary != Boundary::Inside)?,
    };
    Some((state, pretoken))
}

/// A cache that threads share; values are computed without its lock.
#[derive(Debug)]
pub(super) struct ByteBudgetCache<K, V: ?Sized>(
    ForkSafeMutex<LruCache<K, Arc<V>, MAX_TABLE_BYTES>>,
);

impl<K, V: ?Sized> Default for ByteBudgetCache<K, V> {
    fn default() -> ByteBudgetCache<K, V> {
        ByteBudgetCache(ForkSafeMutex::default())
    }
}

impl<K: Copy + Eq + Hash, V: ?Sized> ByteBudgetCache<K, V> {
    /// Returns the cached value, or inserts the value that `make` returns with its size in bytes.
    pub(super) fn get_or_insert_with(
        &self,
        key: K,
        make: impl FnOnce() -> (Arc<V>, usize),
    ) -> Arc<V> {
        if let Some(known) = self.0.lock().get(&key) {
            return known;
        }
        let (made, bytes) = make();
        self.0.lock().insert(key, Arc::clone(&made), bytes);
        made
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.lock().size()
    }
}

impl BpeEncoder {
    /// Returns the transition functions of the tokens that merging makes, given their vocabulary.
    /// Returns `None` if there are too many distinct ones.
    pub fn token_transitions(&self, vocabulary: &Vocabulary) -> Option<&TokenTransitions> {
        self.transition_tables(vocabulary).transitions.as_ref()
    }

    /// Returns the tokens without a transition, except byte tokens and tokens that begin inside a
    /// character.
    pub fn untabulated_tokens(&self, vocabulary: &Vocabulary) -> &UntabulatedTokens {
        &self.transition_tables(vocabulary).untabulated
    }

    /// Returns the state of the normalizer's filter after a token with a transition. It does not
    /// depend on the text before the token.
    pub fn filter_state(&self, vocabulary: &Vocabulary, token: u32) -> FilterState {
        let states = &self.transition_tables(vocabulary).filter_states;
        states.get(token as usize).copied().unwrap_or(FilterState::WEAKEST)
    }

    /// Returns the ends of the tokens that are pieces; none if tokens are made by merging.
    pub fn piece_ends(&self, vocabulary: &Vocabulary) -> &PieceEnds {
        &self.transition_tables(vocabulary).piece_ends
    }

    /// Returns the states that tokens with a transition lead to from a state between characters, if
    /// `mark` stands before the first byte. Targets inside added tokens are left out.
    pub fn transition_targets(
        &self,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        (state, boundary): (BoundaryState, Boundary),
    ) -> Arc<TransitionTargets> {
        self.transition_tables(vocabulary).targets.get_or_insert_with((state, boundary), || {
            let targets = transitions.targets_from(self.splitter().boundaries(), state, boundary);
            let bytes = targets.memory_bytes();
            (Arc::new(targets), bytes)
        })
    }

    /// Returns the tokens grouped by these states.
    pub fn tokens_by_target(
        &self,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        (state, boundary): (BoundaryState, Boundary),
    ) -> Arc<TokensByState> {
        self.transition_tables(vocabulary).by_target.get_or_insert_with((state, boundary), || {
            let targets = self.transition_targets(vocabulary, transitions, (state, boundary));
            let list = transitions.all_by_target(&targets);
            let bytes = list.iter().map(|(_, tokens)| 8 + tokens.memory_bytes()).sum();
            (list.into(), bytes)
        })
    }

    /// Returns the tokens grouped by how they leave a character class.
    pub fn exit_targets(
        &self,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        class: CoarseCharClass,
    ) -> Arc<ExitTargets> {
        self.transition_tables(vocabulary).exits.get_or_insert_with(class, || {
            let exits = ExitTargets::new(vocabulary.trie(), transitions, class);
            let bytes = exits.memory_bytes();
            (Arc::new(exits), bytes)
        })
    }

    /// Returns the states that tokens with a transition and within a character class lead to from a
    /// state between characters, if `mark` stands before the first byte.
    pub fn targets_within_class(
        &self,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        class: CoarseCharClass,
        (state, boundary): (BoundaryState, Boundary),
    ) -> Arc<TokensByState> {
        self.transition_tables(vocabulary).targets_within_class.get_or_insert_with(
            (class, state, boundary),
            || {
                let exits = self.exit_targets(vocabulary, transitions, class);
                let start = (state, boundary);
                let list: Vec<(BoundaryState, TokenSet)> = match &exits.within {
                    TokenSet::Mask(within) => {
                        let both = |(state, tokens): &(BoundaryState, TokenSet)| {
                            let both = tokens.within(within);
                            (!both.is_empty()).then_some((*state, both))
                        };
                        let groups = self.tokens_by_target(vocabulary, transitions, start);
                        groups.iter().filter_map(both).collect()
                    }
                    TokenSet::List(within) => {
                        let targets = self.transition_targets(vocabulary, transitions, start);
                        transitions.group_by_target(&targets, within)
                    }
                };
                let bytes = list.iter().map(|(_, tokens)| 8 + tokens.memory_bytes()).sum();
                (list.into(), bytes)
            },
        )
    }

    fn transition_tables(&self, vocabulary: &Vocabulary) -> &TransitionTables {
        self.transition_tables.get_or_init(|| {
            let begins = |token: u32| {
                let first = vocabulary.token_bytes(token).and_then(<[u8]>::first);
                first.is_some_and(|byte| !(0x80..0xc0).contains(byte))
            };
            let merged = |token: u32| self.origin(token) == TokenOrigin::Merged;
            let (mut filter_states, unstable) = self.filter_states(vocabulary);
            let is_free =
                |token: u32| filter_states.get(token as usize).is_none_or(|state| state.is_some());
            let plain = |token: u32| {
                merged(token)
                    && begins(token)
                    && !self.whole_tokens.is_noted(token)
                    && is_free(token)
            };
            let len = self.origins.len().max(vocabulary.len());
            let boundaries = self.splitter.boundaries();
            let transitions = match self.saved_transitions.lock().take() {
                Some(saved) => Some(TokenTransitions::sorted(saved)),
                None => TokenTransitions::new(boundaries, vocabulary.trie(), (len, plain)),
            };
            let is_untabulated = |token: &u32| {
                begins(*token)
                    && !matches!(self.origin(*token), TokenOrigin::Never | TokenOrigin::Byte(_))
                    && !transitions.as_ref().is_some_and(|transitions| transitions.has(*token))
                    && (self.origin(*token) == TokenOrigin::Added || !unstable.contains(token))
            };
            let untabulated = (0..self.origins.len() as u32).filter(is_untabulated).collect();
            let untabulated = UntabulatedTokens::new(vocabulary, untabulated);
            let filter_states = filter_states
                .drain(..)
                .map(|state| state.unwrap_or(FilterState::WEAKEST))
                .collect();
            let piece_ends = match self.is_merging() {
                true => PieceEnds::default(),
                false => PieceEnds::new(vocabulary, merged),
            };
            let (targets, by_target, exits, targets_within_class) = Default::default();
            TransitionTables {
                transitions,
                untabulated,
                filter_states,
                piece_ends,
                targets,
                by_target,
                exits,
                targets_within_class,
            }
        })
    }

    /// Returns, per token, the state of the normalizer's filter after it if that does not depend on
    /// the text before, and the tokens that the normalizer changes in every text. Both are empty
    /// without a normalizer.
    fn filter_states(&self, vocabulary: &Vocabulary) -> (Vec<Option<FilterState>>, FxHashSet<u32>) {
        let Some(filter) = self.splitter.text_filter() else { return Default::default() };
        let mut unstable = FxHashSet::default();
        let state_after = |token: u32| {
            let bytes = vocabulary.token_bytes(token)?;
            let after_any = filter.walk(FilterState::WEAKEST, bytes);
            if bytes.first().is_some_and(|&byte| !filter.is_dependent(byte)) && after_any.is_some()
            {
                return after_any;
            }
            // Whatever may follow some text may begin one.
            let after_none = filter.walk(filter.start(), bytes);
            if after_none.is_none() {
                unstable.insert(token);
            }
            after_any.filter(|_| after_any == after_none)
        };
        ((0..vocabulary.len() as u32).map(state_after).collect(), unstable)
    }

    /// Returns the extension attached to the encoder, creating it on the first call. Returns `None`
    /// if an extension of another type is attached.
    pub fn extension<T: VocabularyExtension + Default>(&self) -> Option<&T> {
        let kept: &dyn Any = &**self.extension.get_or_init(|| Box::<T>::default());
        kept.downcast_ref()
    }

    /// Returns the tokens with a transition that characters of a class make, from a state between
    /// characters if `boundary` stands before the first byte, by whether text of the class goes on
    /// after them.
    pub fn free_tokens(
        &self,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        class: CoarseCharClass,
        from: (BoundaryState, Boundary),
    ) -> Arc<FreeTokens> {
        self.free_text.tokens(self, vocabulary, transitions, class, from)
    }

    /// Returns the memory of the tables, in bytes.
    pub(super) fn shared_bytes(&self) -> usize {
        let tables = self.transition_tables.get().map_or(0, |tables| {
            tables.transitions.as_ref().map_or(0, TokenTransitions::memory_bytes)
                + tables.untabulated.memory_bytes()
                + 4 * tables.filter_states.len()
                + tables.piece_ends.memory_bytes()
                + tables.targets.memory_bytes()
                + tables.by_target.memory_bytes()
                + tables.exits.memory_bytes()
                + tables.targets_within_class.memory_bytes()
        });
        self.adjacency_masks.memory_bytes()
            + tables
            + self.unsettled.memory_bytes()
            + self.free_text.memory_bytes()
            + self.parts.memory_bytes()
            + self.extension.get().map_or(0, |kept| kept.memory_bytes())
    }
}
