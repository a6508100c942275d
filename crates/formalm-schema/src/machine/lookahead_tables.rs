//! Private state tables of an automaton that looks ahead.
//!
//! Such an automaton shares frames and formulas with the automaton it looks ahead of: these are the
//! same for many inputs, whereas states and recorded inputs are not. While it holds the lock, its
//! private tables are swapped in for those of the other. All code that reads input is therefore
//! written once.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use formalm_core::{CompactMap, ForkSafeMutex, MemoryBytes, StateId};

use crate::machine::frame::{Frame, ReaderPosition};
use crate::machine::mask_class::name_continuation::NameContinuation;
use crate::machine::spelling::Spelling;
use crate::machine::spelling::json::Json;
use crate::machine::values::records::Records;
use crate::machine::visited_states::VisitedStates;
use crate::machine::{EMPTY_RECORD, LazyTables, NO_RECORD, RecordId};

/// The tables that only the states of one automaton refer to.
#[derive(Debug, Default)]
pub(crate) struct VisitedTables {
    visited: VisitedStates,
    records: Records,
    /// Representatives of names; some refer to recorded inputs.
    name_continuations: CompactMap<NameContinuation, Frame>,
}

/// The private tables of a look-ahead. While it holds the lock, these are the tables of the
/// automaton that it looks ahead of.
#[derive(Debug)]
pub(crate) struct PrivateTables(ForkSafeMutex<VisitedTables>);

impl Default for PrivateTables {
    fn default() -> PrivateTables {
        PrivateTables(ForkSafeMutex::new(VisitedTables::default()))
    }
}

impl PrivateTables {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    fn lock(&self) -> MutexGuard<'_, VisitedTables> {
        self.0.lock()
    }

    /// Copies a state of the other automaton, which holds the lock, into the private tables.
    pub(crate) fn enter<S: Spelling>(&self, tables: &LazyTables<S>, state: StateId) -> StateId {
        let own = &mut *self.lock();
        let position = tables.visited.position(state.number());
        let mut recorded = |record: RecordId| {
            if record == NO_RECORD {
                return NO_RECORD;
            }
            let bytes = tables.reader.values.records.bytes_from(record, 0).into_iter();
            bytes.fold(EMPTY_RECORD, |record, byte| own.records.extend(record, byte))
        };
        let record = recorded(position.record);
        let frame = match position.frame {
            Frame::Name { object, next_names, text, candidates, escape } => {
                Frame::Name { object, next_names, text: recorded(text), candidates, escape }
            }
            other => other,
        };
        StateId::from_number(own.visited.intern(ReaderPosition { frame, record }))
    }
}

/// The locked tables, with the states of whoever holds the lock.
#[derive(Debug)]
pub(crate) struct LockedTables<'a, S: Spelling = Json> {
    tables: MutexGuard<'a, Box<LazyTables<S>>>,
    private: Option<MutexGuard<'a, VisitedTables>>,
}

impl<'a, S: Spelling> LockedTables<'a, S> {
    pub(crate) fn new(
        tables: MutexGuard<'a, Box<LazyTables<S>>>,
        own: Option<&'a PrivateTables>,
    ) -> LockedTables<'a, S> {
        let mut locked = LockedTables { tables, private: own.map(PrivateTables::lock) };
        locked.swap();
        locked
    }

    fn swap(&mut self) {
        if let Some(private) = &mut self.private {
            self.tables.swap(private);
        }
    }
}

impl<S: Spelling> Drop for LockedTables<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.swap();
    }
}

impl<S: Spelling> Deref for LockedTables<'_, S> {
    type Target = LazyTables<S>;

    #[inline]
    fn deref(&self) -> &LazyTables<S> {
        &self.tables
    }
}

impl<S: Spelling> DerefMut for LockedTables<'_, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut LazyTables<S> {
        &mut self.tables
    }
}

impl<S: Spelling> LazyTables<S> {
    /// Swaps the tables of visited states.
    fn swap(&mut self, own: &mut VisitedTables) {
        std::mem::swap(&mut self.visited, &mut own.visited);
        std::mem::swap(&mut self.reader.values.records, &mut own.records);
        std::mem::swap(&mut self.masks.continuations.names.known, &mut own.name_continuations);
    }

    /// Returns the memory of the visited states, in bytes.
    pub(crate) fn visited_bytes(&self) -> usize {
        self.visited.memory_bytes()
            + self.reader.values.records.memory_bytes()
            + self.masks.continuations.names.known.table_bytes()
    }
}
