//! The possible numbers of integer digits of the numbers that satisfy a formula.

use std::ops::RangeInclusive;

use crate::formula::{Formula, FormulaAtom, FormulaId};
use crate::interner::CompactMap;
use crate::json::decimal::Decimal;
use crate::solver::context::SolverContext;

/// Maximum depth of a formula that is examined. Chosen, not measured.
const MAX_LEVELS: u32 = 4;

/// A comparison with a number.
#[derive(Clone, Copy)]
enum BoundSide {
    Least,
    Most,
    Equal,
    /// At least as far from zero, on either side (multiples).
    Farther,
}

impl SolverContext {
    /// Returns for each digit count up to `most` whether a nonzero number of this sign can have it.
    /// An over-approximation.
    pub(crate) fn possible_digit_counts(
        &self,
        id: FormulaId,
        negative: bool,
        most: usize,
    ) -> Vec<bool> {
        self.counts_within(id, negative, most, (MAX_LEVELS, &mut CompactMap::default()))
    }

    fn counts_within(
        &self,
        id: FormulaId,
        negative: bool,
        most: usize,
        (levels, known): (u32, &mut CompactMap<(FormulaId, u32), Vec<bool>>),
    ) -> Vec<bool> {
        let is_small = self.formulas.is_small(id);
        if !is_small && let Some(known) = known.get(&(id, levels)) {
            return known.clone();
        }
        let counts = self.counts_of_parts(id, negative, most, (levels, known));
        if !is_small {
            known.insert((id, levels), counts.clone());
        }
        counts
    }

    fn counts_of_parts(
        &self,
        id: FormulaId,
        negative: bool,
        most: usize,
        (levels, known): (u32, &mut CompactMap<(FormulaId, u32), Vec<bool>>),
    ) -> Vec<bool> {
        let all = || vec![true; most + 1];
        let Some(below) = levels.checked_sub(1) else { return all() };
        let one = |range: Option<RangeInclusive<usize>>| {
            let mut counts = vec![false; most + 1];
            mark_range(&mut counts, range);
            counts
        };
        match self.formulas.get(id) {
            Formula::And(list) => list.iter().fold(all(), |mut counts, &part| {
                let other = self.counts_within(part, negative, most, (below, known));
                counts.iter_mut().zip(other).for_each(|(one, other)| *one &= other);
                counts
            }),
            Formula::Or(list) | Formula::ExactlyOne(list) => {
                list.iter().fold(one(None), |mut counts, &part| {
                    match self.comparison(part) {
                        Some((side, at)) => {
                            mark_range(&mut counts, digit_range(side, at, negative))
                        }
                        None => {
                            let other = self.counts_within(part, negative, most, (below, known));
                            counts.iter_mut().zip(other).for_each(|(one, other)| *one |= other);
                        }
                    }
                    counts
                })
            }
            _ => match self.comparison(id) {
                Some((side, at)) => one(digit_range(side, at, negative)),
                None => all(),
            },
        }
    }

    /// Returns the comparison that a literal makes, if it is one.
    fn comparison(&self, id: FormulaId) -> Option<(BoundSide, &Decimal)> {
        match self.formulas.get(id) {
            Formula::Atom(FormulaAtom::AtLeast(at) | FormulaAtom::GreaterThan(at)) => {
                Some((BoundSide::Least, at))
            }
            Formula::Atom(FormulaAtom::EqualTo(at)) => Some((BoundSide::Equal, at)),
            Formula::Atom(FormulaAtom::MultipleOf(unit)) => Some((BoundSide::Farther, unit)),
            Formula::Not(inner) => match self.formulas.get(*inner) {
                Formula::Atom(FormulaAtom::AtLeast(at) | FormulaAtom::GreaterThan(at)) => {
                    Some((BoundSide::Most, at))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the digit counts of numbers of a sign on one side of a bound.
fn digit_range(side: BoundSide, at: &Decimal, negative: bool) -> Option<RangeInclusive<usize>> {
    let same = at.is_zero() || at.is_negative() == negative;
    let digits = at.integer_digits();
    match (side, negative) {
        (BoundSide::Farther, _) => Some(digits..=usize::MAX),
        (BoundSide::Equal, _) => same.then_some(digits..=digits),
        // Numbers between the bound and zero have at most its digits, others at least.
        (BoundSide::Least, true) | (BoundSide::Most, false) => same.then_some(0..=digits),
        (BoundSide::Least, false) | (BoundSide::Most, true) => {
            Some(if same { digits..=usize::MAX } else { 0..=usize::MAX })
        }
    }
}

fn mark_range(counts: &mut [bool], range: Option<RangeInclusive<usize>>) {
    let Some(range) = range else { return };
    let end = range.end().saturating_add(1).min(counts.len());
    if let Some(within) = counts.get_mut(*range.start()..end) {
        within.fill(true);
    }
}
