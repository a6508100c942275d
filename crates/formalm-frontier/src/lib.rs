#![doc = include_str!("../README.md")]

mod binary_heap;
mod child_cache;
mod log_sum;
mod mass_search;
mod node_queue;
mod prefix_strings;
mod row_cache;
mod sequence_tree;
mod shared_row;
mod sorted_tokens;
mod string_checkpoint;
mod string_entries;
mod string_search;
#[cfg(test)]
mod tests;
mod token_rows;
mod token_search;
mod walk_tree;

pub use formalm_logits::{Row, RowSum, RowSums};
pub use log_sum::log_sum;
pub use mass_search::{DecidedMass, MassBatch, MassOptions, MassSearch};
pub use node_queue::NodeQueue;
pub use sequence_tree::{END, NodeArrays, SequenceTree, TreeQuery, allowed_at};
pub use shared_row::SharedRow;
pub use sorted_tokens::SortedTokens;
pub use string_checkpoint::{EntryArrays, InvalidSearch};
pub use string_search::{StringHit, StringOptions, StringSearch, StringStep};
pub use token_rows::{Continuations, TokenScan, TopK};
pub use token_search::{Batch, QueueArrays, TokenOptions, TokenSearch};
pub use walk_tree::{TokenProbabilities, WalkMove, WalkOptions, WalkRule, WalkTree};

/// The language of a search, as a numbering of its states.
pub trait TokenLanguage {
    /// The reason why a step or a mask failed.
    type Error;

    /// Returns the state after an allowed token.
    ///
    /// # Errors
    ///
    /// The language does not allow it, or a limit was reached.
    fn step(&mut self, state: u32, token_id: u32) -> Result<u32, Self::Error>;

    /// Returns the state after one byte, which may end inside a character.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    fn step_byte(&mut self, state: u32, byte: u8) -> Result<u32, Self::Error>;

    /// Overwrites `words` with the bitmask of the tokens that may follow, including end tokens.
    ///
    /// # Errors
    ///
    /// A limit was reached.
    fn fill(&mut self, state: u32, words: &mut [u32]) -> Result<(), Self::Error>;

    /// Returns `true` if the input is in the language.
    fn is_accepting(&self, state: u32) -> bool;

    /// Returns `true` if only an end may follow.
    ///
    /// # Errors
    ///
    /// A limit was reached.
    fn is_finished(&mut self, state: u32) -> Result<bool, Self::Error>;
}

/// Where sequences end, for every context of a search.
#[derive(Clone, Debug)]
pub struct LengthLimits {
    /// Maximum number of tokens after the context.
    pub max_tokens: Option<u32>,
    /// For each context, the number of tokens that the model can read after it.
    pub context_rooms: Vec<Option<u32>>,
    /// `true` if an end token counts, so that a sequence of `max_tokens` tokens is evaluated.
    pub complete: bool,
}

impl LengthLimits {
    /// Returns `Some(true)` if a sequence of `depth` tokens may be evaluated and continued, and
    /// `None` if only the model's context forbids it.
    #[inline]
    pub fn may_extend(&self, depth: u32, context: u32) -> Option<bool> {
        let counted = depth + u32::from(!self.complete);
        if self.max_tokens.is_some_and(|most| counted > most) {
            return Some(false);
        }
        match self.context_rooms[context as usize] {
            Some(room) if depth > room => None,
            _ => Some(true),
        }
    }

    /// Returns `true` if a token may follow a sequence of `depth` tokens.
    #[inline]
    pub fn may_grow(&self, depth: u32) -> bool {
        self.max_tokens.is_none_or(|most| depth < most)
    }
}
