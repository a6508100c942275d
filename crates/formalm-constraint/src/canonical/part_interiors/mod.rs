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
//!
//! With a normalizer, the text of the part is one that it leaves unchanged, whatever came before. The
//! language must then go on after the part with some text that it leaves unchanged, too.

mod in_language;
mod part_reader;
mod part_table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use formalm_core::{ByteSet, Error};
use formalm_machines::{IdentityClasses, MaskClasses, StateClasses};
use formalm_vocabulary::Vocabulary;
use formalm_vocabulary::bpe::{
    BOUNDARIES, Boundary, BoundaryState, BpeEncoder, PartLibrary, PartPositionKey, PartTokens,
    PretokenState, SplitterState, TokenOrigin, TokenSet, UnsettledTokens,
};
use formalm_vocabulary::normalization::FilterState;
use formalm_vocabulary::unigram::OpenPiecesTable;
use rustc_hash::FxHashMap;

use self::part_reader::{PartReader, ReaderState};
use self::part_table::{END, PartTable};
pub(crate) use self::part_table::{
    Explored, ExploredPart, NamedPart, PartPlace, explore, explore_named,
};
use super::joint_targets::{
    JointTarget, TargetGroups, TokenChoice, TokenSources, split_by_filter, tokens,
};
use super::language_targets::LanguageTargetCache;
use super::{ProductContext, TextBegin};
use crate::mask::patch;

/// Maximum number of positions that are prepared of one part, those first that few tokens lead to.
/// Chosen, not measured.
const MAX_POSITIONS: usize = 4096;

/// A position to prepare, not after pieces of a whole token: the class and the state of the splitter.
type PreparedPosition = (u32, BoundaryState);

/// The tokens of a position as they are found: settled or not by one character after them.
struct FoundTokens {
    settled: [TokenSet; 2],
    /// The others, with the position between characters that they lead to inside the part, if any.
    unsettled: Vec<(Option<PreparedPosition>, Group)>,
    /// The positions between characters that tokens lead to.
    reached: Vec<PreparedPosition>,
}

impl FoundTokens {
    fn next_tokens(&self) -> Option<NextTokens> {
        let groups = self.unsettled.iter().map(|(_, group)| (group.begins, &group.tokens));
        NextTokens::few([&self.settled[0], &self.settled[1]], groups)
    }
}

/// The tokens that continue a pre-token at a position.
struct NextTokens {
    /// `true` if others may begin one.
    may_begin: bool,
    settled: Vec<u32>,
    others: Vec<u32>,
}

impl NextTokens {
    /// Returns `None` if the tokens are many.
    fn few<'a>(
        settled: [&TokenSet; 2],
        unsettled: impl Iterator<Item = (bool, &'a TokenSet)>,
    ) -> Option<NextTokens> {
        let [TokenSet::List(inside), begins] = settled else { return None };
        let (mut may_begin, mut others) = (!begins.is_empty(), Vec::new());
        for (begins, tokens) in unsettled {
            let TokenSet::List(list) = tokens else { return None };
            match begins {
                true => may_begin = true,
                false => others.extend_from_slice(list),
            }
        }
        Some(NextTokens { may_begin, settled: inside.clone(), others })
    }
}

/// Returns the tokens that continue a pre-token at a prepared position, if they are few.
fn next_tokens(tokens: &PartTokens) -> Option<NextTokens> {
    let groups = tokens.unsettled.iter().map(|group| (group.begins, &*group.tokens));
    NextTokens::few([&tokens.settled[0], &tokens.settled[1]], groups)
}

/// Tokens that lead to one state, see [`UnsettledTokens`].
struct Group {
    begins: bool,
    splitter_state: SplitterState,
    pretoken: PretokenState,
    tokens: TokenSet,
}

/// Prepares the positions of one part.
pub(crate) struct PartPreparation<'a> {
    table: Arc<PartTable>,
    /// The names of each class, if the machine names them.
    names: Option<Vec<Vec<u128>>>,
    keys: IdentityClasses<PartReader>,
    vocabulary: &'a Vocabulary,
    encoder: &'a BpeEncoder,
    open_pieces: OpenPiecesTable,
    language_targets: LanguageTargetCache,
    /// The classes from which text that no normalizer changes leads to an end of the part.
    ending: Vec<bool>,
    /// Inside a character: the tokens of one byte after which text of the part follows.
    next_bytes: FxHashMap<(u32, SplitterState), Arc<[u32]>>,
}

