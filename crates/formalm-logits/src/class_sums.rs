//! Sums over given tokens: by class, such as the state that follows them, or of a few.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::row::{BLOCK, Brain, Element, ElementType, Half, Row};
use crate::vectorized::{Kernel, run};

/// Returns the logarithm of the sum of exponentials of the given tokens, in float64.
pub fn log_sum_of(row: Row<'_>, ids: &[u32]) -> f64 {
    let value = |&id: &u32| row.get(id as usize);
    let top = ids.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + ids.iter().map(|id| (value(id) - top).exp()).sum::<f64>().ln()
}

/// Returns the logarithm of the sum of exponentials of each class of tokens.
///
/// `ids` are tokens and `classes` the class of each, below `count`. Sums have the error of
/// [`crate::log_sum_error`], and tokens more than 86 below the largest of all count as 1e-37 of it.
///
/// # Panics
///
/// If a token or a class is out of range.
pub fn class_sums(row: Row<'_>, ids: &[u32], classes: &[u32], count: usize) -> Vec<f64> {
    let sums = vec![0.0; count];
    match row.element_type() {
        ElementType::Float16 => run(Classes::<Half> { row, ids, classes, sums, kind: PhantomData }),
        ElementType::Bfloat16 => {
            run(Classes::<Brain> { row, ids, classes, sums, kind: PhantomData })
        }
        ElementType::Float32 => run(Classes::<f32> { row, ids, classes, sums, kind: PhantomData }),
        ElementType::Float64 => run(Classes::<f64> { row, ids, classes, sums, kind: PhantomData }),
    }
}

struct Classes<'a, E> {
    row: Row<'a>,
    ids: &'a [u32],
    classes: &'a [u32],
    sums: Vec<f64>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Classes<'_, E> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run<const FMA: bool>(mut self) -> Vec<f64> {
        let value = |id: u32| self.row.get(id as usize);
        let top = self.ids.iter().map(|&id| value(id)).fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return vec![f64::NEG_INFINITY; self.sums.len()];
        }
        let zero = E::Real::of(0.0);
        let floor = E::Real::floor(zero);
        let tiny = 2.0 * Into::<f64>::into(E::Real::LOWEST.weight::<FMA>(zero, floor));
        let mut block = [E::Real::LOWEST; BLOCK];
        for (ids, classes) in self.ids.chunks(BLOCK).zip(self.classes.chunks(BLOCK)) {
            for (cell, &id) in block.iter_mut().zip(ids) {
                *cell = E::Real::of(self.row.get(id as usize) - top);
            }
            for cell in &mut block {
                *cell = cell.weight::<FMA>(zero, floor);
            }
            for (&class, &cell) in classes.iter().zip(&block) {
                let weight: f64 = cell.into();
                self.sums[class as usize] += if weight > tiny { weight } else { 0.0 };
            }
        }
        self.sums
            .iter()
            .map(|&sum| if sum > 0.0 { top + sum.ln() } else { f64::NEG_INFINITY })
            .collect()
    }
}
