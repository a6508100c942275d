//! Exponentials that the compiler vectorizes, with a bound on their error.
//!
//! e^x = 2^n · p(r), where n is x / ln 2 rounded and r = x − n · ln 2. Weights are relative to
//! 2^n₀, for the n₀ of a block's maximum, so no difference from a maximum is rounded.
//!
//! With fused products, n · ln 2 is subtracted exactly for a ln 2 of 24 bits. The result is then
//! relative to e^(n₀ · ln 2) of that same number ([`Real::ln2`]), and its error is that of n − n₀
//! times 1.9e-9. Without them, ln 2 is subtracted in two parts, of which the first is exact.
//!
//! ```text
//!  error of r             1.5e-8 + 1.9e-9 · (n₀ − n)    3e-8 without fused products
//!  error of p             1.6e-7        interpolation at Chebyshev nodes, coefficients rounded
//!  evaluation of p        1.2e-7        one unit in the last place
//!  ─────────────────────────────────────
//!  relative, float32      below 3.2e-7 for n₀ − n ≤ 10, below 5.5e-7 for all; float64: below 1e-14
//! ```
//!
//! A term of n₀ − n above 10 contributes at most 2^18 / 2^10 times the largest one, so its larger
//! error is not the sum's.

use std::ops::{Mul, Sub};

use crate::draw::inverse;
use crate::row::BLOCK;
use crate::row_scan::{LANES, block_total};

/// The types that rows are computed in.
pub(crate) trait Real:
    Copy + PartialOrd + Into<f64> + Mul<Output = Self> + Sub<Output = Self> + Send + Sync + 'static
{
    const LOWEST: Self;
    const ZERO: Self;

    /// Largest magnitude for which [`Real::weight`] is accurate.
    const MAX_EXPONENT_INPUT: f64;

    fn of(value: f64) -> Self;

    /// Returns the exponent n₀ of `top`, a whole number.
    fn exponent(top: Self) -> Self;

    /// Returns the value below which weights relative to `top` are constant: small, and normal
    /// numbers, because others take a hundred cycles.
    fn floor(top: Self) -> Self;

    /// Returns the logarithm of the base of the weights' exponents: ln 2, or the number near it
    /// that [`Real::weight`] subtracts.
    fn ln2<const FMA: bool>() -> f64;

    /// Returns e^x / 2^n₀. Below `floor` it is that of `floor`, 1e-37 at most; for NaN it is NaN.
    ///
    /// `FMA` says that fused products take one instruction.
    fn weight<const FMA: bool>(self, exponent: Self, floor: Self) -> Self;

    fn plus(self, other: Self) -> Self;

    /// Returns the next larger number.
    fn next_above(self) -> Self;

    /// Returns a key with the same order; for NaN and negative zero, one of some order.
    fn key(self) -> u64;
}

/// Writes e^((x − top) / temperature) for each value, and returns their sum. Differences from the
/// maximum lose no digits to the temperature.
#[inline(always)]
pub(crate) fn tempered_weights<R: Real, const FMA: bool>(
    values: &[R; BLOCK],
    weights: &mut [R; BLOCK],
    top: f64,
    temperature: f64,
) -> f64 {
    let (top, factor) = (R::of(top), R::of(inverse(temperature)));
    let floor = R::floor(R::ZERO);
    let mut sums = [R::ZERO; LANES];
    let chunks = values.as_chunks::<LANES>().0.iter();
    for (values, weights) in chunks.zip(weights.as_chunks_mut::<LANES>().0) {
        for lane in 0..LANES {
            let weight = ((values[lane] - top) * factor).weight::<FMA>(R::ZERO, floor);
            weights[lane] = weight;
            sums[lane] = sums[lane].plus(weight);
        }
    }
    block_total(&sums)
}

#[inline(always)]
fn fused32<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn fused64<const FMA: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

impl Real for f32 {
    const LOWEST: f32 = f32::NEG_INFINITY;
    const ZERO: f32 = 0.0;
    /// n then has at most 14 bits, and its product with the 9 bits of `LN2_HIGH` is exact.
    const MAX_EXPONENT_INPUT: f64 = 1e4;

    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }

    #[inline(always)]
    fn exponent(top: f32) -> f32 {
        top * std::f32::consts::LOG2_E + ROUND32 - ROUND32
    }

    #[inline(always)]
    fn ln2<const FMA: bool>() -> f64 {
        if FMA { f64::from(std::f32::consts::LN_2) } else { std::f64::consts::LN_2 }
    }

    #[inline(always)]
    fn floor(top: f32) -> f32 {
        top - 86.0
    }

    #[inline(always)]
    fn weight<const FMA: bool>(self, exponent: f32, floor: f32) -> f32 {
        // Written so that NaN stays NaN.
        let x = if self < floor { floor } else { self };
        let rounded = fused32::<FMA>(x, std::f32::consts::LOG2_E, ROUND32);
        let n = rounded - ROUND32;
        let r = if FMA {
            fused32::<FMA>(-n, std::f32::consts::LN_2, x)
        } else {
            fused32::<FMA>(-n, LN2_LOW32, fused32::<FMA>(-n, LN2_HIGH32, x))
        };
        let mut p = POLYNOMIAL32[0];
        for &coefficient in &POLYNOMIAL32[1..] {
            p = fused32::<FMA>(p, r, coefficient);
        }
        // The low bits of both sums hold whole numbers.
        let reference = (exponent + (ROUND32 - 127.0)).to_bits();
        p * f32::from_bits(rounded.to_bits().wrapping_sub(reference) << 23)
    }

    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn next_above(self) -> f32 {
        self.next_up()
    }

    #[inline(always)]
    fn key(self) -> u64 {
        let bits = (self + 0.0).to_bits();
        u64::from(if bits >> 31 != 0 { !bits } else { bits | 0x8000_0000 })
    }
}

