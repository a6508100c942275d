//! The intersection of any machine with a regular language.
//!
//! ```text
//!  state = (machine state, regular state)
//!  live?   1. ask the machine   2. bounded search for a common member
//! ```
//!
//! Two live states need not make a live pair. Machines that can decide are asked first
//! ([`IntersectionBounds::intersection_completion`]). Otherwise a search looks for a common member, guided by
//! lower bounds on the bytes each side needs, or both need together. It remembers what it learns.
//! The search is limited: without an answer it fails, and never guesses.
//!
//! Searches visit many pairs that no input reaches, so they run on a scratch machine. Their results
//! are about its states and are dropped with it once it uses much memory.

mod bounds;
mod longest_completion;
mod nonemptiness_search;

use std::sync::{Arc, MutexGuard};

use formalm_core::{
    CompletionClasses, CompletionHints, LazyDfa, ReadingHints, RecheckPredicate, Renewal,
    ScratchCopies,
};
use rustc_hash::FxHashMap;

pub use bounds::{CompletionLength, IntersectionBounds, OpaqueCache, Precision, ProductCache};

use formalm_automata::Automaton;
use formalm_core::{ByteSet, Error, ForkSafeMutex, StateId, group_by_successor};

use super::scratch_copies::{SCRATCH_BYTES, ScratchCache};
use super::state_interner::{StateInterner, class_of, live_bytes_by_step, shortest_by_distance};
use longest_completion::LongestCompletions;
use nonemptiness_search::{EFFORTS, PLAIN_EFFORT, SearchEffort};

type StatePair = (StateId, StateId);

/// Maximum length of the completions that are kept for other states. Chosen, not measured.
const MAX_COMPLETION_BYTES: usize = 1 << 12;

/// A machine restricted to the members that a regular language has too.
#[derive(Debug)]
pub struct Intersection<M> {
    /// Maximum number of states.
    state_limit: u64,
    machine: Arc<M>,
    regular: Arc<Automaton>,
    states: Arc<ForkSafeMutex<StateInterner>>,
    searches: ForkSafeMutex<Arc<NonemptinessSearch<M>>>,
    /// The states of the original of a scratch machine.
    origin: Option<Arc<ForkSafeMutex<StateInterner>>>,
    scratch: ScratchCache<Intersection<M>>,
}

/// The searches for common members, with their results.
#[derive(Debug)]
struct NonemptinessSearch<M> {
    /// The scratch machine, or the machine itself.
    machine: Arc<M>,
    is_ahead: bool,
    regular: Arc<Automaton>,
    cache: ForkSafeMutex<SearchCache>,
}

#[derive(Debug)]
struct SearchCache {
    product: ProductCache,
    /// Pairs that a search decided.
    nonempty: FxHashMap<StatePair, Nonemptiness>,
    /// Completions common to the abstract state of a machine state and to a regular state.
    completions: FxHashMap<StatePair, Arc<[u8]>>,
    /// Bytes to the nearest common member; `None` if there is none.
    distance: FxHashMap<StatePair, Option<usize>>,
    machine_min_bytes: FxHashMap<StateId, usize>,
    regular_min_bytes: FxHashMap<StateId, usize>,
    regular_max_bytes: LongestCompletions,
}

/// Whether a pair has a common member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nonemptiness {
    Empty,
    /// It has one that begins with a byte, if it is known, or with none.
    Nonempty(Option<u8>),
}

impl<M: IntersectionBounds> Intersection<M> {
    /// Builds the intersection, or returns `None` if it is empty.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], also if the searches do not decide whether it is empty.
    pub fn of(
        machine: Arc<M>,
        regular: Arc<Automaton>,
        state_limit: u64,
    ) -> Result<Option<Intersection<M>>, Error> {
        let searches = NonemptinessSearch::of(&machine, &regular);
        let states = Arc::new(ForkSafeMutex::new(StateInterner::new(state_limit)));
        let searches = ForkSafeMutex::new(Arc::new(searches));
        let (of, ahead) = (None, ScratchCache::default());
        let filtered = Intersection {
            state_limit,
            machine,
            regular,
            states,
            searches,
            origin: of,
            scratch: ahead,
        };
        let start = (filtered.machine.start(), filtered.regular.start());
        filtered.lock().intern(vec![(start.0.number(), start.1)])?;
        Ok(filtered.is_alive(start)?.then_some(filtered))
    }

    /// Returns the machine that is intersected.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns the number of pairs so far, without the states of the parts.
    pub fn state_count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, StateInterner> {
        self.states.lock()
    }

