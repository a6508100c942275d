//! The keyword `x-formalm-text`: a string as a concatenation of parts.
//!
//! Types of programming languages that JSON Schema cannot express compile to it. Its value is a
//! list of objects, one for each part. The properties of an object all constrain the same part:
//!
//! - `pattern`: a whole-string pattern in JSON Schema's dialect;
//! - `format`: a known format;
//! - `bytes`: a list of the minimum and optionally the maximum number of bytes;
//! - `json`: a schema; the part is a JSON document;
//! - `moment`: a time with an offset, within a bound. A list of `ge`, `gt`, `le` or `lt`, whether
//!   dates are present, and the bound in UTC as minutes (since 1970 or midnight) and microseconds;
//! - `url`: URLs whose encoded host labels can be decoded. A list of a pattern for the URLs and
//!   whether commas separate several hosts in them.

use std::sync::Arc;

use formalm_automata::Expression;
use formalm_core::Error;
use formalm_regex::{PatternDialect, PatternFlags, parse};
use serde_json::Value as Json;

use super::keyword_table::Keyword;
use super::keyword_values::{KeywordValues, SchemaFault, fault_at};
use crate::formats;
use crate::formats::{BoundedTimestamps, ByteCount, EmbeddedDocument, TimestampBound, Urls};
use crate::json::document::Document;
use crate::json::json_view::{JsonShape, JsonView};
use crate::machine::SchemaAutomaton;
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_nodes::{NodeId, RegexId, ResolvedSchema, SchemaNote};

const KEYWORD_NAME: &str = Keyword::StringParts.name();

/// Maximum nesting of documents inside strings of documents. Chosen, not measured.
const MAX_DOCUMENT_NESTING: usize = 8;

/// Returns a fault in a part.
fn part_fault(message: impl std::fmt::Display) -> SchemaFault {
    fault_at(&[KEYWORD_NAME], message)
}

/// Returns the language that the keyword describes, `None` without the keyword. Notes on embedded
/// documents go to `node`. Fails if a part is malformed.
pub(super) fn string_parts_language<'r, J: JsonView<'r>>(
    schema: &mut ResolvedSchema,
    options: JsonSchemaOptions,
    fields: &KeywordValues<J>,
    node: NodeId,
) -> Result<Option<RegexId>, SchemaFault> {
    let Some(list) = fields.list(Keyword::StringParts)? else { return Ok(None) };
    let list = to_serde(list);
    let Some(parts) = list.as_array() else { return Ok(None) };
    let has_documents = parts.iter().any(|part| part.get("json").is_some());
    // An embedded document is spelled with the options of the outer one.
    let spelled = if has_documents { format!("{options:?}") } else { String::new() };
    let key = format!("x{list}{spelled}");
    if let Some(&id) = schema.regex_ids.get(&key) {
        return Ok(Some(id));
    }
    let mut notes = Vec::new();
    let parts = parts.iter().map(|part| part_language(part, options, &mut notes));
    let mut expressions: Vec<Expression> = parts.collect::<Result<_, SchemaFault>>()?;
    let whole = match expressions.len() {
        1 => expressions.remove(0),
        _ => Expression::concat(expressions)?,
    };
    for SchemaNote { place, message, effect } in notes {
        schema.note_with_effect(
            node,
            &[KEYWORD_NAME],
            format!("{message} (in the embedded document, at {place})"),
            effect,
        );
    }
    Ok(Some(schema.intern_regex(key, || whole)))
}

/// Returns the language of a part. Fails if the part is malformed.
fn part_language(
    part: &Json,
    options: JsonSchemaOptions,
    notes: &mut Vec<SchemaNote>,
) -> Result<Expression, SchemaFault> {
    let Some(properties) = part.as_object() else {
        return Err(part_fault("a part must be an object"));
    };
    let mut all = Vec::new();
    for (name, value) in properties {
        all.push(match name.as_str() {
            "pattern" => pattern_language(value)?,
            "format" => {
                let format = value.as_str().and_then(formats::format);
                format.ok_or_else(|| part_fault(format!("unknown format {value}")))??
            }
            "bytes" => byte_count_language(value)?,
            "moment" => moment_language(value)?,
            "url" => url_language(value)?,
            "json" => document_language(value, options, notes)?,
            _ => return Err(part_fault(format!("unknown property {name:?} of a part"))),
        });
    }
    match all.len() {
        0 => Err(part_fault("a part must have at least one property")),
        1 => Ok(all.remove(0)),
        _ => Ok(Expression::intersection(all)?),
    }
}

