//! Patterns: text in one of two dialects, parsed into one tree.

pub mod ast;

pub use ast::{Group, Node, Pattern};
