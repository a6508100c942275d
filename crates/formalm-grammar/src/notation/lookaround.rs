//! Lookaround of terminal patterns: what a pattern asserts about the input beyond its lexeme.
//!
//! Lookahead beyond the lexeme is checked in parallel to the following lexemes. The input before a
//! lexeme is not stored, so a lookbehind that could see past the lexeme's start is refused;
//! ignoring it would silently change its meaning.

use formalm_regex::PatternNode;

/// The lookaround of a pattern beyond its lexeme.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lookaround {
    /// `true` if it depends on the input after the lexeme.
    pub(super) ahead: bool,
    /// The reason why a terminal cannot have this pattern, if it depends on the input before the
    /// lexeme.
    pub(super) before: Option<&'static str>,
}

impl Lookaround {
    fn and(self, other: Lookaround) -> Lookaround {
        Lookaround { ahead: self.ahead || other.ahead, before: self.before.or(other.before) }
    }
}

/// Returns the lookaround of a pattern beyond its lexeme.
pub(super) fn lookaround_of(node: &PatternNode) -> Lookaround {
    lookaround_within(node, 0, 0)
}

/// Returns `true` if some quantifier is lazy.
pub(super) fn is_lazy(node: &PatternNode) -> bool {
    match node {
        PatternNode::Repeat { node, lazy, .. } => *lazy || is_lazy(node),
        PatternNode::Concat(list) | PatternNode::Alternation(list) => list.iter().any(is_lazy),
        PatternNode::Group { node, .. } => is_lazy(node),
        _ => false,
    }
}

/// Returns `true` if a pattern always prefers its longest match; `false` may also mean that this is
/// unknown.
pub(super) fn prefers_longest(node: &PatternNode) -> bool {
    match node {
        PatternNode::Class(_) => true,
        PatternNode::Group { node, .. } => prefers_longest(node),
        PatternNode::Repeat { node, lazy, .. } => !lazy && matches!(**node, PatternNode::Class(_)),
        PatternNode::Concat(list) => list.split_last().is_some_and(|(last, list)| {
            prefers_longest(last) && list.iter().all(|one| matches!(one, PatternNode::Class(_)))
        }),
        _ => false,
    }
}

/// Returns the minimum and maximum number of characters; `None` is unbounded.
pub(super) fn char_width(node: &PatternNode) -> (u64, Option<u64>) {
    match node {
        PatternNode::Class(_) => (1, Some(1)),
        PatternNode::Concat(list) => list.iter().map(char_width).fold((0, Some(0)), |sum, one| {
            (sum.0 + one.0, sum.1.zip(one.1).map(|(left, right)| left.saturating_add(right)))
        }),
        PatternNode::Alternation(list) => {
            let widths: Vec<_> = list.iter().map(char_width).collect();
            let most = widths.iter().map(|one| one.1).collect::<Option<Vec<u64>>>();
            (
                widths.iter().map(|one| one.0).min().unwrap_or(0),
                most.map(|most| most.into_iter().max().unwrap_or(0)),
            )
        }
        PatternNode::Repeat { node, min, max, .. } => {
            let (least, most) = char_width(node);
            let most = match (most, max) {
                (Some(0), _) => Some(0),
                (Some(most), Some(max)) => Some(most.saturating_mul(u64::from(*max))),
                _ => None,
            };
            (least.saturating_mul(u64::from(*min)), most)
        }
        PatternNode::Group { node, .. } | PatternNode::Atomic(node) => char_width(node),
        _ => (0, Some(0)),
    }
}

/// Computes the lookaround of a node with at least `before` and `after` characters of the lexeme
/// around it.
fn lookaround_within(node: &PatternNode, before: u64, after: u64) -> Lookaround {
    let nothing = Lookaround::default();
    match node {
        PatternNode::Empty | PatternNode::Class(_) => nothing,
        PatternNode::Concat(list) => {
            let widths: Vec<u64> = list.iter().map(|one| char_width(one).0).collect();
            let total: u64 = widths.iter().sum();
            let mut read = 0;
            list.iter().zip(widths).fold(nothing, |found, (one, char_width)| {
                let rest = total - read - char_width;
                let here = lookaround_within(one, before + read, after + rest);
                read += char_width;
                found.and(here)
            })
        }
        PatternNode::Alternation(list) => {
            list.iter().fold(nothing, |found, one| found.and(lookaround_within(one, before, after)))
        }
        PatternNode::Repeat { node, .. }
        | PatternNode::Group { node, .. }
        | PatternNode::Atomic(node) => lookaround_within(node, before, after),
        PatternNode::Look { ahead: true, node, .. } => {
            let most = char_width(node).1;
            let ahead = most.is_none_or(|most| most > after);
            // A lookbehind inside it sees the lexeme so far.
            Lookaround { ahead, ..Lookaround::default() }.and(lookaround_within(node, before, 0))
        }
        PatternNode::Look { node, .. } => {
            let inside = char_width(node).1.is_some_and(|most| most <= before);
            let why = "its lookbehind may reach before the start of the lexeme";
            let before = (!inside).then_some(why);
            Lookaround { before, ..nothing }.and(lookaround_within(node, 0, after))
        }
        PatternNode::WordBoundary { .. } => {
            let why = "its word boundary may be at the start of the lexeme";
            Lookaround { ahead: after == 0, before: (before == 0).then_some(why) }
        }
        PatternNode::TextStart => {
            let why = "its anchor requires the start of the input";
            Lookaround { before: Some(why), ..nothing }
        }
        PatternNode::TextEnd => Lookaround { ahead: true, ..nothing },
    }
}
