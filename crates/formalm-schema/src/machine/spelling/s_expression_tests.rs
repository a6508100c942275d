//! A toy spelling: values as S-expressions.
//!
//! ```text
//! #n  #t  #f  -12  |a string: ^| and ^^ are escapes, a newline is itself or ^n|
//! (list 1 |b|)  (object (|name| 1) (|other| #n))
//! ```
//!
//! It implements what a spelling must, and takes the defaults of the rest. The oracle enumerates
//! values, keeps those that `jsonschema` finds valid, and spells each in all ways.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use formalm_constraint::{Constraint, Matcher};
use formalm_core::{CompletionHints, Error, InterruptCheck, LazyDfa, random_member};
use formalm_machines::IdentityClasses;
use formalm_vocabulary::Vocabulary;
use jsonschema::validator_for;
use serde_json::{Value as Json, json};

use crate::machine::SchemaAutomaton;
use crate::machine::automaton::SchemaSource;
use crate::machine::frame::ContainerState::{AfterComma, AfterName, AfterOpen, AfterValue};
use crate::machine::frame::{CharState, FRESH, Frame, FrameId, Mark, ReaderPosition};
use crate::machine::min_bytes::distinct_values::UNBOUNDED;
use crate::machine::numbers::is_number_byte;
use crate::machine::spelling::{
    CompletionReuse, PartialLen, SearchHints, SpelledStrings, Spelling, SpellingLengths,
};
use crate::machine::values::scalars::{CharReader, PartialChar};
use crate::machine::values::value_start::ValueStart::{self, Bool, Null};
use crate::machine::values::{AfterEvent, Values};
use crate::options::{FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder};
use crate::schema_nodes::JsonType;

#[derive(Debug)]
struct SExpressions;

/// Marks of a value: after `#`, and after the bracket of a list or object.
const HASH: Mark = 1;
const BRACKET: Mark = 2;
/// Marks of an object: after the blank and the bracket before a name, and before the bracket that
/// ends a property.
const BLANK: Mark = 1;
const NAME_BRACKET: Mark = 2;
const IN_PROPERTY: Mark = 1;
/// After `^`.
const ESCAPE: CharState = CharState([1, 0, 0, 0]);

struct AnyEscape;

impl PartialChar for AnyEscape {
    fn some_accepted(&self, reader: &CharReader<'_>) -> Result<bool, Error> {
        Ok(reader(b"|")?.is_ok() || reader(b"^")?.is_ok() || reader(b"\n")?.is_ok())
    }

    fn can_become(&self, character: char) -> bool {
        "|^\n".contains(character)
    }
}

/// Returns the rest of the word after which a container may have parts.
fn word(frame: Frame) -> &'static [u8] {
    match frame {
        Frame::Array { mode: AfterOpen, mark, .. } => &b"list"[4 - mark as usize..],
        Frame::Object { mode: AfterOpen, mark, .. } => &b"object"[6 - mark as usize..],
        _ => b"",
    }
}

impl Spelling for SExpressions {
    type MaskTables = ();

    fn new(_: &JsonSchemaOptions) -> SExpressions {
        SExpressions
    }

