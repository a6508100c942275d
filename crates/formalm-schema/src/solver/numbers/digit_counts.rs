//! The possible numbers of integer digits of the numbers that satisfy a formula.

use std::ops::RangeInclusive;

use formalm_core::CompactMap;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::json::decimal::Decimal;

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

impl FormulaArena {
    /// Returns for each digit count up to `most` whether a nonzero number of this sign can have it.
    /// An over-approximation.
    pub(crate) fn possible_digit_counts(
        &self,
        id: FormulaId,
        negative: bool,
        most: usize,
    ) -> Vec<bool> {
        let known = CompactMap::default();
        DigitCounts { formulas: self, negative, most, known }.of(id, MAX_LEVELS)
    }
}

/// The digit counts of formulas, for numbers of one sign.
struct DigitCounts<'a> {
    formulas: &'a FormulaArena,
    negative: bool,
    most: usize,
    /// The counts of large formulas, by remaining depth.
    known: CompactMap<(FormulaId, u32), Vec<bool>>,
}

impl DigitCounts<'_> {
    fn of(&mut self, id: FormulaId, levels: u32) -> Vec<bool> {
        let is_small = self.formulas.is_small(id);
        if !is_small && let Some(known) = self.known.get(&(id, levels)) {
            return known.clone();
        }
        let counts = self.of_parts(id, levels);
        if !is_small {
            self.known.insert((id, levels), counts.clone());
        }
        counts
    }

    fn of_parts(&mut self, id: FormulaId, levels: u32) -> Vec<bool> {
        let (formulas, negative, most) = (self.formulas, self.negative, self.most);
        let all = || vec![true; most + 1];
        let Some(below) = levels.checked_sub(1) else { return all() };
        let one = |range: Option<RangeInclusive<usize>>| {
            let mut counts = vec![false; most + 1];
            mark_range(&mut counts, range);
            counts
        };
        match formulas.get(id) {
            Formula::And(list) => list.iter().fold(all(), |mut counts, &part| {
                let other = self.of(part, below);
                counts.iter_mut().zip(other).for_each(|(one, other)| *one &= other);
                counts
            }),
            Formula::Or(list) | Formula::ExactlyOne(list) => {
                list.iter().fold(one(None), |mut counts, &part| {
                    match comparison(formulas, part) {
                        Some((side, at)) => {
                            mark_range(&mut counts, digit_range(side, at, negative))
                        }
                        None => {
                            let other = self.of(part, below);
                            counts.iter_mut().zip(other).for_each(|(one, other)| *one |= other);
                        }
                    }
                    counts
                })
            }
            _ => match comparison(formulas, id) {
                Some((side, at)) => one(digit_range(side, at, negative)),
                None => all(),
            },
        }
    }
}

/// Returns the comparison that a literal makes, if it is one.
fn comparison(formulas: &FormulaArena, id: FormulaId) -> Option<(BoundSide, &Decimal)> {
    match formulas.get(id) {
        Formula::Atom(FormulaAtom::AtLeast(at) | FormulaAtom::GreaterThan(at)) => {
            Some((BoundSide::Least, at))
        }
        Formula::Atom(FormulaAtom::EqualTo(at)) => Some((BoundSide::Equal, at)),
        Formula::Atom(FormulaAtom::MultipleOf(unit)) => Some((BoundSide::Farther, unit)),
        Formula::Not(inner) => match formulas.get(*inner) {
            Formula::Atom(FormulaAtom::AtLeast(at) | FormulaAtom::GreaterThan(at)) => {
                Some((BoundSide::Most, at))
            }
            _ => None,
        },
        _ => None,
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
