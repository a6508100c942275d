//! The Glushkov (position) automaton of a regular expression whose symbols are machines.
//!
//! ```text
//!  positions:  A ──► B ──► C     state: { (position, state of its machine), … }
//!              └─────►─────┘     step:  a byte advances every pair; an accepting pair adds the
//!                                       starts of its followers
//! ```
//!
//! A state is a set of positions, each with a state of its machine: every place the input may be.
//! Symbols need not be deterministic together, and one need not end where the next begins, because
//! all pairs are followed at once. Every machine shows live states only and the followers are
//! nonempty, so no state here is a dead end.

use std::sync::{Arc, MutexGuard};

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, ForkSafeMutex, LazyDfa, Machine,
    ReadingHints, RecheckPredicate, Renewal, ScratchCopies, SetOnce, StateId, group_by_successor,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::scratch_copies::ScratchCache;
use super::state_interner::{
    MAX_RUN_BYTES, PartState, StateInterner, class_of, live_bytes_by_step, packed_run,
    shortest_by_distance,
};

/// The position of the initial state, before anything is read.
const START_POSITION: u32 = u32::MAX;

/// Maximum number of positions in a typical input. Chosen, not measured.
const MAX_TYPICAL_POSITIONS: usize = 16;

/// Number of typical inputs: as many as there are alternatives of interest. Chosen, not measured.
const MAX_TYPICAL_INPUTS: usize = 512;

/// One position of the expression.
#[derive(Debug)]
pub struct Position<M> {
    /// The strings of the symbol: a nonempty language.
    pub machine: Arc<M>,
    /// Positions that may come next.
    pub follows: Arc<[u32]>,
    /// `true` if the expression may end with this position.
    pub last: bool,
}

/// Machines combined by concatenation, union and repetition.
#[derive(Debug)]
pub struct PositionAutomaton<M> {
    /// Maximum number of states.
    state_limit: u64,
    positions: Vec<Position<M>>,
    /// Minimum number of bytes after each position has ended, where it was asked for: a shortest
    /// member of each of many machines takes longer than all else here.
    min_bytes_after: Arc<SetOnce<Box<[usize]>>>,
    /// Positions that the expression may begin with.
    first: Box<[u32]>,
    /// `true` if the empty string is a member without any position.
    empty: bool,
    states: Arc<ForkSafeMutex<StateInterner>>,
    /// The original of a scratch machine.
    origin: Option<ScratchOrigin<M>>,
    scratch: ScratchCache<PositionAutomaton<M>>,
}

/// The original of a scratch machine.
#[derive(Debug)]
struct ScratchOrigin<M> {
    states: Arc<ForkSafeMutex<StateInterner>>,
    /// The scratch machines that replace the original's.
    own: Vec<Arc<M>>,
}

