//! [`GrammarAutomaton`]: the lazy deterministic automaton of a grammar, shared between threads.

use std::any::Any;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, ForkCheck, ForkSafeMutex, LazyDfa, Machine,
    MemoryBytes, ReadingHints, Renewal, Resource, ScratchCopies, StateId, into_dyn_machine,
    record_steps, require_exact,
};
use formalm_machines::{
    CompletionLength, IntersectionBounds, OpaqueCache, Precision, ProductCache,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::NOTHING;
use crate::byte_transitions::{TransitionTable, UNKNOWN};
use crate::completion::CompletionBounds;
use crate::completion::shortest_completion::ShortestCompletion;
use crate::grammar::{Grammar, GrammarNote, Rule};
use crate::grammar_state::{GrammarState, UselessReason};
use crate::limits::{GrammarLimits, check};
use crate::longest_match_conflicts::unusable_alternatives;
use crate::scratch_states::{ScratchStates, StateTables};

/// The hint shown if an external parser rules out an exact answer.
const NO_COMPLETION_HINT: &str = "is_viable(text) reports whether an input is rejected";

/// The dead state. The list of configurations `n` is state `n + 1`.
pub(crate) const DEAD: u32 = 1;

const ACCEPTING: u32 = 1;
/// The flag that acceptance was computed.
const ACCEPTANCE_KNOWN: u32 = 2;

/// A lazy deterministic automaton over bytes. Its states are the inputs that it can distinguish;
/// threads share it freely.
#[derive(Debug)]
pub struct GrammarAutomaton {
    /// The source grammar, kept to build a fresh automaton.
    grammar: Arc<Grammar>,
    shared: Arc<ForkSafeMutex<SharedState>>,
    /// The states visited by a scratch copy; `None` in the original.
    scratch: Option<ScratchStates>,
    survey: ForkCheck,
    pub(crate) classes: [u8; 256],
    pub(crate) transitions: TransitionTable,
    start: StateId,
    limits: GrammarLimits,
    notes: Vec<GrammarNote>,
    /// `true` if every member is valid UTF-8.
    text: bool,
    /// `true` if some sublanguage is an external parser, which only knows what it rejects.
    pub(crate) asks: bool,
}

/// Maximum number of reasons in the error for an empty grammar. Chosen, not measured.
const MAX_NOTES: usize = 3;

/// The reason why a grammar is empty.
enum EmptyReason {
    Rules,
    Lexemes,
}

impl EmptyReason {
    /// Builds the error for an empty grammar; `notes` name the lexemes that are never read.
    fn error(self, notes: &[GrammarNote]) -> Error {
        let (message, hint) = match self {
            EmptyReason::Rules => (
                "no string is a member",
                "every derivation of the start rule is infinite, or needs a terminal or rule that \
                 derives no string",
            ),
            EmptyReason::Lexemes => (
                "no string can be split into lexemes as the grammar requires",
                "a longer lexeme always takes precedence, or a lookahead is never satisfied",
            ),
        };
        let why: Vec<&str> =
            notes.iter().take(MAX_NOTES).map(|note| note.message.as_str()).collect();
        let hint = if why.is_empty() { hint.to_owned() } else { why.join("; ") };
        let span = notes.first().and_then(|note| note.span);
        let message = format!("the grammar is empty: {message}");
        Error::Language { message, span, hint: Some(hint) }
    }
}

/// Completion bounds for the intersection with a regular language, one per precision.
#[derive(Debug)]
struct BoundsByPrecision([Option<CompletionBounds>; 3]);

impl OpaqueCache for BoundsByPrecision {
    fn memory_bytes(&self) -> usize {
        self.0.iter().flatten().map(CompletionBounds::memory_bytes).sum()
    }
}

/// The part of the automaton that its lock guards.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) core: Box<GrammarState>,
    pub(crate) live: FxHashMap<u32, ByteSet>,
}

/// Exclusive access to the shared state. The steps taken are reported when it is released.
#[derive(Debug)]
pub(crate) struct LockedState<'a> {
    shared: MutexGuard<'a, SharedState>,
    /// In a scratch copy, the tables of the original, swapped out while the lock is held.
    others: Option<MutexGuard<'a, StateTables>>,
    before: u64,
}

impl Deref for LockedState<'_> {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.shared
    }
}

impl DerefMut for LockedState<'_> {
    fn deref_mut(&mut self) -> &mut SharedState {
        &mut self.shared
    }
}

