//! Abstract states for the completion search: they drop the property names and unique items already
//! read, which can only forbid repetition.
//!
//! If every completion of a state *q* completes its abstract state α(*q*), then a shortest
//! completion *w* of α(*q*) is a shortest completion of *q* too, unless *w* repeats a dropped name
//! or item. All tokens inside a name thus share one completion. [`super::repetition_check`] finds
//! the few tokens for which *w* would repeat something.

use formalm_automata::json_escapes::{EscapeState, EscapeStep, read_string_byte};
use formalm_automata::{Error, RecheckPredicate};

use crate::formula::{Formula, FormulaAtom};
use crate::machine::completion::repetition_check::{
    RepetitionCheck, SeenStrings, add_strings, strings_of_completion,
};
use crate::machine::frame::{DONE, Frame, FrameId, NameCandidates, ObligationId, ReaderPosition};
use crate::machine::{LazyTables, NO_RECORD};

impl LazyTables {
    /// Returns the abstract state, which every completion of `state` completes.
    pub(crate) fn abstract_state(&mut self, state: u32) -> u32 {
        let ReaderPosition { mut frame, mut record } = self.visited.position(state);
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
        self.visited.intern(ReaderPosition { frame, record })
    }

    /// Returns `true` if inputs are recorded for unique items only, and no obligation holds
    /// *because* two items are equal.
    fn records_only_forbid(&mut self, frame: Frame) -> bool {
        let mut parent = frame.parent().unwrap_or(DONE);
        loop {
            match self.reader.frames.get(parent) {
                Frame::Array { obligation, parent: next, .. } => {
                    if self.reader.has_unique_items(obligation)
                        && !self.is_plain_uniqueness(obligation)
                    {
                        return false;
                    }
                    parent = next;
                }
                Frame::Object { parent: next, .. } => parent = next,
                _ => return true,
            }
        }
    }

    /// Returns `true` if the array requires distinct items and nothing else depends on which are
    /// equal.
    fn is_plain_uniqueness(&self, obligation: ObligationId) -> bool {
        let required = self.reader.residuals.get(obligation);
        required.formulas.len() == 1
            && self.reader.core.formulas.conjuncts(required.formulas[0]).into_iter().all(|part| {
                let is_one = |atom: &FormulaAtom| {
                    matches!(atom, FormulaAtom::UniqueItems(_) | FormulaAtom::UniqueWithCurrent(_))
                };
                match self.reader.core.formulas.get(part) {
                    Formula::Atom(_) => true,
                    _ => !self.reader.core.atoms(part).iter().any(is_one),
                }
            })
    }

    /// Clears the offsets of items in an input that is no longer recorded.
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

