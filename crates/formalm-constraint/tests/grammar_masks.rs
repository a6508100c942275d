//! Property tests: masks of grammars against the reference, on random walks.

use std::sync::Arc;

use formalm_constraint::{Constraint, Matcher, reference};
use formalm_core::LazyDfa;
use formalm_grammar::{GrammarAutomaton, GrammarLimits, GrammarMaskClasses, Lexing, Syntax, parse};
use formalm_vocabulary::Vocabulary;
use proptest::prelude::*;

const JSON: &str = r#"
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [STRING ":" value ("," STRING ":" value)*] "}"
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\r\n]+/
"#;

/// Strings of some characters beyond ASCII and not of others, among other terminals.
const STRINGS: &str = r#"
start: (STRING | QUOTED | NAME)+
STRING: /"[a-zà-ü0-9 ,:{}+é]*"/
QUOTED: /'([^'\\]|\\.)*'/s
NAME: /[a-zà-ÿ]+/
%ignore " "
"#;

const WORDS: &str = r#"
start: (NAME "=" sum ";")*
sum: atom | sum "+" atom | "if" sum "else" sum
atom: NAME | INT | "(" sum ")"
NAME: /[a-z_]+/
INT: /[0-9]+/
%ignore " "
"#;

/// Keywords that are names, a terminal with whitespace in it, comments, and lexemes that others
/// forbid.
const STATEMENTS: &str = r#"
start: (statement ";")*
statement: "set" NAME "=" sum | JOIN NAME | "cast" "(" sum "as" TYPE ")"
sum: atom | sum ("+" | "-" | "->") atom | "if" sum "else" sum
atom: NAME | INT | FLOAT | "(" sum ")"
JOIN.2: ("left" " "+)? "join"
TYPE: "int" | "e" | "if"
NAME: /[a-z_]+/
INT: /0|[1-9][0-9]*/
FLOAT: /[0-9]+\.[0-9]*(e[0-9]+)?/
COMMENT: /--[^\n]*/ | "{" /[^}]*/ "}"
%ignore COMMENT
%ignore /[ \n]+/
"#;

/// Without whitespace nothing separates lexemes, so viability takes a search.
const TIGHT: &str = r#"
start: (pair | start ":" pair)
pair: A B? | B A | "[" start? "]"
A: /a+/
B: /a?b/
"#;

fn constraint(
    text: &str,
    lexing: Lexing,
    tokens: &[Vec<u8>],
) -> Arc<Constraint<GrammarMaskClasses>> {
    let grammar = parse(text, Syntax::Lark, Some(lexing), None).expect("a grammar");
    let automaton =
        Arc::new(GrammarAutomaton::new(&grammar, GrammarLimits::default()).expect("a grammar"));
    let mut tokens: Vec<Option<Vec<u8>>> = tokens.iter().cloned().map(Some).collect();
    tokens.push(None);
    let end = tokens.len() as u32 - 1;
    let vocabulary = Arc::new(Vocabulary::from_tokens(tokens, vec![end]).expect("a grammar"));
    let keys = GrammarMaskClasses::new(automaton);
    Arc::new(Constraint::over(keys, vocabulary, 1 << 20))
}

fn tokens() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "a",
        "if",
        "else",
        "ifx",
        "é—",
        "aж\\",
        "ж\"",
        "aaaaaaaaaaaa\\n",
        " ",
        "  ",
        "1",
        "0",
        "12",
        "-",
        ".",
        "e",
        "\": ",
        "\", \"",
        "]]",
        "}}",
        "true",
        "tr",
        "ue",
        "nul",
        "=",
        ";",
        "+",
        "(",
        ")",
        "x = 1;",
        "é",
        "\u{e9}\"",
        "[[",
        "{\"",
        " if ",
        "1.5",
        "\n",
        "_",
        "))",
        "a+b",
        "else (",
        "'",
        "'a",
        "ü'",
        "ÿ",
        "ÿa",
        "à ",
        "set",
        "set ",
        " join",
        "left ",
        "left  join a;",
        "cast(",
        " as",
        " as int)",
        "->",
        "--",
        "-- x\n",
        "{ a }",
        "ab",
        "aab",
        "]:",
        "[]",
        "1.0e",
        "=1",
    ];
    let piece = prop::sample::select(pieces.to_vec()).prop_map(|one| one.as_bytes().to_vec());
    let bytes: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    prop::collection::vec(piece, 5..60).prop_map(move |mut list| {
        list.extend(bytes.clone());
        list
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn masks_of_grammars_match_the_reference(
        tokens in tokens(),
        choices in prop::collection::vec(any::<u16>(), 1..25),
        which in 0..5usize,
        lexing in prop::sample::select(vec![Lexing::Any, Lexing::Longest, Lexing::First]),
    ) {
        let text = [JSON, WORDS, STRINGS, STATEMENTS, TIGHT][which];
        let constraint = constraint(text, lexing, &tokens);
        let mut matcher = Matcher::new(Arc::clone(&constraint));
        for choice in choices {
            let mut mask = vec![0u32; constraint.words()];
            matcher.fill(&mut mask).unwrap();
            let ids: Vec<u32> = (0..constraint.vocabulary().len() as u32)
                .filter(|id| mask[*id as usize >> 5] >> (id & 31) & 1 != 0)
                .collect();
            let epoch = matcher.epoch();
            let machine = epoch.machine();
            let state = epoch.state(matcher.position());
            let allowed =
                reference::allowed(&**machine, constraint.vocabulary(), state).unwrap();
            prop_assert_eq!(&ids, &allowed);
            let before = machine.memory_bytes();
            matcher.fill(&mut mask).unwrap();
            prop_assert_eq!(before, machine.memory_bytes());
            prop_assert!(!ids.is_empty(), "a dead end after {:?}", matcher.text());
            matcher.advance(ids[choice as usize % ids.len()]).unwrap();
            if matcher.has_ended() {
                break;
            }
        }
    }
}

#[test]
fn masks_keep_no_lookahead_states() {
    let bytes: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    let nested: Vec<Vec<u8>> = ["[[[[", "{\"a\":[", "]]", "}}", "[{\""]
        .iter()
        .map(|one| one.as_bytes().to_vec())
        .collect();
    let constraint = constraint(JSON, Lexing::Longest, &[bytes, nested].concat());
    let mut matcher = Matcher::new(Arc::clone(&constraint));
    let mut mask = vec![0u32; constraint.words()];
    for token in b"[[[{\"a" {
        matcher.fill(&mut mask).unwrap();
        let states = matcher.epoch().machine().state_count();
        matcher.fill(&mut mask).unwrap();
        assert_eq!(states, matcher.epoch().machine().state_count());
        matcher.advance(u32::from(*token)).unwrap();
        assert!(matcher.epoch().machine().state_count() <= states + 1);
    }
}
