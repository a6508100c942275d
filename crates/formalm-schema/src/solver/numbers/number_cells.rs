//! Evaluates comparison formulas on all cells of the number line at once, as bit sets.

use formalm_core::CompactMap;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::json::decimal::Decimal;

/// The number line divided at the bounds of a formula: cell `2i + 1` is bound `i`, cell `2i` the
/// gap before it.
pub(crate) struct NumberCells {
    ends: Vec<Decimal>,
    /// The numbers considered are integers; otherwise they are multiples of nothing.
    integers: bool,
}

/// A bit set of cells.
type CellSet = Box<[u64]>;

impl NumberCells {
    /// Creates the cells of `ends`, which must be ascending and distinct.
    pub(crate) fn new(ends: Vec<Decimal>) -> NumberCells {
        NumberCells::for_integers_or_others(ends, false)
    }

    /// Creates the cells for integers or for all other numbers, for formulas with no multiples
    /// except of 1.
    pub(crate) fn for_integers_or_others(ends: Vec<Decimal>, integers: bool) -> NumberCells {
        NumberCells { ends, integers }
    }

    fn count(&self) -> usize {
        2 * self.ends.len() + 1
    }

    /// Returns for each cell whether its numbers satisfy all of some formulas, spelled as integers
    /// if `as_integer`. Atoms that are not comparisons are false. All bounds of the formulas must be
    /// ends, or lie outside of the cells of interest.
    pub(crate) fn satisfying(
        &self,
        formulas: &FormulaArena,
        all: &[FormulaId],
        as_integer: bool,
    ) -> Vec<bool> {
        let mut set = self.cells_from(0);
        let mut known = CompactMap::default();
        for &one in all {
            let more = self.satisfying_set(formulas, one, as_integer, &mut known);
            set.iter_mut().zip(&more).for_each(|(word, more)| *word &= more);
        }
        (0..self.count()).map(|at| set[at / 64] >> (at % 64) & 1 == 1).collect()
    }

    /// Returns for each cell whether all of its numbers satisfy a formula, and whether some may,
    /// whatever they are multiples of.
    pub(crate) fn must_and_may(
        &self,
        formulas: &FormulaArena,
        id: FormulaId,
        as_integer: bool,
    ) -> Vec<(bool, bool)> {
        let (must, may) = self.bounds(formulas, id, as_integer, &mut CompactMap::default());
        let is_in = |set: &CellSet, at: usize| set[at / 64] >> (at % 64) & 1 == 1;
        (0..self.count()).map(|at| (is_in(&must, at), is_in(&may, at))).collect()
    }

