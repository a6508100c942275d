//! Objects and arrays between their parts.

use formalm_automata::{Error, Resource};

use super::frame::{Frame, FrameId, Mode, Owes};
use super::scalars::is_blank;
use super::{EMPTY_RECORD, Grown, Recorded, UNRECORDED};
use crate::formula::{Atom, Form};
use crate::node::Type;
use crate::solve::Rest;
use crate::value::ValueId;

/// Values of an item that are tried one by one where items must be distinct.
const MAX_TRIED: usize = 64;

impl Grown {
    /// Closes a value: the frame below learns the truths it asked for.
    pub(super) fn close(
        &mut self,
        below: FrameId,
        truths: &[bool],
        record: Recorded,
    ) -> Result<Option<(FrameId, Recorded)>, Error> {
        let blanks = self.core.options.blanks;
        match self.frames.get(below.0).clone() {
            Frame::Object { owes, gone, order, below, .. } => {
                let asked = self.core.formulas.asked(&owes.formulas);
                let owes = self.core.after_child(&owes, &asked, truths, None)?;
                let mode = Mode::After;
                let next = self.frame(Frame::Object { owes, gone, order, mode, blanks, below });
                Ok(Some((next, record)))
            }
            Frame::Array { owes, from, below, .. } => {
                let asked = self.core.formulas.asked(&owes.formulas);
                let unique = self.core.has_unique(&owes);
                let value = if unique { self.recorded_value(record, from) } else { None };
                let owes = self.core.after_child(&owes, &asked, truths, value)?;
                if unique {
                    let total = self.core.total(&owes);
                    if !self.core.some_array(total)? {
                        return Ok(None);
                    }
                }
                let record = if unique && from == 0 { UNRECORDED } else { record };
                let mode = Mode::After;
                let next = self.frame(Frame::Array { owes, mode, blanks, from: 0, below });
                Ok(Some((next, record)))
            }
            _ => Ok(Some((super::DONE, record))),
        }
    }

    fn recorded_value(&mut self, record: Recorded, from: u32) -> Option<ValueId> {
        let text = self.recorded(record, from);
        let json = serde_json::from_slice(&text).ok()?;
        let schema = &mut self.core.schema;
        schema.values.read(&json, &mut schema.names)
    }

    pub(super) fn check_nesting(&self, below: FrameId) -> Result<(), Error> {
        let (mut depth, mut at) = (1u64, below);
        loop {
            at = match self.frames.get(at.0) {
                Frame::Object { below, .. } | Frame::Array { below, .. } => *below,
                _ => break,
            };
            depth += 1;
        }
        let allowed = u64::from(self.core.limits.nesting);
        if depth > allowed {
            return Err(Error::Limit { resource: Resource::Nesting, needed: depth, allowed });
        }
        Ok(())
    }

    fn ended(&mut self, owes: &Owes) -> Option<Vec<bool>> {
        let total = self.core.total(owes);
        let ended = owes.formulas.iter().skip(1);
        let truths = ended.map(|&id| self.core.holds_at_end(id)).collect();
        self.core.holds_at_end(total).then_some(truths)
    }

    /// The place after a byte between the parts of an object.
    pub(super) fn read_object(
        &mut self,
        frame: FrameId,
        byte: u8,
        record: Recorded,
    ) -> Result<Option<(FrameId, Recorded)>, Error> {
        let Frame::Object { owes, gone, order, mode, blanks, below } =
            self.frames.get(frame.0).clone()
        else {
            return Ok(None);
        };
        let full = self.core.options.blanks;
        if is_blank(byte) {
            let Some(blanks) = blanks.checked_sub(1) else { return Ok(None) };
            let next = self.frame(Frame::Object { owes, gone, order, mode, blanks, below });
            return Ok(Some((next, record)));
        }
        match (mode, byte) {
            (Mode::First | Mode::After, b'}') => match self.ended(&owes) {
                Some(truths) => self.close(below, &truths, record),
                None => Ok(None),
            },
            (Mode::After, b',') => {
                let next =
                    Frame::Object { owes, gone, order, mode: Mode::Next, blanks: full, below };
                let next = self.frame(next);
                Ok(self.name_viable(next, b"")?.then_some((next, record)))
            }
            (Mode::First | Mode::Next, b'"') => {
                // Names do not depend on where the blanks are.
                let object =
                    Frame::Object { owes, gone, order, mode: Mode::Next, blanks: full, below };
                let object = self.frame(object);
                Ok(self.open_name(object)?.map(|next| (next, record)))
            }
            (Mode::Colon, b':') => {
                let rest = Rest { of: Type::Object, gone: &gone };
                let Some(begun) = self.core.begin(owes, rest)? else { return Ok(None) };
                let owes = begun.container;
                let mode = Mode::Inside;
                let object =
                    self.frame(Frame::Object { owes, gone, order, mode, blanks: full, below });
                let value = Frame::Value { owes: begun.child, blanks: full, below: object };
                Ok(Some((self.frame(value), record)))
            }
            _ => Ok(None),
        }
    }

