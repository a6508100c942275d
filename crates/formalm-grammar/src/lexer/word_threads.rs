//! Threads of words by the bytes that they read next, which are few.
//!
//! Of a hundred keywords, few begin with the same letter, so most threads of a large set need not be
//! tried. And where a name has ended, no letter may follow, whatever keywords the name is a prefix
//! of. The negative threads of these keywords read letters only, so without them the set forbids the
//! same strings. The sets behind all prefixes of keywords become one.

use formalm_core::{Error, LazyDfa};
use rustc_hash::FxHashMap;

use super::terminal_automata::TerminalAutomaton;
use super::thread_sets::{LexerThread, ThreadKind, ThreadSets};
use crate::indentation::NO_COLUMN;

/// Size of a set up to which all threads are tried. Chosen, not measured.
const MAX_TRIED_THREADS: usize = 16;

/// The threads of a set.
#[derive(Debug)]
struct Threads {
    /// Those of words, by the class of a byte that they read; ascending.
    of_words: Box<[(u8, u32)]>,
    others: Box<[u32]>,
}

/// The threads of large sets, by set.
#[derive(Debug, Default)]
pub(super) struct ThreadsByByte {
    by_set: FxHashMap<u32, Threads>,
    bytes: usize,
}

impl ThreadsByByte {
    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

impl ThreadSets {
    /// Returns the threads of a set, in any order, that may read a byte of a class.
    pub(super) fn threads_towards(&mut self, set: u32, class: usize) -> Result<Box<[u32]>, Error> {
        if self.lists.get(set).len() <= MAX_TRIED_THREADS {
            return Ok(self.lists.copy(set));
        }
        if !self.by_byte.by_set.contains_key(&set) {
            let threads = self.threads_by_byte(set)?;
            self.by_byte.bytes += 64 + 8 * threads.of_words.len() + 4 * threads.others.len();
            self.by_byte.by_set.insert(set, threads);
        }
        let Threads { of_words, others } = &self.by_byte.by_set[&set];
        let from = of_words.partition_point(|one| usize::from(one.0) < class);
        let words = of_words[from..].iter().take_while(|one| usize::from(one.0) == class);
        Ok(words.map(|one| one.1).chain(others.iter().copied()).collect())
    }

    fn threads_by_byte(&self, set: u32) -> Result<Threads, Error> {
        let (mut of_words, mut others) = (Vec::new(), Vec::new());
        for &thread in self.lists.get(set) {
            let LexerThread { terminal, state, kind, .. } = self.threads[thread];
            match self.automata[terminal as usize].as_deref() {
                Some(automaton @ TerminalAutomaton::Word(_))
                    if kind == ThreadKind::Lexeme && !self.has_lookahead[terminal as usize] =>
                {
                    let read = automaton.live_bytes(state)?;
                    let classes = read.iter().map(|byte| self.classes()[usize::from(byte)]);
                    of_words.extend(classes.map(|class| (class, thread)));
                }
                _ => others.push(thread),
            }
        }
        of_words.sort_unstable();
        of_words.dedup();
        Ok(Threads { of_words: of_words.into(), others: others.into() })
    }

    /// Returns negative threads that forbid the same strings, without the threads of words that
    /// cannot begin because another thread matches on each of their first bytes.
    pub(crate) fn without_redundant(&mut self, set: u32) -> u32 {
        if self.lists.get(set).len() < 2 {
            return set;
        }
        if let Some(&known) = self.irredundant.get(&set) {
            return known;
        }
        // A limit is met again where the threads are read.
        let reduced = self.reduced(set).unwrap_or(set);
        self.irredundant.insert(set, reduced);
        reduced
    }

    fn reduced(&mut self, set: u32) -> Result<u32, Error> {
        let threads = self.lists.copy(set);
        // Those of words can only be made redundant, and others only make them so.
        let plain = threads.iter().copied().filter(|&one| self.is_plain(one));
        let others: Vec<u32> = plain.filter(|&one| self.word(one).is_none()).collect();
        let mut kept = Vec::with_capacity(threads.len());
        for &thread in &threads {
            let is_redundant = match self.word(thread).filter(|_| self.is_plain(thread)) {
                Some(word) if !others.is_empty() => {
                    let first = word.live_bytes(self.threads[thread].state)?;
                    let mut is_forbidden = true;
                    for byte in first.iter() {
                        is_forbidden = is_forbidden && self.matches_at_once(&others, byte)?;
                    }
                    is_forbidden
                }
                _ => false,
            };
            kept.extend((!is_redundant).then_some(thread));
        }
        Ok(self.lists.intern(&kept))
    }

    fn matches_at_once(&mut self, threads: &[u32], byte: u8) -> Result<bool, Error> {
        for &thread in threads {
            if self.step_thread(thread, byte)?.is_some_and(|next| self.has_matched(next)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a thread reads a lexeme, without lookahead and columns.
    fn is_plain(&self, thread: u32) -> bool {
        let LexerThread { terminal, kind, .. } = self.threads[thread];
        let has_lookahead = self.has_lookahead[terminal as usize];
        kind == ThreadKind::Lexeme && !has_lookahead && self.column(thread) == NO_COLUMN
    }

    /// Returns the automaton of a thread that reads a word.
    fn word(&self, thread: u32) -> Option<&TerminalAutomaton> {
        let automaton = self.automata[self.terminal(thread) as usize].as_deref()?;
        matches!(automaton, TerminalAutomaton::Word(_)).then_some(automaton)
    }
}