impl<M: Machine> PositionAutomaton<M> {
    /// Builds the automaton of an expression. All positions must be reachable and able to reach an
    /// end; `first` are those it may begin with.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn new(
        letters: Vec<Position<M>>,
        first: &[u32],
        empty: bool,
        state_limit: u64,
    ) -> Result<PositionAutomaton<M>, Error> {
        let states = Arc::new(ForkSafeMutex::new(StateInterner::new(state_limit)));
        let (of, ahead) = (None, ScratchCache::default());
        let first = Box::from(first);
        let composed = PositionAutomaton {
            state_limit,
            positions: letters,
            min_bytes_after: Arc::default(),
            first,
            empty,
            states,
            origin: of,
            scratch: ahead,
        };
        let mut items = vec![(START_POSITION, StateId::from_number(0))];
        composed.add_starts(&composed.first, &mut items)?;
        composed.lock().intern(items)?;
        Ok(composed)
    }

    /// Returns the number of states so far, without those of the parts.
    pub fn state_count(&self) -> usize {
        self.lock().len()
    }

    /// Returns the active positions of a state, each with the state of its machine.
    pub fn active_positions(&self, state: StateId) -> Vec<(u32, StateId)> {
        let items = self.lock().items(state.number());
        items.iter().filter(|item| item.0 != START_POSITION).copied().collect()
    }

    /// Returns all positions, by the indices of [`PositionAutomaton::active_positions`].
    pub fn positions(&self) -> &[Position<M>] {
        &self.positions
    }

    /// Returns the state with the given active positions, or `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn state_of(&self, items: &[(u32, StateId)]) -> Result<Option<StateId>, Error> {
        if items.is_empty() {
            return Ok(None);
        }
        Ok(Some(StateId::from_number(self.lock().intern(items.to_vec())?)))
    }

    /// Returns the state with the given active positions of the original.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn imported_state_of(&self, items: &[(u32, StateId)]) -> Result<Option<StateId>, Error> {
        self.state_of(&self.import_items(items)?)
    }

    /// Returns the state of inputs that have just ended a position and continue, or `None` if
    /// nothing may follow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn state_after(&self, letter: u32) -> Result<Option<StateId>, Error> {
        let mut items = Vec::new();
        self.add_starts(&self.positions[letter as usize].follows, &mut items)?;
        self.state_of(&items)
    }

    /// Replaces the machine state of each position.
    fn map_positions(
        &self,
        state: StateId,
        another: impl Fn(&M, StateId) -> Result<StateId, Error>,
    ) -> Result<StateId, Error> {
        let items = self.lock().items(state.number());
        let mut others = Vec::with_capacity(items.len());
        for &(at, state) in items.iter() {
            let letter = self.positions.get(at as usize);
            others.push((at, letter.map_or(Ok(state), |one| another(&one.machine, state))?));
        }
        if others == items[..] {
            return Ok(state);
        }
        self.lock().intern(others).map(StateId::from_number)
    }

    fn lock(&self) -> MutexGuard<'_, StateInterner> {
        self.states.lock()
    }

    /// Returns `true` if this is a scratch machine.
    pub fn is_scratch(&self) -> bool {
        self.origin.is_some()
    }

    /// Imports active positions of the original.
    fn import_items(&self, items: &[PartState]) -> Result<Vec<PartState>, Error> {
        let enter = |&(at, state): &PartState| {
            let letter = self.positions.get(at as usize);
            Ok((at, letter.map_or(Ok(state), |one| one.machine.import_state(state))?))
        };
        items.iter().map(enter).collect()
    }

    /// Adds the starts of positions, and of those after positions that accept the empty string.
    fn add_starts(&self, letters: &[u32], items: &mut Vec<PartState>) -> Result<(), Error> {
        let mut open = letters.to_vec();
        while let Some(at) = open.pop() {
            let letter = &self.positions[at as usize];
            let item = (at, letter.machine.start());
            if !items.contains(&item) {
                items.push(item);
                if letter.machine.is_accepting(item.1)? {
                    open.extend_from_slice(&letter.follows);
                }
            }
        }
        Ok(())
    }

    /// Returns the state after a run of bytes, without the states between. Returns `None` if they
    /// matter: a position may end and another begin, or nothing continues so.
    ///
    /// Inputs of large unions are in hundreds of positions, so each state is a long list.
    fn after_run(&self, state: StateId, run: &[u8]) -> Result<Option<StateId>, Error> {
        let packed = packed_run(run);
        let items = {
            let states = self.lock();
            if let Some(known) = states.after_run(state.number(), packed) {
                return Ok(Some(StateId::from_number(known)));
            }
            states.items(state.number())
        };
        let active = items.iter().filter(|item| item.0 != START_POSITION);
        for &(at, state) in active.clone() {
            let Position { machine, follows, .. } = &self.positions[at as usize];
            if !follows.is_empty() && machine.min_bytes_hint(state)? < run.len() {
                return Ok(None);
            }
        }
        let mut next = Vec::new();
        for &(at, state) in active {
            let Position { machine, follows, .. } = &self.positions[at as usize];
            let Ok(after) = machine.walk(state, run)? else { continue };
            next.push((at, after));
            if !follows.is_empty() && machine.is_accepting(after)? {
                self.add_starts(follows, &mut next)?;
            }
        }
        if next.is_empty() {
            return Ok(None);
        }
        let mut states = self.lock();
        let number = states.intern(next)?;
        states.set_after_run(state.number(), packed, number);
        Ok(Some(StateId::from_number(number)))
    }

    /// Returns the minimum number of bytes after each position has ended.
    fn min_bytes_after(&self) -> Result<&[usize], Error> {
        if let Some(known) = self.min_bytes_after.get() {
            return Ok(known);
        }
        let mut least = Vec::with_capacity(self.positions.len());
        for Position { machine, .. } in &self.positions {
            least.push(machine.shortest_completion(machine.start())?.len());
        }
        let after = || min_bytes_after(&self.positions, &least).into();
        Ok(self.min_bytes_after.get_or_init(after))
    }

    /// Returns the minimum, over all positions, of the bytes that `own` reports and those that
    /// follow.
    fn min_over_positions(
        &self,
        state: StateId,
        own: impl Fn(&M, StateId) -> Result<usize, Error>,
    ) -> Result<usize, Error> {
        if self.is_accepting(state)? {
            return Ok(0);
        }
        let mut least = usize::MAX;
        let after = self.min_bytes_after()?;
        let items = self.lock().items(state.number());
        for &(at, state) in items.iter().filter(|item| item.0 != START_POSITION) {
            let own = own(&self.positions[at as usize].machine, state)?;
            least = least.min(own.saturating_add(after[at as usize]));
        }
        Ok(least)
    }
}

