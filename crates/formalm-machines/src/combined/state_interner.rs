//! An interner for the states of composite machines, with their known successors.

use std::sync::Arc;

use formalm_core::{ByteSet, Error, Interner, Resource, StateId, check_limit};
use rustc_hash::FxHashMap;

/// A part of a composite machine with one of its states.
pub(super) type PartState = (u32, StateId);

/// Maximum number of successors in a sparse row; a row with more becomes dense. Chosen, not
/// measured.
const MAX_SPARSE: usize = 16;

/// The successor of a byte with which no member continues.
const DEAD: u32 = u32::MAX;
/// The successor of a byte that was not read yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// The successors of a state by byte. Inputs read one byte from most states, while a query for live
/// bytes reads all.
#[derive(Debug)]
enum SuccessorRow {
    Sparse(Vec<(u8, u32)>),
    Dense(Box<[u32; 256]>),
}

impl Default for SuccessorRow {
    fn default() -> SuccessorRow {
        SuccessorRow::Sparse(Vec::new())
    }
}

impl SuccessorRow {
    fn get(&self, byte: u8) -> Option<Option<u32>> {
        let next = match self {
            SuccessorRow::Sparse(list) => list.iter().find(|one| one.0 == byte)?.1,
            SuccessorRow::Dense(all) => all[usize::from(byte)],
        };
        (next != UNKNOWN).then(|| Some(next).filter(|&next| next != DEAD))
    }

    /// Sets the successor of a byte and returns the bytes of memory that took.
    fn set(&mut self, byte: u8, next: Option<u32>) -> usize {
        let next = next.unwrap_or(DEAD);
        match self {
            SuccessorRow::Dense(all) => all[usize::from(byte)] = next,
            SuccessorRow::Sparse(list) if list.len() < MAX_SPARSE => {
                list.push((byte, next));
                return 8;
            }
            SuccessorRow::Sparse(list) => {
                let mut all = Box::new([UNKNOWN; 256]);
                for &(byte, next) in &*list {
                    all[usize::from(byte)] = next;
                }
                all[usize::from(byte)] = next;
                *self = SuccessorRow::Dense(all);
                return 1024;
            }
        }
        0
    }
}

/// The states met so far, as sorted lists of part states, with their successors.
#[derive(Debug)]
pub(super) struct StateInterner {
    items: Interner<Arc<[PartState]>>,
    /// The successors of each state.
    rows: Vec<SuccessorRow>,
    /// States after several bytes, packed below a leading one bit.
    runs: FxHashMap<(u32, u64), u32>,
    bytes: usize,
    limit: u64,
}

impl StateInterner {
    pub(super) fn new(limit: u64) -> StateInterner {
        let (items, rows, runs) = Default::default();
        StateInterner { items, rows, runs, bytes: 0, limit }
    }

    pub(super) fn intern(&mut self, mut items: Vec<PartState>) -> Result<u32, Error> {
        items.sort_unstable();
        items.dedup();
        if let Some(known) = self.items.find(&*items) {
            return Ok(known);
        }
        let needed = self.items.len() as u64 + 1;
        check_limit(Resource::States, needed, self.limit)?;
        self.bytes += 64 + 8 * items.len();
        Ok(self.items.intern_new(items.into()))
    }

    pub(super) fn items(&self, state: u32) -> Arc<[PartState]> {
        Arc::clone(self.items.get(state))
    }

    pub(super) fn successor(&self, state: u32, byte: u8) -> Option<Option<u32>> {
        self.rows.get(state as usize)?.get(byte)
    }

    pub(super) fn set_successor(&mut self, state: u32, byte: u8, next: Option<u32>) {
        if self.rows.len() <= state as usize {
            self.rows.resize_with(self.items.len(), SuccessorRow::default);
        }
        self.bytes += self.rows[state as usize].set(byte, next);
    }

    /// Returns the state after a run of bytes, if it is known. `run` is packed by [`packed_run`].
    pub(super) fn after_run(&self, state: u32, run: u64) -> Option<u32> {
        self.runs.get(&(state, run)).copied()
    }

    pub(super) fn set_after_run(&mut self, state: u32, run: u64, next: u32) {
        self.runs.insert((state, run), next);
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.rows.len() * size_of::<SuccessorRow>() + self.runs.capacity() * 25
    }
}

/// Maximum length of a run, in bytes: with a leading one bit it fits 64 bits.
pub(super) const MAX_RUN_BYTES: usize = 7;

/// Packs a run of at most [`MAX_RUN_BYTES`] bytes.
pub(super) fn packed_run(run: &[u8]) -> u64 {
    run.iter().fold(1, |packed, &byte| packed << 8 | u64::from(byte))
}

/// Returns the bytes with a successor.
pub(super) fn live_bytes_by_step(
    mut step: impl FnMut(u8) -> Result<Option<StateId>, Error>,
) -> Result<ByteSet, Error> {
    let mut live = ByteSet::default();
    for byte in 0..=255 {
        if step(byte)?.is_some() {
            live.insert(byte);
        }
    }
    Ok(live)
}

/// Returns the index of the byte class that contains a byte.
pub(super) fn class_of(ways: &[ByteSet], byte: u8) -> Option<usize> {
    ways.iter().position(|bytes| bytes.contains(byte))
}

/// Returns the smallest shortest path to a member, given the exact distance of each state.
pub(super) fn shortest_by_distance(
    mut state: StateId,
    mut needs: impl FnMut(StateId) -> Result<usize, Error>,
    mut step: impl FnMut(StateId, u8) -> Result<Option<StateId>, Error>,
) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    for left in (0..needs(state)?).rev() {
        for byte in 0..=255 {
            if let Some(next) = step(state, byte)?
                && needs(next)? == left
            {
                text.push(byte);
                state = next;
                break;
            }
        }
    }
    Ok(text)
}
