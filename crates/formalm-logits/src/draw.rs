//! Draws of a token for a given uniform number: the inverse of the cumulative distribution.
//!
//! Without rules the tokens are in the order of their ids, with rules from the best on. The rules
//! apply in this order, each to the renormalized result of the one before: temperature, top-k,
//! top-p, min-p.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::{RowScan, mask_block, power_of_two};
use crate::vectorized::{Kernel, run};

/// The rules of a draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawRules {
    /// Divides the logits; 0 takes the best token.
    pub temperature: f64,
    /// Keeps this many best tokens.
    pub top_k: Option<usize>,
    /// Keeps the fewest best tokens whose total is at least this share.
    pub top_p: Option<f64>,
    /// Keeps tokens at least this many times as probable as the best.
    pub min_p: Option<f64>,
}

impl Default for DrawRules {
    fn default() -> DrawRules {
        DrawRules { temperature: 1.0, top_k: None, top_p: None, min_p: None }
    }
}

/// Mass of a block, relative to that of the best token, below which it has no token to draw.
const SMALL_MASS: f64 = 1e-30;

/// Smallest temperature of a division in float32; below it, only ties with the best count.
const LOWEST_TEMPERATURE: f64 = 1e-30;

/// Returns the token at `uniform`, from 0 to below 1; `None` if no allowed token has probability.
///
/// The last [`RowScan::run`] must have been of the same row and tokens.
pub fn draw(
    scan: &mut RowScan,
    row: Row<'_>,
    allowed: Allowed<'_>,
    rules: &DrawRules,
    uniform: f64,
) -> Option<u32> {
    let top = scan.sums().max_allowed;
    if top == f64::NEG_INFINITY {
        return None;
    }
    if rules.temperature == 0.0 {
        return scan.best_token(row, allowed);
    }
    if let Some(count) = rules.top_k {
        let best = scan.best(row, allowed, None, count);
        return Some(draw_of_best(&best, rules, uniform));
    }
    if rules.top_p.is_none() && rules.min_p.is_none() {
        return draw_by_id(scan, row, allowed, rules.temperature, uniform);
    }
    let ranks = scan.ranks.weigh(row, allowed, top, rules.temperature);
    let mut kept = ranks.total();
    let mut last = None;
    if let Some(share) = rules.top_p {
        last = ranks.reach(share * kept, false);
        kept = last.map_or(kept, |last| last.mass);
    }
    if let Some(share) = rules.min_p {
        // Both keep a number of best tokens.
        let mass = ranks.mass_from(share);
        if mass < kept {
            kept = mass;
        }
    }
    let found = ranks.reach(uniform * kept, true)?;
    Some(match last {
        Some(last) if last.precedes(found) => last.id,
        _ => found.id,
    })
}

/// Draws from a few tokens, best first, in float64.
fn draw_of_best(best: &[(u32, f64)], rules: &DrawRules, uniform: f64) -> u32 {
    let top = best[0].1;
    let weights: Vec<f64> =
        best.iter().map(|&(_, value)| ((value - top) / rules.temperature).exp()).collect();
    let mut sum = 0.0;
    let cumulative: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    let mut kept = best.len();
    if let Some(share) = rules.top_p {
        kept = kept.min(cumulative.partition_point(|&one| one < share * sum) + 1);
    }
    if let Some(share) = rules.min_p {
        kept = weights[..kept].iter().filter(|&&weight| weight >= share * weights[0]).count();
    }
    let kept = kept.max(1);
    let target = uniform * cumulative[kept - 1];
    let place = cumulative[..kept].partition_point(|&one| one <= target);
    best[place.min(kept - 1)].0
}

fn draw_by_id(
    scan: &RowScan,
    row: Row<'_>,
    allowed: Allowed<'_>,
    temperature: f64,
    uniform: f64,
) -> Option<u32> {
    let blocks = if temperature == 1.0 {
        let tops = scan.blocks.iter().filter(|block| block.sum > 0.0).map(|block| block.exponent);
        let exponent = tops.fold(f64::NEG_INFINITY, f64::max);
        let scaled = |sum: f64, own: f64| sum * power_of_two(own - exponent);
        scan.blocks
            .iter()
            .map(|block| if block.sum > 0.0 { scaled(block.sum, block.exponent) } else { 0.0 })
            .collect()
    } else {
        let top = scan.sums().max_allowed;
        match row.element_type() {
            ElementType::Float16 => tempered::<Half>(row, allowed, top, temperature),
            ElementType::Bfloat16 => tempered::<Brain>(row, allowed, top, temperature),
            ElementType::Float32 => tempered::<f32>(row, allowed, top, temperature),
            ElementType::Float64 => tempered::<f64>(row, allowed, top, temperature),
        }
    };
    let blocks: Vec<f64> = blocks;
    let total: f64 = blocks.iter().sum();
    let mut left = uniform * total;
    let mut chosen = None;
    for (number, &mass) in blocks.iter().enumerate() {
        // A block without allowed tokens may have small weights.
        if mass > SMALL_MASS {
            chosen = Some((number, mass));
            if left < mass {
                break;
            }
            left -= mass;
        }
    }
    let (number, mass) = chosen?;
    // The block again, in float64: its own sum replaces the one that chose it.
    let ids = (number * BLOCK..row.width().min((number + 1) * BLOCK)).filter(|&id| allowed.has(id));
    let values: Vec<(usize, f64)> = ids.map(|id| (id, row.get(id))).collect();
    let top = values.iter().map(|one| one.1).fold(f64::NEG_INFINITY, f64::max);
    let weigh = |value: f64| ((value - top) / temperature).exp();
    let sum: f64 = values.iter().map(|&(_, value)| weigh(value)).sum();
    let target = (left / mass).min(1.0) * sum;
    let (mut reached, mut last) = (0.0, None);
    for (id, value) in values {
        let weight = weigh(value);
        if weight > 0.0 {
            last = Some(id as u32);
            reached += weight;
            if reached > target {
                break;
            }
        }
    }
    last
}

fn tempered<E: Element>(
    row: Row<'_>,
    allowed: Allowed<'_>,
    top: f64,
    temperature: f64,
) -> Vec<f64> {
    run(Tempered::<E> { row, allowed, top, temperature, kind: PhantomData })
}

/// The sum of each block under a temperature.
struct Tempered<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    top: f64,
    temperature: f64,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Tempered<'_, E> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Vec<f64> {
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        let mut weights = [E::Real::ZERO; BLOCK];
        let mut sums = Vec::with_capacity(self.row.width().div_ceil(BLOCK));
        // A closure would be compiled without the vector instructions.
        for at in (0..self.row.width()).step_by(BLOCK) {
            self.row.read::<E>(at, &mut block);
            mask_block(&block, &self.allowed.block(at), &mut masked);
            sums.push(E::Real::tempered::<FMA>(&masked, &mut weights, self.top, self.temperature));
        }
        sums
    }
}

/// Returns the factor that replaces a division by a temperature.
#[inline(always)]
pub(crate) fn inverse(temperature: f64) -> f64 {
    1.0 / temperature.max(LOWEST_TEMPERATURE)
}
