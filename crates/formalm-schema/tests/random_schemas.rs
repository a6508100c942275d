//! Random schemas: acceptance against `jsonschema`, random walks that must not reach a dead end,
//! and shortest completions against breadth-first search.

use std::collections::{HashSet, VecDeque};

use formalm_core::{LazyDfa, StateId};
use formalm_schema::{
    Document, EscapePolicy, FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder,
    SchemaAutomaton, Whitespace, WhitespaceLayout,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// Values that random schemas distinguish.
fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Json::from),
        (-3..8i32).prop_map(Json::from),
        Just(json!(2.5)),
        prop_oneof![Just("a"), Just("ab"), Just("b"), Just(""), Just("é\n")].prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let name = prop_oneof![Just("a"), Just("b"), Just("ab"), Just("c"), Just("é")];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            proptest::collection::btree_map(name.prop_map(str::to_owned), inner, 0..4)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn keyword() -> impl Strategy<Value = Json> {
    prop_oneof![
        prop_oneof![
            Just("null"),
            Just("boolean"),
            Just("integer"),
            Just("number"),
            Just("string"),
            Just("array"),
            Just("object")
        ]
        .prop_map(|one| json!({"type": one})),
        proptest::collection::vec(value(), 1..4).prop_map(|list| json!({"enum": list})),
        value().prop_map(|one| json!({"const": one})),
        (-3..6i32).prop_map(|n| json!({"minimum": n})),
        (-3..6i32).prop_map(|n| json!({"exclusiveMaximum": n})),
        (1..4i32).prop_map(|n| json!({"multipleOf": n})),
        (0..3u8, 0..3u8).prop_map(|(min, max)| json!({"minLength": min, "maxLength": max})),
        prop_oneof![Just("^a"), Just("b$"), Just("a.?b"), Just("^$")]
            .prop_map(|one| json!({"pattern": one})),
        (0..3u8).prop_map(|n| json!({"minProperties": n})),
        (0..3u8).prop_map(|n| json!({"maxProperties": n})),
        (0..3u8).prop_map(|n| json!({"minItems": n})),
        (0..3u8).prop_map(|n| json!({"maxItems": n})),
        Just(json!({"required": ["a"]})),
        Just(json!({"required": ["b", "c"]})),
        Just(json!({"required": ["ab", "c"]})),
        Just(json!({"dependentRequired": {"a": ["b"]}})),
        Just(json!({"dependentRequired": {"b": ["a", "c"]}})),
    ]
}

fn merge_keywords(list: Vec<Json>) -> Json {
    let mut all = serde_json::Map::new();
    for one in list {
        if let Json::Object(map) = one {
            all.extend(map);
        }
    }
    Json::Object(all)
}

fn schema() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Json::from),
        8 => proptest::collection::vec(keyword(), 0..3).prop_map(merge_keywords),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let some = proptest::collection::vec(inner.clone(), 1..4);
        let part = prop_oneof![
            keyword(),
            some.clone().prop_map(|list| json!({"allOf": list})),
            some.clone().prop_map(|list| json!({"anyOf": list})),
            some.clone().prop_map(|list| json!({"oneOf": list})),
            inner.clone().prop_map(|one| json!({"not": one})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(i, t, e)| json!({"if": i, "then": t, "else": e})),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}})),
            inner.clone().prop_map(|one| json!({"patternProperties": {"b$": one}})),
            inner.clone().prop_map(|one| json!({"additionalProperties": one})),
            inner.clone().prop_map(|one| json!({"propertyNames": one})),
            inner.clone().prop_map(|one| json!({"unevaluatedProperties": one})),
            inner.clone().prop_map(|one| json!({"dependentSchemas": {"a": one}})),
            some.prop_map(|list| json!({"prefixItems": list})),
            inner.clone().prop_map(|one| json!({"items": one})),
            inner.clone().prop_map(|one| json!({"unevaluatedItems": one})),
            (inner, 0..3u8, 1..3u8).prop_map(|(one, min, max)| {
                json!({"contains": one, "minContains": min, "maxContains": max})
            }),
        ];
        proptest::collection::vec(part, 1..4).prop_map(merge_keywords)
    })
}

fn machine(schema: &Json, options: JsonSchemaOptions) -> Option<SchemaAutomaton> {
    SchemaAutomaton::new(&schema.clone().into(), &[], options, JsonSchemaLimits::default()).ok()
}

