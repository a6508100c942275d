//! What a tokenizer makes of a text: its *canonical* tokens.
//!
//! [`Encoder`] is a merging tokenizer (BPE) taken apart into what decides whether a sequence of
//! tokens is canonical: where text is cut into pieces ([`Splitter`]) and which tokens may be
//! neighbours within a piece.

mod adjacency;
mod adjacency_masks;
#[cfg(test)]
mod adjacency_tests;
mod base_symbols;
mod class_exit_targets;
mod encoder;
mod encoder_cache;
mod merge_derivations;
mod merge_rules;
mod pike_vm;
mod pretoken_splitter;
mod pretokenizer_config;
mod pretokenizer_dfa;
mod pretokenizer_nfa;
mod rank_merges;
mod saved_encoder;
mod sources;
mod spec;
mod token_orders;
mod token_set;
mod token_transitions;
mod transition_kernels;
mod whole_tokens;

pub use class_exit_targets::{Exit, Exits, Stay};
pub use encoder::{Encoder, Kind};
pub use encoder_cache::Landed;
pub use pretoken_splitter::{MARKS, Mark, Place, Splitter};
pub use token_set::TokenSet;
pub use token_transitions::{Landing, Passages};
pub use whole_tokens::Path;
