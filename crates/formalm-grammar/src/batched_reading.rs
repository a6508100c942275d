//! Batched reading: several bytes at a time, building a state only for the last one.
//!
//! Most bytes of a token lie inside one lexeme or are never visited by another token. In between, a
//! configuration needs no viability check, and a lexeme that the next byte extends needs no parser
//! state. Skipped positions become *waypoints* of the [`TransitionTable`].

use formalm_core::{Error, StateId};

use crate::NOTHING;
use crate::automaton::{DEAD, GrammarAutomaton};
use crate::byte_transitions::{TransitionTable, UNKNOWN};
use crate::configuration_reader::ConfigurationReader;
use crate::configurations::Configuration;
use crate::grammar_state::GrammarState;

/// Waypoints allowed in any case, and per state. Chosen, not measured.
const MIN_WAYPOINTS: usize = 4096;
const WAYPOINTS_PER_STATE: usize = 16;

/// Bytes read under one lock. Tokens are rarely longer, and other threads wait meanwhile. Chosen,
/// not measured.
const CHUNK_BYTES: usize = 64;

impl GrammarAutomaton {
    /// Returns the state after `text`, or the number of bytes that can be read.
    #[inline]
    pub(crate) fn walk_run(
        &self,
        state: StateId,
        text: &[u8],
    ) -> Result<Result<StateId, usize>, Error> {
        let mut at = state.number();
        for (count, piece) in text.chunks(CHUNK_BYTES).enumerate() {
            match self.walk_chunk(at, piece)? {
                Ok(next) => at = next,
                Err(read) => return Ok(Err(count * CHUNK_BYTES + read)),
            }
        }
        Ok(Ok(StateId::from_number(at)))
    }

    /// Returns the state after one chunk, following known transitions without the lock.
    #[inline]
    fn walk_chunk(&self, state: u32, text: &[u8]) -> Result<Result<u32, usize>, Error> {
        let mut at = state;
        let mut last = (at, 0);
        for (read, &byte) in text.iter().enumerate() {
            let class = self.classes[usize::from(byte)];
            let mut next = self.transitions.get(at, class);
            if next == UNKNOWN && TransitionTable::is_waypoint(at) {
                // The state of a waypoint may have more known transitions.
                let known = self.transitions.target(at);
                if known != UNKNOWN {
                    last = (known, read);
                    next = self.transitions.get(known, class);
                }
            }
            match next {
                UNKNOWN => return self.walk_uncached(last, text),
                DEAD => return Ok(Err(read)),
                next => at = next,
            }
            if !TransitionTable::is_waypoint(at) {
                last = (at, read + 1);
            }
        }
        if TransitionTable::is_waypoint(at) {
            at = self.transitions.target(at);
            if at == UNKNOWN {
                return self.walk_uncached(last, text);
            }
        }
        Ok(Ok(at))
    }

    /// Continues from a state reached after some bytes, computing new transitions under the lock.
    fn walk_uncached(
        &self,
        (from, read): (u32, usize),
        text: &[u8],
    ) -> Result<Result<u32, usize>, Error> {
        let core = &mut self.lock().core;
        let (from, read) = self.walk_inside_lexeme(core, (from, read), text)?;
        let rest = &text[read..];
        let mut at = match rest.len() {
            2.. if self.has_waypoint_room(core) => core.step_run(from - 1, rest)?,
            _ => NOTHING,
        };
        if at != NOTHING {
            at += 1;
            self.check_states(core)?;
            self.record_path(from, rest, at);
        } else {
            at = from;
            for (more, &byte) in rest.iter().enumerate() {
                at = self.next_with_state(core, at, byte)?;
                if at == DEAD {
                    return Ok(Err(read + more));
                }
            }
        }
        Ok(Ok(at))
    }

    /// Returns `true` if there are few waypoints per state. Where states are few, inputs reach the
    /// same ones repeatedly, which waypoints cannot detect.
    fn has_waypoint_room(&self, core: &GrammarState) -> bool {
        self.transitions.waypoint_count() as usize
            <= MIN_WAYPOINTS + WAYPOINTS_PER_STATE * core.states.len()
    }

    /// Steps as long as no lexeme ends: states inside lexemes are few and recur.
    fn walk_inside_lexeme(
        &self,
        core: &mut GrammarState,
        (mut at, mut read): (u32, usize),
        text: &[u8],
    ) -> Result<(u32, usize), Error> {
        while let Some(&byte) = text.get(read) {
            let class = self.classes[usize::from(byte)];
            at = match self.known_successor(at, class) {
                UNKNOWN if self.transitions.get(at, class) == UNKNOWN => {
                    core.meter().reset();
                    let Some(next) = core.step_inside_lexeme(at - 1, byte)? else { break };
                    self.check_states(core)?;
                    self.transitions.set(at, class, next + 1);
                    next + 1
                }
                UNKNOWN | DEAD => break,
                known => known,
            };
            read += 1;
        }
        Ok((at, read))
    }

