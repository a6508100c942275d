//! What a pattern says: the tree every dialect is parsed into.
//!
//! Dialect, flags and case folding are resolved by the parser, so that the tree needs no
//! context to be read: a class is a set of characters, an anchor is one of four assertions.

use super::Dialect;
use crate::charset::CharSet;
use crate::error::Span;

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The whole pattern, to be matched against a whole text.
    pub root: Node,
    /// Capturing groups in the order of their opening parentheses; group 1 is at index 0.
    pub groups: Vec<CaptureGroup>,
    /// Whose rules decide what the groups capture.
    pub dialect: Dialect,
}

/// A capturing group. Groups do not change the language; their names and places are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureGroup {
    /// The name, if it has one.
    pub name: Option<String>,
    /// The whole group with its parentheses, in characters of the pattern.
    pub span: Span,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// The empty text.
    Empty,
    /// One character out of a set; an empty set matches nothing.
    Class(CharSet),
    /// One after the other.
    Concat(Vec<Node>),
    /// One of several, in order of preference, which matters to groups and in [`Node::Atomic`].
    Alternation(Vec<Node>),
    /// `min` to `max` times; `max: None` is unbounded. `lazy` matters where order does.
    Repeat {
        /// What is repeated.
        node: Box<Node>,
        /// At least this often.
        min: u32,
        /// At most this often.
        max: Option<u32>,
        /// Prefers fewer.
        lazy: bool,
    },
    /// Capturing group number `index` (from 1).
    Group {
        /// Number of the group.
        index: u32,
        /// Its content.
        node: Box<Node>,
    },
    /// `(?>…)`, and possessive quantifiers as `Atomic(Repeat)`.
    Atomic(Box<Node>),
    /// Look-ahead or look-behind.
    Look {
        /// Ahead (`true`) or behind.
        ahead: bool,
        /// `(?!` or `(?<!`.
        negative: bool,
        /// The pattern looked for.
        node: Box<Node>,
    },
    /// The start of the whole text.
    TextStart,
    /// The end of the whole text.
    TextEnd,
    /// Between a character of `word` and one that is not (or the text's edge).
    WordBoundary {
        /// `\B`: anywhere else. As in Python before 3.14, `\B` fails on the empty text
        /// when `empty_fails` is set.
        negative: bool,
        /// Word characters under the dialect and flags.
        word: CharSet,
        /// A negated boundary does not match in an empty text.
        empty_fails: bool,
    },
}
