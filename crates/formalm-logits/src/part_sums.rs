//! Sums over parts of rows.

use crate::exponential::Real;
use crate::row::{Allowed, Brain, Element, ElementType, Half, Row};
use crate::vectorized::{Kernel, run};

/// Number of lanes of a sum.
const LANES: usize = 16;
/// Values that are added in float32: four in each lane, with an error of 2.4e-7.
const CHUNK: usize = 4 * LANES;

/// Returns the logarithm of the sum of exponentials of the given tokens, in float64.
pub fn log_sum_of(row: Row<'_>, ids: &[u32]) -> f64 {
    let value = |&id: &u32| row.get(id as usize);
    let top = ids.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + ids.iter().map(|id| (value(id) - top).exp()).sum::<f64>().ln()
}

/// Returns the sum of e^(value - offset), for values that exceed `offset` by at most 80, with a
/// relative error below [`crate::LOG_SUM_ERROR`]. It is 0 if all are minus infinity. Other values
/// more than 85 below `offset` count as 1e-37, so a sum below 1e-28 is not accurate. Neither is any
/// if `offset` is not below 1e4 in magnitude.
pub fn exponential_sum(values: &[f32], offset: f64) -> f64 {
    run(ExponentialSum(values, offset))
}

struct ExponentialSum<'a>(&'a [f32], f64);

impl Kernel for ExponentialSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let top = self.1 as f32;
        let (exponent, floor) = (<f32 as Real>::exponent(top), <f32 as Real>::floor(top));
        let mut wide = [0.0f64; LANES];
        let (chunks, rest) = self.0.as_chunks::<CHUNK>();
        for chunk in chunks {
            let mut lanes = [0.0f32; LANES];
            for four in chunk.as_chunks::<LANES>().0 {
                for lane in 0..LANES {
                    lanes[lane] += weight::<f32, FMA>(four[lane], exponent, floor);
                }
            }
            for lane in 0..LANES {
                wide[lane] += f64::from(lanes[lane]);
            }
        }
        for part in rest.chunks(LANES) {
            let mut lanes = [f32::NEG_INFINITY; LANES];
            lanes[..part.len()].copy_from_slice(part);
            for lane in 0..LANES {
                wide[lane] += f64::from(weight::<f32, FMA>(lanes[lane], exponent, floor));
            }
        }
        let sum: f64 = wide.iter().sum();
        sum * (f64::from(exponent) * f32::ln2::<FMA>() - self.1).exp()
    }
}

/// Returns the sum of e^(value - offset), for values of at most `offset`, with a relative error below
/// 1e-13. Values more than 700 below `offset` count as 1e-300.
pub fn wide_exponential_sum(values: &[f64], offset: f64) -> f64 {
    run(WideExponentialSum(values, offset))
}

struct WideExponentialSum<'a>(&'a [f64], f64);

impl Kernel for WideExponentialSum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let floor = <f64 as Real>::floor(0.0);
        let mut sums = [0.0f64; LANES];
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                sums[lane] += (chunk[lane] - self.1).weight::<FMA>(0.0, floor);
            }
        }
        let mut sum = 0.0;
        for one in sums {
            sum += one;
        }
        for value in rest {
            sum += (value - self.1).weight::<FMA>(0.0, floor);
        }
        sum
    }
}

/// Returns the weight of a value; 0 for minus infinity.
#[inline(always)]
fn weight<R: Real, const FMA: bool>(value: R, exponent: R, floor: R) -> R {
    let weight = value.weight::<FMA>(exponent, floor);
    if value == R::LOWEST { R::ZERO } else { weight }
}

impl Row<'_> {
    /// Copies the values of some tokens, minus infinity for those that are not allowed. Types of at
    /// most 32 bits fit into float32; those of float64 are rounded.
    ///
    /// # Panics
    ///
    /// If a token is not below the width.
    pub fn gather(self, allowed: Allowed<'_>, ids: &[u32], into: &mut [f32]) {
        match self.element_type() {
            ElementType::Float16 => self.gather_as::<Half>(allowed, ids, into),
            ElementType::Bfloat16 => self.gather_as::<Brain>(allowed, ids, into),
            ElementType::Float32 => self.gather_as::<f32>(allowed, ids, into),
            ElementType::Float64 => {
                for (to, &id) in into.iter_mut().zip(ids) {
                    let value =
                        if allowed.has(id as usize) { self.get(id as usize) } else { f64::LOWEST };
                    *to = value as f32;
                }
            }
        }
    }

    fn gather_as<E: Element<Real = f32>>(
        self,
        allowed: Allowed<'_>,
        ids: &[u32],
        into: &mut [f32],
    ) {
        let mut largest = 0;
        for &id in ids {
            largest = largest.max(id as usize);
        }
        assert!(ids.is_empty() || largest < self.width(), "token {largest} of a row");
        let into = &mut into[..ids.len()];
        for place in 0..ids.len() {
            let id = ids[place];
            // SAFETY: every id is within the row. Reading all of them avoids a branch.
            let value = unsafe { self.load::<E>(id as usize) };
            into[place] = if allowed.has(id as usize) { value } else { f32::LOWEST };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_those_of_float64(
            values in prop::collection::vec(prop_oneof![-40.0f32..0.0, Just(f32::NEG_INFINITY)], 0..1200),
            offset in -3.0f64..30.0,
            bits: u32,
        ) {
            let logits: Vec<f32> = values.iter().map(|value| value + offset as f32).collect();
            let expected: f64 =
                logits.iter().map(|&value| (f64::from(value) - offset).exp()).sum();
            let found = exponential_sum(&logits, offset);
            prop_assert!((found - expected).abs() <= crate::LOG_SUM_ERROR * expected + 1e-30);
            let wide: Vec<f64> = values.iter().map(|&value| f64::from(value) * 1.7 + offset).collect();
            let expected: f64 = wide.iter().map(|value| (value - offset).exp()).sum();
            let found = wide_exponential_sum(&wide, offset);
            prop_assert!((found - expected).abs() <= 1e-13 * expected + 1e-290);
            let words = vec![bits; logits.len().div_ceil(32)];
            let allowed = Allowed::of(&words, logits.len());
            let ids: Vec<u32> = (0..logits.len() as u32).rev().collect();
            let mut gathered = vec![0.0; ids.len()];
            Row::of_f32(&logits).gather(allowed, &ids, &mut gathered);
            for (&id, value) in ids.iter().zip(gathered) {
                let expected = if allowed.has(id as usize) { logits[id as usize] } else { f32::LOWEST };
                prop_assert_eq!(value, expected);
            }
        }
    }
}
