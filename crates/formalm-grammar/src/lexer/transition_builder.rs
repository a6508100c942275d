//! The transitions of lexer states: which terminal a lexeme ends as, and which threads may continue.
//!
//! With ordered lexing, a lexeme ends only if no thread that continues matches later. Those threads
//! become negative threads; a lookahead condition becomes a thread of its own.

use formalm_core::Error;
use formalm_machines::LexemeEnd;
use rustc_hash::FxHashSet;

use super::lexer_states::{DEAD, LexerStates, LexerTransition};
use super::terminal_rules::TerminalRules;
use super::thread_sets::{LexerStep, ThreadKind, ThreadSets};
use super::{LineEnds, thread_sets};
use crate::NOTHING;
use crate::grammar::Lexing;
use crate::indentation::NO_COLUMN;
use crate::limits::StepMeter;

/// Lexer states explored to decide that no lexeme can end. Chosen, not measured.
const HOPELESS_SEARCH_STATES: usize = 500;

/// A matching terminal, perhaps conditional on the following input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LexemeMatch {
    terminal: u32,
    condition_state: Option<u32>,
}

impl LexemeMatch {
    /// Returns the thread that checks the condition, if there is one.
    fn condition(self, threads: &mut ThreadSets, kind: ThreadKind) -> Option<u32> {
        self.condition_state.map(|state| threads.lookahead_thread(self.terminal, state, kind))
    }
}

/// Computes transitions of lexer states that no table holds yet. Ignores the dead-end proof.
pub(crate) struct TransitionBuilder<'a> {
    pub(crate) rules: &'a TerminalRules,
    pub(crate) threads: &'a mut ThreadSets,
    pub(crate) states: &'a mut LexerStates,
    pub(crate) line_ends: &'a LineEnds,
    pub(crate) meter: &'a mut StepMeter,
}

