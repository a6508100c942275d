//! Tests of tree shapes, limits and case folding; matching is tested with automata.

use formalm_core::{CharSet, Error, Resource, SourceSpan};

use super::{MAX_NESTING, Pattern, PatternDialect, PatternFlags, PatternNode, parse};

fn python(source: &str) -> Pattern {
    parse(source, PatternDialect::Python, PatternFlags::default()).expect(source)
}

fn ecma(source: &str) -> Pattern {
    parse(source, PatternDialect::Ecma, PatternFlags::default()).expect(source)
}

fn character(character: char) -> PatternNode {
    PatternNode::Class(CharSet::single(character))
}

fn class(source: &str, dialect: PatternDialect, letters: &str) -> CharSet {
    let flags = PatternFlags {
        ignore_case: letters.contains('i'),
        ascii: letters.contains('a'),
        ..PatternFlags::default()
    };
    match parse(source, dialect, flags).expect(source).root {
        PatternNode::Class(class) => class,
        other => panic!("{source} is {other:?}"),
    }
}

#[test]
fn sequences_and_alternatives_keep_their_order() {
    assert_eq!(python("").root, PatternNode::Empty);
    assert_eq!(python("a").root, character('a'));
    assert_eq!(python("a😀").root, PatternNode::Concat(vec![character('a'), character('😀')]));
    let expected = vec![
        PatternNode::Concat(vec![character('a'), character('b')]),
        PatternNode::Empty,
        character('c'),
    ];
    assert_eq!(python("ab||c").root, PatternNode::Alternation(expected.clone()));
    assert_eq!(ecma("ab||c").root, PatternNode::Alternation(expected));
}

#[test]
fn non_capturing_groups_vanish_from_the_tree() {
    assert_eq!(python("(?:a(?:b))c").root, python("abc").root);
    assert_eq!(python("(?:a|b)|c").root, python("[abc]").root);
    let repeated = PatternNode::Concat(vec![character('a'), character('b')]);
    let PatternNode::Repeat { node, .. } = python("(?:ab)*").root else { panic!("no repetition") };
    assert_eq!(*node, repeated);
}

#[test]
fn alternatives_are_merged_as_python_does() {
    assert_eq!(python("a|b|[cd]").root, python("[a-d]").root);
    let root = python("xa|xb").root;
    assert_eq!(root, PatternNode::Concat(vec![character('x'), python("[ab]").root]));
    // A negated class stays an alternative.
    assert!(matches!(python("a|[^b]").root, PatternNode::Alternation(_)));
    assert!(matches!(ecma("a|b").root, PatternNode::Alternation(_)));
}

#[test]
fn quantifiers_set_counts_and_laziness() {
    let counts = |source: &str| match python(source).root {
        PatternNode::Repeat { min, max, lazy, .. } => (min, max, lazy),
        other => panic!("{source} is {other:?}"),
    };
    assert_eq!(counts("a*"), (0, None, false));
    assert_eq!(counts("a+?"), (1, None, true));
    assert_eq!(counts("a?"), (0, Some(1), false));
    assert_eq!(counts("a{3}"), (3, Some(3), false));
    assert_eq!(counts("a{3,}"), (3, None, false));
    assert_eq!(counts("a{,4}?"), (0, Some(4), true));
    assert_eq!(counts("a{,}"), (0, None, false));
    assert_eq!(counts("a{100000}"), (100_000, Some(100_000), false));
}

#[test]
fn possessive_quantifiers_are_atomic_groups() {
    let greedy = python("a*").root;
    assert_eq!(python("a*+").root, PatternNode::Atomic(Box::new(greedy.clone())));
    assert_eq!(python("(?>a*)").root, PatternNode::Atomic(Box::new(greedy)));
    let PatternNode::Atomic(inner) = python("(?>ab|c)").root else { panic!("not atomic") };
    assert!(matches!(*inner, PatternNode::Alternation(_)));
}

