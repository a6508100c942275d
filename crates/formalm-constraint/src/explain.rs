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
        if let Some(explained) = self.explained_ahead(token_id)? {
            return Ok(explained);
        }
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

    /// The same with a machine to look ahead with, where there is one and bytes alone decide.
    fn explained_ahead(&self, token_id: u32) -> Result<Option<Explanation>, Error> {
        let (epoch, vocabulary) = (self.epoch(), self.epoch().vocabulary());
        if self.has_ended() || vocabulary.is_end_token(token_id) || epoch.is_canonical() {
            return Ok(None);
        }
        let (Some(bytes), Some(ahead)) = (vocabulary.token_bytes(token_id), epoch.ahead()) else {
            return Ok(None);
        };
        let start = ahead.enter(epoch.state(self.position()))?;
        let (refusal, state) = match ahead.machine.walk(start, bytes)? {
            Ok(state) => (None, state),
            Err(good) => {
                let refusal = epoch.not_viable(bytes, good);
                let Refusal::NotViable { good } = refusal else { return Ok(None) };
                match ahead.machine.walk(start, &bytes[..good])? {
                    Ok(state) => (Some(refusal), state),
                    Err(_) => return Ok(None),
                }
            }
        };
        Ok(Some(Explanation {
            refusal,
            expected: ahead.machine.live_bytes(state)?,
            accepting: ahead.machine.is_accepting(state)?,
        }))
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
