//! The first byte of a value, which fixes its type.

use formalm_core::{Error, LazyDfa};
use formalm_json::escapes::EscapeState;

use crate::formula::{FALSE, FormulaId};
use crate::machine::frame::{ContainerState, DONE, Frame, FrameId, Obligation, ObligationId};
use crate::machine::names::{ANY_ORDER, NO_USED_NAMES};
use crate::machine::reader::whitespace::{WhitespaceGap, is_whitespace};
use crate::machine::reader::{OpenedValue, Reader};
use crate::options::PropertyOrder;
use crate::schema_nodes::JsonType;

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
                let state = self.core.languages.automaton(language).start();
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
