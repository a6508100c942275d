//! The inside of parts: computed once for all languages, and completed by each.
//!
//! ```text
//!  {"color": "bl│ue", "size": …      settled      by the part alone: a boundary into an open state follows inside it
//!                 ▔▔▔                unsettled    by the language: few groups of tokens that leave the part, or after
//!                                                 which only what is after the part can settle boundaries
//! ```
//!
//! A mask of a larger language allows more. So a token is allowed in every language around a part if
//! text of the part alone shows that it can be completed, and in none if the part followed by any
//! text does not allow it. Both are decided when the part is prepared (`PartPreparation`); the others
//! are in groups that lead to one state in each language.

mod in_language;
mod part_reader;
mod part_table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::{IdentityClasses, StateClasses};
use formalm_vocabulary::Vocabulary;
use formalm_vocabulary::bpe::{
    BOUNDARIES, Boundary, BoundaryState, BpeEncoder, PartLibrary, PartPositionKey, PartTokens,
    PretokenState, SplitterState, TokenOrigin, TokenSet, UnsettledTokens,
};
use formalm_vocabulary::normalization::FilterState;
use formalm_vocabulary::unigram::OpenPiecesTable;
use rustc_hash::{FxHashMap, FxHashSet};

use self::part_reader::{PartReader, ReaderState};
use self::part_table::{END, PartTable};
pub(crate) use self::part_table::{Explored, ExploredPart, PartPlace, explore};
use super::joint_targets::{JointTarget, TokenChoice, TokenSources, tokens};
use super::language_targets::LanguageTargetCache;
use super::{ProductContext, TextBegin};
use crate::mask::patch;

/// Maximum number of positions that are prepared of one part. Chosen, not measured.
const MAX_POSITIONS: usize = 4096;

/// A position to prepare, not after pieces of a whole token: the class and the state of the splitter.
type PreparedPosition = (u32, BoundaryState);

/// Prepares the positions of one part.
pub(crate) struct PartPreparation<'a> {
    table: Arc<PartTable>,
    keys: IdentityClasses<PartReader>,
    vocabulary: &'a Vocabulary,
    encoder: &'a BpeEncoder,
    open_pieces: OpenPiecesTable,
    language_targets: LanguageTargetCache,
    /// Inside a character: the tokens of one byte after which text of the part follows.
    next_bytes: FxHashMap<(u32, BoundaryState), Arc<[u32]>>,
}

