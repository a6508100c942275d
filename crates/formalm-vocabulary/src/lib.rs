//! Token bytes and the tables that make masks quick.
//!
//! A [`Vocabulary`] says which bytes each token id stands for. From them come, once, a [`Trie`]
//! for walks byte by byte and [`Classes`] for masks of the kind "every token whose characters
//! lie in this set". Nothing here knows of languages.

mod atoms;
pub mod canonical;
mod checksum;
mod classes;
mod crossings;
mod error;
mod flat;
mod lengths;
mod ragged;
mod saved;
mod signature;
mod special;
mod stays;
mod strings;
pub mod tokenizer;
mod tokens;
mod trie;
mod vocabulary;

pub use atoms::{Inside, Profile, Shape};
pub use classes::Classes;
pub use crossings::{Crossing, Crossings};
pub use error::Error;
pub use flat::Node;
pub use ragged::{Ragged, Tail};
pub use signature::Signature;
pub use strings::{Closing, Ending, Strings};
pub use trie::Trie;
pub use vocabulary::{Beside, Vocabulary};

/// Words of a bitmask: bit `id & 31` of word `id >> 5`, 1 = allowed.
pub type Words = [u32];
