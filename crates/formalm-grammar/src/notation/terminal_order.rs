//! The priority order of terminals, and the renumbering of a grammar to that order.

use std::cmp::Reverse;

use formalm_core::Error;

use crate::grammar::{Grammar, Lexing, RuleBody, Terminal};
use crate::notation::lark::keywords::find_replacements;
use crate::notation::lark::terminal_length::PatternLengths;

/// The properties of a terminal that determine its priority.
pub(super) struct TerminalRank {
    pub(super) priority: i64,
    /// The string, if the terminal is one.
    pub(super) text: Option<String>,
    pub(super) pattern_lengths: PatternLengths,
    /// The name by which Lark sorts it.
    pub(super) sort_name: String,
}

pub(super) struct RankedTerminal {
    pub(super) terminal: Terminal,
    pub(super) kind: TerminalRank,
}

/// Returns a grammar with its terminals in order of priority.
pub(super) fn order_terminals(
    ranked: Vec<RankedTerminal>,
    grammar: Grammar,
) -> Result<Grammar, Error> {
    let mut order: Vec<usize> = (0..ranked.len()).collect();
    if grammar.lexing == Lexing::First {
        // Lark: higher priority, more characters, longer pattern, then name.
        order.sort_by_cached_key(|&at| {
            let TerminalRank { priority, pattern_lengths, sort_name, .. } = &ranked[at].kind;
            (
                Reverse(*priority),
                Reverse(pattern_lengths.max_chars),
                Reverse(pattern_lengths.len),
                sort_name.clone(),
                at,
            )
        });
    } else {
        // Otherwise: higher priority, strings before patterns, longer strings, then source order.
        order.sort_by_key(|&at| {
            let TerminalRank { priority, pattern_lengths, text, .. } = &ranked[at].kind;
            let named = ranked[at].terminal.name.chars().count();
            let length = if text.is_some() { named } else { 0 };
            let written_at = ranked[at].terminal.span.map_or((0, 0), |span| (span.start, span.end));
            let kind = (
                Reverse(*priority),
                text.is_none(),
                Reverse(pattern_lengths.max_chars),
                Reverse(length),
            );
            (kind, written_at, at)
        });
    }
    let mut new_index = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, &old)| new_index[old] = new);
    let mut ranked: Vec<Option<RankedTerminal>> = ranked.into_iter().map(Some).collect();
    let ranked: Vec<RankedTerminal> = order.iter().filter_map(|&old| ranked[old].take()).collect();
    let mut grammar = grammar;
    grammar.rules.iter_mut().for_each(|rule| renumber(&mut rule.body, &new_index));
    grammar.ignored.iter_mut().for_each(|old| *old = new_index[*old]);
    if let Some(indentation) = &mut grammar.indentation {
        let one = [&mut indentation.newline, &mut indentation.indent, &mut indentation.dedent];
        let all = one.into_iter().chain(&mut indentation.opening).chain(&mut indentation.closing);
        all.for_each(|old| *old = new_index[*old]);
    }
    grammar.whole.iter_mut().for_each(|old| *old = new_index[*old]);
    grammar.ignored.sort_unstable();
    grammar.ignored.dedup();
    if grammar.lexing == Lexing::First {
        grammar.replacements = find_replacements(&ranked)?;
    }
    grammar.terminals = ranked.into_iter().map(|one| one.terminal).collect();
    Ok(grammar)
}

fn renumber(node: &mut RuleBody, new_index: &[usize]) {
    match node {
        RuleBody::Terminal(at) => *at = new_index[*at],
        RuleBody::Sequence(list) | RuleBody::Choice(list) => {
            list.iter_mut().for_each(|one| renumber(one, new_index));
        }
        RuleBody::Repeat(one, ..) => renumber(one, new_index),
        RuleBody::Empty | RuleBody::Rule(_) => {}
    }
}
