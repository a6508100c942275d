//! Walks against the probabilities of all token sequences.

use proptest::prelude::*;

use super::automata::{TokenAutomaton, automata, logits, probability};
use super::{END_ID, TOKENS, row};
use crate::*;

/// Rounding of float32 logits.
const SLACK: f64 = 4e-6;

fn walks(lengths: &LengthLimits, step_bytes: usize) -> WalkTree {
    let options = WalkOptions { lengths: lengths.clone(), step_bytes };
    WalkTree::new(&[(0.0, 0)], TokenScan::new(TOKENS.len(), vec![END_ID]), options)
}

/// Records the model's answer at a node: its row, or the tokens that may follow.
fn record(tree: &mut WalkTree, node: u32, seed: u64, listed: bool, automaton: &mut TokenAutomaton) {
    let path = tree.tree().path(node);
    if listed {
        let found = allowed_at(tree, node, automaton);
        let (ids, may_end) = found.unwrap_or_else(|()| panic!("the automaton allows every step"));
        let row = row(seed, &path);
        let kept: Vec<f64> = ids.iter().map(|&id| row[id as usize].exp()).collect();
        let end = if may_end { row[END_ID as usize].exp() } else { 0.0 };
        tree.record_listed(node, &ids, &kept, end);
    } else {
        let logits = logits(seed, &path);
        let shared = SharedRow::copied(Row::of_f32(&logits));
        let refused = tree.record_rows(vec![(node, shared.clone())], |_| false, automaton);
        assert!(refused.is_ok() && tree.end(node).is_none_or(|_| tree.alive(node).is_some()));
        let recorded = tree.record_rows(vec![(node, shared)], |sums| sums.len() == 1, automaton);
        assert!(recorded.is_ok());
    }
    tree.settle(node, 1.0);
}

/// Evaluates a node, and all below it that a random choice takes.
fn explore(
    tree: &mut WalkTree,
    node: u32,
    seed: u64,
    listed: bool,
    automaton: &mut TokenAutomaton,
    choose: &mut impl FnMut() -> bool,
) {
    if tree.is_decided(node, automaton) == Ok(true) {
        tree.decide(node, 1.0);
        return;
    }
    record(tree, node, seed, listed, automaton);
    let found = tree.listed(node, automaton);
    let ids = found.ok().flatten().map_or_else(Vec::new, |found| found.0);
    for id in ids {
        if choose() {
            let child = tree.child(node, id, automaton).unwrap_or_else(|()| panic!());
            explore(tree, child, seed, listed, automaton, choose);
        }
    }
}

/// Learns until no step is missing; an evicted one is recorded again.
fn learn(tree: &mut WalkTree, seed: u64, listed: bool, automaton: &mut TokenAutomaton) {
    let nodes = tree.to_learn();
    let mut at = 0;
    while at < nodes.len() {
        at += tree.learn(&nodes[at..], automaton).unwrap_or_else(|()| panic!());
        if at < nodes.len() {
            assert!(tree.is_missing(nodes[at]));
            record(tree, nodes[at], seed, listed, automaton);
        }
    }
}

/// Returns the live share of a node by its definition.
fn share(tree: &WalkTree, node: u32, seed: u64, automaton: &TokenAutomaton, most: u32) -> f64 {
    let Some(alive) = tree.alive(node) else { return 1.0 };
    let path = tree.tree().path(node);
    let state = path
        .iter()
        .fold(0, |state: u32, &id| automaton.next[state as usize][id as usize].unwrap_or(0));
    if tree.end(node) == Some(1.0) && alive == 1.0 && automaton.accepting[state as usize] {
        return 1.0; // decided
    }
    let row = row(seed, &path);
    let mut sum =
        if automaton.accepting[state as usize] { row[END_ID as usize].exp() } else { 0.0 };
    if (path.len() as u32) < most {
        for (id, next) in automaton.next[state as usize].iter().enumerate() {
            if next.is_some() {
                let longer: Vec<u32> = path.iter().copied().chain([id as u32]).collect();
                let nodes = 0..tree.tree().len() as u32;
                let child = nodes.into_iter().find(|&one| tree.tree().path(one) == longer);
                let below = child.map_or(1.0, |one| share(tree, one, seed, automaton, most));
                sum += row[id].exp() * below;
            }
        }
    }
    sum
}

