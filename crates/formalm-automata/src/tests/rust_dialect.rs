//! Tests of the `rust` dialect against the `regex` crate.

use formalm_core::{CharSet, Error, LazyDfa, Resource, SourceSpan, StepMeter};
use formalm_regex::{
    MAX_REPETITION, PatternDialect, PatternFlags, PatternNode,
    capture_matcher::{MatchProgram, group_spans},
    parse,
};
use proptest::prelude::*;

use super::patterns_of;
use crate::{Automaton, AutomatonLimits, Expression};

type EngineSpans = Option<Vec<Option<(usize, usize)>>>;

/// Returns what the engine's groups capture if the pattern matches the whole string.
///
/// The engine omits groups after the last one that can participate; here they exist and are unset.
fn captured(engine: &regex::Regex, text: &str, groups: usize) -> EngineSpans {
    let found = engine.captures(text)?;
    let group = |at: usize| found.get(at).map(|one| (one.start(), one.end()));
    Some((1..=groups).map(group).collect())
}

/// Returns the engine for whole strings, or `None` for patterns that it refuses.
fn whole(pattern: &str) -> Option<regex::Regex> {
    regex::Regex::new(pattern).ok()?;
    // A line end closes a possible comment.
    let verbose = pattern.starts_with("(?x");
    let end = if verbose { "\n" } else { "" };
    regex::RegexBuilder::new(&format!(r"\A(?:{pattern}{end})\z")).nest_limit(500).build().ok()
}

/// Compares languages and groups on some strings.
fn agrees(pattern: &str, texts: &[&str]) -> Result<(), TestCaseError> {
    let read = parse(pattern, PatternDialect::Rust, PatternFlags::default());
    let Some(engine) = whole(pattern) else {
        prop_assert!(read.is_err(), "{} is refused by regex", pattern);
        return Ok(());
    };
    let read = match read {
        Ok(read) => read,
        Err(error) => return Err(TestCaseError::fail(format!("{pattern}: {error}"))),
    };
    let (program, groups) = (MatchProgram::new(&read), read.groups.len());
    let machine = Automaton::new(&Expression::pattern(read), AutomatonLimits::default());
    for text in texts {
        let expected = captured(&engine, text, groups);
        let member = machine.as_ref().is_ok_and(|machine| {
            let end = machine.walk(machine.start(), text.as_bytes()).expect("limits");
            end.is_ok_and(|state| machine.is_accepting(state))
        });
        prop_assert_eq!(member, expected.is_some(), "{} on {:?}", pattern, text);
        let found = group_spans(&program, text, &mut StepMeter { steps: 0, allowed: 1 << 20 });
        prop_assert_eq!(found, Ok(expected), "{} on {:?}", pattern, text);
    }
    Ok(())
}

const TEXTS: [&str; 40] = [
    "", "a", "b", "ab", "ba", "aa", "bb", "aab", "abb", "bab", "abab", "é", "aéb", "A", "aB",
    "a b", " ", "\n", "a\n", "\na", "a\nb", "a\r\nb", "\r\n", "\r", "\r\r\n", "_", "1", "٣", "ſ",
    "K", "\u{212a}", "a-b", "-", "]", "[", "&", "~", "😀", "ß", "a\u{85}",
];

