//! The public automaton of a schema: construction, and the implementation of [`Machine`].

use std::sync::Arc;

use formalm_core::{
    AppendVec, ByteSet, CompletionClasses, CompletionHints, Error, ForkCheck, ForkSafeMutex,
    LazyDfa, Machine, ReadingHints, RecheckPredicate, Renewal, ScratchCopies, SetOnce, StateId,
    into_dyn_machine,
};
use formalm_json::escapes::EscapePolicy;

use crate::formula::TRUE;
use crate::json::document::Document;
use crate::machine::completion::search::CompletionTables;
use crate::machine::frame::{DONE, FRESH, Frame, Obligation, ReaderPosition};
use crate::machine::lookahead_tables::{LockedTables, PrivateTables};
use crate::machine::mask_class::abstraction::MaskAbstraction;
use crate::machine::reader::Reader;
use crate::machine::spelling::Spelling;
use crate::machine::spelling::json::Json;
use crate::machine::values::Values;
use crate::machine::visited_states::VisitedStates;
use crate::machine::{ACCEPTING, DEAD, LazyTables, NO_RECORD, REFUSING};
use crate::options::{JsonSchemaLimits, JsonSchemaOptions};
use crate::schema_nodes::{KeywordRule, NodeId, NoteEffect, ResolvedSchema, SchemaNote};
use crate::solver::context::SolverContext;
use crate::unique_items_exactness::UniqueItemsProof;
use crate::unreachable_subschemas::ReachabilityCheck;
use crate::{schema_difference, schema_reader};

/// The input that an automaton is built from.
#[derive(Clone, Debug)]
pub(crate) enum SchemaSource {
    /// A schema, and the schemas that it may refer to, by URI.
    Schema(Document, Arc<[(String, Document)]>),
    /// The instances of the first schema that are not instances of the second.
    Difference(Box<[schema_difference::OwnedDescription; 2]>),
}

impl SchemaSource {
    fn read(&self, options: JsonSchemaOptions) -> Result<ResolvedSchema, Error> {
        match self {
            SchemaSource::Schema(schema, resources) => {
                schema_reader::read_schema(schema, resources, options)
            }
            SchemaSource::Difference(sides) => schema_difference::read(sides),
        }
    }
}

/// The automaton of a source, `None` if it has no instance, and its notes.
type BuiltAutomaton<S> = (Option<SchemaAutomaton<S>>, Arc<[SchemaNote]>);

/// The lazy deterministic automaton of a schema. Threads share it freely.
///
/// ```
/// use formalm_core::{LazyDfa, ReadingHints};
/// use formalm_schema::{Document, JsonSchemaLimits, JsonSchemaOptions, SchemaAutomaton};
///
/// let schema = Document::read(r#"{"type": "array", "items": {"enum": [1, 2]}, "minItems": 1}"#)?;
/// let options = JsonSchemaOptions::default();
/// let automaton = SchemaAutomaton::new(&schema, &[], options, JsonSchemaLimits::default())?;
/// let state = automaton.walk(automaton.start(), b"[1,2]")?.expect("a viable prefix");
/// assert!(automaton.is_accepting(state));
/// assert_eq!(automaton.shortest_completion(automaton.start())?, b"[1]");
/// assert_eq!(automaton.walk(automaton.start(), b"[3")?, Err(1));
/// # Ok::<(), formalm_core::Error>(())
/// ```
#[derive(Debug)]
#[expect(private_bounds, reason = "spellings are a matter of this crate")]
pub struct SchemaAutomaton<S: Spelling = Json> {
    /// The source, kept to build the automaton again.
    source: SchemaSource,
    options: JsonSchemaOptions,
    limits: JsonSchemaLimits,
    pub(crate) tables: Arc<ForkSafeMutex<Box<LazyTables<S>>>>,
    /// The private tables of an automaton that looks ahead.
    pub(crate) private_tables: Option<PrivateTables<S>>,
    survey: ForkCheck,
    pub(crate) flags: AppendVec,
    pub(crate) start: StateId,
    notes: Arc<[SchemaNote]>,
    all_notes: SetOnce<Vec<SchemaNote>>,
    /// Set if the items of some array must be unique.
    pub(crate) has_unique_items: bool,
}

