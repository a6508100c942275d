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

use crate::indentation::NO_COLUMN;
use crate::interner::NOTHING;
use crate::lexer::ThreadKind;
use crate::state::GrammarState;

/// Pairs of lexer states looked at before a lexeme is given up.
const MAX_STATES: usize = 20_000;
/// The same for one terminal among all others.
const MAX_STATES_PER_TERMINAL: usize = 2_000;
/// Ignored terminals, and bytes behind them, of which separators are made.
const MAX_SEPARATOR_PARTS: usize = 4;

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
    unignored_threads: u32,
    /// Those of them that are ignored, so that they are left wherever it stands.
    ignored: u32,
}

/// What was proved.
#[derive(Debug, Default)]
pub(crate) struct DeadEndProof {
    separator: Option<Separator>,
    /// Terminals behind which stacks may not be sound, ascending.
    unproven: Vec<u32>,
    /// Pairs (lexeme under way, forbidden): it can be ended in front of a separator.
    lexeme_verdicts: FxHashMap<(u32, u32), bool>,
    /// What a separator leaves, per context.
    separator_threads: FxHashMap<u32, u32>,
}

impl DeadEndProof {
    /// Terminals behind which stacks may not be sound, ascending.
    pub(crate) fn unproven(&self) -> &[u32] {
        &self.unproven
    }

    /// Whether there is one.
    pub(crate) fn exists(&self) -> bool {
        self.separator.is_some()
    }

    /// A text that separates lexemes; empty if none is known.
    pub(crate) fn separator_bytes(&self) -> Vec<u8> {
        let texts = self.separator.as_ref().map(|one| Arc::clone(&one.texts));
        texts.and_then(|texts| texts.first().cloned()).unwrap_or_default()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.lexeme_verdicts.len() * 20 + self.separator_threads.len() * 12
    }
}

