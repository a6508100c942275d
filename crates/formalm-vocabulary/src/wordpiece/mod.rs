//! WordPiece tokenizers: the *canonical* tokens of a word are the longest pieces from left to right.
//!
//! ```text
//!  word            u n a f f a b l e
//!  pieces          un  ##aff   ##able        each the longest that begins where the last one ends
//!  open pieces     una…                      a longer piece that the text may still complete
//! ```
//!
//! The first piece of a word is looked up as it is, the others with a mark (`##`). A piece is the
//! longest one iff the text after it completes no longer piece from the same start. The state inside
//! a word is therefore the set of trie nodes at which a longer piece could still appear; a word may
//! end in any of them. If the rest of a word has no piece, the whole word is unknown.
//!
//! Decoding writes a space before every first piece. A text without such spaces, or with others, is
//! not given back and has no canonical tokens; the split steps say so
//! (`bpe/sources/wordpiece.rs`).

#[cfg(test)]
mod random_model_tests;

use crate::unigram::{OpenPieces, PieceTrie, UnigramPiece};

/// The score that marks the state inside a word, also if nothing is open.
const INSIDE: f64 = 1.0;

/// The root of a trie.
const ROOT: u32 = 0;

/// A WordPiece model.
#[derive(Debug)]
pub(crate) struct WordPieceModel {
    /// The pieces that begin a word, without the space before it.
    first: PieceTrie,
    /// The pieces that continue a word, without their mark.
    further: PieceTrie,
    /// Per token, its piece: `true` if it begins a word, and the text.
    piece_of: Vec<Option<(bool, Box<[u8]>)>>,
    /// Pairs of the last byte of a character and the byte after it that occur inside a piece.
    adjacent_bytes: Box<[[u64; 4]; 256]>,
}

impl WordPieceModel {
    /// Builds the model of pieces with distinct texts of at most 255 bytes; scores are ignored.
    pub(crate) fn new(first: Vec<UnigramPiece>, further: Vec<UnigramPiece>) -> WordPieceModel {
        let tokens = first.iter().chain(&further).map(|piece| piece.token as usize + 1);
        let mut piece_of = vec![None; tokens.max().unwrap_or(0)];
        let mut adjacent_bytes = Box::new([[0u64; 4]; 256]);
        for (begins, list) in [(true, &first), (false, &further)] {
            for piece in list {
                if piece.has_text {
                    piece_of[piece.token as usize] = Some((begins, piece.text.clone().into()));
                }
                for pair in piece.text.windows(2) {
                    adjacent_bytes[usize::from(pair[0])][usize::from(pair[1]) / 64] |=
                        1 << (pair[1] % 64);
                }
            }
        }
        WordPieceModel {
            first: PieceTrie::new(first, 0.0),
            further: PieceTrie::new(further, 0.0),
            piece_of,
            adjacent_bytes,
        }
    }

    fn trie(&self, begins: bool) -> &PieceTrie {
        if begins { &self.first } else { &self.further }
    }

    /// Open pieces of a word's beginning have even numbers, others odd ones.
    fn open(begins: bool, node: u32) -> (u32, f64) {
        (2 * node + u32::from(!begins), 0.0)
    }

    fn trie_of(&self, open: u32) -> (&PieceTrie, u32) {
        (self.trie(open.is_multiple_of(2)), open / 2)
    }

    /// Returns the number of token ids up to the last piece.
    pub(crate) fn token_count(&self) -> usize {
        self.piece_of.len()
    }

    /// Returns `true` if a token is a piece with text.
    pub(crate) fn has_text(&self, token: u32) -> bool {
        self.piece_of.get(token as usize).is_some_and(Option::is_some)
    }

    /// Returns `true` if some piece contains a character.
    pub(crate) fn has_character(&self, character: &[u8]) -> bool {
        let contains = |text: &[u8]| text.windows(character.len()).any(|part| part == character);
        self.piece_of.iter().flatten().any(|(_, text)| contains(text))
    }

    /// Returns `true` if some piece contains one byte before the other.
    pub(crate) fn may_adjoin(&self, last: u8, next: u8) -> bool {
        self.adjacent_bytes[usize::from(last)][usize::from(next) / 64] >> (next % 64) & 1 != 0
    }

    /// Returns the state inside a word in which no piece is open.
    pub(crate) fn inside() -> OpenPieces {
        OpenPieces::of_nodes(INSIDE, Vec::new())
    }

