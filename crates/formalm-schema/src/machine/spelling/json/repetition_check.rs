//! Decides whether a token and a completion repeat a property name or a unique item.

use formalm_json::escapes::{EscapePolicy, EscapeState, EscapeStep, read_string_byte};
use rustc_hash::FxHashSet;

use crate::json::interned_values::{JsonValue, ValueId, ValueInterner};
use crate::json::property_names::PropertyNames;
use crate::machine::spelling::json::whitespace::is_whitespace;

/// The contents of strings.
pub(crate) type SeenStrings = FxHashSet<Vec<u8>>;

/// The condition under which a token makes a completion repeat something.
pub(crate) struct RepetitionCheck {
    pub(crate) escapes: EscapePolicy,
    /// The string that the token continues: its content so far, if recorded, and the escape it is
    /// in.
    pub(crate) open: Option<(Option<Vec<u8>>, EscapeState)>,
    pub(crate) completion: Vec<u8>,
    /// The names that the completion uses in objects already open.
    pub(crate) names: SeenStrings,
    /// Under `uniqueItems`, the strings in earlier items and in the completion.
    pub(crate) items: Option<SeenStrings>,
    /// The infixes between the content so far and the end in the completion that make the string
    /// one of these. For plain tokens inside a string nothing else matters.
    pub(crate) infixes: Option<SeenStrings>,
}

impl RepetitionCheck {
    /// Computes the infixes that make the open string, which the completion ends, equal to a seen
    /// one.
    pub(crate) fn find_infixes(&mut self) {
        let open = match &self.open {
            Some((Some(open), EscapeState::None)) => open,
            Some((None, EscapeState::None)) => {
                // The string is neither a name nor part of a unique item.
                self.infixes = Some(SeenStrings::default());
                return;
            }
            _ => return,
        };
        let mut rest = (Vec::new(), EscapeState::None);
        let Some(end) = self.completion.iter().position(|&byte| {
            let read = read_string_byte(rest.1, byte, self.escapes);
            rest.1 = EscapeState::None;
            match read {
                EscapeStep::Char(read) => rest.0.extend_from_slice(&read),
                EscapeStep::Partial(further) => rest.1 = further,
                EscapeStep::End | EscapeStep::Invalid => return true,
            }
            false
        }) else {
            return;
        };
        let is_name = is_before_colon(&self.completion[end + 1..]);
        let names = self.names.iter().filter(|_| is_name);
        let infixes = names.chain(self.items.iter().flatten()).filter_map(|text| {
            text.strip_prefix(&open[..])?.strip_suffix(&rest.0[..]).map(<[u8]>::to_vec)
        });
        self.infixes = Some(infixes.collect());
    }

    /// Returns `true` if the completion may repeat something after the token. Over-approximates.
    pub(crate) fn may_repeat(&self, token: &[u8]) -> bool {
        if let Some(infixes) = &self.infixes
            && !token.iter().any(|byte| b"\"\\".contains(byte))
        {
            return infixes.contains(token);
        }
        // A string that is not recorded is neither a name nor part of a unique item.
        let known = |text: &Option<Vec<u8>>| text.clone().unwrap_or_default();
        let mut open = self.open.as_ref().map(|(text, escape)| (known(text), *escape));
        let mut last: Option<Vec<u8>> = None;
        let all = token.iter().chain(&self.completion);
        for (at, &byte) in all.enumerate() {
            if at >= token.len() && open.is_none() {
                break;
            }
            let Some((text, escape)) = &mut open else {
                match byte {
                    b'"' => open = Some((Vec::new(), EscapeState::None)),
                    // Earlier values are not part of an item inside this array.
                    b'[' => last = None,
                    b',' if self.items.is_some() => return true,
                    _ => {}
                }
                continue;
            };
            match read_string_byte(*escape, byte, self.escapes) {
                EscapeStep::Char(read) => {
                    text.extend_from_slice(&read);
                    *escape = EscapeState::None;
                }
                EscapeStep::Partial(further) => *escape = further,
                EscapeStep::Invalid => return true,
                EscapeStep::End => {
                    let after = token.iter().chain(&self.completion).skip(at + 1);
                    if is_before_colon(after) && self.names.contains(text) {
                        return true;
                    }
                    last = open.take().map(|(text, _)| text);
                }
            }
        }
        // Equal items contain equal strings.
        self.items.as_ref().is_some_and(|items| last.is_none_or(|last| items.contains(&last)))
    }
}

/// Returns `true` if the string before these bytes is a property name.
fn is_before_colon<'a>(after: impl IntoIterator<Item = &'a u8>) -> bool {
    after.into_iter().find(|&&byte| !is_whitespace(byte)) == Some(&b':')
}

/// Adds the string or the names of a value; pushes its children to `left`.
pub(crate) fn add_strings(
    value: ValueId,
    values: &ValueInterner,
    names: &PropertyNames,
    left: &mut Vec<ValueId>,
    strings: &mut SeenStrings,
) {
    match values.get(value) {
        JsonValue::String(text) => {
            strings.insert(text.clone().into_bytes());
        }
        JsonValue::Array(items) => left.extend_from_slice(items),
        JsonValue::Object(members) => {
            for &(name, value) in members {
                strings.insert(names.get(name).as_bytes().to_vec());
                left.push(value);
            }
        }
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => {}
    }
}

/// Returns the names that a completion uses in objects already open, each with the number of
/// containers closed before it, and all its strings. The name that the completion continues is left
/// out.
pub(crate) fn strings_of_completion(
    text: &[u8],
    opening: Option<EscapeState>,
    escapes: EscapePolicy,
) -> (Vec<(usize, Vec<u8>)>, SeenStrings) {
    let (mut names, mut strings) = (Vec::new(), SeenStrings::default());
    let mut open = opening.map(|escape| (Vec::new(), escape));
    let (mut depth, mut is_begun) = (0isize, opening.is_some());
    for (at, &byte) in text.iter().enumerate() {
        let Some((read_so_far, escape)) = &mut open else {
            match byte {
                b'"' => open = Some((Vec::new(), EscapeState::None)),
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                _ => {}
            }
            continue;
        };
        match read_string_byte(*escape, byte, escapes) {
            EscapeStep::Char(read) => {
                read_so_far.extend_from_slice(&read);
                *escape = EscapeState::None;
            }
            EscapeStep::Partial(further) => *escape = further,
            EscapeStep::Invalid => break,
            EscapeStep::End => {
                let is_name = is_before_colon(&text[at + 1..]);
                if let Some((text, _)) = open.take()
                    && !std::mem::take(&mut is_begun)
                {
                    if is_name && depth <= 0 {
                        names.push((depth.unsigned_abs(), text.clone()));
                    }
                    strings.insert(text);
                }
            }
        }
    }
    (names, strings)
}
