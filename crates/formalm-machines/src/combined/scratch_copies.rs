//! Scratch machines: copies of a machine for searches, kept from one query to the next.
//!
//! Consecutive queries meet the same states, so a scratch machine is reused. It is dropped once a
//! measurement finds that it uses more than [`SCRATCH_BYTES`].

use std::sync::Arc;

use formalm_core::{ByteSet, Error, ForkCheck, ForkSafeMutex, Machine, MaskClassId, StateId};
use rustc_hash::FxHashMap;

use crate::{
    AcceptingMaskAutomaton, ClassAutomaton, MaskShortcuts, NoLexicalMachine, StringClasses,
    ValueClasses,
};

/// Memory, in bytes, above which a scratch machine is dropped before the next query. Chosen, not
/// measured.
pub const SCRATCH_BYTES: usize = 8 << 20;

/// Maximum number of queries between two measurements of a scratch machine's memory. A machine of
/// hundreds of parts takes longer to measure than to query. Chosen, not measured.
const MAX_UNMEASURED_QUERIES: usize = 128;

/// Maximum number of queries between the first two measurements. Chosen, not measured.
const FIRST_UNMEASURED_QUERIES: usize = 16;

/// Mask classes from this number on are states of the scratch machine.
const FIRST_SCRATCH_CLASS: u32 = 1 << 30;

/// A cache for the scratch machine of one machine.
#[derive(Debug)]
pub struct ScratchCache<M>(ForkSafeMutex<CachedScratch<M>>);

#[derive(Debug)]
struct CachedScratch<M> {
    machine: Option<Arc<ScratchMachine<M>>>,
    /// The number of queries before the next measurement.
    unmeasured: usize,
    /// Size at the last measurement, in bytes, and the number of queries from there to the next.
    measured: (usize, usize),
}

impl<M> CachedScratch<M> {
    fn new(machine: Option<Arc<ScratchMachine<M>>>) -> CachedScratch<M> {
        CachedScratch { machine, unmeasured: 0, measured: (0, 0) }
    }
}

impl<M: Machine> CachedScratch<M> {
    /// Returns `true` if the machine can serve another query.
    fn serves(&mut self) -> bool {
        let Some(machine) = self.machine.as_ref().filter(|one| !one.is_abandoned()) else {
            return false;
        };
        if self.unmeasured > 0 {
            self.unmeasured -= 1;
            return true;
        }
        let bytes = machine.memory_bytes();
        let Some(left) = SCRATCH_BYTES.checked_sub(bytes) else { return false };
        let (before, queries) = self.measured;
        let per_query = bytes.saturating_sub(before) / queries.max(1) + 1;
        // At four times the growth so far, the limit is not exceeded before the next measurement.
        self.unmeasured = (left / (4 * per_query))
            .min((2 * queries).clamp(FIRST_UNMEASURED_QUERIES, MAX_UNMEASURED_QUERIES));
        self.measured = (bytes, self.unmeasured);
        true
    }
}

impl<M> Default for ScratchCache<M> {
    fn default() -> ScratchCache<M> {
        ScratchCache(ForkSafeMutex::new(CachedScratch::new(None)))
    }
}

impl<M: Machine> ScratchCache<M> {
    /// Returns the scratch machine of `machine`, or `None` if `machine` itself may be searched.
    pub fn of(&self, machine: &M) -> Option<Arc<ScratchMachine<M>>> {
        let kept = &mut *self.0.lock();
        if !kept.serves() {
            let made = machine.scratch_copy().map(|machine| Arc::new(ScratchMachine::new(machine)));
            *kept = CachedScratch::new(made);
        }
        kept.machine.clone()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.current().map_or(0, |one| one.memory_bytes())
    }

    /// Returns the scratch machine of the last query.
    pub(super) fn current(&self) -> Option<Arc<ScratchMachine<M>>> {
        self.0.lock().machine.clone().filter(|one| !one.is_abandoned())
    }
}