proptest! {
    #[test]
    fn a_tree_that_was_walked_everywhere_has_the_probability_of_the_language(
        mut automaton in automata(), seed: u64, complete: bool, listed: bool, most in 1u32..4,
        bytes in prop_oneof![Just(0usize), Just(1 << 20)],
    ) {
        // Sequences of the maximum length are evaluated for their end only.
        let lengths = LengthLimits { max_tokens: Some(most), context_rooms: vec![None], complete };
        let mut tree = walks(&lengths, bytes);
        explore(&mut tree, 0, seed, listed, &mut automaton, &mut || true);
        for node in 0..tree.tree().len() as u32 {
            prop_assert!(tree.alive(node).is_some());
        }
        learn(&mut tree, seed, listed, &mut automaton);
        let expected = probability(&automaton, seed, &lengths, 0, &[]);
        let found = tree.alive(0).unwrap_or(f64::NAN);
        prop_assert!((found - expected).abs() < SLACK, "{found} {expected}");
    }

    #[test]
    fn live_shares_and_draws_follow_their_definitions(
        mut automaton in automata(), seed: u64, listed: bool, most in 1u32..4,
        mut choices in any::<u64>(), uniforms in prop::collection::vec(0.0f64..1.0, 12),
        bytes in prop_oneof![Just(0usize), Just(1 << 20)],
    ) {
        let lengths =
            LengthLimits { max_tokens: Some(most), context_rooms: vec![None], complete: true };
        let mut tree = walks(&lengths, bytes);
        let mut choose = || {
            choices = choices.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            choices >> 63 == 0
        };
        explore(&mut tree, 0, seed, listed, &mut automaton, &mut choose);
        learn(&mut tree, seed, listed, &mut automaton);
        for node in 0..tree.tree().len() as u32 {
            let expected = share(&tree, node, seed, &automaton, most);
            let found = tree.alive(node).unwrap_or(1.0);
            prop_assert!((found - expected).abs() < SLACK, "{node}: {found} {expected}");
        }
        for is_learned in [false, true] {
            if is_learned {
                tree.begin_round();
            }
            if tree.is_missing(0) {
                record(&mut tree, 0, seed, listed, &mut automaton);
            }
            // The end, then the tokens by id, in the last round each with its live share.
            let row = row(seed, &[]);
            let mut points = vec![(0.0, None::<u32>)];
            let mut sum = if automaton.accepting[0] { row[END_ID as usize].exp() } else { 0.0 };
            points.push((sum, None));
            for id in 0..END_ID {
                if automaton.next[0][id as usize].is_some() {
                    let node = (0..tree.tree().len() as u32).find(|&one| tree.tree().path(one) == [id]);
                    let alive = node.and_then(|one| tree.alive(one)).unwrap_or(1.0);
                    sum += row[id as usize].exp() * if is_learned { alive } else { 1.0 };
                    points.push((sum, Some(id)));
                }
            }
            for &uniform in &uniforms {
                for rule in [WalkRule::Allowed, WalkRule::Learned] {
                    let is_known = is_learned && rule == WalkRule::Learned;
                    if rule == WalkRule::Allowed && is_learned {
                        continue; // it does not learn
                    }
                    let scaled = rule == WalkRule::Allowed || is_known;
                    let target = if scaled { uniform * sum } else { uniform };
                    if points.iter().any(|one| (one.0 - target).abs() < 10.0 * SLACK) {
                        continue;
                    }
                    let drawn = tree.draw(0, uniform, rule, &mut automaton);
                    prop_assert!(drawn.is_ok());
                    let Some((found, total)) = drawn.ok().flatten() else { panic!("it is recorded") };
                    prop_assert!((total - sum).abs() < SLACK, "{total} {sum}");
                    let expected = points.iter().find(|one| target < one.0);
                    match (found, expected) {
                        (WalkMove::Rejected, None) | (WalkMove::End, Some((_, None))) => {}
                        (WalkMove::To(node), Some(&(_, Some(id)))) => {
                            prop_assert_eq!(tree.tree().path(node), [id]);
                            let steps = tree.step_logprobs(node);
                            // NaN for a child that was made after the step was evicted.
                            let error = (steps[0] - row[id as usize]).abs();
                            prop_assert!(error < SLACK || error.is_nan() && bytes == 0);
                        }
                        other => prop_assert!(false, "{:?} at {} of {:?}", other, target, points),
                    }
                }
            }
        }
    }
}
