//! The searches against brute force over all token sequences of a small random model.

mod automata;
mod masses;
mod walks;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::child_cache::{ChildCache, NextChild};
use crate::*;

/// Tokens with several tokenizations of most strings. Token 5 is the end.
const TOKENS: [Option<&[u8]>; 6] =
    [Some(b"a"), Some(b"b"), Some(b"ab"), Some(b"ba"), Some(b"a"), None];
const END_ID: u32 = 5;

/// The strings over a and b of at most `most` bytes. A state is their number of bytes.
struct ShortStrings {
    most: u32,
}

impl TokenLanguage for ShortStrings {
    type Error = ();

    fn step(&mut self, state: u32, token_id: u32) -> Result<u32, ()> {
        let length = TOKENS[token_id as usize].map_or(0, <[u8]>::len) as u32;
        if state + length > self.most { Err(()) } else { Ok(state + length) }
    }

    fn step_byte(&mut self, state: u32, _byte: u8) -> Result<u32, ()> {
        if state + 1 > self.most { Err(()) } else { Ok(state + 1) }
    }

    fn fill(&mut self, state: u32, words: &mut [u32]) -> Result<(), ()> {
        words.fill(0);
        for (id, token) in TOKENS.iter().enumerate() {
            let length = token.map_or(0, <[u8]>::len) as u32;
            words[0] |= u32::from(state + length <= self.most) << id;
        }
        Ok(())
    }

    fn is_accepting(&self, _state: u32) -> bool {
        true
    }

    fn is_finished(&mut self, state: u32) -> Result<bool, ()> {
        Ok(state == self.most)
    }
}

