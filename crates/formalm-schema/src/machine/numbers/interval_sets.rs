//! Sets of numbers defined by comparisons, optionally restricted to the multiples of a unit: what
//! most schemas require of numbers.
//!
//! Such a set is a few intervals with integer ends. Prefixes are decided by machine arithmetic,
//! without the solver, and prefixes with equal residuals become one state.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive};

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::json::decimal::Decimal;
use crate::machine::frame::{NumberPart, NumberPrefix};
use crate::machine::numbers::magnitude_intervals::{
    MagnitudeInterval, SignedInterval, round_up, split_by_sign, subtract_points,
};
use crate::solver::{NumberCells, number_satisfies};

/// Larger bounds, in units of the last place, are left to the solver. Products with powers of ten
/// stay within 128 bits.
const MAX_MAGNITUDE: i128 = 10i128.pow(26);

/// With more interval ends the solver decides. Chosen, not measured.
const MAX_ENDS: usize = 4_096;

/// Larger units, in ones, are left to the solver. Chosen, not measured.
const MAX_STEP: i128 = 1_000_000;

/// The numbers that satisfy comparisons, optionally among multiples only.
#[derive(Debug)]
pub(crate) struct IntervalSet {
    /// Decimal places of a unit: one more than any bound has.
    places: u32,
    one: i128,
    /// All numbers are multiples of this.
    step: Option<i128>,
    /// Written without a decimal point.
    whole: bool,
    /// Magnitudes by sign, ascending and not touching.
    positive: Vec<MagnitudeInterval>,
    negative: Vec<MagnitudeInterval>,
}

/// The common future of all prefixes with equal residuals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NumberResidual {
    /// For each number of further digits, whether the numbers are inside (all others are outside),
    /// and the remainder by the step.
    Integer(Vec<bool>, i128),
    /// Any further digits are allowed.
    Fraction,
    /// Inside are exactly the multiples of the step: the decimals read, and the remainder.
    Multiples(NumberPart, u32, i128),
}

impl IntervalSet {
    /// Builds the set of a formula, `None` if it does anything but compare.
    pub(crate) fn new(formulas: &FormulaArena, id: FormulaId, places: u32) -> Option<IntervalSet> {
        let (mut steps, mut whole, mut rest) = (Vec::new(), false, Vec::new());
        let mut listed: Option<Vec<&Decimal>> = None;
        let mut excluded: Vec<&Decimal> = Vec::new();
        for part in formulas.conjuncts(id) {
            match formulas.get(part) {
                Formula::Atom(FormulaAtom::MultipleOf(unit)) => steps.push(unit.clone()),
                Formula::Atom(FormulaAtom::IntegerSpelling) => {
                    steps.push(Decimal::from_integer(1));
                    whole = true;
                }
                Formula::Not(inner) => match listed_values(formulas, *inner) {
                    Some(list) => excluded.extend(list),
                    None => rest.push(part),
                },
                _ => match listed_values(formulas, part) {
                    Some(list) if listed.is_none() => listed = Some(list),
                    _ => rest.push(part),
                },
            }
        }
        // A list of numbers does not say how they are written.
        if listed.is_some()
            && formulas.any_atom(&rest, |atom| *atom == FormulaAtom::IntegerSpelling)
        {
            return None;
        }
        let places = places + 1;
        let units = |at: &Decimal| at.to_units(places).filter(|at| at.abs() <= MAX_MAGNITUDE);
        let one = 10i128.checked_pow(places)?;
        let step = match steps.is_empty() {
            true => None,
            false => {
                let all = steps.iter().map(|step| step.scaled(places));
                let step = all.fold(BigInt::one(), |all, step| all.lcm(&step)).to_i128()?;
                Some(Some(step.abs()).filter(|&step| step / one <= MAX_STEP)?)
            }
        };
        let [positive, negative] = match listed {
            Some(mut list) => {
                list.retain(|value| {
                    let compared = |atom: &FormulaAtom| number_satisfies(atom, value, true);
                    rest.iter().all(|&part| formulas.evaluate(part, &mut { compared }))
                });
                let mut points = list.into_iter().map(units).collect::<Option<Vec<i128>>>()?;
                points.sort_unstable();
                split_by_sign(points.into_iter().map(|at| (Some(at), Some(at), false)).collect())
            }
            None => split_by_sign(satisfying_intervals(formulas, &rest, &units)?),
        };
        let mut holes = excluded.into_iter().map(units).collect::<Option<Vec<i128>>>()?;
        holes.sort_unstable();
        let positive = subtract_points(positive, holes.iter().copied());
        let negative = subtract_points(negative, holes.iter().rev().map(|at| -at));
        IntervalSet { places, one, step, whole, positive, negative }.merge_adjacent()
    }

