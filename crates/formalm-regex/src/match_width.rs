//! Minimum and maximum match width of a node, in characters; Python's lookbehind requires them to
//! be equal.

use super::ast::PatternNode;

/// The width that stands for "unbounded"; widths saturate here, as in Python.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// Returns the minimum and maximum number of characters that `node` matches. An empty class counts
/// as one character: it stands for a surrogate, which has a width although no string contains it.
pub(super) fn width(node: &PatternNode) -> (u64, u64) {
    match node {
        PatternNode::Class(_) => (1, 1),
        PatternNode::Concat(parts) => {
            parts.iter().map(width).fold((0, 0), |(low, high), (least, most)| {
                (low.saturating_add(least), high.saturating_add(most))
            })
        }
        PatternNode::Alternation(parts) => parts
            .iter()
            .map(width)
            .fold((UNBOUNDED, 0), |(low, high), (least, most)| (low.min(least), high.max(most))),
        PatternNode::Repeat { node, min, max, .. } => {
            let (least, most) = width(node);
            let most = match max {
                Some(max) => most.saturating_mul(u64::from(*max)),
                None if most == 0 => 0,
                None => UNBOUNDED,
            };
            (least.saturating_mul(u64::from(*min)), most)
        }
        PatternNode::Group { node, .. } | PatternNode::Atomic(node) => width(node),
        PatternNode::Empty
        | PatternNode::Look { .. }
        | PatternNode::TextStart
        | PatternNode::TextEnd
        | PatternNode::WordBoundary { .. } => (0, 0),
    }
}
