//! The token at which a given mass is reached when tokens are taken from the best on.
//!
//! Sorting a row takes milliseconds, and most tokens are far from the place in question:
//!
//! ```text
//!  sample     8192 elements ─► levels, values a little above and below each place sought
//!  one pass   the mass of all tokens of at least each level
//!  one pass   the tokens between the two levels around a place
//!  selection  among these
//! ```
//!
//! Summing above levels in the scan itself would save the reading of the row, but takes longer than
//! the pass: the vectors of both do not fit into the registers.

use std::marker::PhantomData;

use crate::exponential::{Real, tempered_weights};
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::{BlockSum, LANES, block_total, mask_block};
use crate::vectorized::{Kernel, run};

/// Maximum number of levels of a pass, besides that of min-p. Each takes a tenth of the time of a
/// scan.
const LEVELS: usize = 4;
/// Neighbors that are sampled together: a cache line of float32.
const NEIGHBORS: usize = 16;
/// Blocks of sampled elements. The fewer they are, the more tokens lie between two levels.
const SAMPLED_BLOCKS: usize = 16;
/// Distance of a level from the place sought, in standard deviations of the sample's estimate.
const DEVIATIONS: f64 = 2.2;
/// The same of the levels by which the sample itself is divided.
const FIRST_DEVIATIONS: [f64; 4] = [-DEVIATIONS, -0.7, 0.7, DEVIATIONS];
/// Number of tokens between two levels from which on another pass with closer levels is worthwhile.
const MANY: usize = 8192;
/// Buckets of values whose masses are summed, a power of two.
const BUCKETS: usize = 256;
/// Up to this many tokens are put in order without buckets.
const SORTED_AT_ONCE: usize = 64;
/// Passes with closer levels. Equal values cannot be separated by more of them.
const ROUNDS: usize = 6;

/// Values that divide a row.
#[derive(Debug, Default)]
pub(crate) struct LevelScratch {
    /// Levels of the next pass, descending.
    levels: Vec<f64>,
    /// Values that probably have enough mass, of which no sum is known.
    edges: Vec<f64>,
}

impl LevelScratch {
    fn sort(&mut self) {
        self.levels.sort_unstable_by(|one, other| other.total_cmp(one));
        self.levels.dedup();
    }
}

/// A token in the order from the best on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) id: u32,
    pub(crate) value: f64,
    /// The mass of all tokens up to this one.
    pub(crate) mass: f64,
}

impl Ranked {
    /// Returns `true` if this token comes before the other.
    pub(crate) fn precedes(self, other: Ranked) -> bool {
        self.value > other.value || self.value == other.value && self.id < other.id
    }
}

/// A scanned row whose tokens have weights e^((x − top) / temperature).
pub(crate) struct RankedRow<'a> {
    pub(crate) row: Row<'a>,
    pub(crate) allowed: Allowed<'a>,
    pub(crate) blocks: &'a [BlockSum],
    /// The largest allowed value.
    pub(crate) top: f64,
    pub(crate) temperature: f64,
    /// The sum of all weights.
    pub(crate) total: f64,
    /// Values from the best on, each with the mass of the tokens of at least that value.
    pub(crate) known: Vec<(f64, f64)>,
    pub(crate) scratch: &'a mut LevelScratch,
    /// The tokens among which the last one was found, and the mass of all before them.
    pub(crate) found: Vec<(u64, u32, f64)>,
    pub(crate) before_found: f64,
}