impl<'a> PartPreparation<'a> {
    /// Creates a preparation in which nothing is known.
    pub(crate) fn new(
        (table, names): (&Arc<PartTable>, Option<Vec<Vec<u128>>>),
        vocabulary: &'a Vocabulary,
        encoder: &'a BpeEncoder,
    ) -> PartPreparation<'a> {
        let is_kept = |&byte: &u8| match encoder.splitter().text_filter() {
            Some(filter) => byte < 0x80 && filter.step(FilterState::WEAKEST, byte).is_some(),
            None => true,
        };
        let mut kept = ByteSet::default();
        (0..=255).filter(is_kept).for_each(|byte| kept.insert(byte));
        PartPreparation {
            ending: table.ending_with(kept),
            table: Arc::clone(table),
            names,
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
        let found = self.find(class, begin)?;
        let index: FxHashMap<PreparedPosition, usize> =
            found.iter().enumerate().map(|(at, &(position, _))| (position, at)).collect();
        let after = |next: PreparedPosition| match index.get(&next) {
            Some(&at) => found[at].1.next_tokens(),
            None => next_tokens(&*library.peek(self.keys_of(next).first()?)?),
        };
        let mut count = 0;
        for (position, tokens) in &found {
            let mut keys = self.keys_of(*position);
            keys.retain(|key| !library.contains(key));
            // Positions that machines name are found by their names alone.
            let first_bytes = match self.names {
                Some(_) => None,
                None => Some((self.table.bytes(position.0), self.table.may_end(position.0))),
            };
            if !library.insert(&keys, first_bytes, self.settled_by_next(tokens, after)) {
                break;
            }
            count += keys.len();
        }
        Ok(count)
    }

    /// Returns the names of a position, with the state of the splitter.
    fn keys_of(&self, (class, boundaries): PreparedPosition) -> Vec<PartPositionKey> {
        let names = match &self.names {
            Some(names) => names[class as usize].clone(),
            None => vec![self.table.name(class)],
        };
        names.into_iter().map(|name| PartPositionKey { name, boundaries }).collect()
    }

    /// Finds the tokens of the positions that tokens lead to, if these are not prepared.
    fn find(
        &mut self,
        class: u32,
        begin: impl IntoIterator<Item = BoundaryState>,
    ) -> Result<Vec<(PreparedPosition, FoundTokens)>, Error> {
        let mut others: VecDeque<PreparedPosition> =
            begin.into_iter().map(|state| (class, state)).collect();
        // Positions that several lead to, and what follows them, come before the others.
        let mut first: VecDeque<PreparedPosition> = VecDeque::new();
        let mut is_done: FxHashMap<PreparedPosition, bool> =
            others.iter().map(|&position| (position, false)).collect();
        let mut found = Vec::new();
        while found.len() < MAX_POSITIONS {
            let next = first.pop_front().map(|position| (position, true));
            let next = next.or_else(|| others.pop_front().map(|position| (position, false)));
            let Some((position, is_first)) = next else { break };
            if is_done.insert(position, true) == Some(true) {
                continue;
            }
            let keys = self.keys_of(position);
            let is_known = keys.iter().all(|key| self.encoder.part_library().contains(key));
            // Where the part can only end, nothing is inside.
            if is_known || self.table.bytes(position.0).is_empty() {
                continue;
            }
            let tokens = self.position(position)?;
            for &next in &tokens.reached {
                match is_done.get(&next) {
                    None if !is_first => others.push_back(next),
                    None | Some(false) => first.push_back(next),
                    Some(true) => {}
                }
                is_done.entry(next).or_insert(false);
            }
            found.push((position, tokens));
        }
        Ok(found)
    }

    /// Returns the tokens of a position. Where one more token decides, tokens that are unsettled are
    /// settled or left out. `after` returns the tokens of other positions.
    fn settled_by_next(
        &self,
        tokens: &FoundTokens,
        after: impl Fn(PreparedPosition) -> Option<NextTokens>,
    ) -> PartTokens {
        let mut newly_settled = [Vec::new(), Vec::new()];
        let mut unsettled = Vec::new();
        for (next, group) in &tokens.unsettled {
            let mut open = group.tokens.clone();
            let next = next.filter(|_| group.pretoken == PretokenState::PLAIN);
            // Tokens that leave a part at once are not among those after it, nor are those that a
            // normalizer admits there only after some texts.
            let may_leave = next
                .is_some_and(|(class, _)| self.table.may_end(class) || self.depends_on_text(class));
            if let Some(NextTokens { may_begin, settled, others }) = next.and_then(&after) {
                let mut list = open.into_list();
                list.retain(|&token| {
                    let follows = |&next: &u32| self.encoder.may_follow(token, next);
                    let is_settled = settled.iter().any(follows);
                    if is_settled {
                        newly_settled[usize::from(group.begins)].push(token);
                    }
                    !is_settled && (may_leave || may_begin || others.iter().any(follows))
                });
                open = TokenSet::List(list);
            }
            if !open.is_empty() {
                let Group { begins, splitter_state, pretoken, .. } = *group;
                let tokens = Arc::new(open);
                unsettled.push(Arc::new(UnsettledTokens {
                    begins,
                    splitter_state,
                    pretoken,
                    tokens,
                }));
            }
        }
        let words = self.vocabulary.len().div_ceil(32);
        let [inside, begins] = newly_settled;
        let settled = [(&tokens.settled[0], inside), (&tokens.settled[1], begins)];
        let settled = settled.map(|(known, more)| {
            let mut all = vec![0; words];
            known.add_to(&mut all);
            patch(&mut all, &more, &[]);
            Arc::new(TokenSet::from_words(all))
        });
        PartTokens { settled, unsettled: unsettled.into() }
    }

