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

use formalm_core::{ByteSet, Error, memory_bytes};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::NOTHING;
use crate::indentation::NO_COLUMN;
use crate::lexer::thread_sets::ThreadKind;
use crate::lexer::transition_builder::TransitionBuilder;
use crate::lr0::Lr0Automaton;
use crate::sublanguages::Sublanguages;

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

memory_bytes!(DeadEndProof { lexeme_verdicts, separator_threads; separator, unproven });

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

    /// Returns `true` if the negative threads die with a separator or are those that a separator
    /// leaves in this context. Completable stacks can then be completed.
    pub(crate) fn fits_separator(
        &mut self,
        context: u32,
        negative_threads: u32,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        if negative_threads == NOTHING || self.unproven.is_empty() {
            return Ok(true);
        }
        let Some(separator) = self.separator.clone() else { return Ok(false) };
        if separator.absorbs(negative_threads, transitions)? {
            return Ok(true);
        }
        let left = self.threads_after_separator(context, &separator, transitions)?;
        Ok(transitions.threads.is_subset(negative_threads, left))
    }

    /// Returns the threads that may continue after a separator in a context.
    fn threads_after_separator(
        &mut self,
        context: u32,
        separator: &Separator,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.separator_threads.get(&context) {
            return Ok(known);
        }
        let line_ends = transitions.line_ends.threads;
        let mut left = transitions.threads.union(separator.ignored, line_ends);
        for text in &*separator.texts {
            let more = transitions.threads_after_ignored(context, text)?;
            left = transitions.threads.union(left, more.unwrap_or(separator.left));
        }
        self.separator_threads.insert(context, left);
        Ok(left)
    }

    /// Returns `true` if the threads left by a lexeme die with a separator.
    pub(crate) fn dies_at_separator(
        &mut self,
        left: u32,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        let Some(separator) = self.separator.clone() else { return Ok(false) };
        separator.absorbs(left, transitions)
    }

    /// Returns `true` if the proof shows that a lexeme can end on completable stacks. Between
    /// lexemes, the negative threads must also satisfy [`DeadEndProof::fits_separator`].
    pub(crate) fn is_lexeme_safe(
        &mut self,
        lexeme: u32,
        negative_threads: u32,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        if let Some(&lexeme_verdicts) = self.lexeme_verdicts.get(&(lexeme, negative_threads)) {
            return Ok(lexeme_verdicts);
        }
        let Some(separator) = self.separator.clone() else { return Ok(false) };
        let lexeme_verdicts = match lexeme {
            NOTHING => separator.permits(negative_threads, transitions)?,
            _ => separator.can_follow((lexeme, negative_threads), None, transitions)?,
        };
        self.lexeme_verdicts.insert((lexeme, negative_threads), lexeme_verdicts);
        Ok(lexeme_verdicts)
    }

    /// Returns `true` if a terminal can be spelled between two separators in a context, after
    /// negative threads that satisfy [`DeadEndProof::fits_separator`] there.
    pub(crate) fn is_spellable_in(
        &mut self,
        context: u32,
        target: u32,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        let Some(separator) = self.separator.clone() else { return Ok(false) };
        let left = self.threads_after_separator(context, &separator, transitions)?;
        separator.can_follow((context, left), Some(target), transitions)
    }
}

impl Separator {
    /// Returns `true` if every always-spellable terminal can be spelled despite these negative
    /// threads: they die with a separator, or a separator leaves them too.
    fn permits(
        &self,
        negative_threads: u32,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        Ok(transitions.threads.is_subset(negative_threads, self.left)
            || self.absorbs(negative_threads, transitions)?)
    }

