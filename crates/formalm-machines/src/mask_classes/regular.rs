//! The mask classes of a regular automaton: its quotient by the viability of strings up to the
//! length of the longest token.
//!
//! A mask asks which strings of at most that many bytes keep a member reachable, so the mask of a
//! state is that of its class (see [`BoundedQuotient`]), and masks are computed on the quotient.

use std::sync::Arc;

use formalm_automata::{Automaton, BoundedQuotient, LeadingWords};
use formalm_core::{ByteSet, Error, MaskClassId, StateId, WideParts};

use crate::{
    ApproximateClasses, CharRepetition, ClassAutomaton, ClassRenewal, ClassVisitor, MaskShortcuts,
    MemberEnds, NoLexicalMachine, PartPosition, StateClasses, StringClasses, ValueClasses,
};

/// ASCII digits, as bits.
const DIGITS: u128 = 0x3FF << b'0';

/// The mask classes of a regular automaton.
#[derive(Debug)]
pub struct RegularMaskClasses(BoundedQuotient);

impl RegularMaskClasses {
    /// Creates the classes for tokens of at most `max_token_len` bytes.
    pub fn new(automaton: Arc<Automaton>, max_token_len: usize) -> RegularMaskClasses {
        RegularMaskClasses(BoundedQuotient::new(automaton, max_token_len))
    }

    /// Creates the classes of the states with pure terms only, see
    /// [`BoundedQuotient::of_pure_states`].
    pub fn of_pure_states(automaton: Arc<Automaton>, max_token_len: usize) -> RegularMaskClasses {
        RegularMaskClasses(BoundedQuotient::of_pure_states(automaton, max_token_len))
    }
}

impl StateClasses for RegularMaskClasses {
    type Machine = Automaton;

    fn machine(&self) -> &Arc<Automaton> {
        self.0.automaton()
    }

    #[inline]
    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        self.0.class_of(state).map(class_id)
    }

    #[inline]
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        self.0.known_class_of(state).map(class_id)
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        purpose.visit(self)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

impl MemberEnds for RegularMaskClasses {
    fn part(&self, state: StateId) -> Result<Option<PartPosition>, Error> {
        let part = self.0.automaton().part(state)?;
        Ok(part.map(|(digest, after)| PartPosition { digest, after }))
    }
}

impl ApproximateClasses for RegularMaskClasses {}

impl ClassRenewal for RegularMaskClasses {
    fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    fn fresh_copy(&self) -> Result<Option<RegularMaskClasses>, Error> {
        Ok(self.0.fresh_copy()?.map(RegularMaskClasses))
    }
}

impl ClassAutomaton for RegularMaskClasses {
    type LexicalMachine = NoLexicalMachine;

    #[inline]
    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        Ok(self.0.step(quotient_state(class), byte)?.map(class_id))
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        self.0.live_bytes(quotient_state(class))
    }

    fn char_repetition(&self, class: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        Ok(self.0.char_repetition(quotient_state(class))?.map(CharRepetition::from))
    }

    fn wide_loops(&self, class: MaskClassId) -> Result<WideParts, Error> {
        Ok(self.0.wide_loops(quotient_state(class)))
    }
}

impl MaskShortcuts for RegularMaskClasses {
    const KNOWS_POSSIBLE_BYTES: bool = true;

    const HAS_FAST_STEPS: bool = true;

    fn knows_possible_bytes(&self) -> bool {
        self.0.reads_live_bytes()
    }

    #[inline]
    fn possible_bytes(&self, class: MaskClassId) -> Result<Option<ByteSet>, Error> {
        Ok(self.0.cheap_live_bytes(quotient_state(class)))
    }

    #[inline]
    fn accepts_any_of(
        &self,
        class: MaskClassId,
        characters: u128,
        max_len: u8,
    ) -> Result<bool, Error> {
        // A subtree of digits spares a hundred steps; of others, most are refused, and the question
        // takes two locks.
        if characters & !DIGITS != 0 {
            return Ok(false);
        }
        let live = self.possible_bytes(class)?;
        if live.is_none_or(|live| characters & !live.ascii() != 0) {
            return Ok(false);
        }
        let longest = if max_len == u8::MAX { u32::MAX } else { u32::from(max_len) };
        Ok(self.0.reads_any_of(quotient_state(class), characters) >= longest)
    }

    fn leading_words(&self, class: MaskClassId) -> Result<Option<LeadingWords>, Error> {
        self.0.leading_words(quotient_state(class))
    }

    fn differing_bytes(
        &self,
        first: MaskClassId,
        second: MaskClassId,
    ) -> Result<Option<ByteSet>, Error> {
        let (one, other) = (self.possible_bytes(first)?, self.possible_bytes(second)?);
        Ok(one.zip(other).map(|(one, other)| one.union(other)))
    }
}

impl StringClasses for RegularMaskClasses {}

impl ValueClasses for RegularMaskClasses {}

#[inline]
fn class_id(state: StateId) -> MaskClassId {
    MaskClassId::from_number(state.number())
}

#[inline]
fn quotient_state(class: MaskClassId) -> StateId {
    StateId::from_number(class.number())
}
