//! One byte further in every reading.

use formalm_automata::Error;

use crate::core::{Core, Reading};
use crate::grammar::Lexing;
use crate::lists::NOTHING;

impl Core {
    /// The readings after a byte, those that no member continues left out.
    pub(crate) fn step(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        let readings = self.readings(state);
        let mut next = Vec::with_capacity(readings.len() + 1);
        for reading in readings {
            self.read(reading, byte, &mut next)?;
        }
        if self.checked {
            let mut kept = Vec::with_capacity(next.len());
            for reading in next {
                if self.is_viable(reading)? {
                    kept.push(reading);
                }
            }
            next = kept;
        }
        if self.lexing == Lexing::Any {
            self.unite(&mut next);
        }
        next.sort_unstable();
        next.dedup();
        Ok(self.state(&next))
    }

    /// What one reading becomes.
    pub(crate) fn read(
        &mut self,
        reading: Reading,
        byte: u8,
        next: &mut Vec<Reading>,
    ) -> Result<(), Error> {
        let Reading { mut lexeme, stacks, forbidden } = reading;
        if reading.is_between() {
            lexeme = self.context(stacks)?;
        }
        let scan = self.scans.number(lexeme, forbidden);
        let outcome = self.read_scan(scan, byte)?;
        if outcome.endings != NOTHING {
            for ending in &*self.scans.endings(outcome.endings) {
                let stacks = self.after(stacks, ending.terminal)?;
                if stacks != NOTHING {
                    next.push(Reading::between(stacks, ending.left));
                }
            }
        }
        if outcome.on != NOTHING {
            let (lexeme, forbidden) = self.scans.pair(outcome.on);
            next.push(Reading { lexeme, stacks, forbidden });
        }
        self.stacks.meter.spend(1)
    }

    /// Joins readings with the same lexeme under way: their stacks become one set.
    fn unite(&mut self, readings: &mut Vec<Reading>) {
        readings.sort_unstable_by_key(|one| (one.lexeme, one.forbidden));
        let mut united: Vec<Reading> = Vec::with_capacity(readings.len());
        for &reading in &*readings {
            match united.last_mut() {
                Some(last)
                    if (last.lexeme, last.forbidden) == (reading.lexeme, reading.forbidden) =>
                {
                    last.stacks = self.stacks.united(last.stacks, reading.stacks);
                }
                _ => united.push(reading),
            }
        }
        *readings = united;
    }

    /// Whether the text may end in a reading.
    pub(crate) fn accepts(&mut self, reading: Reading) -> Result<bool, Error> {
        Ok(reading.is_between()
            && self.lexer.may_end(reading.forbidden)
            && self.stacks.is_accepting(reading.stacks)?)
    }

    /// Bytes that a reading needs at least to become a member; exact where lexemes are free.
    pub(crate) fn least_bytes(&mut self, reading: Reading) -> Result<u32, Error> {
        if reading.is_between() {
            return self.stacks.completion_bytes(reading.stacks);
        }
        let mut least = crate::stacks::NEVER - 1;
        for (terminal, bytes) in self.lexer.distances(reading.lexeme)? {
            let stacks = self.after(reading.stacks, terminal)?;
            let rest = self.stacks.completion_bytes(stacks)?;
            least = least.min(bytes.saturating_add(rest));
        }
        Ok(least)
    }
}
