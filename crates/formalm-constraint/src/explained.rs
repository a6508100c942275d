//! Why a token is allowed or not.

use formalm_automata::explicit::Poll;
use formalm_automata::{ByteSet, Error, Keys, Machine};

use crate::matcher::{Matcher, Refusal};

/// What may and may not follow, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Why the token is refused, if it is.
    pub refusal: Option<Refusal>,
    /// Bytes that may follow the viable part of the token.
    pub expected: ByteSet,
    /// Whether the text with the viable part of the token is a member.
    pub accepting: bool,
}

impl<K: Keys> Matcher<K> {
    /// Why a token is or is not allowed, and what could stand in its place.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn explain(&self, token_id: u32) -> Result<Explanation, Error> {
        self.answer(|one| one.explain_here(token_id))
    }

    fn explain_here(&self, token_id: u32) -> Result<Explanation, Error> {
        let mut ahead = self.clone();
        let refusal = ahead.advance(token_id).err();
        if let Some(Refusal::Failed(error)) = refusal {
            return Err(error);
        }
        if let Some(Refusal::NotViable { good }) = refusal {
            let bytes = self.epoch().vocabulary().token_bytes(token_id).unwrap_or_default();
            let machine = self.epoch().machine();
            if let Ok(state) = machine.walk(self.epoch().state(self.position()), &bytes[..good])? {
                let expected = match machine.is_exact() {
                    true => machine.live_bytes(state)?,
                    false => self.live_bytes_behind(&bytes[..good])?,
                };
                return Ok(Explanation {
                    refusal,
                    expected,
                    accepting: machine.is_accepting(state)?,
                });
            }
        }
        let (expected, accepting) = (ahead.live_bytes()?, ahead.is_accepting()?);
        Ok(Explanation { refusal, expected, accepting })
    }

    /// Bytes that may follow after some more, by the tokens that do.
    fn live_bytes_behind(&self, bytes: &[u8]) -> Result<ByteSet, Error> {
        let mut ahead = self.clone();
        match ahead.advance_bytes(bytes, &mut Poll::new(&mut || true)) {
            Ok(()) => ahead.live_bytes(),
            Err(Refusal::Failed(error)) => Err(error),
            Err(_) => Ok(ByteSet::default()),
        }
    }
}
