//! Crate-level tests: patterns against strings.

mod pattern_testdata;
mod rust_dialect;
mod wide_loops;

use formalm_core::{Error, LazyDfa};
use formalm_regex::{PatternDialect, PatternFlags, parse, reference_matcher};
use proptest::prelude::*;

use crate::{Automaton, AutomatonLimits, Expression};

/// Returns the language of a pattern in Python's dialect.
pub(crate) fn expression(pattern: &str) -> Expression {
    Expression::pattern(parse(pattern, PatternDialect::Python, PatternFlags::default()).unwrap())
}

/// Returns the automaton of a pattern in Python's dialect.
pub(crate) fn automaton(pattern: &str) -> Automaton {
    Automaton::new(&expression(pattern), AutomatonLimits::default()).unwrap()
}

pub(crate) fn matches(automaton: &Automaton, text: &str) -> bool {
    let end = automaton.walk(automaton.start(), text.as_bytes()).unwrap();
    end.is_ok_and(|state| automaton.is_accepting(state))
}

#[track_caller]
fn check(pattern: &str, members: &[&str], others: &[&str]) {
    let automaton = automaton(pattern);
    for text in members {
        assert!(matches(&automaton, text), "{pattern} should match {text:?}");
    }
    for text in others {
        assert!(!matches(&automaton, text), "{pattern} should not match {text:?}");
    }
}

#[test]
fn patterns_without_lookaround_match_their_members() {
    check("", &[""], &["a"]);
    check("a(b|c)*d", &["ad", "abcbd"], &["abc", "d"]);
    check("(foo|foobar|f)(bar)?", &["foobar", "foobarbar", "f", "fbar"], &["fo", "barbar"]);
    check("[à-ü]{2,3}", &["éü", "ééé"], &["é", "éééé", "ab"]);
    check("(a{2,3}){2}", &["aaaa", "aaaaa", "aaaaaa"], &["aaa", "aaaaaaa"]);
    check("(a{3}){1,2}", &["aaa", "aaaaaa"], &["aaaa", "aaaaa"]);
}

#[test]
fn lookaround_sees_the_whole_input() {
    check(r"(?=.*[A-Z])(?=.*\d).{4,6}", &["aB1c", "1A2345"], &["abcd", "AB1", "ABCDEFG1"]);
    check(r"(?:(?!ab).)*", &["", "ba", "aab".split_at(1).0], &["ab", "xxabx"]);
    check(r"a(?=b)|ab", &["ab"], &["a"]);
    check(r"\bfoo\b.*", &["foo", "foo bar"], &["foobar"]);
    check(r".*(?<=ab)c", &["abc", "xabc"], &["bc", "ac"]);
    check(r"(?:(?<!a)b|a)*", &["bba", "a", "bb"], &["ab"]);
    check(r"(?:\b|a){3}b", &["b", "ab"], &["aaab".split_at(0).0]);
    check(r"x(?:^|y)z", &["xyz"], &["xz"]);
    check(r"a$\n?", &["a", "a\n"], &["a\n\n"]);
    check(r"(?<=(?=b)b)?b", &["b"], &[""]);
}

#[test]
fn atomic_groups_never_give_back_a_match() {
    check("(?>a|ab)c", &["ac"], &["abc"]);
    check("(?>ab|a)c", &["ac", "abc"], &["ab"]);
    check("(?>a+?)b", &["ab"], &["aab"]);
    check("(?>(?:(?!a)b??){2,}a)", &["ba", "bba"], &["a", "b"]);
    check("(?>(?:b??){20000}a)c", &["ac", "bac"], &["bc"]);
    check("(?:(?>a|ab)c?)*", &["aac", "aa"], &["ab"]);
    check("(?>a*)b|a+", &["aab", "b", "aa"], &["c"]);
    check("(?>(?:a?)+?)b?", &["", "a", "ab", "b"], &["aab"]);
    check("(?>(?:a?){2}?)", &["a", "aa"], &["aaa"]);
    check("(?>(?:a?)+?)", &["a"], &["aa"]);
    check("(?>(?:a?)+?)", &["a"], &["aaa"]);
    check("(?>(?:a|ab)(?:c|bcd))d?", &["acd", "ac", "abcd", "abcdd"], &["abcddd"]);
    assert!(matches!(
        Automaton::new(&expression("a*+a"), AutomatonLimits::default()),
        Err(Error::Language { .. })
    ));
}

