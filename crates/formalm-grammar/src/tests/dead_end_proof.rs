//! Verdicts of the dead-end proof equal those of the search without it.

use formalm_automata::Expression;
use formalm_core::{Error, LazyDfa};
use formalm_machines::Precision;

use super::sublanguages::embed_sublanguages;
use super::{SeededRng, cases, grammar, grammar_with_separators, letter_grammar, terminal, texts};
use crate::dead_end_proof::spellable_terminals::DeadEndProof;
use crate::lexer::lexer_state::LexerStates;
use crate::{
    ColumnRules, Grammar, GrammarAutomaton, GrammarLimits, Indentation, LexemeReplacement, Lexing,
    Rule, RuleBody, Syntax, Terminal, parse,
};

/// Words of which some have the spelling of others, so that earlier ones shadow later ones.
const WORDS: [&str; 10] = ["a", "[a]", "b", "ab", "[ab]+", "ba?", "a*b", "aab", "a+", "ba"];

/// Returns the automaton of a grammar with and without its proof; `None` if there is no proof or no
/// member.
fn proven_and_searched(grammar: &Grammar) -> Option<[GrammarAutomaton; 2]> {
    let limits = GrammarLimits { search: 300, ..GrammarLimits::default() };
    let machines = [0, 1].map(|_| GrammarAutomaton::new(grammar, limits));
    let [Ok(proved), Ok(searched)] = machines else { return None };
    if !proved.lock().core.dead_end_proof.exists() {
        return None;
    }
    {
        let core = &mut searched.lock().core;
        core.dead_end_proof = DeadEndProof::default();
        core.bound_precision = Some(Precision::Fine);
        // Cached conclusions of the proof.
        core.lexer_states = LexerStates::default();
        core.completion_bounds = [None, None, None];
        core.viable.clear();
        core.completable.clear();
    }
    Some([proved, searched])
}

/// Compares the two automata. Returns whether most strings could be compared.
fn check(seed: u64, grammar: &Grammar, alphabet: &[u8], length: usize) -> bool {
    let Some([proved, searched]) = proven_and_searched(grammar) else { return false };
    let (all, mut compared) = (texts(alphabet, length), 0);
    for text in &all {
        let read = [&proved, &searched].map(|one| match one.walk(one.start(), text) {
            Ok(read) => Some(read.map_err(|_| ()).map(|_| ())),
            Err(Error::Limit { .. }) => None,
            Err(error) => panic!("seed {seed}: {error}"),
        });
        let [Some(proved), Some(searched)] = read else { continue };
        assert_eq!(proved, searched, "seed {seed}: {text:?} of {grammar:#?}");
        compared += 1;
    }
    2 * compared > all.len()
}

/// Compares many random grammars over some words, modified by `change`.
fn check_many(words: &[&str], change: impl Fn(&mut SeededRng, &mut Grammar)) {
    let (mut compared, count) = (0, cases(400, 60_000));
    for seed in 0..count {
        let mut random = SeededRng(seed);
        let lexing = [Lexing::Longest, Lexing::First][random.below(2)];
        let mut grammar = grammar_with_separators(&mut random, words);
        grammar.lexing = lexing;
        change(&mut random, &mut grammar);
        compared += u64::from(check(seed, &grammar, b"abc", 4));
    }
    assert!(3 * compared > count, "{compared}");
}

#[test]
fn proven_verdicts_equal_searched_verdicts() {
    check_many(&WORDS, |_, _| {});
}

#[test]
fn proven_verdicts_equal_searched_verdicts_with_sublanguages() {
    check_many(&WORDS, embed_sublanguages);
}

#[test]
fn proven_verdicts_equal_searched_verdicts_with_lookahead() {
    const AHEAD: [&str; 8] =
        ["a(?!b)", "b(?=[ac])", "ab", "[ab]+(?!c)", "a", "b", "a*b(?=a)?", "(?<=a)?b"];
    check_many(&AHEAD, |_, _| {});
}

#[test]
fn proven_verdicts_equal_searched_verdicts_with_replaced_lexemes() {
    const TEXTS: [&str; 4] = ["a", "b", "ab", "ba"];
    check_many(&WORDS, |random, grammar| {
        grammar.lexing = Lexing::First;
        let names: Vec<String> = grammar.terminals.iter().map(|one| one.name.clone()).collect();
        let at = |is_one: fn(&String) -> bool| {
            names.iter().enumerate().filter(move |one| is_one(one.1)).map(|one| one.0)
        };
        for pattern in at(|name| name.contains('+')) {
            for text in at(|name| TEXTS.contains(&&**name)) {
                let only = random.below(2) == 0;
                grammar.replacements.push(LexemeReplacement { pattern, text, only });
            }
        }
    });
}

