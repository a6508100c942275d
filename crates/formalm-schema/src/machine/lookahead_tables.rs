//! Private state tables of an automaton that looks ahead.
//!
//! Such an automaton shares frames and formulas with the automaton it looks ahead of: these are the
//! same for many inputs, whereas states and recorded inputs are not. While it holds the lock, its
//! private tables are swapped in for those of the other. All code that reads input is therefore
//! written once.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use formalm_automata::{ByteSet, ForkSafeMutex, StateId};
use rustc_hash::FxHashMap;

use crate::interner::{CompactMap, Interner};
use crate::machine::frame::{Frame, ReaderPosition};
use crate::machine::mask_class::name_continuation::NameContinuation;
use crate::machine::records::Records;
use crate::machine::{EMPTY_RECORD, LazyTables, NO_RECORD, RecordId};

/// The states that an automaton has visited, and the tables that only these refer to.
#[derive(Debug, Default)]
pub(crate) struct VisitedTables {
    states: Interner<ReaderPosition>,
    records: Records,
    next: FxHashMap<(u32, u8), u32>,
    run_transitions: FxHashMap<(u32, u64), u32>,
    live: FxHashMap<u32, ByteSet>,
    mask_classes: Interner<ReaderPosition>,
    /// By positions, which refer to recorded inputs.
    byte_classes: CompactMap<ReaderPosition, Arc<[ByteSet]>>,
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
    pub(crate) fn enter(&self, tables: &LazyTables, state: StateId) -> StateId {
        let own = &mut *self.lock();
        let position = *tables.states.get(state.number());
        let mut recorded = |record: RecordId| {
            if record == NO_RECORD {
                return NO_RECORD;
            }
            let bytes = tables.records.bytes_from(record, 0).into_iter();
            bytes.fold(EMPTY_RECORD, |record, byte| own.records.extend(record, byte))
        };
        let record = recorded(position.record);
        let frame = match position.frame {
            Frame::Name { object, next_names, text, candidates, escape } => {
                Frame::Name { object, next_names, text: recorded(text), candidates, escape }
            }
            other => other,
        };
        StateId::from_number(own.states.intern(ReaderPosition { frame, record }))
    }
}

/// The locked tables, with the states of whoever holds the lock.
#[derive(Debug)]
pub(crate) struct LockedTables<'a> {
    tables: MutexGuard<'a, Box<LazyTables>>,
    private: Option<MutexGuard<'a, VisitedTables>>,
}

impl<'a> LockedTables<'a> {
    pub(crate) fn new(
        tables: MutexGuard<'a, Box<LazyTables>>,
        own: Option<&'a PrivateTables>,
    ) -> LockedTables<'a> {
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

impl Drop for LockedTables<'_> {
    #[inline]
    fn drop(&mut self) {
        self.swap();
    }
}

impl Deref for LockedTables<'_> {
    type Target = LazyTables;

    #[inline]
    fn deref(&self) -> &LazyTables {
        &self.tables
    }
}

impl DerefMut for LockedTables<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut LazyTables {
        &mut self.tables
    }
}

impl LazyTables {
    /// Swaps the tables of visited states.
    fn swap(&mut self, visited: &mut VisitedTables) {
        std::mem::swap(&mut self.states, &mut visited.states);
        std::mem::swap(&mut self.records, &mut visited.records);
        std::mem::swap(&mut self.next, &mut visited.next);
        std::mem::swap(&mut self.run_transitions, &mut visited.run_transitions);
        std::mem::swap(&mut self.live, &mut visited.live);
        std::mem::swap(&mut self.mask_classes, &mut visited.mask_classes);
        std::mem::swap(&mut self.cache.byte_classes, &mut visited.byte_classes);
        std::mem::swap(&mut self.continuations.names.known, &mut visited.name_continuations);
    }

    /// Returns the memory of the visited states, in bytes.
    pub(crate) fn visited_bytes(&self) -> usize {
        self.states.memory_bytes()
            + self.mask_classes.memory_bytes()
            + self.records.memory_bytes()
            + self.next.capacity() * 16
            + self.run_transitions.capacity() * 28
            + self.live.capacity() * 40
            + self.cache.byte_classes.memory_bytes()
            + self.continuations.names.known.memory_bytes()
    }
}
