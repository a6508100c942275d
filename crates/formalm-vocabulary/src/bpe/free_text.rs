//! Tokens after which free text always goes on.
//!
//! ```text
//!  "text│ of a class …"
//!       ├── token ──┤            ends between characters: some character of the class begins a
//!       │                        pre-token behind which every text may follow
//!       └── tok\xc3 ─┤─ \xa9     ends inside one: single bytes lead there
//! ```
//!
//! A language that loops on the characters of a class goes on after such a token, whatever the
//! language is. So these tokens are found once per class and state of the splitter, not once per
//! state of a language. The others are settled where they occur.
//!
//! With a normalizer, the characters that the text goes on with are those that it leaves unchanged,
//! whatever came before. The language must then go on with some text that it leaves unchanged, too.

use std::sync::Arc;

use formalm_core::ForkSafeMutex;
use rustc_hash::FxHashMap;

use super::encoder::{BpeEncoder, TokenOrigin};
use super::encoder_cache::ByteBudgetCache;
use super::pretokenizer::boundary_automaton::{BOUNDARIES, Boundary, BoundaryState};
use super::pretokenizer::pretoken_splitter::SplitterState;
use super::token_set::{TokenSet, set_bit};
use super::token_transitions::{TokenTransitions, TransitionTargets};
use super::tokens_by_char_class_exit::CoarseCharClass;
use super::whole_tokens::PretokenState;
use crate::normalization::FilterState;
use crate::{MaskWords, Vocabulary};

/// Maximum number of states whose continuations are kept; beyond it all are dropped. Bounds memory;
/// chosen, not measured.
const MAX_STATES: usize = 1 << 14;

/// The tokens of characters in a class, and of such characters up to inside one beyond ASCII.
#[derive(Debug)]
pub struct FreeTokens {
    /// Those after which text of the class goes on.
    pub settled: Box<MaskWords>,
    /// The others with a transition that end between two characters, by the state they lead to.
    pub unsettled: Vec<(BoundaryState, TokenSet)>,
}

/// The results so far.
#[derive(Debug, Default)]
pub(super) struct FreeTextTables {
    tokens: ByteBudgetCache<(CoarseCharClass, BoundaryState, Boundary), FreeTokens>,
    continuations: ForkSafeMutex<Continuations>,
}

impl FreeTextTables {
    pub(super) fn memory_bytes(&self) -> usize {
        let known = self.continuations.lock();
        self.tokens.memory_bytes()
            + 32 * (known.goes_on.len() + known.by_token.len())
            + 48 * known.by_state.len()
    }
}

/// What free text may go on with, by its ASCII characters and the state of the splitter.
#[derive(Debug, Default)]
struct Continuations {
    /// Between characters: whether some character begins a pre-token behind which every text may
    /// follow.
    goes_on: FxHashMap<(u128, BoundaryState), bool>,
    /// Inside a character: the bytes with which the text goes on.
    by_state: FxHashMap<(u128, SplitterState), AskedBytes>,
    /// The bytes whose tokens may follow a token.
    by_token: FxHashMap<u32, AskedBytes>,
}

/// The answers so far to a question about the bytes that continue a character, by their last six
/// bits.
#[derive(Clone, Copy, Debug, Default)]
struct AskedBytes {
    asked: u64,
    yes: u64,
}

impl AskedBytes {
    fn known(self, byte: u8) -> Option<bool> {
        (self.asked >> (byte & 63) & 1 != 0).then_some(self.yes >> (byte & 63) & 1 != 0)
    }

    fn note(&mut self, byte: u8, answer: bool) {
        self.asked |= 1 << (byte & 63);
        self.yes |= u64::from(answer) << (byte & 63);
    }
}

impl FreeTextTables {
    /// Returns the tokens with a transition that characters of a class make, from a state between
    /// characters if `boundary` stands before the first byte, by whether text of the class goes on
    /// after them.
    pub(super) fn tokens(
        &self,
        encoder: &BpeEncoder,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        class: CoarseCharClass,
        (state, boundary): (BoundaryState, Boundary),
    ) -> Arc<FreeTokens> {
        self.tokens.get_or_insert_with((class, state, boundary), || {
            let targets = encoder.transition_targets(vocabulary, transitions, (state, boundary));
            let mut made = self.make(encoder, vocabulary, transitions, class, &targets);
            self.add_untabulated(encoder, vocabulary, class, (state, boundary), &mut made.settled);
            let unsettled = made.unsettled.iter().map(|(_, tokens)| 8 + tokens.memory_bytes());
            let bytes = 4 * made.settled.len() + unsettled.sum::<usize>();
            (Arc::new(made), bytes)
        })
    }

    fn make(
        &self,
        encoder: &BpeEncoder,
        vocabulary: &Vocabulary,
        transitions: &TokenTransitions,
        class: CoarseCharClass,
        targets: &TransitionTargets,
    ) -> FreeTokens {
        let (ascii, is_wide) = class;
        let exits = encoder.exit_targets(vocabulary, transitions, class);
        let known = &mut *self.continuations.lock();
        if known.by_state.len() + known.goes_on.len() > MAX_STATES {
            *known = Continuations::default();
        }
        let mut settled = vec![0; transitions.all().len()];
        let mut open: Vec<BoundaryState> = Vec::new();
        transitions.add_by_target(targets, &mut settled, |target| {
            let goes_on = known.goes_on(encoder, ascii, target);
            if !goes_on {
                open.push(target);
            }
            goes_on
        });
        let within = exits.within.words(settled.len());
        settled.iter_mut().zip(&*within).for_each(|(word, within)| *word &= within);
        open.sort_unstable();
        open.dedup();
        let unsettled = open.into_iter().filter_map(|target| {
            let tokens = transitions.tokens_to(targets, target).within(&within);
            (!tokens.is_empty()).then_some((target, tokens))
        });
        let unsettled = unsettled.collect();
        if is_wide {
            for &token in exits.exits.iter().flat_map(|exit| &exit.tokens) {
                let Some(boundaries) = transitions.target(targets, token) else { continue };
                let filter = encoder.filter_state(vocabulary, token);
                let target = SplitterState { boundaries, filter };
                if known.goes_on_inside(encoder, ascii, target, token) {
                    set_bit(&mut settled, token);
                }
            }
        }
        FreeTokens { settled: settled.into(), unsettled }
    }

