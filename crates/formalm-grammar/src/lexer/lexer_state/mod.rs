//! Lexer states: the threads of the current lexeme paired with the negative threads.
//!
//! The transition of a lexer state depends on no stack and is cached for good, because lexer states
//! are few and recur. This is also the interface through which masks read tokens.

mod priority;

use std::sync::Arc;

use formalm_core::Error;
use formalm_machines::LexemeEnd;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::grammar::Lexing;
use crate::grammar_state::GrammarState;
use crate::indentation::NO_COLUMN;
use crate::lexer::ThreadKind;
use crate::list_interner::{NOTHING, union};

/// The transition of a lexer state on a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LexerTransition {
    /// The lexer state if the lexeme continues; [`NOTHING`] if it cannot.
    pub(crate) continued: u32,
    /// The possible ends of the lexeme here, as an id of [`LexerStates::endings`]; [`NOTHING`] if
    /// it cannot end.
    pub(crate) endings: u32,
    /// `true` if the dead-end proof does not cover this transition.
    pub(crate) unproven: bool,
}

/// The transition on a byte that is not read.
const DEAD: LexerTransition =
    LexerTransition { continued: NOTHING, endings: NOTHING, unproven: false };

/// Lexer states explored to decide that no lexeme can end. Chosen, not measured.
const HOPELESS_SEARCH_STATES: usize = 500;

/// The lexer states built so far. Id 0 reads nothing.
#[derive(Debug)]
pub(crate) struct LexerStates {
    pairs: Vec<(u32, u32)>,
    ids: FxHashMap<(u32, u32), u32>,
    /// Per state and byte class an index into `outcomes`, plus one, if it fits 16 bits.
    rows: Vec<Option<Box<[u16]>>>,
    /// The indices that do not fit.
    overflow: FxHashMap<(u32, u16), u32>,
    row_bytes: usize,
    outcomes: Vec<LexerTransition>,
    outcome_ids: FxHashMap<LexerTransition, u32>,
    endings: Vec<Arc<[LexemeEnd]>>,
    ending_ids: FxHashMap<Arc<[LexemeEnd]>, u32>,
    /// States from which no lexeme can end, as far as known.
    hopeless: FxHashSet<u32>,
}

impl Default for LexerStates {
    fn default() -> LexerStates {
        let mut lexer_states = LexerStates {
            pairs: Vec::new(),
            ids: FxHashMap::default(),
            rows: Vec::new(),
            overflow: FxHashMap::default(),
            row_bytes: 0,
            outcomes: Vec::new(),
            outcome_ids: FxHashMap::default(),
            endings: Vec::new(),
            ending_ids: FxHashMap::default(),
            hopeless: FxHashSet::default(),
        };
        lexer_states.intern(NOTHING, NOTHING);
        lexer_states.intern_endings(Vec::new());
        lexer_states
    }
}

impl LexerStates {
    /// Interns the lexer state of a lexeme in progress with negative threads.
    pub(crate) fn intern(&mut self, lexeme: u32, negative_threads: u32) -> u32 {
        let pairs = &mut self.pairs;
        *self.ids.entry((lexeme, negative_threads)).or_insert_with(|| {
            pairs.push((lexeme, negative_threads));
            pairs.len() as u32 - 1
        })
    }

    /// Returns the lexeme in progress and the negative threads.
    pub(crate) fn pair(&self, lexer_state: u32) -> (u32, u32) {
        self.pairs[lexer_state as usize]
    }

    pub(crate) fn endings(&self, intern: u32) -> Arc<[LexemeEnd]> {
        Arc::clone(&self.endings[intern as usize])
    }

    pub(crate) fn ending_count(&self, intern: u32) -> usize {
        self.endings[intern as usize].len()
    }

    pub(crate) fn ending_at(&self, intern: u32, at: usize) -> LexemeEnd {
        self.endings[intern as usize][at]
    }

    fn intern_endings(&mut self, list: Vec<LexemeEnd>) -> u32 {
        if let Some(&cached) = self.ending_ids.get(&*list) {
            return cached;
        }
        let list: Arc<[LexemeEnd]> = list.into();
        let intern = self.endings.len() as u32;
        self.endings.push(Arc::clone(&list));
        self.ending_ids.insert(list, intern);
        intern
    }

    fn cached(&self, lexer_state: u32, class: usize) -> Option<LexerTransition> {
        let row = self.rows.get(lexer_state as usize)?.as_ref()?;
        let intern = match row[class] {
            u16::MAX => *self.overflow.get(&(lexer_state, class as u16))?,
            intern => u32::from(intern.checked_sub(1)?),
        };
        Some(self.outcomes[intern as usize])
    }

