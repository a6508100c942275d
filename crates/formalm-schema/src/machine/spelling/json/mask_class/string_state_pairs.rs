//! States inside strings and names as pairs (string, automaton state).
//!
//! Between two bytes of a string only automaton states change. A class inside a string is therefore
//! the number of the string and that of a state, and most steps are look-ups.

use formalm_core::{
    Error, Interner, LazyDfa, MaskClassId, RETAINED_CAPACITY, StateId, reads_all_non_ascii,
};
use formalm_json::escapes::EscapePolicy;
use rustc_hash::FxHashMap;

use crate::machine::NO_RECORD;
use crate::machine::frame::{
    CharState, Frame, FrameId, NameCandidates, NextNamesId, QueriesId, ReaderPosition,
};
use crate::machine::reader::Reader;
use crate::solver::context::LanguageId;

/// The first id of classes inside strings: the number of the string, then the state.
pub(crate) const FIRST_STRING_CLASS: u32 = 1 << 31;
/// Bits of a class id that number the automaton state.
const STATE_BITS: u32 = 26;
/// The largest automaton state that fits a class id; larger ones are read from the position.
const MAX_STATE: u32 = (1 << STATE_BITS) - 1;
/// Maximum number of strings in one look-ahead; further ones are read from the position.
const MAX_STRINGS: usize = 1 << (31 - STATE_BITS);

/// A string being read, with everything that stays the same meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StringRun {
    /// Read by one automaton, whose states are those of the run.
    Single { language: LanguageId, queries: QueriesId, parent: FrameId },
    /// Read by several automata, whose product states are interned.
    Product { language: LanguageId, parent: FrameId },
    /// An unknown name; its states are those of the automata of its classes.
    Name { object: FrameId, next_names: NextNamesId },
}

/// The strings met in one look-ahead.
#[derive(Debug, Default)]
pub(crate) struct StringStates {
    list: Vec<StringRun>,
    /// The states of several automata.
    products: Interner<(StateId, QueriesId)>,
    next: FxHashMap<(u32, u8), StringStep>,
}

/// The effect of a byte inside a string.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StringStep {
    To(MaskClassId),
    /// The string continues, and only one automaton matters from here on.
    Single(ReaderPosition),
    Dead,
    /// Must be read from the position.
    Unknown,
}