/// Next-token log-probabilities after a sequence: whole numbers, so that ties are common, shifted so
/// that they sum to one.
fn row(seed: u64, path: &[u32]) -> Vec<f64> {
    let mut hash = seed;
    for &token in path {
        hash = (hash ^ u64::from(token + 1)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    }
    let mut row: Vec<f64> = (0..TOKENS.len())
        .map(|token| {
            let mixed = (hash ^ (token as u64 * 77)).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 60;
            if mixed == 15 { f64::NEG_INFINITY } else { -((mixed % 4) as f64) }
        })
        .collect();
    row[END_ID as usize] = row[END_ID as usize].max(-2.0);
    let total = log_sum(&mut row.clone());
    row.iter_mut().for_each(|value| *value -= total);
    row
}

/// All members with their sequences: tokens, log-probability.
fn sequences(seed: u64, most: u32, complete: bool) -> Vec<(Vec<u32>, f64)> {
    let mut found = Vec::new();
    let mut waiting = vec![(Vec::new(), 0.0, 0)];
    while let Some((path, logprob, size)) = waiting.pop() {
        let row = row(seed, &path);
        let end = if complete { row[END_ID as usize] } else { 0.0 };
        if logprob + end > f64::NEG_INFINITY {
            found.push((path.clone(), logprob + end));
        }
        for (id, token) in TOKENS.iter().enumerate() {
            let Some(bytes) = token else { continue };
            let longer = size + bytes.len() as u32;
            if longer <= most && row[id] > f64::NEG_INFINITY {
                let path = path.iter().copied().chain([id as u32]).collect();
                waiting.push((path, logprob + row[id], longer));
            }
        }
    }
    found.sort_by(|one, other| {
        let order = other.1.total_cmp(&one.1);
        order.then(one.0.len().cmp(&other.0.len())).then(one.0.cmp(&other.0))
    });
    found
}

fn lengths(complete: bool) -> LengthLimits {
    LengthLimits { max_tokens: None, context_rooms: vec![None], complete }
}

fn token_search(complete: bool, cache_bytes: usize) -> TokenSearch {
    let options = TokenOptions { lengths: lengths(complete), beams: None, cache_bytes };
    TokenSearch::new(&[(0.0, 0)], TokenScan::new(TOKENS.len(), vec![END_ID]), options)
}

fn string_search(complete: bool, tolerance: f64, cache_bytes: usize, most: u32) -> StringSearch {
    let options = StringOptions { lengths: lengths(complete), tolerance, cache_bytes };
    let tokens = Arc::new(SortedTokens::new(TOKENS.iter().copied()));
    let scan = TokenScan::new(TOKENS.len(), vec![END_ID]);
    StringSearch::new(&[(0.0, 0)], tokens, scan, options, &mut ShortStrings { most })
        .unwrap_or_else(|()| panic!())
}

/// Runs a search over strings for at most `steps` hits.
fn run_strings(
    search: &mut StringSearch,
    seed: u64,
    most: u32,
    batch: usize,
    hits: usize,
) -> Vec<StringHit> {
    let mut language = ShortStrings { most };
    let mut found = Vec::new();
    while !search.is_exhausted() && found.len() < hits {
        search.begin_batch();
        loop {
            match search.step(batch, None, &mut language) {
                Ok(StringStep::Hit(hit)) => {
                    found.push(hit);
                    if found.len() == hits {
                        return found;
                    }
                }
                Ok(StringStep::Recall(nodes)) => record(search, seed, &nodes, &mut language),
                Ok(StringStep::Evaluate(nodes)) => {
                    record(search, seed, &nodes[..nodes.len().min(batch)], &mut language);
                    search.requeue();
                    break;
                }
                Err(()) => panic!("the language allows every step"),
            }
        }
    }
    found
}

fn record(search: &mut StringSearch, seed: u64, nodes: &[u32], language: &mut ShortStrings) {
    for &node in nodes {
        let values = row(seed, &search.tree().path(node));
        let logits: Vec<f32> = values.iter().map(|&value| value as f32 + 2.5).collect();
        let answer = if is_narrow(seed) {
            Continuations::All(Row::of_f32(&logits), 2.5)
        } else {
            Continuations::All(Row::of_f64(&values), 0.0)
        };
        let recorded = search.record(node, answer, language);
        assert_eq!(recorded, Ok(()));
    }
}

/// Contexts, best first: log-probability, state, number of tokens that the model can read.
type Roots = Vec<(f64, u32, Option<u32>)>;

fn contexts() -> impl Strategy<Value = Roots> {
    let context = (0u8..12, 0u32..4, prop_oneof![Just(None), Just(Some(1))]);
    prop::collection::vec(context, 1..6).prop_map(|mut all| {
        all.sort();
        let root = |(cost, state, room)| (-f64::from(cost) / 2.0, state, room);
        all.into_iter().map(root).collect()
    })
}

/// The contexts that a search has from the start, and those that it gets while it runs.
fn split(contexts: &Roots, late: bool) -> (Vec<(f64, u32)>, LengthLimits, Roots) {
    let early = if late { &[] } else { &contexts[..] };
    let context_rooms = early.iter().map(|context| context.2).collect();
    let lengths = LengthLimits { max_tokens: None, context_rooms, complete: false };
    let late = if late { contexts.iter().rev().copied().collect() } else { Roots::new() };
    (early.iter().map(|context| (context.0, context.1)).collect(), lengths, late)
}

/// Returns the hits of a search over token sequences: context, tokens, log-probability.
fn token_hits(
    contexts: &Roots,
    late: bool,
    complete: bool,
    beams: Option<u32>,
    (seed, batch): (u64, usize),
) -> Vec<(u32, Vec<u32>, f64)> {
    let (roots, lengths, mut waiting) = split(contexts, late);
    let lengths = LengthLimits { complete, ..lengths };
    let options = TokenOptions { lengths, beams, cache_bytes: 0 };
    let mut search = TokenSearch::new(&roots, TokenScan::new(TOKENS.len(), vec![END_ID]), options);
    let (mut language, mut found) = (ShortStrings { most: 4 }, Vec::new());
    loop {
        while let Some(&(logprob, state, room)) = waiting.last()
            && search.best_bound().is_none_or(|bound| logprob >= bound)
        {
            search.add_context(logprob, state, room);
            waiting.pop();
        }
        if search.top().is_none() {
            return found;
        }
        if let Some(hit) = search.pop_hit() {
            let tree = search.tree();
            found.push((tree.root(hit), tree.path(hit), tree.logprob(hit)));
            continue;
        }
        let floor = waiting.last().map(|context| context.0);
        let got = search.collect(batch, floor, &mut language).unwrap_or_default();
        for &node in got.nodes.iter().chain(&got.again) {
            let tree = search.tree();
            let is_new = !got.again.contains(&node);
            assert!(!is_new || floor.is_none_or(|floor| tree.logprob(node) > floor));
            let values = row(seed ^ u64::from(tree.root(node)), &tree.path(node));
            let answer = Continuations::All(Row::of_f64(&values), 0.0);
            let expanded = if is_new {
                search.expand(node, answer, &mut language)
            } else {
                search.expand_again(node, answer, &mut language)
            };
            assert_eq!(expanded, Ok(()));
        }
    }
}

/// Returns the hits of a search over strings: context, string, log-probability.
fn string_hits(
    contexts: &Roots,
    late: bool,
    complete: bool,
    (seed, batch): (u64, usize),
) -> Vec<(u32, Vec<u8>, f64)> {
    let (roots, lengths, mut waiting) = split(contexts, late);
    let lengths = LengthLimits { complete, ..lengths };
    let options = StringOptions { lengths, tolerance: 0.0, cache_bytes: 1 << 20 };
    let tokens = Arc::new(SortedTokens::new(TOKENS.iter().copied()));
    let scan = TokenScan::new(TOKENS.len(), vec![END_ID]);
    let mut language = ShortStrings { most: 4 };
    let mut search = StringSearch::new(&roots, tokens, scan, options, &mut language)
        .unwrap_or_else(|()| panic!());
    let mut found = Vec::new();
    loop {
        while let Some(&(logprob, state, room)) = waiting.last()
            && search.best_bound().is_none_or(|bound| logprob >= bound)
        {
            assert!(search.add_context(logprob, state, room, &mut language).is_ok());
            waiting.pop();
        }
        if search.is_exhausted() {
            return found;
        }
        search.begin_batch();
        let floor = waiting.last().map(|context| context.0);
        loop {
            let (nodes, again) = match search.step(batch, floor, &mut language) {
                Ok(StringStep::Hit(hit)) => {
                    assert!(floor.is_none_or(|floor| hit.logprob > floor - 1e-12));
                    found.push((hit.context, hit.data, hit.logprob));
                    continue;
                }
                Ok(StringStep::Recall(nodes)) => (nodes, true),
                Ok(StringStep::Evaluate(nodes)) => (nodes, false),
                Err(()) => panic!("the language allows every step"),
            };
            for &node in &nodes {
                let tree = search.tree();
                let values = row(seed ^ u64::from(tree.root(node)), &tree.path(node));
                let answer = Continuations::All(Row::of_f64(&values), 0.0);
                assert_eq!(search.record(node, answer, &mut language), Ok(()));
            }
            if !again {
                search.requeue();
                break;
            }
        }
    }
}

/// Returns `true` if the model of a seed returns float32 logits.
fn is_narrow(seed: u64) -> bool {
    seed % 2 == 1
}

proptest! {
    #[test]
    fn token_sequences_come_in_the_order_of_brute_force(
        seed in any::<u64>(), batch in 1usize..6, complete: bool, cache in prop_oneof![Just(0usize), Just(1 << 20)],
    ) {
        let expected = sequences(seed, 3, complete);
        let mut search = token_search(complete, cache);
        let mut language = ShortStrings { most: 3 };
        let mut found = Vec::new();
        while search.top().is_some() {
            if let Some(hit) = search.pop_hit() {
                found.push((search.tree().path(hit), search.tree().logprob(hit)));
                continue;
            }
            let got = search.collect(batch, None, &mut language).unwrap_or_default();
            for node in got.nodes {
                let values = row(seed, &search.tree().path(node));
                let answer = Continuations::All(Row::of_f64(&values), 0.0);
                prop_assert_eq!(search.expand(node, answer, &mut language), Ok(()));
            }
            for node in got.again {
                let values = row(seed, &search.tree().path(node));
                let answer = Continuations::All(Row::of_f64(&values), 0.0);
                prop_assert_eq!(search.expand_again(node, answer, &mut language), Ok(()));
            }
        }
        prop_assert_eq!(found.len(), expected.len());
        for (one, other) in found.iter().zip(&expected) {
            prop_assert!((one.1 - other.1).abs() < 1e-12, "{:?} {:?}", one, other);
        }
        let sorted = |mut list: Vec<(Vec<u32>, f64)>| { list.sort_by(|a, b| a.0.cmp(&b.0)); list.into_iter().map(|one| one.0).collect::<Vec<_>>() };
        prop_assert_eq!(sorted(found), sorted(expected));
    }

    #[test]
    fn strings_have_the_sums_of_brute_force(
        seed in any::<u64>(), batch in 1usize..6, complete: bool, exact: bool,
        cache in prop_oneof![Just(0usize), Just(1 << 20)],
    ) {
        let most = 4;
        let tolerance = if exact { 0.0 } else { 1e-6 };
        let mut expected: BTreeMap<Vec<u8>, Vec<f64>> = BTreeMap::new();
        for (path, logprob) in sequences(seed, most, complete) {
            let data: Vec<u8> = path.iter().flat_map(|&id| TOKENS[id as usize].unwrap_or_default()).copied().collect();
            expected.entry(data).or_default().push(logprob);
        }
        let mut search = string_search(complete, tolerance, cache, most);
        let found = run_strings(&mut search, seed, most, batch, usize::MAX);
        prop_assert_eq!(found.len(), expected.len());
        let mut before = f64::INFINITY;
        let slack = 2.0 * tolerance + if is_narrow(seed) { 4e-6 } else { 1e-12 };
        for hit in &found {
            let ways = &expected[&hit.data];
            let total = log_sum(&mut ways.clone());
            prop_assert!((hit.logprob - total).abs() < slack, "{} {}", hit.logprob, total);
            prop_assert!(hit.logprob <= before + slack);
            prop_assert!(!exact || hit.tokenizations == ways.len());
            before = hit.logprob;
        }
    }

    #[test]
    fn a_restored_string_search_continues_with_the_same_hits(
        seed in any::<u64>(), batch in 1usize..4, complete: bool, hits in 0usize..9,
    ) {
        let most = 3;
        let mut whole = string_search(complete, 0.0, 1 << 20, most);
        let expected = run_strings(&mut whole, seed, most, batch, usize::MAX);
        let mut first = string_search(complete, 0.0, 1 << 20, most);
        let mut found = run_strings(&mut first, seed, most, batch, hits);
        first.requeue();
        let (nodes, entries) = (first.tree().arrays(), first.entry_arrays());
        let mut again = string_search(complete, 0.0, 1 << 20, most);
        let restored = again.restore(&nodes, &entries, TOKENS.len(), false, &mut ShortStrings { most });
        prop_assert_eq!(restored, Ok(()));
        found.extend(run_strings(&mut again, seed, most, batch, usize::MAX));
        let list = |hits: &[StringHit]| hits.iter().map(|hit| (hit.data.clone(), hit.logprob.to_bits(), hit.token_ids.clone())).collect::<Vec<_>>();
        if hits > 0 {
            prop_assert_eq!(list(&found), list(&expected));
        }
        let mut broken = entries.clone();
        broken.bounds.push(0.0);
        let mut other = string_search(complete, 0.0, 1 << 20, most);
        let refused = other.restore(&nodes, &broken, TOKENS.len(), false, &mut ShortStrings { most });
        prop_assert_eq!(refused, Err(InvalidSearch::Arrays));
    }

    #[test]
    fn late_contexts_have_the_token_sequences_of_early_ones(
        contexts in contexts(), seed in any::<u64>(), batch in 1usize..6, complete: bool,
        beams in prop_oneof![Just(None), (1u32..4).prop_map(Some)],
    ) {
        let whole = token_hits(&contexts, false, complete, beams, (seed, batch));
        let late = token_hits(&contexts, true, complete, beams, (seed, batch));
        prop_assert_eq!(late, whole);
    }

    #[test]
    fn late_contexts_have_the_strings_of_early_ones(
        contexts in contexts(), seed in any::<u64>(), batch in 1usize..6, complete: bool,
    ) {
        let mut whole = string_hits(&contexts, false, complete, (seed, batch));
        let mut late = string_hits(&contexts, true, complete, (seed, batch));
        prop_assert_eq!(late.len(), whole.len());
        for (one, other) in late.iter().zip(&whole) {
            // Ties that rounding breaks may change places.
            prop_assert!((one.2 - other.2).abs() < 1e-9, "{:?} {:?}", one, other);
        }
        let order = |one: &(u32, Vec<u8>, f64), other: &(u32, Vec<u8>, f64)| one.0.cmp(&other.0).then(one.1.cmp(&other.1));
        whole.sort_by(order);
        late.sort_by(order);
        for (one, other) in late.iter().zip(&whole) {
            prop_assert_eq!((one.0, &one.1), (other.0, &other.1));
            prop_assert!((one.2 - other.2).abs() < 1e-9, "{:?} {:?}", one, other);
        }
    }

    #[test]
    fn a_queue_is_a_sorted_list(steps in prop::collection::vec((0u8..6, any::<bool>()), 1..60)) {
        let mut tree = SequenceTree::default();
        let root = tree.add_root(0.0, 0);
        let mut queue = NodeQueue::default();
        let mut list: Vec<(i8, Vec<u32>, u32)> = Vec::new();
        for (number, (cost, take)) in steps.into_iter().enumerate() {
            let node = tree.add(root, 100 - number as i32, -f64::from(cost));
            queue.push(&tree, node);
            list.push((cost as i8, tree.path(node), node));
            if take {
                list.sort();
                prop_assert_eq!(queue.top(), Some(list[0].2));
                prop_assert_eq!(queue.pop(&tree), Some(list.remove(0).2));
            }
            prop_assert_eq!(queue.len(), list.len());
        }
    }

    #[test]
    fn children_come_best_first(values in prop::collection::vec(0u8..4, 1..400)) {
        let mut all: Vec<(u32, f64)> = values.iter().enumerate().map(|(id, &value)| (id as u32, -f64::from(value))).collect();
        let mut cache = ChildCache::new(1 << 20);
        cache.list(7, all.clone(), 0, true);
        let mut taken = Vec::new();
        while let NextChild::Child(child) = cache.next(7) {
            taken.push(child);
        }
        all.sort_by(crate::child_cache::best_first);
        prop_assert_eq!(taken, all);
    }
}

#[test]
fn tokens_are_sorted_by_bytes() {
    let tokens = SortedTokens::new(TOKENS.iter().copied());
    assert_eq!(tokens.token_ids(), [0, 4, 2, 1, 3]);
    assert_eq!((tokens.rank(2), tokens.rank(END_ID), tokens.bytes(2)), (Some(2), None, &b"ab"[..]));
    assert_eq!(tokens.narrow((0, 5), 0, b'b'), (3, 5));
    assert_eq!((tokens.end_of_byte((0, 5), 0), tokens.end_of_exact((0, 3), 1)), (3, 2));
}
