//! A JSON parser whose result is one flat array of values (a *tape*, as simdjson calls it).
//!
//! Parsing makes two allocations instead of one per value, and walking is sequential. Most schemas
//! are read from here. The parser gives up on errors, deep nesting and huge documents; serde_json then
//! parses them and words the error.

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::json::json_view::{JsonShape, JsonView};

/// Maximum nesting, in arrays and objects. [`crate::json::document`] has other parsers for deeper
/// documents.
const MAX_TAPE_NESTING: usize = 100;

/// Number of properties up to which duplicate names are found by pairwise comparison. Chosen, not
/// measured.
const FEW_PROPERTIES: usize = 16;

/// A range of `strings`, or of `entries`.
#[derive(Clone, Copy, Debug)]
struct TextSpan {
    start: u32,
    end: u32,
}

/// The span of nothing.
const EMPTY_SPAN: TextSpan = TextSpan { start: 0, end: 0 };

/// The kind of a tape entry.
#[derive(Clone, Copy, Debug)]
enum EntryKind {
    Null,
    Bool(bool),
    Number,
    Text,
    Array,
    Object,
}

/// A value on the tape: its kind, its name if it is a property, and the range of its text or its
/// children.
#[derive(Clone, Copy, Debug)]
struct TapeEntry {
    kind: EntryKind,
    name: TextSpan,
    content: TextSpan,
}

/// A parsed document.
#[derive(Clone, Debug)]
pub(crate) struct JsonTape {
    /// The source text, followed by the decoded contents of strings with escapes.
    strings: String,
    source_len: usize,
    /// The values. Children of one container are adjacent; the root comes last.
    entries: Vec<TapeEntry>,
    has_duplicate_names: bool,
}

/// A value on a tape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TapeValue<'r> {
    tape: &'r JsonTape,
    at: u32,
}

impl JsonTape {
    /// Parses a text. Returns `None` if it is invalid or left to another parser.
    pub(crate) fn read(text: &str) -> Option<JsonTape> {
        if text.len() > u32::MAX as usize / 4 {
            return None;
        }
        let mut texts = String::with_capacity(text.len() + 32);
        texts.push_str(text);
        let entries = Vec::with_capacity(text.len() / 16 + 4);
        let tape = JsonTape {
            strings: texts,
            source_len: text.len(),
            entries,
            has_duplicate_names: false,
        };
        TapeParser { text: text.as_bytes(), at: 0, tape, waiting: Vec::new() }.parse()
    }

    /// Returns the source text.
    pub(crate) fn source(&self) -> &str {
        &self.strings[..self.source_len]
    }

    /// Returns `true` if a name occurs more than once in one object.
    pub(crate) fn has_duplicate_names(&self) -> bool {
        self.has_duplicate_names
    }

    pub(crate) fn root(&self) -> TapeValue<'_> {
        TapeValue { tape: self, at: (self.entries.len() - 1) as u32 }
    }

    /// Parses a string; one with escapes is decoded to the end of `strings`.
    fn string(&self, span: TextSpan) -> &str {
        &self.strings[span.start as usize..span.end as usize]
    }
}

impl<'r> TapeValue<'r> {
    fn entry(self) -> &'r TapeEntry {
        &self.tape.entries[self.at as usize]
    }
}

impl<'r> JsonView<'r> for TapeValue<'r> {
    fn shape(self) -> JsonShape<'r> {
        let entry = self.entry();
        match entry.kind {
            EntryKind::Null => JsonShape::Null,
            EntryKind::Bool(truth) => JsonShape::Bool(truth),
            EntryKind::Number => JsonShape::Number(self.tape.string(entry.content)),
            EntryKind::Text => JsonShape::String(self.tape.string(entry.content)),
            EntryKind::Array => JsonShape::Array,
            EntryKind::Object => JsonShape::Object,
        }
    }

    fn children(self) -> impl Iterator<Item = (&'r str, Self)> {
        let TapeValue { tape, .. } = self;
        let entry = self.entry();
        let span = match entry.kind {
            EntryKind::Array | EntryKind::Object => entry.content,
            _ => EMPTY_SPAN,
        };
        (span.start..span.end)
            .map(move |at| (tape.string(tape.entries[at as usize].name), TapeValue { tape, at }))
    }

    fn address(self) -> usize {
        self.at as usize
    }

    fn as_serde(self) -> Option<&'r Json> {
        None
    }

    fn from_serde(_: &'r Json) -> Option<Self> {
        None
    }
}

