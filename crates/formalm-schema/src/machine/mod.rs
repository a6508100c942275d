//! The machine of a schema: JSON read byte by byte, with what is still owed in every frame.

mod ahead;
mod apart;
mod bounds;
mod containers;
mod derive;
mod exponents;
mod forgetting;
mod frame;
mod gaps;
mod keys;
mod known;
#[cfg(test)]
mod laws;
mod lengths;
mod names;
mod naming;
mod needs;
mod number_needs;
mod numbers;
mod owed;
mod runs;
mod scalars;
mod shortcuts;
mod shortest;
mod spelled;
mod telling;
mod ways;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use formalm_automata::{ByteSet, Chunks, Error, Machine, Resource, StateId, Viability};
use rustc_hash::FxHashMap;

use crate::core::{Core, TextId};
use crate::document::Document;
use crate::formula::TRUE;
use crate::node::{Effect, NodeId, Note, Schema};
use crate::options::{Limits, Options};
use crate::read;
use crate::table::Table;
use frame::{DONE, Frame, FrameId, Place};
use known::{Known, Parts};
use naming::Naming;
use runs::Runs;

pub(crate) use frame::Owes;
pub use keys::SchemaKeys;

/// No successor is known yet.
const DEAD: u32 = u32::MAX;
const ACCEPTING: u32 = 1;
const REFUSING: u32 = 2;

/// Text that is recorded because its value is needed: `0` is none, `1` the empty text.
type Recorded = u32;
const UNRECORDED: Recorded = 0;
const EMPTY_RECORD: Recorded = 1;

/// Frames, states and their successors.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(crate) core: Core,
    frames: Table<Frame>,
    /// Objects and arrays that are open, for each frame.
    depths: Vec<u32>,
    states: Table<Place>,
    /// Recorded texts, each one byte longer than another: `(the other, byte, length)`.
    records: Table<(Recorded, u8, u32)>,
    next: FxHashMap<(u32, u8), u32>,
    live: FxHashMap<u32, ByteSet>,
    parts: Parts,
    known: Known,
    namings: Vec<Naming>,
    keys: Table<Place>,
    /// Whether names whose text does not matter are told apart by it in keys.
    tells_names: bool,
    /// Bytes of the longest token.
    horizon: usize,
    lengths: FxHashMap<TextId, Option<Box<Viability>>>,
    /// Empty tables of the last look ahead, for the next.
    spare: (Table<Place>, Runs),
}

/// The lazy deterministic automaton of a schema; shared freely between threads.
#[derive(Debug)]
pub struct SchemaAutomaton {
    grown: Mutex<Box<Grown>>,
    flags: Chunks,
    start: StateId,
    notes: Arc<[Note]>,
    all_notes: OnceLock<Vec<Note>>,
}

impl SchemaAutomaton {
    /// The machine of a schema. `resources` are the schemas that it may refer to, by URI.
    ///
    /// # Errors
    ///
    /// [`Error::Language`], with the JSON pointer of the place, if the schema is none or has no
    /// instance; [`Error::Limit`] if finding out takes more than `limits`.
    pub fn new(
        schema: &Document,
        resources: &[(String, Document)],
        options: Options,
        limits: Limits,
    ) -> Result<SchemaAutomaton, Error> {
        SchemaAutomaton::of(schema, resources, options, limits)?.ok_or_else(|| Error::Language {
            message: "the schema has no instance: what it asks for contradicts itself".into(),
            span: None,
            hint: Some("look for keywords that exclude each other".into()),
        })
    }

    /// The same; `None` if the schema has no instance.
    ///
    /// # Errors
    ///
    /// As [`SchemaAutomaton::new`], having no instance aside.
    pub fn of(
        schema: &Document,
        resources: &[(String, Document)],
        options: Options,
        limits: Limits,
    ) -> Result<Option<SchemaAutomaton>, Error> {
        let schema = read::read(schema, resources, options)?;
        let (made, notes) = SchemaAutomaton::of_read(schema, options, limits)?;
        if made.is_some() && !options.approximate {
            exact(&notes)?;
        }
        Ok(made)
    }

