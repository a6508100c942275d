//! The look-ahead that computes masks: an implementation of [`formalm_machines::MaskAutomaton`] on
//! mask classes.
//!
//! ```text
//! class id:   0 …              interned mask classes, kept
//!             2³⁰ …            positions met during this look-ahead, dropped with it
//!             2³¹ …            (string, state) pairs of `string_states`
//! ```
//!
//! A mask visits many more positions than inputs reach, so transient positions are not kept.

use std::cell::RefCell;

use formalm_core::{ByteSet, Error, Interner, LazyDfa, MaskClassId, StateId};
use formalm_json::{JsonStringState, escapes::EscapePolicy};
use formalm_machines::{
    AcceptingMaskAutomaton, AlternativeStrings, CharRepetition, ClassAutomaton, LiteralList,
    MaskShortcuts, NoLexicalMachine, StringClasses, ValueClasses, ValueEnd, self_loop_repetition,
};

use crate::formula::TRUE;
use crate::machine::NO_RECORD;
use crate::machine::frame::{CharState, Frame, NameCandidates, QueriesId, ReaderPosition};
use crate::machine::lookahead_tables::LockedTables;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::spelling::json::mask_class::lookahead_shortcuts::RepetitionHint;
use crate::machine::spelling::json::mask_class::string_state_pairs::{
    FIRST_STRING_CLASS, StringStates, StringStep,
};
use crate::machine::spelling::json::possible_bytes::{known_name_bytes, possible_bytes};

/// The first id of classes that are dropped with the look-ahead.
const FIRST_TRANSIENT_CLASS: u32 = 1 << 30;

/// ASCII digits, as bits.
const DIGITS: u128 = 0x3FF << b'0';

/// Minimum number of characters that return to the same class for a loop hint to pay off. Chosen,
/// not measured.
const MIN_LOOP_CHARS: u32 = 12;

/// Maximum number of live bytes for which a string is tried byte by byte. Chosen, not measured.
const MAX_LIVE_BYTES: usize = 24;

/// One look-ahead. Everything it visits is dropped with it.
#[derive(Debug)]
pub(crate) struct SchemaLookahead<'a> {
    state: RefCell<LookaheadState<'a>>,
}

/// The locked tables, and the positions visited by this look-ahead.
#[derive(Debug)]
pub(crate) struct LookaheadState<'a> {
    pub(crate) tables: LockedTables<'a>,
    positions: Interner<ReaderPosition>,
    pub(crate) strings: StringStates,
    /// The number of recorded inputs before the look-ahead.
    records: usize,
    /// The number of query states before the look-ahead, and the sizes of the tables that retain
    /// some of them.
    queries: (usize, [usize; 3]),
}

impl<'a> SchemaLookahead<'a> {
    pub(crate) fn new(mut tables: LockedTables<'a>) -> SchemaLookahead<'a> {
        tables.reader.values.core.languages.begin_lookahead();
        let (positions, strings) = std::mem::take(&mut tables.masks.spare_tables);
        let records = tables.reader.values.records.len();
        let queries = (tables.reader.values.strings.len(), tables.retained_counts());
        SchemaLookahead {
            state: RefCell::new(LookaheadState { tables, positions, strings, records, queries }),
        }
    }
}

impl Drop for LookaheadState<'_> {
    fn drop(&mut self) {
        // Inputs recorded meanwhile belong to positions that nothing refers to.
        let tables = &mut *self.tables;
        self.positions.clear();
        self.strings.clear();
        tables.masks.spare_tables =
            (std::mem::take(&mut self.positions), std::mem::take(&mut self.strings));
        tables.reader.values.records.truncate(self.records);
        if tables.reader.values.core.languages.end_lookahead()
            && self.queries.1 == tables.retained_counts()
        {
            tables.reader.values.strings.truncate(self.queries.0);
        }
    }
}

