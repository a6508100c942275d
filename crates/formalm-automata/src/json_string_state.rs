//! The state inside a JSON string whose content an automaton reads on its own.

use std::sync::Arc;

use crate::automaton::{Automaton, StateId};
use crate::error::Error;
use crate::machine::Machine;
use crate::spelling::{Escape, Escapes, Read, read, some_completion};
use crate::terms::custom_language::Like;

/// A state inside a JSON string in which nothing matters before the closing quote but that the
/// content is a member.
#[derive(Clone, Debug)]
pub struct InText {
    /// The automaton of the string's content.
    pub machine: Arc<Automaton>,
    /// The state of that automaton.
    pub state: StateId,
    /// The escape policy.
    pub escapes: Escapes,
    /// A representative state that reads most strings alike. It is set where states of the
    /// automaton are dropped after one query.
    pub like: Option<Like>,
}

impl InText {
    /// Returns `true` if the content read so far ends with a complete character.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn is_between_characters(&self) -> Result<bool, Error> {
        // Inside a character only continuation bytes may follow, and elsewhere none of them.
        let inside = 0x80..=0xBF_u8;
        let starts = self.machine.class_starts().iter().copied();
        for byte in starts.filter(|byte| inside.contains(byte)).chain([0x80]) {
            if self.machine.step(self.state, byte)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Advances a string state by one raw byte of the JSON string; `step` reads the bytes of its
/// content. Returns `None` if the string ends or no content continues so.
///
/// # Errors
///
/// Fails with the errors of `step`.
pub fn spell<S: Copy>(
    (state, escape): (S, Escape),
    byte: u8,
    policy: Escapes,
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
) -> Result<Option<(S, Escape)>, Error> {
    let walk = |bytes: &[u8]| -> Result<Result<S, usize>, Error> {
        let mut state = state;
        for (at, &byte) in bytes.iter().enumerate() {
            match step(state, byte)? {
                Some(next) => state = next,
                None => return Ok(Err(at)),
            }
        }
        Ok(Ok(state))
    };
    match read(escape, byte, policy) {
        Read::Wrong | Read::End => Ok(None),
        Read::Inside(escape) => {
            let reader = |bytes: &[u8]| Ok(walk(bytes)?.map(|_| ()));
            Ok(some_completion(escape, policy, &reader)?.then_some((state, escape)))
        }
        Read::Text(text) => Ok(walk(&text)?.ok().map(|state| (state, Escape::None))),
    }
}
