//! Places of schemas that tokens do not distinguish have one identity; others do not.

use std::collections::HashSet;
use std::sync::Arc;

use formalm_core::{LazyDfa, MaskClassId};
use formalm_json::NameTokens;
use formalm_machines::{ClassVisitor, MaskAutomaton, StateClasses};
use formalm_schema::{
    Document, JsonSchemaLimits, JsonSchemaOptions, SchemaAutomaton, SchemaMaskClasses, Whitespace,
    WhitespaceLayout,
};
use serde_json::{Value, json};

struct Identity(MaskClassId);

impl ClassVisitor for Identity {
    type Result = Option<u128>;

    fn visit(self, steps: &impl MaskAutomaton) -> Option<u128> {
        steps.shared_mask_id(self.0).expect("no limit is met")
    }
}

fn options(colon: &str) -> JsonSchemaOptions {
    let blanks = |text| Whitespace::parse(text).expect("whitespace");
    let layout = WhitespaceLayout {
        after_comma: blanks(" "),
        after_colon: blanks(colon),
        ..WhitespaceLayout::default()
    };
    JsonSchemaOptions { layout: Some(layout), ..JsonSchemaOptions::default() }
}

/// Returns the identity of the place after a text.
fn identity(schema: &Value, text: &str, options: JsonSchemaOptions) -> Option<u128> {
    let tokens: [&[u8]; 6] = [b"\": \"", b"a", b"\"}, ", b"}}", b"\", \"x", b" \"id\":"];
    identity_over(&tokens, schema, text, options)
}

/// As [`identity`], for tokens.
fn identity_over(
    tokens: &[&[u8]],
    schema: &Value,
    text: &str,
    options: JsonSchemaOptions,
) -> Option<u128> {
    let names = Arc::new(NameTokens::new(tokens.iter().copied()));
    let document = Document::from(schema.clone());
    let limits = JsonSchemaLimits::default();
    let machine = SchemaAutomaton::new(&document, &[], options, limits).expect("satisfiable");
    let state = machine.walk(machine.start(), text.as_bytes()).expect("no limit is met");
    let classes = SchemaMaskClasses::new(Arc::new(machine), 6, names);
    let class = classes.mask_class(state.expect("a prefix of an instance")).expect("no limit");
    classes.visit(Identity(class))
}

fn object(value: &Value) -> Value {
    json!({"type": "object", "properties": {"a": value}})
}

#[test]
fn equal_places_of_schemas_share() {
    let text = json!({"type": "string"});
    let several = json!({"type": "object", "properties": {"a": text, "b": {"type": "integer"}}});
    for place in ["{", "{\"a\":", "{\"a\": ", "{\"a\": \"x", "{\"a\": \"x\"", "{\"a\": \"x\", "] {
        let found = identity(&object(&text), place, options(" "));
        assert!(found.is_some(), "{place}");
        assert_eq!(found, identity(&several, place, options(" ")), "{place}");
    }
    // The container around is an object without further constraints in both.
    let inner = "{\"a\": {\"a\":";
    let found = identity(&object(&object(&text)), inner, options(" "));
    assert!(found.is_some());
    assert_eq!(found, identity(&object(&several), inner, options(" ")));
}

#[test]
fn scalars_of_equal_constraints_share_and_others_do_not() {
    let scalars = [
        json!({"enum": ["a", "b"]}),
        json!({"enum": ["a", "c"]}),
        json!({"enum": ["a", 1]}),
        json!({"enum": ["a", 1, true]}),
        json!({"type": "string", "pattern": "^a"}),
        json!({"type": "string", "pattern": "^b"}),
        json!({"type": "string", "not": {"pattern": "^a"}}),
        json!({"type": "string", "pattern": "^a", "maxLength": 4}),
        json!({"type": "string", "format": "date"}),
        json!({"type": "string", "format": "time"}),
        json!({"type": "number", "minimum": 1}),
        json!({"type": "number", "exclusiveMinimum": 1}),
        json!({"type": "integer", "minimum": 1}),
        json!({"type": "number", "multipleOf": 0.5}),
        json!({"type": "number", "not": {"multipleOf": 0.5}}),
    ];
    let place = "{\"a\":";
    let mut known = Vec::new();
    for scalar in &scalars {
        let found = identity(&object(scalar), place, options(" "));
        assert!(found.is_some(), "{scalar}");
        // Other numbers of formulas and patterns, and another order of alternatives.
        let several = json!({
            "type": "object",
            "properties": {"0": {"pattern": "^x", "minimum": 7}, "a": {"allOf": [scalar, {}]}},
        });
        assert_eq!(found, identity(&several, place, options(" ")), "{scalar}");
        assert!(!known.contains(&found), "{scalar}");
        known.push(found);
    }
    let is_number = |one: &&Value| one["type"] == "number" || one["type"] == "integer";
    for place in ["{\"a\": 1", "{\"a\": 25"] {
        let mut inside = HashSet::new();
        for scalar in scalars.iter().filter(is_number) {
            let found = identity(&object(scalar), place, options(" "));
            assert!(found.is_some(), "{scalar}");
            let properties = json!({"0": {"minimum": 7}, "a": {"allOf": [scalar, {}]}});
            let several = json!({"type": "object", "properties": properties});
            assert_eq!(found, identity(&several, place, options(" ")), "{scalar}");
            assert!(inside.insert(found), "{scalar}");
        }
        assert_eq!(inside.len(), 5);
    }
}

