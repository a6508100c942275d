//! Numbers, digit by digit.

use std::sync::Arc;

use formalm_automata::Error;
use num_bigint::BigInt;

use super::bounds::Bounds;
use super::frame::{Digits, DigitsId, Frame, OwesId, Part, Place, TruthsId};
use super::{Grown, Recorded};
use crate::core::Core;
use crate::decimal::Decimal;
use crate::formula::{Atom, F, FALSE, TRUE};
use crate::solve::{Interval, Scale, holds_for};

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

    pub(super) fn is_whole(&self) -> bool {
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
    pub(super) fn number_ends(&self, id: F, digits: &Digits) -> bool {
        digits.can_end()
            && (id == TRUE || {
                let value = digits.value();
                self.formulas.holds(id, &mut |atom| holds_for(atom, &value, digits.is_whole()))
            })
    }

    /// Whether some number that begins so satisfies a formula.
    pub(super) fn number_viable(&mut self, id: F, digits: &Digits) -> Result<bool, Error> {
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
                for reach in 0..=scale.reach {
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

/// Whether a byte may be part of a number.
pub(super) fn is_part(byte: u8) -> bool {
    byte.is_ascii_digit() || b"+-.eE".contains(&byte)
}

impl Grown {
    /// The place after a byte of a number, or after the number.
    pub(super) fn read_number(
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
    pub(super) fn digits_after(
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

    /// The truths of a number that ends here; `None` if it cannot.
    pub(super) fn number_end(&mut self, owes: OwesId, digits: DigitsId) -> Option<TruthsId> {
        if let Some(&known) = self.known.number_ends.get(&(owes, digits)) {
            return known;
        }
        let number = self.parts.digits.get(digits.0).clone();
        let owed = self.parts.owes.get(owes.0).clone();
        let plan = self.number_plan(owes);
        let bounds = plan.bounds.as_ref().filter(|_| !self.core.options.exponents);
        let within = bounds.and_then(|bounds| bounds.holds(&number));
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
pub(super) struct Plan {
    total: F,
    /// Nothing is asked.
    free: bool,
    /// The number matters for what must hold only.
    alone: bool,
    pub(super) scale: Scale,
    bounds: Option<Bounds>,
}

impl Grown {
    pub(super) fn number_plan(&mut self, owes: OwesId) -> Arc<Plan> {
        if let Some(known) = self.known.numbers.get(&owes) {
            return Arc::clone(known);
        }
        let owed = self.parts.owes.get(owes.0).clone();
        let total = self.core.total(&owed);
        let mut atoms = self.core.atoms(total);
        owed.formulas.iter().for_each(|&id| atoms.extend(self.core.atoms(id)));
        let constant = |id: &F| *id == TRUE || *id == FALSE;
        let scale = Scale::new(&atoms);
        let bounds = Bounds::new(&self.core.formulas, total, scale.places);
        let plan = Arc::new(Plan {
            total,
            free: owed.formulas.iter().all(constant),
            alone: owed.formulas.iter().skip(1).all(constant),
            scale,
            bounds,
        });
        self.known.numbers.insert(owes, Arc::clone(&plan));
        plan
    }

    /// The number that stands for all that go on alike.
    fn representative(&mut self, owes: OwesId, plan: &Plan, digits: Digits) -> Digits {
        let folds = plan.alone && !plan.free && !self.core.options.exponents;
        let bounds = plan.bounds.as_ref().filter(|_| folds);
        match bounds.and_then(|bounds| bounds.shape(&digits)) {
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
        let known = plan.bounds.as_ref().and_then(|bounds| bounds.viable(&digits));
        let viable = match known {
            Some(known) if !plan.free && !self.options.exponents => known,
            _ => self.number_goes_on(plan.total, &digits, &plan.scale)?,
        };
        Ok(viable.then_some(digits))
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::*;
    use crate::decimal::power;
    use crate::document::Document;
    use crate::machine::bounds::Shape;
    use crate::options::{Limits, Options};
    use crate::read;

    /// Every text of up to four characters, against the search and against all completions.
    #[test]
    fn bounds_decide_as_the_search_does() {
        let ends = [None, Some("-3"), Some("0.5"), Some("17")];
        let document = Document::read("true").unwrap();
        let schema = read::read(&document, &[], Options::default()).unwrap();
        let mut core = Core::new(schema, Options::default(), Limits::default());
        let decimal = |text: &str| Decimal::parse(text).unwrap();
        for low in ends {
            for high in ends {
                for open in 0..4 {
                    let units = [None, Some("1"), Some("0.5"), Some("0.1"), Some("4"), Some("30")];
                    let ways = units.map(|unit| [(unit, false), (unit, true)]);
                    for (unit, whole) in ways.into_iter().flatten() {
                        for more in 0..4 {
                            let mut all = Vec::new();
                            let pair = [low.map(decimal), high.map(decimal)];
                            if let Some(low) = pair[0].clone() {
                                let above = Atom::Above(low.clone());
                                let atom = if open & 1 != 0 { above } else { Atom::Least(low) };
                                all.push(core.formulas.atom(atom));
                            }
                            if let Some(high) = pair[1].clone() {
                                let least = Atom::Least(high.clone());
                                let atom = if open & 2 != 0 { least } else { Atom::Above(high) };
                                let atom = core.formulas.atom(atom);
                                all.push(core.formulas.not(atom));
                            }
                            if let Some(unit) = unit {
                                all.push(core.formulas.atom(Atom::Multiple(decimal(unit))));
                            }
                            if whole {
                                all.push(core.formulas.atom(Atom::Whole));
                            }
                            let mut listed = |list: &[&str]| {
                                let list = list.iter().map(|one| Atom::Equal(decimal(one)));
                                let list = list.map(|one| core.formulas.atom(one)).collect();
                                core.formulas.or(list)
                            };
                            if more & 1 != 0 {
                                all.push(listed(&["3", "0.5", "17", "-3"]));
                            }
                            if more & 2 != 0 {
                                let other = listed(&["7", "17", "-1", "0"]);
                                all.push(core.formulas.not(other));
                            }
                            let total = core.formulas.and(all);
                            agrees(&mut core, total);
                        }
                    }
                }
            }
        }
    }

    fn agrees(core: &mut Core, total: F) {
        let scale = Scale::new(&core.atoms(total));
        if total == FALSE {
            return;
        }
        let bounds = Bounds::new(&core.formulas, total, scale.places).unwrap();
        let free = total == TRUE;
        let mut shapes: FxHashMap<(bool, Shape), Vec<bool>> = FxHashMap::default();
        let mut open: Vec<(Digits, u32)> =
            b"-0173".iter().map(|&one| (Digits::first(one), 1)).collect();
        while let Some((digits, length)) = open.pop() {
            core.steps = 0;
            let found = core.number_viable(total, &digits).unwrap();
            assert_eq!(bounds.viable(&digits), Some(found), "{digits:?} {bounds:?}");
            if !found || length == 3 {
                continue;
            }
            let ends = core.number_ends(total, &digits);
            assert!(
                bounds.holds(&digits).is_none_or(|holds| holds == ends),
                "{digits:?} {bounds:?}"
            );
            let mut futures = vec![ends];
            for byte in *b"0123456789." {
                let next = digits
                    .part_after(byte, free)
                    .map(|part| digits.clone().after(part, byte, &scale));
                let viable = match &next {
                    Some(next) => core.number_viable(total, next).unwrap(),
                    None => false,
                };
                futures.push(viable);
                open.extend(next.filter(|_| viable).map(|next| (next, length + 1)));
            }
            if let Some(shape) = bounds.shape(&digits) {
                let known =
                    shapes.entry((digits.negative, shape)).or_insert_with(|| futures.clone());
                assert_eq!(*known, futures, "{digits:?} {bounds:?}");
            }
        }
    }

    #[test]
    fn whole_parts_fold_above_every_bound() {
        let bound = Decimal::integer(100);
        let unit = Decimal::integer(7);
        let scale = Scale::new(&[Atom::Least(bound), Atom::Multiple(unit)]);
        for whole in 0..2000u32 {
            let folded = scale.fold(BigInt::from(whole));
            assert_eq!(&folded % 7u32, BigInt::from(whole % 7));
            assert_eq!(folded > BigInt::from(100), whole > 100);
            assert!(folded < power(3));
        }
    }
}
