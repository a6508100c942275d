//! The error of loading or building a vocabulary.

use std::fmt;

/// The reason why a tokenizer file, token list or saved vocabulary was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One sentence without a full stop.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: Option<String>,
    /// The place in the file, such as `model.vocab["Ġfoo"]`.
    pub place: Option<String>,
}

impl Error {
    /// Creates an error without place and hint.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), hint: None, place: None }
    }

    /// Returns this error with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Error {
        Error { hint: Some(hint.into()), ..self }
    }

    /// Returns this error with its place in the file.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Error {
        Error { place: Some(place.into()), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(out, "{}: {}", place, self.message),
            None => out.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}
