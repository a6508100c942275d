//! One pass over a row: log-sum-exp of all tokens and of the allowed ones, and maxima of groups.
//!
//! ```text
//!  row      ├── block 0 ──┼── block 1 ──┼─ … ─┤      512 elements each
//!  block    maximum ─► exponent n₀ ─► Σ e^x / 2^n₀   64 lanes of 8 terms, 16 sums of 4 lanes, then float64
//!  groups   16 for each block: the maximum of every 16th element, for the search of the best
//!  row      Σ over blocks of sum · 2^(n₀ − n), in float64
//! ```
//!
//! The error of a float32 sum: 3.2e-7 for each weight that counts, 7 additions of 6e-8 in a lane and 2 of
//! lanes; float64 afterward. That is below [`LOG_SUM_ERROR`] in the logarithm. Tokens whose logits are more than
//! 86 below the maximum of their block count as 1e-37 of it each. The allowed
//! part has an exponent of its own where its maximum is far below.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::mass_ranks::RankScratch;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::vectorized::{Kernel, run};

/// Upper bound on the error of a log-sum-exp of a row of at most 32 bits, in nats.
pub const LOG_SUM_ERROR: f64 = 1e-6;

/// Upper bound for float64 rows.
const LOG_SUM_ERROR_WIDE: f64 = 1e-12;

/// Returns an upper bound on the error of any log-sum-exp of a row of this type, in nats, for rows of
/// up to a million logits below 1000. Larger logits add the last digits of float64.
pub fn log_sum_error(kind: ElementType) -> f64 {
    if kind == ElementType::Float64 { LOG_SUM_ERROR_WIDE } else { LOG_SUM_ERROR }
}

/// Returns an upper bound on the error of the log-sum-exp of one row, in nats.
pub fn row_error(kind: ElementType, width: usize, log_sum: f64) -> f64 {
    match kind {
        // Weights, the sum of blocks, and the last digit of the result.
        ElementType::Float64 => 1e-14 + 1e-18 * width as f64 + 1e-15 * log_sum.abs(),
        _ => LOG_SUM_ERROR,
    }
}

/// Lanes of a block's sums.
pub(crate) const LANES: usize = 64;
/// Groups of a block, each of `BLOCK / GROUPS` elements.
pub(crate) const GROUPS: usize = 16;
/// Distance between two maxima from which on sums get exponents of their own.
const FAR: f64 = 40.0;

/// The result of a check that a row describes a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// Some logit is finite, and none is NaN or infinity.
    Sound,
    /// A logit is NaN.
    Nan,
    /// A logit is infinity.
    PositiveInfinity,
    /// Every logit is minus infinity.
    AllNegativeInfinity,
}

/// The sums of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSums {
    /// The logarithm of the sum of exponentials of the whole row.
    pub log_sum_exp: f64,
    /// The same of the allowed tokens; minus infinity if none has probability.
    pub log_allowed: f64,
    /// The maximum of the row.
    pub max: f64,
    /// The maximum of the allowed tokens.
    pub max_allowed: f64,
    /// If it is not [`Soundness::Sound`], the other fields have no meaning.
    pub soundness: Soundness,
}

/// The sum of a row alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSum {
    /// The logarithm of the sum of exponentials of the whole row.
    pub log_sum_exp: f64,
    /// If it is not [`Soundness::Sound`], the sum has no meaning.
    pub soundness: Soundness,
}

impl From<RowSums> for RowSum {
    fn from(sums: RowSums) -> RowSum {
        RowSum { log_sum_exp: sums.log_sum_exp, soundness: sums.soundness }
    }
}

/// The allowed part of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSum {
    /// The sum of weights relative to 2^`exponent`.
    pub(crate) sum: f64,
    pub(crate) exponent: f64,
    /// The maximum.
    pub(crate) top: f64,
}

/// The scratch space of row scans; it keeps what the last scan found.
#[derive(Debug)]
pub struct RowScan {
    pub(crate) blocks: Vec<BlockSum>,
    pub(crate) groups: Vec<f64>,
    pub(crate) candidates: Vec<(u64, u32)>,
    pub(crate) tops: Vec<f64>,
    pub(crate) ranks: RankScratch,
    pub(crate) sums: RowSums,
    pub(crate) width: usize,
}

impl Default for RowScan {
    fn default() -> RowScan {
        RowScan {
            blocks: Vec::new(),
            groups: Vec::new(),
            candidates: Vec::new(),
            tops: Vec::new(),
            ranks: RankScratch::default(),
            sums: UNSCANNED,
            width: 0,
        }
    }
}