    /// Merges touching intervals, and rounds ends to multiples.
    fn merge_adjacent(mut self) -> Option<IntervalSet> {
        if self.places >= 20 {
            return None;
        }
        let multiples = self.step;
        for side in [&mut self.positive, &mut self.negative] {
            let mut joined: Vec<MagnitudeInterval> = Vec::new();
            for interval in side.drain(..) {
                let Some(interval) =
                    multiples.map_or(Some(interval), |step| interval.multiples(step))
                else {
                    continue;
                };
                let step = multiples.unwrap_or(0);
                let touches = |last: &MagnitudeInterval| {
                    last.high.is_some_and(|(high, open)| {
                        high + step >= interval.low.0 && !(open && interval.low.1)
                    })
                };
                match joined.last_mut().filter(|last| touches(last)) {
                    Some(last) => last.high = interval.high,
                    None => joined.push(interval),
                }
            }
            *side = joined;
        }
        Some(self)
    }

    /// Returns the intervals of the prefix's sign.
    fn side(&self, digits: &NumberPrefix) -> &[MagnitudeInterval] {
        if digits.negative { &self.negative } else { &self.positive }
    }

    /// Returns `true` if any further digits lead to a number inside: those of its sign are
    /// unbounded.
    pub(crate) fn any_digits(&self, digits: &NumberPrefix) -> bool {
        let is_endless = self.side(digits).last().is_some_and(|last| last.high.is_none());
        digits.part == NumberPart::Integer && is_endless
    }

    /// Returns `true` if some number of `[first, end)` is inside.
    fn has_any(&self, side: &[MagnitudeInterval], first: i128, end: i128) -> bool {
        let (first, end) = match self.step {
            Some(step) => (round_up(first, step), round_up(end, step)),
            None => (first, end),
        };
        let from =
            side.partition_point(|interval| interval.high.is_some_and(|high| high.0 < first));
        side[from..].iter().take(2).any(|interval| interval.intersects(first, end))
    }

    /// Returns `true` if every number of the nonempty range `[first, end)` is inside.
    fn has_all(&self, side: &[MagnitudeInterval], first: i128, end: i128) -> bool {
        let (first, last) = match self.step {
            Some(step) => (round_up(first, step), (round_up(end, step) - step, false)),
            None => (first, (end, true)),
        };
        let from =
            side.partition_point(|interval| interval.high.is_some_and(|high| high.0 < first));
        first <= last.0 && side[from..].iter().take(2).any(|interval| interval.covers(first, last))
    }

