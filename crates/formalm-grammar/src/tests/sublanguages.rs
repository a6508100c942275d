//! Embedded languages against the definition.

use std::sync::Arc;

use formalm_automata::{Automaton, Expression, Limits as TerminalLimits};

use super::{PATTERNS, Random, cases, check_any, check_longest, grammar, is_whole, letters};
use crate::{Embedded, Grammar, GrammarAutomaton, Lexing, Limits};

/// Makes embedded languages of some terminals: the same texts, or brackets that nest.
pub(super) fn embed(random: &mut Random, grammar: &mut Grammar) {
    for at in 0..grammar.terminals.len() {
        if grammar.ignored.contains(&at) || random.below(2) == 0 {
            continue;
        }
        let terminal = &mut grammar.terminals[at];
        let machine: Arc<dyn formalm_automata::Machine> = match random.below(4) {
            0 => {
                let nested = letters(&[("S", "a S b | c |")]);
                Arc::new(GrammarAutomaton::new(&nested, Limits::default()).unwrap())
            }
            _ => Arc::new(Automaton::new(&terminal.language, TerminalLimits::default()).unwrap()),
        };
        terminal.embedded = Some(Embedded { machine, is_text: true });
        terminal.language = Expression::texts(Vec::new());
    }
}

#[test]
fn any_reading_of_embedded_languages_is_the_definition() {
    for seed in 0..cases(150, 8_000) {
        let mut random = Random(seed);
        let blanks = ["c", "c+", "bc", "ca?"];
        let mut grammar = grammar(&mut random, Lexing::Any, &PATTERNS, &blanks);
        embed(&mut random, &mut grammar);
        check_any(seed, &grammar, b"abc", if is_whole() { 5 } else { 4 });
    }
}

#[test]
fn longest_lexemes_around_embedded_languages_are_the_definition() {
    let mut undecided = 0;
    let count = cases(150, 5_000);
    for seed in 0..count {
        let mut random = Random(seed);
        let blanks = ["c", "c+", "bc", "ca?"];
        let mut grammar = grammar(&mut random, Lexing::Longest, &PATTERNS, &blanks);
        embed(&mut random, &mut grammar);
        undecided += check_longest(seed, &grammar, b"abc", 4);
    }
    assert!(undecided as u64 * 10 <= count, "{undecided} grammars were not decided");
}

#[test]
fn separators_around_embedded_languages_are_the_definition() {
    const WORDS: [&str; 8] = ["a", "b", "ab", "c?a", "a+", "[ab]+", "ac?b", "ba"];
    let mut undecided = 0;
    let count = cases(150, 5_000);
    for seed in 0..count {
        let mut random = Random(seed);
        let mut grammar = super::separated(&mut random, &WORDS);
        embed(&mut random, &mut grammar);
        undecided += check_longest(seed, &grammar, b"abcd", 4);
    }
    assert!(undecided as u64 * 10 <= count, "{undecided} grammars were not decided");
}
