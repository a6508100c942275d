//! Loads a vocabulary from `tokenizer.json`: every id gets exactly the bytes that decoding gives
//! it, or the file is rejected.
//!
//! A wrong byte would let a model leave its language unnoticed.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::file_format::{AddedToken, BpeModel, TokenizerFile, VocabPieces};
use super::piece_decoding::{PieceDecoding, UnmappedCharacter, fuses_before_decoding};
use crate::token_byte_table::{MAX_IDS, TokenBytes};
use crate::{Error, Vocabulary};

impl Vocabulary {
    /// Reads a `tokenizer.json`. The file does not say which token ends a text; without
    /// `end_token_ids` there is none, see [`Vocabulary::with_end_token_ids`].
    ///
    /// BPE models with byte-level pieces or byte fallback, and Unigram models, are supported. Added tokens that are not
    /// special get the bytes of their string. Special tokens, the unknown token and ids that no
    /// token has get no bytes.
    ///
    /// # Errors
    ///
    /// The file is not a tokenizer, contradicts itself, or is of a kind whose bytes are not known
    /// exactly.
    pub fn from_tokenizer_json(
        data: &[u8],
        end_token_ids: Option<Vec<u32>>,
    ) -> Result<Vocabulary, Error> {
        let file = TokenizerFile::parse(data)?;
        Vocabulary::build(tokens(&file)?, end_token_ids.unwrap_or_default())
    }
}

/// The origin of an id.
#[derive(Clone, Copy)]
enum TokenSource {
    Nothing,
    /// Index into the model's pieces.
    Piece(u32),
    /// Index into the added tokens.
    Added(u32),
}

/// Returns the token bytes of a file.
fn tokens(file: &TokenizerFile<'_>) -> Result<TokenBytes, Error> {
    let pieces = &*pieces(&file.model)?;
    let unknown = unknown_piece(&file.model);
    let (spelling, notes) = PieceDecoding::of(file)?;
    let fuses = fuses_before_decoding(file);
    let sources = sources(pieces, &file.added_tokens)?;
    let mut tokens = TokenBytes { offsets: vec![0], notes, ..TokenBytes::default() };
    let mut kept = TokenRemarks::default();
    let mut bytes = Vec::new();
    for (id, source) in sources.iter().enumerate() {
        let id = id as u32;
        bytes.clear();
        match *source {
            TokenSource::Nothing => kept.holes.push(id),
            TokenSource::Piece(at) => {
                let piece = &*pieces[at as usize].0;
                if unknown == Some(piece) {
                    tokens.names.push((piece.to_owned(), id));
                } else {
                    if let Err(unknown) = spelling.spell(piece, &mut bytes) {
                        if fuses {
                            return Err(unknown_character(piece, id, &unknown));
                        }
                        bytes.clear();
                        bytes.extend_from_slice(piece.as_bytes());
                        kept.literal.push(id);
                    }
                    if bytes.is_empty() {
                        kept.empty.push(id);
                    }
                }
            }
            TokenSource::Added(at) => {
                let added = &file.added_tokens[at as usize];
                if added.special {
                    tokens.names.push((added.content.clone(), id));
                } else {
                    spelling.spell_added(&added.content, &mut bytes);
                    kept.look_at(added, &bytes);
                }
            }
        }
        tokens.push(&bytes)?;
    }
    kept.report(&mut tokens);
    Ok(tokens)
}

/// Ids that deserve a remark to the user.
#[derive(Default)]
struct TokenRemarks {
    holes: Vec<u32>,
    empty: Vec<u32>,
    changed: Vec<u32>,
    /// Byte-level pieces with characters that stand for no byte.
    literal: Vec<u32>,
    stripping: Vec<u32>,
    normalized: Vec<u32>,
}

impl TokenRemarks {
    /// Records the remarks about an added token that is not special.
    fn look_at(&mut self, added: &AddedToken, bytes: &[u8]) {
        if bytes.is_empty() {
            self.empty.push(added.id);
        }
        if bytes != added.content.as_bytes() {
            self.changed.push(added.id);
        }
        if added.lstrip || added.rstrip {
            self.stripping.push(added.id);
        }
        if added.normalized {
            self.normalized.push(added.id);
        }
    }

    fn report(&self, tokens: &mut TokenBytes) {
        tokens.note(&self.holes, "missing from the file, never allowed");
        tokens.note(&self.empty, "without bytes, never allowed");
        tokens.note(
            &self.changed,
            "that decode to a different string than they match when encoding; their bytes are the \
             decoded ones",
        );
        tokens.note(
            &self.literal,
            "with characters that represent no byte; their bytes are the characters' UTF-8",
        );
        tokens.note(&self.stripping, "that absorb surrounding whitespace when text is encoded");
        tokens.note(&self.normalized, "matched only after normalization when text is encoded");
    }
}

/// A piece and its id.
type NumberedPiece<'m> = (Cow<'m, str>, u32);

