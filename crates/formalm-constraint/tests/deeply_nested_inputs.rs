//! Property tests: masks deep inside nested inputs against the reference. Results cached for stacks
//! with equal prefixes must hold for all of them.

use std::sync::Arc;

use formalm_constraint::{Constraint, Matcher, reference};
use formalm_core::InterruptCheck;
use formalm_grammar::{
    ColumnRules, Grammar, GrammarAutomaton, GrammarLimits, GrammarMaskClasses, IndentationNames,
    Lexing, ParseOptions, Syntax, parse, parse_with,
};
use formalm_vocabulary::Vocabulary;
use proptest::prelude::*;

const BRACKETS: &str = r#"
start: value
value: "[" [value ("," value)*] "]" | "{" [pair ("," pair)*] "}" | "(" value ")" | NAME
pair: NAME ":" value
NAME: /[a-z]+/
%ignore " "
"#;

/// All parses of an input are on the stacks at once.
const AMBIGUOUS: &str = r#"
start: sum
sum: sum "+" sum | sum "-" sum | "(" sum ")" | NAME | NAME sum | "if" sum sum
NAME: /[a-z]+/
%ignore " "
"#;

/// A terminal that another one overrides: completability depends on the lower part of the stack.
const OVERRIDDEN_TERMINAL: &str = r#"
start: (item ";")*
item: "all" list | "(" item ")" | "[" list "]" | "in" ALL "(" item ")"
list: NAME | list "," NAME | "(" list ")"
ALL: /[a-z]+!?/
NAME.2: /[a-z]+/
%ignore " "
"#;

