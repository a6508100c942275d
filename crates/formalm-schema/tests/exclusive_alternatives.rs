//! Families of alternatives, with and without a discriminating property: acceptance against
//! `jsonschema`, viability against all instances of a small domain, and random walks that must not
//! reach a dead end.

use formalm_core::LazyDfa;
use formalm_schema::{
    FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// A property that discriminates an alternative, if any does.
fn discriminator() -> impl Strategy<Value = (String, Json)> {
    let word = || prop_oneof![Just("a"), Just("b"), Just("c")];
    prop_oneof![
        3 => word().prop_map(|word| ("k".to_owned(), json!({"const": word}))),
        1 => (word(), word()).prop_map(|(one, two)| ("k".to_owned(), json!({"enum": [one, two, 1]}))),
        1 => (0..4i32).prop_map(|one| ("k".to_owned(), json!({"const": one}))),
        1 => (0..4i32, 0..3i32)
            .prop_map(|(low, more)| ("k".to_owned(), json!({"minimum": low, "maximum": low + more}))),
        1 => (0..4i32).prop_map(|low| ("k".to_owned(), json!({"type": "integer", "exclusiveMinimum": low}))),
        1 => prop_oneof![Just("string"), Just("integer"), Just("null"), Just("object")]
            .prop_map(|of| ("k".to_owned(), json!({"type": of}))),
        1 => word().prop_map(|word| ("k".to_owned(), json!({"not": {"const": word}}))),
        1 => word().prop_map(|word| {
            let inner = json!({"type": "object", "properties": {"m": {"const": word}}, "required": ["m"]});
            ("k".to_owned(), inner)
        }),
        1 => word().prop_map(|word| {
            ("k".to_owned(), json!({"type": "array", "prefixItems": [{"const": word}], "minItems": 1}))
        }),
        1 => word().prop_map(|word| ("p".to_owned(), json!({"const": word}))),
    ]
}

fn property_schema() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"maxLength": 1})),
        Just(json!({"maximum": 1})),
        Just(json!(true)),
        Just(json!(false)),
    ]
}

/// An object schema with a discriminator, whose properties come before or after it in the schema.
fn alternative() -> impl Strategy<Value = Json> {
    let parts =
        proptest::collection::btree_map(prop_oneof![Just("p"), Just("q")], property_schema(), 0..3);
    let required = proptest::collection::vec(prop_oneof![Just("p"), Just("q")], 0..2);
    (discriminator(), parts, required, 0..4u8, any::<bool>()).prop_map(
        |((name, discriminator), parts, mut required, asks, closed)| {
            let mut properties: Map<String, Json> =
                parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
            properties.insert(name.clone(), discriminator);
            if asks > 0 {
                required.push(if name == "p" { "p" } else { "k" });
            }
            required.sort_unstable();
            required.dedup();
            let mut one = json!({"properties": properties, "required": required});
            if closed {
                one["additionalProperties"] = json!(false);
            }
            one
        },
    )
}

fn schema() -> impl Strategy<Value = Json> {
    let some = || proptest::collection::vec(alternative(), 2..6);
    let choice = prop_oneof![
        2 => some().prop_map(|all| json!({"oneOf": all})),
        1 => some().prop_map(|all| json!({"anyOf": all})),
        2 => (some(), some()).prop_map(|(conditions, all)| {
            let each = conditions.into_iter().zip(all);
            let each: Vec<Json> = each.map(|(one, then)| json!({"if": one, "then": then})).collect();
            json!({"allOf": each})
        }),
        1 => (some(), some()).prop_map(|(conditions, all)| {
            let each = conditions.into_iter().zip(all);
            each.fold(json!(true), |other, (one, then)| json!({"if": one, "then": then, "else": other}))
        }),
        1 => (some(), some()).prop_map(|(one, two)| json!({"oneOf": one, "anyOf": two})),
        1 => (some(), some()).prop_map(|(one, two)| json!({"allOf": [{"oneOf": one}, {"oneOf": two}]})),
    ];
    let kinds = prop_oneof![
        Just(json!(true)),
        Just(json!({"enum": ["a", "b", "c"]})),
        Just(json!({"type": "string"}))
    ];
    let around = prop_oneof![
        3 => Just(0u8),
        1 => Just(1),
        1 => Just(2),
    ];
    (choice, kinds, 0..3u8, around).prop_map(|(mut choice, kinds, asks, around)| {
        choice["type"] = json!("object");
        if asks > 0 {
            choice["properties"] = json!({"k": kinds});
        }
        if asks > 1 {
            choice["required"] = json!(["k"]);
        }
        match around {
            0 => choice,
            1 => json!({"type": "array", "items": choice, "minItems": 1, "maxItems": 1}),
            _ => json!({"type": "object", "properties": {"o": choice}, "required": ["o"], "maxProperties": 1}),
        }
    })
}

