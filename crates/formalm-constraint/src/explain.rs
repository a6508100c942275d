//! Explanations of why a token is allowed or not.

use formalm_core::{ByteSet, Error, InterruptCheck, LazyDfa, ReadingHints};
use formalm_machines::MaskClasses;

use crate::epoch::AdvanceError;
use crate::matcher::Matcher;

/// The continuations of a matcher at one token, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenExplanation {
    /// The reason why the token is not allowed, if it is not.
    pub refusal: Option<AdvanceError>,
    /// Bytes that may follow the viable part of the token.
    pub expected: ByteSet,
    /// `true` if the input with the viable part of the token is in the language.
    pub accepting: bool,
}

impl<K: MaskClasses> Matcher<K> {
    /// Explains why a token is or is not allowed, and which bytes may take its place.
    ///
    /// # Errors
    ///
    /// As [`Matcher::is_finished`].
    pub fn explain(&self, token_id: u32) -> Result<TokenExplanation, Error> {
        self.answer(|one| one.explain_here(token_id))
    }

    fn explain_here(&self, token_id: u32) -> Result<TokenExplanation, Error> {
        if let Some(explained) = self.explained_ahead(token_id)? {
            return Ok(explained);
        }
        let mut ahead = self.clone();
        let refusal = ahead.advance(token_id).err();
        if let Some(AdvanceError::Failed(error)) = refusal {
            return Err(error);
        }
        if let Some(AdvanceError::NotViable { good }) = refusal {
            let bytes = self.epoch().vocabulary().token_bytes(token_id).unwrap_or_default();
            let machine = self.epoch().machine();
            if let Ok(state) = machine.walk(self.epoch().state(self.position()), &bytes[..good])? {
                let expected = match machine.is_exact() {
                    true => machine.live_bytes(state)?,
                    false => self.live_bytes_behind(&bytes[..good])?,
                };
                return Ok(TokenExplanation {
                    refusal,
                    expected,
                    accepting: machine.is_accepting(state)?,
                });
            }
        }
        let (expected, accepting) = (ahead.live_bytes()?, ahead.is_accepting()?);
        Ok(TokenExplanation { refusal, expected, accepting })
    }

    /// Explains with the lookahead machine, if there is one and bytes alone decide.
    fn explained_ahead(&self, token_id: u32) -> Result<Option<TokenExplanation>, Error> {
        let (epoch, vocabulary) = (self.epoch(), self.epoch().vocabulary());
        let is_end = self.is_end_token(token_id) || vocabulary.is_end_token(token_id);
        if self.has_ended() || is_end || epoch.is_canonical() {
            return Ok(None);
        }
        let (Some(bytes), Some(ahead)) = (vocabulary.token_bytes(token_id), epoch.ahead()) else {
            return Ok(None);
        };
        let start = ahead.import_state(epoch.state(self.position()))?;
        let (refusal, state) = match ahead.machine.walk(start, bytes)? {
            Ok(state) => (None, state),
            Err(good) => {
                let refusal = epoch.not_viable(bytes, good);
                let AdvanceError::NotViable { good } = refusal else { return Ok(None) };
                match ahead.machine.walk(start, &bytes[..good])? {
                    Ok(state) => (Some(refusal), state),
                    Err(_) => return Ok(None),
                }
            }
        };
        Ok(Some(TokenExplanation {
            refusal,
            expected: ahead.machine.live_bytes(state)?,
            accepting: ahead.machine.is_accepting(state)?,
        }))
    }

    /// Returns the bytes that may follow after some more bytes, from the tokens that may.
    fn live_bytes_behind(&self, bytes: &[u8]) -> Result<ByteSet, Error> {
        let mut ahead = self.clone();
        match ahead.advance_bytes(bytes, &mut InterruptCheck::new(&mut || true)) {
            Ok(()) => ahead.live_bytes(),
            Err(AdvanceError::Failed(error)) => Err(error),
            Err(_) => Ok(ByteSet::default()),
        }
    }
}
