//! Property tests: masks against the reference, on random languages, vocabularies and walks.

use std::sync::Arc;

use formalm_automata::{Automaton, AutomatonLimits, EditOperations, EditRules, Expression};
use formalm_constraint::{Constraint, Matcher, reference};
use formalm_core::{CharSet, Error, InterruptCheck, LazyDfa};
use formalm_machines::{Prefix, PrefixedMachine, PrefixedMaskClasses, RegularMaskClasses};
use formalm_regex::{PatternDialect, PatternFlags, parse};
use formalm_vocabulary::Vocabulary;
use proptest::prelude::*;

/// Pieces of patterns that exercise every method of the mask builder.
fn piece() -> impl Strategy<Value = String> {
    let atoms = [
        "a",
        "b",
        "[a-z]",
        "[a-zA-Z0-9._-]",
        ".",
        r"\w",
        r"\d",
        r"[^\W\d]",
        "[^\"]",
        "[а-яa-z]",
        "é",
        "[0-9a-f]",
        "[0-9]",
        "[1-9]",
        "(?:0|[1-9][0-9]*)",
        r"\.",
        "@",
        "\"",
        " ",
        "—",
        "(?:foo|bar|b)",
        "(?:foo|bar|aa)",
        "(?:mon|tues)day",
        "[0-5][0-9]",
        r"\s",
        "[à-ü]",
        "[a-m]",
        "(?i:straße)",
        "[^a]",
    ];
    let counts = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,20}", "{1,500}", "{18}"];
    (prop::sample::select(atoms.to_vec()), prop::sample::select(counts.to_vec()))
        .prop_map(|(atom, count)| format!("{atom}{count}"))
}

fn pattern() -> impl Strategy<Value = String> {
    let sequence = prop::collection::vec(piece(), 1..5).prop_map(|pieces| pieces.concat()).boxed();
    let choice =
        prop::collection::vec(sequence.clone(), 1..3).prop_map(|list| list.join("|")).boxed();
    prop_oneof![
        4 => choice.clone(),
        1 => (choice.clone(), sequence.clone()).prop_map(|(a, b)| format!("(?:{a})*{b}")),
        1 => choice.clone().prop_map(|a| format!("(?!.*ab)(?:{a})")),
        1 => choice.prop_map(|a| format!(r"\b(?:{a})")),
        1 => sequence.prop_map(|a| format!("(?>{a})a*")),
    ]
}

/// Tokens of whole characters, of partial characters, and of bytes that no valid UTF-8 has.
fn token() -> impl Strategy<Value = Option<Vec<u8>>> {
    let texts = [
        "a",
        "b",
        "f",
        "foo",
        "ba",
        "r",
        "ab",
        ".",
        "@",
        "\"",
        " ",
        "é",
        "é.",
        "a.b",
        "ж",
        "ab\"",
        "ab@x",
        "1",
        "2a",
        "a1",
        "12",
        "0",
        "007",
        "123",
        "12.",
        "3@4",
        "—",
        "a—",
        "é—b",
        "東京",
        "xyz.com",
        "mon",
        "monday",
        "day1",
        "foo12",
        "59",
        " foo",
        "aaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "ſ",
        "ß",
        "\n",
        "\u{a0}",
        "٣",
        "a٣.",
        "Z",
        "_",
        "-",
        "zé\"a",
    ];
    prop_oneof![
        12 => prop::sample::select(texts.to_vec()).prop_map(|text| Some(text.as_bytes().to_vec())),
        2 => (prop::sample::select(texts.to_vec()), 1usize..4).prop_map(|(text, cut)| {
            let bytes = text.as_bytes();
            Some(bytes[..bytes.len().saturating_sub(cut).max(1)].to_vec())
        }),
        2 => prop::sample::select(texts.to_vec())
            .prop_map(|text| Some(text.as_bytes()[text.len().min(2) - 1..].to_vec())),
        1 => prop::collection::vec(any::<u8>(), 1..3).prop_map(Some),
        1 => Just(None),
    ]
}

