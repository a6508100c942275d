//! Draws from the best tokens on: the token at which a given mass is reached.
//!
//! Sorting a row takes milliseconds. Top-p and min-p keep the tokens of at least some value, and
//! only these are copied, weighed and divided:
//!
//! ```text
//!  sample     512 elements ─► a value a little below the last token that is kept
//!  one pass   the values of at least that; their weights
//!  levels     the mass above each of a few values ─► those between two of them, again and again
//!  selection  among the last 64
//! ```
//!
//! Neither the sample nor the levels decide anything: a mass that is not reached by the copied
//! tokens makes all be copied.

use std::marker::PhantomData;

use crate::exponential::{Real, tempered_weights};
use crate::filter::{Filter, LEVELS, ROOM};
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::{BlockSum, LANES};
use crate::vectorized::{Kernel, run};

/// Elements of a sample.
const SAMPLED: usize = BLOCK;
/// Fewer sampled tokens tell nothing; the row then has few.
const FEWEST_SAMPLED: usize = 64;
/// Distance of a level from the place sought, in standard deviations of the sample's estimate.
const DEVIATIONS: f64 = 2.2;
/// Up to this many tokens are put in order.
const SORTED_AT_ONCE: usize = 64;

/// The rules that keep a number of best tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankRules {
    pub(crate) temperature: f64,
    pub(crate) top_p: Option<f64>,
    pub(crate) min_p: Option<f64>,
}

/// Values and their weights, in no particular order.
#[derive(Debug, Default)]
pub(crate) struct WeighedValues<R> {
    /// The first `count` are in use.
    values: Vec<R>,
    weights: Vec<R>,
    count: usize,
}

/// The scratch space of draws.
#[derive(Debug, Default)]
pub(crate) struct RankScratch {
    narrow: Parts<f32>,
    wide: Parts<f64>,
    /// Sampled values, and the total weight up to each, descending.
    sample: Vec<(f32, f64)>,
}

/// The copied tokens, and those among which a place is sought.
#[derive(Debug, Default)]
pub(crate) struct Parts<R> {
    all: WeighedValues<R>,
    near: WeighedValues<R>,
}

/// The types in which copied tokens are kept.
pub(crate) trait Ranked: Real + Filter + Default {
    fn parts(scratch: &mut RankScratch) -> &mut Parts<Self>;
}

impl Ranked for f32 {
    fn parts(scratch: &mut RankScratch) -> &mut Parts<f32> {
        &mut scratch.narrow
    }
}

impl Ranked for f64 {
    fn parts(scratch: &mut RankScratch) -> &mut Parts<f64> {
        &mut scratch.wide
    }
}

/// A token in the order from the best on: the one after `equal` others of its value, by id.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place<R> {
    value: R,
    equal: usize,
    /// The mass of all tokens up to this one.
    mass: f64,
}

impl<R: PartialOrd> Place<R> {
    /// Returns `true` if this token comes before the other.
    fn precedes(&self, other: &Place<R>) -> bool {
        self.value > other.value || self.value == other.value && self.equal < other.equal
    }
}

/// A scanned row whose tokens have weights e^((x − top) / temperature).
#[derive(Clone, Copy)]
pub(crate) struct RankedRow<'a> {
    pub(crate) row: Row<'a>,
    pub(crate) allowed: Allowed<'a>,
    pub(crate) blocks: &'a [BlockSum],
    /// The largest allowed value.
    pub(crate) top: f64,
    /// The sum of all weights.
    pub(crate) total: f64,
    pub(crate) rules: RankRules,
}

