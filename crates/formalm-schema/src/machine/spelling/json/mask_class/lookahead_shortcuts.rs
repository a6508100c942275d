//! Hints that spare a look-ahead most of its steps: repeated characters, strings that reject
//! nothing, and strings that differ from a reference along few bytes.

use std::sync::Arc;

use formalm_core::{CharSet, ClassCover, Error, MaskClassId, SetOnce, StateId, WIDE_PARTS};
use formalm_json::{JsonStringState, escapes::EscapePolicy};
use formalm_machines::{AlternativeStrings, CharRepetition, LiteralList};

use crate::machine::NO_RECORD;
use crate::machine::frame::{CharState, Frame, NameCandidates, ReaderPosition};
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::mask_class::lookahead::LookaheadState;
use crate::machine::spelling::json::mask_class::string_state_pairs::FIRST_STRING_CLASS;
use crate::solver::context::LanguageId;

/// Number of letters that must lead to one class for it to become the reference. Chosen, not
/// measured.
const MIN_LETTERS: usize = 14;

/// Maximum number of classes of names whose masks are joined. Chosen, not measured.
const MAX_NAME_CLASSES: usize = 8;

/// Maximum number of known names that are read apart from such masks. Chosen, not measured.
const MAX_KNOWN_NAMES: u32 = 256;

/// The repetition of characters that a class allows, as far as its frame shows it.
pub(crate) enum RepetitionHint {
    Repetition(CharRepetition),
    Nothing,
    /// Must be found out by reading.
    Unknown(MaskClassId),
}

