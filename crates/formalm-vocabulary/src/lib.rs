//! Token bytes and the tables that make masks quick.
//!
//! A [`Vocabulary`] says which bytes each token id stands for. From them come, once, a [`Trie`]
//! for walks byte by byte and [`Classes`] for masks of the kind "every token whose characters
//! lie in this set". Nothing here knows of languages.

pub mod bpe;
mod char_profile;
mod checksum;
mod class_exits;
mod class_mask_cache;
mod class_masks;
mod error;
mod flat_trie;
mod json_string_tokens;
mod partial_chars;
mod saved_vocabulary;
mod special_tokens;
mod subtree_signature;
mod token_bytes;
mod token_trie;
pub mod tokenizer_json;
mod tokens_by_length;
mod vocabulary;

pub use char_profile::{Inside, Profile, Shape};
pub use class_exits::{Crossing, Crossings};
pub use class_masks::Classes;
pub use error::Error;
pub use flat_trie::Node;
pub use json_string_tokens::{Closing, Ending, Strings};
pub use partial_chars::{Ragged, Tail};
pub use subtree_signature::Signature;
pub use token_trie::Trie;
pub use vocabulary::{Beside, Vocabulary};

/// Words of a bitmask: bit `id & 31` of word `id >> 5`, 1 = allowed.
pub type Words = [u32];
