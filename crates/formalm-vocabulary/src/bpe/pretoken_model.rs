//! The model that turns a pre-token into tokens: merge rules, a best segmentation, or the
//! longest pieces.

use std::sync::Arc;

use formalm_core::CharSet;

use super::encoder::{BpeEncoder, TokenOrigin};
use super::token_set::set_bit;
use super::whole_tokens::PretokenState;
use crate::MaskWords;
use crate::unigram::{BoundaryLeads, OpenPieces, OpenPiecesTable, UnigramModel};
use crate::wordpiece::WordPieceModel;

/// The model of an encoder.
#[derive(Debug)]
pub(super) enum PretokenModel {
    /// Merge rules: the adjacency relation and the whole tokens of the encoder.
    Merges,
    /// The segmentation of highest score.
    Unigram(Box<UnigramModel>),
    /// The longest pieces of each word, from left to right.
    WordPiece(Box<WordPieceModel>),
}

impl PretokenModel {
    fn unigram(&self) -> Option<&UnigramModel> {
        match self {
            PretokenModel::Merges | PretokenModel::WordPiece(_) => None,
            PretokenModel::Unigram(model) => Some(model),
        }
    }

    /// Returns the characters that no token spells, if the base symbols do not say it.
    pub(super) fn unspellable(&self, mark: char) -> Option<CharSet> {
        let model = match self {
            PretokenModel::Merges => return None,
            PretokenModel::WordPiece(_) => return Some(CharSet::empty()),
            PretokenModel::Unigram(model) => model,
        };
        let mark = match model.marks_spaces() {
            true => CharSet::single(mark),
            false => CharSet::empty(),
        };
        if model.has_byte_tokens() {
            return Some(mark);
        }
        Some(model.characters().complement().union(&mark))
    }

    /// Returns `true` if spaces are written as a mark, given whether symbols are characters.
    pub(super) fn marks_spaces(&self, reads_characters: bool) -> bool {
        match self {
            PretokenModel::Merges => reads_characters,
            PretokenModel::WordPiece(_) => false,
            PretokenModel::Unigram(model) => model.marks_spaces(),
        }
    }

    /// Returns the origin of each token of a model other than merge rules.
    pub(super) fn origins(&self) -> Vec<TokenOrigin> {
        let origin = |may_occur| match may_occur {
            true => TokenOrigin::Merged,
            false => TokenOrigin::Never,
        };
        match self {
            PretokenModel::Merges => Vec::new(),
            PretokenModel::Unigram(model) => {
                (0..model.token_count() as u32).map(|id| origin(model.may_occur(id))).collect()
            }
            PretokenModel::WordPiece(model) => {
                (0..model.token_count() as u32).map(|id| origin(model.has_text(id))).collect()
            }
        }
    }

    /// Appends the tokens of a pre-token and returns `true` if it has any. Returns `None` for merge
    /// rules.
    pub(super) fn encode(&self, pretoken: &[u8], out: &mut Vec<u32>) -> Option<bool> {
        match self {
            PretokenModel::Merges => None,
            PretokenModel::Unigram(model) => Some(model.encode(pretoken, out)),
            PretokenModel::WordPiece(model) => {
                Some(model.encode(pretoken.strip_prefix(b" ").unwrap_or(pretoken), true, out))
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            PretokenModel::Merges => 0,
            PretokenModel::Unigram(model) => model.memory_bytes(),
            PretokenModel::WordPiece(model) => model.memory_bytes(),
        }
    }
}

impl BpeEncoder {
    /// Returns `true` if tokens are made by merging, so that the adjacency relation decides which
    /// may follow.
    pub fn is_merging(&self) -> bool {
        matches!(self.model, PretokenModel::Merges)
    }

    /// Returns `true` if the state of a pre-token differs by token, so that groups of tokens leave
    /// it open: see [`BpeEncoder::pretoken_step`].
    pub fn has_open_pieces(&self) -> bool {
        !self.is_merging()
    }

    /// Returns the state inside a pre-token in which no piece is open.
    pub fn fresh_state(&self, open_pieces: &OpenPiecesTable) -> PretokenState {
        match &self.model {
            PretokenModel::Merges | PretokenModel::Unigram(_) => PretokenState::PLAIN,
            PretokenModel::WordPiece(_) => {
                PretokenState::of_number(open_pieces.intern(WordPieceModel::inside()))
            }
        }
    }

    /// Returns `true` if every string that the splitter admits has canonical tokens.
    pub fn encodes_all(&self) -> bool {
        match &self.model {
            PretokenModel::Merges => true,
            PretokenModel::Unigram(model) => model.encodes_all(),
            PretokenModel::WordPiece(_) => false,
        }
    }

    /// Returns the state of a pre-token after one more token, which `begins` the pre-token or not.
    /// Returns `None` if the token may not stand there. States with open pieces are numbered in
    /// `open_pieces`.
    #[inline]
    pub fn pretoken_step(
        &self,
        open_pieces: &OpenPiecesTable,
        from: PretokenState,
        token: u32,
        begins: bool,
    ) -> Option<PretokenState> {
        if self.is_merging() {
            return self.whole_tokens.step(from, token, begins);
        }
        if self.origin(token) == TokenOrigin::Added {
            return begins.then_some(PretokenState::PLAIN);
        }
        let from = open_pieces.get(if begins { 0 } else { from.number() });
        let next = match &self.model {
            PretokenModel::Merges => None,
            PretokenModel::Unigram(model) => model.step(&from, token, begins),
            PretokenModel::WordPiece(model) => model.step(&from, token, begins),
        };
        Some(PretokenState::of_number(open_pieces.intern(next?)))
    }