impl TransitionBuilder<'_> {
    /// Computes the transition of a lexer state on a byte, without testing whether it can be
    /// completed.
    pub(crate) fn outcome(&mut self, lexer_state: u32, byte: u8) -> Result<LexerTransition, Error> {
        let (lexeme, negative_threads) = self.states.pair(lexer_state);
        // These are few, and after a name they forbid most bytes.
        let Some(negative_threads) = self.step_negative_threads(negative_threads, byte)? else {
            return Ok(DEAD);
        };
        let read = self.threads.step(lexeme, byte, self.meter)?;
        if read == thread_sets::DEAD {
            return Ok(DEAD);
        }
        if !read.is_match()
            && self.rules.lexing == Lexing::Longest
            && self.rules.uncuttable.is_empty()
        {
            let lexeme = self.threads.difference(read.next, negative_threads);
            return Ok(LexerTransition {
                continued: self.states.intern_or_none(lexeme, negative_threads),
                ..DEAD
            });
        }
        let matches = self.matches(read);
        if self.rules.lexing == Lexing::Any {
            let mut all = Vec::with_capacity(matches.len());
            for one in matches {
                let asked = one.condition(self.threads, ThreadKind::MustMatch);
                all.push(LexemeEnd {
                    terminal: one.terminal,
                    negative_threads: self.threads.with_thread(negative_threads, asked),
                });
            }
            let endings = self.states.intern_endings(all);
            let continued = self.states.intern_or_none(read.next, negative_threads);
            return Ok(LexerTransition { continued, endings, unproven: false });
        }
        let (endings, next) = self.preferred_endings(read, &matches, negative_threads);
        let mut outcome = LexerTransition { endings: self.states.intern_endings(endings), ..DEAD };
        // A thread that must match but is also a negative thread is useless.
        let mut lexeme = self.threads.difference(next, negative_threads);
        if lexeme != next && self.rules.lexing == Lexing::First {
            lexeme = self.cut_lower_priority(lexeme, self.rules.terminals);
        }
        let is_read = |&one: &u32| !self.rules.is_uncuttable(self.threads.terminal(one));
        if !self.rules.uncuttable.is_empty() && !self.threads.lists.get(lexeme).iter().any(is_read)
        {
            lexeme = NOTHING;
        }
        outcome.continued = self.states.intern_or_none(lexeme, negative_threads);
        Ok(outcome)
    }

    /// Reads a byte in a thread set.
    pub(crate) fn step_threads(&mut self, set: u32, byte: u8) -> Result<LexerStep, Error> {
        self.threads.step(set, byte, self.meter)
    }

    /// Returns the negative threads after a byte; `None` if one is violated.
    pub(crate) fn step_negative_threads(
        &mut self,
        negative_threads: u32,
        byte: u8,
    ) -> Result<Option<u32>, Error> {
        self.threads.step_negative_threads(negative_threads, byte, self.meter)
    }

    /// Returns all matches, by priority.
    fn matches(&self, read: LexerStep) -> Vec<LexemeMatch> {
        let plain = self.threads.lists.get(read.matches).iter();
        let mut all: Vec<LexemeMatch> =
            plain.map(|&terminal| LexemeMatch { terminal, condition_state: None }).collect();
        let conditional = self.threads.lists.get(read.conditions).chunks_exact(2);
        all.extend(
            conditional.map(|one| LexemeMatch { terminal: one[0], condition_state: Some(one[1]) }),
        );
        // A confirmed match beats lower priorities, except threads that only track replacements.
        all.retain(|one| one.terminal <= read.confirmed || one.terminal >= self.rules.terminals);
        all.sort_unstable();
        all
    }

    /// Returns the possible ends of a lexeme under ordered lexing, and the threads that may
    /// continue.
    fn preferred_endings(
        &mut self,
        read: LexerStep,
        matches: &[LexemeMatch],
        negative_threads: u32,
    ) -> (Vec<LexemeEnd>, u32) {
        let first = self.rules.lexing == Lexing::First;
        let mut next = read.next;
        if first {
            next = self.cut_lower_priority(next, read.confirmed.min(self.rules.terminals));
        }
        let mut endings = Vec::new();
        // Conditions of earlier matches, which must fail for this one to win.
        let mut unless = negative_threads;
        let terminals = self.rules.terminals;
        for one in matches.iter().filter(|one| one.terminal < terminals) {
            if self.rules.is_uncuttable(one.terminal) {
                break;
            }
            let continuing = if first { self.cut_lower_priority(next, one.terminal) } else { next };
            // The lexeme ends here only if no continuing thread matches later.
            let rest = self.lexeme_threads(continuing);
            let rest = self.threads.without_columns(rest);
            let mut left = self.threads.union(unless, rest);
            for guard in self.threads.earlier_guards(read.next, one.terminal) {
                let no = self.threads.thread_of_kind(guard, ThreadKind::MustNotMatch);
                left = self.threads.with_thread(left, Some(no));
            }
            let asked = one.condition(self.threads, ThreadKind::MustMatch);
            left = self.threads.with_thread(left, asked);
            let terminal = self.ending_terminal(one.terminal, read);
            endings.extend(terminal.map(|terminal| LexemeEnd { terminal, negative_threads: left }));
            if one.condition_state.is_none() {
                next = continuing;
                break;
            }
            let not = one.condition(self.threads, ThreadKind::MustNotMatch);
            unless = self.threads.with_thread(unless, not);
            if first {
                let guard = one.condition(self.threads, ThreadKind::Guard);
                next = self.threads.with_thread(next, guard);
            }
        }
        if first {
            next = self.cut_lower_priority(next, self.rules.terminals);
        }
        (endings, next)
    }

    /// Drops the threads of lower priority than `matched`, unless they track a possible replacement
    /// or guard a match that still matters.
    fn cut_lower_priority(&mut self, lexeme: u32, matched: u32) -> u32 {
        let (sets, replaced) = (&*self.threads, &self.rules.replaced);
        let threads = sets.lists.copy(lexeme);
        let has_priority = |at: u32| at < self.rules.terminals && at <= matched;
        let is_being_read = |at: usize| {
            let mut lexemes = threads.iter().filter(|&&one| sets.kind(one) == ThreadKind::Lexeme);
            lexemes.any(|&one| sets.terminal(one) == at as u32)
        };
        let is_kept = |&one: &u32| match sets.terminal(one) {
            at if at < self.rules.terminals => has_priority(at),
            at => replaced.iter().any(|one| {
                let text = one.text as u32 == at - self.rules.terminals;
                text && has_priority(one.pattern as u32) && is_being_read(one.pattern)
            }),
        };
        let lexemes = threads.iter().filter(|&&one| sets.kind(one) == ThreadKind::Lexeme);
        let last = lexemes.map(|&one| sets.terminal(one)).filter(|&at| has_priority(at)).max();
        let still_matters = |one: &u32| {
            let guard = sets.kind(*one) == ThreadKind::Guard;
            !guard || last.is_some_and(|last| sets.terminal(*one) < last)
        };
        let kept: Vec<u32> =
            threads.iter().copied().filter(is_kept).filter(still_matters).collect();
        self.threads.lists.intern(&kept)
    }

    /// Returns the lexeme threads, without guards and threads that track replacements.
    fn lexeme_threads(&mut self, lexeme: u32) -> u32 {
        if self.rules.lexing != Lexing::First {
            return lexeme;
        }
        let threads = self.threads.lists.copy(lexeme);
        let read = |&one: &u32| {
            self.threads.terminal(one) < self.rules.terminals
                && self.threads.kind(one) == ThreadKind::Lexeme
        };
        let kept: Vec<u32> = threads.iter().copied().filter(read).collect();
        self.threads.lists.intern(&kept)
    }

    /// Returns the terminal that a lexeme ends as, given everything that matches it. Returns `None`
    /// for a line end that starts no line.
    fn ending_terminal(&self, winner: u32, read: LexerStep) -> Option<u32> {
        if let Some(lines) = &self.rules.lines
            && winner == lines.newline
            && read.column != NO_COLUMN
        {
            return lines.line_id(read.column);
        }
        if self.rules.lexing != Lexing::First || self.rules.is_ignored(winner) {
            return Some(winner);
        }
        let pairs = self.rules.replaced.iter().filter(|one| one.pattern as u32 == winner);
        let matches = self.threads.lists.get(read.matches);
        let mut texts = pairs.map(|one| self.rules.replacement_terminal(one.text as u32));
        Some(texts.find(|one| matches.binary_search(one).is_ok()).unwrap_or(winner))
    }

    /// Drops the line ends inside brackets after which no lexeme can end; the input cannot end
    /// inside brackets either.
    pub(super) fn prune_hopeless_endings(&mut self, endings: u32) -> Result<u32, Error> {
        let (Some(lines), Some(all)) = (&self.rules.lines, self.line_ends.in_brackets) else {
            return Ok(endings);
        };
        let before = self.states.endings(endings);
        let mut list = Vec::with_capacity(before.len());
        for one in &*before {
            let after = self.states.intern(all, one.negative_threads);
            if one.terminal != lines.newline || !self.is_hopeless(after)? {
                list.push(*one);
            }
        }
        Ok(if list.len() == before.len() { endings } else { self.states.intern_endings(list) })
    }

    /// Returns `true` if a short exploration shows that no lexeme can end whatever follows, because
    /// every continuation makes a negative thread match.
    pub(super) fn is_hopeless(&mut self, lexer_state: u32) -> Result<bool, Error> {
        let mut visited = vec![lexer_state];
        let mut seen = FxHashSet::from_iter([lexer_state]);
        let mut at = 0;
        while at < visited.len() {
            let lexeme = self.threads.lists.copy(self.states.pair(visited[at]).0);
            if lexeme.iter().any(|&one| self.threads.column(one) != NO_COLUMN) {
                return Ok(false);
            }
            for byte in self.threads.representatives().to_vec() {
                let outcome = self.outcome(visited[at], byte)?;
                if outcome.endings != NOTHING || visited.len() > HOPELESS_SEARCH_STATES {
                    return Ok(false);
                }
                let continued = outcome.continued;
                if continued != NOTHING
                    && !self.states.hopeless.contains(&continued)
                    && seen.insert(continued)
                {
                    visited.push(continued);
                }
            }
            at += 1;
        }
        self.states.hopeless.extend(visited);
        Ok(true)
    }

    /// Returns the threads left by a string that is read as ignored lexemes in a context; `None` if
    /// it is not.
    pub(crate) fn threads_after_ignored(
        &mut self,
        context: u32,
        text: &[u8],
    ) -> Result<Option<u32>, Error> {
        let mut lexer_states = vec![self.states.intern(context, NOTHING)];
        for (at, &byte) in text.iter().enumerate() {
            let mut next = Vec::new();
            for lexer_state in lexer_states {
                let outcome = self.outcome(lexer_state, byte)?;
                next.extend(Some(outcome.continued).filter(|&on| on != NOTHING));
                for one in &*self.states.endings(outcome.endings) {
                    if !self.rules.is_ignored(one.terminal) {
                        continue;
                    }
                    if at + 1 == text.len() {
                        return Ok(Some(one.negative_threads));
                    }
                    next.push(self.states.intern(context, one.negative_threads));
                }
            }
            next.sort_unstable();
            next.dedup();
            lexer_states = next;
        }
        Ok(None)
    }
}
