//! The lazy deterministic automaton of a schema: JSON read byte by byte.
//!
//! ```text
//! state = (frame, record)
//!               │
//!               └─ bytes of the item being read, kept only under `uniqueItems`
//! frame ─parent─► frame ─parent─► … ─parent─► DONE        one frame for each open value
//!   │
//!   └─ obligation: the residual formula of the value, the queries of its parent, their goal
//! ```
//!
//! A frame holds what a value still has to satisfy. Reading a byte takes a derivative of the
//! innermost frame; closing a value reports its verdicts to the parent. All tables are interned and
//! grow as inputs need them.
//!
//! * [`reader`]: one byte further from a state.
//! * [`numbers`]: sets of numbers, decided digit by digit without the solver.
//! * [`mask_class`]: states that no token distinguishes, and the look-ahead that computes masks.
//! * [`min_bytes`]: lower bounds on the bytes of any completion.
//! * [`completion`]: shortest completions, an A* search over these bounds.

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
mod records;
mod residuals;
mod visited_states;

use std::sync::Arc;

use formalm_automata::{ByteSet, Error, RegularMaskClasses, group_by_successor};
use rustc_hash::FxHashMap;

use crate::interner::Interner;
use crate::machine::mask_class::cache::TransitionCache;
use crate::solver::context::LanguageId;
use frame::ReaderPosition;
use mask_class::continuation::ContinuationCache;
use mask_class::string_state_pairs::StringStates;
use min_bytes::BoundCache;
use reader::Reader;
use visited_states::VisitedStates;

pub use automaton::SchemaAutomaton;
pub(crate) use automaton::SchemaSource;
pub(crate) use frame::Obligation;
pub(crate) use mask_class::unbounded_values::UnboundedValues;
pub(crate) use records::{EMPTY_RECORD, NO_RECORD, RecordId};
pub(crate) use visited_states::DEAD;

pub use mask_class::SchemaMaskClasses;

/// Flag of a state known to be accepting.
const ACCEPTING: u32 = 1;
/// Flag of a state known not to be accepting.
const REFUSING: u32 = 2;

/// The tables that grow while inputs are read: frames, states, transitions and caches.
#[derive(Debug)]
pub(crate) struct LazyTables {
    pub(crate) reader: Reader,
    visited: VisitedStates,
    cache: TransitionCache,
    continuations: ContinuationCache,
    bound_cache: BoundCache,
    /// Set if mask classes keep the strings of names that matter to nothing else.
    distinguishes_names: bool,
    /// Length of the longest token, in bytes.
    max_token_len: usize,
    lengths: FxHashMap<LanguageId, Option<Box<RegularMaskClasses>>>,
    /// Empty tables of the last look-ahead, reused by the next.
    spare_tables: (Interner<ReaderPosition>, StringStates),
}

impl LazyTables {
    /// Returns the memory in use, in bytes.
    fn bytes(&self) -> usize {
        self.reader.memory_bytes()
            + self.visited_bytes()
            + self.visited.shared_bytes()
            + self.cache.bytes()
            + self.continuations.bytes()
            + self.bound_cache.bytes()
    }

    /// Returns the sizes of all tables that retain query states. If a look-ahead enlarged none of
    /// them, its query states can be dropped.
    fn retained_counts(&self) -> [usize; 3] {
        [self.visited.class_count(), self.reader.name_tables.len(), self.reader.opened_count()]
    }

    /// Returns the number of objects, arrays, strings and names that are open in `state`.
    fn open_frames(&self, state: u32) -> usize {
        self.reader.frames.open_count(self.visited.position(state).frame)
    }

    fn is_accepting(&mut self, state: u32) -> bool {
        self.reader.is_end(self.visited.position(state).frame)
    }

    /// Returns the classes of live bytes with equal residuals.
    ///
    /// States reached on the way are not kept, and positions of one mask class share the result. A
    /// repeated name or item is noticed only when it is read, so it is not excluded here.
    pub(crate) fn byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        // Here it does not matter if tokens distinguish names.
        let distinguishes_names = std::mem::replace(&mut self.distinguishes_names, false);
        let classes = self.compute_byte_classes(state);
        self.distinguishes_names = distinguishes_names;
        classes
    }

    fn compute_byte_classes(&mut self, state: u32) -> Result<Arc<[ByteSet]>, Error> {
        let position = self.visited.position(state);
        let position_class = self.mask_abstraction(position)?;
        if let Some(known) = self.visited.known_byte_classes(position_class) {
            return Ok(known);
        }
        let records = self.reader.records.len();
        let classes =
            group_by_successor(|byte| match self.reader.read_byte(position_class, byte)? {
                Some(next) => self.mask_abstraction(next).map(Some),
                None => Ok(None),
            });
        // Inputs recorded meanwhile belong to positions that nothing refers to.
        self.reader.records.truncate(records);
        let classes: Arc<[ByteSet]> = classes?.into();
        self.visited.set_byte_classes(position_class, Arc::clone(&classes));
        Ok(classes)
    }
}
