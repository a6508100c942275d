//! The lazily determinized automaton of a regular language.
//!
//! ```text
//!  StateId ◄──StateIndex──► TermId          row of StateId: one slot per byte class
//!                                           UNKNOWN │ DEAD │ next │ next + KNOWN_LIVE
//! ```
//!
//! A state is an interned term. Its row of successors is filled one byte class at a time, when that
//! class is first read. Reading a known slot takes no lock. Dead states are never visible: a pure
//! term cannot be empty, and for other terms a search for an accepting state runs once and marks
//! every state it decides ([`liveness`]).

mod bounded_viability_classes;
mod byte_classes;
mod counter_abstraction;
mod finite_words;
pub(crate) mod fork_safe_automaton;
mod leading_words;
mod literal_automaton;
mod liveness;
mod narrow_alternatives;
mod parts;
mod shortest_completion;
pub(crate) mod transition_table;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, ForkCheck, ForkSafeMutex, LazyDfa, Machine,
    MemoryBytes, ReadingHints, Renewal, Resource, ScratchCopies, StateId, StepMeter, check_limit,
    interrupt, into_dyn_machine,
};

use crate::automaton::byte_classes::ByteClasses;
use crate::automaton::counter_abstraction::CounterTables;
use crate::automaton::liveness::LivenessSearch;
use crate::automaton::parts::PartDigests;
use crate::automaton::shortest_completion::{CompletionSearch, ShortestWord};
use crate::automaton::transition_table::{DEAD, StateFlags, StateIndex, TransitionRows, UNKNOWN};
use crate::language_expression::Expression;
use crate::terms::byte_equivalence::ByteSpan;
use crate::terms::derivative::Deriver;
use crate::terms::expression_lowering::ExpressionLowering;
use crate::terms::{EMPTY, TermId};

pub use bounded_viability_classes::{BoundedQuotient, ClassLoop};
pub use counter_abstraction::Saturated;
pub use finite_words::{FiniteWords, WordPosition};
pub use leading_words::LeadingWords;
pub use literal_automaton::{LiteralAutomaton, literal_automata};

/// The resources an automaton may use. Exceeding one is an [`Error::Limit`].
#[derive(Clone, Copy, Debug)]
pub struct AutomatonLimits {
    /// Maximum number of states explored, including those that searches for accepting states visit.
    pub states: u64,
    /// Maximum memory for terms, states and rows, in bytes.
    pub bytes: u64,
}

impl Default for AutomatonLimits {
    fn default() -> AutomatonLimits {
        AutomatonLimits { states: 250_000, bytes: 256 << 20 }
    }
}

impl AutomatonLimits {
    /// Returns a step meter for building the states.
    pub(crate) fn work(self) -> StepMeter {
        StepMeter { steps: 0, allowed: self.states.saturating_mul(STEPS_PER_STATE) }
    }
}

/// Steps of derivation allowed per allowed state. It bounds the time of a single state. Chosen, not
/// measured.
const STEPS_PER_STATE: u64 = 400;

/// Marks a successor that is known to be live.
const KNOWN_LIVE: u32 = 1 << 31;

/// The tables that change while the automaton grows. One lock guards them; known slots never take
/// it.
#[derive(Debug)]
struct AutomatonCore {
    deriver: Deriver,
    index: StateIndex,
    parts: PartDigests,
    counters: CounterTables,
}

/// A lazy deterministic automaton over bytes, shared freely between threads.
#[derive(Debug)]
pub struct Automaton {
    /// The expression it was built from, to build it again.
    expression: Expression,
    core: ForkSafeMutex<AutomatonCore>,
    classes: ByteClasses,
    rows: TransitionRows,
    flags: StateFlags,
    start: StateId,
    /// Every state is live, because every term is pure.
    pure: bool,
    /// Every member is valid UTF-8.
    utf8: bool,
    /// The automaton has more states than are worth keeping.
    many_states: bool,
    limits: AutomatonLimits,
    /// Number of times that recognizers had lost their states when it was built, see
    /// [`Renewal::is_abandoned`].
    losses: u32,
    /// Identifies the automaton, and so the numbers of its states, in this process.
    serial: u64,
    fork_check: ForkCheck,
}

