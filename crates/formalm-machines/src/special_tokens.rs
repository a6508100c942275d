//! The byte encoding of special tokens inside languages: symbols outside of text.
//!
//! A special token is its name between two [`SPECIAL_BYTE`]s. UTF-8 has no such byte, so no text is
//! mistaken for a special token. A vocabulary used with such a language has no other token with
//! that byte: tokens contain whole special tokens or none, and none is entered or left midway.

/// The byte on both sides of the name of a special token. UTF-8 has no such byte.
pub const SPECIAL_BYTE: u8 = 0xfe;

/// Returns the encoding of a special token.
pub fn special_token_bytes(name: &str) -> Vec<u8> {
    [&[SPECIAL_BYTE], name.as_bytes(), &[SPECIAL_BYTE]].concat()
}

/// Returns the length of the longest prefix that does not end inside a special token.
pub fn len_outside_special(bytes: &[u8]) -> usize {
    let marks = bytes.iter().filter(|&&byte| byte == SPECIAL_BYTE).count();
    match bytes.iter().rposition(|&byte| byte == SPECIAL_BYTE) {
        Some(last) if marks % 2 == 1 => last,
        _ => bytes.len(),
    }
}
