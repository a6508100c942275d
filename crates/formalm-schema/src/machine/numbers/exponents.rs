//! Prefixes of numbers with exponents, whose digits are kept exactly.

use formalm_core::{Error, Resource, check_limit};
use num_bigint::BigInt;

use crate::json::decimal::{Decimal, MAX_DIGITS};
use crate::machine::frame::{NumberPart, NumberPrefix};
use crate::solver::NumberScale;

/// Returns the number of decimal digits, or one more.
pub(crate) fn length(digits: &BigInt) -> u32 {
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
                check_limit(Resource::Digits, needed, allowed)?;
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
    pub(crate) fn max_exponent(&self, scale: &NumberScale) -> u32 {
        self.places + length(&self.digits) + scale.powers + 4
    }

    /// Returns the value times a power of ten.
    pub(crate) fn times_power(&self, negative_exponent: bool, power: u32) -> Decimal {
        let power = if negative_exponent { -i64::from(power) } else { i64::from(power) };
        let value = Decimal::new(self.digits.clone(), power - i64::from(self.places));
        if self.negative { value.negated() } else { value }
    }
}
