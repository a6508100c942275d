//! A place in the pattern text, read token by token.

use crate::error::{Error, Span};

/// What is read at once: a character, or a backslash with the character after it.
///
/// The backslash never stands alone, not even inside comments and names; Python reads so, and
/// ECMA patterns cannot tell the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternToken {
    /// A character other than the backslash.
    Char(char),
    /// A backslash and this character.
    Escape(char),
}

impl PatternToken {
    /// The unescaped character, if it is one.
    pub(super) fn plain(self) -> Option<char> {
        match self {
            PatternToken::Char(character) => Some(character),
            PatternToken::Escape(_) => None,
        }
    }
}

/// The pattern's characters and how far they have been read.
pub(super) struct PatternCursor {
    characters: Vec<char>,
    position: usize,
}

impl PatternCursor {
    pub(super) fn new(pattern: &str) -> PatternCursor {
        PatternCursor { characters: pattern.chars().collect(), position: 0 }
    }

    /// Index of the next unread character.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Goes back (or on) to a position that was read before.
    pub(super) fn seek(&mut self, position: usize) {
        self.position = position;
    }

    /// Number of characters of the whole pattern.
    pub(super) fn len(&self) -> usize {
        self.characters.len()
    }

    /// The next token without reading it; none at the end and at a backslash that ends the text.
    pub(super) fn peek(&self) -> Option<PatternToken> {
        match self.characters.get(self.position)? {
            '\\' => {
                self.characters.get(self.position + 1).map(|&escaped| PatternToken::Escape(escaped))
            }
            &character => Some(PatternToken::Char(character)),
        }
    }

    /// Reads the next token.
    pub(super) fn next(&mut self) -> Option<PatternToken> {
        let token = self.peek()?;
        self.position += if token.plain().is_some() { 1 } else { 2 };
        Some(token)
    }

    /// Reads `character` if it is next and not escaped.
    pub(super) fn eat(&mut self, character: char) -> bool {
        let found = self.peek() == Some(PatternToken::Char(character));
        self.position += usize::from(found);
        found
    }

    /// Reads up to `most` digits of the given radix and returns how many there were and their
    /// value, saturating.
    pub(super) fn digits(&mut self, radix: u32, most: usize) -> (usize, u64) {
        let (mut count, mut value) = (0, 0u64);
        while count < most {
            let digit = self.peek().and_then(PatternToken::plain).and_then(|c| c.to_digit(radix));
            let Some(digit) = digit else { break };
            value = value.saturating_mul(u64::from(radix)).saturating_add(u64::from(digit));
            self.position += 1;
            count += 1;
        }
        (count, value)
    }

    /// Reads up to `terminator` and past it; the text before it, or none if it never comes.
    pub(super) fn until(&mut self, terminator: char) -> Option<String> {
        let start = self.position;
        while let Some(token) = self.next() {
            if token == PatternToken::Char(terminator) {
                return Some(self.characters[start..self.position - 1].iter().collect());
            }
        }
        None
    }

    /// Whether only a backslash that escapes nothing is left.
    pub(super) fn is_dangling(&self) -> bool {
        self.position + 1 == self.len() && self.characters[self.position] == '\\'
    }

    /// From `start` to the next unread character.
    pub(super) fn span(&self, start: usize) -> Span {
        Span { start, end: self.position }
    }

    /// The source text from `start` to the next unread character.
    pub(super) fn text(&self, start: usize) -> String {
        self.characters[start..self.position].iter().collect()
    }

    /// A refusal of everything from `start` to here.
    pub(super) fn refuse(&self, start: usize, message: impl Into<String>, hint: &str) -> Error {
        Error::at(message, self.span(start), Some(hint))
    }
}
