//! The pieces of a Unigram model as a trie over bytes, with the bounds that prune open pieces.

use formalm_core::char_len;
use rustc_hash::FxHashMap;

/// The missing node, piece or token.
pub(crate) const NONE: u32 = u32::MAX;

/// Number of children up to which they are compared one by one. Chosen, not measured.
const FEW_CHILDREN: usize = 8;

/// Number of pieces below a node from which on they are kept sorted by slack. Chosen, not measured.
const MIN_SORTED_PIECES: usize = 64;

/// The root of the trie.
pub(crate) const ROOT: u32 = 0;

/// A piece of a model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnigramPiece {
    /// The text as it occurs in strings: the mark of a space is a space.
    pub(crate) text: Vec<u8>,
    pub(crate) score: f64,
    pub(crate) token: u32,
    /// `false` for a piece that competes with others but whose token has no text, such as a special
    /// token. Strings with it in their segmentation have no canonical tokens.
    pub(crate) has_text: bool,
}

/// The way in which a library adds scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreArithmetic {
    /// Sums of doubles, as in `tokenizers`.
    Double,
    /// Sums in single precision, as in `sentencepiece`. Versions that compare sums in double
    /// precision decide some ties otherwise and are refused when they are compared with this one.
    Single,
}

impl ScoreArithmetic {
    #[inline]
    pub(crate) fn store(self, sum: f64) -> f64 {
        match self {
            ScoreArithmetic::Double => sum,
            ScoreArithmetic::Single => f64::from(sum as f32),
        }
    }
}

/// The trie. Nodes are numbered in preorder, so that the nodes below one are a range.
#[derive(Debug)]
pub(crate) struct PieceTrie {
    /// Children of each node, sorted by byte.
    child_offsets: Vec<u32>,
    child_bytes: Vec<u8>,
    child_nodes: Vec<u32>,
    root_children: Box<[u32; 256]>,
    /// The end of the range of nodes below each node.
    ends: Vec<u32>,
    depths: Vec<u8>,
    /// Per node, the index of the piece that ends there.
    piece_at: Vec<u32>,
    /// The nodes of pieces, ascending, and their slack: see [`PieceTrie::slack`].
    piece_nodes: Vec<u32>,
    slack_offsets: Vec<u32>,
    slack: Vec<f64>,
    /// Per node at the end of a character, the best score of its text.
    best_scores: Vec<f64>,
    /// Per node, the greatest and the least slack at its depth of the pieces below it.
    best_below: Vec<f64>,
    least_below: Vec<f64>,
    /// For nodes above many pieces, these by their slack at its depth, ascending, with their tokens.
    sorted_below: FxHashMap<u32, Box<[(f64, u32)]>>,
    pub(crate) pieces: Vec<UnigramPiece>,
    /// The score of a character that is no piece by itself.
    pub(crate) unknown_score: f64,
}

impl PieceTrie {
    /// Builds the trie of pieces with distinct, nonempty texts of at most 255 bytes.
    pub(crate) fn new(mut pieces: Vec<UnigramPiece>, unknown_score: f64) -> PieceTrie {
        pieces.sort_by(|one, other| one.text.cmp(&other.text));
        let mut parents: Vec<(u32, u8)> = vec![(NONE, 0)];
        let (mut depths, mut piece_at) = (vec![0u8], vec![NONE]);
        let mut path: Vec<u32> = vec![ROOT];
        let mut before: &[u8] = &[];
        for (at, piece) in pieces.iter().enumerate() {
            let shared =
                before.iter().zip(&piece.text).take_while(|(one, other)| one == other).count();
            path.truncate(shared + 1);
            for (depth, &byte) in piece.text.iter().enumerate().skip(shared) {
                let node = parents.len() as u32;
                parents.push((path[depth], byte));
                depths.push(depth as u8 + 1);
                piece_at.push(NONE);
                path.push(node);
            }
            if let Some(&node) = path.last() {
                piece_at[node as usize] = at as u32;
            }
            before = &piece.text;
        }
        let count = parents.len();
        let mut child_offsets = vec![0u32; count + 1];
        for &(parent, _) in &parents[1..] {
            child_offsets[parent as usize + 1] += 1;
        }
        for at in 0..count {
            child_offsets[at + 1] += child_offsets[at];
        }
        let mut next = child_offsets.clone();
        let (mut child_bytes, mut child_nodes) = (vec![0; count - 1], vec![0; count - 1]);
        let mut ends: Vec<u32> = (1..=count as u32).collect();
        let mut root_children = Box::new([NONE; 256]);
        for (node, &(parent, byte)) in parents.iter().enumerate().skip(1) {
            let slot = &mut next[parent as usize];
            child_bytes[*slot as usize] = byte;
            child_nodes[*slot as usize] = node as u32;
            *slot += 1;
            if parent == ROOT {
                root_children[usize::from(byte)] = node as u32;
            }
        }
        for node in (1..count).rev() {
            let parent = parents[node].0 as usize;
            ends[parent] = ends[parent].max(ends[node]);
        }
        let piece_nodes = (0..count as u32).filter(|&node| piece_at[node as usize] != NONE);
        let mut trie = PieceTrie {
            child_offsets,
            child_bytes,
            child_nodes,
            root_children,
            ends,
            depths,
            piece_nodes: piece_nodes.collect(),
            piece_at,
            slack_offsets: Vec::new(),
            slack: Vec::new(),
            best_scores: Vec::new(),
            best_below: vec![f64::NEG_INFINITY; count],
            least_below: vec![f64::INFINITY; count],
            sorted_below: FxHashMap::default(),
            pieces,
            unknown_score,
        };
        trie.find_slack();
        trie.sort_by_slack();
        trie.find_best_scores(&parents);
        trie
    }

