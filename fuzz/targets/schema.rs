//! A stranger's schema, and a text to read with it: no panic, no endless work, limits kept, and
//! what can be gone on with ends in a member that is JSON.
#![no_main]

use formalm_core::LazyDfa;
use formalm_schema::{
    Document, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
};
use libfuzzer_sys::fuzz_target;

// A byte of options, the schema, a NUL, a text.
fuzz_target!(|data: &[u8]| {
    let Some((bits, data)) = data.split_first() else { return };
    let mut parts = data.splitn(2, |&byte| byte == 0);
    let (schema, input) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(schema) = std::str::from_utf8(schema) else { return };
    let Ok(schema) = Document::read(schema) else { return };
    let options = JsonSchemaOptions {
        property_order: if bits & 1 == 0 { PropertyOrder::Schema } else { PropertyOrder::Any },
        max_whitespace: bits >> 1 & 1,
        allow_additional: bits & 4 == 0,
        allow_approximate: bits & 8 != 0,
        max_free_depth: if bits & 16 == 0 { u32::MAX } else { 3 },
        ..JsonSchemaOptions::default()
    };
    let limits = JsonSchemaLimits { states: 2_000, steps: 20_000, ..JsonSchemaLimits::default() };
    let Ok(machine) = SchemaAutomaton::new(&schema, &[], options, limits) else { return };
    let mut state = machine.start();
    for &byte in input {
        match machine.step(state, byte) {
            Ok(Some(next)) => state = next,
            // Not viable, or a limit: both are answers.
            Ok(None) | Err(_) => break,
        }
    }
    if let Ok(rest) = machine.shortest_completion(state) {
        if let Ok(Ok(end)) = machine.walk(state, &rest) {
            assert!(machine.is_accepting(end), "the shortest completion is not accepted");
        }
    }
});
