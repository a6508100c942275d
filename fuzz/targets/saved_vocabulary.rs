//! A stranger's saved vocabulary: read or refused, never a panic, never out of bounds; the tables
//! made of what was read hold together, and masks over it are what the definition says.
//!
//! The bytes are taken as the payload and given a true header: a digest keeps accidents out, but
//! whoever means harm computes it too.
#![no_main]

use std::sync::{Arc, LazyLock};

use formalm_constraint::{Constraint, Matcher, reference};
use formalm_core::{LazyDfa, StateId};
use formalm_json::escapes::EscapePolicy;
use formalm_machines::MaskClasses;
use formalm_schema::{
    Document, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder, SchemaAutomaton,
    SchemaMaskClasses,
};
use formalm_vocabulary::{StringOpening, Vocabulary};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

/// Each asks another table: names, items that must be distinct, strings of some length.
const SCHEMAS: [(&str, &str); 3] = [
    (r#"{"type":"object","properties":{"a":{"type":"integer"}},"minProperties":2}"#, r#"{"b":1"#),
    (r#"{"type":"array","uniqueItems":true,"items":{"type":["string","integer"]}}"#, r#"["a",1,"#),
    (r#"{"type":"string","maxLength":5,"pattern":"^[^b]"}"#, r#""a"#),
];

static MACHINES: LazyLock<Vec<Arc<SchemaAutomaton>>> = LazyLock::new(|| {
    let made = SCHEMAS.iter().flat_map(|(schema, _)| {
        let document = Document::read(schema).expect("a schema");
        [PropertyOrder::Schema, PropertyOrder::Any].map(|order| {
            let options =
                JsonSchemaOptions { property_order: order, ..JsonSchemaOptions::default() };
            let made = SchemaAutomaton::new(&document, &[], options, JsonSchemaLimits::default());
            Arc::new(made.expect("a machine"))
        })
    });
    made.collect()
});

fuzz_target!(|payload: &[u8]| {
    let mut data = b"formalm vocabulary\n".to_vec();
    data.extend_from_slice(&1_u32.to_le_bytes());
    data.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    data.extend_from_slice(&Sha256::digest(payload)[..16]);
    data.extend_from_slice(payload);
    let Ok(vocabulary) = Vocabulary::from_saved(&data) else { return };
    for token_id in 0..vocabulary.len().min(10_000) {
        let _ = vocabulary.token_bytes(token_id as u32);
    }
    assert_eq!(vocabulary.save(), data, "what was read is saved differently");
    if vocabulary.len() <= 2_000 {
        check_tables(&Arc::new(vocabulary));
    }
});

fn check_tables(vocabulary: &Arc<Vocabulary>) {
    let size = vocabulary.len() as u32;
    let are_ids = |ids: &[u32]| assert!(ids.iter().all(|&id| id < size), "ids beyond the last");
    are_ids(vocabulary.end_token_ids());
    are_ids(vocabulary.item_joining_tokens());
    are_ids(vocabulary.whole_item_tokens());
    are_ids(vocabulary.trie().order());
    for escapes in [EscapePolicy::Minimal, EscapePolicy::Ascii, EscapePolicy::Any] {
        let _ = vocabulary.json_string_tokens(escapes);
        for opening in [StringOpening::Quote, StringOpening::SpaceAndQuote] {
            let _ = vocabulary.string_opening_tokens(opening, escapes);
        }
    }
    let _ = vocabulary.class_masks();
    for (at, machine) in MACHINES.iter().enumerate() {
        let keys = SchemaMaskClasses::new(
            Arc::clone(machine),
            vocabulary.longest_token_bytes(),
            Arc::clone(vocabulary.token_names()),
        );
        let constraint = Arc::new(Constraint::over(keys, Arc::clone(vocabulary), 1 << 20));
        let text = SCHEMAS[at / 2].1.as_bytes();
        for end in [0, 1, text.len()] {
            let (matcher, state) = after(&constraint, machine, &text[..end]);
            let mut words = vec![0; constraint.words()];
            if matcher.fill(&mut words).is_err() {
                continue;
            }
            let mask = (0..size).filter(|&id| words[id as usize / 32] >> (id % 32) & 1 != 0);
            let allowed = reference::allowed(&**machine, vocabulary, state).expect("within limits");
            assert_eq!(mask.collect::<Vec<_>>(), allowed, "schema {at} after {end} bytes");
        }
    }
}

/// A matcher after a text, and the machine's state there.
fn after<K: MaskClasses<Machine = SchemaAutomaton>>(
    constraint: &Arc<Constraint<K>>,
    machine: &SchemaAutomaton,
    text: &[u8],
) -> (Matcher<K>, StateId) {
    let mut matcher = Matcher::new(Arc::clone(constraint));
    let mut ask = || true;
    let mut poll = formalm_core::InterruptCheck::new(&mut ask);
    matcher.advance_bytes(text, &mut poll).expect("it is viable");
    (matcher, machine.walk(machine.start(), text).expect("within limits").expect("viable"))
}
