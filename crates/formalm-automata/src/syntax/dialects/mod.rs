//! The front-ends of the parser: what differs between the dialects of patterns.

pub(super) mod ecma_escapes;
pub(super) mod ecma_groups;
pub(super) mod oniguruma;
pub(super) mod python_escapes;
pub(super) mod python_groups;
pub(super) mod rust_regex;
#[cfg(test)]
mod rust_regex_tests;
