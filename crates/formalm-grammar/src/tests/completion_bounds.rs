//! Completion bounds, alone and intersected with a regular language, against all short strings.

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits as RegularLimits, Expression};
use formalm_core::{Error, LazyDfa, ReadingHints};
use formalm_machines::{
    CompletionLength, Intersection, IntersectionBounds, Precision, ProductCache,
};

use super::sublanguages::embed_sublanguages;
use super::{
    PATTERNS, SeededRng, cases, grammar, grammar_with_separators, letter_grammar, terminal, texts,
};
use crate::{Grammar, GrammarAutomaton, GrammarLimits, Lexing};

const IGNORED_PATTERNS: [&str; 4] = ["c", "c+", "bc", "ca?"];
/// Maximum bytes of the members enumerated, and of the prefixes whose completions are checked.
const MAX_MEMBER_BYTES: usize = 5;
const MAX_PREFIX_BYTES: usize = 3;

/// Returns a random regular language over the same letters.
fn regular(random: &mut SeededRng) -> Arc<Automaton> {
    const PIECES: [&str; 11] =
        ["a", "b", "c", "[ab]", "[abc]", "(ab|c)", "a*", "b?", "(aa|b)*", "[abc]*", "[^a]*"];
    let count = 1 + random.below(4);
    let pattern: String = (0..count).map(|_| PIECES[random.below(PIECES.len())]).collect();
    let language: Expression = terminal(&pattern).language;
    Arc::new(Automaton::new(&language, RegularLimits::default()).unwrap())
}

