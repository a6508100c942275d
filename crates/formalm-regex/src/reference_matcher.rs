//! The reference matcher: the slow, direct definition of a pattern tree, which tests compare with.
//!
//! It is exponential in bad cases, like the backtracking engines whose order of preference it
//! follows. That order decides inside [`PatternNode::Atomic`], and it decides what groups capture.

use super::PatternDialect;
use super::ast::{Pattern, PatternNode};

/// The captures so far; an abandoned path takes its own along.
pub type ReferenceCaptures = Vec<Option<(usize, usize)>>;

/// Returns `true` if the pattern matches the whole string.
pub fn matches(pattern: &Pattern, text: &str) -> bool {
    captures(pattern, text).is_some()
}

/// Returns the captures, in characters, if the pattern matches the whole string.
pub fn captures(pattern: &Pattern, text: &str) -> Option<ReferenceCaptures> {
    let text: Vec<char> = text.chars().collect();
    let whole = ReferenceInput { text: &text, dialect: pattern.dialect, back: false };
    let mut found = None;
    whole.ends(&pattern.root, 0, &vec![None; pattern.groups.len()], &mut |end, captures| {
        found = (end == text.len()).then(|| captures.clone());
        found.is_some()
    });
    found
}

/// The characters of a string, and the direction of reading.
#[derive(Clone, Copy)]
struct ReferenceInput<'a> {
    text: &'a [char],
    dialect: PatternDialect,
    /// Reads from right to left.
    back: bool,
}

/// A continuation that receives the end of a match and its captures; `true` stops the search.
type MatchContinuation<'a> = &'a mut dyn FnMut(usize, &ReferenceCaptures) -> bool;

impl ReferenceInput<'_> {
    /// Offers the ends of matches of `node` that begin at `at`, best first.
    fn ends(
        &self,
        node: &PatternNode,
        at: usize,
        captures: &ReferenceCaptures,
        then: MatchContinuation,
    ) -> bool {
        match node {
            PatternNode::Empty => then(at, captures),
            PatternNode::Class(class) if self.back => {
                self.before(at).is_some_and(|c| class.contains(c)) && then(at - 1, captures)
            }
            PatternNode::Class(class) => {
                self.text.get(at).is_some_and(|&c| class.contains(c)) && then(at + 1, captures)
            }
            PatternNode::Concat(parts) => self.sequence(parts, at, captures, then),
            PatternNode::Alternation(parts) => {
                parts.iter().any(|part| self.ends(part, at, captures, then))
            }
            PatternNode::Group { index, node } => {
                self.ends(node, at, captures, &mut |end, captures| {
                    let mut captures = captures.clone();
                    captures[*index as usize - 1] = Some((at.min(end), at.max(end)));
                    then(end, &captures)
                })
            }
            PatternNode::Repeat { .. } => self.repeat(node, 0, None, at, captures, then),
            PatternNode::Atomic(node) => {
                self.first(node, at, captures).is_some_and(|(end, captures)| then(end, &captures))
            }
            PatternNode::Look { ahead, negative, node } => {
                match (self.look(node, *ahead, at, captures), negative) {
                    (Some(captures), false) => then(at, &captures),
                    (None, true) => then(at, captures),
                    _ => false,
                }
            }
            PatternNode::TextStart => at == 0 && then(at, captures),
            PatternNode::TextEnd => at == self.text.len() && then(at, captures),
            PatternNode::WordBoundary { negative, word, empty_fails } => {
                let is_word = |c: Option<char>| c.is_some_and(|c| word.contains(c));
                let boundary = is_word(self.before(at)) != is_word(self.text.get(at).copied());
                let fails = *negative && *empty_fails && self.text.is_empty();
                boundary != *negative && !fails && then(at, captures)
            }
        }
    }

    fn before(&self, at: usize) -> Option<char> {
        at.checked_sub(1).map(|index| self.text[index])
    }

    /// Returns the best end of `node` by itself.
    fn first(
        &self,
        node: &PatternNode,
        at: usize,
        captures: &ReferenceCaptures,
    ) -> Option<(usize, ReferenceCaptures)> {
        let mut first = None;
        self.ends(node, at, captures, &mut |end, captures| {
            first = Some((end, captures.clone()));
            true
        });
        first
    }

    /// Returns the captures of matching `node` ahead of `at` or before it.
    fn look(
        &self,
        node: &PatternNode,
        ahead: bool,
        at: usize,
        captures: &ReferenceCaptures,
    ) -> Option<ReferenceCaptures> {
        let forwards = ReferenceInput { back: false, ..*self };
        if ahead {
            return forwards.first(node, at, captures).map(|(_, captures)| captures);
        }
        if self.dialect == PatternDialect::Ecma {
            let backwards = ReferenceInput { back: true, ..*self };
            return backwards.first(node, at, captures).map(|(_, captures)| captures);
        }
        // The width is fixed, so only one start can lead here.
        let mut found = (0..=at).rev().filter_map(|start| {
            forwards.first(node, start, captures).filter(|&(end, _)| end == at)
        });
        found.next().map(|(_, captures)| captures)
    }

    fn sequence(
        &self,
        parts: &[PatternNode],
        at: usize,
        captures: &ReferenceCaptures,
        then: MatchContinuation,
    ) -> bool {
        let split = if self.back { parts.split_last() } else { parts.split_first() };
        match split {
            None => then(at, captures),
            Some((first, rest)) => self.ends(first, at, captures, &mut |end, captures| {
                self.sequence(rest, end, captures, then)
            }),
        }
    }

    /// Continues a repetition after `count` iterations. Once that is enough, `last` is where the
    /// last iteration began. An empty iteration is the last one in Python, and is refused in
    /// ECMAScript.
    fn repeat(
        &self,
        repeat: &PatternNode,
        count: u32,
        last: Option<usize>,
        at: usize,
        captures: &ReferenceCaptures,
        then: MatchContinuation,
    ) -> bool {
        let PatternNode::Repeat { node, min, max, lazy } = repeat else { return false };
        let is_empty = last == Some(at);
        if is_empty && self.dialect == PatternDialect::Ecma {
            return false;
        }
        let is_enough = count >= *min;
        if *lazy && is_enough && then(at, captures) {
            return true;
        }
        if max.is_none_or(|max| count < max) && !is_empty {
            let mut captures = captures.clone();
            if self.dialect == PatternDialect::Ecma {
                forget(node, &mut captures);
            }
            let last = is_enough.then_some(at);
            if self.ends(node, at, &captures, &mut |end, captures| {
                self.repeat(repeat, count + 1, last, end, captures, then)
            }) {
                return true;
            }
        }
        !*lazy && is_enough && then(at, captures)
    }
}

/// Clears the captures of the previous iteration, as ECMAScript does.
fn forget(node: &PatternNode, captures: &mut ReferenceCaptures) {
    match node {
        PatternNode::Group { index, node } => {
            captures[*index as usize - 1] = None;
            forget(node, captures);
        }
        PatternNode::Concat(parts) | PatternNode::Alternation(parts) => {
            parts.iter().for_each(|part| forget(part, captures));
        }
        PatternNode::Repeat { node, .. }
        | PatternNode::Atomic(node)
        | PatternNode::Look { node, .. } => {
            forget(node, captures);
        }
        _ => {}
    }
}
