//! An over-approximation of the numbers that satisfy a formula, as a union of ranges.

use formalm_core::CompactMap;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::json::decimal::Decimal;

/// Maximum number of ranges; a conjunction that would exceed it is ignored. Chosen, not measured.
const MAX_RANGES: usize = 20_000;

/// A point on the number line: at a number, or immediately before (`-1`) or after it (`1`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::solver) enum RangeEnd {
    NegativeInfinity,
    At(Decimal, i8),
    PositiveInfinity,
}

/// A range of numbers, including its ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::solver) struct NumberRange {
    pub(in crate::solver) low: RangeEnd,
    pub(in crate::solver) high: RangeEnd,
}

impl NumberRange {
    fn all() -> NumberRange {
        NumberRange { low: RangeEnd::NegativeInfinity, high: RangeEnd::PositiveInfinity }
    }

    fn both(&self, other: &NumberRange) -> Option<NumberRange> {
        let low = self.low.clone().max(other.low.clone());
        let high = self.high.clone().min(other.high.clone());
        (low <= high).then_some(NumberRange { low, high })
    }
}

/// Returns ranges that contain all numbers of a formula, and maybe others.
pub(in crate::solver) fn number_ranges(formulas: &FormulaArena, id: FormulaId) -> Vec<NumberRange> {
    ranges_memoized(formulas, id, &mut CompactMap::default())
}

fn ranges_memoized(
    formulas: &FormulaArena,
    id: FormulaId,
    known: &mut CompactMap<FormulaId, Vec<NumberRange>>,
) -> Vec<NumberRange> {
    let is_small = formulas.is_small(id);
    if !is_small && let Some(known) = known.get(&id) {
        return known.clone();
    }
    let pieces = match formulas.get(id) {
        Formula::False => Vec::new(),
        Formula::Atom(atom) => vec![atom_range(atom, true)],
        Formula::Not(inner) => match formulas.get(*inner) {
            Formula::Atom(atom) => vec![atom_range(atom, false)],
            _ => vec![NumberRange::all()],
        },
        Formula::And(list) => {
            let mut pieces = vec![NumberRange::all()];
            for &part in list.iter() {
                let more = ranges_memoized(formulas, part, known);
                if pieces.len().saturating_mul(more.len()) > MAX_RANGES {
                    continue;
                }
                let both =
                    |one: &NumberRange| more.iter().filter_map(|other| one.both(other)).collect();
                pieces = pieces.iter().flat_map(|one| -> Vec<NumberRange> { both(one) }).collect();
            }
            pieces
        }
        Formula::Or(list) | Formula::ExactlyOne(list) => {
            list.iter().flat_map(|&one| ranges_memoized(formulas, one, known)).collect()
        }
        Formula::True | Formula::Child(_) => vec![NumberRange::all()],
    };
    if is_small {
        return pieces;
    }
    let pieces = merge_overlapping(pieces);
    known.insert(id, pieces.clone());
    pieces
}

/// Merges overlapping ranges. The result is linear in the number of bounds, whereas alternatives
/// with shared operands repeat the same ranges exponentially often.
fn merge_overlapping(mut pieces: Vec<NumberRange>) -> Vec<NumberRange> {
    pieces.sort_unstable();
    let mut joined: Vec<NumberRange> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if piece.low <= last.high => {
                if last.high < piece.high {
                    last.high = piece.high;
                }
            }
            _ => joined.push(piece),
        }
    }
    joined
}

/// Returns the range of a comparison or its negation.
fn atom_range(atom: &FormulaAtom, positive: bool) -> NumberRange {
    let all = NumberRange::all();
    match (atom, positive) {
        (FormulaAtom::AtLeast(at), true) => NumberRange { low: RangeEnd::At(at.clone(), 0), ..all },
        (FormulaAtom::AtLeast(at), false) => {
            NumberRange { high: RangeEnd::At(at.clone(), -1), ..all }
        }
        (FormulaAtom::GreaterThan(at), true) => {
            NumberRange { low: RangeEnd::At(at.clone(), 1), ..all }
        }
        (FormulaAtom::GreaterThan(at), false) => {
            NumberRange { high: RangeEnd::At(at.clone(), 0), ..all }
        }
        (FormulaAtom::EqualTo(at), true) => {
            let at = RangeEnd::At(at.clone(), 0);
            NumberRange { low: at.clone(), high: at }
        }
        _ => all,
    }
}
