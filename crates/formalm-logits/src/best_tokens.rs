//! The best allowed tokens of a row, and the next ones.
//!
//! The k-th largest of the groups' maxima is a lower bound on the k-th best token, so only tokens
//! at least as good are collected and sorted: a few more than k.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::{GROUPS, RowScan, group_tops, lane_tops, mask_block, top_of};
use crate::vectorized::{Kernel, run};

impl RowScan {
    /// Returns the `count` best allowed tokens with their values: largest first, then smallest id.
    /// Tokens of minus infinity are left out.
    ///
    /// The last [`RowScan::run`] must have been of the same row and tokens. With `after`, the
    /// tokens that follow that one are returned, by one more pass, and no scan is needed.
    pub fn best(
        &mut self,
        row: Row<'_>,
        allowed: Allowed<'_>,
        after: Option<(u32, f64)>,
        count: usize,
    ) -> Vec<(u32, f64)> {
        match row.element_type() {
            ElementType::Float16 => self.best_as::<Half>(row, allowed, after, count),
            ElementType::Bfloat16 => self.best_as::<Brain>(row, allowed, after, count),
            ElementType::Float32 => self.best_as::<f32>(row, allowed, after, count),
            ElementType::Float64 => self.best_as::<f64>(row, allowed, after, count),
        }
    }

    /// Returns the best allowed token of the last scan.
    pub fn best_token(&self, row: Row<'_>, allowed: Allowed<'_>) -> Option<u32> {
        let top = self.sums.max_allowed;
        let block = self.blocks.iter().position(|block| block.top == top)?;
        let first = block * BLOCK;
        let end = row.width().min(first + BLOCK);
        let found = (first..end).find(|&at| allowed.has(at) && row.get(at) == top)?;
        (top > f64::NEG_INFINITY).then_some(found as u32)
    }

    fn best_as<E: Element>(
        &mut self,
        row: Row<'_>,
        allowed: Allowed<'_>,
        after: Option<(u32, f64)>,
        count: usize,
    ) -> Vec<(u32, f64)> {
        if count == 0 {
            return Vec::new();
        }
        self.candidates.clear();
        self.tops.clear();
        let after = after.map(|(id, value)| (id, E::Real::of(value)));
        if after.is_some() {
            let tops = &mut self.tops;
            run(Tops::<E> { row, allowed, after, tops, kind: PhantomData });
        } else {
            self.tops.extend_from_slice(&self.groups);
        }
        let mut block_tops: Vec<f64> = self
            .tops
            .chunks(GROUPS)
            .map(|groups| groups.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let blocks = block_tops.clone();
        // Twice as many maxima as tokens keep the bound close to the last token.
        let bound = if 2 * count <= block_tops.len() {
            nth_largest(&mut block_tops, count)
        } else if count <= self.tops.len() {
            nth_largest(&mut self.tops, count)
        } else {
            f64::NEG_INFINITY
        };
        let found = &mut self.candidates;
        run(Collect::<E> { row, allowed, after, blocks: &blocks, bound, found, kind: PhantomData });
        let order =
            |one: &(u64, u32), other: &(u64, u32)| other.0.cmp(&one.0).then(one.1.cmp(&other.1));
        if found.len() > count {
            found.select_nth_unstable_by(count - 1, order);
            found.truncate(count);
        }
        found.sort_unstable_by(order);
        found.iter().map(|&(_, id)| (id, row.get(id as usize))).collect()
    }
}

fn nth_largest(values: &mut [f64], count: usize) -> f64 {
    *values.select_nth_unstable_by(count - 1, |one, other| other.total_cmp(one)).1
}

/// The maxima of groups among the tokens that follow one.
struct Tops<'a, E: Element> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    after: Option<(u32, E::Real)>,
    tops: &'a mut Vec<f64>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Tops<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        for at in (0..self.row.width()).step_by(BLOCK) {
            let cells = self.row.view::<E>(at, &mut block);
            mask_block(cells, &self.allowed.block(at), E::Real::LOWEST, &mut masked);
            if let Some((id, value)) = self.after {
                for (place, cell) in masked.iter_mut().enumerate() {
                    let follows = (*cell < value) | (*cell == value) & ((at + place) as u32 > id);
                    *cell = if follows { *cell } else { E::Real::LOWEST };
                }
            }
            self.tops.extend(group_tops(&lane_tops(&masked)));
        }
    }
}

/// The tokens of at least a value.
struct Collect<'a, E: Element> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    after: Option<(u32, E::Real)>,
    blocks: &'a [f64],
    bound: f64,
    found: &'a mut Vec<(u64, u32)>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Collect<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        let bound = E::Real::of(self.bound);
        for (number, &top) in self.blocks.iter().enumerate() {
            if top == f64::NEG_INFINITY || top < self.bound {
                continue;
            }
            let at = number * BLOCK;
            let cells = self.row.view::<E>(at, &mut block);
            mask_block(cells, &self.allowed.block(at), E::Real::LOWEST, &mut masked);
            let tops = lane_tops(&masked);
            if top_of(&tops) < bound {
                continue;
            }
            for (chunk, cells) in masked.as_chunks::<32>().0.iter().enumerate() {
                let mut bits = 0u32;
                for (place, &cell) in cells.iter().enumerate() {
                    bits |= u32::from((cell >= bound) & (cell > E::Real::LOWEST)) << place;
                }
                while bits != 0 {
                    let place = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let id = (at + chunk * 32 + place) as u32;
                    let cell = cells[place];
                    let follows = self
                        .after
                        .is_none_or(|(last, value)| cell < value || cell == value && id > last);
                    if follows {
                        self.found.push((cell.key(), id));
                    }
                }
            }
        }
    }
}
