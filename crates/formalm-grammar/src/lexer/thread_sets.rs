//! Thread sets: all terminals read in parallel, lazily.
//!
//! A *thread* is a terminal with a state of its automaton; a thread set is what other lexers call a
//! lexer state. Reading a byte yields a [`LexerStep`]: the terminals that match now and the threads
//! that can continue.
//!
//! A terminal with lookahead matches under a *condition*: its automaton continues with the input
//! after the lexeme, and a thread of another [`ThreadKind`] checks it in parallel to the following
//! lexemes.

use std::sync::Arc;

use formalm_automata::LEXEME_END;
use formalm_core::{ByteSet, Error, Interner, LazyDfa, ListInterner, StateId, sorted_union};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::indentation::{BEFORE_LINE_BREAK, ColumnCounter, NO_COLUMN, may_end_at};
use crate::lexer::terminal_automata::TerminalAutomata;
use crate::lexer::word_threads::ThreadsByByte;
use crate::limits::StepMeter;

/// The effect of a byte on a thread set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LexerStep {
    /// Threads that can continue; a set.
    pub(crate) next: u32,
    /// Terminals that match here, by priority; a list of the same interner.
    pub(crate) matches: u32,
    /// Terminals that match here if the following input is accepted from a state: pairs, by
    /// priority.
    pub(crate) conditions: u32,
    /// The first terminal whose conditional match is now confirmed, so that lower priorities lose;
    /// [`NONE_CONFIRMED`] otherwise.
    pub(crate) confirmed: u32,
    /// The column at which a line starts, if the newline terminal matches where lines matter;
    /// [`NO_COLUMN`] otherwise.
    pub(crate) column: u32,
}

impl LexerStep {
    /// Returns `true` if some terminal matches here, perhaps conditionally.
    pub(crate) fn is_match(self) -> bool {
        self.matches != NOTHING || self.conditions != NOTHING
    }
}

/// No conditional match was confirmed.
pub(crate) const NONE_CONFIRMED: u32 = u32::MAX;

/// In place of a matching terminal: a lookahead condition was violated.
pub(super) const VIOLATED: u32 = u32::MAX;

/// The step on a byte that no thread reads.
pub(crate) const DEAD: LexerStep = LexerStep {
    next: NOTHING,
    matches: NOTHING,
    conditions: NOTHING,
    confirmed: NONE_CONFIRMED,
    column: NO_COLUMN,
};

/// The role of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ThreadKind {
    /// Reads a lexeme.
    Lexeme,
    /// Reads the input after a lexeme, which must match.
    MustMatch,
    /// Reads the input after a match that is no lexeme, which must not match.
    MustNotMatch,
    /// As `MustNotMatch`, but undecided yet: if it matches, terminals of lower priority lose.
    Guard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LexerThread {
    pub(super) terminal: u32,
    pub(super) state: StateId,
    pub(super) kind: ThreadKind,
    /// The column of a thread of the newline terminal where lines matter; [`NO_COLUMN`] otherwise.
    column: u32,
}

/// Cached facts about a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadFacts {
    pub(super) accepting: bool,
    /// `true` if its automaton can read more; `None` if not computed.
    can_continue: Option<bool>,
}

/// The result of a step under construction.
#[derive(Debug, Default)]
pub(super) struct StepResults {
    pub(super) next: Vec<u32>,
    pub(super) matches: Vec<u32>,
    conditions: Vec<[u32; 2]>,
    pub(super) confirmed: Option<u32>,
    column: Option<u32>,
}

impl StepResults {
    fn clear(&mut self) {
        self.next.clear();
        self.matches.clear();
        self.conditions.clear();
        (self.confirmed, self.column) = (None, None);
    }
}

/// All threads and thread sets built so far.
#[derive(Debug)]
pub(crate) struct ThreadSets {
    /// `None` for terminals without strings.
    pub(super) automata: TerminalAutomata,
    /// `true` for terminals with lookahead.
    pub(super) has_lookahead: Vec<bool>,
    pub(super) threads: Interner<LexerThread>,
    pub(super) thread_facts: Vec<ThreadFacts>,
    /// `true` if every continuation satisfies a lookahead condition, by terminal and state.
    pub(super) universal_states: FxHashMap<(u32, u32), bool>,
    /// The rules for counting columns.
    pub(crate) columns: Option<ColumnCounter>,
    /// Thread sets and terminal lists.
    pub(crate) lists: ListInterner,
    /// Classes of bytes that no terminal distinguishes.
    classes: [u8; 256],
    pub(super) representatives: Vec<u8>,
    /// Per thread set and byte class an index into `outcomes`, plus one.
    rows: Vec<Option<Box<[u32]>>>,
    outcomes: Interner<LexerStep>,
    /// Minimum bytes to a match, per thread; zero if not computed.
    pub(super) distances: Vec<u32>,
    /// Shortest nonempty strings that complete threads.
    pub(super) completions: FxHashMap<u32, Arc<[u8]>>,
    /// Sets without redundant threads, by set.
    pub(super) irredundant: FxHashMap<u32, u32>,
    pub(super) by_byte: ThreadsByByte,
    /// Empty between steps.
    results: StepResults,
}

