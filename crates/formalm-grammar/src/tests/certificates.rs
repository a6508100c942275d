//! What a certificate says is what is found out without one.

use formalm_automata::{Error, Machine};

use super::{Random, cases, letters, separated, terminal, texts};
use crate::certificate::Certificate;
use crate::scans::Scans;
use crate::{Grammar, GrammarAutomaton, Lexing, Limits};

/// Words of which some are spelled as others are: those that come first beat them.
const WORDS: [&str; 10] = ["a", "[a]", "b", "ab", "[ab]+", "ba?", "a*b", "aab", "a+", "ba"];

/// The machine of a grammar, and the same without what was proved of it; `None` if nothing was, or
/// there is no member.
fn both(grammar: &Grammar) -> Option<[GrammarAutomaton; 2]> {
    let limits = Limits { search: 300, ..Limits::default() };
    let machines = [0, 1].map(|_| GrammarAutomaton::new(grammar, limits));
    let [Ok(proved), Ok(searched)] = machines else { return None };
    if !proved.lock().core.certificate.is_there() {
        return None;
    }
    {
        let core = &mut searched.lock().core;
        core.certificate = Certificate::default();
        // What was remembered by it.
        core.scans = Scans::default();
        core.alone = [None, None, None];
        core.viable.clear();
        core.settled.clear();
    }
    Some([proved, searched])
}

/// Compares what a grammar's machine reads with and without a certificate; how many texts there were
/// to compare.
fn check(seed: u64, grammar: &Grammar) -> usize {
    let Some([proved, searched]) = both(grammar) else { return 0 };
    let mut compared = 0;
    for text in texts(b"abc", 4) {
        let read = [&proved, &searched].map(|one| match one.walk(one.start(), &text) {
            Ok(read) => Some(read.map_err(|_| ()).map(|_| ())),
            Err(Error::Limit { .. }) => None,
            Err(error) => panic!("seed {seed}: {error}"),
        });
        let [Some(proved), Some(searched)] = read else { continue };
        assert_eq!(proved, searched, "seed {seed}: {text:?} of {grammar:#?}");
        compared += 1;
    }
    compared
}

#[test]
fn certificates_say_what_is_found_without_them() {
    let (mut compared, count) = (0, cases(600, 60_000));
    for seed in 0..count {
        let mut random = Random(seed);
        let lexing = [Lexing::Longest, Lexing::First][random.below(2)];
        let mut grammar = separated(&mut random, &WORDS);
        grammar.lexing = lexing;
        compared += check(seed, &grammar);
    }
    assert!(compared as u64 > count, "{compared}");
}

/// Behind an `S` that may be all, another one asks for what `a*b` always beats.
#[test]
fn rules_before_what_is_beaten_lead_nowhere() {
    let mut grammar = letters(&[("S", "a*b | aab a*b | aab | | S S aab")]);
    grammar.lexing = Lexing::First;
    grammar.ignored.push(grammar.terminals.len());
    grammar.terminals.push(terminal("c+"));
    let machine = GrammarAutomaton::new(&grammar, Limits::default()).unwrap();
    let walk = |text: &[u8]| machine.walk(machine.start(), text).unwrap();
    assert!(machine.lock().core.certificate.is_there());
    assert!(walk(b"bc").is_ok());
    for text in [b"ba", b"bb"] {
        assert_eq!(walk(text), Err(1));
    }
}