impl RankedRow<'_> {
    /// Sums all tokens, those above levels around shares of the mass, and those above another value.
    pub(crate) fn sum_near(&mut self, shares: &[f64], other: Option<f64>) {
        match self.row.element_type() {
            ElementType::Float16 => self.choose::<Half>(shares),
            ElementType::Bfloat16 => self.choose::<Brain>(shares),
            ElementType::Float32 => self.choose::<f32>(shares),
            ElementType::Float64 => self.choose::<f64>(shares),
        }
        self.scratch.levels.extend(other);
        self.scratch.sort();
        self.sum_levels();
    }

    fn choose<E: Element>(&mut self, shares: &[f64]) {
        self.scratch.levels.clear();
        self.scratch.edges.clear();
        if !shares.is_empty() {
            let (row, allowed) = (self.row, self.allowed);
            let tempering = (self.top, self.temperature);
            let LevelScratch { levels, edges } = &mut *self.scratch;
            run(Sample::<E> { row, allowed, tempering, shares, levels, edges, kind: PhantomData });
        }
    }

    /// Sums the tokens above the levels of the scratch space.
    fn sum_levels(&mut self) {
        match self.row.element_type() {
            ElementType::Float16 => self.sum_levels_of::<Half>(),
            ElementType::Bfloat16 => self.sum_levels_of::<Brain>(),
            ElementType::Float32 => self.sum_levels_of::<f32>(),
            ElementType::Float64 => self.sum_levels_of::<f64>(),
        }
    }

    fn sum_levels_of<E: Element>(&mut self) {
        let (row, allowed, blocks) = (self.row, self.allowed, self.blocks);
        let (levels, tempering) = (&self.scratch.levels[..], (self.top, self.temperature));
        let kernel = SumLevels::<E> { row, allowed, blocks, levels, tempering, kind: PhantomData };
        let (total, masses) = run(kernel);
        self.total = total;
        for (&level, mass) in self.scratch.levels.iter().zip(masses) {
            if self.known.iter().all(|one| one.0 != level) {
                self.known.push((level, mass));
            }
        }
        self.known.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
    }

    /// Returns the mass of the tokens of at least a value that was summed.
    pub(crate) fn mass_from(&self, value: f64) -> f64 {
        self.known.iter().find(|one| one.0 == value).map_or(self.total, |one| one.1)
    }

    /// Returns the largest weight of a token that may be the first whose mass reaches `target`.
    pub(crate) fn largest_weight_at(&self, target: f64) -> f64 {
        let value = self.around(target, false).0.map_or(self.top, |upper| upper.0);
        ((value - self.top) / self.temperature).exp()
    }

    /// Returns the nearest known value that has too little mass, and the nearest that has enough.
    fn around(&self, target: f64, is_strict: bool) -> (Option<(f64, f64)>, Option<f64>) {
        let is_below = |one: &(f64, f64)| !reaches(one.1, target, is_strict);
        let place = self.known.partition_point(is_below);
        let upper = place.checked_sub(1).map(|above| self.known[above]);
        (upper, self.known.get(place).map(|one| one.0))
    }

    /// Returns the first token whose mass reaches `target`, or exceeds it if `is_strict`; the last one
    /// with a weight if none does.
    pub(crate) fn reach(&mut self, target: f64, is_strict: bool) -> Option<Ranked> {
        for _ in 0..ROUNDS {
            let (upper, lower) = self.around(target, is_strict);
            let (above, mass) = upper.map_or((None, 0.0), |one| (Some(one.0), one.1));
            let is_near = |edge: &&f64| {
                above.is_none_or(|value| value > **edge) && lower.is_none_or(|value| value < **edge)
            };
            let edge = self.scratch.edges.iter().filter(is_near).copied().reduce(f64::max);
            if self.gather(above, edge.or(lower), MANY) {
                let found = self.select(mass, target, is_strict);
                if edge.is_none() || found.is_some_and(|one| reaches(one.mass, target, is_strict)) {
                    self.before_found = mass;
                    return found;
                }
                // The edge has too little mass.
                self.scratch.levels.clear();
                self.scratch.levels.extend(edge);
            } else {
                self.choose_between(above, edge.or(lower));
                if self.scratch.levels.is_empty() {
                    break; // equal values
                }
            }
            self.sum_levels();
        }
        let (upper, lower) = self.around(target, is_strict);
        self.before_found = upper.map_or(0.0, |one| one.1);
        self.gather(upper.map(|one| one.0), lower, usize::MAX);
        self.select(self.before_found, target, is_strict)
    }

    /// Returns the token that exceeds a slightly larger target than one that was reached before, given
    /// `before_found` and `found` of then.
    pub(crate) fn reach_again(
        &mut self,
        (before, found): (f64, Vec<(u64, u32, f64)>),
        target: f64,
    ) -> Option<Ranked> {
        self.found = found;
        let again = self.select(before, target, true);
        if again.is_some_and(|one| reaches(one.mass, target, true)) {
            again
        } else {
            self.reach(target, true)
        }
    }

    /// Chooses levels among the first tokens between two values.
    fn choose_between(&mut self, upper: Option<f64>, lower: Option<f64>) {
        self.found.sort_unstable_by_key(|one| std::cmp::Reverse(one.0));
        let levels = &mut self.scratch.levels;
        levels.clear();
        let step = (self.found.len() - 1) / (LEVELS + 1);
        let values = (1..=LEVELS).map(|at| self.row.get(self.found[at * step].1 as usize));
        levels.extend(values.filter(|&value| Some(value) != lower && Some(value) != upper));
        self.scratch.sort();
    }

    /// Gathers the tokens below `upper` and from `lower` on. Returns `false` if there are more than
    /// `most`; then it has the first ones.
    fn gather(&mut self, upper: Option<f64>, lower: Option<f64>, most: usize) -> bool {
        match self.row.element_type() {
            ElementType::Float16 => self.gather_as::<Half>(upper, lower, most),
            ElementType::Bfloat16 => self.gather_as::<Brain>(upper, lower, most),
            ElementType::Float32 => self.gather_as::<f32>(upper, lower, most),
            ElementType::Float64 => self.gather_as::<f64>(upper, lower, most),
        }
    }

    fn gather_as<E: Element>(
        &mut self,
        upper: Option<f64>,
        lower: Option<f64>,
        most: usize,
    ) -> bool {
        self.found.clear();
        run(Gather::<E> {
            row: self.row,
            allowed: self.allowed,
            blocks: self.blocks,
            upper,
            lower: lower.unwrap_or(f64::NEG_INFINITY),
            most,
            tempering: (self.top, self.temperature),
            found: &mut self.found,
            kind: PhantomData,
        })
    }

    /// Finds a token among those gathered. Buckets of values are summed, and only the tokens of the
    /// bucket in question are put in order. `mass` is that of all tokens before those gathered.
    fn select(&mut self, mut mass: f64, target: f64, is_strict: bool) -> Option<Ranked> {
        let order = |one: &(u64, u32, f64), other: &(u64, u32, f64)| {
            other.0.cmp(&one.0).then(one.1.cmp(&other.1))
        };
        let mut kept: Vec<(u64, u32, f64)>;
        let mut rest = &self.found[..];
        while rest.len() > SORTED_AT_ONCE {
            let (low, high) = rest
                .iter()
                .fold((u64::MAX, 0), |(low, high), one| (low.min(one.0), high.max(one.0)));
            if low == high {
                break;
            }
            let shift = (BUCKETS.ilog2() as u64).max(64 - u64::from((high - low).leading_zeros()))
                - u64::from(BUCKETS.ilog2());
            let bucket = |key: u64| ((high - key) >> shift) as usize;
            let mut sums = [0.0f64; BUCKETS];
            for one in rest {
                sums[bucket(one.0)] += one.2;
            }
            // The last bucket has a token, that of the lowest value.
            let mut chosen = bucket(low);
            for (at, sum) in sums[..chosen].iter().enumerate() {
                if reaches(mass + sum, target, is_strict) {
                    chosen = at;
                    break;
                }
                mass += sum;
            }
            kept = rest.iter().copied().filter(|one| bucket(one.0) == chosen).collect();
            rest = &kept;
        }
        let mut sorted = rest.to_vec();
        sorted.sort_unstable_by(order);
        let mut last = None;
        for (_, id, weight) in sorted {
            mass += weight;
            last = Some(Ranked { id, value: self.row.get(id as usize), mass });
            if reaches(mass, target, is_strict) {
                break;
            }
        }
        last
    }
}