    /// Returns the open pieces after a token; `Some(None)` if the token may not stand there. Returns
    /// `None` for tokens that are no units of a model with open pieces: see
    /// [`BpeEncoder::pretoken_step`].
    pub fn open_pieces_after(
        &self,
        open_pieces: &OpenPiecesTable,
        from: PretokenState,
        token: u32,
        begins: bool,
    ) -> Option<Option<OpenPieces>> {
        if self.origin(token) == TokenOrigin::Added {
            return None;
        }
        let from = open_pieces.get(if begins { 0 } else { from.number() });
        match &self.model {
            PretokenModel::Merges => None,
            PretokenModel::Unigram(model) => Some(model.step(&from, token, begins)),
            PretokenModel::WordPiece(model) => Some(model.step(&from, token, begins)),
        }
    }

    /// Returns the open pieces of a state.
    pub fn open_pieces_at(
        &self,
        open_pieces: &OpenPiecesTable,
        at: PretokenState,
    ) -> Arc<OpenPieces> {
        open_pieces.get(at.number())
    }

    /// Returns the state of a pre-token with open pieces.
    pub fn numbered(&self, open_pieces: &OpenPiecesTable, open: OpenPieces) -> PretokenState {
        PretokenState::of_number(open_pieces.intern(open))
    }

    /// Returns `true` if the canonical tokens of a pre-token that ends with `rest` begin with those
    /// so far, given that the rest alone has tokens, or has them `however_split`: see
    /// [`BoundaryLeads::encodes_however_split`]. Returns `None` if [`BpeEncoder::encode_rest`] has to
    /// tell.
    pub fn keeps_boundary(
        &self,
        open: &OpenPieces,
        (rest, however_split): (&[u8], bool),
    ) -> Option<bool> {
        match &self.model {
            PretokenModel::Merges => None,
            PretokenModel::Unigram(model) => model.keeps_boundary(open, (rest, however_split)),
            PretokenModel::WordPiece(model) => model.keeps_boundary(open, rest),
        }
    }

    /// Returns the leads of boundaries after tokens, if tokens have scores.
    pub fn boundary_leads(&self) -> Option<BoundaryLeads<'_>> {
        self.model.unigram().map(BoundaryLeads)
    }

    /// Sets the tokens that may not follow a state with open pieces, or not begin a pre-token, and
    /// returns those that have to be asked one by one.
    pub fn forbid_crossed(
        &self,
        open_pieces: &OpenPiecesTable,
        (from, begins): (PretokenState, bool),
        words: &mut MaskWords,
    ) -> Vec<u32> {
        let mut near = Vec::new();
        let from = open_pieces.get(if begins { 0 } else { from.number() });
        let forbid = |token: u32| {
            if (token as usize) < 32 * words.len() {
                set_bit(words, token);
            }
        };
        match &self.model {
            PretokenModel::Merges => {}
            PretokenModel::Unigram(model) => {
                model.for_each_forbidden(&from, forbid, |token| near.push(token));
            }
            PretokenModel::WordPiece(model) => model.for_each_forbidden(&from, begins, forbid),
        }
        near.sort_unstable();
        near.dedup();
        near
    }

    /// Appends the canonical tokens after those so far when the pre-token goes on with `rest` and
    /// ends there. Returns `false` if there are none.
    pub fn encode_rest(
        &self,
        open_pieces: &OpenPiecesTable,
        from: PretokenState,
        rest: &[u8],
        out: &mut Vec<u32>,
    ) -> bool {
        let from = open_pieces.get(from.number());
        match &self.model {
            PretokenModel::Merges => false,
            PretokenModel::Unigram(model) => model.encode_rest(&from, rest, out),
            PretokenModel::WordPiece(model) => model.encode_rest(&from, rest, out),
        }
    }

    /// Returns `true` if a state is inside a character that is spelled in byte tokens.
    pub fn is_inside_character(&self, open_pieces: &OpenPiecesTable, at: PretokenState) -> bool {
        self.model.unigram().is_some() && !open_pieces.get(at.number()).is_between_characters()
    }

    /// Returns `true` if a character is spelled in bytes and occurs in no token, so that every
    /// segmentation has a boundary before and after it. `false` proves nothing.
    pub fn is_always_apart(&self, character: char) -> bool {
        self.model.unigram().is_some_and(|model| model.is_always_apart(character))
    }

    /// Returns `true` if some token contains a character that ends with `last` before one that
    /// begins with `next`.
    pub fn may_adjoin(&self, last: u8, next: u8) -> bool {
        match &self.model {
            PretokenModel::Merges => true,
            PretokenModel::Unigram(model) => model.may_adjoin(last, next),
            PretokenModel::WordPiece(model) => model.may_adjoin(last, next),
        }
    }
}
