//! The binary format of a saved vocabulary.
//!
//! ```text
//! "formalm vocabulary\n"   format version u32   payload length u64   digest 16
//! payload: token bytes   offsets u32 …   end tokens u32 …   names (id u32, text) …   notes text …
//! ```
//!
//! Numbers are little-endian; lists and strings begin with their length as u64. The digest is the
//! first half of the payload's SHA-256. Tables are not saved: they are ten times larger, and are
//! rebuilt in 50 ms for 128,000 tokens.

use sha2::{Digest, Sha256};

use crate::token_byte_table::{MAX_IDS, TokenBytes};
use crate::{Error, Vocabulary};

const FILE_LABEL: &[u8] = b"formalm vocabulary\n";
const FORMAT_VERSION: u32 = 1;
pub(crate) const DIGEST_BYTES: usize = 16;

impl Vocabulary {
    /// Serializes the vocabulary for [`Vocabulary::from_saved`].
    pub fn save(&self) -> Vec<u8> {
        file(&payload(self.tokens(), self.end_token_ids()))
    }

    /// Reads the bytes that [`Vocabulary::save`] returned.
    ///
    /// # Errors
    ///
    /// The data is something else, truncated, damaged, or written by a newer version of this
    /// library.
    pub fn from_saved(data: &[u8]) -> Result<Vocabulary, Error> {
        let hint = "save it again from the tokenizer's file";
        let rest = data.strip_prefix(FILE_LABEL).ok_or_else(|| {
            Error::new("the data is not a saved vocabulary").hint(
                "pass the bytes that `save` returned; use the loader for `tokenizer.json` for such \
                 a file",
            )
        })?;
        let mut reader = ByteReader(rest);
        match reader.number()? {
            FORMAT_VERSION => {}
            newer if newer > FORMAT_VERSION => {
                return Err(Error::new(format!(
                    "the saved vocabulary has format {newer}, but this version reads up to format \
                     {FORMAT_VERSION}"
                ))
                .hint("upgrade formalm, or save it again with this version"));
            }
            other => return Err(Error::new(format!("unknown format {other}")).hint(hint)),
        }
        let length = reader.length()?;
        let expected = reader.take(DIGEST_BYTES)?;
        if reader.0.len() as u64 != length {
            let message =
                format!("the saved vocabulary must have {length} bytes, got {}", reader.0.len());
            return Err(Error::new(message).hint(hint));
        }
        if digest(reader.0) != expected {
            return Err(Error::new("the saved vocabulary is damaged").hint(hint));
        }
        let (tokens, ends) = read(reader)?;
        // What was saved had lost the bytes of end tokens, and repeated none.
        if ends.iter().any(|&id| tokens.get(id).is_some()) {
            return Err(wrong("end tokens"));
        }
        let vocabulary = Vocabulary::build(tokens, ends.clone())?;
        if vocabulary.end_token_ids() != ends { Err(wrong("end tokens")) } else { Ok(vocabulary) }
    }
}

/// Returns a payload with its header.
fn file(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 64);
    out.extend_from_slice(FILE_LABEL);
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(&digest(payload));
    out.extend_from_slice(payload);
    out
}

pub(crate) fn digest(payload: &[u8]) -> [u8; DIGEST_BYTES] {
    let whole = Sha256::digest(payload);
    std::array::from_fn(|at| whole[at])
}

fn payload(tokens: &TokenBytes, ends: &[u32]) -> Vec<u8> {
    let mut out = Vec::with_capacity(tokens.bytes.len() + 4 * tokens.offsets.len() + 1024);
    write_bytes(&mut out, &tokens.bytes);
    write_numbers(&mut out, &tokens.offsets);
    write_numbers(&mut out, ends);
    write_length(&mut out, tokens.names.len());
    for (name, id) in &tokens.names {
        out.extend_from_slice(&id.to_le_bytes());
        write_bytes(&mut out, name.as_bytes());
    }
    write_length(&mut out, tokens.notes.len());
    for note in &tokens.notes {
        write_bytes(&mut out, note.as_bytes());
    }
    out
}