const UNSCANNED: RowSums = RowSums {
    log_sum_exp: f64::NEG_INFINITY,
    log_allowed: f64::NEG_INFINITY,
    max: f64::NEG_INFINITY,
    max_allowed: f64::NEG_INFINITY,
    soundness: Soundness::AllNegativeInfinity,
};

impl RowScan {
    /// Scans a row and returns its sums.
    pub fn run(&mut self, row: Row<'_>, allowed: Allowed<'_>) -> RowSums {
        self.width = row.width();
        self.sums = match row.element_type() {
            ElementType::Float16 => self.run_as::<Half>(row, allowed),
            ElementType::Bfloat16 => self.run_as::<Brain>(row, allowed),
            ElementType::Float32 => self.run_as::<f32>(row, allowed),
            ElementType::Float64 => self.run_as::<f64>(row, allowed),
        };
        self.sums
    }

    /// Returns what the last scan found.
    pub fn sums(&self) -> RowSums {
        self.sums
    }

    fn run_as<E: Element>(&mut self, row: Row<'_>, allowed: Allowed<'_>) -> RowSums {
        self.blocks.clear();
        self.groups.clear();
        let (blocks, groups) = (&mut self.blocks, &mut self.groups);
        let kernel = Scan::<E> { row, allowed, blocks, groups, kind: PhantomData };
        match run(kernel) {
            Some(sums) => sums,
            None => self.run_wide(row, allowed),
        }
    }

    /// Scans a row with logits of large magnitude, one by one.
    fn run_wide(&mut self, row: Row<'_>, allowed: Allowed<'_>) -> RowSums {
        let (mut max, mut max_allowed) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for at in 0..row.width() {
            let value = row.get(at);
            if value.is_nan() || value == f64::INFINITY {
                let soundness =
                    if value.is_nan() { Soundness::Nan } else { Soundness::PositiveInfinity };
                return RowSums { soundness, ..UNSCANNED };
            }
            max = max.max(value);
            if allowed.has(at) {
                max_allowed = max_allowed.max(value);
            }
        }
        self.blocks.clear();
        self.groups.clear();
        let (mut whole, mut part) = (0.0, 0.0);
        for start in (0..row.width()).step_by(BLOCK) {
            let mut block = BlockSum { sum: 0.0, exponent: 0.0, top: f64::NEG_INFINITY };
            let mut groups = [f64::NEG_INFINITY; GROUPS];
            for at in start..row.width().min(start + BLOCK) {
                let value = row.get(at);
                whole += (value - max).exp();
                if allowed.has(at) && value > f64::NEG_INFINITY {
                    block.sum += (value - max_allowed).exp();
                    block.top = block.top.max(value);
                    groups[at % GROUPS] = groups[at % GROUPS].max(value);
                }
            }
            part += block.sum;
            self.blocks.push(block);
            self.groups.extend(groups);
        }
        let log_allowed = if part > 0.0 { max_allowed + part.ln() } else { f64::NEG_INFINITY };
        let log_sum_exp = max + whole.ln();
        RowSums { log_sum_exp, log_allowed, max, max_allowed, soundness: Soundness::Sound }
    }
}

