//! The private states of a scratch copy of a grammar automaton.
//!
//! A scratch copy explores states that no input may reach. It shares everything that does not
//! depend on the input read: stacks are interned by shape, lexer states by threads. Its own tables
//! are swapped in while it holds the lock, so that all reading code is written once.

use std::sync::MutexGuard;

use formalm_core::{ByteSet, Error, ForkSafeMutex, MemoryBytes, StateId};
use rustc_hash::FxHashMap;

use crate::automaton::SharedState;
use crate::configurations::{Configuration, Configurations};
use crate::sublanguages::{SublanguageStates, Sublanguages};

/// The tables that depend on the inputs read: states, and whatever refers to them.
#[derive(Debug)]
pub(crate) struct StateTables {
    states: Configurations,
    viable: FxHashMap<Configuration, bool>,
    sublanguages: SublanguageStates,
    live: FxHashMap<u32, ByteSet>,
}

/// The tables of a scratch copy. While it holds the lock, they hold those of the original.
#[derive(Debug)]
pub(crate) struct ScratchStates(ForkSafeMutex<StateTables>);

impl ScratchStates {
    pub(crate) fn new() -> ScratchStates {
        ScratchStates(ForkSafeMutex::new(StateTables {
            states: Configurations::default(),
            viable: FxHashMap::default(),
            sublanguages: SublanguageStates::for_scratch_copy(),
            live: FxHashMap::default(),
        }))
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, StateTables> {
        self.0.lock()
    }

    /// Returns the scratch state that corresponds to a state of the original, whose lock the caller
    /// holds.
    pub(crate) fn enter(&self, shared: &mut SharedState, state: StateId) -> Result<StateId, Error> {
        let visited = &mut *self.lock();
        let mut configurations = shared.core.states.get(state.number() - 1);
        let at: Vec<Option<(u32, StateId)>> = configurations
            .iter()
            .map(|one| {
                one.is_in_sublanguage().then(|| shared.core.reader.sublanguages.at(one.lexeme))
            })
            .collect();
        shared.swap(visited);
        let entered = shared.core.reader.sublanguages.enter(&mut configurations, &at);
        let scratch = entered.map(|()| shared.core.states.intern(&configurations) + 1);
        shared.swap(visited);
        scratch.map(StateId::from_number)
    }
}

impl Sublanguages {
    /// Replaces positions in sublanguages, given as `at`, with positions of the scratch copy.
    fn enter(
        &mut self,
        configurations: &mut [Configuration],
        at: &[Option<(u32, StateId)>],
    ) -> Result<(), Error> {
        for (configuration, at) in configurations.iter_mut().zip(at) {
            if let &Some((terminal, state)) = at {
                configuration.lexeme = self.enter_position(terminal, state)?;
            }
        }
        configurations.sort_unstable();
        Ok(())
    }
}

impl SharedState {
    pub(crate) fn swap(&mut self, visited: &mut StateTables) {
        std::mem::swap(&mut self.core.states, &mut visited.states);
        std::mem::swap(&mut self.core.search.viable, &mut visited.viable);
        std::mem::swap(&mut self.core.reader.sublanguages.visited, &mut visited.sublanguages);
        std::mem::swap(&mut self.live, &mut visited.live);
    }

    /// Returns the bytes used by the visited states.
    pub(crate) fn visited_bytes(&self) -> usize {
        self.core.states.memory_bytes()
            + self.core.search.viable.capacity() * 17
            + self.core.reader.sublanguages.visited_bytes()
            + self.live.capacity() * 40
    }
}
