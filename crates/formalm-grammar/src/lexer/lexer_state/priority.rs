//! Lexeme priority: which terminal a lexeme ends as, and which threads may continue.

use formalm_machines::LexemeEnd;

use crate::grammar::Lexing;
use crate::grammar_state::GrammarState;
use crate::indentation::NO_COLUMN;
use crate::lexer::{Lexer, ThreadKind};

/// A matching terminal, perhaps conditional on the following input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LexemeMatch {
    pub(super) terminal: u32,
    condition_state: Option<u32>,
}

impl LexemeMatch {
    /// Returns the thread that checks the condition, if there is one.
    pub(super) fn condition(self, lexer: &mut Lexer, kind: ThreadKind) -> Option<u32> {
        self.condition_state.map(|state| lexer.lookahead_thread(self.terminal, state, kind))
    }
}

impl GrammarState {
    /// Returns all matches, by priority.
    pub(super) fn matches(&self, read: crate::lexer::LexerStep) -> Vec<LexemeMatch> {
        let plain = self.lexer.lists.get(read.matches).iter();
        let mut all: Vec<LexemeMatch> =
            plain.map(|&terminal| LexemeMatch { terminal, condition_state: None }).collect();
        let conditional = self.lexer.lists.get(read.conditions).chunks_exact(2);
        all.extend(
            conditional.map(|one| LexemeMatch { terminal: one[0], condition_state: Some(one[1]) }),
        );
        // A confirmed match beats lower priorities, except threads that only track replacements.
        all.retain(|one| one.terminal <= read.confirmed || one.terminal >= self.terminals);
        all.sort_unstable();
        all
    }

    /// Returns the possible ends of a lexeme under ordered lexing, and the threads that may
    /// continue.
    pub(super) fn preferred_endings(
        &mut self,
        read: crate::lexer::LexerStep,
        matches: &[LexemeMatch],
        negative_threads: u32,
    ) -> (Vec<LexemeEnd>, u32) {
        let first = self.lexing == Lexing::First;
        let mut next = read.next;
        if first {
            next = self.cut_lower_priority(next, read.confirmed.min(self.terminals));
        }
        let mut endings = Vec::new();
        // Conditions of earlier matches, which must fail for this one to win.
        let mut unless = negative_threads;
        let terminals = self.terminals;
        for one in matches.iter().filter(|one| one.terminal < terminals) {
            if self.is_uncuttable(one.terminal) {
                break;
            }
            let continuing = if first { self.cut_lower_priority(next, one.terminal) } else { next };
            // The lexeme ends here only if no continuing thread matches later.
            let rest = self.lexeme_threads(continuing);
            let rest = self.lexer.without_columns(rest);
            let mut left = self.union_threads(unless, rest);
            for guard in self.earlier_guards(read.next, one.terminal) {
                let no = self.lexer.thread_of_kind(guard, ThreadKind::MustNotMatch);
                left = self.with_thread(left, Some(no));
            }
            let asked = one.condition(&mut self.lexer, ThreadKind::MustMatch);
            left = self.with_thread(left, asked);
            let terminal = self.ending_terminal(one.terminal, read);
            endings.extend(terminal.map(|terminal| LexemeEnd { terminal, negative_threads: left }));
            if one.condition_state.is_none() {
                next = continuing;
                break;
            }
            let not = one.condition(&mut self.lexer, ThreadKind::MustNotMatch);
            unless = self.with_thread(unless, not);
            if first {
                let guard = one.condition(&mut self.lexer, ThreadKind::Guard);
                next = self.with_thread(next, guard);
            }
        }
        if first {
            next = self.cut_lower_priority(next, self.terminals);
        }
        (endings, next)
    }

    /// Returns the guard threads of matches with higher priority.
    fn earlier_guards(&self, lexeme: u32, terminal: u32) -> Vec<u32> {
        let threads = self.lexer.lists.get(lexeme).iter().copied();
        let is_earlier_guard = |one: &u32| {
            self.lexer.kind(*one) == ThreadKind::Guard && self.lexer.terminal(*one) < terminal
        };
        threads.filter(is_earlier_guard).collect()
    }

    /// Drops the threads of lower priority than `matched`, unless they track a possible replacement
    /// or guard a match that still matters.
    pub(super) fn cut_lower_priority(&mut self, lexeme: u32, matched: u32) -> u32 {
        let (lexer, replaced) = (&self.lexer, &self.replaced);
        let threads = lexer.lists.copy(lexeme);
        let has_priority = |at: u32| at < self.terminals && at <= matched;
        let is_being_read = |at: usize| {
            let mut lexemes = threads.iter().filter(|&&one| lexer.kind(one) == ThreadKind::Lexeme);
            lexemes.any(|&one| lexer.terminal(one) == at as u32)
        };
        let is_kept = |&one: &u32| match lexer.terminal(one) {
            at if at < self.terminals => has_priority(at),
            at => replaced.iter().any(|one| {
                let text = one.text as u32 == at - self.terminals;
                text && has_priority(one.pattern as u32) && is_being_read(one.pattern)
            }),
        };
        let lexemes = threads.iter().filter(|&&one| lexer.kind(one) == ThreadKind::Lexeme);
        let last = lexemes.map(|&one| lexer.terminal(one)).filter(|&at| has_priority(at)).max();
        let still_matters = |one: &u32| {
            let guard = lexer.kind(*one) == ThreadKind::Guard;
            !guard || last.is_some_and(|last| lexer.terminal(*one) < last)
        };
        let kept: Vec<u32> =
            threads.iter().copied().filter(is_kept).filter(still_matters).collect();
        self.lexer.lists.intern(&kept)
    }

    /// Returns the lexeme threads, without guards and threads that track replacements.
    fn lexeme_threads(&mut self, lexeme: u32) -> u32 {
        if self.lexing != Lexing::First {
            return lexeme;
        }
        let threads = self.lexer.lists.copy(lexeme);
        let read = |&one: &u32| {
            self.lexer.terminal(one) < self.terminals && self.lexer.kind(one) == ThreadKind::Lexeme
        };
        let kept: Vec<u32> = threads.iter().copied().filter(read).collect();
        self.lexer.lists.intern(&kept)
    }

    /// Returns the terminal that a lexeme ends as, given everything that matches it. Returns `None`
    /// for a line end that starts no line.
    fn ending_terminal(&self, winner: u32, read: crate::lexer::LexerStep) -> Option<u32> {
        if let Some(indentation) = &self.indentation
            && winner == indentation.newline
            && read.column != NO_COLUMN
        {
            return indentation.line_id(read.column);
        }
        if self.lexing != Lexing::First || self.is_ignored(winner) {
            return Some(winner);
        }
        let pairs = self.replaced.iter().filter(|one| one.pattern as u32 == winner);
        let matches = self.lexer.lists.get(read.matches);
        let mut texts = pairs.map(|one| self.replacement_terminal(one.text as u32));
        Some(texts.find(|one| matches.binary_search(one).is_ok()).unwrap_or(winner))
    }
}
