//! The contextual lexer: which lexemes can be read, restricted to the terminals that the parser
//! allows.
//!
//! ```text
//!  TerminalRules       ignored terminals, replacements, line ends      (fixed; shared with the parser)
//!       ▼
//!  ThreadSets          thread set ──byte──► LexerStep { next, matches, conditions }
//!       ▼
//!  TransitionBuilder   priorities: which terminal wins, which threads must not match any more
//!       ▼
//!  LexerStates         (threads of the lexeme, negative threads) ──byte──► LexerTransition, cached
//!       ▲
//!  DeadEndProof        which transitions never lead into a dead end
//! ```
//!
//! [`Lexer`] owns these tables. Nothing here knows a stack.

pub(crate) mod lexer_states;
mod lookahead;
mod shortest_lexeme;
pub(crate) mod terminal_automata;
pub(crate) mod terminal_rules;
pub(crate) mod thread_sets;
pub(crate) mod transition_builder;
mod word_threads;

use std::sync::Arc;

use formalm_core::{Error, ListInterner, memory_bytes};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::NOTHING;
use crate::dead_end_proof::spellable_terminals::DeadEndProof;
use crate::limits::StepMeter;
use crate::lr0::elements;
use lexer_states::{DEAD, LexerStates, LexerTransition};
pub(crate) use lookahead::as_lookahead_byte;
use terminal_rules::TerminalRules;
use thread_sets::ThreadSets;
use transition_builder::TransitionBuilder;

/// Lexer states explored before lexing is assumed to be ambiguous. Chosen, not measured.
const MAX_UNIQUENESS_STATES: usize = 1_000;

/// The threads that line ends leave, for grammars in which lines are proven balanced.
#[derive(Debug, Default)]
pub(crate) struct LineEnds {
    /// Threads of the newline terminal that may continue although the line has ended.
    pub(crate) threads: u32,
    /// Ignored terminals that extend to the line end, such as comments. They are read where a line
    /// may end.
    pub(crate) comments: Vec<u32>,
    /// The lexer start for all terminals, if balance is proven.
    pub(crate) in_brackets: Option<u32>,
}

/// All lexer tables of a grammar automaton.
#[derive(Debug)]
pub(crate) struct Lexer {
    pub(crate) rules: Arc<TerminalRules>,
    pub(crate) threads: ThreadSets,
    pub(crate) states: LexerStates,
    pub(crate) proof: DeadEndProof,
    pub(crate) line_ends: LineEnds,
    /// Start states by set of allowed terminals and by whether lines matter.
    contexts: FxHashMap<(u32, bool), u32>,
    /// `true` if a terminal that the stacks allow may be unspellable: lexemes are ordered by
    /// priority, or some terminal has lookahead.
    pub(crate) needs_viability_checks: bool,
}

memory_bytes!(Lexer { threads, states, proof, contexts; rules, line_ends, needs_viability_checks });

impl Lexer {
    pub(crate) fn new(
        rules: Arc<TerminalRules>,
        threads: ThreadSets,
        needs_viability_checks: bool,
    ) -> Lexer {
        Lexer {
            rules,
            threads,
            states: LexerStates::default(),
            proof: DeadEndProof::default(),
            line_ends: LineEnds::default(),
            contexts: FxHashMap::default(),
            needs_viability_checks,
        }
    }

    /// Returns the transition of a lexer state on a byte.
    #[inline]
    pub(crate) fn step(
        &mut self,
        lexer_state: u32,
        byte: u8,
        meter: &mut StepMeter,
    ) -> Result<LexerTransition, Error> {
        let class = usize::from(self.threads.classes()[usize::from(byte)]);
        match self.states.cached(lexer_state, class) {
            Some(outcome) => Ok(outcome),
            None => {
                let outcome = self.compute_transition(lexer_state, byte, meter)?;
                let width = self.threads.representatives().len();
                self.states.store(lexer_state, class, width, outcome);
                Ok(outcome)
            }
        }
    }

    /// Returns a lexer state with the same transitions, the same one for nearly all such states.
    pub(crate) fn canonical_state(&mut self, lexer_state: u32, meter: &mut StepMeter) -> u32 {
        // Without negative threads, lexer states that differ read different lexemes.
        if self.states.pair(lexer_state).1 == NOTHING {
            return lexer_state;
        }
        if let Some(known) = self.states.canonical(lexer_state) {
            return known;
        }
        for byte in self.threads.representatives().to_vec() {
            meter.reset();
            if self.step(lexer_state, byte, meter).is_err() {
                // Some byte that may never be read takes too long.
                return lexer_state;
            }
        }
        self.states.make_canonical(lexer_state)
    }

