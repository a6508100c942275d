//! Tests of captures in expressions that combine patterns with groups.

use std::sync::Arc;

use formalm_core::{Error, Resource};

use super::{CaptureFinder, MemberCaptures};
use crate::tests::expression as pattern;
use crate::{Automaton, AutomatonLimits, Expression};

const STEPS: u64 = 1 << 22;

fn texts(list: &[&str]) -> Expression {
    Expression::literals(list.iter().map(|text| text.as_bytes().to_vec()).collect())
}

fn grouping(language: &Expression) -> CaptureFinder {
    let machine = Automaton::new(language, AutomatonLimits::default()).expect("a machine");
    CaptureFinder::new(language, Arc::new(machine), AutomatonLimits::default()).expect("limits")
}

#[track_caller]
fn check(language: &Expression, text: &str, expected: &[Option<&str>]) {
    let found = grouping(language).find_captures(text.as_bytes(), STEPS).expect("limits");
    let found = found.expect("a member");
    let found: Vec<_> = found.spans.into_iter().map(|span| span.map(|span| &text[span])).collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn a_union_captures_with_its_first_matching_operand() {
    let language =
        Expression::union(vec![pattern("(a+)"), texts(&["b"]), pattern("(b)|(a+)c?")]).unwrap();
    check(&language, "aa", &[Some("aa"), None, None]);
    check(&language, "b", &[None, None, None]);
    check(&language, "aac", &[None, None, Some("aa")]);
}

#[test]
fn a_sequence_is_split_leftmost_longest() {
    let language =
        Expression::concat(vec![pattern("(a*?)"), pattern("(a*)b$"), pattern("(.*)")]).unwrap();
    check(&language, "aab", &[Some("aa"), Some(""), Some("")]);
    check(&language, "aabab", &[Some("aa"), Some(""), Some("ab")]);
    // Lookaround sees only its own part.
    let language = Expression::concat(vec![pattern(r"(a+)$"), pattern(r"^(ab?)\b")]).unwrap();
    check(&language, "aaab", &[Some("aa"), Some("ab")]);
    let language = Expression::concat(vec![pattern("(é)"), texts(&["é", "éé"])]).unwrap();
    check(&language, "ééé", &[Some("é")]);
    assert_eq!(grouping(&language).find_captures("éa".as_bytes(), STEPS), Ok(None));
}

#[test]
fn a_repetition_captures_its_last_iteration() {
    let word = pattern("(?:(x)|([a-z]))+ ?");
    let language = word.clone().repeat(0, None).unwrap();
    check(&language, "x ab ", &[None, Some("b")]);
    check(&language, "ab x ", &[Some("x"), None]);
    check(&language, "", &[None, None]);
    check(&pattern("([a-z]{1,2})").repeat(2, Some(3)).unwrap(), "abc", &[Some("c")]);
    check(&pattern("([a-z]{1,2})").repeat(3, Some(3)).unwrap(), "abcd", &[Some("d")]);
    check(&pattern("(a*)").repeat(3, Some(5)).unwrap(), "aa", &[Some("")]);
    check(&pattern("(a*)").repeat(0, None).unwrap(), "aa", &[Some("aa")]);
    check(&pattern("(-)").repeat(0, Some(1)).unwrap(), "-", &[Some("-")]);
    check(&pattern("(-)").repeat(0, Some(1)).unwrap(), "", &[None]);
}

#[test]
fn boolean_operations_capture_with_their_positive_operands() {
    let both = Expression::intersection(vec![pattern("(.)b"), pattern("a(.)")]).unwrap();
    check(&both, "ab", &[Some("a"), Some("b")]);
    check(&pattern("(.)b").difference(pattern("(c)b")).unwrap(), "ab", &[Some("a")]);
    check(&pattern("(c)").complement().unwrap(), "ab", &[]);
    let empty = pattern("(a)").difference(pattern("a")).unwrap();
    let language = Expression::union(vec![empty, pattern("(b)")]).unwrap();
    check(&language, "b", &[None, Some("b")]);
}

#[test]
fn non_utf8_members_have_captures() {
    let language =
        Expression::concat(vec![Expression::literals(vec![vec![0xff]]), pattern("(a)")]).unwrap();
    let found = grouping(&language).find_captures(b"\xffa", STEPS).expect("limits");
    assert_eq!(found, Some(MemberCaptures { spans: vec![Some(1..2)], was_matched: vec![true] }));
}

#[test]
fn groups_of_unused_operands_are_not_marked_as_matched() {
    let word = pattern("(x)?(y)?").repeat(0, Some(1)).unwrap();
    let language = Expression::union(vec![pattern("(a)"), word]).unwrap();
    for (text, expected) in
        [("a", [true, false, false]), ("x", [false, true, true]), ("", [false; 3])]
    {
        let found = grouping(&language).find_captures(text.as_bytes(), STEPS).expect("limits");
        assert_eq!(found.expect("a member").was_matched, expected, "{text:?}");
    }
}

#[test]
fn captures_stop_at_their_step_limit() {
    let text = "a".repeat(3000);
    let language = pattern("(.+)").repeat(50, Some(60)).unwrap();
    let refused = grouping(&language).find_captures(text.as_bytes(), 10_000);
    assert!(matches!(refused, Err(Error::Limit { resource: Resource::Steps, .. })), "{refused:?}");
    let language = pattern("(.+)").repeat(0, None).unwrap();
    check(&language, &text, &[Some(&text)]);
}
