//! Where on the line the numbers of a formula can be at all.

use crate::formula::{Atom, F, Form, Formulas};
use crate::interner::Map;
use crate::json::decimal::Decimal;

/// Pieces of the line that are kept apart.
const MAX_PIECES: usize = 20_000;

/// A place on the line: at a number, or right before (`-1`) or behind it (`1`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::solver) enum End {
    Least,
    At(Decimal, i8),
    Most,
}

/// A piece of the line with its ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::solver) struct Span {
    pub(in crate::solver) low: End,
    pub(in crate::solver) high: End,
}

impl Span {
    fn all() -> Span {
        Span { low: End::Least, high: End::Most }
    }

    fn both(&self, other: &Span) -> Option<Span> {
        let low = self.low.clone().max(other.low.clone());
        let high = self.high.clone().min(other.high.clone());
        (low <= high).then_some(Span { low, high })
    }
}

/// Pieces of the line that hold all numbers of a formula, and maybe others.
pub(in crate::solver) fn spans(formulas: &Formulas, id: F) -> Vec<Span> {
    spans_within(formulas, id, &mut Map::default())
}

fn spans_within(formulas: &Formulas, id: F, known: &mut Map<F, Vec<Span>>) -> Vec<Span> {
    let is_small = formulas.is_small(id);
    if !is_small && let Some(known) = known.get(&id) {
        return known.clone();
    }
    let pieces = match formulas.get(id) {
        Form::False => Vec::new(),
        Form::Atom(atom) => vec![span(atom, true)],
        Form::Not(inner) => match formulas.get(*inner) {
            Form::Atom(atom) => vec![span(atom, false)],
            _ => vec![Span::all()],
        },
        Form::And(list) => {
            let mut pieces = vec![Span::all()];
            for &part in list.iter() {
                let more = spans_within(formulas, part, known);
                if pieces.len().saturating_mul(more.len()) > MAX_PIECES {
                    continue;
                }
                let both = |one: &Span| more.iter().filter_map(|other| one.both(other)).collect();
                pieces = pieces.iter().flat_map(|one| -> Vec<Span> { both(one) }).collect();
            }
            pieces
        }
        Form::Or(list) | Form::One(list) => {
            list.iter().flat_map(|&one| spans_within(formulas, one, known)).collect()
        }
        Form::True | Form::Child(_) => vec![Span::all()],
    };
    if is_small {
        return pieces;
    }
    let pieces = joined(pieces);
    known.insert(id, pieces.clone());
    pieces
}

/// Pieces that do not overlap: no more than there are numbers compared with, while alternatives that
/// share their parts repeat the same ones exponentially often.
fn joined(mut pieces: Vec<Span>) -> Vec<Span> {
    pieces.sort_unstable();
    let mut joined: Vec<Span> = Vec::with_capacity(pieces.len());
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

fn span(atom: &Atom, positive: bool) -> Span {
    let all = Span::all();
    match (atom, positive) {
        (Atom::Least(at), true) => Span { low: End::At(at.clone(), 0), ..all },
        (Atom::Least(at), false) => Span { high: End::At(at.clone(), -1), ..all },
        (Atom::Above(at), true) => Span { low: End::At(at.clone(), 1), ..all },
        (Atom::Above(at), false) => Span { high: End::At(at.clone(), 0), ..all },
        (Atom::Equal(at), true) => {
            let at = End::At(at.clone(), 0);
            Span { low: at.clone(), high: at }
        }
        _ => all,
    }
}
