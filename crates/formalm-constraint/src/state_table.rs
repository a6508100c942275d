//! A numbering of the states that a search through a constraint visits.
//!
//! Positions with equal futures are one state, so a node of a search needs only one integer for its
//! language. A state is a position in an epoch and the step that first led to it:
//!
//! ```text
//!  state 0 ──token 17──► state 1 ──byte 'a'──► state 2      12 + 8 bytes each, no copy of the path
//! ```
//!
//! The steps rebuild a matcher where one is needed: at a limit, when the query is repeated in an
//! epoch of its own, and in a forked process that cannot use the epoch.

use std::sync::Arc;

use formalm_core::{Error, InterruptCheck, LazyDfa, ReadingHints, Resource, check_limit};
use formalm_machines::{MaskClasses, RegularMaskClasses};
use rustc_hash::FxHashMap;

use crate::epoch::{AdvanceError, ConstraintState, StateEpoch};
use crate::mask::{MaskWords, patch};
use crate::matcher::Matcher;

/// Maximum number of states by default: about 60 MB of them. No search in benches/ visits a tenth.
pub const STATE_TABLE_LIMIT: usize = 1_000_000;

/// The parent of a root.
const NO_PARENT: u32 = u32::MAX;
/// The flag of a step over a byte; other steps are tokens, of which there are fewer.
const BYTE: u32 = 1 << 31;

/// A state, and the step that first led to it.
#[derive(Clone, Copy, Debug)]
struct TableState {
    position: ConstraintState,
    parent: u32,
    /// A token, a byte with [`BYTE`], or the index of a root.
    step: u32,
    accepting: bool,
}

/// The states of a search, numbered in the order of visits.
#[derive(Debug)]
pub struct StateTable<K: MaskClasses = RegularMaskClasses> {
    roots: Vec<Matcher<K>>,
    states: Vec<TableState>,
    /// From the serial number of an epoch and a position's number to the state.
    numbers: FxHashMap<(u64, u64), u32>,
    /// States outside the common epoch, which reached a limit there.
    moved: FxHashMap<u32, Matcher<K>>,
    limit: usize,
}

