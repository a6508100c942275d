//! The types whose insides are prepared once for a tokenizer: strings, dates, times, UUIDs, e-mail
//! addresses and numbers of JSON, and free text. A Boolean value is a token or two and has no inside.

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits, Expression};
use formalm_constraint::{Constraint, TextBegin};
use formalm_core::Error;
use formalm_machines::{MaskClasses, RegularMaskClasses};
use formalm_regex::{PatternDialect, PatternFlags, parse};
use formalm_schema::{
    Document, JsonSchemaLimits, JsonSchemaOptions, SchemaAutomaton, SchemaMaskClasses,
};
use formalm_vocabulary::{Vocabulary, bpe::BpeEncoder};

/// Memory limit of a constraint that prepares a type, in bytes.
const MEMORY_LIMIT_BYTES: usize = 64 << 20;

/// Schemas of values, and strings that lead inside one after the bracket of an array.
const VALUES: [(&str, &[&str]); 8] = [
    (r#"{"type": "integer"}"#, &["-", "0", "1"]),
    (r#"{"type": "number"}"#, &["-", "0", "1"]),
    (r#"{"type": "string", "format": "date"}"#, &["\""]),
    (r#"{"type": "string", "format": "uuid"}"#, &["\""]),
    (r#"{"type": "string", "format": "time"}"#, &["\""]),
    (r#"{"type": "string", "format": "date-time"}"#, &["\""]),
    (r#"{"type": "string", "format": "email"}"#, &["\""]),
    (r#"{"type": "string"}"#, &["\""]),
];

/// Texts before a value, as JSON is commonly written: compact, with spaces, and indented.
const BEFORE_VALUES: [&str; 17] = [
    "",
    "[",
    "[[",
    "{\"a\":",
    "{\"a\": ",
    "{\"a\":[",
    "{\"a\": [",
    "[\"a\",",
    "[\"a\", ",
    "[1,",
    "[1, ",
    "[\n  ",
    "[\n    ",
    "{\n  \"a\": ",
    "[\"a\",\n  ",
    "[1,\n  ",
    "[\n\t",
];

/// Patterns of free text.
const PATTERNS: [&str; 2] = ["(?s:.*)", ".*"];

/// Texts before free text.
const BEFORE_TEXT: [&str; 8] = ["", "a", " ", "\n", ".", ": ", "\"", "1"];

/// Prepares the types for an encoder and its vocabulary. Returns the number of positions that were
/// added.
pub(crate) fn prepare_types(
    vocabulary: &Arc<Vocabulary>,
    encoder: &Arc<BpeEncoder>,
) -> Result<usize, Error> {
    let mut count = 0;
    if !encoder.is_merging() {
        return Ok(0);
    }
    for (schema, strings) in VALUES {
        let array = format!(r#"{{"type": "array", "items": {schema}}}"#);
        let (options, limits) = (JsonSchemaOptions::default(), JsonSchemaLimits::default());
        let machine = SchemaAutomaton::new(&Document::read(&array)?, &[], options, limits)?;
        let names = Arc::clone(vocabulary.token_names());
        let longest = vocabulary.longest_token_bytes();
        let keys = SchemaMaskClasses::new(Arc::new(machine), longest, names);
        let parts = strings.iter().map(|string| {
            let texts = BEFORE_VALUES.iter().map(|before| format!("{before}{string}").into());
            (format!("[{string}"), texts.collect())
        });
        count += prepare(keys, vocabulary, encoder, parts)?;
    }
    for pattern in PATTERNS {
        let node = parse(pattern, PatternDialect::Python, PatternFlags::default())?;
        let machine = Automaton::new(&Expression::pattern(node), AutomatonLimits::default())?;
        let keys = RegularMaskClasses::new(Arc::new(machine), vocabulary.longest_token_bytes());
        let texts = BEFORE_TEXT.map(|text| text.as_bytes().to_vec()).to_vec();
        count += prepare(keys, vocabulary, encoder, [(String::new(), texts)])?;
    }
    Ok(count)
}

fn prepare<K: MaskClasses>(
    keys: K,
    vocabulary: &Arc<Vocabulary>,
    encoder: &Arc<BpeEncoder>,
    parts: impl IntoIterator<Item = (String, Vec<Vec<u8>>)>,
) -> Result<usize, Error> {
    let (vocabulary, encoder) = (Arc::clone(vocabulary), Arc::clone(encoder));
    let (limit, begin) = (MEMORY_LIMIT_BYTES, TextBegin::AfterTokens);
    let constraint = Constraint::canonical_over(keys, vocabulary, encoder, limit, begin)?;
    let epoch = constraint.current();
    let mut count = 0;
    for (string, texts) in parts {
        count += epoch.prepare_part(string.as_bytes(), &texts)?;
    }
    Ok(count)
}