#[test]
fn beginnings_of_containers_share_and_others_do_not() {
    let text = json!({"type": "string"});
    let array = |items: &Value, more: Value| {
        let mut schema = json!({"type": "array", "items": items});
        for (key, value) in more.as_object().expect("an object") {
            schema[key] = value.clone();
        }
        schema
    };
    let closed = |names: &[&str], required: &[&str]| {
        let properties = names.iter().map(|&name| (name.to_owned(), text.clone()));
        let properties = Value::Object(properties.collect());
        json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false,
        })
    };
    // Each list has values whose beginnings are equal as far as tokens see.
    let equal = [
        vec![closed(&["a"], &[]), closed(&["x", "y"], &[]), object(&text)],
        vec![closed(&["a"], &["a"]), closed(&["x", "y"], &["y"])],
        vec![closed(&[], &[])],
        vec![array(&text, json!({})), array(&text, json!({"maxItems": 2}))],
        vec![array(&text, json!({"maxItems": 1}))],
        vec![
            array(&text, json!({"minItems": 1})),
            array(&text, json!({"minItems": 1, "maxItems": 3})),
        ],
        vec![array(&text, json!({"minItems": 2})), array(&text, json!({"minItems": 3}))],
        vec![array(&text, json!({"maxItems": 0})), array(&json!(false), json!({}))],
        vec![array(&json!({"type": "integer"}), json!({}))],
        vec![array(&closed(&["a"], &[]), json!({})), array(&closed(&["x"], &[]), json!({}))],
        vec![array(&closed(&["a"], &["a"]), json!({}))],
        vec![array(&array(&text, json!({})), json!({}))],
        vec![array(&array(&text, json!({"minItems": 1})), json!({}))],
        vec![json!({"anyOf": [text, array(&text, json!({}))]})],
    ];
    let tokens: [&[u8]; 7] = [b" [{\"", b" {\"", b" [\"", b" [],", b"\"}, ", b"}}", b" \"id"];
    let of = |tokens: &[&[u8]], value: &Value, place: &str| {
        identity_over(tokens, &object(value), place, options(" "))
    };
    for place in ["{\"a\":", "{\"a\": "] {
        let mut known = HashSet::new();
        for list in &equal {
            let found = of(&tokens, &list[0], place);
            assert!(found.is_some(), "{}", list[0]);
            for other in &list[1..] {
                assert_eq!(found, of(&tokens, other, place), "{other}");
            }
            assert!(known.insert(found), "{}", list[0]);
        }
    }
    // Where a token goes on after the quote, names matter; where one goes on after a comma, items do.
    let (names, items): ([&[u8]; 1], [&[u8]; 1]) = ([b" {\"a"], [b"1, 1"]);
    let (few, none) = (&equal[0][0], &equal[3][1]);
    assert_eq!(of(&names, few, "{\"a\":"), None);
    assert!(of(&items, few, "{\"a\":").is_some());
    assert_eq!(of(&items, none, "{\"a\":"), None);
    assert!(of(&items, &equal[3][0], "{\"a\":").is_some());
    // Items that must be distinct are recorded.
    let distinct = array(&text, json!({"uniqueItems": true}));
    assert_eq!(of(&tokens, &distinct, "{\"a\":"), None);
}

