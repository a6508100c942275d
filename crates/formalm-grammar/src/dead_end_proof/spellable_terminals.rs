//! Step 1 of the proof: separators, and the terminals that can be spelled between them in every
//! context.
//!
//! It suffices to examine the context that allows all terminals: with fewer terminals, less
//! competes and fewer negative threads remain. Whether the current lexeme can be brought to such an
//! end is decided per lexer state, not per stack.
//!
//! The terminals that fail are context-dependent; [`super::completable_states`] determines which
//! stacks the others complete.

use std::sync::Arc;

use formalm_core::{ByteSet, Error};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar_state::GrammarState;
use crate::indentation::NO_COLUMN;
use crate::lexer::ThreadKind;
use crate::list_interner::NOTHING;

/// Pairs of lexer states explored to end a lexeme before giving up. Chosen, not measured.
const MAX_STATES: usize = 20_000;
/// As [`MAX_STATES`], for one terminal among all others. Chosen, not measured.
const MAX_STATES_PER_TERMINAL: usize = 2_000;
/// Ignored terminals, and bytes after them, from which separators are built. Chosen, not measured.
const MAX_SEPARATOR_PARTS: usize = 4;

/// Strings that are always read as ignored lexemes.
#[derive(Clone, Debug)]
struct Separator {
    /// The strings. Any of them may be needed: a comment continues over a space but ends at a line
    /// break, while only a comment ends what continues over spaces.
    texts: Arc<[Vec<u8>]>,
    /// Threads that may continue after the separator and become negative threads. Every terminal
    /// can be spelled regardless of them.
    left: u32,
    /// Those of them that separators leave, without those of a line end.
    unignored_threads: u32,
    /// Those of them that belong to ignored terminals, so that every separator leaves them.
    ignored: u32,
}

/// The result of the proof.
#[derive(Debug, Default)]
pub(crate) struct DeadEndProof {
    separator: Option<Separator>,
    /// Terminals after which a stack is not proven completable, ascending.
    unproven: Vec<u32>,
    /// Pairs (current lexeme, negative threads) and whether the lexeme can end before a separator.
    lexeme_verdicts: FxHashMap<(u32, u32), bool>,
    /// The threads that a separator leaves, per context.
    separator_threads: FxHashMap<u32, u32>,
}

impl DeadEndProof {
    /// Returns the terminals after which a stack is not proven completable, ascending.
    pub(crate) fn unproven(&self) -> &[u32] {
        &self.unproven
    }

    /// Returns `true` if the proof succeeded.
    pub(crate) fn exists(&self) -> bool {
        self.separator.is_some()
    }

    /// Returns a separator; empty if none is known.
    pub(crate) fn separator_bytes(&self) -> Vec<u8> {
        let texts = self.separator.as_ref().map(|one| Arc::clone(&one.texts));
        texts.and_then(|texts| texts.first().cloned()).unwrap_or_default()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.lexeme_verdicts.len() * 20 + self.separator_threads.len() * 12
    }
}

impl GrammarState {
    /// Looks for a separator that works for all of these terminals, and stores the proof.
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
            // A string that leaves a subset of the threads forbids less.
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

    /// Returns strings that are read as ignored lexemes whatever is allowed, whitespace first, with
    /// the threads that may continue. Candidates are single bytes, one per class, and the shortest
    /// lexeme of each ignored terminal followed by such a byte.
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
            // If no ignored terminal matches, reading all terminals is unnecessary.
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
        // The input may end after a separator, whatever lookahead is pending.
        found.retain(|one| self.lexer.may_end(one.1));
        Ok(found)
    }

    /// Returns the threads left by a string that is read as ignored lexemes in a context; `None` if
    /// it is not.
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
                        return Ok(Some(one.negative_threads));
                    }
                    next.push(self.lexer_states.intern(context, one.negative_threads));
                }
            }
            next.sort_unstable();
            next.dedup();
            lexer_states = next;
        }
        Ok(None)
    }

    /// Returns `true` if a terminal can be spelled between two separators in every context.
    ///
    /// A terminal that other lexemes become must be spellable as itself where none of these is
    /// allowed, and as the first allowed one where some are.
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
            // The column produces it.
            return Ok(true);
        }
        // No line end directly follows another.
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

    /// Returns `true` if a terminal can be spelled between two separators in a context, after
    /// negative threads that satisfy [`GrammarState::fits_separator`] there.
    pub(crate) fn is_spellable_in(&mut self, context: u32, target: u32) -> Result<bool, Error> {
        let Some(separator) = self.dead_end_proof.separator.clone() else { return Ok(false) };
        let left = self.threads_after_separator(context, &separator)?;
        self.can_end((context, left), &separator, Some(target))
    }

    /// Returns `true` if the negative threads die with a separator or are those that a separator
    /// leaves in this context. Completable stacks can then be completed.
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

    /// Returns the threads that may continue after a separator in a context.
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

    /// Returns `true` if the threads left by a lexeme die with a separator.
    pub(crate) fn dies_at_separator(&mut self, left: u32) -> Result<bool, Error> {
        let Some(separator) = self.dead_end_proof.separator.clone() else { return Ok(false) };
        self.dies_with_separator(left, &separator)
    }

    /// Returns `true` if the proof shows that a lexeme can end on completable stacks. Between
    /// lexemes, the negative threads must also satisfy [`GrammarState::fits_separator`].
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

    /// Returns `true` if every always-spellable terminal can be spelled despite these negative
    /// threads: they die with a separator, or a separator leaves them too.
    fn is_harmless(&mut self, negative_threads: u32, separator: &Separator) -> Result<bool, Error> {
        Ok(self.is_subset(negative_threads, separator.left)
            || self.dies_with_separator(negative_threads, separator)?)
    }

    /// Returns `true` if negative threads die with a separator, or belong to those that every
    /// separator leaves.
    fn dies_with_separator(
        &mut self,
        negative_threads: u32,
        separator: &Separator,
    ) -> Result<bool, Error> {
        if self.is_subset(negative_threads, separator.ignored) {
            return Ok(true);
        }
        // After a comment, a line end may follow.
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

    /// Returns `true` if some string ends the lexeme, as `target` if given, so that every terminal
    /// may follow at once or after a separator.
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

    /// Returns `true` if the current lexeme may become `target`.
    fn may_become(&self, lexeme: u32, target: Option<u32>) -> bool {
        let mut threads = self.lexer.lists.get(lexeme).iter();
        target.is_none_or(|target| threads.any(|&one| self.lexer.terminal(one) == target))
    }

    /// Returns one byte per class that a thread of `target` reads; all bytes without a target.
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

    /// As [`GrammarState::can_end`], along the shortest completions of the threads only, which
    /// almost always suffices.
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

    /// Returns `true` if the lexeme is a line end without negative threads, which can be extended
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

    /// Reads one byte. Returns whether the lexeme may end there, and the pair if it continues.
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
            let is_target = match target {
                Some(target) => target == one.terminal,
                None => !self.is_lost_replacement(one.terminal),
            };
            // What a line end leaves forbids nothing that can be spelled.
            let line =
                self.indentation.as_ref().filter(|indentation| indentation.newline == one.terminal);
            let line = line.is_some_and(|indentation| {
                self.is_subset(one.negative_threads, indentation.line_end_threads)
            });
            ended |=
                is_target && (line || self.dies_with_separator(one.negative_threads, separator)?);
        }
        let alive = outcome.continued != NOTHING || outcome.endings != NOTHING;
        let next = self.lexer_states.pair(outcome.continued);
        Ok(alive.then(|| (ended || self.is_open_line_end(next, target), next)))
    }
}
