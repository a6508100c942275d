//! A proof, for ordinary grammars, that longest lexemes never lead into a dead end.
//!
//! The parser's view is exact: whatever stands on a stack, some sequence of terminals completes
//! it. What could fail is spelling that sequence, because another lexeme would be longer. Suppose
//! a byte, the *separator*, is always read as an ignored lexeme, and every terminal has a text
//! that is read as that terminal behind a separator and in front of one, whatever else may stand
//! there. Then the sequence can be spelled with separators between. It is enough to look at the
//! case in which all terminals may stand there: with fewer of them less competes and less is
//! forbidden. Whether the lexeme under way can be brought to such an end is asked per lexer
//! state, not per stack.

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::Core;
use crate::lists::{NOTHING, union};

/// Pairs of lexer states looked at before a terminal is given up.
const PAIRS: usize = 20_000;

/// What was proved.
#[derive(Debug, Default)]
pub(crate) struct Certificate {
    separator: Option<u8>,
    /// Pairs (lexeme under way, forbidden): it can be ended in front of a separator.
    settles: FxHashMap<(u32, u32), bool>,
}

impl Certificate {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.settles.len() * 20
    }
}

impl Core {
    /// Looks for a separator that works for all of these terminals.
    pub(crate) fn certify(&mut self, terminals: Vec<u32>) -> Result<(), Error> {
        let start = self.start_of(terminals.clone());
        let common = [b' ', b'\n', b'\t'];
        let bytes = common.into_iter().chain(self.lexer.representatives().to_vec());
        let mut tried: FxHashSet<u8> = FxHashSet::default();
        for byte in bytes {
            if !tried.insert(self.lexer.classes()[usize::from(byte)]) {
                continue;
            }
            let outcome = self.lexer.step(start, byte, &mut self.stacks.meter)?;
            let winner = self.lexer.lists.get(outcome.matches).first().copied();
            if !winner.is_some_and(|winner| self.is_ignored(winner)) {
                continue;
            }
            let mut all = true;
            for &terminal in &terminals {
                self.stacks.meter.reset();
                if !self.ends((start, outcome.next), byte, Some(terminal))? {
                    all = false;
                    break;
                }
            }
            if all {
                self.certificate.separator = Some(byte);
                break;
            }
        }
        self.stacks.meter.reset();
        Ok(())
    }

    /// Whether the certificate shows that nothing stands in the way of a reading.
    pub(crate) fn is_certified(&mut self, lexeme: u32, forbidden: u32) -> Result<bool, Error> {
        let Some(separator) = self.certificate.separator else { return Ok(false) };
        if let Some(&settles) = self.certificate.settles.get(&(lexeme, forbidden)) {
            return Ok(settles);
        }
        let settles = match lexeme {
            NOTHING => self.is_discharged(forbidden, separator)?,
            _ => self.ends((lexeme, forbidden), separator, None)?,
        };
        self.certificate.settles.insert((lexeme, forbidden), settles);
        Ok(settles)
    }

    /// Whether forbidden threads die with a byte, without a match.
    fn is_discharged(&mut self, forbidden: u32, byte: u8) -> Result<bool, Error> {
        let outcome = self.lexer.step(forbidden, byte, &mut self.stacks.meter)?;
        Ok(outcome == crate::lexer::DEAD)
    }

    /// Whether some text ends the lexeme, as this terminal if one is asked for, so that a
    /// separator may follow.
    fn ends(
        &mut self,
        from: (u32, u32),
        separator: u8,
        wanted: Option<u32>,
    ) -> Result<bool, Error> {
        if self.ends_shortly(from, separator, wanted)? {
            return Ok(true);
        }
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::from_iter([from]);
        let mut queue = vec![from];
        let mut at = 0;
        while at < queue.len() && queue.len() < PAIRS {
            for byte in self.lexer.representatives().to_vec() {
                let Some((ended, next)) = self.trial(queue[at], byte, separator, wanted)? else {
                    continue;
                };
                if ended {
                    return Ok(true);
                }
                if next.0 != NOTHING && seen.insert(next) {
                    queue.push(next);
                }
            }
            at += 1;
        }
        Ok(false)
    }

    /// The same along the shortest texts of the threads: nearly always enough.
    fn ends_shortly(
        &mut self,
        from: (u32, u32),
        separator: u8,
        wanted: Option<u32>,
    ) -> Result<bool, Error> {
        for &thread in &*self.lexer.lists.share(from.0) {
            if wanted.is_some_and(|wanted| self.lexer.terminal(thread) != wanted) {
                continue;
            }
            let mut pair = from;
            for byte in self.lexer.completion(thread)? {
                match self.trial(pair, byte, separator, wanted)? {
                    Some((true, _)) => return Ok(true),
                    Some((false, next)) => pair = next,
                    None => break,
                }
            }
        }
        Ok(false)
    }

    /// One byte: whether the lexeme may end there, and the pair if it goes on.
    #[expect(clippy::type_complexity, reason = "a pair of lexer states, twice")]
    fn trial(
        &mut self,
        (lexeme, forbidden): (u32, u32),
        byte: u8,
        separator: u8,
        wanted: Option<u32>,
    ) -> Result<Option<(bool, (u32, u32))>, Error> {
        let forbidden = self.lexer.step(forbidden, byte, &mut self.stacks.meter)?;
        let outcome = self.lexer.step(lexeme, byte, &mut self.stacks.meter)?;
        if forbidden.matches != NOTHING || outcome == crate::lexer::DEAD {
            return Ok(None);
        }
        let winner = self.lexer.lists.get(outcome.matches).first().copied();
        let fits = winner.is_some_and(|winner| wanted.is_none_or(|wanted| wanted == winner));
        let joined =
            union(self.lexer.lists.get(forbidden.next), self.lexer.lists.get(outcome.next));
        let all = self.lexer.lists.intern(&joined);
        let ended = fits && self.is_discharged(all, separator)?;
        Ok(Some((ended, (outcome.next, forbidden.next))))
    }
}
