//! How many bytes are missing at least to a number that ends, and to one of which more holds.

use formalm_automata::Error;
use num_bigint::BigInt;

use super::Grown;
use super::frame::{Digits, DigitsId, OwesId, Part};
use super::owed::{Child, NEVER};
use crate::core::Core;
use crate::formula::{Atom, F, Form, TRUE};

impl Grown {
    /// What a number needs that was begun.
    pub(super) fn number_needs(&mut self, owes: OwesId, digits: DigitsId) -> Result<Child, Error> {
        if let Some(known) = self.learnt.numbers.get(&(owes, digits)) {
            return Ok(known.clone());
        }
        let formulas = self.parts.owes.get(owes.0).formulas.clone();
        let number = self.parts.digits.get(digits.0).clone();
        let ends = self.number_end(owes, digits).is_some();
        let mut least = [TRUE].into_iter().chain(formulas[1..].iter().copied()).map(|wanted| {
            if !self.core.number_viable(wanted, &number)? {
                return Ok(NEVER);
            }
            if ends && self.core.number_ends(wanted, &number) {
                return Ok(0);
            }
            let written = self.core.least_digits(wanted).max(self.core.least_digits(formulas[0]));
            Ok(missing(written, &number).max(1))
        });
        let must = least.next().unwrap_or(Ok(0))?;
        let found = Child { must, truths: least.collect::<Result<Vec<_>, Error>>()? };
        self.learnt.numbers.insert((owes, digits), found.clone());
        Ok(found)
    }
}

/// Characters that are missing to a number of so many in front of its point.
fn missing(written: usize, number: &Digits) -> usize {
    let begun = match number.part {
        Part::Minus => 1,
        Part::Zero | Part::Whole => usize::from(number.negative) + length(&number.digits),
        _ => return 0,
    };
    written.saturating_sub(begun)
}

fn length(digits: &BigInt) -> usize {
    digits.magnitude().to_string().len()
}

impl Core {
    /// Characters in front of the point of a number of which a formula holds.
    fn least_digits(&self, id: F) -> usize {
        if self.options.exponents {
            return 0;
        }
        match self.formulas.get(id) {
            Form::And(list) => list.iter().map(|&one| self.least_digits(one)).max().unwrap_or(0),
            Form::Or(list) | Form::One(list) => {
                list.iter().map(|&one| self.least_digits(one)).min().unwrap_or(0)
            }
            Form::Atom(Atom::Least(bound) | Atom::Above(bound)) if !bound.is_negative() => {
                bound.whole_digits()
            }
            Form::Atom(Atom::Equal(value)) => {
                usize::from(value.is_negative()) + value.whole_digits()
            }
            Form::Not(inner) => match self.formulas.get(*inner) {
                Form::Atom(Atom::Least(bound) | Atom::Above(bound)) if bound.is_negative() => {
                    1 + bound.whole_digits()
                }
                _ => 0,
            },
            _ => 0,
        }
    }
}
