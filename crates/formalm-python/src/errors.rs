//! Conversion of errors of the core to the typed exceptions of `formalm.errors`.

use formalm_constraint::AdvanceError;
use formalm_core::{Error, Resource};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

/// Creates an exception of `formalm.errors` from a message and keywords.
pub(crate) fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    fill: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let keywords = PyDict::new(py);
        fill(&keywords)?;
        let class = py.import("formalm.errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call((message,), Some(&keywords))?))
    };
    made().unwrap_or_else(|error| error)
}

/// Creates the error of an invalid argument.
pub(crate) fn argument(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    exception(py, "ArgumentError", message, |keywords| keywords.set_item("hint", hint))
}

/// Converts a non-negative integer from Python, or fails with its name. A bool is rejected although
/// Python counts with it: `True` as token 1 is a mistake of the caller.
pub(crate) fn integer<'py, T: FromPyObject<'py, 'py>>(
    value: &'py Bound<'py, PyAny>,
    name: &str,
) -> PyResult<T> {
    let is_bool = value.is_instance_of::<PyBool>();
    value.extract::<T>().ok().filter(|_| !is_bool).ok_or_else(|| {
        let is_integer = !is_bool && value.hasattr("__index__").unwrap_or(false);
        let shown = if is_integer { value.str() } else { value.get_type().name() };
        let shown = shown.map(|shown| shown.to_string()).unwrap_or_default();
        let message = if is_integer {
            format!("{name} {shown} is out of range")
        } else {
            format!("{name} must be an integer, got {shown}")
        };
        argument(value.py(), &message, None)
    })
}

/// Creates the error of a vocabulary that cannot be read or trusted.
pub(crate) fn vocabulary(py: Python<'_>, message: &str, hint: Option<&str>) -> PyErr {
    exception(py, "VocabularyError", message, |keywords| keywords.set_item("hint", hint))
}

/// Converts an error of the vocabulary crate.
pub(crate) fn unreadable(py: Python<'_>, error: &formalm_vocabulary::Error) -> PyErr {
    vocabulary(py, &error.to_string(), error.hint.as_deref())
}

/// Returns `true` if an exception reports that a limit was reached.
pub(crate) fn is_limit(py: Python<'_>, error: &PyErr) -> bool {
    let class = py.import("formalm.errors").and_then(|module| module.getattr("LimitError"));
    class.is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}

/// Creates the error of one matcher used in two threads.
pub(crate) fn concurrency(py: Python<'_>) -> PyErr {
    in_use(py, "matcher", "give each thread its own fork()")
}

/// Creates the error of a constraint or a language that a thread of the parent process was changing
/// at a fork.
pub(crate) fn lost_in_fork(py: Python<'_>, what: &str) -> PyErr {
    let message = format!(
        "another thread was changing this {what} when the process forked, and the language cannot \
         be compiled again here"
    );
    exception(py, "ConcurrencyError", &message, |keywords| {
        keywords.set_item("hint", format!("make the {what} in the child process"))
    })
}

/// Creates the error of another object used in two threads.
pub(crate) fn in_use(py: Python<'_>, what: &str, hint: &str) -> PyErr {
    let message = format!("this {what} is in use by another thread");
    exception(py, "ConcurrencyError", &message, |keywords| keywords.set_item("hint", hint))
}

