//! Property tests: the adjacency relation against actual merging, on random merge lists.

use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::{Adjacency, TokenDerivation};
use crate::bpe::merge_rules::{MergeRule, MergeRules};

/// The reference implementation of merging: find the lowest rank, leftmost first, merge once,
/// repeat.
fn merge(rules: &[(u32, u32, MergeRule)], symbols: &[u32]) -> Vec<u32> {
    let mut symbols = symbols.to_vec();
    loop {
        let mut best: Option<(u32, usize, u32)> = None;
        for (at, pair) in symbols.windows(2).enumerate() {
            for &(left, right, rule) in rules {
                if (left, right) == (pair[0], pair[1])
                    && best.is_none_or(|(rank, _, _)| rule.rank < rank)
                {
                    best = Some((rule.rank, at, rule.token));
                }
            }
        }
        let Some((_, at, token)) = best else { return symbols };
        symbols.splice(at..at + 2, [token]);
    }
}

/// A random merge list over three symbols, as training could produce it. It has every split of a
/// token into listed tokens, in various orders, or a rank per token with ties.
#[derive(Clone, Debug)]
struct RandomMerges {
    texts: Vec<Vec<u32>>,
    rules: Vec<(u32, u32, MergeRule)>,
}

/// A hash that scrambles the order of numbers.
fn scramble(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

fn model() -> impl Strategy<Value = RandomMerges> {
    let texts = prop::collection::vec(prop::collection::vec(0..3u32, 2..6), 1..14);
    (texts, any::<u64>(), 0..5u8).prop_map(|(more, seed, order)| {
        let mut texts: Vec<Vec<u32>> = (0..3).map(|symbol| vec![symbol]).collect();
        for text in more {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let ids: FxHashMap<Vec<u32>, u32> =
            texts.iter().enumerate().map(|(id, text)| (text.clone(), id as u32)).collect();
        let mut splits = Vec::new();
        for (id, text) in texts.iter().enumerate() {
            for at in 1..text.len() {
                if let (Some(&left), Some(&right)) = (ids.get(&text[..at]), ids.get(&text[at..])) {
                    splits.push((left, right, id as u32));
                }
            }
        }
        match order {
            // Shorter tokens first, as in most lists; in order of ids; in random order.
            0 => splits.sort_by_key(|&(_, _, id)| (texts[id as usize].len(), id)),
            1 => {}
            _ => splits.sort_by_key(|&(left, right, id)| {
                scramble(u64::from(left) << 40 ^ u64::from(right) << 20 ^ u64::from(id) ^ seed)
            }),
        }
        let rank = |at: usize, id: u32| match order {
            // Ranks of tokens as in tiktoken, and scores with ties.
            3 => scramble(u64::from(id) ^ seed) as u32,
            4 => (scramble(u64::from(id) ^ seed) % 4) as u32,
            _ => at as u32,
        };
        let rules = splits
            .into_iter()
            .enumerate()
            .map(|(at, (left, right, token))| {
                (left, right, MergeRule { rank: rank(at, token), token })
            })
            .collect();
        RandomMerges { texts, rules }
    })
}

impl RandomMerges {
    fn adjacency(&self) -> Adjacency {
        let rules = MergeRules::new(self.rules.clone());
        let mut made = Vec::new();
        for (id, text) in self.texts.iter().enumerate() {
            let (mut parts, mut rank) = (None, 0);
            let mut symbols = text.clone();
            rules.merge(&mut symbols, |pair, rule| {
                parts = Some(pair);
                rank = rule.rank;
            });
            if symbols == [id as u32] {
                made.push((id as u32, TokenDerivation { parts, rank }));
            }
        }
        Adjacency::new(&made, self.texts.len())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn adjacent_tokens_are_those_that_merging_keeps(model in model()) {
        let adjacency = model.adjacency();
        let count = model.texts.len() as u32;
        let reachable = |id: &u32| adjacency.is_reachable(*id);
        for id in 0..count {
            let made = merge(&model.rules, &model.texts[id as usize]);
            prop_assert_eq!(made == [id], adjacency.is_reachable(id));
        }
        for first in (0..count).filter(reachable) {
            for after in [true, false] {
                let mut listed = vec![false; count as usize];
                adjacency.for_each_forbidden(first, after, |tokens| {
                    tokens.iter().for_each(|&token| listed[token as usize] = true);
                });
                for second in (0..count).filter(reachable) {
                    let (one, two) = if after { (first, second) } else { (second, first) };
                    let text = [&*model.texts[one as usize], &model.texts[two as usize]].concat();
                    let stays = merge(&model.rules, &text) == [one, two];
                    prop_assert_eq!(stays, adjacency.crossing_merge(one, two).is_none(), "{} {}", one, two);
                    prop_assert_eq!(stays, !listed[second as usize], "{} {} {}", one, two, after);
                }
            }
        }
    }

    #[test]
    fn a_sequence_is_canonical_iff_all_adjacent_pairs_are(
        model in model(),
        ids in prop::collection::vec(0..17u32, 1..7),
    ) {
        let adjacency = model.adjacency();
        let ids: Vec<u32> = ids
            .into_iter()
            .filter(|&id| id < model.texts.len() as u32 && adjacency.is_reachable(id))
            .collect();
        let text: Vec<u32> = ids.iter().flat_map(|&id| model.texts[id as usize].clone()).collect();
        let all_adjacent = ids.windows(2).all(|pair| adjacency.crossing_merge(pair[0], pair[1]).is_none());
        prop_assert_eq!(merge(&model.rules, &text) == ids, all_adjacent);
    }

    #[test]
    fn the_heap_merges_like_the_linear_scan(
        model in model(),
        text in prop::collection::vec(0..3u32, 0..120),
    ) {
        let mut symbols = text.clone();
        MergeRules::new(model.rules.clone()).merge(&mut symbols, |_, _| ());
        prop_assert_eq!(merge(&model.rules, &text), symbols);
    }
}
