//! By how much the segmentation through the end of a token leads all others.
//!
//! ```text
//!  open pieces ──╮     ╭── pieces begun inside the token, completed by the rest
//!  read so far   │ t o k e n │ r e s t …
//!                            through the end of the token: leads by the difference of the scores
//! ```
//!
//! Whether a boundary stays in the best segmentation depends on the pieces that cross it. Those that
//! begin inside the token are the same in every context, and so is the *lead* over them. An open
//! piece matters only if it ends inside the token, where it may raise the score of a piece that
//! begins there, or if it goes on after the token. What it raises is compared with the lead.
//!
//! Leads are computed without rounding in mind. They count only where they exceed by far what
//! rounding can change.

use formalm_core::char_len;

use super::best_path::UnigramModel;
use super::open_pieces::OpenPieces;
use super::piece_trie::{ROOT, is_char_start};

/// A lead counts if it exceeds the margin of rounding this many times: both segmentations are longer
/// by the token than those that the margin is made for, and leads are rounded too.
const SAFE_MARGINS: f64 = 4.0;

/// The leads of a model.
#[derive(Clone, Copy, Debug)]
pub struct BoundaryLeads<'a>(pub(crate) &'a UnigramModel);

impl BoundaryLeads<'_> {
    /// Returns by how much the best segmentation through the end of a token exceeds those that cross
    /// it, if no piece is open before the token and `rest` follows it; negative if one of these is
    /// better. If `is_open`, more text may follow. Returns `None` if that is not decided.
    pub fn lead(self, token: u32, rest: &[u8], is_open: bool) -> Option<f64> {
        self.0.boundary_lead(token, rest, is_open)
    }

    /// Returns `true` if the lead of a token decides whether the boundary after it stays, whatever is
    /// open before it, given that the token may stand there.
    pub fn decides(self, open: &OpenPieces, token: u32, lead: f64) -> bool {
        self.0.keeps_lead(open, token, lead)
    }

    /// Returns `true` if every segmentation of a text that the splitter admits inside a pre-token has
    /// canonical tokens.
    pub fn encodes_however_split(self, text: &[u8]) -> bool {
        self.0.encodes_however_split(text)
    }
}

/// The two kinds of segmentations.
const THROUGH: usize = 0;
const CROSSING: usize = 1;

/// The segmentations of the text after a token, up to each offset.
struct Race<'a> {
    model: &'a UnigramModel,
    rest: &'a [u8],
    /// The text may go on.
    is_open: bool,
    /// Per offset, the best score of each kind.
    best: Vec<[f64; 2]>,
    /// Whether each kind may have pieces that end after the text.
    beyond: [bool; 2],
    /// The last offset that a piece reaches.
    reached: usize,
}

impl Race<'_> {
    /// Adds the pieces that go on from a node at an offset. Returns `true` if the character there is
    /// one of them.
    fn offer(&mut self, start: usize, mut node: u32, score: f64, kind: usize) -> bool {
        let trie = &self.model.trie;
        let width = self.rest.get(start).map_or(0, |&first| char_len(first));
        let mut is_piece = false;
        for (at, &byte) in self.rest.iter().enumerate().skip(start) {
            let Some(child) = trie.child(node, byte) else { return is_piece };
            node = child;
            if let Some(piece) = trie.piece(node) {
                is_piece = is_piece || at + 1 == start + width;
                self.reach(at + 1, score + trie.pieces[piece as usize].score, kind);
            }
        }
        self.beyond[kind] |= self.is_open && trie.has_children(node);
        is_piece
    }

    fn reach(&mut self, end: usize, score: f64, kind: usize) {
        let best = &mut self.best[end][kind];
        *best = best.max(score);
        self.reached = self.reached.max(end);
    }

    /// Adds what follows an offset: all pieces that begin there, and a character without a piece.
    fn go_on(&mut self, start: usize, score: f64, kind: usize) {
        if self.offer(start, ROOT, score, kind) {
            return;
        }
        let end = start + char_len(self.rest[start]);
        match end <= self.rest.len() {
            true => self.reach(end, score + self.model.trie.unknown_score, kind),
            false => self.beyond[kind] = true,
        }
    }

    /// Returns the lead of the segmentations through the start, or `None` if it is not decided.
    fn lead(mut self) -> Option<f64> {
        // The least lead of each kind where the other was given up.
        let mut leads = [f64::INFINITY; 2];
        let mut start = 0;
        loop {
            let [through, crossing] = self.best[start];
            let kind = if through > crossing { THROUGH } else { CROSSING };
            if through.min(crossing) > f64::NEG_INFINITY {
                leads[kind] = leads[kind].min((through - crossing).abs());
                self.best[start][1 - kind] = f64::NEG_INFINITY;
            }
            let ahead = &self.best[start..=self.reached.max(start)];
            let has = |kind: usize| {
                self.beyond[kind] || ahead.iter().any(|scores| scores[kind] > f64::NEG_INFINITY)
            };
            match (has(THROUGH), has(CROSSING)) {
                (true, false) => return Some(leads[THROUGH]),
                (false, true) => return Some(-leads[CROSSING]),
                _ if start >= self.rest.len() => return None,
                _ => {}
            }
            let score = self.best[start][kind];
            if score > f64::NEG_INFINITY {
                self.go_on(start, score, kind);
            }
            start = (start + char_len(self.rest[start])).min(self.rest.len());
        }
    }
}

