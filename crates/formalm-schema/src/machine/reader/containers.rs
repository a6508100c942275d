//! Objects and arrays between their parts.

use formalm_automata::{Error, Resource};

use crate::decimal::MAX_DIGITS;
use crate::formula::{Atom, Form, TRUE};
use crate::machine::frame::{
    ContainerState, Frame, FrameId, ObligationId, Owes, Position, VerdictsId,
};
use crate::machine::reader::value_start_and_strings::is_whitespace;
use crate::machine::reader::whitespace::{GapPosition, WhitespaceGap};
use crate::machine::{EMPTY_RECORD, LazyTables, NO_RECORD, RecordId};
use crate::node::Type;
use crate::solve::{FEW_VALUES, Listed, Rest};
use crate::value::ValueId;

/// Containers in an item that must be distinct, as the reader of JSON has it.
const MAX_COMPARABLE_DEPTH: u64 = 127;

impl LazyTables {
    /// Closes a value: the frame below learns the truths it asked for.
    pub(crate) fn close_value(
        &mut self,
        parent: FrameId,
        verdicts: VerdictsId,
        record: RecordId,
    ) -> Result<Option<Position>, Error> {
        let whitespace = self.gap_start();
        let mode = ContainerState::AfterValue;
        match *self.frames.get(parent.0) {
            Frame::Object { obligation, used_names, order, parent, .. } => {
                let obligation = self.after_plain_child(obligation, verdicts)?;
                let frame =
                    Frame::Object { obligation, used_names, order, mode, whitespace, parent };
                Ok(Some(Position { frame, record }))
            }
            Frame::Array { obligation, from, parent, .. } => {
                let unique = self.has_unique_items(obligation);
                let after = if unique {
                    self.after_unique_item(obligation, verdicts, record, from)?
                } else {
                    Some(self.after_plain_child(obligation, verdicts)?)
                };
                let Some(obligation) = after else { return Ok(None) };
                let record = if unique && from == 0 { NO_RECORD } else { record };
                let frame = Frame::Array { obligation, mode, whitespace, from: 0, parent };
                Ok(Some(Position { frame, record }))
            }
            _ => Ok(Some(Position { frame: Frame::Done, record })),
        }
    }

    /// What a container owes once a child has closed whose value does not matter.
    fn after_plain_child(
        &mut self,
        obligation: ObligationId,
        verdicts: VerdictsId,
    ) -> Result<ObligationId, Error> {
        if let Some(&known) = self.cache.after_plain_child.get(&(obligation, verdicts)) {
            return Ok(known);
        }
        let after = self.after_child(obligation, verdicts, None)?;
        self.cache.after_plain_child.insert((obligation, verdicts), after);
        Ok(after)
    }

    fn after_child(
        &mut self,
        obligation: ObligationId,
        verdicts: VerdictsId,
        value: Option<ValueId>,
    ) -> Result<ObligationId, Error> {
        let before = self.parts.obligations.get(obligation.0).clone();
        let queries = self.core.formulas.asked(&before.formulas);
        let verdicts = self.parts.verdicts.get(verdicts.0).clone();
        let after = self.core.after_child(&before, &queries, &verdicts, value)?;
        Ok(self.parts.obligation(after))
    }

    /// The same where items must be distinct; `None` if the others cannot be any more.
    fn after_unique_item(
        &mut self,
        obligation: ObligationId,
        verdicts: VerdictsId,
        record: RecordId,
        from: u32,
    ) -> Result<Option<ObligationId>, Error> {
        if record == NO_RECORD {
            // Looking ahead, where which value it was does not matter.
            let after = self.after_plain_child(obligation, verdicts)?;
            if let Some(&known) = self.cache.completable.get(&after) {
                return Ok(known.then_some(after));
            }
            let can_complete_array = self.can_complete_array(after)?;
            self.cache.completable.insert(after, can_complete_array);
            return Ok(can_complete_array.then_some(after));
        }
        let value = self.recorded_value(record, from)?;
        let after = self.after_child(obligation, verdicts, Some(value))?;
        Ok(self.can_complete_array(after)?.then_some(after))
    }

    /// Whether some items complete an array.
    fn can_complete_array(&mut self, obligation: ObligationId) -> Result<bool, Error> {
        let required = self.parts.obligations.get(obligation.0).clone();
        let total = self.core.total(&required);
        self.core.some_array(total)
    }

    pub(crate) fn has_unique_items(&mut self, obligation: ObligationId) -> bool {
        if let Some(&known) = self.cache.has_unique_items.get(&obligation) {
            return known;
        }
        let unique = self.core.has_unique(self.parts.obligations.get(obligation.0));
        self.cache.has_unique_items.insert(obligation, unique);
        unique
    }

