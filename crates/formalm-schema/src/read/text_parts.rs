//! Our keyword `x-formalm-text`: what a text consists of, part by part.
//!
//! It is a list of parts, whose texts stand one behind the other. Each is an object that says one
//! thing or several of its part: `pattern`, a whole one of JSON Schema's dialect; `format`, one
//! that is known; `bytes`, a list of the least count of bytes and perhaps the most; `json`, the
//! schema of a document; `url`, a list of a pattern for URLs and whether commas separate several hosts
//! in them: those whose encoded labels can be decoded; `moment`, a list of `ge`, `gt`, `le` or `lt`, whether there are dates, and
//! a bound in UTC as minutes (since 1970 or midnight) and microseconds: times that have an offset
//! and lie within the bound. Types of programming languages are made of it.

use std::sync::Arc;

use formalm_automata::syntax::{Dialect, Flags, parse};
use formalm_automata::{Error, Expression};
use serde_json::Value as Json;

use super::fields::{Fault, Fields, wrong};
use super::words::Keyword;
use super::{Place, Reader};
use crate::document::Document;
use crate::formats::{self, Bound, ByteCount, Inner, Moments, Urls};
use crate::machine::SchemaAutomaton;
use crate::node::{Note, Rule};
use crate::options::{Limits, Options};
use crate::source::{Shape, Source};

const NAME: &str = Keyword::TextParts.name();

/// Documents within documents.
const MAX_DEPTH: usize = 8;

/// A fault in a part.
fn bad(message: impl std::fmt::Display) -> Fault {
    wrong(&[NAME], message)
}

impl<'r, J: Source<'r>> Reader<'r, J> {
    pub(super) fn text_parts(
        &mut self,
        fields: &Fields<J>,
        at: &Place<'r, J>,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Fault> {
        let Some(list) = fields.list(Keyword::TextParts)? else { return Ok(()) };
        let list = json_of(list);
        let Some(parts) = list.as_array() else { return Ok(()) };
        let has_documents = parts.iter().any(|part| part.get("json").is_some());
        // Documents are written as the text around them is.
        let options = if has_documents { format!("{:?}", self.options) } else { String::new() };
        let key = format!("x{list}{options}");
        if let Some(&id) = self.schema.regex_ids.get(&key) {
            rules.push(Rule::Text(id));
            return Ok(());
        }
        let mut notes = Vec::new();
        let parts = parts.iter().map(|part| part_of(part, self.options, &mut notes));
        let mut expressions: Vec<Expression> = parts.collect::<Result<_, Fault>>()?;
        let whole = match expressions.len() {
            1 => expressions.remove(0),
            _ => Expression::concat(expressions)?,
        };
        for Note { place, message, effect } in notes {
            self.tell(at, &[NAME], format!("{message} (within the text, at {place})"), effect);
        }
        let id = self.schema.regex(key, || whole);
        rules.push(Rule::Text(id));
        Ok(())
    }
}

/// The texts of a part.
fn part_of(part: &Json, options: Options, notes: &mut Vec<Note>) -> Result<Expression, Fault> {
    let Some(members) = part.as_object() else { return Err(bad("a part is an object")) };
    let mut all = Vec::new();
    for (name, value) in members {
        all.push(match name.as_str() {
            "pattern" => pattern_of(value)?,
            "format" => {
                let format = value.as_str().and_then(formats::format);
                format.ok_or_else(|| bad(format!("there is no format {value}")))??
            }
            "bytes" => bytes_of(value)?,
            "moment" => moment_of(value)?,
            "url" => urls_of(value)?,
            "json" => document_of(value, options, notes)?,
            _ => return Err(bad(format!("a part has no {name:?}"))),
        });
    }
    match all.len() {
        0 => Err(bad("a part says nothing")),
        1 => Ok(all.remove(0)),
        _ => Ok(Expression::intersection(all)?),
    }
}

fn pattern_of(source: &Json) -> Result<Expression, Fault> {
    let Some(source) = source.as_str() else { return Err(bad("a pattern is a text")) };
    let read = parse(source, Dialect::Ecma, Flags::default()).map_err(|error| match error {
        Error::Language { message, hint, .. } => {
            let message = format!("{message} in the pattern {source:?}");
            Fault::Part { parts: vec![NAME.to_owned()], message, hint }
        }
        other => Fault::Other(other),
    })?;
    Ok(Expression::pattern(read))
}

fn bytes_of(value: &Json) -> Result<Expression, Fault> {
    let counts: Option<Vec<u64>> = value.as_array().and_then(|list| {
        list.iter().map(|count| count.as_u64().filter(|&count| count < ByteCount::MOST)).collect()
    });
    let (min, max) = match counts.as_deref() {
        Some(&[min]) => (min, None),
        Some(&[min, max]) => (min, Some(max)),
        _ => return Err(bad("bytes are a list of one count or two")),
    };
    match ByteCount::new(min as u32, max.map(|max| max as u32)) {
        Some(count) => Ok(Expression::recognized(Arc::new(count))),
        None => Ok(Expression::union(Vec::new())?),
    }
}

fn moment_of(value: &Json) -> Result<Expression, Fault> {
    let bound = value.as_array().and_then(|list| match &list[..] {
        [Json::String(name), Json::Bool(has_date), minutes, rest] => Some(Bound {
            is_above: name.starts_with('g'),
            may_equal: name.ends_with('e'),
            has_date: *has_date,
            minutes: minutes.as_i64()?,
            rest: rest.as_i64()?,
        }),
        _ => None,
    });
    let bound = bound.ok_or_else(|| bad("a moment is a bound in UTC"))?;
    match Moments::new(bound) {
        Some(moments) => Ok(Expression::recognized(Arc::new(moments))),
        None => Ok(Expression::union(Vec::new())?),
    }
}

fn urls_of(value: &Json) -> Result<Expression, Fault> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    let [pattern @ Json::String(_), Json::Bool(is_multiple)] = list else {
        return Err(bad("a url is a pattern, and whether there are several hosts"));
    };
    match Urls::of(&pattern_of(pattern)?, *is_multiple)? {
        Some(urls) => Ok(Expression::recognized(Arc::new(urls))),
        None => Ok(Expression::union(Vec::new())?),
    }
}

/// The texts that are documents of a schema.
fn document_of(
    schema: &Json,
    options: Options,
    notes: &mut Vec<Note>,
) -> Result<Expression, Fault> {
    if depth_of(schema) > MAX_DEPTH {
        return Err(bad(format!("more than {MAX_DEPTH} documents within each other")));
    }
    let document = Document::from(schema.clone());
    let machine = SchemaAutomaton::of(&document, &[], options, Limits::default())?;
    let Some(machine) = machine else { return Ok(Expression::union(Vec::new())?) };
    notes.extend(machine.notes().iter().cloned());
    Ok(Expression::recognized(Arc::new(Inner::new(machine))))
}

/// Schemas of documents within each other.
fn depth_of(schema: &Json) -> usize {
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

/// A value as the usual reader has it.
fn json_of<'r, J: Source<'r>>(source: J) -> Json {
    match source.shape() {
        Shape::Null => Json::Null,
        Shape::Bool(truth) => Json::Bool(truth),
        Shape::Number(number) => serde_json::from_str(number).unwrap_or(Json::Null),
        Shape::Text(text) => Json::String(text.to_owned()),
        Shape::Array => Json::Array(source.parts().map(|part| json_of(part.1)).collect()),
        Shape::Object => Json::Object(
            source.parts().map(|(name, part)| (name.to_owned(), json_of(part))).collect(),
        ),
    }
}
