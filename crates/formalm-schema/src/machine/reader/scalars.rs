//! Strings and numbers, byte by byte, and their ends.

use formalm_core::{Error, LazyDfa, StateId};
use formalm_json::escapes::{EscapeState, EscapeStep, read_string_byte, some_completion};

use crate::machine::RecordId;
use crate::machine::frame::{
    Frame, FrameId, NumberPrefixId, ObligationId, QueriesId, ReaderPosition, VerdictsId,
};
use crate::machine::numbers::is_number_byte;
use crate::machine::reader::Reader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::solver::context::LanguageId;

impl Reader {
    /// Returns the position after a byte of a string.
    pub(crate) fn read_string(
        &mut self,
        frame: Frame,
        byte: u8,
        record: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let Frame::String { language, state, queries, escape, parent } = frame else {
            return Ok(None);
        };
        let policy = self.core.options.escapes;
        let read = match read_string_byte(escape, byte, policy) {
            EscapeStep::Invalid => return Ok(None),
            EscapeStep::End => return self.close_string(language, state, queries, parent, record),
            EscapeStep::Partial(escape) => {
                let machine = self.core.languages.automaton(language);
                let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
                if !some_completion(escape, policy, &reader)? {
                    return Ok(None);
                }
                let frame = Frame::String { language, state, queries, escape, parent };
                return Ok(Some(ReaderPosition { frame, record }));
            }
            EscapeStep::Char(read) => read,
        };
        let Ok(state) = self.core.languages.automaton(language).walk(state, &read)? else {
            return Ok(None);
        };
        let queries = self.strings.advance(&self.core, queries, &read)?;
        let frame = Frame::String { language, state, queries, escape: EscapeState::None, parent };
        Ok(Some(ReaderPosition { frame, record }))
    }

    /// Returns the position after the quote that closes a string.
    fn close_string(
        &mut self,
        language: LanguageId,
        state: StateId,
        queries: QueriesId,
        parent: FrameId,
        record: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
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
        self.close_value(parent, verdicts, record)
    }

    /// Returns the position after a byte of a number, or after the number.
    pub(crate) fn read_number(
        &mut self,
        frame: Frame,
        byte: u8,
        record: RecordId,
        extended: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let Frame::Number { obligation, digits, parent } = frame else { return Ok(None) };
        if is_number_byte(byte) {
            let digits = self.numbers.after_byte(
                &mut self.core,
                &self.residuals,
                obligation,
                Some(digits),
                byte,
            )?;
            return Ok(digits.map(|digits| ReaderPosition {
                frame: Frame::Number { obligation, digits, parent },
                record: extended,
            }));
        }
        let Some(verdicts) = self.number_end(obligation, digits) else { return Ok(None) };
        // The byte belongs to the parent.
        match self.close_value(parent, verdicts, record)? {
            Some(around) => self.read(around, byte),
            None => Ok(None),
        }
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