#[test]
fn intersections_differences_and_complements_have_the_expected_members() {
    let (words, long) = (expression("[a-z]+"), expression(".{3}"));
    let both = Expression::intersection(vec![words.clone(), long.clone()]).unwrap();
    let machine = Automaton::new(&both, AutomatonLimits::default()).unwrap();
    assert!(matches(&machine, "abc") && !matches(&machine, "ab") && !matches(&machine, "ABC"));
    let only = words.clone().difference(long).unwrap();
    let machine = Automaton::new(&only, AutomatonLimits::default()).unwrap();
    assert!(!matches(&machine, "abc") && matches(&machine, "ab"));
    let none = words.clone().difference(words.clone()).unwrap();
    assert!(Automaton::new(&none, AutomatonLimits::default()).is_err());
    let rest = words.complement().unwrap();
    let machine = Automaton::new(&rest, AutomatonLimits::default()).unwrap();
    assert!(matches(&machine, "") && matches(&machine, "a1") && !matches(&machine, "a"));
    assert!(machine.walk(machine.start(), b"\xff").unwrap().is_err());
}

#[test]
fn nested_counters_stay_within_memory_or_hit_a_limit() {
    for pattern in [
        "(a|b)*a(a|b){40}",
        "((a{0,100}){0,100}){0,100}",
        "((a{1,100}b?){1,100}c?){1,100}",
        "(?:.{0,1000}x){0,1000}",
        "(?=(a|b)*a(a|b){15}$)[ab]*",
        "(a?){1000}",
        "(a*)*b",
    ] {
        let text = "ab".repeat(200);
        let outcome = Automaton::new(&expression(pattern), AutomatonLimits::default())
            .and_then(|machine| machine.walk(machine.start(), text.as_bytes()).map(|_| machine));
        match outcome {
            Ok(machine) => assert!(machine.memory_bytes() < 64 << 20, "{pattern}"),
            Err(error) => assert!(matches!(error, Error::Limit { .. }), "{pattern}: {error}"),
        }
    }
}

#[test]
fn a_viable_prefix_can_be_completed_to_a_member() {
    let machine = automaton(r"(?!.*xyz)[x-z]{5}");
    let viable = |text: &str| machine.walk(machine.start(), text.as_bytes()).unwrap().is_ok();
    assert!(viable("xy") && viable("zxyy") && !viable("xyz") && !viable("zzxyz"));
    assert_eq!(machine.shortest_completion(machine.start()).unwrap(), b"xxxxx");
}

/// Generates patterns with every lookaround and preference.
fn random_pattern() -> impl Strategy<Value = String> {
    let atoms =
        vec!["a", "b", "ab", "[ab]", ".", "é", r"\w", "[^a]", r"\b", r"\B", "^", "$", r"\s"];
    let leaf = prop::sample::select(atoms).prop_map(|atom| format!("(?:{atom})"));
    let counts = vec!["", "", "", "*", "+", "?", "*?", "+?", "*+", "?+", "{2}", "{1,2}", "{,2}+"];
    let opens = vec!["(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!"];
    patterns_of(leaf, counts, opens)
}

/// Generates patterns of repeated leaves and groups.
fn patterns_of(
    leaf: impl Strategy<Value = String> + 'static,
    counts: Vec<&'static str>,
    opens: Vec<&'static str>,
) -> impl Strategy<Value = String> {
    let tree = leaf.prop_recursive(3, 12, 3, move |inner| {
        let branch = prop::collection::vec(
            (inner, prop::sample::select(counts.clone())).prop_map(|(one, count)| one + count),
            1..3,
        );
        let branches = prop::collection::vec(branch.prop_map(|list| list.concat()), 1..3);
        (prop::sample::select(opens.clone()), branches)
            .prop_map(|(open, list)| format!("{open}{})", list.join("|")))
    });
    prop::collection::vec(tree, 1..4).prop_map(|list| list.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_automaton_agrees_with_the_reference_matcher(pattern in random_pattern()) {
        let Ok(parsed) = parse(&pattern, PatternDialect::Python, PatternFlags::default()) else { return Ok(()) };
        let machine = Automaton::new(&Expression::pattern(parsed.clone()), AutomatonLimits::default());
        for text in ["", "a", "b", "ab", "ba", "aa", "bb", "aab", "abb", "bab", "é", "aé", "a\n", " a"] {
            let expected = reference_matcher::matches(&parsed, text);
            match &machine {
                Ok(machine) => prop_assert_eq!(matches(machine, text), expected, "{} on {:?}", pattern, text),
                Err(Error::Language { .. }) => prop_assert!(!expected, "{} on {:?}", pattern, text),
                Err(Error::Limit { .. } | Error::Interrupted | Error::Deadline { .. } | Error::Callback(_)) => {}
            }
        }
    }
}
