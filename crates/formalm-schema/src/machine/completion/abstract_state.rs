//! States that forget what was read where it does nothing but forbid something to come again: the
//! names of members, and items that must be distinct.
//!
//! Where all that completes a state completes another one too, a shortest text of that one is a
//! shortest text of the state, unless it repeats what was read. So tokens that go on in a name are
//! completed alike, but for those few that make a name or a value which the completion has as well.

use formalm_automata::spelling::{Escape, Read, read};
use formalm_automata::{Doubts, Error};

use crate::formula::{Atom, Form};
use crate::machine::completion::repetition_check::{
    RepetitionCheck, SeenStrings, add_strings, strings_of_completion,
};
use crate::machine::frame::{DONE, Frame, FrameId, NameCandidates, ObligationId, Position};
use crate::machine::{LazyTables, NO_RECORD};

impl LazyTables {
    /// A state that all completions of another one complete, without what forbids repetitions.
    pub(crate) fn abstract_state(&mut self, state: u32) -> u32 {
        let Position { mut frame, mut record } = *self.states.get(state);
        if record != NO_RECORD && self.records_only_forbid(frame) {
            record = NO_RECORD;
            self.clear_item_starts(&mut frame);
        }
        if let Frame::Name { object, next_names, candidates, escape, .. } = frame
            && candidates.from == candidates.to
        {
            let candidates = NameCandidates { from: 0, to: 0, ..candidates };
            frame = Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
        }
        self.states.intern(Position { frame, record })
    }

    /// Whether all that is recorded is recorded for items that must be distinct, and for nothing
    /// that holds if they are not.
    fn records_only_forbid(&mut self, frame: Frame) -> bool {
        let mut parent = frame.parent().unwrap_or(DONE);
        loop {
            match *self.frames.get(parent.0) {
                Frame::Array { obligation, parent: next, .. } => {
                    if self.has_unique_items(obligation) && !self.is_plain_uniqueness(obligation) {
                        return false;
                    }
                    parent = next;
                }
                Frame::Object { parent: next, .. } => parent = next,
                _ => return true,
            }
        }
    }

    fn is_plain_uniqueness(&self, obligation: ObligationId) -> bool {
        let required = self.parts.obligations.get(obligation.0);
        required.formulas.len() == 1
            && self.core.formulas.conjuncts(required.formulas[0]).into_iter().all(|part| {
                let is_one = |atom: &Atom| matches!(atom, Atom::Unique(_) | Atom::UniqueWith(_));
                match self.core.formulas.get(part) {
                    Form::Atom(_) => true,
                    _ => !self.core.atoms(part).iter().any(is_one),
                }
            })
    }

    /// Forgets where items begin in the text that is not recorded any more.
    fn clear_item_starts(&mut self, frame: &mut Frame) {
        match frame {
            Frame::Name { object, .. } => *object = self.without_item_starts(*object),
            Frame::Array { parent, from, .. } => {
                *from = 0;
                *parent = self.without_item_starts(*parent);
            }
            Frame::String { parent, .. }
            | Frame::Object { parent, .. }
            | Frame::Value { parent, .. }
            | Frame::Number { parent, .. }
            | Frame::Literal { parent, .. } => *parent = self.without_item_starts(*parent),
            Frame::Done => {}
        }
    }

    fn without_item_starts(&mut self, id: FrameId) -> FrameId {
        let (mut open, mut at) = (Vec::new(), id);
        while let frame @ (Frame::Object { parent, .. } | Frame::Array { parent, .. }) =
            *self.frames.get(at.0)
        {
            open.push(frame);
            at = parent;
        }
        for mut frame in open.into_iter().rev() {
            match &mut frame {
                Frame::Object { parent, .. } => *parent = at,
                Frame::Array { parent, from, .. } => (*parent, *from) = (at, 0),
                _ => {}
            }
            at = self.frame(frame);
        }
        at
    }

