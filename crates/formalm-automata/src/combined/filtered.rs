//! The members of a machine that a regular language has too.
//!
//! A state is a pair of states, and both being alive does not make the pair alive. Machines that can
//! tell are asked ([`Machine::completion_beside`]). Otherwise a search looks for a common member,
//! guided by how many bytes each side needs or the machine says they need together, and remembers
//! what it learns. It is limited: where it finds no answer it says so, and never guesses.

mod search;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use search::{ALONE, Effort, LOOKS};

use super::states::{States, live, shortest, way_of};
use crate::automaton::{Automaton, StateId};
use crate::bytes::ByteSet;
use crate::error::Error;
use crate::machine::{Beside, Completion, Look, Machine, alike};

type Pair = (StateId, StateId);

/// A machine and a regular one beside it.
#[derive(Debug)]
pub struct Filtered<M> {
    machine: Arc<M>,
    regular: Arc<Automaton>,
    learnt: Mutex<Learnt>,
}

#[derive(Debug)]
struct Learnt {
    states: States,
    beside: Beside,
    /// Whether there is a common member, where that was searched.
    alive: FxHashMap<Pair, bool>,
    /// Bytes to the nearest common member; `None` if there is none.
    needs: FxHashMap<Pair, Option<usize>>,
    left: FxHashMap<StateId, usize>,
    right: FxHashMap<StateId, usize>,
}

impl<M: Machine> Filtered<M> {
    /// The common members; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], also if it was not found out.
    pub fn of(
        machine: Arc<M>,
        regular: Arc<Automaton>,
        state_limit: u64,
    ) -> Result<Option<Filtered<M>>, Error> {
        let learnt = Learnt {
            states: States::new(state_limit),
            beside: Beside { regular: Arc::clone(&regular), known: None },
            alive: FxHashMap::default(),
            needs: FxHashMap::default(),
            left: FxHashMap::default(),
            right: FxHashMap::default(),
        };
        let filtered = Filtered { machine, regular, learnt: Mutex::new(learnt) };
        let start = (filtered.machine.start(), filtered.regular.start());
        let found = {
            let learnt = &mut filtered.lock();
            learnt.states.number(vec![(start.0.number(), start.1)])?;
            filtered.is_alive(start, learnt)?
        };
        Ok(found.then_some(filtered))
    }

    /// Number of pairs so far, states of the parts aside.
    pub fn state_count(&self) -> usize {
        self.lock().states.len()
    }