fn options() -> impl Strategy<Value = JsonSchemaOptions> {
    let escapes = prop_oneof![
        Just(EscapePolicy::Minimal),
        Just(EscapePolicy::Ascii),
        Just(EscapePolicy::Any)
    ];
    let order = prop_oneof![Just(PropertyOrder::Any), Just(PropertyOrder::Schema)];
    (order, 0..2u8, escapes).prop_map(|(order, blanks, escapes)| JsonSchemaOptions {
        property_order: order,
        max_whitespace: blanks,
        escapes,
        formats: FormatSet::NONE,
        allow_approximate: true,
        ..JsonSchemaOptions::default()
    })
}

fn layout() -> impl Strategy<Value = Option<WhitespaceLayout>> {
    let blanks = |text| Whitespace::parse(text).expect("whitespace");
    let gap = move || prop_oneof![Just(blanks("")), Just(blanks(" ")), Just(blanks(" \n"))];
    let indent = prop_oneof![Just(None), Just(Some(blanks(" ")))];
    let layout = (indent, gap(), gap(), gap()).prop_map(|(indent, comma, before, after)| {
        let (after_comma, before_colon, after_colon) = (comma, before, after);
        WhitespaceLayout { indent, after_comma, before_colon, after_colon }
    });
    proptest::option::of(layout)
}

/// A linear congruential generator.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn acceptance_agrees_with_a_validator(schema in schema(), values in proptest::collection::vec(value(), 12)) {
        let Ok(reference) = jsonschema::draft202012::new(&schema) else { return Ok(()) };
        let options = JsonSchemaOptions { property_order: PropertyOrder::Any, ..JsonSchemaOptions::default() };
        let made = SchemaAutomaton::new(&schema.clone().into(), &[], options, JsonSchemaLimits::default());
        for value in values {
            let expected = reference.is_valid(&value);
            match &made {
                Ok(machine) => {
                    let text = value.to_string();
                    // A limit error is reported and is no verdict.
                    let Ok(read) = machine.walk(machine.start(), text.as_bytes()) else { continue };
                    let accepted = read.is_ok_and(|state| machine.is_accepting(state));
                    prop_assert_eq!(accepted, expected, "{} of {}", text, schema);
                }
                Err(formalm_core::Error::Language { .. }) => {
                    prop_assert!(!expected, "{} has the instance {}", schema, value);
                }
                Err(_) => {}
            }
        }
    }

    /// Live bytes are read among those that the place, a layout included, does not rule out.
    #[test]
    fn live_bytes_are_those_that_steps_read(
        schema in schema(),
        options in options(),
        layout in layout(),
        seed in any::<u64>(),
    ) {
        let Some(machine) = machine(&schema, JsonSchemaOptions { layout, ..options }) else {
            return Ok(());
        };
        let (mut seed, mut state, mut text) = (seed, machine.start(), Vec::new());
        for _ in 0..24 {
            let Ok(live) = machine.live_bytes(state) else { return Ok(()) };
            let shown = String::from_utf8_lossy(&text).into_owned();
            for byte in 0..=u8::MAX {
                if let Ok(after) = machine.step(state, byte) {
                    let is_live = live.contains(byte);
                    prop_assert_eq!(after.is_some(), is_live, "{} after {:?} of {}", byte, shown, schema);
                }
            }
            let bytes: Vec<u8> = live.iter().collect();
            let Some(&byte) = bytes.get(next(&mut seed) as usize % bytes.len().max(1)) else { break };
            text.push(byte);
            let Ok(Some(after)) = machine.step(state, byte) else { return Ok(()) };
            state = after;
        }
    }

    #[test]
    fn random_walks_end_in_valid_instances(schema in schema(), options in options(), seed in any::<u64>()) {
        let Ok(reference) = jsonschema::draft202012::new(&schema) else { return Ok(()) };
        let Some(machine) = machine(&schema, options) else { return Ok(()) };
        let mut seed = seed;
        let (mut state, mut text) = (machine.start(), Vec::new());
        for step in 0..400 {
            let Ok(live) = machine.live_bytes(state) else { return Ok(()) };
            let accepting = machine.is_accepting(state);
            let shown = String::from_utf8_lossy(&text).into_owned();
            prop_assert!(accepting || !live.is_empty(), "stuck after {} of {}", shown, schema);
            if live.is_empty() || (accepting && next(&mut seed).is_multiple_of(3)) {
                break;
            }
            let bytes: Vec<u8> = live.iter().collect();
            // Closing early keeps walks short; at first any byte is drawn.
            let closing: Vec<u8> =
                bytes.iter().copied().filter(|byte| b"\"]}".contains(byte)).collect();
            let pool = if step > 40 && !closing.is_empty() { &closing } else { &bytes };
            let byte = pool[next(&mut seed) as usize % pool.len()];
            text.push(byte);
            let Ok(Some(after)) = machine.step(state, byte) else {
                return Err(TestCaseError::fail("a live byte is refused"));
            };
            state = after;
        }
        if machine.is_accepting(state) {
            let shown = String::from_utf8_lossy(&text).into_owned();
            let parsed: Result<Json, _> = serde_json::from_slice(&text);
            prop_assert!(parsed.is_ok(), "{} is no JSON", shown);
            // The reference validator computes in doubles, which long numbers do not fit.
            let long = text.split(|byte| !byte.is_ascii_digit()).any(|run| run.len() > 12);
            if let (Ok(parsed), false) = (parsed, long) {
                prop_assert!(reference.is_valid(&parsed), "{} of {}", shown, schema);
            }
        }
    }
}

