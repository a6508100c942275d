//! Patterns: text in one of several dialects, parsed into one tree.
//!
//! The parser is ours where the dialect is not that of a Rust library: `python` is the `re`
//! module's (CPython, text patterns; 3.14 changed two escapes), `ecma` is ECMA-262's under the `u` flag, as
//! JSON Schema asks for. `rust` is that of the `regex` crate and is read by its parser. All three
//! describe a *whole* text; searching is up to the caller. `oniguruma` is for the patterns of
//! pre-tokenizers, where the order of preference counts.
//!
//! What no machine over bytes can do (backreferences, conditionals) is refused with its place.
//! Dialect, flags and case folding are resolved here, so that a tree means the same everywhere.

mod alternation_merging;
pub mod ast;
pub(crate) mod capture_matcher;
mod class_resolution;
mod dialects;
mod editable_regions;
mod item_lowering;
mod match_width;
mod parser;
mod pattern_cursor;
mod quantifiers;
mod regex_source;
mod unicode;
mod unresolved_items;

pub use ast::{CaptureGroup, Node, Pattern};
pub(crate) use editable_regions::{check_region, class_of};
pub use parser::{MAX_NESTING, parse};
pub use quantifiers::MAX_REPETITION;
pub use regex_source::PatternTexts;

/// Whose pattern language the text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Python's `re` for text patterns, as from 3.11 to 3.13.
    Python,
    /// The same from 3.14 on: there is `\z`, and `\B` matches the empty text.
    Python314,
    /// ECMA-262 with the `u` flag, as in JSON Schema.
    ///
    /// Like annex B and unlike the `u` flag, it takes an escaped character that is neither an
    /// ASCII letter nor a digit for itself, a `{`, `}` or `]` that closes or opens nothing for
    /// itself, and the hyphen in `[\w-.]` for itself: none of them can mean anything else.
    Ecma,
    /// Oniguruma's for UTF-8, as in the pre-tokenizers of tokenizer files. What these do not use,
    /// and what the other dialects mean differently (`^`, `$`, `\b`, `\w`, nested classes), is
    /// refused.
    Oniguruma,
    /// That of the `fancy-regex` package, as in tokenizers of tiktoken. Read is as much as of
    /// Oniguruma's, which it agrees with there, and beside it `$` (only the end of the text) and
    /// possessive braces.
    Fancy,
    /// That of the `regex` crate for text patterns: Unicode classes, class algebra, no look-around.
    Rust,
}

impl Dialect {
    /// Returns the dialect of users' patterns with this name.
    pub fn named(name: &str) -> Option<Dialect> {
        match name {
            "python" | "python-3.11" => Some(Dialect::Python),
            "python-3.14" => Some(Dialect::Python314),
            "ecma" => Some(Dialect::Ecma),
            "rust" => Some(Dialect::Rust),
            _ => None,
        }
    }

    /// Whether it is that of some version of Python.
    fn is_python(self) -> bool {
        matches!(self, Dialect::Python | Dialect::Python314)
    }

    /// Whether it is one of those that pre-tokenizers are written in.
    fn is_pre_tokenizer_dialect(self) -> bool {
        matches!(self, Dialect::Oniguruma | Dialect::Fancy)
    }
}

/// Flags in force from the start of the pattern; inline flags may change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
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

#[cfg(test)]
mod parser_tests;
#[cfg(test)]
pub(crate) mod reference_matcher;
#[cfg(test)]
mod testdata_tests;