impl<'a> PartPreparation<'a> {
    /// Creates a preparation in which nothing is known.
    pub(crate) fn new(
        table: &Arc<PartTable>,
        vocabulary: &'a Vocabulary,
        encoder: &'a BpeEncoder,
    ) -> PartPreparation<'a> {
        PartPreparation {
            table: Arc::clone(table),
            keys: IdentityClasses::new(Arc::new(PartReader::new(Arc::clone(table)))),
            vocabulary,
            encoder,
            open_pieces: OpenPiecesTable::default(),
            language_targets: LanguageTargetCache::default(),
            next_bytes: FxHashMap::default(),
        }
    }

    /// Prepares all positions that tokens lead to from a class and states of the splitter. Adds
    /// them to the library of the encoder, and returns their number.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub(crate) fn prepare(
        &mut self,
        class: u32,
        begin: impl IntoIterator<Item = BoundaryState>,
    ) -> Result<usize, Error> {
        let library: &PartLibrary = self.encoder.part_library();
        let mut pending: Vec<PreparedPosition> =
            begin.into_iter().map(|state| (class, state)).collect();
        let mut seen: FxHashSet<PreparedPosition> = pending.iter().copied().collect();
        let mut count = 0;
        while let Some((class, boundaries)) = pending.pop() {
            let key = PartPositionKey { name: self.table.name(class), boundaries };
            // Where the part can only end, nothing is inside.
            if library.contains(&key) || self.table.bytes(class).is_empty() {
                continue;
            }
            let (tokens, reached) = self.position((class, boundaries))?;
            let first_bytes = (self.table.bytes(class), self.table.may_end(class));
            if count == MAX_POSITIONS || !library.insert(key, first_bytes, tokens) {
                break;
            }
            count += 1;
            pending.extend(reached.into_iter().filter(|&next| seen.insert(next)));
        }
        Ok(count)
    }

    /// Returns the tokens at a position, and the positions between characters that they lead to.
    fn position(
        &mut self,
        (class, boundaries): PreparedPosition,
    ) -> Result<(PartTokens, Vec<PreparedPosition>), Error> {
        let pretoken = PretokenState::PLAIN;
        let reader = Arc::clone(self.keys.machine());
        let words = self.vocabulary.len().div_ceil(32);
        let mut settled = [vec![0; words], vec![0; words]];
        let (mut unsettled, mut reached) = (Vec::new(), Vec::new());
        let from = JointTarget {
            state: reader.begin(class),
            splitter_state: splitter_state(boundaries),
            pretoken,
        };
        for boundary in BOUNDARIES {
            let begins = boundary != Boundary::Inside;
            let sources = TokenSources { language_targets: &mut self.language_targets, free: None };
            let context = ProductContext {
                keys: &self.keys,
                machine: &*reader,
                vocabulary: self.vocabulary,
                encoder: self.encoder,
                special: &[],
                open_pieces: &self.open_pieces,
                begin: TextBegin::Anywhere,
            };
            for (target, tokens) in tokens(context, sources, from, boundary, TokenChoice::All)? {
                let boundaries = target.splitter_state.boundaries;
                let mut open = tokens.into_set();
                if let ReaderState::Inside(class) = reader.meaning(target.state) {
                    let next = (class, boundaries);
                    if self.encoder.splitter().is_between_characters(target.splitter_state) {
                        reached.push(next);
                    }
                    let settled = &mut settled[usize::from(begins)];
                    open = self.settle((next, target.pretoken), open, settled);
                }
                if !open.is_empty() {
                    let (pretoken, tokens) = (target.pretoken, Arc::new(open));
                    let group = UnsettledTokens { begins, boundaries, pretoken, tokens };
                    unsettled.push(Arc::new(group));
                }
            }
        }
        let settled = settled.map(|words| Arc::new(TokenSet::from_words(words)));
        Ok((PartTokens { settled, unsettled: unsettled.into() }, reached))
    }

    /// Sets the tokens that lead to a position and after which text of the part follows. Returns
    /// the others.
    fn settle(
        &mut self,
        ((class, boundaries), pretoken): (PreparedPosition, PretokenState),
        tokens: TokenSet,
        settled: &mut [u32],
    ) -> TokenSet {
        let encoder = self.encoder;
        let state = splitter_state(boundaries);
        if encoder.splitter().is_between_characters(state) {
            if encoder.pretoken_may_end(pretoken) && self.goes_on(class, boundaries) {
                tokens.add_to(settled);
                return TokenSet::List(Vec::new());
            }
            return tokens;
        }
        if pretoken != PretokenState::PLAIN {
            return tokens;
        }
        let next = self.next_bytes(class, boundaries);
        if next.is_empty() {
            return tokens;
        }
        let mut open = tokens.into_list();
        open.retain(|&token| {
            let follows = next.iter().any(|&byte| encoder.may_follow(token, byte));
            if follows {
                patch(settled, &[token], &[]);
            }
            !follows
        });
        open.shrink_to_fit();
        TokenSet::List(open)
    }

    /// Returns `true` if some character inside the part begins a pre-token behind which every text
    /// may follow.
    fn goes_on(&self, class: u32, boundaries: BoundaryState) -> bool {
        let splitter = self.encoder.splitter();
        let state = splitter_state(boundaries);
        let opens = |byte: u8| {
            let is_inside = self.table.step(class, byte).is_some_and(|next| next != END);
            is_inside
                && [Boundary::Pretoken, Boundary::Added].into_iter().any(|boundary| {
                    let next = splitter.step(state, byte, boundary);
                    next.is_some_and(|next| {
                        self.encoder.unsettled_boundaries().is_open(splitter, next.boundaries)
                    })
                })
        };
        !splitter.is_in_added_token(state) && (0..128).any(opens)
    }

    /// Returns the tokens of one byte that continue a character and after which text of the part
    /// follows.
    fn next_bytes(&mut self, class: u32, boundaries: BoundaryState) -> Arc<[u32]> {
        if let Some(known) = self.next_bytes.get(&(class, boundaries)) {
            return Arc::clone(known);
        }
        let encoder = self.encoder;
        let mut found = Vec::new();
        for byte in 0x80..=0xbf {
            let Some(class) = self.table.step(class, byte).filter(|&next| next != END) else {
                continue;
            };
            let Some((token, next)) = self.byte_token(boundaries, byte) else { continue };
            let follows = match encoder.splitter().is_between_characters(next) {
                true => self.goes_on(class, next.boundaries),
                false => {
                    let further = self.next_bytes(class, next.boundaries);
                    further.iter().any(|&further| encoder.may_follow(token, further))
                }
            };
            if follows {
                found.push(token);
            }
        }
        let found: Arc<[u32]> = found.into();
        self.next_bytes.insert((class, boundaries), Arc::clone(&found));
        found
    }

    /// Returns the token of one byte that continues a character, and the state after it.
    fn byte_token(&self, boundaries: BoundaryState, byte: u8) -> Option<(u32, SplitterState)> {
        let (encoder, splitter) = (self.encoder, self.encoder.splitter());
        let state = splitter_state(boundaries);
        let Some(symbol) = encoder.symbol(byte) else {
            return Some((
                encoder.byte_token(byte)?,
                splitter.step_byte_token(state, byte, Boundary::Inside)?,
            ));
        };
        let is_plain = encoder.origin(symbol) == TokenOrigin::Merged
            && encoder.pretoken_step(&self.open_pieces, PretokenState::PLAIN, symbol, false)
                == Some(PretokenState::PLAIN);
        let next = splitter.step(state, byte, Boundary::Inside)?;
        (is_plain && !splitter.is_in_added_token(next)).then_some((symbol, next))
    }
}

/// Returns the states between characters in which a splitter may be after a text.
pub(crate) fn states_after(encoder: &BpeEncoder, text: &[u8]) -> Vec<BoundaryState> {
    let splitter = encoder.splitter();
    let mut states = vec![splitter.start()];
    for &byte in text {
        let mut next: Vec<SplitterState> = Vec::new();
        for &state in &states {
            for boundary in BOUNDARIES {
                let steps = [
                    splitter.step(state, byte, boundary),
                    splitter.step_byte_token(state, byte, boundary),
                ];
                for after in steps.into_iter().flatten() {
                    if !next.contains(&after) {
                        next.push(after);
                    }
                }
            }
        }
        states = next;
    }
    states.retain(|&state| splitter.is_between_characters(state));
    states.into_iter().map(|state| state.boundaries).collect()
}

/// Returns a state of a splitter without a normalizer.
pub(crate) fn splitter_state(boundaries: BoundaryState) -> SplitterState {
    SplitterState { boundaries, filter: FilterState::WEAKEST }
}
