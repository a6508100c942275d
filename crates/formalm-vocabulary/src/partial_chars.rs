//! Tokens that end within a character.
//!
//! Byte-level vocabularies have hundreds of them, and few distinct rags: a walk tries each rag
//! once, from the state after the clean part, and tests the clean parts by their profiles.

use crate::char_profile::Profile;

/// One to three bytes that begin a character, and the tokens that end with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    bytes: [u8; 3],
    length: u8,
    tokens: std::ops::Range<u32>,
}

impl Tail {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

/// A token that ends with a [`Tail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ragged {
    /// The token.
    pub token: u32,
    /// The characters before the tail.
    pub before: Profile,
}

/// All tokens that end within a character.
#[derive(Debug, Default)]
pub(crate) struct RaggedTokens {
    tails: Vec<Tail>,
    tokens: Vec<Ragged>,
}

impl RaggedTokens {
    /// From pairs of a rag, which has one to three bytes, and its token.
    pub(crate) fn new(mut found: Vec<(&[u8], Ragged)>) -> RaggedTokens {
        found.sort_unstable_by(|a, b| a.0.cmp(b.0).then(a.1.token.cmp(&b.1.token)));
        let mut tails: Vec<Tail> = Vec::new();
        let mut tokens = Vec::with_capacity(found.len());
        for (rag, ragged) in found {
            let at = tokens.len() as u32;
            tokens.push(ragged);
            match tails.last_mut() {
                Some(tail) if tail.bytes() == rag => tail.tokens.end = at + 1,
                _ => {
                    let mut bytes = [0; 3];
                    let length = rag.len().min(3);
                    bytes[..length].copy_from_slice(&rag[..length]);
                    tails.push(Tail { bytes, length: length as u8, tokens: at..at + 1 });
                }
            }
        }
        RaggedTokens { tails, tokens }
    }

    pub(crate) fn tails(&self) -> &[Tail] {
        &self.tails
    }

    pub(crate) fn tokens(&self) -> &[Ragged] {
        &self.tokens
    }

    pub(crate) fn of(&self, tail: &Tail) -> &[Ragged] {
        &self.tokens[tail.tokens.start as usize..tail.tokens.end as usize]
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&self.tails[..]) + size_of_val(&self.tokens[..])
    }
}
