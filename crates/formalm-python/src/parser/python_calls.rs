//! Calls of a user's parser, and conversion of their errors.

use std::sync::Arc;

use formalm_core::{CallbackError, Error, deadline::check_deadline};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::errors;

/// Maximum number of strings or groups that one parser may list.
const MAX_LISTED: usize = 100_000;

/// The calling convention of the parsers of one class.
pub(crate) struct ParserCalls {
    /// The exception by which a parser rejects input.
    failure: Py<PyAny>,
    /// The class of all parsers.
    class: Py<PyAny>,
    /// `true` if input is appended as bytes.
    pub(super) reads_bytes: bool,
}

/// The parser's answer about what may follow.
#[derive(Debug, Default)]
pub(crate) struct NextInput {
    /// The input continues with one of these; none is a prefix of another.
    pub(super) strings: Vec<Box<[u8]>>,
    pub(super) allowed: Vec<Py<PyAny>>,
    pub(super) forbidden: Vec<Py<PyAny>>,
}

impl NextInput {
    pub(super) fn has_groups(&self) -> bool {
        self.strings.is_empty() && !(self.allowed.is_empty() && self.forbidden.is_empty())
    }
}

/// Wraps an exception that ends the work it was raised in.
pub(super) fn fatal(error: PyErr) -> Error {
    Error::Callback(CallbackError { what: Arc::new(error), is_limit: false })
}

/// Wraps an exception of a call as a `ParserError`; interrupts and exits stay as they are.
pub(super) fn call_error(py: Python<'_>, error: PyErr, call: &str) -> Error {
    if !error.is_instance_of::<PyException>(py) {
        return fatal(error);
    }
    let name = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    let message = format!("{call} of a parser raised {name}: {}", error.value(py));
    let hint = match call.starts_with("append") {
        true => "reject an input by raising ParseFailure; any other exception is a bug in append()",
        false => {
            "only append() may reject an input, by raising ParseFailure; see the cause for the \
             original exception"
        }
    };
    let made = parser_error(py, &message, Some(hint));
    made.set_cause(py, Some(error));
    fatal(made)
}

/// Returns the error of a parser that violates its contract.
pub(super) fn contract_error(py: Python<'_>, message: &str, hint: Option<&str>) -> Error {
    fatal(parser_error(py, message, hint))
}

fn parser_error(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    errors::exception(py, "ParserError", message, |keywords| keywords.set_item("hint", hint))
}

/// Returns a limit error with a hint of its own.
pub(super) fn limit(py: Python<'_>, what: &str, needed: u64, allowed: u64, hint: &str) -> Error {
    let made = || -> PyResult<PyErr> {
        let class = py.import("formalm.errors")?.getattr("LimitError")?;
        Ok(PyErr::from_value(class.call1((what, needed, allowed, hint))?))
    };
    let error = made().unwrap_or_else(|error| error);
    Error::Callback(CallbackError { what: Arc::new(error), is_limit: true })
}

fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

impl ParserCalls {
    pub(super) fn new(failure: Py<PyAny>, class: Py<PyAny>, reads_bytes: bool) -> ParserCalls {
        ParserCalls { failure, class, reads_bytes }
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> ParserCalls {
        let (failure, class) = (self.failure.clone_ref(py), self.class.clone_ref(py));
        ParserCalls { failure, class, reads_bytes: self.reads_bytes }
    }

    pub(super) fn copy<'py>(&self, parser: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>, Error> {
        let py = parser.py();
        let copied = parser.call_method0(intern!(py, "copy"));
        let copied = copied.map_err(|error| call_error(py, error, "copy()"))?;
        let hint = Some("copy() must return a separate parser in the same state");
        if copied.is(parser) {
            return Err(contract_error(py, "copy() of a parser returned the parser itself", hint));
        }
        let fits = copied.is_instance(self.class.bind(py));
        if !fits.map_err(|error| call_error(py, error, "copy()"))? {
            let message = format!("copy() of a parser returned {}", type_name(&copied));
            return Err(contract_error(py, &message, hint));
        }
        Ok(copied)
    }

