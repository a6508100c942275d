//! Reading keys byte by byte, and what spares most of that.

use crate::automaton::StateId;
use crate::automaton::{KeyId, Repetition};
use crate::byte_set::ByteSet;
use crate::error::Error;
use crate::json_string_state::InText;
use crate::machine::Lexemes;
use crate::spelling::Escapes;

/// Letters that must lead to one key for it to serve as reference.
const MIN_REFERENCE_LETTERS: usize = 14;

/// Reads keys byte by byte, for one mask.
///
/// What is met on the way can be many times what texts ever come to, so a machine may keep it for
/// as long as this lives only.
pub trait Steps {
    /// The lexemes of this kind of machine.
    type Lexemes: Lexemes;

    /// The machine as one that reads lexemes, if it is one.
    fn lexemes(&self) -> Option<&Self::Lexemes>;

    /// The key after `byte`; `None` if not viable.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn step(&self, key: KeyId, byte: u8) -> Result<Option<KeyId>, Error>;

    /// Bytes that are viable next.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn live_bytes(&self, key: KeyId) -> Result<ByteSet, Error>;

    /// The tokens that are viable next as a bitmask, end tokens aside, if the machine finds them by
    /// itself.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn mask(&self, key: KeyId) -> Result<Option<Vec<u32>>, Error> {
        let _ = key;
        Ok(None)
    }

    /// The key as a repetition of a class, if it is known to be one and to read text only.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn repetition(&self, key: KeyId) -> Result<Option<Repetition>, Error>;

    /// Whether [`Steps::few`] says anything, so that nobody need ask otherwise.
    const KNOWS_FEW: bool = false;

    /// Bytes beyond which nothing is viable, where they are few and known without reading.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn few(&self, _key: KeyId) -> Result<Option<ByteSet>, Error> {
        Ok(None)
    }

    /// Whether any digits may follow, as many as there are: then they need not be read.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn any_digits(&self, _key: KeyId) -> Result<bool, Error> {
        Ok(false)
    }

    /// A repetition that differs from this key along few texts, if there is one; otherwise it is
    /// taken to be the key that most letters lead to.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn reference(&self, key: KeyId) -> Result<Option<KeyId>, Error> {
        let mut counts: Vec<(KeyId, usize)> = Vec::new();
        for byte in (b'a'..=b'z').chain(b'A'..=b'Z') {
            if let Some(next) = self.step(key, byte)?
                && next != key
            {
                match counts.iter_mut().find(|(known, _)| *known == next) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((next, 1)),
                }
            }
        }
        let most = counts.into_iter().max_by_key(|&(_, count)| count);
        Ok(most.filter(|&(_, count)| count >= MIN_REFERENCE_LETTERS).map(|(next, _)| next))
    }

    /// How strings are spelled, if the key is inside of a string of JSON, between two characters,
    /// and nothing is refused before its end: only tokens that end it have to be read.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn in_open_string(&self, _key: KeyId) -> Result<Option<Escapes>, Error> {
        Ok(None)
    }

    /// The text that the key is in, if it is inside of a string of JSON whose text is read by a
    /// regular machine alone. Where the quote leads to is then the same from all states of that
    /// machine in which the string may end.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn in_text(&self, _key: KeyId) -> Result<Option<InText>, Error> {
        Ok(None)
    }

    /// A key in a text with its machine in another state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn in_text_at(&self, key: KeyId, _state: StateId) -> Result<KeyId, Error> {
        Ok(key)
    }

    /// Texts in a string of JSON behind whose quote alone a key differs from its reference: a token
    /// that ends none of them is allowed by both or by neither. Without a reference, tokens end one
    /// of them, or are the beginning of one. `None` where such texts are not known.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn texts(&self, _key: KeyId, _reference: Option<KeyId>) -> Result<Option<Texts>, Error> {
        Ok(None)
    }

    /// The innermost value that a key is in or stands before, read by itself: a key that reads the
    /// same until the value ends, whatever is around it. `None` where what is around it matters.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn apart(&self, _key: KeyId) -> Result<Option<KeyId>, Error> {
        Ok(None)
    }

    /// What a value that is read [by itself](Steps::apart) is, where machines have it in common:
    /// keys of equal numbers allow the same texts, of whatever machines they are.
    fn common(&self, _key: KeyId) -> Option<u64> {
        None
    }

    /// Whether a value that is read [by itself](Steps::apart) has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn ended(&self, _key: KeyId) -> Result<Ended, Error> {
        Ok(Ended::No)
    }

    /// The key behind the innermost value that a key is in or stands before, once it has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn behind(&self, _key: KeyId) -> Result<Option<KeyId>, Error> {
        Ok(None)
    }

    /// The key under which a mask may be kept, for one that looking ahead met.
    fn kept(&self, _key: KeyId) -> Option<KeyId> {
        None
    }

    /// Bytes that two keys may read differently, where they are few and known without reading.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    fn differing(&self, _first: KeyId, _second: KeyId) -> Result<Option<ByteSet>, Error> {
        Ok(None)
    }
}

/// Whether a value that is read by itself has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It goes on.
    No,
    /// It may end here, or go on with one of these bytes.
    May(ByteSet),
    /// It has ended: what follows belongs to what is around it.
    Yes,
}

/// A list of texts that strings of JSON have as they are, in front of the quote that ends them.
/// Those with a common beginning stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Texts {
    /// How strings are spelled.
    pub escapes: Escapes,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// No texts.
    pub fn new(escapes: Escapes) -> Texts {
        Texts { escapes, bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds a text.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// The texts in their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}
