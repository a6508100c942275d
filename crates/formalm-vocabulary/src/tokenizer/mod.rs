//! Reads `tokenizer.json`, the file of the Hugging Face `tokenizers` library.
//!
//! [`TokenizerFile`] is the file as far as we use it; text is borrowed, and merges stay unread
//! until something needs them. What a piece means in bytes is in `spelling`, the way from a
//! file to a vocabulary in `load`.

mod file;
mod load;
mod spelling;

pub(crate) use file::Text;
pub use file::{AddedToken, Model, Pieces, TokenizerFile};
pub(crate) use spelling::{Spelling, fallback_byte, is_byte_character, kind, steps};