    /// The machine of a schema that was read, and what is to be told of it.
    pub(crate) fn of_read(
        mut schema: Schema,
        options: Options,
        limits: Limits,
    ) -> Result<(Option<SchemaAutomaton>, Arc<[Note]>), Error> {
        let mut notes = std::mem::take(&mut schema.notes);
        let root = schema.root.unwrap_or(NodeId(0));
        let mut core = Core::new(schema, options, limits);
        let must = core.child(root);
        let some = core.some_value(must)?;
        core.steps = 0;
        notes.extend(core.undecided_items()?);
        core.steps = 0;
        if !some {
            return Ok((None, notes.into()));
        }
        let mut grown = Box::new(Grown {
            core,
            frames: Table::default(),
            depths: vec![0],
            states: Table::default(),
            records: Table::default(),
            next: FxHashMap::default(),
            live: FxHashMap::default(),
            parts: Parts::default(),
            known: Known::default(),
            namings: Vec::new(),
            keys: Table::default(),
            tells_names: false,
            horizon: 0,
            lengths: FxHashMap::default(),
            spare: Default::default(),
        });
        grown.frames.intern(Frame::Done);
        grown.records.intern((0, 0, 0));
        grown.records.intern((0, 1, 0));
        let owes = Owes { formulas: [must].into(), asked: [].into(), goal: TRUE };
        let owes = grown.parts.owes(owes);
        let frame = Frame::Value { owes, blanks: 0, below: DONE };
        let start = grown.states.intern(Place { frame, record: UNRECORDED });
        let start = StateId::from_number(start);
        let (grown, flags) = (Mutex::new(grown), Chunks::default());
        let all_notes = OnceLock::new();
        let notes: Arc<[Note]> = notes.into();
        let made = SchemaAutomaton { grown, flags, start, notes: Arc::clone(&notes), all_notes };
        Ok((Some(made), notes))
    }

    /// Whether every member is valid UTF-8.
    pub fn is_text(&self) -> bool {
        true
    }

    /// What the user should know: formats that are not enforced, keywords read as in older drafts.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The same and the parts of the schema that no instance meets, which takes a search.
    pub fn all_notes(&self) -> &[Note] {
        self.all_notes.get_or_init(|| {
            let pruned = self.lock().core.pruned();
            self.notes.iter().cloned().chain(pruned).collect()
        })
    }

    /// The JSON pointers of all subschemas that can be reached, each once.
    pub fn places(&self) -> Vec<String> {
        let grown = self.lock();
        let schema = &grown.core.schema;
        let nodes = (0..schema.nodes.len() as u32).map(NodeId);
        let places: std::collections::BTreeSet<String> =
            nodes.map(|id| schema.place(id)).filter(|place| !place.is_empty()).collect();
        places.into_iter().collect()
    }

    /// Number of states built so far.
    pub fn state_count(&self) -> usize {
        self.lock().states.len()
    }

    fn lock(&self) -> MutexGuard<'_, Box<Grown>> {
        // A panic while the lock was held leaves at worst something half remembered.
        self.grown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses what is not exact.
fn exact(notes: &[Note]) -> Result<(), Error> {
    match notes.iter().find(|note| note.effect != Effect::Exact) {
        None => Ok(()),
        Some(note) => {
            let hint = "approximate=True takes it, and the report tells of it";
            Err(read::refuse(&note.place, &note.message, Some(hint)))
        }
    }
}

impl Machine for SchemaAutomaton {
    fn start(&self) -> StateId {
        self.start
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let next = self.lock().successor(state.number(), byte)?;
        Ok((next != DEAD).then(|| StateId::from_number(next)))
    }

    fn is_accepting(&self, state: StateId) -> bool {
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

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let grown = &mut self.lock();
        if let Some(&known) = grown.live.get(&state.number()) {
            return Ok(known);
        }
        let mut set = ByteSet::default();
        for byte in 0..=255 {
            if grown.successor(state.number(), byte)? != DEAD {
                set.insert(byte);
            }
        }
        grown.live.insert(state.number(), set);
        Ok(set)
    }

    fn ways(&self, state: StateId) -> Result<Vec<ByteSet>, Error> {
        Ok(self.lock().ways(state.number())?.to_vec())
    }

    fn is_finite(&self) -> bool {
        false
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.lock().shortest(state.number())
    }

    fn owed_bytes(&self, state: StateId) -> Result<usize, Error> {
        Ok(self.lock().open_frames(state.number()))
    }

    fn completes_as(&self, state: StateId) -> Result<StateId, Error> {
        self.lock().completes_as(state.number()).map(StateId::from_number)
    }

    /// Tokens that go on in a name behind another one, which may be the same.
    fn is_unsure(&self, token: &[u8]) -> bool {
        let mut rest =
            token.iter().skip_while(|&&byte| byte != b',').skip_while(|&&byte| byte != b'"');
        rest.next().is_some() && rest.next().is_some()
    }

    fn memory_bytes(&self) -> usize {
        let grown = self.lock();
        grown.bytes()
    }

    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        let grown = &mut self.lock();
        let mut state = state.number();
        for (at, &byte) in text.iter().enumerate() {
            match grown.successor(state, byte)? {
                DEAD => return Ok(Err(at)),
                next => state = next,
            }
        }
        Ok(Ok(StateId::from_number(state)))
    }
}

