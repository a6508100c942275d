//! An over-approximation of the numbers that satisfy a formula, as a union of ranges.

use crate::formula::{Atom, F, Form, Formulas};
use crate::interner::Map;
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
pub(in crate::solver) fn number_ranges(formulas: &Formulas, id: F) -> Vec<NumberRange> {
    ranges_memoized(formulas, id, &mut Map::default())
}

fn ranges_memoized(
    formulas: &Formulas,
    id: F,
    known: &mut Map<F, Vec<NumberRange>>,
) -> Vec<NumberRange> {
    let is_small = formulas.is_small(id);
    if !is_small && let Some(known) = known.get(&id) {
        return known.clone();
    }
    let pieces = match formulas.get(id) {
        Form::False => Vec::new(),
        Form::Atom(atom) => vec![atom_range(atom, true)],
        Form::Not(inner) => match formulas.get(*inner) {
            Form::Atom(atom) => vec![atom_range(atom, false)],
            _ => vec![NumberRange::all()],
        },
        Form::And(list) => {
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
        Form::Or(list) | Form::One(list) => {
            list.iter().flat_map(|&one| ranges_memoized(formulas, one, known)).collect()
        }
        Form::True | Form::Child(_) => vec![NumberRange::all()],
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
fn atom_range(atom: &Atom, positive: bool) -> NumberRange {
    let all = NumberRange::all();
    match (atom, positive) {
        (Atom::Least(at), true) => NumberRange { low: RangeEnd::At(at.clone(), 0), ..all },
        (Atom::Least(at), false) => NumberRange { high: RangeEnd::At(at.clone(), -1), ..all },
        (Atom::Above(at), true) => NumberRange { low: RangeEnd::At(at.clone(), 1), ..all },
        (Atom::Above(at), false) => NumberRange { high: RangeEnd::At(at.clone(), 0), ..all },
        (Atom::Equal(at), true) => {
            let at = RangeEnd::At(at.clone(), 0);
            NumberRange { low: at.clone(), high: at }
        }
        _ => all,
    }
}
