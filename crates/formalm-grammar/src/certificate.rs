//! A proof, for ordinary grammars, that ordered lexemes never lead into a dead end.
//!
//! The parser's view is exact: whatever stands on a stack, some sequence of terminals completes
//! it. What could fail is spelling that sequence, because another lexeme would be longer or come
//! first. Suppose a byte, the *separator*, is always read as an ignored lexeme. A terminal is
//! *robust* if it has a text that is read as that terminal behind a separator and in front of one,
//! whatever else may stand there. A sequence of robust terminals can be spelled with separators
//! between. It is enough to look at the case in which all terminals may stand there: with fewer of
//! them less competes and less is forbidden. Whether the lexeme under way can be brought to such
//! an end is asked per lexer state, not per stack.
//!
//! Where some terminals are not robust, [`crate::firmness`] says which stacks robust ones complete.

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::Core;
use crate::lists::NOTHING;

/// Pairs of lexer states looked at before a lexeme is given up.
const PAIRS: usize = 20_000;
/// The same for one terminal among all others.
const TRIALS: usize = 2_000;

/// A byte that is always read as an ignored lexeme.
#[derive(Clone, Copy, Debug)]
struct Separator {
    byte: u8,
    /// Threads that could go on after it, and must not match then. Any terminal can be spelled
    /// nevertheless.
    left: u32,
}

/// What was proved.
#[derive(Debug, Default)]
pub(crate) struct Certificate {
    separator: Option<Separator>,
    /// Terminals behind which stacks may not be sound, ascending.
    fragile: Vec<u32>,
    /// Pairs (lexeme under way, forbidden): it can be ended in front of a separator.
    settles: FxHashMap<(u32, u32), bool>,
}

impl Certificate {
    /// Terminals behind which stacks may not be sound, ascending.
    pub(crate) fn fragile(&self) -> &[u32] {
        &self.fragile
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.separator.is_some()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.settles.len() * 20
    }
}

impl Core {
    /// Looks for a separator that works for all of these terminals.
    pub(crate) fn certify(&mut self, terminals: &[u32]) -> Result<(), Error> {
        let start = self.start_of_all(terminals, &[]);
        let common = [b' ', b'\n', b'\t'];
        let bytes = common.into_iter().chain(self.lexer.representatives().to_vec());
        let mut tried: FxHashSet<u8> = FxHashSet::default();
        for byte in bytes {
            if !tried.insert(self.lexer.classes()[usize::from(byte)]) {
                continue;
            }
            let scan = self.scans.number(start, NOTHING);
            let outcome = self.outcome(scan, byte)?;
            let ending = self.scans.endings(outcome.endings).first().copied();
            let Some(ending) = ending.filter(|one| self.is_ignored(one.terminal)) else { continue };
            let separator = Separator { byte, left: ending.left };
            let mut brittle = Vec::new();
            for &terminal in terminals {
                self.stacks.meter.reset();
                if !self.is_spelled(terminals, terminal, separator)? {
                    brittle.push(terminal);
                }
            }
            self.stacks.meter.reset();
            if let Some(fragile) = self.stacks.tables.mark_firm(&brittle) {
                self.certificate.fragile = fragile;
                self.certificate.separator = Some(separator);
                break;
            }
        }
        Ok(())
    }

    /// Whether a terminal can be spelled between two separators in all contexts.
    ///
    /// A terminal that other lexemes become has to be spelled as itself where none of them may
    /// stand, and as the first of them that may wherever some may.
    fn is_spelled(
        &mut self,
        terminals: &[u32],
        wanted: u32,
        separator: Separator,
    ) -> Result<bool, Error> {
        let of_it = self.replaced.iter().filter(|one| one.text as u32 == wanted);
        let mut patterns: Vec<u32> = of_it
            .map(|one| one.pattern as u32)
            .filter(|one| terminals.contains(one) || self.is_ignored(*one))
            .collect();
        patterns.sort_unstable();
        for at in 0..patterns.len() {
            let without = [&patterns[..at], &[wanted]].concat();
            let start = self.start_of_all(terminals, &without);
            if !self.ends((start, separator.left), separator, Some(self.became(wanted)))? {
                return Ok(false);
            }
        }
        let start = self.start_of_all(terminals, &patterns);
        self.ends((start, separator.left), separator, Some(wanted))
    }

