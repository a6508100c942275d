//! Draws of a token for a given uniform number: the inverse of the cumulative distribution.
//!
//! Without rules the tokens are in the order of their ids, with rules from the best on. The rules
//! apply in this order, each to the renormalized result of the one before: temperature, top-k,
//! top-p, min-p.

use std::marker::PhantomData;

use crate::exponential::{Real, tempered_weights};
use crate::mass_ranks::{RankRules, RankedRow};
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::{RowScan, RowSums, lane_tops, mask_block, power_of_two, top_of};
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

/// Mass of a block, relative to the largest, below which it has no token to draw.
const SMALL_MASS: f64 = 1e-30;

/// Number of best tokens that are tried before all are ranked.
const FEW: usize = 128;

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
        return Some(draw_of_best(&best, rules, uniform, None));
    }
    if rules.top_p.is_none() && rules.min_p.is_none() {
        return draw_by_id(scan, row, allowed, rules.temperature, uniform);
    }
    draw_by_rank(scan, row, allowed, rules, uniform)
}

/// Draws by top-p or min-p.
fn draw_by_rank(
    scan: &mut RowScan,
    row: Row<'_>,
    allowed: Allowed<'_>,
    rules: &DrawRules,
    uniform: f64,
) -> Option<u32> {
    let &DrawRules { temperature, top_p, min_p, .. } = rules;
    let top = scan.sums().max_allowed;
    let total = if temperature == 1.0 {
        (scan.sums().log_allowed - top).exp()
    } else {
        tempered_masses(row, allowed, top, temperature).iter().sum()
    };
    if let Some(found) = draw_from_few(scan, row, allowed, rules, uniform, total) {
        return Some(found);
    }
    let rules = RankRules { temperature, top_p, min_p };
    let ranked = RankedRow { row, allowed, blocks: &scan.blocks, top, total, rules };
    ranked.draw(&mut scan.ranks, uniform)
}

/// Draws by top-p or min-p if the tokens that they keep are surely among the best few, as they are
/// after most prefixes of a language model.
fn draw_from_few(
    scan: &mut RowScan,
    row: Row<'_>,
    allowed: Allowed<'_>,
    rules: &DrawRules,
    uniform: f64,
    total: f64,
) -> Option<u32> {
    if rules.top_p.is_some_and(|share| FEW as f64 / total < share) {
        return None;
    }
    let top = scan.sums().max_allowed;
    let best = scan.best(row, allowed, None, FEW);
    let weight = |value: f64| ((value - top) / rules.temperature).exp();
    let covers_top_p = rules.top_p.is_some_and(|share| {
        best.iter().map(|one| weight(one.1)).sum::<f64>() > share * total * (1.0 + 1e-5)
    });
    let last = best.last().map_or(0.0, |one| weight(one.1));
    let covers_min_p = rules.min_p.is_some_and(|share| last < share);
    if best.len() < FEW {
        return Some(draw_of_best(&best, rules, uniform, None));
    }
    (covers_top_p || covers_min_p).then(|| draw_of_best(&best, rules, uniform, Some(total)))
}

/// Draws from a few tokens, best first, in float64. The share of top-p is one of `total`, if it is
/// given, otherwise of the tokens' own sum.
fn draw_of_best(best: &[(u32, f64)], rules: &DrawRules, uniform: f64, total: Option<f64>) -> u32 {
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
        kept = kept.min(cumulative.partition_point(|&one| one < share * total.unwrap_or(sum)) + 1);
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
        block_masses(scan)
    } else {
        tempered_masses(row, allowed, scan.sums().max_allowed, temperature)
    };
    let (number, share) = block_at(&blocks, uniform)?;
    within_block(number, share, &block_weights(row, allowed, number, None, temperature))
}

/// The masses of a row's blocks: what draws of one row need beside the row itself.
///
/// It takes 8 bytes for 512 tokens, so that a walk can keep one for every position it visits.
#[derive(Clone, Debug)]
pub struct DrawTable {
    masses: Vec<f64>,
    width: usize,
    /// The logarithm of the number that masses are relative to.
    reference: f64,
    sums: RowSums,
}

impl DrawTable {
    /// Returns the table of the last scan.
    pub fn of(scan: &RowScan) -> DrawTable {
        let masses = block_masses(scan);
        let sums = scan.sums();
        let reference = sums.log_allowed - masses.iter().sum::<f64>().ln();
        DrawTable { masses, width: scan.width, reference, sums }
    }