fn reaches(mass: f64, target: f64, is_strict: bool) -> bool {
    if is_strict { mass > target } else { mass >= target }
}

/// Adds the weights of a block whose values are at least each level.
#[inline(always)]
fn add_level_sums<R: Real>(
    values: &[R; BLOCK],
    weights: &[R; BLOCK],
    levels: &[R],
    masses: &mut [f64],
) {
    for (to, &level) in masses.iter_mut().zip(levels) {
        let mut sums = [R::ZERO; LANES];
        let chunks = values.as_chunks::<LANES>().0.iter();
        for (values, weights) in chunks.zip(weights.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                let own = if values[lane] >= level { weights[lane] } else { R::ZERO };
                sums[lane] = sums[lane].plus(own);
            }
        }
        *to += block_total(&sums);
    }
}

/// The levels before shares of the mass, and edges after them, from a sample of a row.
struct Sample<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    /// The largest value and the temperature.
    tempering: (f64, f64),
    shares: &'a [f64],
    levels: &'a mut Vec<f64>,
    edges: &'a mut Vec<f64>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Sample<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut values = [[E::Real::LOWEST; BLOCK]; SAMPLED_BLOCKS];
        let mut weights = [[E::Real::ZERO; BLOCK]; SAMPLED_BLOCKS];
        let groups = self.row.width() / NEIGHBORS;
        // An odd stride avoids the period of padded or structured rows.
        let every = groups.div_ceil(SAMPLED_BLOCKS * BLOCK / NEIGHBORS) | 1;
        for (place, group) in (0..groups).step_by(every).enumerate() {
            let at = group * NEIGHBORS;
            let word = self.allowed.word(at / 32) >> (at % 32);
            let to = place * NEIGHBORS;
            let cells = &mut values[to / BLOCK][to % BLOCK..to % BLOCK + NEIGHBORS];
            for (bit, cell) in cells.iter_mut().enumerate() {
                let value = self.row.at::<E>(at + bit);
                *cell = if word >> bit & 1 != 0 { value } else { E::Real::LOWEST };
            }
        }
        let (top, temperature) = self.tempering;
        for (values, weights) in values.iter().zip(&mut weights) {
            tempered_weights::<E::Real, FMA>(values, weights, top, temperature);
        }
        // A few of the elements give levels, which divide all of them.
        let mut few: Vec<(f64, f64)> = Vec::with_capacity(BLOCK);
        for (values, weights) in values.iter().zip(&weights) {
            for at in (0..BLOCK).step_by(SAMPLED_BLOCKS + 1) {
                let value: f64 = values[at].into();
                if value.is_finite() {
                    few.push((value, weights[at].into()));
                }
            }
        }
        few.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        let (mut sum, mut squares) = (0.0, 0.0);
        let cumulative: Vec<(f64, f64)> = few
            .iter()
            .map(|one| {
                sum += one.1;
                squares += one.1 * one.1;
                (sum, squares)
            })
            .collect();
        let place = |share: f64| cumulative.partition_point(|one| one.0 < share * sum);
        for &share in self.shares {
            let above = cumulative.get(place(share)).map_or(squares, |one| one.1);
            let variance = above * (1.0 - share).powi(2) + (squares - above) * share * share;
            let deviation = variance.sqrt() / sum;
            let mut first = [E::Real::LOWEST; FIRST_DEVIATIONS.len()];
            for (to, distance) in first.iter_mut().zip(FIRST_DEVIATIONS) {
                let near = few.get(place(share + distance * deviation)).or(few.last());
                *to = near.map_or(E::Real::LOWEST, |one| E::Real::of(one.0));
            }
            let mut masses = [0.0; FIRST_DEVIATIONS.len() + 1];
            for (values, weights) in values.iter().zip(&weights) {
                add_level_sums(values, weights, &first, &mut masses);
                add_level_sums(values, weights, &[E::Real::LOWEST], &mut masses[first.len()..]);
            }
            let deviation = deviation / (SAMPLED_BLOCKS as f64).sqrt();
            let (before, after) = (share - DEVIATIONS * deviation, share + DEVIATIONS * deviation);
            for (near, edges) in [(before, &mut *self.levels), (after, &mut *self.edges)] {
                let mass = near * masses[first.len()];
                let at = masses[..first.len()].partition_point(|&one| one < mass);
                if at == 0 || at == first.len() {
                    let value = few.get(place(near)).map(|one| one.0);
                    edges.extend(value.filter(|_| near > 0.0));
                    continue;
                }
                let (high, low) = (first[at - 1].into(), first[at].into());
                let part = (mass - masses[at - 1]) / (masses[at] - masses[at - 1]);
                let level = E::Real::of(high + part * (low - high));
                edges.push(level.into());
            }
        }
    }
}

