//! Values read by themselves: what a token does inside of one does not depend on what is around it.
//!
//! A value is put into an array of which nothing is asked. It has ended where that array stands
//! behind its item.

use formalm_automata::{ByteSet, Ended, Error, KeyId};

use crate::core::Core;
use crate::decimal::Decimal;
use crate::formula::{Atom, F, FALSE, TRUE};
use crate::machine::frame::{
    ContainerState, DONE, Frame, FrameId, NumberPrefix, ObligationId, Owes, Position,
};
use crate::machine::mask_class::lookahead::LookaheadState;
use crate::machine::numbers::is_number_byte;
use crate::machine::reader::cache::NO_VERDICTS;
use crate::machine::{LazyTables, NO_RECORD};
use crate::node::Type;

/// Marks numbers that are whole, beside the bits of types.
const INTEGER_BIT: u8 = 1 << 7;

impl LookaheadState<'_> {
    /// The innermost value that a key is in, in an array of which nothing is asked.
    pub(crate) fn isolated(&mut self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let Position { mut frame, record } = self.position(key);
        let tables = &mut self.tables;
        let Some((obligation, parent)) = innermost_value(&mut frame) else { return Ok(None) };
        if record != NO_RECORD || *parent == DONE || !tables.is_isolated(obligation, *parent) {
            return Ok(None);
        }
        let around = tables.isolation_array();
        if *parent == around {
            return Ok(None);
        }
        *parent = around;
        self.key(Position { frame, record }).map(Some)
    }

    /// What such a value is, where nothing is asked of it but its types, and of numbers that they
    /// are whole.
    pub(crate) fn plain_value_id(&mut self, key: KeyId) -> Option<u64> {
        let frame = self.position(key).frame;
        let tables = &mut self.tables;
        let (types, whitespace, digits) = match frame {
            Frame::Value { obligation, whitespace, .. } => {
                (tables.plain_types(obligation)?, whitespace, 0)
            }
            Frame::Number { obligation, digits, .. } => (
                tables.plain_number(obligation)?,
                0,
                packed_prefix(tables.parts.digits.get(digits.0))?,
            ),
            _ => return None,
        };
        let options = &tables.core.options;
        let policies = (options.escapes as u64) << 1 | u64::from(options.exponents);
        let whitespace = u64::from(whitespace) << 8 | u64::from(options.blanks);
        Some(((digits << 19 | whitespace) << 3 | policies) << 8 | u64::from(types))
    }

    /// Whether a value in such an array has ended.
    pub(crate) fn value_end(&mut self, key: KeyId) -> Result<Ended, Error> {
        let frame = self.position(key).frame;
        let tables = &mut self.tables;
        let around = tables.isolation_array();
        Ok(match frame {
            Frame::Array { mode: ContainerState::AfterValue, parent: DONE, .. } => {
                let ended = tables.close_value(around, NO_VERDICTS, NO_RECORD)?;
                if ended.is_some_and(|ended| ended.frame == frame) { Ended::Yes } else { Ended::No }
            }
            Frame::Number { obligation, digits, parent } if parent == around => {
                match tables.number_end(obligation, digits) {
                    Some(_) => Ended::May(number_bytes()),
                    None => Ended::No,
                }
            }
            _ => Ended::No,
        })
    }

    /// The key behind the innermost value.
    pub(crate) fn after_value(&mut self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let Position { mut frame, record } = self.position(key);
        let Some((_, &mut parent)) = innermost_value(&mut frame) else { return Ok(None) };
        let Some(after) = self.tables.close_value(parent, NO_VERDICTS, record)? else {
            return Ok(None);
        };
        let after = self.tables.mask_abstraction(after)?;
        self.key(after).map(Some)
    }
}

/// What the value of a frame owes, and what it is in.
fn innermost_value(frame: &mut Frame) -> Option<(ObligationId, &mut FrameId)> {
    match frame {
        Frame::Value { obligation, parent, .. }
        | Frame::Number { obligation, parent, .. }
        | Frame::Object { obligation, parent, .. }
        | Frame::Array { obligation, from: 0, parent, .. } => Some((*obligation, parent)),
        _ => None,
    }
}

/// Numbers that begin as one of few digits, each as a number other than zero.
fn packed_prefix(digits: &NumberPrefix) -> Option<u64> {
    let &NumberPrefix { negative, part, ref digits, places, sticky, exponent, negative_exponent } =
        digits;
    let whole = u8::try_from(digits).ok()?;
    let (places, exponent) = (u8::try_from(places).ok()?, u8::try_from(exponent).ok()?);
    let small = [whole, places, exponent].into_iter().fold(1, |all, one| all << 8 | u64::from(one));
    let flags = [negative, sticky, negative_exponent]
        .into_iter()
        .fold(0, |all, one| all << 1 | u64::from(one));
    Some((small << 3 | flags) << 4 | part as u64)
}

/// Bytes that numbers have.
fn number_bytes() -> ByteSet {
    let mut set = ByteSet::default();
    (0..=0x7F).filter(|&byte| is_number_byte(byte)).for_each(|byte| set.insert(byte));
    set
}

impl LazyTables {
    /// The types of a value of which nothing else is asked, as bits; the last is whether its numbers
    /// are whole.
    fn plain_types(&mut self, obligation: ObligationId) -> Option<u8> {
        if let Some(&known) = self.cache.value_types.get(&obligation) {
            return known;
        }
        let mut is_late = false;
        let types = Type::ALL.into_iter().try_fold(0, |types, of| {
            let formula = self.only_formula(obligation)?;
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
                    Some(types | 1 << of as u8 | INTEGER_BIT)
                }
                _ => None,
            }
        });
        if !is_late {
            self.cache.value_types.insert(obligation, types);
        }
        types
    }

    /// The same of a number that has begun.
    fn plain_number(&mut self, obligation: ObligationId) -> Option<u8> {
        match self.only_formula(obligation)? {
            TRUE => Some(0),
            formula if formula == self.core.whole_number() => Some(INTEGER_BIT),
            _ => None,
        }
    }

    /// What is owed, where it is one formula and nothing else.
    fn only_formula(&self, obligation: ObligationId) -> Option<F> {
        let required = self.parts.obligations.get(obligation.0);
        let [formula] = *required.formulas else { return None };
        (required.goal == TRUE).then_some(formula)
    }

    /// Whether a value is the same in any place: nothing asks it for truths, and neither its depth
    /// nor that of anything which a token opens in it matters.
    fn is_isolated(&self, obligation: ObligationId, parent: FrameId) -> bool {
        let (options, limits) = (&self.core.options, &self.core.limits);
        let deepest = u64::from(self.depth(parent)) + self.max_token_len as u64 + 2;
        options.layout.is_none()
            && options.depth == u32::MAX
            && deepest <= u64::from(limits.nesting)
            && self.parts.obligations.get(obligation.0).asked.is_empty()
    }

    /// An array of which nothing is asked, in which an item is read.
    fn isolation_array(&mut self) -> FrameId {
        if let Some(known) = self.cache.isolation_array {
            return known;
        }
        let obligation = Owes { formulas: [TRUE].into(), asked: [].into(), goal: TRUE };
        let obligation = self.parts.obligation(obligation);
        let (whitespace, mode) = (self.gap_start(), ContainerState::InValue);
        let around =
            self.frame(Frame::Array { obligation, mode, whitespace, from: 0, parent: DONE });
        self.cache.isolation_array = Some(around);
        around
    }
}

impl Core {
    /// That a number is whole.
    fn whole_number(&mut self) -> F {
        self.formulas.atom(Atom::Multiple(Decimal::integer(1)))
    }
}
