//! Tokens that end an item that must be distinct and go on inside of another one.
//!
//! They alone can tell what keys forget of items ([`super::forgetting`]), and are read by the state
//! itself. Most of the tokens that may do so at all do not from most states, or begin an item that
//! no item so far begins like: those are answered by the key.

use formalm_automata::spelling::{Escape, Escapes};

use super::frame::{DONE, Frame, FrameId, OwesId, Place};
use super::{Grown, UNRECORDED};
use crate::formula::{Atom, Form};
use crate::value::Value;

impl Grown {
    /// Whether a token that the key of a state allows has to be asked of the state.
    pub(super) fn may_tell(&mut self, state: u32, token: &[u8]) -> bool {
        let place = *self.states.get(state);
        let (container, in_text) = match place.frame {
            Frame::Text { below, escape: Escape::None, .. } => (below, true),
            Frame::Name { object, escape: Escape::None, .. } => (object, true),
            Frame::Value { below, .. } | Frame::Number { below, .. } => (below, false),
            _ => return true,
        };
        let Some(levels) = self.distinct_levels(container) else { return true };
        match joined(token, in_text, levels) {
            Joined::Nothing => false,
            Joined::Text(first, rest) if matches!(place.frame, Frame::Text { .. }) => {
                self.may_repeat(place, container, first, rest)
            }
            _ => true,
        }
    }

    /// The containers in which items must be distinct, the innermost as the first bit; `None` if
    /// there are too many.
    fn distinct_levels(&mut self, innermost: FrameId) -> Option<u64> {
        let (mut levels, mut at) = (0, innermost);
        for level in 0..64 {
            at = match *self.frames.get(at.0) {
                Frame::Array { owes, below, .. } => {
                    levels |= u64::from(self.is_unique(owes)) << level;
                    below
                }
                Frame::Object { below, .. } => below,
                _ => return (at == DONE).then_some(levels),
            };
        }
        None
    }

    /// Whether an item is a text that may begin like one that there is, behind a text of which the
    /// token has the rest.
    fn may_repeat(&self, place: Place, array: FrameId, first: &[u8], text: &[u8]) -> bool {
        let Frame::Array { owes, from, .. } = *self.frames.get(array.0) else { return true };
        if place.record == UNRECORDED {
            return true;
        }
        let read = self.recorded(place.record, from);
        let Some(opened) = read.iter().position(|&byte| byte == b'"') else { return true };
        let present = [&read[opened + 1..], first].concat();
        if present.contains(&b'\\') {
            return true;
        }
        let escape = text.iter().position(|&byte| byte == b'\\');
        let plain = &text[..escape.unwrap_or(text.len())];
        let policy = self.core.options.escapes;
        let begins_so = |one: &[u8]| {
            let Some(rest) = one.strip_prefix(plain) else { return false };
            let is_plain = |&byte: &u8| match policy {
                Escapes::Minimal => byte >= 0x20 && !b"\"\\\x7F".contains(&byte),
                Escapes::Ascii => (0x20..0x7F).contains(&byte) && !b"\"\\".contains(&byte),
                Escapes::Any => false,
            };
            policy == Escapes::Any || escape.is_none() || !rest.first().is_some_and(is_plain)
        };
        // What is escaped by option has other spellings.
        policy == Escapes::Any || begins_so(&present) || self.some_taken(owes, begins_so)
    }

    /// Whether some text among the items of an array is so.
    fn some_taken(&self, owes: OwesId, is_so: impl Fn(&[u8]) -> bool) -> bool {
        let [must, ..] = self.parts.owes.get(owes.0).formulas[..] else { return true };
        let parts = self.core.formulas.conjuncts(must).into_iter();
        let mut taken = parts.filter_map(|part| match self.core.formulas.get(part) {
            Form::Atom(Atom::UniqueWith(taken)) => Some(taken),
            _ => None,
        });
        let (Some(taken), None) = (taken.next(), taken.next()) else { return true };
        taken.iter().any(|&value| match self.core.schema.values.get(value) {
            Value::String(text) => is_so(text.as_bytes()),
            _ => false,
        })
    }
}

/// What a token does to items that must be distinct.
#[derive(Debug, PartialEq, Eq)]
enum Joined<'a> {
    /// It goes on to no other item.
    Nothing,
    /// The text of an item ends, of which it has so much, and another one begins so.
    Text(&'a [u8], &'a [u8]),
    Something,
}

/// The same of a token behind a place in a text or before the end of another value, in containers
/// of which some have such items: the innermost by the first bit.
fn joined(token: &[u8], in_text: bool, levels: u64) -> Joined<'_> {
    let (mut inside, mut depth, mut at) = (in_text, 0, 0);
    let mut closed = None;
    while let Some(&byte) = token.get(at) {
        at += 1;
        match byte {
            b'\\' if inside => at += 1,
            b'"' => {
                closed = closed.or((inside && depth == 0).then_some(at - 1));
                inside = !inside;
            }
            _ if inside => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth > 0 => return Joined::Something,
            b',' if -depth > 63 || levels >> -depth & 1 != 0 => {
                let rest = &token[at..];
                return match (closed, rest.split_first()) {
                    (Some(closed), Some((b'"', text)))
                        if in_text && depth == 0 && !text.contains(&b'"') =>
                    {
                        Joined::Text(&token[..closed], text)
                    }
                    _ => Joined::Something,
                };
            }
            _ => {}
        }
    }
    Joined::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_apart_by_commas_of_their_array() {
        assert_eq!(joined(b"a,[b", true, 1), Joined::Nothing);
        assert_eq!(joined(b"a\\\",\"b", true, 1), Joined::Nothing);
        assert_eq!(joined(b"a\",\"b", true, 1), Joined::Text(b"a", b"b"));
        assert_eq!(joined(b"\",\"\\", true, 1), Joined::Text(b"", b"\\"));
        assert_eq!(joined(b"a\",\"b", true, 2), Joined::Nothing);
        assert_eq!(joined(b"\"},{\"", true, 2), Joined::Something);
        assert_eq!(joined(b"\"},{\"", true, 1), Joined::Nothing);
        assert_eq!(joined(b"\",\"\",\"", true, 1), Joined::Something);
        assert_eq!(joined(b"1,[2,3", false, 2), Joined::Something);
        assert_eq!(joined(b"1,[2", false, 2), Joined::Nothing);
    }
}
