//! Tests of images against their definitions, by brute force over short strings.

use formalm_core::{CharSet, Error, InterruptCheck, LazyDfa};
use proptest::prelude::*;

use crate::tests::{expression as pattern, matches as has};
use crate::{Automaton, AutomatonLimits, EditOperations, EditRules, Expression};

const LETTERS: [char; 3] = ['a', 'b', 'é'];
const ALL: EditOperations = EditOperations { insert: true, delete: true, substitute: true };

fn automaton(expression: &Expression) -> Automaton {
    Automaton::new(expression, AutomatonLimits::default()).unwrap()
}

fn edits(budget: u32, alphabet: CharSet) -> EditRules {
    EditRules { budget, alphabet, operations: ALL, after: None, before: None, group: None }
}

fn letters() -> CharSet {
    CharSet::from_ranges(LETTERS.map(|letter| (letter, letter)))
}

/// Returns all strings over the letters with at most `length` characters.
fn texts(length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..length {
        last =
            last.iter().flat_map(|text| LETTERS.map(|letter| format!("{text}{letter}"))).collect();
        all.extend_from_slice(&last);
    }
    all
}

/// Returns the fewest operations that turn `member` into `text`.
fn distance(member: &[char], text: &[char], allowed: EditOperations, alphabet: &CharSet) -> u32 {
    const FAR: u32 = 1000;
    let mut rows = vec![vec![FAR; text.len() + 1]; member.len() + 1];
    for i in 0..=member.len() {
        for j in 0..=text.len() {
            let mut best = if i == 0 && j == 0 { 0 } else { FAR };
            if i > 0 && allowed.delete {
                best = best.min(rows[i - 1][j] + 1);
            }
            if j > 0 && allowed.insert && alphabet.contains(text[j - 1]) {
                best = best.min(rows[i][j - 1] + 1);
            }
            if i > 0 && j > 0 {
                if member[i - 1] == text[j - 1] {
                    best = best.min(rows[i - 1][j - 1]);
                } else if allowed.substitute && alphabet.contains(text[j - 1]) {
                    best = best.min(rows[i - 1][j - 1] + 1);
                }
            }
            rows[i][j] = best;
        }
    }
    rows[member.len()][text.len()]
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn count(automaton: &Automaton) -> usize {
    fn below(automaton: &Automaton, state: formalm_core::StateId) -> usize {
        let here = usize::from(automaton.is_accepting(state));
        let live = automaton.live_bytes(state).unwrap();
        here + live
            .iter()
            .filter_map(|byte| automaton.step(state, byte).unwrap())
            .map(|next| below(automaton, next))
            .sum::<usize>()
    }
    below(automaton, automaton.start())
}

#[test]
fn edit_languages_have_the_expected_number_of_members() {
    let printable = CharSet::from_ranges([(' ', '~')]);
    for (text, budget, wanted) in [("a b", 1, 663), ("Hello", 1, 1040), ("", 1, 96)] {
        let near = pattern(text).edits(edits(budget, printable.clone())).unwrap();
        assert_eq!(count(&automaton(&near)), wanted, "{text:?}");
    }
}

#[test]
fn edit_automata_have_few_states() {
    let text = "The quick brown fox jumps over the lazy dog, and the dog does not mind.";
    for (budget, most) in [(1, 1_000), (2, 5_000), (3, 25_000)] {
        let near = pattern(text).edits(edits(budget, CharSet::all())).unwrap();
        let machine = automaton(&near);
        let mut seen = vec![machine.start()];
        let mut at = 0;
        while at < seen.len() {
            for byte in machine.live_bytes(seen[at]).unwrap().iter() {
                if let Some(next) = machine.step(seen[at], byte).unwrap()
                    && !seen.contains(&next)
                {
                    seen.push(next);
                }
            }
            at += 1;
            if seen.len() > most {
                break;
            }
        }
        assert!(seen.len() <= most, "{budget} edits: over {most} states");
    }
}

#[test]
fn edits_stay_inside_their_group() {
    let base = pattern("(?P<who>ab|b)-(?P<what>a|é)");
    let only = edits(1, letters());
    let near = base.edits(EditRules { group: Some("what".to_owned()), ..only }).unwrap();
    let near = automaton(&near);
    for (text, member) in [("ab-a", true), ("b-ab", true), ("b-", true), ("b-b", true)] {
        assert_eq!(has(&near, text), member, "{text}");
    }
    for text in ["a-a", "ab-abb", "aab-a", "ba", "b--"] {
        assert!(!has(&near, text), "{text}");
    }
}

#[test]
fn scripts_of_optional_regions_start_from_members() {
    for (source, text, member) in [
        ("b(?P<g>a)?", "bca", "ba"),
        ("b(?P<g>a){1}", "b", "ba"),
        ("b(?:(?P<g>aa))??b", "bab", "baab"),
        ("b(?P<g>a)?", "b", "b"),
    ] {
        let only = EditRules { group: Some("g".to_owned()), ..edits(1, CharSet::all()) };
        let near = pattern(source).edits(only).unwrap();
        let script = near.edit_script(
            text,
            AutomatonLimits::default(),
            &mut InterruptCheck::new(&mut || true),
        );
        let pairs = script.unwrap().unwrap().pairs;
        let found: String = pairs.iter().filter_map(|pair| pair.0).collect();
        assert_eq!(found, member, "{source}");
    }
}

#[test]
fn invalid_edit_regions_are_refused() {
    for (source, name) in [("(?P<x>a)+", "x"), ("a", "x"), (r"(?P<x>a)\b", "x"), ("(?P<x>^a)", "x")]
    {
        let only = EditRules { group: Some(name.to_owned()), ..edits(1, letters()) };
        assert!(matches!(pattern(source).edits(only), Err(Error::Language { .. })), "{source}");
    }
    assert!(matches!(pattern("a").edits(edits(101, letters())), Err(Error::Limit { .. })));
    let bytes = Expression::literals(vec![vec![0xFF]]);
    assert!(matches!(bytes.edits(edits(1, letters())), Err(Error::Language { .. })));
}

#[test]
fn nested_edit_budgets_add_up() {
    let once = pattern("aab?").edits(edits(1, letters())).unwrap();
    let twice = automaton(&once.edits(edits(1, letters())).unwrap());
    let both = automaton(&pattern("aab?").edits(edits(2, letters())).unwrap());
    for text in texts(5) {
        assert_eq!(has(&twice, &text), has(&both, &text), "{text:?}");
    }
}

#[test]
fn scripts_of_nested_edits_count_only_the_outer_edits() {
    let once = pattern("ab").edits(edits(1, letters())).unwrap();
    let twice = once.edits(edits(1, letters())).unwrap();
    let script = twice
        .edit_script("bb", AutomatonLimits::default(), &mut InterruptCheck::new(&mut || true))
        .unwrap()
        .unwrap();
    assert_eq!(script.count(), 0);
    let script = twice
        .edit_script("éé", AutomatonLimits::default(), &mut InterruptCheck::new(&mut || true))
        .unwrap()
        .unwrap();
    assert_eq!(script.count(), 1);
}

#[test]
fn obligatory_rewriting_is_leftmost_longest() {
    let rules = |pairs: &[(&str, &str)]| {
        let texts = |text: &str| Expression::literals(vec![text.as_bytes().to_vec()]);
        pairs.iter().map(|(source, target)| ((*source).to_owned(), texts(target))).collect()
    };
    for (text, pairs, wanted) in [
        ("aab", &[("a", "x"), ("aa", "y")][..], "yb"),
        ("aaa", &[("aa", "y")], "ya"),
        ("abab", &[("ab", ""), ("b", "z")], ""),
        ("bab", &[("ab", "x")], "bx"),
        ("éaé", &[("é", "e")], "eae"),
    ] {
        let rewritten = pattern(text).rewrite(rules(pairs), false).unwrap();
        let machine = automaton(&rewritten);
        assert!(has(&machine, wanted) && count(&machine) == 1, "{text} {pairs:?}");
    }
}

#[test]
fn sources_that_vanish_terminate() {
    let rules = vec![("a".to_owned(), Expression::literals(vec![vec![], b"b".to_vec()]))];
    let machine = automaton(&pattern("a*").rewrite(rules, true).unwrap());
    for text in ["", "a", "bb", "abab"] {
        assert!(has(&machine, text));
    }
}

/// Collects the strings that optional rules make of a member.
fn rewritings(member: &str, rules: &[(String, Vec<String>)], found: &mut Vec<String>, done: &str) {
    let Some(first) = member.chars().next() else {
        found.push(done.to_owned());
        return;
    };
    rewritings(&member[first.len_utf8()..], rules, found, &format!("{done}{first}"));
    for (source, targets) in rules {
        if let Some(rest) = member.strip_prefix(source.as_str()) {
            for target in targets {
                rewritings(rest, rules, found, &format!("{done}{target}"));
            }
        }
    }
}

/// Returns the strings that obligatory rules make of a member.
fn replaced(member: &str, rules: &[(String, Vec<String>)]) -> Vec<String> {
    let Some(first) = member.chars().next() else { return vec![String::new()] };
    let here = rules.iter().filter(|(source, _)| member.starts_with(source.as_str()));
    let copy = (&member[..first.len_utf8()], vec![member[..first.len_utf8()].to_owned()]);
    let (source, targets) = here
        .max_by_key(|(source, _)| source.len())
        .map_or(copy, |(source, targets)| (source.as_str(), targets.clone()));
    let rest = replaced(&member[source.len()..], rules);
    targets.iter().flat_map(|one| rest.iter().map(move |rest| format!("{one}{rest}"))).collect()
}

fn small_pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("a"), Just("b"), Just("é"), Just("[ab]"), Just("."), Just("aé?")];
    leaf.prop_map(str::to_owned).prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?:{a}|{b})")),
            inner.clone().prop_map(|a| format!("(?:{a})?")),
            inner.clone().prop_map(|a| format!("(?:{a})*")),
            inner.clone().prop_map(|a| format!("(?:{a}){{1,2}}")),
            inner.prop_map(|a| format!("(?=[aé]|b.?){a}")),
        ]
    })
}

