//! Tests of the recognizer against the parser, which reads patterns as a whole.

use std::sync::Arc;

use formalm_core::{Error, LazyDfa};
use formalm_regex::{PatternDialect, PatternFlags, parse};

use super::{RegexSourceRecognizer, RegexSourceState};
use crate::{Automaton, AutomatonLimits, Expression};

fn read(text: &str) -> Option<RegexSourceState> {
    text.chars().try_fold(RegexSourceState::new(), |source, c| source.after(c))
}

/// Returns the parser's verdict, or `None` where it refuses a reference.
fn parses(text: &str) -> Option<bool> {
    match parse(text, PatternDialect::Ecma, PatternFlags::default()) {
        Ok(_) => Some(true),
        Err(Error::Language { message, .. }) if message.contains("backreferences") => None,
        Err(_) => Some(false),
    }
}

/// Checks all strings over some pieces, up to a number of pieces.
fn all(pieces: &[&str], most: usize, check: &mut impl FnMut(&str)) {
    fn longer(text: &str, pieces: &[&str], left: usize, check: &mut impl FnMut(&str)) {
        check(text);
        for piece in pieces.iter().filter(|_| left > 0) {
            longer(&format!("{text}{piece}"), pieces, left - 1, check);
        }
    }
    longer("", pieces, most, check);
}

#[test]
fn the_recognizer_accepts_exactly_what_the_parser_accepts() {
    let sets: [(&[&str], usize); 5] = [
        (&["a", "(", ")", "?", ":", "*", "|", "<", "=", "i", "-", ">"], 5),
        (&["a", "{", "}", "1", "0", ",", "?", "2"], 6),
        (&["[", "]", "^", "-", "a", "\\", "b", "d", "é"], 6),
        (&["[", "]", "-", "\\u", "\\x", "d83d", "de00", "4", "{", "}", "z"], 5),
        (&["\\", "p", "{", "}", "c", "0", "gc=", "L", "u", "Script=", "Greek", "k"], 5),
    ];
    let mut seen = 0;
    for (pieces, most) in sets {
        all(pieces, most, &mut |text| {
            let Some(expected) = parses(text) else { return };
            let found = read(text).is_some_and(|source| source.is_complete());
            assert_eq!(found, expected, "{text:?}");
            seen += usize::from(expected);
        });
    }
    assert!(seen > 100_000, "{seen} patterns among the texts");
}

/// Everything that is read can be completed: by closing open groups and defining missing names.
#[test]
fn every_viable_prefix_can_be_completed() {
    let ends = [
        "",
        "]",
        "}",
        "a",
        "=a)",
        ":)",
        "a>",
        "00",
        "0000",
        "0}",
        "41",
        "10ffff}",
        "ffff}",
        "fff}",
        "ff}",
        "f}",
        "de00",
        "e00",
        "00",
        "ff",
        "f",
        "ffff",
        "fff",
        "dbff\\udfff",
        "bff\\udfff",
        "\\udfff",
        "dfff",
        "udfff",
        "{10ffff}",
        "z",
        "Z",
        "L}",
        "{L}",
        "<a>",
        "Lu}",
        "Greek}",
        "d",
        "u}",
        "ript=Greek}",
        "i:",
        "s:",
        "m:",
        "reek}",
        "=Lu}",
        "c=Lu}",
        "x=Greek}",
        "=Greek}",
        "bff",
        "ff\\udfff",
        "f\\udfff",
        "}]",
        "P",
    ];
    let sets: [(&[&str], usize); 3] = [
        (&["[", "]", "-", "\\u", "d83d", "de00", "{", "}", "1", "z", "\u{10000}", "f"], 5),
        (&["[", "-", "\\", "c", "x", "4", "0", "z", "\u{1}", "]"], 5),
        (&["(", "?", "<", "a", ">", ")", "\\k", "\\2", "i", "-", ":", "{", "3", ","], 5),
    ];
    for (pieces, most) in sets {
        all(pieces, most, &mut |text| {
            if read(text).is_none() {
                return;
            }
            let completed = ends.iter().any(|end| {
                let Some(source) = read(&format!("{text}{end}")) else { return false };
                // Inside a class its bracket comes first.
                for close in ["", "]"] {
                    let mut rest = format!("{close}{}", ")".repeat(source.open.len()));
                    source.undefined_names.iter().for_each(|name| rest += &format!("(?<{name}>)"));
                    rest +=
                        &"()".repeat(source.groups_needed.saturating_sub(source.groups) as usize);
                    if read(&format!("{text}{end}{rest}")).is_some_and(|one| one.is_complete()) {
                        return true;
                    }
                }
                false
            });
            assert!(completed, "{text:?}");
        });
    }
}