    /// Returns `true` if negative threads die with a separator, or belong to those that every
    /// separator leaves.
    fn absorbs(
        &self,
        negative_threads: u32,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        if transitions.threads.is_subset(negative_threads, self.ignored) {
            return Ok(true);
        }
        // After a comment, a line end may follow.
        let threads = transitions.threads.lists.get(negative_threads);
        let comments = &transitions.line_ends.comments;
        let is_comment = |one: &u32| comments.contains(&transitions.threads.terminal(*one));
        let line: &[Vec<u8>] = if threads.iter().any(is_comment) { &[vec![b'\n']] } else { &[] };
        for text in self.texts.iter().chain(line) {
            let mut negative_threads = negative_threads;
            for &byte in text {
                match transitions.step_negative_threads(negative_threads, byte)? {
                    None => break,
                    Some(NOTHING) => return Ok(true),
                    Some(left) => negative_threads = left,
                }
            }
        }
        Ok(false)
    }

    /// Returns `true` if some string ends the lexeme, as `target` if given, so that every terminal
    /// may follow at once or after this separator.
    fn can_follow(
        &self,
        from: (u32, u32),
        target: Option<u32>,
        transitions: &mut TransitionBuilder<'_>,
    ) -> Result<bool, Error> {
        LexemeEndSearch { separator: self, target, transitions }.can_end(from)
    }
}

/// A search for a string that ends a lexeme so that a separator can follow.
struct LexemeEndSearch<'a, 'b> {
    separator: &'a Separator,
    /// The terminal that the lexeme is to become; any if `None`.
    target: Option<u32>,
    transitions: &'a mut TransitionBuilder<'b>,
}

impl LexemeEndSearch<'_, '_> {
    /// Searches breadth-first for a string that ends the lexeme.
    fn can_end(&mut self, from: (u32, u32)) -> Result<bool, Error> {
        if self.is_open_line_end(from) || self.ends_on_shortest_path(from)? {
            return Ok(true);
        }
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::from_iter([from]);
        let mut queue = vec![from];
        let mut at = 0;
        let most = if self.target.is_some() { MAX_STATES_PER_TERMINAL } else { MAX_STATES };
        while at < queue.len() && queue.len() < most {
            for byte in self.bytes_towards(queue[at].0)? {
                let Some((ended, next)) = self.try_byte(queue[at], byte)? else {
                    continue;
                };
                if ended {
                    return Ok(true);
                }
                if next.0 != NOTHING && self.may_become(next.0) && seen.insert(next) {
                    queue.push(next);
                }
            }
            at += 1;
        }
        Ok(false)
    }

    /// Returns `true` if the current lexeme may become `target`.
    fn may_become(&self, lexeme: u32) -> bool {
        let mut threads = self.transitions.threads.lists.get(lexeme).iter();
        self.target.is_none_or(|target| {
            threads.any(|&one| self.transitions.threads.terminal(one) == target)
        })
    }

    /// Returns one byte per class that a thread of `target` reads; all bytes without a target.
    fn bytes_towards(&self, lexeme: u32) -> Result<Vec<u8>, Error> {
        let mut bytes = self.transitions.threads.representatives().to_vec();
        let Some(target) = self.target else { return Ok(bytes) };
        let mut read = ByteSet::default();
        for &thread in self.transitions.threads.lists.get(lexeme) {
            if self.transitions.threads.terminal(thread) == target
                && self.transitions.threads.kind(thread) == ThreadKind::Lexeme
            {
                read = read.union(self.transitions.threads.readable_bytes(thread)?);
            }
        }
        bytes.retain(|&byte| read.contains(byte));
        Ok(bytes)
    }