impl Grown {
    /// Memory in use, in bytes.
    fn bytes(&self) -> usize {
        self.core.memory_bytes()
            + self.frames.memory_bytes()
            + self.depths.capacity() * 4
            + self.states.memory_bytes()
            + self.keys.memory_bytes()
            + self.records.memory_bytes()
            + self.next.capacity() * 16
            + self.parts.bytes()
            + self.known.bytes()
            + self.namings.len() * 200
    }

    /// Numbers of all that keeps states of several texts for good: what a look ahead adds to these
    /// has to stay.
    fn keeping_asked(&self) -> [usize; 3] {
        [self.keys.len(), self.namings.len(), self.known.opened.len()]
    }

    /// Objects, arrays and texts that are not closed yet.
    fn open_frames(&self, state: u32) -> usize {
        let (mut frame, mut open) = (self.states.get(state).frame, 0);
        loop {
            let below = match frame {
                Frame::Done => return open,
                Frame::Name { object, .. } => object,
                Frame::Object { below, .. }
                | Frame::Array { below, .. }
                | Frame::Text { below, .. } => below,
                Frame::Value { below, .. }
                | Frame::Number { below, .. }
                | Frame::Word { below, .. } => {
                    frame = *self.frames.get(below.0);
                    continue;
                }
            };
            (frame, open) = (*self.frames.get(below.0), open + 1);
        }
    }

    fn successor(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        if let Some(&known) = self.next.get(&(state, byte)) {
            return Ok(known);
        }
        self.check_limits()?;
        let place = *self.states.get(state);
        let next = match self.read_fresh(place, byte)? {
            Some(place) => self.states.intern(place),
            None => DEAD,
        };
        self.next.insert((state, byte), next);
        Ok(next)
    }

    fn check_limits(&self) -> Result<(), Error> {
        let limits = self.core.limits;
        let bytes = self.next.len() * 40 + (self.states.len() + self.frames.len()) * 100;
        for (resource, needed, allowed) in [
            (Resource::States, self.states.len() as u64 + 1, limits.states),
            (Resource::Bytes, bytes as u64, limits.bytes),
        ] {
            if needed > allowed {
                return Err(Error::Limit { resource, needed, allowed });
            }
        }
        Ok(())
    }

    /// The place after a byte, with all steps of search that one byte may take.
    fn read_fresh(&mut self, place: Place, byte: u8) -> Result<Option<Place>, Error> {
        self.core.steps = 0;
        let read = self.read(place, byte);
        if read.is_err() {
            self.core.answers.abandon();
        }
        read
    }

    fn is_accepting(&mut self, state: u32) -> bool {
        self.is_end(self.states.get(state).frame)
    }

    /// Whether a text that has come to a frame is an instance.
    fn is_end(&mut self, frame: Frame) -> bool {
        match frame {
            Frame::Done => true,
            Frame::Number { owes, digits, below: DONE } => self.number_end(owes, digits).is_some(),
            _ => false,
        }
    }

    pub(super) fn frame(&mut self, frame: Frame) -> FrameId {
        let id = self.frames.intern(frame);
        if id as usize == self.depths.len() {
            self.depths.push(self.depth_of(&frame));
        }
        FrameId(id)
    }

    /// The place after a byte; `None` if no instance continues so.
    fn read(&mut self, place: Place, byte: u8) -> Result<Option<Place>, Error> {
        let Place { frame, record } = place;
        let grown = if record == UNRECORDED { UNRECORDED } else { self.record(record, byte) };
        let frame = match frame {
            Frame::Done => None,
            Frame::Value { owes, blanks, below } => self.read_value(owes, blanks, below, byte)?,
            Frame::Word { rest, truths, below } => {
                if rest[0] != byte {
                    return Ok(None);
                }
                if rest.len() == 1 {
                    return self.close(below, truths, grown);
                }
                Some(Frame::Word { rest: &rest[1..], truths, below })
            }
            Frame::Text { .. } => return self.read_text(frame, byte, grown),
            Frame::Number { .. } => return self.read_number(frame, byte, record, grown),
            Frame::Name { .. } => self.read_name(frame, byte)?,
            Frame::Object { .. } => return self.read_object(frame, byte, grown),
            Frame::Array { .. } => return self.read_array(frame, byte, record, grown),
        };
        Ok(frame.map(|frame| Place { frame, record: grown }))
    }

    /// A recorded text with one more byte.
    fn record(&mut self, record: Recorded, byte: u8) -> Recorded {
        let length = self.records.get(record).2;
        self.records.intern((record, byte, length + 1))
    }

    /// The text recorded from a place on.
    fn recorded(&self, record: Recorded, from: u32) -> Vec<u8> {
        let mut text = Vec::new();
        let mut at = record;
        loop {
            let &(before, byte, length) = self.records.get(at);
            if length <= from {
                break;
            }
            text.push(byte);
            at = before;
        }
        text.reverse();
        text
    }
}
