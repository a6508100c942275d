use formalm_automata::Expression;
use formalm_core::{CompletionHints, Error, LazyDfa, ReadingHints, Resource, steps_taken};
use formalm_regex::{PatternDialect, PatternFlags, parse};

mod batched_reading;
mod completion_bounds;
mod dead_end_proof;
mod external_parsers;
mod redundant_threads;
mod reference;
mod sublanguages;

use crate::tests::reference::SlowReference;
use crate::{Grammar, GrammarAutomaton, GrammarLimits, Lexing, Rule, RuleBody, Terminal};

/// A small random number generator: a seed names a case for good.
struct SeededRng(u64);

impl SeededRng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

/// Returns the number of random cases: `few`, or `whole` if `FORMALM_CASES` is "whole".
fn cases(few: u64, whole: u64) -> u64 {
    if is_whole() { whole } else { few }
}

fn is_whole() -> bool {
    std::env::var("FORMALM_CASES").is_ok_and(|asked| asked == "whole")
}

fn terminal(pattern: &str) -> Terminal {
    let parsed = parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap();
    Terminal {
        name: pattern.to_owned(),
        language: Expression::pattern(parsed),
        sublanguage: None,
        span: None,
    }
}

fn node(random: &mut SeededRng, terminals: usize, rules: usize, depth: usize) -> RuleBody {
    let kinds = if depth == 0 { 5 } else { 10 };
    match random.below(kinds) {
        0..=1 => RuleBody::Terminal(random.below(terminals)),
        2..=3 => RuleBody::Rule(random.below(rules)),
        4 if random.below(3) == 0 => RuleBody::Empty,
        4..=6 => {
            let count = 1 + random.below(3);
            RuleBody::Sequence(
                (0..count)
                    .map(|_| node(random, terminals, rules, depth.saturating_sub(1)))
                    .collect(),
            )
        }
        7..=8 => {
            let count = 1 + random.below(3);
            RuleBody::Choice(
                (0..count).map(|_| node(random, terminals, rules, depth - 1)).collect(),
            )
        }
        _ => {
            let min = random.below(3) as u32;
            let max = [None, Some(min), Some(min + 1), Some(min + 2)][random.below(4)];
            RuleBody::Repeat(Box::new(node(random, terminals, rules, depth - 1)), min, max)
        }
    }
}

fn grammar(
    random: &mut SeededRng,
    lexing: Lexing,
    patterns: &[&str],
    ignored_patterns: &[&str],
) -> Grammar {
    let mut terminals: Vec<Terminal> = Vec::new();
    for _ in 0..1 + random.below(4) {
        let pattern = patterns[random.below(patterns.len())];
        if terminals.iter().all(|one| one.name != pattern) {
            terminals.push(terminal(pattern));
        }
    }
    let count = terminals.len();
    let mut ignored = Vec::new();
    if !ignored_patterns.is_empty() && random.below(2) == 0 {
        let at = random.below(terminals.len() + 1);
        terminals.insert(at, terminal(ignored_patterns[random.below(ignored_patterns.len())]));
        ignored.push(at);
    }
    let all = terminals.len();
    let rules = 1 + random.below(4);
    let body = |random: &mut SeededRng| {
        let alternatives = 1 + random.below(3);
        // Occasionally, ignored terminals occur in rules too.
        let terminals = if random.below(8) == 0 { all } else { count };
        RuleBody::Choice((0..alternatives).map(|_| node(random, terminals, rules, 2)).collect())
    };
    let rules = (0..rules)
        .map(|at| Rule { name: format!("r{at}"), body: body(random), span: None })
        .collect();
    Grammar {
        terminals,
        rules,
        ignored,
        whole: Vec::new(),
        start: 0,
        lexing,
        replacements: Vec::new(),
        indentation: None,
        captures: Vec::new(),
        special_tokens: Vec::new(),
        needed_names: Vec::new(),
        notes: Vec::new(),
    }
}

fn texts(alphabet: &[u8], length: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = vec![Vec::new()];
    let mut at = 0;
    while all[at].len() < length {
        for &byte in alphabet {
            let text = [&all[at][..], &[byte]].concat();
            all.push(text);
        }
        at += 1;
    }
    all
}

