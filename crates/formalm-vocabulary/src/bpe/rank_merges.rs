//! Tokenizers that have ranks and no merges: two neighbours are joined whenever what they spell
//! together is a token, and the rank of that token is the rank of the merge.

use formalm_automata::pool;
use rustc_hash::FxHashMap;

use super::merge_derivations::SMALL;
use super::merge_rules::{Rule, Rules};
use super::spec::refused;
use crate::Error;

/// Bytes looked at, at most, while tokens are taken apart: their lengths squared.
const MOST_WORK: u64 = 1 << 32;

/// Tokens whose splits are listed at a time: some tenths of a millisecond.
const RUN: usize = 1 << 10;

/// A token that merging may make.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) text: Vec<u8>,
    pub(super) token: u32,
    /// Lower goes first.
    pub(super) rank: u32,
}

/// A rule for every way to split a token into two others.
///
/// # Errors
///
/// Two tokens spell the same, or they are so long that this takes too much time.
pub(super) fn every_split(tokens: &[Ranked]) -> Result<Rules, Error> {
    let work: u64 = tokens.iter().map(|each| (each.text.len() as u64).pow(2)).sum();
    if work > MOST_WORK {
        return Err(refused(&format!(
            "its tokens are too long to look at every split ({work} steps, {MOST_WORK} allowed)"
        )));
    }
    let mut ids: FxHashMap<&[u8], u32> = FxHashMap::default();
    ids.reserve(tokens.len());
    for each in tokens {
        if let Some(other) = ids.insert(&each.text, each.token) {
            let message = format!("tokens {other} and {} spell the same", each.token);
            return Err(refused(&message));
        }
    }
    let runs: Vec<&[Ranked]> = tokens.chunks(RUN).collect();
    let splits = pool::map(
        &runs,
        SMALL / RUN,
        || (),
        |(), _, run| {
            let mut splits: Vec<(u32, u32, Rule)> = Vec::new();
            for each in *run {
                let rule = Rule { rank: each.rank, token: each.token };
                splits.extend((1..each.text.len()).filter_map(|at| {
                    let left = ids.get(&each.text[..at])?;
                    Some((*left, *ids.get(&each.text[at..])?, rule))
                }));
            }
            splits
        },
    );
    Ok(Rules::new(splits.concat()))
}
