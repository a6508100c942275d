//! Merge rules of tokenizers with ranks but no merge list, such as tiktoken's.
//!
//! Two adjacent tokens are joined whenever their concatenation is a token; the rank of that token
//! is the rank of the merge.

use formalm_core::pool;
use rustc_hash::FxHashMap;

use super::merge_derivations::SMALL;
use super::merge_rules::{MergeRule, MergeRules};
use super::spec::refused;
use crate::Error;

/// Work limit, in squared token lengths (bytes), for splitting all tokens. Chosen, not measured.
const MAX_WORK: u64 = 1 << 32;

/// Tokens per parallel task: some tenths of a millisecond.
const TOKENS_PER_TASK: usize = 1 << 10;

/// A token that merging may make.
#[derive(Clone, Debug)]
pub(super) struct RankedToken {
    pub(super) text: Vec<u8>,
    pub(super) token: u32,
    /// Lower ranks are merged first.
    pub(super) rank: u32,
}

/// Returns a rule for every split of a token into two other tokens.
///
/// # Errors
///
/// Two tokens have the same bytes, or tokens are so long that splitting them takes too much time.
pub(super) fn rules_of_all_splits(tokens: &[RankedToken]) -> Result<MergeRules, Error> {
    let work: u64 = tokens.iter().map(|each| (each.text.len() as u64).pow(2)).sum();
    if work > MAX_WORK {
        return Err(refused(&format!(
            "its tokens are too long to enumerate all splits ({work} steps, but the limit is \
             {MAX_WORK})"
        )));
    }
    let mut ids: FxHashMap<&[u8], u32> = FxHashMap::default();
    ids.reserve(tokens.len());
    for each in tokens {
        if let Some(other) = ids.insert(&each.text, each.token) {
            let message = format!("tokens {other} and {} have the same bytes", each.token);
            return Err(refused(&message));
        }
    }
    let runs: Vec<&[RankedToken]> = tokens.chunks(TOKENS_PER_TASK).collect();
    let splits = pool::map(
        &runs,
        SMALL / TOKENS_PER_TASK,
        || (),
        |(), _, run| {
            let mut splits: Vec<(u32, u32, MergeRule)> = Vec::new();
            for each in *run {
                let rule = MergeRule { rank: each.rank, token: each.token };
                splits.extend((1..each.text.len()).filter_map(|at| {
                    let left = ids.get(&each.text[..at])?;
                    Some((*left, *ids.get(&each.text[at..])?, rule))
                }));
            }
            splits
        },
    );
    Ok(MergeRules::new(splits.concat()))
}
