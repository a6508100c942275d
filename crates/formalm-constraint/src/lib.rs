//! A language machine lifted to a vocabulary: token masks, token steps, matchers.
//!
//! A token is allowed iff some string in the language starts with the input followed by the token's
//! bytes. An end token is allowed iff the input is in the language. Everything in this crate is a
//! fast implementation of that definition, which [`reference`] spells out.

mod canonical;
mod constraint;
mod epoch;
mod explain;
mod finish;
mod json_string;
mod json_value;
mod lexical;
mod mask;
mod mask_builder;
mod mask_cache;
mod mask_identity;
mod matcher;
mod position_automaton_masks;
mod prefix_sharing;
pub mod reference;
mod repetition;
mod token_graph;
mod trie_strings;
mod trie_walk;

pub use constraint::{Constraint, ConstraintStats};
pub use epoch::{ConstraintState, MemorySizes, NoContinuation, StateEpoch};
pub use explain::TokenExplanation;
pub use mask::{Mask, MaskWords};
pub use mask_identity::MaskIdentity;
pub use matcher::{AdvanceError, Matcher, StepInput};
pub use position_automaton_masks::PositionMaskClasses;
