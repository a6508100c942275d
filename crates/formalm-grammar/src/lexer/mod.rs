//! All terminals read together, lazily.
//!
//! A *thread* is a terminal and a state of its machine, a lexer state a set of threads. Reading a
//! byte yields an *outcome*: the terminals that match now, and the threads that can go on.
//!
//! A terminal that looks ahead matches under a *condition*: its machine goes on with what follows
//! the lexeme, and a thread of another [`Kind`] reads that beside the lexemes to come.

pub(crate) mod contextual_start;
pub(crate) mod lexer_state;
mod lookahead;
mod shortest_lexeme;
pub(crate) mod terminal_automata;

use std::sync::Arc;

use formalm_automata::{ByteSet, EDGE, Error, Machine, StateId};
use rustc_hash::FxHashMap;

use crate::indentation::{BEFORE_LINE_BREAK, ColumnCounter, NO_COLUMN};
use crate::interner::{ListInterner, NOTHING};
use crate::lexer::terminal_automata::TerminalAutomata;
use crate::limits::StepMeter;
pub(crate) use lookahead::as_lookahead_byte;

/// What one byte does to a set of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LexerStep {
    /// Threads that can read more; a set.
    pub(crate) next: u32,
    /// Terminals that match here, in order of preference; a list of the same arena.
    pub(crate) matches: u32,
    /// Terminals that match here if what follows is read from a state: pairs, in the same order.
    pub(crate) conditions: u32,
    /// The first terminal whose match was in question and is none any more: those behind it are
    /// beaten. [`UNSETTLED`] if there is none.
    pub(crate) confirmed: u32,
    /// The column at which a line begins, if the terminal of line breaks matches where lines
    /// matter; [`PLAIN`] otherwise.
    pub(crate) column: u32,
}

impl LexerStep {
    /// Whether some terminal matches here, perhaps only if something follows.
    pub(crate) fn is_match(self) -> bool {
        self.matches != NOTHING || self.conditions != NOTHING
    }
}

/// No terminal's match was settled.
pub(crate) const NONE_CONFIRMED: u32 = u32::MAX;

/// Matches instead of a terminal where what follows a lexeme is not what it asked for.
const VIOLATED: u32 = u32::MAX;

/// The outcome of a byte that no thread reads.
pub(crate) const DEAD: LexerStep = LexerStep {
    next: NOTHING,
    matches: NOTHING,
    conditions: NOTHING,
    confirmed: NONE_CONFIRMED,
    column: NO_COLUMN,
};

/// What a thread reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ThreadKind {
    /// A lexeme.
    Lexeme,
    /// What follows a lexeme, which must be read to a member.
    MustMatch,
    /// What follows a match that is no lexeme, and must not be read to a member.
    MustNotMatch,
    /// The same, while it is open: if it is a member, terminals behind this one are beaten.
    Guard,
}

#[derive(Clone, Copy, Debug)]
struct LexerThread {
    terminal: u32,
    state: StateId,
    kind: ThreadKind,
    /// Of the terminal of line breaks, where lines matter; [`PLAIN`] otherwise.
    column: u32,
    accepting: bool,
    /// Whether its machine can read more, once it was asked.
    can_continue: Option<bool>,
}

/// What the threads of a set come to with a byte.
#[derive(Debug, Default)]
struct StepResults {
    next: Vec<u32>,
    matches: Vec<u32>,
    conditions: Vec<[u32; 2]>,
    confirmed: Option<u32>,
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

/// The lexer states built so far.
#[derive(Debug)]
pub(crate) struct Lexer {
    /// `None` for terminals without a text.
    automata: TerminalAutomata,
    /// Whether a terminal looks ahead.
    has_lookahead: Vec<bool>,
    threads: Vec<LexerThread>,
    thread_ids: FxHashMap<(u32, u32, u32, ThreadKind), u32>,
    /// Whether every text may follow, per terminal and state of what follows a lexeme.
    universal_states: FxHashMap<(u32, u32), bool>,
    /// How columns are counted.
    pub(crate) columns: Option<ColumnCounter>,
    /// Sets of threads and lists of terminals.
    pub(crate) lists: ListInterner,
    /// Classes of bytes that no terminal tells apart.
    classes: [u8; 256],
    representatives: Vec<u8>,
    /// Per set and class an outcome plus one.
    rows: Vec<Option<Box<[u32]>>>,
    outcomes: Vec<LexerStep>,
    outcome_ids: FxHashMap<LexerStep, u32>,
    /// Bytes to the end of the shortest text, per thread; zero until asked for.
    distances: Vec<u32>,
    /// Shortest texts, not empty, that threads read to a match.
    completions: FxHashMap<u32, Arc<[u8]>>,
    /// Empty between steps.
    results: StepResults,
}

impl Lexer {
    /// A lexer of some machines, given which of them look ahead, and how columns are counted.
    pub(crate) fn new(
        automata: TerminalAutomata,
        has_lookahead: Vec<bool>,
        columns: Option<ColumnCounter>,
    ) -> Lexer {
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
        Lexer {
            automata,
            has_lookahead,
            threads: Vec::new(),
            thread_ids: FxHashMap::default(),
            universal_states: FxHashMap::default(),
            columns,
            lists: ListInterner::default(),
            classes,
            representatives,
            rows: Vec::new(),
            outcomes: Vec::new(),
            outcome_ids: FxHashMap::default(),
            distances: Vec::new(),
            completions: FxHashMap::default(),
            results: StepResults::default(),
        }
    }

    pub(crate) fn classes(&self) -> &[u8; 256] {
        &self.classes
    }