impl RankedRow<'_> {
    /// Draws a token that top-p and min-p keep, at `uniform` from 0 to below 1.
    pub(crate) fn draw(&self, scratch: &mut RankScratch, uniform: f64) -> Option<u32> {
        match self.row.element_type() {
            ElementType::Float16 => self.draw_as::<Half>(scratch, uniform),
            ElementType::Bfloat16 => self.draw_as::<Brain>(scratch, uniform),
            ElementType::Float32 => self.draw_as::<f32>(scratch, uniform),
            ElementType::Float64 => self.draw_as::<f64>(scratch, uniform),
        }
    }

    fn draw_as<E: Element>(&self, scratch: &mut RankScratch, uniform: f64) -> Option<u32> {
        let RankRules { temperature, top_p, min_p } = self.rules;
        let cut = min_p.map(|share| at_least::<E::Real>(self.top + temperature * share.ln()));
        let mut sample = std::mem::take(&mut scratch.sample);
        sample.clear();
        if top_p.is_some() {
            self.sample(&mut sample);
        }
        let parts = E::Real::parts(scratch);
        let found = self.find::<E>(parts, &sample, cut, uniform);
        scratch.sample = sample;
        let found = found?;
        run(FindEqual::<E> { ranked: *self, place: found, kind: PhantomData })
    }

    /// Finds the place of a draw among the tokens that are kept: those from `cut` on, if it is given,
    /// and up to the share of top-p.
    fn find<E: Element>(
        &self,
        parts: &mut Parts<E::Real>,
        sample: &[(f32, f64)],
        cut: Option<E::Real>,
        uniform: f64,
    ) -> Option<Place<E::Real>> {
        let Some(share) = self.rules.top_p else {
            let mass = self.copy_from::<E>(parts, cut);
            return parts.reach(&[], uniform * mass, true);
        };
        let level = |share: f64, side: f64| {
            level_near(sample, share, side).map(|value| E::Real::of(value.into()))
        };
        let reached = share * self.total;
        let floor = level(share, DEVIATIONS);
        let limit = if cut > floor { cut } else { floor };
        let mut mass = self.copy_from::<E>(parts, limit);
        if mass < reached && limit != cut {
            mass = self.copy_from::<E>(parts, cut);
        }
        let least = uniform * reached.min(mass);
        let place = least / self.total;
        let near = [(place, -DEVIATIONS), (place, DEVIATIONS), (share, -DEVIATIONS)];
        let levels = near.into_iter().filter_map(|(share, side)| level(share, side));
        let levels = parts.all.with_masses(levels.collect());
        let found = parts.reach(&levels, least, true)?;
        if mass < reached {
            return Some(found); // min-p keeps fewer, or rounding
        }
        // The last token that is kept exceeds the mass by less than its weight.
        let above_last = levels.iter().rev().find(|one| one.1 < reached).map(|one| one.0);
        let largest = above_last.filter(|&one| one < found.value).unwrap_or(found.value);
        let largest: f64 = largest.into();
        let weight = ((largest - self.top) / self.rules.temperature).exp() * (1.0 + 1e-6);
        if found.mass > uniform * (reached + weight) {
            return Some(found);
        }
        let last = parts.reach(&levels, reached, false)?;
        let found = parts.reach(&levels, uniform * last.mass, true)?;
        Some(if last.precedes(&found) { last } else { found })
    }

    /// Copies the allowed tokens from a value on, all if it is not given; returns their mass.
    fn copy_from<E: Element>(&self, parts: &mut Parts<E::Real>, low: Option<E::Real>) -> f64 {
        // Minus infinity has no weight.
        let lowest = E::Real::LOWEST.next_above();
        let low = low.map_or(lowest, |low| if low > lowest { low } else { lowest });
        run(CopyFrom::<E> { ranked: *self, low, to: &mut parts.all, kind: PhantomData })
    }

    /// Samples values, with the total weight up to each, from the best on.
    fn sample(&self, found: &mut Vec<(f32, f64)>) {
        // An odd stride avoids the period of padded or structured rows.
        let every = (self.row.width() / SAMPLED) | 1;
        let mut block = [f32::LOWEST; BLOCK];
        let mut count = 0;
        for at in (0..self.row.width()).step_by(every) {
            if count < SAMPLED && self.allowed.has(at) {
                block[count] = self.row.get(at) as f32;
                count += 1;
            }
        }
        if count < FEWEST_SAMPLED {
            return;
        }
        block[..count].sort_unstable_by(|one, other| other.total_cmp(one));
        let (top, temperature) = (self.top, self.rules.temperature);
        let weights = run(Weights { values: &block, top, temperature });
        let mut sum = 0.0;
        found.extend(block[..count].iter().zip(weights).map(|(&value, weight)| {
            sum += f64::from(weight);
            (value, sum)
        }));
    }
}

/// Returns the value near a share of the sampled mass, `side` deviations of its estimate away; `None`
/// outside the sample.
fn level_near(sample: &[(f32, f64)], share: f64, side: f64) -> Option<f32> {
    let sum = sample.last()?.1;
    let (mut above, mut squares, mut before) = (0.0, 0.0, 0.0);
    for one in sample {
        let weight = one.1 - before;
        squares += weight * weight;
        if before < share * sum {
            above = squares;
        }
        before = one.1;
    }
    let variance = above * (1.0 - share).powi(2) + (squares - above) * share * share;
    let mass = share * sum + side * variance.sqrt();
    let place = sample.partition_point(|one| one.1 < mass);
    if mass <= 0.0 { None } else { sample.get(place).map(|one| one.0) }
}

/// Returns the smallest number of a type that is at least `value`.
fn at_least<R: Real>(value: f64) -> R {
    let near = R::of(value);
    if near.into() < value { near.next_above() } else { near }
}

