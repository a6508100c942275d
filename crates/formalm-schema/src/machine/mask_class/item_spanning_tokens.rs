//! Tokens that end an item that must be distinct and go on inside of another one.
//!
//! They alone can tell what keys forget of items ([`crate::machine::mask_class::abstraction`]), and are read by the state
//! itself. Most of the tokens that may do so at all do not from most states, or begin an item that
//! no item so far begins like: those are answered by the key.

use formalm_automata::Error;
use formalm_automata::spelling::{Escape, Escapes};

use crate::formula::Atom;
use crate::machine::frame::{Frame, ObligationId, Position};
use crate::machine::{LazyTables, NO_RECORD};
use crate::node::Type;
use crate::value::Value;

/// Containers that are looked at.
const MAX_LEVELS: usize = 64;

impl LazyTables {
    /// Whether a token that the key of a state allows has to be asked of the state.
    pub(crate) fn needs_recheck(&mut self, state: u32, token: &[u8]) -> Result<bool, Error> {
        let position = *self.states.get(state);
        let (container, in_text) = match position.frame {
            Frame::String { parent, escape: Escape::None, .. } => {
                (*self.frames.get(parent.0), true)
            }
            Frame::Name { object, escape: Escape::None, .. } => (*self.frames.get(object.0), true),
            Frame::Value { parent, .. } | Frame::Number { parent, .. } => {
                (*self.frames.get(parent.0), false)
            }
            object @ Frame::Object { .. } => (object, false),
            _ => return Ok(true),
        };
        let Some(distinct) = self.unique_arrays_around(container) else { return Ok(true) };
        Ok(match item_span(token, in_text, |level| distinct.iter().any(|one| one.0 == level)) {
            ItemSpan::Nothing => false,
            ItemSpan::StringItem(first, rest) => match (position.frame, container) {
                (Frame::String { .. }, Frame::Array { obligation, from, .. }) => {
                    self.may_repeat(position, (obligation, from), first, rest)
                }
                _ => true,
            },
            ItemSpan::ObjectItem(level) => match distinct.iter().find(|one| one.0 == level) {
                // All but one of these objects go on so.
                Some(&(_, obligation)) => !self.has_plenty_items(obligation, Some(Type::Object))?,
                None => true,
            },
            ItemSpan::Other => true,
        })
    }

    /// The containers in which items must be distinct, by how many are within them, from a
    /// container on; `None` if there are too many.
    fn unique_arrays_around(&mut self, innermost: Frame) -> Option<Vec<(usize, ObligationId)>> {
        let (mut found, mut at) = (Vec::new(), innermost);
        for level in 0..MAX_LEVELS {
            let parent = match at {
                Frame::Array { obligation, parent, .. } => {
                    if self.has_unique_items(obligation) {
                        found.push((level, obligation));
                    }
                    parent
                }
                Frame::Object { parent, .. } => parent,
                _ => return (at == Frame::Done).then_some(found),
            };
            at = *self.frames.get(parent.0);
        }
        None
    }

    /// Whether an item is a text that may begin like one that there is, behind a text of which the
    /// token has the rest.
    fn may_repeat(
        &self,
        position: Position,
        (obligation, from): (ObligationId, u32),
        first: &[u8],
        text: &[u8],
    ) -> bool {
        if position.record == NO_RECORD {
            return true;
        }
        let read = self.recorded(position.record, from);
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
            let has_independent_names = |&byte: &u8| match policy {
                Escapes::Minimal => byte >= 0x20 && !b"\"\\\x7F".contains(&byte),
                Escapes::Ascii => (0x20..0x7F).contains(&byte) && !b"\"\\".contains(&byte),
                Escapes::Any => false,
            };
            policy == Escapes::Any
                || escape.is_none()
                || !rest.first().is_some_and(has_independent_names)
        };
        // What is escaped by option has other spellings.
        policy == Escapes::Any
            || begins_so(&present)
            || self.any_earlier_item(obligation, begins_so)
    }

    /// Whether some text among the items of an array is so.
    fn any_earlier_item(&self, obligation: ObligationId, is_so: impl Fn(&[u8]) -> bool) -> bool {
        let formulas = &self.parts.obligations.get(obligation.0).formulas;
        self.core.formulas.some_atom(formulas, |atom| match atom {
            Atom::UniqueWith(taken) => {
                taken.iter().any(|&one| match self.core.schema.values.get(one) {
                    Value::String(text) => is_so(text.as_bytes()),
                    _ => false,
                })
            }
            _ => false,
        })
    }
}

/// What a token does to items that must be distinct.
#[derive(Debug, PartialEq, Eq)]
enum ItemSpan<'a> {
    /// It goes on to no other item.
    Nothing,
    /// The text of an item ends, of which it has so much, and another one begins so.
    StringItem(&'a [u8], &'a [u8]),
    /// An item ends in the array with so many containers within it, and an object begins that has
    /// members, of which nothing is known yet.
    ObjectItem(usize),
    Other,
}

/// The same of a token behind a place in a text or before the end of another value, where items
/// are distinct in containers with some numbers of others within them.
fn item_span(token: &[u8], in_text: bool, is_distinct: impl Fn(usize) -> bool) -> ItemSpan<'_> {
    let (mut inside, mut depth, mut at) = (in_text, 0isize, 0);
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
            b',' if depth > 0 => return ItemSpan::Other,
            b',' if is_distinct(depth.unsigned_abs()) => {
                return match (token[at..].trim_ascii_start(), closed) {
                    ([] | [b'"'], _) => ItemSpan::Nothing,
                    (rest, _) if is_opened(rest) => ItemSpan::ObjectItem(depth.unsigned_abs()),
                    ([b'"', text @ ..], Some(closed)) if depth == 0 && !text.contains(&b'"') => {
                        ItemSpan::StringItem(&token[..closed], text)
                    }
                    _ => ItemSpan::Other,
                };
            }
            _ => {}
        }
    }
    ItemSpan::Nothing
}

/// Whether nothing but an object with members is begun.
fn is_opened(rest: &[u8]) -> bool {
    rest.strip_prefix(b"{").is_some_and(|rest| matches!(rest.trim_ascii_start(), b"" | b"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commas_of_a_unique_array_start_another_item() {
        let at = |token: &'static [u8], in_text, level| item_span(token, in_text, |at| at == level);
        assert_eq!(at(b"a,[b", true, 0), ItemSpan::Nothing);
        assert_eq!(at(b"a\\\",\"b", true, 0), ItemSpan::Nothing);
        assert_eq!(at(b"a\",\"b", true, 0), ItemSpan::StringItem(b"a", b"b"));
        assert_eq!(at(b"\",\"\\", true, 0), ItemSpan::StringItem(b"", b"\\"));
        assert_eq!(at(b"a\",\"", true, 0), ItemSpan::Nothing);
        assert_eq!(at(b"a\",\"b", true, 1), ItemSpan::Nothing);
        assert_eq!(at(b"\"},{\"", true, 1), ItemSpan::ObjectItem(1));
        assert_eq!(at(b"\"}, {\"a", true, 1), ItemSpan::Other);
        assert_eq!(at(b"\"},{\"", true, 0), ItemSpan::Nothing);
        assert_eq!(at(b"\",\"\",\"", true, 0), ItemSpan::Other);
        assert_eq!(at(b"1,[2,3", false, 1), ItemSpan::Other);
        assert_eq!(at(b"1,[2", false, 1), ItemSpan::Nothing);
    }
}
