//! The start of a value, which fixes its type.

use formalm_core::{Error, LazyDfa};

use crate::formula::{FALSE, FormulaId};
use crate::machine::frame::{
    CharState, ContainerState, FRESH, Frame, NameOrderId, Obligation, ObligationId, QueriesId,
    ReaderPosition, VerdictsId,
};
use crate::machine::names::{ANY_ORDER, NO_USED_NAMES};
use crate::machine::values::{AfterEvent, Values};
use crate::options::PropertyOrder;
use crate::schema_nodes::JsonType;
use crate::solver::context::LanguageId;

/// The start of a value. A literal comes with the rest of its spelling; it ends if that is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueStart {
    Null(&'static [u8]),
    Bool(bool, &'static [u8]),
    String,
    /// The first byte of a number.
    Number(u8),
    Array,
    Object,
}

impl ValueStart {
    fn json_type(self) -> JsonType {
        match self {
            ValueStart::Null(_) => JsonType::Null,
            ValueStart::Bool(..) => JsonType::Bool,
            ValueStart::String => JsonType::String,
            ValueStart::Number(_) => JsonType::Number,
            ValueStart::Array => JsonType::Array,
            ValueStart::Object => JsonType::Object,
        }
    }

    /// Returns a number for all starts that open equal values.
    fn number(self) -> u8 {
        match self {
            ValueStart::Null(_) => 0,
            ValueStart::Bool(verdict, _) => 1 + u8::from(verdict),
            ValueStart::String => 3,
            ValueStart::Number(_) => 4,
            ValueStart::Array => 5,
            ValueStart::Object => 6,
        }
    }

    /// Returns what is recorded of the start.
    fn record(&self) -> &[u8] {
        match self {
            ValueStart::Null(_) => b"null",
            ValueStart::Bool(true, _) => b"true",
            ValueStart::Bool(false, _) => b"false",
            ValueStart::String => b"\"",
            ValueStart::Number(byte) => std::slice::from_ref(byte),
            ValueStart::Array => b"[",
            ValueStart::Object => b"{",
        }
    }
}

/// The kind of value that a start opens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpenedValue {
    Literal(VerdictsId),
    String(LanguageId, QueriesId),
    Number(ObligationId),
    Array(ObligationId),
    Object(ObligationId, NameOrderId),
}

impl Values {
    /// Opens a value.
    pub(crate) fn open(&mut self, at: ReaderPosition, start: ValueStart) -> AfterEvent {
        let Frame::Value { obligation, parent, .. } = at.frame else { return Ok(None) };
        let Some(opened) = self.opened_value(obligation, start)? else { return Ok(None) };
        let (mark, mode) = (FRESH, ContainerState::AfterOpen);
        let frame = match (opened, start) {
            (
                OpenedValue::Literal(verdicts),
                ValueStart::Null(rest) | ValueStart::Bool(_, rest),
            ) => {
                if rest.is_empty() {
                    let record = self.records.write(at.record, start.record());
                    return self.close_value(parent, verdicts, record);
                }
                Frame::Literal { rest, verdicts, parent }
            }
            (OpenedValue::String(language, queries), _) => {
                let state = self.core.languages.automaton(language).start();
                Frame::String { language, state, queries, escape: CharState::NONE, parent }
            }
            (OpenedValue::Number(obligation), ValueStart::Number(byte)) => {
                let (core, residuals) = (&mut self.core, &self.residuals);
                match self.numbers.after_byte(core, residuals, obligation, None, byte)? {
                    Some(digits) => Frame::Number { obligation, digits, parent },
                    None => return Ok(None),
                }
            }
            (OpenedValue::Array(_) | OpenedValue::Object(..), _)
                if !self.may_nest(obligation, parent) =>
            {
                return Ok(None);
            }
            (OpenedValue::Array(obligation), _) => {
                self.check_nesting(parent)?;
                Frame::Array { obligation, mode, mark, from: 0, parent }
            }
            (OpenedValue::Object(obligation, order), _) => {
                self.check_nesting(parent)?;
                let used_names = NO_USED_NAMES;
                Frame::Object { obligation, used_names, order, mode, mark, parent }
            }
            (OpenedValue::Literal(_) | OpenedValue::Number(_), _) => return Ok(None),
        };
        let record = self.records.write(at.record, start.record());
        Ok(Some(ReaderPosition { frame, record }))
    }

    /// Returns `true` if a value may open so. A number may still have no viable first byte.
    #[cfg_attr(not(test), expect(dead_code, reason = "one byte of JSON fixes the kind of a value"))]
    pub(crate) fn may_open(
        &mut self,
        at: ReaderPosition,
        start: ValueStart,
    ) -> Result<bool, Error> {
        let Frame::Value { obligation, parent, .. } = at.frame else { return Ok(false) };
        Ok(match self.opened_value(obligation, start)? {
            None => false,
            Some(OpenedValue::Array(_) | OpenedValue::Object(..)) => {
                self.may_nest(obligation, parent)
            }
            Some(_) => true,
        })
    }

    /// Returns the kind of value that opens, `None` if no value opens so.
    pub(crate) fn opened_value(
        &mut self,
        obligation: ObligationId,
        start: ValueStart,
    ) -> Result<Option<OpenedValue>, Error> {
        let by = start.number();
        if let Some(&known) = self.opened_values.get(&(obligation, by)) {
            return Ok(known);
        }
        let opened = self.compute_open(obligation, start)?;
        self.opened_values.insert((obligation, by), opened);
        Ok(opened)
    }

    /// Computes the kind of value that opens.
    fn compute_open(
        &mut self,
        id: ObligationId,
        start: ValueStart,
    ) -> Result<Option<OpenedValue>, Error> {
        let of = start.json_type();
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
                let verdict = matches!(start, ValueStart::Bool(true, _));
                if !self.core.base.formulas.holds_for_boolean(total, verdict) {
                    return Ok(None);
                }
                let all = typed.formulas.iter().skip(1);
                let verdicts: Vec<bool> =
                    all.map(|&id| self.core.base.formulas.holds_for_boolean(id, verdict)).collect();
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
        let Some(language) = self.core.languages.language(&self.core.base, total)? else {
            return Ok(None);
        };
        let queries = self.strings.start(&mut self.core, &obligation.formulas[1..])?;
        let queries = self.strings.intern(queries);
        Ok(Some(OpenedValue::String(language, queries)))
    }
}
