//! Lexeme separation: whether adjacent lexemes are always split as those lexemes.
//!
//! This holds if no two terminals share a string and no lexeme can be extended by the byte after
//! it. Ignored lexemes may lie between; several of them in a row may be one lexeme more than in the
//! split.

use std::sync::Arc;

use formalm_core::{ByteSet, Error, InterruptCheck, LazyDfa, Resource, StateId, check_limit};
use rustc_hash::FxHashSet;

use crate::grammar::{Grammar, Lexing};
use crate::lexer::terminal_automata::TerminalAutomaton;
use crate::normal_form::lowering::LoweredRules;
use crate::trees::EarleyProductions;

/// Maximum pairs of states explored per pair of terminals. Chosen, not measured.
const MAX_STATE_PAIRS: u64 = 200_000;

pub(super) struct LexemeSeparation<'a> {
    grammar: &'a Grammar,
    automata: &'a [Option<Arc<TerminalAutomaton>>],
    productions: EarleyProductions,
}

/// The ways in which two terminals can be confused.
enum LexemeClash {
    /// They share a string.
    Same,
    /// A lexeme of the first extends to one of the second.
    Longer,
    /// A lexeme of the second is a prefix of one of the first.
    Shorter,
}

impl<'a> LexemeSeparation<'a> {
    pub(super) fn new(
        grammar: &'a Grammar,
        automata: &'a [Option<Arc<TerminalAutomaton>>],
        lowering: LoweredRules,
    ) -> LexemeSeparation<'a> {
        let count = grammar.terminals.len() as u32;
        let start = count + grammar.start as u32;
        let productions = EarleyProductions::new(lowering, count, start, None);
        LexemeSeparation { grammar, automata, productions }
    }

    /// Checks all pairs of terminals.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] with two terminals that may be confused; [`Error::Limit`],
    /// [`Error::Interrupted`].
    pub(super) fn check(&self, poll: &mut InterruptCheck<'_>) -> Result<(), Error> {
        let count = self.automata.len();
        for &terminal in &self.grammar.ignored {
            if !self.grammar.rules_of(terminal).is_empty() {
                let name = &self.grammar.terminals[terminal].name;
                return Err(
                    self.refusal(terminal, &format!("{name} is both used in rules and ignored"))
                );
            }
        }
        for one in 0..count {
            for other in 0..count {
                let Some(clash) = self.clash(one, other, poll)? else { continue };
                let (first, second) =
                    (&self.grammar.terminals[one].name, &self.grammar.terminals[other].name);
                let why = match clash {
                    LexemeClash::Same => format!("{first} and {second} can match the same string"),
                    LexemeClash::Longer => {
                        format!("the input after {first} can extend it to a longer {second}")
                    }
                    LexemeClash::Shorter => format!("{second} can match a prefix of {first}"),
                };
                return Err(self.refusal(one, &why));
            }
        }
        Ok(())
    }

    fn refusal(&self, terminal: usize, why: &str) -> Error {
        Error::Language {
            message: format!(
                "parse trees cannot be counted by length if adjacent lexemes can be split in \
                 another way: {why}"
            ),
            span: self.grammar.terminals[terminal].span,
            hint: Some(
                "use lexing=\"any\", or count members instead: to_automaton(max_bytes=…)"
                    .to_owned(),
            ),
        }
    }

    fn is_ignored(&self, terminal: usize) -> bool {
        self.grammar.ignored.contains(&terminal)
    }

    /// Returns the bytes that may follow a lexeme of a terminal.
    fn bytes_after(&self, terminal: usize) -> Result<ByteSet, Error> {
        let mut bytes = ByteSet::default();
        for next in 0..self.automata.len() {
            let Some(automaton) = &self.automata[next] else { continue };
            // Several ignored lexemes of one terminal in a row are one lexeme; otherwise they are
            // confused like any others.
            let one_lexeme = next == terminal
                && self.is_ignored(next)
                && is_closed_under_concatenation(automaton)?;
            let follows = self.is_ignored(terminal)
                || self.is_ignored(next)
                || self.productions.follows(terminal as u32, next as u32);
            if follows && !one_lexeme {
                automaton.live_bytes(automaton.start())?.iter().for_each(|byte| bytes.insert(byte));
            }
        }
        Ok(bytes)
    }

    fn clash(
        &self,
        one: usize,
        other: usize,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<LexemeClash>, Error> {
        let (Some(left), Some(right)) = (&self.automata[one], &self.automata[other]) else {
            return Ok(None);
        };
        let bytes_after = self.bytes_after(one)?;
        let ordered = self.grammar.lexing == Lexing::First;
        let start = (left.start(), right.start());
        let mut seen: FxHashSet<(StateId, StateId)> = FxHashSet::from_iter([start]);
        let mut open = vec![start];
        while let Some((first, second)) = open.pop() {
            let live = right.live_bytes(second)?;
            if left.is_accepting(first) && live.iter().any(|byte| bytes_after.contains(byte)) {
                return Ok(Some(LexemeClash::Longer));
            }
            let left_live = left.live_bytes(first)?;
            if one != other && left.is_accepting(first) && right.is_accepting(second) {
                return Ok(Some(LexemeClash::Same));
            }
            if one != other && ordered && right.is_accepting(second) && !left_live.is_empty() {
                return Ok(Some(LexemeClash::Shorter));
            }
            for byte in left_live.iter().filter(|&byte| live.contains(byte)) {
                poll.tick(1)?;
                let (Some(first), Some(second)) =
                    (left.step(first, byte)?, right.step(second, byte)?)
                else {
                    continue;
                };
                if seen.insert((first, second)) {
                    open.push((first, second));
                }
            }
            check_limit(Resource::States, seen.len() as u64, MAX_STATE_PAIRS)?;
        }
        Ok(None)
    }
}

/// Returns `true` if the concatenation of two members is certainly a member: every accepting state
/// continues like the start state.
fn is_closed_under_concatenation(automaton: &TerminalAutomaton) -> Result<bool, Error> {
    let start = automaton.start();
    let live = automaton.live_bytes(start)?;
    let mut seen: FxHashSet<StateId> = FxHashSet::from_iter([start]);
    let mut open = vec![start];
    while let Some(state) = open.pop() {
        if automaton.is_accepting(state) && state != start {
            for byte in live.iter() {
                if automaton.step(state, byte)? != automaton.step(start, byte)? {
                    return Ok(false);
                }
            }
        }
        for byte in automaton.live_bytes(state)?.iter() {
            if let Some(next) = automaton.step(state, byte)?
                && seen.insert(next)
            {
                if seen.len() > 1_000 {
                    return Ok(false);
                }
                open.push(next);
            }
        }
    }
    Ok(true)
}
