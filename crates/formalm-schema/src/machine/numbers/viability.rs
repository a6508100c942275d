//! Decides number prefixes with the solver: whether some number with this prefix satisfies a
//! formula.
//!
//! The queries with exponents are exact as well. Digits before the exponent are not folded, because
//! the exponent may shift any of them. Beyond a certain magnitude all exponents are equivalent.

use formalm_core::Error;
use num_bigint::BigInt;
use num_traits::Zero;

use crate::formula::{FALSE, FormulaAtom, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::machine::frame::{NumberPart, NumberPrefix};
use crate::machine::min_bytes::numbers::decimal_length;
use crate::machine::numbers::exponents::length;
use crate::solver::context::SolverContext;
use crate::solver::{NumberInterval, NumberScale, number_satisfies};

/// Up to this many further digits of the integer part are tried one after the other. Chosen, not
/// measured.
const MAX_TRIED_DIGITS: u32 = 8;

/// Asks whether some number with a prefix satisfies a formula.
pub(crate) struct NumberQuery<'a> {
    core: &'a mut SolverContext,
    id: FormulaId,
    digits: &'a NumberPrefix,
}

impl<'a> NumberQuery<'a> {
    pub(crate) fn new(
        core: &'a mut SolverContext,
        id: FormulaId,
        digits: &'a NumberPrefix,
    ) -> NumberQuery<'a> {
        NumberQuery { core, id, digits }
    }

    /// Returns `true` if some number with this prefix satisfies a formula.
    pub(crate) fn is_viable(&mut self) -> Result<bool, Error> {
        let (id, digits) = (self.id, self.digits);
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        if digits.satisfies(&self.core.base.formulas, id) {
            return Ok(true);
        }
        let atoms = self.core.base.formulas.atoms(id);
        let sided = |interval: NumberInterval| {
            if digits.negative { interval.mirrored() } else { interval }
        };
        let between = |low: &BigInt, high: &BigInt, places: i64| {
            let end = |at: &BigInt| Decimal::new(at.clone(), -places);
            sided(NumberInterval { low: Some((end(low), true)), high: Some((end(high), false)) })
        };
        match digits.part {
            NumberPart::Minus => {
                let within = sided(NumberInterval {
                    low: Some((Decimal::from_integer(0), true)),
                    high: None,
                });
                Ok(self.core.base.numbers(id).find(&within)?.is_some())
            }
            NumberPart::Integer => {
                let scale = NumberScale::new(&atoms);
                let written_whole = atoms.contains(&FormulaAtom::IntegerSpelling);
                let above = &digits.digits + 1u32;
                for reach in self.possible_extra_digits(&scale) {
                    self.core.base.count_steps((digits.digits.bits() / 256) as usize)?;
                    let within = between(&digits.digits, &above, -i64::from(reach));
                    if self.core.base.numbers(id).find_spelled(&within, false)?.is_some()
                        || (written_whole
                            && self.core.base.numbers(id).find_spelled(&within, true)?.is_some())
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            NumberPart::Zero | NumberPart::Point | NumberPart::Fraction => {
                if digits.sticky {
                    return Ok(false);
                }
                let places = i64::from(digits.places);
                let within = between(&digits.digits, &(&digits.digits + 1u32), places);
                Ok(self.core.base.numbers(id).find_spelled(&within, false)?.is_some())
            }
            NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits => {
                Ok(false)
            }
        }
    }

    /// Returns the numbers of further digits that the integer part can have.
    fn possible_extra_digits(&self, scale: &NumberScale) -> Vec<u32> {
        let (id, digits) = (self.id, self.digits);
        if scale.reach <= MAX_TRIED_DIGITS {
            return (0..=scale.reach).collect();
        }
        let read = decimal_length(&digits.digits);
        let counts = self.core.base.formulas.possible_digit_counts(
            id,
            digits.negative,
            read + scale.reach as usize,
        );
        let can = |reach: &u32| counts.get(read + *reach as usize).is_some_and(|&can| can);
        (0..=scale.reach).filter(can).collect()
    }

    /// Returns `true` if some number with this prefix satisfies a formula, under the options for
    /// exponents.
    pub(crate) fn is_viable_as_spelled(&mut self, scale: &NumberScale) -> Result<bool, Error> {
        let (id, digits) = (self.id, self.digits);
        if !self.core.options.allow_exponents {
            return self.is_viable();
        }
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        Ok(digits.satisfies(&self.core.base.formulas, id) || self.viable_with_exponent(scale)?)
    }

    /// Returns `true` if some number with this prefix, possibly with an exponent, satisfies a
    /// formula.
    fn viable_with_exponent(&mut self, scale: &NumberScale) -> Result<bool, Error> {
        let digits = self.digits;
        match digits.part {
            NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits => {
                self.viable_in_exponent(scale)
            }
            _ => self.viable_before_exponent(scale),
        }
    }

    /// Decides prefixes before the exponent: every number whose first significant digits are these
    /// is possible.
    fn viable_before_exponent(&mut self, scale: &NumberScale) -> Result<bool, Error> {
        let (id, digits) = (self.id, self.digits);
        let sided = |low: Decimal, high: Option<Decimal>| {
            let high = high.map(|high| (high, false));
            let within = NumberInterval { low: Some((low, true)), high };
            if digits.negative { within.mirrored() } else { within }
        };
        if digits.digits.is_zero() {
            let within = sided(Decimal::from_integer(0), None);
            return Ok(match digits.part {
                NumberPart::Minus => self.core.base.numbers(id).find(&within)?.is_some(),
                _ => self.core.base.numbers(id).find_spelled(&within, false)?.is_some(),
            });
        }
        let above = &digits.digits + 1u32;
        let between = |power: i64| {
            let end = |at: &BigInt| Decimal::new(at.clone(), power);
            sided(end(&digits.digits), Some(end(&above)))
        };
        // First above and below all bounds, where most numbers are, then between them.
        let least = -i64::from(scale.places) - i64::from(length(&digits.digits)) - 1;
        let most = i64::from(scale.reach);
        for power in [most, least].into_iter().chain(least + 1..most) {
            self.core.base.count_step()?;
            if self.core.base.numbers(id).find_spelled(&between(power), false)?.is_some() {
                return Ok(true);
            }
        }
        if digits.has_integer_form()
            && self.core.base.formulas.atoms(id).contains(&FormulaAtom::IntegerSpelling)
        {
            for power in 0..=most {
                if self.core.base.numbers(id).find_spelled(&between(power), true)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Decides prefixes inside the exponent.
    fn viable_in_exponent(&mut self, scale: &NumberScale) -> Result<bool, Error> {
        let (id, digits) = (self.id, self.digits);
        let most = digits.max_exponent(scale) + 1;
        let signs: &[bool] = match digits.part {
            NumberPart::ExponentMark => &[false, true],
            _ if digits.negative_exponent => &[true],
            _ => &[false],
        };
        for &negative_exponent in signs {
            // Exponents with no more digits, with one more, and so on.
            let (mut first, mut end) = (digits.exponent, digits.exponent + 1);
            loop {
                for power in first..end.min(most + 1) {
                    self.core.base.count_step()?;
                    let value = digits.times_power(negative_exponent, power);
                    if self
                        .core
                        .base
                        .formulas
                        .evaluate(id, &mut |atom| number_satisfies(atom, &value, false))
                    {
                        return Ok(true);
                    }
                }
                if digits.digits.is_zero() || first > most || end > most {
                    break;
                }
                (first, end) = ((first * 10).min(most), end * 10);
            }
        }
        Ok(false)
    }
}