/// Returns a number that no other automaton of this process has.
fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Automaton {
    /// Builds the automaton of a language.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if the language is empty; [`Error::Limit`] if the emptiness
    /// check, or the language itself, exceeds `limits`.
    pub fn new(expression: &Expression, limits: AutomatonLimits) -> Result<Automaton, Error> {
        Automaton::of(expression, limits)?.ok_or_else(|| {
            Error::language(
                "the language is empty: no string is a member",
                Some("look for an intersection, difference or lookaround that excludes everything"),
            )
        })
    }

    /// Builds the automaton of a language, or returns `None` if the language is empty: an automaton
    /// has live states only.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the emptiness check, or the language itself, exceeds `limits`.
    pub fn of(
        expression: &Expression,
        limits: AutomatonLimits,
    ) -> Result<Option<Automaton>, Error> {
        let mut lowering = ExpressionLowering::new(limits.work());
        let start = lowering.lower(expression);
        let start = start.map_err(|error| lowering.work().limit_error(error))?;
        let deriver = lowering.into_deriver();
        let terms = &deriver.terms;
        let classes = ByteClasses::of_term(terms, start);
        let pure = terms.properties(start).pure;
        let endless = terms.recognizers.has_many_states();
        let losses = terms.recognizers.losses();
        let core = AutomatonCore {
            deriver,
            index: StateIndex::default(),
            parts: PartDigests::default(),
            counters: CounterTables::default(),
        };
        let mut automaton = Automaton {
            expression: expression.clone(),
            core: ForkSafeMutex::new(core),
            classes,
            rows: TransitionRows::default(),
            flags: StateFlags::default(),
            start: StateId::from_number(DEAD),
            pure,
            utf8: expression.is_utf8(),
            many_states: endless,
            limits,
            losses,
            serial: next_serial(),
            fork_check: ForkCheck::new(),
        };
        let first = automaton.intern(&mut automaton.lock(), start)?;
        automaton.start = StateId::from_number(first);
        let is_live = first != DEAD && automaton.is_live(first)?;
        Ok(is_live.then_some(automaton))
    }

    /// Returns an automaton of the same language that has the same states under the same numbers
    /// and grows independently. Returns `None` if its states are few enough to share.
    pub fn independent_copy(&self) -> Option<Automaton> {
        let core = self.lock();
        let deriver = core.deriver.independent_copy()?;
        let index = core.index.clone();
        let losses = deriver.terms.recognizers.losses();
        Some(Automaton {
            expression: self.expression.clone(),
            flags: self.flags.copy(&index),
            core: ForkSafeMutex::new(AutomatonCore {
                deriver,
                index,
                parts: PartDigests::default(),
                counters: CounterTables::default(),
            }),
            classes: self.classes.clone(),
            rows: TransitionRows::sparse(),
            losses,
            serial: next_serial(),
            fork_check: ForkCheck::new(),
            ..*self
        })
    }

    /// Returns a number that no other automaton of this process has. Together with it, the number
    /// of a state identifies what may follow.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns `true` if automata of the language have more states than are worth keeping.
    pub fn has_many_states(&self) -> bool {
        self.many_states
    }

    /// Returns the first byte of each byte class. Bytes of one class are never distinguished.
    pub fn class_starts(&self) -> &[u8] {
        self.classes.representatives()
    }

    /// Returns the number of states built so far.
    pub fn state_count(&self) -> usize {
        self.lock().index.len()
    }

    /// Returns the number of derivation steps taken so far.
    pub fn work(&self) -> u64 {
        self.lock().deriver.work.steps
    }

    /// Returns the smallest shortest completion if it is found within `allowed` steps.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the search takes more steps.
    pub fn shortest_within_steps(&self, state: StateId, allowed: u64) -> Result<Vec<u8>, Error> {
        if self.is_accepting(state) {
            return Ok(Vec::new());
        }
        match self.shortest_from_term(state) {
            Some(text) => Ok(text),
            None => CompletionSearch::new(self, allowed).run(state),
        }
    }

    /// Returns the shortest completion where it can be read off the term.
    fn shortest_from_term(&self, state: StateId) -> Option<Vec<u8>> {
        if !self.pure {
            return None;
        }
        let core = self.lock();
        ShortestWord::of(&core.deriver.terms, core.index.term(state.number()))
    }

    /// Returns the bytes that some member continues with, if they can be read off the term of a
    /// state without a step.
    pub fn first_bytes(&self, state: StateId) -> Option<ByteSet> {
        if !self.pure {
            return None;
        }
        let core = &self.lock();
        core.deriver.terms.first_bytes(self.term(core, state))
    }

    /// Returns a lower bound on the length of what may follow a state up to the end, in bytes.
    pub fn min_bytes_by_term(&self, state: StateId) -> u32 {
        let core = &self.lock();
        core.deriver.terms.properties(self.term(core, state)).min_len
    }

    /// Returns `true` if every term is pure, so that viability is decided term by term (see
    /// [`BoundedQuotient`]).
    pub fn is_pure(&self) -> bool {
        self.pure
    }

    /// Returns `true` if the term of a state is pure, and those of all states after it, but not that
    /// of every state.
    pub fn is_pure_state(&self, state: StateId) -> bool {
        let core = &self.lock();
        !self.pure && core.deriver.terms.properties(self.term(core, state)).pure
    }

    /// Returns the bytes after which two states lead to different states.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn differing_bytes(&self, first: StateId, second: StateId) -> Result<ByteSet, Error> {
        self.classes.live_bytes(|byte| Ok(self.step(first, byte)? != self.step(second, byte)?))
    }

    /// Returns `true` if every member is known to be valid UTF-8.
    pub fn is_utf8(&self) -> bool {
        self.utf8
    }

    /// Returns the term of a state.
    fn term(&self, core: &AutomatonCore, state: StateId) -> TermId {
        core.index.term(state.number())
    }

    fn lock(&self) -> MutexGuard<'_, AutomatonCore> {
        // A panic while the lock was held leaves at worst a slot unfilled.
        self.core.lock()
    }

    fn fill_row_locked(
        &self,
        core: &mut AutomatonCore,
        state: u32,
        class: usize,
    ) -> Result<u32, Error> {
        let known = self.rows.get(&self.classes, state, class);
        if known != UNKNOWN {
            return Ok(known & !KNOWN_LIVE);
        }
        let (next, span) = self.derive_successor(core, state, class)?;
        let is_live = next != DEAD && self.flags.liveness(next) == Some(true);
        let known = if is_live { next | KNOWN_LIVE } else { next };
        self.rows.set(&self.classes, state, span, known);
        Ok(next)
    }

    /// Returns the successor of a state, and the bytes that lead to it.
    fn derive_successor(
        &self,
        core: &mut AutomatonCore,
        state: u32,
        class: usize,
    ) -> Result<(u32, (u8, u8)), Error> {
        let term = core.index.term(state);
        let byte = self.classes.representatives()[class];
        let next = core.derive(term, byte)?;
        let next = self.intern(core, next)?;
        Ok((next, ByteSpan::around(&core.deriver.terms, term, byte)))
    }

    fn intern(&self, core: &mut AutomatonCore, term: TermId) -> Result<u32, Error> {
        if term == EMPTY {
            return Ok(DEAD);
        }
        if let Some(state) = core.index.find(term) {
            return Ok(state);
        }
        check_limit(Resource::States, core.index.len() as u64 + 1, self.limits.states)?;
        let bytes = core.deriver.memory_bytes() + self.rows.memory_bytes();
        check_limit(Resource::Bytes, bytes as u64, self.limits.bytes)?;
        let state = core.index.add(term);
        let terms = &core.deriver.terms;
        let nullable = terms.nullable(term, &[]);
        let live = self.pure || nullable || terms.properties(term).pure;
        self.flags.add(state, nullable, live);
        Ok(state)
    }

    /// Takes a step that is not in the table yet, or whose liveness is unknown.
    #[cold]
    fn compute_step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let class = self.classes.of(byte);
        let (next, span) = {
            let core = &mut self.lock();
            match self.rows.get(&self.classes, state.number(), class) {
                UNKNOWN => self.derive_successor(core, state.number(), class)?,
                known => {
                    let term = core.index.term(state.number());
                    (known & !KNOWN_LIVE, ByteSpan::around(&core.deriver.terms, term, byte))
                }
            }
        };
        let live = if next == DEAD { Ok(false) } else { self.is_live(next) };
        let known = match live {
            Ok(true) => next | KNOWN_LIVE,
            Ok(false) => DEAD,
            // The next call decides it.
            Err(_) => next,
        };
        self.rows.set(&self.classes, state.number(), span, known);
        Ok(live?.then_some(StateId::from_number(next)))
    }

    fn is_live(&self, state: u32) -> Result<bool, Error> {
        match self.flags.liveness(state) {
            Some(live) => Ok(live),
            None => LivenessSearch::run(self, state),
        }
    }

    /// Returns `true` if the input read so far is a member.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.flags.is_accepting(state.number())
    }
}