fn descending<R: PartialOrd>(one: &R, other: &R) -> std::cmp::Ordering {
    other.partial_cmp(one).unwrap_or(std::cmp::Ordering::Equal)
}

fn reaches(mass: f64, target: f64, is_strict: bool) -> bool {
    if is_strict { mass > target } else { mass >= target }
}

impl<R: Ranked> Parts<R> {
    /// Returns the first of the copied tokens whose mass reaches `target`, or exceeds it if
    /// `is_strict`; the last one if none does. `levels` are values, descending, and the masses from
    /// each on.
    fn reach(&mut self, levels: &[(R, f64)], target: f64, is_strict: bool) -> Option<Place<R>> {
        let mut own: Vec<(R, f64)>;
        let mut levels = levels;
        let mut above = 0.0;
        let mut is_first = true;
        loop {
            if levels.is_empty() {
                let part = if is_first { &self.all } else { &self.near };
                if part.count <= SORTED_AT_ONCE {
                    return part.sorted_place(above, target, is_strict);
                }
                let (lowest, highest) = part.ends();
                if lowest == highest {
                    return Some(part.equal_place(above, target, is_strict));
                }
                own = part.with_masses(part.pivots(lowest));
                levels = &own;
            }
            let next = levels.partition_point(|one| !reaches(above + one.1, target, is_strict));
            let low = levels.get(next).map_or(R::LOWEST, |one| one.0);
            let infinity = R::of(f64::INFINITY);
            let (high, before) = next.checked_sub(1).map_or((infinity, 0.0), |at| levels[at]);
            if is_first {
                self.near.copy_between(&self.all, low, high);
                // The last level has all tokens, and rounding took a part of the mass.
                is_first = self.near.count == 0;
            } else {
                self.near.keep_between(low, high);
            }
            if !is_first {
                above += before;
            }
            levels = &[];
        }
    }
}

impl<R: Ranked> WeighedValues<R> {
    /// Returns levels, descending, and the masses of the values from each on.
    fn with_masses(&self, mut levels: Vec<R>) -> Vec<(R, f64)> {
        levels.sort_unstable_by(descending);
        levels.dedup();
        let masses = R::masses_from(self.values(), &self.weights[..self.count], &levels);
        levels.into_iter().zip(masses).collect()
    }

    /// Returns the smallest and the largest value.
    fn ends(&self) -> (R, R) {
        run(Ends(self.values()))
    }

    fn values(&self) -> &[R] {
        &self.values[..self.count]
    }

    /// Returns values that divide the others into parts of similar size, descending. Each has values
    /// on both sides, given that `lowest` is not the only one.
    fn pivots(&self, lowest: R) -> Vec<R> {
        let every = self.count / (4 * (LEVELS + 1));
        let mut few: Vec<R> = (1..4 * (LEVELS + 1)).map(|at| self.values[at * every]).collect();
        few.sort_unstable_by(descending);
        let next = lowest.next_above();
        let pivot = |at: usize| few[4 * at - 1];
        let mut pivots: Vec<R> =
            (1..=LEVELS).map(pivot).map(|one| if one > lowest { one } else { next }).collect();
        pivots.dedup();
        pivots
    }

    /// Puts the values in order, and returns the place of a mass. `above` is that of larger ones.
    fn sorted_place(&self, above: f64, target: f64, is_strict: bool) -> Option<Place<R>> {
        let mut sorted: Vec<(R, R)> =
            self.values().iter().copied().zip(self.weights.iter().copied()).collect();
        sorted.sort_unstable_by(|one, other| descending(&one.0, &other.0));
        let (mut mass, mut found) = (above, None::<Place<R>>);
        for (value, weight) in sorted {
            mass += weight.into();
            let equal = found.filter(|one| one.value == value).map_or(0, |one| one.equal + 1);
            found = Some(Place { value, equal, mass });
            if reaches(mass, target, is_strict) {
                break;
            }
        }
        found
    }

    /// Returns the place of a mass among equal values.
    fn equal_place(&self, above: f64, target: f64, is_strict: bool) -> Place<R> {
        let (value, weight) = (self.values[0], self.weights[0].into());
        let steps = (target - above) / weight;
        let steps = if is_strict { steps.floor() } else { steps.ceil() - 1.0 };
        let equal = (steps.max(0.0) as usize).min(self.count - 1);
        Place { value, equal, mass: above + (equal + 1) as f64 * weight }
    }

    /// Overwrites these with the values of others that are at least `low` and below `high`.
    fn copy_between(&mut self, from: &WeighedValues<R>, low: R, high: R) {
        self.make_room(from.count);
        let to = [&mut self.values[..], &mut self.weights[..]];
        let from = [from.values(), &from.weights[..from.count]];
        self.count = R::keep_between(from, [low, high], to);
    }

