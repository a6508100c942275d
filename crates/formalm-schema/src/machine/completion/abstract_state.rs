//! States that forget what was read where it does nothing but forbid something to come again: the
//! names of members, and items that must be distinct.
//!
//! Where all that completes a state completes another one too, a shortest text of that one is a
//! shortest text of the state, unless it repeats what was read. So tokens that go on in a name are
//! completed alike, but for those few that make a name or a value which the completion has as well.

use formalm_automata::spelling::{Escape, Read, read};
use formalm_automata::{Doubts, Error};

use crate::formula::{Atom, Form};
use crate::machine::completion::repetition_check::{Repeated, Strings, add_strings, strings_of};
use crate::machine::frame::{DONE, Frame, FrameId, OwesId, Place, Reach};
use crate::machine::{Grown, UNRECORDED};

impl Grown {
    /// A state that all completions of another one complete, without what forbids repetitions.
    pub(crate) fn forgetful(&mut self, state: u32) -> u32 {
        let Place { mut frame, mut record } = *self.states.get(state);
        if record != UNRECORDED && self.only_forbids(frame) {
            record = UNRECORDED;
            self.forget_beginnings(&mut frame);
        }
        if let Frame::Name { object, naming, reach, escape, .. } = frame
            && reach.from == reach.to
        {
            let reach = Reach { from: 0, to: 0, ..reach };
            frame = Frame::Name { object, naming, text: UNRECORDED, reach, escape };
        }
        self.states.intern(Place { frame, record })
    }

    /// Whether all that is recorded is recorded for items that must be distinct, and for nothing
    /// that holds if they are not.
    fn only_forbids(&mut self, frame: Frame) -> bool {
        let mut below = frame.below().unwrap_or(DONE);
        loop {
            match *self.frames.get(below.0) {
                Frame::Array { owes, below: next, .. } => {
                    if self.is_unique(owes) && !self.is_only_distinct(owes) {
                        return false;
                    }
                    below = next;
                }
                Frame::Object { below: next, .. } => below = next,
                _ => return true,
            }
        }
    }

    fn is_only_distinct(&self, owes: OwesId) -> bool {
        let owed = self.parts.owes.get(owes.0);
        owed.formulas.len() == 1
            && self.core.formulas.conjuncts(owed.formulas[0]).into_iter().all(|part| {
                let is_one = |atom: &Atom| matches!(atom, Atom::Unique(_) | Atom::UniqueWith(_));
                match self.core.formulas.get(part) {
                    Form::Atom(_) => true,
                    _ => !self.core.atoms(part).iter().any(is_one),
                }
            })
    }

    /// Forgets where items begin in the text that is not recorded any more.
    fn forget_beginnings(&mut self, frame: &mut Frame) {
        match frame {
            Frame::Name { object, .. } => *object = self.without_beginnings(*object),
            Frame::Array { below, from, .. } => {
                *from = 0;
                *below = self.without_beginnings(*below);
            }
            Frame::Text { below, .. }
            | Frame::Object { below, .. }
            | Frame::Value { below, .. }
            | Frame::Number { below, .. }
            | Frame::Word { below, .. } => *below = self.without_beginnings(*below),
            Frame::Done => {}
        }
    }

    fn without_beginnings(&mut self, id: FrameId) -> FrameId {
        let (mut open, mut at) = (Vec::new(), id);
        while let frame @ (Frame::Object { below, .. } | Frame::Array { below, .. }) =
            *self.frames.get(at.0)
        {
            open.push(frame);
            at = below;
        }
        for mut frame in open.into_iter().rev() {
            match &mut frame {
                Frame::Object { below, .. } => *below = at,
                Frame::Array { below, from, .. } => (*below, *from) = (at, 0),
                _ => {}
            }
            at = self.frame(frame);
        }
        at
    }

    /// Which tokens from a state to a forgetful one a text that completes that one may not complete.
    pub(crate) fn doubts(
        &mut self,
        state: Option<u32>,
        forgetful: u32,
        completion: &[u8],
    ) -> Option<Doubts> {
        let frame = self.states.get(forgetful).frame;
        let begins = match frame {
            Frame::Text { escape, .. } | Frame::Name { escape, .. } => Some(escape),
            _ => None,
        };
        let escapes = self.core.options.escapes;
        let (named, mut strings) = strings_of(completion, begins, escapes);
        let is_distinct = self.add_items(frame, &mut strings);
        let names = self.forgotten_names(frame, named);
        if names.is_empty() && !is_distinct {
            return None;
        }
        let begun = match state {
            Some(state) => self.begun(*self.states.get(state)),
            // What a token has in front of the value is not told from what it has of it.
            None => return Some(Box::new(|_| true)),
        };
        let completion = completion.to_vec();
        let items = is_distinct.then_some(strings);
        let mut repeated = Repeated { escapes, begun, completion, names, items, between: None };
        // A state that is no string comes of no plain token within one.
        if begins == Some(Escape::None) {
            repeated.look_between();
        }
        Some(Box::new(move |token| repeated.is_doubtful(token)))
    }