impl GrammarState {
    /// Looks for a separator that works for all of these terminals.
    pub(crate) fn prove_no_dead_ends(&mut self, terminals: &[u32]) -> Result<(), Error> {
        let lines = match &self.indentation {
            Some(indentation) if indentation.needed_levels.is_none() => return Ok(()),
            Some(indentation) => indentation.line_end_threads,
            None => NOTHING,
        };
        let candidates = self.separator_candidates(terminals)?;
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
            let unignored_threads = left;
            let left = self.union_threads(unignored_threads, lines);
            let separator = Separator { texts, left, unignored_threads, ignored };
            let mut context_dependent = Vec::new();
            let start = self.start_of_all(terminals, &[]);
            for &terminal in terminals {
                self.gss.meter.reset();
                if !self.is_always_spellable((terminals, start), terminal, &separator)? {
                    context_dependent.push(terminal);
                }
            }
            self.gss.meter.reset();
            if let Some(unproven) = self.gss.lr0.mark_always_spellable(&context_dependent) {
                self.dead_end_proof.unproven = unproven;
                self.dead_end_proof.separator = Some(separator);
                break;
            }
        }
        Ok(())
    }

    /// Texts that are read as ignored lexemes whatever may stand there, blanks first, with the
    /// threads that could go on: single bytes, one of each class, and the shortest text of each
    /// ignored terminal with one of those bytes behind.
    fn separator_candidates(&mut self, terminals: &[u32]) -> Result<Vec<(Vec<u8>, u32)>, Error> {
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
            if self.lexer.step(alone, byte, &mut self.gss.meter)?.is_match() {
                let left = self.threads_after_ignored(start, &[byte])?;
                found.extend(left.map(|left| (vec![byte], left)));
            }
        }
        let single = found.clone();
        for at in 0..self.ignored.len().min(MAX_SEPARATOR_PARTS) {
            let one = self.lexer.start(std::iter::once(self.ignored[at]));
            let threads = self.lexer.lists.copy(one);
            let Some(&thread) = threads.first() else { continue };
            let shortest = self.lexer.shortest_completion(thread)?;
            for (byte, _) in single.iter().take(MAX_SEPARATOR_PARTS).filter(|_| shortest.len() > 1)
            {
                let text = [&shortest, &byte[..]].concat();
                let left = self.threads_after_ignored(start, &text)?;
                found.extend(left.map(|left| (text, left)));
            }
        }
        // Behind a separator the text may end, whatever was looked ahead for.
        found.retain(|one| self.lexer.may_end(one.1));
        Ok(found)
    }

    /// What a text leaves in a context where it is read as ignored lexemes; `None` if it is not.
    fn threads_after_ignored(&mut self, context: u32, text: &[u8]) -> Result<Option<u32>, Error> {
        let mut lexer_states = vec![self.lexer_states.intern(context, NOTHING)];
        for (at, &byte) in text.iter().enumerate() {
            let mut next = Vec::new();
            for lexer_state in lexer_states {
                let outcome = self.outcome(lexer_state, byte)?;
                next.extend(Some(outcome.continued).filter(|&on| on != NOTHING));
                for one in &*self.lexer_states.endings(outcome.endings) {
                    if !self.is_ignored(one.terminal) {
                        continue;
                    }
                    if at + 1 == text.len() {
                        return Ok(Some(one.left));
                    }
                    next.push(self.lexer_states.intern(context, one.left));
                }
            }
            next.sort_unstable();
            next.dedup();
            lexer_states = next;
        }
        Ok(None)
    }

    /// Whether a terminal can be spelled between two separators in all contexts.
    ///
    /// A terminal that other lexemes become has to be spelled as itself where none of them may
    /// stand, and as the first of them that may wherever some may.
    fn is_always_spellable(
        &mut self,
        (terminals, start): (&[u32], u32),
        target: u32,
        separator: &Separator,
    ) -> Result<bool, Error> {
        if self.sublanguages.has(target) {
            return self.can_outlive(target, separator.left);
        }
        let indentation = self.indentation.as_ref();
        if indentation.is_some_and(|indentation| indentation.is_level(target)) {
            // Columns tell it.
            return Ok(true);
        }
        // No line ends directly behind another one.
        let is_newline = indentation.is_some_and(|indentation| indentation.newline == target);
        let left = if is_newline { separator.unignored_threads } else { separator.left };
        let of_it = self.replaced.iter().filter(|one| one.text as u32 == target);
        let mut patterns: Vec<u32> = of_it
            .map(|one| one.pattern as u32)
            .filter(|one| terminals.contains(one) || self.is_ignored(*one))
            .collect();
        patterns.sort_unstable();
        for at in 0..patterns.len() {
            let without = [&patterns[..at], &[target]].concat();
            let start = self.start_of_all(terminals, &without);
            if !self.can_end((start, left), separator, Some(self.replacement_terminal(target)))? {
                return Ok(false);
            }
        }
        let start = match patterns.is_empty() {
            true => start,
            false => self.start_of_all(terminals, &patterns),
        };
        self.can_end((start, left), separator, Some(target))
    }

    /// Whether a terminal can be spelled between two separators in a context, behind what
    /// [`Core::fits`] there.
    pub(crate) fn is_spellable_in(&mut self, context: u32, target: u32) -> Result<bool, Error> {
        let Some(separator) = self.dead_end_proof.separator.clone() else { return Ok(false) };
        let left = self.threads_after_separator(context, &separator)?;
        self.can_end((context, left), &separator, Some(target))
    }

    /// Whether what must not match is gone behind a separator, or is what one leaves in this
    /// context: then settled stacks can be completed.
    pub(crate) fn fits_separator(
        &mut self,
        context: u32,
        negative_threads: u32,
    ) -> Result<bool, Error> {
        if negative_threads == NOTHING || self.dead_end_proof.unproven.is_empty() {
            return Ok(true);
        }
        let Some(separator) = self.dead_end_proof.separator.clone() else { return Ok(false) };
        if self.dies_with_separator(negative_threads, &separator)? {
            return Ok(true);
        }
        let left = self.threads_after_separator(context, &separator)?;
        Ok(self.is_subset(negative_threads, left))
    }

    /// Threads that could go on after a separator in a context.
    fn threads_after_separator(
        &mut self,
        context: u32,
        separator: &Separator,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.dead_end_proof.separator_threads.get(&context) {
            return Ok(known);
        }
        let lines =
            self.indentation.as_ref().map_or(NOTHING, |indentation| indentation.line_end_threads);
        let mut left = self.union_threads(separator.ignored, lines);
        for text in &*separator.texts {
            let more = self.threads_after_ignored(context, text)?;
            left = self.union_threads(left, more.unwrap_or(separator.left));
        }
        self.dead_end_proof.separator_threads.insert(context, left);
        Ok(left)
    }

    fn is_subset(&self, set: u32, other: u32) -> bool {
        let other = self.lexer.lists.get(other);
        self.lexer.lists.get(set).iter().all(|one| other.binary_search(one).is_ok())
    }

    /// Whether what a lexeme leaves is gone behind a separator.
    pub(crate) fn dies_at_separator(&mut self, left: u32) -> Result<bool, Error> {
        let Some(separator) = self.dead_end_proof.separator.clone() else { return Ok(false) };
        self.dies_with_separator(left, &separator)
    }

    /// Whether the certificate shows that nothing stands in the way of a lexeme, on stacks that
    /// are settled; between lexemes, if what must not match [`Core::fits`] there.
    pub(crate) fn is_lexeme_safe(
        &mut self,
        lexeme: u32,
        negative_threads: u32,
    ) -> Result<bool, Error> {
        if let Some(&lexeme_verdicts) =
            self.dead_end_proof.lexeme_verdicts.get(&(lexeme, negative_threads))
        {
            return Ok(lexeme_verdicts);
        }
        let Some(separator) = self.dead_end_proof.separator.clone() else { return Ok(false) };
        let lexeme_verdicts = match lexeme {
            NOTHING => self.is_harmless(negative_threads, &separator)?,
            _ => self.can_end((lexeme, negative_threads), &separator, None)?,
        };
        self.dead_end_proof.lexeme_verdicts.insert((lexeme, negative_threads), lexeme_verdicts);
        Ok(lexeme_verdicts)
    }

    /// Whether any robust terminal can be spelled although some threads must not match: because
    /// they die with a separator, or because a separator leaves them too.
    fn is_harmless(&mut self, negative_threads: u32, separator: &Separator) -> Result<bool, Error> {
        Ok(self.is_subset(negative_threads, separator.left)
            || self.dies_with_separator(negative_threads, separator)?)
    }

    /// Whether some threads that must not match die with a separator, or are what all leave.
    fn dies_with_separator(
        &mut self,
        negative_threads: u32,
        separator: &Separator,
    ) -> Result<bool, Error> {
        if self.is_subset(negative_threads, separator.ignored) {
            return Ok(true);
        }
        // Where a comment was read, the end of a line may follow.
        let threads = self.lexer.lists.get(negative_threads);
        let is_comment = |one: &u32| {
            let terminal = self.lexer.terminal(*one);
            self.indentation
                .as_ref()
                .is_some_and(|indentation| indentation.line_comments.contains(&terminal))
        };
        let line: &[Vec<u8>] = if threads.iter().any(is_comment) { &[vec![b'\n']] } else { &[] };
        for text in separator.texts.iter().chain(line) {
            let mut negative_threads = negative_threads;
            for &byte in text {
                match self.step_negative_threads(negative_threads, byte)? {
                    None => break,
                    Some(NOTHING) => return Ok(true),
                    Some(left) => negative_threads = left,
                }
            }
        }
        Ok(false)
    }

    /// Whether some text ends the lexeme, as this terminal if one is asked for, so that any
    /// terminal may follow, behind a separator or at once.
    fn can_end(
        &mut self,
        from: (u32, u32),
        separator: &Separator,
        target: Option<u32>,
    ) -> Result<bool, Error> {
        if self.is_open_line_end(from, target)
            || self.ends_on_shortest_path(from, separator, target)?
        {
            return Ok(true);
        }
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::from_iter([from]);
        let mut queue = vec![from];
        let mut at = 0;
        let most = if target.is_some() { MAX_STATES_PER_TERMINAL } else { MAX_STATES };
        while at < queue.len() && queue.len() < most {
            for byte in self.bytes_towards(queue[at].0, target)? {
                let Some((ended, next)) = self.try_byte(queue[at], byte, separator, target)? else {
                    continue;
                };
                if ended {
                    return Ok(true);
                }
                if next.0 != NOTHING && self.may_become(next.0, target) && seen.insert(next) {
                    queue.push(next);
                }
            }
            at += 1;
        }
        Ok(false)
    }

    /// Whether a lexeme under way may become a terminal.
    fn may_become(&self, lexeme: u32, target: Option<u32>) -> bool {
        let mut threads = self.lexer.lists.get(lexeme).iter();
        target.is_none_or(|target| threads.any(|&one| self.lexer.terminal(one) == target))
    }

    /// Bytes, one of each class, that a thread of the terminal asked for reads; all of them if none
    /// is asked for.
    fn bytes_towards(&self, lexeme: u32, target: Option<u32>) -> Result<Vec<u8>, Error> {
        let mut bytes = self.lexer.representatives().to_vec();
        let Some(target) = target else { return Ok(bytes) };
        let mut read = ByteSet::default();
        for &thread in self.lexer.lists.get(lexeme) {
            if self.lexer.terminal(thread) == target
                && self.lexer.kind(thread) == ThreadKind::Lexeme
            {
                read = read.union(self.lexer.readable_bytes(thread)?);
            }
        }
        bytes.retain(|&byte| read.contains(byte));
        Ok(bytes)
    }

    /// The same along the shortest texts of the threads: nearly always enough.
    fn ends_on_shortest_path(
        &mut self,
        from: (u32, u32),
        separator: &Separator,
        target: Option<u32>,
    ) -> Result<bool, Error> {
        for &thread in &*self.lexer.lists.copy(from.0) {
            let is_other = |target| self.lexer.terminal(thread) != target;
            if self.lexer.kind(thread) != ThreadKind::Lexeme || target.is_some_and(is_other) {
                continue;
            }
            let mut pair = from;
            for &byte in &*self.lexer.shortest_completion(thread)? {
                match self.try_byte(pair, byte, separator, target)? {
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
    fn is_open_line_end(
        &self,
        (lexeme, negative_threads): (u32, u32),
        target: Option<u32>,
    ) -> bool {
        let Some(indentation) = &self.indentation else { return false };
        let one = match (self.lexer.lists.get(lexeme), negative_threads) {
            (&[one], NOTHING) if self.lexer.column(one) != NO_COLUMN => one,
            _ => return false,
        };
        let is_newline = |target: u32| target == indentation.newline;
        is_newline(self.lexer.terminal(one)) && target.is_none_or(is_newline)
    }

    /// One byte: whether the lexeme may end there, and the pair if it goes on.
    #[expect(clippy::type_complexity, reason = "a pair of lexer states, twice")]
    fn try_byte(
        &mut self,
        (lexeme, negative_threads): (u32, u32),
        byte: u8,
        separator: &Separator,
        target: Option<u32>,
    ) -> Result<Option<(bool, (u32, u32))>, Error> {
        let lexer_state = self.lexer_states.intern(lexeme, negative_threads);
        let outcome = self.outcome(lexer_state, byte)?;
        let mut ended = false;
        for one in &*self.lexer_states.endings(outcome.endings) {
            let fits_separator = match target {
                Some(target) => target == one.terminal,
                None => !self.is_lost_replacement(one.terminal),
            };
            // What the end of a line leaves hinders nothing that can be spelled.
            let line =
                self.indentation.as_ref().filter(|indentation| indentation.newline == one.terminal);
            let line = line
                .is_some_and(|indentation| self.is_subset(one.left, indentation.line_end_threads));
            ended |= fits_separator && (line || self.dies_with_separator(one.left, separator)?);
        }
        let alive = outcome.continued != NOTHING || outcome.endings != NOTHING;
        let next = self.lexer_states.pair(outcome.continued);
        Ok(alive.then(|| (ended || self.is_open_line_end(next, target), next)))
    }
}
