//! Copies of rows under a mask, and sums over parts of them.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::mask_block;
use crate::vectorized::{Kernel, run};

impl Row<'_> {
    /// Writes the elements as float32, with minus infinity for tokens that are not allowed. Returns
    /// `false` and writes nothing if the elements are float64.
    ///
    /// # Panics
    ///
    /// If `out` is longer than the row, rounded up to a multiple of 512.
    pub fn copy_allowed(self, allowed: Allowed<'_>, out: &mut [f32]) -> bool {
        match self.element_type() {
            ElementType::Float16 => {
                run(Copied::<Half> { row: self, allowed, out, kind: PhantomData });
            }
            ElementType::Bfloat16 => {
                run(Copied::<Brain> { row: self, allowed, out, kind: PhantomData });
            }
            ElementType::Float32 => {
                run(Copied::<f32> { row: self, allowed, out, kind: PhantomData });
            }
            ElementType::Float64 => return false,
        }
        true
    }
}

struct Copied<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    out: &'a mut [f32],
    kind: PhantomData<E>,
}

impl<E: Element<Real = f32>> Kernel for Copied<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut block = [f32::NEG_INFINITY; BLOCK];
        let mut masked = [f32::NEG_INFINITY; BLOCK];
        for (number, out) in self.out.chunks_mut(BLOCK).enumerate() {
            let at = number * BLOCK;
            self.row.read::<E>(at, &mut block);
            mask_block(&block, &self.allowed.block(at), &mut masked);
            out.copy_from_slice(&masked[..out.len()]);
        }
    }
}

/// Number of lanes of a sum.
const LANES: usize = 16;
/// Values that are added in float32: four in each lane, with an error of 2.4e-7.
const CHUNK: usize = 4 * LANES;

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
                    lanes[lane] += weight::<FMA>(four[lane], exponent, floor);
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
                wide[lane] += f64::from(weight::<FMA>(lanes[lane], exponent, floor));
            }
        }
        let sum: f64 = wide.iter().sum();
        sum * (f64::from(exponent) * f32::ln2::<FMA>() - self.1).exp()
    }
}

/// Returns the weight of a value; 0 for minus infinity.
#[inline(always)]
fn weight<const FMA: bool>(value: f32, exponent: f32, floor: f32) -> f32 {
    let weight = value.weight::<FMA>(exponent, floor);
    if value == f32::NEG_INFINITY { 0.0 } else { weight }
}

/// Returns [`exponential_sum`] of the values of each class.
///
/// # Panics
///
/// If there are fewer classes than values.
pub fn exponential_sums(values: &[f32], offset: f64, classes: &[u8]) -> Box<[f64; 256]> {
    run(ExponentialSums { values, offset, classes: &classes[..values.len()] })
}

struct ExponentialSums<'a> {
    values: &'a [f32],
    offset: f64,
    classes: &'a [u8],
}

impl Kernel for ExponentialSums<'_> {
    type Output = Box<[f64; 256]>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Box<[f64; 256]> {
        /// Tables that neighbors alternate between, so that few additions wait for the one before.
        const TABLES: usize = 4;
        let top = self.offset as f32;
        let (exponent, floor) = (<f32 as Real>::exponent(top), <f32 as Real>::floor(top));
        let mut tables = [[0.0f64; 256]; TABLES];
        let mut weights = [0.0f32; BLOCK];
        for (values, classes) in self.values.chunks(BLOCK).zip(self.classes.chunks(BLOCK)) {
            for (to, &value) in weights.iter_mut().zip(values) {
                *to = weight::<FMA>(value, exponent, floor);
            }
            for (place, (&class, &one)) in classes.iter().zip(&weights).enumerate() {
                tables[place % TABLES][class as usize] += f64::from(one);
            }
        }
        let scale = (f64::from(exponent) * f32::ln2::<FMA>() - self.offset).exp();
        let mut sums = Box::new([0.0; 256]);
        for (class, sum) in sums.iter_mut().enumerate() {
            for table in &tables {
                *sum += table[class] * scale;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_those_of_float64(
            values in prop::collection::vec(prop_oneof![-40.0f32..0.0, Just(f32::NEG_INFINITY)], 0..200),
            offset in -3.0f64..30.0,
        ) {
            let logits: Vec<f32> = values.iter().map(|value| value + offset as f32).collect();
            let expected: f64 =
                logits.iter().map(|&value| (f64::from(value) - offset).exp()).sum();
            let found = exponential_sum(&logits, offset);
            prop_assert!((found - expected).abs() <= crate::LOG_SUM_ERROR * expected + 1e-30);
            let classes: Vec<u8> = (0..logits.len()).map(|at| (at * 7 % 256) as u8).collect();
            let sums = exponential_sums(&logits, offset, &classes);
            for (class, &found) in sums.iter().enumerate() {
                let of_class = logits.iter().zip(&classes).filter(|one| *one.1 as usize == class);
                let expected: f64 = of_class.map(|one| (f64::from(*one.0) - offset).exp()).sum();
                prop_assert!((found - expected).abs() <= crate::LOG_SUM_ERROR * expected + 1e-30);
            }
        }

        #[test]
        fn copies_have_minus_infinity_where_nothing_is_allowed(
            values in prop::collection::vec(-9.0f32..9.0, 1..1200), bits: u32,
        ) {
            let words = vec![bits; values.len().div_ceil(32)];
            let allowed = Allowed::of(&words, values.len());
            let mut out = vec![0.0; values.len()];
            prop_assert!(Row::of_f32(&values).copy_allowed(allowed, &mut out));
            for (id, (&value, &copied)) in values.iter().zip(&out).enumerate() {
                let expected = if allowed.has(id) { value } else { f32::NEG_INFINITY };
                prop_assert_eq!(copied, expected);
            }
        }
    }
}
