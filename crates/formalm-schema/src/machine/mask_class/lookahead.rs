//! The look-ahead that computes masks: an implementation of [`Steps`] on mask classes.
//!
//!  class id:   0 …              interned mask classes, kept
//!              2³⁰ …            positions met during this look-ahead, dropped with it
//!              2³¹ …            (string, state) pairs of `string_states`
//!
//! A mask visits many more positions than inputs reach, so transient positions are not kept.

use std::cell::RefCell;

use formalm_automata::spelling::{Escape, Escapes};
use formalm_automata::{
    ByteSet, EndSteps, Ended, Error, InText, KeyId, Machine, NoLexemes, Repetition, StateId, Steps,
    Texts, loops_of,
};

use crate::formula::TRUE;
use crate::machine::NO_RECORD;
use crate::machine::frame::{ContainerState, Frame, NameCandidates, Position, QueriesId};
use crate::machine::lookahead_tables::LockedTables;
use crate::machine::mask_class::string_hints::RepetitionHint;
use crate::machine::mask_class::string_states::{FIRST_STRING_CLASS, StringStates, StringStep};
use crate::machine::reader::cache::NO_QUERIES;
use crate::table::Table;

/// The first id of classes that are dropped with the look-ahead.
const FIRST_TRANSIENT_CLASS: u32 = 1 << 30;

/// Minimum number of characters that return to the same class for a loop hint to pay off. Chosen,
/// not measured.
const MIN_LOOP_CHARS: u32 = 12;

/// Maximum number of live bytes for which a string is tried byte by byte. Chosen, not measured.
const MAX_LIVE_BYTES: usize = 24;

/// One look-ahead. Everything it visits is dropped with it.
#[derive(Debug)]
pub(crate) struct Lookahead<'a> {
    state: RefCell<LookaheadState<'a>>,
}

#[derive(Debug)]
pub(crate) struct LookaheadState<'a> {
    pub(crate) tables: LockedTables<'a>,
    places: Table<Position>,
    pub(crate) runs: StringStates,
    /// The number of recorded inputs before the look-ahead.
    records: usize,
    /// The number of query states before the look-ahead, and the sizes of the tables that retain
    /// some of them.
    queries: (usize, [usize; 3]),
}

impl<'a> Lookahead<'a> {
    pub(crate) fn new(mut tables: LockedTables<'a>) -> Lookahead<'a> {
        tables.core.ahead();
        let (places, runs) = std::mem::take(&mut tables.spare_tables);
        let records = tables.records.len();
        let queries = (tables.parts.queries.len(), tables.retained_counts());
        Lookahead { state: RefCell::new(LookaheadState { tables, places, runs, records, queries }) }
    }
}

impl Drop for LookaheadState<'_> {
    fn drop(&mut self) {
        // Inputs recorded meanwhile belong to positions that nothing refers to.
        let tables = &mut *self.tables;
        self.places.clear();
        self.runs.clear();
        tables.spare_tables = (std::mem::take(&mut self.places), std::mem::take(&mut self.runs));
        tables.records.truncate(self.records);
        if tables.core.behind() && self.queries.1 == tables.retained_counts() {
            tables.parts.queries.truncate(self.queries.0);
        }
    }
}

