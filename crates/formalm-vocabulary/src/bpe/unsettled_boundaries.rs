//! How far what follows a part of a text can matter to the tokens before it.
//!
//! ```text
//!  … "blue│", "name      the quote may begin a pre-token or continue one:      unsettled
//!         │", "n         the n begins one that no text to come can disprove:   settled
//! ```
//!
//! All states that a splitter may be in where a part of a text ends are followed along the text
//! behind it. One is *settled* where it has passed a boundary behind which every text may follow
//! ([`OpenStates`]). Once none is left unsettled, what follows matters to no token before.

use formalm_core::{ForkSafeMutex, Interner};
use rustc_hash::FxHashMap;

use super::encoder::BpeEncoder;
use super::pretokenizer::boundary_automaton::{BOUNDARIES, Boundary, BoundaryState};
use super::pretokenizer::open_states::OpenStates;
use crate::normalization::FilterState;

/// Maximum number of sets; beyond it nothing is known about further ones. Chosen, not measured.
const MAX_SETS: usize = 512;

/// The number of a set of unsettled states.
pub type UnsettledStates = u32;

/// The effect of a byte on a set of unsettled states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsettledStep {
    /// The states that are still unsettled, if any are left.
    pub next: Option<UnsettledStates>,
    /// Identifies the states that the byte settles. The others are refused or still unsettled.
    pub settled: u32,
}

/// A state, and whether it has passed a boundary.
type UnsettledState = (BoundaryState, bool);

/// The number of the first set.
const FIRST: UnsettledStates = 0;

/// Distinguishes the first set from others; no state.
const AT_FIRST: UnsettledState = (BoundaryState::MAX, true);

/// The sets met so far.
#[derive(Debug, Default)]
pub(super) struct UnsettledBoundaries {
    tables: ForkSafeMutex<UnsettledTables>,
}

#[derive(Debug, Default)]
struct UnsettledTables {
    open: OpenStates,
    sets: Interner<Box<[UnsettledState]>>,
    /// Sets of positions in a set.
    settled: Interner<Box<[u32]>>,
    steps: FxHashMap<(UnsettledStates, u8), Option<UnsettledStep>>,
}

impl UnsettledBoundaries {
    pub(super) fn memory_bytes(&self) -> usize {
        let tables = self.tables.lock();
        let sets = tables.sets.iter().map(|set| 40 + 8 * set.len());
        let settled = tables.settled.iter().map(|set| 40 + 4 * set.len());
        sets.chain(settled).sum::<usize>() + 32 * tables.steps.len() + tables.open.memory_bytes()
    }
}

impl BpeEncoder {
    /// Returns `true` if every text may follow a state between characters, as far as boundaries are
    /// concerned.
    pub fn is_open(&self, state: BoundaryState) -> bool {
        let boundaries = self.splitter().boundaries();
        boundaries.is_between_characters(state)
            && self
                .unsettled
                .tables
                .lock()
                .open
                .contains(boundaries, boundaries.state_number(state))
    }

    /// Returns all states in which a splitter may be between two characters. A boundary right there
    /// does not settle anything: tokens begin at it.
    pub fn unsettled_at_first(&self) -> UnsettledStates {
        let boundaries = self.splitter().boundaries();
        let tables = &mut *self.unsettled.tables.lock();
        if tables.sets.is_empty() {
            let states = 0..boundaries.state_count() as u32;
            let states = states.map(|state| (boundaries.between_characters(state), false));
            tables.sets.intern(states.chain([AT_FIRST]).collect());
        }
        FIRST
    }

    /// Returns what a byte settles. Returns `None` if nothing is known about it.
    pub fn unsettled_step(&self, set: UnsettledStates, byte: u8) -> Option<UnsettledStep> {
        let tables = &mut *self.unsettled.tables.lock();
        if let Some(&known) = tables.steps.get(&(set, byte)) {
            return known;
        }
        let step = self.compute_step(tables, set, byte);
        tables.steps.insert((set, byte), step);
        step
    }

    fn compute_step(
        &self,
        tables: &mut UnsettledTables,
        set: UnsettledStates,
        byte: u8,
    ) -> Option<UnsettledStep> {
        let splitter = self.splitter();
        let boundaries = splitter.boundaries();
        // A byte that the normalizer may refuse tells texts apart that are split alike.
        if let Some(filter) = splitter.text_filter()
            && byte < 0x80
            && filter.step(FilterState::WEAKEST, byte).is_none()
        {
            return None;
        }
        let states = tables.sets.get(set).clone();
        let (mut next, mut settled) = (Vec::new(), Vec::new());
        let of_states = states.iter().enumerate().filter(|(_, state)| **state != AT_FIRST);
        for (at, &(state, has_passed)) in of_states {
            for boundary in BOUNDARIES {
                let steps = [
                    boundaries.step(state, byte, boundary),
                    boundaries.step_byte_token(state, byte, boundary),
                ];
                let has_passed = has_passed || boundary != Boundary::Inside && set != FIRST;
                for after in steps.into_iter().flatten() {
                    if has_passed
                        && boundaries.is_between_characters(after)
                        && tables.open.contains(boundaries, boundaries.state_number(after))
                    {
                        settled.push(at as u32);
                    } else {
                        next.push((after, has_passed));
                    }
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        settled.dedup();
        if tables.sets.len() >= MAX_SETS || tables.settled.len() >= MAX_SETS {
            return None;
        }
        let next = (!next.is_empty()).then(|| tables.sets.intern(next.into()));
        Some(UnsettledStep { next, settled: tables.settled.intern(settled.into()) })
    }
}