    /// Adds the tokens without a transition after which text of a class goes on, if what was read
    /// before does not matter to the normalizer: most end inside a character.
    fn add_untabulated(
        &self,
        encoder: &BpeEncoder,
        vocabulary: &Vocabulary,
        (ascii, is_wide): CoarseCharClass,
        (boundaries, boundary): (BoundaryState, Boundary),
        settled: &mut MaskWords,
    ) {
        let tokens = encoder.untabulated_tokens(vocabulary);
        let weakest = SplitterState { boundaries, filter: FilterState::WEAKEST };
        let start = (weakest, PretokenState::PLAIN);
        let targets = tokens.targets((encoder, vocabulary), start, boundary);
        let known = &mut *self.continuations.lock();
        let is_within = |&byte: &u8| if byte < 0x80 { ascii >> byte & 1 != 0 } else { is_wide };
        for (at, target) in targets.iter().enumerate() {
            let (token, Some((target, _))) = (tokens.token(at as u32), target) else { continue };
            let is_plain = encoder.origin(token) == TokenOrigin::Merged
                && !encoder.whole_tokens.is_noted(token)
                && vocabulary.token_bytes(token).is_some_and(|bytes| bytes.iter().all(is_within));
            let goes_on = is_plain
                && match encoder.splitter.is_between_characters(*target) {
                    true => known.goes_on(encoder, ascii, target.boundaries),
                    false => known.goes_on_inside(encoder, ascii, *target, token),
                };
            if goes_on {
                set_bit(settled, token);
            }
        }
    }
}

impl Continuations {
    /// Returns `true` if some ASCII character begins a pre-token behind which every text may
    /// follow. The state is between characters.
    fn goes_on(&mut self, encoder: &BpeEncoder, ascii: u128, state: BoundaryState) -> bool {
        if let Some(&known) = self.goes_on.get(&(ascii, state)) {
            return known;
        }
        let boundaries = encoder.splitter.boundaries();
        let weakest = SplitterState { boundaries: state, filter: FilterState::WEAKEST };
        let opens = |byte: u8| {
            BOUNDARIES.into_iter().filter(|&boundary| boundary != Boundary::Inside).any(
                |boundary| {
                    let next = encoder.splitter.step(weakest, byte, boundary);
                    next.is_some_and(|next| {
                        encoder.unsettled.is_open(&encoder.splitter, next.boundaries)
                    })
                },
            )
        };
        let goes_on = boundaries.is_between_characters(state)
            && !boundaries.is_in_added_token(state)
            && (0..128).any(|byte| ascii >> byte & 1 != 0 && opens(byte));
        self.goes_on.insert((ascii, state), goes_on);
        goes_on
    }

    /// Returns `true` if single bytes show that the text goes on after a token that ends inside a
    /// character.
    fn goes_on_inside(
        &mut self,
        encoder: &BpeEncoder,
        ascii: u128,
        state: SplitterState,
        last: u32,
    ) -> bool {
        let splitter = &encoder.splitter;
        let mut after_state = self.by_state.get(&(ascii, state)).copied().unwrap_or_default();
        let mut after_token = self.by_token.get(&last).copied().unwrap_or_default();
        if after_state.yes & after_token.yes != 0 {
            return true;
        }
        if splitter.is_between_characters(state) || splitter.is_in_added_token(state) {
            return false;
        }
        let found = (0x80..=0xbf).any(|byte| {
            if after_state.known(byte) == Some(false) || after_token.known(byte) == Some(false) {
                return false;
            }
            let next = next_byte(encoder, state, byte);
            let goes_on = after_state.known(byte).unwrap_or_else(|| {
                next.is_some_and(|(token, next)| match splitter.is_between_characters(next) {
                    true => self.goes_on(encoder, ascii, next.boundaries),
                    false => self.goes_on_inside(encoder, ascii, next, token),
                })
            });
            after_state.note(byte, goes_on);
            let Some((token, _)) = next.filter(|_| goes_on) else { return false };
            let follows =
                after_token.known(byte).unwrap_or_else(|| encoder.may_follow(last, token));
            after_token.note(byte, follows);
            follows
        });
        self.by_state.insert((ascii, state), after_state);
        self.by_token.insert(last, after_token);
        found
    }
}

/// Returns the token of one byte that continues a character, and the state after it.
fn next_byte(encoder: &BpeEncoder, state: SplitterState, byte: u8) -> Option<(u32, SplitterState)> {
    let splitter = &encoder.splitter;
    let Some(symbol) = encoder.symbol(byte) else {
        let next = splitter.step_byte_token(state, byte, Boundary::Inside)?;
        return Some((encoder.byte_token(byte)?, next));
    };
    let is_plain = encoder.origin(symbol) == TokenOrigin::Merged
        && encoder.whole_tokens.step(PretokenState::PLAIN, symbol, false)
            == Some(PretokenState::PLAIN);
    let next = splitter.step(state, byte, Boundary::Inside)?;
    is_plain.then_some((symbol, next))
}