#[test]
fn handwritten_patterns_agree_with_the_regex_crate() {
    let patterns = [
        // Classes and their algebra.
        r"[[:alpha:]]+",
        r"[[:^alpha:]]",
        r"[^[:word:]]",
        r"[[:xdigit:][:space:]]+",
        r"[a-z&&[^aeiou]]+",
        r"[a-z&&b-y&&[^c]]",
        r"[\w--\d]+",
        r"[\w~~\d]",
        r"[a-c~~b-d]",
        r"[a-z--[aeiou]--b]",
        r"[[a-c][x-z]&&[^b]]",
        r"[^a&&b]",
        r"[a&&&&b]",
        r"[&&a]",
        r"[a&&]",
        r"[]a]+",
        r"[^]a]",
        r"[]]",
        r"[^]]",
        r"[-a]",
        r"[a-]",
        r"[a-b-c]",
        r"[--a]",
        r"[\]\[\-\^]+",
        r"[a&b]+",
        r"[a~b]+",
        r"[a-\n]",
        r"[\n-a]",
        r"[^\s\S]",
        r"[\b]",
        r"[[:foo:]]",
        r"[:alpha:]",
        r"[\d-a]",
        r"[a-\d]",
        r"[",
        r"[]",
        r"[^]",
        r"[a",
        r"[b-a]",
        r"[\p{Lu}&&\p{Greek}]",
        // Properties.
        r"\pL+",
        r"\p{Greek}",
        r"\P{L}",
        r"\p{^L}",
        r"\p{sc=Greek}",
        r"\p{scx!=Greek}",
        r"\p{Lu}",
        r"\p{gc:Lu}",
        r"\p{lowercase letter}",
        r"\p{Nope}",
        r"\p{sc=Nope}",
        r"\pN",
        r"\p",
        r"\p{",
        r"\p{age=3.0}",
        r"\p{gcb=CR}",
        r"\p{wb=LF}",
        r"\p{any}",
        r"\p{ascii}",
        r"\p{assigned}",
        // Escapes.
        r"\x41",
        r"\x{41}",
        r"\u0041",
        r"\u{1F600}",
        r"\U0001F600",
        r"\x{110000}",
        r"\x4",
        r"\x{}",
        r"\a\f\t\n\r\v",
        r"\n",
        r"\-\.\/\#\&\~\%\!",
        r"\e",
        r"\y",
        r"\_",
        r"\<",
        r"\>",
        r"\",
        r"\0",
        r"\1",
        r"(a)\1",
        r"\Z",
        r"\Q",
        r"\é",
        r"\ ",
        r"\'",
        // Anchors.
        r"^a$",
        r"\Aa\z",
        r"a$",
        r"a$\n",
        r"(?m)a$\n^b",
        r"(?m)^$",
        r"(?mR)a$\r\n^b",
        r"(?mR)a\r$\n",
        r"(?mR)(?:^|$|\r|\n)+",
        r"(?R).",
        r"(?s).",
        r"(?sR).",
        r".",
        r"(?-u:.)",
        r"(?m)$^",
        r"$^",
        r"(?mR)(^)\r(^)\n(^)",
        r"(?mR)($)\r($)\n($)",
        r"(?R)^a$",
        r"\bab\b",
        r"a\B.",
        r"\B",
        r"\b",
        r"\B\B",
        r"(?-u:\B)",
        r"(?-u:\b)é",
        r"\bé",
        r"a\b\W\bb",
        r"\b{start}a",
        r"a\b{end}",
        r"\b{start-half}.*\b{end-half}",
        r"\<a\>",
        r"\b{nope}",
        r"\b{start",
        r"a\b{start}",
        r".\b{start}.",
        r".\b{end}.",
        r".\b{start-half}.",
        r".\b{end-half}.",
        r"(?-u:\b{start})é",
        r"\b{2}a",
        r"\b{",
        r"\b{}",
        r"\b{1,2}a",
        r"^*",
        r"(?:^)+a",
        r"$?",
        // Flags.
        r"(?i)AB",
        r"(?i)k",
        r"(?i)s",
        r"(?i-u:k)",
        r"(?i)ß",
        r"(?i)[^k]",
        r"(?i:a)b",
        r"a(?i)b",
        r"a(?i)b|B",
        r"(?:a(?i)b)B",
        r"(?i)a(?-i)b",
        r"(?x) a b # c",
        r"(?x)[ a b ]+",
        r"(?x: a )\ ",
        r"(?U)(a*)(a*)",
        r"(?U)(a*?)(a*?)",
        r"(?U:a+)",
        r"(?u)é",
        r"(?-u)é",
        r"(?-u)\xE9",
        r"(?-u)\w",
        r"(?-u)[^a]",
        r"(?-u)\W",
        r"(?-u)\d\s",
        r"(?-u)[a-z]+",
        r"(?-u)\pL",
        r"(?-u:\x7F)",
        r"(?i-u)é",
        r"(?-u)[é]",
        r"(?-u)\u{E9}",
        r"(?a)a",
        r"(?i",
        r"(?",
        r"(?ii)a",
        r"(?--i)a",
        r"(?i-)a",
        r"(?)a",
        r"(?:)",
        r"(?i)",
        r"(?i)*",
        r"(?-s:.)",
        r"(?is-m:A.)",
        r"(?x)a{ 1 }",
        r"(?x)\ a",
        r"(?-x) a",
        // Groups.
        r"(?P<n>a)",
        r"(?<n>a)",
        r"(?<n>a)(?<n>b)",
        r"(?<>a)",
        r"(?<1>a)",
        r"(?<a.b>a)",
        r"(?<a[0]>a)",
        r"(?<é>a)",
        r"(?P=n)",
        r"(?P>n)",
        r"(?=a)",
        r"(?!a)",
        r"(?<=a)",
        r"(?<!a)",
        r"(?>a)",
        r"(?#c)a",
        r"(a",
        r"a)",
        r"()",
        r"()*",
        r"(a|)+",
        r"(|a)+",
        r"(|a)*?",
        r"(?|a)",
        // Repetition.
        r"a*",
        r"a+?",
        r"a??",
        r"a{2}",
        r"a{1,}",
        r"a{,2}",
        r"a{1,2}?",
        r"a{2,1}",
        r"a{",
        r"a{}",
        r"a{1",
        r"a**",
        r"a+*",
        r"a?+",
        r"a{2}{2}",
        r"a{2}*",
        r"*a",
        r"|*",
        r"+",
        r"a{0}",
        r"(a){0}b",
        r"a{ 2 }",
        r"(?:a{2,}|b)*",
        r"{",
        r"}",
        r"a}",
        r"]",
        r"a||b",
        r"|",
        r"(?:|a)b",
    ];
    for pattern in patterns {
        if let Err(error) = agrees(pattern, &TEXTS) {
            panic!("{error}");
        }
    }
}

