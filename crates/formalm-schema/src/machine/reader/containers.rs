//! Objects and arrays between their parts.

use formalm_automata::{Error, Resource};

use crate::decimal::MAX_DIGITS;
use crate::formula::{Atom, Form, TRUE};
use crate::machine::frame::{Frame, FrameId, Mode, Owes, OwesId, Place, TruthsId};
use crate::machine::reader::value_start_and_strings::is_blank;
use crate::machine::reader::whitespace::{At, Gap};
use crate::machine::{EMPTY_RECORD, Grown, Recorded, UNRECORDED};
use crate::node::Type;
use crate::solve::{FEW_VALUES, Listed, Rest};
use crate::value::ValueId;

/// Containers in an item that must be distinct, as the reader of JSON has it.
const MAX_DEPTH: u64 = 127;

impl Grown {
    /// Closes a value: the frame below learns the truths it asked for.
    pub(crate) fn close(
        &mut self,
        below: FrameId,
        truths: TruthsId,
        record: Recorded,
    ) -> Result<Option<Place>, Error> {
        let blanks = self.gap_start();
        let mode = Mode::After;
        match *self.frames.get(below.0) {
            Frame::Object { owes, gone, order, below, .. } => {
                let owes = self.closed(owes, truths)?;
                let frame = Frame::Object { owes, gone, order, mode, blanks, below };
                Ok(Some(Place { frame, record }))
            }
            Frame::Array { owes, from, below, .. } => {
                let unique = self.is_unique(owes);
                let after = if unique {
                    self.closed_distinct(owes, truths, record, from)?
                } else {
                    Some(self.closed(owes, truths)?)
                };
                let Some(owes) = after else { return Ok(None) };
                let record = if unique && from == 0 { UNRECORDED } else { record };
                let frame = Frame::Array { owes, mode, blanks, from: 0, below };
                Ok(Some(Place { frame, record }))
            }
            _ => Ok(Some(Place { frame: Frame::Done, record })),
        }
    }

    /// What a container owes once a child has closed whose value does not matter.
    fn closed(&mut self, owes: OwesId, truths: TruthsId) -> Result<OwesId, Error> {
        if let Some(&known) = self.known.closed.get(&(owes, truths)) {
            return Ok(known);
        }
        let after = self.after_child(owes, truths, None)?;
        self.known.closed.insert((owes, truths), after);
        Ok(after)
    }

    fn after_child(
        &mut self,
        owes: OwesId,
        truths: TruthsId,
        value: Option<ValueId>,
    ) -> Result<OwesId, Error> {
        let before = self.parts.owes.get(owes.0).clone();
        let asked = self.core.formulas.asked(&before.formulas);
        let truths = self.parts.truths.get(truths.0).clone();
        let after = self.core.after_child(&before, &asked, &truths, value)?;
        Ok(self.parts.owes(after))
    }

    /// The same where items must be distinct; `None` if the others cannot be any more.
    fn closed_distinct(
        &mut self,
        owes: OwesId,
        truths: TruthsId,
        record: Recorded,
        from: u32,
    ) -> Result<Option<OwesId>, Error> {
        if record == UNRECORDED {
            // Looking ahead, where which value it was does not matter.
            let after = self.closed(owes, truths)?;
            if let Some(&known) = self.known.go_on.get(&after) {
                return Ok(known.then_some(after));
            }
            let goes_on = self.goes_on(after)?;
            self.known.go_on.insert(after, goes_on);
            return Ok(goes_on.then_some(after));
        }
        let value = self.recorded_value(record, from)?;
        let after = self.after_child(owes, truths, Some(value))?;
        Ok(self.goes_on(after)?.then_some(after))
    }

    /// Whether some items complete an array.
    fn goes_on(&mut self, owes: OwesId) -> Result<bool, Error> {
        let owed = self.parts.owes.get(owes.0).clone();
        let total = self.core.total(&owed);
        self.core.some_array(total)
    }

    pub(crate) fn is_unique(&mut self, owes: OwesId) -> bool {
        if let Some(&known) = self.known.unique.get(&owes) {
            return known;
        }
        let unique = self.core.has_unique(self.parts.owes.get(owes.0));
        self.known.unique.insert(owes, unique);
        unique
    }

