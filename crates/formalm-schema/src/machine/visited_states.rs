//! The visited states, the transitions between them, and their live bytes.
//!
//! Tokens have several bytes of a string, so states between them are rarely asked for. Runs of up to
//! seven bytes of a string or name are therefore read at once: only the state after the run is
//! kept, indexed by the packed bytes.

use std::sync::Arc;

use formalm_core::{ByteSet, CompactMap, Error, Interner, Resource, check_limit};
use rustc_hash::FxHashMap;

use crate::machine::frame::{Frame, ReaderPosition};
use crate::machine::reader::Reader;
use crate::machine::spelling::Spelling;
use crate::machine::values::Values;

/// Marks a transition that leads nowhere.
pub(crate) const DEAD: u32 = u32::MAX;

/// Maximum length of a run, in bytes: with a leading one bit it fits 64 bits.
const MAX_RUN_BYTES: usize = 7;

/// The states that an automaton has visited, and the tables that only these refer to.
#[derive(Debug, Default)]
pub(crate) struct VisitedStates {
    states: Interner<ReaderPosition>,
    next: FxHashMap<(u32, u8), u32>,
    /// Transitions over several bytes, packed below a leading one bit.
    run_transitions: FxHashMap<(u32, u64), u32>,
    live: FxHashMap<u32, ByteSet>,
    mask_classes: Interner<ReaderPosition>,
    /// Live bytes with equal residuals, by position. Positions refer to recorded inputs.
    byte_classes: CompactMap<ReaderPosition, Arc<[ByteSet]>>,
}

impl VisitedStates {
    #[inline]
    pub(crate) fn position(&self, state: u32) -> ReaderPosition {
        *self.states.get(state)
    }

    pub(crate) fn intern(&mut self, position: ReaderPosition) -> u32 {
        self.states.intern(position)
    }

    /// Returns the number of states.
    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns the position of a mask class.
    #[inline]
    pub(crate) fn class_position(&self, class: u32) -> ReaderPosition {
        *self.mask_classes.get(class)
    }

    /// Returns the mask class of a position.
    pub(crate) fn intern_class(&mut self, position: ReaderPosition) -> u32 {
        self.mask_classes.intern(position)
    }

    /// Returns the number of mask classes.
    pub(crate) fn class_count(&self) -> usize {
        self.mask_classes.len()
    }

    /// Returns the classes of live bytes with equal residuals, as far as they are known.
    pub(crate) fn known_byte_classes(&self, position: ReaderPosition) -> Option<Arc<[ByteSet]>> {
        self.byte_classes.get(&position).map(Arc::clone)
    }

    pub(crate) fn set_byte_classes(&mut self, position: ReaderPosition, classes: Arc<[ByteSet]>) {
        self.byte_classes.insert(position, classes);
    }

    /// Returns the state after `byte`, [`DEAD`] if no instance continues so. Fails if the tables
    /// exceed their limits.
    pub(crate) fn successor<S: Spelling>(
        &mut self,
        reader: &mut Reader<S>,
        state: u32,
        byte: u8,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.next.get(&(state, byte)) {
            return Ok(known);
        }
        self.check_limits(&reader.values)?;
        let position = self.position(state);
        let next = match reader.read_byte(position, byte)? {
            Some(position) => self.intern(position),
            None => DEAD,
        };
        self.next.insert((state, byte), next);
        Ok(next)
    }

    /// Fails if there are too many states, or if they take too many bytes.
    fn check_limits(&self, values: &Values) -> Result<(), Error> {
        let limits = values.core.base.limits;
        let bytes = (self.next.len() + self.run_transitions.len()) * 40
            + (self.states.len() + values.frames.len()) * 100;
        for (resource, needed, allowed) in [
            (Resource::States, self.states.len() as u64 + 1, limits.states),
            (Resource::Bytes, bytes as u64, limits.bytes),
        ] {
            check_limit(resource, needed, allowed)?;
        }
        Ok(())
    }

