//! Sums over parts of rows, relative to a given number.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::mask_block;
use crate::vectorized::{Kernel, run};

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

/// Returns the weight of a value; 0 for minus infinity.
#[inline(always)]
fn weight<R: Real, const FMA: bool>(value: R, exponent: R, floor: R) -> R {
    let weight = value.weight::<FMA>(exponent, floor);
    if value == R::LOWEST { R::ZERO } else { weight }
}

impl Row<'_> {
    /// Returns the sum of e^(x - offset) over the allowed tokens of each class, as accurate as
    /// [`exponential_sum`]. A row may be wider than the vocabulary: elements without a class are
    /// left out.
    pub fn exponential_sums(
        self,
        allowed: Allowed<'_>,
        offset: f64,
        classes: &[u8],
    ) -> Box<[f64; 256]> {
        let (row, classes) = (self, &classes[..self.width().min(classes.len())]);
        match self.element_type() {
            ElementType::Float16 => {
                run(ClassSums::<Half> { row, allowed, offset, classes, kind: PhantomData })
            }
            ElementType::Bfloat16 => {
                run(ClassSums::<Brain> { row, allowed, offset, classes, kind: PhantomData })
            }
            ElementType::Float32 => {
                run(ClassSums::<f32> { row, allowed, offset, classes, kind: PhantomData })
            }
            ElementType::Float64 => {
                run(ClassSums::<f64> { row, allowed, offset, classes, kind: PhantomData })
            }
        }
    }
}

impl Row<'_> {
    /// Copies the values of some tokens, minus infinity for those that are not allowed. Types of at
    /// most 32 bits fit into float32; those of float64 are rounded.
    ///
    /// # Panics
    ///
    /// If an allowed token is not below the width.
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
        for (to, &id) in into.iter_mut().zip(ids) {
            *to = if allowed.has(id as usize) { self.at::<E>(id as usize) } else { f32::LOWEST };
        }
    }
}

struct ClassSums<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    offset: f64,
    classes: &'a [u8],
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for ClassSums<'_, E> {
    type Output = Box<[f64; 256]>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Box<[f64; 256]> {
        /// Tables that neighbors alternate between, so that few additions wait for the one before.
        const TABLES: usize = 4;
        let top = E::Real::of(self.offset);
        let (exponent, floor) = (E::Real::exponent(top), E::Real::floor(top));
        let mut tables = [[0.0f64; 256]; TABLES];
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        let mut weights = [E::Real::ZERO; BLOCK];
        for (number, classes) in self.classes.chunks(BLOCK).enumerate() {
            let words = self.allowed.block(number * BLOCK);
            if words.iter().all(|&word| word == 0) {
                continue;
            }
            let cells = self.row.view::<E>(number * BLOCK, &mut block);
            mask_block(cells, &words, &mut masked);
            for (to, &value) in weights.iter_mut().zip(&masked) {
                *to = weight::<E::Real, FMA>(value, exponent, floor);
            }
            for (place, (&class, &one)) in classes.iter().zip(&weights).enumerate() {
                tables[place % TABLES][class as usize] += Into::<f64>::into(one);
            }
        }
        let exponent: f64 = exponent.into();
        let scale = (exponent * E::Real::ln2::<FMA>() - self.offset).exp();
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
            values in prop::collection::vec(prop_oneof![-40.0f32..0.0, Just(f32::NEG_INFINITY)], 0..1200),
            offset in -3.0f64..30.0,
            bits: u32,
        ) {
            let logits: Vec<f32> = values.iter().map(|value| value + offset as f32).collect();
            let expected: f64 =
                logits.iter().map(|&value| (f64::from(value) - offset).exp()).sum();
            let found = exponential_sum(&logits, offset);
            prop_assert!((found - expected).abs() <= crate::LOG_SUM_ERROR * expected + 1e-30);
            let classes: Vec<u8> = (0..logits.len()).map(|at| (at * 7 % 256) as u8).collect();
            let words = vec![bits; logits.len().div_ceil(32)];
            let allowed = Allowed::of(&words, logits.len());
            let wide: Vec<f64> = logits.iter().map(|&value| value.into()).collect();
            let ids: Vec<u32> = (0..logits.len() as u32).rev().collect();
            let mut gathered = vec![0.0; ids.len()];
            Row::of_f32(&logits).gather(allowed, &ids, &mut gathered);
            for (&id, value) in ids.iter().zip(gathered) {
                let expected = if allowed.has(id as usize) { logits[id as usize] } else { f32::LOWEST };
                prop_assert_eq!(value, expected);
            }
            for row in [Row::of_f32(&logits), Row::of_f64(&wide)] {
                let sums = row.exponential_sums(allowed, offset, &classes);
                for (class, &found) in sums.iter().enumerate() {
                    let of_class = (0..logits.len())
                        .filter(|&at| classes[at] as usize == class && allowed.has(at));
                    let expected: f64 = of_class.map(|at| (row.get(at) - offset).exp()).sum();
                    prop_assert!((found - expected).abs() <= crate::LOG_SUM_ERROR * expected + 1e-30);
                }
            }
        }
    }
}