    /// Returns `true` if what may follow inside the part may depend on what a normalizer's filter
    /// has read.
    fn depends_on_text(&self, class: u32) -> bool {
        let filter = self.encoder.splitter().text_filter();
        let bytes = self.table.bytes(class);
        filter.is_some_and(|filter| bytes.iter().any(|byte| filter.is_dependent(byte)))
    }

    /// Returns the tokens at a position.
    fn position(&mut self, (class, boundaries): PreparedPosition) -> Result<FoundTokens, Error> {
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
            let groups = tokens(context, sources, from, boundary, TokenChoice::All)?;
            for (target, tokens) in separated(context, groups) {
                let JointTarget { splitter_state, pretoken, .. } = target;
                let mut tokens = tokens.into_set();
                let mut next = None;
                if let ReaderState::Inside(class) = reader.meaning(target.state)
                    && !self.table.is_unread(class)
                {
                    if self.encoder.splitter().is_between_characters(splitter_state) {
                        let reached_here = (class, splitter_state.boundaries);
                        reached.push(reached_here);
                        next = Some(reached_here);
                    }
                    let settled = &mut settled[usize::from(begins)];
                    tokens = self.settle((class, splitter_state, pretoken), tokens, settled);
                }
                if !tokens.is_empty() {
                    unsettled.push((next, Group { begins, splitter_state, pretoken, tokens }));
                }
            }
        }
        let settled = settled.map(TokenSet::from_words);
        Ok(FoundTokens { settled, unsettled, reached })
    }

    /// Sets the tokens that lead to a position and after which text of the part follows. Returns
    /// the others.
    fn settle(
        &mut self,
        (class, state, pretoken): (u32, SplitterState, PretokenState),
        tokens: TokenSet,
        settled: &mut [u32],
    ) -> TokenSet {
        let encoder = self.encoder;
        if encoder.splitter().is_between_characters(state) {
            if encoder.pretoken_may_end(pretoken) && self.goes_on(class, state.boundaries) {
                tokens.add_to(settled);
                return TokenSet::List(Vec::new());
            }
            return tokens;
        }
        if pretoken != PretokenState::PLAIN {
            return tokens;
        }
        let next = self.next_bytes(class, state);
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
    /// may follow, and text of the part that no normalizer changes.
    fn goes_on(&self, class: u32, boundaries: BoundaryState) -> bool {
        let splitter = self.encoder.splitter();
        let state = splitter_state(boundaries);
        let opens = |byte: u8| {
            let next = self.table.step(class, byte).filter(|&next| next != END);
            let is_inside = next.is_some_and(|next| self.ending[next as usize]);
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
    fn next_bytes(&mut self, class: u32, state: SplitterState) -> Arc<[u32]> {
        if let Some(known) = self.next_bytes.get(&(class, state)) {
            return Arc::clone(known);
        }
        let encoder = self.encoder;
        let mut found = Vec::new();
        for byte in 0x80..=0xbf {
            let next = self.table.step(class, byte).filter(|&next| next != END);
            let Some(class) = next.filter(|&next| !self.table.is_unread(next)) else {
                continue;
            };
            let Some((token, next)) = self.byte_token(state, byte) else { continue };
            let follows = match encoder.splitter().is_between_characters(next) {
                true => self.goes_on(class, next.boundaries),
                false => {
                    let further = self.next_bytes(class, next);
                    further.iter().any(|&further| encoder.may_follow(token, further))
                }
            };
            if follows {
                found.push(token);
            }
        }
        let found: Arc<[u32]> = found.into();
        self.next_bytes.insert((class, state), Arc::clone(&found));
        found
    }

    /// Returns the token of one byte that continues a character, and the state after it.
    fn byte_token(&self, state: SplitterState, byte: u8) -> Option<(u32, SplitterState)> {
        let (encoder, splitter) = (self.encoder, self.encoder.splitter());
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

/// Returns groups of tokens in which the filter of the normalizer is mixed between characters only.
fn separated<K: MaskClasses>(context: ProductContext<'_, K>, groups: TargetGroups) -> TargetGroups {
    let mut separate = TargetGroups::new();
    for (target, tokens) in groups {
        let state = target.splitter_state;
        match state.is_mixed() && !context.encoder.splitter().is_between_characters(state) {
            true => separate.extend(split_by_filter(context, target, &tokens)),
            false => separate.push((target, tokens)),
        }
    }
    separate
}

/// Returns a state of a splitter, in which the filter of the normalizer is in its weakest state.
pub(crate) fn splitter_state(boundaries: BoundaryState) -> SplitterState {
    SplitterState { boundaries, filter: FilterState::WEAKEST }
}
