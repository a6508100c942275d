//! The first byte of a value, and string values.

use formalm_automata::json_escapes::{EscapeState, EscapeStep, read_string_byte, some_completion};
use formalm_automata::{Error, Machine, StateId};

use crate::formula::{FALSE, FormulaId};
use crate::machine::RecordId;
use crate::machine::frame::{
    ContainerState, DONE, Frame, FrameId, NumberPart, NumberPrefix, NumberPrefixId, Obligation,
    ObligationId, QueriesId, ReaderPosition, VerdictsId,
};
use crate::machine::names::{ANY_ORDER, NO_USED_NAMES};
use crate::machine::numbers::is_number_byte;
use crate::machine::reader::OpenedValue;
use crate::machine::reader::Reader;
use crate::machine::reader::whitespace::WhitespaceGap;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::options::PropertyOrder;
use crate::schema_nodes::JsonType;
use crate::solver::context::LanguageId;

/// Returns the type that a first byte begins, and the rest of a literal.
fn opened_type(byte: u8) -> Option<(JsonType, &'static [u8])> {
    Some(match byte {
        b'n' => (JsonType::Null, b"ull"),
        b't' => (JsonType::Bool, b"rue"),
        b'f' => (JsonType::Bool, b"alse"),
        b'"' => (JsonType::String, b""),
        b'-' | b'0'..=b'9' => (JsonType::Number, b""),
        b'[' => (JsonType::Array, b""),
        b'{' => (JsonType::Object, b""),
        _ => return None,
    })
}

/// Returns `true` if `byte` is JSON whitespace.
pub(crate) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

impl Reader {
    /// Returns the frame after the first byte of a value, or after whitespace before it.
    pub(crate) fn read_value(
        &mut self,
        obligation: ObligationId,
        whitespace: u16,
        parent: FrameId,
        byte: u8,
    ) -> Result<Option<Frame>, Error> {
        let (gap, depth) = WhitespaceGap::before_value(&self.frames, parent);
        if is_whitespace(byte) && parent != DONE {
            let whitespace = self.gaps.after(gap, depth, whitespace, byte);
            return Ok(whitespace.map(|whitespace| Frame::Value {
                obligation,
                whitespace,
                parent,
            }));
        }
        let Some((of, rest)) = opened_type(byte) else { return Ok(None) };
        if parent != DONE && !self.gaps.ends(gap, depth, whitespace) {
            return Ok(None);
        }
        let Some(opened) = self.open(obligation, byte, of)? else { return Ok(None) };
        let (whitespace, mode) = (self.gaps.start(), ContainerState::AfterOpen);
        Ok(Some(match opened {
            OpenedValue::Literal(verdicts) => Frame::Literal { rest, verdicts, parent },
            OpenedValue::String(language, queries) => {
                let state = self.core.automaton(language).start();
                Frame::String { language, state, queries, escape: EscapeState::None, parent }
            }
            OpenedValue::Number(obligation) => match self.numbers.after_byte(
                &mut self.core,
                &self.residuals,
                obligation,
                None,
                byte,
            )? {
                Some(digits) => Frame::Number { obligation, digits, parent },
                None => return Ok(None),
            },
            OpenedValue::Array(_) | OpenedValue::Object(..)
                if !self.may_nest(obligation, parent) =>
            {
                return Ok(None);
            }
            OpenedValue::Array(obligation) => {
                self.check_nesting(parent)?;
                Frame::Array { obligation, mode, whitespace, from: 0, parent }
            }
            OpenedValue::Object(obligation, order) => {
                self.check_nesting(parent)?;
                Frame::Object {
                    obligation,
                    used_names: NO_USED_NAMES,
                    order,
                    mode,
                    whitespace,
                    parent,
                }
            }
        }))
    }

    /// Returns the kind of value that `byte` begins, `None` if no value begins so.
    fn open(
        &mut self,
        obligation: ObligationId,
        byte: u8,
        of: JsonType,
    ) -> Result<Option<OpenedValue>, Error> {
        let by = if of == JsonType::Number { 0 } else { byte };
        if let Some(&known) = self.opened_values.get(&(obligation, by)) {
            return Ok(known);
        }
        let opened = self.compute_open(obligation, byte, of)?;
        self.opened_values.insert((obligation, by), opened);
        Ok(opened)
    }