    /// Returns the child of a node.
    #[inline]
    pub(crate) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        if node == ROOT {
            let child = self.root_children[usize::from(byte)];
            return (child != NONE).then_some(child);
        }
        let range = self.child_range(node);
        let bytes = &self.child_bytes[range.clone()];
        let at = match bytes.len() {
            0..=FEW_CHILDREN => bytes.iter().position(|&other| other >= byte)?,
            _ => bytes.partition_point(|&other| other < byte),
        };
        (*bytes.get(at)? == byte).then(|| self.child_nodes[range.start + at])
    }

    fn child_range(&self, node: u32) -> std::ops::Range<usize> {
        self.child_offsets[node as usize] as usize..self.child_offsets[node as usize + 1] as usize
    }

    /// Returns the children of a node with their bytes, ascending.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = (u8, u32)> + '_ {
        let range = self.child_range(node);
        self.child_bytes[range.clone()].iter().copied().zip(self.child_nodes[range].iter().copied())
    }

    #[inline]
    pub(crate) fn has_children(&self, node: u32) -> bool {
        self.ends[node as usize] > node + 1
    }

    #[inline]
    pub(crate) fn depth(&self, node: u32) -> usize {
        usize::from(self.depths[node as usize])
    }

    /// Returns the piece that ends at a node.
    #[inline]
    pub(crate) fn piece(&self, node: u32) -> Option<u32> {
        let piece = self.piece_at[node as usize];
        (piece != NONE).then_some(piece)
    }

    /// Returns the pieces at and below a node with their nodes.
    pub(crate) fn pieces_from(&self, node: u32) -> &[u32] {
        let start = self.piece_nodes.partition_point(|&other| other < node);
        let end = self.piece_nodes.partition_point(|&other| other < self.ends[node as usize]);
        &self.piece_nodes[start..end]
    }

    /// Returns the score of a piece less the best score of its text from a byte offset on; the offset
    /// is not 0. It is infinite inside characters. An open piece completed at that offset beats the
    /// whole piece iff its own score, relative to the start, is greater.
    #[inline]
    pub(crate) fn slack(&self, piece: u32, offset: usize) -> f64 {
        self.slack[self.slack_offsets[piece as usize] as usize + offset]
    }

    /// Returns the score of a piece less that of the best segmentation of its text into several
    /// pieces, if there is any. The piece is never canonical if this is negative.
    pub(crate) fn gap(&self, piece: u32) -> f64 {
        self.slack[self.slack_offsets[piece as usize] as usize]
    }

    /// Returns the best score of the text of a node, which ends with a whole character.
    #[inline]
    pub(crate) fn best_score(&self, node: u32) -> f64 {
        self.best_scores[node as usize]
    }

    /// Returns the node of a text.
    pub(crate) fn node_of(&self, text: &[u8]) -> Option<u32> {
        text.iter().try_fold(ROOT, |node, &byte| self.child(node, byte))
    }

    /// Returns the greatest advantage that an open piece can have over the segmentation through the
    /// end of the last token, if both had the same score so far: the maximum, over the pieces below
    /// the node, of their score less the best score of the text after that end.
    #[inline]
    pub(crate) fn best_overlap(&self, node: u32) -> f64 {
        self.best_below[node as usize]
    }

    /// Returns the least slack at the depth of a node of the pieces below it.
    #[inline]
    pub(crate) fn least_slack(&self, node: u32) -> f64 {
        self.least_below[node as usize]
    }

    /// Returns `true` if a character is a piece by itself.
    #[inline]
    pub(crate) fn is_piece(&self, text: &[u8]) -> bool {
        self.node_of(text).is_some_and(|node| self.piece(node).is_some())
    }

    /// Passes the pieces strictly below a node whose slack at its depth is at most `most`, by token
    /// with that slack.
    pub(crate) fn for_each_below(&self, node: u32, most: f64, mut each: impl FnMut(u32, f64)) {
        if let Some(sorted) = self.sorted_below.get(&node) {
            let few = sorted.iter().take_while(|(slack, _)| *slack <= most);
            return few.for_each(|&(slack, token)| each(token, slack));
        }
        let depth = self.depth(node);
        for &below in self.pieces_from(node) {
            if let Some(piece) = self.piece(below).filter(|_| below != node) {
                let slack = self.slack(piece, depth);
                if slack <= most {
                    each(self.pieces[piece as usize].token, slack);
                }
            }
        }
    }

    fn sort_by_slack(&mut self) {
        let mut sorted_below = FxHashMap::default();
        for node in 1..self.ends.len() as u32 {
            if (self.ends[node as usize] - node) as usize <= MIN_SORTED_PIECES
                || self.least_slack(node) == f64::INFINITY
                || self.pieces_from(node).len() < MIN_SORTED_PIECES
            {
                continue;
            }
            let mut list = Vec::new();
            self.for_each_below(node, f64::MAX, |token, slack| list.push((slack, token)));
            list.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
            sorted_below.insert(node, list.into());
        }
        self.sorted_below = sorted_below;
    }

    /// Finds the best score of each node, given the parents and last bytes of all.
    fn find_best_scores(&mut self, parents: &[(u32, u8)]) {
        let mut scores = vec![f64::NEG_INFINITY; parents.len()];
        scores[ROOT as usize] = 0.0;
        // By depth along the path to a node: the node, the start of the last character and its first
        // byte, and the end of the list of the pieces that have begun and go on.
        let mut path = vec![(ROOT, (0, 0), 0)];
        let mut begun: Vec<(usize, u32)> = Vec::new();
        for (node, &(_, byte)) in parents.iter().enumerate().skip(1) {
            let depth = self.depth(node as u32);
            path.truncate(depth);
            let (_, mut last, end) = path[depth - 1];
            let start = depth.checked_sub(2).map_or(0, |before| path[before].2);
            begun.truncate(end);
            for at in start..end {
                let (from, open) = begun[at];
                begun.extend(self.child(open, byte).map(|child| (from, child)));
            }
            if is_char_start(byte) {
                last = (depth - 1, byte);
                begun.extend(self.child(ROOT, byte).map(|child| (depth - 1, child)));
            }
            path.push((node as u32, last, begun.len()));
            let (char_start, first) = last;
            if depth - char_start != char_len(first) {
                continue;
            }
            let mut best = f64::NEG_INFINITY;
            let mut is_piece = false;
            for &(from, open) in &begun[end..] {
                if let Some(piece) = self.piece(open) {
                    is_piece = is_piece || from == char_start;
                    let score = self.pieces[piece as usize].score;
                    best = best.max(scores[path[from].0 as usize] + score);
                }
            }
            if !is_piece {
                best = best.max(scores[path[char_start].0 as usize] + self.unknown_score);
            }
            scores[node] = best;
        }
        self.best_scores = scores;
    }

    fn find_slack(&mut self) {
        let mut best: Vec<f64> = Vec::new();
        let mut known_alone: FxHashMap<&[u8], bool> = FxHashMap::default();
        let (mut slack, mut offsets) = (Vec::new(), vec![0u32]);
        let (mut best_below, mut least_below) =
            (std::mem::take(&mut self.best_below), std::mem::take(&mut self.least_below));
        for piece in &self.pieces {
            let text = &piece.text[..];
            // The best score from each offset on.
            best.clear();
            best.resize(text.len() + 1, f64::NEG_INFINITY);
            best[text.len()] = 0.0;
            let mut split = f64::NEG_INFINITY;
            for start in (0..text.len()).rev().filter(|&at| is_char_start(text[at])) {
                let width = char_len(text[start]).min(text.len() - start);
                let mut node = ROOT;
                for end in start + 1..=text.len() {
                    let Some(next) = self.child(node, text[end - 1]) else { break };
                    node = next;
                    let Some(other) = self.piece(node) else { continue };
                    let sum = self.pieces[other as usize].score + best[end];
                    if start > 0 || end < text.len() {
                        best[start] = best[start].max(sum);
                    }
                }
                let character = &text[start..start + width];
                let alone =
                    *known_alone.entry(character).or_insert_with(|| self.is_piece(character));
                if !alone {
                    best[start] = best[start].max(self.unknown_score + best[start + width]);
                }
                if start == 0 {
                    split = best[0];
                }
            }
            slack.push(piece.score - split);
            let mut node = ROOT;
            for offset in 1..=text.len() {
                let inside = offset < text.len() && !is_char_start(text[offset]);
                let value = if inside { f64::INFINITY } else { piece.score - best[offset] };
                slack.push(value);
                if let Some(next) = self.child(node, text[offset - 1]) {
                    node = next;
                }
                if !inside && offset < text.len() {
                    let (most, least) =
                        (&mut best_below[node as usize], &mut least_below[node as usize]);
                    (*most, *least) = (most.max(value), least.min(value));
                }
            }
            offsets.push(slack.len() as u32);
        }
        (self.slack, self.slack_offsets) = (slack, offsets);
        (self.best_below, self.least_below) = (best_below, least_below);
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let texts: usize = self.pieces.iter().map(|piece| 48 + piece.text.len()).sum();
        let sorted: usize = self.sorted_below.values().map(|list| 40 + 16 * list.len()).sum();
        42 * self.ends.len() + 8 * self.slack.len() + 8 * self.piece_nodes.len() + sorted + texts
    }
}

#[inline]
pub(crate) fn is_char_start(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}
