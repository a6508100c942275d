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
pub(crate) mod intervals;
pub(crate) mod modular_sets;
pub(crate) mod viability;

use std::sync::Arc;

use formalm_automata::Error;
use num_bigint::BigInt;

use crate::formula::{FALSE, FormulaArena, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::machine::frame::{
    Frame, NumberPart, NumberPrefix, NumberPrefixId, ObligationId, ReaderPosition, VerdictsId,
};
use crate::machine::numbers::interval_sets::{IntervalSet, NumberResidual};
use crate::machine::numbers::modular_sets::ModularSet;
use crate::machine::numbers::viability::NumberQuery;
use crate::machine::{LazyTables, RecordId};
use crate::solver::context::SolverContext;
use crate::solver::{NumberScale, number_satisfies};

impl NumberPrefix {
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

impl LazyTables {
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
            let digits = self.digits_after(obligation, Some(digits), byte)?;
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

    /// Returns the number after one more byte, `None` if no allowed number continues so.
    pub(crate) fn digits_after(
        &mut self,
        obligation: ObligationId,
        digits: Option<NumberPrefixId>,
        byte: u8,
    ) -> Result<Option<NumberPrefixId>, Error> {
        if let Some(&known) = self.cache.digits.get(&(obligation, digits, byte)) {
            return Ok(known);
        }
        let before = digits.map(|digits| self.parts.digits.get(digits.0).clone());
        let plan = self.number_plan(obligation);
        let after = plan.digits_after(&mut self.core, before, byte)?;
        let after = after.map(|digits| self.representative(obligation, &plan, digits));
        let after = after.map(|digits| self.parts.digits(digits));
        self.cache.digits.insert((obligation, digits, byte), after);
        Ok(after)
    }

    /// Returns `true` if the integer part may continue with any number of any digits.
    pub(crate) fn any_digits(&mut self, frame: Frame) -> bool {
        let Frame::Number { obligation, digits, .. } = frame else { return false };
        let plan = self.number_plan(obligation);
        let digits = self.parts.digits.get(digits.0);
        matches!(&plan.sets, Some(NumberSet::Intervals(intervals)) if intervals.any_digits(digits))
    }

    /// Returns the verdicts of a number that ends here, `None` if it cannot.
    pub(crate) fn number_end(
        &mut self,
        obligation: ObligationId,
        digits: NumberPrefixId,
    ) -> Option<VerdictsId> {
        if let Some(&known) = self.cache.number_ends.get(&(obligation, digits)) {
            return known;
        }
        let number = self.parts.digits.get(digits.0).clone();
        let required = self.parts.obligations.get(obligation.0).clone();
        let plan = self.number_plan(obligation);
        let within = plan.sets.as_ref().and_then(|sets| sets.holds(&number));
        let ends = match within {
            Some(within) => within,
            None => number.satisfies(&self.core.formulas, plan.total),
        };
        let ends = ends.then(|| {
            let all = required.formulas.iter().skip(1);
            let verdicts: Vec<bool> =
                all.map(|&id| number.satisfies(&self.core.formulas, id)).collect();
            self.parts.verdicts(&verdicts)
        });
        self.cache.number_ends.insert((obligation, digits), ends);
        ends
    }
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
        if let Some(intervals) = IntervalSet::new(&core.formulas, total, scale.places) {
            return Some(NumberSet::Intervals(intervals));
        }
        let atoms = core.atoms(total);
        ModularSet::new(&core.formulas, total, &atoms, scale.places).map(NumberSet::Modular)
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

impl LazyTables {
    /// Returns everything that an obligation requires of a number.
    pub(crate) fn number_plan(&mut self, obligation: ObligationId) -> Arc<NumberPlan> {
        if let Some(known) = self.cache.numbers.get(&obligation) {
            return Arc::clone(known);
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let total = required.total(&mut self.core);
        let constant = |id: &FormulaId| *id == TRUE || *id == FALSE;
        let all: Vec<FormulaId> = required.formulas.iter().copied().chain([total]).collect();
        let scale = NumberScale::new(self.core.atoms_of(&all));
        let plain = !self.core.options.allow_exponents;
        let sets = plain.then(|| NumberSet::new(&self.core, total, &scale)).flatten();
        let plan = Arc::new(NumberPlan {
            total,
            unconstrained: required.formulas.iter().all(constant),
            no_queries: required.formulas.iter().skip(1).all(constant),
            scale,
            sets,
        });
        self.cache.numbers.insert(obligation, Arc::clone(&plan));
        plan
    }

    /// Returns the representative of all prefixes with equal residuals.
    fn representative(
        &mut self,
        obligation: ObligationId,
        plan: &NumberPlan,
        digits: NumberPrefix,
    ) -> NumberPrefix {
        let folds = plan.no_queries && !plan.unconstrained;
        let sets = plan.sets.as_ref().filter(|_| folds);
        match sets.and_then(|sets| sets.residual(&digits)) {
            Some(residual) => {
                let key = (obligation, digits.negative, residual);
                if let Some(known) = self.cache.representatives.get(&key) {
                    return known.clone();
                }
                self.cache.representatives.insert(key, digits.clone());
                digits
            }
            None => digits,
        }
    }
}

#[cfg(test)]
mod tests;
