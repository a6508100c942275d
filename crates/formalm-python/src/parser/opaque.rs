//! Mask automata of machines that are read state by state and bring a mask function of their own.

use formalm_automata::{ByteSet, Error, KeyId, Machine, NoLexemes, Repetition, StateId, Steps};

/// The states of a machine as mask classes, and the function that computes a mask.
pub(super) struct OpaqueAutomaton<'a, M, F> {
    pub(super) machine: &'a M,
    pub(super) mask: F,
}

impl<M: Machine, F: Fn(StateId) -> Result<Vec<u32>, Error>> Steps for OpaqueAutomaton<'_, M, F> {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let next = self.machine.step(StateId::from_number(key.number()), byte)?;
        Ok(next.map(|next| KeyId::from_number(next.number())))
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        self.machine.live_bytes(StateId::from_number(key.number()))
    }

    fn mask(&self, key: KeyId) -> Result<Option<Vec<u32>>, Error> {
        (self.mask)(StateId::from_number(key.number())).map(Some)
    }

    fn repetition(&self, _: KeyId) -> Result<Option<Repetition>, Error> {
        Ok(None)
    }
}