fn machine(grammar: &Grammar) -> Option<Arc<GrammarAutomaton>> {
    match GrammarAutomaton::new(grammar, GrammarLimits { search: 300, ..GrammarLimits::default() })
    {
        Ok(machine) => Some(Arc::new(machine)),
        Err(Error::Language { .. } | Error::Limit { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Returns the short members of both languages.
fn common(machine: &GrammarAutomaton, regular: &Automaton) -> Vec<Vec<u8>> {
    let mut all = texts(b"abcd", MAX_MEMBER_BYTES);
    all.retain(|text| {
        let completion_bounds = machine.membership(text).unwrap();
        let read = || machine.accepts_from(machine.start(), text).unwrap();
        regular.accepts_from(regular.start(), text).unwrap()
            && completion_bounds.unwrap_or_else(read)
    });
    all
}

/// Returns the bytes to the nearest member that extends `text`.
fn nearest(members: &[Vec<u8>], text: &[u8]) -> Option<usize> {
    let continued = members.iter().filter(|member| member.starts_with(text));
    continued.map(|member| member.len() - text.len()).min()
}

/// Compares the bounds with all short strings. Returns for how many cases a bound was known.
fn check(seed: u64, grammar: &Grammar, random: &mut SeededRng) -> usize {
    let Some(machine) = machine(grammar) else { return 0 };
    let regular = regular(random);
    let members = common(&machine, &regular);
    let mut beside = ProductCache { regular: Arc::clone(&regular), known: None };
    let mut known = 0;
    for text in texts(b"abcd", MAX_PREFIX_BYTES) {
        let Ok(Ok(at)) = machine.walk(machine.start(), &text) else { continue };
        let Ok(other) = regular.walk(regular.start(), &text).unwrap() else { continue };
        let nearest = nearest(&members, &text);
        for bound_precision in [Precision::Coarse, Precision::Fine, Precision::Finest] {
            let shown = || format!("seed {seed}: {text:?} {bound_precision:?} {grammar:#?}");
            let completion =
                machine.intersection_completion(at, &mut beside, other, bound_precision).unwrap();
            match completion {
                CompletionLength::Unknown => continue,
                CompletionLength::Never => assert_eq!(nearest, None, "{}", shown()),
                CompletionLength::AtLeast(bytes) => {
                    assert!(nearest.is_none_or(|nearest| bytes <= nearest), "{}", shown());
                }
                CompletionLength::Exactly(bytes) if text.len() + bytes <= MAX_MEMBER_BYTES => {
                    assert_eq!(nearest, Some(bytes), "{}", shown());
                }
                CompletionLength::Exactly(_) => assert_eq!(nearest, None, "{}", shown()),
            }
            known += 1;
        }
    }
    known
}

#[test]
fn bounds_agree_with_exhaustive_search() {
    for lexing in [Lexing::Any, Lexing::Longest, Lexing::First] {
        let (mut known, count) = (0, cases(150, 20_000));
        for seed in 0..count {
            let mut random = SeededRng(seed);
            let grammar = grammar(&mut random, lexing, &PATTERNS, &IGNORED_PATTERNS);
            known += check(seed, &grammar, &mut random);
        }
        assert!(known as u64 > 5 * count, "{known}");
    }
}

#[test]
fn bounds_with_separators_and_sublanguages_agree_with_exhaustive_search() {
    let (mut known, count) = (0, cases(150, 20_000));
    for seed in 0..count {
        let mut random = SeededRng(seed);
        let mut grammar = match random.below(2) {
            0 => grammar_with_separators(&mut random, &["a", "b", "ab", "a+", "[ab]+", "ba"]),
            _ => grammar(&mut random, Lexing::Longest, &PATTERNS, &IGNORED_PATTERNS),
        };
        if random.below(2) == 0 {
            embed_sublanguages(&mut random, &mut grammar);
        }
        known += check(seed, &grammar, &mut random);
    }
    assert!(known as u64 > 5 * count, "{known}");
}

/// Members of a grammar that a regular language contains too. With [`Lexing::Any`], every case is
/// decided.
#[test]
fn intersections_with_regular_languages_have_no_dead_ends() {
    for lexing in [Lexing::Any, Lexing::Longest, Lexing::First] {
        let (mut undecided, count) = (0, cases(150, 20_000));
        for seed in 0..count {
            let mut random = SeededRng(seed);
            let grammar = grammar(&mut random, lexing, &PATTERNS, &IGNORED_PATTERNS);
            let Some(machine) = machine(&grammar) else { continue };
            let regular = regular(&mut random);
            let members = common(&machine, &regular);
            let intersection = Intersection::of(Arc::clone(&machine), regular, 100_000);
            if intersection.is_err() && lexing != Lexing::Any {
                undecided += 1;
                continue;
            }
            let Some(intersection) = intersection.unwrap() else {
                assert!(members.is_empty(), "seed {seed}: {members:?} of {grammar:#?}");
                continue;
            };
            for text in texts(b"abcd", MAX_PREFIX_BYTES) {
                let read = intersection.walk(intersection.start(), &text);
                if read.is_err() && lexing != Lexing::Any {
                    undecided += 1;
                    break;
                }
                let nearest = nearest(&members, &text);
                let shown = || format!("seed {seed}: {text:?} of {grammar:#?}");
                let Ok(at) = read.unwrap() else {
                    assert_eq!(nearest, None, "{}", shown());
                    continue;
                };
                let Ok(rest) = intersection.shortest_completion(at) else {
                    assert!(lexing != Lexing::Any, "{}", shown());
                    continue;
                };
                assert!(intersection.accepts_from(at, &rest).unwrap(), "{}", shown());
                if text.len() + rest.len() <= MAX_MEMBER_BYTES {
                    assert_eq!(nearest, Some(rest.len()), "{}", shown());
                } else {
                    assert_eq!(nearest, None, "{}", shown());
                }
            }
        }
        assert!(undecided * 100 <= count, "{lexing:?}: {undecided} were not decided");
    }
}

/// Cases decided at once, although a search would not terminate or the completion is far.
#[test]
fn bounds_decide_cases_that_no_search_can() {
    let beaten =
        Grammar { lexing: Lexing::Longest, ..letter_grammar(&[("S", "[ab] | [ab]{2} S [ab]{2}")]) };
    let machine = GrammarAutomaton::new(&beaten, GrammarLimits::default()).unwrap();
    let walk = |text: &[u8]| machine.walk(machine.start(), text).unwrap();
    assert_eq!((walk(b"a").is_ok(), walk(b"ab"), walk(b"aba")), (true, Err(1), Err(1)));
    let nested = letter_grammar(&[("S", "[(] S [)] | x")]);
    let nested = Arc::new(GrammarAutomaton::new(&nested, GrammarLimits::default()).unwrap());
    let open = terminal(r"x|\([(x]*").language;
    let open = Arc::new(Automaton::new(&open, RegularLimits::default()).unwrap());
    let intersection = Intersection::of(nested, open, 1_000).unwrap().unwrap();
    assert_eq!(intersection.walk(intersection.start(), b"(").unwrap(), Err(0));
    assert_eq!(intersection.shortest_completion(intersection.start()).unwrap(), b"x");
    let far = Grammar { lexing: Lexing::Longest, ..letter_grammar(&[("S", "a{60000}")]) };
    let far = GrammarAutomaton::new(&far, GrammarLimits::default()).unwrap();
    assert!(far.walk(far.start(), b"aaa").unwrap().is_ok());
}

/// Lengths beyond 32 bits are reported as a lower bound, never as "no completion".
#[test]
fn bounds_beyond_u32_saturate() {
    let rules: Vec<(String, String)> =
        (0..40).map(|at| (format!("X{at}"), format!("X{} X{}", at + 1, at + 1))).collect();
    let mut rules: Vec<(&str, &str)> = rules.iter().map(|(one, body)| (&**one, &**body)).collect();
    rules.push(("X40", "abc"));
    let machine = GrammarAutomaton::new(&letter_grammar(&rules), GrammarLimits::default()).unwrap();
    let all = terminal("[a-c]*").language;
    let regular = Arc::new(Automaton::new(&all, RegularLimits::default()).unwrap());
    let mut beside = ProductCache { regular: Arc::clone(&regular), known: None };
    for text in [&b""[..], b"a", b"ab", b"abc", b"abca"] {
        let at = machine.walk(machine.start(), text).unwrap().unwrap();
        let other = regular.walk(regular.start(), text).unwrap().unwrap();
        for bound_precision in [Precision::Coarse, Precision::Fine] {
            let told =
                machine.intersection_completion(at, &mut beside, other, bound_precision).unwrap();
            assert_eq!(told, CompletionLength::AtLeast(u32::MAX as usize - 1), "{text:?}");
        }
    }
}
