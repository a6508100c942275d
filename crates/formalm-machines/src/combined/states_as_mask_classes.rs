//! Mask classes read on states: identity classes, for machines without better ones, and classes read
//! on a representative state.

use std::sync::Arc;

use formalm_core::{ByteSet, Error, LazyDfa, Machine, MaskClassId, StateId};

use super::scratch_copies::{ScratchCache, ScratchMachine};
use crate::{
    AcceptingMaskAutomaton, AcceptingVisitor, ApproximateClasses, ClassAutomaton, ClassRenewal,
    ClassVisitor, MaskShortcuts, MemberEnds, NoLexicalMachine, StateClasses, StringClasses,
    ValueClasses,
};

/// The states of a machine as its mask classes. Masks are found byte by byte.
#[derive(Debug)]
pub struct IdentityClasses<M> {
    machine: Arc<M>,
    ahead: ScratchCache<M>,
}

impl<M> IdentityClasses<M> {
    /// Creates the identity classes of a machine.
    pub fn new(machine: Arc<M>) -> IdentityClasses<M> {
        IdentityClasses { machine, ahead: ScratchCache::default() }
    }
}

impl<M: Machine> IdentityClasses<M> {
    /// Returns the scratch machine on which masks are found; `None` if it is the machine itself.
    pub fn scratch(&self) -> Option<Arc<ScratchMachine<M>>> {
        self.ahead.of(&self.machine)
    }
}

impl<M: Machine> StateClasses for IdentityClasses<M> {
    type Machine = M;

    fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        Ok(MaskClassId::from_number(state.number()))
    }

    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        Some(MaskClassId::from_number(state.number()))
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        match self.scratch() {
            Some(ahead) => purpose.visit(&ahead.mask_automaton()),
            None => purpose.visit(&StatesAsClasses::new(&*self.machine)),
        }
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        let class = MaskClassId::from_number(state.number());
        Ok(match self.scratch() {
            Some(ahead) => purpose.visit(&ahead.mask_automaton(), class),
            None => purpose.visit(&StatesAsClasses::new(&*self.machine), class),
        })
    }

    fn memory_bytes(&self) -> usize {
        self.ahead.memory_bytes()
    }
}

impl<M: Machine> MemberEnds for IdentityClasses<M> {}

impl<M: Machine> ApproximateClasses for IdentityClasses<M> {}

impl<M: Machine> ClassRenewal for IdentityClasses<M> {
    fn over_scratch(&self, machine: &Arc<M>) -> Option<IdentityClasses<M>> {
        Some(IdentityClasses::new(Arc::clone(machine)))
    }
}

/// The mask automaton whose classes are the states of a machine.
#[derive(Debug)]
pub struct StatesAsClasses<'a, M>(&'a M);

impl<'a, M> StatesAsClasses<'a, M> {
    /// Wraps a machine.
    pub fn new(machine: &'a M) -> StatesAsClasses<'a, M> {
        StatesAsClasses(machine)
    }
}

impl<M: Machine> AcceptingMaskAutomaton for StatesAsClasses<'_, M> {
    fn is_accepting_class(&self, class: MaskClassId) -> Result<bool, Error> {
        self.0.is_accepting(StateId::from_number(class.number()))
    }
}

impl<M: Machine> ClassAutomaton for StatesAsClasses<'_, M> {
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        let next = self.0.step(StateId::from_number(class.number()), byte)?;
        Ok(next.map(|next| MaskClassId::from_number(next.number())))
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        self.0.live_bytes(StateId::from_number(class.number()))
    }
}

impl<M: Machine> MaskShortcuts for StatesAsClasses<'_, M> {}

impl<M: Machine> StringClasses for StatesAsClasses<'_, M> {}

impl<M: Machine> ValueClasses for StatesAsClasses<'_, M> {}

/// The mask automaton of classes that are read on a representative state.
///
/// Every step interns a state of the machine, so this is for machines that are dropped with a
/// search, see [`formalm_core::ScratchCopies::scratch_copy`].
#[derive(Debug)]
pub struct RepresentativeClasses<'a, K, F> {
    classes: &'a K,
    state: F,
}

impl<'a, K: StateClasses, F: Fn(MaskClassId) -> StateId> RepresentativeClasses<'a, K, F> {
    /// Wraps classes; `state` returns a state of a class.
    pub fn new(classes: &'a K, state: F) -> RepresentativeClasses<'a, K, F> {
        RepresentativeClasses { classes, state }
    }
}

impl<K: StateClasses, F: Fn(MaskClassId) -> StateId> ClassAutomaton
    for RepresentativeClasses<'_, K, F>
{
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        match self.classes.machine().step((self.state)(class), byte)? {
            Some(next) => self.classes.mask_class(next).map(Some),
            None => Ok(None),
        }
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        self.classes.machine().live_bytes((self.state)(class))
    }
}

impl<K: StateClasses, F: Fn(MaskClassId) -> StateId> MaskShortcuts
    for RepresentativeClasses<'_, K, F>
{
}

impl<K: StateClasses, F: Fn(MaskClassId) -> StateId> StringClasses
    for RepresentativeClasses<'_, K, F>
{
}

impl<K: StateClasses, F: Fn(MaskClassId) -> StateId> ValueClasses
    for RepresentativeClasses<'_, K, F>
{
}
