//! Tests of masks that positions share: they are those that each position has in its own context.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use formalm_core::LazyDfa;
use formalm_machines::StateClasses;
use formalm_schema::{
    Document, EscapePolicy, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
    SchemaMaskClasses, Whitespace, WhitespaceLayout,
};
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};

use super::part_masks::PartMasks;
use super::subsets::NumberedElement;
use super::{CanonicalMasks, NONE, TextBegin, tests::file};
use crate::mask::Mask;

/// A tokenizer, and the constraints over it share one encoder.
pub(super) struct Tokenizer {
    pub(super) vocabulary: Arc<Vocabulary>,
    pub(super) encoder: Arc<BpeEncoder>,
}

impl Tokenizer {
    /// Returns a tokenizer with pieces around the punctuation of JSON.
    pub(super) fn new() -> Tokenizer {
        Tokenizer::with_normalizer(false)
    }

    /// Returns the same tokenizer, with or without normalization to NFC.
    pub(super) fn with_normalizer(nfc: bool) -> Tokenizer {
        let pieces = [
            "\",", "\":", "Ġ\"", "{\"", "\"}", ",\"", ":\"", "},", "},Ġ\"", "\",Ġ\"", "\",\"",
            "\"\"", "\"$", "\"_", "ab", "bc", "abc", "12", "34", "12,", "3,", "Ġa", "Ġ1", "a\"",
            "a\",", "-1", "20", "01", "\\n", "\\u", "ue", "tr", "true", "false", "null", "se",
            "Ġtrue", "],", "[\"", "ĠĠ", "ĊĠ", "Ã©", "\"Ã©", "a'", "'s", "Ìģ", "ġÌ",
        ];
        let pieces: BTreeSet<String> = pieces.into_iter().map(str::to_owned).collect();
        let file = file(&pieces, false, true, nfc);
        let vocabulary = Vocabulary::from_tokenizer_json(file.as_bytes(), None).unwrap();
        let encoder = BpeEncoder::from_tokenizer_json(file.as_bytes(), None).unwrap();
        encoder.check(&vocabulary).unwrap();
        Tokenizer { vocabulary: Arc::new(vocabulary), encoder: Arc::new(encoder) }
    }

    fn known(&self) -> usize {
        self.encoder.extension::<PartMasks>().unwrap().len()
    }
}

/// A schema's canonical masks.
pub(super) struct Schema {
    pub(super) keys: SchemaMaskClasses,
    pub(super) masks: CanonicalMasks<SchemaMaskClasses>,
}

impl Schema {
    pub(super) fn new(tokenizer: &Tokenizer, schema: &str, options: JsonSchemaOptions) -> Schema {
        let document = Document::read(schema).unwrap();
        let limits = JsonSchemaLimits::default();
        let machine = SchemaAutomaton::new(&document, &[], options, limits).unwrap();
        let Tokenizer { vocabulary, encoder } = tokenizer;
        let names = Arc::clone(vocabulary.token_names());
        let longest = vocabulary.longest_token_bytes();
        let keys = SchemaMaskClasses::new(Arc::new(machine), longest, names);
        let given = (vocabulary, Arc::clone(encoder));
        let masks = CanonicalMasks::new(&keys, given, 64 << 20, TextBegin::Anywhere).unwrap();
        Schema { keys, masks }
    }

    /// Compares the masks along the canonical tokens of a text with those of another constraint
    /// that shares nothing.
    pub(super) fn check(&self, tokenizer: &Tokenizer, alone: &Schema, text: &str) {
        let tokens = tokenizer.encoder.encode(text).unwrap();
        let words = tokenizer.vocabulary.len().div_ceil(32);
        let mut here = (self.masks.start(), NONE);
        let mut there = (alone.masks.start(), NONE);
        for token in tokens {
            let elements = self.masks.elements(here.0);
            let others = alone.masks.elements(there.0);
            assert_eq!(elements.len(), others.len());
            let sources = |list: &[NumberedElement]| {
                list.iter().flat_map(NumberedElement::mask_sources).collect::<Vec<_>>()
            };
            let mut shared = [vec![0; words], vec![0; words]];
            let mut own = [vec![0; words], vec![0; words]];
            let join = |masks: &(Mask, Mask), into: &mut [Vec<u32>; 2]| {
                masks.0.join(&mut into[0]);
                masks.1.join(&mut into[1]);
            };
            for source in sources(&elements) {
                join(&self.masks.compute(&self.keys, source).unwrap(), &mut shared);
            }
            for source in sources(&others) {
                join(&alone.masks.compute_here(&alone.keys, source).unwrap(), &mut own);
            }
            assert_eq!(shared, own, "in {text:?} before token {token}");
            here = (self.masks.step(&self.keys, here, token).unwrap().unwrap(), token);
            there = (alone.masks.step(&alone.keys, there, token).unwrap().unwrap(), token);
        }
        assert!(self.masks.is_accepting(here.0));
    }
}

