//! Reads `tokenizer.json`, the file of the Hugging Face `tokenizers` library.
//!
//! [`TokenizerFile`] is the file as far as we use it; text is borrowed, and merges stay unread
//! until something needs them. What a piece means in bytes is in `spelling`, the way from a
//! file to a vocabulary in `load`.

mod file_format;
mod load_vocabulary;
mod piece_decoding;

pub(crate) use file_format::Text;
pub use file_format::{AddedToken, Model, Pieces, TokenizerFile};
pub(crate) use piece_decoding::{Spelling, fallback_byte, is_byte_character, kind, steps};