    fn store(&mut self, lexer_state: u32, class: usize, width: usize, outcome: LexerTransition) {
        let outcomes = &mut self.outcomes;
        let intern = *self.outcome_ids.entry(outcome).or_insert_with(|| {
            outcomes.push(outcome);
            outcomes.len() as u32 - 1
        });
        if self.rows.len() <= lexer_state as usize {
            self.rows.resize_with(self.pairs.len(), || None);
        }
        let row = &mut self.rows[lexer_state as usize];
        if row.is_none() {
            self.row_bytes += 2 * width;
        }
        let short = match u16::try_from(intern + 1) {
            Ok(short) if short < u16::MAX => short,
            _ => {
                self.overflow.insert((lexer_state, class as u16), intern);
                u16::MAX
            }
        };
        row.get_or_insert_with(|| vec![0; width].into())[class] = short;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.row_bytes
            + self.pairs.len() * 44
            + self.outcomes.len() * 40
            + self.endings.len() * 64
            + (self.hopeless.len() + 2 * self.overflow.len()) * 8
    }
}

impl GrammarState {
    /// Returns the transition of a lexer state on a byte.
    #[inline]
    pub(crate) fn step_lexer_state(
        &mut self,
        lexer_state: u32,
        byte: u8,
    ) -> Result<LexerTransition, Error> {
        let class = usize::from(self.lexer.classes()[usize::from(byte)]);
        match self.lexer_states.cached(lexer_state, class) {
            Some(outcome) => Ok(outcome),
            None => {
                let outcome = self.compute_transition(lexer_state, byte)?;
                let width = self.lexer.representatives().len();
                self.lexer_states.store(lexer_state, class, width, outcome);
                Ok(outcome)
            }
        }
    }

    fn compute_transition(&mut self, lexer_state: u32, byte: u8) -> Result<LexerTransition, Error> {
        let mut outcome = self.outcome(lexer_state, byte)?;
        if !self.needs_viability_checks {
            return Ok(outcome);
        }
        let mut can_continue = false;
        if outcome.continued != NOTHING {
            let (lexeme, negative_threads) = self.lexer_states.pair(outcome.continued);
            can_continue = self.is_lexeme_safe(lexeme, negative_threads)?;
            outcome.unproven = !can_continue;
            if !can_continue && self.is_hopeless(outcome.continued)? {
                outcome = LexerTransition { continued: NOTHING, unproven: false, ..outcome };
            }
        }
        outcome.endings = self.prune_hopeless_endings(outcome.endings)?;
        for one in &*self.lexer_states.endings(outcome.endings) {
            // Other leftover threads matter per context and are examined where one is known.
            let is_proven = self.dies_at_separator(one.negative_threads)?
                || (can_continue && self.is_lexeme_safe(NOTHING, one.negative_threads)?);
            outcome.unproven |= self.is_lost_replacement(one.terminal) || !is_proven;
        }
        Ok(outcome)
    }

    /// Drops the line ends inside brackets after which no lexeme can end; the input cannot end
    /// inside brackets either.
    fn prune_hopeless_endings(&mut self, endings: u32) -> Result<u32, Error> {
        let Some((newline, all)) = self.indentation.as_ref().and_then(|one| one.in_brackets) else {
            return Ok(endings);
        };
        let before = self.lexer_states.endings(endings);
        let mut list = Vec::with_capacity(before.len());
        for one in &*before {
            let behind = self.lexer_states.intern(all, one.negative_threads);
            if one.terminal != newline || !self.is_hopeless(behind)? {
                list.push(*one);
            }
        }
        Ok(if list.len() == before.len() {
            endings
        } else {
            self.lexer_states.intern_endings(list)
        })
    }

    /// Returns `true` if a short exploration shows that no lexeme can end whatever follows, because
    /// every continuation makes a negative thread match.
    fn is_hopeless(&mut self, lexer_state: u32) -> Result<bool, Error> {
        let mut visited = vec![lexer_state];
        let mut seen = FxHashSet::from_iter([lexer_state]);
        let mut at = 0;
        while at < visited.len() {
            let lexeme = self.lexer.lists.copy(self.lexer_states.pair(visited[at]).0);
            if lexeme.iter().any(|&one| self.lexer.column(one) != NO_COLUMN) {
                return Ok(false);
            }
            for byte in self.lexer.representatives().to_vec() {
                let outcome = self.outcome(visited[at], byte)?;
                if outcome.endings != NOTHING || visited.len() > HOPELESS_SEARCH_STATES {
                    return Ok(false);
                }
                let continued = outcome.continued;
                if continued != NOTHING
                    && !self.lexer_states.hopeless.contains(&continued)
                    && seen.insert(continued)
                {
                    visited.push(continued);
                }
            }
            at += 1;
        }
        self.lexer_states.hopeless.extend(visited);
        Ok(true)
    }