    /// Keeps the values that are at least `low` and below `high`.
    fn keep_between(&mut self, low: R, high: R) {
        let part = [&mut self.values[..], &mut self.weights[..]];
        self.count = R::keep_within(part, self.count, [low, high]);
    }

    /// Makes room for a number of values, and what kernels write beyond them.
    fn make_room(&mut self, count: usize) {
        let room = count + BLOCK + ROOM;
        if self.values.len() < room {
            self.values.resize(room + room / 2, R::ZERO);
            self.weights.resize(room + room / 2, R::ZERO);
        }
    }
}

/// Copies the allowed tokens from a value on and weighs them; returns their mass.
struct CopyFrom<'a, E: Element> {
    ranked: RankedRow<'a>,
    low: E::Real,
    to: &'a mut WeighedValues<E::Real>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for CopyFrom<'_, E> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let to = self.to;
        let (row, allowed) = (self.ranked.row, self.ranked.allowed);
        let low: f64 = self.low.into();
        let mut block = [E::Real::LOWEST; BLOCK];
        to.count = 0;
        for (number, known) in self.ranked.blocks.iter().enumerate() {
            if known.top < low {
                continue;
            }
            to.make_room(to.count + BLOCK);
            let cells = row.view::<E>(number * BLOCK, &mut block);
            let words = allowed.block(number * BLOCK);
            to.count += E::Real::keep_from(cells, &words, self.low, &mut to.values[to.count..]);
        }
        let (top, temperature) = (self.ranked.top, self.ranked.rules.temperature);
        // What follows the last value has no weight.
        let end = to.count.next_multiple_of(BLOCK);
        to.make_room(end);
        to.values[to.count..end].fill(E::Real::LOWEST);
        let chunks = to.values[..end].as_chunks::<BLOCK>().0.iter();
        let mut mass = 0.0;
        for (values, weights) in chunks.zip(to.weights.as_chunks_mut::<BLOCK>().0) {
            mass += tempered_weights::<E::Real, FMA>(values, weights, top, temperature);
        }
        mass
    }
}

/// The weights of sampled values.
struct Weights<'a> {
    values: &'a [f32; BLOCK],
    top: f64,
    temperature: f64,
}

impl Kernel for Weights<'_> {
    type Output = [f32; BLOCK];

    #[inline(always)]
    fn run<const FMA: bool>(self) -> [f32; BLOCK] {
        let mut weights = [0.0; BLOCK];
        tempered_weights::<f32, FMA>(self.values, &mut weights, self.top, self.temperature);
        weights
    }
}

/// The smallest and the largest of some values.
struct Ends<'a, R>(&'a [R]);

impl<R: Real> Kernel for Ends<'_, R> {
    type Output = (R, R);

    #[inline(always)]
    fn run<const FMA: bool>(self) -> (R, R) {
        let (mut low, mut high) = ([self.0[0]; LANES], [self.0[0]; LANES]);
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        for chunk in chunks {
            for lane in 0..LANES {
                low[lane] = if chunk[lane] < low[lane] { chunk[lane] } else { low[lane] };
                high[lane] = if chunk[lane] > high[lane] { chunk[lane] } else { high[lane] };
            }
        }
        let (mut lowest, mut highest) = (low[0], high[0]);
        for &one in low.iter().chain(rest) {
            lowest = if one < lowest { one } else { lowest };
        }
        for &one in high.iter().chain(rest) {
            highest = if one > highest { one } else { highest };
        }
        (lowest, highest)
    }
}

/// The id of a place: that of an allowed token after `equal` others of its value.
struct FindEqual<'a, E: Element> {
    ranked: RankedRow<'a>,
    place: Place<E::Real>,
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for FindEqual<'_, E> {
    type Output = Option<u32>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Option<u32> {
        let value = self.place.value;
        let wide: f64 = value.into();
        let mut left = self.place.equal;
        let mut block = [E::Real::LOWEST; BLOCK];
        for (number, known) in self.ranked.blocks.iter().enumerate() {
            if known.top < wide {
                continue;
            }
            let at = number * BLOCK;
            let cells = self.ranked.row.view::<E>(at, &mut block);
            let mut has_any = false;
            for &cell in cells {
                has_any |= cell == value;
            }
            if !has_any {
                continue;
            }
            for (place, &cell) in cells.iter().enumerate() {
                if cell == value && self.ranked.allowed.has(at + place) {
                    if left == 0 {
                        return Some((at + place) as u32);
                    }
                    left -= 1;
                }
            }
        }
        None
    }
}
