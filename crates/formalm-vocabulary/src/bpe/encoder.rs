//! A merging tokenizer, taken apart into what decides which sequences of tokens are canonical.

use formalm_automata::SetOnce;
use rustc_hash::FxHashMap;

use super::adjacency::Relation;
use super::adjacency_masks::Neighbours;
use super::base_symbols::Symbols;
use super::encoder_cache::Reading;
use super::pretoken_splitter::{Mark, Splitter};
use super::sources::{sentencepiece, tiktoken, tokenizer_json};
use super::spec::{Description, refused};
use super::whole_tokens::{Path, Wholes};
use crate::token_bytes::MOST_IDS;
use crate::{Error, Vocabulary};

/// Where a token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From merging, or it is a symbol.
    Merged,
    /// It is a piece that is taken whole, and merging does not make it.
    Whole,
    /// A byte of a character that is no symbol.
    Byte(u8),
    /// An added token that is text.
    Added,
    /// The tokenizer makes it of no text.
    Never,
}

/// Tokens by their text.
type ByText = FxHashMap<Vec<u8>, u32>;

/// A tokenizer that merges.
#[derive(Debug)]
pub struct Encoder {
    pub(super) relation: Relation,
    pub(super) splitter: Splitter,
    pub(super) symbols: Symbols,
    pub(super) wholes: Wholes,
    /// Whole pieces and added tokens by their text.
    pub(super) by_text: ByText,
    pub(super) kinds: Vec<Kind>,
    /// Text gets a space in front before it is encoded.
    pub(super) prepends: bool,
    pub(super) reading: SetOnce<Reading>,
    pub(super) neighbours: Neighbours,
}

impl Encoder {
    /// Takes the tokenizer of a `tokenizer.json` apart.
    ///
    /// # Errors
    ///
    /// It does not merge, or does something that we cannot follow exactly.
    pub fn from_tokenizer_json(data: &[u8]) -> Result<Encoder, Error> {
        Encoder::new(tokenizer_json::read(data)?)
    }

    /// Takes an encoding of tiktoken apart: JSON with its `pattern`, its `ranks` by tokens in base
    /// 64, and the `offset` of ids over ranks.
    ///
    /// # Errors
    ///
    /// It is not laid out as one, or does something that we cannot follow exactly.
    pub fn from_tiktoken(data: &[u8]) -> Result<Encoder, Error> {
        Encoder::new(tiktoken::read(data)?)
    }

    /// Takes a SentencePiece model apart.
    ///
    /// # Errors
    ///
    /// It does not merge, or does something that we cannot follow exactly.
    pub fn from_sentencepiece(data: &[u8]) -> Result<Encoder, Error> {
        Encoder::new(sentencepiece::read(data)?)
    }

    fn new(mut description: Description) -> Result<Encoder, Error> {
        let added = description.added.iter().map(|(text, _)| text.as_str());
        description.divisions.cut_out(added)?;
        let (kinds, by_text) = kinds(&description)?;
        let (known, never) = (description.symbols.known(), description.symbols.never());
        let divisions = description.divisions.at_least_one()?;
        let splitter = Splitter::new(divisions, !description.added.is_empty(), &known, &never)?;
        let is_piece = |text: &String| {
            splitter.pieces(text.as_bytes()).is_some_and(|pieces| pieces.len() == 1)
        };
        if let Some(name) = description.reserved.iter().find(|name| is_piece(name)) {
            let message = format!("the special token {name:?} is a piece of text");
            return Err(refused(&message).at("model.ignore_merges"));
        }
        let mut unreachable = description.merges.unreachable;
        let wholes = description.wholes.iter().map(|(_, id)| *id);
        let wholes =
            Wholes::new(wholes.map(|id| (id, unreachable.remove(&id).flatten())).collect());
        Ok(Encoder {
            relation: description.merges.relation,
            splitter,
            symbols: description.symbols,
            wholes,
            by_text,
            kinds,
            prepends: description.prepends,
            reading: SetOnce::new(),
            neighbours: Neighbours::default(),
        })
    }