    /// Returns the state after a token, which begins a word or not. Returns `None` if it is not the
    /// longest piece, or another one was not.
    pub(crate) fn step(&self, from: &OpenPieces, token: u32, begins: bool) -> Option<OpenPieces> {
        let (is_first, text) = self.piece_of.get(token as usize)?.as_ref()?;
        let is_inside = from.base() == INSIDE;
        if *is_first != begins || is_inside == begins {
            return None;
        }
        let nodes = if begins { Vec::new() } else { self.read(from, text)? };
        let trie = self.trie(begins);
        let own = text.iter().try_fold(ROOT, |node, &byte| trie.child(node, byte))?;
        let mut nodes = nodes;
        if trie.has_children(own) {
            nodes.push(WordPieceModel::open(begins, own));
        }
        Some(OpenPieces::of_nodes(INSIDE, nodes))
    }

    /// Returns the open pieces after a text. Returns `None` if one of them was completed.
    fn read(&self, from: &OpenPieces, text: &[u8]) -> Option<Vec<(u32, f64)>> {
        let mut nodes: Vec<u32> = from.nodes().collect();
        for &byte in text {
            let mut is_completed = false;
            nodes.retain_mut(|open| {
                let (trie, node) = self.trie_of(*open);
                let Some(child) = trie.child(node, byte) else { return false };
                is_completed = is_completed || trie.piece(child).is_some();
                *open = 2 * child + *open % 2;
                trie.has_children(child)
            });
            if is_completed {
                return None;
            }
        }
        Some(nodes.into_iter().map(|open| (open, 0.0)).collect())
    }

    /// Returns `true` inside a word if no piece that is open is completed by a text; `None` before
    /// a word.
    pub(crate) fn keeps_boundary(&self, from: &OpenPieces, text: &[u8]) -> Option<bool> {
        (from.base() == INSIDE).then(|| self.read(from, text).is_some())
    }

    /// Passes the tokens that would complete an open piece, and those that do not begin a word or
    /// do, as `begins` tells.
    pub(crate) fn for_each_forbidden(
        &self,
        from: &OpenPieces,
        begins: bool,
        mut forbidden: impl FnMut(u32),
    ) {
        for piece in self.trie(!begins).pieces.iter().filter(|piece| piece.has_text) {
            forbidden(piece.token);
        }
        let mut pending: Vec<(u32, u32)> = from.nodes().map(|open| (open, ROOT)).collect();
        while let Some((open, at)) = pending.pop() {
            let (trie, node) = self.trie_of(open);
            for (byte, below) in trie.children(node) {
                let Some(further) = self.further.child(at, byte) else { continue };
                if trie.piece(below).is_none() {
                    pending.push((2 * below + open % 2, further));
                    continue;
                }
                for &node in self.further.pieces_from(further) {
                    if let Some(piece) = self.further.piece(node) {
                        forbidden(self.further.pieces[piece as usize].token);
                    }
                }
            }
        }
    }

    /// Appends the tokens of a text from inside a word on, or of a word with `begins`. Returns
    /// `false` if it has none.
    pub(crate) fn encode(&self, mut text: &[u8], mut begins: bool, out: &mut Vec<u32>) -> bool {
        while !text.is_empty() {
            let trie = self.trie(begins);
            let (mut node, mut best) = (ROOT, None);
            for (at, &byte) in text.iter().enumerate() {
                let Some(child) = trie.child(node, byte) else { break };
                node = child;
                if let Some(piece) = trie.piece(child) {
                    best = Some((at + 1, piece));
                }
            }
            let Some((length, piece)) = best else { return false };
            let piece = &trie.pieces[piece as usize];
            if !piece.has_text {
                return false;
            }
            out.push(piece.token);
            (text, begins) = (&text[length..], false);
        }
        true
    }

    /// Appends the tokens of the rest of a word that ends with `rest`. Returns `false` if the longest
    /// pieces of the word do not begin with the tokens so far, or if the rest has no tokens.
    pub(crate) fn encode_rest(&self, from: &OpenPieces, rest: &[u8], out: &mut Vec<u32>) -> bool {
        let begins = from.base() != INSIDE;
        self.read(from, rest).is_some() && self.encode(rest, begins, out)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let texts = self.piece_of.iter().flatten().map(|(_, text)| text.len());
        self.first.memory_bytes()
            + self.further.memory_bytes()
            + 24 * self.piece_of.len()
            + texts.sum::<usize>()
            + 8192
    }
}
