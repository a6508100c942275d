//! Mask automata of machines that are read state by state and bring a mask function of their own.

use formalm_core::{ByteSet, Error, Machine, MaskClassId, StateId};
use formalm_machines::{
    ClassAutomaton, MaskShortcuts, NoLexicalMachine, StringClasses, ValueClasses,
};

/// The states of a machine as mask classes, and the function that computes a mask.
pub(super) struct OpaqueAutomaton<'a, M, F> {
    pub(super) machine: &'a M,
    pub(super) mask: F,
}

impl<M: Machine, F: Fn(StateId) -> Result<Vec<u32>, Error>> ClassAutomaton
    for OpaqueAutomaton<'_, M, F>
{
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        let next = self.machine.step(StateId::from_number(key.number()), byte)?;
        Ok(next.map(|next| MaskClassId::from_number(next.number())))
    }

    fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        self.machine.live_bytes(StateId::from_number(key.number()))
    }
}

impl<M: Machine, F: Fn(StateId) -> Result<Vec<u32>, Error>> MaskShortcuts
    for OpaqueAutomaton<'_, M, F>
{
    fn direct_mask(&self, key: MaskClassId) -> Result<Option<Vec<u32>>, Error> {
        (self.mask)(StateId::from_number(key.number())).map(Some)
    }
}

impl<M: Machine, F: Fn(StateId) -> Result<Vec<u32>, Error>> StringClasses
    for OpaqueAutomaton<'_, M, F>
{
}

impl<M: Machine, F: Fn(StateId) -> Result<Vec<u32>, Error>> ValueClasses
    for OpaqueAutomaton<'_, M, F>
{
}
