//! The parts of `tokenizer.json` as they are written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Error;

/// A parsed file; its text is borrowed.
#[derive(Debug, serde::Deserialize)]
pub struct TokenizerFile<'a> {
    /// Tokens beside the model's: special ones and plain additions.
    #[serde(default, deserialize_with = "or_default")]
    pub added_tokens: Vec<AddedToken>,
    /// What happens to text before everything else.
    #[serde(default)]
    pub normalizer: Value,
    /// How text is cut before the model sees it.
    #[serde(default)]
    pub pre_tokenizer: Value,
    /// How pieces become text again.
    #[serde(default)]
    pub decoder: Value,
    /// Pieces and merges.
    #[serde(borrow)]
    pub model: Model<'a>,
}

/// An entry of `added_tokens`.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct AddedToken {
    /// The token id.
    pub id: u32,
    /// Its text.
    pub content: String,
    /// Whether it is no text but a mark.
    #[serde(default, deserialize_with = "or_default")]
    pub special: bool,
    /// Whether it is found in normalised text.
    #[serde(default, deserialize_with = "or_default")]
    pub normalized: bool,
    /// Whether encoding drops white space before it.
    #[serde(default, deserialize_with = "or_default")]
    pub lstrip: bool,
    /// Whether encoding drops white space after it.
    #[serde(default, deserialize_with = "or_default")]
    pub rstrip: bool,
    /// Whether it is found only between word boundaries.
    #[serde(default, deserialize_with = "or_default")]
    pub single_word: bool,
}

/// The `model` of a file; fields of other models than BPE are not read.
#[derive(Debug, serde::Deserialize)]
pub struct Model<'a> {
    /// `BPE`, `Unigram`, `WordPiece` or `WordLevel`; missing in old files.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Pieces and their ids.
    #[serde(borrow, default)]
    pub vocab: Pieces<'a>,
    /// The merges, unread: a list of pairs, or of strings with one space between two pieces.
    #[serde(borrow)]
    pub merges: Option<&'a RawValue>,
    /// The piece of what no piece covers.
    pub unk_token: Option<String>,
    /// A mark of pieces within a word.
    pub continuing_subword_prefix: Option<String>,
    /// A mark of pieces at the end of a word.
    pub end_of_word_suffix: Option<String>,
    /// Whether uncovered characters are spelled in bytes, `<0x0A>`.
    #[serde(default, deserialize_with = "or_default")]
    pub byte_fallback: bool,
    /// Whether a pretoken that is a piece is taken whole.
    #[serde(default, deserialize_with = "or_default")]
    pub ignore_merges: bool,
    /// The chance that a merge is left out, in training.
    pub dropout: Option<f64>,
    /// Whether neighbouring uncovered characters become one unknown token.
    #[serde(default, deserialize_with = "or_default")]
    pub fuse_unk: bool,
}

/// Pieces and their ids, in the order of the file.
#[derive(Debug, Default)]
pub enum Pieces<'a> {
    /// A map from piece to id.
    Map(Vec<(Cow<'a, str>, u32)>),
    /// A list, as Unigram models have.
    #[default]
    Other,
}

impl<'a> TokenizerFile<'a> {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// It is not UTF-8, not JSON, or not laid out like a tokenizer.
    pub fn parse(data: &'a [u8]) -> Result<TokenizerFile<'a>, Error> {
        let text = std::str::from_utf8(data).map_err(|error| {
            Error::new("the tokenizer file is not UTF-8")
                .at(format!("byte {}", error.valid_up_to()))
        })?;
        serde_json::from_str(text).map_err(|error| {
            Error::new(format!("the tokenizer file cannot be read: {error}"))
                .hint("this reads the `tokenizer.json` of the Hugging Face `tokenizers` library")
        })
    }
}

/// `null` as the default.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A string, borrowed where it has no escapes. `Cow` would always copy outside of a derived field.
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a piece")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Read)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pieces<'a>, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Pieces<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map from pieces to ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pieces<'de>, A::Error> {
                let mut pieces = Vec::with_capacity(1 << 17);
                while let Some((Text(piece), id)) = map.next_entry()? {
                    pieces.push((piece, id));
                }
                Ok(Pieces::Map(pieces))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pieces<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Pieces::Other)
            }

            fn visit_unit<E>(self) -> Result<Pieces<'de>, E> {
                Ok(Pieces::Other)
            }
        }
        deserializer.deserialize_any(Read)
    }
}
