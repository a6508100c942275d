//! The machine of a schema: JSON read byte by byte, with what is still owed in every frame.

mod containers;
mod derive;
mod escapes;
mod frame;
mod keys;
mod names;
mod numbers;
mod scalars;
mod shortest;

use std::sync::{Mutex, MutexGuard, PoisonError};

use formalm_automata::{ByteSet, Chunks, Error, Machine, Resource, StateId};
use rustc_hash::FxHashMap;

use crate::core::{Core, TextId};
use crate::document::Document;
use crate::formula::TRUE;
use crate::node::{NodeId, Note};
use crate::options::{Limits, Options};
use crate::read;
use frame::{DONE, Frame, FrameId, Owes, Table};

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
    states: Table<(FrameId, Recorded)>,
    /// Recorded texts, each one byte longer than another: `(the other, byte, length)`.
    records: Table<(Recorded, u8, u32)>,
    next: FxHashMap<(u32, u8), u32>,
    live: FxHashMap<u32, ByteSet>,
    /// Whether members of a class of names may come next in an object.
    classes: FxHashMap<(FrameId, TextId), bool>,
    named: FxHashMap<(FrameId, crate::names::NameId), bool>,
    /// Names that matter in objects that take any other name.
    open: FxHashMap<FrameId, Vec<crate::names::NameId>>,
    orders: Table<Vec<crate::names::NameId>>,
    /// Successors found since looking ahead began.
    found: Vec<(u32, u8)>,
    ahead: bool,
}

/// How much there was before looking ahead.
#[derive(Clone, Copy, Debug)]
struct Before {
    frames: usize,
    states: usize,
    records: usize,
}

/// The lazy deterministic automaton of a schema; shared freely between threads.
#[derive(Debug)]
pub struct SchemaAutomaton {
    grown: Mutex<Grown>,
    flags: Chunks,
    start: StateId,
    notes: Vec<Note>,
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
        let notes = schema.notes.clone();
        let root = schema.root.unwrap_or(NodeId(0));
        let mut core = Core::new(schema, options, limits);
        let must = core.child(root);
        if !core.some_value(must)? {
            return Ok(None);
        }
        let mut grown = Grown {
            core,
            frames: Table::default(),
            states: Table::default(),
            records: Table::default(),
            next: FxHashMap::default(),
            live: FxHashMap::default(),
            classes: FxHashMap::default(),
            named: FxHashMap::default(),
            open: FxHashMap::default(),
            orders: Table::default(),
            found: Vec::new(),
            ahead: false,
        };
        grown.frames.intern(Frame::Done);
        grown.records.intern((0, 0, 0));
        grown.records.intern((0, 1, 0));
        grown.orders.intern(Vec::new());
        let owes = Owes { formulas: [must].into(), asked: [].into(), goal: TRUE };
        let value = Frame::Value { owes, blanks: options.blanks, below: DONE };
        let first = FrameId(grown.frames.intern(value));
        let start = StateId::from_number(grown.states.intern((first, UNRECORDED)));
        let (grown, flags) = (Mutex::new(grown), Chunks::default());
        Ok(Some(SchemaAutomaton { grown, flags, start, notes }))
    }

    /// Whether every member is valid UTF-8.
    pub fn is_text(&self) -> bool {
        true
    }

    /// What the user should know: formats that are not enforced, keywords read as in older drafts.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Number of states built so far.
    pub fn state_count(&self) -> usize {
        self.lock().states.len()
    }

    fn lock(&self) -> MutexGuard<'_, Grown> {
        // A panic while the lock was held leaves at worst something half remembered.
        self.grown.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn is_finite(&self) -> bool {
        false
    }

    fn shortest(&self, state: StateId) -> Result<Vec<u8>, Error> {
        self.lock().shortest(state.number())
    }

    fn memory_bytes(&self) -> usize {
        let grown = self.lock();
        grown.core.memory_bytes()
            + grown.frames.len() * 240
            + (grown.states.len() + grown.next.len() + grown.records.len()) * 40
    }
}