    /// Returns `true` if some number of `[low, low + 1)`, in units of a power of ten, is inside and
    /// can be written with `places` decimals; with none it has no decimal point. Returns `None` if
    /// the number is too long.
    pub(crate) fn has_decimal(
        &self,
        negative: bool,
        (low, power): (&BigInt, i64),
        places: u32,
    ) -> Option<bool> {
        if self.whole && places > 0 {
            return Some(false);
        }
        let side = if negative { &self.negative } else { &self.positive };
        let unit = 10i128.pow(self.places.checked_sub(places)?);
        let step = match self.step {
            Some(step) => step.lcm(&unit),
            None => unit,
        };
        let width = u32::try_from(power + i64::from(self.places)).ok().filter(|&all| all <= 26)?;
        let width = 10i128.pow(width);
        let first = low.to_i128()?.checked_mul(width).filter(|&at| at <= MAX_MAGNITUDE)?;
        let span = MagnitudeInterval { low: (first, false), high: Some((first + width, true)) };
        let from =
            side.partition_point(|interval| interval.high.is_some_and(|high| high.0 < first));
        let near = side[from..].iter().take_while(|interval| interval.low.0 < first + width);
        Some(
            near.filter_map(|interval| interval.intersection(&span))
                .any(|one| one.multiples(step).is_some()),
        )
    }

    /// Returns `true` if all numbers with at least that many digits behave alike: all are inside,
    /// or none.
    fn is_uniform_from(&self, side: &[MagnitudeInterval], first: i128, end: i128) -> bool {
        match side.last() {
            Some(MagnitudeInterval { high: Some((high, _)), .. }) => first > *high,
            // The range contains a multiple.
            Some(MagnitudeInterval { low: (low, _), .. }) => {
                first > *low && self.step.is_none_or(|step| end - first >= step)
            }
            None => true,
        }
    }

    /// Returns the numbers `[first, end)` that extend a prefix with a fraction.
    fn span(&self, digits: &NumberPrefix) -> Option<(i128, i128)> {
        let shift = self.places.checked_sub(digits.places)?;
        let unit = 10i128.pow(shift);
        let first = digits.digits.to_i128().filter(|at| *at <= MAX_MAGNITUDE)?.checked_mul(unit)?;
        Some((first, first + unit))
    }

    /// Returns `true` if some number with this prefix is inside, `None` if it is too long.
    pub(crate) fn viable(&self, digits: &NumberPrefix) -> Option<bool> {
        let side = self.side(digits);
        match digits.part {
            NumberPart::Minus => Some(!side.is_empty()),
            NumberPart::Zero => Some(self.has_any(side, 0, self.one)),
            NumberPart::Point | NumberPart::Fraction => {
                let (first, end) = self.span(digits)?;
                Some(match digits.sticky {
                    _ if self.whole => false,
                    // Beyond the last place that matters, all numbers between two are equivalent.
                    true => {
                        let at = first + (end - first) / 2;
                        self.step.is_none() && self.has_any(side, at, at + 1)
                    }
                    false => self.has_any(side, first, end),
                })
            }
            NumberPart::Integer => {
                let whole = digits.digits.to_i128().filter(|at| *at <= MAX_MAGNITUDE / self.one)?;
                let (mut first, mut end) = (whole * self.one, (whole + 1) * self.one);
                loop {
                    if self.has_any(side, first, end) {
                        return Some(true);
                    }
                    if self.is_uniform_from(side, first, end) {
                        return Some(false);
                    }
                    (first, end) = (first * 10, end * 10);
                }
            }
            NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits => {
                None
            }
        }
    }

    /// Returns `true` if a number that ends here is inside, `None` if it is too long.
    pub(crate) fn holds(&self, digits: &NumberPrefix) -> Option<bool> {
        let side = self.side(digits);
        let (first, end) = match digits.part {
            NumberPart::Zero => (0, self.one),
            NumberPart::Integer => {
                let whole = digits.digits.to_i128().filter(|at| *at <= MAX_MAGNITUDE / self.one)?;
                (whole * self.one, (whole + 1) * self.one)
            }
            NumberPart::Fraction => self.span(digits)?,
            _ => return None,
        };
        if self.whole && digits.part == NumberPart::Fraction {
            return Some(false);
        }
        // Beyond the last place that matters, all numbers between two are equivalent.
        let at = if digits.sticky { first + (end - first) / 2 } else { first };
        if self.step.is_some_and(|step| digits.sticky || at.rem_euclid(step) != 0) {
            return Some(false);
        }
        let from = side.partition_point(|interval| interval.high.is_some_and(|high| high.0 < at));
        Some(side[from..].iter().take(2).any(|interval| interval.covers(at, (at, false))))
    }