    /// Checks that a vocabulary is this tokenizer's, and that all text in it is text there.
    ///
    /// # Errors
    ///
    /// It is another's, or an end token is text to the tokenizer.
    pub fn check(&self, vocabulary: &Vocabulary) -> Result<(), Error> {
        let mut text = Vec::new();
        for token in (0..self.kinds.len() as u32).filter(|&id| self.kind(id) != Kind::Never) {
            let Some(bytes) = vocabulary.token_bytes(token) else {
                return Err(Error::new(format!(
                    "token {token} is text to the tokenizer, but not here"
                ))
                .hint("end tokens are special tokens of the tokenizer"));
            };
            // Symbols tell whose vocabulary it is; the rest is made of them.
            if bytes.len() == 1 && self.kind(token) == Kind::Merged {
                text.clear();
                self.merge(bytes, &mut text);
                if text != [token] {
                    return Err(Error::new("the vocabulary is not that of this tokenizer"));
                }
            }
        }
        let mut texts: Vec<_> = self.by_text.iter().collect();
        texts.sort_unstable();
        for (spelled, &token) in texts {
            if vocabulary.token_bytes(token) != Some(spelled) {
                let text = String::from_utf8_lossy(spelled);
                return Err(Error::new(format!(
                    "token {token} stands for the text {text:?}, but spells other bytes"
                ))
                .hint("decoding this added token does not give back its text: use tokenization=\"all\""));
            }
        }
        Ok(())
    }

    /// Where a token comes from.
    #[inline]
    pub fn kind(&self, token: u32) -> Kind {
        self.kinds.get(token as usize).copied().unwrap_or(Kind::Never)
    }

    /// The token of a byte that is part of no symbol; none where every byte is one, or such
    /// bytes have no tokens.
    pub fn byte_token(&self, byte: u8) -> Option<u32> {
        self.symbols.byte_token(byte)
    }

    /// The token that every merging of a byte begins with; none where symbols are characters.
    pub fn symbol(&self, byte: u8) -> Option<u32> {
        match &self.symbols {
            Symbols::Bytes(ids) => Some(ids[usize::from(byte)]),
            Symbols::Characters(..) => None,
        }
    }

    /// The texts of added tokens, in order.
    pub fn added_texts(&self) -> Vec<String> {
        let added = self.by_text.iter().filter(|(_, id)| self.kind(**id) == Kind::Added);
        let mut texts: Vec<String> =
            added.map(|(text, _)| String::from_utf8_lossy(text).into_owned()).collect();
        texts.sort_unstable();
        texts
    }

    /// Where text is cut.
    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Whether spaces are written as a mark, which texts then cannot have themselves.
    pub fn marks_spaces(&self) -> bool {
        matches!(self.symbols, Symbols::Characters(..))
    }

    /// Whether encoding puts a space in front of a text, so that only texts that begin with one
    /// are decoded to themselves.
    pub fn prepends_space(&self) -> bool {
        self.prepends
    }

    /// Whether two tokens may be neighbours within a piece.
    pub fn may_follow(&self, first: u32, second: u32) -> bool {
        let merged = |token| self.relation.is_reachable(token);
        !merged(first) || !merged(second) || self.relation.crossing(first, second).is_none()
    }

    /// The two tokens that merging would join across the border of two that are no neighbours.
    pub fn crossing(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        let merged = |token| self.relation.is_reachable(token);
        if merged(first) && merged(second) { self.relation.crossing(first, second) } else { None }
    }

    /// Hands out, some several times, the tokens that may not follow a token within a piece.
    pub fn not_after(&self, token: u32, each: impl FnMut(&[u32])) {
        self.relation.forbidden(token, true, each);
    }