    /// Of names that come in objects around a frame, or in it, those which may have come before: the
    /// names that an object speaks of are never forgotten.
    fn forgotten_names(&mut self, frame: Frame, named: Vec<(usize, Vec<u8>)>) -> Strings {
        let mut names = Strings::default();
        let mut all = match frame {
            Frame::Object { .. } | Frame::Array { .. } => vec![frame],
            _ => Vec::new(),
        };
        let mut below = frame.below().unwrap_or(DONE);
        while all.len() <= named.iter().map(|one| one.0).max().unwrap_or(0) {
            let around = *self.frames.get(below.0);
            all.push(around);
            below = match around {
                Frame::Object { below, .. } | Frame::Array { below, .. } => below,
                _ => break,
            };
        }
        for (depth, name) in named {
            let is_spoken_of = match all.get(depth) {
                Some(&Frame::Object { owes, .. }) => {
                    let known = self.mentioned(owes).0;
                    known.iter().any(|&one| self.core.schema.names.get(one).as_bytes() == name)
                }
                _ => false,
            };
            if !is_spoken_of {
                names.insert(name);
            }
        }
        names
    }

    /// The string that a place is in, if it is in one, with its text where that is recorded.
    fn begun(&self, Place { frame, record }: Place) -> Option<(Option<Vec<u8>>, Escape)> {
        match frame {
            Frame::Name { text, escape, .. } => {
                Some(((text != UNRECORDED).then(|| self.recorded(text, 0)), escape))
            }
            Frame::Text { escape, .. } => {
                if record == UNRECORDED {
                    return Some((None, escape));
                }
                let mut open: Option<(Vec<u8>, Escape)> = None;
                for byte in self.recorded(record, 0) {
                    let Some((text, escape)) = &mut open else {
                        open = (byte == b'"').then_some((Vec::new(), Escape::None));
                        continue;
                    };
                    match read(*escape, byte, self.core.options.escapes) {
                        Read::Text(read) => {
                            text.extend_from_slice(&read);
                            *escape = Escape::None;
                        }
                        Read::Inside(further) => *escape = further,
                        Read::End | Read::Wrong => open = None,
                    }
                }
                open.map(|(text, escape)| (Some(text), escape)).or(Some((None, escape)))
            }
            _ => None,
        }
    }

    /// Adds the strings in items that came where items must be distinct; whether there are such
    /// arrays around a frame, or it is one.
    fn add_items(&self, frame: Frame, strings: &mut Strings) -> bool {
        let mut is_distinct = false;
        let mut add = |owes: OwesId| {
            for &formula in &self.parts.owes.get(owes.0).formulas {
                for atom in self.core.atoms(formula) {
                    if let Atom::Unique(taken) | Atom::UniqueWith(taken) = atom {
                        is_distinct = true;
                        let schema = &self.core.schema;
                        let mut left = taken.to_vec();
                        while let Some(value) = left.pop() {
                            add_strings(value, &schema.values, &schema.names, &mut left, strings);
                        }
                    }
                }
            }
        };
        if let Frame::Array { owes, .. } = frame {
            add(owes);
        }
        let mut below = frame.below().unwrap_or(DONE);
        loop {
            below = match *self.frames.get(below.0) {
                Frame::Array { owes, below, .. } => {
                    add(owes);
                    below
                }
                Frame::Object { below, .. } => below,
                _ => break,
            };
        }
        is_distinct
    }

    /// Whether a text completes a state; no frame that it meets is kept.
    pub(crate) fn is_completed(&mut self, state: u32, text: &[u8]) -> Result<bool, Error> {
        let (frames, records) = (self.frames.len(), self.records.len());
        let mut place = Some(*self.states.get(state));
        for &byte in text {
            let Some(here) = place else { break };
            place = match self.read_fresh(here, byte) {
                Ok(next) => next,
                Err(error) => {
                    self.drop_behind(frames, records);
                    return Err(error);
                }
            };
        }
        let ends = place.is_some_and(|place| self.is_end(place.frame));
        self.drop_behind(frames, records);
        Ok(ends)
    }

    /// Drops the frames and records of a search, which are nobody's.
    pub(crate) fn drop_behind(&mut self, frames: usize, records: usize) {
        self.frames.truncate(frames);
        self.depths.truncate(frames);
        self.records.truncate(records);
    }
}
