//! Identity mask classes: the states of a machine as its classes, for machines without better ones.

use std::sync::Arc;

use super::scratch_machine::Lookahead;
use crate::automaton::StateId;
use crate::automaton::{KeyId, Repetition};
use crate::byte_set::ByteSet;
use crate::error::Error;
use crate::machine::NoLexemes;
use crate::machine::Steps;
use crate::machine::{EndPurpose, EndSteps, Keys, Machine, Purpose};

/// The states of a machine as its mask classes. Masks are found byte by byte.
#[derive(Debug)]
pub struct StateKeys<M> {
    machine: Arc<M>,
    ahead: Lookahead<M>,
}

impl<M> StateKeys<M> {
    /// Creates the identity classes of a machine.
    pub fn new(machine: Arc<M>) -> StateKeys<M> {
        StateKeys { machine, ahead: Lookahead::default() }
    }
}

impl<M: Machine> Keys for StateKeys<M> {
    type Machine = M;

    fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        Ok(KeyId::from_number(state.number()))
    }

    fn known_key(&self, state: StateId) -> Option<KeyId> {
        Some(KeyId::from_number(state.number()))
    }

    fn over(&self, machine: &Arc<M>) -> Option<StateKeys<M>> {
        Some(StateKeys::new(Arc::clone(machine)))
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        match self.ahead.of(&self.machine) {
            Some(ahead) => purpose.read(&ahead.steps()),
            None => purpose.read(&Plainly::new(&*self.machine)),
        }
    }

    fn read_ends<P: EndPurpose>(&self, state: StateId, purpose: P) -> Result<P::Result, Error> {
        let class = KeyId::from_number(state.number());
        Ok(match self.ahead.of(&self.machine) {
            Some(ahead) => purpose.read(&ahead.steps(), class),
            None => purpose.read(&Plainly::new(&*self.machine), class),
        })
    }

    fn memory_bytes(&self) -> usize {
        self.ahead.memory_bytes()
    }
}

/// The mask automaton whose classes are the states of a machine.
#[derive(Debug)]
pub struct Plainly<'a, M>(&'a M);

impl<'a, M> Plainly<'a, M> {
    /// Wraps a machine.
    pub fn new(machine: &'a M) -> Plainly<'a, M> {
        Plainly(machine)
    }
}

impl<M: Machine> EndSteps for Plainly<'_, M> {
    fn is_end(&self, class: KeyId) -> Result<bool, Error> {
        self.0.is_accepting(StateId::from_number(class.number()))
    }
}

impl<M: Machine> Steps for Plainly<'_, M> {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, class: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let next = self.0.step(StateId::from_number(class.number()), byte)?;
        Ok(next.map(|next| KeyId::from_number(next.number())))
    }

    fn live_bytes(&self, class: KeyId) -> Result<ByteSet, Error> {
        self.0.live_bytes(StateId::from_number(class.number()))
    }

    fn repetition(&self, _: KeyId) -> Result<Option<Repetition>, Error> {
        Ok(None)
    }
}
