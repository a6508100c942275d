//! The lazy deterministic automaton of a schema: values read byte by byte.
//!
//! ```text
//! state = (frame, record)
//!               │
//!               └─ record of the item being read, kept only under `uniqueItems`
//! frame ─parent─► frame ─parent─► … ─parent─► DONE        one frame for each open value
//!   │
//!   └─ obligation: the residual formula of the value, the queries of its parent, their goal
//! ```
//!
//! A frame holds what a value still has to satisfy. Reading a byte takes a derivative of the
//! innermost frame; closing a value reports its verdicts to the parent. All tables are interned and
//! grow as inputs need them.
//!
//! Each part owns its tables, and an arrow means *asks*:
//!
//! ```text
//! visited_states ──┐               how it is written       what it means
//! mask_class ──────┼─► reader ──┬─► spelling ──events──► values ──┬─► residuals
//!                  │            │   json: quotes,        frames,  ├─► names
//! completion ──────┘            │   brackets, commas,    records  ├─► numbers
//!   ⇅                           │   its mask classes              └─► solver
//! min_bytes                     └──────────────────────────►
//!   ▲ lengths, useful bytes ────────┘
//! ```
//!
//! * [`reader`]: one byte further from a position.
//! * [`spelling`]: how values are written. [`spelling::json`] is the only one that is shipped.
//! * [`values`]: the events of a value, whatever its spelling.
//! * [`residuals`], [`names`], [`numbers`]: what is still required.
//! * [`visited_states`]: interned states and the transitions between them.
//! * [`mask_class`]: what no token distinguishes. [`spelling::json::mask_class`] adds what it sees of
//!   JSON, and the look-ahead that computes masks.
//! * [`completion`]: shortest completions, an A* search over the lower bounds of [`min_bytes`].

mod automaton;
mod completion;
mod frame;
mod frame_table;
mod lookahead_tables;
mod mask_class;
mod min_bytes;
mod names;
mod numbers;
#[cfg(test)]
mod proptests;
mod reader;
mod residuals;
mod spelling;
mod values;
mod visited_states;

use std::sync::Arc;

use formalm_core::{ByteSet, Error, MemoryBytes, group_by_successor};

use completion::search::CompletionTables;
use mask_class::abstraction::MaskAbstraction;
use reader::Reader;
use spelling::json::Json;
use spelling::{SpelledMaskTables, Spelling};
use visited_states::VisitedStates;

pub use automaton::SchemaAutomaton;
pub(crate) use automaton::SchemaSource;
pub(crate) use frame::Obligation;
pub(crate) use mask_class::unbounded_values::UnboundedValues;
pub(crate) use values::records::{EMPTY_RECORD, NO_RECORD, RecordId};
pub(crate) use visited_states::DEAD;

pub use spelling::json::mask_class::SchemaMaskClasses;

/// Flag of a state known to be accepting.
const ACCEPTING: u32 = 1;
/// Flag of a state known not to be accepting.
const REFUSING: u32 = 2;

/// The tables that grow while inputs are read: frames, states, transitions and caches.
#[derive(Debug)]
pub(crate) struct LazyTables<S: Spelling = Json> {
    pub(crate) reader: Reader<S>,
    visited: VisitedStates,
    abstraction: MaskAbstraction,
    masks: S::MaskTables,
    completion: CompletionTables,
}

impl<S: Spelling> LazyTables<S> {
    /// Returns the memory in use, in bytes.
    fn bytes(&self) -> usize {
        self.reader.values.memory_bytes()
            + self.visited_bytes()
            + self.visited.heap_allowance()
            + self.abstraction.memory_bytes()
            + self.masks.memory_bytes()
            + self.completion.memory_bytes()
    }

    /// Returns the sizes of all tables that retain query states. If a look-ahead enlarged none of
    /// them, its query states can be dropped.
    fn retained_counts(&self) -> [usize; 3] {
        [
            self.visited.class_count(),
            self.reader.values.name_tables.len(),
            self.reader.values.opened_count(),
        ]
    }

    /// Returns the number of objects, arrays, strings and names that are open in `state`.
    fn open_frames(&self, state: u32) -> usize {
        self.reader.values.frames.open_count(self.visited.position(state).frame)
    }

    fn is_accepting(&mut self, state: u32) -> bool {
        self.reader.is_end(self.visited.position(state))
    }

    /// Returns the classes of live bytes with equal residuals.
    ///
    /// States reached on the way are not kept, and positions of one mask class share the result. A
    /// repeated name or item is noticed only when it is read, so it is not excluded here.
    pub(crate) fn byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        // Here it does not matter if tokens distinguish names.
        let distinguishes_names =
            std::mem::replace(&mut self.abstraction.distinguishes_names, false);
        let classes = self.compute_byte_classes(state);
        self.abstraction.distinguishes_names = distinguishes_names;
        classes
    }

    fn compute_byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        let position = self.visited.position(state);
        let position_class = self.abstraction.apply(&mut self.reader.values, position)?;
        if let Some(known) = self.visited.known_byte_classes(position_class) {
            return Ok(known);
        }
        let records = self.reader.values.records.len();
        let classes =
            group_by_successor(|byte| match self.reader.read_byte(position_class, byte)? {
                Some(next) => self.abstraction.apply(&mut self.reader.values, next).map(Some),
                None => Ok(None),
            });
        // Inputs recorded meanwhile belong to positions that nothing refers to.
        self.reader.values.records.truncate(records);
        let classes: Arc<[ByteSet]> = classes?.into();
        self.visited.set_byte_classes(position_class, Arc::clone(&classes));
        Ok(classes)
    }
}