impl LockedState<'_> {
    fn swap(&mut self) {
        if let Some(others) = &mut self.others {
            self.shared.swap(others);
        }
    }
}

impl Drop for LockedState<'_> {
    fn drop(&mut self) {
        self.swap();
        record_steps(self.shared.core.meter().total().saturating_sub(self.before));
    }
}

impl GrammarAutomaton {
    /// Builds the automaton of a grammar.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if the grammar is empty or a terminal cannot be lexed as the grammar
    /// demands; [`Error::Limit`] if building it exceeds `limits`.
    pub fn new(grammar: &Grammar, limits: GrammarLimits) -> Result<GrammarAutomaton, Error> {
        match GrammarAutomaton::build(grammar, limits)? {
            Ok(automaton) => Ok(automaton),
            Err(empty) => Err(empty.error(&unusable_alternatives(grammar, limits)?)),
        }
    }

    /// Builds the automaton of a grammar; `None` if the grammar is empty.
    ///
    /// # Errors
    ///
    /// Otherwise as [`GrammarAutomaton::new`].
    pub fn new_if_nonempty(
        grammar: &Grammar,
        limits: GrammarLimits,
    ) -> Result<Option<GrammarAutomaton>, Error> {
        Ok(GrammarAutomaton::build(grammar, limits)?.ok())
    }

    fn build(
        grammar: &Grammar,
        limits: GrammarLimits,
    ) -> Result<Result<GrammarAutomaton, EmptyReason>, Error> {
        let Some((mut core, useless)) = GrammarState::new(grammar, limits)? else {
            return Ok(Err(EmptyReason::Rules));
        };
        let mut notes = grammar.notes.clone();
        let needed: FxHashSet<&String> = grammar.needed_names.iter().collect();
        notes.extend(useless.into_iter().filter_map(|(rule, useless)| {
            let Rule { name, span, .. } = &grammar.rules[rule];
            let why = match useless {
                UselessReason::Unproductive => "derives no string",
                UselessReason::Unreachable if needed.contains(name) => return None,
                UselessReason::Unreachable => "is unreachable from the start rule",
            };
            Some(GrammarNote { message: format!("the rule {name} {why}"), span: *span })
        }));
        let start = core.start()?;
        if start == NOTHING {
            return Ok(Err(EmptyReason::Lexemes));
        }
        let automaton = GrammarAutomaton {
            grammar: Arc::new(grammar.clone()),
            classes: *core.reader.lexer.threads.classes(),
            transitions: TransitionTable::new(core.reader.lexer.threads.representatives().len()),
            start: StateId::from_number(start + 1),
            limits,
            notes,
            asks: core.reader.has_external_parsers(),
            text: grammar.terminals.iter().all(|one| {
                // A terminal with lookahead comes from a pattern, whose lexemes are valid UTF-8.
                match &one.sublanguage {
                    Some(embedded) => embedded.is_text,
                    None => one.language.is_utf8() || one.language.is_lexeme(),
                }
            }),
            shared: Arc::new(ForkSafeMutex::new(SharedState { core, live: FxHashMap::default() })),
            scratch: None,
            survey: ForkCheck::new(),
        };
        Ok(Ok(automaton))
    }

    /// Returns `true` if every member is valid UTF-8; `false` may also mean that this is unknown.
    pub fn is_text(&self) -> bool {
        self.text
    }

    /// Returns notes for the user: useless rules, and remarks of the notation's reader.
    pub fn notes(&self) -> &[GrammarNote] {
        &self.notes
    }

    /// Returns the number of states interned so far.
    pub fn state_count(&self) -> usize {
        self.lock().core.states.len() - 1
    }