    /// Computes the transition of a lexer state on a byte, without testing whether it can be
    /// completed.
    pub(crate) fn outcome(&mut self, lexer_state: u32, byte: u8) -> Result<LexerTransition, Error> {
        let (lexeme, negative_threads) = self.lexer_states.pair(lexer_state);
        let read = self.lexer.step(lexeme, byte, &mut self.gss.meter)?;
        if read == crate::lexer::DEAD {
            return Ok(DEAD);
        }
        let Some(negative_threads) = self.step_negative_threads(negative_threads, byte)? else {
            return Ok(DEAD);
        };
        if !read.is_match() && self.lexing == Lexing::Longest && self.uncuttable.is_empty() {
            let lexeme = self.without_threads(read.next, negative_threads);
            return Ok(LexerTransition {
                continued: self.lexer_state_or_none(lexeme, negative_threads),
                ..DEAD
            });
        }
        let matches = self.matches(read);
        if self.lexing == Lexing::Any {
            let mut all = Vec::with_capacity(matches.len());
            for one in matches {
                let asked = one.condition(&mut self.lexer, ThreadKind::MustMatch);
                all.push(LexemeEnd {
                    terminal: one.terminal,
                    negative_threads: self.with_thread(negative_threads, asked),
                });
            }
            let endings = self.lexer_states.intern_endings(all);
            let continued = self.lexer_state_or_none(read.next, negative_threads);
            return Ok(LexerTransition { continued, endings, unproven: false });
        }
        let (endings, next) = self.preferred_endings(read, &matches, negative_threads);
        let mut outcome =
            LexerTransition { endings: self.lexer_states.intern_endings(endings), ..DEAD };
        // A thread that must match but is also a negative thread is useless.
        let mut lexeme = self.without_threads(next, negative_threads);
        if lexeme != next && self.lexing == Lexing::First {
            lexeme = self.cut_lower_priority(lexeme, self.terminals);
        }
        let is_read = |&one: &u32| !self.is_uncuttable(self.lexer.terminal(one));
        if !self.uncuttable.is_empty() && !self.lexer.lists.get(lexeme).iter().any(is_read) {
            lexeme = NOTHING;
        }
        outcome.continued = self.lexer_state_or_none(lexeme, negative_threads);
        Ok(outcome)
    }

    /// Returns the negative threads and lookahead conditions after a byte; `None` if one is
    /// violated.
    pub(crate) fn step_negative_threads(
        &mut self,
        negative_threads: u32,
        byte: u8,
    ) -> Result<Option<u32>, Error> {
        let read = self.lexer.step(negative_threads, byte, &mut self.gss.meter)?;
        if read.matches != NOTHING {
            return Ok(None);
        }
        if read.conditions == NOTHING {
            return Ok(Some(read.next));
        }
        let unless: Vec<u32> = self.lexer.lists.get(read.conditions).to_vec();
        let mut left = read.next;
        for one in unless.chunks_exact(2) {
            let thread = self.lexer.lookahead_thread(one[0], one[1], ThreadKind::MustNotMatch);
            left = self.with_thread(left, Some(thread));
        }
        Ok(Some(left))
    }

    fn with_thread(&mut self, set: u32, thread: Option<u32>) -> u32 {
        let Some(thread) = thread else { return set };
        let joined = union(self.lexer.lists.get(set), &[thread]);
        self.lexer.lists.intern(&joined)
    }

    fn lexer_state_or_none(&mut self, lexeme: u32, negative_threads: u32) -> u32 {
        if lexeme == NOTHING { NOTHING } else { self.lexer_states.intern(lexeme, negative_threads) }
    }

    pub(crate) fn union_threads(&mut self, left: u32, right: u32) -> u32 {
        if left == NOTHING || left == right {
            return right;
        }
        if right == NOTHING {
            return left;
        }
        let joined = union(self.lexer.lists.get(left), self.lexer.lists.get(right));
        self.lexer.lists.intern(&joined)
    }

    fn without_threads(&mut self, set: u32, other: u32) -> u32 {
        if set == NOTHING || other == NOTHING {
            return set;
        }
        let other = self.lexer.lists.copy(other);
        let mut kept: Vec<u32> = self.lexer.lists.get(set).to_vec();
        kept.retain(|&one| other.binary_search(&self.lexer.thread_without_column(one)).is_err());
        self.lexer.lists.intern(&kept)
    }
}