/// Adding and subtracting it rounds to a whole number.
const ROUND32: f32 = 12_582_912.0;
const LN2_HIGH32: f32 = 355.0 / 512.0;
const LN2_LOW32: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;

/// e^r for |r| ≤ ln 2 / 2, highest power first: the interpolation at Chebyshev nodes.
const POLYNOMIAL32: [f32; 6] =
    [0.008_369_184, 0.041_917_76, 0.166_665_05, 0.499_988_68, 1.0, 1.000_000_1];

impl Real for f64 {
    const LOWEST: f64 = f64::NEG_INFINITY;
    const ZERO: f64 = 0.0;
    /// n then has at most 21 bits, and its product with the 32 bits of `LN2_HIGH` is exact.
    const MAX_EXPONENT_INPUT: f64 = 1e6;

    #[inline(always)]
    fn of(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn exponent(top: f64) -> f64 {
        top * std::f64::consts::LOG2_E + ROUND64 - ROUND64
    }

    #[inline(always)]
    fn ln2<const FMA: bool>() -> f64 {
        std::f64::consts::LN_2
    }

    #[inline(always)]
    fn floor(top: f64) -> f64 {
        top - 700.0
    }

    #[inline(always)]
    fn weight<const FMA: bool>(self, exponent: f64, floor: f64) -> f64 {
        let x = if self < floor { floor } else { self };
        let rounded = fused64::<FMA>(x, std::f64::consts::LOG2_E, ROUND64);
        let n = rounded - ROUND64;
        let r = fused64::<FMA>(-n, LN2_HIGH64, x);
        let r = fused64::<FMA>(-n, LN2_LOW64, r);
        let mut p = POLYNOMIAL64[0];
        for &coefficient in &POLYNOMIAL64[1..] {
            p = fused64::<FMA>(p, r, coefficient);
        }
        let reference = (exponent + (ROUND64 - 1023.0)).to_bits();
        p * f64::from_bits(rounded.to_bits().wrapping_sub(reference) << 52)
    }

    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn next_above(self) -> f64 {
        self.next_up()
    }

    #[inline(always)]
    fn key(self) -> u64 {
        let bits = (self + 0.0).to_bits();
        if bits >> 63 != 0 { !bits } else { bits | 1 << 63 }
    }
}

const ROUND64: f64 = 6_755_399_441_055_744.0;
/// The leading 32 bits of ln 2.
const LN2_HIGH64: f64 = f64::from_bits(std::f64::consts::LN_2.to_bits() & !((1 << 21) - 1));
/// The rest of ln 2, whose bits continue those of the constant.
const LN2_LOW64: f64 = (std::f64::consts::LN_2 - LN2_HIGH64) + 2.319_046_813_846_299_6e-17;

/// The Taylor polynomial of e^r, which is within 1e-16 for |r| ≤ ln 2 / 2, highest power first.
const POLYNOMIAL64: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let mut at = 0;
    while at < 14 {
        let mut power = 1;
        while power <= 13 - at {
            coefficients[at] /= power as f64;
            power += 1;
        }
        at += 1;
    }
    coefficients
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_within_the_stated_error() {
        let (mut worst32, mut worst64) = (0.0f64, 0.0f64);
        for at in 0..400_000 {
            let x = f64::from(at - 200_000) * 3.7e-4;
            let exact = |x: f64, n: f64, ln2: f64| (x - n * ln2).exp();
            let narrow = x as f32;
            // The exponent of a maximum that lies above.
            let n = <f32 as Real>::exponent(narrow + 3.0);
            for (weight, ln2) in [
                (narrow.weight::<false>(n, narrow - 1.0), <f32 as Real>::ln2::<false>()),
                (narrow.weight::<true>(n, narrow - 1.0), <f32 as Real>::ln2::<true>()),
            ] {
                let error = f64::from(weight) / exact(narrow.into(), n.into(), ln2) - 1.0;
                worst32 = worst32.max(error.abs());
            }
            let n = <f64 as Real>::exponent(x + 3.0);
            for weight in [x.weight::<false>(n, x - 1.0), x.weight::<true>(n, x - 1.0)] {
                let exact = exact(x, n, std::f64::consts::LN_2);
                worst64 = worst64.max((weight / exact - 1.0).abs());
            }
        }
        assert!(worst32 < 3.2e-7, "{worst32}");
        assert!(worst64 < 2e-14, "{worst64}");
    }

    #[test]
    fn weights_below_the_floor_are_small_normal_numbers_and_nan_stays_nan() {
        let (n, floor) = (<f32 as Real>::exponent(5.0), <f32 as Real>::floor(5.0));
        let small = f32::NEG_INFINITY.weight::<false>(n, floor);
        assert!(small.is_normal() && small < 1e-36);
        assert_eq!((-1e30f32).weight::<false>(n, floor), small);
        assert!(f32::NAN.weight::<false>(n, floor).is_nan());
        let (n, floor) = (<f64 as Real>::exponent(5.0), <f64 as Real>::floor(5.0));
        let small = f64::NEG_INFINITY.weight::<true>(n, floor);
        assert!(small.is_normal() && small < 1e-300);
        assert!(f64::NAN.weight::<true>(n, floor).is_nan());
    }

    #[test]
    fn keys_are_ordered_as_numbers() {
        let numbers = [f32::NEG_INFINITY, -3e30, -1.0, -1e-40, 0.0, 1e-40, 2.5, f32::MAX];
        assert!(numbers.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        assert!(numbers.windows(2).all(|pair| f64::from(pair[0]).key() < f64::from(pair[1]).key()));
        assert_eq!((-0.0f32).key(), 0.0f32.key());
    }
}
