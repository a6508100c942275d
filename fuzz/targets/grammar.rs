//! Texts of grammars: read or refused, and a machine that answers or says that it cannot.
#![no_main]

use formalm_core::LazyDfa;
use formalm_grammar::{GrammarAutomaton, GrammarLimits, Syntax, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (u8, &str, &[u8])| {
    let (syntax, text, input) = data;
    let syntax = [Syntax::Lark, Syntax::Gbnf, Syntax::Ebnf][usize::from(syntax % 3)];
    let Ok(grammar) = parse(text, syntax, None, None) else { return };
    let limits =
        GrammarLimits { states: 2_000, steps: 100_000, search: 200, ..GrammarLimits::default() };
    let Ok(machine) = GrammarAutomaton::new(&grammar, limits) else { return };
    let _ = machine.walk(machine.start(), input);
});