/// Returns whether `text` is viable and whether it is a member, according to an automaton.
fn verdict(machine: &GrammarAutomaton, text: &[u8]) -> Result<(bool, bool), Error> {
    Ok(match machine.walk(machine.start(), text)? {
        Ok(state) => (true, machine.is_accepting(state)?),
        Err(_) => (false, false),
    })
}

/// Compares an automaton with [`Lexing::Any`] with the reference, on all short strings.
fn check_any_lexing(seed: u64, grammar: &Grammar, alphabet: &[u8], length: usize) {
    let reference = SlowReference::new(grammar);
    let machine = match GrammarAutomaton::new(grammar, GrammarLimits::default()) {
        Ok(machine) => machine,
        Err(Error::Language { .. }) => {
            return assert!(!reference.is_viable(b""), "seed {seed}: empty");
        }
        Err(error) => panic!("seed {seed}: {error}"),
    };
    for text in texts(alphabet, length) {
        let shown = String::from_utf8_lossy(&text).into_owned();
        let (viable, member) = verdict(&machine, &text).unwrap();
        assert_eq!(
            member,
            reference.accepts(&text),
            "seed {seed}: member {shown:?} of {grammar:#?}"
        );
        assert_eq!(
            viable,
            reference.is_viable(&text),
            "seed {seed}: viable {shown:?} of {grammar:#?}"
        );
        if viable && seed.is_multiple_of(4) {
            let Ok(state) = machine.walk(machine.start(), &text).unwrap() else { unreachable!() };
            let live = machine.live_bytes(state).unwrap();
            for byte in 0..=255 {
                assert_eq!(live.contains(byte), machine.step(state, byte).unwrap().is_some());
            }
            let rest = machine.shortest_completion(state).unwrap();
            for rest in [rest, machine.any_completion(state).unwrap()] {
                let whole = [&text[..], &rest].concat();
                assert!(reference.accepts(&whole), "seed {seed}: {shown:?} {rest:?}");
            }
        }
    }
}

#[test]
fn any_lexing_of_letters_matches_the_reference() {
    for seed in 0..cases(200, 20_000) {
        let mut random = SeededRng(seed);
        let grammar = grammar(&mut random, Lexing::Any, &["a", "b"], &[]);
        check_any_lexing(seed, &grammar, b"ab", if is_whole() { 7 } else { 6 });
    }
}

const PATTERNS: [&str; 12] =
    ["a", "b", "ab", "a+", "a*b", "ba?", "(ab)+", "a|bb", "b*", "[ab]c", "c", "aab"];

#[test]
fn any_lexing_of_patterns_matches_the_reference() {
    for seed in 0..cases(150, 8_000) {
        let mut random = SeededRng(seed);
        let grammar = grammar(&mut random, Lexing::Any, &PATTERNS, &["c", "c+", "bc", "ca?"]);
        check_any_lexing(seed, &grammar, b"abc", 4);
    }
}

/// Checks longest-match lexing: membership as defined, prefixes of members viable, and a completion
/// for each viable string. Returns 1 for an undecided case.
fn check_longest_lexing(seed: u64, grammar: &Grammar, alphabet: &[u8], length: usize) -> usize {
    let reference = SlowReference::new(grammar);
    let machine = match GrammarAutomaton::new(
        grammar,
        GrammarLimits { search: 300, ..GrammarLimits::default() },
    ) {
        Ok(machine) => machine,
        Err(Error::Limit { .. }) => return 1,
        Err(Error::Interrupted | Error::Deadline { .. } | Error::Callback(_)) => {
            panic!("seed {seed}: nobody was asked")
        }
        Err(Error::Language { message, .. }) => {
            if !message.contains("the empty string") {
                let member =
                    texts(alphabet, length).into_iter().find(|text| reference.accepts(text));
                assert!(member.is_none(), "seed {seed}: {message}: {member:?}");
            }
            return 0;
        }
    };
    let all = texts(alphabet, length);
    let members: Vec<&Vec<u8>> = all.iter().filter(|text| reference.accepts(text)).collect();
    for text in &all {
        let shown = String::from_utf8_lossy(text).into_owned();
        // If lexemes do not compete, `membership` returns `None` and the walk decides.
        let walked = || verdict(&machine, text).unwrap().1;
        let is_member = machine.membership(text).unwrap().unwrap_or_else(walked);
        assert_eq!(is_member, members.contains(&text), "seed {seed}: {shown:?} of {grammar:#?}");
        let (viable, member) = match verdict(&machine, text) {
            Ok(verdict) => verdict,
            Err(Error::Limit { resource: Resource::Readings, .. }) => return 1,
            Err(error) => panic!("seed {seed}: {error}"),
        };
        assert_eq!(member, members.contains(&text), "seed {seed}: {shown:?} of {grammar:#?}");
        let continued = members.iter().filter(|member| member.starts_with(text));
        let shortest = continued.min_by_key(|member| (member.len(), member.to_vec()));
        assert!(
            viable || shortest.is_none(),
            "seed {seed}: {shown:?} {shortest:?} of {grammar:#?}"
        );
        if !viable {
            continue;
        }
        let Ok(state) = machine.walk(machine.start(), text).unwrap() else { unreachable!() };
        let Ok(rest) = machine.shortest_completion(state) else { return 1 };
        let some = machine.any_completion(state).unwrap();
        assert!(reference.accepts(&[&text[..], &some].concat()), "seed {seed}: {shown:?} {some:?}");
        let whole = [&text[..], &rest].concat();
        assert!(reference.accepts(&whole), "seed {seed}: {shown:?} {rest:?} of {grammar:#?}");
        if let Some(shortest) = shortest {
            assert_eq!(&whole, *shortest, "seed {seed}: {shown:?} of {grammar:#?}");
        }
    }
    0
}