    /// Returns the current searches, or new ones if their cache has grown too large.
    fn searches(&self) -> Arc<NonemptinessSearch<M>> {
        let searches = &mut *self.searches.lock();
        if self.origin.is_none()
            && (searches.is_abandoned() || searches.memory_bytes() > SCRATCH_BYTES)
        {
            *searches = Arc::new(NonemptinessSearch::of(&self.machine, &self.regular));
        }
        Arc::clone(searches)
    }

    fn pair(&self, state: StateId) -> StatePair {
        pair(&self.lock(), state)
    }

    fn advance(&self, (left, right): StatePair, byte: u8) -> Result<Option<StatePair>, Error> {
        let Some(right) = self.regular.step(right, byte)? else { return Ok(None) };
        Ok(self.machine.step(left, byte)?.map(|left| (left, right)))
    }

    fn is_member(&self, (left, right): StatePair) -> Result<bool, Error> {
        Ok(self.regular.is_accepting(right) && self.machine.is_accepting(left)?)
    }

    /// Returns `true` if a pair has a common member.
    fn is_alive(&self, pair: StatePair) -> Result<bool, Error> {
        let searches = self.searches();
        searches.is_alive(searches.import_pair(&self.machine, pair)?, &mut searches.lock())
    }

    /// Returns the completion that the search for a common member found.
    fn found_completion(&self, pair: StatePair) -> Result<Option<Vec<u8>>, Error> {
        let searches = self.searches();
        let pair = searches.import_pair(&self.machine, pair)?;
        let cache = &mut *searches.lock();
        if !searches.is_alive(pair, cache)? {
            return Ok(None);
        }
        if let Some(found) = searches.known_completion(pair, cache)? {
            return Ok(Some(found));
        }
        let abstraction = (searches.machine.abstract_state(pair.0)?, pair.1);
        match cache.completions.get(&abstraction) {
            Some(known) if searches.completes(pair, known)? => Ok(Some(known.to_vec())),
            _ => Ok(None),
        }
    }

    /// Returns the bytes to the nearest common member; [`usize::MAX`] if there is none.
    fn distance(&self, pair: StatePair) -> Result<usize, Error> {
        let searches = self.searches();
        searches.distance(searches.import_pair(&self.machine, pair)?, &mut searches.lock())
    }
}

fn pair(states: &StateInterner, state: StateId) -> StatePair {
    let (left, right) = states.items(state.number())[0];
    (StateId::from_number(left), right)
}

impl<M: IntersectionBounds> NonemptinessSearch<M> {
    fn of(machine: &Arc<M>, regular: &Arc<Automaton>) -> NonemptinessSearch<M> {
        let ahead = machine.scratch_copy().map(Arc::new);
        let is_ahead = ahead.is_some();
        let machine = ahead.unwrap_or_else(|| Arc::clone(machine));
        let regular = Arc::clone(regular);
        let cache = SearchCache {
            product: ProductCache { regular: Arc::clone(&regular), known: None },
            nonempty: FxHashMap::default(),
            completions: FxHashMap::default(),
            distance: FxHashMap::default(),
            machine_min_bytes: FxHashMap::default(),
            regular_min_bytes: FxHashMap::default(),
            regular_max_bytes: LongestCompletions::default(),
        };
        NonemptinessSearch { machine, is_ahead, regular, cache: ForkSafeMutex::new(cache) }
    }

    fn is_abandoned(&self) -> bool {
        self.cache.is_abandoned() || self.machine.is_abandoned() || self.regular.is_abandoned()
    }

