//! State transitions of a constraint over tokens and bytes.

use formalm_core::{Error, InterruptCheck, LazyDfa, ReadingHints};
use formalm_machines::{MaskClasses, len_outside_special};

use super::{ConstraintState, StateEpoch};
use crate::canonical::NONE;

/// The reason why a token or bytes were not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdvanceError {
    /// The id is not in the vocabulary.
    OutOfRange,
    /// A special token: an id without bytes.
    NoBytes,
    /// An end token, but the input is not in the language.
    NotAccepting,
    /// The sequence has ended already.
    Ended,
    /// The byte after the first `good` bytes is not viable.
    NotViable {
        /// Number of viable bytes of the token or input.
        good: usize,
    },
    /// Some string continues with the token's bytes, but not in canonical tokens.
    NotCanonical,
    /// Bytes without tokens, although tokens must be canonical.
    NoTokens,
    /// The machine exceeded a limit.
    Failed(Error),
}

impl From<Error> for AdvanceError {
    fn from(error: Error) -> AdvanceError {
        AdvanceError::Failed(error)
    }
}

impl<K: MaskClasses> StateEpoch<K> {
    /// Returns the state after a token that is no end token.
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`].
    #[inline]
    pub fn read(
        &self,
        position: ConstraintState,
        token_id: u32,
    ) -> Result<ConstraintState, AdvanceError> {
        let Some(bytes) = self.vocabulary.token_bytes(token_id) else {
            let known = (token_id as usize) < self.vocabulary.len();
            return Err(if known { AdvanceError::NoBytes } else { AdvanceError::OutOfRange });
        };
        let Some(canonical) = &self.canonical else {
            return match self.keys.read_token(position.state, token_id, bytes)? {
                Ok(state) => Ok(ConstraintState { state, last: NONE }),
                Err(good) => Err(self.not_viable(bytes, good)),
            };
        };
        let before = (position.state, position.last);
        if let Some(state) = canonical.step(&self.keys, before, token_id)? {
            // A text begins after a special token.
            let is_text = self.vocabulary.without_special_bytes().token_bytes(token_id).is_some();
            return Ok(ConstraintState { state, last: if is_text { token_id } else { NONE } });
        }
        match self.machine().walk(canonical.machine_state(position.state), bytes)? {
            Ok(_) => Err(AdvanceError::NotCanonical),
            Err(good) => Err(self.not_viable(bytes, good)),
        }
    }

    /// Returns the error of a token whose next byte is not viable. Special tokens count as a whole.
    pub(crate) fn not_viable(&self, bytes: &[u8], good: usize) -> AdvanceError {
        let special = self.vocabulary.has_special_bytes();
        AdvanceError::NotViable {
            good: if special { len_outside_special(&bytes[..good]) } else { good },
        }
    }

    /// Returns the state after bytes without a token. Special tokens in them must be complete.
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`]; always if tokens must be canonical.
    pub fn read_bytes(
        &self,
        position: ConstraintState,
        bytes: &[u8],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<ConstraintState, AdvanceError> {
        let whole = if self.vocabulary.has_special_bytes() {
            len_outside_special(bytes)
        } else {
            bytes.len()
        };
        let read = self.read_any(position, bytes, poll)?;
        if whole < bytes.len() { Err(AdvanceError::NotViable { good: whole }) } else { Ok(read) }
    }

    fn read_any(
        &self,
        position: ConstraintState,
        bytes: &[u8],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<ConstraintState, AdvanceError> {
        if self.canonical.is_some() {
            return Err(AdvanceError::NoTokens);
        }
        match poll.walk(&**self.machine(), position.state, bytes, None)? {
            Ok(state) => Ok(ConstraintState { state, last: NONE }),
            Err(good) => Err(AdvanceError::NotViable { good }),
        }
    }

    /// Returns the state after bytes that may end inside a character, also for a machine whose
    /// inputs end at character boundaries. Allowed tokens lead there, byte by byte.
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`].
    pub fn read_inside(
        &self,
        position: ConstraintState,
        bytes: &[u8],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<ConstraintState, AdvanceError> {
        let good = match self.read_any(position, bytes, poll) {
            Err(AdvanceError::NotViable { good }) if !self.machine().is_exact() => good,
            other => return other,
        };
        let ConstraintState { mut state, .. } = self.read_any(position, &bytes[..good], poll)?;
        for &byte in &bytes[good..] {
            let next = self.machine().step(state, byte)?;
            state = next.ok_or(AdvanceError::NotViable { good })?;
        }
        Ok(ConstraintState { state, last: NONE })
    }
}