    /// An item that was read, which is JSON; it is too deep or has too long a number to be compared
    /// with others where it has no value.
    fn recorded_value(&mut self, record: RecordId, from: u32) -> Result<ValueId, Error> {
        let text = self.recorded(record, from);
        let limit = |resource, allowed| Error::Limit { resource, needed: allowed + 1, allowed };
        let json = serde_json::from_slice(&text)
            .map_err(|_| limit(Resource::Nesting, MAX_COMPARABLE_DEPTH))?;
        let schema = &mut self.core.schema;
        let value = schema.values.read(&json, &mut schema.names);
        value.ok_or_else(|| limit(Resource::Digits, MAX_DIGITS as u64))
    }

    pub(crate) fn check_nesting(&self, parent: FrameId) -> Result<(), Error> {
        let depth = u64::from(self.depth(parent)) + 1;
        let allowed = u64::from(self.core.limits.nesting);
        if depth > allowed {
            return Err(Error::Limit { resource: Resource::Nesting, needed: depth, allowed });
        }
        Ok(())
    }

    /// Whether a container may be opened: where nothing is said of values, so many may be nested.
    /// Containers that a schema asks for may always be.
    pub(crate) fn may_nest(&self, obligation: ObligationId, parent: FrameId) -> bool {
        let most = self.core.options.depth;
        let is_open = |obligation: ObligationId| {
            let obligation = self.parts.obligations.get(obligation.0);
            obligation.formulas.iter().all(|&one| one == TRUE) && obligation.goal == TRUE
        };
        if most == u32::MAX || !is_open(obligation) {
            return true;
        }
        let (mut depth, mut at) = (0, parent);
        while depth < most {
            at = match *self.frames.get(at.0) {
                Frame::Object { obligation, parent, .. }
                | Frame::Array { obligation, parent, .. }
                    if is_open(obligation) =>
                {
                    parent
                }
                _ => return true,
            };
            depth += 1;
        }
        false
    }

