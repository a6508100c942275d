//! The reader: the position after one more byte of JSON.
//!
//! ```text
//! before a value ──first byte──► string │ number │ literal │ object │ array
//! object ──"──► property name ──"──► : ──► value ──► , or }
//! close_value: verdicts of the child ──► parent, whose residual is the derivative by the child
//! ```
//!
//! The reader knows the spelling: brackets, quotes, escapes, commas and whitespace. What a value
//! means is decided by the tables that it owns: [`super::residuals`], [`super::names`] and
//! [`super::numbers`] know no byte but those of decoded strings and of digits.

pub(crate) mod containers;
pub(crate) mod property_name;
pub(crate) mod scalars;
pub(crate) mod value_start;
pub(crate) mod whitespace;

use formalm_core::{CompactMap, Error, MemoryBytes};

use crate::machine::NO_RECORD;
use crate::machine::frame::{
    DONE, Frame, NameOrderId, ObligationId, QueriesId, ReaderPosition, VerdictsId,
};
use crate::machine::frame_table::FrameTable;
use crate::machine::names::NameTables;
use crate::machine::names::name_query::NameQuery;
use crate::machine::numbers::tables::NumberTables;
use crate::machine::reader::whitespace::GapRules;
use crate::machine::records::Records;
use crate::machine::residuals::Residuals;
use crate::machine::residuals::string_queries::StringQueries;
use crate::solver::context::{LanguageId, SolverContext};

/// The kind of value that a first byte begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenedValue {
    Literal(VerdictsId),
    String(LanguageId, QueriesId),
    Number(ObligationId),
    Array(ObligationId),
    Object(ObligationId, NameOrderId),
}

/// Reads JSON byte by byte. Owns everything that positions refer to.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) core: SolverContext,
    pub(crate) residuals: Residuals,
    pub(crate) strings: StringQueries,
    pub(crate) name_tables: NameTables,
    pub(crate) numbers: NumberTables,
    pub(crate) gaps: GapRules,
    pub(crate) frames: FrameTable,
    pub(crate) records: Records,
    /// By obligation and first byte; all numbers are under byte `0`.
    opened_values: CompactMap<(ObligationId, u8), Option<OpenedValue>>,
}

impl Reader {
    pub(crate) fn new(core: SolverContext) -> Reader {
        Reader {
            gaps: GapRules::new(&core.options),
            core,
            residuals: Residuals::default(),
            strings: StringQueries::default(),
            name_tables: NameTables::default(),
            numbers: NumberTables::default(),
            frames: FrameTable::default(),
            records: Records::default(),
            opened_values: CompactMap::default(),
        }
    }

    /// Returns the questions about property names.
    #[inline]
    pub(crate) fn names(&mut self) -> NameQuery<'_> {
        NameQuery {
            core: &mut self.core,
            residuals: &mut self.residuals,
            strings: &mut self.strings,
            tables: &mut self.name_tables,
        }
    }

    /// Returns the position after `byte`, with the full step limit of the solver for this byte.
    pub(crate) fn read_byte(
        &mut self,
        position: ReaderPosition,
        byte: u8,
    ) -> Result<Option<ReaderPosition>, Error> {
        self.core.base.reset_steps();
        let read = self.read(position, byte);
        if read.is_err() {
            self.core.answers.abandon();
        }
        read
    }

    /// Returns `true` if an input that led to `frame` is an instance.
    pub(crate) fn is_end(&mut self, frame: Frame) -> bool {
        match frame {
            Frame::Done => true,
            Frame::Number { obligation, digits, parent: DONE } => {
                self.number_end(obligation, digits).is_some()
            }
            _ => false,
        }
    }

    /// Returns the position after `byte`, `None` if no instance continues so.
    fn read(
        &mut self,
        position: ReaderPosition,
        byte: u8,
    ) -> Result<Option<ReaderPosition>, Error> {
        let ReaderPosition { frame, record } = position;
        let extended =
            if record == NO_RECORD { NO_RECORD } else { self.records.extend(record, byte) };
        let frame = match frame {
            Frame::Done => None,
            Frame::Value { obligation, whitespace, parent } => {
                self.read_value(obligation, whitespace, parent, byte)?
            }
            Frame::Literal { rest, verdicts, parent } => {
                if rest[0] != byte {
                    return Ok(None);
                }
                if rest.len() == 1 {
                    return self.close_value(parent, verdicts, extended);
                }
                Some(Frame::Literal { rest: &rest[1..], verdicts, parent })
            }
            Frame::String { .. } => return self.read_string(frame, byte, extended),
            Frame::Number { .. } => return self.read_number(frame, byte, record, extended),
            Frame::Name { .. } => self.read_name(frame, byte)?,
            Frame::Object { .. } => return self.read_object(frame, byte, extended),
            Frame::Array { .. } => return self.read_array(frame, byte, record, extended),
        };
        Ok(frame.map(|frame| ReaderPosition { frame, record: extended }))
    }

    /// Drops the frames and records that a search has added; nothing refers to them.
    pub(crate) fn truncate(&mut self, frames: usize, records: usize) {
        self.frames.truncate(frames);
        self.records.truncate(records);
    }

    /// Returns `true` if `text` completes `position`. Frames built on the way are dropped.
    pub(crate) fn is_completed(
        &mut self,
        position: ReaderPosition,
        text: &[u8],
    ) -> Result<bool, Error> {
        let (frames, records) = (self.frames.len(), self.records.len());
        let mut position = Some(position);
        for &byte in text {
            let Some(here) = position else { break };
            position = match self.read_byte(here, byte) {
                Ok(next) => next,
                Err(error) => {
                    self.truncate(frames, records);
                    return Err(error);
                }
            };
        }
        let ends = position.is_some_and(|position| self.is_end(position.frame));
        self.truncate(frames, records);
        Ok(ends)
    }

    /// Returns the number of interned values that query states may be part of.
    pub(crate) fn opened_count(&self) -> usize {
        self.opened_values.len()
    }

    /// Returns the memory in use without that of recorded inputs, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.core.memory_bytes()
            + self.frames.memory_bytes()
            + self.residuals.memory_bytes()
            + self.strings.memory_bytes()
            + self.name_tables.memory_bytes()
            + self.numbers.memory_bytes()
            + self.opened_values.table_bytes()
    }
}
