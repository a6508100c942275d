//! The members of a machine that a regular language has too.
//!
//! A state is a pair of states, and both being alive does not make the pair alive. A search looks
//! for a common member, guided by how many bytes each side needs, and remembers what it learns. It
//! is limited: where it finds no answer it says so, and never guesses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::states::{States, live, shortest, way_of};
use crate::automaton::{Automaton, StateId};
use crate::bytes::ByteSet;
use crate::error::{Error, Resource};
use crate::machine::{Machine, alike};

/// Work in search of one common member: pairs of states, and bytes of the members that bound them.
const WORK: usize = 50_000;
/// Steps that the machine may take in it: less than a second.
const STEPS: u64 = 50_000_000;

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
            needs: FxHashMap::default(),
            left: FxHashMap::default(),
            right: FxHashMap::default(),
        };
        let filtered = Filtered { machine, regular, learnt: Mutex::new(learnt) };
        let start = (filtered.machine.start(), filtered.regular.start());
        let found = {
            let learnt = &mut filtered.lock();
            let needs = filtered.look(start, learnt)?;
            learnt.states.number(vec![(start.0.number(), start.1)])?;
            needs
        };
        Ok(found.map(|_| filtered))
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

    /// A lower bound of the bytes to a common member.
    fn bound(&self, (left, right): Pair, learnt: &mut Learnt) -> Result<usize, Error> {
        let one = match learnt.left.get(&left) {
            Some(&known) => known,
            None => self.machine.least_bytes(left)?,
        };
        learnt.left.insert(left, one);
        let other = match learnt.right.get(&right) {
            Some(&known) => known,
            None => self.regular.shortest(right)?.len(),
        };
        learnt.right.insert(right, other);
        Ok(one.max(other))
    }

    /// Bytes to the nearest common member, exactly: pairs are looked at in the order of the bytes
    /// that a member through them needs at least, and bounds never shrink by more than was read.
    fn look(&self, from: Pair, learnt: &mut Learnt) -> Result<Option<usize>, Error> {
        if let Some(&known) = learnt.needs.get(&from) {
            return Ok(known);
        }
        let mut came: Vec<(Pair, usize, usize)> = vec![(from, 0, 0)];
        let mut nearest: FxHashMap<Pair, usize> = FxHashMap::from_iter([(from, 0)]);
        let mut spent = 0;
        let before = self.machine.steps_taken();
        let mut queue = BinaryHeap::from([(Reverse(self.bound(from, learnt)?), 0usize, 0usize)]);
        while let Some((Reverse(all), read, at)) = queue.pop() {
            let here = came[at].0;
            let rest = match learnt.needs.get(&here) {
                Some(&known) => known,
                None => self.is_member(here)?.then_some(0),
            };
            match rest {
                Some(rest) if read + rest <= all => {
                    mark(&came, at, rest, learnt);
                    return Ok(Some(read + rest));
                }
                Some(rest) => {
                    queue.push((Reverse(read + rest), read, at));
                    continue;
                }
                None if learnt.needs.contains_key(&here) || nearest[&here] < read => continue,
                None => {}
            }
            let taken = self.machine.steps_taken() - before;
            if taken > STEPS {
                let (needed, allowed) = (taken, STEPS);
                return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
            }
            for byte in 0..=255 {
                let Some(next) = self.advance(here, byte)? else { continue };
                if nearest.get(&next).is_some_and(|&before| before <= read + 1) {
                    continue;
                }
                nearest.insert(next, read + 1);
                let bound = self.bound(next, learnt)?;
                spent += 1 + bound;
                if spent > WORK {
                    let (needed, allowed) = (spent as u64, WORK as u64);
                    return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
                }
                came.push((next, at, read + 1));
                queue.push((Reverse(read + 1 + bound), read + 1, came.len() - 1));
            }
        }
        for (pair, _, _) in came {
            learnt.needs.insert(pair, None);
        }
        Ok(None)
    }
}

/// Notes the distances along the way to entry `at`, which is `rest` from a member.
fn mark(came: &[(Pair, usize, usize)], mut at: usize, rest: usize, learnt: &mut Learnt) {
    let all = came[at].2 + rest;
    loop {
        let (pair, before, read) = came[at];
        learnt.needs.insert(pair, Some(all - read));
        if at == 0 {
            return;
        }
        at = before;
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
            && self.look(pair, learnt)?.is_none()
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
            Ok(self.look(pair, learnt)?.unwrap_or(usize::MAX))
        };
        shortest(state, needs, |state, byte| self.step(state, byte))
    }

    fn least_bytes(&self, state: StateId) -> Result<usize, Error> {
        let learnt = &mut *self.lock();
        let pair = self.pair(state, learnt);
        Ok(self.look(pair, learnt)?.unwrap_or(usize::MAX))
    }

    fn steps_taken(&self) -> u64 {
        self.machine.steps_taken()
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
        let maps = learnt.needs.len() * 28 + (learnt.left.len() + learnt.right.len()) * 20;
        learnt.states.memory_bytes()
            + maps
            + self.machine.memory_bytes()
            + self.regular.memory_bytes()
    }
}