    /// As [`LexemeEndSearch::can_end`], along the shortest completions of the threads only, which
    /// almost always suffices.
    fn ends_on_shortest_path(&mut self, from: (u32, u32)) -> Result<bool, Error> {
        for &thread in &*self.transitions.threads.lists.copy(from.0) {
            let is_other = |target| self.transitions.threads.terminal(thread) != target;
            if self.transitions.threads.kind(thread) != ThreadKind::Lexeme
                || self.target.is_some_and(is_other)
            {
                continue;
            }
            let mut pair = from;
            for &byte in &*self.transitions.threads.shortest_completion(thread)? {
                match self.try_byte(pair, byte)? {
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
    fn is_open_line_end(&self, (lexeme, negative_threads): (u32, u32)) -> bool {
        let Some(lines) = &self.transitions.rules.lines else { return false };
        let one = match (self.transitions.threads.lists.get(lexeme), negative_threads) {
            (&[one], NOTHING) if self.transitions.threads.column(one) != NO_COLUMN => one,
            _ => return false,
        };
        let is_newline = |target: u32| target == lines.newline;
        is_newline(self.transitions.threads.terminal(one)) && self.target.is_none_or(is_newline)
    }

    /// Reads one byte. Returns whether the lexeme may end there, and the pair if it continues.
    #[expect(clippy::type_complexity, reason = "a pair of lexer states, twice")]
    fn try_byte(
        &mut self,
        (lexeme, negative_threads): (u32, u32),
        byte: u8,
    ) -> Result<Option<(bool, (u32, u32))>, Error> {
        let lexer_state = self.transitions.states.intern(lexeme, negative_threads);
        let outcome = self.transitions.outcome(lexer_state, byte)?;
        let mut ended = false;
        for one in &*self.transitions.states.endings(outcome.endings) {
            let is_target = match self.target {
                Some(target) => target == one.terminal,
                None => !self.transitions.rules.is_lost_replacement(one.terminal),
            };
            // What a line end leaves forbids nothing that can be spelled.
            let line = self.transitions.rules.ends_line(one.terminal) && {
                let left = self.transitions.line_ends.threads;
                self.transitions.threads.is_subset(one.negative_threads, left)
            };
            ended |= is_target
                && (line || self.separator.absorbs(one.negative_threads, self.transitions)?);
        }
        let alive = outcome.continued != NOTHING || outcome.endings != NOTHING;
        let next = self.transitions.states.pair(outcome.continued);
        Ok(alive.then(|| (ended || self.is_open_line_end(next), next)))
    }
}

/// The search for a proof. Step 2 judges each separator by the terminals that it makes always
/// spellable.
pub(crate) struct DeadEndProver<'a> {
    pub(crate) transitions: TransitionBuilder<'a>,
    pub(crate) sublanguages: &'a Sublanguages,
    pub(crate) lr0: &'a mut Lr0Automaton,
    /// The terminals that occur in rules.
    pub(crate) terminals: &'a [u32],
}

impl DeadEndProver<'_> {
    /// Looks for a separator that works for all terminals, and returns the proof.
    pub(crate) fn prove(&mut self) -> Result<DeadEndProof, Error> {
        let lines = self.transitions.line_ends.threads;
        let candidates = self.separator_candidates()?;
        let mut tried: FxHashSet<u32> = FxHashSet::default();
        for left in candidates.iter().map(|one| one.1) {
            if !tried.insert(left) {
                continue;
            }
            let all = self.transitions.threads.lists.copy(left);
            // A string that leaves a subset of the threads forbids less.
            let within = |one: &u32| all.binary_search(one).is_ok();
            let leaves_less =
                |left: u32| self.transitions.threads.lists.get(left).iter().all(within);
            let alike = candidates.iter().filter(|one| leaves_less(one.1));
            let texts = alike.map(|one| one.0.clone()).collect();
            let is_ignored = |one: &u32| {
                self.transitions.rules.is_ignored(self.transitions.threads.terminal(*one))
            };
            let ignored: Vec<u32> = all.iter().copied().filter(is_ignored).collect();
            let ignored = self.transitions.threads.lists.intern(&ignored);
            let unignored_threads = left;
            let left = self.transitions.threads.union(unignored_threads, lines);
            let separator = Separator { texts, left, unignored_threads, ignored };
            let mut context_dependent = Vec::new();
            let start = self.start_of_all(&[]);
            for &terminal in self.terminals {
                self.transitions.meter.reset();
                if !self.is_always_spellable(start, terminal, &separator)? {
                    context_dependent.push(terminal);
                }
            }
            self.transitions.meter.reset();
            if let Some(unproven) = self.lr0.mark_always_spellable(&context_dependent) {
                let separator = Some(separator);
                return Ok(DeadEndProof { separator, unproven, ..DeadEndProof::default() });
            }
        }
        Ok(DeadEndProof::default())
    }

    /// Returns strings that are read as ignored lexemes whatever is allowed, whitespace first, with
    /// the threads that may continue. Candidates are single bytes, one per class, and the shortest
    /// lexeme of each ignored terminal followed by such a byte.
    fn separator_candidates(&mut self) -> Result<Vec<(Vec<u8>, u32)>, Error> {
        let start = self.start_of_all(&[]);
        let common = [b' ', b'\n', b'\t'];
        let bytes = common.into_iter().chain(self.transitions.threads.representatives().to_vec());
        let mut tried: FxHashSet<u8> = FxHashSet::default();
        let mut found = Vec::new();
        let alone =
            self.transitions.threads.start(self.transitions.rules.ignored.clone().into_iter());
        for byte in bytes {
            if !tried.insert(self.transitions.threads.classes()[usize::from(byte)]) {
                continue;
            }
            // If no ignored terminal matches, reading all terminals is unnecessary.
            if self.transitions.step_threads(alone, byte)?.is_match() {
                let left = self.transitions.threads_after_ignored(start, &[byte])?;
                found.extend(left.map(|left| (vec![byte], left)));
            }
        }
        let single = found.clone();
        for at in 0..self.transitions.rules.ignored.len().min(MAX_SEPARATOR_PARTS) {
            let one =
                self.transitions.threads.start(std::iter::once(self.transitions.rules.ignored[at]));
            let threads = self.transitions.threads.lists.copy(one);
            let Some(&thread) = threads.first() else { continue };
            let shortest = self.transitions.threads.shortest_completion(thread)?;
            for (byte, _) in single.iter().take(MAX_SEPARATOR_PARTS).filter(|_| shortest.len() > 1)
            {
                let text = [&shortest, &byte[..]].concat();
                let left = self.transitions.threads_after_ignored(start, &text)?;
                found.extend(left.map(|left| (text, left)));
            }
        }
        // The input may end after a separator, whatever lookahead is pending.
        found.retain(|one| self.transitions.threads.may_end(one.1));
        Ok(found)
    }

    /// Returns `true` if a terminal can be spelled between two separators in every context.
    ///
    /// A terminal that other lexemes become must be spellable as itself where none of these is
    /// allowed, and as the first allowed one where some are.
    fn is_always_spellable(
        &mut self,
        start: u32,
        target: u32,
        separator: &Separator,
    ) -> Result<bool, Error> {
        if self.sublanguages.has(target) {
            let TransitionBuilder { threads, meter, .. } = &mut self.transitions;
            return self.sublanguages.can_outlive(target, separator.left, threads, meter);
        }
        let rules = self.transitions.rules;
        if rules.is_level(target) {
            // The column produces it.
            return Ok(true);
        }
        // No line end directly follows another.
        let left =
            if rules.ends_line(target) { separator.unignored_threads } else { separator.left };
        let of_it = rules.replaced.iter().filter(|one| one.text as u32 == target);
        let mut patterns: Vec<u32> = of_it
            .map(|one| one.pattern as u32)
            .filter(|one| self.terminals.contains(one) || rules.is_ignored(*one))
            .collect();
        patterns.sort_unstable();
        for at in 0..patterns.len() {
            let without = [&patterns[..at], &[target]].concat();
            let start = self.start_of_all(&without);
            let replaced = Some(rules.replacement_terminal(target));
            if !separator.can_follow((start, left), replaced, &mut self.transitions)? {
                return Ok(false);
            }
        }
        let start = match patterns.is_empty() {
            true => start,
            false => self.start_of_all(&patterns),
        };
        separator.can_follow((start, left), Some(target), &mut self.transitions)
    }

    fn start_of_all(&mut self, without: &[u32]) -> u32 {
        let TransitionBuilder { rules, threads, .. } = &mut self.transitions;
        rules.start_of_all(self.terminals, without, threads)
    }
}