    fn lock(&self) -> MutexGuard<'_, SearchCache> {
        self.cache.lock()
    }

    /// Imports a pair of `machine`.
    fn import_pair(&self, machine: &Arc<M>, (left, right): StatePair) -> Result<StatePair, Error> {
        let is_same = Arc::ptr_eq(&self.machine, machine);
        Ok((if is_same { left } else { self.machine.import_state(left)? }, right))
    }

    fn advance(&self, (left, right): StatePair, byte: u8) -> Result<Option<StatePair>, Error> {
        let Some(right) = self.regular.step(right, byte)? else { return Ok(None) };
        Ok(self.machine.step(left, byte)?.map(|left| (left, right)))
    }

    fn is_member(&self, (left, right): StatePair) -> Result<bool, Error> {
        Ok(self.regular.is_accepting(right) && self.machine.is_accepting(left)?)
    }

    /// Returns the memory in use, in bytes, without the machine's own.
    fn memory_bytes(&self) -> usize {
        let cache = self.lock();
        let maps = (cache.distance.capacity() + cache.nonempty.capacity()) * 24
            + (cache.machine_min_bytes.capacity() + cache.regular_min_bytes.capacity()) * 17;
        let maps = maps + cache.regular_max_bytes.memory_bytes();
        let completions: usize = cache.completions.values().map(|one| one.len() + 48).sum();
        let known = cache.product.known.as_ref().map_or(0, |known| known.memory_bytes());
        maps + completions + known + if self.is_ahead { self.machine.memory_bytes() } else { 0 }
    }

    /// Returns what is known about common members without a search.
    fn completion_without_search(
        &self,
        (left, right): StatePair,
        precision: Precision,
        cache: &mut SearchCache,
    ) -> Result<CompletionLength, Error> {
        if cache.nonempty.get(&(left, right)) == Some(&Nonemptiness::Empty) {
            return Ok(CompletionLength::Never);
        }
        let reported = self.completion_from_machine((left, right), precision, cache)?;
        let least = match reported {
            CompletionLength::Never | CompletionLength::Exactly(_) => return Ok(reported),
            CompletionLength::AtLeast(bytes) => bytes,
            CompletionLength::Unknown => match cache.regular_min_bytes.get(&right) {
                Some(&known) => known,
                None => {
                    let bytes = self.regular.shortest_completion(right)?.len();
                    cache.regular_min_bytes.insert(right, bytes);
                    bytes
                }
            },
        };
        let own = match cache.machine_min_bytes.get(&left) {
            Some(&known) => known,
            None => self.machine.min_bytes(left)?,
        };
        cache.machine_min_bytes.insert(left, own);
        if reported == CompletionLength::Unknown
            && own > cache.regular_max_bytes.of(&self.regular, right)?
        {
            return Ok(CompletionLength::Never);
        }
        Ok(CompletionLength::AtLeast(least.max(own)))
    }

    /// Asks the machine about common members.
    fn completion_from_machine(
        &self,
        (left, right): StatePair,
        precision: Precision,
        cache: &mut SearchCache,
    ) -> Result<CompletionLength, Error> {
        // Where a higher precision exceeds its limits, a lower one may still decide.
        for one in [Precision::Finest, Precision::Fine, Precision::Coarse] {
            if one <= precision {
                match self.machine.intersection_completion(left, &mut cache.product, right, one)? {
                    CompletionLength::Unknown => {}
                    reported => return Ok(reported),
                }
            }
        }
        Ok(CompletionLength::Unknown)
    }

    /// Decides a question by asking the machine, then by searches of increasing precision.
    fn decide<T>(
        &self,
        pair: StatePair,
        cache: &mut SearchCache,
        answer: impl Fn(Option<usize>) -> T,
        search: impl Fn(SearchEffort, &mut SearchCache) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // A machine that reports nothing is searched once, and a step counts only what it costs.
        let is_silent = self.is_silent(pair, cache)?;
        let efforts: &[SearchEffort] = if is_silent { &[PLAIN_EFFORT] } else { &EFFORTS };
        for (at, &effort) in efforts.iter().enumerate() {
            match self.completion_without_search(pair, effort.precision, cache)? {
                CompletionLength::Never => return Ok(answer(None)),
                CompletionLength::Exactly(bytes) => return Ok(answer(Some(bytes))),
                CompletionLength::Unknown | CompletionLength::AtLeast(_) => {}
            }
            match search(effort, cache) {
                Err(Error::Limit { .. }) if at + 1 < efforts.len() => {}
                found => return found,
            }
        }
        Ok(answer(None))
    }

    /// Returns `true` if a pair has a common member.
    fn is_alive(&self, pair: StatePair, cache: &mut SearchCache) -> Result<bool, Error> {
        if let Some(&known) = cache.nonempty.get(&pair) {
            return Ok(known != Nonemptiness::Empty);
        }
        let abstraction = (self.machine.abstract_state(pair.0)?, pair.1);
        if abstraction != pair
            && let Some(known) = cache.completions.get(&abstraction).cloned()
            && self.completes(pair, &known)?
        {
            let first = known.first().copied();
            cache.nonempty.insert(pair, Nonemptiness::Nonempty(first));
            return Ok(true);
        }
        if self.is_silent(pair, cache)?
            && let Some(is_alive) = self.decide_abstractly(pair, abstraction, cache)?
        {
            return Ok(is_alive);
        }
        let is_alive = self.decide(
            pair,
            cache,
            |bytes| bytes.is_some(),
            |effort, cache| self.find_common_member(pair, effort, cache),
        )?;
        if is_alive
            && abstraction != pair
            && let Some(found) = self.known_completion(pair, cache)?
        {
            cache.completions.insert(abstraction, found.into());
        }
        Ok(is_alive)
    }

    /// Returns `true` if the machine reports nothing about common members.
    fn is_silent(&self, pair: StatePair, cache: &mut SearchCache) -> Result<bool, Error> {
        let reported = self.completion_from_machine(pair, Precision::Coarse, cache)?;
        Ok(reported == CompletionLength::Unknown)
    }

    /// Decides whether a pair has a common member by a search among abstract states; `None` if that
    /// finds a candidate only, or too much to visit.
    fn decide_abstractly(
        &self,
        pair: StatePair,
        abstraction: StatePair,
        cache: &mut SearchCache,
    ) -> Result<Option<bool>, Error> {
        let found = match self.find_candidate(abstraction, PLAIN_EFFORT, cache) {
            Err(Error::Limit { .. }) => return Ok(None),
            found => found?,
        };
        let Some(candidate) = found else {
            cache.nonempty.insert(pair, Nonemptiness::Empty);
            return Ok(Some(false));
        };
        let mut path = vec![pair];
        for &byte in &candidate {
            match self.advance(path[path.len() - 1], byte)? {
                Some(next) => path.push(next),
                None => return Ok(None),
            }
        }
        if !self.is_member(path[candidate.len()])? {
            return Ok(None);
        }
        for (at, &pair) in path.iter().enumerate() {
            let next = Nonemptiness::Nonempty(candidate.get(at).copied());
            cache.nonempty.entry(pair).or_insert(next);
        }
        if abstraction != pair && candidate.len() <= MAX_COMPLETION_BYTES {
            cache.completions.insert(abstraction, candidate.into());
        }
        Ok(Some(true))
    }

    /// Returns `true` if a string completes both states of a pair. It completes the regular state,
    /// and the abstract state of the other one.
    fn completes(&self, (left, _): StatePair, completion: &[u8]) -> Result<bool, Error> {
        Ok(self.machine.keeps_completion(left, completion)?
            || self.machine.accepts_from(left, completion)?)
    }

    /// Returns a common completion of a pair, as far as searches have found one.
    fn known_completion(
        &self,
        mut pair: StatePair,
        cache: &SearchCache,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut completion = Vec::new();
        while !self.is_member(pair)? {
            let known = cache.nonempty.get(&pair);
            let Some(&Nonemptiness::Nonempty(Some(byte))) = known else { return Ok(None) };
            let Some(next) = self.advance(pair, byte)? else { return Ok(None) };
            completion.push(byte);
            pair = next;
            if completion.len() > MAX_COMPLETION_BYTES {
                return Ok(None);
            }
        }
        Ok(Some(completion))
    }

    /// Returns the bytes to the nearest common member; [`usize::MAX`] if there is none.
    fn distance(&self, pair: StatePair, cache: &mut SearchCache) -> Result<usize, Error> {
        let needs = self.decide(
            pair,
            cache,
            |bytes| bytes,
            |effort, cache| self.shortest_distance(pair, effort, cache),
        )?;
        Ok(needs.unwrap_or(usize::MAX))
    }
}