    /// Returns the width of the row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the sums of the row.
    pub fn sums(&self) -> RowSums {
        self.sums
    }

    /// Returns the memory of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<DrawTable>() + self.masses.len() * size_of::<f64>()
    }

    /// Returns the log-sum-exp of the allowed tokens after the probabilities of some are
    /// multiplied; minus infinity if nothing is left.
    ///
    /// `tokens` are ascending and allowed, each with a factor from 0 to 1. The row and the allowed
    /// tokens must be those of the table. Blocks with such tokens are summed again, so that factors
    /// of 0 leave no rounding errors.
    ///
    /// # Panics
    ///
    /// If a token is not below the row's width, or has no factor.
    pub fn reweighted_log_sum(
        &self,
        row: Row<'_>,
        allowed: Allowed<'_>,
        tokens: &[u32],
        factors: &[f64],
    ) -> f64 {
        if tokens.is_empty() {
            return self.sums.log_allowed;
        }
        let factors = Factors { tokens, factors };
        let total: f64 = self.reweighted(row, allowed, factors).iter().sum();
        if total > 0.0 { self.reference + total.ln() } else { f64::NEG_INFINITY }
    }

    /// Draws a token in the order of ids, after the probabilities of some are multiplied as in
    /// [`DrawTable::reweighted_log_sum`]; `None` if no token is left.
    ///
    /// # Panics
    ///
    /// As [`DrawTable::reweighted_log_sum`].
    pub fn draw(
        &self,
        row: Row<'_>,
        allowed: Allowed<'_>,
        uniform: f64,
        tokens: &[u32],
        factors: &[f64],
    ) -> Option<u32> {
        let own;
        let factors = Factors { tokens, factors };
        let masses = if tokens.is_empty() {
            &self.masses
        } else {
            own = self.reweighted(row, allowed, factors);
            &own
        };
        let (number, share) = block_at(masses, uniform)?;
        let mut weights = block_weights(row, allowed, number, None, 1.0);
        factors.apply(number, &mut weights);
        within_block(number, share, &weights)
    }

    fn reweighted(&self, row: Row<'_>, allowed: Allowed<'_>, factors: Factors<'_>) -> Vec<f64> {
        let mut masses = self.masses.clone();
        let mut last = usize::MAX;
        for &token in factors.tokens {
            let number = token as usize / BLOCK;
            if number != last {
                last = number;
                let mut weights = block_weights(row, allowed, number, Some(self.reference), 1.0);
                factors.apply(number, &mut weights);
                masses[number] = weights.iter().sum();
            }
        }
        masses
    }
}

/// Returns the mass of the allowed tokens of each block of a scan, relative to one number.
fn block_masses(scan: &RowScan) -> Vec<f64> {
    let exponent = top_exponent(scan);
    let mass =
        |sum: f64, own: f64| if sum > 0.0 { sum * power_of_two(own - exponent) } else { 0.0 };
    scan.blocks.iter().map(|block| mass(block.sum, block.exponent)).collect()
}

fn top_exponent(scan: &RowScan) -> f64 {
    let used = scan.blocks.iter().filter(|block| block.sum > 0.0).map(|block| block.exponent);
    used.fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the block at a share of the mass, and the share of its own mass there.
fn block_at(blocks: &[f64], uniform: f64) -> Option<(usize, f64)> {
    // A block without allowed tokens may have small weights.
    let largest = blocks.iter().copied().fold(0.0, f64::max);
    let mut left = uniform * blocks.iter().sum::<f64>();
    let mut chosen = None;
    for (number, &mass) in blocks.iter().enumerate() {
        if mass > SMALL_MASS * largest {
            chosen = Some((number, (left / mass).clamp(0.0, 1.0)));
            if left < mass {
                break;
            }
            left -= mass;
        }
    }
    chosen
}

/// The probabilities of the tokens after some are multiplied: `tokens`, ascending, by `factors`.
#[derive(Clone, Copy)]
struct Factors<'a> {
    tokens: &'a [u32],
    factors: &'a [f64],
}

impl Factors<'_> {
    /// Multiplies the weights of a block.
    fn apply(self, number: usize, weights: &mut [f64; BLOCK]) {
        let first = (number * BLOCK) as u32;
        let start = self.tokens.partition_point(|&token| token < first);
        for (&token, factor) in self.tokens[start..].iter().zip(&self.factors[start..]) {
            match weights.get_mut((token - first) as usize) {
                Some(weight) => *weight *= factor,
                None => break,
            }
        }
    }
}