/// Computes the minimum number of bytes after each position.
fn min_bytes_after<M>(letters: &[Position<M>], least: &[usize]) -> Vec<usize> {
    let mut rest: Vec<usize> =
        letters.iter().map(|one| if one.last { 0 } else { usize::MAX }).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (at, letter) in letters.iter().enumerate() {
            for &next in &*letter.follows {
                let through = least[next as usize].saturating_add(rest[next as usize]);
                if through < rest[at] {
                    rest[at] = through;
                    changed = true;
                }
            }
        }
    }
    rest
}

impl<M: Machine> LazyDfa for PositionAutomaton<M> {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let items = {
            let states = self.lock();
            if let Some(known) = states.successor(state.number(), byte) {
                return Ok(known.map(StateId::from_number));
            }
            states.items(state.number())
        };
        let mut next = Vec::new();
        for &(at, state) in items.iter().filter(|item| item.0 != START_POSITION) {
            let letter = &self.positions[at as usize];
            let Some(after) = letter.machine.step(state, byte)? else { continue };
            next.push((at, after));
            if letter.machine.is_accepting(after)? {
                self.add_starts(&letter.follows, &mut next)?;
            }
        }
        let mut states = self.lock();
        let number = if next.is_empty() { None } else { Some(states.intern(next)?) };
        states.set_successor(state.number(), byte, number);
        Ok(number.map(StateId::from_number))
    }

    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        let (mut state, mut done) = (state, 0);
        for run in text.chunks(MAX_RUN_BYTES) {
            let after = if run.len() > 1 { self.after_run(state, run)? } else { None };
            match after {
                Some(after) => state = after,
                None => {
                    for (at, &byte) in run.iter().enumerate() {
                        match self.step(state, byte)? {
                            Some(next) => state = next,
                            None => return Ok(Err(done + at)),
                        }
                    }
                }
            }
            done += run.len();
        }
        Ok(Ok(state))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        let items = self.lock().items(state.number());
        for &(at, state) in &*items {
            let accepting = match self.positions.get(at as usize) {
                Some(letter) => letter.last && letter.machine.is_accepting(state)?,
                None => self.empty,
            };
            if accepting {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        if let Some(ahead) = self.scratch.of(self) {
            return ahead.machine.live_bytes(ahead.import_state(state)?);
        }
        live_bytes_by_step(|byte| self.step(state, byte))
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        if let Some(ahead) = self.scratch.of(self) {
            return ahead.machine.shortest_completion(ahead.import_state(state)?);
        }
        let needs = |state| {
            self.min_over_positions(state, |one, state| Ok(one.shortest_completion(state)?.len()))
        };
        shortest_by_distance(state, needs, |state, byte| self.step(state, byte))
    }

    fn memory_bytes(&self) -> usize {
        let parts: usize = match &self.origin {
            Some(of) => of.own.iter().map(|one| one.memory_bytes()).sum(),
            None => {
                let mut counted = FxHashSet::default();
                let letters = self.positions.iter().map(|one| &one.machine);
                let letters = letters.filter(|&one| counted.insert(Arc::as_ptr(one)));
                letters.map(|one| one.memory_bytes()).sum()
            }
        };
        self.lock().memory_bytes() + self.scratch.memory_bytes() + parts
    }
}

impl<M: Machine> ReadingHints for PositionAutomaton<M> {
    fn byte_classes(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        let items = self.lock().items(state.number());
        let mut parts = Vec::with_capacity(items.len());
        for &(at, state) in items.iter().filter(|item| item.0 != START_POSITION) {
            parts.push(self.positions[at as usize].machine.byte_classes(state)?);
        }
        group_by_successor(|byte| {
            let taken: Vec<_> = parts.iter().map(|ways| class_of(ways, byte)).collect();
            Ok(taken.iter().any(Option::is_some).then_some(taken))
        })
    }

    fn is_finite(&self) -> bool {
        self.positions.iter().all(|one| one.machine.is_finite())
    }

    fn is_exact(&self) -> bool {
        self.positions.iter().all(|one| one.machine.is_exact())
    }

    fn typical_input(&self, number: usize) -> Option<Vec<u8>> {
        let (mut positions, mut text) = (&*self.first, Vec::new());
        if number >= MAX_TYPICAL_INPUTS {
            return None;
        }
        for _ in 0..MAX_TYPICAL_POSITIONS {
            let Some(&at) = positions.get(number % positions.len().max(1)) else { break };
            let Position { machine, follows, last } = &self.positions[at as usize];
            match machine.typical_input(number / self.first.len()) {
                Some(typical) => text.extend(typical),
                None => text.extend(machine.shortest_completion(machine.start()).ok()?),
            }
            if *last {
                break;
            }
            positions = follows;
        }
        Some(text)
    }
}