    /// The truths of a container that ends here; `None` if it cannot.
    pub(crate) fn end_verdicts(&mut self, obligation: ObligationId) -> Option<VerdictsId> {
        if let Some(&known) = self.cache.end_verdicts.get(&obligation) {
            return known;
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let total = self.core.total(&required);
        let ended = required.formulas.iter().skip(1);
        let verdicts: Vec<bool> = ended.map(|&id| self.core.holds_at_end(id)).collect();
        let verdicts = self.core.holds_at_end(total).then(|| self.parts.verdicts(&verdicts));
        self.cache.end_verdicts.insert(obligation, verdicts);
        verdicts
    }

    /// The place after a byte between the parts of an object.
    pub(crate) fn read_object(
        &mut self,
        frame: Frame,
        byte: u8,
        record: RecordId,
    ) -> Result<Option<Position>, Error> {
        let Frame::Object { obligation, used_names, order, mode, whitespace, parent } = frame
        else {
            return Ok(None);
        };
        let (full, depth) = (self.gap_start(), self.depth(parent) + 1);
        let gap = WhitespaceGap::after(mode);
        // Names do not depend on where the blanks are.
        let next = Frame::Object {
            obligation,
            used_names,
            order,
            mode: ContainerState::AfterComma,
            whitespace: full,
            parent,
        };
        if is_whitespace(byte) {
            let begins = self.core.options.layout.is_some() && whitespace == 0;
            let Some(whitespace) = self.after_whitespace(gap, depth, whitespace, byte) else {
                return Ok(None);
            };
            // The first blank of a layout says what will stand behind it.
            let viable = match mode {
                ContainerState::AfterOpen if begins => self.any_name_viable(next)?,
                ContainerState::AfterValue if begins => self.end_verdicts(obligation).is_some(),
                _ => true,
            };
            let frame = Frame::Object { obligation, used_names, order, mode, whitespace, parent };
            return Ok(viable.then_some(Position { frame, record }));
        }
        let (begun, ends) = (self.gap_begun(whitespace), self.gap_ends(gap, depth, whitespace));
        let frame = match (mode, byte) {
            (ContainerState::AfterOpen, b'}') if begun => None,
            (ContainerState::AfterValue, b'}') if !ends => None,
            (ContainerState::AfterOpen | ContainerState::AfterValue, b'}') => {
                match self.end_verdicts(obligation) {
                    Some(verdicts) => return self.close_value(parent, verdicts, record),
                    None => return Ok(None),
                }
            }
            (ContainerState::AfterValue, b',') if begun => None,
            (ContainerState::AfterValue, b',') => self.any_name_viable(next)?.then_some(next),
            _ if !ends => None,
            (ContainerState::AfterOpen | ContainerState::AfterComma, b'"') => {
                self.open_name(next)?
            }
            (ContainerState::AfterName, b':') => {
                let Some((obligation, child)) = self.start_property(obligation, used_names)? else {
                    return Ok(None);
                };
                let mode = ContainerState::InValue;
                let object =
                    Frame::Object { obligation, used_names, order, mode, whitespace: full, parent };
                let parent = self.frame(object);
                Some(Frame::Value { obligation: child, whitespace: full, parent })
            }
            _ => None,
        };
        Ok(frame.map(|frame| Position { frame, record }))
    }

    /// What an object and its member owe after a colon.
    pub(crate) fn start_property(
        &mut self,
        obligation: ObligationId,
        used_names: crate::machine::frame::UsedNamesId,
    ) -> Result<Option<(ObligationId, ObligationId)>, Error> {
        if let Some(&known) = self.cache.properties.get(&(obligation, used_names)) {
            return Ok(known);
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let names = self.parts.used_names.get(used_names.0).clone();
        let rest = Rest { of: Type::Object, gone: &names };
        // That the member can be read was found out at its name.
        let begun = self.core.split_viable_child(required, rest)?;
        let begun = (self.parts.obligation(begun.container), self.parts.obligation(begun.child));
        self.cache.properties.insert((obligation, used_names), Some(begun));
        Ok(Some(begun))
    }

    /// The place after a byte between the items of an array.
    pub(crate) fn read_array(
        &mut self,
        frame: Frame,
        byte: u8,
        record: RecordId,
        extended: RecordId,
    ) -> Result<Option<Position>, Error> {
        let Frame::Array { obligation, mode, whitespace, from, parent } = frame else {
            return Ok(None);
        };
        let (gap, depth) = (WhitespaceGap::after(mode), self.depth(parent) + 1);
        let (begun, ends) = (self.gap_begun(whitespace), self.gap_ends(gap, depth, whitespace));
        match (mode, byte) {
            (ContainerState::AfterOpen, b']') if begun => Ok(None),
            (ContainerState::AfterValue, b']') if !ends => Ok(None),
            (ContainerState::AfterOpen | ContainerState::AfterValue, b']') => {
                match self.end_verdicts(obligation) {
                    Some(verdicts) => self.close_value(parent, verdicts, extended),
                    None => Ok(None),
                }
            }
            (ContainerState::AfterValue, b',') if begun => Ok(None),
            (ContainerState::AfterValue, b',') => {
                self.open_item(obligation, parent, extended, self.gap_start())
            }
            (ContainerState::AfterOpen | ContainerState::AfterValue, byte)
                if is_whitespace(byte) =>
            {
                let begins = self.core.options.layout.is_some() && whitespace == 0;
                let Some(whitespace) = self.after_whitespace(gap, depth, whitespace, byte) else {
                    return Ok(None);
                };
                let viable = match mode {
                    ContainerState::AfterOpen if begins => self.start_item(obligation)?.is_some(),
                    ContainerState::AfterValue if begins => self.end_verdicts(obligation).is_some(),
                    _ => true,
                };
                let frame = Frame::Array { obligation, mode, whitespace, from, parent };
                Ok(viable.then_some(Position { frame, record: extended }))
            }
            (ContainerState::AfterOpen, _) if !ends => Ok(None),
            (ContainerState::AfterOpen, byte) => {
                // The blanks before the first item were read in the array.
                match self.open_item(obligation, parent, record, self.gap_over())? {
                    Some(position) => self.read(position, byte),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// An array whose next item begins.
    fn open_item(
        &mut self,
        obligation: ObligationId,
        parent: FrameId,
        record: RecordId,
        whitespace: GapPosition,
    ) -> Result<Option<Position>, Error> {
        let Some((obligation, child)) = self.start_item(obligation)? else { return Ok(None) };
        let unique = self.has_unique_items(obligation);
        let record = if unique && record == NO_RECORD { EMPTY_RECORD } else { record };
        let from = if unique { self.records.get(record).2 } else { 0 };
        let full = self.gap_start();
        let array = Frame::Array {
            obligation,
            mode: ContainerState::InValue,
            whitespace: full,
            from,
            parent,
        };
        let parent = self.frame(array);
        Ok(Some(Position { frame: Frame::Value { obligation: child, whitespace, parent }, record }))
    }

    /// What an array and its next item owe; `None` if no item may come.
    fn start_item(
        &mut self,
        obligation: ObligationId,
    ) -> Result<Option<(ObligationId, ObligationId)>, Error> {
        if let Some(&known) = self.cache.items.get(&obligation) {
            return Ok(known);
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let required = self.core.after_item(&required)?;
        let rest = Rest { of: Type::Array, gone: &[] };
        let begun = match self.core.split_child(required, rest)? {
            Some(mut begun) => {
                if begun.child.asked.is_empty() && self.core.has_unique(&begun.container) {
                    self.restrict_to_completable(&begun.container, &mut begun.child)?;
                }
                Some((self.parts.obligation(begun.container), self.parts.obligation(begun.child)))
            }
            None => None,
        };
        self.cache.items.insert(obligation, begun);
        Ok(begun)
    }

    /// Where an item has few values, keeps to those after which the others can still be distinct.
    fn restrict_to_completable(&mut self, array: &Owes, child: &mut Owes) -> Result<(), Error> {
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