    /// Which tokens from a state to a forgetful one a text that completes that one may not complete.
    pub(crate) fn recheck_predicate(
        &mut self,
        state: Option<u32>,
        abstract_state: u32,
        completion: &[u8],
    ) -> Option<Doubts> {
        let frame = self.states.get(abstract_state).frame;
        let opening = match frame {
            Frame::String { escape, .. } | Frame::Name { escape, .. } => Some(escape),
            _ => None,
        };
        let escapes = self.core.options.escapes;
        let (named, mut strings) = strings_of_completion(completion, opening, escapes);
        let has_unique_items = self.add_item_strings(frame, &mut strings);
        let names = self.dropped_names(frame, named);
        if names.is_empty() && !has_unique_items {
            return None;
        }
        let open = match state {
            Some(state) => self.open_string(*self.states.get(state)),
            // What a token has in front of the value is not told from what it has of it.
            None => return Some(Box::new(|_| true)),
        };
        let completion = completion.to_vec();
        let items = has_unique_items.then_some(strings);
        let mut repeated =
            RepetitionCheck { escapes, open, completion, names, items, infixes: None };
        // A state that is no string comes of no plain token within one.
        if opening == Some(Escape::None) {
            repeated.find_infixes();
        }
        Some(Box::new(move |token| repeated.may_repeat(token)))
    }

    /// Of names that come in objects around a frame, or in it, those which may have come before: the
    /// names that an object speaks of are never forgotten.
    fn dropped_names(&mut self, frame: Frame, named: Vec<(usize, Vec<u8>)>) -> SeenStrings {
        let mut names = SeenStrings::default();
        let mut all = match frame {
            Frame::Object { .. } | Frame::Array { .. } => vec![frame],
            _ => Vec::new(),
        };
        let mut parent = frame.parent().unwrap_or(DONE);
        while all.len() <= named.iter().map(|one| one.0).max().unwrap_or(0) {
            let around = *self.frames.get(parent.0);
            all.push(around);
            parent = match around {
                Frame::Object { parent, .. } | Frame::Array { parent, .. } => parent,
                _ => break,
            };
        }
        for (depth, name) in named {
            let is_spoken_of = match all.get(depth) {
                Some(&Frame::Object { obligation, .. }) => {
                    let known = self.mentioned_names(obligation).0;
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
    fn open_string(
        &self,
        Position { frame, record }: Position,
    ) -> Option<(Option<Vec<u8>>, Escape)> {
        match frame {
            Frame::Name { text, escape, .. } => {
                Some(((text != NO_RECORD).then(|| self.recorded(text, 0)), escape))
            }
            Frame::String { escape, .. } => {
                if record == NO_RECORD {
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
    fn add_item_strings(&self, frame: Frame, strings: &mut SeenStrings) -> bool {
        let mut has_unique_items = false;
        let mut add = |obligation: ObligationId| {
            for &formula in &self.parts.obligations.get(obligation.0).formulas {
                for atom in self.core.atoms(formula) {
                    if let Atom::Unique(taken) | Atom::UniqueWith(taken) = atom {
                        has_unique_items = true;
                        let schema = &self.core.schema;
                        let mut left = taken.to_vec();
                        while let Some(value) = left.pop() {
                            add_strings(value, &schema.values, &schema.names, &mut left, strings);
                        }
                    }
                }
            }
        };
        if let Frame::Array { obligation, .. } = frame {
            add(obligation);
        }
        let mut parent = frame.parent().unwrap_or(DONE);
        loop {
            parent = match *self.frames.get(parent.0) {
                Frame::Array { obligation, parent, .. } => {
                    add(obligation);
                    parent
                }
                Frame::Object { parent, .. } => parent,
                _ => break,
            };
        }
        has_unique_items
    }

    /// Whether a text completes a state; no frame that it meets is kept.
    pub(crate) fn is_completed(&mut self, state: u32, text: &[u8]) -> Result<bool, Error> {
        let (frames, records) = (self.frames.len(), self.records.len());
        let mut position = Some(*self.states.get(state));
        for &byte in text {
            let Some(here) = position else { break };
            position = match self.read_byte(here, byte) {
                Ok(next) => next,
                Err(error) => {
                    self.truncate_tables(frames, records);
                    return Err(error);
                }
            };
        }
        let ends = position.is_some_and(|position| self.is_end(position.frame));
        self.truncate_tables(frames, records);
        Ok(ends)
    }

    /// Drops the frames and records of a search, which are nobody's.
    pub(crate) fn truncate_tables(&mut self, frames: usize, records: usize) {
        self.frames.truncate(frames);
        self.depths.truncate(frames);
        self.records.truncate(records);
    }
}