    fn read(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
        let mut may = |start| values.may_open(at, start);
        let marked = |mark| Ok(Some(at.with_mark(mark)));
        match (at.frame, byte) {
            (Frame::Value { mark: FRESH, .. }, b'#')
                if may(Null(b""))? || may(Bool(true, b""))? || may(Bool(false, b""))? =>
            {
                marked(HASH)
            }
            (Frame::Value { mark: HASH, .. }, b'n') => values.open(at, Null(b"")),
            (Frame::Value { mark: HASH, .. }, b't' | b'f') => {
                values.open(at, Bool(byte == b't', b""))
            }
            (Frame::Value { mark: FRESH, .. }, b'|') => values.open(at, ValueStart::String),
            (Frame::Value { mark: FRESH, .. }, b'-' | b'0'..=b'9') => {
                values.open(at, ValueStart::Number(byte))
            }
            (Frame::Value { mark: FRESH, .. }, b'(')
                if may(ValueStart::Array)? || may(ValueStart::Object)? =>
            {
                marked(BRACKET)
            }
            (Frame::Value { mark: BRACKET, .. }, b'l') => {
                Ok(values.open(at, ValueStart::Array)?.map(|list| list.with_mark(3)))
            }
            (Frame::Value { mark: BRACKET, .. }, b'o') => {
                Ok(values.open(at, ValueStart::Object)?.map(|object| object.with_mark(5)))
            }
            (Frame::String { escape: ESCAPE, .. } | Frame::Name { escape: ESCAPE, .. }, _) => {
                match byte {
                    b'|' | b'^' => content(values, at, byte),
                    b'n' => content(values, at, b'\n'),
                    _ => Ok(None),
                }
            }
            (Frame::String { .. }, b'|') => values.end_string(at),
            (Frame::String { .. }, b'^') => values.string_char(at, ESCAPE, &AnyEscape),
            (Frame::Name { .. }, b'|') => values.end_name(at),
            (Frame::Name { .. }, b'^') => values.name_char(at, ESCAPE, &AnyEscape),
            (Frame::String { .. } | Frame::Name { .. }, _) => content(values, at, byte),
            (Frame::Number { .. }, _) if is_number_byte(byte) => values.number_byte(at, byte),
            (Frame::Number { .. }, _) => match values.end_number(at)? {
                Some(around) => self.read(values, around, byte),
                None => Ok(None),
            },
            (Frame::Array { mark, .. } | Frame::Object { mark, .. }, _)
                if !word(at.frame).is_empty() =>
            {
                if word(at.frame)[0] == byte {
                    marked(mark - 1)
                } else {
                    Ok(None)
                }
            }
            (Frame::Array { .. }, b' ') => values.start_item(at, FRESH),
            (Frame::Object { mode: AfterOpen | AfterValue, mark: FRESH, .. }, b' ') => {
                values.next_property(at, BLANK)
            }
            (Frame::Object { mode: AfterComma, mark: BLANK, .. }, b'(') => marked(NAME_BRACKET),
            (Frame::Object { mode: AfterComma, mark: NAME_BRACKET, .. }, b'|') => {
                values.start_name(at, FRESH)
            }
            (Frame::Object { mode: AfterName, .. }, b' ') => values.start_value(at, IN_PROPERTY),
            (Frame::Object { mode: AfterValue, mark: IN_PROPERTY, .. }, b')') => marked(FRESH),
            (Frame::Array { .. }, b')')
            | (Frame::Object { mode: AfterOpen | AfterValue, mark: FRESH, .. }, b')') => {
                values.end_container(at)
            }
            _ => Ok(None),
        }
    }
}

fn content(values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
    match at.frame {
        Frame::Name { .. } => values.name_bytes(at, &[byte]),
        _ => values.string_bytes(at, &[byte]),
    }
}

impl SpelledStrings for SExpressions {
    fn string_end(&self) -> &'static [u8] {
        b"|"
    }

    fn byte_len(&self, byte: u8) -> usize {
        if b"|^".contains(&byte) { 2 } else { 1 }
    }

    fn spell_char(&self, text: &[u8]) -> Vec<u8> {
        vec![b'^', text[0]]
    }

    fn byte_order(&self, byte: u8) -> u32 {
        let byte = u32::from(byte);
        if b"|^".contains(&(byte as u8)) { u32::from(b'^') << 16 | byte << 8 } else { byte << 16 }
    }

    fn char_after(&self, at: CharState, byte: u8) -> Option<CharState> {
        (at == CharState::NONE && byte == b'^').then_some(ESCAPE)
    }

    fn partial_len(&self, at: CharState) -> PartialLen {
        let read = usize::from(at == ESCAPE);
        PartialLen { read, left: read, slack: 0 }
    }
}

impl SpellingLengths for SExpressions {
    fn value_rest(&self, _: &Values, _: FrameId, mark: Mark, value: usize) -> usize {
        value.saturating_sub(usize::from(mark != FRESH))
    }

    fn item_len(&self) -> usize {
        " ".len()
    }

    fn property_len(&self) -> usize {
        " (|| )".len()
    }

    fn close_len(&self, _: u32) -> usize {
        ")".len()
    }

    fn container_rest(&self, _: &Values, frame: &Frame, parts: usize) -> usize {
        match *frame {
            Frame::Object { mode: AfterComma, mark, .. } => {
                parts.max(" (|| 0)".len()) - usize::from(mark) + 1
            }
            Frame::Object { mode: AfterName, .. } => " 0)".len() + parts + 1,
            Frame::Object { mode: AfterValue, mark, .. } => usize::from(mark) + parts + 1,
            _ => word(*frame).len() + parts + 1,
        }
    }

    fn name_rest(&self, read: Option<usize>, escape: CharState, parts: usize) -> usize {
        let rest = read.map_or(0, |read| parts.saturating_sub(" (|".len() + read));
        rest.max("| 0)".len() + self.partial_len(escape).left)
    }

