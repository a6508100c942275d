//! The errors of reading a language or building its machine.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A range of the source, in characters (not bytes): `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceSpan {
    /// First character.
    pub start: usize,
    /// One past the last character.
    pub end: usize,
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// States of a machine, explored or kept.
    States,
    /// Terms, the building blocks of states.
    Terms,
    /// Steps of derivation. They bound time where states are large.
    Steps,
    /// Bytes of memory.
    Bytes,
    /// Nesting depth of a pattern.
    Nesting,
    /// A repetition count.
    Repetition,
    /// Length of a source text, in characters.
    SourceLength,
    /// Edits of a text.
    Edits,
    /// Edges of a materialized automaton.
    Edges,
    /// Digits of a number.
    Digits,
    /// Parse configurations of an input, in search of one that can be completed.
    Readings,
    /// Bytes of a string that is written out.
    Text,
}

impl Resource {
    /// Returns the name used in messages, plural where it is counted.
    pub fn name(self) -> &'static str {
        match self {
            Resource::States => "states",
            Resource::Terms => "terms",
            Resource::Steps => "steps",
            Resource::Bytes => "bytes",
            Resource::Nesting => "levels of nesting",
            Resource::Repetition => "repetitions",
            Resource::SourceLength => "characters of source",
            Resource::Edits => "edits",
            Resource::Edges => "edges",
            Resource::Digits => "digits",
            Resource::Readings => "parse configurations",
            Resource::Text => "bytes of output",
        }
    }
}

/// An error raised by a user's program that a machine runs; only the caller that runs it knows its
/// type.
#[derive(Clone)]
pub struct CallbackError {
    /// The error.
    pub what: Arc<dyn Any + Send + Sync>,
    /// `true` if the error reports a limit.
    pub is_limit: bool,
}

impl PartialEq for CallbackError {
    fn eq(&self, other: &CallbackError) -> bool {
        Arc::ptr_eq(&self.what, &other.what)
    }
}

impl Eq for CallbackError {}

impl fmt::Debug for CallbackError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Raised")
    }
}

/// The reason why a language was refused. Errors are data: the binding turns them into typed
/// exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The source is not in a language that is read here, or the language is empty.
    Language {
        /// One sentence without a full stop.
        message: String,
        /// The place in the source.
        span: Option<SourceSpan>,
        /// A suggestion what to write instead.
        hint: Option<String>,
    },
    /// A limit was exceeded.
    Limit {
        /// Which resource.
        resource: Resource,
        /// The amount needed; a lower bound where work stopped early.
        needed: u64,
        /// The amount allowed.
        allowed: u64,
    },
    /// The caller canceled the work.
    Interrupted,
    /// The time for a task is up; see [`crate::deadline`].
    Deadline {
        /// The name of the task: a verb.
        task: &'static str,
        /// The time that has passed.
        taken: Duration,
        /// The time that was allowed.
        allowed: Duration,
    },
    /// A user's program that the machine runs failed.
    Callback(CallbackError),
}

impl Error {
    /// Returns `true` if a limit was exceeded, by the machine or by a program that it runs.
    pub fn is_limit(&self) -> bool {
        match self {
            Error::Limit { .. } => true,
            Error::Callback(raised) => raised.is_limit,
            Error::Language { .. } | Error::Interrupted | Error::Deadline { .. } => false,
        }
    }

    /// Creates a refusal without a place.
    pub fn language(message: impl Into<String>, hint: Option<&str>) -> Error {
        Error::Language { message: message.into(), span: None, hint: hint.map(str::to_owned) }
    }

    /// Creates a refusal at a place of the source.
    pub fn at(message: impl Into<String>, span: SourceSpan, hint: Option<&str>) -> Error {
        Error::Language { message: message.into(), span: Some(span), hint: hint.map(str::to_owned) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Language { message, span: Some(span), .. } => {
                write!(out, "{message} (characters {}..{})", span.start, span.end)
            }
            Error::Language { message, span: None, .. } => out.write_str(message),
            Error::Limit { resource, needed, allowed } => {
                write!(
                    out,
                    "needs at least {needed} {}, but the limit is {allowed}",
                    resource.name()
                )
            }
            Error::Deadline { task, taken, allowed } => {
                write!(out, "{task} took longer than {allowed:?} ({taken:?} so far)")
            }
            Error::Interrupted => out.write_str("interrupted"),
            Error::Callback(_) => out.write_str("a user program failed"),
        }
    }
}

impl std::error::Error for Error {}

/// Fails if more of a resource is needed than allowed.
///
/// # Errors
///
/// [`Error::Limit`].
#[inline]
pub fn check_limit(resource: Resource, needed: u64, allowed: u64) -> Result<(), Error> {
    if needed > allowed { Err(Error::Limit { resource, needed, allowed }) } else { Ok(()) }
}