    /// Separates the proof from the tables that it reads.
    pub(crate) fn proof_and_transitions<'a>(
        &'a mut self,
        meter: &'a mut StepMeter,
    ) -> (&'a mut DeadEndProof, TransitionBuilder<'a>) {
        let transitions = TransitionBuilder {
            rules: &self.rules,
            threads: &mut self.threads,
            states: &mut self.states,
            line_ends: &self.line_ends,
            meter,
        };
        (&mut self.proof, transitions)
    }

    fn compute_transition(
        &mut self,
        lexer_state: u32,
        byte: u8,
        meter: &mut StepMeter,
    ) -> Result<LexerTransition, Error> {
        let needs_viability_checks = self.needs_viability_checks;
        let (proof, mut transitions) = self.proof_and_transitions(meter);
        let mut outcome = transitions.outcome(lexer_state, byte)?;
        if !needs_viability_checks || outcome == DEAD {
            return Ok(outcome);
        }
        let mut can_continue = false;
        if outcome.continued != NOTHING {
            let (lexeme, negative_threads) = transitions.states.pair(outcome.continued);
            can_continue = proof.is_lexeme_safe(lexeme, negative_threads, &mut transitions)?;
            outcome.unproven = !can_continue;
            if !can_continue && transitions.is_hopeless(outcome.continued)? {
                outcome = LexerTransition { continued: NOTHING, unproven: false, ..outcome };
            }
        }
        outcome.endings = transitions.prune_hopeless_endings(outcome.endings)?;
        for one in &*transitions.states.endings(outcome.endings) {
            // Other leftover threads matter per context and are examined where one is known.
            let threads = one.negative_threads;
            let is_proven = proof.dies_at_separator(threads, &mut transitions)?
                || (can_continue && proof.is_lexeme_safe(NOTHING, threads, &mut transitions)?);
            outcome.unproven |= transitions.rules.is_lost_replacement(one.terminal) || !is_proven;
        }
        Ok(outcome)
    }

    /// Returns the threads before a lexeme where the stacks allow a set of terminals of `sets`, and
    /// where lines matter or not.
    pub(crate) fn context_of(&mut self, allowed: u32, lines: bool, sets: &ListInterner) -> u32 {
        if let Some(&start) = self.contexts.get(&(allowed, lines)) {
            return start;
        }
        let terminals = elements(sets.get(allowed)).filter_map(|number| number.checked_sub(1));
        let start = self.rules.contextual_start(
            &terminals.collect::<Vec<u32>>(),
            &self.line_ends.comments,
            lines,
            &mut self.threads,
        );
        self.contexts.insert((allowed, lines), start);
        start
    }

    /// Returns `true` if every lexeme of these terminals is read in one way in every context: none
    /// is a lexeme of another terminal or a prefix of one. `false` may also mean that this is
    /// unknown.
    pub(crate) fn lexes_uniquely(
        &mut self,
        terminals: &[u32],
        meter: &mut StepMeter,
    ) -> Result<bool, Error> {
        let start = self.rules.start_of_all(terminals, &[], &mut self.threads);
        let mut visited = vec![start];
        let mut seen = FxHashSet::from_iter([start]);
        while let Some(set) = visited.pop() {
            meter.reset();
            for byte in self.threads.representatives().to_vec() {
                let read = self.threads.step(set, byte, meter)?;
                let matches = self.threads.lists.get(read.matches).len();
                let can_continue = usize::from(read.next != NOTHING);
                if matches + can_continue > 1
                    || read.conditions != NOTHING
                    || seen.len() > MAX_UNIQUENESS_STATES
                {
                    return Ok(false);
                }
                if read.next != NOTHING && seen.insert(read.next) {
                    visited.push(read.next);
                }
            }
        }
        Ok(true)
    }

    /// Returns the threads of the newline terminal at the start of the input, as if a line had just
    /// ended.
    pub(crate) fn line_start(&mut self, meter: &mut StepMeter) -> Result<u32, Error> {
        let newline = self.rules.lines.as_ref().map(|lines| lines.newline);
        let start = self.threads.start_with_columns(newline.into_iter(), newline);
        Ok(self.threads.step(start, b'\n', meter)?.next)
    }
}