impl<M: IntersectionBounds> LazyDfa for Intersection<M> {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let before = {
            let states = self.lock();
            if let Some(known) = states.successor(state.number(), byte) {
                return Ok(known.map(StateId::from_number));
            }
            pair(&states, state)
        };
        let mut next = self.advance(before, byte)?;
        if let Some(pair) = next
            && !self.is_alive(pair)?
        {
            next = None;
        }
        let states = &mut *self.lock();
        let number = match next {
            Some((left, right)) => Some(states.intern(vec![(left.number(), right)])?),
            None => None,
        };
        states.set_successor(state.number(), byte, number);
        Ok(number.map(StateId::from_number))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        self.is_member(self.pair(state))
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
        let needs = |state: StateId| self.distance(self.pair(state));
        shortest_by_distance(state, needs, |state, byte| self.step(state, byte))
    }

    fn memory_bytes(&self) -> usize {
        let own = self.lock().memory_bytes() + self.searches().memory_bytes();
        if self.origin.is_some() {
            return own;
        }
        let ahead = self.scratch.current().map_or(0, |one| one.machine.lock().memory_bytes());
        own + ahead + self.machine.memory_bytes() + self.regular.memory_bytes()
    }
}

impl<M: IntersectionBounds> ReadingHints for Intersection<M> {
    fn byte_classes(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        let (left, right) = self.pair(state);
        let (left, right) = (self.machine.byte_classes(left)?, self.regular.byte_classes(right)?);
        group_by_successor(|byte| Ok(class_of(&left, byte).zip(class_of(&right, byte))))
    }