    pub(crate) fn lock(&self) -> LockedState<'_> {
        // A panic while the lock was held leaves at worst an incomplete cache.
        let mut shared = self.shared.lock();
        let others = self.scratch.as_ref().map(ScratchStates::lock);
        let before = shared.core.meter().total();
        let mut locked = LockedState { before, shared, others };
        locked.swap();
        locked
    }

    /// Returns the state after a byte, computing it if it is unknown.
    pub(crate) fn next_with_state(
        &self,
        core: &mut GrammarState,
        state: u32,
        byte: u8,
    ) -> Result<u32, Error> {
        let class = self.classes[usize::from(byte)];
        let next = self.known_successor(state, class);
        if next != UNKNOWN {
            return Ok(next);
        }
        core.meter().reset();
        let next = core.step(state - 1, byte)? + 1;
        self.check_states(core)?;
        match self.transitions.get(state, class) {
            UNKNOWN => self.transitions.set(state, class, next),
            waypoint => self.transitions.set_target(waypoint, next),
        }
        Ok(next)
    }

    /// Returns the state after a byte class; [`UNKNOWN`] if it was not computed.
    #[inline]
    pub(crate) fn known_successor(&self, state: u32, class: u8) -> u32 {
        let next = self.transitions.get(state, class);
        if TransitionTable::is_waypoint(next) { self.transitions.target(next) } else { next }
    }

    pub(crate) fn check_states(&self, core: &GrammarState) -> Result<(), Error> {
        check(Resource::States, core.states.len() as u64, self.limits.states)?;
        check(Resource::Bytes, core.states.memory_bytes() as u64, self.limits.bytes)
    }

    /// Computes whether a state is accepting. This is done on demand: most bytes and tokens never
    /// need it.
    fn compute_acceptance(&self, state: u32) -> Result<bool, Error> {
        let core = &mut self.lock().core;
        core.meter().reset();
        let accepting = core.is_accepting(state - 1)?;
        self.transitions.set_flags(
            state,
            if accepting { ACCEPTANCE_KNOWN | ACCEPTING } else { ACCEPTANCE_KNOWN },
        );
        Ok(accepting)
    }

    /// Returns the state after a byte.
    #[inline]
    pub(crate) fn next(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let next = match self.known_successor(state.number(), self.classes[usize::from(byte)]) {
            UNKNOWN => {
                self.with_answers(|core| self.next_with_state(core, state.number(), byte))?
            }
            next => next,
        };
        Ok((next != DEAD).then(|| StateId::from_number(next)))
    }
}

impl IntersectionBounds for GrammarAutomaton {
    fn intersection_completion(
        &self,
        state: StateId,
        beside: &mut ProductCache,
        at: StateId,
        precision: Precision,
    ) -> Result<CompletionLength, Error> {
        let core = &mut *self.lock().core;
        let known = beside.known.get_or_insert_with(|| -> Box<dyn OpaqueCache> {
            let made = |precision| {
                let regular = Some(Arc::clone(&beside.regular));
                CompletionBounds::new(regular, precision, core.limits(), &core.reader)
            };
            Box::new(BoundsByPrecision(
                [Precision::Coarse, Precision::Fine, Precision::Finest].map(made),
            ))
        });
        let known: &mut dyn Any = &mut **known;
        let Some(BoundsByPrecision(bounds)) = known.downcast_mut() else {
            return Ok(CompletionLength::Unknown);
        };
        core.meter().reset();
        match &mut bounds[precision as usize] {
            Some(bounds) => {
                bounds.bound_of_any(&core.states.get(state.number() - 1), at, &mut core.reader)
            }
            None => Ok(CompletionLength::Unknown),
        }
    }
}

impl LazyDfa for GrammarAutomaton {
    fn start(&self) -> StateId {
        self.start
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        self.next(state, byte)
    }

    #[inline]
    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        match self.asks {
            true => self.walk_with_external_parsers(state, text),
            false => self.walk_run(state, text),
        }
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        match self.transitions.flags(state.number()) {
            0 => self.compute_acceptance(state.number()),
            flags => Ok(flags & ACCEPTING != 0),
        }
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        if self.asks && !self.separated_state(state)?.external_states().is_empty() {
            // An external parser excludes no byte in advance.
            let mut all = ByteSet::default();
            (0..=255).for_each(|byte| all.insert(byte));
            return Ok(all);
        }
        let shared = &mut *self.lock();
        if let Some(&live) = shared.live.get(&state.number()) {
            return Ok(live);
        }
        shared.core.checkpoint();
        let live = shared.core.live_bytes(state.number() - 1);
        shared.core.rollback();
        let live = live?;
        shared.live.insert(state.number(), live);
        Ok(live)
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        require_exact(self, "a shortest member", NO_COMPLETION_HINT)?;
        let shared = &mut *self.lock();
        shared.core.meter().reset();
        shared.core.checkpoint();
        let text = ShortestCompletion::new(&mut shared.core).find(state.number() - 1);
        shared.core.rollback();
        text
    }

    fn memory_bytes(&self) -> usize {
        let shared = self.lock();
        let state_bytes = match self.scratch {
            Some(_) => shared.visited_bytes(),
            None => shared.core.memory_bytes() + shared.live.len() * 40,
        };
        state_bytes + self.transitions.memory_bytes()
    }
}

