//! How many bytes are missing at least to a number that ends, and to one of which more holds.

use std::collections::VecDeque;

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use super::Grown;
use super::frame::{DigitsId, OwesId};
use super::needs::Search;
use super::owed::{Child, NEVER};
use crate::formula::{F, TRUE};

/// Numbers looked at. Most formulas tell few apart.
const NUMBERS: usize = 500;

/// Bytes that numbers have.
const BYTES: &[u8] = b"0123456789.-+eE";

impl Grown {
    /// What a number needs that may go on, as far as there are few ways to.
    pub(super) fn number_needs(
        &mut self,
        owes: OwesId,
        digits: DigitsId,
        search: &mut Search,
    ) -> Result<Child, Error> {
        if let Some(known) = search.numbers.get(&(owes, digits)) {
            return Ok(known.clone());
        }
        let formulas = self.parts.owes.get(owes.0).formulas.clone();
        let must = self.digits_needed(owes, digits, TRUE)?;
        let mut truths = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            truths.push(self.digits_needed(owes, digits, one)?);
        }
        let found = Child { must, truths };
        search.numbers.insert((owes, digits), found.clone());
        Ok(found)
    }

    /// Bytes to the next end of a number of which a formula holds.
    fn digits_needed(&mut self, owes: OwesId, digits: DigitsId, wanted: F) -> Result<usize, Error> {
        let plan = self.number_plan(owes);
        let (mut seen, mut open) = (FxHashSet::from_iter([digits]), VecDeque::from([(digits, 0)]));
        while let Some((here, read)) = open.pop_front() {
            let number = self.parts.digits.get(here.0).clone();
            if !self.core.number_goes_on(wanted, &number, &plan.scale)? {
                continue;
            }
            let holds = self.core.number_ends(wanted, &number);
            if seen.len() > NUMBERS || (holds && self.number_end(owes, here).is_some()) {
                return Ok(read);
            }
            for &byte in BYTES {
                let next = self.digits_after(owes, Some(here), byte)?;
                if let Some(next) = next.filter(|&next| seen.insert(next)) {
                    open.push_back((next, read + 1));
                }
            }
        }
        Ok(NEVER)
    }
}
