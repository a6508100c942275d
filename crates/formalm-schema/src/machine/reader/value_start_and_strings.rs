//! The first byte of a value, and strings.

use formalm_automata::spelling::{Escape, Read, read, some_completion};
use formalm_automata::{Error, Machine, StateId};

use crate::core::TextId;
use crate::formula::{F, FALSE};
use crate::machine::frame::OrderId;
use crate::machine::frame::{AskedId, Digits, Frame, FrameId, Mode, Owes, OwesId, Part, Place};
use crate::machine::reader::cache::{ANY_ORDER, NO_TRUTHS, NONE_GONE, NOT_ASKED, Opened};
use crate::machine::{Grown, Recorded};
use crate::node::Type;
use crate::options::Order;

/// The types that a first byte opens, and what is left of a word.
fn opens(byte: u8) -> Option<(Type, &'static [u8])> {
    Some(match byte {
        b'n' => (Type::Null, b"ull"),
        b't' => (Type::Bool, b"rue"),
        b'f' => (Type::Bool, b"alse"),
        b'"' => (Type::String, b""),
        b'-' | b'0'..=b'9' => (Type::Number, b""),
        b'[' => (Type::Array, b""),
        b'{' => (Type::Object, b""),
        _ => return None,
    })
}

/// Whether a byte is a blank between the parts of a text.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

impl Grown {
    /// The frame after a byte of a value that has not begun.
    pub(crate) fn read_value(
        &mut self,
        owes: OwesId,
        blanks: u16,
        below: FrameId,
        byte: u8,
    ) -> Result<Option<Frame>, Error> {
        let (gap, depth) = self.gap_of_value(below);
        if is_blank(byte) && below != crate::machine::DONE {
            let blanks = self.blank(gap, depth, blanks, byte);
            return Ok(blanks.map(|blanks| Frame::Value { owes, blanks, below }));
        }
        let Some((of, rest)) = opens(byte) else { return Ok(None) };
        if below != crate::machine::DONE && !self.gap_ends(gap, depth, blanks) {
            return Ok(None);
        }
        let Some(opened) = self.open(owes, byte, of)? else { return Ok(None) };
        let (blanks, mode) = (self.gap_start(), Mode::First);
        Ok(Some(match opened {
            Opened::Word(truths) => Frame::Word { rest, truths, below },
            Opened::Text(language, asked) => {
                let state = self.core.text(language).start();
                Frame::Text { language, state, asked, escape: Escape::None, below }
            }
            Opened::Number(owes) => match self.digits_after(owes, None, byte)? {
                Some(digits) => Frame::Number { owes, digits, below },
                None => return Ok(None),
            },
            Opened::Array(_) | Opened::Object(..) if !self.may_nest(owes, below) => {
                return Ok(None);
            }
            Opened::Array(owes) => {
                self.check_nesting(below)?;
                Frame::Array { owes, mode, blanks, from: 0, below }
            }
            Opened::Object(owes, order) => {
                self.check_nesting(below)?;
                Frame::Object { owes, gone: NONE_GONE, order, mode, blanks, below }
            }
        }))
    }

    /// What a value becomes with its first byte; `None` if no value begins so.
    fn open(&mut self, owes: OwesId, byte: u8, of: Type) -> Result<Option<Opened>, Error> {
        let by = if of == Type::Number { 0 } else { byte };
        if let Some(&known) = self.known.opened.get(&(owes, by)) {
            return Ok(known);
        }
        let opened = self.open_fresh(owes, byte, of)?;
        self.known.opened.insert((owes, by), opened);
        Ok(opened)
    }

    fn open_fresh(&mut self, id: OwesId, byte: u8, of: Type) -> Result<Option<Opened>, Error> {
        let owes = self.parts.owes.get(id.0).clone();
        let mut formulas = Vec::with_capacity(owes.formulas.len());
        for &id in &owes.formulas {
            formulas.push(self.core.of_type(id, of)?);
        }
        let typed = Owes { formulas: formulas.into(), ..owes.clone() };
        let total = self.core.total(&typed);
        if total == FALSE {
            return Ok(None);
        }
        Ok(match of {
            Type::Null | Type::Bool => {
                let truth = byte == b't';
                if !self.core.holds_for_bool(total, truth) {
                    return Ok(None);
                }
                let all = typed.formulas.iter().skip(1);
                let truths: Vec<bool> =
                    all.map(|&id| self.core.holds_for_bool(id, truth)).collect();
                Some(Opened::Word(self.parts.truths(&truths)))
            }
            Type::String => self.open_text(&typed, total)?,
            Type::Number => Some(Opened::Number(self.parts.owes(typed))),
            Type::Array | Type::Object if !self.core.some_of_type(total, of)? => None,
            Type::Array => Some(Opened::Array(self.parts.owes(typed))),
            Type::Object => {
                let order = match self.core.options.order {
                    Order::Any => ANY_ORDER,
                    Order::Schema => {
                        let declared = self.core.declared(&owes);
                        OrderId(self.parts.orders.intern(declared))
                    }
                };
                Some(Opened::Object(self.parts.owes(typed), order))
            }
        })
    }