impl SchemaAutomaton {
    /// Returns how strings may be escaped.
    pub fn escapes(&self) -> EscapePolicy {
        self.options.escapes
    }

    /// Builds the automaton of a schema. `resources` are the schemas that it may refer to, by URI.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] with a JSON pointer if the schema is invalid or has no instance;
    /// [`Error::Limit`] if deciding that exceeds `limits`.
    pub fn new(
        schema: &Document,
        resources: &[(String, Document)],
        options: JsonSchemaOptions,
        limits: JsonSchemaLimits,
    ) -> Result<SchemaAutomaton, Error> {
        SchemaAutomaton::new_if_satisfiable(schema, resources, options, limits)?.ok_or_else(|| {
            Error::language(
                "the schema has no instances: its keywords contradict each other",
                Some("look for keywords that exclude each other"),
            )
        })
    }

    /// Builds the automaton of a schema, `None` if the schema has no instance.
    ///
    /// # Errors
    ///
    /// As [`SchemaAutomaton::new`], except for a schema without instances.
    pub fn new_if_satisfiable(
        schema: &Document,
        resources: &[(String, Document)],
        options: JsonSchemaOptions,
        limits: JsonSchemaLimits,
    ) -> Result<Option<SchemaAutomaton>, Error> {
        let source = SchemaSource::Schema(schema.clone(), resources.into());
        let (made, notes) = SchemaAutomaton::from_source(source, options, limits)?;
        if made.is_some() && !options.allow_approximate {
            exact(&notes)?;
        }
        Ok(made)
    }
}

#[expect(private_bounds, reason = "spellings are a matter of this crate")]
impl<S: Spelling> SchemaAutomaton<S> {
    /// Builds the automaton of a source, with its notes.
    pub(crate) fn from_source(
        source: SchemaSource,
        options: JsonSchemaOptions,
        limits: JsonSchemaLimits,
    ) -> Result<BuiltAutomaton<S>, Error> {
        let mut schema = source.read(options)?;
        let mut notes = std::mem::take(&mut schema.notes);
        let root = schema.root.unwrap_or(NodeId(0));
        let mut rules = schema.nodes.iter().flat_map(|node| node.rules.iter());
        let has_unique_items = rules.any(|rule| matches!(rule, KeywordRule::UniqueItems));
        let mut core = SolverContext::new(schema, options, limits);
        let must = core.base.child(root);
        let some = core.has_value(must)?;
        core.base.reset_steps();
        notes.extend(UniqueItemsProof::notes(&mut core)?);
        core.base.reset_steps();
        if !some {
            return Ok((None, notes.into()));
        }
        let mut tables = Box::new(LazyTables {
            reader: Reader { values: Values::new(core), spelling: S::new(&options) },
            visited: VisitedStates::default(),
            abstraction: MaskAbstraction::default(),
            masks: S::MaskTables::default(),
            completion: CompletionTables::default(),
        });
        let obligation = Obligation { formulas: [must].into(), queries: [].into(), goal: TRUE };
        let obligation = tables.reader.values.residuals.intern(obligation);
        let frame = Frame::Value { obligation, mark: FRESH, parent: DONE };
        let start = tables.visited.intern(ReaderPosition { frame, record: NO_RECORD });
        let start = StateId::from_number(start);
        let (tables, flags) = (Arc::new(ForkSafeMutex::new(tables)), AppendVec::default());
        let all_notes = SetOnce::new();
        let notes: Arc<[SchemaNote]> = notes.into();
        let (notes_of, private_tables) = (Arc::clone(&notes), None);
        let made = SchemaAutomaton {
            source,
            options,
            limits,
            tables,
            private_tables,
            survey: ForkCheck::new(),
            flags,
            start,
            notes: notes_of,
            all_notes,
            has_unique_items,
        };
        Ok((Some(made), notes))
    }

    /// Returns `true`: every member is valid UTF-8.
    pub fn is_text(&self) -> bool {
        true
    }

    /// Returns the notes for the user, e.g. formats that are not enforced and keywords of older
    /// drafts.
    pub fn notes(&self) -> &[SchemaNote] {
        &self.notes
    }

