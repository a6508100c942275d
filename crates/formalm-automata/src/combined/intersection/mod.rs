//! The members of a machine that a regular language has too.
//!
//! A state is a pair of states, and both being alive does not make the pair alive. Machines that can
//! tell are asked ([`Machine::completion_beside`]). Otherwise a search looks for a common member,
//! guided by how many bytes each side needs or the machine says they need together, and remembers
//! what it learns. It is limited: where it finds no answer it says so, and never guesses.
//!
//! Searches meet many states that no text comes to, so they are made on a machine to look ahead with.
//! What they learn is about its states; it is dropped with them once it takes much memory.

mod nonemptiness_search;

use std::sync::{Arc, MutexGuard};

use rustc_hash::FxHashMap;

use nonemptiness_search::{ALONE, Effort, LOOKS};

use super::scratch_machine::{AHEAD_BYTES, Lookahead};
use super::state_interner::{States, live, shortest, way_of};
use crate::automaton::{Automaton, StateId};
use crate::byte_set::ByteSet;
use crate::error::Error;
use crate::machine::{Beside, Completion, Look, Machine, alike};
use crate::runtime::Lock;

type Pair = (StateId, StateId);

/// A machine and a regular one beside it.
#[derive(Debug)]
pub struct Filtered<M> {
    /// Most states.
    state_limit: u64,
    machine: Arc<M>,
    regular: Arc<Automaton>,
    states: Arc<Lock<States>>,
    searches: Lock<Arc<Searches<M>>>,
    /// Of a machine to look ahead with, the states of the one that it looks ahead of.
    of: Option<Arc<Lock<States>>>,
    ahead: Lookahead<Filtered<M>>,
}

/// Searches for common members.
#[derive(Debug)]
struct Searches<M> {
    /// The machine to look ahead with, or the machine itself.
    machine: Arc<M>,
    is_ahead: bool,
    regular: Arc<Automaton>,
    learnt: Lock<Learnt>,
}

#[derive(Debug)]
struct Learnt {
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
        let searches = Searches::of(&machine, &regular);
        let states = Arc::new(Lock::new(States::new(state_limit)));
        let searches = Lock::new(Arc::new(searches));
        let (of, ahead) = (None, Lookahead::default());
        let filtered = Filtered { state_limit, machine, regular, states, searches, of, ahead };
        let start = (filtered.machine.start(), filtered.regular.start());
        filtered.lock().number(vec![(start.0.number(), start.1)])?;
        Ok(filtered.is_alive(start)?.then_some(filtered))
    }

    /// Number of pairs so far, states of the parts aside.
    pub fn state_count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, States> {
        self.states.lock()
    }

    /// The searches so far, or new ones where they have learnt too much to be kept.
    fn searches(&self) -> Arc<Searches<M>> {
        let searches = &mut *self.searches.lock();
        if self.of.is_none() && (searches.is_abandoned() || searches.memory_bytes() > AHEAD_BYTES) {
            *searches = Arc::new(Searches::of(&self.machine, &self.regular));
        }
        Arc::clone(searches)
    }

    fn pair(&self, state: StateId) -> Pair {
        pair(&self.lock(), state)
    }

    fn advance(&self, (left, right): Pair, byte: u8) -> Result<Option<Pair>, Error> {
        let Some(right) = self.regular.step(right, byte)? else { return Ok(None) };
        Ok(self.machine.step(left, byte)?.map(|left| (left, right)))
    }

    fn is_member(&self, (left, right): Pair) -> Result<bool, Error> {
        Ok(self.regular.is_accepting(right) && self.machine.is_accepting(left)?)
    }

    /// Whether there is a common member.
    fn is_alive(&self, pair: Pair) -> Result<bool, Error> {
        let searches = self.searches();
        searches.is_alive(searches.enter(&self.machine, pair)?, &mut searches.lock())
    }

    /// Bytes to the nearest common member; [`usize::MAX`] if there is none.
    fn needs(&self, pair: Pair) -> Result<usize, Error> {
        let searches = self.searches();
        searches.needs(searches.enter(&self.machine, pair)?, &mut searches.lock())
    }
}

fn pair(states: &States, state: StateId) -> Pair {
    let (left, right) = states.items(state.number())[0];
    (StateId::from_number(left), right)
}

impl<M: Machine> Searches<M> {
    fn of(machine: &Arc<M>, regular: &Arc<Automaton>) -> Searches<M> {
        let ahead = machine.ahead().map(Arc::new);
        let is_ahead = ahead.is_some();
        let machine = ahead.unwrap_or_else(|| Arc::clone(machine));
        let regular = Arc::clone(regular);
        let learnt = Learnt {
            beside: Beside { regular: Arc::clone(&regular), known: None },
            alive: FxHashMap::default(),
            needs: FxHashMap::default(),
            left: FxHashMap::default(),
            right: FxHashMap::default(),
        };
        Searches { machine, is_ahead, regular, learnt: Lock::new(learnt) }
    }

    fn is_abandoned(&self) -> bool {
        self.learnt.is_abandoned() || self.machine.is_abandoned() || self.regular.is_abandoned()
    }

