//! Masks inside JSON strings, by how their content is constrained.
//!
//! ```text
//! no constraint but the length      length.rs     one bitmask, plus the suffixes after the quote
//! a regular language                regular/      masks of the content's own machine
//! a custom recognizer               custom.rs     masks of a few named states, with exceptions
//! ```

pub(crate) mod custom;
pub(crate) mod length;
pub(crate) mod regular;
