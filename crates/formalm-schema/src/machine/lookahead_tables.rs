//! Private state tables of an automaton that looks ahead.
//!
//! Such an automaton shares frames and formulas with the automaton it looks ahead of: these are the
//! same for many inputs, whereas states and recorded inputs are not. While it holds the lock, its
//! private tables are swapped in for those of the other. All code that reads input is therefore
//! written once.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use formalm_core::{ForkSafeMutex, MemoryBytes, StateId};

use crate::machine::frame::{Frame, ReaderPosition};
use crate::machine::spelling::json::Json;
use crate::machine::spelling::{SpelledMaskTables, Spelling};
use crate::machine::values::records::Records;
use crate::machine::visited_states::VisitedStates;
use crate::machine::{EMPTY_RECORD, LazyTables, NO_RECORD, RecordId};

/// The tables that only the states of one automaton refer to.
#[derive(Debug)]
pub(crate) struct VisitedTables<S: Spelling> {
    visited: VisitedStates,
    records: Records,
    masks: VisitedMasks<S>,
}

/// What masks of a spelling keep for the states of one automaton.
type VisitedMasks<S> = <<S as Spelling>::MaskTables as SpelledMaskTables>::Visited;

/// The private tables of a look-ahead. While it holds the lock, these are the tables of the
/// automaton that it looks ahead of.
#[derive(Debug)]
pub(crate) struct PrivateTables<S: Spelling = Json>(ForkSafeMutex<VisitedTables<S>>);

impl<S: Spelling> Default for PrivateTables<S> {
    fn default() -> PrivateTables<S> {
        let (visited, records) = (VisitedStates::default(), Records::default());
        let masks = VisitedMasks::<S>::default();
        PrivateTables(ForkSafeMutex::new(VisitedTables { visited, records, masks }))
    }
}

impl<S: Spelling> PrivateTables<S> {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    fn lock(&self) -> MutexGuard<'_, VisitedTables<S>> {
        self.0.lock()
    }

    /// Copies a state of the other automaton, which holds the lock, into the private tables.
    pub(crate) fn enter(&self, tables: &LazyTables<S>, state: StateId) -> StateId {
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
    private: Option<MutexGuard<'a, VisitedTables<S>>>,
}

impl<'a, S: Spelling> LockedTables<'a, S> {
    pub(crate) fn new(
        tables: MutexGuard<'a, Box<LazyTables<S>>>,
        own: Option<&'a PrivateTables<S>>,
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
    fn swap(&mut self, own: &mut VisitedTables<S>) {
        std::mem::swap(&mut self.visited, &mut own.visited);
        std::mem::swap(&mut self.reader.values.records, &mut own.records);
        std::mem::swap(self.masks.visited(), &mut own.masks);
    }

    /// Returns the memory of the visited states, in bytes.
    pub(crate) fn visited_bytes(&self) -> usize {
        self.visited.memory_bytes()
            + self.reader.values.records.memory_bytes()
            + self.masks.visited_bytes()
    }
}
