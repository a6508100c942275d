//! Normalizers: which texts the tokenizer leaves unchanged.
//!
//! ```text
//!  answers of the served library ──► UnicodeTables ──► TextFilter:  text ↦ normalize(text) = text?
//!  (its Unicode version)             (classes, pairs)   (bytes, no lookahead)
//! ```
//!
//! A token sequence is canonical only if decoding gives back the text that was encoded. A tokenizer
//! that normalizes text therefore has canonical tokens for its *fixpoints* alone, the texts that
//! normalization leaves unchanged. Fixpoints form a regular language. The image of a language under
//! normalization does not: sorting combining marks counts them.

mod normalizer_steps;
mod text_filter;
mod unicode_tables;

pub(crate) use normalizer_steps::{NormalizerAnswers, TextNormalizer};
pub use normalizer_steps::{NormalizerProbe, normalizer_probes};
pub use text_filter::{FilterState, TextFilter};