    /// Returns the residual of a prefix if its digits do not matter for it.
    pub(crate) fn residual(&self, digits: &NumberPrefix) -> Option<NumberResidual> {
        let side = self.side(digits);
        match digits.part {
            NumberPart::Integer => {
                let whole = digits.digits.to_i128().filter(|at| *at <= MAX_MAGNITUDE / self.one)?;
                let (mut first, mut end) = (whole * self.one, (whole + 1) * self.one);
                let left = self.step.map_or(0, |step| first.rem_euclid(step));
                let mut within = Vec::new();
                loop {
                    let all = self.has_all(side, first, end);
                    if !all && self.has_any(side, first, end) {
                        return None;
                    }
                    within.push(all);
                    if self.is_uniform_from(side, first, end) {
                        return Some(NumberResidual::Integer(within, left));
                    }
                    (first, end) = (first * 10, end * 10);
                }
            }
            NumberPart::Point | NumberPart::Fraction => {
                let (first, end) = self.span(digits)?;
                match self.step {
                    Some(step) if !digits.sticky && !self.whole => {
                        let (part, places) = (digits.part, digits.places);
                        let multiples =
                            NumberResidual::Multiples(part, places, first.rem_euclid(step));
                        self.has_all(side, first, end).then_some(multiples)
                    }
                    None if digits.part == NumberPart::Fraction => {
                        self.has_all(side, first, end).then_some(NumberResidual::Fraction)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Returns the numbers that satisfy formulas which only compare.
fn satisfying_intervals(
    formulas: &FormulaArena,
    all: &[FormulaId],
    units: &impl Fn(&Decimal) -> Option<i128>,
) -> Option<Vec<SignedInterval>> {
    let mut ends = comparison_bounds(formulas, all)?;
    ends.sort_unstable();
    ends.dedup();
    let cells = NumberCells::new(ends.clone()).satisfying(formulas, all, false);
    let ends = ends.iter().map(units).collect::<Option<Vec<i128>>>()?;
    // All numbers before the first end are equivalent, and so are those between two ends.
    let end = |at: usize| ends.get(at).copied();
    let found = (0..cells.len()).filter(|&at| cells[at]).map(|at| match at % 2 {
        0 => ((at / 2).checked_sub(1).and_then(end), end(at / 2), true),
        _ => (end(at / 2), end(at / 2), false),
    });
    Some(found.collect())
}

/// Returns the numbers that a formula lists.
fn listed_values(formulas: &FormulaArena, id: FormulaId) -> Option<Vec<&Decimal>> {
    let value = |id: FormulaId| match formulas.get(id) {
        Formula::Atom(FormulaAtom::EqualTo(value)) => Some(value),
        _ => None,
    };
    match formulas.get(id) {
        Formula::Or(list) => list.iter().map(|&one| value(one)).collect(),
        _ => value(id).map(|one| vec![one]),
    }
}

/// Returns the bounds that formulas compare with; `None` if they do anything else, or with too
/// many.
fn comparison_bounds(formulas: &FormulaArena, all: &[FormulaId]) -> Option<Vec<Decimal>> {
    let mut ends = Vec::new();
    let is_other = formulas.any_atom(all, |atom| match atom {
        FormulaAtom::AtLeast(at) | FormulaAtom::GreaterThan(at) | FormulaAtom::EqualTo(at) => {
            ends.push(at.clone());
            ends.len() > MAX_ENDS
        }
        _ => true,
    });
    (!is_other && !all.iter().any(|&one| formulas.has_child(one))).then_some(ends)
}