impl ThreadSets {
    /// Builds a lexer from terminal automata, the terminals with lookahead, and the rules for
    /// counting columns.
    pub(crate) fn new(
        automata: TerminalAutomata,
        has_lookahead: Vec<bool>,
        columns: Option<ColumnCounter>,
    ) -> ThreadSets {
        let mut starts = [false; 256];
        for byte in ColumnCounter::COLUMN_BYTES.iter().filter(|_| columns.is_some()) {
            starts[usize::from(*byte)] = true;
            starts[usize::from(*byte) + 1] = true;
        }
        for one in automata.iter().flatten() {
            for &byte in one.class_starts() {
                starts[usize::from(byte)] = true;
            }
        }
        let mut classes = [0; 256];
        let mut representatives = Vec::new();
        for byte in 0..=255u8 {
            if byte == 0 || starts[usize::from(byte)] {
                representatives.push(byte);
            }
            classes[usize::from(byte)] = (representatives.len() - 1) as u8;
        }
        ThreadSets {
            automata,
            has_lookahead,
            threads: Interner::default(),
            thread_facts: Vec::new(),
            universal_states: FxHashMap::default(),
            columns,
            lists: ListInterner::default(),
            classes,
            representatives,
            rows: Vec::new(),
            outcomes: Interner::default(),
            distances: Vec::new(),
            completions: FxHashMap::default(),
            irredundant: FxHashMap::default(),
            by_byte: ThreadsByByte::default(),
            results: StepResults::default(),
        }
    }

    pub(crate) fn classes(&self) -> &[u8; 256] {
        &self.classes
    }

    /// Returns one byte per byte class.
    pub(crate) fn representatives(&self) -> &[u8] {
        &self.representatives
    }

    /// Makes every byte a class of its own. Must be called before anything is read.
    pub(crate) fn separate_all_bytes(&mut self) {
        self.representatives = (0..=255).collect();
        self.classes = std::array::from_fn(|byte| byte as u8);
    }

    fn thread(&mut self, terminal: u32, state: StateId, column: u32) -> u32 {
        self.thread_of(terminal, state, (column, ThreadKind::Lexeme))
    }

    pub(super) fn thread_of(
        &mut self,
        terminal: u32,
        state: StateId,
        (column, kind): (u32, ThreadKind),
    ) -> u32 {
        let thread = self.threads.intern(LexerThread { terminal, state, kind, column });
        if thread as usize == self.thread_facts.len() {
            let automaton = self.automata[terminal as usize].as_ref();
            let accepting = automaton.is_some_and(|one| one.is_accepting(state));
            self.thread_facts.push(ThreadFacts { accepting, can_continue: None });
        }
        thread
    }

    pub(crate) fn kind(&self, thread: u32) -> ThreadKind {
        self.threads[thread].kind
    }

    /// Returns the threads before a lexeme of one of these terminals.
    pub(crate) fn start(&mut self, terminals: impl Iterator<Item = u32>) -> u32 {
        self.start_with_columns(terminals, None)
    }

    /// As [`ThreadSets::start`], with columns counted by the terminal `newline`.
    pub(crate) fn start_with_columns(
        &mut self,
        terminals: impl Iterator<Item = u32>,
        newline: Option<u32>,
    ) -> u32 {
        let mut threads = Vec::new();
        for terminal in terminals {
            let automaton = self.automata[terminal as usize].as_ref();
            if let Some(start) = automaton.map(|automaton| automaton.start()) {
                let column = if newline == Some(terminal) { BEFORE_LINE_BREAK } else { NO_COLUMN };
                threads.push(self.thread(terminal, start, column));
            }
        }
        threads.sort_unstable();
        self.lists.intern(&threads)
    }

    /// Reads a byte.
    #[inline]
    pub(crate) fn step(
        &mut self,
        set: u32,
        byte: u8,
        meter: &mut StepMeter,
    ) -> Result<LexerStep, Error> {
        if set == NOTHING {
            return Ok(DEAD);
        }
        let class = usize::from(self.classes[usize::from(byte)]);
        if let Some(Some(row)) = self.rows.get(set as usize)
            && row[class] != 0
        {
            return Ok(self.outcomes[row[class] - 1]);
        }
        self.compute_step(set, class, meter)
    }

