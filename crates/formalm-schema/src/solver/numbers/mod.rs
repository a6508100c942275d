//! The theory of numbers: exact satisfiability over all decimals.
//!
//! Between two adjacent bounds all comparisons are constant, so only multiples matter there.
//! Multiples are found by stepping through a common multiple. Every interval contains decimals that
//! are multiples of nothing given.

mod digit_counts;
pub(in crate::solver) mod enclosing_ranges;
pub(in crate::solver) mod number_cells;

use std::convert::Infallible;

use formalm_core::{CompactMap, Error, Resource, check_limit};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::One;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, ReplacedLeaves, TRUE};
use crate::json::decimal::{Decimal, pow10};
use crate::solver::SolverTimer;
use crate::solver::formula_base::FormulaBase;
use crate::solver::implicant_search::ImplicantSearch;
use crate::solver::numbers::number_cells::NumberCells;

/// Maximum number of multiples tried to avoid multiples of other numbers. Chosen, not measured.
const MAX_MULTIPLES_TRIED: u64 = 20_000;

/// Bounds visited that count as one step. Chosen, not measured.
const BOUNDS_PER_STEP: usize = 128;

/// An interval; the flags tell whether its ends belong to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberInterval {
    pub(crate) low: Option<(Decimal, bool)>,
    pub(crate) high: Option<(Decimal, bool)>,
}

impl NumberInterval {
    fn holds(&self, value: &Decimal) -> bool {
        let above = match &self.low {
            Some((low, closed)) => value > low || (*closed && value == low),
            None => true,
        };
        let below = match &self.high {
            Some((high, closed)) => value < high || (*closed && value == high),
            None => true,
        };
        above && below
    }

    /// Returns the interval of the negated numbers.
    pub(crate) fn mirrored(self) -> NumberInterval {
        let turn = |end: Option<(Decimal, bool)>| end.map(|(at, closed)| (at.negated(), closed));
        NumberInterval { low: turn(self.high), high: turn(self.low) }
    }
}

/// Returns the truth of an atom for a number, given whether it is spelled as an integer.
pub(crate) fn number_satisfies(atom: &FormulaAtom, value: &Decimal, as_integer: bool) -> bool {
    match atom {
        FormulaAtom::AtLeast(bound) => value >= bound,
        FormulaAtom::GreaterThan(bound) => value > bound,
        FormulaAtom::EqualTo(other) => value == other,
        FormulaAtom::MultipleOf(unit) => value.is_multiple_of(unit),
        FormulaAtom::IntegerSpelling => as_integer,
        _ => false,
    }
}

/// Returns the truth of an atom for the numbers between a bound and the next one that are multiples
/// of nothing.
pub(crate) fn gap_satisfies(atom: &FormulaAtom, low: Option<&Decimal>, as_integer: bool) -> bool {
    match atom {
        FormulaAtom::AtLeast(at) | FormulaAtom::GreaterThan(at) => low.is_some_and(|low| low >= at),
        FormulaAtom::IntegerSpelling => as_integer,
        _ => false,
    }
}

/// A query for the numbers that satisfy a formula.
pub(crate) struct NumberQuery<'a> {
    pub(super) base: &'a mut FormulaBase,
    pub(super) formula: FormulaId,
}

