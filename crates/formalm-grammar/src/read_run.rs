//! Texts read at once: a state is made of their end only.
//!
//! Most bytes of a token are met within that token alone. What is left of a reading in between need
//! not be known: whether a member continues it is seen at the end, and lexemes that the next byte
//! makes longer need no place behind them.

use formalm_automata::{Error, StateId};

use crate::automaton::{DEAD, GrammarAutomaton};
use crate::interner::NOTHING;
use crate::state::{Core, Reading};
use crate::transitions::{Rows, UNKNOWN};

/// Waypoints that there may be at any rate, and for each state.
const WAYPOINTS: usize = 4096;
const WAYPOINTS_EACH: usize = 16;

/// Bytes of a text that are read under one lock: tokens are seldom longer, and others wait.
const PIECE: usize = 64;

impl GrammarAutomaton {
    /// The state after a text, or how many bytes of it can be read.
    #[inline]
    pub(crate) fn walk_along(
        &self,
        state: StateId,
        text: &[u8],
    ) -> Result<Result<StateId, usize>, Error> {
        let mut at = state.number();
        for (count, piece) in text.chunks(PIECE).enumerate() {
            match self.walk_piece(at, piece)? {
                Ok(next) => at = next,
                Err(read) => return Ok(Err(count * PIECE + read)),
            }
        }
        Ok(Ok(StateId::from_number(at)))
    }

    /// The state after a text of few bytes.
    #[inline]
    fn walk_piece(&self, state: u32, text: &[u8]) -> Result<Result<u32, usize>, Error> {
        let mut at = state;
        let mut last = (at, 0);
        for (read, &byte) in text.iter().enumerate() {
            let class = self.classes[usize::from(byte)];
            let mut next = self.rows.get(at, class);
            if next == UNKNOWN && Rows::is_waypoint(at) {
                // The state that it stands for may know more.
                let known = self.rows.stands_for(at);
                if known != UNKNOWN {
                    last = (known, read);
                    next = self.rows.get(known, class);
                }
            }
            match next {
                UNKNOWN => return self.walk_on(last, text),
                DEAD => return Ok(Err(read)),
                next => at = next,
            }
            if !Rows::is_waypoint(at) {
                last = (at, read + 1);
            }
        }
        if Rows::is_waypoint(at) {
            at = self.rows.stands_for(at);
            if at == UNKNOWN {
                return self.walk_on(last, text);
            }
        }
        Ok(Ok(at))
    }

    /// The same from a state that is reached after some bytes, where more has to be found out.
    fn walk_on(
        &self,
        (from, read): (u32, usize),
        text: &[u8],
    ) -> Result<Result<u32, usize>, Error> {
        let core = &mut self.lock().core;
        let (from, read) = self.walk_within(core, (from, read), text)?;
        let rest = &text[read..];
        let mut at = match rest.len() {
            2.. if self.has_room(core) => core.at_once(from - 1, rest)?,
            _ => NOTHING,
        };
        if at != NOTHING {
            at += 1;
            self.check_states(core)?;
            self.link(from, rest, at);
        } else {
            at = from;
            for (more, &byte) in rest.iter().enumerate() {
                at = self.next_in(core, at, byte)?;
                if at == DEAD {
                    return Ok(Err(read + more));
                }
            }
        }
        Ok(Ok(at))
    }

    /// Whether there are few waypoints for the states that there are. Where states are few, texts
    /// come to the same ones again and again, which waypoints cannot tell.
    fn has_room(&self, core: &Core) -> bool {
        self.rows.waypoint_count() as usize <= WAYPOINTS + WAYPOINTS_EACH * core.states.len()
    }

