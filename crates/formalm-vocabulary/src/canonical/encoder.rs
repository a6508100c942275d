//! A merging tokenizer, taken apart into what decides which sequences of tokens are canonical.

use std::sync::OnceLock;

use formalm_automata::CharSet;
use rustc_hash::{FxHashMap, FxHashSet};

use super::merges::Merges;
use super::neighbours::Neighbours;
use super::pretokenizer::Divisions;
use super::reading::{Symbols, added_texts, check_model, prepends, refused};
use super::relation::Relation;
use super::shared::Reading;
use super::splitter::{Mark, Splitter};
use super::wholes::{Path, Wholes};
use crate::tokenizer::{AddedToken, Pieces, Spelling, TokenizerFile};
use crate::tokens::MOST_IDS;
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

/// A tokenizer that merges.
#[derive(Debug)]
pub struct Encoder {
    pub(super) relation: Relation,
    pub(super) splitter: Splitter,
    pub(super) symbols: Symbols,
    pub(super) wholes: Wholes,
    /// Whole pieces and added tokens by their text.
    pub(super) by_text: FxHashMap<Vec<u8>, u32>,
    pub(super) kinds: Vec<Kind>,
    /// Text gets a space in front before it is encoded.
    pub(super) prepends: bool,
    pub(super) reading: OnceLock<Reading>,
    pub(super) neighbours: Neighbours,
}

impl Encoder {
    /// Takes the tokenizer of a file apart.
    ///
    /// # Errors
    ///
    /// It does not merge, or does something that we cannot follow exactly.
    pub fn from_tokenizer_json(data: &[u8]) -> Result<Encoder, Error> {
        let file = TokenizerFile::parse(data)?;
        check_model(&file.model)?;
        let (spelling, _) = Spelling::of(&file)?;
        let prepends = prepends(&file, &spelling)?;
        let mut divisions = Divisions::read(&file.pre_tokenizer)?;
        if divisions.byte_level != (spelling == Spelling::ByteLevel) {
            return Err(refused("its pre-tokenizer and its decoder spell bytes differently")
                .at("pre_tokenizer"));
        }
        let added = added_texts(&file)?;
        divisions.cut_out(&added)?;
        let merges = Merges::read(&file.model)?;
        let byte_level = divisions.byte_level;
        let symbols = Symbols::read(&file.model, &merges, &spelling, byte_level)?;
        // A space is turned into its mark, so that no text keeps a mark of its own.
        let never = match byte_level {
            true => CharSet::empty(),
            false => CharSet::single('\u{2581}'),
        };
        let (list, characters) = (divisions.at_least_one()?, symbols.characters());
        let splitter = Splitter::new(list, !added.is_empty(), &characters, &never)?;
        Encoder::assemble(&file, &spelling, merges, symbols, splitter, (&added, prepends))
    }

    fn assemble(
        file: &TokenizerFile<'_>,
        spelling: &Spelling,
        merges: Merges,
        symbols: Symbols,
        splitter: Splitter,
        (added, prepends): (&[&AddedToken], bool),
    ) -> Result<Encoder, Error> {
        let Pieces::Map(pieces) = &file.model.vocab else {
            return Err(refused("it has no map of pieces"));
        };
        let mut unreachable: FxHashMap<u32, Option<Vec<u32>>> =
            merges.unreachable.into_iter().collect();
        let ids = pieces.iter().map(|(_, id)| *id).chain(added.iter().map(|token| token.id));
        let len = ids.max().map_or(0, |id| id as usize + 1);
        if len > MOST_IDS {
            return Err(Error::new(format!("ids are beyond {MOST_IDS}")).at("added_tokens"));
        }
        let mut kinds = vec![Kind::Never; len];
        let mut by_text: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
        let special: FxHashSet<u32> =
            file.added_tokens.iter().filter(|token| token.special).map(|token| token.id).collect();
        for (piece, id) in pieces {
            if merges.relation.is_reachable(*id) {
                kinds[*id as usize] = Kind::Merged;
            } else if file.model.ignore_merges {
                let mut bytes = Vec::new();
                // What is spelled in other characters is no piece of any text.
                if spelling.spell(piece, &mut bytes).is_err() || bytes.is_empty() {
                    continue;
                }
                if special.contains(id) {
                    // Not text, unless a text has it as a whole piece.
                    if splitter.pieces(&bytes).is_some_and(|pieces| pieces.len() == 1) {
                        let message = format!("the special token {piece:?} is a piece of text");
                        return Err(refused(&message).at("model.ignore_merges"));
                    }
                    continue;
                }
                kinds[*id as usize] = Kind::Whole;
                by_text.insert(bytes, *id);
            }
        }
        let whole = |id: &u32| kinds[*id as usize] == Kind::Whole;
        let wholes = pieces.iter().map(|(_, id)| *id).filter(whole);
        let wholes =
            Wholes::new(wholes.map(|id| (id, unreachable.remove(&id).flatten())).collect());
        if let Symbols::Characters(_, bytes) = &symbols {
            for (byte, &id) in bytes.iter().enumerate() {
                if kinds[id as usize] != Kind::Never {
                    return Err(refused("its merges make one of the tokens for single bytes"));
                }
                kinds[id as usize] = Kind::Byte(byte as u8);
            }
        }
        for token in added {
            kinds[token.id as usize] = Kind::Added;
            by_text.insert(token.content.as_bytes().to_vec(), token.id);
        }
        let relation = merges.relation;
        Ok(Encoder {
            relation,
            splitter,
            symbols,
            wholes,
            by_text,
            kinds,
            prepends,
            reading: OnceLock::new(),
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
        Ok(())
    }

    /// Where a token comes from.
    #[inline]
    pub fn kind(&self, token: u32) -> Kind {
        self.kinds.get(token as usize).copied().unwrap_or(Kind::Never)
    }

    /// The token of a byte that is part of no symbol; none where every byte is one.
    pub fn byte_token(&self, byte: u8) -> Option<u32> {
        match &self.symbols {
            Symbols::Bytes(_) => None,
            Symbols::Characters(_, bytes) => Some(bytes[usize::from(byte)]),
        }
    }

    /// The token that every merging of a byte begins with; none where symbols are characters.
    pub fn symbol(&self, byte: u8) -> Option<u32> {
        match &self.symbols {
            Symbols::Bytes(ids) => Some(ids[usize::from(byte)]),
            Symbols::Characters(..) => None,
        }
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

    /// The tokens of a text that nothing is put in front of; none if it is not UTF-8.
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
        match &self.symbols {
            Symbols::Bytes(ids) => symbols.extend(piece.iter().map(|&b| ids[usize::from(b)])),
            Symbols::Characters(ids, bytes) => {
                for chunk in piece.utf8_chunks() {
                    for character in chunk.valid().chars() {
                        match ids.get(&character) {
                            Some(&id) => symbols.push(id),
                            None => {
                                let mut buffer = [0; 4];
                                let text = character.encode_utf8(&mut buffer);
                                symbols.extend(text.bytes().map(|b| bytes[usize::from(b)]));
                            }
                        }
                    }
                    symbols.extend(chunk.invalid().iter().map(|&b| bytes[usize::from(b)]));
                }
            }
        }
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
