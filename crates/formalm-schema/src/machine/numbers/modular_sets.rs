//! Sets of numbers defined by comparisons and by (non-)multiples.
//!
//! Between two neighboring bounds all comparisons are constant, and membership is periodic with the
//! least common multiple of all units. The set is therefore one bit set of residues for each
//! segment of the number line, and no solver is needed.

use std::sync::Arc;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, ToPrimitive};
use rustc_hash::FxHashMap;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::json::decimal::{Decimal, pow10};
use crate::machine::frame::{NumberPart, NumberPrefix};
use crate::solver::{gap_satisfies, number_satisfies};

/// Larger bounds, in units of the last place, are left to the solver. Products with powers of ten
/// stay within 128 bits.
const MAX_MAGNITUDE: i128 = 10i128.pow(26);

/// With more bounds the solver decides. Chosen, not measured.
const MAX_BOUNDS: usize = 64;

/// Longer periods, in bits over all segments, are left to the solver. Chosen, not measured.
const MAX_BITS: u64 = 1 << 21;

/// Maximum number of words that computing the sets may touch. Chosen, not measured.
const MAX_WORDS: usize = 1 << 20;

/// Numbers from one to another, exclusive.
type MagnitudeRange = (i128, Option<i128>);

/// The numbers that satisfy a formula.
#[derive(Debug)]
pub(crate) struct ModularSet {
    /// Decimal places of the bounds and units.
    places: u32,
    one: i128,
    /// By sign, ascending magnitudes in units of the last place.
    positive: Vec<ModularSegment>,
    negative: Vec<ModularSegment>,
}

/// Magnitudes for which all comparisons are constant.
#[derive(Debug)]
struct ModularSegment {
    /// The numbers with at most that many places.
    grid: MagnitudeRange,
    /// The numbers strictly between two neighbors of these.
    gaps: MagnitudeRange,
    /// The integers in the set if written without a decimal point.
    whole: ResidueSet,
    /// The numbers of at most that many places in the set if written with a decimal point.
    fraction: ResidueSet,
    /// Set if numbers of more places are in the set.
    finer: bool,
}

/// A periodic set of numbers.
#[derive(Clone, Debug)]
struct ResidueSet {
    period: i128,
    words: Arc<[u64]>,
    some: bool,
}

