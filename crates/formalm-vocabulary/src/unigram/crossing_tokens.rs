//! The tokens that an open piece forbids.
//!
//! A token `t = u v` is not canonical at a position if some open piece, completed by `u`, and the
//! best segmentation of `v` have a better score than `t`, or an equal score and `v` is empty: of
//! equal scores the earlier start of the last piece wins.
//!
//! A walk of the trie finds them: from the root along `u`, and at the same time from the node of each
//! open piece. Where an open piece is complete, the pieces below the root's walk are compared by
//! their slack.

use super::best_path::UnigramModel;
use super::open_pieces::OpenPieces;
use super::piece_trie::ROOT;

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
        let open: Vec<(u32, f64)> =
            from.pairs.iter().map(|&(node, score)| (node, score - from.base)).collect();
        let mut pending = vec![(ROOT, open)];
        // The bytes with which open pieces go on, with the nodes that they lead to.
        let mut edges: Vec<(u8, u32, f64)> = Vec::new();
        while let Some((at, open)) = pending.pop() {
            edges.clear();
            for &(node, score) in &open {
                edges.extend(self.trie.children(node).map(|(byte, next)| (byte, next, score)));
            }
            edges.sort_unstable_by_key(|edge| edge.0);
            for edges in edges.chunk_by(|one, other| one.0 == other.0) {
                let Some(below) = self.trie.child(at, edges[0].0) else { continue };
                let mut most = f64::NEG_INFINITY;
                let mut further = Vec::new();
                for &(_, node, score) in edges {
                    if let Some(piece) = self.trie.piece(node) {
                        most = most.max(score + self.trie.pieces[piece as usize].score);
                    }
                    if self.trie.has_children(node) {
                        further.push((node, score));
                    }
                }
                if most > f64::NEG_INFINITY {
                    self.compare(below, most, margin, &mut forbidden, &mut near);
                }
                if !further.is_empty() && self.trie.has_children(below) {
                    pending.push((below, further));
                }
            }
        }
        if !self.is_exact() {
            self.near_gaps(margin, near);
        }
    }

    /// Compares the pieces at and below a node with an open piece that is complete at the node.
    fn compare(
        &self,
        node: u32,
        most: f64,
        margin: f64,
        forbidden: &mut impl FnMut(u32),
        near: &mut impl FnMut(u32),
    ) {
        let trie = &self.trie;
        let depth = trie.depth(node);
        let mut decide = |token: u32, slack: f64, ties: bool| {
            let gap = most - slack;
            if gap > margin || (ties && margin == 0.0 && gap == 0.0) {
                forbidden(token);
            } else if gap >= -margin && margin > 0.0 {
                near(token);
            }
        };
        if let Some(piece) = trie.piece(node) {
            decide(trie.pieces[piece as usize].token, trie.slack(piece, depth), true);
        }
        if trie.has_children(node) && most >= trie.least_slack(node) - margin {
            let limit = most + 2.0 * margin;
            trie.for_each_below(node, limit, |token, slack| decide(token, slack, false));
        }
    }
}
