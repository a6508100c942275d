//! What the groups of a pattern capture when it matches a whole text.
//!
//! The rules are those of the dialect's own engine for a match from end to end: alternatives in
//! order, greedy and lazy preferences, the last iteration of a loop, and whatever the dialects
//! say differently: what an iteration does to groups of the one before, how an empty iteration
//! ends a loop, in which direction a look-behind reads. A group keeps nothing from a way that
//! was given up.
//!
//! A pattern becomes a program ([`program`]), which is searched depth first in order of
//! preference ([`search`]). Groups never decide where a match goes on, so a state that failed
//! once fails always, and is remembered: `((a+)+)+b` takes linear time. The stack is ours, and
//! steps and memory are limited.

mod backtracking;
mod program;

pub(crate) use backtracking::{check_memory, group_spans, out_of_steps};
pub(crate) use program::MatchProgram;

#[cfg(test)]
mod tests;