impl LazyDfa for Automaton {
    fn start(&self) -> StateId {
        self.start
    }

    #[inline]
    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let class = self.classes.of(byte);
        match self.rows.get(&self.classes, state.number(), class) {
            DEAD => Ok(None),
            next if next & KNOWN_LIVE != 0 => Ok(Some(StateId::from_number(next & !KNOWN_LIVE))),
            _ => self.compute_step(state, byte),
        }
    }

    #[inline]
    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(Automaton::is_accepting(self, state))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        self.classes.live_bytes(|byte| Ok(self.step(state, byte)?.is_some()))
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.shortest_within_steps(state, u64::MAX)
    }

    fn memory_bytes(&self) -> usize {
        let core = self.lock();
        size_of::<Automaton>()
            + core.deriver.memory_bytes()
            + core.index.memory_bytes()
            + core.parts.memory_bytes()
            + core.counters.memory_bytes()
            + self.rows.memory_bytes()
            + self.flags.memory_bytes()
    }
}

impl ReadingHints for Automaton {
    fn reads_text(&self) -> bool {
        self.utf8
    }
}

impl CompletionHints for Automaton {}

impl CompletionClasses for Automaton {}

impl ScratchCopies for Automaton {}

impl Renewal for Automaton {
    fn has_room(&self, states: usize) -> bool {
        let core = self.lock();
        let bytes = core.deriver.memory_bytes() + self.rows.memory_bytes();
        (core.index.len() + states) as u64 <= self.limits.states / 2
            && bytes as u64 <= self.limits.bytes / 2
    }

    fn is_abandoned(&self) -> bool {
        self.fork_check.is_abandoned(|| {
            self.core.is_abandoned()
                || self.lock().deriver.terms.recognizers.losses() != self.losses
        })
    }

    fn fresh_copy(&self) -> Result<Option<Automaton>, Error> {
        Automaton::of(&self.expression, self.limits)
    }

    fn dyn_fresh_copy(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        into_dyn_machine(self.fresh_copy())
    }
}

impl AutomatonCore {
    /// Returns the derivative of a term that depends on nothing around it.
    fn derive(&mut self, term: TermId, byte: u8) -> Result<TermId, Error> {
        // Recognizers inside may own automata, and this one's lock is held.
        let derived = interrupt::without_interrupts(|| self.deriver.derive_state(term, byte));
        derived.map_err(|error| self.deriver.work.limit_error(error))
    }
}
