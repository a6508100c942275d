#![doc = include_str!("../README.md")]

mod base64;
pub mod bpe;
mod character_class_mask_cache;
mod character_class_masks;
mod checksum;
mod error;
mod flat_trie;
mod json_string_tokens;
pub mod normalization;
mod occurring_characters;
mod partial_chars;
mod saved_vocabulary;
pub mod sentencepiece;
mod special_token_bytes;
mod subtree_characters;
mod token_byte_table;
mod token_trie;
pub mod tokenizer_json;
mod tokens_by_length;
mod tokens_by_remainder;
pub mod unigram;
mod vocabulary;
mod wordpiece;

pub use character_class_masks::ClassMasks;
pub use checksum::{CHECKSUM_BYTES, checksum};
pub use error::Error;
pub use flat_trie::{FlatTrie, TrieNode};
pub use json_string_tokens::{ClosingToken, EndingToken, JsonStringTokens, StringOpening};
pub use occurring_characters::{CharProfile, ProfileFilter, Utf8Shape};
pub use partial_chars::{PartialChar, PartialToken};
pub use subtree_characters::SubtreeSignature;
pub use token_trie::TokenTrie;
pub use tokens_by_remainder::{ClassExit, ClassExits};
pub use vocabulary::{Vocabulary, VocabularyExtension};

/// Words of a bitmask: bit `id & 31` of word `id >> 5`; 1 = allowed.
pub type MaskWords = [u32];