fn bits(words: &[u32]) -> Vec<u32> {
    (0..words.len() as u32 * 32)
        .filter(|id| words[*id as usize >> 5] >> (id & 31) & 1 != 0)
        .collect()
}

/// A change of the language before it is compiled.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    Edits { budget: u32, all: bool, delete: bool },
    Rewrite { optional: bool },
    Reverse,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => Just(Change::Nothing),
        2 => (1u32..3, any::<bool>(), any::<bool>())
            .prop_map(|(budget, all, delete)| Change::Edits { budget, all, delete }),
        1 => any::<bool>().prop_map(|optional| Change::Rewrite { optional }),
        1 => Just(Change::Reverse),
    ]
}

fn changed(language: Expression, change: Change) -> Option<Expression> {
    let texts = |list: &[&str]| {
        Expression::literals(list.iter().map(|text| text.as_bytes().to_vec()).collect())
    };
    match change {
        Change::Nothing => Some(language),
        Change::Edits { budget, all, delete } => {
            let some = CharSet::from_ranges([('a', 'c'), ('é', 'é'), ('—', '—')]);
            let alphabet = if all { CharSet::all() } else { some };
            let operations = EditOperations { insert: true, delete, substitute: true };
            let (after, before, group) = (None, None, None);
            let edits = EditRules { budget, alphabet, operations, after, before, group };
            language.edits(edits).ok()
        }
        Change::Rewrite { optional } => {
            let rules = vec![
                ("a".to_owned(), texts(&["b", "é—", ""])),
                ("ab".to_owned(), texts(&["xyz"])),
                ("é".to_owned(), texts(&["foo", "1"])),
            ];
            language.rewrite(rules, optional).ok()
        }
        Change::Reverse => language.reverse().ok(),
    }
}