    /// Appends to an unshared parser. Returns `false` if it rejects; the parser is then unusable.
    pub(super) fn append(&self, parser: &Bound<'_, PyAny>, text: &[u8]) -> Result<bool, Error> {
        check_deadline()?;
        let py = parser.py();
        let (name, done) = if self.reads_bytes {
            let name = intern!(py, "append_bytes");
            (name, parser.call_method1(name, (PyBytes::new(py, text),)))
        } else {
            let name = intern!(py, "append");
            // The caller has checked that it is text.
            let text = String::from_utf8_lossy(text);
            (name, parser.call_method1(name, (PyString::new(py, &text),)))
        };
        let shown = || format!("{name}({:?})", String::from_utf8_lossy(text));
        match done {
            Ok(done) if done.is_none() => Ok(true),
            Ok(done) => {
                let message = format!("{} of a parser returned {}", shown(), type_name(&done));
                let hint = "append() must return None, and raise ParseFailure to reject an input";
                Err(contract_error(py, &message, Some(hint)))
            }
            Err(error) if error.is_instance(py, self.failure.bind(py)) => Ok(false),
            Err(error) => Err(call_error(py, error, &shown())),
        }
    }

    pub(super) fn is_accepting(&self, parser: &Bound<'_, PyAny>) -> Result<bool, Error> {
        let py = parser.py();
        let answer = parser.getattr(intern!(py, "is_accepting"));
        let answer = answer.map_err(|error| call_error(py, error, "is_accepting"))?;
        match answer.cast::<PyBool>() {
            Ok(answer) => Ok(answer.is_true()),
            Err(_) => {
                let message = format!("is_accepting of a parser returned {}", type_name(&answer));
                let hint = "is_accepting must be a property that is True or False";
                Err(contract_error(py, &message, Some(hint)))
            }
        }
    }

    /// Queries a parser for what may follow.
    pub(super) fn plan(&self, parser: &Bound<'_, PyAny>) -> Result<NextInput, Error> {
        let strings = self.strings(parser)?;
        if !strings.is_empty() {
            return Ok(NextInput { strings, ..NextInput::default() });
        }
        let allowed = listed(parser, "allowed_groups")?;
        let forbidden = listed(parser, "forbidden_groups")?;
        let unbound =
            |groups: Vec<Bound<'_, PyAny>>| groups.into_iter().map(Bound::unbind).collect();
        Ok(NextInput { strings, allowed: unbound(allowed), forbidden: unbound(forbidden) })
    }

    fn strings(&self, parser: &Bound<'_, PyAny>) -> Result<Vec<Box<[u8]>>, Error> {
        let py = parser.py();
        let mut strings: Vec<Box<[u8]>> = Vec::new();
        for string in listed(parser, "next_strings")? {
            let data = match (string.cast::<PyString>(), string.cast::<PyBytes>()) {
                (Ok(text), _) => match text.to_str() {
                    Ok(text) => text.as_bytes().to_vec(),
                    Err(error) => return Err(call_error(py, error, "next_strings()")),
                },
                (_, Ok(data)) if self.reads_bytes => data.as_bytes().to_vec(),
                _ => {
                    let message = format!(
                        "next_strings() of a parser returned a list that contains {}",
                        type_name(&string)
                    );
                    let hint = "the entries must be str, or bytes if the parser has append_bytes()";
                    return Err(contract_error(py, &message, Some(hint)));
                }
            };
            if data.is_empty() {
                let hint = "return an empty list if any input may follow";
                return Err(contract_error(
                    py,
                    "next_strings() of a parser returned an empty string",
                    Some(hint),
                ));
            }
            strings.push(data.into());
        }
        strings.sort_unstable();
        // A string that is a prefix of others replaces them: what follows it is decided by the
        // parser again.
        strings.dedup_by(|later, kept| later.starts_with(kept));
        Ok(strings)
    }
}

/// Returns the list that a method of a parser returns.
fn listed<'py>(parser: &Bound<'py, PyAny>, method: &str) -> Result<Vec<Bound<'py, PyAny>>, Error> {
    let py = parser.py();
    let call = || format!("{method}()");
    let answer = parser.call_method0(method).map_err(|error| call_error(py, error, &call()))?;
    let is_text = answer.is_instance_of::<PyString>() || answer.is_instance_of::<PyBytes>();
    let items = if is_text { None } else { answer.try_iter().ok() };
    let Some(items) = items else {
        let message = format!("{method}() of a parser returned {}", type_name(&answer));
        return Err(contract_error(py, &message, Some("return a list, which may be empty")));
    };
    let mut list = Vec::new();
    for item in items {
        list.push(item.map_err(|error| call_error(py, error, &call()))?);
        if list.len() > MAX_LISTED {
            let (needed, allowed) = (list.len() as u64, MAX_LISTED as u64);
            let hint = "return fewer entries";
            return Err(limit(py, &format!("entries of {method}()"), needed, allowed, hint));
        }
    }
    Ok(list)
}
