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
//!
//! Conditions on characters and on pairs of them are a [`TextFilter`], those at the edges of sections
//! and on fixed strings are `SectionRules`.

mod charsmap_filter;
mod cluster_map;
mod cluster_probes;
mod normalizer_steps;
mod section_rules;
mod text_filter;
mod unicode_tables;

pub(crate) use charsmap_filter::ChangedPairs;
pub(crate) use cluster_map::ClusterRules;
pub(crate) use normalizer_steps::{IDEOGRAPHS, NormalizerAnswers, SpaceMarks, TextNormalizer};
pub use normalizer_steps::{NormalizerProbe, normalizer_probes};
pub(crate) use section_rules::{
    InsertedSpace, SectionPlace, SectionRules, SectionState, white_space,
};
pub use text_filter::{FilterState, TextFilter};
