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
use formalm_core::{CompletionHints, Error, InterruptCheck, LazyDfa, StateId, random_member};
use formalm_machines::IdentityClasses;
use formalm_vocabulary::Vocabulary;
use jsonschema::validator_for;
use serde_json::{Value as Json, json};

use crate::machine::SchemaAutomaton;
use crate::machine::automaton::SchemaSource;
use crate::machine::frame::{
    CharState, ContainerState, FRESH, Frame, FrameId, Mark, ReaderPosition,
};
use crate::machine::min_bytes::distinct_values::UNBOUNDED;
use crate::machine::numbers::is_number_byte;
use crate::machine::spelling::{
    CompletionReuse, PartialLen, SearchHints, SpelledStrings, Spelling, SpellingLengths,
};
use crate::machine::values::scalars::{CharReader, PartialChar};
use crate::machine::values::value_start::ValueStart;
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
        Frame::Array { mode: ContainerState::AfterOpen, mark, .. } => &b"ist"[3 - mark as usize..],
        Frame::Object { mode: ContainerState::AfterOpen, mark, .. } => {
            &b"bject"[5 - mark as usize..]
        }
        _ => b"",
    }
}

fn marked(at: ReaderPosition, new: Mark) -> Option<ReaderPosition> {
    let ReaderPosition { mut frame, record } = at;
    if let Frame::Value { mark, .. } | Frame::Object { mark, .. } | Frame::Array { mark, .. } =
        &mut frame
    {
        *mark = new;
    }
    Some(ReaderPosition { frame, record })
}

impl Spelling for SExpressions {
    fn new(_: &JsonSchemaOptions) -> SExpressions {
        SExpressions
    }

    fn read(&self, values: &mut Values, at: ReaderPosition, byte: u8) -> AfterEvent {
        let may = |values: &mut Values, start| values.may_open(at, start);
        match (at.frame, byte) {
            (Frame::Value { mark: FRESH, .. }, b'#') => {
                let any = may(values, ValueStart::Null(b""))?
                    || may(values, ValueStart::Bool(true, b""))?
                    || may(values, ValueStart::Bool(false, b""))?;
                Ok(if any { marked(at, HASH) } else { None })
            }
            (Frame::Value { mark: FRESH, .. }, b'(') => {
                let any = may(values, ValueStart::Array)? || may(values, ValueStart::Object)?;
                Ok(if any { marked(at, BRACKET) } else { None })
            }
            (Frame::Value { mark: FRESH, .. }, b'|') => values.open(at, ValueStart::String),
            (Frame::Value { mark: FRESH, .. }, b'-' | b'0'..=b'9') => {
                values.open(at, ValueStart::Number(byte))
            }
            (Frame::Value { mark: HASH, .. }, b'n' | b't' | b'f') => {
                let start = match byte {
                    b'n' => ValueStart::Null(b""),
                    _ => ValueStart::Bool(byte == b't', b""),
                };
                match values.open(at, start)? {
                    Some(ReaderPosition {
                        frame: Frame::Literal { verdicts, parent, .. },
                        record,
                    }) => values.close_value(parent, verdicts, record),
                    _ => Ok(None),
                }
            }
            (Frame::Value { mark: BRACKET, .. }, b'l') => {
                Ok(values.open(at, ValueStart::Array)?.and_then(|list| marked(list, 3)))
            }
            (Frame::Value { mark: BRACKET, .. }, b'o') => {
                Ok(values.open(at, ValueStart::Object)?.and_then(|object| marked(object, 5)))
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
                Ok(if word(at.frame)[0] == byte { marked(at, mark - 1) } else { None })
            }
            (Frame::Array { .. }, b' ') => values.start_item(at, FRESH),
            (Frame::Object { mode: ContainerState::AfterComma, mark: BLANK, .. }, b'(') => {
                Ok(marked(at, NAME_BRACKET))
            }
            (Frame::Object { mode: ContainerState::AfterComma, mark: NAME_BRACKET, .. }, b'|') => {
                values.start_name(at, FRESH)
            }
            (Frame::Object { mode: ContainerState::AfterName, .. }, b' ') => {
                values.start_value(at, IN_PROPERTY)
            }
            (Frame::Object { mode: ContainerState::AfterValue, mark: IN_PROPERTY, .. }, _) => {
                Ok(if byte == b')' { marked(at, FRESH) } else { None })
            }
            (Frame::Object { mode, .. }, b' ') if mode != ContainerState::AfterComma => {
                values.next_property(at, BLANK)
            }
            (
                Frame::Array { .. }
                | Frame::Object {
                    mode: ContainerState::AfterOpen | ContainerState::AfterValue, ..
                },
                b')',
            ) => values.end_container(at),
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
        match at {
            ESCAPE => PartialLen { read: 1, left: 1, slack: 0 },
            _ => PartialLen::default(),
        }
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
            Frame::Object { mode: ContainerState::AfterComma, mark, .. } => {
                parts.max(" (|| 0)".len()) - usize::from(mark) + 1
            }
            Frame::Object { mode: ContainerState::AfterName, .. } => " 0)".len() + parts + 1,
            Frame::Object { mode: ContainerState::AfterValue, mark, .. } => {
                usize::from(mark) + parts + 1
            }
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
            JsonType::Null => &[(2, 1)],
            JsonType::Bool => &[(2, 2)],
            JsonType::Array => &[(6, 1), (7, UNBOUNDED)],
            JsonType::Object => &[(8, 1), (9, UNBOUNDED)],
            JsonType::String | JsonType::Number => &[(1, UNBOUNDED)],
        }
    }
}

impl SearchHints for SExpressions {}
impl CompletionReuse for SExpressions {}

