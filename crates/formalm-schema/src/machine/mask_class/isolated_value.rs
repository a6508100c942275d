//! Values read by themselves: what a token does inside of one does not depend on what is around it.
//!
//! A value is put into an array of which nothing is asked. It has ended where that array stands
//! behind its item.

use formalm_automata::{ByteSet, Ended, Error, KeyId};

use crate::core::Core;
use crate::decimal::Decimal;
use crate::formula::{Atom, F, FALSE, TRUE};
use crate::machine::frame::{DONE, Digits, Frame, FrameId, Mode, Owes, OwesId, Place};
use crate::machine::mask_class::lookahead::Looking;
use crate::machine::numbers::is_part;
use crate::machine::reader::cache::NO_TRUTHS;
use crate::machine::{Grown, UNRECORDED};
use crate::node::Type;

/// Marks numbers that are whole, beside the bits of types.
const WHOLE: u8 = 1 << 7;

impl Looking<'_> {
    /// The innermost value that a key is in, in an array of which nothing is asked.
    pub(crate) fn apart(&mut self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let Place { mut frame, record } = self.place(key);
        let grown = &mut self.grown;
        let Some((owes, below)) = value_in(&mut frame) else { return Ok(None) };
        if record != UNRECORDED || *below == DONE || !grown.stands_apart(owes, *below) {
            return Ok(None);
        }
        let around = grown.around();
        if *below == around {
            return Ok(None);
        }
        *below = around;
        self.key(Place { frame, record }).map(Some)
    }

    /// What such a value is, where nothing is asked of it but its types, and of numbers that they
    /// are whole.
    pub(crate) fn common(&mut self, key: KeyId) -> Option<u64> {
        let frame = self.place(key).frame;
        let grown = &mut self.grown;
        let (types, blanks, digits) = match frame {
            Frame::Value { owes, blanks, .. } => (grown.common_types(owes)?, blanks, 0),
            Frame::Number { owes, digits, .. } => {
                (grown.common_number(owes)?, 0, packed(grown.parts.digits.get(digits.0))?)
            }
            _ => return None,
        };
        let options = &grown.core.options;
        let policies = (options.escapes as u64) << 1 | u64::from(options.exponents);
        let blanks = u64::from(blanks) << 8 | u64::from(options.blanks);
        Some(((digits << 19 | blanks) << 3 | policies) << 8 | u64::from(types))
    }

    /// Whether a value in such an array has ended.
    pub(crate) fn ended(&mut self, key: KeyId) -> Result<Ended, Error> {
        let frame = self.place(key).frame;
        let grown = &mut self.grown;
        let around = grown.around();
        Ok(match frame {
            Frame::Array { mode: Mode::After, below: DONE, .. } => {
                let ended = grown.close(around, NO_TRUTHS, UNRECORDED)?;
                if ended.is_some_and(|ended| ended.frame == frame) { Ended::Yes } else { Ended::No }
            }
            Frame::Number { owes, digits, below } if below == around => {
                match grown.number_end(owes, digits) {
                    Some(_) => Ended::May(number_bytes()),
                    None => Ended::No,
                }
            }
            _ => Ended::No,
        })
    }

    /// The key behind the innermost value.
    pub(crate) fn behind(&mut self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let Place { mut frame, record } = self.place(key);
        let Some((_, &mut below)) = value_in(&mut frame) else { return Ok(None) };
        let Some(after) = self.grown.close(below, NO_TRUTHS, record)? else { return Ok(None) };
        let after = self.grown.normal(after)?;
        self.key(after).map(Some)
    }
}

/// What the value of a frame owes, and what it is in.
fn value_in(frame: &mut Frame) -> Option<(OwesId, &mut FrameId)> {
    match frame {
        Frame::Value { owes, below, .. }
        | Frame::Number { owes, below, .. }
        | Frame::Object { owes, below, .. }
        | Frame::Array { owes, from: 0, below, .. } => Some((*owes, below)),
        _ => None,
    }
}

/// Numbers that begin as one of few digits, each as a number other than zero.
fn packed(digits: &Digits) -> Option<u64> {
    let &Digits { negative, part, ref digits, places, more, power, divides } = digits;
    let whole = u8::try_from(digits).ok()?;
    let (places, power) = (u8::try_from(places).ok()?, u8::try_from(power).ok()?);
    let small = [whole, places, power].into_iter().fold(1, |all, one| all << 8 | u64::from(one));
    let flags = [negative, more, divides].into_iter().fold(0, |all, one| all << 1 | u64::from(one));
    Some((small << 3 | flags) << 4 | part as u64)
}

/// Bytes that numbers have.
fn number_bytes() -> ByteSet {
    let mut set = ByteSet::default();
    (0..=0x7F).filter(|&byte| is_part(byte)).for_each(|byte| set.insert(byte));
    set
}

impl Grown {
    /// The types of a value of which nothing else is asked, as bits; the last is whether its numbers
    /// are whole.
    fn common_types(&mut self, owes: OwesId) -> Option<u8> {
        if let Some(&known) = self.known.common.get(&owes) {
            return known;
        }
        let mut is_late = false;
        let types = Type::ALL.into_iter().try_fold(0, |types, of| {
            let formula = self.only_formula(owes)?;
            self.core.steps = 0;
            let formula = self.core.of_type(formula, of);
            let Ok(formula) = formula else {
                // Whoever needs it will be told.
                self.core.answers.abandon();
                is_late = matches!(formula, Err(Error::Deadline { .. }));
                return None;
            };
            match formula {
                FALSE => Some(types),
                TRUE => Some(types | 1 << of as u8),
                formula if of == Type::Number && formula == self.core.whole_number() => {
                    Some(types | 1 << of as u8 | WHOLE)
                }
                _ => None,
            }
        });
        if !is_late {
            self.known.common.insert(owes, types);
        }
        types
    }

    /// The same of a number that has begun.
    fn common_number(&mut self, owes: OwesId) -> Option<u8> {
        match self.only_formula(owes)? {
            TRUE => Some(0),
            formula if formula == self.core.whole_number() => Some(WHOLE),
            _ => None,
        }
    }

    /// What is owed, where it is one formula and nothing else.
    fn only_formula(&self, owes: OwesId) -> Option<F> {
        let owed = self.parts.owes.get(owes.0);
        let [formula] = *owed.formulas else { return None };
        (owed.goal == TRUE).then_some(formula)
    }

    /// Whether a value is the same in any place: nothing asks it for truths, and neither its depth
    /// nor that of anything which a token opens in it matters.
    fn stands_apart(&self, owes: OwesId, below: FrameId) -> bool {
        let (options, limits) = (&self.core.options, &self.core.limits);
        let deepest = u64::from(self.depth(below)) + self.horizon as u64 + 2;
        options.layout.is_none()
            && options.depth == u32::MAX
            && deepest <= u64::from(limits.nesting)
            && self.parts.owes.get(owes.0).asked.is_empty()
    }

    /// An array of which nothing is asked, in which an item is read.
    fn around(&mut self) -> FrameId {
        if let Some(known) = self.known.around {
            return known;
        }
        let owes = Owes { formulas: [TRUE].into(), asked: [].into(), goal: TRUE };
        let owes = self.parts.owes(owes);
        let (blanks, mode) = (self.gap_start(), Mode::Inside);
        let around = self.frame(Frame::Array { owes, mode, blanks, from: 0, below: DONE });
        self.known.around = Some(around);
        around
    }
}

impl Core {
    /// That a number is whole.
    fn whole_number(&mut self) -> F {
        self.formulas.atom(Atom::Multiple(Decimal::integer(1)))
    }
}