impl<M: Machine> CompletionHints for PositionAutomaton<M> {
    fn min_bytes(&self, state: StateId) -> Result<usize, Error> {
        self.min_over_positions(state, |one, state| one.min_bytes(state))
    }
}

impl<M: Machine> CompletionClasses for PositionAutomaton<M> {
    fn completion_class(&self, state: StateId) -> Result<StateId, Error> {
        self.map_positions(state, |one, state| one.completion_class(state))
    }

    fn abstract_state(&self, state: StateId) -> Result<StateId, Error> {
        self.map_positions(state, |one, state| one.abstract_state(state))
    }

    fn needs_recheck(
        &self,
        state: Option<StateId>,
        forgetful: StateId,
        text: &[u8],
    ) -> Result<Option<RecheckPredicate>, Error> {
        let before = state.map_or(Vec::new(), |state| self.active_positions(state));
        let mut all = Vec::new();
        for (at, forgetful) in self.active_positions(forgetful) {
            let mut same = before.iter().filter(|one| one.0 == at).map(|one| one.1);
            let state = same.next().filter(|_| same.next().is_none());
            all.extend(self.positions[at as usize].machine.needs_recheck(state, forgetful, text)?);
        }
        if all.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(move |token| all.iter().any(|doubts| doubts(token)))))
    }

    fn input_needs_recheck(&self, token: &[u8]) -> bool {
        self.positions.iter().any(|one| one.machine.input_needs_recheck(token))
    }
}

impl<M: Machine> ScratchCopies for PositionAutomaton<M> {
    fn scratch_copy(&self) -> Option<PositionAutomaton<M>> {
        if self.is_scratch() {
            return None;
        }
        let mut own: Vec<(*const M, Arc<M>)> = Vec::new();
        let mut letters = Vec::with_capacity(self.positions.len());
        for letter in &self.positions {
            let at = Arc::as_ptr(&letter.machine);
            let known = own.iter().find(|one| one.0 == at).map(|one| Arc::clone(&one.1));
            let machine = match known {
                Some(known) => known,
                None => match letter.machine.scratch_copy().map(Arc::new) {
                    Some(made) => {
                        own.push((at, Arc::clone(&made)));
                        made
                    }
                    None => Arc::clone(&letter.machine),
                },
            };
            let follows = Arc::clone(&letter.follows);
            letters.push(Position { machine, follows, last: letter.last });
        }
        let base = self.lock();
        let composed = PositionAutomaton {
            state_limit: self.state_limit,
            positions: letters,
            min_bytes_after: Arc::clone(&self.min_bytes_after),
            first: self.first.clone(),
            empty: self.empty,
            states: Arc::new(ForkSafeMutex::new(StateInterner::new(self.state_limit))),
            origin: Some(ScratchOrigin {
                states: Arc::clone(&self.states),
                own: own.into_iter().map(|one| one.1).collect(),
            }),
            scratch: ScratchCache::default(),
        };
        let start =
            composed.import_items(&base.items(0)).and_then(|items| composed.lock().intern(items));
        start.is_ok().then_some(composed)
    }

    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        let Some(of) = &self.origin else { return Ok(state) };
        let items = of.states.lock().items(state.number());
        let items = self.import_items(&items)?;
        self.lock().intern(items).map(StateId::from_number)
    }
}

impl<M: Machine> Renewal for PositionAutomaton<M> {
    fn is_abandoned(&self) -> bool {
        let of = self.origin.as_ref();
        self.states.is_abandoned()
            || of.is_some_and(|of| {
                of.states.is_abandoned() || of.own.iter().any(|one| one.is_abandoned())
            })
            || self.positions.iter().any(|one| one.machine.is_abandoned())
    }

    /// Rebuilds the automaton. Positions that share a machine share its copy.
    fn fresh_copy(&self) -> Result<Option<PositionAutomaton<M>>, Error> {
        let mut machines: FxHashMap<*const M, Arc<M>> = FxHashMap::default();
        let mut letters = Vec::with_capacity(self.positions.len());
        for Position { machine, follows, last } in &self.positions {
            let known = machines.get(&Arc::as_ptr(machine)).cloned();
            let renewed = match known {
                Some(known) => known,
                None => match machine.fresh_copy()? {
                    Some(renewed) => Arc::new(renewed),
                    None => return Ok(None),
                },
            };
            machines.insert(Arc::as_ptr(machine), Arc::clone(&renewed));
            letters.push(Position { machine: renewed, follows: follows.clone(), last: *last });
        }
        let states = self.state_limit;
        PositionAutomaton::new(letters, &self.first, self.empty, states).map(Some)
    }
}