    /// An item that was read, which is JSON; it is too deep or has too long a number to be compared
    /// with others where it has no value.
    fn recorded_value(&mut self, record: Recorded, from: u32) -> Result<ValueId, Error> {
        let text = self.recorded(record, from);
        let limit = |resource, allowed| Error::Limit { resource, needed: allowed + 1, allowed };
        let json =
            serde_json::from_slice(&text).map_err(|_| limit(Resource::Nesting, MAX_DEPTH))?;
        let schema = &mut self.core.schema;
        let value = schema.values.read(&json, &mut schema.names);
        value.ok_or_else(|| limit(Resource::Digits, MAX_DIGITS as u64))
    }

    pub(crate) fn check_nesting(&self, below: FrameId) -> Result<(), Error> {
        let depth = u64::from(self.depth(below)) + 1;
        let allowed = u64::from(self.core.limits.nesting);
        if depth > allowed {
            return Err(Error::Limit { resource: Resource::Nesting, needed: depth, allowed });
        }
        Ok(())
    }

    /// Whether a container may be opened: where nothing is said of values, so many may be nested.
    /// Containers that a schema asks for may always be.
    pub(crate) fn may_nest(&self, owes: OwesId, below: FrameId) -> bool {
        let most = self.core.options.depth;
        let is_open = |owes: OwesId| {
            let owes = self.parts.owes.get(owes.0);
            owes.formulas.iter().all(|&one| one == TRUE) && owes.goal == TRUE
        };
        if most == u32::MAX || !is_open(owes) {
            return true;
        }
        let (mut depth, mut at) = (0, below);
        while depth < most {
            at = match *self.frames.get(at.0) {
                Frame::Object { owes, below, .. } | Frame::Array { owes, below, .. }
                    if is_open(owes) =>
                {
                    below
                }
                _ => return true,
            };
            depth += 1;
        }
        false
    }

    /// The truths of a container that ends here; `None` if it cannot.
    pub(crate) fn ended(&mut self, owes: OwesId) -> Option<TruthsId> {
        if let Some(&known) = self.known.ended.get(&owes) {
            return known;
        }
        let owed = self.parts.owes.get(owes.0).clone();
        let total = self.core.total(&owed);
        let ended = owed.formulas.iter().skip(1);
        let truths: Vec<bool> = ended.map(|&id| self.core.holds_at_end(id)).collect();
        let truths = self.core.holds_at_end(total).then(|| self.parts.truths(&truths));
        self.known.ended.insert(owes, truths);
        truths
    }

    /// The place after a byte between the parts of an object.
    pub(crate) fn read_object(
        &mut self,
        frame: Frame,
        byte: u8,
        record: Recorded,
    ) -> Result<Option<Place>, Error> {
        let Frame::Object { owes, gone, order, mode, blanks, below } = frame else {
            return Ok(None);
        };
        let (full, depth) = (self.gap_start(), self.depth(below) + 1);
        let gap = Gap::behind(mode);
        // Names do not depend on where the blanks are.
        let next = Frame::Object { owes, gone, order, mode: Mode::Next, blanks: full, below };
        if is_blank(byte) {
            let begins = self.core.options.layout.is_some() && blanks == 0;
            let Some(blanks) = self.blank(gap, depth, blanks, byte) else { return Ok(None) };
            // The first blank of a layout says what will stand behind it.
            let viable = match mode {
                Mode::First if begins => self.some_name(next)?,
                Mode::After if begins => self.ended(owes).is_some(),
                _ => true,
            };
            let frame = Frame::Object { owes, gone, order, mode, blanks, below };
            return Ok(viable.then_some(Place { frame, record }));
        }
        let (begun, ends) = (self.gap_begun(blanks), self.gap_ends(gap, depth, blanks));
        let frame = match (mode, byte) {
            (Mode::First, b'}') if begun => None,
            (Mode::After, b'}') if !ends => None,
            (Mode::First | Mode::After, b'}') => match self.ended(owes) {
                Some(truths) => return self.close(below, truths, record),
                None => return Ok(None),
            },
            (Mode::After, b',') if begun => None,
            (Mode::After, b',') => self.some_name(next)?.then_some(next),
            _ if !ends => None,
            (Mode::First | Mode::Next, b'"') => self.open_name(next)?,
            (Mode::Colon, b':') => {
                let Some((owes, child)) = self.member(owes, gone)? else { return Ok(None) };
                let mode = Mode::Inside;
                let object = Frame::Object { owes, gone, order, mode, blanks: full, below };
                let below = self.frame(object);
                Some(Frame::Value { owes: child, blanks: full, below })
            }
            _ => None,
        };
        Ok(frame.map(|frame| Place { frame, record }))
    }