#[test]
fn references_must_name_existing_groups() {
    for (text, expected) in [
        (r"(a)\1", true),
        (r"\1(a)", true),
        (r"(a)\2", false),
        (r"(?<n>a)\k<n>", true),
        (r"\k<n>(?<n>a)", true),
        (r"(?<n>a)\k<m>", false),
        (r"(?<n>a)(?<n>b)", false),
        (r"((?<é>a)(?:b(?=c)))+", true),
        (r"(?=c)+", false),
    ] {
        assert_eq!(read(text).is_some_and(|one| one.is_complete()), expected, "{text}");
    }
}

#[test]
fn the_byte_automaton_agrees_with_the_char_recognizer() {
    let expression = Expression::custom(Arc::new(RegexSourceRecognizer::default()));
    let machine =
        Automaton::new(&expression, AutomatonLimits::default()).expect("there are patterns");
    let reads = |text: &[u8]| machine.walk(machine.start(), text).expect("within limits").is_ok();
    assert!(reads("(é[à-é]".as_bytes()));
    assert!(reads(b"[\xc3\xa9-\xc3") && !reads(b"[\xc3\xa9-\xc2") && !reads(b"\xed\xa0"));
    let without = expression.clone().complement().expect("not nested deeply");
    let others = Automaton::new(&without, AutomatonLimits::default()).expect("there are others");
    for text in ["a)", "(", "[b-a]", "a**", "é"] {
        let member = |machine: &Automaton| {
            let read = machine.walk(machine.start(), text.as_bytes()).expect("within limits");
            read.is_ok_and(|state| machine.is_accepting(state))
        };
        assert_ne!(member(&machine), member(&others), "{text}");
    }
}

/// Prefixes of patterns of every kind.
const BEGINNINGS: [&str; 26] = [
    "",
    "a",
    "a+",
    "a{",
    "a{2",
    "a{2,",
    "\\1",
    "(",
    "(((a",
    "(?",
    "(?<",
    "(?<a",
    "(?<a>b)c",
    "(?<a>(?<b",
    "(a(?=",
    "\\",
    "\\k<",
    "\\k<a",
    "\\u",
    "[",
    "[^",
    "[a",
    "[a-",
    "[é-",
    "[\\d",
    "(?<a>[x",
];

/// A state continues as its representative does, excluded strings aside.
#[test]
fn states_continue_like_their_representatives() {
    let pieces = ["a", "b", "z", "-", "[", "]", "(", ")", "?", "*", "{", "}", ",", "2", "1"];
    let pieces = [&pieces[..], &["\\", "<", ">", "=", "|", "^", "é", "u", "k", "d", " "]].concat();
    let mut compared = 0;
    for beginning in BEGINNINGS {
        let source = read(beginning).expect("it begins a pattern");
        let (like, first, anywhere) = source.representative();
        let is = |set: u128, c: char| c.is_ascii() && set >> (c as u32) & 1 != 0;
        all(&pieces, 3, &mut |text| {
            if text.chars().next().is_some_and(|c| is(first, c)) {
                return;
            }
            if text.chars().any(|c| is(anywhere, c)) {
                return;
            }
            let goes = |from: &RegexSourceState| {
                text.chars().try_fold(from.clone(), |source, c| source.after(c)).is_some()
            };
            assert_eq!(goes(&source), goes(&like), "{beginning:?} {text:?}");
            compared += 1;
        });
        for character in 0..0x80_u8 {
            let (low, high) = source.ascii_span(character);
            assert!((low..=high).contains(&character) && high < 0x80);
            let after = source.after(character.into());
            let same = (low..=high).all(|one| source.after(one.into()) == after);
            assert!(same, "{beginning:?} {low} {high}");
        }
    }
    assert!(compared > 100_000, "{compared}");
}

