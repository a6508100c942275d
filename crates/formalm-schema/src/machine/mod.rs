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

use formalm_automata::{ByteSet, Error, RegularMaskClasses, Resource};
use rustc_hash::FxHashMap;

use crate::interner::Interner;
use crate::solver::context::{LanguageId, SolverContext};
use frame::{DONE, Frame, ReaderPosition};
use frame_table::FrameTable;
use mask_class::continuation::ContinuationCache;
use mask_class::string_state_pairs::StringStates;
use min_bytes::BoundCache;
use names::NameTables;
use names::name_query::NameQuery;
use numbers::tables::NumberTables;
use reader::cache::TransitionCache;
use reader::whitespace::GapRules;
use records::Records;
use residuals::Residuals;
use residuals::string_queries::StringQueries;

pub use automaton::SchemaAutomaton;
pub(crate) use automaton::SchemaSource;
pub(crate) use frame::Obligation;
pub(crate) use mask_class::unbounded_values::UnboundedValues;
pub(crate) use records::{EMPTY_RECORD, NO_RECORD, RecordId};

pub use mask_class::SchemaMaskClasses;

/// Marks a transition that leads nowhere.
const DEAD: u32 = u32::MAX;
/// Flag of a state known to be accepting.
const ACCEPTING: u32 = 1;
/// Flag of a state known not to be accepting.
const REFUSING: u32 = 2;

/// The tables that grow while inputs are read: frames, states, transitions and caches.
#[derive(Debug)]
pub(crate) struct LazyTables {
    pub(crate) core: SolverContext,
    residuals: Residuals,
    strings: StringQueries,
    name_tables: NameTables,
    numbers: NumberTables,
    gaps: GapRules,
    frames: FrameTable,
    states: Interner<ReaderPosition>,
    records: Records,
    next: FxHashMap<(u32, u8), u32>,
    /// Transitions over several bytes, packed below a leading one bit.
    run_transitions: FxHashMap<(u32, u64), u32>,
    live: FxHashMap<u32, ByteSet>,
    cache: TransitionCache,
    continuations: ContinuationCache,
    bound_cache: BoundCache,
    mask_classes: Interner<ReaderPosition>,
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
        self.core.memory_bytes()
            + self.frames.memory_bytes()
            + self.visited_bytes()
            + self.residuals.memory_bytes()
            + self.strings.memory_bytes()
            + self.name_tables.memory_bytes()
            + self.numbers.memory_bytes()
            + self.cache.bytes()
            + self.continuations.bytes()
            + self.bound_cache.bytes()
            + self.live.capacity() * 40
    }

    /// Returns the sizes of all tables that retain query states. If a look-ahead enlarged none of
    /// them, its query states can be dropped.
    fn retained_counts(&self) -> [usize; 3] {
        [self.mask_classes.len(), self.name_tables.len(), self.cache.opened_values.len()]
    }

    /// Returns the number of objects, arrays, strings and names that are open in `state`.
    fn open_frames(&self, state: u32) -> usize {
        self.frames.open_count(self.states.get(state).frame)
    }

    /// Returns the questions about property names.
    fn names(&mut self) -> NameQuery<'_> {
        NameQuery {
            core: &mut self.core,
            residuals: &mut self.residuals,
            strings: &mut self.strings,
            tables: &mut self.name_tables,
        }
    }

    /// Returns the state after `byte`, [`DEAD`] if no instance continues so. Fails if the tables
    /// exceed their limits.
    fn successor(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        if let Some(&known) = self.next.get(&(state, byte)) {
            return Ok(known);
        }
        self.check_limits()?;
        let position = *self.states.get(state);
        let next = match self.read_byte(position, byte)? {
            Some(position) => self.states.intern(position),
            None => DEAD,
        };
        self.next.insert((state, byte), next);
        Ok(next)
    }

    /// Fails if there are too many states, or if they take too many bytes.
    fn check_limits(&self) -> Result<(), Error> {
        let limits = self.core.limits;
        let bytes = (self.next.len() + self.run_transitions.len()) * 40
            + (self.states.len() + self.frames.len()) * 100;
        for (resource, needed, allowed) in [
            (Resource::States, self.states.len() as u64 + 1, limits.states),
            (Resource::Bytes, bytes as u64, limits.bytes),
        ] {
            if needed > allowed {
                return Err(Error::Limit { resource, needed, allowed });
            }
        }
        Ok(())
    }

    /// Returns the position after `byte`, with the full step limit of the solver for this byte.
    fn read_byte(
        &mut self,
        position: ReaderPosition,
        byte: u8,
    ) -> Result<Option<ReaderPosition>, Error> {
        self.core.steps = 0;
        let read = self.read(position, byte);
        if read.is_err() {
            self.core.answers.abandon();
        }
        read
    }

    fn is_accepting(&mut self, state: u32) -> bool {
        self.is_end(self.states.get(state).frame)
    }

    /// Returns `true` if an input that led to `frame` is an instance.
    fn is_end(&mut self, frame: Frame) -> bool {
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
}