/// Compares every character in an optimized build. A debug build, whose engine is a hundred times
/// slower, compares all characters below U+3000 and one of 61 above.
#[test]
fn classes_have_the_characters_of_the_regex_crate() {
    let is_compared =
        |&c: &char| !cfg!(debug_assertions) || c < '\u{3000}' || (c as u32).is_multiple_of(61);
    let all: String = ('\0'..=char::MAX).filter(is_compared).collect();
    let compared = CharSet::from_ranges(all.chars().map(|c| (c, c)));
    let mut classes: Vec<String> = [
        r"\w",
        r"\d",
        r"\s",
        r"\W",
        ".",
        "(?s).",
        "(?R).",
        r"(?i)\p{Lu}",
        r"(?i)[a-z]",
        "(?i)[^k-s]",
        r"(?-u:\w)",
        r"(?i-u)[k-s]",
        r"[\w--\p{Greek}]",
        r"[\w&&[^\d]]",
        r"\p{White_Space}",
        r"\p{scx=Grek}",
        r"\p{age=6.0}",
        r"\p{gcb=EX}",
        r"\p{wb=Katakana}",
        r"\p{sb=Lower}",
        r"(?i)ſ",
        "(?i)\u{10400}",
        r"[[:^space:]]",
        r"[[:word:]~~\w]",
        r"\p{LC}",
        r"\p{cwkcf}",
    ]
    .map(str::to_owned)
    .into();
    let kinds = ["L", "M", "N", "P", "S", "Z", "C", "Cs", "Emoji", "Alphabetic", "Cyrillic"];
    classes.extend(kinds.iter().map(|kind| format!(r"\p{{{kind}}}")));
    for class in classes {
        let read = parse(&class, PatternDialect::Rust, PatternFlags::default());
        let Ok(engine) = regex::Regex::new(&class) else {
            assert!(read.is_err(), "{class}");
            continue;
        };
        let expected = CharSet::from_ranges(
            engine.find_iter(&all).flat_map(|one| one.as_str().chars()).map(|c| (c, c)),
        );
        let PatternNode::Class(found) = read.expect(&class).root else {
            panic!("{class} is no class")
        };
        assert_eq!(found.intersection(&compared), expected, "{class}");
    }
}

#[test]
fn flag_arguments_equal_inline_flags() {
    let flags = PatternFlags {
        ignore_case: true,
        multi_line: true,
        dot_all: true,
        verbose: true,
        ..PatternFlags::default()
    };
    let with = |pattern: &str| parse(pattern, PatternDialect::Rust, flags).expect(pattern).root;
    let said = |pattern: &str| {
        parse(pattern, PatternDialect::Rust, PatternFlags::default()).expect(pattern).root
    };
    assert_eq!(with("a ^ . # x"), said("(?imsx) a ^ . # x"));
    let ascii = PatternFlags { ascii: true, ..PatternFlags::default() };
    assert!(matches!(
        parse("a", PatternDialect::Rust, ascii),
        Err(Error::Language { span: None, .. })
    ));
}

