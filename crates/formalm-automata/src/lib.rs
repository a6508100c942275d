//! Bytes and states: patterns, regular languages and their lazy machines.
//!
//! Nothing here knows of tokens. A pattern is parsed ([`syntax`]) into a tree, the tree becomes
//! a term, and terms are determinised lazily into a machine over bytes.

pub mod charset;
pub mod error;
pub mod syntax;

pub use charset::CharSet;
pub use error::{Error, Resource, Span};