impl ModularSet {
    /// Builds the set of a formula, `None` if the solver is to decide.
    pub(crate) fn new(
        formulas: &FormulaArena,
        id: FormulaId,
        atoms: &[FormulaAtom],
        places: u32,
    ) -> Option<ModularSet> {
        let (mut ends, mut units): (Vec<&Decimal>, Vec<BigInt>) = (Vec::new(), Vec::new());
        for atom in atoms {
            match atom {
                FormulaAtom::AtLeast(at)
                | FormulaAtom::GreaterThan(at)
                | FormulaAtom::EqualTo(at) => ends.push(at),
                FormulaAtom::MultipleOf(unit) => units.push(unit.abs().scaled(places)),
                _ => {}
            }
        }
        ends.sort_unstable();
        ends.dedup();
        let one = pow10(places).to_i128().filter(|&one| one <= MAX_MAGNITUDE)?;
        let period = units.iter().fold(BigInt::one(), |all, unit| all.lcm(unit)).to_i128()?;
        let bits = u64::try_from(period).ok()?.checked_mul(ends.len() as u64 + 1)?;
        if ends.len() > MAX_BOUNDS || bits > MAX_BITS {
            return None;
        }
        let units: FxHashMap<Decimal, i128> = atoms
            .iter()
            .filter_map(|atom| match atom {
                FormulaAtom::MultipleOf(unit) => {
                    Some((unit.clone(), unit.abs().scaled(places).to_i128()?))
                }
                _ => None,
            })
            .collect();
        let at =
            |end: &&Decimal| end.scaled(places).to_i128().filter(|at| at.abs() <= MAX_MAGNITUDE);
        let cuts = ends.iter().map(at).collect::<Option<Vec<i128>>>()?;
        let mut search =
            ResidueSearch { formulas, period, units, known: FxHashMap::default(), words: 0 };
        let mut all: Vec<(Option<i128>, Option<i128>, ModularSegment)> = Vec::new();
        for place in 0..=ends.len() {
            let below = place.checked_sub(1);
            let (low, high) = (below.map(|below| cuts[below]), cuts.get(place).copied());
            let [whole, fraction] = [true, false].map(|whole| {
                search.known.clear();
                search.set(id, below.map(|below| ends[below]), whole)
            });
            let holds =
                |atom: &FormulaAtom| gap_satisfies(atom, below.map(|below| ends[below]), false);
            let finer = formulas.evaluate(id, &mut { holds });
            let whole = ResidueSet::new(period, whole?).multiples_of(one, period);
            let fraction = ResidueSet::new(period, fraction?);
            let empty = (0, Some(0));
            all.push((
                low,
                high,
                ModularSegment { grid: empty, gaps: empty, whole, fraction, finer },
            ));
            if let Some(&value) = ends.get(place) {
                let [whole, fraction] = [true, false].map(|whole| {
                    let holds = |atom: &FormulaAtom| number_satisfies(atom, value, whole);
                    ResidueSet::constant(formulas.evaluate(id, &mut { holds }))
                });
                let whole = if value.is_integer() { whole } else { ResidueSet::constant(false) };
                let one =
                    ModularSegment { grid: empty, gaps: empty, whole, fraction, finer: false };
                all.push((high, high, one));
            }
        }
        let mut positive: Vec<ModularSegment> = Vec::new();
        let mut negative: Vec<ModularSegment> = Vec::new();
        for (low, high, segment) in all {
            let mirrored = (high.map(|at| -at), low.map(|at| -at));
            for (side, (low, high)) in [(&mut positive, (low, high)), (&mut negative, mirrored)] {
                side.extend(segment.clipped(low, high));
            }
        }
        negative.reverse();
        Some(ModularSet { places, one, positive, negative })
    }

    /// Returns the segments of the prefix's sign.
    fn side(&self, digits: &NumberPrefix) -> &[ModularSegment] {
        if digits.negative { &self.negative } else { &self.positive }
    }

    /// Returns `true` if some number of a range that is written with a decimal point is in the set.
    fn has_fraction(&self, side: &[ModularSegment], range: MagnitudeRange) -> bool {
        side.iter().any(|one| {
            one.fraction.contains_any(intersect(one.grid, range))
                || one.finer && !is_empty(intersect(one.gaps, range))
        })
    }

    /// Returns `true` if some integer of a range that is written without a decimal point is in the
    /// set.
    fn has_whole(&self, side: &[ModularSegment], range: MagnitudeRange) -> bool {
        let up = |at: i128| -(-at).div_euclid(self.one);
        let whole = |(low, high): MagnitudeRange| (up(low), high.map(up));
        side.iter().any(|one| one.whole.contains_any(intersect(whole(one.grid), range)))
    }

    /// Returns `true` if some number with this prefix is in the set, `None` if it is too long.
    pub(crate) fn viable(&self, digits: &NumberPrefix) -> Option<bool> {
        let side = self.side(digits);
        Some(match digits.part {
            NumberPart::Minus => {
                self.has_fraction(side, (0, None)) || self.has_whole(side, (0, None))
            }
            NumberPart::Zero => {
                self.has_fraction(side, (0, Some(self.one))) || self.has_whole(side, (0, Some(1)))
            }
            NumberPart::Point | NumberPart::Fraction => {
                let (first, end) = self.span(digits)?;
                match digits.sticky {
                    true => self.allows_finer(side, first),
                    false => self.has_fraction(side, (first, Some(end))),
                }
            }
            NumberPart::Integer => {
                let first = self.whole(digits)?;
                let (mut first, mut end) = (first, first + 1);
                let (last, period) = side.last().map(|one| (one.grid.0, one.fraction.period))?;
                loop {
                    let units = (first * self.one, Some(end * self.one));
                    if self.has_whole(side, (first, Some(end))) || self.has_fraction(side, units) {
                        return Some(true);
                    }
                    if first * self.one > last && end - first >= period {
                        return Some(false);
                    }
                    (first, end) = (first * 10, end * 10);
                }
            }
            NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits => {
                return None;
            }
        })
    }

