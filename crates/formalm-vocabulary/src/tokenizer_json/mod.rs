//! `tokenizer.json`, the file format of the Hugging Face `tokenizers` library.
//!
//! [`TokenizerFile`] is the part of the file that we use. Its text is borrowed, and merges stay
//! unparsed until something needs them. `piece_decoding` turns pieces into bytes, `load_vocabulary`
//! the file into a vocabulary.

mod file_format;
mod load_vocabulary;
mod piece_decoding;

pub(crate) use file_format::PieceText;
pub use file_format::{AddedToken, BpeModel, TokenizerFile, VocabPieces};
pub(crate) use piece_decoding::{
    PieceDecoding, byte_level_byte, fallback_byte, is_byte_level_character, kind, steps,
};