    /// Computes the kind of value that `byte` begins.
    fn compute_open(
        &mut self,
        id: ObligationId,
        byte: u8,
        of: JsonType,
    ) -> Result<Option<OpenedValue>, Error> {
        let obligation = self.residuals.get(id).clone();
        let mut formulas = Vec::with_capacity(obligation.formulas.len());
        for &id in &obligation.formulas {
            formulas.push(self.core.formula_for_type(id, of)?);
        }
        let typed = Obligation { formulas: formulas.into(), ..obligation.clone() };
        let total = typed.total(&mut self.core);
        if total == FALSE {
            return Ok(None);
        }
        Ok(match of {
            JsonType::Null | JsonType::Bool => {
                let verdict = byte == b't';
                if !self.core.holds_for_boolean(total, verdict) {
                    return Ok(None);
                }
                let all = typed.formulas.iter().skip(1);
                let verdicts: Vec<bool> =
                    all.map(|&id| self.core.holds_for_boolean(id, verdict)).collect();
                Some(OpenedValue::Literal(self.residuals.intern_verdicts(&verdicts)))
            }
            JsonType::String => self.start_string(&typed, total)?,
            JsonType::Number => Some(OpenedValue::Number(self.residuals.intern(typed))),
            JsonType::Array | JsonType::Object if !self.core.has_value_of_type(total, of)? => None,
            JsonType::Array => Some(OpenedValue::Array(self.residuals.intern(typed))),
            JsonType::Object => {
                let order = match self.core.options.property_order {
                    PropertyOrder::Any => ANY_ORDER,
                    PropertyOrder::Schema => {
                        let declared = obligation.declared_names(&self.core);
                        self.name_tables.intern_order(declared)
                    }
                };
                Some(OpenedValue::Object(self.residuals.intern(typed), order))
            }
        })
    }

    /// Returns the automata of a string value, `None` if no string satisfies the obligation.
    fn start_string(
        &mut self,
        obligation: &Obligation,
        total: FormulaId,
    ) -> Result<Option<OpenedValue>, Error> {
        let Some(language) = self.core.language(total)? else { return Ok(None) };
        let queries = self.strings.start(&mut self.core, &obligation.formulas[1..])?;
        let queries = self.strings.intern(queries);
        Ok(Some(OpenedValue::String(language, queries)))
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
        if !self.core.automaton(language).is_accepting(state) {
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
                let machine = self.core.automaton(language);
                let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
                if !some_completion(escape, policy, &reader)? {
                    return Ok(None);
                }
                let frame = Frame::String { language, state, queries, escape, parent };
                return Ok(Some(ReaderPosition { frame, record }));
            }
            EscapeStep::Char(read) => read,
        };
        let Ok(state) = self.core.automaton(language).walk(state, &read)? else { return Ok(None) };
        let queries = self.strings.advance(&self.core, queries, &read)?;
        let frame = Frame::String { language, state, queries, escape: EscapeState::None, parent };
        Ok(Some(ReaderPosition { frame, record }))
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

impl NumberPrefix {
    /// Returns the prefix of a number after its first byte.
    pub(crate) fn from_first_byte(byte: u8) -> NumberPrefix {
        let part = match byte {
            b'-' => NumberPart::Minus,
            b'0' => NumberPart::Zero,
            _ => NumberPart::Integer,
        };
        let digit = if byte == b'-' { 0 } else { byte - b'0' };
        let digits = num_bigint::BigInt::from(digit);
        let negative = byte == b'-';
        NumberPrefix {
            negative,
            part,
            digits,
            places: 0,
            sticky: false,
            exponent: 0,
            negative_exponent: false,
        }
    }

    /// Drops the digits of a prefix whose value does not matter.
    pub(crate) fn without_value(self) -> NumberPrefix {
        NumberPrefix { negative: false, digits: 0.into(), places: 0, sticky: false, ..self }
    }
}
