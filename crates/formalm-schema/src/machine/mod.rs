//! The machine of a schema: JSON read byte by byte, with what is still owed in every frame.

mod automaton;
mod completion;
mod frame;
mod lookahead_tables;
mod mask_class;
mod min_bytes;
mod numbers;
#[cfg(test)]
mod proptests;
mod reader;

use formalm_automata::{ByteSet, Error, Resource, Viability};
use rustc_hash::FxHashMap;

use crate::core::{Core, TextId};
use crate::table::Table;
use frame::{DONE, Frame, FrameId, Place};
use mask_class::continuation::Outlooks;
use mask_class::string_states::Runs;
use min_bytes::Learnt;
use reader::cache::{Known, Parts};
use reader::next_names::Naming;

pub use automaton::SchemaAutomaton;
pub(crate) use automaton::SchemaSource;
pub(crate) use frame::Owes;
pub use mask_class::SchemaKeys;

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
    /// The same after several bytes, packed behind a one.
    leaps: FxHashMap<(u32, u64), u32>,
    live: FxHashMap<u32, ByteSet>,
    parts: Parts,
    known: Known,
    outlooks: Outlooks,
    learnt: Learnt,
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

impl Grown {
    /// Memory in use, in bytes.
    fn bytes(&self) -> usize {
        self.core.memory_bytes()
            + self.frames.memory_bytes()
            + self.depths.capacity() * 4
            + self.met_bytes()
            + self.parts.bytes()
            + self.known.bytes()
            + self.outlooks.bytes()
            + self.learnt.bytes()
            + self.live.capacity() * 40
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
        while let Some(below) = frame.below() {
            let is_open =
                !matches!(frame, Frame::Value { .. } | Frame::Number { .. } | Frame::Word { .. });
            (frame, open) = (*self.frames.get(below.0), open + usize::from(is_open));
        }
        open
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
        let bytes = (self.next.len() + self.leaps.len()) * 40
            + (self.states.len() + self.frames.len()) * 100;
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
