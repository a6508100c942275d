//! What masks take for the same: negative threads without redundant ones, and canonical lexer
//! states.

use std::collections::BTreeSet;

use formalm_core::LazyDfa;

use super::{SeededRng, cases, grammar, texts};
use crate::configuration_reader::ConfigurationReader;
use crate::lexer::Lexer;
use crate::limits::StepMeter;
use crate::{GrammarAutomaton, GrammarLimits, Lexing, NOTHING};

/// Words and patterns of which some begin with others.
const WORDS: [&str; 8] = ["a", "ab", "abc", "ba", "bab", "[abc]+", "[ab]+", "a[bc]*"];

/// Returns `true` if negative threads forbid a text.
fn forbids(lexer: &mut Lexer, threads: u32, text: &[u8], meter: &mut StepMeter) -> bool {
    let mut left = threads;
    for &byte in text {
        meter.reset();
        match lexer.threads.step_negative_threads(left, byte, meter).unwrap() {
            Some(next) => left = next,
            None => return true,
        }
    }
    false
}

#[test]
fn threads_without_redundant_ones_forbid_the_same_texts() {
    let (mut reduced, all) = (0, texts(b"abc", 4));
    for seed in 0..cases(400, 5_000) {
        let mut random = SeededRng(seed);
        let lexing = [Lexing::Longest, Lexing::First][random.below(2)];
        let grammar = grammar(&mut random, lexing, &WORDS, &["c"]);
        let limits = GrammarLimits { search: 300, ..GrammarLimits::default() };
        let Ok(machine) = GrammarAutomaton::new(&grammar, limits) else { continue };
        for text in &all {
            let _ = machine.walk(machine.start(), text);
        }
        let core = &mut machine.lock().core;
        let states = 0..core.states.len() as u32;
        let configurations = states.flat_map(|state| core.states.get(state));
        let sets: BTreeSet<u32> = configurations.map(|one| one.negative_threads).collect();
        let ConfigurationReader { lexer, parser, .. } = &mut core.reader;
        let meter = &mut parser.gss.meter;
        for set in sets {
            let fewer = lexer.threads.without_redundant(set);
            reduced += usize::from(fewer != set);
            assert!(lexer.threads.is_subset(fewer, set));
            for text in &all {
                let [before, after] =
                    [set, fewer].map(|threads| forbids(lexer, threads, text, meter));
                assert_eq!(before, after, "seed {seed}: {text:?} of {grammar:#?}");
            }
        }
    }
    assert!(reduced > 0, "{reduced}");
}

#[test]
fn canonical_lexer_states_have_the_same_transitions() {
    let (mut shared, all) = (0, texts(b"abc", 4));
    for seed in 0..cases(400, 5_000) {
        let mut random = SeededRng(seed);
        let grammar = grammar(&mut random, Lexing::Longest, &WORDS, &["c"]);
        let limits = GrammarLimits { search: 300, ..GrammarLimits::default() };
        let Ok(machine) = GrammarAutomaton::new(&grammar, limits) else { continue };
        for text in &all {
            let _ = machine.walk(machine.start(), text);
        }
        let core = &mut machine.lock().core;
        let states = 0..core.states.len() as u32;
        let configurations: Vec<_> = states.flat_map(|state| core.states.get(state)).collect();
        let ConfigurationReader { lexer, parser, .. } = &mut core.reader;
        let meter = &mut parser.gss.meter;
        for one in configurations.iter().filter(|one| one.lexeme != NOTHING) {
            for other in &configurations {
                let state = lexer.states.intern(one.lexeme, other.negative_threads);
                let canonical = lexer.canonical_state(state, meter);
                shared += usize::from(canonical != state);
                for byte in *b"abc" {
                    meter.reset();
                    let before = lexer.step(state, byte, meter);
                    assert_eq!(before, lexer.step(canonical, byte, meter), "seed {seed}");
                }
            }
        }
    }
    assert!(shared > 0, "{shared}");
}
