//! One byte further in every reading.

use formalm_automata::{Error, Patience};

use crate::grammar::Lexing;
use crate::interner::NOTHING;
use crate::state::{Core, Reading};

impl Core {
    /// The readings after a byte, those that no member continues left out.
    pub(crate) fn step(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        if let Some(next) = self.step_within(state, byte)? {
            return Ok(next);
        }
        // Its memory is used again: this is most of what texts take.
        let mut next = std::mem::take(&mut self.spare);
        next.clear();
        for at in 0..self.reading_count(state) {
            self.read(self.reading(state, at), byte, &mut next)?;
        }
        if self.checked {
            self.keep_viable(&mut next)?;
        }
        self.join(&mut next);
        let state = self.state(&next);
        self.spare = next;
        Ok(state)
    }

    /// The same of a state with one reading, whose lexeme goes on and does not end here, and which
    /// some member is known to continue; `None` of all others.
    pub(crate) fn step_within(&mut self, state: u32, byte: u8) -> Result<Option<u32>, Error> {
        if self.reading_count(state) != 1 || !self.embedded.is_empty() {
            return Ok(None);
        }
        let Reading { mut lexeme, place, forbidden } = self.reading(state, 0);
        if lexeme == NOTHING {
            lexeme = self.context(place)?;
        }
        let scan = self.scans.number(lexeme, forbidden);
        let outcome = self.read_scan(scan, byte)?;
        if outcome.on == NOTHING || outcome.endings != NOTHING {
            return Ok(None);
        }
        if self.checked && (outcome.doubtful || !self.is_settled_at(place)?) {
            return Ok(None);
        }
        self.stacks.meter.spend(1)?;
        let (lexeme, forbidden) = self.scans.pair(outcome.on);
        Ok(Some(self.states.intern(&[lexeme, place, forbidden])))
    }

    /// The same with readings that may be dead ends, for all that is known without a search.
    pub(crate) fn step_on(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        let readings = self.readings(state);
        let mut next = self.all_after(&readings, byte)?;
        next.retain(|one| self.viable.get(one) != Some(&false));
        self.join(&mut next);
        Ok(self.state(&next))
    }

    /// Whether a text is a member, whatever its beginnings lead to.
    pub(crate) fn is_member(&mut self, text: &[u8]) -> Result<bool, Error> {
        let mut readings = self.start_readings()?;
        let patience = Patience::new(self.stacks.meter.total());
        for (read, &byte) in text.iter().enumerate() {
            self.stacks.meter.reset();
            readings = self.all_after(&readings, byte)?;
            self.join(&mut readings);
            patience.check(self.stacks.meter.total(), read)?;
        }
        self.stacks.meter.reset();
        for reading in readings {
            if self.accepts(reading)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(crate) fn all_after(
        &mut self,
        readings: &[Reading],
        byte: u8,
    ) -> Result<Vec<Reading>, Error> {
        let mut next = Vec::with_capacity(readings.len() + 1);
        for &reading in readings {
            self.read(reading, byte, &mut next)?;
        }
        Ok(next)
    }

    /// Readings as a state has them: each once, in order.
    pub(crate) fn join(&mut self, readings: &mut Vec<Reading>) {
        if self.lexing == Lexing::Any {
            self.unite(readings);
        }
        readings.sort_unstable();
        readings.dedup();
    }

    /// Leaves out the readings that no member continues.
    pub(crate) fn keep_viable(&mut self, readings: &mut Vec<Reading>) -> Result<(), Error> {
        let mut kept = 0;
        for at in 0..readings.len() {
            if self.is_viable(readings[at])? {
                readings[kept] = readings[at];
                kept += 1;
            }
        }
        readings.truncate(kept);
        Ok(())
    }

    /// What one reading becomes.
    pub(crate) fn read(
        &mut self,
        reading: Reading,
        byte: u8,
        next: &mut Vec<Reading>,
    ) -> Result<(), Error> {
        self.read_each(reading, (byte, None), |reading, _| next.push(reading))
    }

    /// What one reading becomes, each with the terminal whose lexeme ends there, if one does.
    pub(crate) fn read_ending(
        &mut self,
        reading: Reading,
        byte: u8,
        next: &mut Vec<(Reading, Option<u32>)>,
    ) -> Result<(), Error> {
        self.read_each(reading, (byte, None), |reading, ended| next.push((reading, ended)))
    }

    /// What one reading becomes, less what the byte behind makes match although it must not.
    pub(crate) fn read_before(
        &mut self,
        reading: Reading,
        (byte, behind): (u8, u8),
        next: &mut Vec<Reading>,
    ) -> Result<(), Error> {
        self.read_each(reading, (byte, Some(behind)), |reading, _| next.push(reading))
    }

    #[inline]
    fn read_each(
        &mut self,
        reading: Reading,
        (byte, behind): (u8, Option<u8>),
        mut next: impl FnMut(Reading, Option<u32>),
    ) -> Result<(), Error> {
        let Reading { mut lexeme, place, forbidden } = reading;
        if !self.embedded.is_empty() && (reading.is_embedded() || reading.is_between()) {
            self.read_embedded(reading, byte, &mut next)?;
            if reading.is_embedded() {
                return Ok(());
            }
        }
        if reading.is_between() {
            lexeme = self.context(place)?;
        }
        let scan = self.scans.number(lexeme, forbidden);
        let outcome = self.read_scan(scan, byte)?;
        if outcome.endings != NOTHING {
            for at in 0..self.scans.ending_count(outcome.endings) {
                let ending = self.scans.ending_at(outcome.endings, at);
                if let Some(behind) = behind
                    && self.pending(ending.left, behind)?.is_none()
                {
                    continue;
                }
                let place = self.after(place, ending.terminal)?;
                if place != NOTHING {
                    next(Reading::between(place, ending.left), Some(ending.terminal));
                }
            }
        }
        if outcome.on != NOTHING {
            let (lexeme, forbidden) = self.scans.pair(outcome.on);
            next(Reading { lexeme, place, forbidden }, None);
        }
        self.stacks.meter.spend(1)
    }

    /// Joins readings with the same lexeme under way: their stacks, which are their places here,
    /// become one set.
    fn unite(&mut self, readings: &mut Vec<Reading>) {
        readings.sort_unstable_by_key(|one| (one.lexeme, one.forbidden));
        let mut united: Vec<Reading> = Vec::with_capacity(readings.len());
        for &reading in &*readings {
            match united.last_mut() {
                Some(last)
                    if (last.lexeme, last.forbidden) == (reading.lexeme, reading.forbidden) =>
                {
                    last.place = self.stacks.united(last.place, reading.place);
                }
                _ => united.push(reading),
            }
        }
        *readings = united;
    }

    /// Whether the text may end in a reading.
    pub(crate) fn accepts(&mut self, reading: Reading) -> Result<bool, Error> {
        match reading.is_between() {
            true => Ok(self.lexer.may_end(reading.forbidden) && self.may_end(reading.place)?),
            // What ends with a member has a reading of its own.
            false if reading.is_embedded() => Ok(false),
            false => self.may_end_within(reading),
        }
    }
}