struct Scan<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    blocks: &'a mut Vec<BlockSum>,
    groups: &'a mut Vec<f64>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Scan<'_, E> {
    type Output = Option<RowSums>;

    /// Returns `None` for logits of large magnitude.
    #[inline(always)]
    fn run<const FMA: bool>(mut self) -> Option<RowSums> {
        let limit = E::Real::MAX_EXPONENT_INPUT;
        let mut copied = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        let (mut whole, mut part) = (Total::default(), Total::default());
        let (mut max, mut max_allowed) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for at in (0..self.row.width()).step_by(BLOCK) {
            // A copy whose place the compiler knows takes less time than its absence.
            self.row.prefetch::<E>(at);
            self.row.read::<E>(at, &mut copied);
            let block = &copied;
            let bits = self.allowed.block(at);
            let (mut all, mut any) = (u32::MAX, 0);
            for &word in &bits {
                all &= word;
                any |= word;
            }
            let (is_full, is_empty) = (all == u32::MAX, any == 0);
            let tops = lane_tops(block);
            let top = top_of(&tops);
            let top_wide: f64 = top.into();
            if top_wide == f64::INFINITY {
                return Some(RowSums { soundness: Soundness::PositiveInfinity, ..UNSCANNED });
            }
            if top_wide == f64::NEG_INFINITY {
                #[expect(clippy::eq_op, reason = "NaN differs from itself")]
                let has_nan = block.iter().fold(false, |found, x| found | (x != x));
                if has_nan {
                    return Some(RowSums { soundness: Soundness::Nan, ..UNSCANNED });
                }
                self.push_empty();
                continue;
            }
            if top_wide.abs() > limit {
                return None;
            }
            max = max.max(top_wide);
            let (exponent, floor) = (E::Real::exponent(top), E::Real::floor(top));
            if is_full || is_empty {
                let sum = block_sum::<E::Real, FMA>(block, exponent, floor);
                if sum.is_nan() {
                    return Some(RowSums { soundness: Soundness::Nan, ..UNSCANNED });
                }
                whole.add(sum, exponent.into());
                if is_empty {
                    self.push_empty();
                    continue;
                }
                max_allowed = max_allowed.max(top_wide);
                part.add(sum, exponent.into());
                self.push(sum, exponent.into(), top_wide, &tops);
                continue;
            }
            mask_block(block, &bits, E::Real::LOWEST, &mut masked);
            let tops = lane_tops(&masked);
            let own = top_of(&tops);
            let own_wide: f64 = own.into();
            let is_far = own_wide < top_wide - FAR;
            let (sum, mut kept) = block_sums::<E::Real, FMA>(block, &bits, exponent, floor);
            if sum.is_nan() {
                return Some(RowSums { soundness: Soundness::Nan, ..UNSCANNED });
            }
            whole.add(sum, exponent.into());
            if own_wide == f64::NEG_INFINITY {
                self.push_empty();
                continue;
            }
            let mut kept_exponent = exponent;
            if is_far {
                if own_wide.abs() > limit {
                    return None;
                }
                kept_exponent = E::Real::exponent(own);
                let floor = E::Real::floor(own);
                kept = block_sum::<E::Real, FMA>(&masked, kept_exponent, floor);
            }
            max_allowed = max_allowed.max(own_wide);
            part.add(kept, kept_exponent.into());
            self.push(kept, kept_exponent.into(), own_wide, &tops);
        }
        if max == f64::NEG_INFINITY {
            return Some(UNSCANNED);
        }
        let soundness = Soundness::Sound;
        let ln2 = E::Real::ln2::<FMA>();
        let (log_sum_exp, log_allowed) = (whole.log(ln2), part.log(ln2));
        Some(RowSums { log_sum_exp, log_allowed, max, max_allowed, soundness })
    }
}

impl<E: Element> Scan<'_, E> {
    #[inline(always)]
    fn push_empty(&mut self) {
        self.blocks.push(BlockSum { sum: 0.0, exponent: 0.0, top: f64::NEG_INFINITY });
        self.groups.extend([f64::NEG_INFINITY; GROUPS]);
    }

    #[inline(always)]
    fn push(&mut self, sum: f64, exponent: f64, top: f64, tops: &[E::Real; LANES]) {
        self.blocks.push(BlockSum { sum, exponent, top });
        self.groups.extend(group_tops(tops));
    }
}

/// A sum of block sums, relative to the largest of their exponents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    sum: f64,
    exponent: f64,
}

impl Default for Total {
    fn default() -> Total {
        Total { sum: 0.0, exponent: f64::NEG_INFINITY }
    }
}

impl Total {
    #[inline(always)]
    pub(crate) fn add(&mut self, sum: f64, exponent: f64) {
        if exponent > self.exponent {
            self.sum *= power_of_two(self.exponent - exponent);
            self.exponent = exponent;
        }
        self.sum += sum * power_of_two(exponent - self.exponent);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.exponent == f64::NEG_INFINITY
    }

    pub(crate) fn log(self, ln2: f64) -> f64 {
        if self.sum > 0.0 { self.sum.ln() + self.exponent * ln2 } else { f64::NEG_INFINITY }
    }
}

/// Returns 2^n for a whole number n of at most 0; zero where that is subnormal.
#[inline(always)]
pub(crate) fn power_of_two(n: f64) -> f64 {
    if n < -1022.0 { 0.0 } else { f64::from_bits(((n + 1023.0) as u64) << 52) }
}

