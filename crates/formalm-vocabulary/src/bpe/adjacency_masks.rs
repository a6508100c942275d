//! Bitmasks of the tokens that may not precede or follow a token inside a pre-token.

use std::sync::Arc;

use formalm_core::memory_bytes;

use super::encoder::BpeEncoder;
use super::encoder_cache::ByteBudgetCache;
use super::token_set::set_bit;
use crate::{MaskWords, Vocabulary};

/// Interval length, in tokens, from which on an interval has a cached bitmask: OR-ing it is faster
/// than setting the ids one by one. A vocabulary has some tens of these, and tokens share them.
/// Chosen, not measured.
const MIN_BITMASK_INTERVAL: usize = 1024;

/// Caches of the masks.
#[derive(Debug, Default)]
pub(super) struct AdjacencyMasks {
    /// By token and side: the tokens that may not follow (`true`) or precede it.
    rows: ByteBudgetCache<(u32, bool), MaskWords>,
    /// By side and interval.
    wide: ByteBudgetCache<(bool, u32, u32), MaskWords>,
}

memory_bytes!(AdjacencyMasks { rows, wide });

impl BpeEncoder {
    /// Returns the bitmask of the tokens that may not follow `token` inside a pre-token (`after`),
    /// or may not precede it.
    pub fn forbidden_mask(
        &self,
        vocabulary: &Vocabulary,
        token: u32,
        after: bool,
    ) -> Arc<MaskWords> {
        self.adjacency_masks.rows.get_or_insert_with((token, after), || {
            let words =
                self.row(vocabulary.len().max(self.origins.len()).div_ceil(32), token, after);
            let bytes = 4 * words.len();
            (words.into(), bytes)
        })
    }

    fn row(&self, len: usize, token: u32, after: bool) -> Vec<u32> {
        let mut words = vec![0; len];
        let adjacency = &self.adjacency;
        if !adjacency.is_reachable(token) {
            return words;
        }
        if !adjacency.is_early(token) {
            let order = adjacency.order(after);
            adjacency.for_each_interval(token, after, |start, end| {
                let tokens = &order[start as usize..end as usize];
                if tokens.len() < MIN_BITMASK_INTERVAL {
                    tokens.iter().for_each(|&token| set_bit(&mut words, token));
                    return;
                }
                let mask =
                    self.adjacency_masks.wide.get_or_insert_with((after, start, end), || {
                        let mut mask = vec![0; len];
                        tokens.iter().for_each(|&token| set_bit(&mut mask, token));
                        (mask.into(), 4 * len)
                    });
                words.iter_mut().zip(&*mask).for_each(|(word, more)| *word |= more);
            });
        }
        // Early tokens inside the intervals may be allowed; the patch decides them one by one.
        if let Some((early, patch)) = adjacency.early_patch(token, after) {
            early.iter().for_each(|&token| words[token as usize >> 5] &= !(1 << (token & 31)));
            patch.iter().for_each(|&token| set_bit(&mut words, token));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tokenizer that joins `ba` before `a` and any of many characters. With `early`, some tokens
    /// are made before one of their parts.
    fn made(early: bool) -> (Vocabulary, BpeEncoder) {
        let others: Vec<char> = ('\u{4e00}'..).take(MIN_BITMASK_INTERVAL + 100).collect();
        let mut pieces: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
        pieces.extend(["\u{2581}", "a", "b", "c", "ba", "cb", "bac"].map(str::to_owned));
        pieces.extend(others.iter().flat_map(|c| [c.to_string(), format!("a{c}")]));
        let vocab: Vec<String> =
            pieces.iter().enumerate().map(|(id, piece)| format!("{piece:?}: {id}")).collect();
        let rules = if early { ["ba c", "b a", "c b"] } else { ["b a", "ba c", "c b"] };
        let mut merges: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
        merges.extend(others.iter().map(|c| format!("\"a {c}\"")));
        let file = format!(
            r#"{{"normalizer": {{"type": "Replace", "pattern": {{"String": " "}},
                "content": "\u2581"}}, "decoder": {{"type": "Sequence", "decoders": [
                {{"type": "Replace", "pattern": {{"String": "\u2581"}}, "content": " "}},
                {{"type": "ByteFallback"}}, {{"type": "Fuse"}}]}}, "model": {{"type": "BPE",
                "byte_fallback": true, "vocab": {{{}}}, "merges": [{}]}}}}"#,
            vocab.join(", "),
            merges.join(", ")
        );
        let vocabulary =
            Vocabulary::from_tokenizer_json(file.as_bytes(), None).expect("a vocabulary");
        (vocabulary, BpeEncoder::from_tokenizer_json(file.as_bytes(), None).expect("an encoder"))
    }

    #[test]
    fn bitmasks_hold_the_tokens_that_may_not_be_adjacent() {
        for early in [false, true] {
            let (vocabulary, encoder) = made(early);
            assert_eq!(encoder.early_count() > 0, early);
            let mut most = 0;
            for token in 256..300 {
                for after in [true, false] {
                    let row = encoder.forbidden_mask(&vocabulary, token, after);
                    for other in 0..vocabulary.len() as u32 {
                        let forbidden = match after {
                            true => !encoder.may_follow(token, other),
                            false => !encoder.may_follow(other, token),
                        };
                        let has = row[other as usize >> 5] >> (other & 31) & 1 != 0;
                        assert_eq!(has, forbidden, "{token} {other} {after} {early}");
                    }
                    most = most.max(row.iter().map(|word| word.count_ones()).sum());
                }
            }
            assert!(most as usize > MIN_BITMASK_INTERVAL, "{most}");
        }
    }
}