impl LookaheadState<'_> {
    /// Returns the position of a class.
    pub(crate) fn position(&self, class: MaskClassId) -> ReaderPosition {
        let number = class.number();
        if number >= FIRST_STRING_CLASS {
            return self.strings.position(class);
        }
        match number.checked_sub(FIRST_TRANSIENT_CLASS) {
            Some(at) => *self.positions.get(at),
            None => self.tables.visited.class_position(number),
        }
    }

    /// Returns the class of a position, a transient one unless it is inside a string.
    pub(crate) fn class_of(&mut self, position: ReaderPosition) -> Result<MaskClassId, Error> {
        let mut position = position;
        if let Frame::String { language, state, escape: CharState::NONE, .. } = position.frame
            && state == self.tables.reader.values.core.languages.automaton(language).start()
        {
            position.frame = self.tables.relaxed_string(position.frame)?;
        }
        if !self.is_free_string(position)
            && let Some(class) = self.strings.class_of(&self.tables.reader, position)
        {
            return Ok(class);
        }
        Ok(MaskClassId::from_number(FIRST_TRANSIENT_CLASS + self.positions.intern(position)))
    }

    /// Returns the class after a byte, `None` if no instance continues so.
    #[inline]
    pub(crate) fn step(
        &mut self,
        class: MaskClassId,
        byte: u8,
    ) -> Result<Option<MaskClassId>, Error> {
        if class.number() >= FIRST_STRING_CLASS {
            match self.strings.step(&mut self.tables.reader, class, byte)? {
                StringStep::To(next) => return Ok(Some(next)),
                StringStep::Single(position) => return self.class_of(position).map(Some),
                StringStep::Dead => return Ok(None),
                StringStep::Unknown => {}
            }
        }
        let before = self.position(class);
        let Some(after) = self.tables.reader.read_byte(before, byte)? else { return Ok(None) };
        let after = self.tables.mask_abstraction(after)?;
        if after == before {
            return Ok(Some(class));
        }
        self.class_of(after).map(Some)
    }

    /// Returns `true` if a position is inside an unconstrained string or name, between two
    /// characters.
    pub(crate) fn is_free_string(&self, position: ReaderPosition) -> bool {
        if position.record != NO_RECORD {
            return false;
        }
        let core = &self.tables.reader.values.core;
        match position.frame {
            Frame::String { language, state, queries, escape: CharState::NONE, .. } => {
                core.languages.language_formula(language) == TRUE
                    && state == core.languages.automaton(language).start()
                    && self
                        .tables
                        .reader
                        .values
                        .strings
                        .has_constant_verdicts(&self.tables.reader.values.core, queries)
            }
            Frame::Name { text: NO_RECORD, candidates, escape: CharState::NONE, .. } => {
                self.tables
                    .reader
                    .values
                    .strings
                    .allows_any_name(&self.tables.reader.values.core, candidates.classes)
                    && self
                        .tables
                        .reader
                        .values
                        .strings
                        .has_constant_verdicts(&self.tables.reader.values.core, candidates.classes)
            }
            _ => false,
        }
    }

    /// Returns `true` if a position is inside a string whose states are dropped with the
    /// look-ahead.
    pub(crate) fn is_unbounded(&self, position: ReaderPosition) -> bool {
        let core = &self.tables.reader.values.core;
        let of = |queries: QueriesId| {
            let mut texts = self.tables.reader.values.strings.get(queries).iter().flatten();
            texts.any(|&(text, _)| core.languages.is_unbounded(text))
        };
        match position.frame {
            Frame::String { language, queries, .. } => {
                core.languages.is_unbounded(language) || of(queries)
            }
            Frame::Name { candidates, .. } => of(candidates.classes),
            _ => false,
        }
    }

    /// Returns the same position in an unconstrained string.
    pub(crate) fn as_free_string(
        &mut self,
        position: ReaderPosition,
    ) -> Result<MaskClassId, Error> {
        let Frame::String { parent, queries, .. } = position.frame else {
            return self.class_of(position);
        };
        let core = &mut self.tables.reader.values.core;
        let Some(language) = core.languages.language(&core.base, TRUE)? else {
            return self.class_of(position);
        };
        let state = self.tables.reader.values.core.languages.automaton(language).start();
        let frame = Frame::String { language, state, queries, escape: CharState::NONE, parent };
        self.class_of(ReaderPosition { frame, ..position })
    }

    /// Returns the bytes with which known names continue.
    fn known_name_bytes(&self, frame: Frame) -> Option<ByteSet> {
        known_name_bytes(&self.tables.reader.values, frame)
    }

    /// Returns a small superset of the live bytes, `None` if there is none.
    pub(crate) fn possible_bytes(
        &mut self,
        position: ReaderPosition,
    ) -> Result<Option<ByteSet>, Error> {
        match position.frame {
            // Computing the live bytes of a state that is met once costs more than reading it.
            Frame::String { escape: CharState::NONE, .. } if self.is_unbounded(position) => {
                Ok(None)
            }
            Frame::String { escape: CharState::NONE, .. } => {
                self.string_possible_bytes(position.frame)
            }
            frame => {
                let tables = &mut *self.tables;
                let (values, gaps) = (&tables.reader.values, &tables.reader.spelling.gaps);
                let possible = possible_bytes(values, gaps, frame);
                match (frame, possible) {
                    (Frame::Value { obligation, .. }, Some(possible)) => {
                        let isolated = &mut tables.masks.isolated;
                        let first = isolated.first_bytes(&mut tables.reader, obligation);
                        Ok(Some(possible.intersection(first)))
                    }
                    _ => Ok(possible),
                }
            }
        }
    }

    fn string_possible_bytes(&mut self, frame: Frame) -> Result<Option<ByteSet>, Error> {
        let Frame::String { language, state, .. } = frame else { return Ok(None) };
        if self.tables.reader.values.core.languages.language_formula(language) == TRUE
            || self.tables.remaining_chars(language, state)?.is_some()
        {
            return Ok(None);
        }
        let automaton = self.tables.reader.values.core.languages.automaton(language);
        let mut live = match automaton.first_bytes(state) {
            Some(first) => first,
            None => automaton.live_bytes(state)?,
        };
        if live.len() > MAX_LIVE_BYTES {
            return Ok(None);
        }
        live.insert(b'"');
        live.insert(b'\\');
        Ok(Some(live))
    }
}