impl LookaheadState<'_> {
    pub(crate) fn position(&self, key: KeyId) -> Position {
        let number = key.number();
        if number >= FIRST_STRING_CLASS {
            return self.runs.position(key);
        }
        match number.checked_sub(FIRST_TRANSIENT_CLASS) {
            Some(at) => *self.places.get(at),
            None => *self.tables.keys.get(number),
        }
    }

    pub(crate) fn key(&mut self, position: Position) -> Result<KeyId, Error> {
        let mut position = position;
        if let Frame::String { language, state, escape: Escape::None, .. } = position.frame
            && state == self.tables.core.text(language).start()
        {
            position.frame = self.tables.relaxed_string(position.frame)?;
        }
        if !self.is_free_string(position)
            && let Some(key) = self.runs.key(&self.tables, position)
        {
            return Ok(key);
        }
        Ok(KeyId::from_number(FIRST_TRANSIENT_CLASS + self.places.intern(position)))
    }

    #[inline]
    pub(crate) fn step(&mut self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        if key.number() >= FIRST_STRING_CLASS {
            match self.runs.step(&mut self.tables, key, byte)? {
                StringStep::To(next) => return Ok(Some(next)),
                StringStep::Single(position) => return self.key(position).map(Some),
                StringStep::Dead => return Ok(None),
                StringStep::Unknown => {}
            }
        }
        let before = self.position(key);
        let Some(after) = self.tables.read_byte(before, byte)? else { return Ok(None) };
        let after = self.tables.mask_abstraction(after)?;
        if after == before {
            return Ok(Some(key));
        }
        self.key(after).map(Some)
    }

    /// Returns `true` if a position is inside an unconstrained string or name, between two
    /// characters.
    pub(crate) fn is_free_string(&self, position: Position) -> bool {
        if position.record != NO_RECORD {
            return false;
        }
        let core = &self.tables.core;
        match position.frame {
            Frame::String { language, state, queries, escape: Escape::None, .. } => {
                core.class_formula(language) == TRUE
                    && state == core.text(language).start()
                    && self.tables.has_constant_verdicts(queries)
            }
            Frame::Name { text: NO_RECORD, candidates, escape: Escape::None, .. } => {
                self.tables.allows_any_name(candidates.classes)
                    && self.tables.has_constant_verdicts(candidates.classes)
            }
            _ => false,
        }
    }

    /// Returns `true` if a position is inside a string whose states are dropped with the
    /// look-ahead.
    pub(crate) fn is_unbounded(&self, position: Position) -> bool {
        let core = &self.tables.core;
        let of = |queries: QueriesId| {
            let mut texts = self.tables.parts.queries.get(queries.0).iter().flatten();
            texts.any(|&(text, _)| core.is_unbounded(text))
        };
        match position.frame {
            Frame::String { language, queries, .. } => core.is_unbounded(language) || of(queries),
            Frame::Name { candidates, .. } => of(candidates.classes),
            _ => false,
        }
    }

    /// Returns the same position in an unconstrained string.
    pub(crate) fn as_free_string(&mut self, position: Position) -> Result<KeyId, Error> {
        let Frame::String { parent, queries, .. } = position.frame else {
            return self.key(position);
        };
        let Some(language) = self.tables.core.language(TRUE)? else { return self.key(position) };
        let state = self.tables.core.text(language).start();
        let frame = Frame::String { language, state, queries, escape: Escape::None, parent };
        self.key(Position { frame, ..position })
    }

    /// Returns the bytes with which known names continue.
    fn known_name_bytes(&self, frame: Frame) -> Option<ByteSet> {
        let Frame::Name { next_names, text, candidates, escape: Escape::None, .. } = frame else {
            return None;
        };
        let mut set = ByteSet::default();
        set.insert(b'"');
        set.insert(b'\\');
        let depth = self.tables.records.get(text).2 as usize;
        for at in candidates.from..candidates.to {
            if let Some(&byte) = self.tables.known_name(next_names, at).as_bytes().get(depth) {
                set.insert(byte);
            }
        }
        Some(set)
    }

    pub(crate) fn possible_bytes(&mut self, position: Position) -> Result<Option<ByteSet>, Error> {
        let options = &self.tables.core.options;
        let whitespace = options.blanks > 0 || options.layout.is_some();
        let bytes: &[u8] = match position.frame {
            Frame::Done => b"",
            Frame::Value { .. } => b" \n\r\t\"[{-0123456789tfn",
            Frame::Literal { rest, .. } => &rest[..1],
            Frame::Number { .. } => b" \n\r\t0123456789.eE+-,]}",
            Frame::Object { mode, .. } => match mode {
                ContainerState::AfterOpen => b" \n\r\t\"}",
                ContainerState::AfterComma => b" \n\r\t\"",
                ContainerState::AfterName => b" \n\r\t:",
                ContainerState::InValue | ContainerState::AfterValue => b" \n\r\t,}",
            },
            Frame::Array { mode: ContainerState::AfterOpen, .. } => b" \n\r\t\"[]{-0123456789tfn",
            Frame::Array { .. } => b" \n\r\t,]",
            // Computing the live bytes of a state that is met once costs more than reading it.
            Frame::String { escape: Escape::None, .. } if self.is_unbounded(position) => {
                return Ok(None);
            }
            Frame::String { escape: Escape::None, .. } => {
                return self.string_possible_bytes(position.frame);
            }
            Frame::Name { escape: Escape::None, candidates, .. } => {
                let only_known = candidates.classes == NO_QUERIES;
                return Ok(if only_known { self.known_name_bytes(position.frame) } else { None });
            }
            Frame::String { .. } | Frame::Name { .. } => b"\"\\/bfnrtu0123456789abcdefABCDEF",
        };
        let bytes = if whitespace || bytes.first() != Some(&b' ') { bytes } else { &bytes[4..] };
        let mut set = ByteSet::default();
        bytes.iter().for_each(|&byte| set.insert(byte));
        Ok(Some(set))
    }

    fn string_possible_bytes(&mut self, frame: Frame) -> Result<Option<ByteSet>, Error> {
        let Frame::String { language, state, .. } = frame else { return Ok(None) };
        if self.tables.core.class_formula(language) == TRUE
            || self.tables.remaining_chars(language, state)?.is_some()
        {
            return Ok(None);
        }
        let mut live = self.tables.core.text(language).live_bytes(state)?;
        if live.len() > MAX_LIVE_BYTES {
            return Ok(None);
        }
        live.insert(b'"');
        live.insert(b'\\');
        Ok(Some(live))
    }
}

