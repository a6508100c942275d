//! Lexer states: the threads of the current lexeme paired with the negative threads.
//!
//! The transition of a lexer state depends on no stack and is cached for good, because lexer states
//! are few and recur. Masks read tokens by these tables.

use std::hash::BuildHasher;
use std::sync::Arc;

use formalm_core::Interner;

use crate::NOTHING;
use formalm_machines::LexemeEnd;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

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
    pairs: Interner<(u32, u32)>,
    /// Per state and byte class an index into `outcomes`, plus one, if it fits 16 bits.
    rows: Vec<Option<Box<[u16]>>>,
    /// The indices that do not fit.
    overflow: FxHashMap<(u32, u16), u32>,
    row_bytes: usize,
    outcomes: Interner<LexerTransition>,
    endings: Interner<Arc<[LexemeEnd]>>,
    /// Canonical states, as far as asked for, and by the hash of their transitions.
    canonical: FxHashMap<u32, u32>,
    canonical_by_hash: FxHashMap<u64, u32>,
    /// States from which no lexeme can end, as far as known.
    pub(super) hopeless: FxHashSet<u32>,
}

impl Default for LexerStates {
    fn default() -> LexerStates {
        let mut lexer_states = LexerStates {
            pairs: Interner::default(),
            rows: Vec::new(),
            overflow: FxHashMap::default(),
            row_bytes: 0,
            outcomes: Interner::default(),
            endings: Interner::default(),
            canonical: FxHashMap::default(),
            canonical_by_hash: FxHashMap::default(),
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
        self.pairs.intern((lexeme, negative_threads))
    }

    /// Returns the lexeme in progress and the negative threads.
    pub(crate) fn pair(&self, lexer_state: u32) -> (u32, u32) {
        self.pairs[lexer_state]
    }

    pub(crate) fn endings(&self, intern: u32) -> Arc<[LexemeEnd]> {
        Arc::clone(&self.endings[intern])
    }

    pub(crate) fn ending_count(&self, intern: u32) -> usize {
        self.endings[intern].len()
    }

    pub(crate) fn ending_at(&self, intern: u32, at: usize) -> LexemeEnd {
        self.endings[intern][at]
    }

    pub(super) fn intern_endings(&mut self, list: Vec<LexemeEnd>) -> u32 {
        self.endings.intern_borrowed(&*list, || list.as_slice().into())
    }

    pub(super) fn cached(&self, lexer_state: u32, class: usize) -> Option<LexerTransition> {
        let row = self.rows.get(lexer_state as usize)?.as_ref()?;
        let intern = match row[class] {
            u16::MAX => *self.overflow.get(&(lexer_state, class as u16))?,
            intern => u32::from(intern.checked_sub(1)?),
        };
        Some(self.outcomes[intern])
    }

    pub(super) fn store(
        &mut self,
        lexer_state: u32,
        class: usize,
        width: usize,
        outcome: LexerTransition,
    ) {
        let intern = self.outcomes.intern(outcome);
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

    /// Returns the canonical state of a state, if it is known.
    pub(super) fn canonical(&self, lexer_state: u32) -> Option<u32> {
        self.canonical.get(&lexer_state).copied()
    }

    /// Returns the first state with the transitions of a state, all of which are known. States whose
    /// hashes collide, or with transitions in `overflow`, are their own.
    pub(super) fn make_canonical(&mut self, lexer_state: u32) -> u32 {
        let row = |state: u32| self.rows.get(state as usize).and_then(Option::as_deref);
        let canonical = match row(lexer_state) {
            Some(transitions) if !transitions.contains(&u16::MAX) => {
                let hash = FxBuildHasher.hash_one(transitions);
                let first = *self.canonical_by_hash.entry(hash).or_insert(lexer_state);
                if row(first) == Some(transitions) { first } else { lexer_state }
            }
            _ => lexer_state,
        };
        self.canonical.insert(lexer_state, canonical);
        canonical
    }

    pub(super) fn intern_or_none(&mut self, lexeme: u32, negative_threads: u32) -> u32 {
        if lexeme == NOTHING { NOTHING } else { self.intern(lexeme, negative_threads) }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.row_bytes
            + self.pairs.table_bytes()
            + self.outcomes.table_bytes()
            + self.endings.table_bytes()
            + self.endings.len() * 40
            + (self.canonical.len() + 2 * self.canonical_by_hash.len()) * 8
            + (self.hopeless.len() + 2 * self.overflow.len()) * 8
    }
}
