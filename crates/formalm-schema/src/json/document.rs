//! A parsed schema document: on the flat tape if possible, as a serde_json value on demand.

use std::sync::Arc;

use formalm_core::{Error, Resource, SetOnce, SourceSpan, check_limit};
use serde_json::Value as Json;

use crate::json::deep_parser;
use crate::json::deep_parser::max_nesting;
use crate::json::duplicate_names::duplicate_names;
use crate::json::flat_tape::JsonTape;

/// Maximum nesting of a document, in arrays and objects. Chosen, not measured.
const MAX_NESTING: u64 = 500;

/// Nesting up to which serde_json parses; deeper documents go to [`deep_parser`].
const SERDE_NESTING: u64 = 100;

/// A parsed JSON document. Numbers keep their digits and objects the order of their properties.
/// Clones share the text.
///
/// ```
/// use formalm_schema::Document;
///
/// let schema = Document::read(r#"{"type": "integer", "minimum": 1}"#).unwrap();
/// assert!(Document::read(r#"{"type": "#).is_err());
/// # let _ = schema;
/// ```
#[derive(Clone, Debug)]
pub struct Document {
    /// The document as a flat tape, if it was parsed that way.
    pub(crate) tape: Option<Arc<JsonTape>>,
    /// The document as serde_json has it: parsed so at once if the tape did not apply, or later on
    /// demand.
    serde_value: Arc<SetOnce<Json>>,
    /// The JSON pointers of names that occur more than once in one object.
    pub(crate) duplicate_names: Arc<[String]>,
}

impl Document {
    /// Parses a JSON text.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if the text is not valid JSON; [`Error::Limit`] if it is nested too
    /// deeply.
    pub fn read(text: &str) -> Result<Document, Error> {
        match JsonTape::read(text) {
            Some(tree) => {
                let duplicates = match tree.has_duplicate_names() {
                    true => duplicate_names(text),
                    false => Vec::new(),
                };
                Ok(Document {
                    tape: Some(Arc::new(tree)),
                    serde_value: Arc::default(),
                    duplicate_names: duplicates.into(),
                })
            }
            None => {
                let parsed = Document::from(parse_with_serde(text)?);
                Ok(Document { duplicate_names: duplicate_names(text).into(), ..parsed })
            }
        }
    }

    /// Returns the document as a serde_json value, parsing it on first use.
    pub(crate) fn serde_value(&self) -> Result<&Json, Error> {
        if let Some(value) = self.serde_value.get() {
            return Ok(value);
        }
        let value = parse_with_serde(self.tape.as_deref().map_or("", JsonTape::source))?;
        Ok(self.serde_value.get_or_init(|| value))
    }
}

/// Parses a text into a serde_json value.
fn parse_with_serde(text: &str) -> Result<Json, Error> {
    let needed = max_nesting(text);
    check_limit(Resource::Nesting, needed, MAX_NESTING)?;
    if needed > SERDE_NESTING {
        return deep_parser::parse(text).map_err(|at| invalid_json(text[..at].chars().count(), ""));
    }
    serde_json::from_str(text).map_err(|error| {
        let lines = text.lines().take(error.line().saturating_sub(1));
        let before: usize = lines.map(|line| line.chars().count() + 1).sum();
        invalid_json(before + error.column().saturating_sub(1), &format!(": {error}"))
    })
}

/// Returns the error of an invalid document, at a character position.
fn invalid_json(start: usize, why: &str) -> Error {
    let message = format!("the schema is not valid JSON{why}");
    Error::Language { message, span: Some(SourceSpan { start, end: start + 1 }), hint: None }
}

impl From<Json> for Document {
    fn from(json: Json) -> Document {
        Document {
            tape: None,
            serde_value: Arc::new(SetOnce::from(json)),
            duplicate_names: Arc::default(),
        }
    }
}
