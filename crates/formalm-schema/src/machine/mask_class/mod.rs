//! Mask classes: states grouped so that all states of a class have the same mask.
//!
//! ```text
//! state ──abstraction──► position ──continuation──► representative ──intern──► class
//!         drop what no            equal surroundings
//!         token sees
//! ```
//!
//! Masks are computed once a class, by a look-ahead. Where the class drops something that a few
//! tokens see, they are rechecked against the state.

pub(crate) mod abstraction;
pub(crate) mod cache;
pub(crate) mod continuation;
pub(crate) mod isolated_value;
pub(crate) mod item_spanning_tokens;
pub(crate) mod lookahead;
pub(crate) mod lookahead_shortcuts;
pub(crate) mod name_continuation;
pub(crate) mod string_lengths;
pub(crate) mod string_state_pairs;
pub(crate) mod unbounded_values;
pub(crate) mod unique_item_equivalence;

use std::sync::Arc;

use formalm_automata::{
    AcceptingVisitor, AppendVec, ClassVisitor, Error, Machine, MaskClassId, MaskClasses,
    NameTokens, StateId,
};

use crate::machine::frame::ReaderPosition;
use crate::machine::mask_class::lookahead::SchemaLookahead;
use crate::machine::{LazyTables, SchemaAutomaton};

/// Marks states whose class mask may be too permissive for a few tokens.
const UNSURE: u32 = 1 << 31;

/// The mask classes of a schema's automaton for one vocabulary.
#[derive(Debug)]
pub struct SchemaMaskClasses {
    automaton: Arc<SchemaAutomaton>,
    max_token_len: usize,
    names: Arc<NameTokens>,
    /// For each state its class plus one; 0 is unknown.
    classes: AppendVec,
    /// For each state its class plus one, before surroundings with equal continuations are merged.
    kept_classes: AppendVec,
}

impl SchemaMaskClasses {
    /// Creates the mask classes for tokens of at most `max_token_len` bytes that contain the given
    /// parts of names.
    ///
    /// The strings of names that matter to nothing else are part of a class only if some token ends
    /// one name and begins the next.
    pub fn new(
        automaton: Arc<SchemaAutomaton>,
        max_token_len: usize,
        names: Arc<NameTokens>,
    ) -> SchemaMaskClasses {
        {
            let tables = &mut automaton.lock();
            tables.distinguishes_names |= names.some_span_names();
            let is_longer = max_token_len > tables.max_token_len;
            if tables.continuations.add(Arc::clone(&names)) || is_longer {
                tables.max_token_len = tables.max_token_len.max(max_token_len);
                tables.reader.name_tables.max_token_names = tables.max_token_len;
                tables.lengths.clear();
                tables.continuations.clear();
            }
        }
        let (classes, kept_classes) = (AppendVec::default(), AppendVec::default());
        SchemaMaskClasses { automaton, max_token_len, names, classes, kept_classes }
    }
}

impl MaskClasses for SchemaMaskClasses {
    type Machine = SchemaAutomaton;

    fn machine(&self) -> &Arc<SchemaAutomaton> {
        &self.automaton
    }

    #[inline]
    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        match self.classes.get(state.number() as usize) {
            0 => {
                let tables = &mut self.automaton.lock();
                let position = tables.abstract_position(state.number())?;
                let forgets = position.record != tables.visited.position(state.number()).record;
                let position = tables.class_representative(position);
                let class = tables.visited.intern_class(position);
                let unsure = if forgets { UNSURE } else { 0 };
                self.classes.set(state.number() as usize, (class + 1) | unsure);
                Ok(MaskClassId::from_number(class))
            }
            class => Ok(MaskClassId::from_number((class & !UNSURE) - 1)),
        }
    }

    fn completion_mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        match self.kept_classes.get(state.number() as usize) {
            0 => {
                let tables = &mut self.automaton.lock();
                let position = tables.abstract_position(state.number())?;
                let class = tables.visited.intern_class(position);
                self.kept_classes.set(state.number() as usize, class + 1);
                Ok(MaskClassId::from_number(class))
            }
            class => Ok(MaskClassId::from_number(class - 1)),
        }
    }

    #[inline]
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        let class = self.classes.get(state.number() as usize) & !UNSURE;
        class.checked_sub(1).map(MaskClassId::from_number)
    }

    #[inline]
    fn is_approximate(&self, state: StateId) -> bool {
        self.classes.get(state.number() as usize) & UNSURE != 0
    }

    fn may_refuse(&self, state: StateId, token: &[u8]) -> Result<bool, Error> {
        self.automaton.lock().needs_recheck(state.number(), token)
    }

    fn drops_seen_items(&self) -> bool {
        self.automaton.has_unique_items
    }

    fn over_scratch(&self, ahead: &Arc<SchemaAutomaton>) -> Option<SchemaMaskClasses> {
        let automaton = Arc::clone(ahead);
        let (max_token_len, names) = (self.max_token_len, Arc::clone(&self.names));
        let (classes, kept_classes) = (AppendVec::default(), AppendVec::default());
        Some(SchemaMaskClasses { automaton, max_token_len, names, classes, kept_classes })
    }

    fn visit<P: ClassVisitor>(&self, purpose: P) -> P::Result {
        purpose.visit(&SchemaLookahead::new(self.automaton.lock()))
    }

    fn visit_accepting<P: AcceptingVisitor>(
        &self,
        state: StateId,
        purpose: P,
    ) -> Result<P::Result, Error> {
        let class = self.mask_class(state)?;
        Ok(purpose.visit(&SchemaLookahead::new(self.automaton.lock()), class))
    }

    fn memory_bytes(&self) -> usize {
        self.classes.memory_bytes() + self.kept_classes.memory_bytes()
    }

    fn fresh_copy(&self) -> Result<Option<SchemaMaskClasses>, Error> {
        let new = |one| {
            SchemaMaskClasses::new(Arc::new(one), self.max_token_len, Arc::clone(&self.names))
        };
        Ok(self.automaton.fresh_copy()?.map(new))
    }
}

impl LazyTables {
    /// Returns the position without anything that no token distinguishes inside its value.
    fn abstract_position(&mut self, state: u32) -> Result<ReaderPosition, Error> {
        let position = self.visited.position(state);
        let position = ReaderPosition { frame: self.relaxed_string(position.frame)?, ..position };
        self.mask_abstraction(position)
    }
}