    fn open_text(&mut self, owes: &Owes, total: F) -> Result<Option<Opened>, Error> {
        let Some(language) = self.core.language(total)? else { return Ok(None) };
        let asked = self.asked_texts(&owes.formulas[1..])?;
        let asked = AskedId(self.parts.asked.intern(asked));
        Ok(Some(Opened::Text(language, asked)))
    }

    /// The place after the quote that closes a string.
    fn close_text(
        &mut self,
        language: TextId,
        state: StateId,
        asked: AskedId,
        below: FrameId,
        record: Recorded,
    ) -> Result<Option<Place>, Error> {
        if !self.core.text(language).is_accepting(state) {
            return Ok(None);
        }
        let truths = match asked {
            NOT_ASKED => NO_TRUTHS,
            asked => {
                let accepts = |&(text, state)| self.core.text(text).is_accepting(state);
                let asked = self.parts.asked.get(asked.0);
                let said: Vec<bool> =
                    asked.iter().map(|one| one.as_ref().is_some_and(accepts)).collect();
                let truths = match asked.telling {
                    None => said,
                    Some(telling) => self.parts.tellings[telling as usize].tell(&said),
                };
                self.parts.truths(&truths)
            }
        };
        self.close(below, truths, record)
    }

    /// The place after a byte of a string.
    pub(crate) fn read_text(
        &mut self,
        frame: Frame,
        byte: u8,
        record: Recorded,
    ) -> Result<Option<Place>, Error> {
        let Frame::Text { language, state, asked, escape, below } = frame else {
            return Ok(None);
        };
        let policy = self.core.options.escapes;
        let read = match read(escape, byte, policy) {
            Read::Wrong => return Ok(None),
            Read::End => return self.close_text(language, state, asked, below, record),
            Read::Inside(escape) => {
                let machine = self.core.text(language);
                let reader = |bytes: &[u8]| Ok(machine.walk(state, bytes)?.map(|_| ()));
                if !some_completion(escape, policy, &reader)? {
                    return Ok(None);
                }
                let frame = Frame::Text { language, state, asked, escape, below };
                return Ok(Some(Place { frame, record }));
            }
            Read::Text(read) => read,
        };
        let Ok(state) = self.core.text(language).walk(state, &read)? else { return Ok(None) };
        let asked = self.asked_after(asked, &read)?;
        let frame = Frame::Text { language, state, asked, escape: Escape::None, below };
        Ok(Some(Place { frame, record }))
    }

    /// The machines of truths that are asked, after more of the text.
    pub(crate) fn asked_after(&mut self, asked: AskedId, read: &[u8]) -> Result<AskedId, Error> {
        if asked == NOT_ASKED {
            return Ok(asked);
        }
        let before = self.parts.asked.get(asked.0);
        if let [Some((text, state))] = *before.machines
            && self.core.text(text).walk(state, read)? == Ok(state)
        {
            return Ok(asked);
        }
        let mut after = before.clone();
        for one in &mut after.machines {
            if let Some((text, state)) = *one {
                *one = self.core.text(text).walk(state, read)?.ok().map(|state| (text, state));
            }
        }
        if after.is_guarded && after.machines[0].is_none() {
            after.machines.fill(None);
        }
        Ok(AskedId(self.parts.asked.intern(after)))
    }
}

impl Digits {
    /// A number after its first byte.
    pub(crate) fn first(byte: u8) -> Digits {
        let part = match byte {
            b'-' => Part::Minus,
            b'0' => Part::Zero,
            _ => Part::Whole,
        };
        let digit = if byte == b'-' { 0 } else { byte - b'0' };
        let digits = num_bigint::BigInt::from(digit);
        let negative = byte == b'-';
        Digits { negative, part, digits, places: 0, more: false, power: 0, divides: false }
    }

    /// The same where the value does not matter.
    pub(crate) fn forgotten(self) -> Digits {
        Digits { negative: false, digits: 0.into(), places: 0, more: false, ..self }
    }
}
