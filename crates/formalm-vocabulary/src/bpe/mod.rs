//! Byte-pair encoding: the *canonical* tokens of a string, that is the tokens that the tokenizer
//! itself would make of it.
//!
//! ```text
//!  text ──splitter──► pre-tokens ──base symbols──► symbols ──merge rules──► tokens
//!         where pre-tokens begin                            which tokens may be adjacent
//!         (pretokenizer)                                    (adjacency)
//! ```
//!
//! [`BpeEncoder`] decomposes a BPE tokenizer into what decides whether a token sequence is
//! canonical: the [`Splitter`], an automaton that locates pre-tokens in texts that the normalizer
//! leaves unchanged, and the adjacency relation of tokens inside a pre-token.

mod adjacency;
mod adjacency_masks;
mod base_symbols;
mod encoder;
mod encoder_cache;
mod forbidden_intervals;
mod free_text;
mod lost_text;
mod merge_derivations;
mod merge_rules;
mod part_library;
mod pretoken_model;
mod pretokenizer;
mod rank_merges;
mod saved_encoder;
mod sources;
mod spec;
mod token_set;
mod token_transitions;
mod tokens_by_char_class_exit;
mod transition_interner;
mod whole_tokens;

pub use encoder::{BpeEncoder, TokenOrigin};
pub use encoder_cache::{TokensByState, UntabulatedTargets, UntabulatedTokens};
pub use free_text::FreeTokens;
pub use lost_text::LostText;
pub use part_library::{PartLibrary, PartPositionKey, PartTokens, UnsettledTokens};
pub use pretokenizer::boundary_automaton::{BOUNDARIES, Boundary, BoundaryState};
pub use pretokenizer::pretoken_splitter::{Splitter, SplitterState};
pub use pretokenizer::unsettled_boundaries::{UnsettledBoundaries, UnsettledStates, UnsettledStep};
pub use token_set::TokenSet;
pub use token_transitions::{TokenTransitions, TransitionTargets};
pub use tokens_by_char_class_exit::{CoarseCharClass, ExitGroup, ExitTargets};
pub use whole_tokens::PretokenState;
