//! The pattern syntax tree, common to all dialects.
//!
//! The parser resolves dialect, flags and case folding, so the tree is context-free: a class is a
//! set of characters, an anchor one of four assertions.

use formalm_core::{CharSet, SourceSpan};

use super::PatternDialect;

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The whole pattern, which must match a whole string.
    pub root: PatternNode,
    /// Capturing groups in the order of their opening parentheses; group 1 is at index 0.
    pub groups: Vec<CaptureGroup>,
    /// The dialect, whose rules decide what the groups capture.
    pub dialect: PatternDialect,
}

/// A capturing group. Groups do not change the language; their names and positions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureGroup {
    /// The name, if it has one.
    pub name: Option<String>,
    /// The whole group with its parentheses, in characters of the pattern.
    pub span: SourceSpan,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternNode {
    /// The empty string.
    Empty,
    /// One character of a set; an empty set matches nothing.
    Class(CharSet),
    /// A concatenation.
    Concat(Vec<PatternNode>),
    /// A union in order of preference, which matters to groups and in [`PatternNode::Atomic`].
    Alternation(Vec<PatternNode>),
    /// A repetition, `min` to `max` times. `lazy` matters where order does.
    Repeat {
        /// The repeated node.
        node: Box<PatternNode>,
        /// Minimum number of iterations.
        min: u32,
        /// Maximum number of iterations; `None` is unbounded.
        max: Option<u32>,
        /// Prefers fewer iterations.
        lazy: bool,
    },
    /// A capturing group.
    Group {
        /// The number of the group, from 1.
        index: u32,
        /// The content of the group.
        node: Box<PatternNode>,
    },
    /// `(?>…)`, and possessive quantifiers as `Atomic(Repeat)`.
    Atomic(Box<PatternNode>),
    /// A lookaround assertion.
    Look {
        /// `true` for lookahead, `false` for lookbehind.
        ahead: bool,
        /// `(?!` or `(?<!`.
        negative: bool,
        /// The pattern looked for.
        node: Box<PatternNode>,
    },
    /// The start of the whole string.
    TextStart,
    /// The end of the whole string.
    TextEnd,
    /// A position between a character of `word` and one outside it (or the end of the string).
    WordBoundary {
        /// `\B`: any other position. As in Python before 3.14, `\B` fails on the empty string if
        /// `empty_fails` is set.
        negative: bool,
        /// Word characters under the dialect and flags.
        word: CharSet,
        /// A negated boundary does not match the empty string.
        empty_fails: bool,
    },
}
