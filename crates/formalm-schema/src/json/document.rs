//! The text of a schema, parsed.

use std::sync::Arc;

use formalm_automata::{Error, Resource, SetOnce, Span};
use serde_json::Value as Json;

use crate::json::deep_parser::{self, nesting};
use crate::json::flat_tape::Tree;

/// Arrays and objects within each other.
const MAX_NESTING: u64 = 500;

/// What the usual reader of JSON takes.
const USUAL_NESTING: u64 = 100;

/// A parsed JSON text: numbers keep their digits, members their order. A clone shares the text.
#[derive(Clone, Debug)]
pub struct Document {
    /// The text as a table, where it was read so.
    pub(crate) tree: Option<Arc<Tree>>,
    /// As the usual reader has it: what was not read as a table, and what is asked for so.
    value: Arc<SetOnce<Json>>,
}

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if it is no JSON; [`Error::Limit`] if it is nested too deeply.
    pub fn read(text: &str) -> Result<Document, Error> {
        match Tree::read(text) {
            Some(tree) => Ok(Document { tree: Some(Arc::new(tree)), value: Arc::default() }),
            None => parsed(text).map(Document::from),
        }
    }

    /// The document as the usual reader has it.
    pub(crate) fn value(&self) -> Result<&Json, Error> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = parsed(self.tree.as_deref().map_or("", Tree::source))?;
        Ok(self.value.get_or_init(|| value))
    }
}

/// A text as the usual reader has it.
fn parsed(text: &str) -> Result<Json, Error> {
    let needed = nesting(text);
    if needed > MAX_NESTING {
        let resource = Resource::Nesting;
        return Err(Error::Limit { resource, needed, allowed: MAX_NESTING });
    }
    if needed > USUAL_NESTING {
        return deep_parser::read(text).map_err(|at| no_json(text[..at].chars().count(), ""));
    }
    serde_json::from_str(text).map_err(|error| {
        let lines = text.lines().take(error.line().saturating_sub(1));
        let before: usize = lines.map(|line| line.chars().count() + 1).sum();
        no_json(before + error.column().saturating_sub(1), &format!(": {error}"))
    })
}

fn no_json(start: usize, why: &str) -> Error {
    let message = format!("the schema is no JSON that can be read{why}");
    Error::Language { message, span: Some(Span { start, end: start + 1 }), hint: None }
}

impl From<Json> for Document {
    fn from(json: Json) -> Document {
        Document { tree: None, value: Arc::new(SetOnce::from(json)) }
    }
}