impl EndSteps for Lookahead<'_> {
    fn is_end(&self, key: KeyId) -> Result<bool, Error> {
        let state = &mut *self.state.borrow_mut();
        let frame = state.position(key).frame;
        Ok(state.tables.is_end(frame))
    }
}

impl Steps for Lookahead<'_> {
    type Lexemes = NoLexemes;

    const KNOWS_FEW: bool = true;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        self.state.borrow_mut().step(key, byte)
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        let state = &mut *self.state.borrow_mut();
        let position = state.position(key);
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
            if state.step(key, byte)?.is_some() {
                set.insert(byte);
            }
        }
        Ok(set)
    }

    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        let found = self.state.borrow_mut().repetition(key)?;
        match found {
            RepetitionHint::Repetition(repetition) => Ok(Some(repetition)),
            RepetitionHint::Nothing => Ok(None),
            RepetitionHint::Unknown(key) => loops_of(self, key, MIN_LOOP_CHARS),
        }
    }

    fn few(&self, key: KeyId) -> Result<Option<ByteSet>, Error> {
        if key.number() >= FIRST_STRING_CLASS {
            // Reading a byte is as fast as computing this set.
            return Ok(None);
        }
        let state = &mut *self.state.borrow_mut();
        state.possible_bytes(state.position(key))
    }

    fn any_digits(&self, key: KeyId) -> Result<bool, Error> {
        if key.number() >= FIRST_STRING_CLASS {
            return Ok(false);
        }
        let state = &mut *self.state.borrow_mut();
        let frame = state.position(key).frame;
        Ok(state.tables.any_digits(frame))
    }

    fn reference(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let state = &mut *self.state.borrow_mut();
        let key = state.as_string_state(key);
        if key.number() >= FIRST_STRING_CLASS {
            return state.common_successor(key);
        }
        let position = state.position(key);
        if let Some(other) = state.unknown_name(position)? {
            return Ok(Some(other));
        }
        match position.frame {
            Frame::Name { candidates, escape: Escape::None, .. }
                if candidates.classes != NO_QUERIES =>
            {
                state.common_successor(key)
            }
            _ => Ok(None),
        }
    }

    fn in_open_string(&self, key: KeyId) -> Result<Option<Escapes>, Error> {
        self.state.borrow_mut().in_open_string(key)
    }

    fn in_text(&self, key: KeyId) -> Result<Option<InText>, Error> {
        self.state.borrow_mut().in_text(key)
    }

    fn in_text_at(&self, key: KeyId, state: StateId) -> Result<KeyId, Error> {
        self.state.borrow_mut().in_text_at(key, state)
    }

    fn texts(&self, key: KeyId, reference: Option<KeyId>) -> Result<Option<Texts>, Error> {
        if key.number() >= FIRST_STRING_CLASS {
            return Ok(None);
        }
        self.state.borrow_mut().known_name_suffixes(key, reference)
    }

    fn apart(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        self.state.borrow_mut().isolated(key)
    }

    fn common(&self, key: KeyId) -> Option<u64> {
        self.state.borrow_mut().plain_value_id(key)
    }

    fn ended(&self, key: KeyId) -> Result<Ended, Error> {
        self.state.borrow_mut().value_end(key)
    }

    fn behind(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        self.state.borrow_mut().after_value(key)
    }

    fn kept(&self, key: KeyId) -> Option<KeyId> {
        let state = &mut *self.state.borrow_mut();
        let position = state.position(key);
        let is_ahead = key.number() >= FIRST_TRANSIENT_CLASS;
        match position.record {
            NO_RECORD if is_ahead && !state.is_unbounded(position) => {
                let position = state.tables.class_representative(position);
                Some(KeyId::from_number(state.tables.keys.intern(position)))
            }
            _ => None,
        }
    }

    fn differing(&self, first: KeyId, second: KeyId) -> Result<Option<ByteSet>, Error> {
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