    /// Returns the frame and its parents with the offsets of items cleared.
    fn without_item_starts(&mut self, id: FrameId) -> FrameId {
        let (mut open, mut at) = (Vec::new(), id);
        while let frame @ (Frame::Object { parent, .. } | Frame::Array { parent, .. }) =
            self.reader.frames.get(at)
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
            at = self.reader.frames.intern(frame);
        }
        at
    }

    /// Returns a predicate for tokens after which `completion` may be invalid in the concrete
    /// state. Returns `None` if it is valid after every token.
    pub(crate) fn recheck_predicate(
        &mut self,
        state: Option<u32>,
        abstract_state: u32,
        completion: &[u8],
    ) -> Option<RecheckPredicate> {
        let frame = self.visited.position(abstract_state).frame;
        let opening = match frame {
            Frame::String { escape, .. } | Frame::Name { escape, .. } => Some(escape),
            _ => None,
        };
        let escapes = self.reader.core.options.escapes;
        let (named, mut strings) = strings_of_completion(completion, opening, escapes);
        let has_unique_items = self.add_item_strings(frame, &mut strings);
        let names = self.dropped_names(frame, named);
        if names.is_empty() && !has_unique_items {
            return None;
        }
        let open = match state {
            Some(state) => self.open_string(self.visited.position(state)),
            // The part of a token before the value cannot be separated from the part inside it.
            None => return Some(Box::new(|_| true)),
        };
        let completion = completion.to_vec();
        let items = has_unique_items.then_some(strings);
        let mut repeated =
            RepetitionCheck { escapes, open, completion, names, items, infixes: None };
        // Only plain tokens inside a string lead to a string state.
        if opening == Some(EscapeState::None) {
            repeated.find_infixes();
        }
        Some(Box::new(move |token| repeated.may_repeat(token)))
    }

    /// Returns the names that the completion uses in objects already open and that may repeat an
    /// earlier one. Names that the formulas mention are never dropped from a state.
    fn dropped_names(&mut self, frame: Frame, named: Vec<(usize, Vec<u8>)>) -> SeenStrings {
        let mut names = SeenStrings::default();
        let mut all = match frame {
            Frame::Object { .. } | Frame::Array { .. } => vec![frame],
            _ => Vec::new(),
        };
        let mut parent = frame.parent().unwrap_or(DONE);
        while all.len() <= named.iter().map(|one| one.0).max().unwrap_or(0) {
            let around = self.reader.frames.get(parent);
            all.push(around);
            parent = match around {
                Frame::Object { parent, .. } | Frame::Array { parent, .. } => parent,
                _ => break,
            };
        }
        for (depth, name) in named {
            let is_mentioned = match all.get(depth) {
                Some(&Frame::Object { obligation, .. }) => {
                    let known =
                        self.reader.residuals.mentioned_names(&mut self.reader.core, obligation).0;
                    known
                        .iter()
                        .any(|&one| self.reader.core.schema.names.get(one).as_bytes() == name)
                }
                _ => false,
            };
            if !is_mentioned {
                names.insert(name);
            }
        }
        names
    }

    /// Returns the string that a position is inside of, with its content where that is recorded.
    fn open_string(
        &self,
        ReaderPosition { frame, record }: ReaderPosition,
    ) -> Option<(Option<Vec<u8>>, EscapeState)> {
        match frame {
            Frame::Name { text, escape, .. } => {
                Some(((text != NO_RECORD).then(|| self.reader.records.bytes_from(text, 0)), escape))
            }
            Frame::String { escape, .. } => {
                if record == NO_RECORD {
                    return Some((None, escape));
                }
                let mut open: Option<(Vec<u8>, EscapeState)> = None;
                for byte in self.reader.records.bytes_from(record, 0) {
                    let Some((text, escape)) = &mut open else {
                        open = (byte == b'"').then_some((Vec::new(), EscapeState::None));
                        continue;
                    };
                    match read_string_byte(*escape, byte, self.reader.core.options.escapes) {
                        EscapeStep::Char(read) => {
                            text.extend_from_slice(&read);
                            *escape = EscapeState::None;
                        }
                        EscapeStep::Partial(further) => *escape = further,
                        EscapeStep::End | EscapeStep::Invalid => open = None,
                    }
                }
                open.map(|(text, escape)| (Some(text), escape)).or(Some((None, escape)))
            }
            _ => None,
        }
    }

    /// Adds the strings in earlier unique items. Returns `true` if an array with unique items
    /// surrounds the frame, or is the frame.
    fn add_item_strings(&self, frame: Frame, strings: &mut SeenStrings) -> bool {
        let mut has_unique_items = false;
        let mut add = |obligation: ObligationId| {
            for &formula in &self.reader.residuals.get(obligation).formulas {
                for atom in self.reader.core.atoms(formula) {
                    if let FormulaAtom::UniqueItems(taken) | FormulaAtom::UniqueWithCurrent(taken) =
                        atom
                    {
                        has_unique_items = true;
                        let schema = &self.reader.core.schema;
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
            parent = match self.reader.frames.get(parent) {
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

    /// Returns `true` if `text` completes `state`. Frames built on the way are dropped.
    pub(crate) fn is_completed(&mut self, state: u32, text: &[u8]) -> Result<bool, Error> {
        let (frames, records) = (self.reader.frames.len(), self.reader.records.len());
        let mut position = Some(self.visited.position(state));
        for &byte in text {
            let Some(here) = position else { break };
            position = match self.reader.read_byte(here, byte) {
                Ok(next) => next,
                Err(error) => {
                    self.reader.truncate(frames, records);
                    return Err(error);
                }
            };
        }
        let ends = position.is_some_and(|position| self.reader.is_end(position.frame));
        self.reader.truncate(frames, records);
        Ok(ends)
    }
}