/// Returns a random grammar of statements in indented blocks.
fn random_block_grammar(random: &mut SeededRng) -> Grammar {
    let lexing = [Lexing::Longest, Lexing::First][random.below(2)];
    let mut grammar = grammar(random, lexing, &WORDS, &[]);
    let mut add = |name: &str, pattern: Option<&str>| {
        let language =
            pattern.map_or(Expression::literals(Vec::new()), |one| terminal(one).language);
        grammar.terminals.push(Terminal { name: name.to_owned(), language, ..terminal("a") });
        grammar.terminals.len() - 1
    };
    let newline = add("newline", Some(["(\\n *)+", "\\n *"][random.below(2)]));
    let (indent, dedent) = (add("indent", None), add("dedent", None));
    let blank = add("blank", Some([" +", " ", " |c"][random.below(3)]));
    grammar.ignored.push(blank);
    grammar.indentation = Some(Indentation {
        newline,
        indent,
        dedent,
        opening: Vec::new(),
        closing: Vec::new(),
        rules: [ColumnRules::Python, ColumnRules::Lark][random.below(2)],
        tab: 8,
        widest: 10,
        levels: 5,
    });
    let [statements, statement] = [0, 1].map(|more| grammar.rules.len() + more);
    let line = |front: RuleBody| RuleBody::Sequence(vec![front, RuleBody::Terminal(newline)]);
    let block =
        vec![RuleBody::Terminal(indent), RuleBody::Rule(statements), RuleBody::Terminal(dedent)];
    let head = RuleBody::Rule(random.below(statements));
    let header = RuleBody::Sequence([vec![line(head)], block].concat());
    let mut bodies = vec![line(RuleBody::Rule(0)), header];
    bodies.rotate_left(random.below(2));
    let all = RuleBody::Repeat(Box::new(RuleBody::Rule(statement)), random.below(2) as u32, None);
    for (name, body) in [("statements", all), ("statement", RuleBody::Choice(bodies))] {
        grammar.rules.push(Rule { name: name.to_owned(), body, span: None });
    }
    grammar.start = statements;
    grammar
}

#[test]
fn proven_verdicts_equal_searched_verdicts_with_indentation() {
    let (mut compared, count) = (0, cases(400, 20_000));
    for seed in 0..count {
        let grammar = random_block_grammar(&mut SeededRng(seed));
        compared += u64::from(check(seed, &grammar, b"ab \n", 5));
    }
    assert!(10 * compared > count, "{compared}");
}

/// After an `S` that may be everything, another one requires what `a*b` always shadows.
#[test]
fn a_rule_before_a_shadowed_terminal_is_a_dead_end() {
    let mut grammar = letter_grammar(&[("S", "a*b | aab a*b | aab | | S S aab")]);
    grammar.lexing = Lexing::First;
    grammar.ignored.push(grammar.terminals.len());
    grammar.terminals.push(terminal("c+"));
    let machine = GrammarAutomaton::new(&grammar, GrammarLimits::default()).unwrap();
    let walk = |text: &[u8]| machine.walk(machine.start(), text).unwrap();
    assert!(machine.lock().core.dead_end_proof.exists());
    assert!(walk(b"bc").is_ok());
    for text in [b"ba", b"bb"] {
        assert_eq!(walk(text), Err(1));
    }
}

#[test]
fn near_completions_need_no_precise_bound() {
    // Strings may contain spaces, so no separator exists; operators may be followed by others in so
    // many ways that a precise bound takes many steps.
    let operators: Vec<String> = (0..10)
        .map(|at| format!("e{at}: e{at} \"o{at}\" NL* e{} NL* | e{}\n", at + 1, at + 1))
        .collect();
    let text = format!(
        "start: e0\n{}e10: \"(\" e0 \")\" | /[0-9]+/ | \"'\" (/[^'$]+/ | \"$\" e0)* \"'\"\n\
         NL: \"\\n\"\n%ignore / +/\n",
        operators.concat(),
    );
    let grammar = parse(&text, Syntax::Lark, None, None).unwrap();
    let machine = GrammarAutomaton::new(&grammar, GrammarLimits::default()).unwrap();
    assert!(!machine.lock().core.dead_end_proof.exists());
    let before = machine.lock().core.gss.meter.total();
    let state = machine.walk(machine.start(), b"1 o3 'a b$2 c'").unwrap().unwrap();
    assert!(machine.is_accepting(state).unwrap());
    let steps = machine.lock().core.gss.meter.total() - before;
    assert!(steps < 5_000, "{steps}");
}
