//! Items that must be distinct are compared by value, whatever their spelling.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use formalm_core::LazyDfa;
use formalm_schema::{
    EscapePolicy, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
};
use proptest::prelude::*;
use serde_json::json;

/// Groups of spellings of one value.
const VALUES: [&[&str]; 12] = [
    &["1", "1.0", "1.00", "10e-1", "0.1E1", "100e-2"],
    &["-1", "-1.0", "-10e-1"],
    &["0", "-0", "0.0", "0e7", "-0.00"],
    &["10", "1e1", "1E+1", "10.0"],
    &[r#""a""#, r#""\u0061""#],
    &[r#""1""#, r#""\u0031""#],
    &[r#""\n/""#, r#""\u000a\/""#, r#""\u000A/""#],
    &[r#""😀é""#, r#""\ud83d\ude00\u00e9""#, r#""\uD83D\uDE00é""#],
    &["[1,\"a\"]", "[ 1.0 , \"\\u0061\"]"],
    &["[\"a\",1]", "[\"\\u0061\",1e0]"],
    &[
        r#"{"a":1,"b":[{}]}"#,
        r#"{"b":[{}],"a":1}"#,
        r#"{ "b" : [ { } ] , "\u0061" : 1.0 }"#,
        r#"{"\u0062":[{}],"a":10e-1}"#,
    ],
    &[r#"{"a":1}"#, r#"{"a":1.0}"#, r#"{"\u0061":1}"#],
];

/// Returns a schema whose innermost arrays, inside `levels` others with unique items, have unique
/// items too.
fn schema(levels: usize) -> serde_json::Value {
    let innermost = json!({"type": "array", "uniqueItems": true});
    (0..levels)
        .fold(innermost, |items, _| json!({"type": "array", "uniqueItems": true, "items": items}))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn equal_items_are_refused_in_every_spelling(
        arrays in proptest::collection::vec(
            proptest::collection::vec((0..VALUES.len(), 0..6usize), 0..5), 1..4),
        nested in any::<bool>(),
    ) {
        let options = JsonSchemaOptions {
            property_order: PropertyOrder::Any,
            escapes: EscapePolicy::Any,
            allow_exponents: true,
            max_whitespace: 1,
            allow_approximate: true,
            ..JsonSchemaOptions::default()
        };
        let document = schema(usize::from(nested)).into();
        let machine =
            SchemaAutomaton::new(&document, &[], options, JsonSchemaLimits::default()).unwrap();
        let spelled = |items: &[(usize, usize)]| {
            let items: Vec<&str> =
                items.iter().map(|&(value, way)| VALUES[value][way % VALUES[value].len()]).collect();
            format!("[{}]", items.join(","))
        };
        let values = |items: &[(usize, usize)]| items.iter().map(|one| one.0).collect::<Vec<_>>();
        fn all_distinct<T: PartialEq>(list: &[T]) -> bool {
            list.iter().enumerate().all(|(at, one)| !list[..at].contains(one))
        }
        let (text, expected) = match nested {
            false => (spelled(&arrays[0]), all_distinct(&values(&arrays[0]))),
            true => {
                let inner: Vec<Vec<usize>> = arrays.iter().map(|one| values(one)).collect();
                let texts: Vec<String> = arrays.iter().map(|one| spelled(one)).collect();
                let distinct = inner.iter().all(|one| all_distinct(one)) && all_distinct(&inner);
                (format!("[{}]", texts.join(",")), distinct)
            }
        };
        let read = machine.walk(machine.start(), text.as_bytes()).unwrap();
        let accepted = read.is_ok_and(|state| machine.is_accepting(state));
        prop_assert_eq!(accepted, expected, "{}", text);
    }
}