/// Returns the pieces of a model that we can decode, or the reason why we cannot.
fn pieces<'m>(model: &'m BpeModel<'_>) -> Result<Cow<'m, [NumberedPiece<'m>]>, Error> {
    let hint = "pass the bytes of each token to `Vocabulary.from_tokens` if you know them";
    let old_bpe = model.merges.is_some();
    match model.kind.as_deref() {
        Some("BPE" | "Unigram" | "WordPiece") => {}
        None if old_bpe => {}
        kind => {
            let kind = kind.unwrap_or("(missing)");
            return Err(Error::new(format!(
                "model type must be BPE, Unigram or WordPiece, got {kind}"
            ))
            .at("model.type")
            .hint(hint));
        }
    }
    let marks = [
        ("continuing_subword_prefix", &model.continuing_subword_prefix),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ];
    let is_words = model.kind.as_deref() == Some("WordPiece");
    for (name, mark) in marks.into_iter().filter(|_| !is_words) {
        if let Some(mark) = mark.as_deref().filter(|mark| !mark.is_empty()) {
            return Err(Error::new(format!(
                "the bytes of pieces marked with {mark:?} are unknown"
            ))
            .at(format!("model.{name}"))
            .hint(hint));
        }
    }
    match &model.vocab {
        VocabPieces::Map(pieces) if !is_unigram(model) => Ok(Cow::Borrowed(pieces)),
        VocabPieces::Scored(pieces) if is_unigram(model) => {
            let ids = pieces.iter().zip(0u32..);
            Ok(ids.map(|((piece, _), id)| (Cow::Borrowed(&**piece), id)).collect())
        }
        VocabPieces::Scored(_) | VocabPieces::Map(_) if is_unigram(model) => Err(Error::new(
            "the vocab of a Unigram model must be a list of pieces with their scores",
        )
        .at("model.vocab")),
        _ => Err(Error::new("the vocab must be a map from pieces to ids").at("model.vocab")),
    }
}

fn is_unigram(model: &BpeModel<'_>) -> bool {
    model.kind.as_deref() == Some("Unigram")
}

/// Returns the piece for text that no other piece covers.
fn unknown_piece<'m>(model: &'m BpeModel<'_>) -> Option<&'m str> {
    match (&model.vocab, model.unk_id) {
        (VocabPieces::Scored(pieces), Some(id)) => Some(&pieces.get(id as usize)?.0),
        _ => model.unk_token.as_deref(),
    }
}

/// Returns the origin of each id. Fails if an id or a piece occurs twice.
fn sources(
    pieces: &[(Cow<'_, str>, u32)],
    added: &[AddedToken],
) -> Result<Vec<TokenSource>, Error> {
    let ids = pieces.iter().map(|(_, id)| *id).chain(added.iter().map(|added| added.id));
    let len = ids.max().map_or(0, |id| id as usize + 1);
    if len == 0 {
        return Err(Error::new("the vocab must not be empty").at("model.vocab"));
    }
    if len > MAX_IDS {
        return Err(Error::new(format!("token id {} exceeds the limit of {MAX_IDS}", len - 1)));
    }
    let mut sources = vec![TokenSource::Nothing; len];
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    known.reserve(pieces.len());
    for (at, (piece, id)) in pieces.iter().enumerate() {
        if let TokenSource::Piece(other) = sources[*id as usize] {
            let other = quoted(&pieces[other as usize].0);
            return Err(Error::new(format!("id {id} is already used by {other}")).at(place(piece)));
        }
        if let Some(other) = known.insert(piece, *id) {
            return Err(Error::new(format!("this piece already has id {other}")).at(place(piece)));
        }
        sources[*id as usize] = TokenSource::Piece(at as u32);
    }
    for (at, token) in added.iter().enumerate() {
        let id = token.id;
        let conflict = match (known.insert(&token.content, id), sources[id as usize]) {
            (Some(other), _) if other != id => format!("this token already has id {other}"),
            (None, TokenSource::Piece(other)) => {
                format!("id {id} is already used by {}", quoted(&pieces[other as usize].0))
            }
            (_, TokenSource::Added(other)) => {
                format!("id {id} is already used by added_tokens[{other}]")
            }
            _ => {
                sources[id as usize] = TokenSource::Added(at as u32);
                continue;
            }
        };
        return Err(Error::new(conflict).at(format!("added_tokens[{at}]")));
    }
    Ok(sources)
}

fn unknown_character(piece: &str, id: u32, unknown: &UnmappedCharacter) -> Error {
    Error::new(format!(
        "the piece with id {id} contains the character {:?}, which represents no byte, and the \
         decoder joins all pieces before decoding them",
        unknown.0
    ))
    .at(place(piece))
    .hint("if it is a special token, list it in `added_tokens` with `\"special\": true`")
}

fn place(piece: &str) -> String {
    format!("model.vocab[{}]", quoted(piece))
}

/// Formats a piece as a JSON string.
fn quoted(piece: &str) -> String {
    serde_json::to_string(piece).unwrap_or_else(|_| format!("{piece:?}"))
}
