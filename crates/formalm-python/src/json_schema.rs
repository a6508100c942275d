//! `JsonSchema` and `SchemaOptions`: schemas and their machines.

use std::sync::Arc;

use formalm_core::Error;
use formalm_schema::{
    Document, EscapePolicy, FORMATS, FormatSet, JsonSchemaLimits, JsonSchemaOptions, PropertyOrder,
    SchemaAutomaton, SchemaDescription, SchemaNote, Whitespace, WhitespaceLayout,
};
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;
use crate::lazy_automaton::Automaton;

/// The text of a schema and the format of its instances; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct JsonSchema {
    schema: Document,
    resources: Vec<(String, Document)>,
    options: JsonSchemaOptions,
}

impl JsonSchema {
    pub(crate) fn machine(
        &self,
        state_limit: Option<u64>,
        memory_limit_bytes: Option<u64>,
    ) -> Result<SchemaAutomaton, Error> {
        let mut limits = limits(state_limit);
        limits.bytes = memory_limit_bytes.unwrap_or(limits.bytes);
        SchemaAutomaton::new(&self.schema, &self.resources, self.options, limits)
    }

    fn described(&self) -> SchemaDescription<'_> {
        (&self.schema, &self.resources, self.options)
    }

    /// Compiles the machine; `None` if the schema has no instance.
    pub(crate) fn machine_or_none(
        &self,
        state_limit: Option<u64>,
    ) -> Result<Option<SchemaAutomaton>, Error> {
        let limits = limits(state_limit);
        SchemaAutomaton::new_if_satisfiable(&self.schema, &self.resources, self.options, limits)
    }
}

/// A remark about a schema: JSON pointer, message, effect.
pub(crate) type Remark = (String, String, &'static str);

pub(crate) fn remarks(notes: &[SchemaNote]) -> Vec<Remark> {
    let told = notes.iter();
    told.map(|note| (note.place.clone(), note.message.clone(), note.effect.name())).collect()
}

fn limits(states: Option<u64>) -> JsonSchemaLimits {
    let limits = JsonSchemaLimits::default();
    JsonSchemaLimits { states: states.unwrap_or(limits.states), ..limits }
}

/// Builds a layout from its strings: indentation, after commas, before and after colons.
fn layout(
    py: Python<'_>,
    texts: (Option<String>, String, String, String),
) -> PyResult<WhitespaceLayout> {
    let read = |text: &str| {
        Whitespace::parse(text).ok_or_else(|| {
            let message = format!(
                "whitespace must be at most {} characters of whitespace, got {text:?}",
                Whitespace::MAX_LEN
            );
            errors::argument(
                py,
                &message,
                Some("whitespace is spaces, tabs, newlines and carriage returns"),
            )
        })
    };
    Ok(WhitespaceLayout {
        indent: texts.0.as_deref().map(read).transpose()?,
        after_comma: read(&texts.1)?,
        before_colon: read(&texts.2)?,
        after_colon: read(&texts.3)?,
    })
}

/// The format of instances, and which keywords are enforced.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct SchemaOptions {
    options: JsonSchemaOptions,
}

#[pymethods]
impl SchemaOptions {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "options by name")]
    #[pyo3(signature = (*, order, blanks, layout, numbers, escapes, formats, takes_more, depth, approximate))]
    fn new(
        py: Python<'_>,
        order: &str,
        blanks: u8,
        layout: Option<(Option<String>, String, String, String)>,
        numbers: &str,
        escapes: &str,
        formats: Option<Vec<String>>,
        takes_more: bool,
        depth: Option<u32>,
        approximate: bool,
    ) -> PyResult<SchemaOptions> {
        let order = match order {
            "schema" => PropertyOrder::Schema,
            "any" => PropertyOrder::Any,
            other => {
                let message =
                    format!("property_order must be \"schema\" or \"any\", got {other:?}");
                return Err(errors::argument(py, &message, Some("use \"schema\" or \"any\"")));
            }
        };
        let exponents = match numbers {
            "plain" => false,
            "any" => true,
            other => {
                let message = format!("number_format must be \"plain\" or \"any\", got {other:?}");
                return Err(errors::argument(py, &message, Some("use \"plain\" or \"any\"")));
            }
        };
        let escapes = match escapes {
            "minimal" => EscapePolicy::Minimal,
            "ascii" => EscapePolicy::Ascii,
            "any" => EscapePolicy::Any,
            other => {
                let message =
                    format!("escapes must be \"minimal\", \"ascii\" or \"any\", got {other:?}");
                let hint = Some("use \"minimal\", \"ascii\" or \"any\"");
                return Err(errors::argument(py, &message, hint));
            }
        };
        let enforced = match &formats {
            None => Some(FormatSet::ALL),
            Some(names) => FormatSet::from_names(names.iter().map(String::as_str)),
        };
        let Some(enforced) = enforced else {
            let hint = format!("valid formats are {}", FORMATS.join(", "));
            let unknown = formats.iter().flatten().find(|one| !FORMATS.contains(&one.as_str()));
            let message = format!("unknown format {:?}", unknown.map_or("", String::as_str));
            return Err(errors::argument(py, &message, Some(&hint)));
        };
        let depth = depth.unwrap_or(u32::MAX);
        let layout = layout.map(|texts| self::layout(py, texts)).transpose()?;
        let options = JsonSchemaOptions {
            property_order: order,
            max_whitespace: blanks,
            layout,
            allow_exponents: exponents,
            escapes,
            formats: enforced,
            allow_additional: takes_more,
            max_free_depth: depth,
            allow_approximate: approximate,
        };
        Ok(SchemaOptions { options })
    }
}

#[pymethods]
impl JsonSchema {
    #[new]
    fn new(
        py: Python<'_>,
        text: &str,
        resources: Vec<(String, String)>,
        options: &SchemaOptions,
    ) -> PyResult<JsonSchema> {
        let read = |text: &str| {
            Document::read(text).map_err(|error| errors::failure(py, &error, Some(text)))
        };
        let schema = read(text)?;
        let resources: PyResult<Vec<(String, Document)>> =
            resources.into_iter().map(|(uri, text)| Ok((uri, read(&text)?))).collect();
        Ok(JsonSchema { schema, resources: resources?, options: options.options })
    }

    /// Compiles the machine of the instances that are not instances of another schema, `None` if
    /// there are none. Also returns what is not exact about it.
    fn difference(
        &self,
        py: Python<'_>,
        other: &JsonSchema,
    ) -> PyResult<(Option<Automaton>, Vec<Remark>)> {
        let (left, right) = (self.described(), other.described());
        let found = py.detach(|| SchemaAutomaton::difference(left, right, limits(None)));
        let (machine, notes) = found.map_err(|error| errors::failure(py, &error, None))?;
        let machine = machine.map(|one| AnyMachine::Schema(Arc::new(one)));
        Ok((machine.map(Automaton::new), remarks(&notes)))
    }
}
