//! The dialects' front-ends of the pattern parser: escapes, classes and group openers of each.
//!
//! `python`, `ecma` and `oniguruma` (with `fancy`) extend the shared loop of
//! [`parser`](super::parser); `rust` is read by the parser of the `regex` crate.

pub(super) mod ecma_escapes;
pub(super) mod ecma_groups;
pub(super) mod oniguruma;
pub(super) mod python_escapes;
pub(super) mod python_groups;
pub(super) mod rust_regex;