#[test]
fn places_that_tokens_distinguish_do_not_share() {
    let text = json!({"type": "string"});
    let base = object(&text);
    let with = |name: &str, value: Value| {
        let mut schema = base.clone();
        schema[name] = value;
        schema
    };
    let others = [
        object(&json!({"type": "integer"})),
        object(&json!({"type": ["string", "null"]})),
        object(&json!({"type": "string", "maxLength": 3})),
        with("additionalProperties", json!(false)),
        with("maxProperties", json!(1)),
        with("required", json!(["b"])),
        with("minProperties", json!(2)),
        with("propertyNames", json!({"maxLength": 3})),
        with("if", json!({"required": ["b"]})),
    ];
    for place in ["{\"a\":", "{\"a\": \""] {
        let found = identity(&base, place, options(" "));
        assert!(found.is_some());
        for other in &others[2..] {
            if identity(other, place, options(" ")) == found {
                // The condition above changes nothing.
                assert!(other.get("if").is_some(), "{place} {other}");
            }
        }
        let nested = object(&base);
        assert_ne!(found, identity(&nested, &format!("{{\"a\": {place}"), options(" ")));
        assert_ne!(found, identity(&base, &place.replace(' ', "  "), options("  ")));
    }
    for other in &others[..2] {
        let found = identity(&base, "{\"a\":", options(" "));
        assert_ne!(found, identity(other, "{\"a\":", options(" ")));
    }
    // A token has this name whole, so it matters whether it may come.
    let known = |value: Value| json!({"type": "object", "properties": {"id": value, "x": {}}});
    let [open, refused] =
        [json!({}), json!(false)].map(|value| identity(&known(value), "{\"y\": 1,", options(" ")));
    assert_eq!(open, refused);
    let [open, refused] =
        [json!({}), json!(false)].map(|value| identity(&known(value), "{", options(" ")));
    assert!(open.is_some() && refused.is_some());
    assert_ne!(open, refused);
}

#[test]
fn parts_that_no_token_reaches_are_not_told_apart() {
    let seen: [&[u8]; 6] = [b"\":", b"a", b"\"},", b"\": \"", b"\",", b"}, {"];
    let unseen: [&[u8]; 6] = [b"\":", b"a", b"\"},", b"}}", b"\",", b" \"id"];
    let closed = |names: &[&str], value: Value| {
        let properties = names.iter().map(|name| ((*name).to_owned(), value.clone()));
        let properties = Value::Object(properties.collect());
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    let of = |tokens: &[&[u8]], schema: &Value, text: &str| {
        identity_over(tokens, schema, text, options(" "))
    };
    let text = json!({"type": "string"});
    let (few, more) = (closed(&["a", "b"], text.clone()), closed(&["a", "c", "d"], text.clone()));
    let one = closed(&["a"], text);
    let whole = closed(&["a", "b"], json!({"type": "integer"}));

    // After a comma and a blank come other names, after a colon and a blank other values.
    let value = of(&unseen, &few, "{\"a\": ");
    assert!(value.is_some());
    assert_eq!(value, of(&unseen, &more, "{\"a\": "));
    assert_ne!(value, of(&unseen, &one, "{\"a\": "));
    assert_ne!(value, of(&unseen, &whole, "{\"a\": "));
    for (place, other) in [("{\"a", "{\"c"), ("{\"a\"", "{\"d\"")] {
        let name = of(&unseen, &few, place);
        assert!(name.is_some());
        assert_eq!(name, of(&unseen, &whole, place));
        assert_eq!(name, of(&unseen, &more, other));
        assert_ne!(of(&seen, &few, place), of(&seen, &whole, place));
    }
    assert_ne!(of(&unseen, &few, "{\""), of(&unseen, &one, "{\""));
    let open = json!({"type": "object", "properties": {"a": {}}});
    assert_ne!(of(&unseen, &few, "{\"a"), of(&unseen, &open, "{\"a"));
    assert_ne!(of(&unseen, &open, "{\"a"), of(&unseen, &open, "{\"x"));

    // After a comma comes another item.
    let items = |item: &Value| json!({"type": "array", "items": item});
    let item = of(&unseen, &items(&few), "[{\"a\": \"\"}");
    assert!(item.is_some());
    assert_eq!(item, of(&unseen, &items(&more), "[{\"a\": \"\"}"));
    // Tokens that see the beginning of one tell items apart that may be empty, or whose names matter.
    let begun = of(&seen, &items(&few), "[{\"a\": \"\"}");
    assert!(begun.is_some() && begun != item);
    assert_eq!(begun, of(&seen, &items(&more), "[{\"a\": \"\"}"));
    let mut full = few.clone();
    full["required"] = json!(["a"]);
    assert_ne!(begun, of(&seen, &items(&full), "[{\"a\": \"\"}"));
    let names: [&[u8]; 2] = [b"\"},", b"}, {\"a"];
    assert_eq!(of(&names, &items(&few), "[{\"a\": \"\"}"), None);
    let mut last = items(&few);
    last["maxItems"] = json!(1);
    assert_ne!(item, of(&unseen, &last, "[{\"a\": \"\"}"));
}
