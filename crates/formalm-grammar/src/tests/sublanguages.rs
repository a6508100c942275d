//! Sublanguages against the reference.

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits as TerminalLimits, Expression};

use super::{
    PATTERNS, SeededRng, cases, check_any_lexing, check_longest_lexing, grammar, is_whole,
    letter_grammar,
};
use crate::{Grammar, GrammarAutomaton, GrammarLimits, Lexing, Sublanguage};

/// Turns some terminals into sublanguages: the same strings, or nested brackets.
pub(super) fn embed_sublanguages(random: &mut SeededRng, grammar: &mut Grammar) {
    for at in 0..grammar.terminals.len() {
        if grammar.ignored.contains(&at) || random.below(2) == 0 {
            continue;
        }
        let terminal = &mut grammar.terminals[at];
        let machine: Arc<dyn formalm_core::Machine> = match random.below(4) {
            0 => {
                let nested = letter_grammar(&[("S", "a S b | c |")]);
                Arc::new(GrammarAutomaton::new(&nested, GrammarLimits::default()).unwrap())
            }
            _ => Arc::new(Automaton::new(&terminal.language, TerminalLimits::default()).unwrap()),
        };
        terminal.sublanguage = Some(Sublanguage { machine, is_text: true });
        terminal.language = Expression::literals(Vec::new());
    }
}

#[test]
fn any_lexing_with_sublanguages_matches_the_reference() {
    for seed in 0..cases(150, 8_000) {
        let mut random = SeededRng(seed);
        let ignored_patterns = ["c", "c+", "bc", "ca?"];
        let mut grammar = grammar(&mut random, Lexing::Any, &PATTERNS, &ignored_patterns);
        embed_sublanguages(&mut random, &mut grammar);
        check_any_lexing(seed, &grammar, b"abc", if is_whole() { 5 } else { 4 });
    }
}

#[test]
fn longest_lexing_around_sublanguages_matches_the_reference() {
    let mut undecided = 0;
    let count = cases(150, 5_000);
    for seed in 0..count {
        let mut random = SeededRng(seed);
        let ignored_patterns = ["c", "c+", "bc", "ca?"];
        let mut grammar = grammar(&mut random, Lexing::Longest, &PATTERNS, &ignored_patterns);
        embed_sublanguages(&mut random, &mut grammar);
        undecided += check_longest_lexing(seed, &grammar, b"abc", 4);
    }
    assert!(undecided as u64 * 10 <= count, "{undecided} grammars were not decided");
}

#[test]
fn longest_lexing_with_separators_and_sublanguages_matches_the_reference() {
    const WORDS: [&str; 8] = ["a", "b", "ab", "c?a", "a+", "[ab]+", "ac?b", "ba"];
    let mut undecided = 0;
    let count = cases(150, 5_000);
    for seed in 0..count {
        let mut random = SeededRng(seed);
        let mut grammar = super::grammar_with_separators(&mut random, &WORDS);
        embed_sublanguages(&mut random, &mut grammar);
        undecided += check_longest_lexing(seed, &grammar, b"abcd", 4);
    }
    assert!(undecided as u64 * 10 <= count, "{undecided} grammars were not decided");
}
