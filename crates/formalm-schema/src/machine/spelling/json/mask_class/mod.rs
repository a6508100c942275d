//! Mask classes of JSON: states grouped so that all states of a class have the same mask.
//!
//! ```text
//! state ──abstraction──► position ──continuation──► representative ──intern──► class
//!         drop what no            equal surroundings
//!         token sees
//! ```
//!
//! Masks are computed once a class, by a look-ahead. Where the class drops something that a few
//! tokens see, they are rechecked against the state.
//!
//! The look-ahead, continuations, isolated values and rechecks know JSON's punctuation and escapes.
//! What holds for every spelling is in [`crate::machine::mask_class`].

mod container_signature;
pub(crate) mod continuation;
pub(crate) mod isolated_value;
pub(crate) mod item_spanning_tokens;
pub(crate) mod lookahead;
pub(crate) mod lookahead_shortcuts;
pub(crate) mod mask_signature;
pub(crate) mod name_continuation;
mod part;
pub(crate) mod string_state_pairs;

use std::sync::Arc;

use formalm_core::{
    ByteSet, CompactMap, Error, Interner, LazyDfa, MaskClassId, MemoryBytes, Renewal, StateId,
};
use formalm_json::NameTokens;
use formalm_machines::{
    AcceptingVisitor, ApproximateClasses, ClassRenewal, ClassTable, ClassVisitor, MemberEnds,
    PartPosition, StateClasses,
};

use crate::machine::frame::{Frame, ReaderPosition};
use crate::machine::mask_class::abstraction::MaskAbstraction;
use crate::machine::mask_class::string_lengths::RemainingChars;
use crate::machine::mask_class::string_lengths::StringLengths;
use crate::machine::reader::Reader;
use crate::machine::spelling::SpelledMaskTables;
use crate::machine::spelling::json::mask_class::continuation::{
    ContinuationCache, ContinuationQuery,
};
use crate::machine::spelling::json::mask_class::isolated_value::IsolatedValues;
use crate::machine::spelling::json::mask_class::item_spanning_tokens::ItemRecheck;
use crate::machine::spelling::json::mask_class::lookahead::SchemaLookahead;
use crate::machine::spelling::json::mask_class::name_continuation::NameContinuation;
use crate::machine::spelling::json::mask_class::part::{part_at, part_name_at};
use crate::machine::spelling::json::mask_class::string_state_pairs::StringStates;
use crate::machine::{LazyTables, SchemaAutomaton};
use crate::solver::context::LanguageId;

/// The mask classes of a schema's automaton for one vocabulary.
#[derive(Debug)]
pub struct SchemaMaskClasses {
    automaton: Arc<SchemaAutomaton>,
    max_token_len: usize,
    names: Arc<NameTokens>,
    classes: ClassTable,
    /// The classes before surroundings with equal continuations are merged.
    kept_classes: ClassTable,
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
            let tables = &mut *automaton.lock();
            let LazyTables { reader, abstraction, masks, .. } = tables;
            masks.add_vocabulary(reader, abstraction, max_token_len, &names);
        }
        let (classes, kept_classes) = Default::default();
        SchemaMaskClasses { automaton, max_token_len, names, classes, kept_classes }
    }
}

impl StateClasses for SchemaMaskClasses {
    type Machine = SchemaAutomaton;

    fn machine(&self) -> &Arc<SchemaAutomaton> {
        &self.automaton
    }

    #[inline]
    fn mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        if let Some(class) = self.classes.get(state) {
            return Ok(class);
        }
        let tables = &mut *self.automaton.lock();
        let concrete = tables.visited.position(state.number());
        let position = tables.abstract_position(concrete)?;
        let forgets = position.record != concrete.record;
        let position = tables.class_representative(position);
        let class = MaskClassId::from_number(tables.visited.intern_class(position));
        Ok(self.classes.insert(state, class, forgets))
    }

    fn completion_mask_class(&self, state: StateId) -> Result<MaskClassId, Error> {
        if let Some(class) = self.kept_classes.get(state) {
            return Ok(class);
        }
        let tables = &mut *self.automaton.lock();
        let position = tables.visited.position(state.number());
        let position = tables.abstract_position(position)?;
        let class = MaskClassId::from_number(tables.visited.intern_class(position));
        Ok(self.kept_classes.insert(state, class, false))
    }

    #[inline]
    fn known_mask_class(&self, state: StateId) -> Option<MaskClassId> {
        self.classes.get(state)
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
}

impl MemberEnds for SchemaMaskClasses {
    /// The first byte of a JSON value tells its kind, and so its last byte.
    fn last_bytes(&self) -> Result<Option<ByteSet>, Error> {
        let mut last = ByteSet::default();
        for first in self.automaton.live_bytes(self.automaton.start())?.iter() {
            match first {
                b'{' => last.insert(b'}'),
                b'[' => last.insert(b']'),
                b'"' => last.insert(b'"'),
                b'-' | b'0'..=b'9' => (b'0'..=b'9').for_each(|digit| last.insert(digit)),
                b't' | b'f' => last.insert(b'e'),
                b'n' => last.insert(b'l'),
                _ => return Ok(None),
            }
        }
        Ok(Some(last))
    }