impl LookaheadState<'_> {
    /// Returns the class as a pair of `string_states`, if it is inside a string.
    pub(crate) fn as_string_state(&mut self, class: MaskClassId) -> MaskClassId {
        let position = self.position(class);
        if class.number() >= FIRST_STRING_CLASS || self.is_free_string(position) {
            return class;
        }
        self.strings.class_of(&self.tables.reader, position).unwrap_or(class)
    }

    /// Returns `true` for the beginning of a known name where any other is allowed. Its mask is that
    /// of the other names but for a few suffixes.
    fn differs_from_free_name(&mut self, position: ReaderPosition) -> Result<bool, Error> {
        let other = self.unknown_name(position)?;
        Ok(other.is_some_and(|other| self.is_free_string(self.position(other))))
    }

    /// Returns how strings are escaped, if the string rejects nothing before its end.
    pub(crate) fn in_open_string(
        &mut self,
        class: MaskClassId,
    ) -> Result<Option<EscapePolicy>, Error> {
        let class = self.as_string_state(class);
        let position = self.position(class);
        if position.record != NO_RECORD
            || self.is_free_string(position)
            || self.differs_from_free_name(position)?
        {
            return Ok(None);
        }
        let tables = &mut *self.tables;
        let is_open = match position.frame {
            Frame::String { language, state, queries, escape: CharState::NONE, .. } => {
                let only_counts = tables
                    .reader
                    .values
                    .strings
                    .has_constant_verdicts(&tables.reader.values.core, queries)
                    && tables.remaining_chars(language, state)?.is_some();
                let core = &mut tables.reader.values.core;
                !only_counts && core.languages.is_always_viable(&core.base, language, state)?
            }
            // Of the names with a prefix, finitely many are known.
            Frame::Name { next_names, candidates, escape: CharState::NONE, .. } => {
                tables.reader.values.names().is_open_name(next_names, candidates.classes)?
            }
            _ => false,
        };
        Ok(is_open.then_some(tables.reader.values.core.options.escapes))
    }

    /// Returns the string that a class is inside of, if one automaton reads it and nothing else
    /// matters.
    pub(crate) fn in_text(&mut self, class: MaskClassId) -> Result<Option<JsonStringState>, Error> {
        let class = self.as_string_state(class);
        let position = self.position(class);
        if position.record != NO_RECORD || self.is_free_string(position) {
            return Ok(None);
        }
        let is_dropped = self.is_unbounded(position);
        let (language, state) = match position.frame {
            Frame::String { language, state, queries, escape: CharState::NONE, .. }
                if self
                    .tables
                    .reader
                    .values
                    .strings
                    .has_constant_verdicts(&self.tables.reader.values.core, queries)
                    && self.tables.remaining_chars(language, state)?.is_none() =>
            {
                (language, state)
            }
            Frame::Name { text: NO_RECORD, candidates, escape: CharState::NONE, .. } => {
                match self.tables.reader.values.strings.single_class(candidates.classes) {
                    Some((_, alive)) => alive,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        let machine = Arc::clone(self.tables.reader.values.core.languages.automaton(language));
        let escapes = self.tables.reader.values.core.options.escapes;
        let transient = if is_dropped { machine.transient_state(state)? } else { None };
        let fits = !is_dropped || transient.is_some();
        Ok(fits.then_some(JsonStringState { machine, state, escapes, transient }))
    }

    /// Returns the states of the automata that a name must satisfy one of, unless it is a known name.
    /// The start of a known name may be allowed for its own sake, or used up.
    pub(crate) fn in_unknown_name(
        &mut self,
        class: MaskClassId,
    ) -> Result<Option<AlternativeStrings>, Error> {
        let position = self.position(class);
        if position.record != NO_RECORD
            || self.is_free_string(position)
            || self.is_unbounded(position)
            || self.differs_from_free_name(position)?
        {
            return Ok(None);
        }
        let Frame::Name { next_names, text, candidates, escape: CharState::NONE, .. } =
            position.frame
        else {
            return Ok(None);
        };
        let values = &self.tables.reader.values;
        // What a test decides is only seen after the closing quote.
        let required = values.strings.get(candidates.classes).required_machines();
        let alive: Vec<(LanguageId, StateId)> = required.iter().flatten().copied().collect();
        let NameCandidates { from, to, .. } = candidates;
        if !(1..=MAX_NAME_CLASSES).contains(&alive.len()) || to - from > MAX_KNOWN_NAMES {
            return Ok(None);
        }
        let escapes = values.core.options.escapes;
        let mut exceptions = LiteralList::new(escapes);
        let depth = if from < to { values.records.length(text) as usize } else { 0 };
        for at in from..to {
            let name = values.name_tables.known_name(&values.core, next_names, at);
            if !name.is_char_boundary(depth) {
                return Ok(None);
            }
            exceptions.push(&name.as_bytes()[depth..]);
        }
        let states = alive.into_iter().map(|(language, state)| {
            let machine = Arc::clone(values.core.languages.automaton(language));
            JsonStringState { machine, state, escapes, transient: None }
        });
        Ok(Some(AlternativeStrings { states: states.collect(), exceptions }))
    }

    /// Returns the same class with its automaton in another state.
    pub(crate) fn in_text_at(
        &mut self,
        class: MaskClassId,
        state: StateId,
    ) -> Result<MaskClassId, Error> {
        let mut position = self.position(class);
        match &mut position.frame {
            Frame::String { state: at, .. } => *at = state,
            Frame::Name { candidates, .. } => {
                if let Some((which, (class, _))) =
                    self.tables.reader.values.strings.single_class(candidates.classes)
                {
                    let mut classes =
                        self.tables.reader.values.strings.get(candidates.classes).clone();
                    classes.machines[which] = Some((class, state));
                    candidates.classes = self.tables.reader.values.strings.intern(classes);
                }
            }
            _ => {}
        }
        self.class_of(position)
    }

    /// Returns the repetition of characters that the class allows.
    pub(crate) fn repetition(&mut self, class: MaskClassId) -> Result<RepetitionHint, Error> {
        let class = self.as_string_state(class);
        let position = self.position(class);
        let policy = self.tables.reader.values.core.options.escapes;
        if self.is_free_string(position) {
            return Ok(RepetitionHint::Repetition(char_repetition(policy, (0, None), class)));
        }
        if let Frame::String { language, state, queries, escape: CharState::NONE, .. } =
            position.frame
            && position.record == NO_RECORD
            && self
                .tables
                .reader
                .values
                .strings
                .has_constant_verdicts(&self.tables.reader.values.core, queries)
            && let Some(count) = self.tables.remaining_chars(language, state)?
        {
            let exit = self.as_free_string(position)?;
            return Ok(RepetitionHint::Repetition(char_repetition(policy, count, exit)));
        }
        if class.number() < FIRST_STRING_CLASS || self.possible_bytes(position)?.is_some() {
            return Ok(RepetitionHint::Nothing);
        }
        Ok(match self.strings.is_free_string(&mut self.tables.reader, class)? {
            true => RepetitionHint::Repetition(char_repetition(policy, (0, None), class)),
            false => RepetitionHint::Unknown(class),
        })
    }

    /// Returns the class of an unknown name, for one that may still become a known name.
    pub(crate) fn unknown_name(
        &mut self,
        position: ReaderPosition,
    ) -> Result<Option<MaskClassId>, Error> {
        let Frame::Name { object, next_names, candidates, escape: CharState::NONE, .. } =
            position.frame
        else {
            return Ok(None);
        };
        let known = candidates.from < candidates.to
            && candidates.classes != NO_QUERIES
            && self.tables.abstraction.drops_name(
                &self.tables.reader.values,
                next_names,
                candidates.classes,
            );
        if !known || position.record != NO_RECORD {
            return Ok(None);
        }
        let candidates = NameCandidates { from: 0, to: 0, ..candidates };
        let (text, escape) = (NO_RECORD, CharState::NONE);
        let frame = Frame::Name { object, next_names, text, candidates, escape };
        self.class_of(ReaderPosition { frame, ..position }).map(Some)
    }

    /// Returns the suffixes of known names after which alone the class differs from `other`, or
    /// which are the only ones allowed.
    pub(crate) fn known_name_suffixes(
        &mut self,
        class: MaskClassId,
        other: Option<MaskClassId>,
    ) -> Result<Option<LiteralList>, Error> {
        let policy = self.tables.reader.values.core.options.escapes;
        let Frame::Name { object, next_names, text, candidates, escape: CharState::NONE } =
            self.position(class).frame
        else {
            return Ok(None);
        };
        let fits = match other.map(|other| self.position(other).frame) {
            None => candidates.classes == NO_QUERIES,
            Some(Frame::Name {
                object: same,
                text: NO_RECORD,
                candidates: NameCandidates { from, to, classes },
                ..
            }) => {
                (same, from == to, classes) == (object, true, candidates.classes)
                    && self.tables.reader.values.names().is_open_name(next_names, classes)?
            }
            Some(_) => false,
        };
        if !fits || text == NO_RECORD || policy == EscapePolicy::Any {
            return Ok(None);
        }
        let depth = self.tables.reader.values.records.length(text) as usize;
        let mut texts = LiteralList::new(policy);
        for at in candidates.from..candidates.to {
            if other.is_none()
                && !self.tables.reader.values.names().known_name_viable(next_names, at)?
            {
                continue;
            }
            let name = self.tables.reader.values.name_tables.known_name(
                &self.tables.reader.values.core,
                next_names,
                at,
            );
            if !name.is_char_boundary(depth) {
                return Ok(None);
            }
            let rest = &name.as_bytes()[depth..];
            let is_unescaped = |byte: u8| {
                byte >= 0x20
                    && !b"\"\\".contains(&byte)
                    && (byte < 0x80 || policy == EscapePolicy::Minimal)
            };
            if !rest.iter().copied().all(is_unescaped) {
                // The suffix has other spellings.
                return Ok(None);
            }
            texts.push(rest);
        }
        Ok(Some(texts))
    }

    /// Returns the class that most letters lead to.
    pub(crate) fn common_successor(
        &mut self,
        class: MaskClassId,
    ) -> Result<Option<MaskClassId>, Error> {
        let mut counts: Vec<(MaskClassId, usize)> = Vec::new();
        for byte in b'a'..=b'z' {
            let Some(next) = self.step(class, byte)? else { continue };
            match counts.iter_mut().find(|(known, _)| *known == next) {
                Some((_, count)) => *count += 1,
                None => counts.push((next, 1)),
            }
        }
        let most = counts.into_iter().max_by_key(|&(_, count)| count);
        Ok(most
            .filter(|&(next, count)| count >= MIN_LETTERS && next != class)
            .map(|(next, _)| next))
    }
}

/// Returns a repetition of `min` to `max` characters of a string that is constrained by nothing
/// else.
fn char_repetition(
    policy: EscapePolicy,
    (min, max): (u32, Option<u32>),
    exit: MaskClassId,
) -> CharRepetition {
    static PRINTABLE: [SetOnce<(CharSet, ClassCover, u128)>; 3] = [const { SetOnce::new() }; 3];
    let (class, cover, ascii) = PRINTABLE[policy as usize].get_or_init(|| {
        let (class, cover) = printable(policy);
        let ascii = (0..128u8).filter(|&byte| class.contains(char::from(byte)));
        let ascii = ascii.fold(0, |set, byte| set | 1u128 << byte);
        (class, cover, ascii)
    });
    let (class, wide, ascii) = (class.clone(), [*cover; WIDE_PARTS], *ascii);
    CharRepetition { class, ascii, wide, min, max, exit: Some(exit), json_string: Some(policy) }
}

/// Returns the characters that need no escape.
fn printable(policy: EscapePolicy) -> (CharSet, ClassCover) {
    let ascii = CharSet::from_ranges([(' ', '!'), ('#', '['), (']', '\u{7F}')]);
    let wide = CharSet::from_ranges([('\u{80}', char::MAX)]);
    match policy {
        EscapePolicy::Ascii => (ascii, ClassCover::None),
        _ => (ascii.union(&wide), ClassCover::Full),
    }
}
