//! Exact decimal numbers, as JSON writes them.
//!
//! JSON Schema compares and divides numbers exactly; doubles would make `19.99` no multiple of
//! `0.01`.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

/// Maximum number of digits, and of the absolute exponent. Larger numbers are refused: exact
/// arithmetic on them would take minutes (a "decimal bomb"). Chosen, not measured.
pub(crate) const MAX_DIGITS: usize = 2_000;

/// Fraction digits up to which numbers are compared as machine integers. Chosen, not measured.
const SMALL_FRACTION_DIGITS: i64 = 9;

/// Powers of ten; times a 19-digit number they fit an `i128`.
const SMALL_POWERS: [i128; 19] = {
    let mut powers = [1; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Ten to the power of 16, to strip zeros in groups.
const MANY_ZEROS: u64 = 10_000_000_000_000_000;

/// `digits · 10^exponent`, without trailing zeros in `digits`: equal numbers have equal fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

impl Decimal {
    pub(crate) fn new(digits: BigInt, exponent: i64) -> Decimal {
        if digits.is_zero() {
            return Decimal { digits, exponent: 0 };
        }
        let (mut digits, mut exponent) = (digits, exponent);
        if let Some(mut small) = digits.to_i64() {
            if small % 10 != 0 {
                return Decimal { digits, exponent };
            }
            while small % 10 == 0 {
                small /= 10;
                exponent += 1;
            }
            return Decimal { digits: small.into(), exponent };
        }
        // Sixteen zeros at a time while the number is long.
        while digits.bits() > 64 && (&digits % MANY_ZEROS).is_zero() {
            digits /= MANY_ZEROS;
            exponent += 16;
        }
        while (&digits % 10u32).is_zero() {
            digits /= 10u32;
            exponent += 1;
        }
        Decimal { digits, exponent }
    }

    pub(crate) fn from_integer(value: i64) -> Decimal {
        Decimal::new(BigInt::from(value), 0)
    }

    /// Parses a JSON number. Returns `None` if it exceeds [`MAX_DIGITS`].
    pub(crate) fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()),
            None => (text, Some(0)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = BigInt::parse_bytes(format!("{whole}{fraction}").as_bytes(), 10)?;
        if digits.is_zero() {
            return Some(Decimal::new(digits, 0));
        }
        let exponent = exponent?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let fits = mantissa.len() <= MAX_DIGITS && exponent.unsigned_abs() <= MAX_DIGITS as u64;
        fits.then(|| Decimal::new(digits, exponent))
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Returns the number of digits before the point, at least 1.
    pub(crate) fn integer_digits(&self) -> usize {
        let digits = self.digits.magnitude().to_string().len() as i64;
        usize::try_from(digits + self.exponent).map_or(1, |whole| whole.max(1))
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.digits.is_negative()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_zero()
    }

    pub(crate) fn negated(&self) -> Decimal {
        Decimal { digits: -&self.digits, exponent: self.exponent }
    }

    pub(crate) fn abs(&self) -> Decimal {
        Decimal { digits: self.digits.abs(), exponent: self.exponent }
    }

    /// Returns the number of digits after the point.
    pub(crate) fn fraction_digits(&self) -> u32 {
        u32::try_from(-self.exponent).unwrap_or(0)
    }

    /// Returns the number times `10^places`. This is exact because callers pass at least
    /// [`Decimal::fraction_digits`].
    pub(crate) fn scaled(&self, places: u32) -> BigInt {
        let shift = self.exponent + i64::from(places);
        match u32::try_from(shift) {
            Ok(0) | Err(_) => self.digits.clone(),
            Ok(shift) => &self.digits * pow10(shift),
        }
    }

    /// Returns [`Decimal::scaled`] if it fits an `i128`.
    pub(crate) fn to_units(&self, places: u32) -> Option<i128> {
        self.small_units(i64::from(places)).or_else(|| self.scaled(places).to_i128())
    }

    /// Returns the number in units of `10^-places` if that is cheap: 64-bit digits and a small
    /// shift.
    fn small_units(&self, places: i64) -> Option<i128> {
        let digits = self.digits.to_i64()?;
        let shift = usize::try_from(self.exponent + places).ok()?;
        SMALL_POWERS.get(shift).map(|&power| i128::from(digits) * power)
    }

    /// Returns the binary logarithm with an error below 2; `None` for zero and for huge exponents.
    fn approx_log2(&self) -> Option<i64> {
        /// Bits per decimal digit, in millionths.
        const BITS_MILLIONTHS: i64 = 3_321_928;
        if self.is_zero() || self.exponent.unsigned_abs() > 100_000 {
            return None;
        }
        let bits = i64::try_from(self.digits.bits()).ok()?;
        Some(bits + (self.exponent * BITS_MILLIONTHS).div_euclid(1_000_000))
    }

    /// Returns `true` if the number is an integer multiple of `unit`, which must not be zero.
    pub(crate) fn is_multiple_of(&self, unit: &Decimal) -> bool {
        let places = self.fraction_digits().max(unit.fraction_digits());
        (self.scaled(places) % unit.scaled(places)).is_zero()
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        if let (Some(one), Some(two)) =
            (self.small_units(SMALL_FRACTION_DIGITS), other.small_units(SMALL_FRACTION_DIGITS))
        {
            return one.cmp(&two);
        }
        if let (Some(one), Some(two)) = (self.approx_log2(), other.approx_log2())
            && (self.is_negative() == other.is_negative())
            && one.abs_diff(two) > 2
        {
            return if self.is_negative() { two.cmp(&one) } else { one.cmp(&two) };
        }
        let places = self.fraction_digits().max(other.fraction_digits());
        self.scaled(places).cmp(&other.scaled(places))
    }
}

impl fmt::Display for Decimal {
    /// Writes the number without an exponent.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.fraction_digits() as usize;
        let digits = self.abs().scaled(places as u32).to_string();
        let sign = if self.is_negative() { "-" } else { "" };
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at(digits.len() - places);
        let point = if places > 0 { "." } else { "" };
        write!(out, "{sign}{whole}{point}{fraction}")
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns `10^exponent`.
pub(crate) fn pow10(exponent: u32) -> BigInt {
    BigInt::from(10u32).pow(exponent)
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    fn read(text: &str) -> Decimal {
        Decimal::parse(text).unwrap_or_else(|| Decimal::from_integer(0))
    }

    #[test]
    fn equal_numbers_are_equal_values() {
        assert_eq!(read("1.0"), read("1"));
        assert_eq!(read("0.001e3"), read("1"));
        assert_eq!(read("-0"), read("0.00"));
        assert_ne!(read("9007199254740993"), read("9007199254740992"));
        assert!(read("1e400") > read("1e399"));
    }

    #[test]
    fn numbers_of_all_sizes_are_ordered() {
        let sorted = [
            "-1e400",
            "-9223372036854775808e9",
            "-9223372036854775809",
            "-9223372036854775808",
            "-1.5",
            "-1",
            "-0.000000001",
            "-0.0000000001",
            "0",
            "1e-400",
            "0.0000000001",
            "0.000000001",
            "0.0000000010000000001",
            "1",
            "1.000000001",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "9223372036854775807e9",
            "9223372036854775807e10",
            "1e400",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (to, other) in sorted.iter().enumerate() {
                assert_eq!(read(one).cmp(&read(other)), at.cmp(&to), "{one} {other}");
            }
        }
    }

    #[test]
    fn approximate_logarithms_do_not_affect_comparison() {
        let digits = ["1", "1024", "1025", "2", "3", "7.99999", "8", "9.999999999999999999999"];
        let all: Vec<Decimal> = (-700..700)
            .step_by(61)
            .flat_map(|exponent| digits.map(|digits| read(&format!("{digits}e{exponent}"))))
            .collect();
        for one in &all {
            for other in &all {
                let places = one.fraction_digits().max(other.fraction_digits());
                let exact = one.scaled(places).cmp(&other.scaled(places));
                assert_eq!(one.cmp(other), exact, "{one:?} {other:?}");
                assert_eq!(one.negated().cmp(&other.negated()), exact.reverse());
            }
        }
    }

    #[test]
    fn multiples_are_exact() {
        assert!(read("19.99").is_multiple_of(&read("0.01")));
        assert!(!read("0.005").is_multiple_of(&read("0.01")));
        assert!(read("1e308").is_multiple_of(&read("0.5")));
        assert!(read("0").is_multiple_of(&read("7")));
    }

    #[test]
    fn huge_exponents_are_refused() {
        assert_eq!(Decimal::parse("1e1000000"), None);
        assert_eq!(Decimal::parse("0e1000000"), Some(Decimal::from_integer(0)));
    }
}
