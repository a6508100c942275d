//! Reader of Unigram models, in `tokenizer.json` and in SentencePiece files.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::Error;
use crate::bpe::base_symbols::{BaseSymbols, ByteTokens, SPACE};
use crate::bpe::pretoken_model::PretokenModel;
use crate::bpe::spec::refused;
use crate::sentencepiece::{NORMAL, SentencePieceModel, USER_DEFINED};
use crate::tokenizer_json::{TokenizerFile, VocabPieces, fallback_byte};
use crate::unigram::{ScoreArithmetic, UnigramModel, UnigramPiece};

/// The penalty of a character that is no piece, relative to the least score of a piece. The same in
/// both libraries.
const UNKNOWN_PENALTY: f64 = 10.0;

/// Reads the model of a `tokenizer.json`. With `marks_spaces`, its text has marks instead of spaces.
///
/// # Errors
///
/// The model does something that we cannot reproduce exactly.
pub(in crate::bpe) fn of_tokenizer_json(
    file: &TokenizerFile<'_>,
    marks_spaces: bool,
    bytes: Option<ByteTokens>,
) -> Result<(PretokenModel, BaseSymbols), Error> {
    let VocabPieces::Scored(list) = &file.model.vocab else {
        return Err(refused("its vocab must be a list of pieces with scores").at("model.vocab"));
    };
    let unknown = file.model.unk_id;
    let added: FxHashSet<u32> = file.added_tokens.iter().map(|token| token.id).collect();
    let mut least = f64::INFINITY;
    let mut pieces = Vec::with_capacity(list.len());
    for ((text, score), token) in list.iter().zip(0u32..) {
        least = least.min(*score);
        let is_byte = bytes.is_some() && fallback_byte(text).is_some();
        // The library finds the names of special and byte tokens in text, too. Added tokens that
        // are text are cut out before.
        let has_text = Some(token) != unknown && !is_byte && !added.contains(&token);
        let spelled = if marks_spaces { spelled(text) } else { Some(Cow::Borrowed(&**text)) };
        pieces.extend(piece(spelled, *score, token, has_text));
    }
    let texts: FxHashSet<&[u8]> = pieces.iter().map(|piece| &piece.text[..]).collect();
    if texts.len() < pieces.len() {
        return Err(refused("two of its pieces have the same text").at("model.vocab"));
    }
    let unknown_score = least.min(f64::MAX) - UNKNOWN_PENALTY;
    of_pieces(pieces, (unknown_score, ScoreArithmetic::Double), marks_spaces, bytes)
}

/// Reads a SentencePiece model.
///
/// # Errors
///
/// The model does something that we cannot reproduce exactly.
pub(in crate::bpe) fn of_sentencepiece(
    model: &SentencePieceModel<'_>,
    bytes: Option<ByteTokens>,
) -> Result<(PretokenModel, BaseSymbols), Error> {
    let normal = || model.pieces.iter().filter(|piece| piece.kind == NORMAL);
    let least = normal().map(|piece| piece.score).fold(f32::INFINITY, f32::min);
    let mut pieces = Vec::with_capacity(model.pieces.len());
    for (own, token) in model.pieces.iter().zip(0u32..) {
        let score = match own.kind {
            NORMAL => f64::from(own.score),
            // As version 0.2.3 of the library scores them. Earlier ones differ, and are refused when
            // they are compared with this one.
            USER_DEFINED => f64::from((own.text.len() as f64 * 0.1 - 0.1) as f32),
            _ => continue,
        };
        pieces.extend(piece(spelled(own.text), score, token, true));
    }
    let unknown_score = f64::from(least - UNKNOWN_PENALTY as f32);
    of_pieces(pieces, (unknown_score, ScoreArithmetic::Single), true, bytes)
}

/// Returns the text of a piece as it occurs in strings, if its text has marks instead of spaces.
/// Returns `None` if it never occurs.
fn spelled(text: &str) -> Option<Cow<'_, str>> {
    match text.contains(SPACE) {
        _ if text.contains(' ') => None,
        true => Some(Cow::Owned(text.replace(SPACE, " "))),
        false => Some(Cow::Borrowed(text)),
    }
}

fn piece(
    text: Option<Cow<'_, str>>,
    score: f64,
    token: u32,
    has_text: bool,
) -> Option<UnigramPiece> {
    let text = text.filter(|text| !text.is_empty())?;
    Some(UnigramPiece { text: text.as_bytes().to_vec(), score, token, has_text })
}

fn of_pieces(
    pieces: Vec<UnigramPiece>,
    (unknown_score, arithmetic): (f64, ScoreArithmetic),
    marks_spaces: bool,
    bytes: Option<ByteTokens>,
) -> Result<(PretokenModel, BaseSymbols), Error> {
    let single = pieces.iter().filter_map(|piece| {
        let text = std::str::from_utf8(&piece.text).ok()?;
        let mut characters = text.chars();
        let first = characters.next()?;
        characters.next().is_none().then_some((first, piece.token))
    });
    let symbols = BaseSymbols::Characters(single.collect(), bytes.clone());
    let model = UnigramModel::new(pieces, unknown_score, arithmetic, (bytes, marks_spaces))
        .map_err(|error| refused(&error.message).at("model.vocab"))?;
    Ok((PretokenModel::Unigram(Box::new(model)), symbols))
}
