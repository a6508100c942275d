//! The first byte of a value, and strings.

use formalm_automata::{Error, Machine};

use super::escapes::{self, Read};
use super::frame::{Digits, Escape, Frame, FrameId, Mode, Owes, Part};
use super::{Grown, Recorded};
use crate::core::TextId;
use crate::formula::{F, FALSE, TRUE};
use crate::node::Type;
use crate::options::Order;

/// Whether a byte is a blank between the parts of a text.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

impl Grown {
    /// The frame after the first byte of a value.
    pub(super) fn read_value(
        &mut self,
        owes: &Owes,
        blanks: u8,
        below: FrameId,
        byte: u8,
    ) -> Result<Option<FrameId>, Error> {
        if is_blank(byte) && below != super::DONE {
            let blanks = blanks.checked_sub(1);
            return Ok(
                blanks.map(|blanks| self.frame(Frame::Value { owes: owes.clone(), blanks, below }))
            );
        }
        let (of, word): (Type, &'static [u8]) = match byte {
            b'n' => (Type::Null, b"ull"),
            b't' => (Type::Bool, b"rue"),
            b'f' => (Type::Bool, b"alse"),
            b'"' => (Type::String, b""),
            b'-' | b'0'..=b'9' => (Type::Number, b""),
            b'[' => (Type::Array, b""),
            b'{' => (Type::Object, b""),
            _ => return Ok(None),
        };
        let mut formulas = Vec::with_capacity(owes.formulas.len());
        for &id in &owes.formulas {
            formulas.push(self.core.of_type(id, of)?);
        }
        let typed = Owes { formulas: formulas.into(), ..owes.clone() };
        let total = self.core.total(&typed);
        if total == FALSE {
            return Ok(None);
        }
        match of {
            Type::Null | Type::Bool => {
                let truth = byte == b't';
                if !self.core.holds_for_bool(total, truth) {
                    return Ok(None);
                }
                let all = typed.formulas.iter().skip(1);
                let truths = all.map(|&id| self.core.holds_for_bool(id, truth)).collect();
                Ok(Some(self.frame(Frame::Word { rest: word, truths, below })))
            }
            Type::String => self.open_text(&typed, total, below),
            Type::Number => {
                let digits = Digits::first(byte);
                if !self.core.number_viable(total, &digits)? {
                    return Ok(None);
                }
                let free = typed.formulas.iter().all(|&id| id == TRUE || id == FALSE);
                let digits = if free { digits.forgotten() } else { digits };
                Ok(Some(self.frame(Frame::Number { owes: typed, digits, below })))
            }
            Type::Array | Type::Object => self.open_container(owes, typed, total, of, below),
        }
    }

    fn open_container(
        &mut self,
        outside: &Owes,
        owes: Owes,
        total: F,
        of: Type,
        below: FrameId,
    ) -> Result<Option<FrameId>, Error> {
        if !self.core.some_of_type(total, of)? {
            return Ok(None);
        }
        self.check_nesting(below)?;
        let blanks = self.core.options.blanks;
        let mode = Mode::First;
        Ok(Some(if of == Type::Array {
            self.frame(Frame::Array { owes, mode, blanks, from: 0, below })
        } else {
            let order = match self.core.options.order {
                Order::Any => 0,
                Order::Schema => {
                    let declared = self.core.declared(outside);
                    self.orders.intern(declared)
                }
            };
            self.frame(Frame::Object { owes, gone: [].into(), order, mode, blanks, below })
        }))
    }

    fn open_text(
        &mut self,
        owes: &Owes,
        total: F,
        below: FrameId,
    ) -> Result<Option<FrameId>, Error> {
        let Some(language) = self.core.language(total)? else { return Ok(None) };
        let mut asked = Vec::with_capacity(owes.formulas.len() - 1);
        for &id in owes.formulas.iter().skip(1) {
            let asked_language = if id == FALSE { None } else { self.core.language(id)? };
            asked.push(asked_language.map(|one| (one, self.core.text(one).start())));
        }
        let state = self.core.text(language).start();
        let escape = Escape::None;
        let frame = Frame::Text { language, state, asked: asked.into(), escape, below };
        Ok(Some(self.frame(frame)))
    }

    /// The place after a byte of a string.
    pub(super) fn read_text(
        &mut self,
        frame: FrameId,
        byte: u8,
        record: Recorded,
    ) -> Result<Option<(FrameId, Recorded)>, Error> {
        let Frame::Text { language, state, mut asked, escape, below } =
            self.frames.get(frame.0).clone()
        else {
            return Ok(None);
        };
        if byte == b'"' && escape == Escape::None {
            if !self.core.text(language).is_accepting(state) {
                return Ok(None);
            }
            let accepts = |one: &Option<(TextId, _)>| {
                one.is_some_and(|(text, state)| self.core.text(text).is_accepting(state))
            };
            let truths: Vec<bool> = asked.iter().map(accepts).collect();
            return self.close(below, &truths, record);
        }
        let policy = self.core.options.escapes;
        let mut buffer = [0; 4];
        let read: &[u8] = match escapes::read(escape, byte, policy) {
            Read::Wrong => return Ok(None),
            Read::Byte(byte) => {
                buffer[0] = byte;
                &buffer[..1]
            }
            Read::Character(character) => character.encode_utf8(&mut buffer).as_bytes(),
            Read::Inside(escape) => {
                let machine = self.core.text(language);
                if !escapes::some_completion(escape, policy, machine, state)? {
                    return Ok(None);
                }
                let next = self.frame(Frame::Text { language, state, asked, escape, below });
                return Ok(Some((next, record)));
            }
        };
        let Ok(state) = self.core.text(language).walk(state, read)? else { return Ok(None) };
        for one in &mut asked {
            if let Some((text, state)) = *one {
                *one = self.core.text(text).walk(state, read)?.ok().map(|state| (text, state));
            }
        }
        let escape = Escape::None;
        let next = self.frame(Frame::Text { language, state, asked, escape, below });
        Ok(Some((next, record)))
    }
}

impl Digits {
    /// A number after its first byte.
    fn first(byte: u8) -> Digits {
        let part = match byte {
            b'-' => Part::Minus,
            b'0' => Part::Zero,
            _ => Part::Whole,
        };
        let digit = if byte == b'-' { 0 } else { byte - b'0' };
        let digits = num_bigint::BigInt::from(digit);
        Digits { negative: byte == b'-', part, digits, places: 0, more: false }
    }

    /// The same where the value does not matter.
    pub(super) fn forgotten(self) -> Digits {
        Digits { negative: false, digits: 0.into(), places: 0, more: false, ..self }
    }
}
