//! Tokens that end one unique item and begin the next.
//!
//! Only these tokens see the items that a mask class drops
//! ([`crate::machine::mask_class::abstraction`]), so they are rechecked against the full state. To
//! keep this rare, we recheck only tokens that the class mask allows and whose new item shares a
//! prefix with an earlier one.

use formalm_core::Error;
use formalm_json::escapes::EscapePolicy;

use crate::formula::FormulaAtom;
use crate::json::interned_values::JsonValue;
use crate::machine::NO_RECORD;
use crate::machine::frame::{CharState, Frame, ObligationId, ReaderPosition};
use crate::machine::mask_class::abstraction::MaskAbstraction;
use crate::machine::reader::Reader;
use crate::schema_nodes::JsonType;

/// Maximum number of surrounding containers that are inspected; beyond it all tokens are rechecked.
/// Chosen, not measured.
const MAX_LEVELS: usize = 64;

/// A state whose mask class may drop unique items.
pub(crate) struct ItemRecheck<'a> {
    pub(crate) reader: &'a mut Reader,
    pub(crate) abstraction: &'a mut MaskAbstraction,
    pub(crate) position: ReaderPosition,
}

impl ItemRecheck<'_> {
    /// Returns `true` if a token that the class mask allows must be rechecked against the concrete
    /// state.
    pub(crate) fn needs_recheck(&mut self, token: &[u8]) -> Result<bool, Error> {
        let position = self.position;
        let (container, in_text) = match position.frame {
            Frame::String { parent, escape: CharState::NONE, .. } => {
                (self.reader.values.frames.get(parent), true)
            }
            Frame::Name { object, escape: CharState::NONE, .. } => {
                (self.reader.values.frames.get(object), true)
            }
            Frame::Value { parent, .. } | Frame::Number { parent, .. } => {
                (self.reader.values.frames.get(parent), false)
            }
            object @ Frame::Object { .. } => (object, false),
            _ => return Ok(true),
        };
        let Some(distinct) = self.unique_arrays_around(container) else { return Ok(true) };
        Ok(match item_span(token, in_text, |level| distinct.iter().any(|one| one.0 == level)) {
            ItemSpan::Nothing => false,
            ItemSpan::StringItem(first, rest) => match (position.frame, container) {
                (Frame::String { .. }, Frame::Array { obligation, from, .. }) => {
                    self.may_repeat((obligation, from), first, rest)
                }
                _ => true,
            },
            ItemSpan::ObjectItem(level) => match distinct.iter().find(|one| one.0 == level) {
                // All objects but the empty one begin so; with plenty of items an unused one
                // remains.
                Some(&(_, obligation)) => !self.abstraction.has_plenty_items(
                    &mut self.reader.values,
                    obligation,
                    Some(JsonType::Object),
                )?,
                None => true,
            },
            ItemSpan::Other => true,
        })
    }

    /// Returns the arrays with unique items around a container, each with the number of containers
    /// inside it; `None` if there are too many containers.
    fn unique_arrays_around(&mut self, innermost: Frame) -> Option<Vec<(usize, ObligationId)>> {
        let (mut found, mut at) = (Vec::new(), innermost);
        for level in 0..MAX_LEVELS {
            let parent = match at {
                Frame::Array { obligation, parent, .. } => {
                    if self.reader.values.has_unique_items(obligation) {
                        found.push((level, obligation));
                    }
                    parent
                }
                Frame::Object { parent, .. } => parent,
                _ => return (at == Frame::Done).then_some(found),
            };
            at = self.reader.values.frames.get(parent);
        }
        None
    }

    /// Returns `true` if the token may repeat an earlier string. The current item continues with
    /// `first` and ends; the next one begins with `text`.
    fn may_repeat(
        &self,
        (obligation, from): (ObligationId, u32),
        first: &[u8],
        text: &[u8],
    ) -> bool {
        if self.position.record == NO_RECORD {
            return true;
        }
        let read = self.reader.values.records.bytes_from(self.position.record, from);
        let Some(opened) = read.iter().position(|&byte| byte == b'"') else { return true };
        let present = [&read[opened + 1..], first].concat();
        if present.contains(&b'\\') {
            return true;
        }
        let escape = text.iter().position(|&byte| byte == b'\\');
        let plain = &text[..escape.unwrap_or(text.len())];
        let policy = self.reader.values.core.options.escapes;
        let begins_so = |one: &[u8]| {
            let Some(rest) = one.strip_prefix(plain) else { return false };
            let is_unescaped = |&byte: &u8| match policy {
                EscapePolicy::Minimal => byte >= 0x20 && !b"\"\\\x7F".contains(&byte),
                EscapePolicy::Ascii => (0x20..0x7F).contains(&byte) && !b"\"\\".contains(&byte),
                EscapePolicy::Any => false,
            };
            policy == EscapePolicy::Any
                || escape.is_none()
                || !rest.first().is_some_and(is_unescaped)
        };
        // Optional escapes give a string several spellings.
        policy == EscapePolicy::Any
            || begins_so(&present)
            || self.any_earlier_item(obligation, begins_so)
    }

    /// Returns `true` if some earlier string of an array satisfies a predicate.
    fn any_earlier_item(&self, obligation: ObligationId, is_so: impl Fn(&[u8]) -> bool) -> bool {
        let formulas = &self.reader.values.residuals.get(obligation).formulas;
        self.reader.values.core.base.formulas.any_atom(formulas, |atom| match atom {
            FormulaAtom::UniqueWithCurrent(taken) => {
                taken.iter().any(|&one| match self.reader.values.core.base.schema.values.get(one) {
                    JsonValue::String(text) => is_so(text.as_bytes()),
                    _ => false,
                })
            }
            _ => false,
        })
    }
}

/// The effect of a token on unique items.
#[derive(Debug, PartialEq, Eq)]
enum ItemSpan<'a> {
    /// The token begins no other item.
    Nothing,
    /// A string item ends after the first bytes, and another one begins with the second.
    StringItem(&'a [u8], &'a [u8]),
    /// An item of the array with this many containers inside it ends, and an object with properties
    /// begins. Nothing is known of these yet.
    ObjectItem(usize),
    Other,
}

/// Classifies a token that is read inside a string or before the end of another value.
/// `is_distinct` says whether items are unique in the container with so many others inside it.
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

/// Returns `true` if the bytes begin an object and nothing more.
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
