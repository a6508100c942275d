//! The state inside a JSON string whose content an automaton reads on its own.

use std::sync::Arc;

use formalm_automata::{Automaton, TransientState};
use formalm_core::{Error, LazyDfa, StateId};

use crate::escapes::{EscapePolicy, EscapeState, EscapeStep, read_string_byte, some_completion};

/// A state inside a JSON string in which nothing matters before the closing quote but that the
/// content is a member.
#[derive(Clone, Debug)]
pub struct JsonStringState {
    /// The automaton of the string's content.
    pub machine: Arc<Automaton>,
    /// The state of that automaton.
    pub state: StateId,
    /// The escape policy.
    pub escapes: EscapePolicy,
    /// What is read from the state; set where states of the automaton are dropped after one query.
    pub transient: Option<TransientState>,
}

impl JsonStringState {
    /// Returns `true` if the content read so far ends with a complete character.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn is_char_boundary(&self) -> Result<bool, Error> {
        // Inside a character only continuation bytes may follow, and elsewhere none of them.
        let inside = 0x80..=0xBF_u8;
        if let Some(first) = self.machine.first_bytes(self.state) {
            return Ok(!inside.into_iter().any(|byte| first.contains(byte)));
        }
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
pub fn step_json_string<S: Copy>(
    (state, escape): (S, EscapeState),
    byte: u8,
    policy: EscapePolicy,
    step: &impl Fn(S, u8) -> Result<Option<S>, Error>,
) -> Result<Option<(S, EscapeState)>, Error> {
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
    match read_string_byte(escape, byte, policy) {
        EscapeStep::Invalid | EscapeStep::End => Ok(None),
        EscapeStep::Partial(escape) => {
            let reader = |bytes: &[u8]| Ok(walk(bytes)?.map(|_| ()));
            Ok(some_completion(escape, policy, &reader)?.then_some((state, escape)))
        }
        EscapeStep::Char(text) => Ok(walk(&text)?.ok().map(|state| (state, EscapeState::None))),
    }
}
