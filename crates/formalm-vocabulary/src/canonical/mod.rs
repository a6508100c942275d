//! What a tokenizer makes of a text: its *canonical* tokens.
//!
//! [`Encoder`] is a merging tokenizer (BPE) taken apart into what decides whether a sequence of
//! tokens is canonical: where text is cut into pieces ([`Splitter`]) and which tokens may be
//! neighbours within a piece.

mod description;
mod encoder;
mod exits;
mod guesses;
mod intervals;
mod merges;
mod neighbours;
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
mod shapes;
mod shared;
mod splits;
mod splitter;
mod symbols;
#[cfg(test)]
mod tests;
mod token_sets;
mod wholes;

pub use encoder::{Encoder, Kind};
pub use exits::{Exit, Exits, Stay};
pub use passages::{Landing, Passages};
pub use shared::Landed;
pub use splitter::{MARKS, Mark, Place, Splitter};
pub use token_sets::TokenSet;
pub use wholes::Path;
