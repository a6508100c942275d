//! The best segmentation of a text, and what a token makes of the open pieces.

use formalm_core::{CharSet, char_len};
use rustc_hash::FxHashSet;

use super::crossing_tokens::CrossedTokenLists;
use super::open_pieces::OpenPieces;
use super::piece_trie::{NONE, PieceTrie, ROOT, ScoreArithmetic, UnigramPiece, is_char_start};
use crate::Error;

/// Sums of this many scores must be exact for scores to be kept relative to the last token. A
/// pre-token of more tokens is out of scope: a million tokens exceed every context window.
const EXACT_ADDITIONS: f64 = (1u64 << 20) as f64;

/// Maximum length of a piece in bytes. SentencePiece trains pieces of at most 16 characters by
/// default.
const MAX_PIECE_BYTES: usize = 255;

/// A Unigram model.
#[derive(Debug)]
pub(crate) struct UnigramModel {
    pub(crate) trie: PieceTrie,
    arithmetic: ScoreArithmetic,
    /// Sums of scores are never rounded.
    exact: bool,
    /// The tokens that open pieces forbid, by node.
    pub(super) crossed: CrossedTokenLists,
    /// The length of the longest piece in bytes.
    longest: usize,
    /// Half a unit in the last place of a stored sum, relative to the sum, times the number of
    /// additions that two segmentations differ in.
    relative_error: f64,
    /// The greatest magnitude of the score of one piece times the longest piece.
    window_score: f64,
    /// Per byte, its token if characters without a piece are spelled in bytes.
    byte_tokens: Option<Box<[u32; 256]>>,
    /// Spaces are written as a mark, whose bytes decoding does not turn into a space.
    marks_spaces: bool,
    /// The piece of each token.
    piece_of: Vec<u32>,
    /// Pairs of the last byte of a character and the byte after it that occur inside a piece.
    adjacent_bytes: Box<[[u64; 4]; 256]>,
    /// The characters beyond ASCII that occur in pieces.
    characters: FxHashSet<char>,
    /// Every string of characters that occur in pieces, or every string if characters are spelled in
    /// bytes, has canonical tokens.
    encodes_all: bool,
    /// Tokens that may be canonical, and whose score is near that of the best segmentation of their
    /// text into several pieces: the difference, ascending. Empty if scores are exact.
    near_gaps: Vec<(f64, u32)>,
}

/// The unit by which a token extends the best segmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    /// A piece.
    Piece,
    /// The byte tokens of one character that is no piece.
    UnknownCharacter,
}