const BLOCKS: &str = r#"
start: statement*
statement: NAME "=" value _NEWLINE | "if" value ":" block | "with" ":" block ["else" ":" block]
block: NAME _NEWLINE | _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "(" [value ("," value)*] ")" | value "+" value
NAME: /[a-z]+/
_NEWLINE: /\n([ ]*(#[^\n]*)?\n)*[ ]*(#[^\n]*)?/
%declare _INDENT _DEDENT
%ignore /[ ]+/
%ignore /#[^\n]*/
"#;

const PIECES: [&str; 48] = [
    "[[",
    "]]",
    "]]]]",
    "[[[[[[",
    "((",
    "))",
    "))))",
    "{a:",
    "{a:[",
    "}}",
    "]}",
    "],",
    "),",
    "a",
    "ab",
    "if",
    " ",
    ",",
    ":",
    "+",
    "-",
    "(a",
    "a)",
    "a,b",
    "all",
    "all (",
    " in a! (",
    "; ",
    "a=",
    "if a:\n",
    "\n",
    "\n ",
    "\n  ",
    "\n    ",
    "with:\n  ",
    "a\n",
    "a\nelse:",
    "(\n",
    "\n)",
    "# a\n",
    "\na",
    "\n a",
    "\n  a",
    "\n    a",
    "\n      a=",
    "\n  else:",
    ")))))))",
    "]}]}]}",
];

/// Tokens that increase the nesting.
const OPENING: [&str; 12] = [
    "[[",
    "[[[[[[",
    "((",
    "{a:",
    "{a:[",
    "(a",
    "all (",
    "a=",
    "if a:\n",
    "\n    ",
    "with:\n  ",
    "(\n",
];

fn grammar(which: usize, lexing: Lexing) -> Grammar {
    let text = [BRACKETS, AMBIGUOUS, OVERRIDDEN_TERMINAL, BLOCKS][which];
    if which < 3 {
        return parse(text, Syntax::Lark, Some(lexing), None).expect("a grammar");
    }
    let names = |names: &[&str]| names.iter().map(|&one| one.to_owned()).collect();
    let mut options = ParseOptions::new(Syntax::Lark);
    options.indentation = Some(IndentationNames {
        newline: "_NEWLINE".to_owned(),
        indent: "_INDENT".to_owned(),
        dedent: "_DEDENT".to_owned(),
        opening: names(&["("]),
        closing: names(&[")"]),
        rules: ColumnRules::Python,
        tab: 8,
        widest: 60,
        levels: 30,
    });
    parse_with(text, &options).expect("a grammar")
}

fn constraint(which: usize, lexing: Lexing) -> Arc<Constraint<GrammarMaskClasses>> {
    let machine = GrammarAutomaton::new(&grammar(which, lexing), GrammarLimits::default());
    let machine = Arc::new(machine.expect("a machine"));
    let bytes = (0..=255u8).map(|byte| Some(vec![byte]));
    let pieces = PIECES.iter().map(|one| Some(one.as_bytes().to_vec()));
    let tokens: Vec<Option<Vec<u8>>> = bytes.chain(pieces).chain([None]).collect();
    let end = tokens.len() as u32 - 1;
    let vocabulary = Arc::new(Vocabulary::from_tokens(tokens, vec![end]).expect("a vocabulary"));
    Arc::new(Constraint::over(GrammarMaskClasses::new(machine), vocabulary, 1 << 20))
}

/// Compares a mask with the reference, and returns the allowed tokens.
fn checked(matcher: &Matcher<GrammarMaskClasses>) -> Vec<u32> {
    let constraint = matcher.constraint();
    let mut mask = vec![0u32; constraint.words()];
    matcher.fill(&mut mask).expect("a mask");
    let all = 0..constraint.vocabulary().len() as u32;
    let ids: Vec<u32> = all.filter(|id| mask[*id as usize >> 5] >> (id & 31) & 1 != 0).collect();
    let state = matcher.epoch().state(matcher.position());
    let allowed = reference::allowed(&**matcher.epoch().machine(), constraint.vocabulary(), state);
    let allowed = allowed.expect("a mask");
    assert_eq!(ids, allowed, "after {:?}", String::from_utf8_lossy(matcher.text()));
    ids
}

/// Walks over allowed tokens, preferring tokens of several bytes and tokens that nest deeper.
fn walk(constraint: &Arc<Constraint<GrammarMaskClasses>>, choices: &[u16]) {
    let mut matcher = Matcher::new(Arc::clone(constraint));
    for &choice in choices {
        let mut ids = checked(&matcher);
        // The input continues as long as it can.
        ids.retain(|id| !constraint.vocabulary().end_token_ids().contains(id));
        let within = |list: &[&str]| -> Vec<u32> {
            let is_in = |id: &u32| list.contains(&PIECES[*id as usize - 256]);
            ids.iter().copied().filter(|&id| id >= 256 && is_in(&id)).collect()
        };
        let (opening, pieces) = (within(&OPENING), within(&PIECES));
        let from = match choice % 4 {
            0 => &ids,
            1 | 2 if !opening.is_empty() => &opening,
            _ if pieces.is_empty() => &ids,
            _ => &pieces,
        };
        if from.is_empty() {
            break;
        }
        matcher.advance(from[choice as usize / 4 % from.len()]).expect("an allowed token");
    }
}

/// Returns a deeply nested input; many of its stacks have equal prefixes.
fn nested(which: usize, depth: usize) -> String {
    let many = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    match which {
        0 => many("[{a:(", "[]", ")},b]"),
        1 => many("(a+(if a ", "a-a", ")-a)"),
        2 => format!("all {};{};", many("(", "a,b", ")"), many("(in a! (", "[a]", "))")),
        _ => {
            let indented = |level: usize, text: &str| format!("{}{text}\n", "  ".repeat(level));
            let headers: String = (0..depth)
                .map(|at| indented(at, if at % 2 == 0 { "with:" } else { "if (a+(a)):" }))
                .collect();
            let values = indented(depth, &format!("a={}", many("(a,(", "a", "))")));
            let ends: String = (0..depth)
                .rev()
                .filter(|at| at % 2 == 0)
                .map(|at| indented(at, "else:") + &indented(at + 1, "a=a"))
                .collect();
            format!("{headers}{values}{}{ends}a=(a)\n", indented(depth, "a=a # a"))
        }
    }
}

#[test]
fn masks_along_nested_inputs_match_the_reference() {
    for (which, lexing) in
        [(0, Lexing::Longest), (1, Lexing::Any), (2, Lexing::First), (3, Lexing::Longest)]
    {
        let constraint = constraint(which, lexing);
        for depth in [1, 3, 2, 9, 5, 14] {
            let text = nested(which, depth);
            let mut matcher = Matcher::new(Arc::clone(&constraint));
            let mut read = 0;
            for byte in text.bytes() {
                checked(&matcher);
                if matcher.advance_bytes(&[byte], &mut InterruptCheck::new(&mut || true)).is_err() {
                    break;
                }
                read += 1;
            }
            assert!(which == 2 || read == text.len(), "{text:?} was read to {read}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn masks_on_random_nested_walks_match_the_reference(
        walks in prop::collection::vec(prop::collection::vec(any::<u16>(), 5..60), 1..6),
        which in 0..4usize,
        lexing in prop::sample::select(vec![Lexing::Any, Lexing::Longest, Lexing::First]),
    ) {
        let constraint = constraint(which, lexing);
        for choices in walks {
            walk(&constraint, &choices);
        }
    }
}
