//! Special tokens within languages: symbols that are no text, spelled in bytes.
//!
//! A special token is its name between two [`SPECIAL`]s. No UTF-8 has that byte, so no text is taken
//! for a special token. A vocabulary over which such a language is read has no other token with
//! that byte: tokens hold whole special tokens or none, and none is ever entered or left midway.

/// The byte on both sides of the name of a special token; no character has it.
pub const SPECIAL: u8 = 0xfe;

/// How a special token is spelled.
pub fn special_bytes(name: &str) -> Vec<u8> {
    [&[SPECIAL], name.as_bytes(), &[SPECIAL]].concat()
}

/// How many bytes there are up to the last place that is not within a special token.
pub fn outside_special(bytes: &[u8]) -> usize {
    let marks = bytes.iter().filter(|&&byte| byte == SPECIAL).count();
    match bytes.iter().rposition(|&byte| byte == SPECIAL) {
        Some(last) if marks % 2 == 1 => last,
        _ => bytes.len(),
    }
}
