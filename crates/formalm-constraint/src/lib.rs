#![doc = include_str!("../README.md")]

mod canonical;
mod combined_masks;
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
pub mod reference;
mod repetition;
mod shared_masks;
mod sorted_token_reading;
mod state_table;
mod token_graph;
mod tokens_by_abstract_state;
mod trie_walk;
mod trie_word_reading;
mod warm_up;

pub use canonical::{ExcludedMembers, TextBegin};
pub use combined_masks::{AbstractStateClasses, PositionMaskClasses, SublanguageMaskClasses};
pub use constraint::{Constraint, ConstraintStats};
pub use epoch::{AdvanceError, ConstraintState, MemorySizes, NoContinuation, StateEpoch};
pub use explain::TokenExplanation;
pub use mask::{Mask, MaskWords};
pub use mask_identity::MaskIdentity;
pub use matcher::draft::{Draft, ROOT};
pub use matcher::{Matcher, StepInput};
pub use state_table::{STATE_TABLE_LIMIT, StateTable};