impl<K: MaskClasses> StateTable<K> {
    /// Creates a table of at most `limit` states.
    pub fn new(limit: usize) -> StateTable<K> {
        StateTable {
            roots: Vec::new(),
            states: Vec::new(),
            numbers: FxHashMap::default(),
            moved: FxHashMap::default(),
            limit,
        }
    }

    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns `true` if there are no states.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the approximate memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.states.capacity() * size_of::<TableState>()
            + self.numbers.capacity() * (size_of::<((u64, u64), u32)>() + 1)
    }

    /// Returns the state of a matcher. All matchers must be of one constraint.
    ///
    /// # Errors
    ///
    /// As [`StateTable::step`].
    pub fn add_root(&mut self, mut matcher: Matcher<K>) -> Result<u32, Error> {
        match self.roots.first() {
            Some(first) => matcher.pin_to(first),
            None => matcher.pin(),
        }
        let root = self.roots.len() as u32;
        self.roots.push(matcher.clone());
        self.number_of(matcher, NO_PARENT, root)
    }

    /// Returns the state after a token that is no end token.
    ///
    /// # Errors
    ///
    /// An [`AdvanceError`]; [`Error::Limit`] if there are too many states.
    #[inline]
    pub fn step(&mut self, state: u32, token_id: u32) -> Result<u32, AdvanceError> {
        self.step_over(state, token_id, |epoch, position| epoch.read(position, token_id))
    }

    /// Returns the state after a byte, which may end inside a character.
    ///
    /// # Errors
    ///
    /// As [`StateTable::step`].
    #[inline]
    pub fn step_byte(&mut self, state: u32, byte: u8) -> Result<u32, AdvanceError> {
        self.step_over(state, BYTE | u32::from(byte), |epoch, position| {
            epoch.read_inside(position, &[byte], &mut InterruptCheck::new(&mut || true))
        })
    }

    /// Returns `true` if the input is in the language.
    #[inline]
    pub fn is_accepting(&self, state: u32) -> bool {
        self.states[state as usize].accepting
    }

    /// Returns `true` if only an end may follow.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if the machine exceeds a limit.
    pub fn is_finished(&self, state: u32) -> Result<bool, Error> {
        if let Some(matcher) = self.moved.get(&state) {
            return matcher.is_finished();
        }
        let position = self.states[state as usize].position;
        match self.epoch().is_some_and(|epoch| !epoch.is_canonical() && epoch.machine().is_exact())
        {
            true => {
                match self.epoch().map(|epoch| epoch.machine().live_bytes(epoch.state(position))) {
                    Some(Ok(live)) => Ok(live.is_empty()),
                    _ => self.matcher(state)?.is_finished(),
                }
            }
            false => {
                let mut words = vec![0; self.words()];
                self.fill(state, &mut words)?;
                if let Some(epoch) = self.epoch() {
                    patch(&mut words, &[], epoch.vocabulary().end_token_ids());
                }
                Ok(words.iter().all(|&word| word == 0))
            }
        }
    }

    /// Overwrites `out` with the mask of a state, including end tokens.
    ///
    /// # Errors
    ///
    /// As [`StateTable::is_finished`].
    #[inline]
    pub fn fill(&self, state: u32, out: &mut MaskWords) -> Result<(), Error> {
        if let Some(matcher) = self.moved.get(&state) {
            return matcher.fill(out);
        }
        let Some(epoch) = self.epoch() else { return Ok(()) };
        match epoch.fill(self.states[state as usize].position, out) {
            Err(error) if error.is_limit() => self.matcher(state)?.fill(out),
            other => other,
        }
    }

    /// Returns the number of words of a mask.
    pub fn words(&self) -> usize {
        self.epoch().map_or(0, |epoch| epoch.words())
    }

    /// Visits the states again in an epoch that this process can use, if it was forked while a
    /// thread modified theirs. This must be the first call in a process.
    ///
    /// # Errors
    ///
    /// As [`StateTable::step`].
    pub fn settle(&mut self) -> Result<(), AdvanceError> {
        if self.epoch().is_none_or(|epoch| !epoch.is_abandoned()) {
            return Ok(());
        }
        let mut fresh = StateTable::new(self.limit);
        let mut moved = FxHashMap::default();
        for root in &mut self.roots {
            root.settle()?;
        }
        for (state, known) in self.states.iter().enumerate() {
            let state = state as u32;
            let matcher = if known.parent == NO_PARENT {
                let mut root = self.roots[known.step as usize].clone();
                match self.roots.first() {
                    Some(first) => root.pin_to(first),
                    None => root.pin(),
                }
                root
            } else {
                let mut matcher: Matcher<K> = self.moved_matcher(&fresh, &moved, known.parent)?;
                advance(&mut matcher, known.step)?;
                matcher
            };
            let position = matcher.position();
            fresh.states.push(TableState { position, ..*known });
            let key = (matcher.epoch().serial(), position.number());
            fresh.numbers.insert(key, state);
            if !self.roots.first().is_some_and(|root| Arc::ptr_eq(root.epoch(), matcher.epoch())) {
                moved.insert(state, matcher);
            }
        }
        (self.states, self.numbers, self.moved) = (fresh.states, fresh.numbers, moved);
        Ok(())
    }

    /// Returns a matcher at a state of a table that is being rebuilt.
    fn moved_matcher(
        &self,
        fresh: &StateTable<K>,
        moved: &FxHashMap<u32, Matcher<K>>,
        state: u32,
    ) -> Result<Matcher<K>, AdvanceError> {
        let (mut steps, mut at) = (Vec::new(), state);
        loop {
            let known = fresh.states[at as usize];
            let start = match moved.get(&at) {
                Some(matcher) => matcher,
                None if known.parent == NO_PARENT => &self.roots[known.step as usize],
                None => {
                    steps.push(known.step);
                    at = known.parent;
                    continue;
                }
            };
            return replayed(start, &steps);
        }
    }

    /// Returns the epoch of all states but those that moved.
    #[inline]
    fn epoch(&self) -> Option<&Arc<StateEpoch<K>>> {
        self.roots.first().map(Matcher::epoch)
    }

    #[inline]
    fn step_over(
        &mut self,
        state: u32,
        step: u32,
        read: impl FnOnce(&StateEpoch<K>, ConstraintState) -> Result<ConstraintState, AdvanceError>,
    ) -> Result<u32, AdvanceError> {
        let found = match self.epoch() {
            Some(epoch) if !self.moved.contains_key(&state) => {
                epoch.note(1);
                read(epoch, self.states[state as usize].position)
                    .map(|position| (epoch.serial(), position))
            }
            _ => return self.step_moved(state, step),
        };
        match found {
            Ok((serial, position)) => {
                if let Some(&known) = self.numbers.get(&(serial, position.number())) {
                    return Ok(known);
                }
                let accepting = match self.epoch().map(|epoch| epoch.is_accepting(position)) {
                    Some(Ok(accepting)) => accepting,
                    _ => return self.step_moved(state, step),
                };
                Ok(self.push(serial, TableState { position, parent: state, step, accepting })?)
            }
            Err(AdvanceError::Failed(error)) if error.is_limit() => self.step_moved(state, step),
            Err(other) => Err(other),
        }
    }

    /// Steps with a matcher, which moves to an epoch of its own at a limit.
    #[cold]
    fn step_moved(&mut self, state: u32, step: u32) -> Result<u32, AdvanceError> {
        let mut matcher = self.matcher(state)?;
        advance(&mut matcher, step)?;
        Ok(self.number_of(matcher, state, step)?)
    }

    /// Returns the state of a matcher, which may be in another epoch.
    fn number_of(&mut self, matcher: Matcher<K>, parent: u32, step: u32) -> Result<u32, Error> {
        let (serial, position) = (matcher.epoch().serial(), matcher.position());
        if let Some(&known) = self.numbers.get(&(serial, position.number())) {
            return Ok(known);
        }
        let accepting = matcher.is_accepting()?;
        let state = self.push(serial, TableState { position, parent, step, accepting })?;
        if self.epoch().is_some_and(|epoch| !Arc::ptr_eq(epoch, matcher.epoch())) {
            self.moved.insert(state, matcher);
        }
        Ok(state)
    }

    fn push(&mut self, serial: u64, state: TableState) -> Result<u32, Error> {
        let number = self.states.len();
        check_limit(Resource::States, number as u64 + 1, self.limit as u64)?;
        self.states.push(state);
        self.numbers.insert((serial, state.position.number()), number as u32);
        Ok(number as u32)
    }

    /// Returns a matcher at a state.
    fn matcher(&self, state: u32) -> Result<Matcher<K>, Error> {
        match self.moved_matcher(self, &self.moved, state) {
            Ok(matcher) => Ok(matcher),
            Err(AdvanceError::Failed(error)) => Err(error),
            Err(_) => Err(Error::language(
                "the input read so far is no longer known to lead to a member",
                None,
            )),
        }
    }
}

/// Returns a matcher after steps, which are listed last to first.
fn replayed<K: MaskClasses>(start: &Matcher<K>, steps: &[u32]) -> Result<Matcher<K>, AdvanceError> {
    let mut matcher = start.clone();
    for &step in steps.iter().rev() {
        advance(&mut matcher, step)?;
    }
    Ok(matcher)
}

fn advance<K: MaskClasses>(matcher: &mut Matcher<K>, step: u32) -> Result<(), AdvanceError> {
    if step & BYTE == 0 {
        return matcher.advance(step);
    }
    matcher.advance_inside(&[step as u8], &mut InterruptCheck::new(&mut || true))
}