pub(super) fn layout(separator: &str, colon: &str, indent: Option<&str>) -> JsonSchemaOptions {
    let white = |text: &str| Whitespace::parse(text).unwrap();
    let layout = WhitespaceLayout {
        indent: indent.map(white),
        after_comma: white(separator),
        after_colon: white(colon),
        ..WhitespaceLayout::default()
    };
    JsonSchemaOptions { layout: Some(layout), ..JsonSchemaOptions::default() }
}

pub(super) fn object(properties: &[(&str, &str)]) -> String {
    let listed: Vec<String> =
        properties.iter().map(|(name, schema)| format!("{name:?}: {schema}")).collect();
    let names: Vec<String> = properties.iter().map(|(name, _)| format!("{name:?}")).collect();
    format!(
        r#"{{"type": "object", "properties": {{{}}}, "required": [{}],
            "additionalProperties": false}}"#,
        listed.join(", "),
        names.join(", ")
    )
}

pub(super) const KINDS: [(&str, &[&str]); 15] = [
    (
        r#"{"type": "string"}"#,
        &[r#""""#, r#""abc de""#, r#""a's é\n""#, r#""...""#, r#""12 ab-12""#],
    ),
    (r#"{"type": "string", "maxLength": 2}"#, &[r#""""#, r#""ab""#, r#""-.""#]),
    (r#"{"type": "string", "maxLength": 3}"#, &[r#""""#, r#""abc""#, r#""-.-""#]),
    (r#"{"type": "string", "minLength": 1, "maxLength": 3}"#, &[r#""a""#, r#""é..""#]),
    (r#"{"type": "string", "pattern": "^[ab ]*$"}"#, &[r#""ab a""#, r#"" ""#]),
    (r#"{"type": "string", "pattern": "^[ab.]*$"}"#, &[r#""ab..""#, r#""."#]),
    (r#"{"type": "string", "format": "date"}"#, &[r#""2012-01-20""#]),
    (r#"{"type": "integer"}"#, &["0", "-12", "1234"]),
    (r#"{"type": "number"}"#, &["0.12", "-1", "12e20"]),
    (r#"{"type": "boolean"}"#, &["true", "false"]),
    (r#"{"enum": ["ab", "a,b", 12, null]}"#, &[r#""a,b""#, "12", "null"]),
    (r#"{"type": "array", "items": {"type": "string"}}"#, &["[]", r#"["a", "abc"]"#]),
    (r#"{"type": "integer", "minimum": 3, "maximum": 120}"#, &["7", "12", "120"]),
    (r#"{"type": "number", "minimum": -1, "exclusiveMaximum": 20}"#, &["-0.12", "12.34", "0"]),
    (
        r#"{"type": "string", "pattern": "^(?:\u007f\u0301)*$"}"#,
        &["\"\u{7f}\u{301}\u{7f}\u{301}\""],
    ),
];

/// Surroundings that differ in one thing each: what follows, its spelling, and the order.
pub(super) fn surroundings() -> Vec<(Vec<&'static str>, JsonSchemaOptions)> {
    let compact = layout("", "", None);
    let spaced = layout(" ", " ", None);
    vec![
        (vec!["a", "b"], spaced),
        (vec!["a", "c"], spaced),
        (vec!["a", "$b"], spaced),
        (vec!["a", "é"], spaced),
        (vec!["a", "'s"], spaced),
        (vec!["a", ""], spaced),
        (vec!["a"], spaced),
        (vec!["b", "a"], spaced),
        (vec!["a", "b"], compact),
        (vec!["a", "$b"], compact),
        (vec!["a", "b"], layout("", " ", None)),
        (vec!["a", "b"], layout(" ", "", None)),
        (vec!["a", "b"], layout("", " ", Some("  "))),
        (vec!["a", "b"], JsonSchemaOptions { escapes: EscapePolicy::Any, ..spaced }),
        (vec!["a", "b"], JsonSchemaOptions { escapes: EscapePolicy::Ascii, ..spaced }),
        (vec!["a", "b"], JsonSchemaOptions { property_order: PropertyOrder::Any, ..spaced }),
        (vec!["a", "b"], JsonSchemaOptions { allow_exponents: true, ..spaced }),
        (vec!["a", "b"], JsonSchemaOptions::default()),
    ]
}

pub(super) fn accepts(keys: &SchemaMaskClasses, text: &str) -> bool {
    let machine = keys.machine();
    let end = machine.walk(machine.start(), text.as_bytes()).unwrap();
    end.is_ok_and(|end| machine.is_accepting(end))
}

/// Writes the object in a layout.
pub(super) fn written(names: &[&str], values: &[&str], options: &JsonSchemaOptions) -> String {
    let blank = |text: Whitespace| {
        (0..=2).map(|n| " ".repeat(n)).find(|blanks| Whitespace::parse(blanks) == Some(text))
    };
    let layout = options.layout.unwrap_or_default();
    let comma = blank(layout.after_comma).unwrap();
    let colon = blank(layout.after_colon).unwrap();
    let line = |depth: usize| match layout.indent.and_then(blank) {
        Some(indent) => format!("\n{}", indent.repeat(depth)),
        None => String::new(),
    };
    let parts: Vec<String> = names
        .iter()
        .zip(values)
        .map(|(name, value)| format!("{}{name:?}:{colon}{value}", line(1)))
        .collect();
    format!("{{{}{}}}", parts.join(&format!(",{comma}")), line(0))
}

#[test]
fn shared_masks_are_those_of_each_context() {
    check_each_context(false);
}

#[test]
fn shared_masks_of_normalizing_tokenizers_are_those_of_each_context() {
    check_each_context(true);
}

fn check_each_context(nfc: bool) {
    let tokenizer = Tokenizer::with_normalizer(nfc);
    let mut checked = 0;
    for (names, options) in surroundings() {
        for (kind, values) in KINDS {
            let properties: Vec<(&str, &str)> = names.iter().map(|&name| (name, kind)).collect();
            let schema = object(&properties);
            let one = Schema::new(&tokenizer, &schema, options);
            let alone = Schema::new(&Tokenizer::with_normalizer(nfc), &schema, options);
            for &value in values {
                let text = written(&names, &vec![value; names.len()], &options);
                let fits = accepts(&one.keys, &text);
                if fits && tokenizer.encoder.encode(&text).is_some() {
                    one.check(&tokenizer, &alone, &text);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn a_second_schema_of_the_same_types_computes_nothing_inside_its_parts() {
    check_second_schema(false);
}

#[test]
fn a_second_schema_computes_nothing_inside_its_parts_with_a_normalizer() {
    check_second_schema(true);
}

fn check_second_schema(nfc: bool) {
    let tokenizer = Tokenizer::with_normalizer(nfc);
    let options = layout(" ", " ", None);
    let kinds = [0, 1, 4, 6, 7, 8, 11, 12, 13];
    let names = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s",
    ];
    // Each kind occurs twice, so that each is followed by another name and by another kind.
    let walk = |order: &[usize], shift: usize| {
        let names: Vec<&str> =
            names.iter().copied().cycle().skip(shift).take(order.len()).collect();
        let properties: Vec<(&str, &str)> =
            names.iter().zip(order).map(|(&name, &kind)| (name, KINDS[kind].0)).collect();
        let schema = Schema::new(&tokenizer, &object(&properties), options);
        let values: Vec<&str> =
            order.iter().map(|&kind| KINDS[kind].1[KINDS[kind].1.len().min(2) - 1]).collect();
        let text = written(&names, &values, &options);
        let mut here = (schema.masks.start(), NONE);
        let (mut at, mut inside) = (0, 0);
        let mut spans = Vec::new();
        let mut from = 0;
        for (name, value) in names.iter().zip(&values) {
            let start = from + text[from..].find(&format!("{name:?}: ")).unwrap() + name.len() + 4;
            spans.push(start + 1..start + value.len());
            from = start + value.len();
        }
        for token in tokenizer.encoder.encode(&text).unwrap() {
            if spans.iter().any(|span| span.contains(&at)) {
                inside += 1;
                for source in
                    schema.masks.elements(here.0).iter().flat_map(NumberedElement::mask_sources)
                {
                    let key = schema.masks.part_key(&schema.keys, source.masked).unwrap();
                    assert!(key.is_some(), "at {at} of {text:?}");
                    schema.masks.compute(&schema.keys, source).unwrap();
                }
            }
            at += tokenizer.vocabulary.token_bytes(token).unwrap().len();
            here = (schema.masks.step(&schema.keys, here, token).unwrap().unwrap(), token);
        }
        assert_eq!(at, text.len());
        inside
    };
    let first: Vec<usize> = kinds.iter().chain(&kinds).copied().chain([9]).collect();
    assert!(walk(&first, 0) > 20);
    let known = tokenizer.known();
    assert!(known > 10, "{known}");
    let second: Vec<usize> = kinds.iter().rev().copied().chain([9]).collect();
    assert!(walk(&second, 5) > 10);
    assert_eq!(tokenizer.known(), known);
}