/// Small objects as JSON, with their properties in all orders.
fn objects() -> Vec<String> {
    let marks = [
        "\"a\"",
        "\"b\"",
        "\"c\"",
        "\"d\"",
        "0",
        "1",
        "3",
        "5",
        "2.5",
        "null",
        "{}",
        "{\"m\":\"a\"}",
        "[\"b\"]",
    ];
    let marks: Vec<Option<&str>> = marks.into_iter().map(Some).chain([None]).collect();
    let parts = [None, Some("\"a\""), Some("\"bc\""), Some("1"), Some("3")];
    let mut texts = Vec::new();
    for k in &marks {
        for p in parts {
            for q in [None, Some("\"a\""), Some("2")] {
                let all = [("k", *k), ("p", p), ("q", q)];
                let members: Vec<String> = all
                    .iter()
                    .filter_map(|(name, value)| value.map(|value| format!("\"{name}\":{value}")))
                    .collect();
                texts.push(format!("{{{}}}", members.join(",")));
                let turned: Vec<String> = members.into_iter().rev().collect();
                texts.push(format!("{{{}}}", turned.join(",")));
            }
        }
    }
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn machine(schema: &Json) -> Result<SchemaAutomaton, formalm_core::Error> {
    let (order, formats) = (PropertyOrder::Any, FormatSet::NONE);
    let options = JsonSchemaOptions {
        property_order: order,
        formats,
        max_whitespace: 0,
        ..JsonSchemaOptions::default()
    };
    SchemaAutomaton::new(&schema.clone().into(), &[], options, JsonSchemaLimits::default())
}

fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// An instance is accepted if and only if it is valid, and no prefix of a valid one is
    /// rejected.
    #[test]
    fn acceptance_of_alternatives_agrees_with_a_validator(schema in schema()) {
        let Ok(reference) = jsonschema::draft202012::new(&schema) else { return Ok(()) };
        let made = machine(&schema);
        for text in objects() {
            for text in [text.clone(), format!("[{text}]"), format!("{{\"o\":{text}}}")] {
                let Ok(value) = serde_json::from_str::<Json>(&text) else { continue };
                let expected = reference.is_valid(&value);
                match &made {
                    Ok(machine) => {
                        let read = machine.walk(machine.start(), text.as_bytes());
                        prop_assert!(read.is_ok(), "{} of {}: {:?}", text, schema, read);
                        let Ok(read) = read else { continue };
                        let accepted = read.is_ok_and(|state| machine.is_accepting(state));
                        prop_assert_eq!(accepted, expected, "{} of {}", text, schema);
                    }
                    Err(error) => prop_assert!(!expected, "{} has {}: {:?}", schema, text, error),
                }
            }
        }
    }

    /// Every viable prefix leads to an instance.
    #[test]
    fn random_walks_never_reach_a_dead_end(schema in schema(), seed in any::<u64>()) {
        let Ok(reference) = jsonschema::draft202012::new(&schema) else { return Ok(()) };
        let Ok(machine) = machine(&schema) else { return Ok(()) };
        let mut seed = seed;
        for _ in 0..3 {
            let (mut state, mut text) = (machine.start(), Vec::new());
            while text.len() < 100 {
                let live = machine.live_bytes(state);
                let shown = String::from_utf8_lossy(&text).into_owned();
                prop_assert!(live.is_ok(), "{} of {}: {:?}", shown, schema, live);
                let bytes: Vec<u8> = live.into_iter().flat_map(|live| live.iter().collect::<Vec<_>>()).collect();
                prop_assert!(machine.is_accepting(state) || !bytes.is_empty(), "stuck after {} of {}", shown, schema);
                if bytes.is_empty() || machine.is_accepting(state) {
                    break;
                }
                // Relevant names and values, and closing bytes, are drawn more often.
                let known = |byte: &u8| b"kpqmabc013\":{}[],".contains(byte);
                let likely: Vec<u8> = bytes.iter().copied().filter(known).collect();
                let closing: Vec<u8> = bytes.iter().copied().filter(|byte| b"\"]}".contains(byte)).collect();
                let pool = match text.len() {
                    25.. if !closing.is_empty() => &closing,
                    _ if !likely.is_empty() && !next(&mut seed).is_multiple_of(8) => &likely,
                    _ => &bytes,
                };
                let byte = pool[next(&mut seed) % pool.len()];
                text.push(byte);
                let Ok(Some(after)) = machine.step(state, byte) else {
                    return Err(TestCaseError::fail("a live byte is refused"));
                };
                state = after;
            }
            let long = text.split(|byte| !byte.is_ascii_digit()).any(|run| run.len() > 12);
            if let (true, false, Ok(value)) = (machine.is_accepting(state), long, serde_json::from_slice(&text)) {
                let shown = String::from_utf8_lossy(&text).into_owned();
                prop_assert!(reference.is_valid(&value), "{} of {}", shown, schema);
            }
        }
    }
}