    fn compute_step(
        &mut self,
        set: u32,
        class: usize,
        meter: &mut StepMeter,
    ) -> Result<LexerStep, Error> {
        let byte = self.representatives[class];
        let mut results = std::mem::take(&mut self.results);
        results.clear();
        for &thread in &*self.threads_towards(set, class)? {
            meter.spend(1)?;
            match self.kind(thread) {
                ThreadKind::Lexeme => self.read_lexeme(thread, byte, &mut results)?,
                _ => self.read_lookahead(thread, byte, &mut results)?,
            }
        }
        let outcome = self.outcome(&mut results);
        self.results = results;
        let id = self.outcomes.intern(outcome) + 1;
        if self.rows.len() <= set as usize {
            self.rows.resize_with(self.lists.len(), || None);
        }
        let classes = self.representatives.len();
        let row = self.rows[set as usize].get_or_insert_with(|| vec![0; classes].into());
        row[class] = id;
        Ok(outcome)
    }

    fn outcome(&mut self, results: &mut StepResults) -> LexerStep {
        results.next.sort_unstable();
        results.matches.sort_unstable();
        results.matches.dedup();
        results.conditions.sort_unstable();
        LexerStep {
            next: self.lists.intern(&results.next),
            matches: self.lists.intern(&results.matches),
            conditions: self.lists.intern(results.conditions.as_flattened()),
            confirmed: results.confirmed.unwrap_or(NONE_CONFIRMED),
            column: results.column.unwrap_or(NO_COLUMN),
        }
    }

    fn read_lexeme(
        &mut self,
        thread: u32,
        byte: u8,
        results: &mut StepResults,
    ) -> Result<(), Error> {
        let Some(next) = self.step_thread(thread, byte)? else { return Ok(()) };
        let LexerThread { terminal, state, column, .. } = self.threads[next];
        let accepting = self.has_matched(next);
        if !self.has_lookahead[terminal as usize] {
            if accepting {
                results.matches.push(terminal);
                results.column = Some(results.column.unwrap_or(NO_COLUMN).min(column));
            }
        } else if let Some(automaton) = &self.automata[terminal as usize]
            && let Some(rest) = automaton.step(state, LEXEME_END)?
        {
            match self.is_universal(terminal, rest)? {
                true => results.matches.push(terminal),
                false => results.conditions.push([terminal, rest.number()]),
            }
        }
        if self.can_continue(next)? {
            results.next.push(next);
        }
        Ok(())
    }

    fn step_column(&self, column: u32, byte: u8) -> u32 {
        match self.columns {
            Some(columns) if column != NO_COLUMN => columns.step(column, byte),
            _ => NO_COLUMN,
        }
    }

    /// Returns the thread set with all columns dropped.
    pub(crate) fn without_columns(&mut self, set: u32) -> u32 {
        let threads = self.lists.copy(set);
        if threads.iter().all(|&one| self.column(one) == NO_COLUMN) {
            return set;
        }
        let mut plain: Vec<u32> =
            threads.iter().map(|&one| self.thread_without_column(one)).collect();
        plain.sort_unstable();
        plain.dedup();
        self.lists.intern(&plain)
    }

    /// Returns a thread without its column.
    pub(crate) fn thread_without_column(&mut self, thread: u32) -> u32 {
        let LexerThread { terminal, state, kind, .. } = self.threads[thread];
        self.thread_of(terminal, state, (NO_COLUMN, kind))
    }

    /// Returns the column of a thread of the newline terminal; [`NO_COLUMN`] for others.
    pub(crate) fn column(&self, thread: u32) -> u32 {
        self.threads[thread].column
    }

    /// Returns `true` if some thread has read a line end after which the input may end.
    pub(crate) fn has_read_line_end(&self, set: u32) -> bool {
        let is_line_end = |&one: &u32| {
            let column = self.column(one);
            let is_column = column != NO_COLUMN && column != BEFORE_LINE_BREAK;
            is_column && may_end_at(column) && self.has_matched(one)
        };
        self.lists.get(set).iter().any(is_line_end)
    }

    /// Returns `true` if what a thread has read matches.
    pub(super) fn has_matched(&self, thread: u32) -> bool {
        self.thread_facts[thread as usize].accepting
    }