impl UnigramModel {
    /// Returns the lead of a token: see [`BoundaryLeads::lead`].
    pub(crate) fn boundary_lead(&self, token: u32, rest: &[u8], is_open: bool) -> Option<f64> {
        let piece = &self.trie.pieces[self.piece_of(token)? as usize];
        // What rounding may change is known for this much text.
        let (rest, is_open) = match rest.get(..self.longest()) {
            Some(first) if first.len() < rest.len() => (first, true),
            _ => (rest, is_open),
        };
        let (best, beyond) = (vec![[f64::NEG_INFINITY; 2]; rest.len() + 1], [false; 2]);
        let mut race = Race { model: self, rest, is_open, best, beyond, reached: 0 };
        race.best[0][THROUGH] = 0.0;
        let mut node = ROOT;
        for (start, &byte) in piece.text.iter().enumerate() {
            if is_char_start(byte)
                && let Some(open) = self.trie.node_of(&piece.text[start..])
            {
                let score = self.trie.best_score(node) - piece.score;
                race.offer(0, open, score, CROSSING);
            }
            node = self.trie.child(node, byte)?;
        }
        race.lead()
    }

    /// Returns `true` if a lead decides: see [`BoundaryLeads::decides`].
    pub(crate) fn keeps_lead(&self, from: &OpenPieces, token: u32, lead: f64) -> bool {
        if !from.character.is_empty() || !self.has_room(from.base) {
            return false;
        }
        let margin = SAFE_MARGINS * self.margin(from.base);
        // Open pieces only raise what crosses the boundary.
        lead < -margin || lead > margin && lead > margin + self.raised_by_open(from, token, margin)
    }

    /// Returns by how much open pieces raise the best score inside a token at most; infinite if one
    /// goes on after the token.
    fn raised_by_open(&self, from: &OpenPieces, token: u32, margin: f64) -> f64 {
        let Some(piece) = self.piece_of(token) else { return f64::INFINITY };
        let piece = &self.trie.pieces[piece as usize];
        let mut raised: f64 = 0.0;
        for &(mut node, score) in &from.pairs {
            let score = score - from.base;
            let mut is_inside = false;
            for (at, &byte) in piece.text.iter().enumerate() {
                let Some(child) = self.trie.child(node, byte) else {
                    is_inside = true;
                    break;
                };
                node = child;
                let end = at + 1;
                if end < piece.text.len()
                    && let Some(other) = self.trie.piece(node)
                    && let Some(begun) = self.trie.node_of(&piece.text[..end])
                {
                    let sum = score + self.trie.pieces[other as usize].score;
                    raised = raised.max(sum - self.trie.best_score(begun));
                }
            }
            if !is_inside
                && self.trie.has_children(node)
                && score - piece.score + self.trie.best_overlap(node) >= -margin
            {
                return f64::INFINITY;
            }
        }
        raised
    }
}
