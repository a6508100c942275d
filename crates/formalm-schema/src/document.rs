//! The text of a schema, parsed.

use formalm_automata::{Error, Span};
use serde_json::Value as Json;

/// A parsed JSON text: numbers keep their digits, members their order.
#[derive(Clone, Debug)]
pub struct Document(pub(crate) Json);

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if it is no JSON.
    pub fn read(text: &str) -> Result<Document, Error> {
        serde_json::from_str(text).map(Document).map_err(|error| {
            let lines = text.lines().take(error.line().saturating_sub(1));
            let before: usize = lines.map(|line| line.chars().count() + 1).sum();
            let start = before + error.column().saturating_sub(1);
            let span = Some(Span { start, end: start + 1 });
            let message = format!("the schema is no JSON that can be read: {error}");
            Error::Language { message, span, hint: None }
        })
    }
}

impl From<Json> for Document {
    fn from(json: Json) -> Document {
        Document(json)
    }
}
