//! Numbers with exponents, decided exactly.
//!
//! Digits before the exponent are not folded, because the exponent may shift any of them. Beyond a
//! certain magnitude all exponents are equivalent.

use formalm_automata::{Error, Resource};
use num_bigint::BigInt;
use num_traits::Zero;

use crate::formula::{FALSE, FormulaAtom, FormulaId, TRUE};
use crate::json::decimal::{Decimal, MAX_DIGITS};
use crate::machine::frame::{NumberPart, NumberPrefix};
use crate::solver::context::SolverContext;
use crate::solver::{NumberInterval, NumberScale, number_satisfies};

/// Returns the number of decimal digits, or one more.
fn length(digits: &BigInt) -> u32 {
    // A digit is worth more than 3.3 bits.
    u32::try_from(digits.bits() * 10 / 33 + 1).unwrap_or(u32::MAX)
}

impl NumberPrefix {
    /// Appends a byte exactly. Fails with a limit beyond [`MAX_DIGITS`] digits.
    pub(crate) fn append_exact(
        mut self,
        part: NumberPart,
        byte: u8,
        scale: &NumberScale,
    ) -> Result<NumberPrefix, Error> {
        self.part = part;
        let digit = byte.wrapping_sub(b'0');
        match part {
            NumberPart::Integer | NumberPart::Fraction => {
                self.digits = self.digits * 10u32 + u32::from(digit);
                self.places += u32::from(part == NumberPart::Fraction);
                let needed = length(&self.digits).max(self.places).into();
                let allowed = MAX_DIGITS as u64;
                if needed > allowed {
                    return Err(Error::Limit { resource: Resource::Digits, needed, allowed });
                }
            }
            NumberPart::ExponentSign => self.negative_exponent = byte == b'-',
            NumberPart::ExponentDigits => {
                let power = self.exponent.saturating_mul(10).saturating_add(digit.into());
                self.exponent = power.min(self.max_exponent(scale) + 1);
            }
            _ => {}
        }
        Ok(self)
    }

    /// Returns the magnitude from which on all exponents of either sign are equivalent for the
    /// formulas.
    fn max_exponent(&self, scale: &NumberScale) -> u32 {
        self.places + length(&self.digits) + scale.powers + 4
    }

    /// Returns the value times a power of ten.
    fn times_power(&self, negative_exponent: bool, power: u32) -> Decimal {
        let power = if negative_exponent { -i64::from(power) } else { i64::from(power) };
        let value = Decimal::new(self.digits.clone(), power - i64::from(self.places));
        if self.negative { value.negated() } else { value }
    }
}

impl SolverContext {
    /// Returns `true` if some number with this prefix satisfies a formula, under the options for
    /// exponents.
    pub(crate) fn number_viable_as_spelled(
        &mut self,
        id: FormulaId,
        digits: &NumberPrefix,
        scale: &NumberScale,
    ) -> Result<bool, Error> {
        if !self.options.allow_exponents {
            return self.number_viable(id, digits);
        }
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        Ok(self.number_ends(id, digits) || self.viable_with_exponent(id, digits, scale)?)
    }

    /// Returns `true` if some number with this prefix, possibly with an exponent, satisfies a
    /// formula.
    fn viable_with_exponent(
        &mut self,
        id: FormulaId,
        digits: &NumberPrefix,
        scale: &NumberScale,
    ) -> Result<bool, Error> {
        match digits.part {
            NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits => {
                self.viable_in_exponent(id, digits, scale)
            }
            _ => self.viable_before_exponent(id, digits, scale),
        }
    }

    /// Decides prefixes before the exponent: every number whose first significant digits are these
    /// is possible.
    fn viable_before_exponent(
        &mut self,
        id: FormulaId,
        digits: &NumberPrefix,
        scale: &NumberScale,
    ) -> Result<bool, Error> {
        let sided = |low: Decimal, high: Option<Decimal>| {
            let high = high.map(|high| (high, false));
            let within = NumberInterval { low: Some((low, true)), high };
            if digits.negative { within.mirrored() } else { within }
        };
        if digits.digits.is_zero() {
            let within = sided(Decimal::from_integer(0), None);
            return Ok(match digits.part {
                NumberPart::Minus => self.base.numbers(id).find(&within)?.is_some(),
                _ => self.base.numbers(id).find_spelled(&within, false)?.is_some(),
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
            self.base.count_step()?;
            if self.base.numbers(id).find_spelled(&between(power), false)?.is_some() {
                return Ok(true);
            }
        }
        if digits.has_integer_form()
            && self.base.formulas.atoms(id).contains(&FormulaAtom::IntegerSpelling)
        {
            for power in 0..=most {
                if self.base.numbers(id).find_spelled(&between(power), true)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Decides prefixes inside the exponent.
    fn viable_in_exponent(
        &mut self,
        id: FormulaId,
        digits: &NumberPrefix,
        scale: &NumberScale,
    ) -> Result<bool, Error> {
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
                    self.base.count_step()?;
                    let value = digits.times_power(negative_exponent, power);
                    if self
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
