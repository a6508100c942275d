//! Lexer states: the threads of the current lexeme paired with the negative threads.
//!
//! The transition of a lexer state depends on no stack and is cached for good, because lexer states
//! are few and recur. Masks read tokens by these tables.

use std::sync::Arc;

use formalm_machines::LexemeEnd;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::list_interner::NOTHING;

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
pub(super) const DEAD: LexerTransition =
    LexerTransition { continued: NOTHING, endings: NOTHING, unproven: false };

/// The lexer states built so far, and their transitions. Id 0 reads nothing.
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
    pub(super) hopeless: FxHashSet<u32>,
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

    pub(super) fn intern_endings(&mut self, list: Vec<LexemeEnd>) -> u32 {
        if let Some(&cached) = self.ending_ids.get(&*list) {
            return cached;
        }
        let list: Arc<[LexemeEnd]> = list.into();
        let intern = self.endings.len() as u32;
        self.endings.push(Arc::clone(&list));
        self.ending_ids.insert(list, intern);
        intern
    }

    pub(super) fn cached(&self, lexer_state: u32, class: usize) -> Option<LexerTransition> {
        let row = self.rows.get(lexer_state as usize)?.as_ref()?;
        let intern = match row[class] {
            u16::MAX => *self.overflow.get(&(lexer_state, class as u16))?,
            intern => u32::from(intern.checked_sub(1)?),
        };
        Some(self.outcomes[intern as usize])
    }

    pub(super) fn store(
        &mut self,
        lexer_state: u32,
        class: usize,
        width: usize,
        outcome: LexerTransition,
    ) {
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

    pub(super) fn intern_or_none(&mut self, lexeme: u32, negative_threads: u32) -> u32 {
        if lexeme == NOTHING { NOTHING } else { self.intern(lexeme, negative_threads) }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.row_bytes
            + self.pairs.len() * 44
            + self.outcomes.len() * 40
            + self.endings.len() * 64
            + (self.hopeless.len() + 2 * self.overflow.len()) * 8
    }
}