/// The bytes of lexicographically least shortest completions, in order.
const BYTES: &[u8] = b" !\"#+,-.0123456789:[\\]abceflnrstu{}\xA9\xC3";

/// Returns the lexicographically least of the shortest completions by breadth-first search, `None`
/// if there are too many states.
fn naive_shortest(machine: &SchemaAutomaton, state: StateId) -> Option<Vec<u8>> {
    let mut seen = HashSet::from([state]);
    let mut open = VecDeque::from([(state, Vec::new())]);
    while let Some((state, text)) = open.pop_front() {
        if machine.is_accepting(state) {
            return Some(text);
        }
        for &byte in BYTES {
            let next = machine.step(state, byte).ok()?;
            if let Some(next) = next.filter(|&next| seen.insert(next)) {
                open.push_back((next, [text.as_slice(), &[byte]].concat()));
            }
        }
        if seen.len() > 12_000 {
            return None;
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn completions_are_shortest_and_lexicographically_least(schema in schema(), any_order in any::<bool>(), value in value(), cut in 0..12usize) {
        let order = if any_order { PropertyOrder::Any } else { PropertyOrder::Schema };
        let options =
            JsonSchemaOptions { property_order: order, max_whitespace: 0, formats: FormatSet::NONE, allow_approximate: true, ..JsonSchemaOptions::default() };
        let Some(machine) = machine(&schema, options) else { return Ok(()) };
        let text = value.to_string().into_bytes();
        let mut state = machine.start();
        for &byte in &text[..cut.min(text.len())] {
            match machine.step(state, byte) {
                Ok(Some(next)) => state = next,
                _ => break,
            }
        }
        let Some(expected) = naive_shortest(&machine, state) else { return Ok(()) };
        let found = machine.shortest_completion(state);
        prop_assert!(found.is_ok(), "{:?} of {}", found, schema);
        let (found, expected) = (found.unwrap_or_default(), expected);
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        prop_assert_eq!(shown(&found), shown(&expected), "of {}", schema);
    }

    #[test]
    fn completions_of_required_properties_are_shortest(list in proptest::collection::vec(object_schema(), 1..4), names in 0..4usize) {
        let required: Vec<&str> = ["c", "a", "ab"][..names.min(3)].to_vec();
        let schema = json!({"type": "object", "required": required, "allOf": list});
        let options =
            JsonSchemaOptions { property_order: PropertyOrder::Any, max_whitespace: 0, allow_approximate: true, ..JsonSchemaOptions::default() };
        let Some(machine) = machine(&schema, options) else { return Ok(()) };
        let Some(expected) = naive_shortest(&machine, machine.start()) else { return Ok(()) };
        let found = machine.shortest_completion(machine.start());
        prop_assert_eq!(found, Ok(expected), "of {}", schema);
    }
}

/// Statements about properties that are required together, or instead of each other.
fn object_schema() -> impl Strategy<Value = Json> {
    let name = || prop_oneof![Just("a"), Just("b"), Just("ab"), Just("c"), Just("e")];
    let value = prop_oneof![
        Just(json!({"const": 1})),
        Just(json!({"const": "b"})),
        Just(json!({"const": 22})),
        Just(json!({"type": "integer"})),
        Just(json!({"enum": [true, []]})),
        Just(json!({"minItems": 1})),
    ];
    let required = proptest::collection::vec(name(), 1..3);
    let leaf = prop_oneof![
        required.clone().prop_map(|names| json!({"required": names})),
        (name(), value.clone()).prop_map(|(name, value)| json!({"properties": {name: value}})),
        (name(), value.clone())
            .prop_map(|(name, value)| json!({"properties": {name: value}, "required": [name]})),
        (name(), required).prop_map(|(name, names)| json!({"dependentRequired": {name: names}})),
        value.prop_map(|value| json!({"patternProperties": {"b": value}})),
        (0..4u8).prop_map(|n| json!({"minProperties": n})),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let some = proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            some.clone().prop_map(|list| json!({"anyOf": list})),
            some.prop_map(|list| json!({"oneOf": list})),
            inner.prop_map(|one| json!({"not": one})),
        ]
    })
}