/// Returns the maximum of each lane, without NaN.
#[inline(always)]
pub(crate) fn lane_tops<R: Real>(block: &[R; BLOCK]) -> [R; LANES] {
    let mut tops = [R::LOWEST; LANES];
    for chunk in block.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            tops[lane] = if chunk[lane] > tops[lane] { chunk[lane] } else { tops[lane] };
        }
    }
    tops
}

#[inline(always)]
pub(crate) fn top_of<R: Real>(tops: &[R; LANES]) -> R {
    let mut few = [R::LOWEST; GROUPS];
    for chunk in tops.as_chunks::<GROUPS>().0 {
        for lane in 0..GROUPS {
            few[lane] = if chunk[lane] > few[lane] { chunk[lane] } else { few[lane] };
        }
    }
    let mut best = R::LOWEST;
    for &one in &few {
        best = if one > best { one } else { best };
    }
    best
}

#[inline(always)]
pub(crate) fn group_tops<R: Real>(tops: &[R; LANES]) -> [f64; GROUPS] {
    let mut few = [R::LOWEST; GROUPS];
    for chunk in tops.as_chunks::<GROUPS>().0 {
        for lane in 0..GROUPS {
            few[lane] = if chunk[lane] > few[lane] { chunk[lane] } else { few[lane] };
        }
    }
    let mut wide = [0.0; GROUPS];
    for (to, &one) in wide.iter_mut().zip(&few) {
        *to = one.into();
    }
    wide
}

/// Copies a block with another number in place of what is not allowed.
#[inline(always)]
pub(crate) fn mask_block<R: Real>(
    block: &[R; BLOCK],
    bits: &[u32; BLOCK / 32],
    instead: R,
    masked: &mut [R; BLOCK],
) {
    for (place, &word) in bits.iter().enumerate() {
        let from = &block[place * 32..place * 32 + 32];
        let to = &mut masked[place * 32..place * 32 + 32];
        for bit in 0..32 {
            to[bit] = if word & BITS[bit] != 0 { from[bit] } else { instead };
        }
    }
}

#[inline(always)]
pub(crate) fn block_sum<R: Real, const FMA: bool>(
    block: &[R; BLOCK],
    exponent: R,
    floor: R,
) -> f64 {
    let mut sums = [R::ZERO; LANES];
    for chunk in block.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            sums[lane] = sums[lane].plus(chunk[lane].weight::<FMA>(exponent, floor));
        }
    }
    block_total(&sums)
}

/// Returns the sum of a block's weights and of its allowed ones.
#[expect(clippy::needless_range_loop, reason = "indices below a constant are vectorized")]
#[inline(always)]
fn block_sums<R: Real, const FMA: bool>(
    block: &[R; BLOCK],
    bits: &[u32; BLOCK / 32],
    exponent: R,
    floor: R,
) -> (f64, f64) {
    let (mut sums, mut kept) = ([R::ZERO; LANES], [R::ZERO; LANES]);
    for (chunk, words) in block.as_chunks::<LANES>().0.iter().zip(bits.as_chunks::<2>().0) {
        for (half, &word) in words.iter().enumerate() {
            for bit in 0..32 {
                let lane = half * 32 + bit;
                let weight = chunk[lane].weight::<FMA>(exponent, floor);
                sums[lane] = sums[lane].plus(weight);
                let own = if word & BITS[bit] != 0 { weight } else { R::ZERO };
                kept[lane] = kept[lane].plus(own);
            }
        }
    }
    (block_total(&sums), block_total(&kept))
}

/// Returns the sum of the lanes of a block: of four lanes each in the row's precision, and of those in
/// float64.
#[inline(always)]
pub(crate) fn block_total<R: Real>(sums: &[R; LANES]) -> f64 {
    // The compiler converts 64 lanes one by one.
    let mut few = [R::ZERO; GROUPS];
    let (halves, _) = sums.as_chunks::<GROUPS>();
    for lane in 0..GROUPS {
        few[lane] =
            (halves[0][lane].plus(halves[1][lane])).plus(halves[2][lane].plus(halves[3][lane]));
    }
    let mut wide = [0.0f64; GROUPS];
    for lane in 0..GROUPS {
        wide[lane] = few[lane].into();
    }
    for lane in 0..8 {
        wide[lane] += wide[lane + 8];
    }
    for lane in 0..4 {
        wide[lane] += wide[lane + 4];
    }
    (wide[0] + wide[2]) + (wide[1] + wide[3])
}

/// The bits of a word, lowest first.
pub(crate) const BITS: [u32; 32] = {
    let mut bits = [0; 32];
    let mut at = 0;
    while at < 32 {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};