#[test]
fn groups_have_numbers_names_and_spans() {
    let pattern = python("é(a(?P<x>b))(?:c)(d)");
    let spans: Vec<(usize, usize)> =
        pattern.groups.iter().map(|group| (group.span.start, group.span.end)).collect();
    assert_eq!(spans, [(1, 12), (3, 11), (17, 20)]);
    assert_eq!(pattern.groups[1].name.as_deref(), Some("x"));
    assert_eq!(pattern.groups[0].name, None);
    assert_eq!(ecma("(?<$year>a)").groups[0].name.as_deref(), Some("$year"));
    let PatternNode::Group { index, .. } = python("(a)").root else { panic!("no group") };
    assert_eq!(index, 1);
}

#[test]
fn anchors_become_assertions() {
    assert_eq!(python("^").root, PatternNode::TextStart);
    assert_eq!(python(r"\A").root, PatternNode::TextStart);
    assert_eq!(python(r"\Z").root, PatternNode::TextEnd);
    assert_eq!(ecma("$").root, PatternNode::TextEnd);
    assert!(matches!(python("$").root, PatternNode::Look { ahead: true, negative: false, .. }));
    let multi_line = python("(?m)^").root;
    let PatternNode::Alternation(parts) = multi_line else { panic!("no alternatives") };
    assert_eq!(parts[0], PatternNode::TextStart);
    assert!(matches!(parts[1], PatternNode::Look { ahead: false, negative: false, .. }));
}

#[test]
fn word_boundaries_carry_the_word_class_of_the_dialect() {
    let boundary = |pattern: Pattern| match pattern.root {
        PatternNode::WordBoundary { negative, word, empty_fails } => (negative, word, empty_fails),
        other => panic!("{other:?}"),
    };
    let (negative, word, empty_fails) = boundary(python(r"\B"));
    assert!(negative && empty_fails && word.contains('é'));
    let (_, word, empty_fails) = boundary(ecma(r"\B"));
    assert!(!empty_fails && !word.contains('é') && word.contains('_'));
    assert!(!boundary(python(r"(?a)\b")).1.contains('é'));
}

#[test]
fn python_changed_two_escapes_in_version_3_14() {
    let newer = |source: &str| parse(source, PatternDialect::Python314, PatternFlags::default());
    let Ok(Pattern {
        root: PatternNode::WordBoundary { negative, empty_fails, .. }, dialect, ..
    }) = newer(r"\B")
    else {
        panic!("no boundary")
    };
    assert!(negative && !empty_fails);
    assert_eq!(dialect, PatternDialect::Python314);
    assert_eq!(newer(r"a\z").map(|pattern| pattern.root), Ok(python(r"a\Z").root));
    assert!(parse(r"a\z", PatternDialect::Python, PatternFlags::default()).is_err());
    assert!(newer(r"[\z]").is_err());
    // Everything else is the same.
    for source in ["a*+b", "(?<=é)$", "(?i)[a-k]|x{,3}", r"\w\d\s.", "(?x) a # b"] {
        assert_eq!(newer(source).map(|pattern| pattern.root), Ok(python(source).root));
    }
}

#[test]
fn property_names_must_be_spelled_as_in_ecma_262() {
    let known = |name: &str| {
        parse(&format!(r"\p{{{name}}}"), PatternDialect::Ecma, PatternFlags::default())
    };
    for name in ["CWKCF", "Script=Unknown", "sc=Zzzz", "scx=Unknown", "sc=Qaac", "scx=Old_Italic"] {
        assert!(known(name).is_ok(), "{name}");
    }
    for name in ["cwkcf", "Script=greek", "sc=GREEK", "sc=OldItalic", "sc=Hrkt", "Unknown"] {
        assert!(known(name).is_err(), "{name}");
    }
    let changed = class(r"\p{Changes_When_NFKC_Casefolded}", PatternDialect::Ecma, "");
    assert!(changed.contains('A') && changed.contains('ﬁ') && changed.contains('\u{ad}'));
    assert!(!changed.contains('a') && !changed.contains('é'));
    let unknown = class(r"\p{Script=Unknown}", PatternDialect::Ecma, "");
    assert!(unknown.contains('\u{e000}') && unknown.contains('\u{378}') && !unknown.contains('a'));
}

#[test]
fn surrogate_escapes_match_nothing_or_form_pairs() {
    assert_eq!(python(r"\ud800").root, PatternNode::Class(CharSet::empty()));
    assert_eq!(python(r"[^\udfff]").root, PatternNode::Class(CharSet::all()));
    assert_eq!(ecma(r"\ud83d\ude00").root, character('😀'));
    // Two ranges separated only by surrogates are one, also for the complement.
    let apart = class(r"[^b-\ud7ff\ue000-\U0010ffff]", PatternDialect::Python, "");
    assert_eq!(apart.ranges(), [('\0', 'a')]);
}

