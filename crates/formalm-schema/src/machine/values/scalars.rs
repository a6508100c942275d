//! Strings and numbers, byte by byte, and their ends.

use formalm_core::{Error, LazyDfa};

use crate::machine::frame::{
    CharState, Frame, NumberPrefixId, ObligationId, ReaderPosition, VerdictsId,
};
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::values::{AfterEvent, Values};

/// A reader of the bytes of a character. It returns the number of bytes read before one is refused,
/// if one is.
pub(crate) type CharReader<'a> = dyn Fn(&[u8]) -> Result<Result<(), usize>, Error> + 'a;

/// A character of a string or name of which only a part of the spelling was read.
pub(crate) trait PartialChar {
    /// Returns `true` if the reader accepts some character that this can still become.
    fn some_accepted(&self, reader: &CharReader<'_>) -> Result<bool, Error>;

    /// Returns `true` if this can still become `character`.
    fn can_become(&self, character: char) -> bool;
}

impl Values {
    /// Reads bytes of a string, decoded: a character or a part of one.
    #[inline]
    pub(crate) fn string_bytes(&mut self, at: ReaderPosition, read: &[u8]) -> AfterEvent {
        let Frame::String { language, state, queries, parent, .. } = at.frame else {
            return Ok(None);
        };
        let Ok(state) = self.core.languages.automaton(language).walk(state, read)? else {
            return Ok(None);
        };
        let queries = self.strings.advance(&self.core, queries, read)?;
        let frame = Frame::String { language, state, queries, escape: CharState::NONE, parent };
        let record = self.records.write_string_bytes(at.record, read);
        Ok(Some(ReaderPosition { frame, record }))
    }

    /// Reads a part of a character's spelling. `escape` is the state after it.
    pub(crate) fn string_char(
        &mut self,
        at: ReaderPosition,
        escape: CharState,
        partial: &dyn PartialChar,
    ) -> AfterEvent {
        let Frame::String { language, state, queries, parent, .. } = at.frame else {
            return Ok(None);
        };
        let machine = self.core.languages.automaton(language);
        let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
        if !partial.some_accepted(&reader)? {
            return Ok(None);
        }
        let frame = Frame::String { language, state, queries, escape, parent };
        Ok(Some(ReaderPosition { frame, ..at }))
    }

    /// Ends a string.
    pub(crate) fn end_string(&mut self, at: ReaderPosition) -> AfterEvent {
        let Frame::String { language, state, queries, parent, .. } = at.frame else {
            return Ok(None);
        };
        if !self.core.languages.automaton(language).is_accepting(state) {
            return Ok(None);
        }
        let verdicts = match queries {
            NO_QUERIES => NO_VERDICTS,
            queries => {
                let verdicts = self.strings.verdicts(&self.core, queries);
                self.residuals.intern_verdicts(&verdicts)
            }
        };
        let record = self.records.write(at.record, b"\"");
        self.close_value(parent, verdicts, record)
    }

    /// Reads a byte of a number.
    pub(crate) fn number_byte(&mut self, at: ReaderPosition, byte: u8) -> AfterEvent {
        let Frame::Number { obligation, digits, parent } = at.frame else { return Ok(None) };
        let (core, residuals, digits) = (&mut self.core, &self.residuals, Some(digits));
        let Some(digits) = self.numbers.after_byte(core, residuals, obligation, digits, byte)?
        else {
            return Ok(None);
        };
        let record = self.records.write(at.record, &[byte]);
        Ok(Some(ReaderPosition { frame: Frame::Number { obligation, digits, parent }, record }))
    }

    /// Ends a number.
    pub(crate) fn end_number(&mut self, at: ReaderPosition) -> AfterEvent {
        let Frame::Number { obligation, digits, parent } = at.frame else { return Ok(None) };
        let Some(verdicts) = self.number_end(obligation, digits) else { return Ok(None) };
        self.close_value(parent, verdicts, at.record)
    }

    /// Returns the verdicts of a number that ends here, `None` if it cannot.
    pub(crate) fn number_end(
        &mut self,
        obligation: ObligationId,
        digits: NumberPrefixId,
    ) -> Option<VerdictsId> {
        self.numbers.end_verdicts(&mut self.core, &mut self.residuals, obligation, digits)
    }
}
