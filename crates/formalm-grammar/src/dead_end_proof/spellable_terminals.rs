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
//! Where some terminals are not robust, [`crate::dead_end_proof::completable_states`] says which stacks robust ones complete.

use std::sync::Arc;

use formalm_automata::{ByteSet, Error};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::indentation::PLAIN;
use crate::interner::NOTHING;
use crate::lexer::Kind;
use crate::state::Core;

/// Pairs of lexer states looked at before a lexeme is given up.
const PAIRS: usize = 20_000;
/// The same for one terminal among all others.
const TRIALS: usize = 2_000;
/// Ignored terminals, and bytes behind them, of which separators are made.
const TEXTS: usize = 4;

/// Texts that are always read as ignored lexemes.
#[derive(Clone, Debug)]
struct Separator {
    /// Any of them will do. A comment goes on over a blank and ends before a line break, and only
    /// a comment ends what goes on over blanks, so one would not always do.
    texts: Arc<[Vec<u8>]>,
    /// Threads that could go on after it, and must not match then. Any terminal can be spelled
    /// nevertheless.
    left: u32,
    /// Those of them that separators leave, and not the end of a line.
    own: u32,
    /// Those of them that are ignored, so that they are left wherever it stands.
    ignored: u32,
}

/// What was proved.
#[derive(Debug, Default)]
pub(crate) struct Certificate {
    separator: Option<Separator>,
    /// Terminals behind which stacks may not be sound, ascending.
    fragile: Vec<u32>,
    /// Pairs (lexeme under way, forbidden): it can be ended in front of a separator.
    settles: FxHashMap<(u32, u32), bool>,
    /// What a separator leaves, per context.
    leaves: FxHashMap<u32, u32>,
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

    /// A text that separates lexemes; empty if none is known.
    pub(crate) fn separator_text(&self) -> Vec<u8> {
        let texts = self.separator.as_ref().map(|one| Arc::clone(&one.texts));
        texts.and_then(|texts| texts.first().cloned()).unwrap_or_default()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.settles.len() * 20 + self.leaves.len() * 12
    }
}