fn some_operations() -> impl Strategy<Value = EditOperations> {
    (any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(insert, delete, substitute)| EditOperations { insert, delete, substitute })
}

fn some_rules() -> impl Strategy<Value = Vec<(String, Vec<String>)>> {
    let target = prop_oneof![Just(""), Just("a"), Just("bé"), Just("éb")].prop_map(str::to_owned);
    let source = prop_oneof![Just("a"), Just("ab"), Just("é"), Just("ba"), Just("aé")];
    let rule = (source.prop_map(str::to_owned), prop::collection::vec(target, 1..3));
    prop::collection::vec(rule, 1..4).prop_map(|mut rules| {
        rules.sort();
        rules.dedup_by(|one, other| one.0 == other.0);
        rules
    })
}

fn lowered(rules: &[(String, Vec<String>)]) -> Vec<(String, Expression)> {
    let texts = |list: &[String]| {
        Expression::literals(list.iter().map(|text| text.clone().into_bytes()).collect())
    };
    rules.iter().map(|(source, targets)| (source.clone(), texts(targets))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn edit_languages_are_the_strings_within_the_distance(
        source in small_pattern(),
        budget in 0u32..3,
        operations in some_operations(),
        only_a in any::<bool>(),
    ) {
        let original = pattern(&source);
        prop_assume!(Automaton::new(&original, AutomatonLimits::default()).is_ok());
        let machine = automaton(&original);
        let members: Vec<Vec<char>> =
            texts(6).iter().filter(|text| has(&machine, text)).map(|text| characters(text)).collect();
        let alphabet = if only_a { CharSet::single('a') } else { letters() };
        let plan = EditRules { operations, ..edits(budget, alphabet.clone()) };
        let near = original.edits(plan).unwrap();
        let machine = automaton(&near);
        for text in texts(4) {
            let letters = characters(&text);
            let best = members
                .iter()
                .map(|member| distance(member, &letters, operations, &alphabet))
                .min()
                .unwrap_or(1000);
            prop_assert_eq!(has(&machine, &text), best <= budget, "{} {:?}", &source, &text);
            let script = near.edit_script(&text, AutomatonLimits::default(), &mut InterruptCheck::new(&mut || true)).unwrap();
            prop_assert_eq!(script.is_some(), best <= budget);
            if let Some(script) = script {
                prop_assert_eq!(script.count() as u32, best);
                let read: Vec<char> = script.pairs.iter().filter_map(|pair| pair.1).collect();
                let member: String = script.pairs.iter().filter_map(|pair| pair.0).collect();
                prop_assert_eq!(read, letters);
                let machine = automaton(&pattern(&source));
                prop_assert!(has(&machine, &member), "{member:?} is no member of {source}");
            }
        }
    }

    #[test]
    fn edits_are_confined_to_their_regions(
        source in small_pattern(),
        after in small_pattern(),
        before in small_pattern(),
        budget in 0u32..2,
    ) {
        let original = pattern(&source);
        let usable = |one: &str| Automaton::new(&pattern(one), AutomatonLimits::default()).is_ok();
        prop_assume!(usable(&source) && usable(&after) && usable(&before));
        let (machine, first, last) =
            (automaton(&original), automaton(&pattern(&after)), automaton(&pattern(&before)));
        let regions = EditRules {
            after: Some(pattern(&after)),
            before: Some(pattern(&before)),
            ..edits(budget, letters())
        };
        let near = original.edits(regions).unwrap();
        let near_machine = automaton(&near);
        let mut wanted: Vec<String> = Vec::new();
        for member in texts(4).iter().filter(|text| has(&machine, text)) {
            wanted.push(member.clone());
            let ends: Vec<usize> =
                member.char_indices().map(|(at, _)| at).chain([member.len()]).collect();
            for &start in ends.iter().filter(|&&at| has(&first, &member[..at])) {
                for &end in ends.iter().filter(|&&at| at >= start && has(&last, &member[at..])) {
                    let middle = characters(&member[start..end]);
                    for new in texts(3) {
                        if distance(&middle, &characters(&new), ALL, &letters()) <= budget {
                            wanted.push(format!("{}{new}{}", &member[..start], &member[end..]));
                        }
                    }
                }
            }
        }
        for text in texts(3) {
            let member = wanted.contains(&text);
            prop_assert_eq!(has(&near_machine, &text), member, "{} {:?}", &source, &text);
            let script = near.edit_script(&text, AutomatonLimits::default(), &mut InterruptCheck::new(&mut || true)).unwrap();
            prop_assert_eq!(script.is_some(), member);
        }
    }

    #[test]
    fn rewriting_agrees_with_its_definition(source in small_pattern(), rules in some_rules(), optional in any::<bool>()) {
        let original = pattern(&source);
        prop_assume!(Automaton::new(&original, AutomatonLimits::default()).is_ok());
        let machine = automaton(&original);
        let mut wanted: Vec<String> = Vec::new();
        // Sources have at most two characters and may vanish, so members are twice as long as the
        // strings.
        for member in texts(6).iter().filter(|text| has(&machine, text)) {
            if optional {
                rewritings(member, &rules, &mut wanted, "");
            } else {
                wanted.extend(replaced(member, &rules));
            }
        }
        let rewritten = automaton(&original.rewrite(lowered(&rules), optional).unwrap());
        let vanishes = rules.iter().any(|(_, targets)| targets.iter().any(String::is_empty));
        for text in texts(3) {
            let found = has(&rewritten, &text);
            // Where sources vanish, longer members than were tried may lead to the string too.
            if !vanishes || wanted.contains(&text) {
                prop_assert_eq!(found, wanted.contains(&text), "{} {:?} {:?}", &source, &rules, &text);
            }
        }
    }

    #[test]
    fn the_reversed_language_has_the_reversed_members(source in small_pattern(), budget in 0u32..2) {
        let original = pattern(&source);
        prop_assume!(Automaton::new(&original, AutomatonLimits::default()).is_ok());
        let near = original.edits(EditRules { after: Some(pattern("a?")), ..edits(budget, letters()) });
        let near = near.unwrap();
        let (forward, backward) = (automaton(&near), automaton(&near.reverse().unwrap()));
        for text in texts(4) {
            let turned: String = text.chars().rev().collect();
            prop_assert_eq!(has(&forward, &text), has(&backward, &turned), "{} {:?}", &source, &text);
        }
    }
}
