//! Tokens that end inside a UTF-8 character, grouped by their trailing partial character.
//!
//! Byte-level vocabularies have hundreds of them but few distinct partial characters. A walk tries
//! each partial character once, from the state after the whole-character prefix, and tests the
//! prefixes by their profiles.

use formalm_core::memory_bytes;

use crate::occurring_characters::CharProfile;

/// The first one to three bytes of a character, and the tokens that end with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialChar {
    bytes: [u8; 3],
    length: u8,
    tokens: std::ops::Range<u32>,
}

memory_bytes!(none: PartialChar);

impl PartialChar {
    /// Returns the bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

/// A token that ends with a [`PartialChar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialToken {
    /// The token id.
    pub token: u32,
    /// The characters before the partial one.
    pub before: CharProfile,
}

memory_bytes!(none: PartialToken);

/// All tokens that end inside a character.
#[derive(Debug, Default)]
pub(crate) struct PartialTokens {
    partial_chars: Vec<PartialChar>,
    tokens: Vec<PartialToken>,
}

memory_bytes!(PartialTokens { partial_chars, tokens });

impl PartialTokens {
    /// Groups pairs of a partial character, one to three bytes, and its token.
    pub(crate) fn new(mut found: Vec<(&[u8], PartialToken)>) -> PartialTokens {
        found.sort_unstable_by(|a, b| a.0.cmp(b.0).then(a.1.token.cmp(&b.1.token)));
        let mut partial_chars: Vec<PartialChar> = Vec::new();
        let mut tokens = Vec::with_capacity(found.len());
        for (bytes_of_char, partial_token) in found {
            let at = tokens.len() as u32;
            tokens.push(partial_token);
            match partial_chars.last_mut() {
                Some(partial_char) if partial_char.bytes() == bytes_of_char => {
                    partial_char.tokens.end = at + 1
                }
                _ => {
                    let mut bytes = [0; 3];
                    let length = bytes_of_char.len().min(3);
                    bytes[..length].copy_from_slice(&bytes_of_char[..length]);
                    partial_chars.push(PartialChar {
                        bytes,
                        length: length as u8,
                        tokens: at..at + 1,
                    });
                }
            }
        }
        PartialTokens { partial_chars, tokens }
    }

    pub(crate) fn partial_chars(&self) -> &[PartialChar] {
        &self.partial_chars
    }

    pub(crate) fn tokens(&self) -> &[PartialToken] {
        &self.tokens
    }

    pub(crate) fn tokens_with(&self, partial_char: &PartialChar) -> &[PartialToken] {
        &self.tokens[partial_char.tokens.start as usize..partial_char.tokens.end as usize]
    }
}