/// An array or object whose closing bracket was not reached.
struct OpenContainer {
    name: TextSpan,
    is_object: bool,
    /// Index of its first child in `waiting`.
    first: usize,
}

/// The state of the parser.
struct TapeParser<'t> {
    text: &'t [u8],
    at: usize,
    tape: JsonTape,
    /// Children of containers that have not ended.
    waiting: Vec<TapeEntry>,
}

impl TapeParser<'_> {
    /// Parses a whole document, with an explicit stack of open containers.
    fn parse(mut self) -> Option<JsonTape> {
        let mut open: Vec<OpenContainer> = Vec::new();
        let mut name = EMPTY_SPAN;
        loop {
            self.skip_whitespace();
            let byte = *self.text.get(self.at)?;
            if byte == b'{' || byte == b'[' {
                self.at += 1;
                self.skip_whitespace();
                let is_object = byte == b'{';
                let first = self.waiting.len();
                if open.len() >= MAX_TAPE_NESTING {
                    return None;
                }
                open.push(OpenContainer { name, is_object, first });
                if *self.text.get(self.at)? != if is_object { b'}' } else { b']' } {
                    name = if is_object { self.property_name()? } else { EMPTY_SPAN };
                    continue;
                }
            } else {
                let (kind, content) = self.scalar(byte)?;
                self.waiting.push(TapeEntry { kind, name, content });
            }
            // Closes containers up to the next comma or the end of the document.
            loop {
                self.skip_whitespace();
                let Some(last) = open.last() else {
                    if self.at < self.text.len() {
                        return None;
                    }
                    self.tape.entries.append(&mut self.waiting);
                    return Some(self.tape);
                };
                let byte = *self.text.get(self.at)?;
                self.at += 1;
                let is_object = last.is_object;
                if byte == b',' {
                    self.skip_whitespace();
                    name = if is_object { self.property_name()? } else { EMPTY_SPAN };
                    break;
                }
                if byte != if is_object { b'}' } else { b']' } {
                    return None;
                }
                let OpenContainer { name, first, .. } = open.pop()?;
                if is_object {
                    self.drop_duplicate_names(first);
                }
                let start = self.tape.entries.len() as u32;
                self.tape.entries.extend(self.waiting.drain(first..));
                let content = TextSpan { start, end: self.tape.entries.len() as u32 };
                let kind = if is_object { EntryKind::Object } else { EntryKind::Array };
                self.waiting.push(TapeEntry { kind, name, content });
            }
        }
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// Parses a property name and its colon.
    fn property_name(&mut self) -> Option<TextSpan> {
        if *self.text.get(self.at)? != b'"' {
            return None;
        }
        let name = self.string()?;
        self.skip_whitespace();
        if *self.text.get(self.at)? != b':' {
            return None;
        }
        self.at += 1;
        Some(name)
    }

    /// Parses a string, number or literal.
    fn scalar(&mut self, first: u8) -> Option<(EntryKind, TextSpan)> {
        let (word, kind): (&[u8], EntryKind) = match first {
            b'"' => return Some((EntryKind::Text, self.string()?)),
            b't' => (b"true", EntryKind::Bool(true)),
            b'f' => (b"false", EntryKind::Bool(false)),
            b'n' => (b"null", EntryKind::Null),
            _ => return Some((EntryKind::Number, self.number_literal()?)),
        };
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            (kind, EMPTY_SPAN)
        })
    }

    fn string(&mut self) -> Option<TextSpan> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            match *self.text.get(at)? {
                b'"' => break,
                b'\\' => (escaped, at) = (true, at + 2),
                0..0x20 => return None,
                _ => at += 1,
            }
        }
        self.at = at + 1;
        if !escaped {
            return Some(TextSpan { start: start as u32, end: at as u32 });
        }
        // serde_json decodes the escapes.
        let quoted = self.tape.strings.get(start - 1..=at)?;
        let decoded: String = serde_json::from_str(quoted).ok()?;
        let start = self.tape.strings.len();
        self.tape.strings.push_str(&decoded);
        Some(TextSpan { start: start as u32, end: self.tape.strings.len() as u32 })
    }

    /// Parses the digits of a number, by JSON's grammar.
    fn number_literal(&mut self) -> Option<TextSpan> {
        let start = self.at;
        self.at += usize::from(self.text.get(self.at) == Some(&b'-'));
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.one_or_more_digits()?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.one_or_more_digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.one_or_more_digits()?;
        }
        Some(TextSpan { start: start as u32, end: self.at as u32 })
    }

    fn one_or_more_digits(&mut self) -> Option<()> {
        let rest = &self.text[self.at.min(self.text.len())..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        (count > 0).then_some(())
    }

    /// Removes duplicate names: the last value counts, at the position of the first.
    fn drop_duplicate_names(&mut self, first: usize) {
        let properties = &self.waiting[first..];
        let text = |span: TextSpan| self.tape.string(span);
        if properties.len() <= FEW_PROPERTIES {
            let alike = |one: &TapeEntry, other: &TapeEntry| text(one.name) == text(other.name);
            let mut pairs = properties.iter().enumerate();
            if pairs.all(|(at, one)| !properties[..at].iter().any(|other| alike(one, other))) {
                return;
            }
        }
        let mut places: FxHashMap<&str, usize> = FxHashMap::default();
        let mut kept: Vec<TapeEntry> = Vec::with_capacity(properties.len());
        for property in properties {
            let at = *places.entry(text(property.name)).or_insert(kept.len());
            if at < kept.len() {
                kept[at] = *property;
            } else {
                kept.push(*property);
            }
        }
        self.tape.has_duplicate_names |= kept.len() < properties.len();
        self.waiting.truncate(first);
        self.waiting.extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value as Json};

    use super::{JsonTape, TapeValue};
    use crate::json::json_view::{JsonShape, JsonView};

    fn json(part: TapeValue<'_>) -> Json {
        match part.shape() {
            JsonShape::Null => Json::Null,
            JsonShape::Bool(truth) => Json::Bool(truth),
            JsonShape::Number(text) => serde_json::from_str(text).expect("a number"),
            JsonShape::String(text) => Json::String(text.to_owned()),
            JsonShape::Array => part.children().map(|(_, one)| json(one)).collect(),
            JsonShape::Object => {
                let properties = part.children().map(|(name, one)| (name.to_owned(), json(one)));
                let all: Vec<(String, Json)> = properties.collect();
                let count = all.len();
                let map: Map<String, Json> = all.into_iter().collect();
                assert_eq!(map.len(), count, "names are distinct");
                Json::Object(map)
            }
        }
    }

    fn order(json: &Json) -> String {
        json.to_string()
    }

    #[test]
    fn many_properties_keep_their_order() {
        let properties: Vec<String> = (0..60).map(|at| format!("\"{}\":{at}", at % 40)).collect();
        let text = format!("{{{}}}", properties.join(","));
        let usual: Json = serde_json::from_str(&text).expect("an object");
        let tape = JsonTape::read(&text).expect("a tree");
        assert_eq!(order(&json(tape.root())), order(&usual));
        assert_eq!(tape.source(), text);
    }

    #[test]
    fn deep_documents_are_left_to_other_parsers() {
        let text = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(JsonTape::read(&text(100)).is_some() && JsonTape::read(&text(101)).is_none());
    }

    proptest! {
        /// Generates random sequences of JSON fragments; serde_json says which are valid and what
        /// they mean.
        #[test]
        fn documents_parse_as_with_serde_json(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("["), Just("]"), Just("{"), Just("}"), Just(","), Just(":"), Just(" "),
                    Just("\"a\""), Just("\"a\":"), Just("\"\\u0061\":"), Just("\"\\\"\\\\\""),
                    Just("1.50"), Just("-2e3"), Just("-0"), Just("01"), Just("1."), Just("2E+7"),
                    Just("null"), Just("true"), Just("fals"), Just("{\"b\":"), Just("[1,"),
                    Just(",\"é\":"), Just("\u{a0}"), Just("\"\\ud800\""), Just("\"\\ud83d\\ude00\""),
                    Just("\"\t\""), Just("\n"), Just("\"\u{7f}\""), Just("\""), Just("-"), Just("\\"),
                ],
                0..14,
            )
        ) {
            let text = pieces.concat();
            let usual: Option<Json> = serde_json::from_str(&text).ok();
            let tape = JsonTape::read(&text);
            let read = tape.as_ref().map(|tape| json(tape.root()));
            prop_assert_eq!(read.as_ref().map(order), usual.as_ref().map(order), "{}", text);
        }
    }
}
