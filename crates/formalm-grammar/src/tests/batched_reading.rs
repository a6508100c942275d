//! Batched reading leads to the states that byte-by-byte reading leads to.

use formalm_core::{Error, LazyDfa, StateId};

use super::{PATTERNS, SeededRng, cases, grammar, texts};
use crate::{GrammarAutomaton, GrammarLimits, Lexing};

/// Returns the state after `text` read byte by byte, or the number of bytes that can be read.
fn step_byte_by_byte(
    machine: &GrammarAutomaton,
    text: &[u8],
) -> Result<Result<StateId, usize>, Error> {
    let mut state = machine.start();
    for (read, &byte) in text.iter().enumerate() {
        match machine.step(state, byte)? {
            Some(next) => state = next,
            None => return Ok(Err(read)),
        }
    }
    Ok(Ok(state))
}

/// Reads strings in random order at once, in two pieces, and byte by byte. Returns whether that was
/// decided.
fn check(seed: u64, lexing: Lexing) -> bool {
    let mut random = SeededRng(seed);
    let grammar = grammar(&mut random, lexing, &PATTERNS, &["c", "c+", "bc", "ca?"]);
    let limits = GrammarLimits { search: 300, ..GrammarLimits::default() };
    let Ok(whole) = GrammarAutomaton::new(&grammar, limits) else { return false };
    let Ok(bytes) = GrammarAutomaton::new(&grammar, limits) else { return false };
    let mut all = texts(b"abc", 5);
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    for text in &all {
        let shown = || format!("seed {seed}: {:?} of {grammar:#?}", String::from_utf8_lossy(text));
        let (read, completion_bounds) =
            (whole.walk(whole.start(), text), step_byte_by_byte(&bytes, text));
        assert!(read.is_ok() || completion_bounds.is_err(), "{read:?} {}", shown());
        let (Ok(read), Ok(completion_bounds)) = (read, completion_bounds) else { return false };
        let accepting = |state| whole.is_accepting(state);
        let apart = completion_bounds.map(|state| bytes.is_accepting(state));
        assert_eq!(read.map(accepting), apart, "{}", shown());
        // In the other half of the cases, the transitions stay as the batched walk made them.
        if random.below(2) == 0 {
            assert_eq!(step_byte_by_byte(&whole, text), Ok(read), "{}", shown());
        }
        let (front, rest) = text.split_at(random.below(text.len() + 1));
        let parts = whole.walk(whole.start(), front).map(|state| match state {
            Ok(state) => whole.walk(state, rest).map(|end| end.map_err(|at| at + front.len())),
            Err(at) => Ok(Err(at)),
        });
        assert_eq!(parts, Ok(Ok(read)), "{}", shown());
        assert_eq!(whole.walk(whole.start(), text), Ok(read), "{}", shown());
    }
    true
}

#[test]
fn batched_reading_equals_byte_by_byte_reading() {
    for lexing in [Lexing::Any, Lexing::Longest, Lexing::First] {
        let count = cases(150, 6_000);
        let decided = (0..count).filter(|&seed| check(seed, lexing)).count() as u64;
        assert!(decided > count / 2, "{decided} of {count}");
    }
}
