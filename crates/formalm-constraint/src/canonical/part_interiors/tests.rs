//! Tests of prepared parts: masks are those that each language has without them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits, Expression};
use formalm_core::LazyDfa;
use formalm_machines::{RegularMaskClasses, StateClasses};
use formalm_regex::{PatternDialect, PatternFlags, parse};
use formalm_schema::JsonSchemaOptions;
use formalm_vocabulary::{bpe::BpeEncoder, checksum};

use super::super::part_tests::{
    KINDS, Schema, Tokenizer, accepts, layout, object, surroundings, written,
};
use super::super::subsets::NumberedElement;
use super::super::{CanonicalMasks, NONE, ProductContext, TextBegin};
use super::{Explored, explore};

const NAME: &[u8] = b"a tokenizer";

/// Texts before a value.
const BEFORE: [&str; 9] =
    ["[", "{\"a\":", "{\"a\": ", "[\"a\",", "[\"a\", ", "[1, ", "[1,", "{\n  \"a\": ", "{\"a\": ["];

/// Prepares kinds of values, and returns what is saved then.
fn prepared(nfc: bool, kinds: &[usize], options: JsonSchemaOptions) -> Vec<u8> {
    let tokenizer = Tokenizer::with_normalizer(nfc);
    for &kind in kinds {
        let (schema, values) = KINDS[kind];
        let schema =
            Schema::new(&tokenizer, &format!(r#"{{"type": "array", "items": {schema}}}"#), options);
        for value in values {
            let first = &value[..1];
            let texts: Vec<Vec<u8>> =
                BEFORE.iter().map(|before| format!("{before}{first}").into()).collect();
            let string = format!("[{first}");
            schema.masks.prepare_part(&schema.keys, string.as_bytes(), &texts).unwrap();
        }
    }
    tokenizer.encoder.save(&tokenizer.vocabulary, NAME)
}

/// Returns a tokenizer as another process loads it.
fn loaded(nfc: bool, saved: &[u8]) -> Tokenizer {
    let Tokenizer { vocabulary, .. } = Tokenizer::with_normalizer(nfc);
    let encoder = BpeEncoder::from_saved(saved, &vocabulary, &checksum(NAME)).unwrap();
    Tokenizer { vocabulary, encoder: Arc::new(encoder) }
}

#[test]
fn prepared_masks_are_those_of_each_context() {
    check_each_context(false);
}

#[test]
fn prepared_masks_of_normalizing_tokenizers_are_those_of_each_context() {
    check_each_context(true);
}

fn check_each_context(nfc: bool) {
    let all: Vec<usize> = (0..KINDS.len()).collect();
    let (mut checked, mut served) = (0, 0);
    for (names, options) in surroundings() {
        let saved = prepared(nfc, &all, JsonSchemaOptions { layout: None, ..options });
        for (kind, values) in KINDS {
            let properties: Vec<(&str, &str)> = names.iter().map(|&name| (name, kind)).collect();
            let schema = object(&properties);
            let alone = Schema::new(&Tokenizer::with_normalizer(nfc), &schema, options);
            for &value in values {
                let text = written(&names, &vec![value; names.len()], &options);
                let tokenizer = loaded(nfc, &saved);
                let one = Schema::new(&tokenizer, &schema, options);
                if accepts(&one.keys, &text) && tokenizer.encoder.encode(&text).is_some() {
                    one.check(&tokenizer, &alone, &text);
                    checked += 1;
                    served += tokenizer.encoder.part_library().counts().0;
                }
            }
        }
    }
    assert!(checked > 300, "{checked}");
    assert!(served > 2 * checked, "{served} of {checked}");
}

#[test]
fn a_new_process_finds_what_is_inside_prepared_types() {
    check_new_process(false);
}

#[test]
fn a_new_process_finds_what_is_inside_prepared_types_with_a_normalizer() {
    check_new_process(true);
}

fn check_new_process(nfc: bool) {
    let kinds = [0, 6, 7, 8];
    let saved = prepared(nfc, &kinds, JsonSchemaOptions::default());
    let names = ["x", "yy", "$z", "_", "é", "ab", "'s", "1"];
    for options in [layout(" ", " ", None), layout("", "", None), layout("", " ", Some("  "))] {
        let tokenizer = loaded(nfc, &saved);
        let kinds: Vec<usize> = kinds.iter().chain(&kinds).copied().collect();
        let properties: Vec<(&str, &str)> =
            names.iter().zip(&kinds).map(|(&name, &kind)| (name, KINDS[kind].0)).collect();
        let schema = Schema::new(&tokenizer, &object(&properties), options);
        let alone = Schema::new(&Tokenizer::with_normalizer(nfc), &object(&properties), options);
        let values: Vec<&str> = kinds.iter().map(|&kind| *KINDS[kind].1.last().unwrap()).collect();
        schema.check(&tokenizer, &alone, &written(&names, &values, &options));
        let (served, missed) = tokenizer.encoder.part_library().counts();
        assert!(served > 10, "{served}");
        assert_eq!(missed, 0);
    }
}

#[test]
fn parts_that_differ_in_one_thing_are_not_shared() {
    let saved = prepared(false, &[0, 6], JsonSchemaOptions::default());
    // Bounded strings, other alphabets.
    for kind in [1, 2, 3, 4, 5] {
        let tokenizer = loaded(false, &saved);
        let options = layout(" ", " ", None);
        let schema = object(&[("a", KINDS[kind].0)]);
        let one = Schema::new(&tokenizer, &schema, options);
        let alone = Schema::new(&Tokenizer::new(), &schema, options);
        for value in KINDS[kind].1 {
            let text = written(&["a"], &[value], &options);
            if accepts(&one.keys, &text) {
                one.check(&tokenizer, &alone, &text);
            }
        }
        let (served, missed) = tokenizer.encoder.part_library().counts();
        assert_eq!(served, 0, "kind {kind}");
        assert!(missed > 0, "kind {kind}");
    }
}

/// Returns the name of what is read on after a text, if that is inside a part with a table.
fn name_after(pattern: &str, text: &str) -> Option<u128> {
    let tokenizer = Tokenizer::new();
    let node = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
    let machine = Automaton::new(&Expression::pattern(node), AutomatonLimits::default()).unwrap();
    let keys = RegularMaskClasses::new(Arc::new(machine), 16);
    let machine = &**keys.machine();
    let state = machine.walk(machine.start(), text.as_bytes()).unwrap().unwrap();
    let open_pieces = formalm_vocabulary::unigram::OpenPiecesTable::default();
    let context = ProductContext {
        keys: &keys,
        machine,
        vocabulary: &tokenizer.vocabulary,
        encoder: &tokenizer.encoder,
        special: &[],
        open_pieces: &open_pieces,
        begin: TextBegin::Anywhere,
    };
    let Explored::Part(part) = explore(context, state).unwrap() else { return None };
    Some(part.table.name(part.classes.first()?.1))
}

#[test]
fn names_do_not_depend_on_the_process_or_the_spelling() {
    let digits = name_after("a[0-9]{0,3}b", "a").unwrap();
    assert_eq!(digits, 0xa7f920a9c9e4eed0e8180377f4e5fba8);
    assert_eq!(name_after("[0-9]{0,4},", "7"), Some(digits));
    assert_eq!(name_after("x(?:[0-4]|[5-9]){0,3}", "x"), Some(digits));
    let other = ["a[0-9]{0,2}b", "a[0-8]{0,3}b", "a[0-9]*b", "a[0-9]{1,3}b"];
    let names = other.map(|pattern| name_after(pattern, "a").unwrap());
    let all: BTreeSet<u128> = names.into_iter().chain([digits]).collect();
    assert_eq!(all.len(), other.len() + 1);
}

#[test]
fn what_may_follow_a_part_and_also_be_inside_it_has_no_table() {
    assert_eq!(name_after("a[0-9]{0,3}5", "a"), None);
    assert_eq!(name_after("a[0-9]{0,3}[^x]", "a"), None);
    assert!(name_after("a[0-9]{0,3}[^0-9]", "a").is_some());
    assert!(name_after("a[^\"]*\"", "a").is_some());
    assert!(name_after("a(?s:.*)", "a").is_some());
}

/// Compares the masks of a regex with and without the parts of others, along canonical tokens.
#[test]
fn prepared_repetitions_are_those_of_each_context() {
    check_repetitions(false);
}

#[test]
fn prepared_repetitions_of_normalizing_tokenizers_are_those_of_each_context() {
    check_repetitions(true);
}

fn check_repetitions(nfc: bool) {
    let patterns = [
        r#"a[^"]*"b"#,
        r#"a[^"]*""#,
        r#""[^"\\]*", "[^"\\]*""#,
        "(?s:.*)",
        "[0-9]{1,4}-[0-9]{1,4}",
        "[a-c ]*,[a-c ]*",
        "(?:ab|c)*",
        "x[0-9]*(?:ab)?",
        "[^,]*,.*",
        "a*b",
        "a*é",
        "[a-cé\u{301}\u{327} ]*,",
        "[a-c]*[\u{301}\u{300}]",
        "a[b-d\u{327}]*\u{301}x",
        "[\u{301}\u{327}é]*a",
        "[a\u{a8}]*\u{301}",
    ];
    let texts = [
        "aé \"b",
        "abc\"",
        r#""ab", "c 12""#,
        "ab.\n 12",
        "12-3412",
        "ab ,c a",
        "ababc",
        "x1234ab",
        "12 ab,,\"",
        "aab",
        "aaé",
        "abé\u{301} \u{301}a,",
        "abb\u{301}",
        "ab\u{327}b\u{301}x",
        "\u{327}\u{301}é\u{301}a",
        "\u{301}",
    ];
    let regex = |pattern: &str, tokenizer: &Tokenizer| {
        let node = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
        let machine =
            Automaton::new(&Expression::pattern(node), AutomatonLimits::default()).unwrap();
        let longest = tokenizer.vocabulary.longest_token_bytes();
        let keys = RegularMaskClasses::new(Arc::new(machine), longest);
        let given = (&tokenizer.vocabulary, Arc::clone(&tokenizer.encoder));
        let masks = CanonicalMasks::new(&keys, given, 64 << 20, TextBegin::Anywhere).unwrap();
        (keys, masks)
    };
    let tokenizer = Tokenizer::with_normalizer(nfc);
    for (pattern, text) in patterns.into_iter().zip(texts) {
        let (keys, masks) = regex(pattern, &tokenizer);
        for (at, _) in text.char_indices() {
            let before = &text.as_bytes()[..at];
            masks.prepare_part(&keys, before, &[before.to_vec(), b", ".to_vec()]).unwrap();
        }
    }
    let saved = tokenizer.encoder.save(&tokenizer.vocabulary, NAME);
    let words = tokenizer.vocabulary.len().div_ceil(32);
    let mut served = 0;
    for (pattern, text) in patterns.into_iter().zip(texts) {
        let (tokenizer, other) = (loaded(nfc, &saved), Tokenizer::with_normalizer(nfc));
        let (keys, masks) = regex(pattern, &tokenizer);
        let (own_keys, own_masks) = regex(pattern, &other);
        let (mut here, mut there) = ((masks.start(), NONE), (own_masks.start(), NONE));
        for token in tokenizer.encoder.encode(text).unwrap() {
            let all = |masks: &CanonicalMasks<RegularMaskClasses>, state| {
                masks
                    .elements(state)
                    .iter()
                    .flat_map(NumberedElement::mask_sources)
                    .collect::<Vec<_>>()
            };
            let mut found = [vec![0; words], vec![0; words]];
            let mut expected = [vec![0; words], vec![0; words]];
            for source in all(&masks, here.0) {
                let (inside, begins) = masks.compute(&keys, source).unwrap();
                inside.join(&mut found[0]);
                begins.join(&mut found[1]);
            }
            for source in all(&own_masks, there.0) {
                let (inside, begins) = own_masks.compute_here(&own_keys, source).unwrap();
                inside.join(&mut expected[0]);
                begins.join(&mut expected[1]);
            }
            assert_eq!(found, expected, "{pattern:?} in {text:?} before {token}");
            here = (masks.step(&keys, here, token).unwrap().unwrap(), token);
            there = (own_masks.step(&own_keys, there, token).unwrap().unwrap(), token);
        }
        assert!(masks.is_accepting(here.0), "{pattern:?}");
        served += tokenizer.encoder.part_library().counts().0;
    }
    assert!(served > 15, "{served}");
}
