//! SentencePiece models: the pieces with their types, and what the model does to text.
//!
//! ```text
//!  ModelProto   1 pieces   text, score, type        ids in order
//!               2 trainer  kind of model, byte fallback, name of the end piece
//!               3 normalizer, 5 denormalizer        rewrites of text
//! ```
//!
//! A piece is its text with `▁` as a space; a byte piece such as `<0x0A>` is that byte. Control,
//! unknown and unused pieces have no bytes.

mod charsmap;
mod protobuf;

pub(crate) use self::charsmap::read as read_charsmap;
use self::protobuf::{FieldValue, MessageFields};
use crate::tokenizer_json::fallback_byte;
use crate::{Error, Vocabulary};

/// Type of a piece of ordinary text, as in `sentencepiece_model.proto`.
pub const NORMAL: i64 = 1;
/// Type of the piece of unknown text.
pub const UNKNOWN: i64 = 2;
/// Type of a piece that is no text, such as the end.
pub const CONTROL: i64 = 3;
/// Type of a piece that is taken whole wherever it occurs.
pub const USER_DEFINED: i64 = 4;
/// Type of a piece that the model does not use.
pub const UNUSED: i64 = 5;
/// Type of a piece of one byte.
pub const BYTE: i64 = 6;

/// A piece of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoredPiece<'a> {
    pub(crate) text: &'a str,
    pub(crate) score: f32,
    pub(crate) kind: i64,
}

/// The fields of a SentencePiece model that affect tokenization, token bytes and end tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentencePieceModel<'a> {
    pub(crate) pieces: Vec<ScoredPiece<'a>>,
    pub(crate) kind: u64,
    pub(crate) byte_fallback: bool,
    pub(crate) suffixes_spaces: bool,
    pub(crate) end_piece: &'a str,
    pub(crate) normalization: &'a str,
    /// The compiled map of characters; empty if there is none.
    pub(crate) charsmap: &'a [u8],
    pub(crate) dummy_prefix: bool,
    pub(crate) trims_spaces: bool,
    pub(crate) marks_spaces: bool,
    pub(crate) denormalizes: bool,
}