    /// Returns `true` if a number that ends here is in the set, `None` if it is too long.
    pub(crate) fn holds(&self, digits: &NumberPrefix) -> Option<bool> {
        let side = self.side(digits);
        Some(match digits.part {
            NumberPart::Zero => self.has_whole(side, (0, Some(1))),
            NumberPart::Integer => {
                let whole = self.whole(digits)?;
                self.has_whole(side, (whole, Some(whole + 1)))
            }
            NumberPart::Fraction => {
                let (first, _) = self.span(digits)?;
                match digits.sticky {
                    true => self.allows_finer(side, first),
                    false => {
                        let one = (first, Some(first + 1));
                        side.iter().any(|segment| {
                            segment.fraction.contains_any(intersect(segment.grid, one))
                        })
                    }
                }
            }
            _ => return None,
        })
    }

    /// Returns `true` if numbers between one of the last place and the next are in the set.
    fn allows_finer(&self, side: &[ModularSegment], first: i128) -> bool {
        let gap = (first, Some(first + 1));
        side.iter().any(|one| one.finer && !is_empty(intersect(one.gaps, gap)))
    }

    /// Returns the integer part, `None` if it is too long.
    fn whole(&self, digits: &NumberPrefix) -> Option<i128> {
        digits.digits.to_i128().filter(|at| *at <= MAX_MAGNITUDE / self.one)
    }

    /// Returns the numbers that extend a prefix with a fraction.
    fn span(&self, digits: &NumberPrefix) -> Option<(i128, i128)> {
        let unit = 10i128.pow(self.places.checked_sub(digits.places)?);
        let first = digits.digits.to_i128().filter(|at| *at <= MAX_MAGNITUDE)?.checked_mul(unit)?;
        Some((first, first + unit))
    }
}

impl ModularSegment {
    /// Clips the segment to the magnitudes between two ends, exclusive, or to the one point that
    /// both are; `None` if it is empty.
    fn clipped(&self, low: Option<i128>, high: Option<i128>) -> Option<ModularSegment> {
        let (grid, gaps) = match (low, high) {
            (Some(low), Some(high)) if low == high => ((low, Some(low + 1)), (0, Some(0))),
            (low, high) => {
                let gaps = (low.unwrap_or(i128::MIN), high);
                ((low.map_or(i128::MIN, |low| low + 1), high), gaps)
            }
        };
        let (grid, gaps) = (intersect(grid, (0, None)), intersect(gaps, (0, None)));
        let (whole, fraction, finer) = (self.whole.clone(), self.fraction.clone(), self.finer);
        let some = !is_empty(grid) || !is_empty(gaps);
        some.then_some(ModularSegment { grid, gaps, whole, fraction, finer })
    }
}

impl ResidueSet {
    fn new(period: i128, words: Arc<[u64]>) -> ResidueSet {
        let mut bits = ResidueSet { period, words, some: true };
        bits.some = bits.any_bit(0, period);
        bits
    }

    fn constant(some: bool) -> ResidueSet {
        ResidueSet { period: 1, words: Arc::new([u64::from(some)]), some }
    }

    /// Returns the multiples of `one` in the set, divided by it.
    fn multiples_of(&self, one: i128, period: i128) -> ResidueSet {
        let count = period / period.gcd(&one);
        let mut words = vec![0u64; (count as usize).div_ceil(64)];
        for at in 0..count {
            let bit = (at * one).rem_euclid(period) as usize;
            words[at as usize / 64] |= (self.words[bit / 64] >> (bit % 64) & 1) << (at % 64);
        }
        ResidueSet::new(count, words.into())
    }