/// The masses above levels, and of all tokens.
struct SumLevels<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    blocks: &'a [BlockSum],
    levels: &'a [f64],
    /// The largest value and the temperature.
    tempering: (f64, f64),
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for SumLevels<'_, E> {
    type Output = (f64, [f64; LEVELS + 1]);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (f64, [f64; LEVELS + 1]) {
        let mut levels = [E::Real::LOWEST; LEVELS + 1];
        for (to, &level) in levels.iter_mut().zip(self.levels) {
            *to = E::Real::of(level);
        }
        let levels = &levels[..self.levels.len()];
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut masked = [E::Real::LOWEST; BLOCK];
        let mut weights = [E::Real::ZERO; BLOCK];
        let (mut total, mut masses) = (0.0, [0.0; LEVELS + 1]);
        let (top, temperature) = self.tempering;
        for (number, known) in self.blocks.iter().enumerate() {
            if known.top == f64::NEG_INFINITY {
                continue;
            }
            let at = number * BLOCK;
            self.row.read::<E>(at, &mut block);
            mask_block(&block, &self.allowed.block(at), &mut masked);
            total += tempered_weights::<E::Real, FMA>(&masked, &mut weights, top, temperature);
            add_level_sums(&masked, &weights, levels, &mut masses);
        }
        (total, masses)
    }
}

