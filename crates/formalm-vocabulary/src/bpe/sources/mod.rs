//! Readers of tokenizer sources: `tokenizer.json`, tiktoken encodings and SentencePiece models.

pub(super) mod sentencepiece;
pub(super) mod tiktoken;
pub(super) mod tokenizer_json;
pub(super) mod unigram;
pub(super) mod wordpiece;
