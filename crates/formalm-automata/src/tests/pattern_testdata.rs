//! Tests of the parser and the reference matcher on the cases of `testdata/regex.toml`.

use formalm_core::{Error, LazyDfa, SourceSpan};
use formalm_regex::{PatternDialect, PatternFlags, parse, reference_matcher::matches};

use crate::{Automaton, AutomatonLimits, Expression};

/// One table of the file: its kind, and its keys with their values.
struct TomlEntry {
    kind: &'static str,
    values: Vec<(String, Vec<String>)>,
}

impl TomlEntry {
    fn list(&self, key: &str) -> &[String] {
        self.values.iter().find(|(name, _)| name == key).map_or(&[], |(_, list)| list)
    }

    fn one(&self, key: &str) -> &str {
        self.list(key).first().map_or("", String::as_str)
    }

    fn dialect(&self) -> PatternDialect {
        if self.one("dialect") == "ecma" { PatternDialect::Ecma } else { PatternDialect::Python }
    }

    fn flags(&self) -> PatternFlags {
        let has = |letter| self.one("flags").contains(letter);
        PatternFlags {
            ignore_case: has('i'),
            multi_line: has('m'),
            dot_all: has('s'),
            ascii: has('a'),
            verbose: has('x'),
        }
    }
}

/// Reads the subset of TOML that the file uses: one line per key, with strings, numbers, booleans
/// and flat lists as values.
fn entries() -> Vec<TomlEntry> {
    let mut entries: Vec<TomlEntry> = Vec::new();
    for line in include_str!("../../../../testdata/regex.toml").lines() {
        match line {
            "[[case]]" => entries.push(TomlEntry { kind: "case", values: Vec::new() }),
            "[[error]]" => entries.push(TomlEntry { kind: "error", values: Vec::new() }),
            _ if line.starts_with('#') => {}
            _ => {
                if let (Some(entry), Some((key, value))) =
                    (entries.last_mut(), line.split_once(" = "))
                {
                    entry.values.push((key.to_owned(), values(value)));
                }
            }
        }
    }
    entries
}

/// Returns the strings of a value, or its words.
fn values(source: &str) -> Vec<String> {
    if !source.contains(['"', '\'']) {
        let words = source.split(|c: char| !c.is_alphanumeric());
        return words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    }
    let mut found = Vec::new();
    let mut rest = source.chars();
    while let Some(quote) = rest.next() {
        if quote != '"' && quote != '\'' {
            continue;
        }
        let mut text = String::new();
        while let Some(character) = rest.next().filter(|&character| character != quote) {
            let escaped = quote == '"' && character == '\\';
            text.push(if escaped { unescaped(&mut rest) } else { character });
        }
        found.push(text);
    }
    found
}

fn unescaped(rest: &mut std::str::Chars) -> char {
    let digits = match rest.next() {
        Some('u') => 4,
        Some('U') => 8,
        Some('n') => return '\n',
        Some(other) => return other,
        None => return '\\',
    };
    let code = u32::from_str_radix(&rest.as_str()[..digits], 16).expect("hexadecimal digits");
    *rest = rest.as_str()[digits..].chars();
    char::from_u32(code).expect("a character")
}

#[test]
fn testdata_cases_match_and_reject() {
    let entries = entries();
    let cases = entries.iter().filter(|entry| entry.kind == "case");
    let mut number = 0;
    for case in cases {
        let name = case.one("name");
        let pattern = parse(case.one("pattern"), case.dialect(), case.flags())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for (texts, expected) in [(case.list("matches"), true), (case.list("rejects"), false)] {
            for text in texts {
                assert_eq!(matches(&pattern, text), expected, "{name} on {text:?}");
            }
        }
        // The automaton, unless the language is empty.
        if let Ok(machine) =
            Automaton::new(&Expression::pattern(pattern), AutomatonLimits::default())
        {
            for (texts, expected) in [(case.list("matches"), true), (case.list("rejects"), false)] {
                for text in texts {
                    let end = machine.walk(machine.start(), text.as_bytes()).expect("limits");
                    let member = end.is_ok_and(|state| machine.is_accepting(state));
                    assert_eq!(member, expected, "the machine of {name} on {text:?}");
                }
            }
        } else {
            assert!(case.list("matches").is_empty(), "{name} has members");
        }
        number += 1;
    }
    assert!(number > 600, "only {number} cases were read");
}

#[test]
fn testdata_errors_have_spans_and_hints() {
    let entries = entries();
    let errors = entries.iter().filter(|entry| entry.kind == "error");
    let mut number = 0;
    for entry in errors {
        let source = entry.one("pattern");
        let error = parse(source, entry.dialect(), entry.flags()).expect_err(source);
        assert!(error.to_string().contains(entry.one("message_contains")), "{source}: {error}");
        let place: Vec<usize> = entry.list("span").iter().filter_map(|n| n.parse().ok()).collect();
        match (&error, place.as_slice()) {
            (Error::Limit { .. }, []) => {}
            (Error::Language { span, hint, message }, &[start, end]) => {
                assert_eq!(*span, Some(SourceSpan { start, end }), "{source}: {error}");
                assert!(hint.is_some() && !message.ends_with('.'), "{source}: {error:?}");
            }
            _ => panic!("{source}: {error:?}"),
        }
        number += 1;
    }
    assert!(number > 140, "only {number} errors were read");
}
