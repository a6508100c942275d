//! The meaning of a value, event by event, whatever its spelling.
//!
//! ```text
//!              open: null, true, false │ string │ number │ array │ object
//! Value ─────────────────────────────────────────────────────────────────────┐
//!                                                                            ▼
//!   string_bytes* end_string │ number_byte* end_number │ start_item* │ (next_property start_name
//!                                                        name_bytes* end_name start_value)*
//!                                                                            │
//!   parent, whose residual is the derivative by the child ◄── close_value ───┘
//! ```
//!
//! Events take a position and return the next one, or `None` if no instance continues so. They know
//! no byte but those of decoded strings and of digits. Everything else about a frame is decided by
//! the tables owned here: [`super::residuals`], [`super::names`] and [`super::numbers`].
//!
//! The record of an item that must be distinct is the JSON text of its events, without whitespace
//! and with escapes only where JSON requires them. Equal values may still have several records
//! (`1` and `1.0`, properties in another order). They are compared once the item has ended, as
//! interned values.

pub(crate) mod containers;
pub(crate) mod property_name;
pub(crate) mod records;
pub(crate) mod scalars;
pub(crate) mod value_start;

use formalm_core::{CompactMap, Error, MemoryBytes};

use crate::machine::frame::{ObligationId, ReaderPosition};
use crate::machine::frame_table::FrameTable;
use crate::machine::names::NameTables;
use crate::machine::names::name_query::NameQuery;
use crate::machine::numbers::tables::NumberTables;
use crate::machine::residuals::Residuals;
use crate::machine::residuals::string_queries::StringQueries;
use crate::machine::values::records::Records;
use crate::machine::values::value_start::OpenedValue;
use crate::solver::context::SolverContext;

/// The position after an event, `None` if no instance continues so.
pub(crate) type AfterEvent = Result<Option<ReaderPosition>, Error>;

/// Follows values event by event. Owns everything that positions refer to.
#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) core: SolverContext,
    pub(crate) residuals: Residuals,
    pub(crate) strings: StringQueries,
    pub(crate) name_tables: NameTables,
    pub(crate) numbers: NumberTables,
    pub(crate) frames: FrameTable,
    pub(crate) records: Records,
    /// By obligation and the number of a value's start; all numbers have the same one.
    opened_values: CompactMap<(ObligationId, u8), Option<OpenedValue>>,
}

impl Values {
    pub(crate) fn new(core: SolverContext) -> Values {
        Values {
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

    /// Drops the frames and records that a search has added; nothing refers to them.
    pub(crate) fn truncate(&mut self, frames: usize, records: usize) {
        self.frames.truncate(frames);
        self.records.truncate(records);
    }

    /// Returns the number of interned values that query states may be part of.
    pub(crate) fn opened_count(&self) -> usize {
        self.opened_values.len()
    }

    /// Returns the memory in use without that of records, in bytes.
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