/// Returns the strings that a pattern matches as a whole.
fn pattern_language(source: &Json) -> Result<Expression, SchemaFault> {
    let Some(source) = source.as_str() else { return Err(part_fault("pattern must be a string")) };
    let read =
        parse(source, PatternDialect::Ecma, PatternFlags::default()).map_err(
            |error| match error {
                Error::Language { message, hint, .. } => {
                    let message = format!("{message} in the pattern {source:?}");
                    SchemaFault::Part { parts: vec![KEYWORD_NAME.to_owned()], message, hint }
                }
                other => SchemaFault::Other(other),
            },
        )?;
    Ok(Expression::pattern(read))
}

/// Returns the strings whose number of UTF-8 bytes is in a range.
fn byte_count_language(value: &Json) -> Result<Expression, SchemaFault> {
    let counts: Option<Vec<u64>> = value.as_array().and_then(|list| {
        list.iter().map(|count| count.as_u64().filter(|&count| count < ByteCount::MOST)).collect()
    });
    let (min, max) = match counts.as_deref() {
        Some(&[min]) => (min, None),
        Some(&[min, max]) => (min, Some(max)),
        _ => return Err(part_fault("bytes must be a list of one or two counts")),
    };
    match ByteCount::new(min as u32, max.map(|max| max as u32)) {
        Some(count) => Ok(Expression::custom(Arc::new(count))),
        None => Ok(Expression::union(Vec::new())?),
    }
}

/// Returns the times within a bound.
fn moment_language(value: &Json) -> Result<Expression, SchemaFault> {
    let bound = value.as_array().and_then(|list| match &list[..] {
        [Json::String(name), Json::Bool(has_date), minutes, rest] => Some(TimestampBound {
            is_above: name.starts_with('g'),
            may_equal: name.ends_with('e'),
            has_date: *has_date,
            minutes: minutes.as_i64()?,
            rest: rest.as_i64()?,
        }),
        _ => None,
    });
    let bound = bound.ok_or_else(|| part_fault("moment must be a bound in UTC"))?;
    match BoundedTimestamps::new(bound) {
        Some(moments) => Ok(Expression::custom(Arc::new(moments))),
        None => Ok(Expression::union(Vec::new())?),
    }
}

/// Returns the URLs of a pattern whose encoded host labels can be decoded.
fn url_language(value: &Json) -> Result<Expression, SchemaFault> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    let [pattern @ Json::String(_), Json::Bool(is_multiple)] = list else {
        return Err(part_fault("url must be a pattern and a flag for multiple hosts"));
    };
    match Urls::of(&pattern_language(pattern)?, *is_multiple)? {
        Some(urls) => Ok(Expression::custom(Arc::new(urls))),
        None => Ok(Expression::union(Vec::new())?),
    }
}

/// Returns the strings that are documents of a schema, and adds its notes. Fails if the schema is
/// invalid.
fn document_language(
    schema: &Json,
    options: JsonSchemaOptions,
    notes: &mut Vec<SchemaNote>,
) -> Result<Expression, SchemaFault> {
    if document_nesting(schema) > MAX_DOCUMENT_NESTING {
        return Err(part_fault(format!("documents are nested deeper than {MAX_DOCUMENT_NESTING}")));
    }
    let document = Document::from(schema.clone());
    let machine =
        SchemaAutomaton::new_if_satisfiable(&document, &[], options, JsonSchemaLimits::default())?;
    let Some(machine) = machine else { return Ok(Expression::union(Vec::new())?) };
    notes.extend(machine.notes().iter().cloned());
    Ok(Expression::custom(Arc::new(EmbeddedDocument::new(machine))))
}

/// Returns the nesting of schemas of embedded documents.
fn document_nesting(schema: &Json) -> usize {
    let (mut most, mut rest) = (0, vec![(schema, 1)]);
    while let Some((json, depth)) = rest.pop() {
        most = most.max(depth);
        match json {
            Json::Array(list) => rest.extend(list.iter().map(|one| (one, depth))),
            Json::Object(map) => rest.extend(map.iter().map(|(name, one)| {
                let is_within = name == "json" && map.len() == 1;
                (one, depth + usize::from(is_within))
            })),
            _ => {}
        }
    }
    most
}

/// Converts a value to serde_json.
fn to_serde<'r, J: JsonView<'r>>(source: J) -> Json {
    match source.shape() {
        JsonShape::Null => Json::Null,
        JsonShape::Bool(truth) => Json::Bool(truth),
        JsonShape::Number(number) => serde_json::from_str(number).unwrap_or(Json::Null),
        JsonShape::String(text) => Json::String(text.to_owned()),
        JsonShape::Array => Json::Array(source.children().map(|part| to_serde(part.1)).collect()),
        JsonShape::Object => Json::Object(
            source.children().map(|(name, part)| (name.to_owned(), to_serde(part))).collect(),
        ),
    }
}
