//! Tests of materialized automata against brute force: random small DFAs, and those of patterns.

use std::collections::BTreeSet;

use num_bigint::BigUint;
use proptest::prelude::*;

use super::*;
use crate::tests::automaton;
use crate::{Automaton, AutomatonLimits, Expression};

const LIMIT: u64 = 1 << 20;
const LABELS: u32 = 3;
/// Distinguishes any two of eight states.
const LONGEST: usize = 8;

fn patient<T>(work: impl FnOnce(&mut InterruptCheck<'_>) -> T) -> T {
    work(&mut InterruptCheck::new(&mut || true))
}

fn graph(pattern: &str) -> MaterializedDfa {
    patient(|poll| MaterializedDfa::of(&automaton(pattern), LIMIT, poll)).unwrap()
}

fn measured(graph: &MaterializedDfa, unit: LengthUnit) -> UnitTransitions {
    patient(|poll| UnitTransitions::new(graph, unit, poll)).unwrap()
}

/// A table of successors, one row for each state, and the accepting states.
type DfaRows = (Vec<[Option<usize>; LABELS as usize]>, Vec<bool>);

fn rows() -> impl Strategy<Value = DfaRows> {
    (1usize..8).prop_flat_map(|states| {
        let row = prop::array::uniform3(prop::option::weighted(0.7, 0..states));
        (prop::collection::vec(row, states), prop::collection::vec(any::<bool>(), states))
    })
}

fn explored((rows, accepting): &DfaRows) -> MaterializedDfa {
    let successors = |state: usize, row: &mut Vec<(u32, usize)>| {
        // Any order is allowed.
        for label in (0..LABELS).rev() {
            row.extend(rows[state][label as usize].map(|next| (label, next)));
        }
        Ok(())
    };
    let size = DfaSizeLimits { states: LIMIT, edges: LIMIT };
    patient(|poll| {
        MaterializedDfa::explore(0, successors, |state| Ok(accepting[state]), size, poll)
    })
    .unwrap()
}

fn minimal(rows: &DfaRows) -> MaterializedDfa {
    patient(|poll| explored(rows).minimized(poll)).unwrap()
}

/// Returns all sequences of labels up to a length, by length and then in lexicographic order.
fn sequences(length: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..length {
        let end = all.len();
        for at in from..end {
            for label in 0..LABELS {
                let longer = all[at].iter().copied().chain([label]).collect();
                all.push(longer);
            }
        }
        from = end;
    }
    all
}

/// Returns the members from a state up to a length.
fn members_from(graph: &MaterializedDfa, state: u32, length: usize) -> BTreeSet<Vec<u32>> {
    let reads = |labels: &Vec<u32>| {
        let end = labels.iter().try_fold(state, |state, &label| graph.step_label(state, label));
        end.is_some_and(|state| graph.is_accepting(state))
    };
    sequences(length).into_iter().filter(reads).collect()
}

fn listed(
    graph: &MaterializedDfa,
    measured: &UnitTransitions,
    last: Option<usize>,
    count: usize,
) -> Vec<Vec<u32>> {
    let mut members = MemberEnumerator::new(0, last, LIMIT);
    let next = || patient(|poll| members.next(graph, measured, poll)).unwrap();
    std::iter::from_fn(next).take(count).collect()
}

proptest! {
    #[test]
    fn minimized_dfas_are_minimal_and_keep_their_language(rows in rows()) {
        let (large, small) = (explored(&rows), minimal(&rows));
        for labels in sequences(6) {
            prop_assert_eq!(large.accepts(labels.clone()), small.accepts(labels));
        }
        let futures: BTreeSet<_> = (0..small.state_count() as u32)
            .map(|state| members_from(&small, state, LONGEST - 1))
            .collect();
        prop_assert_eq!(futures.len(), small.state_count());
        prop_assert!(small.is_empty() || futures.iter().all(|future| !future.is_empty()));
        prop_assert_eq!(&patient(|poll| small.minimized(poll)).unwrap(), &small);
    }

    #[test]
    fn equal_languages_have_equal_minimal_dfas(rows in rows(), shift in 1usize..8) {
        // Every state twice, and successors lead to either copy.
        let (table, accepting) = &rows;
        let count = table.len();
        let doubled: Vec<_> = (0..2 * count)
            .map(|state| {
                let mut row = table[state % count];
                for (label, next) in row.iter_mut().enumerate() {
                    *next = next.map(|next| next + count * ((state + label * shift) % 2));
                }
                row
            })
            .collect();
        let accepting = [accepting.clone(), accepting.clone()].concat();
        prop_assert_eq!(minimal(&(doubled, accepting)), minimal(&rows));
    }

    #[test]
    fn counting_enumeration_and_ranking_agree_with_brute_force(rows in rows()) {
        let graph = minimal(&rows);
        let measured = UnitTransitions::labels(&graph);
        let all: Vec<Vec<u32>> =
            sequences(6).into_iter().filter(|labels| graph.accepts(labels.clone())).collect();
        prop_assert_eq!(&listed(&graph, &measured, Some(6), usize::MAX), &all);
        let mut tally = LengthCounts::default();
        for length in 0..=6usize {
            let those: Vec<_> = all.iter().filter(|labels| labels.len() == length).collect();
            if !tally.is_complete() {
                patient(|poll| tally.extend(&graph, &measured, LIMIT, poll)).unwrap();
            }
            let count = tally.counts().get(length).cloned().unwrap_or_default();
            prop_assert_eq!(count, BigUint::from(those.len()));
        }
        for span in [LengthRange::Exactly(5), LengthRange::AtMost(5), LengthRange::Any] {
            let made = patient(|poll| RankTable::new(&graph, &measured, span, LIMIT, poll)).unwrap();
            prop_assert_eq!(made.is_none(), span == LengthRange::Any && graph.topological().is_none());
            let Some(table) = made else { continue };
            let mut those = all.clone();
            those.retain(|labels| match span {
                LengthRange::Exactly(length) => labels.len() == length,
                LengthRange::AtMost(length) => labels.len() <= length,
                LengthRange::Any => true,
            });
            those.sort();
            // A finite language of at most seven states has no member of more than six labels.
            prop_assert_eq!(table.total(), BigUint::from(those.len()));
            for (number, labels) in those.iter().enumerate() {
                let number = BigUint::from(number);
                let found = patient(|poll| table.unrank(&graph, &measured, &number, poll));
                prop_assert_eq!(found.unwrap(), Some(labels.clone()));
                let found = patient(|poll| table.rank(&graph, &measured, labels, poll));
                prop_assert_eq!(found.unwrap(), Some(number));
            }
            let beyond = BigUint::from(those.len());
            let found = patient(|poll| table.unrank(&graph, &measured, &beyond, poll));
            prop_assert_eq!(found.unwrap(), None);
        }
    }

    #[test]
    fn the_difference_found_is_the_first_of_brute_force(one in rows(), other in rows()) {
        let (one, other) = (minimal(&one), minimal(&other));
        let side = |graph: &MaterializedDfa| (!graph.is_empty()).then(|| graph.clone());
        let (left, right) = (side(&one), side(&other));
        for relation in [LanguageRelation::Equivalence, LanguageRelation::Inclusion] {
            let (left, right) = (left.as_ref(), right.as_ref());
            let found = patient(|poll| {
                difference(left, right, relation, LengthUnit::Labels, LIMIT, poll).unwrap()
            });
            let found = found.map(|text| text.into_iter().map(u32::from).collect::<Vec<_>>());
            let expected = sequences(LONGEST).into_iter().find(|labels| {
                let (left, right) = (one.accepts(labels.clone()), other.accepts(labels.clone()));
                if relation == LanguageRelation::Equivalence { left != right } else { left && !right }
            });
            // If two DFAs of seven states differ, they differ on a string of fewer than fourteen
            // labels.
            if found.as_ref().is_none_or(|labels| labels.len() <= LONGEST) {
                prop_assert_eq!(found, expected);
            } else {
                prop_assert_eq!(expected, None);
            }
        }
    }

    #[test]
    fn saved_dfas_are_loaded_and_corrupted_ones_refused(rows in rows(), at in 0usize..200, byte: u8) {
        let graph = minimal(&rows);
        let saved = graph.save();
        let load = |data: &[u8]| patient(|poll| MaterializedDfa::load(data, LABELS, poll));
        prop_assert_eq!(load(&saved), Ok(graph.clone()));
        prop_assert!(load(&saved[..saved.len() - 1]).is_err());
        let mut other = saved.clone();
        let place = at % saved.len();
        other[place] = byte;
        // Whatever is read successfully is a minimal DFA.
        if let Ok(read) = load(&other) {
            prop_assert_eq!(&patient(|poll| read.minimized(poll)).unwrap(), &read);
            prop_assert_eq!(read.save(), other);
        }
    }
}

#[test]
fn patterns_have_the_expected_number_of_minimal_states() {
    assert_eq!(graph(r"([0-9]+)?\.[0-9]+").state_count(), 3);
    assert_eq!(graph("a{3}|aaa"), graph("aaa"));
    assert_eq!(graph("(ab|a(b))*"), graph("(?:ab)*"));
    assert_eq!(graph("[a-y]|z"), graph("[a-z]"));
    assert_eq!(graph("[a-z]").range_count(), 1);
}

#[test]
fn limits_and_interrupts_stop_materialization() {
    let machine = automaton("(a|b)*a(a|b){12}");
    let limited = patient(|poll| MaterializedDfa::of(&machine, 1000, poll));
    let states = Resource::States;
    assert!(matches!(limited, Err(Error::Limit { resource, .. }) if resource == states));
    let stopped = MaterializedDfa::of(&machine, LIMIT, &mut InterruptCheck::new(&mut || false));
    assert_eq!(stopped, Err(Error::Interrupted));
}

#[test]
fn lengths_count_characters() {
    let graph = graph("[a-cé-ï€😀]{2}|x{3}");
    let characters = measured(&graph, LengthUnit::Characters);
    let mut tally = LengthCounts::default();
    while !tally.is_complete() {
        patient(|poll| tally.extend(&graph, &characters, LIMIT, poll)).unwrap();
    }
    let counts = [0u32, 0, 144, 1].map(BigUint::from);
    assert_eq!(tally.counts(), counts);
    let all = listed(&graph, &characters, None, usize::MAX);
    let text = |labels: &Vec<u32>| {
        String::from_utf8(labels.iter().map(|&label| label as u8).collect()).unwrap()
    };
    let texts: Vec<String> = all.iter().map(text).collect();
    assert_eq!((texts.len(), texts[0].as_str(), texts[144].as_str()), (145, "aa", "xxx"));
    assert!(texts[..144].is_sorted());
    let table =
        patient(|poll| RankTable::new(&graph, &characters, LengthRange::Exactly(2), LIMIT, poll));
    let table = table.unwrap().unwrap();
    for (number, labels) in all[..144].iter().enumerate() {
        let rank = patient(|poll| table.rank(&graph, &characters, labels, poll)).unwrap();
        assert_eq!(rank, Some(BigUint::from(number)));
        let back = patient(|poll| table.unrank(&graph, &characters, &number.into(), poll));
        assert_eq!(back.unwrap().as_ref(), Some(labels));
    }
    assert_eq!(characters.shortest(&graph, 0).as_ref(), Some(&all[0]));
}

#[test]
fn members_that_are_not_utf8_have_no_length_in_characters() {
    for texts in [vec![b"\xFF".to_vec()], vec![b"a\xC3".to_vec(), b"b".to_vec()]] {
        let machine =
            Automaton::new(&Expression::literals(texts), AutomatonLimits::default()).unwrap();
        let graph = patient(|poll| MaterializedDfa::of(&machine, LIMIT, poll)).unwrap();
        let refused = patient(|poll| UnitTransitions::new(&graph, LengthUnit::Characters, poll));
        assert!(matches!(refused, Err(Error::Language { hint: Some(_), .. })));
    }
    // Bytes that together form a character are UTF-8, however they were combined.
    let halves = [b"\xC3".to_vec(), b"\xA9".to_vec()].map(|half| Expression::literals(vec![half]));
    let whole = Expression::concat(halves.to_vec()).unwrap();
    let machine = Automaton::new(&whole, AutomatonLimits::default()).unwrap();
    assert!(patient(|poll| is_utf8(&machine, LIMIT, poll)).unwrap());
}
