//! The text of a schema, parsed.

use std::sync::Arc;

use formalm_automata::{Error, Resource, SetOnce, Span};
use serde_json::Value as Json;

use crate::json::deep_parser::{self, max_nesting};
use crate::json::flat_tape::JsonTape;

/// Arrays and objects within each other.
const MAX_NESTING: u64 = 500;

/// What the usual reader of JSON takes.
const SERDE_NESTING: u64 = 100;

/// A parsed JSON text: numbers keep their digits, members their order. A clone shares the text.
#[derive(Clone, Debug)]
pub struct Document {
    /// The text as a table, where it was read so.
    pub(crate) tape: Option<Arc<JsonTape>>,
    /// As the usual reader has it: what was not read as a table, and what is asked for so.
    serde_value: Arc<SetOnce<Json>>,
}

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if it is no JSON; [`Error::Limit`] if it is nested too deeply.
    pub fn read(text: &str) -> Result<Document, Error> {
        match JsonTape::read(text) {
            Some(tree) => Ok(Document { tape: Some(Arc::new(tree)), serde_value: Arc::default() }),
            None => parse_with_serde(text).map(Document::from),
        }
    }

    /// The document as the usual reader has it.
    pub(crate) fn serde_value(&self) -> Result<&Json, Error> {
        if let Some(value) = self.serde_value.get() {
            return Ok(value);
        }
        let value = parse_with_serde(self.tape.as_deref().map_or("", JsonTape::source))?;
        Ok(self.serde_value.get_or_init(|| value))
    }
}

/// A text as the usual reader has it.
fn parse_with_serde(text: &str) -> Result<Json, Error> {
    let needed = max_nesting(text);
    if needed > MAX_NESTING {
        let resource = Resource::Nesting;
        return Err(Error::Limit { resource, needed, allowed: MAX_NESTING });
    }
    if needed > SERDE_NESTING {
        return deep_parser::parse(text).map_err(|at| invalid_json(text[..at].chars().count(), ""));
    }
    serde_json::from_str(text).map_err(|error| {
        let lines = text.lines().take(error.line().saturating_sub(1));
        let before: usize = lines.map(|line| line.chars().count() + 1).sum();
        invalid_json(before + error.column().saturating_sub(1), &format!(": {error}"))
    })
}

fn invalid_json(start: usize, why: &str) -> Error {
    let message = format!("the schema is no JSON that can be read{why}");
    Error::Language { message, span: Some(Span { start, end: start + 1 }), hint: None }
}

impl From<Json> for Document {
    fn from(json: Json) -> Document {
        Document { tape: None, serde_value: Arc::new(SetOnce::from(json)) }
    }
}