/// Returns e^((x - reference) / temperature) for the allowed tokens of a block, in float64; 0 for
/// others, and where that is below e^-700. The reference is the block's maximum if none is given.
fn block_weights(
    row: Row<'_>,
    allowed: Allowed<'_>,
    number: usize,
    reference: Option<f64>,
    temperature: f64,
) -> [f64; BLOCK] {
    let at = number * BLOCK;
    match row.element_type() {
        ElementType::Float16 => run(BlockWeights::<Half> {
            row,
            allowed,
            at,
            reference,
            temperature,
            kind: PhantomData,
        }),
        ElementType::Bfloat16 => run(BlockWeights::<Brain> {
            row,
            allowed,
            at,
            reference,
            temperature,
            kind: PhantomData,
        }),
        ElementType::Float32 => {
            run(BlockWeights::<f32> { row, allowed, at, reference, temperature, kind: PhantomData })
        }
        ElementType::Float64 => {
            run(BlockWeights::<f64> { row, allowed, at, reference, temperature, kind: PhantomData })
        }
    }
}

struct BlockWeights<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    at: usize,
    reference: Option<f64>,
    temperature: f64,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for BlockWeights<'_, E> {
    type Output = [f64; BLOCK];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [f64; BLOCK] {
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        let cells = self.row.view::<E>(self.at, &mut block);
        mask_block(cells, &self.allowed.block(self.at), E::Real::LOWEST, &mut masked);
        let reference = match self.reference {
            Some(reference) => reference,
            None => top_of(&lane_tops(&masked)).into(),
        };
        let floor = <f64 as Real>::floor(0.0);
        let mut weights = [0.0f64; BLOCK];
        if reference == f64::NEG_INFINITY {
            return weights;
        }
        for (weight, &value) in weights.iter_mut().zip(&masked) {
            let wide: f64 = value.into();
            let exponent = (wide - reference) / self.temperature;
            let found = exponent.weight::<FMA>(0.0, floor);
            *weight = if exponent < floor { 0.0 } else { found };
        }
        weights
    }
}

/// Returns the token at a share of a block's mass. The block is summed again, in float64.
fn within_block(number: usize, share: f64, weights: &[f64; BLOCK]) -> Option<u32> {
    const PART: usize = 32;
    let mut sums = [0.0f64; BLOCK / PART];
    for (sum, part) in sums.iter_mut().zip(weights.as_chunks::<PART>().0) {
        *sum = part.iter().sum();
    }
    let target = share * sums.iter().sum::<f64>();
    let (mut reached, mut last) = (0.0, None);
    for (at, (part, sum)) in weights.as_chunks::<PART>().0.iter().zip(sums).enumerate() {
        if sum == 0.0 {
            continue;
        }
        let is_last = reached + sum > target;
        let mut inside = reached;
        for (place, &weight) in part.iter().enumerate() {
            if weight > 0.0 {
                last = Some((number * BLOCK + at * PART + place) as u32);
                inside += weight;
                if is_last && inside > target {
                    return last;
                }
            }
        }
        if is_last {
            break; // rounding
        }
        reached += sum;
    }
    last
}

/// Returns the sum of each block under a temperature, relative to `top`.
fn tempered_masses(row: Row<'_>, allowed: Allowed<'_>, top: f64, temperature: f64) -> Vec<f64> {
    match row.element_type() {
        ElementType::Float16 => {
            run(Tempered::<Half> { row, allowed, top, temperature, kind: PhantomData })
        }
        ElementType::Bfloat16 => {
            run(Tempered::<Brain> { row, allowed, top, temperature, kind: PhantomData })
        }
        ElementType::Float32 => {
            run(Tempered::<f32> { row, allowed, top, temperature, kind: PhantomData })
        }
        ElementType::Float64 => {
            run(Tempered::<f64> { row, allowed, top, temperature, kind: PhantomData })
        }
    }
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
            let cells = self.row.view::<E>(at, &mut block);
            mask_block(cells, &self.allowed.block(at), E::Real::LOWEST, &mut masked);
            let (top, temperature) = (self.top, self.temperature);
            sums.push(tempered_weights::<E::Real, FMA>(&masked, &mut weights, top, temperature));
        }
        sums
    }
}

/// Returns the factor that replaces a division by a temperature.
#[inline(always)]
pub(crate) fn inverse(temperature: f64) -> f64 {
    1.0 / temperature.max(LOWEST_TEMPERATURE)
}
