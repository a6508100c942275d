//! Patterns of terminals that look beyond the lexeme.
//!
//! The machine of a terminal sees its own lexeme only. A look-around that could see past its edges
//! would silently mean something else, so it is refused.

use formalm_automata::syntax::Node;

/// Why a pattern cannot be the pattern of a terminal, if it cannot.
pub(super) fn looks_out(node: &Node) -> Option<&'static str> {
    look(node, 0, 0)
}

/// Whether some quantifier prefers fewer.
pub(super) fn is_lazy(node: &Node) -> bool {
    match node {
        Node::Repeat { node, lazy, .. } => *lazy || is_lazy(node),
        Node::Concat(list) | Node::Alternation(list) => list.iter().any(is_lazy),
        Node::Group { node, .. } => is_lazy(node),
        _ => false,
    }
}

/// Whether a pattern always prefers its longest match; `false` may also mean that it was not seen.
pub(super) fn prefers_longest(node: &Node) -> bool {
    match node {
        Node::Class(_) => true,
        Node::Group { node, .. } => prefers_longest(node),
        Node::Repeat { node, lazy, .. } => !lazy && matches!(**node, Node::Class(_)),
        Node::Concat(list) => list.split_last().is_some_and(|(last, list)| {
            prefers_longest(last) && list.iter().all(|one| matches!(one, Node::Class(_)))
        }),
        _ => false,
    }
}

/// Fewest and most characters; `None` is without end.
pub(super) fn width(node: &Node) -> (u64, Option<u64>) {
    match node {
        Node::Class(_) => (1, Some(1)),
        Node::Concat(list) => list.iter().map(width).fold((0, Some(0)), |sum, one| {
            (sum.0 + one.0, sum.1.zip(one.1).map(|(left, right)| left.saturating_add(right)))
        }),
        Node::Alternation(list) => {
            let widths: Vec<_> = list.iter().map(width).collect();
            let most = widths.iter().map(|one| one.1).collect::<Option<Vec<u64>>>();
            (
                widths.iter().map(|one| one.0).min().unwrap_or(0),
                most.map(|most| most.into_iter().max().unwrap_or(0)),
            )
        }
        Node::Repeat { node, min, max, .. } => {
            let (least, most) = width(node);
            let most = match (most, max) {
                (Some(0), _) => Some(0),
                (Some(most), Some(max)) => Some(most.saturating_mul(u64::from(*max))),
                _ => None,
            };
            (least.saturating_mul(u64::from(*min)), most)
        }
        Node::Group { node, .. } | Node::Atomic(node) => width(node),
        _ => (0, Some(0)),
    }
}

/// `before` and `after` are the characters of the lexeme that are there for certain.
fn look(node: &Node, before: u64, after: u64) -> Option<&'static str> {
    match node {
        Node::Empty | Node::Class(_) => None,
        Node::Concat(list) => {
            let widths: Vec<u64> = list.iter().map(|one| width(one).0).collect();
            let total: u64 = widths.iter().sum();
            let mut read = 0;
            for (one, width) in list.iter().zip(widths) {
                let rest = total - read - width;
                if let Some(why) = look(one, before + read, after + rest) {
                    return Some(why);
                }
                read += width;
            }
            None
        }
        Node::Alternation(list) => list.iter().find_map(|one| look(one, before, after)),
        Node::Repeat { node, .. } | Node::Group { node, .. } | Node::Atomic(node) => {
            look(node, before, after)
        }
        Node::Look { ahead, node, .. } => {
            let there = if *ahead { after } else { before };
            if width(node).1.is_some_and(|most| most <= there) {
                return None;
            }
            Some("its look-around can see beyond the lexeme")
        }
        Node::WordBoundary { .. } if before > 0 && after > 0 => None,
        Node::WordBoundary { .. } => Some("its word boundary looks beyond the lexeme"),
        Node::TextStart | Node::TextEnd => Some("its anchor looks beyond the lexeme"),
    }
}