    fn lock(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pair(&self, state: StateId, learnt: &Learnt) -> Pair {
        let (left, right) = learnt.states.items(state.number())[0];
        (StateId::from_number(left), right)
    }

    fn advance(&self, (left, right): Pair, byte: u8) -> Result<Option<Pair>, Error> {
        let Some(right) = self.regular.step(right, byte)? else { return Ok(None) };
        Ok(self.machine.step(left, byte)?.map(|left| (left, right)))
    }

    fn is_member(&self, (left, right): Pair) -> Result<bool, Error> {
        Ok(self.regular.is_accepting(right) && self.machine.is_accepting(left)?)
    }

    /// What is known of common members without a search.
    fn known(
        &self,
        (left, right): Pair,
        look: Look,
        learnt: &mut Learnt,
    ) -> Result<Completion, Error> {
        if learnt.alive.get(&(left, right)) == Some(&false) {
            return Ok(Completion::Never);
        }
        let told = self.told((left, right), look, learnt)?;
        let least = match told {
            Completion::Never | Completion::Exactly(_) => return Ok(told),
            Completion::AtLeast(bytes) => bytes,
            Completion::Unknown => match learnt.right.get(&right) {
                Some(&known) => known,
                None => {
                    let bytes = self.regular.shortest(right)?.len();
                    learnt.right.insert(right, bytes);
                    bytes
                }
            },
        };
        let own = match learnt.left.get(&left) {
            Some(&known) => known,
            None => self.machine.least_bytes(left)?,
        };
        learnt.left.insert(left, own);
        Ok(Completion::AtLeast(least.max(own)))
    }

    /// What the machine tells of common members.
    fn told(
        &self,
        (left, right): Pair,
        look: Look,
        learnt: &mut Learnt,
    ) -> Result<Completion, Error> {
        // Where a closer look is too much work, others may still tell.
        for one in [Look::Closest, Look::Close, Look::Loose] {
            if one <= look {
                match self.machine.completion_beside(left, &mut learnt.beside, right, one)? {
                    Completion::Unknown => {}
                    told => return Ok(told),
                }
            }
        }
        Ok(Completion::Unknown)
    }

    /// What is to be found out, without a search if the machine can tell; by one with a loose look,
    /// and if that is too much work with closer ones.
    fn found_out<T>(
        &self,
        pair: Pair,
        learnt: &mut Learnt,
        told: impl Fn(Option<usize>) -> T,
        search: impl Fn(Effort, &mut Learnt) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // Of a machine that tells nothing it is searched once, each step at what it costs.
        let silent = self.told(pair, Look::Loose, learnt)? == Completion::Unknown;
        let efforts: &[Effort] = if silent { &[ALONE] } else { &LOOKS };
        for (at, &effort) in efforts.iter().enumerate() {
            match self.known(pair, effort.look, learnt)? {
                Completion::Never => return Ok(told(None)),
                Completion::Exactly(bytes) => return Ok(told(Some(bytes))),
                Completion::Unknown | Completion::AtLeast(_) => {}
            }
            match search(effort, learnt) {
                Err(Error::Limit { .. }) if at + 1 < efforts.len() => {}
                found => return found,
            }
        }
        Ok(told(None))
    }

    /// Whether there is a common member.
    fn is_alive(&self, pair: Pair, learnt: &mut Learnt) -> Result<bool, Error> {
        match learnt.alive.get(&pair) {
            Some(&known) => Ok(known),
            None => self.found_out(
                pair,
                learnt,
                |bytes| bytes.is_some(),
                |effort, learnt| self.find(pair, effort, learnt),
            ),
        }
    }

    /// Bytes to the nearest common member; [`usize::MAX`] if there is none.
    fn needs(&self, pair: Pair, learnt: &mut Learnt) -> Result<usize, Error> {
        let needs = self.found_out(
            pair,
            learnt,
            |bytes| bytes,
            |effort, learnt| self.look(pair, effort, learnt),
        )?;
        Ok(needs.unwrap_or(usize::MAX))
    }
}

impl<M: Machine> Machine for Filtered<M> {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let learnt = &mut *self.lock();
        if let Some(known) = learnt.states.known(state.number(), byte) {
            return Ok(known.map(StateId::from_number));
        }
        let mut next = self.advance(self.pair(state, learnt), byte)?;
        if let Some(pair) = next
            && !self.is_alive(pair, learnt)?
        {
            next = None;
        }
        let number = match next {
            Some((left, right)) => Some(learnt.states.number(vec![(left.number(), right)])?),
            None => None,
        };
        learnt.states.keep(state.number(), byte, number);
        Ok(number.map(StateId::from_number))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        let pair = self.pair(state, &self.lock());
        self.is_member(pair)
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        live(|byte| self.step(state, byte))
    }

    fn ways(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        let (left, right) = self.pair(state, &self.lock());
        let (left, right) = (self.machine.ways(left)?, self.regular.ways(right)?);
        alike(|byte| Ok(way_of(&left, byte).zip(way_of(&right, byte))))
    }

    fn is_finite(&self) -> bool {
        self.machine.is_finite()
    }

    fn is_exact(&self) -> bool {
        self.machine.is_exact()
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        let needs = |state: StateId| {
            let learnt = &mut *self.lock();
            let pair = self.pair(state, learnt);
            self.needs(pair, learnt)
        };
        shortest(state, needs, |state, byte| self.step(state, byte))
    }

    fn least_bytes(&self, state: StateId) -> Result<usize, Error> {
        let learnt = &mut *self.lock();
        let pair = self.pair(state, learnt);
        self.needs(pair, learnt)
    }

    fn is_member(&self, text: &[u8]) -> Result<Option<bool>, Error> {
        let end = self.regular.walk(self.regular.start(), text)?;
        if !end.is_ok_and(|state| self.regular.is_accepting(state)) {
            return Ok(Some(false));
        }
        let known = self.machine.is_member(text)?;
        if known.is_some() {
            return Ok(known);
        }
        self.machine.is_completed(self.machine.start(), text).map(Some)
    }

    fn memory_bytes(&self) -> usize {
        let learnt = self.lock();
        let maps = (learnt.needs.len() + learnt.alive.len()) * 28
            + (learnt.left.len() + learnt.right.len()) * 20;
        let known = learnt.beside.known.as_ref();
        learnt.states.memory_bytes()
            + known.map_or(0, |known| known.memory_bytes())
            + maps
            + self.machine.memory_bytes()
            + self.regular.memory_bytes()
    }

    fn renewed(&self) -> Result<Option<Filtered<M>>, Error> {
        let states = self.lock().states.limit();
        match (self.machine.renewed()?, self.regular.renewed()?) {
            (Some(machine), Some(regular)) => {
                Filtered::of(Arc::new(machine), Arc::new(regular), states)
            }
            _ => Ok(None),
        }
    }
}