impl AcceptingMaskAutomaton for SchemaLookahead<'_> {
    fn is_accepting_class(&self, class: MaskClassId) -> Result<bool, Error> {
        let state = &mut *self.state.borrow_mut();
        let position = state.position(class);
        Ok(state.tables.reader.is_end(position))
    }
}

impl ClassAutomaton for SchemaLookahead<'_> {
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        self.state.borrow_mut().step(class, byte)
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        let state = &mut *self.state.borrow_mut();
        let position = state.position(class);
        let mut set = ByteSet::default();
        let tried = match state.possible_bytes(position)? {
            Some(few) => few,
            None => {
                let mut all = ByteSet::default();
                (0x20..=0xF4).for_each(|byte| all.insert(byte));
                all
            }
        };
        for byte in tried.iter() {
            if state.step(class, byte)?.is_some() {
                set.insert(byte);
            }
        }
        Ok(set)
    }

    fn char_repetition(&self, class: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        let found = self.state.borrow_mut().repetition(class)?;
        match found {
            RepetitionHint::Repetition(repetition) => Ok(Some(repetition)),
            RepetitionHint::Nothing => Ok(None),
            RepetitionHint::Unknown(class) => self_loop_repetition(self, class, MIN_LOOP_CHARS),
        }
    }
}

