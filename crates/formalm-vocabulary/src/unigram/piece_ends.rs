//! The ends of the tokens that are pieces, as tables over the vocabulary.

use crate::Vocabulary;

/// The tokens that are pieces, and their last bytes.
#[derive(Debug, Default)]
pub struct PieceEnds {
    pieces: Vec<u32>,
    last_bytes: Vec<u8>,
}

impl PieceEnds {
    /// Creates the tables of the tokens for which `is_piece` returns `true`.
    pub(crate) fn new(vocabulary: &Vocabulary, is_piece: impl Fn(u32) -> bool) -> PieceEnds {
        let mut pieces = vec![0u32; vocabulary.len().div_ceil(32)];
        let mut last_bytes = vec![0; vocabulary.len()];
        for token in 0..vocabulary.len() as u32 {
            let Some(&last) = vocabulary.token_bytes(token).and_then(<[u8]>::last) else {
                continue;
            };
            if is_piece(token) {
                pieces[token as usize >> 5] |= 1 << (token & 31);
                last_bytes[token as usize] = last;
            }
        }
        PieceEnds { pieces, last_bytes }
    }

    /// Returns a word of the bitmask of pieces.
    #[inline]
    pub fn pieces(&self, word: usize) -> u32 {
        self.pieces.get(word).copied().unwrap_or(0)
    }

    /// Returns the last byte of a piece.
    #[inline]
    pub fn last_byte(&self, token: u32) -> u8 {
        self.last_bytes.get(token as usize).copied().unwrap_or(0)
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        4 * self.pieces.len() + self.last_bytes.len()
    }
}
