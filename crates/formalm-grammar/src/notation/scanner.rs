//! A character scanner with line numbers for errors, shared by all notations.

use formalm_core::{Error, Resource, SourceSpan};

use crate::limits::check;

/// Maximum bracket depth. Chosen, not measured; the readers recurse to this depth.
pub(super) const NESTING: u64 = 50;

/// The characters of a text and the read position.
pub(super) struct Scanner {
    characters: Vec<char>,
    pub(super) at: usize,
    depth: u64,
}

/// Returns the line of a character, from 1.
pub(super) fn line(characters: impl Iterator<Item = char>, at: usize) -> usize {
    1 + characters.take(at).filter(|&one| one == '\n').count()
}

/// Builds an error with its line number.
pub(super) fn refusal(text: &str, span: SourceSpan, message: &str, hint: Option<&str>) -> Error {
    let line = line(text.chars(), span.start);
    Error::at(format!("line {line}: {message}"), span, hint)
}

impl Scanner {
    pub(super) fn new(text: &str) -> Scanner {
        // A byte order mark is not part of the text.
        let at = usize::from(text.starts_with('\u{feff}'));
        Scanner { characters: text.chars().collect(), at, depth: 0 }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let one = self.peek()?;
        self.at += 1;
        Some(one)
    }

    /// Consumes `text` if it comes next.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let fits = text.chars().enumerate().all(|(at, one)| self.peek_at(at) == Some(one));
        self.at += if fits { text.chars().count() } else { 0 };
        fits
    }

    /// Consumes `text`, or fails.
    pub(super) fn expect(&mut self, text: &str, whose: &str) -> Result<(), Error> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected(&format!("{text:?} {whose}"))) }
    }

    /// Consumes characters while a predicate holds.
    pub(super) fn take_while(&mut self, mut is: impl FnMut(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(one) = self.peek().filter(|&one| is(one)) {
            taken.push(one);
            self.at += 1;
        }
        taken
    }

    /// Skips to the line end, without consuming it.
    pub(super) fn skip_line(&mut self) {
        self.take_while(|one| one != '\n');
    }

    /// Returns the text between two positions.
    pub(super) fn slice(&self, start: usize, end: usize) -> String {
        self.characters[start..end].iter().collect()
    }

    pub(super) fn span(&self, start: usize) -> SourceSpan {
        SourceSpan { start, end: self.at.max(start + 1).min(self.characters.len().max(start)) }
    }

    pub(super) fn refuse(&self, start: usize, message: &str, hint: Option<&str>) -> Error {
        let line = line(self.characters.iter().copied(), start);
        Error::at(format!("line {line}: {message}"), self.span(start), hint)
    }

    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        let found = match self.peek() {
            Some(one) => format!("{one:?}"),
            None => "the end of the grammar".to_owned(),
        };
        self.refuse(self.at, &format!("expected {wanted}, found {found}"), None)
    }

    /// Reads a repetition count.
    pub(super) fn count(&mut self) -> Result<u32, Error> {
        self.integer("a repetition count")
    }

    /// Reads an integer. Fails, naming `what`, if it is too large.
    pub(super) fn integer(&mut self, what: &str) -> Result<u32, Error> {
        let start = self.at;
        let digits = self.take_while(|one| one.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.unexpected("a number"));
        }
        digits
            .parse()
            .ok()
            .filter(|&count| count <= 100_000)
            .ok_or_else(|| self.refuse(start, &format!("{what} must be at most 100,000"), None))
    }

    /// Enters a bracket.
    pub(super) fn enter(&mut self) -> Result<(), Error> {
        self.depth += 1;
        check(Resource::Nesting, self.depth, NESTING)
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn is_nested(&self) -> bool {
        self.depth > 0
    }

    /// Reads a code point in hexadecimal.
    pub(super) fn code_point(&mut self, start: usize, digits: usize) -> Result<char, Error> {
        let mut value = 0;
        for _ in 0..digits {
            let Some(digit) = self.peek().and_then(|one| one.to_digit(16)) else {
                return Err(self.refuse(
                    start,
                    &format!("the escape requires {digits} hexadecimal digits"),
                    None,
                ));
            };
            value = value * 16 + digit;
            self.at += 1;
        }
        let message = "the code is not a valid Unicode character";
        char::from_u32(value).ok_or_else(|| self.refuse(start, message, None))
    }
}
