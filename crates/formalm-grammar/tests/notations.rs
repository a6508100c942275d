//! Grammar texts: what each notation accepts, what it means, and what is refused where.

use formalm_core::{Error, LazyDfa, ReadingHints};
use formalm_grammar::{GrammarAutomaton, GrammarLimits, Lexing, Syntax, parse};

fn machine(text: &str, syntax: Syntax) -> GrammarAutomaton {
    let grammar = parse(text, syntax, None, None).expect("a grammar");
    GrammarAutomaton::new(&grammar, GrammarLimits::default()).expect("a grammar")
}

fn reads(machine: &GrammarAutomaton, text: &str) -> bool {
    machine.accepts_from(machine.start(), text.as_bytes()).expect("a grammar")
}

fn check(text: &str, syntax: Syntax, members: &[&str], others: &[&str]) {
    let machine = machine(text, syntax);
    for member in members {
        assert!(reads(&machine, member), "{member:?} of {text}");
    }
    for other in others {
        assert!(!reads(&machine, other), "{other:?} of {text}");
    }
}

fn refused(text: &str, syntax: Syntax) -> String {
    match parse(text, syntax, None, None) {
        Err(Error::Language { message, span, .. }) => {
            assert!(span.is_some() || message.contains("start"), "{message}");
            message
        }
        other => panic!("{text} is read: {other:?}"),
    }
}

#[test]
fn gbnf_is_parsed() {
    let list = "root ::= item+ # all of it\nitem ::= \"- \" [^\\r\\n\\x0b\\u2028]+ \"\\n\"";
    check(list, Syntax::Gbnf, &["- a\n", "- a]b\n- é\n"], &["", "- \n", "- a", "- a\u{2028}\n"]);
    let nested = "root ::= \"(\" root \")\" |\n  [0-9]{2,3}\n  | x-y?\nx-y ::= \"\\x41\"";
    check(nested, Syntax::Gbnf, &["12", "((123))", "A", "()", ""], &["1", "(1)", "AA", "1234"]);
    check("root ::= (\n \"a\" |\n \"b\" )*", Syntax::Gbnf, &["", "abba"], &["c"]);
    check("root ::= . [a-c-] [^\\]x]", Syntax::Gbnf, &["é-y"], &["ab]", "a-x", "ab"]);
}

#[test]
fn lark_is_parsed() {
    let sums = r#"
        ?start: sum            // a comment
        sum: product | sum "+" product -> add
        product: atom | product "*" atom
        atom: NUMBER | "(" sum ")"
        %import common.NUMBER
        %import common (WS, CNAME)
        %ignore WS
    "#;
    check(sums, Syntax::Lark, &["1", " ( 1 + 2.5 )*3 "], &["", "1 2", "1+", "(1"]);
    let lists = r#"
        start: _list{WORD, ","} | "!" "a".."c"~2..3
        _list{item, mark}: "[" [item (mark item)*] "]"
        WORD.2: LETTER+
        LETTER: "a".."z" | "é"
    "#;
    check(lists, Syntax::Lark, &["[]", "[a,é]", "!ab", "!abc"], &["[a,]", "!a", "!abca", "!ad"]);
    let keywords = "start: \"if\" NAME | NAME \"=\" NAME\nNAME: /[a-z]+/\n%ignore \" \"";
    check(keywords, Syntax::Lark, &["if x", "if ifs", "ifx=y"], &["ifx", "if=x", "if"]);
    let cases = "start: \"select\"i X?\nX: /x/i";
    check(cases, Syntax::Lark, &["SELECT", "Selectx", "sElEcTX"], &["sel"]);
    let lazy = "start: C \"x\"\nC: /\\/\\*.*?\\*\\//";
    check(lazy, Syntax::Lark, &["/*a*/x"], &["/*a*/b*/x"]);
}