    fn lock(&self) -> MutexGuard<'_, Learnt> {
        self.learnt.lock()
    }

    /// The pair here that goes on as one of a machine.
    fn enter(&self, machine: &Arc<M>, (left, right): Pair) -> Result<Pair, Error> {
        let is_same = Arc::ptr_eq(&self.machine, machine);
        Ok((if is_same { left } else { self.machine.enter(left)? }, right))
    }

    fn advance(&self, (left, right): Pair, byte: u8) -> Result<Option<Pair>, Error> {
        let Some(right) = self.regular.step(right, byte)? else { return Ok(None) };
        Ok(self.machine.step(left, byte)?.map(|left| (left, right)))
    }

    fn is_member(&self, (left, right): Pair) -> Result<bool, Error> {
        Ok(self.regular.is_accepting(right) && self.machine.is_accepting(left)?)
    }

    /// Memory in use, in bytes, unless it is the machine's own.
    fn memory_bytes(&self) -> usize {
        let learnt = self.lock();
        let maps = (learnt.needs.capacity() + learnt.alive.capacity()) * 24
            + (learnt.left.capacity() + learnt.right.capacity()) * 17;
        let known = learnt.beside.known.as_ref().map_or(0, |known| known.memory_bytes());
        maps + known + if self.is_ahead { self.machine.memory_bytes() } else { 0 }
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
        let before = {
            let states = self.lock();
            if let Some(known) = states.known(state.number(), byte) {
                return Ok(known.map(StateId::from_number));
            }
            pair(&states, state)
        };
        let mut next = self.advance(before, byte)?;
        if let Some(pair) = next
            && !self.is_alive(pair)?
        {
            next = None;
        }
        let states = &mut *self.lock();
        let number = match next {
            Some((left, right)) => Some(states.number(vec![(left.number(), right)])?),
            None => None,
        };
        states.keep(state.number(), byte, number);
        Ok(number.map(StateId::from_number))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        self.is_member(self.pair(state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        if let Some(ahead) = self.ahead.of(self) {
            return ahead.machine.live_bytes(ahead.enter(state)?);
        }
        live(|byte| self.step(state, byte))
    }

    fn ways(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        let (left, right) = self.pair(state);
        let (left, right) = (self.machine.ways(left)?, self.regular.ways(right)?);
        alike(|byte| Ok(way_of(&left, byte).zip(way_of(&right, byte))))
    }

    fn is_finite(&self) -> bool {
        self.machine.is_finite()
    }

    fn is_exact(&self) -> bool {
        self.machine.is_exact()
    }

    fn ahead(&self) -> Option<Filtered<M>> {
        if self.of.is_some() {
            return None;
        }
        let searches = self.searches();
        let base = self.lock();
        let (left, right) = pair(&base, StateId::from_number(0));
        let start = searches.enter(&self.machine, (left, right)).ok()?;
        let mut states = States::new(self.state_limit);
        states.number(vec![(start.0.number(), start.1)]).ok()?;
        Some(Filtered {
            state_limit: self.state_limit,
            machine: Arc::clone(&searches.machine),
            regular: Arc::clone(&self.regular),
            states: Arc::new(Lock::new(states)),
            searches: Lock::new(searches),
            of: Some(Arc::clone(&self.states)),
            ahead: Lookahead::default(),
        })
    }

    fn enter(&self, state: StateId) -> Result<StateId, Error> {
        let Some(of) = &self.of else { return Ok(state) };
        let (left, right) = pair(&of.lock(), state);
        let left = self.machine.enter(left)?;
        self.lock().number(vec![(left.number(), right)]).map(StateId::from_number)
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        if let Some(ahead) = self.ahead.of(self) {
            return ahead.machine.shortest(ahead.enter(state)?);
        }
        let needs = |state: StateId| self.needs(self.pair(state));
        shortest(state, needs, |state, byte| self.step(state, byte))
    }

    fn least_bytes(&self, state: StateId) -> Result<usize, Error> {
        self.needs(self.pair(state))
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
        let own = self.lock().memory_bytes() + self.searches().memory_bytes();
        if self.of.is_some() {
            return own;
        }
        let ahead = self.ahead.kept().map_or(0, |one| one.machine.lock().memory_bytes());
        own + ahead + self.machine.memory_bytes() + self.regular.memory_bytes()
    }

    fn is_abandoned(&self) -> bool {
        self.states.is_abandoned()
            || self.of.as_ref().is_some_and(|of| of.is_abandoned())
            || self.searches.is_abandoned()
            || (self.of.is_some() && self.searches().is_abandoned())
            || self.machine.is_abandoned()
            || self.regular.is_abandoned()
    }

    fn renewed(&self) -> Result<Option<Filtered<M>>, Error> {
        let states = self.state_limit;
        match (self.machine.renewed()?, self.regular.renewed()?) {
            (Some(machine), Some(regular)) => {
                Filtered::of(Arc::new(machine), Arc::new(regular), states)
            }
            _ => Ok(None),
        }
    }
}
