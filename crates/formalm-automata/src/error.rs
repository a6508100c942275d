//! What can go wrong when a language is read or its machine is built.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A range of the source text, in characters (not bytes): `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First character.
    pub start: usize,
    /// One past the last character.
    pub end: usize,
}

/// The resource that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// States of a machine, explored or kept.
    States,
    /// Terms, the building blocks of states.
    Terms,
    /// Steps of derivation: bounds time where states are large.
    Steps,
    /// Bytes of memory.
    Bytes,
    /// Nesting depth of a pattern.
    Nesting,
    /// A repetition count.
    Repetition,
    /// Length of a source text, in characters.
    SourceLength,
    /// Tokens of a sequence.
    Tokens,
    /// Edits of a text.
    Edits,
    /// Edges of a machine that is written out.
    Edges,
    /// Digits of a number.
    Digits,
    /// Ways to read a text as lexemes, in search of one that can be completed.
    Readings,
    /// Bytes of a text that is written out.
    Text,
}

impl Resource {
    /// The name used in messages, plural where it is counted.
    pub fn name(self) -> &'static str {
        match self {
            Resource::States => "states",
            Resource::Terms => "terms",
            Resource::Steps => "steps",
            Resource::Bytes => "bytes",
            Resource::Nesting => "levels of nesting",
            Resource::Repetition => "repetitions",
            Resource::SourceLength => "characters of source",
            Resource::Tokens => "tokens",
            Resource::Edits => "edits",
            Resource::Edges => "edges",
            Resource::Digits => "digits",
            Resource::Readings => "readings",
            Resource::Text => "bytes of text",
        }
    }
}

/// What a program that a machine runs has raised; only whoever runs it knows what it is.
#[derive(Clone)]
pub struct Raised {
    /// What was raised.
    pub what: Arc<dyn Any + Send + Sync>,
    /// Whether it says that a limit was reached.
    pub is_limit: bool,
}

impl PartialEq for Raised {
    fn eq(&self, other: &Raised) -> bool {
        Arc::ptr_eq(&self.what, &other.what)
    }
}

impl Eq for Raised {}

impl fmt::Debug for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Raised")
    }
}

/// Why a language was refused. Errors are data: the binding turns them into typed exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The source text is not a language we can read, or it is one that has no member.
    Language {
        /// One sentence, no full stop.
        message: String,
        /// Where in the source.
        span: Option<Span>,
        /// What to write instead.
        hint: Option<String>,
    },
    /// A limit was reached.
    Limit {
        /// Which resource.
        resource: Resource,
        /// How much was needed; a lower bound where work stopped early.
        needed: u64,
        /// How much was allowed.
        allowed: u64,
    },
    /// Whoever asked for the work does not want it any more.
    Interrupted,
    /// The time for a task is up; see [`crate::runtime::deadline`].
    Deadline {
        /// Name of the task: a verb.
        task: &'static str,
        /// Time that has passed.
        taken: Duration,
        /// Time that was allowed.
        allowed: Duration,
    },
    /// A program that the machine runs failed.
    Raised(Raised),
}

impl Error {
    /// Whether a limit was reached, by the machine or by a program that it runs.
    pub fn is_limit(&self) -> bool {
        match self {
            Error::Limit { .. } => true,
            Error::Raised(raised) => raised.is_limit,
            Error::Language { .. } | Error::Interrupted | Error::Deadline { .. } => false,
        }
    }

    /// A refusal at a place of the source.
    pub fn at(message: impl Into<String>, span: Span, hint: Option<&str>) -> Error {
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
                write!(out, "needs at least {needed} {}, allowed are {allowed}", resource.name())
            }
            Error::Deadline { task, taken, allowed } => {
                write!(out, "{task} took longer than {allowed:?}: {taken:?} so far")
            }
            Error::Interrupted => out.write_str("interrupted"),
            Error::Raised(_) => out.write_str("a program failed"),
        }
    }
}

impl std::error::Error for Error {}
