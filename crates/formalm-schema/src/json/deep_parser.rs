//! A JSON parser with an explicit stack, for documents nested deeper than serde_json's recursion
//! limit.

use serde_json::{Map, Value as Json};

/// An array or object that has not ended; the object with the name of the value that comes next.
enum PartialContainer {
    Array(Vec<Json>),
    Object(Map<String, Json>, String),
}

/// Returns the maximum nesting of brackets outside of strings, for valid JSON or any other text.
pub(crate) fn max_nesting(text: &str) -> u64 {
    let (mut depth, mut most) = (0u64, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Parses a JSON value. Returns the byte offset of the first error otherwise.
pub(crate) fn parse(text: &str) -> Result<Json, usize> {
    let mut open: Vec<PartialContainer> = Vec::new();
    let mut at = 0;
    loop {
        at = skip_whitespace(text, at);
        let mut value = match byte_at(text, at) {
            Some(b'[') => {
                at = skip_whitespace(text, at + 1);
                if byte_at(text, at) != Some(b']') {
                    open.push(PartialContainer::Array(Vec::new()));
                    continue;
                }
                at += 1;
                Json::Array(Vec::new())
            }
            Some(b'{') => {
                at = skip_whitespace(text, at + 1);
                if byte_at(text, at) != Some(b'}') {
                    open.push(PartialContainer::Object(Map::new(), property_name(text, &mut at)?));
                    continue;
                }
                at += 1;
                Json::Object(Map::new())
            }
            _ => scalar(text, &mut at)?,
        };
        loop {
            at = skip_whitespace(text, at);
            let Some(last) = open.pop() else {
                return if at == text.len() { Ok(value) } else { Err(at) };
            };
            let next = byte_at(text, at).ok_or(at)?;
            at += 1;
            match (last, next) {
                (PartialContainer::Array(mut items), b',' | b']') => {
                    items.push(value);
                    if next == b',' {
                        open.push(PartialContainer::Array(items));
                        break;
                    }
                    value = Json::Array(items);
                }
                (PartialContainer::Object(mut properties, before), b',' | b'}') => {
                    properties.insert(before, value);
                    if next == b',' {
                        open.push(PartialContainer::Object(
                            properties,
                            property_name(text, &mut at)?,
                        ));
                        break;
                    }
                    value = Json::Object(properties);
                }
                _ => return Err(at - 1),
            }
        }
    }
}

/// Parses a property name and its colon, and moves `at` past them.
pub(super) fn property_name(text: &str, at: &mut usize) -> Result<String, usize> {
    *at = skip_whitespace(text, *at);
    let start = *at;
    let Json::String(name) = scalar(text, at)? else { return Err(start) };
    *at = skip_whitespace(text, *at);
    if byte_at(text, *at) != Some(b':') {
        return Err(*at);
    }
    *at += 1;
    Ok(name)
}

/// Parses a string, number or literal, and moves `at` past it.
pub(super) fn scalar(text: &str, at: &mut usize) -> Result<Json, usize> {
    let start = *at;
    let rest = &text.as_bytes()[start..];
    let length = if rest.first() == Some(&b'"') {
        let mut escaped = false;
        let end = rest[1..].iter().position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        end.ok_or(start)? + 2
    } else {
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        rest.iter().position(|&byte| !inside(byte)).unwrap_or(rest.len())
    };
    *at = start + length;
    serde_json::from_str(&text[start..*at]).map_err(|_| start)
}

pub(super) fn byte_at(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

/// Returns the offset of the next byte that is not whitespace.
pub(super) fn skip_whitespace(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    at + rest.iter().take_while(|byte| b" \t\r\n".contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::{max_nesting, parse};

    #[test]
    fn depths_are_counted_outside_of_strings() {
        let cases = [("1", 0), ("[]", 1), (r#"{"[\"[":[{}],"a":[]}"#, 3), ("]]][", 1)];
        for (text, depth) in cases {
            assert_eq!(max_nesting(text), depth, "{text}");
        }
    }

    #[test]
    fn invalid_json_is_rejected_at_the_first_error() {
        for (text, at) in [("", 0), ("[1,]", 3), ("[1}", 2), (r#"{"a" 1}"#, 5), ("[] 1", 3)] {
            assert_eq!(parse(text), Err(at), "{text}");
        }
    }

    proptest! {
        /// Generates random sequences of JSON fragments; serde_json says which are valid and what
        /// they mean.
        #[test]
        fn documents_parse_as_with_serde_json(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("["), Just("]"), Just("{"), Just("}"), Just(","), Just(":"), Just(" "),
                    Just(r#""a""#), Just(r#""\"\\""#), Just("1.50"), Just("-2e3"), Just("null"),
                    Just(r#"{"b":"#), Just("[1,"), Just(r#","é":"#), Just("\u{a0}"),
                ],
                0..14,
            )
        ) {
            let text = pieces.concat();
            let usual: Option<Json> = serde_json::from_str(&text).ok();
            prop_assert_eq!(parse(&text).ok(), usual, "{}", text);
        }
    }
}