/// Wide alternatives whose discriminator comes last take few solver steps. A search over pairs of
/// alternatives exceeds this limit.
#[test]
fn wide_alternatives_stay_within_500_solver_steps() {
    let kinds = |discriminator: &dyn Fn(usize) -> Json,
                 required: &str,
                 rest: &dyn Fn(usize) -> Json|
     -> Vec<Json> {
        let one = |at: usize| {
            let properties = json!({required: discriminator(at), "a": rest(at)});
            json!({"type": "object", "properties": properties, "required": [required]})
        };
        (0..50).map(one).collect()
    };
    let text = |at: usize| json!({"maxLength": 5 + at});
    let constant = |at: usize| json!({"const": format!("k{at}")});
    let nested = |at: usize| json!({"type": "object", "properties": {"k": {"const": at}}, "required": ["k"]});
    let listed = |at: usize| json!({"enum": [format!("k{at}"), format!("x{at}")]});
    let range = |at: usize| json!({"minimum": at * 10, "maximum": at * 10 + 15});
    let chain: Vec<Json> = (0..50)
        .map(|at| {
            let condition = json!({"properties": {"k": constant(at)}, "required": ["k"]});
            json!({"if": condition, "then": {"properties": {"a": text(at)}, "required": ["a"]}})
        })
        .collect();
    let distinct: Vec<usize> = (0..300).collect();
    let cases = [
        (json!({"oneOf": kinds(&constant, "k", &text)}), json!({"a": "abc", "k": "k7"})),
        (json!({"oneOf": kinds(&listed, "k", &text)}), json!({"a": "abc", "k": "x7"})),
        (json!({"oneOf": kinds(&nested, "k", &text)}), json!({"a": "abc", "k": {"k": 49}})),
        (json!({"oneOf": kinds(&range, "n", &|_| json!(true))}), json!({"a": "abc", "n": 237})),
        (json!({"type": "object", "allOf": chain}), json!({"a": "abc", "k": "k49"})),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "integer"}}),
            json!(distinct),
        ),
    ];
    for (schema, instance) in cases {
        let options = JsonSchemaOptions {
            property_order: PropertyOrder::Any,
            max_whitespace: 0,
            ..JsonSchemaOptions::default()
        };
        let limits = JsonSchemaLimits { steps: 500, ..JsonSchemaLimits::default() };
        let machine = SchemaAutomaton::new(&schema.clone().into(), &[], options, limits).unwrap();
        let text = instance.to_string();
        let read = machine.walk(machine.start(), text.as_bytes()).unwrap();
        assert!(read.is_ok_and(|state| machine.is_accepting(state)), "{text}");
    }
}
