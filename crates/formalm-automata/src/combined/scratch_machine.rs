//! Scratch machines: copies of a machine for searches, kept from one query to the next.
//!
//! Consecutive queries meet the same states, so a scratch machine is reused. It is dropped once it
//! uses more than [`SCRATCH_BYTES`].

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::automaton::StateId;
use crate::automaton::{KeyId, Repetition};
use crate::byte_set::ByteSet;
use crate::error::Error;
use crate::machine::NoLexemes;
use crate::machine::Steps;
use crate::machine::{EndSteps, Machine};
use crate::runtime::Lock;

/// Memory, in bytes, above which a scratch machine is dropped before the next query. Chosen, not
/// measured.
pub const SCRATCH_BYTES: usize = 8 << 20;

/// Mask classes from this number on are states of the scratch machine.
const FIRST_SCRATCH_CLASS: u32 = 1 << 30;

/// A cache for the scratch machine of one machine.
#[derive(Debug)]
pub struct Lookahead<M>(Lock<Option<Arc<Ahead<M>>>>);

impl<M> Default for Lookahead<M> {
    fn default() -> Lookahead<M> {
        Lookahead(Lock::default())
    }
}

impl<M: Machine> Lookahead<M> {
    /// Returns the scratch machine of `machine`, or `None` if `machine` itself may be searched.
    pub fn of(&self, machine: &M) -> Option<Arc<Ahead<M>>> {
        let kept = &mut *self.0.lock();
        if kept.as_ref().is_none_or(|one| one.is_abandoned() || one.memory_bytes() > SCRATCH_BYTES)
        {
            *kept = machine.ahead().map(|machine| Arc::new(Ahead::new(machine)));
        }
        kept.clone()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.current().map_or(0, |one| one.memory_bytes())
    }

    /// Returns the scratch machine of the last query.
    pub(super) fn current(&self) -> Option<Arc<Ahead<M>>> {
        self.0.lock().clone().filter(|one| !one.is_abandoned())
    }
}

/// A scratch machine, with the states imported from its original.
#[derive(Debug)]
pub struct Ahead<M> {
    /// The machine.
    pub machine: Arc<M>,
    /// Scratch states that were imported, with their numbers in the original.
    imported: Lock<FxHashMap<u32, u32>>,
}

impl<M: Machine> Ahead<M> {
    fn new(machine: M) -> Ahead<M> {
        Ahead { machine: Arc::new(machine), imported: Lock::new(FxHashMap::default()) }
    }

    /// Returns the scratch state equivalent to a state of the original.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn enter(&self, state: StateId) -> Result<StateId, Error> {
        self.machine.enter(state)
    }

    fn is_abandoned(&self) -> bool {
        self.imported.is_abandoned() || self.machine.is_abandoned()
    }

    fn memory_bytes(&self) -> usize {
        let entered = self.imported.lock();
        self.machine.memory_bytes() + entered.capacity() * 9
    }

    /// Returns the mask automaton whose classes are states of the original.
    pub fn steps(&self) -> ScratchMaskAutomaton<'_, M> {
        ScratchMaskAutomaton(self)
    }

    /// Returns the class of a scratch state.
    pub fn own(&self, state: StateId) -> KeyId {
        KeyId::from_number(FIRST_SCRATCH_CLASS + state.number())
    }

    /// Returns `true` if a class is a scratch state.
    pub fn is_own(&self, class: KeyId) -> bool {
        class.number() >= FIRST_SCRATCH_CLASS
    }

    /// Returns the class after a byte, always a scratch state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn step_to_own(&self, class: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let next = self.machine.step(self.state(class)?, byte)?;
        Ok(next.map(|next| self.own(next)))
    }

    fn state(&self, class: KeyId) -> Result<StateId, Error> {
        if let Some(own) = class.number().checked_sub(FIRST_SCRATCH_CLASS) {
            return Ok(StateId::from_number(own));
        }
        let own = self.enter(StateId::from_number(class.number()))?;
        let mut entered = self.imported.lock();
        entered.entry(own.number()).or_insert(class.number());
        Ok(own)
    }

    fn key(&self, state: StateId) -> KeyId {
        let entered = self.imported.lock();
        let known = entered.get(&state.number()).copied();
        KeyId::from_number(known.unwrap_or(FIRST_SCRATCH_CLASS + state.number()))
    }
}

/// The mask automaton of a scratch machine, with states as classes.
#[derive(Debug)]
pub struct ScratchMaskAutomaton<'a, M>(&'a Ahead<M>);

impl<M: Machine> EndSteps for ScratchMaskAutomaton<'_, M> {
    fn is_end(&self, class: KeyId) -> Result<bool, Error> {
        self.0.machine.is_accepting(self.0.state(class)?)
    }
}

impl<M: Machine> Steps for ScratchMaskAutomaton<'_, M> {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, class: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let next = self.0.machine.step(self.0.state(class)?, byte)?;
        Ok(next.map(|next| self.0.key(next)))
    }

    fn live_bytes(&self, class: KeyId) -> Result<ByteSet, Error> {
        self.0.machine.live_bytes(self.0.state(class)?)
    }

    fn repetition(&self, _: KeyId) -> Result<Option<Repetition>, Error> {
        Ok(None)
    }
}