impl Grown {
    fn successor(&mut self, state: u32, byte: u8) -> Result<u32, Error> {
        if let Some(&known) = self.next.get(&(state, byte)) {
            return Ok(known);
        }
        let limits = self.core.limits;
        let bytes = (self.next.len() * 40 + self.frames.len() * 240) as u64;
        for (resource, needed, allowed) in [
            (Resource::States, self.states.len() as u64 + 1, limits.states),
            (Resource::Bytes, bytes, limits.bytes),
        ] {
            if needed > allowed {
                return Err(Error::Limit { resource, needed, allowed });
            }
        }
        self.core.steps = 0;
        let (frame, record) = *self.states.get(state);
        let next = match self.read(frame, record, byte) {
            Ok(Some(place)) => self.states.intern(place),
            Ok(None) => DEAD,
            Err(error) => {
                self.core.answers.abandon();
                return Err(error);
            }
        };
        self.next.insert((state, byte), next);
        if self.ahead {
            self.found.push((state, byte));
        }
        Ok(next)
    }

    /// Begins to look ahead.
    fn remember(&mut self) -> Before {
        self.ahead = true;
        self.found.clear();
        Before { frames: self.frames.len(), states: self.states.len(), records: self.records.len() }
    }

    /// Drops what was met ahead.
    fn forget(&mut self, before: Before) {
        self.ahead = false;
        for key in std::mem::take(&mut self.found) {
            let kept = (key.0 as usize) < before.states
                && self
                    .next
                    .get(&key)
                    .is_none_or(|&next| next == DEAD || (next as usize) < before.states);
            if !kept {
                self.next.remove(&key);
            }
        }
        self.classes.retain(|(frame, _), _| (frame.0 as usize) < before.frames);
        self.named.retain(|(frame, _), _| (frame.0 as usize) < before.frames);
        self.open.retain(|frame, _| (frame.0 as usize) < before.frames);
        self.frames.truncate(before.frames);
        self.states.truncate(before.states);
        self.records.truncate(before.records);
    }

    /// The frame of a text as it was opened.
    fn opened(&self, frame: FrameId) -> Frame {
        let mut frame = self.frames.get(frame.0).clone();
        if let Frame::Text { language, state, .. } = &mut frame {
            *state = self.core.text(*language).start();
        }
        frame
    }

    fn is_accepting(&mut self, state: u32) -> bool {
        let (frame, _) = *self.states.get(state);
        match self.frames.get(frame.0).clone() {
            Frame::Done => true,
            Frame::Number { owes, digits, below: DONE } => {
                let total = self.core.total(&owes);
                self.core.number_ends(total, &digits)
            }
            _ => false,
        }
    }

    pub(super) fn frame(&mut self, frame: Frame) -> FrameId {
        FrameId(self.frames.intern(frame))
    }

    /// The place after a byte; `None` if no instance continues so.
    fn read(
        &mut self,
        frame: FrameId,
        record: Recorded,
        byte: u8,
    ) -> Result<Option<(FrameId, Recorded)>, Error> {
        let grown = if record == UNRECORDED {
            UNRECORDED
        } else {
            let length = self.records.get(record).2;
            self.records.intern((record, byte, length + 1))
        };
        let place = match self.frames.get(frame.0).clone() {
            Frame::Done => None,
            Frame::Value { owes, blanks, below } => {
                let next = self.read_value(&owes, blanks, below, byte)?;
                next.map(|next| (next, grown))
            }
            Frame::Word { rest, truths, below } => {
                if rest[0] != byte {
                    return Ok(None);
                }
                if rest.len() == 1 {
                    return self.close(below, &truths, grown);
                }
                let next = self.frame(Frame::Word { rest: &rest[1..], truths, below });
                Some((next, grown))
            }
            Frame::Text { .. } => return self.read_text(frame, byte, grown),
            Frame::Number { .. } => return self.read_number(frame, byte, record, grown),
            Frame::Name { .. } => self.read_name(frame, byte)?.map(|next| (next, grown)),
            Frame::Object { .. } => return self.read_object(frame, byte, grown),
            Frame::Array { .. } => return self.read_array(frame, byte, record, grown),
        };
        Ok(place)
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