#[test]
fn longest_lexing_matches_the_reference() {
    let mut undecided = 0;
    let count = cases(120, 5_000);
    for seed in 0..count {
        let mut random = SeededRng(seed);
        let grammar = grammar(&mut random, Lexing::Longest, &PATTERNS, &["c", "c+", "bc", "ca?"]);
        undecided += check_longest_lexing(seed, &grammar, b"abc", 4);
    }
    assert!(undecided as u64 * 100 <= count, "{undecided} grammars were not decided");
}

/// Returns a random grammar with ignored spaces and comments that extend over spaces.
fn grammar_with_separators(random: &mut SeededRng, words: &[&str]) -> Grammar {
    let mut grammar = grammar(random, Lexing::Longest, words, &[]);
    for pattern in ["c+", ["dd", "db*", "d[abc]*"][random.below(3)]] {
        grammar.ignored.push(grammar.terminals.len());
        grammar.terminals.push(terminal(pattern));
    }
    grammar
}

/// Spaces, comments that extend over them, words that begin with them, and shadowed terminals: the
/// cases that the dead-end proof is about.
#[test]
fn longest_lexing_with_separators_matches_the_reference() {
    const WORDS: [&str; 10] = ["a", "b", "ab", "c?a", "(ac)?b", "a+", "[ab]+", "ac?b", "aca", "ba"];
    let mut undecided = 0;
    let count = cases(150, 5_000);
    for seed in 0..count {
        let mut random = SeededRng(seed);
        let grammar = grammar_with_separators(&mut random, &WORDS);
        undecided += check_longest_lexing(seed, &grammar, b"abcd", 4);
    }
    assert!(undecided as u64 * 100 <= count, "{undecided} grammars were not decided");
}

/// Builds a grammar of rules over single letters: `S → a S | ε` is written `("S", "a S |")`.
fn letter_grammar(rules: &[(&str, &str)]) -> Grammar {
    let mut terminals: Vec<Terminal> = Vec::new();
    let mut list = Vec::new();
    for &(name, body) in rules {
        let alternatives = body.split('|').map(|alternative| {
            let symbols = alternative.split_whitespace().map(|symbol| {
                if let Some(at) = rules.iter().position(|&(name, _)| name == symbol) {
                    return RuleBody::Rule(at);
                }
                let at = terminals.iter().position(|one| one.name == symbol);
                RuleBody::Terminal(at.unwrap_or_else(|| {
                    terminals.push(terminal(symbol));
                    terminals.len() - 1
                }))
            });
            RuleBody::Sequence(symbols.collect())
        });
        let body = RuleBody::Choice(alternatives.collect());
        list.push(Rule { name: name.to_owned(), body, span: None });
    }
    let (ignored, notes) = (Vec::new(), Vec::new());
    let (lexing, replaced) = (Lexing::Any, Vec::new());
    Grammar {
        terminals,
        rules: list,
        ignored,
        whole: Vec::new(),
        start: 0,
        lexing,
        replacements: replaced,
        indentation: None,
        captures: Vec::new(),
        special_tokens: Vec::new(),
        needed_names: Vec::new(),
        notes,
    }
}

