//! The token at which a given mass is reached when tokens are taken from the best on.
//!
//! Sorting a row takes milliseconds. A sample of the row gives a value near the place, passes over
//! the row give the exact mass above it, and only the tokens between two such values are put in
//! order, by selection.

use std::marker::PhantomData;

use crate::exponential::Real;
use crate::row::{Allowed, BLOCK, Brain, Element, ElementType, Half, Row};
use crate::row_scan::mask_block;
use crate::vectorized::{Kernel, run};

/// Number of elements in the sample.
const SAMPLE: usize = 512;
/// Number of tokens that are put in order at once.
const FEW: usize = 4096;

/// The values and weights of a row, which are kept for several ranks.
#[derive(Debug, Default)]
pub(crate) struct RankScratch {
    narrow: Ranks<f32>,
    wide: Ranks<f64>,
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

/// A row whose tokens have weights e^((x − top) / temperature).
pub(crate) trait RankedRow {
    /// Returns the sum of all weights.
    fn total(&self) -> f64;

    /// Returns the mass of the weights that are at least `weight`.
    fn mass_from(&self, weight: f64) -> f64;

    /// Returns the first token whose mass reaches `target`, or exceeds it if `is_strict`; the last
    /// one with a weight if none does.
    fn reach(&mut self, target: f64, is_strict: bool) -> Option<Ranked>;
}

impl RankScratch {
    /// Computes the weights of a row relative to its largest allowed value.
    pub(crate) fn weigh(
        &mut self,
        row: Row<'_>,
        allowed: Allowed<'_>,
        top: f64,
        temperature: f64,
    ) -> &mut dyn RankedRow {
        let (narrow, wide) = (&mut self.narrow, &mut self.wide);
        match row.element_type() {
            ElementType::Float16 => narrow.fill::<Half>(row, allowed, top, temperature),
            ElementType::Bfloat16 => narrow.fill::<Brain>(row, allowed, top, temperature),
            ElementType::Float32 => narrow.fill::<f32>(row, allowed, top, temperature),
            ElementType::Float64 => wide.fill::<f64>(row, allowed, top, temperature),
        }
    }
}

impl RankScratch {
    /// Returns the row that was weighed last, of this type.
    pub(crate) fn weighed(&mut self, kind: ElementType) -> &mut dyn RankedRow {
        if kind == ElementType::Float64 { &mut self.wide } else { &mut self.narrow }
    }
}

#[derive(Debug)]
struct Ranks<R> {
    values: Vec<R>,
    weights: Vec<R>,
    total: f64,
    /// Sampled values from the best on, and the share of the sample's mass up to each.
    sample: Vec<(R, f64)>,
    some: Vec<(u64, u32, R, R)>,
}

impl<R> Default for Ranks<R> {
    fn default() -> Ranks<R> {
        let (values, weights) = (Vec::new(), Vec::new());
        Ranks { values, weights, total: 0.0, sample: Vec::new(), some: Vec::new() }
    }
}

impl<R: Real> Ranks<R> {
    fn fill<E: Element<Real = R>>(
        &mut self,
        row: Row<'_>,
        allowed: Allowed<'_>,
        top: f64,
        temperature: f64,
    ) -> &mut dyn RankedRow {
        let size = row.width().next_multiple_of(BLOCK);
        self.values.resize(size, R::LOWEST);
        self.weights.resize(size, R::ZERO);
        let (values, weights) = (&mut self.values[..], &mut self.weights[..]);
        let kernel =
            Weigh::<E> { row, allowed, top, temperature, values, weights, kind: PhantomData };
        self.total = run(kernel);
        self.sample.clear();
        self
    }

    /// Samples the row, if it was not sampled yet.
    fn prepare(&mut self) {
        if !self.sample.is_empty() {
            return;
        }
        let stride = (self.values.len() / SAMPLE).max(1);
        // An odd stride avoids the period of padded or structured rows.
        let stride = if stride > 1 { stride | 1 } else { stride };
        let places = (0..self.values.len()).step_by(stride);
        self.sample.extend(places.filter_map(|at| {
            let weight: f64 = self.weights[at].into();
            (weight > 0.0).then_some((self.values[at], weight))
        }));
        self.sample.sort_unstable_by_key(|&(value, _)| std::cmp::Reverse(value.key()));
        let total: f64 = self.sample.iter().map(|one| one.1).sum();
        let mut sum = 0.0;
        for (_, share) in &mut self.sample {
            sum += *share;
            *share = sum / total;
        }
    }

    /// Returns a sampled value with about this share of the mass above it.
    fn sampled(&self, share: f64) -> Option<R> {
        let at = self.sample.partition_point(|one| one.1 < share);
        self.sample.get(at).map(|one| one.0)
    }

    fn above(&self, value: R) -> f64 {
        run(Above { values: &self.values, weights: &self.weights, value })
    }
}

impl<R: Real> RankedRow for Ranks<R> {
    fn total(&self) -> f64 {
        self.total
    }

    fn mass_from(&self, weight: f64) -> f64 {
        run(Above { values: &self.weights, weights: &self.weights, value: R::of(weight) })
    }