    /// Goes on as long as no lexeme ends: the states there are few, and are met again.
    fn walk_within(
        &self,
        core: &mut Core,
        (mut at, mut read): (u32, usize),
        text: &[u8],
    ) -> Result<(u32, usize), Error> {
        while let Some(&byte) = text.get(read) {
            let class = self.classes[usize::from(byte)];
            at = match self.known(at, class) {
                UNKNOWN if self.rows.get(at, class) == UNKNOWN => {
                    core.stacks.meter.reset();
                    let Some(next) = core.step_within(at - 1, byte)? else { break };
                    self.check_states(core)?;
                    self.rows.set(at, class, next + 1);
                    next + 1
                }
                UNKNOWN | DEAD => break,
                known => known,
            };
            read += 1;
        }
        Ok((at, read))
    }

    /// Notes the way along a text, with waypoints where nothing is known yet.
    fn link(&self, from: u32, text: &[u8], end: u32) {
        let mut at = from;
        for (more, &byte) in text.iter().enumerate() {
            let is_last = more + 1 == text.len();
            let class = self.classes[usize::from(byte)];
            let known = self.rows.get(at, class);
            let next = match known {
                UNKNOWN if is_last => end,
                UNKNOWN => self.rows.waypoint(),
                known => known,
            };
            if known == UNKNOWN {
                self.rows.set(at, class, next);
            } else if is_last && Rows::is_waypoint(known) {
                self.rows.set_stands_for(known, end);
            }
            at = next;
        }
    }
}

impl Core {
    /// The state after a text; [`NOTHING`] if no member continues so, or if it has to be seen at
    /// each byte what does.
    fn at_once(&mut self, state: u32, text: &[u8]) -> Result<u32, Error> {
        if self.checked && !self.certificate.is_there() {
            return Ok(NOTHING);
        }
        let mut now = std::mem::take(&mut self.spare);
        let mut next = std::mem::take(&mut self.spare_too);
        now.clear();
        now.extend((0..self.reading_count(state)).map(|at| self.reading(state, at)));
        let mut at = 0;
        while at < text.len() {
            self.stacks.meter.reset();
            if let [one] = &mut now[..] {
                at += self.glide(one, &text[at..])?;
            }
            next.clear();
            match self.all_before(&now, &text[at..], &mut next) {
                // Without what no member continues it may not be too much.
                Err(_) if self.checked && at > 0 => return Ok(NOTHING),
                read => read?,
            }
            at += 1;
            if self.checked && at == text.len() {
                self.keep_viable(&mut next)?;
            }
            self.join(&mut next);
            std::mem::swap(&mut now, &mut next);
            if now.is_empty() {
                break;
            }
        }
        let state = self.state(&now);
        (self.spare, self.spare_too) = (now, next);
        Ok(state)
    }

    /// What readings become with the first byte of a text, as far as the next one allows.
    fn all_before(
        &mut self,
        readings: &[Reading],
        text: &[u8],
        next: &mut Vec<Reading>,
    ) -> Result<(), Error> {
        for &reading in readings {
            match text {
                &[byte, behind, ..] => self.read_before(reading, (byte, behind), next)?,
                &[byte] => self.read(reading, byte, next)?,
                [] => {}
            }
        }
        Ok(())
    }

    /// Reads on while one lexeme goes on that ends nowhere, or where the next byte makes it longer;
    /// how many bytes, all but the last one at most.
    fn glide(&mut self, reading: &mut Reading, text: &[u8]) -> Result<usize, Error> {
        if reading.is_between() || !self.embedded.is_empty() {
            return Ok(0);
        }
        let first = self.scans.number(reading.lexeme, reading.forbidden);
        let (mut scan, mut read) = (first, 0);
        'bytes: for pair in text.windows(2) {
            self.stacks.meter.reset();
            let outcome = self.read_scan(scan, pair[0])?;
            if outcome.on == NOTHING {
                break;
            }
            for at in 0..self.scans.ending_count(outcome.endings) {
                let ending = self.scans.ending_at(outcome.endings, at);
                if self.pending(ending.left, pair[1])?.is_some() {
                    break 'bytes;
                }
            }
            self.stacks.meter.spend(1)?;
            (scan, read) = (outcome.on, read + 1);
        }
        (reading.lexeme, reading.forbidden) = self.scans.pair(scan);
        Ok(read)
    }
}
