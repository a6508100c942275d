//! Hand-written and random tests of captures; the engines themselves judge others in
//! `tests/parity/test_captures.py`.

use formalm_core::{Error, Resource, StepMeter};
use proptest::prelude::*;

use super::backtracking::GroupSpan;
use super::{MatchProgram, group_spans};
use crate::{PatternDialect, PatternFlags, parse, reference_matcher};

fn search(
    pattern: &str,
    dialect: PatternDialect,
    text: &str,
    steps: u64,
) -> Result<Option<Vec<GroupSpan>>, Error> {
    let pattern = parse(pattern, dialect, PatternFlags::default()).expect(pattern);
    group_spans(&MatchProgram::new(&pattern), text, &mut StepMeter { steps: 0, allowed: steps })
}

#[track_caller]
fn check(pattern: &str, dialect: PatternDialect, text: &str, expected: &[Option<&str>]) {
    let found = search(pattern, dialect, text, 1 << 20).expect("limits").expect("a match");
    let found: Vec<_> = found.iter().map(|span| span.map(|(a, b)| &text[a..b])).collect();
    assert_eq!(found, expected, "{pattern} on {text:?}");
}

#[test]
fn groups_follow_alternation_order_and_greediness() {
    for dialect in [PatternDialect::Python, PatternDialect::Ecma] {
        check("(a|ab)(c|bcd)(d*)", dialect, "abcd", &[Some("a"), Some("bcd"), Some("")]);
        check("(a+)(a*)", dialect, "aaa", &[Some("aaa"), Some("")]);
        check("(a+?)(a*)", dialect, "aaa", &[Some("a"), Some("aa")]);
        check("(é)|(b)", dialect, "b", &[None, Some("b")]);
        check("(?=(a+))a(?!(a)b).*", dialect, "aac", &[Some("aa"), None]);
        check("(a){2,3}?(a*)", dialect, "aaa", &[Some("a"), Some("a")]);
        check(r"(é*)(?<=(é))b", dialect, "éb", &[Some("é"), Some("é")]);
    }
    check("(?>(a+?))(a*)", PatternDialect::Python, "aaa", &[Some("a"), Some("aa")]);
    check("(?>(ab|a))(b?)", PatternDialect::Python, "ab", &[Some("ab"), Some("")]);
    check("(a|b)*+", PatternDialect::Python, "ab", &[Some("b")]);
}

/// Examples of ECMA-262, and the same in Python.
#[test]
fn groups_of_loops_follow_the_rules_of_the_dialect() {
    let nested = "(z)((a+)?(b+)?(c))*";
    let text = "zaacbbbcac";
    let ecma = [Some("z"), Some("ac"), Some("a"), None, Some("c")];
    check(nested, PatternDialect::Ecma, text, &ecma);
    let python = [Some("z"), Some("ac"), Some("a"), Some("bbb"), Some("c")];
    check(nested, PatternDialect::Python, text, &python);
    // ECMAScript refuses an empty iteration; in Python it ends the loop.
    check("(a*)*", PatternDialect::Ecma, "", &[None]);
    check("(a*)*", PatternDialect::Python, "", &[Some("")]);
    check("(a*)*", PatternDialect::Ecma, "aa", &[Some("aa")]);
    check("(a*)*", PatternDialect::Python, "aa", &[Some("")]);
    check("(?:(a)|b)*", PatternDialect::Ecma, "ab", &[None]);
    check("(?:(a)|b)*", PatternDialect::Python, "ab", &[Some("a")]);
    check("(?:(a)|()){3}", PatternDialect::Ecma, "a", &[None, Some("")]);
}

/// ECMAScript reads lookbehind from right to left.
#[test]
fn ecma_lookbehind_reads_from_right_to_left() {
    check(r".*(?<=(\d+)(\d+))", PatternDialect::Ecma, "1053", &[Some("1"), Some("053")]);
    check(r".*(?<=([ab]+?)([bc]+))", PatternDialect::Ecma, "abc", &[Some("a"), Some("bc")]);
    check(r".*(?<=(?=(c))c)", PatternDialect::Ecma, "bc", &[Some("c")]);
}

#[test]
fn a_failed_match_reports_no_groups() {
    for (pattern, text) in [("(a)b", "a"), ("(a)", "aa"), ("(?!a)(a)", "a"), ("(?>(a|ab))c", "abc")]
    {
        assert_eq!(search(pattern, PatternDialect::Python, text, 1 << 20), Ok(None), "{pattern}");
    }
}

#[test]
fn memoized_failures_keep_heavy_patterns_linear_or_limited() {
    let text = "a".repeat(30_000);
    for pattern in ["((a+)+)+b", "((a*)*)*b", "(a|aa)+b", "(?:(a)|(?:a|a))*b", "(.*)(.*)(.*)b"] {
        for dialect in [PatternDialect::Python, PatternDialect::Ecma] {
            let found = search(pattern, dialect, &text, 20_000_000).expect(pattern);
            assert_eq!(found, None, "{pattern}");
        }
    }
    let found = search("((a+)+)+(b?)", PatternDialect::Python, &text, 20_000_000).expect("limits");
    assert_eq!(found, Some(vec![Some((0, 30_000)), Some((0, 30_000)), Some((30_000, 30_000))]));
    for pattern in
        ["(?:(?:(?:){100000}){100000})a", "((?:(?:a?){1,90}){1,90}){1,90}b", "(?:(?=(.*))a)*"]
    {
        let refused = search(pattern, PatternDialect::Python, &text, 3_000_000);
        let Err(Error::Limit { resource: Resource::Steps, needed: 3_000_001, .. }) = refused else {
            panic!("{pattern}: {refused:?}");
        };
    }
}

/// Generates patterns with groups and every preference; some are valid in one dialect only.
fn random_pattern(opens: Vec<&'static str>) -> impl Strategy<Value = String> {
    let atoms = vec!["a", "b", "ab", "[ab]", ".", "é", "", r"\b", "^", "$"];
    let counts = vec!["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}?", "*+"];
    let leaf = prop::sample::select(atoms).prop_map(|atom| format!("(?:{atom})"));
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

fn agrees(pattern: &str, dialect: PatternDialect) -> Result<(), TestCaseError> {
    let Ok(parsed) = parse(pattern, dialect, PatternFlags::default()) else { return Ok(()) };
    let program = MatchProgram::new(&parsed);
    for text in
        ["", "a", "b", "ab", "ba", "aa", "bb", "aab", "abb", "bab", "abab", "é", "aéb", "a\n"]
    {
        let expected = reference_matcher::captures(&parsed, text).map(|captures| {
            let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
            let spans = captures.into_iter();
            spans.map(|span| span.map(|(a, b)| (byte(a), byte(b)))).collect::<Vec<_>>()
        });
        let found = group_spans(&program, text, &mut StepMeter { steps: 0, allowed: 1 << 20 });
        prop_assert_eq!(found, Ok(expected), "{} on {:?}", pattern, text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn captures_agree_with_the_reference_matcher(
        pattern in random_pattern(vec!["(", "(", "(", "(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!"])
    ) {
        agrees(&pattern, PatternDialect::Python)?;
        agrees(&pattern, PatternDialect::Ecma)?;
    }
}