    /// Records the path of a run in the transition table, with waypoints where nothing is known
    /// yet.
    fn record_path(&self, from: u32, text: &[u8], end: u32) {
        let mut at = from;
        for (more, &byte) in text.iter().enumerate() {
            let is_last = more + 1 == text.len();
            let class = self.classes[usize::from(byte)];
            let known = self.transitions.get(at, class);
            let next = match known {
                UNKNOWN if is_last => end,
                UNKNOWN => self.transitions.waypoint(),
                known => known,
            };
            if known == UNKNOWN {
                self.transitions.set(at, class, next);
            } else if is_last && TransitionTable::is_waypoint(known) {
                self.transitions.set_target(known, end);
            }
            at = next;
        }
    }
}

impl GrammarState {
    /// Returns the state after `text`. Returns [`NOTHING`] if there is no such state, or if
    /// viability must be checked at every byte.
    fn step_run(&mut self, state: u32, text: &[u8]) -> Result<u32, Error> {
        if self.reader.lexer.needs_viability_checks && !self.reader.lexer.proof.exists() {
            return Ok(NOTHING);
        }
        let mut now = std::mem::take(&mut self.spare_configurations);
        let mut next = std::mem::take(&mut self.spare_next);
        now.clear();
        now.extend((0..self.states.count(state)).map(|at| self.states.at(state, at)));
        let mut at = 0;
        while at < text.len() {
            self.meter().reset();
            if let [one] = &mut now[..] {
                at += self.reader.extend_lexeme(one, &text[at..])?;
            }
            next.clear();
            match self.reader.push_all_before(&now, &text[at..], &mut next) {
                // With dead configurations dropped, the limit might not be exceeded.
                Err(_) if self.reader.lexer.needs_viability_checks && at > 0 => return Ok(NOTHING),
                read => read?,
            }
            at += 1;
            if self.reader.lexer.needs_viability_checks && at == text.len() {
                self.search.retain_viable(&mut next, &mut self.reader)?;
            }
            self.reader.normalize_configurations(&mut next);
            std::mem::swap(&mut now, &mut next);
            if now.is_empty() {
                break;
            }
        }
        let state = self.states.intern(&now);
        (self.spare_configurations, self.spare_next) = (now, next);
        Ok(state)
    }
}

impl ConfigurationReader {
    /// Appends the successors by the first byte of `text`, as far as its second byte allows them.
    fn push_all_before(
        &mut self,
        configurations: &[Configuration],
        text: &[u8],
        next: &mut Vec<Configuration>,
    ) -> Result<(), Error> {
        for &configuration in configurations {
            match text {
                &[byte, next_byte, ..] => {
                    self.push_successors_before(configuration, (byte, next_byte), next)?
                }
                &[byte] => self.push_successors(configuration, byte, next)?,
                [] => {}
            }
        }
        Ok(())
    }

    /// Extends the lexeme of a single configuration while it ends nowhere or the next byte makes it
    /// longer. Returns the number of bytes read, at most all but the last.
    fn extend_lexeme(
        &mut self,
        configuration: &mut Configuration,
        text: &[u8],
    ) -> Result<usize, Error> {
        if configuration.is_between() || !self.sublanguages.is_empty() {
            return Ok(0);
        }
        let first = self.lexer.states.intern(configuration.lexeme, configuration.negative_threads);
        let (mut lexer_state, mut read) = (first, 0);
        'bytes: for pair in text.windows(2) {
            self.meter().reset();
            let outcome = self.lexer.step(lexer_state, pair[0], &mut self.parser.gss.meter)?;
            if outcome.continued == NOTHING {
                break;
            }
            for at in 0..self.lexer.states.ending_count(outcome.endings) {
                let ending = self.lexer.states.ending_at(outcome.endings, at);
                if self.step_negative_threads(ending.negative_threads, pair[1])?.is_some() {
                    break 'bytes;
                }
            }
            self.parser.gss.meter.spend(1)?;
            (lexer_state, read) = (outcome.continued, read + 1);
        }
        (configuration.lexeme, configuration.negative_threads) =
            self.lexer.states.pair(lexer_state);
        Ok(read)
    }
}