    fn is_finite(&self) -> bool {
        self.machine.is_finite()
    }

    fn is_exact(&self) -> bool {
        self.machine.is_exact()
    }

    fn membership(&self, text: &[u8]) -> Result<Option<bool>, Error> {
        let end = self.regular.walk(self.regular.start(), text)?;
        if !end.is_ok_and(|state| self.regular.is_accepting(state)) {
            return Ok(Some(false));
        }
        let known = self.machine.membership(text)?;
        if known.is_some() {
            return Ok(known);
        }
        self.machine.accepts_from(self.machine.start(), text).map(Some)
    }

    fn typical_input(&self, number: usize) -> Option<Vec<u8>> {
        self.machine.typical_input(number)
    }
}

impl<M: IntersectionBounds> CompletionHints for Intersection<M> {
    fn any_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        if let Some(ahead) = self.scratch.of(self) {
            return ahead.machine.any_completion(ahead.import_state(state)?);
        }
        match self.found_completion(self.pair(state))? {
            Some(found) => Ok(found),
            None => self.shortest_completion(state),
        }
    }

    fn min_bytes(&self, state: StateId) -> Result<usize, Error> {
        self.distance(self.pair(state))
    }
}

impl<M: IntersectionBounds> CompletionClasses for Intersection<M> {
    fn input_needs_recheck(&self, input: &[u8]) -> bool {
        self.machine.input_needs_recheck(input)
    }

    fn abstract_state(&self, state: StateId) -> Result<StateId, Error> {
        let (left, right) = self.pair(state);
        let abstraction = self.machine.abstract_state(left)?;
        if abstraction == left {
            return Ok(state);
        }
        let number = self.lock().intern(vec![(abstraction.number(), right)])?;
        Ok(StateId::from_number(number))
    }

    fn keeps_completion(&self, state: StateId, completion: &[u8]) -> Result<bool, Error> {
        self.machine.keeps_completion(self.pair(state).0, completion)
    }

    fn needs_recheck(
        &self,
        state: Option<StateId>,
        forgetful: StateId,
        text: &[u8],
    ) -> Result<Option<RecheckPredicate>, Error> {
        let left = state.map(|state| self.pair(state).0);
        self.machine.needs_recheck(left, self.pair(forgetful).0, text)
    }
}

impl<M: IntersectionBounds> ScratchCopies for Intersection<M> {
    fn scratch_copy(&self) -> Option<Intersection<M>> {
        if self.origin.is_some() {
            return None;
        }
        let searches = self.searches();
        let base = self.lock();
        let (left, right) = pair(&base, StateId::from_number(0));
        let start = searches.import_pair(&self.machine, (left, right)).ok()?;
        let mut states = StateInterner::new(self.state_limit);
        states.intern(vec![(start.0.number(), start.1)]).ok()?;
        Some(Intersection {
            state_limit: self.state_limit,
            machine: Arc::clone(&searches.machine),
            regular: Arc::clone(&self.regular),
            states: Arc::new(ForkSafeMutex::new(states)),
            searches: ForkSafeMutex::new(searches),
            origin: Some(Arc::clone(&self.states)),
            scratch: ScratchCache::default(),
        })
    }

    fn import_state(&self, state: StateId) -> Result<StateId, Error> {
        let Some(of) = &self.origin else { return Ok(state) };
        let (left, right) = pair(&of.lock(), state);
        let left = self.machine.import_state(left)?;
        self.lock().intern(vec![(left.number(), right)]).map(StateId::from_number)
    }
}

impl<M: IntersectionBounds> Renewal for Intersection<M> {
    fn is_abandoned(&self) -> bool {
        self.states.is_abandoned()
            || self.origin.as_ref().is_some_and(|of| of.is_abandoned())
            || self.searches.is_abandoned()
            || (self.origin.is_some() && self.searches().is_abandoned())
            || self.machine.is_abandoned()
            || self.regular.is_abandoned()
    }

    fn fresh_copy(&self) -> Result<Option<Intersection<M>>, Error> {
        let states = self.state_limit;
        match (self.machine.fresh_copy()?, self.regular.fresh_copy()?) {
            (Some(machine), Some(regular)) => {
                Intersection::of(Arc::new(machine), Arc::new(regular), states)
            }
            _ => Ok(None),
        }
    }
}
