//! Copies of rows in which disallowed tokens have minus infinity.

use std::marker::PhantomData;

use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::mask_block;
use crate::vectorized::{Kernel, run};

impl Row<'_> {
    /// Writes the elements as log-probabilities in float32: those above 0 become 0, and those of
    /// tokens that are not allowed become minus infinity. Returns `false` and writes nothing if the
    /// elements are float64.
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
            for (to, &from) in out.iter_mut().zip(&masked) {
                *to = if from < 0.0 { from } else { 0.0 };
            }
        }
    }
}
