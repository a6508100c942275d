//! A cursor over the pattern source that reads characters and escapes.

use formalm_core::{Error, SourceSpan};

/// A unit of the source: a character, or a backslash with the character after it.
///
/// A backslash is never a unit by itself, not even inside comments and names. Python reads so, and
/// ECMA patterns cannot tell the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternToken {
    /// A character other than the backslash.
    Char(char),
    /// A backslash and this character.
    Escape(char),
}

impl PatternToken {
    /// Returns the character if it is not escaped.
    pub(super) fn plain(self) -> Option<char> {
        match self {
            PatternToken::Char(character) => Some(character),
            PatternToken::Escape(_) => None,
        }
    }
}

/// The characters of a pattern, and the position of the next one.
pub(super) struct PatternCursor {
    characters: Vec<char>,
    position: usize,
}

impl PatternCursor {
    pub(super) fn new(pattern: &str) -> PatternCursor {
        PatternCursor { characters: pattern.chars().collect(), position: 0 }
    }

    /// Returns the index of the next unread character.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Moves to a position that was read before.
    pub(super) fn seek(&mut self, position: usize) {
        self.position = position;
    }

    /// Returns the number of characters of the whole pattern.
    pub(super) fn len(&self) -> usize {
        self.characters.len()
    }

    /// Returns the next unit without reading it; `None` at the end and at a backslash that ends the
    /// source.
    pub(super) fn peek(&self) -> Option<PatternToken> {
        match self.characters.get(self.position)? {
            '\\' => {
                self.characters.get(self.position + 1).map(|&escaped| PatternToken::Escape(escaped))
            }
            &character => Some(PatternToken::Char(character)),
        }
    }

    /// Reads the next unit.
    pub(super) fn next(&mut self) -> Option<PatternToken> {
        let symbol = self.peek()?;
        self.position += if symbol.plain().is_some() { 1 } else { 2 };
        Some(symbol)
    }

    /// Reads `character` if it is next and not escaped.
    pub(super) fn eat(&mut self, character: char) -> bool {
        let found = self.peek() == Some(PatternToken::Char(character));
        self.position += usize::from(found);
        found
    }

    /// Reads up to `most` digits of the given radix and returns their number and value, saturating.
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

    /// Reads up to and including `terminator` and returns the source before it, or `None` if it
    /// never comes.
    pub(super) fn until(&mut self, terminator: char) -> Option<String> {
        let start = self.position;
        while let Some(symbol) = self.next() {
            if symbol == PatternToken::Char(terminator) {
                return Some(self.characters[start..self.position - 1].iter().collect());
            }
        }
        None
    }

    /// Returns `true` if only a backslash that escapes nothing is left.
    pub(super) fn is_dangling(&self) -> bool {
        self.position + 1 == self.len() && self.characters[self.position] == '\\'
    }

    /// Returns the span from `start` to the next unread character.
    pub(super) fn span(&self, start: usize) -> SourceSpan {
        SourceSpan { start, end: self.position }
    }

    /// Returns the source from `start` to the next unread character.
    pub(super) fn text(&self, start: usize) -> String {
        self.characters[start..self.position].iter().collect()
    }

    /// Refuses the source from `start` to here.
    pub(super) fn refuse(&self, start: usize, message: impl Into<String>, hint: &str) -> Error {
        Error::at(message, self.span(start), Some(hint))
    }
}
