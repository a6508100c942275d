//! The mask classes of a regular automaton: its quotient by the viability of strings up to the
//! length of the longest token.
//!
//! A mask asks which strings of at most that many bytes keep a member reachable, so the mask of a
//! state is that of its class (see [`BoundedQuotient`]), and masks are computed on the quotient.

use std::sync::Arc;

use crate::automaton::{Automaton, BoundedQuotient, ClassLoop, StateId};
use crate::byte_set::ByteSet;
use crate::charset::{CharSet, ClassCover, WIDE_PARTS};
use crate::error::Error;
use crate::json_escapes::EscapePolicy;
use crate::machine::MaskAutomaton;
use crate::machine::NoLexicalMachine;
use crate::machine::{ClassVisitor, MaskClasses};

/// Identifies a mask class of one [`RegularMaskClasses`], or of any [`crate::MaskClasses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MaskClassId(u32);

impl MaskClassId {
    /// Returns the number of the class: small and dense.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the class with a number that classes outside this crate chose.
    pub fn from_number(number: u32) -> MaskClassId {
        MaskClassId(number)
    }
}

/// A mask class that reads `min` to `max` characters of a character class before anything else.
#[derive(Clone, Debug)]
pub struct CharRepetition {
    /// The characters; of the ASCII ones only those in `ascii` repeat.
    pub class: CharSet,
    /// ASCII characters that repeat, as bits.
    pub ascii: u128,
    /// How much of each part of the non-ASCII characters repeats.
    pub wide: [ClassCover; WIDE_PARTS],
    /// Minimum number of characters before the exit is taken.
    pub min: u32,
    /// Maximum number of characters; `None` if it exceeds the longest token.
    pub max: Option<u32>,
    /// The class from which the repetition is left once enough characters are read; `None` if
    /// nothing follows.
    pub exit: Option<MaskClassId>,
    /// The escape policy if the class is the inside of a JSON string, between two characters. The
    /// repeated characters are then all, and `exit` reads the closing quote.
    pub json_string: Option<EscapePolicy>,
}

/// The mask classes of a regular automaton.
#[derive(Debug)]
pub struct RegularMaskClasses(BoundedQuotient);

impl RegularMaskClasses {
    /// Creates the classes for tokens of at most `max_token_len` bytes.
    pub fn new(automaton: Arc<Automaton>, max_token_len: usize) -> RegularMaskClasses {
        RegularMaskClasses(BoundedQuotient::new(automaton, max_token_len))
    }
}

impl MaskClasses for RegularMaskClasses {
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

    fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }

    fn fresh_copy(&self) -> Result<Option<RegularMaskClasses>, Error> {
        Ok(self.0.fresh_copy()?.map(RegularMaskClasses))
    }
}

impl MaskAutomaton for RegularMaskClasses {
    type LexicalMachine = NoLexicalMachine;

    fn lexical_machine(&self) -> Option<&NoLexicalMachine> {
        None
    }

    #[inline]
    fn step(&self, key: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        Ok(self.0.step(quotient_state(key), byte)?.map(class_id))
    }

    fn live_bytes(&self, key: MaskClassId) -> Result<ByteSet, Error> {
        self.0.live_bytes(quotient_state(key))
    }

    fn char_repetition(&self, key: MaskClassId) -> Result<Option<CharRepetition>, Error> {
        let found = self.0.char_repetition(quotient_state(key))?;
        Ok(found.map(|ClassLoop { class, ascii, wide, min, max, exit }| {
            let exit = exit.map(class_id);
            CharRepetition { class, ascii, wide, min, max, exit, json_string: None }
        }))
    }
}

#[inline]
fn class_id(state: StateId) -> MaskClassId {
    MaskClassId::from_number(state.number())
}

#[inline]
fn quotient_state(class: MaskClassId) -> StateId {
    StateId::from_number(class.number())
}
