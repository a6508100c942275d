//! What a tree means, by trying everything: the slow definition that faster machines are
//! tested against.
//!
//! Exponential in bad cases, like the backtracking engines whose order of preference it follows;
//! inside [`Node::Atomic`] that order decides.

use super::ast::{Node, Pattern};

/// Whether the pattern matches the whole text.
pub(crate) fn matches(pattern: &Pattern, text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let end = characters.len();
    Text(&characters).ends(&pattern.root, 0, &mut |at| at == end)
}

/// A text's characters.
struct Text<'a>(&'a [char]);

/// Is told where a match ends; `true` stops the search.
type Then<'a> = &'a mut dyn FnMut(usize) -> bool;

impl Text<'_> {
    /// Offers the ends of matches of `node` that begin at `at`, best first.
    fn ends(&self, node: &Node, at: usize, then: Then) -> bool {
        match node {
            Node::Empty => then(at),
            Node::Class(class) => {
                self.0.get(at).is_some_and(|&c| class.contains(c)) && then(at + 1)
            }
            Node::Concat(parts) => self.sequence(parts, at, then),
            Node::Alternation(parts) => parts.iter().any(|part| self.ends(part, at, then)),
            Node::Group { node, .. } => self.ends(node, at, then),
            Node::Repeat { .. } => self.repeat(node, 0, None, at, then),
            Node::Atomic(node) => {
                let mut first = None;
                self.ends(node, at, &mut |end| {
                    first = Some(end);
                    true
                });
                first.is_some_and(then)
            }
            Node::Look { ahead, negative, node } => {
                let found = if *ahead {
                    self.ends(node, at, &mut |_| true)
                } else {
                    (0..=at).any(|start| self.ends(node, start, &mut |end| end == at))
                };
                found != *negative && then(at)
            }
            Node::TextStart => at == 0 && then(at),
            Node::TextEnd => at == self.0.len() && then(at),
            Node::WordBoundary { negative, word, empty_fails } => {
                let is_word = |c: Option<&char>| c.is_some_and(|&c| word.contains(c));
                let before = at.checked_sub(1).and_then(|index| self.0.get(index));
                let boundary = is_word(before) != is_word(self.0.get(at));
                let fails = *negative && *empty_fails && self.0.is_empty();
                boundary != *negative && !fails && then(at)
            }
        }
    }

    fn sequence(&self, parts: &[Node], at: usize, then: Then) -> bool {
        match parts.split_first() {
            None => then(at),
            Some((first, rest)) => self.ends(first, at, &mut |end| self.sequence(rest, end, then)),
        }
    }

    /// Continues a repetition that has been through `count` times, the last one from `last`.
    /// Beyond the least count, a time that reads nothing does not count.
    fn repeat(
        &self,
        repeat: &Node,
        count: u32,
        last: Option<usize>,
        at: usize,
        then: Then,
    ) -> bool {
        let Node::Repeat { node, min, max, lazy } = repeat else { return false };
        if *lazy && count >= *min && then(at) {
            return true;
        }
        let may_go_on = max.is_none_or(|max| count < max) && (count < *min || last != Some(at));
        if may_go_on
            && self.ends(node, at, &mut |end| self.repeat(repeat, count + 1, Some(at), end, then))
        {
            return true;
        }
        !*lazy && count >= *min && then(at)
    }
}
