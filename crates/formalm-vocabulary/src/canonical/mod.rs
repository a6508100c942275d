//! What a tokenizer makes of a text: its *canonical* tokens.
//!
//! [`Encoder`] is a merging tokenizer (BPE) taken apart into what decides whether a sequence of
//! tokens is canonical: where text is cut into pieces ([`Splitter`]) and which tokens may be
//! neighbours within a piece.

mod encoder;
mod intervals;
mod merges;
mod passages;
mod pretokenizer;
mod program;
mod reading;
mod relation;
mod rules;
mod saved;
mod segments;
mod splitter;
#[cfg(test)]
mod tests;
mod wholes;

pub use encoder::{Encoder, Kind};
pub use passages::{Landed, Landing, Passages};
pub use splitter::{MARKS, Mark, Place, Splitter};
pub use wholes::Path;