impl ReadingHints for GrammarAutomaton {
    fn is_finite(&self) -> bool {
        false
    }

    fn is_exact(&self) -> bool {
        !self.asks
    }

    fn is_char_boundary(&self, state: StateId) -> bool {
        !self.asks || self.is_at_boundary(state)
    }

    fn membership(&self, text: &[u8]) -> Result<Option<bool>, Error> {
        let shared = &mut *self.lock();
        if !shared.core.reader.lexer.needs_viability_checks || self.asks {
            return Ok(None);
        }
        shared.core.checkpoint();
        let member = shared.core.is_member(text);
        shared.core.rollback();
        member.map(Some)
    }
}

impl CompletionHints for GrammarAutomaton {
    fn any_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        require_exact(self, "a member", NO_COMPLETION_HINT)?;
        let shared = &mut *self.lock();
        shared.core.meter().reset();
        shared.core.checkpoint();
        let text = match shared.core.greedy_completion(state.number() - 1) {
            Ok(Some(text)) => Ok(text),
            _ => {
                shared.core.meter().reset();
                ShortestCompletion::new(&mut shared.core).find(state.number() - 1)
            }
        };
        shared.core.rollback();
        text
    }

    fn min_bytes(&self, state: StateId) -> Result<usize, Error> {
        let shared = &mut *self.lock();
        shared.core.meter().reset();
        Ok(shared.core.min_bytes(state.number() - 1)? as usize)
    }

    fn min_bytes_hint(&self, state: StateId) -> Result<usize, Error> {
        self.min_bytes(state)
    }
}

impl CompletionClasses for GrammarAutomaton {}

impl ScratchCopies for GrammarAutomaton {
    fn scratch_copy(&self) -> Option<GrammarAutomaton> {
        if self.scratch.is_some() || self.asks {
            return None;
        }
        let scratch = ScratchStates::new();
        let start = scratch.enter(&mut self.lock(), self.start).ok()?;
        Some(GrammarAutomaton {
            grammar: Arc::clone(&self.grammar),
            shared: Arc::clone(&self.shared),
            scratch: Some(scratch),
            survey: ForkCheck::new(),
            classes: self.classes,
            transitions: TransitionTable::new(self.transitions.width()),
            start,
            limits: self.limits,
            notes: Vec::new(),
            text: self.text,
            asks: false,
        })
    }

    fn dyn_scratch_copy(&self) -> Option<Arc<dyn Machine>> {
        Some(Arc::new(self.scratch_copy()?))
    }

    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        let Some(scratch) = &self.scratch else { return Ok(state) };
        // The lock is taken directly, without the scratch tables, so that the tables of the
        // original are in place.
        let shared = &mut *self.shared.lock();
        scratch.enter(shared, state)
    }
}

impl Renewal for GrammarAutomaton {
    fn is_abandoned(&self) -> bool {
        self.survey.is_abandoned(|| {
            let mut terminals =
                self.grammar.terminals.iter().filter_map(|one| one.sublanguage.as_ref());
            self.shared.is_abandoned()
                || self.scratch.as_ref().is_some_and(|scratch| scratch.is_abandoned())
                || terminals.any(|one| one.machine.is_abandoned())
        })
    }

    /// Terminals that share a machine also share its fresh copy.
    fn fresh_copy(&self) -> Result<Option<GrammarAutomaton>, Error> {
        let mut grammar = Grammar::clone(&self.grammar);
        let mut machines: FxHashMap<*const (), Arc<dyn Machine>> = FxHashMap::default();
        for embedded in grammar.terminals.iter_mut().filter_map(|one| one.sublanguage.as_mut()) {
            let address = Arc::as_ptr(&embedded.machine).cast::<()>();
            let renewed = match machines.get(&address) {
                Some(known_successor) => Arc::clone(known_successor),
                None => match embedded.machine.dyn_fresh_copy()? {
                    Some(renewed) => renewed,
                    None => return Ok(None),
                },
            };
            machines.insert(address, Arc::clone(&renewed));
            embedded.machine = renewed;
        }
        Ok(GrammarAutomaton::build(&grammar, self.limits)?.ok())
    }

    fn dyn_fresh_copy(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        into_dyn_machine(self.fresh_copy())
    }
}