    fn part(&self, state: StateId) -> Result<Option<PartPosition>, Error> {
        if self.automaton.has_unique_items {
            return Ok(None);
        }
        let tables = &mut *self.automaton.lock();
        let position = tables.visited.position(state.number());
        let Some((digest, after)) = part_at(&mut tables.reader, position)? else {
            return Ok(None);
        };
        let after = StateId::from_number(tables.visited.intern(after));
        Ok(Some(PartPosition { digest, after }))
    }

    fn part_name(&self, state: StateId) -> Result<Option<u128>, Error> {
        if self.automaton.has_unique_items {
            return Ok(None);
        }
        let tables = &mut *self.automaton.lock();
        let position = tables.visited.position(state.number());
        Ok(part_name_at(&tables.reader, position))
    }
}

impl ApproximateClasses for SchemaMaskClasses {
    #[inline]
    fn is_approximate(&self, state: StateId) -> bool {
        self.classes.is_approximate(state)
    }

    fn may_refuse(&self, state: StateId, token: &[u8]) -> Result<bool, Error> {
        let tables = &mut *self.automaton.lock();
        let position = tables.visited.position(state.number());
        let (reader, abstraction) = (&mut tables.reader, &mut tables.abstraction);
        ItemRecheck { reader, abstraction, position }.needs_recheck(token)
    }

    fn drops_seen_items(&self) -> bool {
        self.automaton.has_unique_items
    }
}

impl ClassRenewal for SchemaMaskClasses {
    fn over_scratch(&self, ahead: &Arc<SchemaAutomaton>) -> Option<SchemaMaskClasses> {
        let automaton = Arc::clone(ahead);
        let (max_token_len, names) = (self.max_token_len, Arc::clone(&self.names));
        let (classes, kept_classes) = Default::default();
        Some(SchemaMaskClasses { automaton, max_token_len, names, classes, kept_classes })
    }

    fn fresh_copy(&self) -> Result<Option<SchemaMaskClasses>, Error> {
        let new = |one| {
            SchemaMaskClasses::new(Arc::new(one), self.max_token_len, Arc::clone(&self.names))
        };
        Ok(self.automaton.fresh_copy()?.map(new))
    }
}

/// The tables of JSON's mask classes: representatives of what the abstraction leaves.
#[derive(Debug, Default)]
pub(crate) struct JsonMaskTables {
    lengths: StringLengths,
    isolated: IsolatedValues,
    continuations: ContinuationCache,
    /// Empty tables of the last look-ahead, reused by the next.
    spare_tables: (Interner<ReaderPosition>, StringStates),
}

impl JsonMaskTables {
    /// Adds the tokens of a vocabulary, and drops what may distinguish too little for them.
    fn add_vocabulary(
        &mut self,
        reader: &mut Reader,
        abstraction: &mut MaskAbstraction,
        max_token_len: usize,
        names: &Arc<NameTokens>,
    ) {
        abstraction.distinguishes_names |= names.some_span_names();
        let longest = abstraction.max_token_len.max(max_token_len);
        let is_longer = longest > abstraction.max_token_len;
        if self.continuations.add(Arc::clone(names), &reader.spelling.gaps) || is_longer {
            abstraction.max_token_len = longest;
            reader.values.name_tables.max_token_names = longest;
            self.lengths = StringLengths::new(longest);
            self.continuations.clear();
            self.isolated.forget_signatures();
        }
    }
}

impl SpelledMaskTables for JsonMaskTables {
    /// Representatives of names; some refer to recorded inputs.
    type Visited = CompactMap<NameContinuation, Frame>;

    fn visited(&mut self) -> &mut CompactMap<NameContinuation, Frame> {
        &mut self.continuations.names.known
    }

    fn visited_bytes(&self) -> usize {
        self.continuations.names.known.table_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.isolated.memory_bytes() + self.continuations.bytes()
    }
}

impl LazyTables {
    /// Returns the position without anything that no token distinguishes.
    fn mask_abstraction(&mut self, position: ReaderPosition) -> Result<ReaderPosition, Error> {
        self.abstraction.apply(&mut self.reader.values, position)
    }

    /// Returns the position without anything that no token distinguishes inside its value.
    fn abstract_position(&mut self, position: ReaderPosition) -> Result<ReaderPosition, Error> {
        let frame = self.relaxed_string(position.frame)?;
        self.mask_abstraction(ReaderPosition { frame, ..position })
    }

    /// Returns the representative of all positions with equal masks; the position itself if finding
    /// that exceeds the step limit.
    fn class_representative(&mut self, position: ReaderPosition) -> ReaderPosition {
        let LazyTables { reader, abstraction, masks, .. } = self;
        ContinuationQuery { cache: &mut masks.continuations, reader, abstraction }
            .class_representative(position)
    }

    /// Replaces a string frame by that of an unconstrained string if no token distinguishes them.
    fn relaxed_string(&mut self, frame: Frame) -> Result<Frame, Error> {
        self.masks.lengths.relaxed_string(&mut self.reader.values.core, frame)
    }

    /// Returns the number of remaining characters of a string if nothing else matters.
    fn remaining_chars(
        &mut self,
        language: LanguageId,
        state: StateId,
    ) -> Result<Option<RemainingChars>, Error> {
        self.masks.lengths.remaining_chars(&self.reader.values.core, language, state)
    }
}