#[test]
fn python_ignores_case_by_lowering_the_text() {
    let members = |source: &str, letters: &str| -> String {
        let class = class(source, PatternDialect::Python, letters);
        class.ranges().iter().flat_map(|&(low, high)| low..=high).collect()
    };
    assert_eq!(members("s", "i"), "Ssſ");
    assert_eq!(members("s", "ia"), "Ss");
    assert_eq!(members("k", "i"), "Kk\u{212a}");
    assert_eq!(members("i", "i"), "Iiİı");
    assert_eq!(members("ß", "i"), "ßẞ");
    assert_eq!(members("Σ", "i"), "Σςσ");
    // Quirks of CPython beyond the basic multilingual plane.
    assert_eq!(members("\u{10400}", "i"), "\u{10400}\u{10428}");
    assert_eq!(members("[\u{10400}a]", "i"), "Aa");
    assert_eq!(members("\u{10400}|a", "i"), "Aa");
}

#[test]
fn ecma_ignores_case_by_simple_folding() {
    let folded = class("[i]", PatternDialect::Ecma, "i");
    assert_eq!(folded, CharSet::from_ranges([('I', 'I'), ('i', 'i')]));
    assert!(class(r"\w", PatternDialect::Ecma, "i").contains('ſ'));
    assert!(!class(r"\W", PatternDialect::Ecma, "i").contains('ſ'));
    assert!(class(r"[\u{10400}a]", PatternDialect::Ecma, "i").contains('\u{10428}'));
}

#[test]
fn ecma_refuses_flags_it_does_not_have() {
    let flags = PatternFlags { verbose: true, ..PatternFlags::default() };
    assert!(matches!(
        parse("a", PatternDialect::Ecma, flags),
        Err(Error::Language { span: None, .. })
    ));
}

#[test]
fn nesting_is_bounded_and_never_overflows_the_stack() {
    let kinds =
        ["(", "(?:", "(?P<n>", "(?>", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "a|(", "(?:a|b*("];
    for kind in kinds {
        let parentheses = kind.matches('(').count();
        for suffix in [")", ")|bc", ")*", "){2,3}+"] {
            // Repeated lookbehind would need unique names and a fixed width.
            if kind == "(?P<n>" || (kind.starts_with("(?<") && suffix != ")") {
                continue;
            }
            let levels = MAX_NESTING / parentheses;
            let close = format!("{suffix}{}", ")".repeat(parentheses - 1));
            let source = format!("{}a{}", kind.repeat(levels), close.repeat(levels));
            let pattern = python(&source);
            assert_eq!(pattern.clone(), pattern);
            assert!(!format!("{pattern:?}").is_empty());
            let deeper = format!("{}{source}{}", kind, close);
            let Err(Error::Limit { resource, needed, allowed }) =
                parse(&deeper, PatternDialect::Python, PatternFlags::default())
            else {
                panic!("{kind} may be nested too deep")
            };
            assert_eq!((resource, needed, allowed), (Resource::Nesting, 251, 250));
        }
    }
    assert!(parse(&"(".repeat(1_000_000), PatternDialect::Ecma, PatternFlags::default()).is_err());
}

#[test]
fn long_patterns_are_parsed() {
    let pieces = ["a", "ab|", "(?:a)", "(a)", "[a-z]", "[ab]|", "a{2}", "{1", "\\n", "(?i:é)"];
    for piece in pieces {
        python(&piece.repeat(200_000 / piece.len()));
    }
    let PatternNode::Concat(parts) = python(&"a".repeat(1_000_000)).root else {
        panic!("no sequence")
    };
    assert_eq!(parts.len(), 1_000_000);
    ecma(&"\\p{L}".repeat(20_000));
}

#[test]
fn spans_count_characters() {
    let error =
        parse("é😀*+?", PatternDialect::Python, PatternFlags::default()).expect_err("too many");
    let Error::Language { span, .. } = error else { panic!("no place") };
    assert_eq!(span, Some(SourceSpan { start: 4, end: 5 }));
}