    /// Returns all notes, including the subschemas that no instance reaches. Finding these takes a
    /// search, which is cached.
    pub fn all_notes(&self) -> &[SchemaNote] {
        self.all_notes.get_or_init(|| {
            let pruned = ReachabilityCheck::notes(&mut self.lock().reader.values.core);
            self.notes.iter().cloned().chain(pruned).collect()
        })
    }

    /// Returns the JSON pointers of all reachable subschemas, each once.
    pub fn subschema_pointers(&self) -> Vec<String> {
        let tables = self.lock();
        let schema = &tables.reader.values.core.base.schema;
        let nodes = (0..schema.nodes.len() as u32).map(NodeId);
        let places: std::collections::BTreeSet<String> = nodes
            .map(|id| schema.json_pointer(id))
            .filter(|position| !position.is_empty())
            .collect();
        places.into_iter().collect()
    }

    /// Returns the number of states built so far.
    pub fn state_count(&self) -> usize {
        self.lock().visited.len()
    }

    /// Locks the tables, with the private states of a look-ahead in place.
    pub(crate) fn lock(&self) -> LockedTables<'_, S> {
        // A panic while the lock was held leaves at worst a partly filled cache.
        let tables = self.tables.lock();
        LockedTables::new(tables, self.private_tables.as_ref())
    }
}

/// Fails if some note says that the automaton is not exact.
fn exact(notes: &[SchemaNote]) -> Result<(), Error> {
    match notes.iter().find(|note| note.effect != NoteEffect::Exact) {
        None => Ok(()),
        Some(note) => {
            let hint =
                "pass approximate=True to accept it; the report then lists the approximation";
            Err(schema_reader::schema_error(&note.place, &note.message, Some(hint)))
        }
    }
}

#[expect(private_bounds, reason = "spellings are a matter of this crate")]
impl<S: Spelling> SchemaAutomaton<S> {
    /// Returns `true` if the input read so far is a member.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        match self.flags.get(state.number() as usize) {
            0 => {
                let accepting = self.lock().is_accepting(state.number());
                let flag = if accepting { ACCEPTING } else { REFUSING };
                self.flags.set(state.number() as usize, flag);
                accepting
            }
            flag => flag == ACCEPTING,
        }
    }
}

impl<S: Spelling> LazyDfa for SchemaAutomaton<S> {
    fn start(&self) -> StateId {
        self.start
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let tables = &mut *self.lock();
        let next = tables.visited.successor(&mut tables.reader, state.number(), byte)?;
        Ok((next != DEAD).then(|| StateId::from_number(next)))
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(SchemaAutomaton::is_accepting(self, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let tables = &mut *self.lock();
        tables.visited.live_bytes(&mut tables.reader, state.number())
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        let tables = &mut *self.lock();
        let position = tables.visited.position(state.number());
        tables.completion.shortest(&mut tables.reader, position)
    }

    fn memory_bytes(&self) -> usize {
        let tables = self.lock();
        if self.private_tables.is_some() { tables.visited_bytes() } else { tables.bytes() }
    }

    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        let tables = &mut *self.lock();
        let walked = tables.visited.walk(&mut tables.reader, state.number(), text)?;
        Ok(walked.map(StateId::from_number))
    }
}

impl<S: Spelling> ReadingHints for SchemaAutomaton<S> {
    fn byte_classes(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        Ok(self.lock().byte_classes(state.number())?.to_vec())
    }

    fn is_finite(&self) -> bool {
        false
    }

    fn reads_text(&self) -> bool {
        self.is_text()
    }

    fn accepts_from(&self, state: StateId, text: &[u8]) -> Result<bool, Error> {
        let tables = &mut *self.lock();
        let position = tables.visited.position(state.number());
        tables.reader.is_completed(position, text)
    }

    fn typical_input(&self, number: usize) -> Option<Vec<u8>> {
        let tables = self.lock();
        let Reader { values, spelling } = &tables.reader;
        spelling.typical_instance(&values.core.base.schema, number)
    }
}

impl<S: Spelling> CompletionHints for SchemaAutomaton<S> {
    fn quick_shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        let tables = &mut *self.lock();
        let position = tables.visited.position(state.number());
        tables.completion.shortest_soon(&mut tables.reader, position)
    }

