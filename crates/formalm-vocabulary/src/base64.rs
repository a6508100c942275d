//! Base64, as tokenizer files use it.

/// Decodes base64. Returns `None` if the text is not base64.
pub(crate) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let end = text.iter().position(|&letter| letter == b'=').unwrap_or(text.len());
    let padded = text.len().is_multiple_of(4) && text.len() - end <= 2;
    if !padded || text[end..].iter().any(|&letter| letter != b'=') {
        return None;
    }
    for group in text[..end].chunks(4) {
        let mut bits = 0;
        for at in 0..4 {
            bits = bits << 6 | group.get(at).map_or(Some(0), |&letter| sextet(letter))?;
        }
        let [_, bytes @ ..] = u32::to_be_bytes(bits);
        out.extend_from_slice(bytes.get(..group.len().checked_sub(1)?)?);
    }
    Some(out)
}

fn sextet(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_decoded_or_rejected() {
        assert_eq!(base64(b""), Some(vec![]));
        assert_eq!(base64(b"AA=="), Some(vec![0]));
        assert_eq!(base64(b"IGE="), Some(b" a".to_vec()));
        assert_eq!(base64(b"YWJj"), Some(b"abc".to_vec()));
        assert_eq!(base64(b"//79"), Some(vec![255, 254, 253]));
        for wrong in ["A", "AA", "A===", "=AAA", "AA=A", "A\u{e9}A", "AAA.", "AAAA=="] {
            assert_eq!(base64(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
