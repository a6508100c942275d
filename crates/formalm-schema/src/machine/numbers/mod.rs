//! Number values, read digit by digit.
//!
//! ```text
//! prefix ──► interval set │ modular set   without the solver, for almost all schemas
//!        └─► solver                       everything else, and with exponents
//! ```
//!
//! A prefix keeps its digits only up to what the formulas distinguish; prefixes with equal
//! residuals share a state.

pub(crate) mod exponents;
pub(crate) mod interval_sets;
pub(crate) mod magnitude_intervals;
pub(crate) mod modular_sets;
pub(crate) mod tables;
pub(crate) mod viability;

use formalm_core::Error;
use num_bigint::BigInt;

use crate::formula::{FormulaArena, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::machine::frame::{NumberPart, NumberPrefix};
use crate::machine::numbers::interval_sets::{IntervalSet, NumberResidual};
use crate::machine::numbers::modular_sets::ModularSet;
use crate::machine::numbers::viability::NumberQuery;
use crate::solver::context::SolverContext;
use crate::solver::{NumberScale, number_satisfies};

impl NumberPrefix {
    /// Returns the prefix of a number after its first byte.
    pub(crate) fn from_first_byte(byte: u8) -> NumberPrefix {
        let part = match byte {
            b'-' => NumberPart::Minus,
            b'0' => NumberPart::Zero,
            _ => NumberPart::Integer,
        };
        let digit = if byte == b'-' { 0 } else { byte - b'0' };
        let digits = BigInt::from(digit);
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

    /// Returns the value of the prefix as if it ended here; a sticky bit adds half a unit in the
    /// last place.
    fn value(&self) -> Decimal {
        let (digits, places) = match self.sticky {
            true => (&self.digits * 10u32 + 5u32, self.places + 1),
            false => (self.digits.clone(), self.places),
        };
        let power = i64::from(self.exponent);
        let power = if self.negative_exponent { -power } else { power };
        let value = Decimal::new(digits, power - i64::from(places));
        if self.negative { value.negated() } else { value }
    }

    /// Returns `true` if there is no decimal point so far.
    pub(crate) fn has_integer_form(&self) -> bool {
        matches!(self.part, NumberPart::Zero | NumberPart::Integer)
    }

    /// Returns `true` if a number may end here.
    fn can_end(&self) -> bool {
        matches!(
            self.part,
            NumberPart::Zero
                | NumberPart::Integer
                | NumberPart::Fraction
                | NumberPart::ExponentDigits
        )
    }

    /// Returns `true` if a number that ends here satisfies a formula.
    pub(crate) fn satisfies(&self, formulas: &FormulaArena, id: FormulaId) -> bool {
        self.can_end()
            && (id == TRUE || {
                let value = self.value();
                formulas.evaluate(id, &mut |atom| {
                    number_satisfies(atom, &value, self.has_integer_form())
                })
            })
    }

    /// Returns the part after a byte, `None` if no number continues so.
    fn part_after(&self, byte: u8, exponents: bool) -> Option<NumberPart> {
        Some(match (self.part, byte) {
            (NumberPart::Minus, b'0') => NumberPart::Zero,
            (NumberPart::Minus | NumberPart::Integer, b'0'..=b'9') => NumberPart::Integer,
            (NumberPart::Zero | NumberPart::Integer, b'.') => NumberPart::Point,
            (NumberPart::Point | NumberPart::Fraction, b'0'..=b'9') => NumberPart::Fraction,
            (NumberPart::Zero | NumberPart::Integer | NumberPart::Fraction, b'e' | b'E')
                if exponents =>
            {
                NumberPart::ExponentMark
            }
            (NumberPart::ExponentMark, b'+' | b'-') => NumberPart::ExponentSign,
            (
                NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits,
                b'0'..=b'9',
            ) => NumberPart::ExponentDigits,
            _ => return None,
        })
    }

    /// Appends a byte, folding what the scale does not distinguish.
    fn append(mut self, part: NumberPart, byte: u8, scale: &NumberScale) -> NumberPrefix {
        self.part = part;
        let digit = BigInt::from(byte.wrapping_sub(b'0'));
        match part {
            NumberPart::Integer => self.digits = scale.representative(self.digits * 10u32 + digit),
            NumberPart::Fraction if self.places < scale.places => {
                self.digits = self.digits * 10u32 + digit;
                self.places += 1;
            }
            NumberPart::Fraction => self.sticky |= byte != b'0',
            _ => {}
        }
        self
    }
}

/// Returns `true` if a byte may be part of a number.
pub(crate) fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

/// Everything that is required of a number.
#[derive(Debug)]
pub(crate) struct NumberPlan {
    total: FormulaId,
    /// Set if nothing is required.
    unconstrained: bool,
    /// Set if no query depends on the number.
    no_queries: bool,
    pub(crate) scale: NumberScale,
    /// `None` if exponents are allowed.
    sets: Option<NumberSet>,
}

/// A set of numbers that needs no solver.
#[derive(Debug)]
enum NumberSet {
    Intervals(IntervalSet),
    Modular(ModularSet),
}

impl NumberPlan {
    /// Returns the interval set of a formula, `None` if this is not the whole requirement or not an
    /// interval set.
    pub(crate) fn intervals_of(&self, id: FormulaId) -> Option<&IntervalSet> {
        match &self.sets {
            Some(NumberSet::Intervals(intervals)) if id == self.total => Some(intervals),
            _ => None,
        }
    }

    /// Returns the prefix after one more byte, `None` if no allowed number continues so.
    fn digits_after(
        &self,
        core: &mut SolverContext,
        before: Option<NumberPrefix>,
        byte: u8,
    ) -> Result<Option<NumberPrefix>, Error> {
        let digits = match before {
            None if self.unconstrained => NumberPrefix::from_first_byte(byte).without_value(),
            None => NumberPrefix::from_first_byte(byte),
            Some(digits) => {
                let exponents = self.unconstrained || core.options.allow_exponents;
                let Some(part) = digits.part_after(byte, exponents) else { return Ok(None) };
                if self.unconstrained {
                    NumberPrefix { part, ..digits }
                } else if exponents {
                    digits.append_exact(part, byte, &self.scale)?
                } else {
                    digits.append(part, byte, &self.scale)
                }
            }
        };
        let known = self.sets.as_ref().and_then(|sets| sets.viable(&digits));
        let viable = match known {
            Some(known) if !self.unconstrained => known,
            _ => NumberQuery::new(core, self.total, &digits).is_viable_as_spelled(&self.scale)?,
        };
        Ok(viable.then_some(digits))
    }
}

impl NumberSet {
    /// Builds an interval set, or else a modular set; `None` if neither fits.
    fn new(core: &SolverContext, total: FormulaId, scale: &NumberScale) -> Option<NumberSet> {
        if let Some(intervals) = IntervalSet::new(&core.base.formulas, total, scale.places) {
            return Some(NumberSet::Intervals(intervals));
        }
        let atoms = core.base.formulas.atoms(total);
        ModularSet::new(&core.base.formulas, total, &atoms, scale.places).map(NumberSet::Modular)
    }

    fn viable(&self, digits: &NumberPrefix) -> Option<bool> {
        match self {
            NumberSet::Intervals(intervals) => intervals.viable(digits),
            NumberSet::Modular(modular) => modular.viable(digits),
        }
    }

    fn holds(&self, digits: &NumberPrefix) -> Option<bool> {
        match self {
            NumberSet::Intervals(intervals) => intervals.holds(digits),
            NumberSet::Modular(modular) => modular.holds(digits),
        }
    }

    fn residual(&self, digits: &NumberPrefix) -> Option<NumberResidual> {
        match self {
            NumberSet::Intervals(intervals) => intervals.residual(digits),
            NumberSet::Modular(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