    fn min_bytes_hint(&self, state: StateId) -> Result<usize, Error> {
        let tables = self.lock();
        let spelling = &tables.reader.spelling;
        // Each open string and container takes a byte to end.
        let ends = !spelling.string_end().is_empty() && spelling.close_len(1) > 0;
        Ok(if ends { tables.open_frames(state.number()) } else { 0 })
    }
}

impl<S: Spelling> CompletionClasses for SchemaAutomaton<S> {
    fn completion_class(&self, state: StateId) -> Result<StateId, Error> {
        let tables = &mut *self.lock();
        if !tables.reader.spelling.finds_repetitions() {
            return Ok(state);
        }
        let position = tables.visited.position(state.number());
        let other = tables.completion.equivalent_position(&mut tables.reader, position)?;
        Ok(other.map_or(state, |other| StateId::from_number(tables.visited.intern(other))))
    }

    /// Returns `true` for tokens that begin a property name after another one; the two may become
    /// equal.
    fn input_needs_recheck(&self, token: &[u8]) -> bool {
        self.lock().reader.spelling.joins_names(token)
    }

    fn abstract_state(&self, state: StateId) -> Result<StateId, Error> {
        let tables = &mut *self.lock();
        let position = tables.visited.position(state.number());
        let Reader { values, spelling } = &mut tables.reader;
        let position = spelling.without_repetitions(values, position);
        Ok(StateId::from_number(tables.visited.intern(position)))
    }

    fn keeps_completion(&self, state: StateId, completion: &[u8]) -> Result<bool, Error> {
        let tables = &mut *self.lock();
        let position = tables.visited.position(state.number());
        let Reader { values, spelling } = &mut tables.reader;
        Ok(spelling.repeats_nothing(values, position, completion))
    }

    fn needs_recheck(
        &self,
        state: Option<StateId>,
        forgetful: StateId,
        text: &[u8],
    ) -> Result<Option<RecheckPredicate>, Error> {
        let tables = &mut *self.lock();
        let position = state.map(|state| tables.visited.position(state.number()));
        let frame = tables.visited.position(forgetful.number()).frame;
        let Reader { values, spelling } = &mut tables.reader;
        Ok(spelling.recheck_predicate(values, position, frame, text))
    }
}

impl<S: Spelling> ScratchCopies for SchemaAutomaton<S> {
    fn scratch_copy(&self) -> Option<SchemaAutomaton<S>> {
        if self.private_tables.is_some() {
            return None;
        }
        let own = PrivateTables::default();
        let start = own.enter(&self.lock(), self.start);
        Some(SchemaAutomaton {
            source: self.source.clone(),
            options: self.options,
            limits: self.limits,
            tables: Arc::clone(&self.tables),
            private_tables: Some(own),
            survey: ForkCheck::new(),
            flags: AppendVec::default(),
            start,
            notes: Arc::clone(&self.notes),
            all_notes: SetOnce::new(),
            has_unique_items: self.has_unique_items,
        })
    }

    fn dyn_scratch_copy(&self) -> Option<Arc<dyn Machine>> {
        Some(Arc::new(self.scratch_copy()?))
    }

    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        let Some(own) = &self.private_tables else { return Ok(state) };
        // This lock does not swap the tables, so those of the other automaton are in place.
        let tables = self.tables.lock();
        Ok(own.enter(&tables, state))
    }
}

impl<S: Spelling> Renewal for SchemaAutomaton<S> {
    fn is_abandoned(&self) -> bool {
        self.survey.is_abandoned(|| {
            self.tables.is_abandoned()
                || self.private_tables.as_ref().is_some_and(|own| own.is_abandoned())
                || self.lock().reader.values.core.languages.automata().any(|one| one.is_abandoned())
        })
    }

    fn fresh_copy(&self) -> Result<Option<SchemaAutomaton<S>>, Error> {
        Ok(SchemaAutomaton::from_source(self.source.clone(), self.options, self.limits)?.0)
    }

    fn dyn_fresh_copy(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        into_dyn_machine(self.fresh_copy())
    }
}