    fn reach(&mut self, target: f64, is_strict: bool) -> Option<Ranked> {
        if self.total <= 0.0 {
            return None;
        }
        // `upper` has too little mass above and at it, `lower` has enough.
        let (mut upper, mut mass): (Option<R>, f64) = (None, 0.0);
        let mut lower: Option<R> = None;
        if self.values.len() > FEW {
            self.prepare();
            let share = target / self.total;
            let mut guess = share;
            let mut step = 2.0 / SAMPLE as f64;
            for _ in 0..6 {
                let Some(value) = self.sampled(guess) else { break };
                if Some(value.key()) == upper.map(Real::key)
                    || Some(value.key()) == lower.map(Real::key)
                {
                    if upper.is_some() && lower.is_some() {
                        break;
                    }
                    guess += if lower.is_some() { -step } else { step };
                    step *= 2.0;
                    continue;
                }
                let above = self.above(value);
                let deviation = above / self.total - share;
                let is_enough = if is_strict { above > target } else { above >= target };
                if is_enough {
                    lower = Some(value);
                } else {
                    upper = Some(value);
                    mass = above;
                }
                if upper.is_some() && lower.is_some() {
                    break;
                }
                // A little beyond the corrected place, so that the two enclose it.
                let margin = 0.2 * deviation.abs() + step;
                guess += -deviation + if is_enough { -margin } else { margin };
            }
        }
        self.some.clear();
        let (values, weights) = (&self.values[..], &self.weights[..]);
        run(Between { values, weights, upper, lower, found: &mut self.some });
        select(&mut self.some, mass, target, is_strict)
    }
}

/// Finds the token by repeated partition around a pivot.
fn select<R: Real>(
    some: &mut [(u64, u32, R, R)],
    mut mass: f64,
    target: f64,
    is_strict: bool,
) -> Option<Ranked> {
    let order = |one: &(u64, u32, R, R), other: &(u64, u32, R, R)| {
        other.0.cmp(&one.0).then(one.1.cmp(&other.1))
    };
    let reaches = |mass: f64| if is_strict { mass > target } else { mass >= target };
    let mut rest = some;
    while rest.len() > 64 {
        let middle = rest.len() / 2;
        let (first, _, _) = rest.select_nth_unstable_by(middle, order);
        let sum: f64 = first.iter().map(|one| Into::<f64>::into(one.3)).sum();
        if reaches(mass + sum) {
            rest = &mut rest[..middle];
        } else {
            mass += sum;
            rest = &mut rest[middle..];
        }
    }
    rest.sort_unstable_by(order);
    let mut last = None;
    for &(_, id, value, weight) in rest.iter() {
        mass += Into::<f64>::into(weight);
        last = Some(Ranked { id, value: value.into(), mass });
        if reaches(mass) {
            break;
        }
    }
    last
}

struct Weigh<'a, E: Element> {
    row: Row<'a>,
    allowed: Allowed<'a>,
    top: f64,
    temperature: f64,
    values: &'a mut [E::Real],
    weights: &'a mut [E::Real],
    kind: PhantomData<E>,
}

impl<E: Element> Kernel for Weigh<'_, E> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let mut block = [E::Real::LOWEST; BLOCK];
        let mut total = 0.0;
        let values = self.values.as_chunks_mut::<BLOCK>().0;
        let weights = self.weights.as_chunks_mut::<BLOCK>().0;
        for (number, (values, weights)) in values.iter_mut().zip(weights).enumerate() {
            let at = number * BLOCK;
            self.row.read::<E>(at, &mut block);
            mask_block(&block, &self.allowed.block(at), values);
            total += E::Real::tempered::<FMA>(values, weights, self.top, self.temperature);
        }
        total
    }
}

/// The mass of the tokens of at least a value.
struct Above<'a, R> {
    values: &'a [R],
    weights: &'a [R],
    value: R,
}

impl<R: Real> Kernel for Above<'_, R> {
    type Output = f64;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> f64 {
        let mut total = 0.0;
        let blocks = self.values.as_chunks::<BLOCK>().0.iter();
        for (values, weights) in blocks.zip(self.weights.as_chunks::<BLOCK>().0) {
            let mut sums = [R::ZERO; 64];
            let chunks = values.as_chunks::<64>().0.iter();
            for (values, weights) in chunks.zip(weights.as_chunks::<64>().0) {
                for lane in 0..64 {
                    let own = if values[lane] >= self.value { weights[lane] } else { R::ZERO };
                    sums[lane] = sums[lane].plus(own);
                }
            }
            let mut wide = [0.0f64; 8];
            for chunk in sums.as_chunks::<8>().0 {
                for lane in 0..8 {
                    wide[lane] += Into::<f64>::into(chunk[lane]);
                }
            }
            total += wide.iter().sum::<f64>();
        }
        total
    }
}

/// The tokens below `upper` and from `lower` on.
struct Between<'a, R> {
    values: &'a [R],
    weights: &'a [R],
    upper: Option<R>,
    lower: Option<R>,
    found: &'a mut Vec<(u64, u32, R, R)>,
}

impl<R: Real> Kernel for Between<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let lower = self.lower.unwrap_or(R::LOWEST);
        let is_open = self.upper.is_none();
        let upper = self.upper.unwrap_or(R::LOWEST);
        for (chunk, cells) in self.values.as_chunks::<32>().0.iter().enumerate() {
            let mut bits = 0u32;
            for (place, &cell) in cells.iter().enumerate() {
                let is_inside = (cell >= lower) & (is_open | (cell < upper)) & (cell > R::LOWEST);
                bits |= u32::from(is_inside) << place;
            }
            while bits != 0 {
                let at = chunk * 32 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let weight = self.weights[at];
                if weight > R::ZERO {
                    self.found.push((self.values[at].key(), at as u32, self.values[at], weight));
                }
            }
        }
    }
}