fn constraint(
    pattern: &str,
    change: Change,
    tokens: Vec<Option<Vec<u8>>>,
) -> Option<Arc<Constraint>> {
    let parsed = parse(pattern, PatternDialect::Python, PatternFlags::default()).ok()?;
    let language = changed(Expression::pattern(parsed), change)?;
    // Some random languages are large: they are rejected early.
    let limits = match change {
        Change::Nothing => AutomatonLimits::default(),
        _ => AutomatonLimits { states: 1_000, ..AutomatonLimits::default() },
    };
    let automaton = Automaton::new(&language, limits).ok()?;
    let vocabulary = Vocabulary::from_tokens(tokens, vec![0]).ok()?;
    Some(Arc::new(Constraint::new(Arc::new(automaton), Arc::new(vocabulary), 1 << 20)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn masks_match_the_reference(
        pattern in pattern(),
        change in change(),
        tokens in prop::collection::vec(token(), 1..60),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let mut all = vec![None];
        all.extend(tokens);
        all.push(Some(b"a".to_vec()));
        let Some(constraint) = constraint(&pattern, change, all) else { return Ok(()) };
        let mut matcher = Matcher::new(Arc::clone(&constraint));
        let mut words = vec![!0; matcher.epoch().words() + 1];
        for choice in choices {
            let large = !matches!(change, Change::Nothing);
            match matcher.fill(&mut words) {
                Err(Error::Limit { .. }) if large => break,
                filled => filled.unwrap(),
            }
            let fast = bits(&words);
            let slow = match reference::allowed(
                &**matcher.epoch().machine(),
                constraint.vocabulary(),
                matcher.epoch().state(matcher.position()),
            ) {
                Err(Error::Limit { .. }) if large => break,
                slow => slow.unwrap(),
            };
            prop_assert_eq!(&fast, &slow, "{} {:?} after {:?}", pattern,
                change, String::from_utf8_lossy(matcher.text()));
            // Read again from the cache.
            matcher.fill(&mut words).unwrap();
            prop_assert_eq!(bits(&words), slow);
            let next: Vec<u32> = fast.into_iter().filter(|&id| id != 0).collect();
            if next.is_empty() {
                break;
            }
            let before = matcher.position();
            let token = next[choice.index(next.len())];
            matcher.advance(token).unwrap();
            prop_assert!(matcher.rollback(1));
            prop_assert_eq!(matcher.position(), before);
            matcher.advance(token).unwrap();
        }
    }

    #[test]
    fn masks_after_a_prefix_match_the_reference(
        pattern in pattern(),
        front in prop::sample::select(vec!["", "a", "ab", "é."]),
        unless_empty in any::<bool>(),
        refused in prop::sample::select(vec![None, Some(b'a')]),
        tokens in prop::collection::vec(token(), 1..60),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 8),
    ) {
        let mut all = vec![None];
        all.extend(tokens);
        all.push(Some(b"a".to_vec()));
        let Some(rest) = constraint(&pattern, Change::Nothing, all) else { return Ok(()) };
        let (rest, vocabulary) = (Arc::clone(rest.current().machine()), Arc::clone(rest.vocabulary()));
        let keys = RegularMaskClasses::new(Arc::clone(&rest), vocabulary.longest_token_bytes());
        let front = Prefix { text: front.into(), unless_empty, refused_first_byte: refused };
        let keys = PrefixedMaskClasses::new(Arc::new(PrefixedMachine::new(front, rest)), keys);
        let constraint = Arc::new(Constraint::over(keys, vocabulary, 1 << 20));
        let mut matcher = Matcher::new(Arc::clone(&constraint));
        let mut words = vec![!0; constraint.words()];
        for choice in choices {
            matcher.fill(&mut words).unwrap();
            let state = matcher.epoch().state(matcher.position());
            let slow = reference::allowed(&**matcher.epoch().machine(), constraint.vocabulary(), state);
            prop_assert_eq!(bits(&words), slow.unwrap(), "{} after {:?}", pattern,
                String::from_utf8_lossy(matcher.text()));
            let next: Vec<u32> = bits(&words).into_iter().filter(|&id| id != 0).collect();
            if next.is_empty() {
                break;
            }
            matcher.advance(next[choice.index(next.len())]).unwrap();
        }
    }

    #[test]
    fn shortest_token_sequences_are_shortest(
        pattern in pattern(),
        tokens in prop::collection::vec(token(), 1..20),
    ) {
        let mut all = vec![None];
        all.extend(tokens);
        let Some(constraint) = constraint(&pattern, Change::Nothing, all) else { return Ok(()) };
        let epoch = constraint.current();
        let start = epoch.machine().start();
        let found = epoch.shortest_tokens(epoch.start(), 4).unwrap();
        // Breadth-first search by the definition.
        let mut layer = vec![start];
        let mut depth = None;
        for steps in 0..=4 {
            if layer.iter().any(|&state| epoch.machine().is_accepting(state)) {
                depth = Some(steps);
                break;
            }
            let mut next = Vec::new();
            for &state in &layer {
                for id in reference::allowed(&**epoch.machine(), constraint.vocabulary(), state).unwrap() {
                    let bytes = constraint.vocabulary().token_bytes(id).unwrap_or_default();
                    let after = epoch.machine().walk(state, bytes).unwrap().unwrap();
                    if !next.contains(&after) { next.push(after); }
                }
            }
            layer = next;
        }
        prop_assert_eq!(found.as_ref().map(Vec::len), depth);
        // A token fits a budget iff the fewest tokens after it do.
        for budget in 0..4 {
            let mut words = vec![0; epoch.words()];
            epoch.fill_within(epoch.start(), budget, &mut words).unwrap();
            let mut expected = reference::allowed(&**epoch.machine(), constraint.vocabulary(), start).unwrap();
            expected.retain(|&id| id == 0 || budget > 0 && {
                let after = epoch.read(epoch.start(), id).unwrap();
                epoch.shortest_tokens(after, budget - 1).unwrap().is_some()
            });
            prop_assert_eq!(bits(&words), expected);
        }
        if let Some(path) = found {
            let mut matcher = Matcher::new(Arc::clone(&constraint));
            prop_assert_eq!(matcher.advance_many(&path, &mut InterruptCheck::new(&mut || true)), (path.len(), None));
            prop_assert_eq!(matcher.is_accepting(), Ok(true));
        }
    }
}
