//! A stranger's pattern, and a text to read with it: no panic, no endless work, limits kept.
#![no_main]

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits, CaptureFinder, Expression};
use formalm_core::LazyDfa;
use formalm_regex::{PatternDialect, PatternFlags, parse};
use libfuzzer_sys::fuzz_target;

/// Small, so that what would run away is stopped within a run.
const LIMITS: AutomatonLimits = AutomatonLimits { states: 2_000, bytes: 32 << 20 };

/// Steps that finding groups may take.
const STEPS: u64 = 1 << 20;

fuzz_target!(|input: (u8, &str, &[u8])| {
    let (bits, pattern, text) = input;
    let dialect = if bits & 1 == 0 { PatternDialect::Python } else { PatternDialect::Ecma };
    let flags = PatternFlags {
        ignore_case: bits & 2 != 0,
        multi_line: bits & 4 != 0,
        dot_all: bits & 8 != 0,
        ascii: bits & 16 != 0,
        verbose: bits & 32 != 0,
    };
    let Ok(pattern) = parse(pattern, dialect, flags) else { return };
    let language = Expression::pattern(pattern);
    let Ok(automaton) = Automaton::new(&language, LIMITS).map(Arc::new) else { return };
    let mut state = automaton.start();
    for &byte in text {
        match automaton.step(state, byte) {
            Ok(Some(next)) => state = next,
            // Not viable, or a limit: both are answers.
            Ok(None) | Err(_) => return,
        }
    }
    // A state that was reached is viable, so it has a completion, and that one is accepting.
    if let Ok(rest) = automaton.shortest_completion(state) {
        if let Ok(Ok(end)) = automaton.walk(state, &rest) {
            assert!(automaton.is_accepting(end), "the shortest completion is not accepted");
            let member = [text, &rest].concat();
            let Ok(grouping) = CaptureFinder::new(&language, automaton, LIMITS) else { return };
            if let Ok(captured) = grouping.find_captures(&member, STEPS) {
                assert!(captured.is_some(), "a member has no captures");
            }
        }
    }
});