    /// The place after a byte between the items of an array.
    pub(super) fn read_array(
        &mut self,
        frame: FrameId,
        byte: u8,
        record: Recorded,
        grown: Recorded,
    ) -> Result<Option<(FrameId, Recorded)>, Error> {
        let Frame::Array { owes, mode, blanks, from, below } = self.frames.get(frame.0).clone()
        else {
            return Ok(None);
        };
        match (mode, byte) {
            (Mode::First | Mode::After, b']') => {
                let Some(truths) = self.ended(&owes) else { return Ok(None) };
                self.close(below, &truths, grown)
            }
            (Mode::After, b',') => Ok(self.open_item(owes, below, grown)?),
            (Mode::First | Mode::After, byte) if is_blank(byte) => {
                let Some(blanks) = blanks.checked_sub(1) else { return Ok(None) };
                let next = self.frame(Frame::Array { owes, mode, blanks, from, below });
                Ok(Some((next, grown)))
            }
            (Mode::First, byte) => {
                let Some((value, before)) = self.open_item(owes, below, record)? else {
                    return Ok(None);
                };
                // The blanks before the first item were read in the array.
                let value = match self.frames.get(value.0).clone() {
                    Frame::Value { owes, below, .. } => {
                        self.frame(Frame::Value { owes, blanks: 0, below })
                    }
                    _ => value,
                };
                self.read(value, before, byte)
            }
            _ => Ok(None),
        }
    }

    /// An array whose next item begins.
    fn open_item(
        &mut self,
        owes: Owes,
        below: FrameId,
        record: Recorded,
    ) -> Result<Option<(FrameId, Recorded)>, Error> {
        let blanks = self.core.options.blanks;
        let owes = self.core.after_item(&owes)?;
        let rest = Rest { of: Type::Array, gone: &[] };
        let Some(mut begun) = self.core.begin(owes, rest)? else { return Ok(None) };
        let unique = self.core.has_unique(&begun.container);
        if unique && begun.child.asked.is_empty() {
            self.keep_to_distinct(&begun.container, &mut begun.child)?;
        }
        let record = if unique && record == UNRECORDED { EMPTY_RECORD } else { record };
        let from = if unique { self.records.get(record).2 } else { 0 };
        let array = Frame::Array { owes: begun.container, mode: Mode::Inside, blanks, from, below };
        let array = self.frame(array);
        let value = Frame::Value { owes: begun.child, blanks, below: array };
        Ok(Some((self.frame(value), record)))
    }

    /// Where an item has few values, keeps to those after which the others can still be distinct.
    fn keep_to_distinct(&mut self, array: &Owes, child: &mut Owes) -> Result<(), Error> {
        let taken = self.core.formulas.conjuncts(array.formulas[0]).into_iter().find_map(|id| {
            match self.core.formulas.get(id) {
                Form::Atom(Atom::UniqueWith(taken)) => Some(taken.to_vec()),
                _ => None,
            }
        });
        let Some(taken) = taken else { return Ok(()) };
        let must = child.formulas[0];
        let Some(values) = self.core.list_values(must, MAX_TRIED, &taken)? else { return Ok(()) };
        let mut good = Vec::new();
        for value in values {
            let after = self.core.after_child(array, &[], &[], Some(value))?;
            let total = self.core.total(&after);
            if self.core.some_array(total)? {
                good.push(value);
            }
        }
        good.sort_unstable();
        let node = self.core.schema.node_of_values(&good);
        child.formulas[0] = self.core.formulas.child(node);
        Ok(())
    }
}