/// Returns all spellings of a value.
fn spellings(value: &Json) -> Vec<String> {
    let strings = |text: &str| {
        let mut all = vec!["|".to_owned()];
        for character in text.chars() {
            let ways: &[&str] = match character {
                '|' => &["^|"],
                '^' => &["^^"],
                '\n' => &["\n", "^n"],
                _ => &[character.encode_utf8(&mut [0; 4])]
                    .map(|one| one.to_owned())
                    .map(|one| &*one.leak()),
            };
            all = all
                .iter()
                .flat_map(|one| ways.iter().map(move |way| format!("{one}{way}")))
                .collect();
        }
        all.iter().map(|one| format!("{one}|")).collect::<Vec<String>>()
    };
    match value {
        Json::Null => vec!["#n".to_owned()],
        Json::Bool(verdict) => vec![if *verdict { "#t" } else { "#f" }.to_owned()],
        Json::Number(number) => vec![number.to_string()],
        Json::String(text) => strings(text),
        Json::Array(items) => items
            .iter()
            .fold(vec!["(list".to_owned()], |all, item| {
                let ways = spellings(item);
                all.iter()
                    .flat_map(|one| ways.iter().map(move |way| format!("{one} {way}")))
                    .collect()
            })
            .iter()
            .map(|one| format!("{one})"))
            .collect(),
        Json::Object(properties) => {
            let mut all = Vec::new();
            let mut open = vec![("(object".to_owned(), properties.iter().collect::<Vec<_>>())];
            while let Some((text, left)) = open.pop() {
                if left.is_empty() {
                    all.push(format!("{text})"));
                }
                for at in 0..left.len() {
                    let mut rest = left.clone();
                    let (name, value) = rest.remove(at);
                    for name in strings(name) {
                        for value in spellings(value) {
                            open.push((format!("{text} ({name} {value})"), rest.clone()));
                        }
                    }
                }
            }
            all
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
    let three = |all: [&str; 3]| json!(all);
    let unique = [
        ["\n", "|", "a"],
        ["a", "\n", "|"],
        ["|", "a", "\n"],
        ["\n", "a", "|"],
        ["a", "|", "\n"],
        ["|", "\n", "a"],
    ];
    [scalars, objects, arrays, nested, unique.map(three).into()].concat()
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
    let options = JsonSchemaOptions {
        property_order: PropertyOrder::Any,
        formats: FormatSet::NONE,
        ..JsonSchemaOptions::default()
    };
    let source = SchemaSource::Schema(schema.clone().into(), [].into());
    SchemaAutomaton::from_source(source, options, JsonSchemaLimits::default()).unwrap().0
}

/// Returns all members by definition.
fn members(schema: &Json, values: &[Json]) -> BTreeSet<Vec<u8>> {
    let validator = validator_for(schema).unwrap();
    let valid = values.iter().filter(|value| validator.is_valid(value));
    valid.flat_map(spellings).map(String::into_bytes).collect()
}

#[test]
fn an_s_expression_is_masked_and_completed_as_by_its_definition() {
    let values = values();
    let mut seed = 1u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for schema in schemas() {
        let members = members(&schema, &values);
        let Some(machine) = machine(&schema) else {
            assert!(members.is_empty(), "{schema}");
            continue;
        };
        let prefixes: BTreeSet<&[u8]> =
            members.iter().flat_map(|one| (0..=one.len()).map(|end| &one[..end])).collect();
        let list: Vec<&[u8]> = prefixes.iter().copied().collect();
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for _ in 0..60 {
            let from = list[random(list.len())];
            let at = random(from.len() + 1);
            let mut token = from[at..].iter().copied().take(6).collect::<Vec<u8>>();
            if random(4) == 0 && !token.is_empty() {
                let wrong = random(token.len());
                token[wrong] = b" ()|^#na"[random(8)];
            }
            if token.len() > 1 && !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        let end = tokens.len() as u32;
        let listed = tokens.iter().cloned().map(Some).chain([None]).collect();
        let vocabulary = Arc::new(Vocabulary::from_tokens(listed, vec![end]).unwrap());
        let machine = Arc::new(machine);
        let classes = IdentityClasses::new(Arc::clone(&machine));
        let constraint = Arc::new(Constraint::over(classes, vocabulary, 1 << 24));
        for _ in 0..40 {
            let prefix = list[random(list.len())];
            let mut matcher = Matcher::new(Arc::clone(&constraint));
            prefix.iter().for_each(|&byte| matcher.advance(byte.into()).unwrap());
            let mut mask = vec![0u32; tokens.len() / 32 + 1];
            matcher.fill(&mut mask).unwrap();
            for token in 0..=end {
                let allowed = mask[token as usize / 32] >> (token % 32) & 1 != 0;
                let expected = match tokens.get(token as usize) {
                    Some(token) => prefixes.contains(&[prefix, token].concat()[..]),
                    None => members.contains(prefix),
                };
                let shown = String::from_utf8_lossy(prefix);
                assert_eq!(allowed, expected, "{token} after {shown:?} of {schema}");
            }
            let state: StateId = machine.walk(machine.start(), prefix).unwrap().unwrap();
            let begun = members.range(prefix.to_vec()..).take_while(|one| one.starts_with(prefix));
            let least =
                begun.map(|one| &one[prefix.len()..]).min_by_key(|rest| (rest.len(), *rest));
            assert_eq!(Some(&machine.shortest_completion(state).unwrap()[..]), least, "{schema}");
            assert!(machine.min_bytes_hint(state).unwrap() <= least.map_or(0, <[u8]>::len));
        }
        for seed in 0..3 {
            let mut go_on = || true;
            let found = random_member(&*machine, seed, 20, &mut InterruptCheck::new(&mut go_on));
            assert!(members.contains(&found.unwrap()), "{schema}");
        }
    }
}