#[test]
fn known_pitfalls_are_decided() {
    let any =
        JsonSchemaOptions { property_order: PropertyOrder::Any, ..JsonSchemaOptions::default() };
    let dead = [
        (json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), "{\"a\":1,\"b\""),
        (json!({"not": {"properties": {"a": {"type": "string"}}}}), "{}"),
        (json!({"uniqueItems": true}), "[1,1.0]"),
        (json!({"items": {"type": "boolean"}, "uniqueItems": true}), "[true,t"),
        (json!({"contains": {"type": "integer"}, "maxContains": 1}), "[1,2]"),
        (json!({"multipleOf": 0.01}), "0.005"),
        (json!({"minimum": 5, "maximum": 7}), "4"),
        (json!({"minimum": 5, "maximum": 7}), "1"),
        (json!({"if": {"properties": {"k": {"const": 1}}}, "then": {"required": ["x"]}}), "{}"),
        (json!({"maxLength": 1}), "\"ab"),
        (json!({"type": "object"}), "{\"a\":1,\"a\""),
        (json!({"minimum": 9007199254740993u64}), "9007199254740992"),
    ];
    for (schema, text) in dead {
        let machine = machine(&schema, any).expect("a schema with instances");
        let read = machine.walk(machine.start(), text.as_bytes()).expect("within limits");
        let accepted = read.is_ok_and(|state| machine.is_accepting(state));
        assert!(!accepted, "{schema}: {text}");
    }
    let viable = [
        (json!({"const": {"a": 1, "b": [2]}}), "{\"b\":[2.0],\"a\":1}"),
        (json!({"uniqueItems": true}), "[1,true]"),
        (json!({"multipleOf": 0.01}), "19.99"),
        (json!({"contains": {"type": "integer"}, "maxContains": 1}), "[1,2.5]"),
    ];
    for (schema, text) in viable {
        let machine = machine(&schema, any).expect("a schema with instances");
        let read = machine.walk(machine.start(), text.as_bytes()).expect("within limits");
        assert!(read.is_ok_and(|state| machine.is_accepting(state)), "{schema}: {text}");
    }
    for schema in [
        json!({"required": ["r", "l"], "oneOf": [{"required": ["r"]}, {"required": ["l"]}]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        json!({"allOf": [{"additionalProperties": false}, {"required": ["b"]}], "type": "object"}),
        json!({"type": "array", "items": {"type": "boolean"}, "uniqueItems": true, "minItems": 3}),
        json!({"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "minProperties": 3}),
    ] {
        assert!(machine(&schema, any).is_none(), "{schema}");
    }
}

#[test]
fn errors_name_the_json_pointer() {
    for (schema, place) in [
        (json!({"properties": {"a/b": {"type": "strin"}}}), "#/properties/a~1b/type"),
        (json!({"items": {"pattern": "("}}), "#/items/pattern"),
        (json!({"$ref": "#/$defs/none"}), "#/$ref"),
        (json!({"allOf": [{"$ref": "#"}]}), "#"),
        (json!({"$ref": "http://example.com/other"}), "http://example.com/other"),
        (json!({"multipleOf": 0}), "#/multipleOf"),
    ] {
        let made = SchemaAutomaton::new(
            &Document::from(schema.clone()),
            &[],
            JsonSchemaOptions::default(),
            JsonSchemaLimits::default(),
        );
        let message = made.map(|_| String::new()).unwrap_or_else(|error| error.to_string());
        assert!(message.contains(place), "{schema}: {message}");
    }
}