#[test]
fn refusals_have_spans_and_hints() {
    let cases = [
        (r"é(a)\1", 4, 6, "backreferences"),
        (r"é(?=a)", 1, 4, "look-around"),
        (r"é[a", 1, 2, "unclosed character class"),
        (r"é(?-u:\xFF)", 6, 10, "invalid UTF-8"),
        (r"é\p{Nope}", 1, 9, "property not found"),
        (r"é**a{3,1}", 4, 9, "invalid repetition"),
    ];
    for (pattern, start, end, part) in cases {
        let Err(Error::Language { message, span, hint }) =
            parse(pattern, PatternDialect::Rust, PatternFlags::default())
        else {
            panic!("{pattern} is read");
        };
        assert!(message.contains(part) && hint.is_some(), "{pattern}: {message}");
        assert_eq!(span, Some(SourceSpan { start, end }), "{pattern}");
    }
}

#[test]
fn groups_have_names_and_spans() {
    let read = parse("é(a(?<x>b))(?:c)(?P<y>d){0}", PatternDialect::Rust, PatternFlags::default())
        .unwrap();
    let groups: Vec<_> = read
        .groups
        .iter()
        .map(|group| (group.name.as_deref(), group.span.start, group.span.end))
        .collect();
    assert_eq!(groups, [(None, 1, 11), (Some("x"), 3, 10), (Some("y"), 16, 24)]);
}

#[test]
fn oversized_patterns_hit_limits() {
    let resource =
        |pattern: &str| match parse(pattern, PatternDialect::Rust, PatternFlags::default()) {
            Err(Error::Limit { resource, .. }) => Some(resource),
            _ => None,
        };
    assert!(parse(&"(".repeat(1_000_000), PatternDialect::Rust, PatternFlags::default()).is_err());
    assert_eq!(
        resource(&format!("{}a{}", "(".repeat(251), ")".repeat(251))),
        Some(Resource::Nesting)
    );
    assert_eq!(resource(&format!("a{}", "*".repeat(300))), Some(Resource::Nesting));
    assert_eq!(resource(&format!("a{{{}}}", MAX_REPETITION + 1)), Some(Resource::Repetition));
    assert_eq!(
        resource(&format!("{}a{}", "[".repeat(251), "]".repeat(251))),
        Some(Resource::Nesting)
    );
    let classes: String = ('\u{4e00}'..'\u{9000}').map(|c| format!(r"(?i)[\w{c}]")).collect();
    assert_eq!(resource(&classes), Some(Resource::Steps));
    // Many copies of one class cost as much as one.
    assert_eq!(resource(&r"(?i)[\w-]".repeat(20_000)), None);
    assert_eq!(resource(&format!("[{}]", r"\w\W".repeat(10_000))), None);
}

#[test]
fn loops_with_empty_iterations_terminate() {
    let text = "a".repeat(5_000);
    for pattern in
        ["((a*)*)*b", "((a+)+)+b", "(?:(a?){2,}){2,}b", "(?:(?:(?:a*)*)*)*b", r"(\b|a)*b"]
    {
        let read = parse(pattern, PatternDialect::Rust, PatternFlags::default()).expect(pattern);
        let found = group_spans(
            &MatchProgram::new(&read),
            &text,
            &mut StepMeter { steps: 0, allowed: 1_000_000 },
        );
        assert_eq!(found, Ok(None), "{pattern}");
    }
}

/// Generates patterns with everything the dialect has.
fn random_pattern() -> impl Strategy<Value = String> {
    let atoms = vec![
        "a",
        "b",
        "ab",
        "[ab]",
        ".",
        "é",
        "",
        r"\b",
        "^",
        "$",
        r"\B",
        r"\w",
        r"\s",
        r"[\w--a]",
        r"[[:alpha:]&&[^b]]",
        r"\b{start}",
        r"\b{end}",
        r"\A",
        r"\z",
        r"\n",
        "(?i)",
        "(?m)",
        "(?s)",
        "(?U)",
        "(?-i)",
        "(?mR)",
        r"\r",
    ];
    let counts = vec![
        "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}?", "{0,2}", "{2,}", "**",
    ];
    let opens = vec!["(", "(", "(", "(?:", "(?i:", "(?U:", "(?s-i:"];
    let leaf = prop::sample::select(atoms).prop_map(|atom| {
        if atom.starts_with("(?") { atom.to_owned() } else { format!("(?:{atom})") }
    });
    patterns_of(leaf, counts, opens)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn random_patterns_agree_with_the_regex_crate(pattern in random_pattern()) {
        agrees(&pattern, &TEXTS[..28])?;
    }
}