/// A scratch machine, with the states imported from its original.
#[derive(Debug)]
pub struct ScratchMachine<M> {
    /// The machine.
    pub machine: Arc<M>,
    /// Scratch states that were imported, with their numbers in the original.
    imported: ForkSafeMutex<FxHashMap<u32, u32>>,
    survey: ForkCheck,
}

impl<M: Machine> ScratchMachine<M> {
    fn new(machine: M) -> ScratchMachine<M> {
        ScratchMachine {
            machine: Arc::new(machine),
            imported: ForkSafeMutex::new(FxHashMap::default()),
            survey: ForkCheck::new(),
        }
    }

    /// Returns the scratch state equivalent to a state of the original.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        self.machine.import_state(state)
    }

    fn is_abandoned(&self) -> bool {
        self.survey.is_abandoned(|| self.imported.is_abandoned() || self.machine.is_abandoned())
    }

    fn memory_bytes(&self) -> usize {
        let entered = self.imported.lock();
        self.machine.memory_bytes() + entered.capacity() * 9
    }

    /// Returns the mask automaton whose classes are states of the original.
    pub fn mask_automaton(&self) -> ScratchMaskAutomaton<'_, M> {
        ScratchMaskAutomaton(self)
    }

    /// Returns the class of a scratch state.
    pub fn scratch_class(&self, state: StateId) -> MaskClassId {
        MaskClassId::from_number(FIRST_SCRATCH_CLASS + state.number())
    }

    /// Returns `true` if a class is a scratch state.
    pub fn is_scratch_class(&self, class: MaskClassId) -> bool {
        class.number() >= FIRST_SCRATCH_CLASS
    }

    /// Returns the class after a byte, always a scratch state.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn step_to_scratch(
        &self,
        class: MaskClassId,
        byte: u8,
    ) -> Result<Option<MaskClassId>, Error> {
        let next = self.machine.step(self.state(class)?, byte)?;
        Ok(next.map(|next| self.scratch_class(next)))
    }

    fn state(&self, class: MaskClassId) -> Result<StateId, Error> {
        if let Some(own) = class.number().checked_sub(FIRST_SCRATCH_CLASS) {
            return Ok(StateId::from_number(own));
        }
        let own = self.import_state(StateId::from_number(class.number()))?;
        let mut entered = self.imported.lock();
        entered.entry(own.number()).or_insert(class.number());
        Ok(own)
    }

    fn key(&self, state: StateId) -> MaskClassId {
        let entered = self.imported.lock();
        let known = entered.get(&state.number()).copied();
        MaskClassId::from_number(known.unwrap_or(FIRST_SCRATCH_CLASS + state.number()))
    }
}

/// The mask automaton of a scratch machine, with states as classes.
#[derive(Debug)]
pub struct ScratchMaskAutomaton<'a, M>(&'a ScratchMachine<M>);

impl<M: Machine> AcceptingMaskAutomaton for ScratchMaskAutomaton<'_, M> {
    fn is_accepting_class(&self, class: MaskClassId) -> Result<bool, Error> {
        self.0.machine.is_accepting(self.0.state(class)?)
    }
}

impl<M: Machine> ClassAutomaton for ScratchMaskAutomaton<'_, M> {
    type LexicalMachine = NoLexicalMachine;

    fn step(&self, class: MaskClassId, byte: u8) -> Result<Option<MaskClassId>, Error> {
        let next = self.0.machine.step(self.0.state(class)?, byte)?;
        Ok(next.map(|next| self.0.key(next)))
    }

    fn live_bytes(&self, class: MaskClassId) -> Result<ByteSet, Error> {
        self.0.machine.live_bytes(self.0.state(class)?)
    }
}

impl<M: Machine> MaskShortcuts for ScratchMaskAutomaton<'_, M> {}

impl<M: Machine> StringClasses for ScratchMaskAutomaton<'_, M> {}

impl<M: Machine> ValueClasses for ScratchMaskAutomaton<'_, M> {}
