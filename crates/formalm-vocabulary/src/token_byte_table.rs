//! The bytes of every token id, concatenated, with offsets.

use crate::Error;

/// Upper bound on ids: 64 times the largest vocabulary in use, and small enough that a damaged file
/// cannot make us allocate gigabytes.
pub(crate) const MAX_IDS: usize = 1 << 24;

/// Maximum length of a token, in bytes. Trie depths have 16 bits.
const MAX_TOKEN_BYTES: usize = u16::MAX as usize;

/// Maximum length of all tokens together, in bytes. Trie nodes and offsets have 32 bits.
const MAX_TOTAL_BYTES: usize = u32::MAX as usize / 2;

/// The bytes of every token. Ids without bytes are the special tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBytes {
    pub(crate) bytes: Vec<u8>,
    /// Per id, the start of its bytes; one more entry at the end.
    pub(crate) offsets: Vec<u32>,
    /// Names and ids of the special tokens, as far as known.
    pub(crate) names: Vec<(String, u32)>,
    /// Remarks for the user about how the tokens were read.
    pub(crate) notes: Vec<String>,
}

impl TokenBytes {
    /// Lays out the bytes of each id.
    pub(crate) fn new<'a>(
        given: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Result<TokenBytes, Error> {
        let mut tokens = TokenBytes { offsets: vec![0], ..TokenBytes::default() };
        let mut empty = Vec::new();
        for (id, token) in given.enumerate() {
            if id == MAX_IDS {
                return Err(Error::new(format!("the number of tokens must be at most {MAX_IDS}")));
            }
            if token.is_some_and(<[u8]>::is_empty) {
                empty.push(id as u32);
            }
            tokens.push(token.unwrap_or_default())?;
        }
        if tokens.len() == 0 {
            return Err(Error::new("tokens must not be empty"));
        }
        tokens.note(&empty, "without bytes, never allowed");
        Ok(tokens)
    }

    /// Appends the bytes of the next id.
    pub(crate) fn push(&mut self, token: &[u8]) -> Result<(), Error> {
        if token.len() > MAX_TOKEN_BYTES {
            let (id, length) = (self.len(), token.len());
            return Err(Error::new(format!(
                "token {id} must have at most {MAX_TOKEN_BYTES} bytes, got {length}"
            )));
        }
        if self.bytes.len() + token.len() > MAX_TOTAL_BYTES {
            return Err(Error::new(format!(
                "the tokens must have at most {MAX_TOTAL_BYTES} bytes in total"
            )));
        }
        self.bytes.extend_from_slice(token);
        self.offsets.push(self.bytes.len() as u32);
        Ok(())
    }

    /// Returns a copy in which the given ids, ascending, have no bytes.
    pub(crate) fn without(&self, ids: &[u32]) -> TokenBytes {
        let mut tokens = TokenBytes {
            offsets: vec![0],
            names: self.names.clone(),
            notes: self.notes.clone(),
            ..TokenBytes::default()
        };
        let mut lost = Vec::new();
        for id in 0..self.len() as u32 {
            if let Some(bytes) = self.get(id) {
                match ids.binary_search(&id).is_ok() {
                    true => lost.push(id),
                    false => tokens.bytes.extend_from_slice(bytes),
                }
            }
            tokens.offsets.push(tokens.bytes.len() as u32);
        }
        tokens.note(&lost, "with bytes that are end tokens, so never allowed as text");
        tokens
    }

    /// Adds a remark about `ids`, if there are any.
    pub(crate) fn note(&mut self, ids: &[u32], what: &str) {
        const SHOWN: usize = 8;
        let shown: Vec<String> = ids.iter().take(SHOWN).map(u32::to_string).collect();
        let more = match ids.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !ids.is_empty() {
            self.notes.push(format!("tokens {what}: {}{more}", shown.join(", ")));
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&[u8]> {
        let end = *self.offsets.get((id as usize).checked_add(1)?)?;
        let start = self.offsets[id as usize];
        (start < end).then(|| &self.bytes[start as usize..end as usize])
    }

    /// Iterates over the tokens that have bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..self.len() as u32).filter_map(|id| Some((id, self.get(id)?)))
    }
}