    /// Returns a lexeme thread after a byte, if its automaton reads it.
    pub(crate) fn step_thread(&mut self, thread: u32, byte: u8) -> Result<Option<u32>, Error> {
        let LexerThread { terminal, state, column, .. } = self.threads[thread];
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(None) };
        if byte == LEXEME_END && self.has_lookahead[terminal as usize] {
            return Ok(None);
        }
        let next = automaton.step(state, byte)?;
        let column = self.step_column(column, byte);
        Ok(next.map(|state| self.thread(terminal, state, column)))
    }

    /// Returns the bytes that a lexeme thread reads.
    pub(crate) fn readable_bytes(&self, thread: u32) -> Result<ByteSet, Error> {
        let LexerThread { terminal, state, .. } = self.threads[thread];
        let Some(automaton) = &self.automata[terminal as usize] else {
            return Ok(ByteSet::default());
        };
        let mut bytes = automaton.live_bytes(state)?;
        if self.has_lookahead[terminal as usize] {
            bytes.remove(LEXEME_END);
        }
        Ok(bytes)
    }

    /// Returns `true` if a thread can read more. All states of its automaton are live, so only
    /// accepting ones need a test.
    fn can_continue(&mut self, thread: u32) -> Result<bool, Error> {
        let LexerThread { terminal, state, .. } = self.threads[thread];
        let ThreadFacts { accepting, can_continue } = self.thread_facts[thread as usize];
        if let Some(known) = can_continue {
            return Ok(known);
        }
        let has_lookahead = self.has_lookahead[terminal as usize];
        let automaton = self.automata[terminal as usize].as_ref();
        let more = match automaton {
            Some(automaton) if accepting || has_lookahead => {
                automaton.reads_more(has_lookahead, state)?
            }
            other => other.is_some(),
        };
        self.thread_facts[thread as usize].can_continue = Some(more);
        Ok(more)
    }

    pub(crate) fn terminal(&self, thread: u32) -> u32 {
        self.threads[thread].terminal
    }

    /// Returns the negative threads and lookahead conditions after a byte; `None` if one is
    /// violated.
    pub(crate) fn step_negative_threads(
        &mut self,
        negative_threads: u32,
        byte: u8,
        meter: &mut StepMeter,
    ) -> Result<Option<u32>, Error> {
        let read = self.step(negative_threads, byte, meter)?;
        if read.matches != NOTHING {
            return Ok(None);
        }
        if read.conditions == NOTHING {
            return Ok(Some(read.next));
        }
        let unless: Vec<u32> = self.lists.get(read.conditions).to_vec();
        let mut left = read.next;
        for one in unless.chunks_exact(2) {
            let thread = self.lookahead_thread(one[0], one[1], ThreadKind::MustNotMatch);
            left = self.with_thread(left, Some(thread));
        }
        Ok(Some(left))
    }

    pub(crate) fn with_thread(&mut self, set: u32, thread: Option<u32>) -> u32 {
        let Some(thread) = thread else { return set };
        let joined = sorted_union(self.lists.get(set), &[thread]);
        self.lists.intern(&joined)
    }

    /// Returns the union of two thread sets.
    pub(crate) fn union(&mut self, left: u32, right: u32) -> u32 {
        if left == NOTHING || left == right {
            return right;
        }
        if right == NOTHING {
            return left;
        }
        let joined = sorted_union(self.lists.get(left), self.lists.get(right));
        self.lists.intern(&joined)
    }

    /// Returns the threads of a set that another set does not contain, apart from columns.
    pub(crate) fn difference(&mut self, set: u32, other: u32) -> u32 {
        if set == NOTHING || other == NOTHING {
            return set;
        }
        let other = self.lists.copy(other);
        let mut kept: Vec<u32> = self.lists.get(set).to_vec();
        kept.retain(|&one| other.binary_search(&self.thread_without_column(one)).is_err());
        self.lists.intern(&kept)
    }

    pub(crate) fn is_subset(&self, set: u32, other: u32) -> bool {
        let other = self.lists.get(other);
        self.lists.get(set).iter().all(|one| other.binary_search(one).is_ok())
    }

    /// Returns the guard threads of a set whose terminals have priority over `terminal`.
    pub(crate) fn earlier_guards(&self, set: u32, terminal: u32) -> Vec<u32> {
        let threads = self.lists.get(set).iter().copied();
        let is_earlier_guard =
            |one: &u32| self.kind(*one) == ThreadKind::Guard && self.terminal(*one) < terminal;
        threads.filter(is_earlier_guard).collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let rows = self.rows.iter().flatten().count() * (16 + 4 * self.representatives.len());
        let automata: usize = self.automata.iter().flatten().map(|one| one.memory_bytes()).sum();
        let words = self.by_byte.memory_bytes() + 8 * self.irredundant.len();
        rows + automata + words + self.lists.memory_bytes() + self.threads.len() * 40
    }
}