    /// What an object and its member owe after a colon.
    pub(crate) fn member(
        &mut self,
        owes: OwesId,
        gone: crate::machine::frame::GoneId,
    ) -> Result<Option<(OwesId, OwesId)>, Error> {
        if let Some(&known) = self.known.members.get(&(owes, gone)) {
            return Ok(known);
        }
        let owed = self.parts.owes.get(owes.0).clone();
        let names = self.parts.gone.get(gone.0).clone();
        let rest = Rest { of: Type::Object, gone: &names };
        // That the member can be read was found out at its name.
        let begun = self.core.begin_viable(owed, rest)?;
        let begun = (self.parts.owes(begun.container), self.parts.owes(begun.child));
        self.known.members.insert((owes, gone), Some(begun));
        Ok(Some(begun))
    }

    /// The place after a byte between the items of an array.
    pub(crate) fn read_array(
        &mut self,
        frame: Frame,
        byte: u8,
        record: Recorded,
        grown: Recorded,
    ) -> Result<Option<Place>, Error> {
        let Frame::Array { owes, mode, blanks, from, below } = frame else { return Ok(None) };
        let (gap, depth) = (Gap::behind(mode), self.depth(below) + 1);
        let (begun, ends) = (self.gap_begun(blanks), self.gap_ends(gap, depth, blanks));
        match (mode, byte) {
            (Mode::First, b']') if begun => Ok(None),
            (Mode::After, b']') if !ends => Ok(None),
            (Mode::First | Mode::After, b']') => match self.ended(owes) {
                Some(truths) => self.close(below, truths, grown),
                None => Ok(None),
            },
            (Mode::After, b',') if begun => Ok(None),
            (Mode::After, b',') => self.open_item(owes, below, grown, self.gap_start()),
            (Mode::First | Mode::After, byte) if is_blank(byte) => {
                let begins = self.core.options.layout.is_some() && blanks == 0;
                let Some(blanks) = self.blank(gap, depth, blanks, byte) else { return Ok(None) };
                let viable = match mode {
                    Mode::First if begins => self.item(owes)?.is_some(),
                    Mode::After if begins => self.ended(owes).is_some(),
                    _ => true,
                };
                let frame = Frame::Array { owes, mode, blanks, from, below };
                Ok(viable.then_some(Place { frame, record: grown }))
            }
            (Mode::First, _) if !ends => Ok(None),
            (Mode::First, byte) => {
                // The blanks before the first item were read in the array.
                match self.open_item(owes, below, record, self.gap_over())? {
                    Some(place) => self.read(place, byte),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// An array whose next item begins.
    fn open_item(
        &mut self,
        owes: OwesId,
        below: FrameId,
        record: Recorded,
        blanks: At,
    ) -> Result<Option<Place>, Error> {
        let Some((owes, child)) = self.item(owes)? else { return Ok(None) };
        let unique = self.is_unique(owes);
        let record = if unique && record == UNRECORDED { EMPTY_RECORD } else { record };
        let from = if unique { self.records.get(record).2 } else { 0 };
        let full = self.gap_start();
        let array = Frame::Array { owes, mode: Mode::Inside, blanks: full, from, below };
        let below = self.frame(array);
        Ok(Some(Place { frame: Frame::Value { owes: child, blanks, below }, record }))
    }

    /// What an array and its next item owe; `None` if no item may come.
    fn item(&mut self, owes: OwesId) -> Result<Option<(OwesId, OwesId)>, Error> {
        if let Some(&known) = self.known.items.get(&owes) {
            return Ok(known);
        }
        let owed = self.parts.owes.get(owes.0).clone();
        let owed = self.core.after_item(&owed)?;
        let rest = Rest { of: Type::Array, gone: &[] };
        let begun = match self.core.begin(owed, rest)? {
            Some(mut begun) => {
                if begun.child.asked.is_empty() && self.core.has_unique(&begun.container) {
                    self.keep_to_distinct(&begun.container, &mut begun.child)?;
                }
                Some((self.parts.owes(begun.container), self.parts.owes(begun.child)))
            }
            None => None,
        };
        self.known.items.insert(owes, begun);
        Ok(begun)
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
        let listed = self.core.list_values(must, FEW_VALUES, &taken)?;
        let Listed::All(values) = listed else { return Ok(()) };
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