impl NumberQuery<'_> {
    /// Returns a number in an interval that satisfies a formula, in either spelling.
    pub(crate) fn find(&mut self, within: &NumberInterval) -> Result<Option<Decimal>, Error> {
        let _solving = SolverTimer::begin();
        let found = self.find_spelled(within, false)?;
        if found.is_some()
            || !self
                .base
                .formulas
                .any_atom(&[self.formula], |atom| *atom == FormulaAtom::IntegerSpelling)
        {
            return Ok(found);
        }
        self.find_spelled(within, true)
    }

    /// Returns a number in an interval that satisfies a formula, spelled as an integer (`as_integer`) or
    /// with a fraction.
    pub(crate) fn find_spelled(
        &mut self,
        within: &NumberInterval,
        as_integer: bool,
    ) -> Result<Option<Decimal>, Error> {
        let _solving = SolverTimer::begin();
        let mut edges: Vec<Decimal> = Vec::new();
        for atom in self.base.formulas.atoms(self.formula) {
            if let FormulaAtom::AtLeast(at)
            | FormulaAtom::GreaterThan(at)
            | FormulaAtom::EqualTo(at) = atom
            {
                edges.push(at);
            }
        }
        edges.retain(|at| within.holds(at));
        edges.extend([&within.low, &within.high].into_iter().flatten().map(|(at, _)| at.clone()));
        edges.sort();
        edges.dedup();
        self.base.count_steps(edges.len() / BOUNDS_PER_STEP)?;
        let split = separate_multiples(&self.base.formulas, self.formula, as_integer);
        let cells = split.as_ref().map(|(_, compared)| {
            NumberCells::new(edges.clone()).satisfying(&self.base.formulas, compared, as_integer)
        });
        // If disjunctions contain multiples, these bounds say where to look closer.
        let bounds = match split {
            Some(_) => Vec::new(),
            None => NumberCells::new(edges.clone()).must_and_may(
                &self.base.formulas,
                self.formula,
                as_integer,
            ),
        };
        for (place, at) in edges.iter().enumerate() {
            let holds = || match (&cells, &split) {
                (Some(cells), Some((multiples, _))) => {
                    cells[2 * place + 1] && multiples.contains(at)
                }
                _ => match bounds[2 * place + 1] {
                    (false, true) => self
                        .base
                        .formulas
                        .evaluate(self.formula, &mut |atom| number_satisfies(atom, at, as_integer)),
                    (must, _) => must,
                },
            };
            if (!as_integer || at.is_integer()) && within.holds(at) && holds() {
                return Ok(Some(at.clone()));
            }
        }
        let low_open = within.low.is_none();
        let high_open = within.high.is_none();
        for gap in 0..=edges.len() {
            let low = gap.checked_sub(1).map(|at| &edges[at]);
            let high = edges.get(gap);
            if (low.is_none() && !low_open) || (high.is_none() && !high_open) {
                continue;
            }
            let found = match (&cells, &split) {
                // All numbers between two bounds are equivalent except for multiples.
                (Some(cells), Some((multiples, _))) if cells[2 * gap] => {
                    multiples.between(low, high)?
                }
                (Some(_), _) => None,
                (None, _) if !bounds[2 * gap].1 => None,
                (None, _) => self.between(low, high, as_integer)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns all numbers that satisfy a formula; `None` if there are at least `enough`.
    pub(in crate::solver) fn enumerate(
        &mut self,
        enough: usize,
    ) -> Result<Option<Vec<Decimal>>, Error> {
        let mut numbers = Vec::new();
        let is_written = self
            .base
            .formulas
            .any_atom(&[self.formula], |atom| *atom == FormulaAtom::IntegerSpelling);
        for as_integer in if is_written { &[false, true][..] } else { &[false] } {
            match self.enumerate_spelled(*as_integer, enough)? {
                Some(more) => numbers.extend(more),
                None => return Ok(None),
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok((numbers.len() < enough).then_some(numbers))
    }

    /// Returns all numbers that satisfy a formula, spelled as integers (`as_integer`) or with a
    /// fraction; `None` if there are at least `enough`.
    fn enumerate_spelled(
        &mut self,
        as_integer: bool,
        enough: usize,
    ) -> Result<Option<Vec<Decimal>>, Error> {
        let mut numbers: Vec<Decimal> = Vec::new();
        let Some((multiples, compared)) =
            separate_multiples(&self.base.formulas, self.formula, as_integer)
        else {
            let mut rest = NumberQuery { base: self.base, formula: self.formula };
            while numbers.len() < enough {
                rest.base.count_step()?;
                let Some(number) = rest.find_spelled(&NumberInterval::default(), as_integer)?
                else {
                    return Ok(Some(numbers));
                };
                let equal = rest.base.formulas.atom(FormulaAtom::EqualTo(number.clone()));
                let other = rest.base.formulas.not(equal);
                rest.formula = rest.base.formulas.both(rest.formula, other);
                numbers.push(number);
            }
            return Ok(None);
        };
        let mut edges: Vec<Decimal> = Vec::new();
        for atom in self.base.formulas.atoms(self.formula) {
            if let FormulaAtom::AtLeast(at)
            | FormulaAtom::GreaterThan(at)
            | FormulaAtom::EqualTo(at) = atom
            {
                edges.push(at);
            }
        }
        edges.sort_unstable();
        edges.dedup();
        self.base.count_steps(edges.len() / BOUNDS_PER_STEP)?;
        let cells =
            NumberCells::new(edges.clone()).satisfying(&self.base.formulas, &compared, as_integer);
        let points = edges.iter().zip(cells.iter().skip(1).step_by(2));
        let points = points
            .filter(|&(at, &holds)| holds && multiples.contains(at))
            .map(|(at, _)| at.clone());
        numbers.extend(points);
        for gap in (0..=edges.len()).filter(|&gap| cells[2 * gap]) {
            if multiples.units.is_empty() {
                return Ok(None);
            }
            let mut low = gap.checked_sub(1).map(|at| edges[at].clone());
            let mut high = edges.get(gap).cloned();
            loop {
                if numbers.len() >= enough {
                    return Ok(None);
                }
                self.base.count_step()?;
                let found = multiples.between(low.as_ref(), high.as_ref())?;
                let Some(found) = found else { break };
                // Step away from the finite end.
                let end = if low.is_none() && high.is_some() { &mut high } else { &mut low };
                *end = Some(found.clone());
                numbers.push(found);
            }
        }
        Ok(Some(numbers))
    }

    /// Returns `true` if a formula holds for arbitrarily large numbers. Multiples recur, so one
    /// beyond every bound suffices.
    pub(crate) fn has_no_bound(mut self) -> Result<bool, Error> {
        if self.formula == TRUE || self.formula == FALSE {
            return Ok(self.formula == TRUE);
        }
        self.formula = self.base.formulas.drop_exclusions(self.formula);
        let above =
            Decimal::new(NumberScale::new(&self.base.formulas.atoms(self.formula)).above, 0);
        let beyond = NumberInterval { low: Some((above, false)), high: None };
        for within in [beyond.clone(), beyond.mirrored()] {
            if self.find(&within)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a number strictly between two adjacent bounds of the formula.
    fn between(
        &mut self,
        low: Option<&Decimal>,
        high: Option<&Decimal>,
        as_integer: bool,
    ) -> Result<Option<Decimal>, Error> {
        let reduced: Result<FormulaId, Infallible> = self.base.formulas.replace_leaves(
            self.formula,
            ReplacedLeaves::All,
            &mut CompactMap::default(),
            &mut |all, leaf| {
                Ok(match all.get(leaf) {
                    Formula::Atom(FormulaAtom::MultipleOf(_)) => leaf,
                    Formula::Atom(atom) => {
                        FormulaArena::constant(gap_satisfies(atom, low, as_integer))
                    }
                    _ => leaf,
                })
            },
        );
        let Ok(reduced) = reduced;
        if reduced == FALSE {
            return Ok(None);
        }
        let mut found = None;
        let mut leaf = |base: &mut FormulaBase, literals: &[FormulaId]| {
            let mut multiples = MultipleSet::default();
            for &literal in literals {
                if let Some((FormulaAtom::MultipleOf(unit), positive)) =
                    base.formulas.literal(literal)
                {
                    multiples.add(unit, positive);
                }
            }
            if as_integer {
                multiples.units.push(Decimal::from_integer(1));
            }
            found = multiples.between(low, high)?;
            Ok(found.is_some())
        };
        let fits = &mut |_: &mut FormulaBase, _: &[FormulaId]| Ok(true);
        ImplicantSearch { steps: u64::MAX, fits, leaf: &mut leaf }.run(self.base, reduced)?;
        Ok(found)
    }
}

/// The common multiples of some numbers that are not multiples of others.
#[derive(Default)]
struct MultipleSet {
    units: Vec<Decimal>,
    avoided: Vec<Decimal>,
}

/// Returns the multiples that a formula demands, and its other conjuncts; `None` if those mention
/// multiples too.
fn separate_multiples(
    formulas: &FormulaArena,
    id: FormulaId,
    as_integer: bool,
) -> Option<(MultipleSet, Vec<FormulaId>)> {
    let (mut multiples, mut compared) = (MultipleSet::default(), Vec::new());
    for part in formulas.conjuncts(id) {
        match formulas.literal(part) {
            Some((FormulaAtom::MultipleOf(unit), positive)) => multiples.add(unit, positive),
            _ => {
                let is_multiple = |atom: &FormulaAtom| matches!(atom, FormulaAtom::MultipleOf(_));
                if formulas.any_atom(&[part], is_multiple) {
                    return None;
                }
                compared.push(part);
            }
        }
    }
    if as_integer {
        multiples.units.push(Decimal::from_integer(1));
    }
    Some((multiples, compared))
}

impl MultipleSet {
    fn add(&mut self, unit: &Decimal, positive: bool) {
        if positive { &mut self.units } else { &mut self.avoided }.push(unit.clone());
    }

    fn contains(&self, at: &Decimal) -> bool {
        self.units.iter().all(|unit| at.is_multiple_of(unit))
            && !self.avoided.iter().any(|unit| at.is_multiple_of(unit))
    }

    /// Returns a common multiple strictly between two numbers that avoids all excluded multiples. Fails
    /// after [`MAX_MULTIPLES_TRIED`].
    fn between(
        &self,
        low: Option<&Decimal>,
        high: Option<&Decimal>,
    ) -> Result<Option<Decimal>, Error> {
        let MultipleSet { units, avoided } = self;
        let all = units.iter().chain(avoided).chain(low).chain(high);
        let places = all.map(Decimal::fraction_digits).max().unwrap_or(0);
        let scaled = |number: &Decimal| number.scaled(places);
        if units.is_empty() {
            // One more fraction digit than anything else makes it a multiple of nothing.
            let value = match (low, high) {
                (Some(low), _) => scaled(low) * 10u32 + 1u32,
                (None, Some(high)) => scaled(high) * 10u32 - 1u32,
                (None, None) => BigInt::one(),
            };
            return Ok(Some(Decimal::new(value, -i64::from(places + 1))));
        }
        let common = units.iter().fold(BigInt::one(), |so_far, unit| so_far.lcm(&scaled(unit)));
        let period = avoided.iter().fold(common.clone(), |so_far, unit| so_far.lcm(&scaled(unit)));
        let period = &period / &common;
        // Count away from the finite end.
        let (first, step) = match (low, high) {
            (Some(low), _) => (scaled(low).div_floor(&common) + 1u32, 1),
            (None, Some(high)) => (-((-scaled(high)).div_floor(&common) + 1u32), -1),
            (None, None) => (BigInt::from(0), 1),
        };
        let mut at = first;
        let mut tried = 0u64;
        loop {
            let value = &at * &common;
            if high.is_some_and(|high| value >= scaled(high))
                || low.is_some_and(|low| value <= scaled(low))
                || BigInt::from(tried) > period
            {
                return Ok(None);
            }
            if avoided.iter().all(|unit| !value.is_multiple_of(&scaled(unit))) {
                return Ok(Some(Decimal::new(value, -i64::from(places))));
            }
            tried += 1;
            check_limit(Resource::Steps, tried, MAX_MULTIPLES_TRIED)?;
            at += step;
        }
    }
}

/// The equivalence of integer parts with respect to a formula: it makes the states of a number
/// being read finite.
#[derive(Debug)]
pub(crate) struct NumberScale {
    /// Integer parts above this are greater than every bound.
    pub(crate) above: BigInt,
    /// Above every bound, integer parts that differ by this are equivalent.
    pub(crate) modulus: BigInt,
    /// Maximum number of fraction digits of bounds and multiples.
    pub(crate) places: u32,
    /// Number of digits after which an integer part can have passed every bound and residue.
    pub(crate) reach: u32,
    /// Power of ten after which a number has passed every bound and divisibility is settled.
    pub(crate) powers: u32,
}

impl NumberScale {
    pub(crate) fn new<'a>(atoms: impl IntoIterator<Item = &'a FormulaAtom>) -> NumberScale {
        let (mut modulus, mut places, mut bits) = (BigInt::one(), 0, 0);
        let (mut least, mut most) = (None, None);
        for atom in atoms {
            match atom {
                FormulaAtom::AtLeast(at)
                | FormulaAtom::GreaterThan(at)
                | FormulaAtom::EqualTo(at) => {
                    places = places.max(at.fraction_digits());
                    least = Some(least.map_or(at, |least: &Decimal| least.min(at)));
                    most = Some(most.map_or(at, |most: &Decimal| most.max(at)));
                }
                FormulaAtom::MultipleOf(unit) => {
                    places = places.max(unit.fraction_digits());
                    let (digits, scale) =
                        (unit.scaled(unit.fraction_digits()), pow10(unit.fraction_digits()));
                    bits = bits.max(digits.bits() as u32);
                    modulus = modulus.lcm(&(&digits / digits.gcd(&scale)));
                }
                _ => {}
            }
        }
        let passed = |at: &Decimal| {
            at.abs().scaled(at.fraction_digits()) / pow10(at.fraction_digits()) + 1u32
        };
        let above = [least, most].into_iter().flatten().map(passed).max().unwrap_or_default();
        let reach = (above.to_string().len() + modulus.to_string().len() + 2) as u32;
        let powers = above.to_string().len() as u32 + places + bits;
        NumberScale { above, modulus, places, reach, powers }
    }

    /// Returns the smallest equivalent integer part.
    pub(crate) fn representative(&self, as_integer: BigInt) -> BigInt {
        let first = &self.above + 1u32;
        if as_integer < &first + &self.modulus {
            return as_integer;
        }
        &first + (as_integer - &first) % &self.modulus
    }
}