    /// Returns the state after `text`, or the length of its longest viable prefix.
    pub(crate) fn walk<S: Spelling>(
        &mut self,
        reader: &mut Reader<S>,
        state: u32,
        text: &[u8],
    ) -> Result<Result<u32, usize>, Error> {
        let (mut state, mut at) = (state, 0);
        while let Some(&byte) = text.get(at) {
            let known = self.next.get(&(state, byte)).copied();
            let run = if known.is_none() {
                self.string_run(&reader.spelling, state, &text[at..])
            } else {
                &[]
            };
            if run.len() < 2 {
                match known.map_or_else(|| self.successor(reader, state, byte), Ok)? {
                    DEAD => return Ok(Err(at)),
                    next => (state, at) = (next, at + 1),
                }
                continue;
            }
            let packed_prefix =
                run.iter().fold(1, |packed_prefix, &byte| packed_prefix << 8 | u64::from(byte));
            if let Some(&next) = self.run_transitions.get(&(state, packed_prefix)) {
                (state, at) = (next, at + run.len());
                continue;
            }
            match self.read_run(reader, state, run)? {
                Err(good) => return Ok(Err(at + good)),
                Ok((next, count)) => {
                    if count == run.len() {
                        self.run_transitions.insert((state, packed_prefix), next);
                    }
                    (state, at) = (next, at + count);
                }
            }
        }
        Ok(Ok(state))
    }

    /// Returns the leading bytes of `text` that are read at once, none outside of strings and
    /// names.
    fn string_run<'a>(&self, spelling: &impl Spelling, state: u32, text: &'a [u8]) -> &'a [u8] {
        if !matches!(self.position(state).frame, Frame::Name { .. } | Frame::String { .. }) {
            return &[];
        }
        let run = &text[..text.len().min(MAX_RUN_BYTES)];
        &run[..run.iter().position(|&byte| spelling.ends_run(byte)).unwrap_or(run.len())]
    }

    /// Returns the state after a run and the number of bytes read. A first byte that changes
    /// nothing is read alone. The inner error is the number of viable bytes.
    fn read_run<S: Spelling>(
        &mut self,
        reader: &mut Reader<S>,
        state: u32,
        run: &[u8],
    ) -> Result<Result<(u32, usize), usize>, Error> {
        self.check_limits(&reader.values)?;
        let first = self.position(state);
        let mut position = first;
        for (at, &byte) in run.iter().enumerate() {
            let Some(next) = reader.read_byte(position, byte)? else { return Ok(Err(at)) };
            if at == 0 && next == first {
                self.next.insert((state, byte), state);
                return Ok(Ok((state, 1)));
            }
            position = next;
        }
        Ok(Ok((self.intern(position), run.len())))
    }

    /// Returns the bytes with which some instance continues. The successor states are not kept.
    pub(crate) fn live_bytes<S: Spelling>(
        &mut self,
        reader: &mut Reader<S>,
        state: u32,
    ) -> Result<ByteSet, Error> {
        if let Some(&known) = self.live.get(&state) {
            return Ok(known);
        }
        let (position, records) = (self.position(state), reader.values.records.len());
        let mut live = ByteSet::default();
        let possible = reader.spelling.possible_bytes(&reader.values, position);
        for byte in (0..=255).filter(|&byte| possible.is_none_or(|set| set.contains(byte))) {
            let leads = match self.next.get(&(state, byte)) {
                Some(&known) => known != DEAD,
                None => reader.read_byte(position, byte)?.is_some(),
            };
            if leads {
                live.insert(byte);
            }
        }
        reader.values.records.truncate(records);
        self.live.insert(state, live);
        Ok(live)
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.states.table_bytes()
            + self.mask_classes.table_bytes()
            + self.next.capacity() * 16
            + self.run_transitions.capacity() * 28
            + self.live.capacity() * 40
            + self.byte_classes.table_bytes()
    }

    /// Returns an allowance for what the tables point to, in bytes.
    pub(crate) fn heap_allowance(&self) -> usize {
        self.live.capacity() * 40 + 100 * self.byte_classes.len() + self.byte_classes.table_bytes()
    }
}