impl Core {
    /// Looks for a separator that works for all of these terminals.
    pub(crate) fn certify(&mut self, terminals: &[u32]) -> Result<(), Error> {
        let lines = match &self.layout {
            Some(layout) if layout.need.is_none() => return Ok(()),
            Some(layout) => layout.left,
            None => NOTHING,
        };
        let candidates = self.ignored_texts(terminals)?;
        let mut tried: FxHashSet<u32> = FxHashSet::default();
        for left in candidates.iter().map(|one| one.1) {
            if !tried.insert(left) {
                continue;
            }
            let all = self.lexer.lists.copy(left);
            // What leaves less than another forbids less.
            let within = |one: &u32| all.binary_search(one).is_ok();
            let leaves_less = |left: u32| self.lexer.lists.get(left).iter().all(within);
            let alike = candidates.iter().filter(|one| leaves_less(one.1));
            let texts = alike.map(|one| one.0.clone()).collect();
            let is_ignored = |one: &u32| self.is_ignored(self.lexer.terminal(*one));
            let ignored: Vec<u32> = all.iter().copied().filter(is_ignored).collect();
            let ignored = self.lexer.lists.intern(&ignored);
            let own = left;
            let left = self.union_of(own, lines);
            let separator = Separator { texts, left, own, ignored };
            let mut brittle = Vec::new();
            let start = self.start_of_all(terminals, &[]);
            for &terminal in terminals {
                self.stacks.meter.reset();
                if !self.is_spelled((terminals, start), terminal, &separator)? {
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

    /// Texts that are read as ignored lexemes whatever may stand there, blanks first, with the
    /// threads that could go on: single bytes, one of each class, and the shortest text of each
    /// ignored terminal with one of those bytes behind.
    fn ignored_texts(&mut self, terminals: &[u32]) -> Result<Vec<(Vec<u8>, u32)>, Error> {
        let start = self.start_of_all(terminals, &[]);
        let common = [b' ', b'\n', b'\t'];
        let bytes = common.into_iter().chain(self.lexer.representatives().to_vec());
        let mut tried: FxHashSet<u8> = FxHashSet::default();
        let mut found = Vec::new();
        let alone = self.lexer.start(self.ignored.clone().into_iter());
        for byte in bytes {
            if !tried.insert(self.lexer.classes()[usize::from(byte)]) {
                continue;
            }
            // Where none of them matches, nothing else has to be read.
            if self.lexer.step(alone, byte, &mut self.stacks.meter)?.is_match() {
                let left = self.ignored_leaves(start, &[byte])?;
                found.extend(left.map(|left| (vec![byte], left)));
            }
        }
        let single = found.clone();
        for at in 0..self.ignored.len().min(TEXTS) {
            let one = self.lexer.start(std::iter::once(self.ignored[at]));
            let threads = self.lexer.lists.copy(one);
            let Some(&thread) = threads.first() else { continue };
            let shortest = self.lexer.completion(thread)?;
            for (byte, _) in single.iter().take(TEXTS).filter(|_| shortest.len() > 1) {
                let text = [&shortest, &byte[..]].concat();
                let left = self.ignored_leaves(start, &text)?;
                found.extend(left.map(|left| (text, left)));
            }
        }
        // Behind a separator the text may end, whatever was looked ahead for.
        found.retain(|one| self.lexer.may_end(one.1));
        Ok(found)
    }

    /// What a text leaves in a context where it is read as ignored lexemes; `None` if it is not.
    fn ignored_leaves(&mut self, context: u32, text: &[u8]) -> Result<Option<u32>, Error> {
        let mut scans = vec![self.scans.number(context, NOTHING)];
        for (at, &byte) in text.iter().enumerate() {
            let mut next = Vec::new();
            for scan in scans {
                let outcome = self.outcome(scan, byte)?;
                next.extend(Some(outcome.on).filter(|&on| on != NOTHING));
                for one in &*self.scans.endings(outcome.endings) {
                    if !self.is_ignored(one.terminal) {
                        continue;
                    }
                    if at + 1 == text.len() {
                        return Ok(Some(one.left));
                    }
                    next.push(self.scans.number(context, one.left));
                }
            }
            next.sort_unstable();
            next.dedup();
            scans = next;
        }
        Ok(None)
    }

    /// Whether a terminal can be spelled between two separators in all contexts.
    ///
    /// A terminal that other lexemes become has to be spelled as itself where none of them may
    /// stand, and as the first of them that may wherever some may.
    fn is_spelled(
        &mut self,
        (terminals, start): (&[u32], u32),
        wanted: u32,
        separator: &Separator,
    ) -> Result<bool, Error> {
        if self.embedded.has(wanted) {
            return self.outlives(wanted, separator.left);
        }
        let layout = self.layout.as_ref();
        if layout.is_some_and(|layout| layout.is_level(wanted)) {
            // Columns tell it.
            return Ok(true);
        }
        // No line ends directly behind another one.
        let is_newline = layout.is_some_and(|layout| layout.newline == wanted);
        let left = if is_newline { separator.own } else { separator.left };
        let of_it = self.replaced.iter().filter(|one| one.text as u32 == wanted);
        let mut patterns: Vec<u32> = of_it
            .map(|one| one.pattern as u32)
            .filter(|one| terminals.contains(one) || self.is_ignored(*one))
            .collect();
        patterns.sort_unstable();
        for at in 0..patterns.len() {
            let without = [&patterns[..at], &[wanted]].concat();
            let start = self.start_of_all(terminals, &without);
            if !self.ends((start, left), separator, Some(self.became(wanted)))? {
                return Ok(false);
            }
        }
        let start = match patterns.is_empty() {
            true => start,
            false => self.start_of_all(terminals, &patterns),
        };
        self.ends((start, left), separator, Some(wanted))
    }

    /// Whether a terminal can be spelled between two separators in a context, behind what
    /// [`Core::fits`] there.
    pub(crate) fn is_spelled_in(&mut self, context: u32, wanted: u32) -> Result<bool, Error> {
        let Some(separator) = self.certificate.separator.clone() else { return Ok(false) };
        let left = self.separator_leaves(context, &separator)?;
        self.ends((context, left), &separator, Some(wanted))
    }

    /// Whether what must not match is gone behind a separator, or is what one leaves in this
    /// context: then settled stacks can be completed.
    pub(crate) fn fits(&mut self, context: u32, forbidden: u32) -> Result<bool, Error> {
        if forbidden == NOTHING || self.certificate.fragile.is_empty() {
            return Ok(true);
        }
        let Some(separator) = self.certificate.separator.clone() else { return Ok(false) };
        if self.is_gone(forbidden, &separator)? {
            return Ok(true);
        }
        let left = self.separator_leaves(context, &separator)?;
        Ok(self.is_within(forbidden, left))
    }

    /// Threads that could go on after a separator in a context.
    fn separator_leaves(&mut self, context: u32, separator: &Separator) -> Result<u32, Error> {
        if let Some(&known) = self.certificate.leaves.get(&context) {
            return Ok(known);
        }
        let lines = self.layout.as_ref().map_or(NOTHING, |layout| layout.left);
        let mut left = self.union_of(separator.ignored, lines);
        for text in &*separator.texts {
            let more = self.ignored_leaves(context, text)?;
            left = self.union_of(left, more.unwrap_or(separator.left));
        }
        self.certificate.leaves.insert(context, left);
        Ok(left)
    }

    fn is_within(&self, set: u32, other: u32) -> bool {
        let other = self.lexer.lists.get(other);
        self.lexer.lists.get(set).iter().all(|one| other.binary_search(one).is_ok())
    }

    /// Whether what a lexeme leaves is gone behind a separator.
    pub(crate) fn leaves_nothing(&mut self, left: u32) -> Result<bool, Error> {
        let Some(separator) = self.certificate.separator.clone() else { return Ok(false) };
        self.is_gone(left, &separator)
    }

    /// Whether the certificate shows that nothing stands in the way of a lexeme, on stacks that
    /// are settled; between lexemes, if what must not match [`Core::fits`] there.
    pub(crate) fn is_certified(&mut self, lexeme: u32, forbidden: u32) -> Result<bool, Error> {
        if let Some(&settles) = self.certificate.settles.get(&(lexeme, forbidden)) {
            return Ok(settles);
        }
        let Some(separator) = self.certificate.separator.clone() else { return Ok(false) };
        let settles = match lexeme {
            NOTHING => self.is_harmless(forbidden, &separator)?,
            _ => self.ends((lexeme, forbidden), &separator, None)?,
        };
        self.certificate.settles.insert((lexeme, forbidden), settles);
        Ok(settles)
    }

    /// Whether any robust terminal can be spelled although some threads must not match: because
    /// they die with a separator, or because a separator leaves them too.
    fn is_harmless(&mut self, forbidden: u32, separator: &Separator) -> Result<bool, Error> {
        Ok(self.is_within(forbidden, separator.left) || self.is_gone(forbidden, separator)?)
    }

    /// Whether some threads that must not match die with a separator, or are what all leave.
    fn is_gone(&mut self, forbidden: u32, separator: &Separator) -> Result<bool, Error> {
        if self.is_within(forbidden, separator.ignored) {
            return Ok(true);
        }
        // Where a comment was read, the end of a line may follow.
        let threads = self.lexer.lists.get(forbidden);
        let is_comment = |one: &u32| {
            let terminal = self.lexer.terminal(*one);
            self.layout.as_ref().is_some_and(|layout| layout.comments.contains(&terminal))
        };
        let line: &[Vec<u8>] = if threads.iter().any(is_comment) { &[vec![b'\n']] } else { &[] };
        for text in separator.texts.iter().chain(line) {
            let mut forbidden = forbidden;
            for &byte in text {
                match self.pending(forbidden, byte)? {
                    None => break,
                    Some(NOTHING) => return Ok(true),
                    Some(left) => forbidden = left,
                }
            }
        }
        Ok(false)
    }

    /// Whether some text ends the lexeme, as this terminal if one is asked for, so that any
    /// terminal may follow, behind a separator or at once.
    fn ends(
        &mut self,
        from: (u32, u32),
        separator: &Separator,
        wanted: Option<u32>,
    ) -> Result<bool, Error> {
        if self.is_open_line(from, wanted) || self.ends_shortly(from, separator, wanted)? {
            return Ok(true);
        }
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::from_iter([from]);
        let mut queue = vec![from];
        let mut at = 0;
        let most = if wanted.is_some() { TRIALS } else { PAIRS };
        while at < queue.len() && queue.len() < most {
            for byte in self.bytes_towards(queue[at].0, wanted)? {
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

    /// Bytes, one of each class, that a thread of the terminal asked for reads; all of them if none
    /// is asked for.
    fn bytes_towards(&self, lexeme: u32, wanted: Option<u32>) -> Result<Vec<u8>, Error> {
        let mut bytes = self.lexer.representatives().to_vec();
        let Some(wanted) = wanted else { return Ok(bytes) };
        let mut read = ByteSet::default();
        for &thread in self.lexer.lists.get(lexeme) {
            if self.lexer.terminal(thread) == wanted && self.lexer.kind(thread) == Kind::Lexeme {
                read = read.union(self.lexer.bytes_read(thread)?);
            }
        }
        bytes.retain(|&byte| read.contains(byte));
        Ok(bytes)
    }

    /// The same along the shortest texts of the threads: nearly always enough.
    fn ends_shortly(
        &mut self,
        from: (u32, u32),
        separator: &Separator,
        wanted: Option<u32>,
    ) -> Result<bool, Error> {
        for &thread in &*self.lexer.lists.copy(from.0) {
            let is_other = |wanted| self.lexer.terminal(thread) != wanted;
            if self.lexer.kind(thread) != Kind::Lexeme || wanted.is_some_and(is_other) {
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

    /// Whether a lexeme is the end of a line and nothing stands in its way: then it can be brought
    /// to any column.
    fn is_open_line(&self, (lexeme, forbidden): (u32, u32), wanted: Option<u32>) -> bool {
        let Some(layout) = &self.layout else { return false };
        let one = match (self.lexer.lists.get(lexeme), forbidden) {
            (&[one], NOTHING) if self.lexer.column(one) != PLAIN => one,
            _ => return false,
        };
        let is_newline = |wanted: u32| wanted == layout.newline;
        is_newline(self.lexer.terminal(one)) && wanted.is_none_or(is_newline)
    }

    /// One byte: whether the lexeme may end there, and the pair if it goes on.
    #[expect(clippy::type_complexity, reason = "a pair of lexer states, twice")]
    fn trial(
        &mut self,
        (lexeme, forbidden): (u32, u32),
        byte: u8,
        separator: &Separator,
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
            // What the end of a line leaves hinders nothing that can be spelled.
            let line = self.layout.as_ref().filter(|layout| layout.newline == one.terminal);
            let line = line.is_some_and(|layout| self.is_within(one.left, layout.left));
            ended |= fits && (line || self.is_gone(one.left, separator)?);
        }
        let alive = outcome.on != NOTHING || outcome.endings != NOTHING;
        let next = self.scans.pair(outcome.on);
        Ok(alive.then(|| (ended || self.is_open_line(next, wanted), next)))
    }
}
