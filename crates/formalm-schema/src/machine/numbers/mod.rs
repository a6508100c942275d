//! Numbers, digit by digit.

pub(crate) mod exponents;
pub(crate) mod interval_sets;
pub(crate) mod intervals;
pub(crate) mod modular_sets;

use std::sync::Arc;

use formalm_automata::Error;
use num_bigint::BigInt;

use crate::core::Core;
use crate::decimal::Decimal;
use crate::formula::{Atom, F, FALSE, TRUE};
use crate::machine::frame::{Digits, DigitsId, Frame, OwesId, Part, Place, TruthsId};
use crate::machine::min_bytes::numbers::length;
use crate::machine::numbers::interval_sets::{Bounds, Shape};
use crate::machine::numbers::modular_sets::Periods;
use crate::machine::{Grown, Recorded};
use crate::solve::{Interval, Scale, holds_for};

/// Digits of a whole part that are tried one after the other.
const FEW_DIGITS: u32 = 8;

impl Digits {
    fn value(&self) -> Decimal {
        let (digits, places) = match self.more {
            true => (&self.digits * 10u32 + 5u32, self.places + 1),
            false => (self.digits.clone(), self.places),
        };
        let power = i64::from(self.power);
        let power = if self.divides { -power } else { power };
        let value = Decimal::new(digits, power - i64::from(places));
        if self.negative { value.negated() } else { value }
    }

    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.part, Part::Zero | Part::Whole)
    }

    /// Whether a number may end here.
    fn can_end(&self) -> bool {
        matches!(self.part, Part::Zero | Part::Whole | Part::Fraction | Part::Power)
    }

    /// The part after a byte; `None` if no number goes on so.
    fn part_after(&self, byte: u8, exponents: bool) -> Option<Part> {
        Some(match (self.part, byte) {
            (Part::Minus, b'0') => Part::Zero,
            (Part::Minus | Part::Whole, b'0'..=b'9') => Part::Whole,
            (Part::Zero | Part::Whole, b'.') => Part::Point,
            (Part::Point | Part::Fraction, b'0'..=b'9') => Part::Fraction,
            (Part::Zero | Part::Whole | Part::Fraction, b'e' | b'E') if exponents => Part::Exponent,
            (Part::Exponent, b'+' | b'-') => Part::Sign,
            (Part::Exponent | Part::Sign | Part::Power, b'0'..=b'9') => Part::Power,
            _ => return None,
        })
    }

    /// The number with one more byte, up to what the scale can tell apart.
    fn after(mut self, part: Part, byte: u8, scale: &Scale) -> Digits {
        self.part = part;
        let digit = BigInt::from(byte.wrapping_sub(b'0'));
        match part {
            Part::Whole => self.digits = scale.fold(self.digits * 10u32 + digit),
            Part::Fraction if self.places < scale.places => {
                self.digits = self.digits * 10u32 + digit;
                self.places += 1;
            }
            Part::Fraction => self.more |= byte != b'0',
            _ => {}
        }
        self
    }
}

impl Core {
    /// Whether a number satisfies a formula if it ends here.
    pub(crate) fn number_ends(&self, id: F, digits: &Digits) -> bool {
        digits.can_end()
            && (id == TRUE || {
                let value = digits.value();
                self.formulas.holds(id, &mut |atom| holds_for(atom, &value, digits.is_whole()))
            })
    }

