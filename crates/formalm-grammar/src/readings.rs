//! One byte further in every reading.

use formalm_automata::Error;

use crate::core::{Core, Reading};
use crate::grammar::Lexing;
use crate::lists::{NOTHING, union};

impl Core {
    /// The readings after a byte, those that no member continues left out.
    pub(crate) fn step(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        let readings = self.readings(state);
        let mut next = Vec::with_capacity(readings.len() + 1);
        for reading in readings {
            self.read(reading, byte, &mut next)?;
        }
        match self.lexing {
            Lexing::Any => self.unite(&mut next),
            Lexing::Longest => {
                let mut kept = Vec::with_capacity(next.len());
                for reading in next {
                    if self.is_viable(reading)? {
                        kept.push(reading);
                    }
                }
                next = kept;
            }
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
        let outcome = self.lexer.step(lexeme, byte, &mut self.stacks.meter)?;
        if outcome == crate::lexer::DEAD {
            return Ok(());
        }
        self.stacks.meter.spend(1)?;
        if self.lexing == Lexing::Any {
            for &terminal in &*self.lexer.lists.share(outcome.matches) {
                next.push(Reading::between(self.after(stacks, terminal)?, NOTHING));
            }
            if outcome.next != NOTHING {
                next.push(Reading { lexeme: outcome.next, stacks, forbidden: NOTHING });
            }
            return Ok(());
        }
        let forbidden = self.lexer.step(forbidden, byte, &mut self.stacks.meter)?;
        if forbidden.matches != NOTHING {
            return Ok(());
        }
        if let Some(&terminal) = self.lexer.lists.get(outcome.matches).first() {
            // The lexeme ends here only if nothing that could go on matches later.
            let all = self.union_of(forbidden.next, outcome.next);
            next.push(Reading::between(self.after(stacks, terminal)?, all));
        }
        // A thread that must not match and yet has to is of no use.
        let lexeme = self.without(outcome.next, forbidden.next);
        if lexeme != NOTHING {
            next.push(Reading { lexeme, stacks, forbidden: forbidden.next });
        }
        Ok(())
    }

    fn union_of(&mut self, left: u32, right: u32) -> u32 {
        if left == NOTHING || left == right {
            return right;
        }
        if right == NOTHING {
            return left;
        }
        let joined = union(self.lexer.lists.get(left), self.lexer.lists.get(right));
        self.lexer.lists.intern(&joined)
    }

    fn without(&mut self, set: u32, other: u32) -> u32 {
        if set == NOTHING || other == NOTHING {
            return set;
        }
        let other = self.lexer.lists.share(other);
        let kept: Vec<u32> = self.lexer.lists.get(set).to_vec();
        let kept: Vec<u32> =
            kept.into_iter().filter(|one| other.binary_search(one).is_err()).collect();
        self.lexer.lists.intern(&kept)
    }

    /// Joins readings with the same lexeme under way: their stacks become one set.
    fn unite(&mut self, readings: &mut Vec<Reading>) {
        readings.sort_unstable();
        let mut united: Vec<Reading> = Vec::with_capacity(readings.len());
        for &reading in &*readings {
            match united.last_mut() {
                Some(last) if last.lexeme == reading.lexeme => {
                    last.stacks = self.stacks.united(last.stacks, reading.stacks);
                }
                _ => united.push(reading),
            }
        }
        *readings = united;
    }

    /// Whether the text may end in a reading.
    pub(crate) fn accepts(&mut self, reading: Reading) -> Result<bool, Error> {
        Ok(reading.is_between() && self.stacks.is_accepting(reading.stacks)?)
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
