//! What can go wrong when a vocabulary is read.

use std::fmt;

/// Why a tokenizer file, token list or saved vocabulary was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One sentence, no full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the file, such as `model.vocab["Ġfoo"]`.
    pub place: Option<String>,
}

impl Error {
    /// An error without place or hint.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), hint: None, place: None }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Error {
        Error { hint: Some(hint.into()), ..self }
    }

    /// The same error at a place of the file.
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
