//! Machines over bytes lifted to vocabularies: masks, steps and cursors.
//!
//! A token is allowed iff some member of the language starts with the text followed by the
//! token's bytes; an end token is allowed iff the text is a member. Everything here is a fast way
//! to that definition, which [`reference`] spells out.

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

pub use constraint::{Constraint, Stats};
pub use epoch::{Position, Sizes, StateEpoch, Unfollowed};
pub use explain::Explanation;
pub use mask::{Mask, MaskWords};
pub use mask_identity::Form;
pub use matcher::{Matcher, Read, Refusal};
pub use position_automaton_masks::ComposedKeys;