impl<'a> SentencePieceModel<'a> {
    /// Parses the message `ModelProto`. If a message occurs twice, the later fields take
    /// precedence.
    ///
    /// # Errors
    ///
    /// The data is not a model.
    pub(crate) fn read(data: &'a [u8]) -> Result<SentencePieceModel<'a>, Error> {
        if is_list_of_ranks(data) {
            return Err(Error::new(
                "this tokenizer.model is a list of ranks as tiktoken reads it, no SentencePiece \
                 model",
            )
            .hint("use the tokenizer.json of the same model, or from_tiktoken with its pattern"));
        }
        let mut model = SentencePieceModel {
            pieces: Vec::new(),
            kind: UNIGRAM,
            byte_fallback: false,
            suffixes_spaces: false,
            end_piece: "</s>",
            normalization: "",
            charsmap: &[],
            dummy_prefix: true,
            trims_spaces: true,
            marks_spaces: true,
            denormalizes: false,
        };
        for field in MessageFields::new(data) {
            let (number, value) = field?;
            match (number, value) {
                (1, FieldValue::Bytes(data)) => {
                    model.pieces.push(ScoredPiece::read(data, model.pieces.len())?);
                }
                (2, FieldValue::Bytes(data)) => model.read_trainer(data)?,
                (3, FieldValue::Bytes(data)) => model.read_normalizer(data)?,
                (5, FieldValue::Bytes(data)) => model.read_denormalizer(data)?,
                (1..=3 | 5, _) => {
                    let message = format!("field {number} of the model is not a message");
                    return Err(Error::new(message));
                }
                _ => {}
            }
        }
        if !model.pieces.iter().any(|piece| piece.kind == UNKNOWN) {
            return Err(Error::new(
                "this is no SentencePiece model: it has no pieces, or none for the unknown",
            ));
        }
        Ok(model)
    }

    fn read_trainer(&mut self, data: &'a [u8]) -> Result<(), Error> {
        for field in MessageFields::new(data) {
            match field? {
                (3, FieldValue::Number(kind)) => self.kind = kind,
                (24, FieldValue::Number(on)) => self.suffixes_spaces = on != 0,
                (35, FieldValue::Number(on)) => self.byte_fallback = on != 0,
                (47, FieldValue::Bytes(name)) => self.end_piece = utf8(name, "eos_piece")?,
                (47, _) => return Err(not_utf8("eos_piece")),
                _ => {}
            }
        }
        Ok(())
    }

    fn read_normalizer(&mut self, data: &'a [u8]) -> Result<(), Error> {
        for field in MessageFields::new(data) {
            match field? {
                (1, FieldValue::Bytes(name)) => self.normalization = utf8(name, "normalizer")?,
                (2, FieldValue::Bytes(map)) => self.charsmap = map,
                (3, FieldValue::Number(on)) => self.dummy_prefix = on != 0,
                (4, FieldValue::Number(on)) => self.trims_spaces = on != 0,
                (5, FieldValue::Number(on)) => self.marks_spaces = on != 0,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_denormalizer(&mut self, data: &'a [u8]) -> Result<(), Error> {
        for field in MessageFields::new(data) {
            if let (2, FieldValue::Bytes(map)) = field? {
                self.denormalizes = !map.is_empty();
            }
        }
        Ok(())
    }

    /// Returns what a user should know about how the tokens were read.
    fn notes(&self) -> Vec<String> {
        let pieces = self.pieces.iter().zip(0u32..);
        let unused: Vec<u32> =
            pieces.filter(|(piece, _)| piece.kind == UNUSED).map(|(_, id)| id).collect();
        let mut notes = Vec::new();
        if !unused.is_empty() {
            notes.push(format!("tokens marked unused, never allowed: {}", shown(&unused)));
        }
        let rewrites = [
            (
                self.dummy_prefix || self.trims_spaces,
                "decoding drops a space at the start of a text; the bytes of the token keep it",
            ),
            (self.dummy_prefix, "encoding puts a space in front of a text"),
            (self.trims_spaces, "encoding drops spaces at both ends of a text and repeated ones"),
            (!self.charsmap.is_empty(), "encoding normalizes characters"),
        ];
        notes.extend(rewrites.iter().filter(|one| one.0).map(|one| one.1.to_owned()));
        notes
    }
}

/// Types of models, as in `sentencepiece_model.proto`.
pub(crate) const UNIGRAM: u64 = 1;
pub(crate) const BPE: u64 = 2;

impl<'a> ScoredPiece<'a> {
    fn read(data: &'a [u8], at: usize) -> Result<ScoredPiece<'a>, Error> {
        let mut piece = ScoredPiece { text: "", score: 0.0, kind: NORMAL };
        for field in MessageFields::new(data) {
            match field? {
                (1, FieldValue::Bytes(text)) => piece.text = utf8(text, &format!("piece {at}"))?,
                (2, FieldValue::Float(score)) => piece.score = score,
                (3, FieldValue::Number(kind)) => piece.kind = kind as i64,
                (1..=3, _) => {
                    return Err(Error::new(format!("piece {at} of the model cannot be read")));
                }
                _ => {}
            }
        }
        if piece.text.is_empty() {
            return Err(Error::new(format!("piece {at} of the model is empty")));
        }
        Ok(piece)
    }
}

impl Vocabulary {
    /// Reads a SentencePiece model. Also returns the ids of its end piece, which do not count as
    /// end tokens yet.
    ///
    /// # Errors
    ///
    /// The data is not a model, or the model rewrites text when it decodes.
    pub fn from_sentencepiece(data: &[u8]) -> Result<(Vocabulary, Vec<u32>), Error> {
        let model = SentencePieceModel::read(data)?;
        if model.denormalizes {
            return Err(Error::new(
                "the model rewrites text when it decodes, so tokens have no bytes",
            ));
        }
        let mut tokens = Vec::with_capacity(model.pieces.len());
        let mut names = Vec::new();
        for (piece, id) in model.pieces.iter().zip(0u32..) {
            tokens.push(piece_bytes(piece.text, piece.kind, &format!("piece {id}"))?);
            if matches!(piece.kind, UNKNOWN | CONTROL) {
                names.push((piece.text.to_owned(), id));
            }
        }
        let is_end = |name: &&(String, u32)| name.0 == model.end_piece;
        let ends = names.iter().filter(is_end).map(|name| name.1).collect();
        Ok((Vocabulary::from_named_tokens(tokens, Vec::new(), names, model.notes())?, ends))
    }
}

/// Returns the bytes of a piece; `None` for a type without text.
///
/// # Errors
///
/// The type is unknown, or a byte piece names no byte. The message begins with `place`.
pub fn piece_bytes(text: &str, kind: i64, place: &str) -> Result<Option<Vec<u8>>, Error> {
    match kind {
        BYTE => match fallback_byte(text) {
            Some(byte) => Ok(Some(vec![byte])),
            None => {
                let message = format!("{place} is {text:?}, which is no byte such as <0x0A>");
                Err(Error::new(message))
            }
        },
        NORMAL | USER_DEFINED => Ok(Some(text.replace('\u{2581}', " ").into_bytes())),
        UNKNOWN | CONTROL | UNUSED => Ok(None),
        _ => Err(Error::new(format!("{place} is of type {kind}, which we do not know"))),
    }
}

/// Returns `true` if the first line is a token in base64 and its rank.
fn is_list_of_ranks(data: &[u8]) -> bool {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else { return false };
    let Some(space) = data[..end].iter().position(|&byte| byte == b' ') else { return false };
    let token = data[..space].trim_ascii_end();
    let letters = token.iter().position(|&byte| byte == b'=').unwrap_or(token.len());
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let rank = &data[space + 1..end];
    letters > 0
        && token.len() == space
        && token[..letters].iter().all(is_letter)
        && token[letters..].iter().all(|&byte| byte == b'=')
        && !rank.is_empty()
        && rank.iter().all(u8::is_ascii_digit)
}

/// Returns some of many ids, for a message.
fn shown(ids: &[u32]) -> String {
    let few: Vec<String> = ids.iter().take(8).map(u32::to_string).collect();
    match ids.len().checked_sub(9) {
        None => few.join(", "),
        Some(more) => format!("{} and {} more", few.join(", "), more + 1),
    }
}

fn utf8<'a>(text: &'a [u8], place: &str) -> Result<&'a str, Error> {
    std::str::from_utf8(text).map_err(|_| not_utf8(place))
}

fn not_utf8(place: &str) -> Error {
    Error::new(format!("{place} of the model is not UTF-8 text"))
}
