//! Searches for masses against the sum over all token sequences.

use proptest::prelude::*;

use super::automata::{automata, logits, probability};
use super::{END_ID, TOKENS, row};
use crate::*;

/// Rounding of float32 logits, which the model of these tests does not state.
const SLACK: f64 = 4e-6;

fn search(
    automaton: &mut super::automata::TokenAutomaton,
    lengths: &LengthLimits,
    cache_bytes: usize,
) -> MassSearch {
    let options = MassOptions {
        lengths: lengths.clone(),
        given_lengths: vec![0],
        is_unbounded: false,
        row_error: 0.0,
        cache_bytes,
    };
    MassSearch::new(&[(0.0, 0)], TokenScan::new(TOKENS.len(), vec![END_ID]), options, automaton)
        .unwrap_or_else(|()| panic!("the automaton allows every step"))
}

/// Passes the masses of a batch to their children; returns what was decided.
fn expand(
    search: &mut MassSearch,
    batch: &MassBatch,
    seed: u64,
    listed: bool,
    automaton: &mut super::automata::TokenAutomaton,
) -> Vec<DecidedMass> {
    let nodes: Vec<u32> = batch.nodes.iter().chain(&batch.again).copied().collect();
    let paths: Vec<Vec<u32>> = nodes.iter().map(|&node| search.tree().path(node)).collect();
    let again = batch.again.len();
    if listed {
        let ids: Vec<u32> = (0..TOKENS.len() as u32).collect();
        let rows: Vec<Vec<f64>> = paths.iter().map(|path| row(seed, path)).collect();
        let kept: Vec<(u32, &[u32], &[f64])> =
            nodes.iter().zip(&rows).map(|(&node, row)| (node, &ids[..], &row[..])).collect();
        return search.expand_kept(&kept, again, automaton).unwrap_or_default();
    }
    let rows: Vec<Vec<f32>> = paths.iter().map(|path| logits(seed, path)).collect();
    let rows: Vec<(u32, Row<'_>)> =
        nodes.iter().zip(&rows).map(|(&node, row)| (node, Row::of_f32(row))).collect();
    let refused = search.expand_rows(&rows, again, |_| false, automaton);
    assert!(refused.is_ok_and(|(_, decided)| decided.is_empty()));
    let found = search.expand_rows(&rows, again, |sums| sums.len() == nodes.len(), automaton);
    found.map_or_else(|()| panic!("the automaton allows every step"), |(_, decided)| decided)
}

proptest! {
    #[test]
    fn intervals_contain_the_sum_over_all_sequences(
        mut automaton in automata(), seed: u64, complete: bool, listed: bool, most in 0u32..5,
        batch in 1usize..5, cache in prop_oneof![Just(0usize), Just(1 << 20)],
        room in prop_oneof![2 => Just(None), 1 => (0u32..3).prop_map(Some)],
        undone in prop::collection::vec(any::<bool>(), 8),
    ) {
        let lengths = LengthLimits { max_tokens: Some(most), context_rooms: vec![room], complete };
        let expected = probability(&automaton, seed, &lengths, 0, &[]);
        let mut search = search(&mut automaton, &lengths, cache);
        let (mut decided, mut error) = (0.0, 0.0);
        let mut widest = f64::INFINITY;
        let mut undone = undone.into_iter();
        while !search.is_exhausted() {
            let got = search.collect(batch, &mut automaton);
            prop_assert!(got.is_ok());
            let got = got.unwrap_or_default();
            if undone.next() == Some(true) {
                search.put_back(&got);
                let upper = decided + search.open_mass();
                prop_assert!(decided - error <= expected + SLACK && expected <= upper + error + SLACK);
                continue;
            }
            let ends = expand(&mut search, &got, seed, listed, &mut automaton);
            for one in got.decided.iter().chain(&ends) {
                decided += one.mass;
                error += one.mass * one.relative_error;
            }
            let open = search.open_mass();
            prop_assert!(decided - error <= expected + SLACK, "{decided} {expected}");
            prop_assert!(expected <= decided + open + error + SLACK, "{decided} {open} {expected}");
            prop_assert!(open <= widest + SLACK);
            widest = open;
        }
        let parked = search.parked_mass();
        prop_assert!(parked <= search.open_mass() + SLACK);
        prop_assert!(expected <= decided + parked + error + SLACK);
        prop_assert_eq!(room.is_some() && parked > 0.0, search.cut_by_context());
        if room.is_none() {
            prop_assert!((decided - expected).abs() <= error + SLACK, "{decided} {expected}");
        }
    }

    #[test]
    fn the_largest_masses_come_first(mut automaton in automata(), seed: u64, most in 1u32..5) {
        let lengths =
            LengthLimits { max_tokens: Some(most), context_rooms: vec![None], complete: true };
        let mut search = search(&mut automaton, &lengths, 1 << 20);
        let mut before = 0.0;
        while !search.is_exhausted() {
            let got = search.collect(1, &mut automaton).unwrap_or_default();
            for &node in &got.nodes {
                let logprob = search.tree().logprob(node);
                prop_assert!(logprob <= before + SLACK);
                before = logprob;
            }
            expand(&mut search, &got, seed, false, &mut automaton);
        }
    }
}
