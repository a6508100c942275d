//! States that a machine to look ahead with keeps for itself.
//!
//! Such a machine shares all else with the one that it looks ahead of: frames and formulas are the
//! same for many texts, states and recorded texts are not. While it has the lock its tables stand in
//! place of the others, so that everything that reads a text is written once.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use formalm_automata::{ByteSet, Error, Lock, StateId};
use rustc_hash::FxHashMap;

use crate::machine::frame::{Frame, Place};
use crate::machine::mask_class::name_continuation::View;
use crate::machine::{DEAD, EMPTY_RECORD, Grown, Recorded, UNRECORDED};
use crate::table::{Map, Table};

/// What a machine has met: its states, and what they alone refer to.
#[derive(Debug)]
pub(crate) struct Met {
    states: Table<Place>,
    records: Table<(Recorded, u8, u32)>,
    next: FxHashMap<(u32, u8), u32>,
    leaps: FxHashMap<(u32, u64), u32>,
    live: FxHashMap<u32, ByteSet>,
    keys: Table<Place>,
    /// Of places, which refer to recorded texts.
    ways: Map<Place, Arc<[ByteSet]>>,
    /// Names that stand for others, with the texts of some.
    views: Map<View, Frame>,
}

impl Default for Met {
    fn default() -> Met {
        let mut records = Table::default();
        records.intern((0, 0, 0));
        records.intern((0, 1, 0));
        Met {
            states: Table::default(),
            records,
            next: FxHashMap::default(),
            leaps: FxHashMap::default(),
            live: FxHashMap::default(),
            keys: Table::default(),
            ways: Map::default(),
            views: Map::default(),
        }
    }
}

/// The tables of a machine to look ahead with; while it has the lock, those of the machine that it
/// looks ahead of.
#[derive(Debug)]
pub(crate) struct Own(Lock<Met>);

impl Default for Own {
    fn default() -> Own {
        Own(Lock::new(Met::default()))
    }
}

impl Own {
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    fn lock(&self) -> MutexGuard<'_, Met> {
        self.0.lock()
    }

    /// The state of its own that goes on as one of the machine that is looked ahead of, which has
    /// the lock.
    pub(crate) fn enter(&self, grown: &Grown, state: StateId) -> StateId {
        let own = &mut *self.lock();
        let place = *grown.states.get(state.number());
        let mut recorded = |record: Recorded| {
            if record == UNRECORDED {
                return UNRECORDED;
            }
            (1..).zip(grown.recorded(record, 0)).fold(EMPTY_RECORD, |record, (length, byte)| {
                own.records.intern((record, byte, length))
            })
        };
        let record = recorded(place.record);
        let frame = match place.frame {
            Frame::Name { object, naming, text, reach, escape } => {
                Frame::Name { object, naming, text: recorded(text), reach, escape }
            }
            other => other,
        };
        StateId::from_number(own.states.intern(Place { frame, record }))
    }
}

/// What grows, locked, with the states of whoever has the lock.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    grown: MutexGuard<'a, Box<Grown>>,
    others: Option<MutexGuard<'a, Met>>,
}

impl<'a> Locked<'a> {
    pub(crate) fn new(grown: MutexGuard<'a, Box<Grown>>, own: Option<&'a Own>) -> Locked<'a> {
        let mut locked = Locked { grown, others: own.map(Own::lock) };
        locked.swap();
        locked
    }

    fn swap(&mut self) {
        if let Some(others) = &mut self.others {
            self.grown.swap(others);
        }
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        self.swap();
    }
}

impl Deref for Locked<'_> {
    type Target = Grown;

    #[inline]
    fn deref(&self) -> &Grown {
        &self.grown
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Grown {
        &mut self.grown
    }
}

impl Grown {
    fn swap(&mut self, met: &mut Met) {
        std::mem::swap(&mut self.states, &mut met.states);
        std::mem::swap(&mut self.records, &mut met.records);
        std::mem::swap(&mut self.next, &mut met.next);
        std::mem::swap(&mut self.leaps, &mut met.leaps);
        std::mem::swap(&mut self.live, &mut met.live);
        std::mem::swap(&mut self.keys, &mut met.keys);
        std::mem::swap(&mut self.known.ways, &mut met.ways);
        std::mem::swap(&mut self.outlooks.views.known, &mut met.views);
    }

    /// Bytes that some instance continues a state with; the states behind them are not kept.
    pub(crate) fn live(&mut self, state: u32) -> Result<ByteSet, Error> {
        if let Some(&known) = self.live.get(&state) {
            return Ok(known);
        }
        let (place, records) = (*self.states.get(state), self.records.len());
        let mut live = ByteSet::default();
        for byte in 0..=255 {
            let leads = match self.next.get(&(state, byte)) {
                Some(&known) => known != DEAD,
                None => self.read_fresh(place, byte)?.is_some(),
            };
            if leads {
                live.insert(byte);
            }
        }
        self.records.truncate(records);
        self.live.insert(state, live);
        Ok(live)
    }

    /// Memory of what was met, in bytes.
    pub(crate) fn met_bytes(&self) -> usize {
        self.states.memory_bytes()
            + self.keys.memory_bytes()
            + self.records.memory_bytes()
            + self.next.capacity() * 16
            + self.leaps.capacity() * 28
            + self.live.capacity() * 40
            + self.known.ways.memory_bytes()
            + self.outlooks.views.known.memory_bytes()
    }
}