impl StringStates {
    /// Clears all tables.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.products.clear();
        if self.next.len() > RETAINED_CAPACITY {
            self.next = FxHashMap::default();
        }
        self.next.clear();
    }

    /// Returns the class of a position inside a string that is not recorded.
    pub(crate) fn class_of(
        &mut self,
        reader: &Reader,
        position: ReaderPosition,
    ) -> Option<MaskClassId> {
        if position.record != NO_RECORD {
            return None;
        }
        let (run, state) = match position.frame {
            Frame::String { language, state, queries, escape: CharState::NONE, parent } => {
                if reader.values.strings.has_constant_verdicts(&reader.values.core, queries) {
                    (StringRun::Single { language, queries, parent }, state.number())
                } else {
                    let product = self.products.intern((state, queries));
                    (StringRun::Product { language, parent }, product)
                }
            }
            Frame::Name {
                object,
                next_names,
                text: NO_RECORD,
                candidates,
                escape: CharState::NONE,
            } => (StringRun::Name { object, next_names }, candidates.classes.0),
            _ => return None,
        };
        self.class_in(run, state)
    }

    /// Returns the class of a state in a string, `None` if it does not fit a class id.
    fn class_in(&mut self, run: StringRun, state: u32) -> Option<MaskClassId> {
        let at = self.list.iter().position(|one| *one == run).unwrap_or_else(|| {
            self.list.push(run);
            self.list.len() - 1
        });
        if at >= MAX_STRINGS {
            self.list.truncate(MAX_STRINGS);
        }
        (at < MAX_STRINGS && state <= MAX_STATE).then(|| {
            MaskClassId::from_number(FIRST_STRING_CLASS + ((at as u32) << STATE_BITS) + state)
        })
    }

    /// Returns the string of a class, and the state in it.
    fn split(&self, class: MaskClassId) -> (StringRun, u32) {
        let number = class.number() - FIRST_STRING_CLASS;
        (self.list[(number >> STATE_BITS) as usize], number & MAX_STATE)
    }

    /// Returns the position of a class.
    pub(crate) fn position(&self, class: MaskClassId) -> ReaderPosition {
        let (run, state) = self.split(class);
        let (escape, record) = (CharState::NONE, NO_RECORD);
        match run {
            StringRun::Single { language, queries, parent } => {
                let state = StateId::from_number(state);
                ReaderPosition {
                    frame: Frame::String { language, state, queries, escape, parent },
                    record,
                }
            }
            StringRun::Product { language, parent } => {
                let &(state, queries) = self.products.get(state);
                ReaderPosition {
                    frame: Frame::String { language, state, queries, escape, parent },
                    record,
                }
            }
            StringRun::Name { object, next_names } => {
                let candidates = NameCandidates { from: 0, to: 0, classes: QueriesId(state) };
                let frame = Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
                ReaderPosition { frame, record }
            }
        }
    }

    /// Returns the class after a byte of the escaped string.
    #[inline]
    pub(crate) fn step(
        &mut self,
        reader: &mut Reader,
        class: MaskClassId,
        byte: u8,
    ) -> Result<StringStep, Error> {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            return Ok(StringStep::Unknown);
        }
        if byte >= 0x80 && reader.values.core.options.escapes == EscapePolicy::Ascii {
            return Ok(StringStep::Dead);
        }
        self.step_char_byte(reader, class, byte)
    }

    /// Returns the class after a byte of the string's content.
    #[inline]
    pub(crate) fn step_char_byte(
        &mut self,
        reader: &mut Reader,
        class: MaskClassId,
        byte: u8,
    ) -> Result<StringStep, Error> {
        let (run, state) = self.split(class);
        if let StringRun::Single { language, .. } = run {
            let state = StateId::from_number(state);
            let next = reader
                .values
                .core
                .languages
                .automaton(language)
                .step(state, byte)?
                .map(StateId::number);
            return Ok(match next {
                None => StringStep::Dead,
                Some(next) if next > MAX_STATE => StringStep::Unknown,
                Some(next) => {
                    StringStep::To(MaskClassId::from_number((class.number() & !MAX_STATE) + next))
                }
            });
        }
        if let Some(&known) = self.next.get(&(class.number(), byte)) {
            return Ok(known);
        }
        let next = self.step_several(reader, run, state, byte)?;
        self.next.insert((class.number(), byte), next);
        Ok(next)
    }

    /// Returns the effect of a byte in a string that several automata read.
    fn step_several(
        &mut self,
        reader: &mut Reader,
        run: StringRun,
        state: u32,
        byte: u8,
    ) -> Result<StringStep, Error> {
        let StringRun::Product { language, parent } = run else {
            let after =
                reader.values.strings.advance(&reader.values.core, QueriesId(state), &[byte])?;
            let alive = reader.values.strings.get(after).iter().any(Option::is_some);
            let class = if alive { self.class_in(run, after.0).map(StringStep::To) } else { None };
            return Ok(class.unwrap_or(if alive { StringStep::Unknown } else { StringStep::Dead }));
        };
        let &(state, queries) = self.products.get(state);
        let Some(state) = reader.values.core.languages.automaton(language).step(state, byte)?
        else {
            return Ok(StringStep::Dead);
        };
        let queries = reader.values.strings.advance(&reader.values.core, queries, &[byte])?;
        if reader.values.strings.has_constant_verdicts(&reader.values.core, queries) {
            // From here on one automaton decides, as in strings without queries.
            let frame = Frame::String { language, state, queries, escape: CharState::NONE, parent };
            return Ok(StringStep::Single(ReaderPosition { frame, record: NO_RECORD }));
        }
        let product = self.products.intern((state, queries));
        Ok(self.class_in(run, product).map_or(StringStep::Unknown, StringStep::To))
    }

    /// Returns `true` if every character returns to the class.
    pub(crate) fn is_free_string(
        &mut self,
        reader: &mut Reader,
        class: MaskClassId,
    ) -> Result<bool, Error> {
        let mut step = |class: MaskClassId, byte: u8| {
            Ok(match self.step_char_byte(reader, class, byte)? {
                StringStep::To(next) => Some(next),
                StringStep::Single(_) | StringStep::Dead | StringStep::Unknown => None,
            })
        };
        for byte in 0..128 {
            if step(class, byte)? != Some(class) {
                return Ok(false);
            }
        }
        reads_all_non_ascii(class, class, step)
    }
}
