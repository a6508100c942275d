//! Terminals in order of preference.

use std::cmp::Reverse;

use formalm_automata::Error;

use crate::grammar::{Grammar, Lexing, Node, Terminal};
use crate::notation::lark::keywords::replaced;
use crate::notation::lark::terminal_length::Shape;

/// What a terminal's place in the order of preference depends on.
pub(super) struct Kind {
    pub(super) priority: i64,
    /// The text, if it is one and no pattern.
    pub(super) text: Option<String>,
    pub(super) shape: Shape,
    /// The name that Lark sorts it by.
    pub(super) sorted: String,
}

pub(super) struct Ranked {
    pub(super) terminal: Terminal,
    pub(super) kind: Kind,
}

/// A grammar with its terminals, those first that are preferred.
pub(super) fn ordered(ranked: Vec<Ranked>, grammar: Grammar) -> Result<Grammar, Error> {
    let mut order: Vec<usize> = (0..ranked.len()).collect();
    if grammar.lexing == Lexing::First {
        // Higher priority, more characters, longer patterns, then by name.
        order.sort_by_cached_key(|&at| {
            let Kind { priority, shape, sorted, .. } = &ranked[at].kind;
            (Reverse(*priority), Reverse(shape.most), Reverse(shape.length), sorted.clone(), at)
        });
    } else {
        // Higher priority, texts before patterns, the longer ones, then those written first.
        order.sort_by_key(|&at| {
            let Kind { priority, shape, text, .. } = &ranked[at].kind;
            let named = ranked[at].terminal.name.chars().count();
            let length = if text.is_some() { named } else { 0 };
            let written = ranked[at].terminal.span.map_or((0, 0), |span| (span.start, span.end));
            let kind = (Reverse(*priority), text.is_none(), Reverse(shape.most), Reverse(length));
            (kind, written, at)
        });
    }
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    let mut ranked: Vec<Option<Ranked>> = ranked.into_iter().map(Some).collect();
    let ranked: Vec<Ranked> = order.iter().filter_map(|&old| ranked[old].take()).collect();
    let mut grammar = grammar;
    grammar.rules.iter_mut().for_each(|rule| renumber(&mut rule.body, &place));
    grammar.ignored.iter_mut().for_each(|old| *old = place[*old]);
    if let Some(told) = &mut grammar.indentation {
        let one = [&mut told.newline, &mut told.indent, &mut told.dedent];
        let all = one.into_iter().chain(&mut told.opening).chain(&mut told.closing);
        all.for_each(|old| *old = place[*old]);
    }
    grammar.whole.iter_mut().for_each(|old| *old = place[*old]);
    grammar.ignored.sort_unstable();
    grammar.ignored.dedup();
    if grammar.lexing == Lexing::First {
        grammar.replaced = replaced(&ranked)?;
    }
    grammar.terminals = ranked.into_iter().map(|one| one.terminal).collect();
    Ok(grammar)
}

fn renumber(node: &mut Node, place: &[usize]) {
    match node {
        Node::Terminal(at) => *at = place[*at],
        Node::Sequence(list) | Node::Choice(list) => {
            list.iter_mut().for_each(|one| renumber(one, place));
        }
        Node::Repeat(one, ..) => renumber(one, place),
        Node::Empty | Node::Rule(_) => {}
    }
}