    /// Whether a terminal can be spelled between two separators in a context.
    pub(crate) fn is_spelled_in(&mut self, context: u32, wanted: u32) -> Result<bool, Error> {
        let Some(separator) = self.certificate.separator else { return Ok(false) };
        self.ends((context, separator.left), separator, Some(wanted))
    }

    /// Whether the certificate shows that nothing stands in the way of a lexeme, on stacks that
    /// are settled.
    pub(crate) fn is_certified(&mut self, lexeme: u32, forbidden: u32) -> Result<bool, Error> {
        let Some(separator) = self.certificate.separator else { return Ok(false) };
        if let Some(&settles) = self.certificate.settles.get(&(lexeme, forbidden)) {
            return Ok(settles);
        }
        let settles = match lexeme {
            NOTHING => self.is_harmless(forbidden, separator)?,
            _ => self.ends((lexeme, forbidden), separator, None)?,
        };
        self.certificate.settles.insert((lexeme, forbidden), settles);
        Ok(settles)
    }

    /// Whether any terminal can be spelled although some threads must not match: because they
    /// die with a separator, or because a separator leaves them too.
    fn is_harmless(&mut self, forbidden: u32, separator: Separator) -> Result<bool, Error> {
        let left = self.lexer.lists.get(separator.left);
        let all = self.lexer.lists.get(forbidden);
        if all.iter().all(|one| left.binary_search(one).is_ok()) {
            return Ok(true);
        }
        let outcome = self.lexer.step(forbidden, separator.byte, &mut self.stacks.meter)?;
        Ok(outcome == crate::lexer::DEAD)
    }

    /// Whether some text ends the lexeme, as this terminal if one is asked for, so that any
    /// terminal may follow, behind a separator or at once.
    fn ends(
        &mut self,
        from: (u32, u32),
        separator: Separator,
        wanted: Option<u32>,
    ) -> Result<bool, Error> {
        if self.ends_shortly(from, separator, wanted)? {
            return Ok(true);
        }
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::from_iter([from]);
        let mut queue = vec![from];
        let mut at = 0;
        let most = if wanted.is_some() { TRIALS } else { PAIRS };
        while at < queue.len() && queue.len() < most {
            for byte in self.lexer.representatives().to_vec() {
                let Some((ended, next)) = self.trial(queue[at], byte, separator, wanted)? else {
                    continue;
                };
                if ended {
                    return Ok(true);
                }
                if next.0 != NOTHING && self.may_be(next.0, wanted) && seen.insert(next) {
                    queue.push(next);
                }
            }
            at += 1;
        }
        Ok(false)
    }

    /// Whether a lexeme under way may become a terminal.
    fn may_be(&self, lexeme: u32, wanted: Option<u32>) -> bool {
        let mut threads = self.lexer.lists.get(lexeme).iter();
        wanted.is_none_or(|wanted| threads.any(|&one| self.lexer.terminal(one) == wanted))
    }

    /// The same along the shortest texts of the threads: nearly always enough.
    fn ends_shortly(
        &mut self,
        from: (u32, u32),
        separator: Separator,
        wanted: Option<u32>,
    ) -> Result<bool, Error> {
        for &thread in &*self.lexer.lists.share(from.0) {
            if wanted.is_some_and(|wanted| self.lexer.terminal(thread) != wanted) {
                continue;
            }
            let mut pair = from;
            for &byte in &*self.lexer.completion(thread)? {
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
        separator: Separator,
        wanted: Option<u32>,
    ) -> Result<Option<(bool, (u32, u32))>, Error> {
        let scan = self.scans.number(lexeme, forbidden);
        let outcome = self.outcome(scan, byte)?;
        let mut ended = false;
        for one in &*self.scans.endings(outcome.endings) {
            let fits = match wanted {
                Some(wanted) => wanted == one.terminal,
                None => !self.is_lost(one.terminal),
            };
            ended |= fits && self.is_harmless(one.left, separator)?;
        }
        let alive = outcome.on != NOTHING || outcome.endings != NOTHING;
        Ok(alive.then(|| (ended, self.scans.pair(outcome.on))))
    }
}
