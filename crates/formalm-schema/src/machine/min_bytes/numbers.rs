//! Lower bounds on the bytes that complete a number, also one for which further formulas hold.

use formalm_automata::Error;
use num_bigint::BigInt;
use num_traits::Zero;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, TRUE};
use crate::interner::CompactMap;
use crate::json::decimal::Decimal;
use crate::machine::LazyTables;
use crate::machine::frame::{NumberPart, NumberPrefix, NumberPrefixId, ObligationId};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::containers::{ChildBound, UNREACHABLE};
use crate::machine::numbers::NumberPlan;
use crate::solver::NumberInterval;
use crate::solver::context::SolverContext;

/// Maximum number of spans that are tested for one number. Chosen, not measured.
const MAX_SPANS: usize = 200;

/// Search steps charged for testing one span. Chosen, not measured.
const STEPS_PER_SPAN: u64 = 16;

impl LazyTables {
    /// Returns the bounds of a number that has begun.
    pub(crate) fn number_bounds(
        &mut self,
        obligation: ObligationId,
        digits: NumberPrefixId,
        budget: &mut SearchBudget,
    ) -> Result<ChildBound, Error> {
        if let Some(known) = self.bound_cache.number_bounds.get(&(obligation, digits)) {
            return Ok(known.clone());
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let number = self.parts.digits.get(digits.0).clone();
        let ends = self.number_end(obligation, digits).is_some();
        let plan = self.number_plan(obligation);
        let total = self.core.total(&required);
        let more = required.formulas[1..].iter().copied();
        let mut least = [TRUE].into_iter().chain(more).map(|wanted| {
            if !self.core.number_viable(wanted, &number)? {
                return Ok(UNREACHABLE);
            }
            if ends && self.core.number_ends(wanted, &number) {
                return Ok(0);
            }
            let wanted = self.core.base.formulas.both(wanted, total);
            let least = missing_integer_chars(
                self.core.min_integer_digits(wanted, !number.digits.is_zero()),
                &number,
            );
            self.core.missing_bytes(wanted, &number, &plan, least.max(1), budget)
        });
        let must = least.next().unwrap_or(Ok(0))?;
        let found = ChildBound { must, verdicts: least.collect::<Result<Vec<_>, Error>>()? };
        self.bound_cache.number_bounds.insert((obligation, digits), found.clone());
        Ok(found)
    }
}

/// Returns the spans of magnitudes that `bytes` further bytes can reach.
///
/// A span is `[digits, digits + 1)` times a power of ten, with the number of decimal places. Places
/// beyond those that a formula distinguishes are left out, except for the first.
fn continuation_spans(
    number: &NumberPrefix,
    bytes: usize,
    max_places: u32,
) -> Vec<(i64, BigInt, u32)> {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let span = |low: &BigInt, power: i64, places: u32| (power, low.clone(), places);
    let few = |places: u32| places <= max_places.saturating_add(1);
    let read = number.places;
    let digits = &number.digits;
    let mut all = Vec::new();
    match number.part {
        NumberPart::Point | NumberPart::Fraction => {
            if bytes == 1 || few(read + bytes) {
                all.push(span(digits, -i64::from(read), read + bytes));
            }
        }
        NumberPart::Zero => {
            let places = bytes.saturating_sub(1);
            if places == 1 || (places > 1 && few(places)) {
                all.push(span(&BigInt::from(0), 0, places));
            }
        }
        NumberPart::Integer => {
            all.push(span(digits, i64::from(bytes), 0));
            for places in (1..bytes).take_while(|&places| places == 1 || few(places)) {
                all.push(span(digits, i64::from(bytes - 1 - places), places));
            }
        }
        NumberPart::Minus => {
            let zero = NumberPrefix { part: NumberPart::Zero, ..number.clone() };
            match bytes.checked_sub(1) {
                None => {}
                // Without a digit yet, zero is the only integer below one.
                Some(0) => all.push(span(&BigInt::from(0), 0, 0)),
                Some(rest) => all.extend(continuation_spans(&zero, rest as usize, max_places)),
            }
            for first in 1..10u32 {
                let one = NumberPrefix {
                    part: NumberPart::Integer,
                    digits: first.into(),
                    ..number.clone()
                };
                match bytes.checked_sub(1) {
                    None => {}
                    Some(0) => all.push(span(&one.digits, 0, 0)),
                    Some(rest) => all.extend(continuation_spans(&one, rest as usize, max_places)),
                }
            }
        }
        NumberPart::ExponentMark | NumberPart::ExponentSign | NumberPart::ExponentDigits => {}
    }
    all
}

/// Returns the number of characters missing from a number whose integer part has `written`
/// characters.
fn missing_integer_chars(written: usize, number: &NumberPrefix) -> usize {
    let read_chars = match number.part {
        NumberPart::Minus => 1,
        NumberPart::Zero | NumberPart::Integer => {
            usize::from(number.negative) + decimal_length(&number.digits)
        }
        _ => return 0,
    };
    written.saturating_sub(read_chars)
}

/// Returns the number of decimal digits.
pub(crate) fn decimal_length(digits: &BigInt) -> usize {
    digits.magnitude().to_string().len()
}

impl SolverContext {
    /// Returns a bound on the bytes missing from a number that satisfies a formula, at least
    /// `least`. Exact except with exponents and after [`MAX_SPANS`] spans.
    fn missing_bytes(
        &mut self,
        id: FormulaId,
        number: &NumberPrefix,
        plan: &NumberPlan,
        least: usize,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        if self.options.allow_exponents || number.sticky || id == TRUE || id == FALSE {
            return Ok(least);
        }
        let mut tries = MAX_SPANS;
        let (scale, bounds) = (&plan.scale, plan.intervals_of(id));
        let most = scale.reach as usize + scale.places as usize + 2;
        let read = decimal_length(&number.digits);
        // For an integer part, only digit counts that some solution has are tried.
        let counts = match number.part {
            NumberPart::Integer => {
                self.base.formulas.possible_digit_counts(id, number.negative, read + most)
            }
            _ => Vec::new(),
        };
        let can = |more: i64| {
            let digits = usize::try_from(more).map_or(0, |more| read + more);
            counts.get(digits).is_none_or(|&can| can)
        };
        for bytes in least..least.max(1) + most {
            // Arithmetic on large numbers takes longer.
            let size = u64::from(self.base.formulas.size(id));
            let cost = STEPS_PER_SPAN + (number.digits.bits() + 3 * bytes as u64 + size) / 2;
            for (power, low, places) in continuation_spans(number, bytes, scale.places) {
                if number.part == NumberPart::Integer && !can(power) {
                    continue;
                }
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    return Ok(bytes);
                }
                let known = bounds
                    .and_then(|bounds| bounds.has_decimal(number.negative, (&low, power), places));
                if let Some(known) = known {
                    budget.steps_of(1)?;
                    if known {
                        return Ok(bytes);
                    }
                    continue;
                }
                budget.steps_of(cost)?;
                let span = [&low, &(&low + 1u32)].map(|at| Decimal::new(at.clone(), power));
                match self.has_number_in(id, number.negative, span, places) {
                    Ok(false) => {}
                    Ok(true) | Err(Error::Limit { .. }) => return Ok(bytes),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(least)
    }

    /// Returns `true` if a formula holds for some number in a range of magnitudes, written with
    /// `places` decimals; with none it has no decimal point.
    fn has_number_in(
        &mut self,
        id: FormulaId,
        negative: bool,
        [low, high]: [Decimal; 2],
        places: u32,
    ) -> Result<bool, Error> {
        let within = NumberInterval { low: Some((low, true)), high: Some((high, false)) };
        let within = if negative { within.mirrored() } else { within };
        if places == 0 {
            return Ok(self.base.numbers(id).find_spelled(&within, true)?.is_some());
        }
        let unit = Decimal::new(BigInt::from(1), -i64::from(places));
        let unit = self.base.formulas.atom(FormulaAtom::MultipleOf(unit));
        let id = self.base.formulas.both(id, unit);
        Ok(self.base.numbers(id).find_spelled(&within, false)?.is_some())
    }

    /// Returns a bound on the characters before the decimal point of a number that satisfies a
    /// formula; with `other`, of one that is not zero.
    fn min_integer_digits(&self, id: FormulaId, other: bool) -> usize {
        if self.options.allow_exponents {
            return 0;
        }
        self.min_integer_digits_within(id, other, &mut CompactMap::default())
    }

    fn min_integer_digits_within(
        &self,
        id: FormulaId,
        other: bool,
        known: &mut CompactMap<FormulaId, usize>,
    ) -> usize {
        let is_small = self.base.formulas.is_small(id);
        if !is_small && let Some(&known) = known.get(&id) {
            return known;
        }
        let mut of = |one: &FormulaId| self.min_integer_digits_within(*one, other, known);
        let least =
            match self.base.formulas.get(id) {
                Formula::And(list) => list.iter().map(&mut of).max().unwrap_or(0),
                Formula::Or(list) | Formula::ExactlyOne(list) => {
                    list.iter().map(&mut of).min().unwrap_or(0)
                }
                Formula::Atom(FormulaAtom::AtLeast(bound) | FormulaAtom::GreaterThan(bound))
                    if !bound.is_negative() =>
                {
                    bound.integer_digits()
                }
                Formula::Atom(FormulaAtom::MultipleOf(unit)) if other => unit.integer_digits(),
                Formula::Atom(FormulaAtom::EqualTo(value)) => {
                    usize::from(value.is_negative()) + value.integer_digits()
                }
                Formula::Not(inner) => match self.base.formulas.get(*inner) {
                    Formula::Atom(
                        FormulaAtom::AtLeast(bound) | FormulaAtom::GreaterThan(bound),
                    ) if bound.is_negative() => 1 + bound.integer_digits(),
                    _ => 0,
                },
                _ => 0,
            };
        if !is_small {
            known.insert(id, least);
        }
        least
    }
}
