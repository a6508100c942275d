//! A backtracking matcher that reports what the groups of a pattern capture in a whole string.
//!
//! ```text
//!  PatternNode ──► MatchProgram (instructions) ──► depth-first search by preference ──► spans
//! ```
//!
//! The rules are those of the dialect's own engine for a match from end to end: alternatives in
//! order, greedy and lazy preferences, the last iteration of a loop, and everything in which
//! dialects differ: what an iteration does to groups of the previous one, how an empty iteration
//! ends a loop, in which direction a lookbehind reads. A group keeps nothing from an abandoned
//! path.
//!
//! A pattern becomes a program (`program`), which is searched depth first (`backtracking`).
//! Captures never influence whether a match continues. So a search state that failed once fails
//! always, and is remembered: `((a+)+)+b` takes linear time. The stack is explicit, and steps and
//! memory are limited.

mod backtracking;
mod program;

pub use backtracking::{check_memory, group_spans, out_of_steps};
pub use program::MatchProgram;

#[cfg(test)]
mod tests;