    fn string_quotes(&self) -> usize {
        "||".len()
    }

    fn value_counts(&self, of: JsonType) -> &'static [(usize, u64)] {
        match of {
            JsonType::Null | JsonType::Bool => &[(2, 2)],
            _ => &[(6, UNBOUNDED)],
        }
    }
}

impl SearchHints for SExpressions {}
impl CompletionReuse for SExpressions {}

/// Returns all concatenations with one string of each list.
fn choices(parts: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
    parts.into_iter().fold(vec![String::new()], |all, part| {
        all.iter().flat_map(|one| part.iter().map(move |next| format!("{one}{next}"))).collect()
    })
}

fn spelled_string(text: &str) -> Vec<String> {
    let characters = text.chars().map(|character| match character {
        '|' | '^' => vec![format!("^{character}")],
        '\n' => vec!["\n".to_owned(), "^n".to_owned()],
        _ => vec![character.to_string()],
    });
    let quote = || [vec!["|".to_owned()]].into_iter();
    choices(quote().chain(characters).chain(quote()))
}

/// Returns all spellings of a value. An object has at most two properties.
fn spellings(value: &Json) -> Vec<String> {
    let word = |text: &str| vec![text.to_owned()];
    match value {
        Json::Null => word("#n"),
        Json::Bool(verdict) => word(if *verdict { "#t" } else { "#f" }),
        Json::Number(zero) if zero.as_i64() == Some(0) => vec!["0".to_owned(), "-0".to_owned()],
        Json::Number(number) => word(&number.to_string()),
        Json::String(text) => spelled_string(text),
        Json::Array(items) => {
            let items = items.iter().flat_map(|item| [word(" "), spellings(item)]);
            choices([word("(list")].into_iter().chain(items).chain([word(")")]))
        }
        Json::Object(properties) => {
            let part = |(name, value): (&String, &Json)| {
                [word(" ("), spelled_string(name), word(" "), spellings(value), word(")")]
            };
            let whole = |parts: Vec<Vec<String>>| {
                choices([word("(object")].into_iter().chain(parts).chain([word(")")]))
            };
            let properties = || properties.iter().map(part);
            let orders = [properties().flatten().collect(), properties().rev().flatten().collect()];
            orders.into_iter().flat_map(whole).collect()
        }
    }
}

/// Values that contain all that the schemas below accept.
fn values() -> Vec<Json> {
    let mut scalars = vec![json!(null), json!(true), json!(false)];
    scalars.extend((-3..=12).map(Json::from));
    scalars.extend(["", "a", "b", "|", "^", "\n", "a|", "^a", "||", "\n^", "é"].map(Json::from));
    let pairs = |few: &[Json]| {
        let two = few.iter().flat_map(|one| few.iter().map(move |other| json!([one, other])));
        few.iter().map(|one| json!([one])).chain(two).chain([json!([])]).collect::<Vec<Json>>()
    };
    let mut objects = vec![json!({})];
    for name in ["a", "^b", "|"] {
        objects.extend(scalars.iter().map(|one| json!({name: one})));
        for one in [json!(null), json!(true), json!(false), json!("|")] {
            objects.extend(["a", "^b"].map(|other| json!({name: one.clone(), other: null})));
            objects.extend(["a", "^b"].map(|other| json!({name: one.clone(), other: "|"})));
        }
    }
    let arrays = pairs(&scalars);
    let nested = pairs(&[&objects[..2], &[json!({"a": null, "^b": null})], &arrays[..3]].concat());
    let three = ["\n|a", "a\n|", "|a\n", "\na|", "a|\n", "|\na"];
    let three = three.map(|all| all.chars().map(|one| json!(one.to_string())).collect::<Json>());
    [scalars, objects, arrays, nested, three.into()].concat()
}