fn machine(rules: &[(&str, &str)]) -> GrammarAutomaton {
    GrammarAutomaton::new(&letter_grammar(rules), GrammarLimits::default()).unwrap()
}

fn reads(machine: &GrammarAutomaton, text: &[u8]) -> bool {
    machine.accepts_from(machine.start(), text).unwrap()
}

#[test]
fn left_right_hidden_and_cyclic_recursion_is_parsed() {
    let nested = machine(&[("S", "a S b |")]);
    assert!(reads(&nested, &[b"a".repeat(2000), b"b".repeat(2000)].concat()));
    assert!(!reads(&nested, &[b"a".repeat(2000), b"b".repeat(1999)].concat()));
    for rules in [
        &[("S", "a S | a")][..],
        &[("S", "S a | a")],
        &[("S", "E S a | a"), ("E", "| b")],
        &[("S", "T"), ("T", "U"), ("U", "S | a | U a")],
        &[("S", "S S | a |")],
    ] {
        assert!(reads(&machine(rules), &b"a".repeat(60)), "{rules:?}");
    }
}

#[test]
fn left_recursion_has_constant_stack_and_right_recursion_constant_work_per_byte() {
    let left = machine(&[("S", "S a | a")]);
    assert!(reads(&left, &b"a".repeat(20_000)));
    assert!(left.state_count() <= 4, "{}", left.state_count());
    // The limit is per byte: what the thousandth byte takes suffices for all later ones.
    for rules in [&[("S", "a S | a")][..], &[("S", "a S b |")]] {
        let limits = GrammarLimits { steps: 24, ..GrammarLimits::default() };
        let right = GrammarAutomaton::new(&letter_grammar(rules), limits).unwrap();
        let read = right.walk(right.start(), &b"a".repeat(100_000));
        assert!(read.unwrap().is_ok(), "{rules:?}");
    }
}

#[test]
fn nested_input_does_not_overflow_the_thread_stack() {
    // Unoptimized frames are larger; a stack that grew with the input would not fit either.
    let kilobytes = if cfg!(debug_assertions) { 512 } else { 64 };
    let small = std::thread::Builder::new().stack_size(kilobytes << 10);
    let nested = small.spawn(|| {
        let nested = machine(&[("S", "a S b |")]);
        let Ok(open) = nested.walk(nested.start(), &b"a".repeat(100_000)).unwrap() else {
            return false;
        };
        let rest = nested.shortest_completion(open).unwrap();
        rest == b"b".repeat(100_000)
    });
    assert!(nested.unwrap().join().unwrap());
}

#[test]
fn exponential_grammars_hit_a_limit() {
    let mut rules: Vec<(String, String)> =
        (0..2000).map(|at| (format!("X{at}"), format!("X{} X{} |", at + 1, at + 1))).collect();
    rules.push(("X2000".to_owned(), "a |".to_owned()));
    let rules: Vec<(&str, &str)> = rules.iter().map(|(a, b)| (&**a, &**b)).collect();
    let limits = GrammarLimits { steps: 200_000, ..GrammarLimits::default() };
    let made = GrammarAutomaton::new(&letter_grammar(&rules), limits);
    let read = made.and_then(|bomb| bomb.walk(bomb.start(), &b"a".repeat(50)));
    assert!(matches!(read, Err(Error::Limit { .. })), "{read:?}");
}

#[test]
fn useless_rules_are_reported_and_empty_grammars_are_refused() {
    let useless = machine(&[("S", "a"), ("T", "b"), ("U", "a U")]);
    let notes: Vec<&str> = useless.notes().iter().map(|note| &*note.message).collect();
    let expected =
        ["the rule T is unreachable from the start rule", "the rule U derives no string"];
    assert_eq!(notes, expected);
    let empty = GrammarAutomaton::new(&letter_grammar(&[("S", "a S")]), GrammarLimits::default());
    assert!(matches!(empty, Err(Error::Language { .. })));
}

#[test]
fn steps_are_counted_per_calling_thread() {
    let nested = machine(&[("S", "a S b |")]);
    let before = steps_taken();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(reads(&nested, b"aaabbb"));
            assert!(steps_taken() > 0);
        });
    });
    assert_eq!(steps_taken(), before);
    assert!(reads(&nested, b"aaaabbbb"));
    assert!(steps_taken() > before);
}