pub(crate) fn write_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub(crate) fn write_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    write_length(out, numbers.len());
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// Reads a payload. A digest is no proof of good intent, so everything is checked.
fn read(mut reader: ByteReader<'_>) -> Result<(TokenBytes, Vec<u32>), Error> {
    let bytes = reader.bytes()?.to_vec();
    let offsets = reader.numbers()?;
    let ends = reader.numbers()?;
    let ordered = offsets.is_sorted() && offsets.first() == Some(&0);
    if !ordered || offsets.last().is_none_or(|&end| end as usize != bytes.len()) {
        return Err(wrong("offsets"));
    }
    if offsets.len() > MAX_IDS + 1 {
        return Err(wrong("number of ids"));
    }
    let pieces = offsets.windows(2).map(|ends| &bytes[ends[0] as usize..ends[1] as usize]);
    let mut tokens = TokenBytes::new(pieces.map(|piece| (!piece.is_empty()).then_some(piece)))?;
    for _ in 0..reader.length()? {
        let id = reader.number()?;
        if id as usize >= tokens.len() || tokens.get(id).is_some() {
            return Err(wrong("names"));
        }
        tokens.names.push((reader.text()?, id));
    }
    for _ in 0..reader.length()? {
        tokens.notes.push(reader.text()?);
    }
    if reader.0.is_empty() { Ok((tokens, ends)) } else { Err(wrong("end")) }
}

fn wrong(what: &str) -> Error {
    Error::new(format!("the saved vocabulary is inconsistent: {what}"))
}

/// A cursor over bytes. Reading past the end is an error.
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (part, rest) = self.0.split_at_checked(length).ok_or_else(|| {
            Error::new("the saved vocabulary is truncated")
                .hint("save it again from the tokenizer's file")
        })?;
        self.0 = rest;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let part = self.take(N)?;
        Ok(std::array::from_fn(|at| part[at]))
    }

    pub(crate) fn number(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn length(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.length()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| wrong("text"))
    }

    pub(crate) fn numbers(&mut self) -> Result<Vec<u32>, Error> {
        let length = self.length()?.saturating_mul(4);
        let part = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
        Ok(part.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let tokens = ["a", "", "ab", "\u{e9}", "a"].map(|token| Some(token.as_bytes().to_vec()));
        let tokens = tokens.into_iter().chain([None, Some(vec![0xFF; 300])]).collect();
        Vocabulary::from_tokens(tokens, vec![5]).expect("a vocabulary")
    }

    fn same(one: &Vocabulary, other: &Vocabulary) {
        assert_eq!(one.tokens(), other.tokens());
        assert_eq!(one.end_token_ids(), other.end_token_ids());
        assert_eq!(one.fingerprint(), other.fingerprint());
    }

    #[test]
    fn a_saved_vocabulary_reads_back_equal() {
        let vocabulary = vocabulary();
        same(&vocabulary, &Vocabulary::from_saved(&vocabulary.save()).expect("saved"));
        let other = vocabulary.with_end_token_ids(vec![]).expect("other ends");
        assert_ne!(vocabulary.fingerprint(), other.fingerprint());
        same(&other, &Vocabulary::from_saved(&other.save()).expect("saved"));
    }

    #[test]
    fn end_tokens_that_no_vocabulary_has_are_refused() {
        let tokens = vocabulary().tokens().clone();
        for ends in [vec![0], vec![5, 5], vec![5, 1], vec![7]] {
            Vocabulary::from_saved(&file(&payload(&tokens, &ends))).expect_err("end tokens");
        }
    }

    #[test]
    fn every_damaged_bit_is_detected() {
        let saved = vocabulary().save();
        for length in 0..saved.len() {
            Vocabulary::from_saved(&saved[..length]).expect_err("cut off");
        }
        for at in 0..saved.len() {
            for bit in 0..8 {
                let mut damaged = saved.clone();
                damaged[at] ^= 1 << bit;
                Vocabulary::from_saved(&damaged).expect_err("damaged");
            }
        }
        let mut longer = saved.clone();
        longer.push(0);
        Vocabulary::from_saved(&longer).expect_err("longer");
    }

    #[test]
    fn errors_name_the_damage() {
        let mut saved = vocabulary().save();
        let message = |data: &[u8]| Vocabulary::from_saved(data).expect_err("wrong").message;
        assert!(message(b"{}").contains("not a saved vocabulary"));
        assert!(message(&saved[..30]).contains("truncated"));
        *saved.last_mut().expect("a byte") ^= 1;
        assert!(message(&saved).contains("damaged"));
        saved[FILE_LABEL.len()] = 9;
        assert!(message(&saved).contains("format 9"));
    }

    #[test]
    fn damage_with_a_valid_digest_does_not_panic() {
        let vocabulary = vocabulary();
        let payload = payload(vocabulary.tokens(), vocabulary.end_token_ids());
        for at in 0..payload.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF, payload[at].wrapping_add(1)] {
                let mut damaged = payload.clone();
                damaged[at] = value;
                // Some changes yield other valid vocabularies. None may panic or allocate much
                // memory.
                if let Ok((tokens, ends)) = read(ByteReader(&damaged)) {
                    let _ = Vocabulary::build(tokens, ends);
                }
            }
            let _ = read(ByteReader(&payload[..at]));
        }
    }
}
