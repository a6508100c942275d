//! The mask classes of regular automata, which number their classes themselves.

use std::sync::Arc;

use formalm_automata::{Automaton, RegularMaskClasses};
use formalm_core::{ByteSet, Error, MaskClassId, StateId};

use crate::{
    ApproximateClasses, CharRepetition, ClassAutomaton, ClassRenewal, ClassVisitor, MaskShortcuts,
    NoLexicalMachine, StateClasses, StringClasses, ValueClasses,
};

impl StateClasses for RegularMaskClasses {
    type Machine = Automaton;

    fn machine(&self) -> &Arc<Automaton> {
        RegularMaskClasses::machine(self)
    }

    #[inline]
    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        RegularMaskClasses::mask_class(self, state)
    }

    #[inline]
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        RegularMaskClasses::known_mask_class(self, state)
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        purpose.visit(self)
    }

    fn memory_bytes(&self) -> usize {
        RegularMaskClasses::memory_bytes(self)
    }
}

impl ApproximateClasses for RegularMaskClasses {}

impl ClassRenewal for RegularMaskClasses {
    fn is_abandoned(&self) -> bool {
        RegularMaskClasses::is_abandoned(self)
    }

    fn fresh_copy(&self) -> Result<Option<RegularMaskClasses>, Error> {
        RegularMaskClasses::fresh_copy(self)
    }
}

impl ClassAutomaton for RegularMaskClasses {
    type LexicalMachine = NoLexicalMachine;

    fn lexical_machine(&self) -> Option<&NoLexicalMachine> {
        None
    }

    #[inline]
    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        RegularMaskClasses::step(self, class, byte)
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        RegularMaskClasses::live_bytes(self, class)
    }

    fn char_repetition(&self, class: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        Ok(RegularMaskClasses::char_repetition(self, class)?.map(CharRepetition::from))
    }
}

impl MaskShortcuts for RegularMaskClasses {}

impl StringClasses for RegularMaskClasses {}

impl ValueClasses for RegularMaskClasses {}
