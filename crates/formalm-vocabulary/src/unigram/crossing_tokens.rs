//! The tokens that an open piece forbids.
//!
//! A token `t = u v` is not canonical at a position if some open piece, completed by `u`, and the
//! best segmentation of `v` have a better score than `t`, or an equal score and `v` is empty: of
//! equal scores the earlier start of the last piece wins.
//!
//! So an open piece at a node forbids a token iff its score so far, relative to the end of the last
//! token, exceeds a bound that depends on the node and the token alone. The tokens of a node are
//! found once, sorted by this bound: a walk of the trie from the root along `u`, and at the same time
//! from the node. Where a piece ends, the pieces below the root's walk are compared by their slack.

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, LruCache};

use super::best_path::UnigramModel;
use super::open_pieces::OpenPieces;
use super::piece_trie::ROOT;

/// Size of the kept lists of tokens, in bytes: those of some thousand nodes. 4 MiB; chosen, not
/// measured.
const MAX_LIST_BYTES: usize = 4 << 20;

/// The lists cover states up to this magnitude of the sum so far, which is a text of about 3,000
/// tokens. Chosen, not measured.
const LISTED_BASE: f64 = (1u32 << 15) as f64;

/// A token that a piece open at a node may forbid.
#[derive(Clone, Copy, Debug)]
struct CrossedToken {
    token: u32,
    /// The piece ends where the token does, so that it wins if the scores are equal.
    is_whole: bool,
    /// By how much the open piece and what follows it exceed the score of the token, if both begin
    /// at the end of the last token.
    lead: f64,
}

/// The tokens that a piece open at a node may forbid, by lead, descending.
#[derive(Debug)]
struct CrossedByNode {
    /// All tokens with at least this lead are listed.
    floor: f64,
    tokens: Box<[CrossedToken]>,
}

/// The lists of the nodes that were met.
#[derive(Debug, Default)]
pub(super) struct CrossedTokenLists(
    ForkSafeMutex<LruCache<u32, Arc<CrossedByNode>, MAX_LIST_BYTES>>,
);

impl CrossedTokenLists {
    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.lock().size()
    }
}

impl UnigramModel {
    /// Passes the tokens that are not canonical after `from` to `forbidden`, some several times, and
    /// those that only rounding decides to `near`. Tokens that are never canonical, see
    /// [`UnigramModel::may_occur`], need not be among them.
    pub(crate) fn for_each_forbidden(
        &self,
        from: &OpenPieces,
        mut forbidden: impl FnMut(u32),
        mut near: impl FnMut(u32),
    ) {
        let margin = self.margin(from.base);
        let mut decide = |crossed: CrossedToken, score: f64| {
            let gap = score + crossed.lead;
            if gap > margin || (crossed.is_whole && self.is_exact() && gap == 0.0) {
                forbidden(crossed.token);
            } else if gap >= -margin && !self.is_exact() {
                near(crossed.token);
            }
        };
        for &(node, score) in &from.pairs {
            let score = score - from.base;
            let least = -margin - score;
            let listed = self.crossed_by(node);
            if listed.floor <= least {
                let crossed = listed.tokens.iter().take_while(|crossed| crossed.lead >= least);
                crossed.for_each(|&crossed| decide(crossed, score));
            } else {
                self.find_crossed(node, least, |crossed| decide(crossed, score));
            }
        }
        if !self.is_exact() {
            self.near_gaps(margin, near, forbidden);
        }
    }

    /// Returns the tokens that a piece open at a node may forbid.
    fn crossed_by(&self, node: u32) -> Arc<CrossedByNode> {
        if let Some(known) = self.crossed.0.lock().get(&node) {
            return known;
        }
        // The segmentation through the end of the last token has at least the score of the text of
        // the node, up to rounding.
        let floor = self.trie.best_score(node) - 2.0 * self.margin(LISTED_BASE);
        let mut tokens = Vec::new();
        self.find_crossed(node, floor, |crossed| tokens.push(crossed));
        tokens.sort_unstable_by(|one, other| other.lead.total_cmp(&one.lead));
        let bytes = 64 + size_of::<CrossedToken>() * tokens.len();
        let found = Arc::new(CrossedByNode { floor, tokens: tokens.into() });
        self.crossed.0.lock().insert(node, Arc::clone(&found), bytes);
        found
    }

    /// Passes the tokens that a piece open at a node crosses with at least some lead.
    fn find_crossed(&self, node: u32, floor: f64, mut each: impl FnMut(CrossedToken)) {
        let trie = &self.trie;
        let mut pending = vec![(ROOT, node)];
        while let Some((at, open)) = pending.pop() {
            for (byte, next) in trie.children(open) {
                let Some(below) = trie.child(at, byte) else { continue };
                let goes_on = trie.has_children(below);
                if let Some(piece) = trie.piece(next) {
                    let score = trie.pieces[piece as usize].score;
                    let depth = trie.depth(below);
                    if let Some(piece) = trie.piece(below) {
                        let lead = score - trie.slack(piece, depth);
                        if lead >= floor {
                            let token = trie.pieces[piece as usize].token;
                            each(CrossedToken { token, is_whole: true, lead });
                        }
                    }
                    if goes_on && score - trie.least_slack(below) >= floor {
                        trie.for_each_below(below, score - floor, |token, slack| {
                            each(CrossedToken { token, is_whole: false, lead: score - slack });
                        });
                    }
                }
                if goes_on && trie.has_children(next) {
                    pending.push((below, next));
                }
            }
        }
    }
}
