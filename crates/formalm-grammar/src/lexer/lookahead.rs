//! Terminal lookahead: threads that check the input after a lexeme.

use formalm_automata::LEXEME_END;
use formalm_core::{Error, LazyDfa, StateId};

use super::thread_sets::{LexerThread, StepResults, ThreadKind, ThreadSets, VIOLATED};
use crate::indentation::NO_COLUMN;

/// Maps a byte after a lexeme to the automaton's alphabet, which reserves one byte as the lexeme
/// edge.
pub(crate) fn as_lookahead_byte(byte: u8) -> u8 {
    if byte == LEXEME_END { LEXEME_END - 1 } else { byte }
}

impl ThreadSets {
    /// Returns the thread that checks the input after a match, from a state of the terminal's
    /// automaton.
    pub(crate) fn lookahead_thread(&mut self, terminal: u32, state: u32, kind: ThreadKind) -> u32 {
        self.thread_of(terminal, StateId::from_number(state), (NO_COLUMN, kind))
    }

    /// Returns the thread of another kind in the same state.
    pub(crate) fn thread_of_kind(&mut self, thread: u32, kind: ThreadKind) -> u32 {
        let LexerThread { terminal, state, .. } = self.threads[thread];
        self.thread_of(terminal, state, (NO_COLUMN, kind))
    }

    /// Returns `true` if the input may end: the empty rest satisfies every condition.
    pub(crate) fn may_end(&self, set: u32) -> bool {
        self.lists.get(set).iter().all(|&one| {
            let accepting = self.has_matched(one);
            match self.kind(one) {
                ThreadKind::MustMatch => accepting,
                ThreadKind::MustNotMatch => !accepting,
                ThreadKind::Lexeme | ThreadKind::Guard => true,
            }
        })
    }

    /// Returns `true` if every continuation satisfies the condition; `false` may also mean that
    /// this is unknown.
    pub(super) fn is_universal(&mut self, terminal: u32, state: StateId) -> Result<bool, Error> {
        if let Some(&known) = self.universal_states.get(&(terminal, state.number())) {
            return Ok(known);
        }
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(false) };
        let mut universal_states = automaton.is_accepting(state);
        for &byte in automaton.class_starts() {
            universal_states = universal_states
                && (byte == LEXEME_END || automaton.step(state, byte)? == Some(state));
        }
        self.universal_states.insert((terminal, state.number()), universal_states);
        Ok(universal_states)
    }

    /// Reads a byte after a lexeme with lookahead.
    pub(super) fn read_lookahead(
        &mut self,
        thread: u32,
        byte: u8,
        results: &mut StepResults,
    ) -> Result<(), Error> {
        let LexerThread { terminal, state, kind, .. } = self.threads[thread];
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(()) };
        let state = automaton.step(state, as_lookahead_byte(byte))?;
        let holds = match state {
            None => false,
            Some(state) if self.is_universal(terminal, state)? => true,
            Some(state) => {
                results.next.push(self.thread_of(terminal, state, (NO_COLUMN, kind)));
                return Ok(());
            }
        };
        match kind {
            ThreadKind::MustMatch if !holds => results.matches.push(VIOLATED),
            ThreadKind::MustNotMatch if holds => results.matches.push(VIOLATED),
            ThreadKind::Guard if holds => {
                results.confirmed =
                    Some(results.confirmed.map_or(terminal, |one| one.min(terminal)));
            }
            _ => {}
        }
        Ok(())
    }
}
