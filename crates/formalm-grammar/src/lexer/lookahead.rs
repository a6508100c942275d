//! What terminals that look ahead ask of the text behind their lexemes.

use formalm_automata::{EDGE, Error, Machine, StateId};

use super::{BROKEN, Found, Kind, Lexer, Thread};
use crate::indentation::PLAIN;

/// A byte behind a lexeme as the machine knows it, which takes this one for the edge.
pub(crate) fn behind(byte: u8) -> u8 {
    if byte == EDGE { EDGE - 1 } else { byte }
}

impl Lexer {
    /// The thread that reads what follows a match of a terminal, from a state of its machine.
    pub(crate) fn asking(&mut self, terminal: u32, state: u32, kind: Kind) -> u32 {
        self.thread_of(terminal, StateId::from_number(state), (PLAIN, kind))
    }

    /// The thread of another kind at the same place.
    pub(crate) fn turned(&mut self, thread: u32, kind: Kind) -> u32 {
        let Thread { terminal, state, .. } = self.threads[thread as usize];
        self.thread_of(terminal, state, (PLAIN, kind))
    }

    /// Whether the text may end: nothing is asked of what follows that the empty text is not.
    pub(crate) fn may_end(&self, set: u32) -> bool {
        self.lists.get(set).iter().all(|&one| {
            let Thread { kind, accepting, .. } = self.threads[one as usize];
            match kind {
                Kind::Must => accepting,
                Kind::MustNot => !accepting,
                Kind::Lexeme | Kind::Guard => true,
            }
        })
    }

    /// Whether every text may follow; `false` may also mean that it was not seen.
    pub(super) fn is_full(&mut self, terminal: u32, state: StateId) -> Result<bool, Error> {
        if let Some(&known) = self.full.get(&(terminal, state.number())) {
            return Ok(known);
        }
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(false) };
        let mut full = automaton.is_accepting(state);
        for &byte in automaton.class_starts() {
            full = full && (byte == EDGE || automaton.step(state, byte)? == Some(state));
        }
        self.full.insert((terminal, state.number()), full);
        Ok(full)
    }

    /// Reads on behind a lexeme that looked ahead.
    pub(super) fn read_behind(
        &mut self,
        thread: u32,
        byte: u8,
        found: &mut Found,
    ) -> Result<(), Error> {
        let Thread { terminal, state, kind, .. } = self.threads[thread as usize];
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(()) };
        let state = automaton.step(state, behind(byte))?;
        let holds = match state {
            None => false,
            Some(state) if self.is_full(terminal, state)? => true,
            Some(state) => {
                found.next.push(self.thread_of(terminal, state, (PLAIN, kind)));
                return Ok(());
            }
        };
        match kind {
            Kind::Must if !holds => found.matches.push(BROKEN),
            Kind::MustNot if holds => found.matches.push(BROKEN),
            Kind::Guard if holds => {
                found.settled = Some(found.settled.map_or(terminal, |one| one.min(terminal)));
            }
            _ => {}
        }
        Ok(())
    }
}