    /// One byte of each class.
    pub(crate) fn representatives(&self) -> &[u8] {
        &self.representatives
    }

    /// Makes every byte a class of its own; before anything is read.
    pub(crate) fn separate_all_bytes(&mut self) {
        self.representatives = (0..=255).collect();
        self.classes = std::array::from_fn(|byte| byte as u8);
    }

    fn thread(&mut self, terminal: u32, state: StateId, column: u32) -> u32 {
        self.thread_of(terminal, state, (column, ThreadKind::Lexeme))
    }

    fn thread_of(
        &mut self,
        terminal: u32,
        state: StateId,
        (column, kind): (u32, ThreadKind),
    ) -> u32 {
        let (threads, automata) = (&mut self.threads, &self.automata);
        *self.thread_ids.entry((terminal, state.number(), column, kind)).or_insert_with(|| {
            let automaton = automata[terminal as usize].as_ref();
            let accepting = automaton.is_some_and(|one| one.is_accepting(state));
            threads.push(LexerThread {
                terminal,
                state,
                kind,
                column,
                accepting,
                can_continue: None,
            });
            threads.len() as u32 - 1
        })
    }

    pub(crate) fn kind(&self, thread: u32) -> ThreadKind {
        self.threads[thread as usize].kind
    }

    /// The lexer state in front of a lexeme of one of these terminals.
    pub(crate) fn start(&mut self, terminals: impl Iterator<Item = u32>) -> u32 {
        self.start_with_columns(terminals, None)
    }

    /// The same, with columns counted by one of them.
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
            return Ok(self.outcomes[row[class] as usize - 1]);
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
        for &thread in &*self.lists.copy(set) {
            meter.spend(1)?;
            match self.kind(thread) {
                ThreadKind::Lexeme => self.read_lexeme(thread, byte, &mut results)?,
                _ => self.read_lookahead(thread, byte, &mut results)?,
            }
        }
        let outcome = self.outcome(&mut results);
        self.results = results;
        let outcomes = &mut self.outcomes;
        let id = *self.outcome_ids.entry(outcome).or_insert_with(|| {
            outcomes.push(outcome);
            outcomes.len() as u32
        });
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
        let LexerThread { terminal, state, column, accepting, .. } = self.threads[next as usize];
        if !self.has_lookahead[terminal as usize] {
            if accepting {
                results.matches.push(terminal);
                results.column = Some(results.column.unwrap_or(NO_COLUMN).min(column));
            }
        } else if let Some(automaton) = &self.automata[terminal as usize]
            && let Some(rest) = automaton.step(state, EDGE)?
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

    /// The threads of a set, their columns forgotten.
    pub(crate) fn without_columns(&mut self, set: u32) -> u32 {
        let threads = self.lists.copy(set);
        if threads.iter().all(|&one| self.column(one) == NO_COLUMN) {
            return set;
        }
        let mut without_columns: Vec<u32> =
            threads.iter().map(|&one| self.thread_without_column(one)).collect();
        without_columns.sort_unstable();
        without_columns.dedup();
        self.lists.intern(&without_columns)
    }

    /// A thread without its column.
    pub(crate) fn thread_without_column(&mut self, thread: u32) -> u32 {
        let LexerThread { terminal, state, kind, .. } = self.threads[thread as usize];
        self.thread_of(terminal, state, (NO_COLUMN, kind))
    }

    /// The column of a thread of the terminal of line breaks; [`PLAIN`] of others.
    pub(crate) fn column(&self, thread: u32) -> u32 {
        self.threads[thread as usize].column
    }

    /// Whether what a thread read matches.
    pub(crate) fn has_matched(&self, thread: u32) -> bool {
        self.threads[thread as usize].accepting
    }

    /// A thread of a lexeme after a byte, if its machine reads it.
    pub(crate) fn step_thread(&mut self, thread: u32, byte: u8) -> Result<Option<u32>, Error> {
        let LexerThread { terminal, state, column, .. } = self.threads[thread as usize];
        let Some(automaton) = &self.automata[terminal as usize] else { return Ok(None) };
        if byte == EDGE && self.has_lookahead[terminal as usize] {
            return Ok(None);
        }
        let next = automaton.step(state, byte)?;
        let column = self.step_column(column, byte);
        Ok(next.map(|state| self.thread(terminal, state, column)))
    }

    /// The bytes that a thread of a lexeme reads.
    pub(crate) fn readable_bytes(&self, thread: u32) -> Result<ByteSet, Error> {
        let LexerThread { terminal, state, .. } = self.threads[thread as usize];
        let Some(automaton) = &self.automata[terminal as usize] else {
            return Ok(ByteSet::default());
        };
        let mut bytes = automaton.live_bytes(state)?;
        if self.has_lookahead[terminal as usize] {
            bytes.remove(EDGE);
        }
        Ok(bytes)
    }

    /// Whether a thread can read more. All states of its machine are live, so only those that
    /// match have to be asked.
    fn can_continue(&mut self, thread: u32) -> Result<bool, Error> {
        let LexerThread { terminal, state, accepting, can_continue, .. } =
            self.threads[thread as usize];
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
        self.threads[thread as usize].can_continue = Some(more);
        Ok(more)
    }

    pub(crate) fn terminal(&self, thread: u32) -> u32 {
        self.threads[thread as usize].terminal
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let rows = self.rows.iter().flatten().count() * (16 + 4 * self.representatives.len());
        let automata: usize = self.automata.iter().flatten().map(|one| one.memory_bytes()).sum();
        rows + automata + self.lists.memory_bytes() + self.threads.len() * 40
    }
}