/// The tokens below `upper` and from `lower` on, with their weights.
struct Gather<'a, E> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    blocks: &'a [BlockSum],
    upper: Option<f64>,
    lower: f64,
    most: usize,
    tempering: (f64, f64),
    found: &'a mut Vec<(u64, u32, f64)>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Gather<'_, E> {
    type Output = bool;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> bool {
        let (lower, is_open) = (E::Real::of(self.lower), self.upper.is_none());
        let upper = E::Real::of(self.upper.unwrap_or(0.0));
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut ids: Vec<u32> = Vec::new();
        let (mut count, mut is_all) = (0, true);
        for (number, known) in self.blocks.iter().enumerate() {
            if known.top == f64::NEG_INFINITY || known.top < self.lower {
                continue;
            }
            if count > self.most {
                is_all = false;
                break;
            }
            if ids.len() < count + 2 * BLOCK {
                ids.resize(2 * ids.len() + 4 * BLOCK, 0);
            }
            let at = number * BLOCK;
            self.row.read::<E>(at, &mut block);
            let words = self.allowed.block(at);
            for (chunk, (cells, word)) in block.as_chunks::<32>().0.iter().zip(words).enumerate() {
                let mut bits = 0u32;
                for (place, &cell) in cells.iter().enumerate() {
                    let is_inside =
                        (cell >= lower) & (is_open | (cell < upper)) & (cell > E::Real::LOWEST);
                    bits |= u32::from(is_inside) << place;
                }
                bits &= word;
                // Most chunks have few tokens. Writing four whether they exist or not avoids a
                // branch that cannot be predicted.
                let first = (at + chunk * 32) as u32;
                let end = count + bits.count_ones() as usize;
                loop {
                    for to in &mut ids[count..count + 4] {
                        *to = first + bits.trailing_zeros();
                        bits &= bits.wrapping_sub(1);
                    }
                    count += 4;
                    if count >= end {
                        break;
                    }
                }
                count = end;
            }
        }
        ids.truncate(count);
        self.found.reserve(ids.len());
        let (top, temperature) = self.tempering;
        let mut weights = [E::Real::ZERO; BLOCK];
        for ids in ids.chunks(BLOCK) {
            for (cell, &id) in block.iter_mut().zip(ids) {
                *cell = self.row.at::<E>(id as usize);
            }
            tempered_weights::<E::Real, FMA>(&block, &mut weights, top, temperature);
            for (place, &id) in ids.iter().enumerate() {
                self.found.push((block[place].key(), id, weights[place].into()));
            }
        }
        is_all
    }
}
