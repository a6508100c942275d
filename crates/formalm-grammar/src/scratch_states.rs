//! States that a machine to look ahead with keeps for itself.
//!
//! Such a machine shares all else with the one that it looks ahead of: stacks are told apart by their
//! shape, states of embedded languages by the texts that were read. While it has the lock its tables
//! stand in place of the others, so that everything that reads a text is written once.

use std::sync::MutexGuard;

use formalm_automata::{ByteSet, Error, Lock, StateId};
use rustc_hash::FxHashMap;

use crate::automaton::Grown;
use crate::interner::Lists;
use crate::state::Reading;
use crate::sublanguages;

/// What a machine has met: its states, and what they alone refer to.
#[derive(Debug)]
pub(crate) struct Met {
    states: Lists,
    viable: FxHashMap<Reading, bool>,
    embedded: sublanguages::Met,
    live: FxHashMap<u32, ByteSet>,
}

/// The tables of a machine to look ahead with; while it has the lock, those of the machine that it
/// looks ahead of.
#[derive(Debug)]
pub(crate) struct Own(Lock<Met>);

impl Own {
    pub(crate) fn new() -> Own {
        Own(Lock::new(Met {
            states: Lists::default(),
            viable: FxHashMap::default(),
            embedded: sublanguages::Met::of_own(),
            live: FxHashMap::default(),
        }))
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Met> {
        self.0.lock()
    }

    /// The state of its own that goes on as one of the machine that is looked ahead of, which has
    /// the lock.
    pub(crate) fn enter(&self, grown: &mut Grown, state: StateId) -> Result<StateId, Error> {
        let met = &mut *self.lock();
        let mut readings = grown.core.readings(state.number() - 1);
        let at: Vec<Option<(u32, StateId)>> = readings
            .iter()
            .map(|one| one.is_embedded().then(|| grown.core.embedded.at(one.lexeme)))
            .collect();
        grown.swap(met);
        let entered = grown.core.entered(&mut readings, &at);
        let own = entered.map(|()| grown.core.state(&readings) + 1);
        grown.swap(met);
        own.map(StateId::from_number)
    }
}

impl crate::state::Core {
    /// Puts places of its own for those in embedded languages, which are given.
    fn entered(
        &mut self,
        readings: &mut [Reading],
        at: &[Option<(u32, StateId)>],
    ) -> Result<(), Error> {
        for (reading, at) in readings.iter_mut().zip(at) {
            if let &Some((terminal, state)) = at {
                reading.lexeme = self.embedded.entered(terminal, state)?;
            }
        }
        readings.sort_unstable();
        Ok(())
    }
}

impl Grown {
    pub(crate) fn swap(&mut self, met: &mut Met) {
        std::mem::swap(&mut self.core.states, &mut met.states);
        std::mem::swap(&mut self.core.viable, &mut met.viable);
        std::mem::swap(&mut self.core.embedded.met, &mut met.embedded);
        std::mem::swap(&mut self.live, &mut met.live);
    }

    /// Memory of what was met, in bytes.
    pub(crate) fn met_bytes(&self) -> usize {
        self.core.states.memory_bytes()
            + self.core.viable.capacity() * 17
            + self.core.embedded.met_bytes()
            + self.live.capacity() * 40
    }
}
