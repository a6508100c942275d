//! Schemas of the maximum nesting depth, in a stack of the main thread's size, in builds of every
//! profile.

use formalm_core::{Error, LazyDfa};
use formalm_schema::{Document, JsonSchemaLimits, JsonSchemaOptions, SchemaAutomaton};

/// Returns the shortest instance of a schema, computed in a stack of 8 MiB.
fn shortest(text: String) -> Result<Vec<u8>, Error> {
    let work = move || {
        let schema = Document::read(&text)?;
        let options = JsonSchemaOptions { max_whitespace: 0, ..JsonSchemaOptions::default() };
        let machine = SchemaAutomaton::new(&schema, &[], options, JsonSchemaLimits::default())?;
        machine.shortest_completion(machine.start())
    };
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(work);
    thread.expect("a thread").join().expect("no panic")
}

fn nested(before: &str, inner: &str, after: &str, levels: usize) -> String {
    [before.repeat(levels), inner.to_owned(), after.repeat(levels)].concat()
}

#[test]
fn deepest_allowed_schemas_have_a_shortest_instance() {
    let object = r#"{"required":["a"],"type":"object","properties":{"a":"#;
    let text = nested(object, "{}", "}}", 190);
    assert_eq!(shortest(text).unwrap(), nested(r#"{"a":"#, "0", "}", 190).into_bytes());
    let wrapped = r#"{"type":"array","minItems":1,"items":{"anyOf":[{"type":"null"},"#;
    assert_eq!(shortest(nested(wrapped, "{}", "]}}", 150)).unwrap(), b"[null]");
}

#[test]
fn deeply_nested_subschemas_are_read() {
    for (before, after) in
        [(r#"{"not":"#, "}"), (r#"{"allOf":[{},"#, "]}"), (r#"{"oneOf":[false,"#, "]}")]
    {
        assert_eq!(shortest(nested(before, r#"{"const":7}"#, after, 190)).unwrap(), b"7");
    }
}

#[test]
fn deeper_nesting_is_a_limit_error() {
    for levels in [201, 400, 100_000] {
        for (before, after) in [(r#"{"not":"#, "}"), ("[", "]"), (r#"{"allOf":["#, "]}")] {
            let text = nested(before, if before == "[" { "1" } else { "{}" }, after, levels);
            let text = if before == "[" { format!(r#"{{"const":{text}}}"#) } else { text };
            assert!(matches!(shortest(text), Err(Error::Limit { .. })), "{before} {levels}");
        }
    }
}