#[test]
fn common_escaped_string_ends_at_its_closing_quote() {
    let list = "start: ESCAPED_STRING (\",\" ESCAPED_STRING)*\n%import common.ESCAPED_STRING";
    check(list, Syntax::Lark, &[r#""a","b""#, r#""a\"b""#, r#""\\""#], &[r#""a"b""#, r#""\""#]);
}

#[test]
fn unsupported_syntax_is_refused_with_its_line() {
    for (text, message) in [
        ("start: a\n", "line 1: a is not defined"),
        ("start: A\nA: B\nB: A", "refers to itself"),
        ("start: \"a\"\nstart: \"b\"", "line 2: start is defined twice"),
        ("start: \"a", "line 1: the string has no closing quote"),
        ("start: /(a/", "line 1"),
        ("start: A\nA: /\\ba/", "line 2: the terminal A is not supported"),
        ("start: A\nA: /(?<=b)a/", "line 2: the terminal A is not supported"),
        ("start: A\nA: /^a/", "line 2: the terminal A is not supported"),
        ("start: \"a\" & \"b\"", "line 1: & and ~ apply to terminals"),
        ("start: A\nA: /a(?=b)/ & /a+/", "line 2: /a(?=b)/ has lookaround"),
        ("start: A\nA: ~B\nB: ~A", "refers to itself"),
        ("start: A\nA: ~start", "line 2: start is a rule"),
        ("start: A\n%declare A", "line 1: the terminal A is declared"),
        ("start: \"a\"\n%import python.NAME", "line 2: python.NAME cannot be imported"),
        ("start: \"a\"\n%override a: \"b\"", "line 2: %override"),
        ("start: \"a\"\n%ignore", "line 2: expected a terminal after %ignore"),
        ("start: \"a\"\n%whole \n", "line 2: expected a terminal after %whole"),
        ("start: A\nA.100001: \"a\"", "a priority must be at most 100,000"),
        ("start: \"a\"~100001", "a repetition count must be at most 100,000"),
        ("x: \"a\"", "no start rule start"),
        ("start: t{\"a\"}\nt{a, b}: a b", "arguments of t must be 2, got 1"),
    ] {
        let found = refused(text, Syntax::Lark);
        assert!(found.contains(message), "{text:?}: {found}");
    }
    for (text, message) in [
        ("root ::= x", "line 1: x is not defined"),
        ("root ::= \"a\"\n\nroot ::= \"b\"", "line 3: root is defined twice"),
        ("root ::= <[12]>", "token ids are not supported"),
        ("root ::= \"a\" !<end>", "any token except one"),
        ("root ::= <a b>", "invalid special token"),
        ("root ::= [a", "no closing bracket"),
        ("root = \"a\"", "expected \"::=\""),
        ("root ::= \"a\" )", "line 1: expected the end of the rule"),
        ("root ::= \"a\"{3,2}", "the minimum repeat count is greater than the maximum"),
    ] {
        let found = refused(text, Syntax::Gbnf);
        assert!(found.contains(message), "{text:?}: {found}");
    }
}

#[test]
fn terminals_combine_with_intersection_and_complement() {
    let words =
        "start: (WORD | KEY)+\nKEY: \"if\" | \"else\"\nWORD: /[a-z]+/ & ~KEY\n%ignore \" \"";
    check(words, Syntax::Lark, &["if x", "iffy else", "a b"], &["", "1"]);
    let only = "start: WORD\nWORD: /[a-z]+/\n  & ~(\"if\" | \"else\") & /..+/ | \"0\"~2";
    check(only, Syntax::Lark, &["ab", "iff", "00"], &["if", "a", "else", "0"]);
}

#[test]
fn whole_terminals_are_never_split() {
    let words = "start: \"do\" \"it\" NUMBER?\nNUMBER: /[0-9]+/\nWORD: /[a-z_][a-z_0-9]*/\n\
                 %ignore \" \"\n%whole WORD\n%whole NUMBER WORD";
    check(
        words,
        Syntax::Lark,
        &["do it", "do it 12", " do  it"],
        &["doit", "do it12", "do it_", "do it 1a"],
    );
    let any = parse(words, Syntax::Lark, Some(Lexing::Any), None);
    assert!(matches!(any, Err(Error::Language { .. })));
}

#[test]
fn terminal_lookahead_is_supported() {
    let words = "start: (IF | NAME)+\nIF: /if\\b/\nNAME: /[a-z]+/\n%ignore \" \"";
    check(words, Syntax::Lark, &["if", "iff", "if a"], &["", "if1"]);
    let numbers = "start: (INT | RANGE | FLOAT)+\nINT: /[0-9]+(?!\\.[0-9])/\nRANGE: \"..\"\n\
                   FLOAT: /[0-9]+\\.(?!\\.)[0-9]*/";
    check(numbers, Syntax::Lark, &["1..2", "1.", "1.5", "1.5..2"], &["1...2", ".", "1..."]);
    let last = "start: (A | B)+\nA: /a$/\nB: /b(?=a|b)/";
    check(last, Syntax::Lark, &["a", "bba"], &["b", "ab", "aa", ""]);
}

#[test]
fn endless_brackets_and_templates_hit_a_limit() {
    let deep = format!("root ::= {}\"a\"{}", "(".repeat(500), ")".repeat(500));
    assert!(matches!(parse(&deep, Syntax::Gbnf, None, None), Err(Error::Limit { .. })));
    let mut doubling = "start: A0\n".to_owned();
    (0..22).for_each(|at| doubling += &format!("A{at}: A{} A{}\n", at + 1, at + 1));
    doubling += "A22: \"a\"";
    assert!(matches!(parse(&doubling, Syntax::Lark, None, None), Err(Error::Limit { .. })));
    let doubling = doubling.replace("A22: \"a\"", "A22: ~\"a\"");
    assert!(matches!(parse(&doubling, Syntax::Lark, None, None), Err(Error::Limit { .. })));
    let deep = format!("start: A\nA: {}\"a\"", "~".repeat(500));
    assert!(matches!(parse(&deep, Syntax::Lark, None, None), Err(Error::Limit { .. })));
    let grows = "start: t{\"a\"}\nt{x}: x | t{(x x)}";
    assert!(matches!(parse(grows, Syntax::Lark, None, None), Err(Error::Limit { .. })));
}

#[test]
fn ineffective_constructs_are_noted() {
    let text = "start.3: A \"b\"\nA: /a+?/\n%ignore \" \"";
    let notes = |lexing| {
        let grammar = parse(text, Syntax::Lark, lexing, None).unwrap();
        grammar.notes.iter().map(|note| note.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(notes(None).contains("priority of a rule") && notes(None).contains("lazy"));
    assert!(notes(Some(Lexing::Any)).contains("words may touch"));
}

/// Reads a published grammar; `None` in a copy of the project without them.
fn shared_grammar(name: &str) -> Option<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/grammars/");
    std::fs::read_to_string(format!("{path}{name}")).ok()
}

#[test]
fn published_grammars_are_parsed() {
    for (name, members, others) in [
        ("gbnf/json.gbnf", &["{\"a\": [1, 2.5e3, true]}", "{}"][..], &["[1]", "{", "{a: 1}"][..]),
        ("gbnf/json_arr.gbnf", &["[\n1]"], &["[1]"]),
        ("gbnf/arithmetic.gbnf", &["a=1\n", "a +1=b\n"], &["a=\n"]),
        ("gbnf/chess.gbnf", &["1. e4 e5\n2. Nf3 Nc6\n"], &["1. e4\n"]),
        ("gbnf/english.gbnf", &["Hello, you"], &["é"]),
        ("gbnf/list.gbnf", &["- a\n- b\n"], &["a"]),
        ("lark/json.lark", &["{\"a\": [1, \"\", -2.5e3]}", "[ ]"], &["1", "[1,]", "{\"\": 1}"]),
        ("lark/calc.lark", &["1 + 2 * (3 - 4)"], &["1 +", "1 2"]),
        (
            "lark/sql.lark",
            &["SELECT a, b FROM t WHERE a = 1 AND b <> 'x' ORDER BY a LIMIT 3;", "select * from t"],
            &["SELECT FROM t", "SELECT a FROM"],
        ),
    ] {
        let Some(text) = shared_grammar(name) else { continue };
        let syntax = if name.starts_with("gbnf") { Syntax::Gbnf } else { Syntax::Lark };
        check(&text, syntax, members, others);
    }
    if let Some(text) = shared_grammar("lark/python.lark") {
        let message = refused(&text, Syntax::Lark);
        assert!(message.contains("_INDENT is declared but has no definition"), "{message}");
    }
}

/// Returns `true` if a grammar gives an answer or reports a limit. Work is counted in steps because
/// seconds depend on the machine.
fn terminates(rules: &[String], text: &[u8]) -> bool {
    let read = parse(&rules.join("\n"), Syntax::Gbnf, None, None).and_then(|grammar| {
        let machine = GrammarAutomaton::new(&grammar, GrammarLimits::default())?;
        machine.accepts_from(machine.start(), text)
    });
    match read {
        Ok(member) => member,
        // The limit is noticed soon after it is exceeded.
        Err(Error::Limit { needed, allowed, .. }) => needed <= allowed + allowed / 4,
        Err(_) => false,
    }
}

#[test]
fn large_and_exponential_grammars_terminate() {
    let rule = |at: usize, body: String| format!("x{at} ::= {body}");
    let count = if cfg!(debug_assertions) { 5_000 } else { 100_000 };
    let mut flat = vec!["root ::= \"(\" root \")\" | x0".to_owned()];
    flat.extend((0..count).map(|at| rule(at, format!("\"a\" | x{}", (at * 7 + 1) % count))));
    assert!(terminates(&flat, b"((a))"));
    let mut chain = vec!["root ::= x0".to_owned()];
    chain.extend((0..count).map(|at| rule(at, format!("x{} | \"(\" x0 \")\"", at + 1))));
    chain.push(rule(count, "\"a\"".to_owned()));
    assert!(terminates(&chain, b"((a))"));
    let mut doubling = vec!["root ::= x0 | \"(\" root \")\"".to_owned()];
    doubling.extend((0..2000).map(|at| rule(at, format!("| x{} x{}", at + 1, at + 1))));
    doubling.push(rule(2000, "| \"a\" root".to_owned()));
    assert!(terminates(&doubling, &b"a".repeat(50)));
    let ambiguous = vec!["root ::= root root root | root root | \"a\" | \"\"".to_owned()];
    assert!(terminates(&ambiguous, &b"a".repeat(100)));
}

/// Random fragments of grammars are parsed or refused, and nothing else.
#[test]
fn random_grammar_fragments_never_panic() {
    let pieces = [
        "start",
        "root",
        "::=",
        ":",
        "|",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "\"a\"",
        "\"",
        "/a/",
        "/",
        "A",
        "\n",
        " ",
        "~",
        "1..2",
        "%ignore",
        "%import common.WS",
        "*",
        "+",
        "?",
        "->",
        ",",
        "é",
        "\\",
        "[a-z]",
        "{2,3}",
        "#",
        "//",
        ".5",
        "!",
        "<",
        "%declare B",
        "\"x\"i",
        "..",
        "^",
        "t{A}",
        "-",
        "&",
        "(?=a)",
    ];
    let mut seed = 1u64;
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % bound
    };
    for case in 0..20_000 {
        let body: String = (0..below(14)).map(|_| pieces[below(pieces.len())]).collect();
        let lark = case % 2 == 0;
        let text = if lark { format!("start: {body}") } else { format!("root ::= {body}") };
        let syntax = if lark { Syntax::Lark } else { Syntax::Gbnf };
        if let Ok(grammar) = parse(&text, syntax, None, None) {
            match GrammarAutomaton::new(
                &grammar,
                GrammarLimits { search: 100, ..GrammarLimits::default() },
            ) {
                Ok(machine) => drop(machine.shortest_completion(machine.start())),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

#[test]
fn both_ebnf_dialects_are_parsed() {
    let iso = r#"
        (* sums of products *)
        whole sum = product, { ("+" | '-'), product } ;
        product = 2 * digit, [ "!" ] | "(", whole sum, ")" ;
        digit = "0" | "1" ! "2" / "3" .
        tail = { "x" }- ;
    "#;
    check(iso, Syntax::Ebnf, &["01", "12!+33-00", "((10))"], &["1", "01+", "", "04"]);
    let w3c = r#"
        [1]  document ::= element+ /* one at least */
        [2]  element ::= '<' Name '>' (Text | element)* "</>"
        [3]  Name ::= [a-z] [a-z0-9]* - ('xml' | [0-9] Name2)
        [4]  Name2 ::= #x41?
        [5]  Text ::= [^<&]+ - ([^<&]* ']]>' [^<&]*)
    "#;
    check(
        w3c,
        Syntax::Ebnf,
        &["<a></>", "<ab1>x]]<c>é</></>"],
        &["<a>", "<axml></>", "", "<A></>"],
    );
    check("S ::= ([a-z]+ - 'if') | 'IF'", Syntax::Ebnf, &["iff", "IF", "i"], &["if", ""]);
    for (text, why) in [
        ("a = ? blank ? ;", "special sequence"),
        ("a = \"x\" ; b ::= \"y\"", "whose first rule"),
        ("a ::= 'x' b = 'y'", "expected"),
        ("a ::= (a 'x')? - 'x'", "refers to itself"),
        ("a = \"x\" - b ;", "b is not defined"),
        ("a = \"x", "closing quote"),
        ("a = \"x\" (* ;", "comment is not closed"),
        ("a ::= [z-a]", "is smaller than its start"),
        ("a ::= [a", "closing bracket"),
        ("= \"x\" ;", "expected a name"),
        ("", "expected a rule name"),
    ] {
        let message = refused(text, Syntax::Ebnf);
        assert!(message.contains(why), "{text}: {message}");
    }
}

#[test]
fn ignored_strings_are_separate_terminals_in_lark_order() {
    let read = |text: &str, of: &str| {
        let grammar = parse(of, Syntax::Lark, Some(Lexing::First), None).expect("a grammar");
        let machine = GrammarAutomaton::new(&grammar, GrammarLimits::default()).expect("a grammar");
        reads(&machine, text)
    };
    let preferred = "start: C A |\nA: /a/\nC.1: \"c\"\n%ignore \"c\"";
    assert!(read("ca", preferred) && read("", preferred) && !read("c", preferred));
    assert!(read("c", "start: \"c\" |\n%ignore \"c\""));
}
