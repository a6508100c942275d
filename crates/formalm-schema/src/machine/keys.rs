//! States as keys, read ahead of the text for masks.

use std::cell::RefCell;
use std::sync::{Arc, MutexGuard};

use formalm_automata::{
    ByteSet, CharSet, Cover, Error, KeyId, Keys, NoLexemes, Purpose, Repetition, StateId, Steps,
    WIDE_PARTS,
};

use super::frame::{Escape, Frame};
use super::{DEAD, Grown, SchemaAutomaton, UNRECORDED};
use crate::formula::TRUE;
use crate::options::Escapes;

/// The states of a schema's machine as keys.
#[derive(Debug)]
pub struct SchemaKeys {
    automaton: Arc<SchemaAutomaton>,
}

impl SchemaKeys {
    /// Keys of a machine.
    pub fn new(automaton: Arc<SchemaAutomaton>) -> SchemaKeys {
        SchemaKeys { automaton }
    }
}

impl Keys for SchemaKeys {
    type Machine = SchemaAutomaton;

    fn machine(&self) -> &Arc<SchemaAutomaton> {
        &self.automaton
    }

    fn key(&self, state: StateId) -> Result<KeyId, Error> {
        Ok(KeyId::from_number(state.number()))
    }

    #[inline]
    fn known_key(&self, state: StateId) -> Option<KeyId> {
        Some(KeyId::from_number(state.number()))
    }

    fn read<P: Purpose>(&self, purpose: P) -> P::Result {
        let mut grown = self.automaton.lock();
        let before = grown.remember();
        let ahead = Ahead { grown: RefCell::new(grown) };
        let result = purpose.read(&ahead);
        ahead.grown.into_inner().forget(before);
        result
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// A look ahead of the text. States that it makes are dropped with it: a mask meets many more
/// than texts come to.
#[derive(Debug)]
struct Ahead<'a> {
    grown: RefCell<MutexGuard<'a, Grown>>,
}

impl Steps for Ahead<'_> {
    type Lexemes = NoLexemes;

    fn lexemes(&self) -> Option<&NoLexemes> {
        None
    }

    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error> {
        let next = self.grown.borrow_mut().successor(key.number(), byte)?;
        Ok((next != DEAD).then(|| KeyId::from_number(next)))
    }

    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error> {
        let mut set = ByteSet::default();
        for byte in 0..=255 {
            if self.step(key, byte)?.is_some() {
                set.insert(byte);
            }
        }
        Ok(set)
    }

    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error> {
        let grown = self.grown.borrow();
        let (frame, record) = *grown.states.get(key.number());
        let Frame::Text { language, asked, escape, .. } = grown.frames.get(frame.0) else {
            return Ok(None);
        };
        let free = grown.core.class_formula(*language) == TRUE
            && asked.is_empty()
            && *escape == Escape::None
            && record == UNRECORDED;
        // Inside a character of several bytes the machine of texts is elsewhere.
        if !free || grown.frames.get(frame.0) != &grown.opened(frame) {
            return Ok(None);
        }
        let printable = CharSet::from_ranges([(' ', '!'), ('#', '['), (']', '\u{7F}')]);
        let wide = CharSet::from_ranges([('\u{80}', char::MAX)]);
        let ascii = (0..128u8).filter(|&byte| printable.contains(char::from(byte)));
        let ascii = ascii.fold(0, |set, byte| set | 1u128 << byte);
        let only_ascii = grown.core.options.escapes == Escapes::Ascii;
        let (class, cover) = match only_ascii {
            true => (printable, Cover::None),
            false => (printable.union(&wide), Cover::Full),
        };
        let wide = [cover; WIDE_PARTS];
        Ok(Some(Repetition { class, ascii, wide, min: 0, max: None, exit: Some(key) }))
    }
}
