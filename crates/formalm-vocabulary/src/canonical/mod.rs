//! What a tokenizer makes of a text: its *canonical* tokens.
//!
//! [`Encoder`] is a merging tokenizer (BPE) taken apart into what decides whether a sequence of
//! tokens is canonical: where text is cut into pieces ([`Splitter`]) and which tokens may be
//! neighbours within a piece.

mod description;
mod encoder;
mod intervals;
mod merges;
mod passages;
mod pretokenizer;
mod program;
mod protobuf;
mod ranks;
mod reading;
mod relation;
mod rules;
mod saved;
mod segments;
mod sentencepiece;
mod splits;
mod splitter;
mod symbols;
#[cfg(test)]
mod tests;
mod wholes;

pub use encoder::{Encoder, Kind};
pub use passages::{Landed, Landing, Passages};
pub use splitter::{MARKS, Mark, Place, Splitter};
pub use wholes::Path;
