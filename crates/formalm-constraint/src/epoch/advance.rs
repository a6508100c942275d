//! Positions of a constraint behind tokens and bytes.

use formalm_automata::explicit::Poll;
use formalm_automata::{Keys, Machine, outside_special};

use super::{Position, StateEpoch};
use crate::canonical::NONE;
use crate::matcher::Refusal;

impl<K: Keys> StateEpoch<K> {
    /// The position after a token that is no end token.
    ///
    /// # Errors
    ///
    /// A [`Refusal`].
    #[inline]
    pub fn read(&self, position: Position, token_id: u32) -> Result<Position, Refusal> {
        let Some(bytes) = self.vocabulary.token_bytes(token_id) else {
            let known = (token_id as usize) < self.vocabulary.len();
            return Err(if known { Refusal::NoBytes } else { Refusal::OutOfRange });
        };
        let Some(canonical) = &self.canonical else {
            return match self.keys.read_token(position.state, token_id, bytes)? {
                Ok(state) => Ok(Position { state, last: NONE }),
                Err(good) => Err(self.not_viable(bytes, good)),
            };
        };
        let before = (position.state, position.last);
        if let Some(state) = canonical.step(&self.keys, before, token_id)? {
            // Behind a special token a text begins.
            let is_text = self.vocabulary.without_special_bytes().token_bytes(token_id).is_some();
            return Ok(Position { state, last: if is_text { token_id } else { NONE } });
        }
        match self.machine().walk(canonical.machine_state(position.state), bytes)? {
            Ok(_) => Err(Refusal::NotCanonical),
            Err(good) => Err(self.not_viable(bytes, good)),
        }
    }

    /// The refusal of a token whose next byte leads to no member; of a special token there are no
    /// parts.
    pub(crate) fn not_viable(&self, bytes: &[u8], good: usize) -> Refusal {
        let special = self.vocabulary.has_special_bytes();
        Refusal::NotViable { good: if special { outside_special(&bytes[..good]) } else { good } }
    }

    /// The position after bytes without a token. Special tokens in them are whole ones.
    ///
    /// # Errors
    ///
    /// A [`Refusal`]; always where tokens must be canonical.
    pub fn read_bytes(
        &self,
        position: Position,
        bytes: &[u8],
        poll: &mut Poll<'_>,
    ) -> Result<Position, Refusal> {
        let whole =
            if self.vocabulary.has_special_bytes() { outside_special(bytes) } else { bytes.len() };
        let read = self.read_any(position, bytes, poll)?;
        if whole < bytes.len() { Err(Refusal::NotViable { good: whole }) } else { Ok(read) }
    }

    fn read_any(
        &self,
        position: Position,
        bytes: &[u8],
        poll: &mut Poll<'_>,
    ) -> Result<Position, Refusal> {
        if self.canonical.is_some() {
            return Err(Refusal::NoTokens);
        }
        match poll.walk(&**self.machine(), position.state, bytes, None)? {
            Ok(state) => Ok(Position { state, last: NONE }),
            Err(good) => Err(Refusal::NotViable { good }),
        }
    }

    /// The same where the bytes may end inside a character, also of a machine whose texts end at
    /// whole ones: tokens that are allowed lead there, byte by byte.
    ///
    /// # Errors
    ///
    /// A [`Refusal`].
    pub fn read_inside(
        &self,
        position: Position,
        bytes: &[u8],
        poll: &mut Poll<'_>,
    ) -> Result<Position, Refusal> {
        let good = match self.read_any(position, bytes, poll) {
            Err(Refusal::NotViable { good }) if !self.machine().is_exact() => good,
            other => return other,
        };
        let Position { mut state, .. } = self.read_any(position, &bytes[..good], poll)?;
        for &byte in &bytes[good..] {
            let next = self.machine().step(state, byte)?;
            state = next.ok_or(Refusal::NotViable { good })?;
        }
        Ok(Position { state, last: NONE })
    }
}