    /// Hands out, some several times, the tokens that may not precede a token within a piece.
    pub fn not_before(&self, token: u32, each: impl FnMut(&[u32])) {
        self.relation.forbidden(token, false, each);
    }

    /// What the tokens of a piece have been after one more, which `begins` the piece or not; none
    /// if it may not stand there.
    #[inline]
    pub fn path(&self, path: Path, token: u32, begins: bool) -> Option<Path> {
        self.wholes.step(path, token, begins)
    }

    /// Whether a piece may end after tokens.
    #[inline]
    pub fn may_end(&self, path: Path) -> bool {
        self.wholes.may_end(path)
    }

    /// Whether a piece must end after its one token.
    pub fn must_end(&self, path: Path) -> bool {
        path == Path::WHOLE
    }

    /// The tokens of a text that nothing is put in front of; none if no tokens spell it.
    pub fn encode(&self, text: &str) -> Option<Vec<u32>> {
        let pieces = self.splitter.pieces(text.as_bytes())?;
        let mut tokens = Vec::new();
        for (at, &(start, mark)) in pieces.iter().enumerate() {
            let end = pieces.get(at + 1).map_or(text.len(), |next| next.0);
            let piece = &text[start..end];
            let known = self.by_text.get(piece.as_bytes()).copied();
            match known {
                Some(token) if (self.kind(token) == Kind::Added) == (mark == Mark::Added) => {
                    tokens.push(token);
                }
                _ => self.merge(piece.as_bytes(), &mut tokens),
            }
        }
        Some(tokens)
    }

    /// Appends what merging makes of a part of a piece, which may begin and end inside of
    /// characters where symbols are bytes.
    pub fn merge(&self, piece: &[u8], out: &mut Vec<u32>) {
        let mut symbols = Vec::with_capacity(piece.len());
        self.symbols.read(piece, &mut symbols);
        self.relation.rules().merge(&mut symbols, |_, _| ());
        out.append(&mut symbols);
    }

    /// Number of tokens made by a rule of lower rank than one of their parts'.
    pub fn early_count(&self) -> usize {
        self.relation.early_count()
    }

    /// Memory in use, in bytes, to a good approximation.
    pub fn memory_bytes(&self) -> usize {
        let own = self.relation.memory_bytes() + self.splitter.memory_bytes();
        own + 2 * self.kinds.len() + self.shared_bytes()
    }
}

/// Where each token comes from, and those that are looked up by their text.
fn kinds(description: &Description) -> Result<(Vec<Kind>, ByText), Error> {
    let relation = &description.merges.relation;
    let bytes: Vec<u32> =
        (0..=255).filter_map(|byte| description.symbols.byte_token(byte)).collect();
    let added = description.added.iter().map(|(_, id)| *id);
    let ids = added.chain(bytes.iter().copied()).map(|id| id as usize + 1);
    let len = ids.max().unwrap_or_default().max(relation.len());
    if len > MOST_IDS {
        return Err(Error::new(format!("ids are beyond {MOST_IDS}")).at("added_tokens"));
    }
    let mut kinds = vec![Kind::Never; len];
    for id in (0..relation.len() as u32).filter(|&id| relation.is_reachable(id)) {
        kinds[id as usize] = Kind::Merged;
    }
    let mut by_text: ByText = FxHashMap::default();
    for (text, id) in &description.wholes {
        kinds[*id as usize] = Kind::Whole;
        by_text.insert(text.clone(), *id);
    }
    for (byte, &id) in bytes.iter().enumerate() {
        if kinds[id as usize] != Kind::Never {
            return Err(refused("its merges make one of the tokens for single bytes"));
        }
        kinds[id as usize] = Kind::Byte(byte as u8);
    }
    for (text, id) in &description.added {
        kinds[*id as usize] = Kind::Added;
        by_text.insert(text.clone().into_bytes(), *id);
    }
    Ok((kinds, by_text))
}
