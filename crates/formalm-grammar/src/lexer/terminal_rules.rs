//! The rules of a grammar's terminals: which are ignored, which replace others, which end a line.
//! Lexer and parser share them. They also determine the lexer's start states, restricted to the
//! terminals that the parser allows.

use formalm_core::sorted_union;

use super::thread_sets::ThreadSets;
use crate::grammar::{Grammar, LexemeReplacement, Lexing};
use crate::indentation::line_terminals::LineTerminals;

/// The fixed properties of a grammar's terminals.
#[derive(Debug)]
pub(crate) struct TerminalRules {
    pub(crate) lexing: Lexing,
    /// Number of terminals. Larger numbers denote lexemes that became a terminal, see
    /// [`TerminalRules::replacement_terminal`].
    pub(crate) terminals: u32,
    /// Terminals that may occur between any two lexemes, ascending.
    pub(crate) ignored: Vec<u32>,
    /// Terminals that no lexeme may end inside, ascending. They come last in the terminal order.
    pub(crate) uncuttable: Vec<u32>,
    /// Lexemes that become lexemes of another terminal; sorted.
    pub(crate) replaced: Vec<LexemeReplacement>,
    /// The terminals of lines and levels, for grammars in which indentation matters.
    pub(crate) lines: Option<LineTerminals>,
}

impl TerminalRules {
    pub(crate) fn new(grammar: &Grammar) -> TerminalRules {
        let mut uncuttable: Vec<u32> = grammar.whole.iter().map(|&at| at as u32).collect();
        uncuttable.sort_unstable();
        let mut replaced = grammar.replacements.clone();
        replaced.sort_unstable();
        TerminalRules {
            lexing: grammar.lexing,
            terminals: grammar.terminals.len() as u32,
            ignored: ignored(grammar),
            uncuttable,
            replaced,
            lines: LineTerminals::new(grammar),
        }
    }

    /// Returns the threads before a lexeme where the stacks allow some terminals. `line_comments`
    /// are the ignored terminals that extend to the line end; `in_lines` tells whether lines matter.
    pub(super) fn contextual_start(
        &self,
        allowed: &[u32],
        line_comments: &[u32],
        in_lines: bool,
        threads: &mut ThreadSets,
    ) -> u32 {
        let mut all = sorted_union(allowed, &self.ignored);
        all = sorted_union(&all, &self.uncuttable);
        if let Some(lines) = self.lines.as_ref().filter(|_| !in_lines) {
            // Inside brackets, line breaks are whitespace.
            all = sorted_union(&all, &[lines.newline]);
        }
        if let Some(lines) = self.lines.as_ref().filter(|_| in_lines)
            && all.binary_search(&lines.newline).is_err()
        {
            all.retain(|one| !line_comments.contains(one));
        }
        self.start_of(&all, in_lines, threads)
    }

    /// Returns the threads before a lexeme of one of these terminals.
    fn start_of(&self, all: &[u32], in_lines: bool, threads: &mut ThreadSets) -> u32 {
        let newline = self.lines.as_ref().filter(|_| in_lines).map(|lines| lines.newline);
        if self.lexing != Lexing::First {
            return threads.start_with_columns(all.iter().copied(), newline);
        }
        let here = |at: usize| all.binary_search(&(at as u32)).is_ok();
        let replaced = |text: u32, only: bool| {
            let mut of_it = self.replaced.iter().filter(|one| one.text == text as usize);
            of_it.any(|one| here(one.pattern) && (one.only || !only))
        };
        let read = all.iter().copied().filter(|&one| !replaced(one, true));
        let watched = all
            .iter()
            .filter(|&&one| replaced(one, false))
            .map(|one| self.replacement_terminal(*one));
        let started: Vec<u32> = read.chain(watched).collect();
        threads.start_with_columns(started.into_iter(), newline)
    }

    /// Returns the threads that read all of `terminals` except `without`, and track all possible
    /// replacements.
    pub(crate) fn start_of_all(
        &self,
        terminals: &[u32],
        without: &[u32],
        threads: &mut ThreadSets,
    ) -> u32 {
        let all = sorted_union(&sorted_union(terminals, &self.ignored), &self.uncuttable);
        let watched = self.replaced.iter().map(|one| self.replacement_terminal(one.text as u32));
        let read = all.iter().copied().filter(|one| !without.contains(one));
        let mut started: Vec<u32> = read.chain(watched).collect();
        started.sort_unstable();
        started.dedup();
        let newline = self.lines.as_ref().map(|lines| lines.newline);
        threads.start_with_columns(started.into_iter(), newline)
    }

    /// Returns the threads that read some terminals and all ignored ones, ignoring replacements and
    /// lines.
    pub(crate) fn start_of_terminal(&self, terminals: &[u32], threads: &mut ThreadSets) -> u32 {
        let mut all = sorted_union(terminals, &self.ignored);
        if let Some(lines) = &self.lines {
            all = sorted_union(&all, &[lines.newline]);
        }
        threads.start(all.into_iter())
    }

    /// Returns the id of lexemes of other terminals that became `terminal`.
    pub(crate) fn replacement_terminal(&self, terminal: u32) -> u32 {
        self.terminals + terminal
    }

    /// Returns the terminal that the stacks shift for a lexeme.
    pub(crate) fn shifted_terminal(&self, terminal: u32) -> u32 {
        terminal.checked_sub(self.terminals).unwrap_or(terminal)
    }

    /// Returns `true` if a terminal is never read and no lexeme may end inside it.
    pub(crate) fn is_uncuttable(&self, terminal: u32) -> bool {
        self.uncuttable.binary_search(&terminal).is_ok()
    }

    pub(crate) fn is_ignored(&self, terminal: u32) -> bool {
        self.ignored.binary_search(&terminal).is_ok()
    }

    /// Returns `true` if a lexeme became an ignored terminal. It is not skipped then, and the rules
    /// may have no place for it.
    pub(crate) fn is_lost_replacement(&self, terminal: u32) -> bool {
        terminal.checked_sub(self.terminals).is_some_and(|one| self.is_ignored(one))
    }

    /// Returns the terminal of a lexeme in the rules; `None` if it is ignored.
    pub(crate) fn terminal_for_parser(&self, terminal: u32) -> Option<u32> {
        match terminal.checked_sub(self.terminals) {
            Some(terminal) => Some(terminal),
            None => (!self.is_ignored(terminal)).then_some(terminal),
        }
    }

    /// Returns `true` for the newline terminal.
    pub(crate) fn ends_line(&self, terminal: u32) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.newline == terminal)
    }

    /// Returns `true` for the indent and dedent terminals.
    pub(crate) fn is_level(&self, terminal: u32) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.is_level(terminal))
    }
}

/// Returns the ignored terminals of a grammar, ascending.
pub(crate) fn ignored(grammar: &Grammar) -> Vec<u32> {
    let mut ignored: Vec<u32> = grammar.ignored.iter().map(|&at| at as u32).collect();
    ignored.sort_unstable();
    ignored.dedup();
    ignored
}