/// Schemas with finitely many instances and spellings.
fn schemas() -> Vec<Json> {
    let plain = [
        json!({"enum": [null, true, "a|", "^", "\n^", [], {}, ["|"], {"^b": "|"}]}),
        json!({"type": "integer", "minimum": -3, "maximum": 12}),
        json!({"type": "string", "pattern": "^[|^a]{0,2}$", "not": {"enum": ["aa", "a^", "^^", "^|", "|^", "|a"]}}),
        json!({"type": "array", "items": {"type": ["boolean", "null"]}, "maxItems": 2}),
        json!({"type": "array", "uniqueItems": true, "items": {"enum": ["\n", "|", "a"]}, "maxItems": 3}),
        json!({"type": "object", "properties": {"a": {"type": "null"}, "^b": {"enum": ["|", null]}},
            "required": ["^b"], "additionalProperties": false}),
        json!({"type": "object", "patternProperties": {"^[|]$": {"type": "boolean"}},
            "additionalProperties": false, "maxProperties": 1}),
        json!({"type": "array", "uniqueItems": true, "maxItems": 2, "items": {"type": "object",
            "properties": {"a": {"type": "null"}, "^b": {"type": "null"}},
            "required": ["a", "^b"], "additionalProperties": false}}),
    ];
    let mut all = plain.to_vec();
    for (at, one) in plain.iter().enumerate() {
        for other in &plain[at + 1..] {
            all.push(json!({"anyOf": [one, other]}));
            all.push(json!({"oneOf": [one, other]}));
            all.push(json!({"allOf": [one], "not": other}));
        }
    }
    let draft = "http://json-schema.org/draft-04/schema#";
    all.iter_mut().for_each(|one| one["$schema"] = draft.into());
    all
}

fn machine(schema: &Json) -> Option<SchemaAutomaton<SExpressions>> {
    let (property_order, formats) = (PropertyOrder::Any, FormatSet::NONE);
    let options = JsonSchemaOptions { property_order, formats, ..JsonSchemaOptions::default() };
    let source = SchemaSource::Schema(schema.clone().into(), [].into());
    SchemaAutomaton::from_source(source, options, JsonSchemaLimits::default()).unwrap().0
}

#[test]
fn an_s_expression_is_masked_and_completed_as_by_its_definition() {
    let values = values();
    let mut seed = 1u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for schema in schemas() {
        let validator = validator_for(&schema).unwrap();
        let valid = values.iter().filter(|value| validator.is_valid(value)).flat_map(spellings);
        let members: BTreeSet<Vec<u8>> = valid.map(String::into_bytes).collect();
        let Some(machine) = machine(&schema).map(Arc::new) else {
            assert!(members.is_empty(), "{schema}");
            continue;
        };
        let prefixes = members.iter().flat_map(|one| (0..=one.len()).map(|end| &one[..end]));
        let prefixes: BTreeSet<&[u8]> = prefixes.collect();
        let list: Vec<&[u8]> = prefixes.iter().copied().collect();
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for _ in 0..60 {
            let from = list[random(list.len())];
            let mut token = from[random(from.len() + 1)..].to_vec();
            token.truncate(6);
            token.extend(b" ()|^#na".get(random(32)));
            if token.len() > 1 && !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        let end = tokens.len() as u32;
        let listed = tokens.iter().cloned().map(Some).chain([None]).collect();
        let vocabulary = Arc::new(Vocabulary::from_tokens(listed, vec![end]).unwrap());
        let classes = IdentityClasses::new(Arc::clone(&machine));
        let constraint = Arc::new(Constraint::over(classes, vocabulary, 1 << 24));
        for _ in 0..40 {
            let prefix = list[random(list.len())];
            let mut matcher = Matcher::new(Arc::clone(&constraint));
            prefix.iter().for_each(|&byte| matcher.advance(byte.into()).unwrap());
            let mut mask = vec![0u32; tokens.len() / 32 + 1];
            matcher.fill(&mut mask).unwrap();
            for (at, token) in tokens.iter().map(Some).chain([None]).enumerate() {
                let allowed = mask[at / 32] >> (at % 32) & 1 != 0;
                let read = [prefix, token.map_or(&[], |token| &token[..])].concat();
                let expected = match token {
                    Some(_) => prefixes.contains(&read[..]),
                    None => members.contains(prefix),
                };
                assert_eq!(allowed, expected, "{:?} of {schema}", String::from_utf8_lossy(&read));
            }
            let state = machine.walk(machine.start(), prefix).unwrap().unwrap();
            let begun = members.range(prefix.to_vec()..).take_while(|one| one.starts_with(prefix));
            let rests = begun.map(|one| &one[prefix.len()..]);
            let least = rests.min_by_key(|rest| (rest.len(), *rest)).unwrap();
            assert_eq!(machine.shortest_completion(state).unwrap(), least, "{schema}");
            assert!(machine.min_bytes_hint(state).unwrap() <= least.len());
        }
        for seed in 0..3 {
            let mut go_on = || true;
            let found = random_member(&*machine, seed, 20, &mut InterruptCheck::new(&mut go_on));
            assert!(members.contains(&found.unwrap()), "{schema}");
        }
    }
}
