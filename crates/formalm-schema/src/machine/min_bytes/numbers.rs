//! Lower bounds on the bytes that complete a number, also one for which further formulas hold.

use formalm_core::{CompactMap, Error};
use num_bigint::BigInt;
use num_traits::Zero;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::machine::frame::{NumberPart, NumberPrefix, NumberPrefixId, ObligationId};
use crate::machine::min_bytes::containers::{ChildBound, UNREACHABLE};
use crate::machine::min_bytes::{BoundCache, SearchBudget};
use crate::machine::numbers::NumberPlan;
use crate::machine::numbers::viability::NumberQuery;
use crate::machine::values::Values;
use crate::solver::NumberInterval;
use crate::solver::context::SolverContext;

/// Maximum number of spans that are tested for one number. Chosen, not measured.
const MAX_SPANS: usize = 200;

/// Search steps charged for testing one span. Chosen, not measured.
const STEPS_PER_SPAN: u64 = 16;

impl BoundCache {
    /// Returns the bounds of a number that has begun.
    pub(crate) fn number_bounds(
        &mut self,
        values: &mut Values,
        obligation: ObligationId,
        digits: NumberPrefixId,
        budget: &mut SearchBudget,
    ) -> Result<ChildBound, Error> {
        if let Some(known) = self.number_bounds.get(&(obligation, digits)) {
            return Ok(known.clone());
        }
        let required = values.residuals.get(obligation).clone();
        let number = values.numbers.get(digits).clone();
        let ends = values.number_end(obligation, digits).is_some();
        let plan = values.numbers.plan(&mut values.core, &values.residuals, obligation);
        let total = required.total(&mut values.core);
        let more = required.formulas[1..].iter().copied();
        let mut least = [TRUE].into_iter().chain(more).map(|wanted| {
            if !NumberQuery::new(&mut values.core, wanted, &number).is_viable()? {
                return Ok(UNREACHABLE);
            }
            if ends && number.satisfies(&values.core.base.formulas, wanted) {
                return Ok(0);
            }
            let wanted = values.core.base.formulas.both(wanted, total);
            let integer_chars = match values.core.options.allow_exponents {
                true => 0,
                false => IntegerDigits::new(&values.core.base.formulas, !number.digits.is_zero())
                    .of(wanted),
            };
            let least = missing_integer_chars(integer_chars, &number);
            MissingDigits { core: &mut values.core, number: &number, plan: &plan, budget }
                .least_bytes(wanted, least.max(1))
        });
        let must = least.next().unwrap_or(Ok(0))?;
        let found = ChildBound { must, verdicts: least.collect::<Result<Vec<_>, Error>>()? };
        self.number_bounds.insert((obligation, digits), found.clone());
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

/// A bound on the bytes that complete one number.
struct MissingDigits<'a> {
    core: &'a mut SolverContext,
    number: &'a NumberPrefix,
    plan: &'a NumberPlan,
    budget: &'a mut SearchBudget,
}

impl MissingDigits<'_> {
    /// Returns a bound on the bytes missing from a number that satisfies a formula, at least
    /// `least`. Exact except with exponents and after [`MAX_SPANS`] spans.
    fn least_bytes(&mut self, id: FormulaId, least: usize) -> Result<usize, Error> {
        if self.core.options.allow_exponents || self.number.sticky || id == TRUE || id == FALSE {
            return Ok(least);
        }
        let mut tries = MAX_SPANS;
        let (scale, bounds) = (&self.plan.scale, self.plan.intervals_of(id));
        let most = scale.reach as usize + scale.places as usize + 2;
        let read = decimal_length(&self.number.digits);
        // For an integer part, only digit counts that some solution has are tried.
        let counts = match self.number.part {
            NumberPart::Integer => {
                self.core.base.formulas.possible_digit_counts(id, self.number.negative, read + most)
            }
            _ => Vec::new(),
        };
        let can = |more: i64| {
            let digits = usize::try_from(more).map_or(0, |more| read + more);
            counts.get(digits).is_none_or(|&can| can)
        };
        for bytes in least..least.max(1) + most {
            // Arithmetic on large numbers takes longer.
            let size = u64::from(self.core.base.formulas.size(id));
            let cost = STEPS_PER_SPAN + (self.number.digits.bits() + 3 * bytes as u64 + size) / 2;
            for (power, low, places) in continuation_spans(self.number, bytes, scale.places) {
                if self.number.part == NumberPart::Integer && !can(power) {
                    continue;
                }
                tries = tries.saturating_sub(1);
                if tries == 0 {
                    return Ok(bytes);
                }
                let known = bounds.and_then(|bounds| {
                    bounds.has_decimal(self.number.negative, (&low, power), places)
                });
                if let Some(known) = known {
                    self.budget.steps_of(1)?;
                    if known {
                        return Ok(bytes);
                    }
                    continue;
                }
                self.budget.steps_of(cost)?;
                let span = [&low, &(&low + 1u32)].map(|at| Decimal::new(at.clone(), power));
                match self.has_number_in(id, span, places) {
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
        [low, high]: [Decimal; 2],
        places: u32,
    ) -> Result<bool, Error> {
        let within = NumberInterval { low: Some((low, true)), high: Some((high, false)) };
        let within = if self.number.negative { within.mirrored() } else { within };
        if places == 0 {
            return Ok(self.core.base.numbers(id).find_spelled(&within, true)?.is_some());
        }
        let unit = Decimal::new(BigInt::from(1), -i64::from(places));
        let unit = self.core.base.formulas.atom(FormulaAtom::MultipleOf(unit));
        let id = self.core.base.formulas.both(id, unit);
        Ok(self.core.base.numbers(id).find_spelled(&within, false)?.is_some())
    }
}

/// A bound on the characters before the decimal point of a number that satisfies a formula.
struct IntegerDigits<'a> {
    formulas: &'a FormulaArena,
    /// Set if the number is not zero.
    is_nonzero: bool,
    known: CompactMap<FormulaId, usize>,
}

impl<'a> IntegerDigits<'a> {
    fn new(formulas: &'a FormulaArena, is_nonzero: bool) -> IntegerDigits<'a> {
        IntegerDigits { formulas, is_nonzero, known: CompactMap::default() }
    }

    /// Returns the bound for a formula.
    fn of(&mut self, id: FormulaId) -> usize {
        let formulas = self.formulas;
        let is_small = formulas.is_small(id);
        if !is_small && let Some(&known) = self.known.get(&id) {
            return known;
        }
        let least =
            match formulas.get(id) {
                Formula::And(list) => list.iter().map(|&one| self.of(one)).max().unwrap_or(0),
                Formula::Or(list) | Formula::ExactlyOne(list) => {
                    list.iter().map(|&one| self.of(one)).min().unwrap_or(0)
                }
                Formula::Atom(FormulaAtom::AtLeast(bound) | FormulaAtom::GreaterThan(bound))
                    if !bound.is_negative() =>
                {
                    bound.integer_digits()
                }
                Formula::Atom(FormulaAtom::MultipleOf(unit)) if self.is_nonzero => {
                    unit.integer_digits()
                }
                Formula::Atom(FormulaAtom::EqualTo(value)) => {
                    usize::from(value.is_negative()) + value.integer_digits()
                }
                Formula::Not(inner) => match formulas.get(*inner) {
                    Formula::Atom(
                        FormulaAtom::AtLeast(bound) | FormulaAtom::GreaterThan(bound),
                    ) if bound.is_negative() => 1 + bound.integer_digits(),
                    _ => 0,
                },
                _ => 0,
            };
        if !is_small {
            self.known.insert(id, least);
        }
        least
    }
}
