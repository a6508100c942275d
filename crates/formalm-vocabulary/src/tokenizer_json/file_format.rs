//! Serde types of `tokenizer.json`, field by field as the file spells them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Error;

/// A parsed file that borrows its text.
#[derive(Debug, serde::Deserialize)]
pub struct TokenizerFile<'a> {
    /// Tokens in addition to the model's: special ones and plain additions.
    #[serde(default, deserialize_with = "or_default")]
    pub added_tokens: Vec<AddedToken>,
    /// Steps that change the text before anything else.
    #[serde(default)]
    pub normalizer: Value,
    /// Steps that split the text before the model sees it.
    #[serde(default)]
    pub pre_tokenizer: Value,
    /// Steps that turn pieces back into text.
    #[serde(default)]
    pub decoder: Value,
    /// Pieces and merges.
    #[serde(borrow)]
    pub model: BpeModel<'a>,
}

/// An entry of `added_tokens`.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct AddedToken {
    /// The token id.
    pub id: u32,
    /// The string of the token.
    pub content: String,
    /// `true` for a control token that is no text.
    #[serde(default, deserialize_with = "or_default")]
    pub special: bool,
    /// `true` if encoding searches for it in normalized text.
    #[serde(default, deserialize_with = "or_default")]
    pub normalized: bool,
    /// `true` if encoding drops whitespace before it.
    #[serde(default, deserialize_with = "or_default")]
    pub lstrip: bool,
    /// `true` if encoding drops whitespace after it.
    #[serde(default, deserialize_with = "or_default")]
    pub rstrip: bool,
    /// `true` if encoding finds it only between word boundaries.
    #[serde(default, deserialize_with = "or_default")]
    pub single_word: bool,
}

/// The `model` of a file.
#[derive(Debug, serde::Deserialize)]
pub struct BpeModel<'a> {
    /// `BPE`, `Unigram`, `WordPiece` or `WordLevel`; absent in old files.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Pieces and their ids.
    #[serde(borrow, default)]
    pub vocab: VocabPieces<'a>,
    /// The merges, unparsed: a list of pairs, or of strings with a space between two pieces.
    #[serde(borrow)]
    pub merges: Option<&'a RawValue>,
    /// The piece for characters that no piece covers, or for words of a WordPiece model.
    pub unk_token: Option<String>,
    /// The id of that piece in a Unigram model.
    pub unk_id: Option<u32>,
    /// The length in characters from which on a WordPiece model reads a word as unknown.
    pub max_input_chars_per_word: Option<u32>,
    /// A prefix that marks pieces inside a word.
    pub continuing_subword_prefix: Option<String>,
    /// A suffix that marks pieces at the end of a word.
    pub end_of_word_suffix: Option<String>,
    /// `true` if uncovered characters are spelled in bytes, such as `<0x0A>`.
    #[serde(default, deserialize_with = "or_default")]
    pub byte_fallback: bool,
    /// `true` if a pre-token that is a piece becomes one token without merging.
    #[serde(default, deserialize_with = "or_default")]
    pub ignore_merges: bool,
    /// The probability that training skips a merge.
    pub dropout: Option<f64>,
    /// `true` if adjacent uncovered characters become one unknown token.
    #[serde(default, deserialize_with = "or_default")]
    pub fuse_unk: bool,
}

/// Pieces and their ids, in the order of the file.
#[derive(Debug, Default)]
pub enum VocabPieces<'a> {
    /// A map from piece to id.
    Map(Vec<(Cow<'a, str>, u32)>),
    /// The scored pieces of a Unigram model; their ids are their places.
    Scored(Vec<(Cow<'a, str>, f64)>),
    /// Neither.
    #[default]
    Other,
}

impl<'a> TokenizerFile<'a> {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// The data is not UTF-8, not JSON, or not laid out like a tokenizer.
    pub fn parse(data: &'a [u8]) -> Result<TokenizerFile<'a>, Error> {
        let text = std::str::from_utf8(data).map_err(|error| {
            Error::new("the tokenizer file is not UTF-8")
                .at(format!("byte {}", error.valid_up_to()))
        })?;
        serde_json::from_str(text).map_err(|error| {
            Error::new(format!("invalid tokenizer file: {error}"))
                .hint("this must be a `tokenizer.json` of the Hugging Face `tokenizers` library")
        })
    }
}

/// Deserializes `null` as the default value.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a number as the `tokenizers` library does. It rounds twice, so that the last bit may
/// differ from the nearest double; scores that differ in it can decide ties.
fn library_number(text: &str) -> Option<f64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (digits, exponent) = match digits.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // The library skips digits that a 64-bit integer does not hold; no printed double has these.
    let significand: u64 = format!("{whole}{fraction}").parse().ok()?;
    let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = format!("1e{}", exponent.unsigned_abs()).parse::<f64>().ok()?;
    let value = significand as f64;
    let value = if exponent >= 0 { value * power } else { value / power };
    value.is_finite().then_some(if negative { -value } else { value })
}

/// A string that is borrowed unless it has escapes. `Cow` would always copy outside of a derived
/// field.
pub(crate) struct PieceText<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for PieceText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PieceText<'a>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = PieceText<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a piece")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<PieceText<'de>, E> {
                Ok(PieceText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<PieceText<'de>, E> {
                Ok(PieceText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for VocabPieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<VocabPieces<'a>, D::Error> {
        #[derive(serde::Deserialize)]
        struct Scored<'a>(#[serde(borrow)] PieceText<'a>, #[serde(borrow)] &'a RawValue);
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = VocabPieces<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map from pieces to ids, or a list of pieces with their scores")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<VocabPieces<'de>, A::Error> {
                let mut pieces = Vec::with_capacity(1 << 17);
                while let Some((PieceText(piece), id)) = map.next_entry()? {
                    pieces.push((piece, id));
                }
                Ok(VocabPieces::Map(pieces))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<VocabPieces<'de>, A::Error> {
                let mut pieces = Vec::new();
                while let Some(Scored(PieceText(piece), score)) = list.next_element()? {
                    let score = library_number(score.get())
                        .ok_or_else(|| A::Error::custom("a score is not a number"))?;
                    pieces.push((piece, score));
                }
                Ok(VocabPieces::Scored(pieces))
            }

            fn visit_unit<E>(self) -> Result<VocabPieces<'de>, E> {
                Ok(VocabPieces::Other)
            }
        }
        deserializer.deserialize_any(Read)
    }
}
