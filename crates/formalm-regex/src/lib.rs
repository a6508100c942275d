//! Pattern syntax: several regex dialects, parsed into one tree.
//!
//! ```text
//!  source ─► PatternCursor ─► PatternParser + dialects/ ─► UnresolvedItem
//!                                                              │ ItemLowering: flags, case folding
//!                                                              ▼
//!                                                          PatternNode
//! ```
//!
//! `python` is the `re` module of CPython for text patterns (3.14 changed two escapes), `ecma` is
//! ECMA-262 under the `u` flag, as schemas require. `oniguruma` and `fancy` are for the
//! patterns of pre-tokenizers, where the order of preference counts. Their parser is ours. `rust`
//! is the dialect of the `regex` crate and is read by its parser. All describe a *whole* string;
//! searching is up to the caller.
//!
//! Whatever no automaton over bytes can do (backreferences, conditionals) is refused with its
//! position. Dialect, flags and case folding are resolved here, so that a tree means the same
//! everywhere.

mod alternation_merging;
pub mod ast;
pub mod capture_matcher;
mod class_resolution;
mod dialects;
mod editable_regions;
mod item_lowering;
mod match_width;
mod parser;
mod pattern_cursor;
mod quantifiers;
pub mod unicode;
mod unresolved_items;

pub use ast::{CaptureGroup, Pattern, PatternNode};
pub use editable_regions::{check_region, class_of};
pub use parser::{MAX_NESTING, parse};
pub use quantifiers::MAX_REPETITION;
pub use unresolved_items::PerlClass;

/// The dialect of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatternDialect {
    /// Python's `re` for text patterns, versions 3.11 to 3.13.
    Python,
    /// Python's `re` from 3.14 on: there is `\z`, and `\B` matches the empty string.
    Python314,
    /// ECMA-262 with the `u` flag, as in schemas.
    ///
    /// Like annex B and unlike the `u` flag, it takes an escaped character that is neither an
    /// ASCII letter nor a digit for itself, a `{`, `}` or `]` that closes or opens nothing for
    /// itself, and the hyphen in `[\w-.]` for itself: none of them can mean anything else.
    Ecma,
    /// Oniguruma for UTF-8, as in the pre-tokenizers of tokenizer files. Syntax that these do not
    /// use, or that other dialects define differently (`^`, `$`, `\b`, `\w`, nested classes), is
    /// refused.
    Oniguruma,
    /// The dialect of the `fancy-regex` crate, as in tiktoken's tokenizers. It is read as far as
    /// Oniguruma, with which it agrees there, plus `$` (only the end of the string) and possessive
    /// braces.
    Fancy,
    /// The dialect of the `regex` crate for text patterns: Unicode classes, class algebra, no
    /// lookaround.
    Rust,
}

impl PatternDialect {
    /// Returns the dialect of users' patterns with this name.
    pub fn from_name(name: &str) -> Option<PatternDialect> {
        match name {
            "python" | "python-3.11" => Some(PatternDialect::Python),
            "python-3.14" => Some(PatternDialect::Python314),
            "ecma" => Some(PatternDialect::Ecma),
            "rust" => Some(PatternDialect::Rust),
            _ => None,
        }
    }

    /// Returns `true` for the versions of Python.
    fn is_python(self) -> bool {
        matches!(self, PatternDialect::Python | PatternDialect::Python314)
    }

    /// Returns `true` for the dialects of pre-tokenizers.
    fn is_pre_tokenizer_dialect(self) -> bool {
        matches!(self, PatternDialect::Oniguruma | PatternDialect::Fancy)
    }
}

/// Flags in force from the start of the pattern; inline flags may change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatternFlags {
    /// Letters match without regard to case (`i`).
    pub ignore_case: bool,
    /// `^` and `$` match at the edges of lines (`m`).
    pub multi_line: bool,
    /// `.` matches line terminators too (`s`).
    pub dot_all: bool,
    /// `\w`, `\d`, `\s`, `\b` and case folding know ASCII only (`a`; `python` only).
    pub ascii: bool,
    /// White space and `#` comments are skipped (`x`; `python` and `rust`).
    pub verbose: bool,
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(test)]
mod parser_tests;
#[cfg(any(test, feature = "reference"))]
pub mod reference_matcher;