    /// Returns the cells that must satisfy a formula and those that may.
    fn bounds(
        &self,
        formulas: &FormulaArena,
        id: FormulaId,
        as_integer: bool,
        known: &mut CompactMap<FormulaId, (CellSet, CellSet)>,
    ) -> (CellSet, CellSet) {
        let is_small = formulas.is_small(id);
        if !is_small && let Some(known) = known.get(&id) {
            return known.clone();
        }
        let (none, all) =
            (|| -> CellSet { self.cells_from(0).iter().map(|_| 0).collect() }, self.cells_from(0));
        let add = |one: &mut CellSet, other: &CellSet| {
            one.iter_mut().zip(other).for_each(|(one, other)| *one |= other);
        };
        let without = |one: &CellSet, other: &CellSet| -> CellSet {
            one.iter().zip(other).map(|(one, other)| one & !other).collect()
        };
        let bounds = match formulas.get(id) {
            Formula::False | Formula::Child(_) => (none(), none()),
            Formula::True => (all.clone(), all),
            Formula::Atom(FormulaAtom::MultipleOf(_)) => (none(), all),
            Formula::Atom(atom) => {
                let set = self.atom(atom, as_integer);
                (set.clone(), set)
            }
            Formula::Not(inner) => {
                let (must, may) = self.bounds(formulas, *inner, as_integer, known);
                (without(&all, &may), without(&all, &must))
            }
            form @ (Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list)) => {
                // Cells in some, in at least two, and in all operands.
                let [mut some_must, mut some_may, mut two_must, mut two_may] =
                    [(); 4].map(|()| none());
                let (mut all_must, mut all_may) = (all.clone(), all);
                for &one in list.iter() {
                    let (must, may) = self.bounds(formulas, one, as_integer, known);
                    for at in 0..must.len() {
                        two_must[at] |= some_must[at] & must[at];
                        two_may[at] |= some_may[at] & may[at];
                        all_must[at] &= must[at];
                        all_may[at] &= may[at];
                    }
                    add(&mut some_must, &must);
                    add(&mut some_may, &may);
                }
                match form {
                    Formula::And(_) => (all_must, all_may),
                    Formula::Or(_) => (some_must, some_may),
                    _ => (without(&some_must, &two_may), without(&some_may, &two_must)),
                }
            }
        };
        if !is_small {
            known.insert(id, bounds.clone());
        }
        bounds
    }

    /// Returns the set of all cells from index `first` on.
    fn cells_from(&self, first: usize) -> CellSet {
        let words = self.count().div_ceil(64);
        let word = |at: usize| match first.saturating_sub(at * 64) {
            0 => u64::MAX,
            skipped if skipped >= 64 => 0,
            skipped => u64::MAX << skipped,
        };
        (0..words).map(word).collect()
    }

    /// Adds a bound to a set.
    fn mark(&self, at: &Decimal, set: &mut CellSet) {
        if let Ok(place) = self.ends.binary_search(at) {
            let cell = 2 * place + 1;
            set[cell / 64] |= 1 << (cell % 64);
        }
    }

    fn atom(&self, atom: &FormulaAtom, as_integer: bool) -> CellSet {
        let cell = |at: &Decimal| match self.ends.binary_search(at) {
            Ok(place) => 2 * place + 1,
            Err(place) => 2 * place,
        };
        let all = self.cells_from(0);
        let none = || all.iter().map(|_| 0).collect::<CellSet>();
        match atom {
            FormulaAtom::AtLeast(at) => self.cells_from(cell(at)),
            FormulaAtom::GreaterThan(at) => self.cells_from(cell(at) + 1),
            FormulaAtom::EqualTo(at) => {
                let mut one = none();
                self.mark(at, &mut one);
                one
            }
            FormulaAtom::IntegerSpelling if as_integer => all,
            FormulaAtom::MultipleOf(_) if self.integers => all,
            _ => none(),
        }
    }

    /// Returns the cells that satisfy a formula, memoized for large formulas.
    fn satisfying_set(
        &self,
        formulas: &FormulaArena,
        id: FormulaId,
        as_integer: bool,
        known: &mut CompactMap<FormulaId, CellSet>,
    ) -> CellSet {
        if formulas.is_small(id) {
            return self.set_of_parts(formulas, id, as_integer, known);
        }
        if let Some(known) = known.get(&id) {
            return known.clone();
        }
        let set = self.set_of_parts(formulas, id, as_integer, known);
        known.insert(id, set.clone());
        set
    }

    fn set_of_parts(
        &self,
        formulas: &FormulaArena,
        id: FormulaId,
        as_integer: bool,
        known: &mut CompactMap<FormulaId, CellSet>,
    ) -> CellSet {
        let mut of = |one: FormulaId| self.satisfying_set(formulas, one, as_integer, known);
        let joined = |one: CellSet, other: CellSet, join: fn(u64, u64) -> u64| -> CellSet {
            one.iter().zip(&other).map(|(&one, &other)| join(one, other)).collect()
        };
        let none = || self.cells_from(0).iter().map(|_| 0).collect::<CellSet>();
        match formulas.get(id) {
            Formula::False | Formula::Child(_) => none(),
            Formula::True => self.cells_from(0),
            Formula::Atom(atom) => self.atom(atom, as_integer),
            Formula::Not(inner) => of(*inner).iter().map(|word| !word).collect(),
            Formula::And(list) => list
                .iter()
                .fold(self.cells_from(0), |so_far, &one| joined(so_far, of(one), |a, b| a & b)),
            Formula::Or(list) => {
                let mut all = none();
                for &one in list.iter() {
                    match formulas.get(one) {
                        // There may be thousands of these, so each is added in place.
                        Formula::Atom(FormulaAtom::EqualTo(at)) => self.mark(at, &mut all),
                        _ => all = joined(all, of(one), |a, b| a | b),
                    }
                }
                all
            }
            Formula::ExactlyOne(list) => {
                let (mut some, mut two) = (none(), none());
                for &one in list.iter() {
                    let set = of(one);
                    two =
                        joined(two, joined(some.clone(), set.clone(), |a, b| a & b), |a, b| a | b);
                    some = joined(some, set, |a, b| a | b);
                }
                joined(some, two, |a, b| a & !b)
            }
        }
    }
}