    /// Whether some number that begins so satisfies a formula.
    pub(crate) fn number_viable(&mut self, id: F, digits: &Digits) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        if self.number_ends(id, digits) {
            return Ok(true);
        }
        let atoms = self.atoms(id);
        let sided = |interval: Interval| {
            if digits.negative { interval.mirrored() } else { interval }
        };
        let between = |low: &BigInt, high: &BigInt, places: i64| {
            let end = |at: &BigInt| Decimal::new(at.clone(), -places);
            sided(Interval { low: Some((end(low), true)), high: Some((end(high), false)) })
        };
        match digits.part {
            Part::Minus => {
                let within = sided(Interval { low: Some((Decimal::integer(0), true)), high: None });
                Ok(self.number_within(id, &within)?.is_some())
            }
            Part::Whole => {
                let scale = Scale::new(&atoms);
                let written_whole = atoms.contains(&Atom::Whole);
                let above = &digits.digits + 1u32;
                for reach in self.reaches(id, digits, &scale) {
                    self.steps_of((digits.digits.bits() / 256) as usize)?;
                    let within = between(&digits.digits, &above, -i64::from(reach));
                    if self.number_written(id, &within, false)?.is_some()
                        || (written_whole && self.number_written(id, &within, true)?.is_some())
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Part::Zero | Part::Point | Part::Fraction => {
                if digits.more {
                    return Ok(false);
                }
                let places = i64::from(digits.places);
                let within = between(&digits.digits, &(&digits.digits + 1u32), places);
                Ok(self.number_written(id, &within, false)?.is_some())
            }
            Part::Exponent | Part::Sign | Part::Power => Ok(false),
        }
    }
}

impl Core {
    /// How many more digits the whole part can have.
    fn reaches(&self, id: F, digits: &Digits, scale: &Scale) -> Vec<u32> {
        if scale.reach <= FEW_DIGITS {
            return (0..=scale.reach).collect();
        }
        let read = length(&digits.digits);
        let counts = self.digit_counts(id, digits.negative, read + scale.reach as usize);
        let can = |reach: &u32| counts.get(read + *reach as usize).is_some_and(|&can| can);
        (0..=scale.reach).filter(can).collect()
    }
}

/// Whether a byte may be part of a number.
pub(crate) fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

impl Grown {
    /// The place after a byte of a number, or after the number.
    pub(crate) fn read_number(
        &mut self,
        frame: Frame,
        byte: u8,
        record: Recorded,
        grown: Recorded,
    ) -> Result<Option<Place>, Error> {
        let Frame::Number { owes, digits, below } = frame else { return Ok(None) };
        if is_part(byte) {
            let digits = self.digits_after(owes, Some(digits), byte)?;
            return Ok(digits.map(|digits| Place {
                frame: Frame::Number { owes, digits, below },
                record: grown,
            }));
        }
        let Some(truths) = self.number_end(owes, digits) else { return Ok(None) };
        // The byte belongs to what is around the number.
        match self.close(below, truths, record)? {
            Some(around) => self.read(around, byte),
            None => Ok(None),
        }
    }

    /// A number after one more byte; `None` if no number that is owed goes on so.
    pub(crate) fn digits_after(
        &mut self,
        owes: OwesId,
        digits: Option<DigitsId>,
        byte: u8,
    ) -> Result<Option<DigitsId>, Error> {
        if let Some(&known) = self.known.digits.get(&(owes, digits, byte)) {
            return Ok(known);
        }
        let before = digits.map(|digits| self.parts.digits.get(digits.0).clone());
        let plan = self.number_plan(owes);
        let after = self.core.digits_after(&plan, before, byte)?;
        let after = after.map(|digits| self.representative(owes, &plan, digits));
        let after = after.map(|digits| self.parts.digits(digits));
        self.known.digits.insert((owes, digits, byte), after);
        Ok(after)
    }

    /// Whether the whole part of a number may go on with any digits, however many.
    pub(crate) fn any_digits(&mut self, frame: Frame) -> bool {
        let Frame::Number { owes, digits, .. } = frame else { return false };
        let plan = self.number_plan(owes);
        let digits = self.parts.digits.get(digits.0);
        matches!(&plan.sets, Some(Sets::Bounds(bounds)) if bounds.any_digits(digits))
    }