/// Multi-byte characters, complete and not, are compared with the effect of their code points.
#[test]
fn non_ascii_characters_are_read_bytewise_like_their_scalars() {
    let expression = Expression::custom(Arc::new(RegexSourceRecognizer::default()));
    let machine =
        Automaton::new(&expression, AutomatonLimits::default()).expect("there are patterns");
    let before = [
        "",
        "a",
        "a+",
        "a{",
        "a{2",
        "\\1",
        "(",
        "(?",
        "(?<",
        "(?<a",
        "(?:",
        "(?i",
        "\\",
        "\\k<",
        "\\k<a",
        "\\u",
        "\\p{",
        "\\0",
        "[",
        "[^",
        "[a",
        "[a-",
        "[é",
        "[é-",
        "[\u{10FFFE}-",
        "[\\d-",
        "[\\",
        "[a-\\",
    ];
    let behind = ["", "]", "-z]", "-\u{10FFFF}]", "+", "é)", ">)", "\\k<é>"];
    let parts: [&[u8]; 12] = [
        b"\xC3",
        b"\xDF",
        b"\xE0",
        b"\xE0\x80",
        b"\xE0\xA0",
        b"\xE3\x81",
        b"\xED\x9F",
        b"\xED\xA0",
        b"\xF0\x8F",
        b"\xF0\x90\x8D",
        b"\xF4\x8F\xBF",
        b"\xF4\x90",
    ];
    for start in before {
        let source = read(start).expect("it begins a pattern");
        let state = machine.walk(machine.start(), start.as_bytes()).expect("within limits");
        let state = state.expect("it begins a pattern");
        for c in ['é', 'ə', 'あ', '한', '\u{E000}', '😀', '\u{10FFFF}'] {
            for end in behind {
                let text = format!("{c}{end}");
                let expected = text.chars().try_fold(source.clone(), |source, c| source.after(c));
                let found = machine.walk(state, text.as_bytes()).expect("within limits").ok();
                assert_eq!(found.is_some(), expected.is_some(), "{start:?} {text:?}");
                let member = found.is_some_and(|state| machine.is_accepting(state));
                assert_eq!(member, expected.is_some_and(|one| one.is_complete()), "{start} {text}");
            }
        }
        for part in parts {
            let begins = |c: &char| c.encode_utf8(&mut [0; 4]).as_bytes().starts_with(part);
            let some = ('\u{80}'..=char::MAX).filter(begins).any(|c| source.after(c).is_some());
            let found = machine.walk(state, part).expect("within limits").is_ok();
            assert_eq!(found, some, "{start:?} {part:x?}");
        }
    }
}

#[test]
fn length_bounded_patterns_are_decided_with_few_states() -> Result<(), Error> {
    let patterns = || Expression::custom(Arc::new(RegexSourceRecognizer::default()));
    let cases = [
        ("[^]{5,}", "(a[b", true),
        ("[^]{40,}", "(a[b", true),
        ("[^]{40,}", "((((\\3", true),
        ("[^]{0,6}", "(a[b", true),
        ("[^]{5,}", "a)", false),
    ];
    for (length, text, expected) in cases {
        let length =
            Expression::pattern(parse(length, PatternDialect::Ecma, PatternFlags::default())?);
        let both = Expression::intersection(vec![patterns(), length])?;
        let machine = Automaton::new(&both, AutomatonLimits::default())?;
        let read = machine.walk(machine.start(), text.as_bytes())?;
        assert_eq!(read.is_ok(), expected, "{text}");
        assert!(machine.state_count() < 5_000, "{text}");
    }
    Ok(())
}