/// Converts an error of the core; `source` is the text that spans refer to.
pub(crate) fn failure(py: Python<'_>, error: &Error, source: Option<&str>) -> PyErr {
    match error {
        Error::Language { message, span, hint } => {
            exception(py, "LanguageError", message, |keywords| {
                keywords.set_item("source", source)?;
                keywords.set_item("span", span.map(|span| (span.start, span.end)))?;
                keywords.set_item("hint", hint.as_deref())
            })
        }
        Error::Limit { resource, needed, allowed } => {
            let made = || -> PyResult<PyErr> {
                let class = py.import("formalm.errors")?.getattr("LimitError")?;
                let hint = match resource {
                    Resource::States | Resource::Steps | Resource::Bytes => Some(
                        "use fewer edits, smaller counts, no lookaround, fewer combined keywords \
                         of a schema, or a less ambiguous grammar; or raise state_limit, \
                         step_limit or memory_limit_bytes where available",
                    ),
                    Resource::Readings => Some(
                        "could not determine whether a lexeme can be completed: ignore whitespace, \
                         or avoid terminals that start like the continuation of another",
                    ),
                    Resource::Terms => Some("use fewer or smaller rules, templates and counts"),
                    Resource::Text => Some(
                        "even the shortest member exceeds the limit: shorten the rules or reduce \
                         counts",
                    ),
                    _ => None,
                };
                let arguments = (resource.name(), *needed, *allowed, hint);
                Ok(PyErr::from_value(class.call1(arguments)?))
            };
            made().unwrap_or_else(|error| error)
        }
        Error::Deadline { task, taken, allowed } => {
            let made = || -> PyResult<PyErr> {
                let class = py.import("formalm.errors")?.getattr("DeadlineError")?;
                let arguments = (*task, taken.as_secs_f64(), allowed.as_secs_f64());
                Ok(PyErr::from_value(class.call1(arguments)?))
            };
            made().unwrap_or_else(|error| error)
        }
        // Interruptible work raises what interrupted it; see `interruptible`.
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Callback(raised) => match raised.what.downcast_ref::<PyErr>() {
            Some(error) => error.clone_ref(py),
            None => PyKeyboardInterrupt::new_err(()),
        },
    }
}

/// Converts the rejection of a token or of bytes.
pub(crate) fn refusal(py: Python<'_>, refusal: &AdvanceError, what: RejectedInput<'_>) -> PyErr {
    let name = what.name();
    let (message, hint) = match refusal {
        AdvanceError::Failed(error) => return failure(py, error, None),
        AdvanceError::OutOfRange => (
            format!("{name} is not in the vocabulary"),
            Some("valid ids are 0 to the vocabulary size minus 1"),
        ),
        AdvanceError::NoBytes => (
            format!("{name} is a special token without bytes"),
            Some("if it ends a sequence, list it in end_token_ids of the vocabulary"),
        ),
        AdvanceError::NotAccepting => (
            format!("{name} is an end token, but the input so far is not a member"),
            Some("mask() and explain() show which tokens are allowed"),
        ),
        AdvanceError::Ended => {
            (format!("{name} follows an end token"), Some("rollback() removes the end token"))
        }
        AdvanceError::NotViable { good } => (
            match good {
                0 => format!("{name} is not allowed here: no member continues with its first byte"),
                1 => format!("{name} is not allowed here: only its first byte continues a member"),
                _ => format!(
                    "{name} is not allowed here: only its first {good} bytes continue a member"
                ),
            },
            Some("mask() and explain() show which tokens are allowed"),
        ),
        AdvanceError::NotCanonical => (
            format!(
                "{name} is not canonical here: the tokenizer encodes this string as other tokens"
            ),
            Some(
                "mask() shows which tokens are allowed; tokenization=\"all\" allows every \
                 tokenization",
            ),
        ),
        AdvanceError::NoTokens => (
            format!("{name} has no tokens, and this constraint allows canonical tokens only"),
            Some("advance by the tokens that the tokenizer produces for it"),
        ),
    };
    if matches!(refusal, AdvanceError::OutOfRange) {
        return argument(py, &message, hint);
    }
    exception(py, "TokenError", &message, |keywords| {
        keywords.set_item("token_id", what.token_id())?;
        keywords.set_item("hint", hint)
    })
}

/// The rejected input.
#[derive(Clone, Copy)]
pub(crate) enum RejectedInput<'a> {
    /// A token of the vocabulary.
    Token(u32, Option<&'a [u8]>),
    /// Bytes without a token.
    Text,
}

impl RejectedInput<'_> {
    fn name(self) -> String {
        match self {
            RejectedInput::Token(id, Some(bytes)) => {
                format!("token {id} {:?}", String::from_utf8_lossy(bytes))
            }
            RejectedInput::Token(id, None) => format!("token {id}"),
            RejectedInput::Text => "the input".to_owned(),
        }
    }

    fn token_id(self) -> Option<u32> {
        match self {
            RejectedInput::Token(id, _) => Some(id),
            RejectedInput::Text => None,
        }
    }
}