    /// The truths of a number that ends here; `None` if it cannot.
    pub(crate) fn number_end(&mut self, owes: OwesId, digits: DigitsId) -> Option<TruthsId> {
        if let Some(&known) = self.known.number_ends.get(&(owes, digits)) {
            return known;
        }
        let number = self.parts.digits.get(digits.0).clone();
        let owed = self.parts.owes.get(owes.0).clone();
        let plan = self.number_plan(owes);
        let within = plan.sets.as_ref().and_then(|sets| sets.holds(&number));
        let ends = match within {
            Some(within) => within,
            None => self.core.number_ends(plan.total, &number),
        };
        let ends = ends.then(|| {
            let all = owed.formulas.iter().skip(1);
            let truths: Vec<bool> = all.map(|&id| self.core.number_ends(id, &number)).collect();
            self.parts.truths(&truths)
        });
        self.known.number_ends.insert((owes, digits), ends);
        ends
    }
}

/// What is asked of a number.
#[derive(Debug)]
pub(crate) struct Plan {
    total: F,
    /// Nothing is asked.
    free: bool,
    /// The number matters for what must hold only.
    alone: bool,
    pub(crate) scale: Scale,
    /// None where exponents may be written.
    sets: Option<Sets>,
}

/// The numbers that will do, where no search is needed.
#[derive(Debug)]
enum Sets {
    Bounds(Bounds),
    Periods(Periods),
}

impl Plan {
    /// The numbers of which a formula holds, if that is what is asked and they are told by bounds.
    pub(crate) fn bounds_of(&self, id: F) -> Option<&Bounds> {
        match &self.sets {
            Some(Sets::Bounds(bounds)) if id == self.total => Some(bounds),
            _ => None,
        }
    }
}

impl Sets {
    fn new(core: &Core, total: F, scale: &Scale) -> Option<Sets> {
        if let Some(bounds) = Bounds::new(&core.formulas, total, scale.places) {
            return Some(Sets::Bounds(bounds));
        }
        let atoms = core.atoms(total);
        Periods::new(&core.formulas, total, &atoms, scale.places).map(Sets::Periods)
    }

    fn viable(&self, digits: &Digits) -> Option<bool> {
        match self {
            Sets::Bounds(bounds) => bounds.viable(digits),
            Sets::Periods(periods) => periods.viable(digits),
        }
    }

    fn holds(&self, digits: &Digits) -> Option<bool> {
        match self {
            Sets::Bounds(bounds) => bounds.holds(digits),
            Sets::Periods(periods) => periods.holds(digits),
        }
    }

    fn shape(&self, digits: &Digits) -> Option<Shape> {
        match self {
            Sets::Bounds(bounds) => bounds.shape(digits),
            Sets::Periods(_) => None,
        }
    }
}

impl Grown {
    pub(crate) fn number_plan(&mut self, owes: OwesId) -> Arc<Plan> {
        if let Some(known) = self.known.numbers.get(&owes) {
            return Arc::clone(known);
        }
        let owed = self.parts.owes.get(owes.0).clone();
        let total = self.core.total(&owed);
        let constant = |id: &F| *id == TRUE || *id == FALSE;
        let all: Vec<F> = owed.formulas.iter().copied().chain([total]).collect();
        let scale = Scale::new(self.core.atoms_of(&all));
        let plain = !self.core.options.exponents;
        let sets = plain.then(|| Sets::new(&self.core, total, &scale)).flatten();
        let plan = Arc::new(Plan {
            total,
            free: owed.formulas.iter().all(constant),
            alone: owed.formulas.iter().skip(1).all(constant),
            scale,
            sets,
        });
        self.known.numbers.insert(owes, Arc::clone(&plan));
        plan
    }

    /// The number that stands for all that go on alike.
    fn representative(&mut self, owes: OwesId, plan: &Plan, digits: Digits) -> Digits {
        let folds = plan.alone && !plan.free;
        let sets = plan.sets.as_ref().filter(|_| folds);
        match sets.and_then(|sets| sets.shape(&digits)) {
            Some(shape) => {
                let key = (owes, digits.negative, shape);
                if let Some(known) = self.known.alike.get(&key) {
                    return known.clone();
                }
                self.known.alike.insert(key, digits.clone());
                digits
            }
            None => digits,
        }
    }
}

impl Core {
    fn digits_after(
        &mut self,
        plan: &Plan,
        before: Option<Digits>,
        byte: u8,
    ) -> Result<Option<Digits>, Error> {
        let digits = match before {
            None if plan.free => Digits::first(byte).forgotten(),
            None => Digits::first(byte),
            Some(digits) => {
                let exponents = plan.free || self.options.exponents;
                let Some(part) = digits.part_after(byte, exponents) else { return Ok(None) };
                if plan.free {
                    Digits { part, ..digits }
                } else if exponents {
                    digits.exactly_after(part, byte, &plan.scale)?
                } else {
                    digits.after(part, byte, &plan.scale)
                }
            }
        };
        let known = plan.sets.as_ref().and_then(|sets| sets.viable(&digits));
        let viable = match known {
            Some(known) if !plan.free => known,
            _ => self.number_goes_on(plan.total, &digits, &plan.scale)?,
        };
        Ok(viable.then_some(digits))
    }
}

#[cfg(test)]
mod tests;
