//! Texts of grammars: read or refused, and a machine that answers or says that it cannot.
#![no_main]

use formalm_automata::Machine;
use formalm_grammar::{GrammarAutomaton, Limits, Syntax, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (bool, &str, &[u8])| {
    let (lark, text, input) = data;
    let syntax = if lark { Syntax::Lark } else { Syntax::Gbnf };
    let Ok(grammar) = parse(text, syntax, None, None) else { return };
    let limits = Limits { states: 2_000, steps: 100_000, search: 200, ..Limits::default() };
    let Ok(machine) = GrammarAutomaton::new(&grammar, limits) else { return };
    let _ = machine.walk(machine.start(), input);
});
