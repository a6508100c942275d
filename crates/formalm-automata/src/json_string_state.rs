//! Places inside of strings of JSON whose texts a machine of their own reads.

use std::sync::Arc;

use crate::automaton::{Automaton, StateId};
use crate::error::Error;
use crate::machine::Machine;
use crate::spelling::{Escape, Escapes, Read, read, some_completion};
use crate::terms::custom_language::Like;

/// A place in a string of JSON where nothing matters before its end but that the text is a member.
#[derive(Clone, Debug)]
pub struct InText {
    /// The machine of the texts.
    pub machine: Arc<Automaton>,
    /// Its state.
    pub state: StateId,
    /// How strings are spelled.
    pub escapes: Escapes,
    /// Where states of the machine mean nothing once this has been looked at: another state that
    /// most texts are read from alike.
    pub like: Option<Like>,
}

impl InText {
    /// Whether the text read so far ends with a whole character.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn is_between_characters(&self) -> Result<bool, Error> {
        // Inside a character nothing but bytes like these may follow, and elsewhere none of them.
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

/// What a byte of a string's spelling leads to from a place in its text, `step` being what bytes of
/// the text do; `None` if the string ends or no text goes on so.
///
/// # Errors
///
/// Those of `step`.
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