    /// Returns `true` if some number of a range is in the set.
    fn contains_any(&self, (first, end): MagnitudeRange) -> bool {
        match end {
            _ if !self.some => false,
            Some(end) if first >= end => false,
            Some(end) if end - first < self.period => {
                let from = first.rem_euclid(self.period);
                let to = from + (end - first);
                self.any_bit(from, to.min(self.period)) || self.any_bit(0, to - self.period)
            }
            _ => true,
        }
    }

    /// Returns `true` if some bit of a range within the period is set.
    fn any_bit(&self, from: i128, to: i128) -> bool {
        if from >= to {
            return false;
        }
        let (from, to) = (from as usize, to as usize);
        let (first, last) = (from / 64, (to - 1) / 64);
        let low = u64::MAX << (from % 64);
        let high = u64::MAX >> (63 - (to - 1) % 64);
        if first == last {
            return self.words[first] & low & high != 0;
        }
        self.words[first] & low != 0
            || self.words[first + 1..last].iter().any(|&word| word != 0)
            || self.words[last] & high != 0
    }
}

/// Computes the residues that satisfy formulas between two neighboring bounds.
struct ResidueSearch<'a> {
    formulas: &'a FormulaArena,
    period: i128,
    /// The units in terms of the last place.
    units: FxHashMap<Decimal, i128>,
    known: FxHashMap<FormulaId, Arc<[u64]>>,
    words: usize,
}

impl ResidueSearch<'_> {
    /// Returns the residues, `None` if computing them exceeds [`MAX_WORDS`].
    fn set(&mut self, id: FormulaId, low: Option<&Decimal>, whole: bool) -> Option<Arc<[u64]>> {
        if let Some(known) = self.known.get(&id) {
            return Some(Arc::clone(known));
        }
        let count = (self.period as usize).div_ceil(64);
        let constant = |some: bool| vec![if some { u64::MAX } else { 0 }; count];
        let form = self.formulas.get(id);
        let set = match form {
            Formula::True => constant(true),
            Formula::False | Formula::Child(_) => constant(false),
            Formula::Atom(FormulaAtom::MultipleOf(unit)) => {
                let mut words = constant(false);
                let unit = *self.units.get(unit)?;
                for at in (0..self.period).step_by(usize::try_from(unit).ok()?) {
                    words[at as usize / 64] |= 1 << (at % 64);
                }
                words
            }
            Formula::Atom(atom) => constant(gap_satisfies(atom, low, whole)),
            &Formula::Not(inner) => self.set(inner, low, whole)?.iter().map(|word| !word).collect(),
            Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                let (mut all, mut some, mut two) =
                    (constant(true), constant(false), constant(false));
                for &one in &**list {
                    let set = self.set(one, low, whole)?;
                    self.words += count;
                    for (at, &word) in set.iter().enumerate() {
                        two[at] |= some[at] & word;
                        some[at] |= word;
                        all[at] &= word;
                    }
                }
                match form {
                    Formula::And(_) => all,
                    Formula::Or(_) => some,
                    _ => some.iter().zip(&two).map(|(some, two)| some & !two).collect(),
                }
            }
        };
        self.words += count;
        if self.words > MAX_WORDS {
            return None;
        }
        let set: Arc<[u64]> = set.into();
        self.known.insert(id, Arc::clone(&set));
        Some(set)
    }
}

fn intersect(one: MagnitudeRange, other: MagnitudeRange) -> MagnitudeRange {
    let high = match (one.1, other.1) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (high, None) | (None, high) => high,
    };
    (one.0.max(other.0), high)
}

fn is_empty((low, high): MagnitudeRange) -> bool {
    high.is_some_and(|high| low >= high)
}