impl MaskShortcuts for SchemaLookahead<'_> {
    const KNOWS_POSSIBLE_BYTES: bool = true;

    fn possible_bytes(&self, class: MaskClassId) -> Result<Option<ByteSet>, Error> {
        if class.number() >= FIRST_STRING_CLASS {
            // Reading a byte is as fast as computing this set.
            return Ok(None);
        }
        let state = &mut *self.state.borrow_mut();
        state.possible_bytes(state.position(class))
    }

    fn accepts_any_of(
        &self,
        class: MaskClassId,
        characters: u128,
        _max_len: u8,
    ) -> Result<bool, Error> {
        if characters & !DIGITS != 0 || class.number() >= FIRST_STRING_CLASS {
            return Ok(false);
        }
        let state = &mut *self.state.borrow_mut();
        let frame = state.position(class).frame;
        let tables = &mut *state.tables;
        let Frame::Number { obligation, digits, .. } = frame else { return Ok(false) };
        Ok(tables.reader.values.numbers.any_digits(
            &mut tables.reader.values.core,
            &tables.reader.values.residuals,
            obligation,
            digits,
        ))
    }

    fn reference_class(&self, class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        let state = &mut *self.state.borrow_mut();
        let class = state.as_string_state(class);
        if class.number() >= FIRST_STRING_CLASS {
            return state.common_successor(class);
        }
        let position = state.position(class);
        if let Some(other) = state.unknown_name(position)? {
            return Ok(Some(other));
        }
        match position.frame {
            Frame::Name { candidates, escape: CharState::NONE, .. }
                if candidates.classes != NO_QUERIES =>
            {
                state.common_successor(class)
            }
            _ => Ok(None),
        }
    }

    fn cacheable_class(&self, class: MaskClassId) -> Option<MaskClassId> {
        let state = &mut *self.state.borrow_mut();
        let position = state.position(class);
        let is_ahead = class.number() >= FIRST_TRANSIENT_CLASS;
        match position.record {
            NO_RECORD if is_ahead && !state.is_unbounded(position) => {
                let position = state.tables.class_representative(position);
                Some(MaskClassId::from_number(state.tables.visited.intern_class(position)))
            }
            _ => None,
        }
    }

    fn differing_bytes(
        &self,
        first: MaskClassId,
        second: MaskClassId,
    ) -> Result<Option<ByteSet>, Error> {
        let state = &mut *self.state.borrow_mut();
        let (first, second) = (state.position(first), state.position(second));
        if let (
            Frame::Name { object, candidates: NameCandidates { classes, .. }, .. },
            Frame::Name { object: other, candidates, .. },
        ) = (first.frame, second.frame)
            && object == other
            && candidates.from == candidates.to
            && candidates.classes == classes
        {
            return Ok(state.known_name_bytes(first.frame));
        }
        Ok(match (state.possible_bytes(first)?, state.possible_bytes(second)?) {
            (Some(first), Some(second)) => Some(first.union(second)),
            _ => None,
        })
    }
}

impl StringClasses for SchemaLookahead<'_> {
    fn unconstrained_string(&self, class: MaskClassId) -> Result<Option<EscapePolicy>, Error> {
        self.state.borrow_mut().in_open_string(class)
    }

    fn json_string_state(&self, class: MaskClassId) -> Result<Option<JsonStringState>, Error> {
        self.state.borrow_mut().in_text(class)
    }

    fn alternative_string_states(
        &self,
        class: MaskClassId,
    ) -> Result<Option<AlternativeStrings>, Error> {
        self.state.borrow_mut().in_unknown_name(class)
    }

    fn with_string_state(&self, class: MaskClassId, state: StateId) -> Result<MaskClassId, Error> {
        self.state.borrow_mut().in_text_at(class, state)
    }

    fn closing_literals(
        &self,
        class: MaskClassId,
        reference: Option<MaskClassId>,
    ) -> Result<Option<LiteralList>, Error> {
        if class.number() >= FIRST_STRING_CLASS {
            return Ok(None);
        }
        self.state.borrow_mut().known_name_suffixes(class, reference)
    }
}

impl ValueClasses for SchemaLookahead<'_> {
    fn isolated_value(&self, class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        self.state.borrow_mut().isolated(class)
    }

    fn shared_value_id(&self, class: MaskClassId) -> Option<u128> {
        self.state.borrow_mut().plain_value_id(class)
    }

    fn shared_mask_id(&self, class: MaskClassId) -> Result<Option<u128>, Error> {
        self.state.borrow_mut().signature(class)
    }

    fn value_end(&self, class: MaskClassId) -> Result<ValueEnd, Error> {
        self.state.borrow_mut().value_end(class)
    }

    fn after_value(&self, class: MaskClassId) -> Result<Option<MaskClassId>, Error> {
        self.state.borrow_mut().after_value(class)
    }
}