impl UnigramModel {
    /// Builds the model, given the byte tokens, and whether spaces are written as a mark.
    ///
    /// # Errors
    ///
    /// A piece is longer than 255 bytes, or a score is not a number.
    pub(crate) fn new(
        pieces: Vec<UnigramPiece>,
        unknown_score: f64,
        arithmetic: ScoreArithmetic,
        (byte_tokens, marks_spaces): (Option<Box<[u32; 256]>>, bool),
    ) -> Result<UnigramModel, Error> {
        let long = pieces.iter().find(|piece| piece.text.len() > MAX_PIECE_BYTES);
        if let Some(piece) = long {
            let text = String::from_utf8_lossy(&piece.text);
            return Err(Error::new(format!(
                "the piece {text:?} is longer than {MAX_PIECE_BYTES} bytes"
            )));
        }
        let scores = || pieces.iter().map(|piece| piece.score).chain([unknown_score]);
        if scores().any(|score| !score.is_finite()) {
            return Err(Error::new("a score of the model is not a finite number"));
        }
        let most = scores().fold(0.0, |most: f64, score| most.max(score.abs()));
        let lowest = scores().filter_map(lowest_bit).fold(f64::INFINITY, f64::min);
        let bits = match arithmetic {
            ScoreArithmetic::Double => 53,
            ScoreArithmetic::Single => 24,
        };
        let exact = most * EXACT_ADDITIONS <= lowest * (1u64 << bits) as f64;
        let longest = pieces.iter().map(|piece| piece.text.len()).max().unwrap_or(0) as f64;
        let epsilon = 0.5 / (1u64 << (bits - 1)) as f64;
        let tokens = pieces.iter().map(|piece| piece.token as usize + 1).max().unwrap_or(0);
        let has_texts = pieces.iter().all(|piece| piece.has_text);
        let trie = PieceTrie::new(pieces, unknown_score);
        let mut piece_of = vec![NONE; tokens];
        let mut adjacent_bytes = Box::new([[0u64; 4]; 256]);
        let texts = trie.pieces.iter().filter_map(|piece| std::str::from_utf8(&piece.text).ok());
        let characters = texts.flat_map(str::chars).filter(|c| !c.is_ascii()).collect();
        let mut covered = byte_tokens.is_none() || !marks_spaces || trie.is_piece(b" ");
        for (at, piece) in trie.pieces.iter().enumerate() {
            if piece.has_text {
                piece_of[piece.token as usize] = at as u32;
            }
            for pair in piece.text.windows(2).filter(|pair| is_char_start(pair[1])) {
                let row = &mut adjacent_bytes[usize::from(pair[0])];
                row[usize::from(pair[1]) / 64] |= 1 << (pair[1] % 64);
            }
            if byte_tokens.is_none() {
                let mut start = 0;
                while start < piece.text.len() {
                    let end = (start + char_len(piece.text[start])).min(piece.text.len());
                    covered = covered && trie.is_piece(&piece.text[start..end]);
                    start = end;
                }
            }
        }
        let mut model = UnigramModel {
            trie,
            arithmetic,
            exact,
            crossed: CrossedTokenLists::default(),
            longest: longest as usize,
            // Both segmentations have at most as many additions as bytes in the window.
            relative_error: 4.0 * longest.max(1.0) * epsilon,
            window_score: 2.0 * most * longest.max(1.0),
            byte_tokens,
            marks_spaces,
            piece_of,
            adjacent_bytes,
            characters,
            encodes_all: has_texts && covered,
            near_gaps: Vec::new(),
        };
        if !exact {
            let margin = model.margin(model.max_base());
            let gaps = (0..model.trie.pieces.len() as u32)
                .map(|piece| (model.trie.gap(piece), model.trie.pieces[piece as usize].token));
            model.near_gaps = gaps.filter(|(gap, _)| gap.abs() <= margin).collect();
            model.near_gaps.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        Ok(model)
    }

    /// Returns `true` if scores are kept relative to the last token.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Passes the tokens whose own segmentation only rounding decides to `near`, and those of the
    /// others that are never canonical to `never`.
    pub(super) fn near_gaps(
        &self,
        margin: f64,
        mut near: impl FnMut(u32),
        mut never: impl FnMut(u32),
    ) {
        let start = self.near_gaps.partition_point(|&(gap, _)| gap < -margin);
        let end = self.near_gaps.partition_point(|&(gap, _)| gap <= margin);
        self.near_gaps[..start].iter().for_each(|&(_, token)| never(token));
        self.near_gaps[start..end].iter().for_each(|&(_, token)| near(token));
    }

    /// Returns the length of the longest piece in bytes.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns `true` if the sum so far leaves room for one more token and what follows it.
    pub(super) fn has_room(&self, base: f64) -> bool {
        self.exact || base.abs() + 2.0 * self.window_score <= self.max_base()
    }

    /// Returns `true` if every segmentation of a text that the splitter admits has canonical tokens.
    pub(crate) fn encodes_however_split(&self, text: &[u8]) -> bool {
        if self.encodes_all {
            return true;
        }
        let mut start = 0;
        while start < text.len() {
            let width = char_len(text[start]).min(text.len() - start);
            let mut node = ROOT;
            let mut is_piece = false;
            for (at, &byte) in text.iter().enumerate().skip(start) {
                let Some(child) = self.trie.child(node, byte) else { break };
                node = child;
                let Some(piece) = self.trie.piece(node) else { continue };
                is_piece = is_piece || at + 1 == start + width;
                if !self.trie.pieces[piece as usize].has_text {
                    return false;
                }
            }
            if !is_piece && self.byte_tokens_of(&text[start..start + width]).is_none() {
                return false;
            }
            start += width;
        }
        true
    }

    /// Returns `true` if every string that the splitter admits has canonical tokens.
    pub(crate) fn encodes_all(&self) -> bool {
        self.encodes_all
    }

    /// Returns `true` if some piece contains a character that ends with `last` before one that
    /// begins with `next`. If none does, every segmentation has a boundary between the two.
    #[inline]
    pub(crate) fn may_adjoin(&self, last: u8, next: u8) -> bool {
        self.adjacent_bytes[usize::from(last)][usize::from(next) / 64] >> (next % 64) & 1 != 0
    }

    /// Returns `true` if a character beyond ASCII occurs in no piece and is spelled in bytes. Every
    /// segmentation has a boundary before and after it.
    pub(crate) fn is_always_apart(&self, character: char) -> bool {
        !character.is_ascii() && self.has_byte_tokens() && !self.characters.contains(&character)
    }

    /// Returns the piece of a token.
    #[inline]
    pub(crate) fn piece_of(&self, token: u32) -> Option<u32> {
        self.piece_of.get(token as usize).copied().filter(|&piece| piece != NONE)
    }

    /// Returns `true` if a token is a piece that may be canonical somewhere.
    pub(crate) fn may_occur(&self, token: u32) -> bool {
        self.piece_of(token).is_some_and(|piece| {
            self.trie.gap(piece) >= if self.exact { 0.0 } else { -self.margin(self.max_base()) }
        })
    }

    /// Returns the greatest magnitude of a sum up to which states with rounded scores are followed.
    fn max_base(&self) -> f64 {
        match self.arithmetic {
            ScoreArithmetic::Double => 1e12,
            ScoreArithmetic::Single => (1u64 << 20) as f64,
        }
    }

    /// Returns the bound below which a difference of scores is decided by rounding, given the best
    /// score up to the last token.
    #[inline]
    pub(super) fn margin(&self, base: f64) -> f64 {
        if self.exact { 0.0 } else { self.relative_error * (base.abs() + self.window_score) }
    }

    /// Returns the state after a token.  `begins` tells that a pre-token begins with it. Returns
    /// `None` if the token is not canonical there.
    pub(crate) fn step(&self, from: &OpenPieces, token: u32, begins: bool) -> Option<OpenPieces> {
        let start = OpenPieces::default();
        let from = if begins { &start } else { from };
        if from.character.is_empty()
            && let Some(piece) = self.piece_of(token)
        {
            let piece = &self.trie.pieces[piece as usize];
            return self.extend(from, &piece.text, Extension::Piece);
        }
        let byte = self.byte_tokens.as_ref()?.iter().position(|&other| other == token)?;
        self.step_byte(from, byte as u8)
    }

    /// Returns the state after the token of a byte, which is part of a character without a piece.
    pub(crate) fn step_byte(&self, from: &OpenPieces, byte: u8) -> Option<OpenPieces> {
        if from.character.is_empty() != is_char_start(byte) || self.marks_spaces && byte == b' ' {
            return None;
        }
        let mut next = from.clone();
        next.character.push(byte);
        if next.character.len() < char_len(next.character[0]) {
            return Some(next);
        }
        let character = std::mem::take(&mut next.character);
        if self.trie.is_piece(&character) {
            return None;
        }
        self.extend(&next, &character, Extension::UnknownCharacter)
    }

    /// Returns the state after one more unit with a text of whole characters. Returns `None` if the
    /// best segmentation up to its end has another last unit.
    pub(crate) fn extend(
        &self,
        from: &OpenPieces,
        text: &[u8],
        unit: Extension,
    ) -> Option<OpenPieces> {
        debug_assert!(unit == Extension::Piece || text.len() == char_len(text[0]));
        let mut open: Vec<(usize, u32, f64)> = Vec::with_capacity(from.pairs.len() + text.len());
        open.extend(from.pairs.iter().map(|&(node, score)| (BEFORE, node, score)));
        open.push((0, ROOT, from.base));
        let (mut char_start, mut char_score) = (0, from.base);
        for (at, &byte) in text.iter().enumerate() {
            let end = at + 1;
            let mut best: Option<(f64, usize)> = None;
            let mut is_piece = false;
            open.retain_mut(|(start, node, score)| {
                let Some(child) = self.trie.child(*node, byte) else { return false };
                *node = child;
                if let Some(piece) = self.trie.piece(child) {
                    let sum =
                        self.arithmetic.store(self.trie.pieces[piece as usize].score + *score);
                    is_piece = is_piece || *start == char_start;
                    // Of equal scores, that of the earliest start is kept.
                    if best.is_none_or(|(most, _)| sum > most) {
                        best = Some((sum, *start));
                    }
                }
                true
            });
            if end < text.len() && !is_char_start(text[end]) {
                continue;
            }
            if !is_piece {
                let sum = self.arithmetic.store(self.trie.unknown_score + char_score);
                if best.is_none_or(|(most, _)| sum > most) {
                    best = Some((sum, char_start));
                }
            }
            let (score, start) = best?;
            if end < text.len() {
                open.push((end, ROOT, score));
                (char_start, char_score) = (end, score);
            } else if start != 0 {
                return None;
            } else {
                return self.close(&open, score);
            }
        }
        None
    }

    /// Returns the state at the end of a unit, given the starts before it and the best score.
    fn close(&self, open: &[(usize, u32, f64)], score: f64) -> Option<OpenPieces> {
        if !self.exact && score.abs() > self.max_base() {
            return None;
        }
        let margin = self.margin(score);
        let base = if self.exact { 0.0 } else { score };
        let kept = open.iter().filter(|&&(_, node, other)| {
            self.trie.has_children(node) && other - score + self.trie.best_overlap(node) >= -margin
        });
        let pairs =
            kept.map(|&(_, node, other)| (node, if self.exact { other - score } else { other }));
        Some(OpenPieces { base, pairs: pairs.collect(), character: Vec::new() })
    }

    /// Returns `true` if the best segmentation of a pre-token that ends with `rest` goes through the
    /// boundary before it, given that the rest alone has tokens, or has them `however_split`. Reads
    /// only as far as that is open. Returns `None` if all must be read.
    pub(crate) fn keeps_boundary(
        &self,
        from: &OpenPieces,
        (rest, however_split): (&[u8], bool),
    ) -> Option<bool> {
        if !from.character.is_empty() || !(self.exact || however_split) {
            return None;
        }
        // Per offset: the best score, and whether its segmentation goes through the boundary.
        let mut best: Vec<Option<(f64, bool)>> = vec![Some((from.base, true))];
        let offer = |best: &mut Vec<Option<(f64, bool)>>, end: usize, sum: f64, through: bool| {
            let sum = self.arithmetic.store(sum);
            if best.len() <= end {
                best.resize(end + 1, None);
            }
            if best[end].is_none_or(|(most, _)| sum > most) {
                best[end] = Some((sum, through));
            }
        };
        for &(mut node, score) in &from.pairs {
            for (at, &byte) in rest.iter().enumerate() {
                let Some(child) = self.trie.child(node, byte) else { break };
                node = child;
                if let Some(piece) = self.trie.piece(node) {
                    let sum = self.trie.pieces[piece as usize].score + score;
                    offer(&mut best, at + 1, sum, false);
                }
            }
        }
        let mut start = 0;
        while start < rest.len() {
            let mut ahead = best[start..].iter().flatten().map(|one| one.1);
            let first = ahead.next();
            if let Some(through) = first
                && ahead.all(|other| other == through)
            {
                return Some(through);
            }
            let Some((score, through)) = best[start] else { return Some(false) };
            let width = char_len(rest[start]).min(rest.len() - start);
            let mut node = ROOT;
            let mut is_piece = false;
            for (at, &byte) in rest.iter().enumerate().skip(start) {
                let Some(child) = self.trie.child(node, byte) else { break };
                node = child;
                let Some(piece) = self.trie.piece(node) else { continue };
                is_piece = is_piece || at + 1 == start + width;
                let sum = self.trie.pieces[piece as usize].score + score;
                offer(&mut best, at + 1, sum, through);
            }
            if !is_piece {
                offer(&mut best, start + width, self.trie.unknown_score + score, through);
            }
            start += width;
        }
        Some(best.last().copied().flatten().is_some_and(|(_, through)| through))
    }

    /// Appends the tokens of a pre-token, or returns `false` if it has none.
    pub(crate) fn encode(&self, text: &[u8], out: &mut Vec<u32>) -> bool {
        // Per offset: the best score, and the start and piece of the last unit.
        let mut best: Vec<Option<(f64, usize, u32)>> = vec![None; text.len() + 1];
        best[0] = Some((0.0, 0, NONE));
        let mut start = 0;
        while start < text.len() {
            let width = char_len(text[start]).min(text.len() - start);
            let Some((score, ..)) = best[start] else { return false };
            let mut node = ROOT;
            let mut is_piece = false;
            for end in start + 1..=text.len() {
                let Some(child) = self.trie.child(node, text[end - 1]) else { break };
                node = child;
                let Some(piece) = self.trie.piece(node) else { continue };
                is_piece = is_piece || end == start + width;
                let sum = self.arithmetic.store(self.trie.pieces[piece as usize].score + score);
                if best[end].is_none_or(|(most, ..)| sum > most) {
                    best[end] = Some((sum, start, piece));
                }
            }
            if !is_piece {
                let sum = self.arithmetic.store(self.trie.unknown_score + score);
                let end = start + width;
                if best[end].is_none_or(|(most, ..)| sum > most) {
                    best[end] = Some((sum, start, NONE));
                }
            }
            start += width;
        }
        let first = out.len();
        let mut end = text.len();
        while end > 0 {
            let Some((_, start, piece)) = best[end] else { return false };
            if !self.push_unit(&text[start..end], piece, out) {
                return false;
            }
            end = start;
        }
        out[first..].reverse();
        true
    }

    /// Appends the tokens of the rest of a pre-token that ends with `rest`. Returns `false` if the best
    /// segmentation of the pre-token does not begin with the units so far, or if some unit of the
    /// rest has no tokens.
    pub(crate) fn encode_rest(&self, from: &OpenPieces, rest: &[u8], out: &mut Vec<u32>) -> bool {
        let text = [&from.character[..], rest].concat();
        if std::str::from_utf8(&text).is_err() {
            return false;
        }
        // Per offset: the best score, and the start and piece of the last unit.
        let mut best: Vec<Option<(f64, usize, u32)>> = vec![None; text.len() + 1];
        let pairs = from.pairs.iter().map(|&(node, score)| (BEFORE, node, score));
        for (start, mut node, score) in pairs {
            for end in 1..=text.len() {
                let Some(child) = self.trie.child(node, text[end - 1]) else { break };
                node = child;
                let Some(piece) = self.trie.piece(node) else { continue };
                let sum = self.arithmetic.store(self.trie.pieces[piece as usize].score + score);
                if best[end].is_none_or(|(most, ..)| sum > most) {
                    best[end] = Some((sum, start, piece));
                }
            }
        }
        let mut start = 0;
        while start < text.len() {
            let score = if start == 0 { Some(from.base) } else { best[start].map(|one| one.0) };
            let Some(score) = score else { return false };
            let width = char_len(text[start]).min(text.len() - start);
            let mut node = ROOT;
            let mut is_piece = false;
            for end in start + 1..=text.len() {
                let Some(child) = self.trie.child(node, text[end - 1]) else { break };
                node = child;
                let Some(piece) = self.trie.piece(node) else { continue };
                is_piece = is_piece || end == start + width;
                let sum = self.arithmetic.store(self.trie.pieces[piece as usize].score + score);
                if best[end].is_none_or(|(most, ..)| sum > most) {
                    best[end] = Some((sum, start, piece));
                }
            }
            let end = start + width;
            if !is_piece {
                let sum = self.arithmetic.store(self.trie.unknown_score + score);
                if best[end].is_none_or(|(most, ..)| sum > most) {
                    best[end] = Some((sum, start, NONE));
                }
            }
            start = end;
        }
        let before = out.len();
        let mut end = text.len();
        let mut first = end;
        while end > 0 {
            let Some((_, start, piece)) = best[end].filter(|&(_, start, _)| start != BEFORE) else {
                return false;
            };
            if !self.push_unit(&text[start..end], piece, out) {
                return false;
            }
            (first, end) = (end, start);
        }
        out[before..].reverse();
        let is_whole = from.character.is_empty();
        if !is_whole && (first != char_len(text[0]) || self.trie.is_piece(&text[..first])) {
            return false;
        }
        // Bytes that have been read are tokens of their own.
        out.drain(before..before + from.character.len());
        true
    }

    /// Appends the tokens of a unit in reverse, or returns `false` if it has none.
    fn push_unit(&self, text: &[u8], piece: u32, out: &mut Vec<u32>) -> bool {
        if piece != NONE {
            let piece = &self.trie.pieces[piece as usize];
            out.push(piece.token);
            return piece.has_text;
        }
        let Some(bytes) = self.byte_tokens_of(text) else { return false };
        out.extend(text.iter().rev().map(|&byte| bytes[usize::from(byte)]));
        true
    }

    /// Returns the byte tokens for a character without a piece. Those of a space would be the bytes of
    /// its mark, which decoding does not turn into a space.
    fn byte_tokens_of(&self, character: &[u8]) -> Option<&[u32; 256]> {
        self.byte_tokens.as_deref().filter(|_| !self.marks_spaces || character != b" ")
    }

    /// Returns `true` if spaces are written as a mark.
    pub(crate) fn marks_spaces(&self) -> bool {
        self.marks_spaces
    }

    /// Returns `true` if characters without a piece are spelled in bytes.
    pub(crate) fn has_byte_tokens(&self) -> bool {
        self.byte_tokens.is_some()
    }

    /// Returns `true` if a character alone has tokens.
    pub(crate) fn spells_character(&self, character: char) -> bool {
        let mut buffer = [0; 4];
        let text = character.encode_utf8(&mut buffer).as_bytes();
        let node = text.iter().try_fold(ROOT, |node, &byte| self.trie.child(node, byte));
        match node.and_then(|node| self.trie.piece(node)) {
            Some(piece) => self.trie.pieces[piece as usize].has_text,
            None => self.byte_tokens_of(text).is_some(),
        }
    }

    /// Returns the number of token ids up to the last piece.
    pub(crate) fn token_count(&self) -> usize {
        self.piece_of.len()
    }

    /// Returns the characters that occur in pieces with text.
    pub(crate) fn characters(&self) -> CharSet {
        let texts = self.trie.pieces.iter().filter(|piece| piece.has_text);
        let mut list: Vec<char> = texts
            .filter_map(|piece| std::str::from_utf8(&piece.text).ok())
            .flat_map(str::chars)
            .collect();
        list.sort_unstable();
        list.dedup();
        CharSet::from_ranges(list.into_iter().map(|character| (character, character)))
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.trie.memory_bytes()
            + self.crossed.memory_bytes()
            + 4 * self.piece_of.len()
            + 8 * self.characters.len()
            + 8192
    }
}

/// The start of a piece begun before the unit that is read.
const BEFORE: usize = usize::MAX;

/// Returns the value of the lowest bit of a number that is not zero.
fn lowest_bit(number: f64) -> Option<f64> {
    let bits = number.abs().to_bits();
    let (exponent, mantissa) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    if bits == 0 {
        return None;
    }
    let exponent = if exponent == 0 { -1074 } else { exponent - 1075 };
    let zeros = if mantissa == 0 { 52 } else { mantissa.trailing_zeros() as i32 };
    Some(2f64.powi(exponent + zeros))
}
