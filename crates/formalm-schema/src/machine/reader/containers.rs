//! Objects and arrays between their parts: brackets, commas, colons, and the end of a child.

use formalm_automata::{Error, Resource};

use crate::formula::{Formula, FormulaAtom, TRUE};
use crate::json::decimal::MAX_DIGITS;
use crate::json::interned_values::ValueId;
use crate::machine::frame::{
    ContainerState, Frame, FrameId, Obligation, ObligationId, ReaderPosition, VerdictsId,
};
use crate::machine::reader::value_start_and_strings::is_whitespace;
use crate::machine::reader::whitespace::{GapPosition, WhitespaceGap};
use crate::machine::residuals::child_start::ChildStart;
use crate::machine::{EMPTY_RECORD, LazyTables, NO_RECORD, RecordId};
use crate::schema_nodes::JsonType;
use crate::solver::{Enumeration, FEW_VALUES, RemainingContainer};

/// Maximum nesting of a unique item, in containers; `serde_json` reads no deeper value, so no
/// deeper one can be compared.
const MAX_COMPARABLE_DEPTH: u64 = 127;

impl LazyTables {
    /// Closes a value and reports its verdicts to the parent.
    pub(crate) fn close_value(
        &mut self,
        parent: FrameId,
        verdicts: VerdictsId,
        record: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let whitespace = self.gap_start();
        let mode = ContainerState::AfterValue;
        match *self.frames.get(parent.0) {
            Frame::Object { obligation, used_names, order, parent, .. } => {
                let obligation = self.after_plain_child(obligation, verdicts)?;
                let frame =
                    Frame::Object { obligation, used_names, order, mode, whitespace, parent };
                Ok(Some(ReaderPosition { frame, record }))
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
                Ok(Some(ReaderPosition { frame, record }))
            }
            _ => Ok(Some(ReaderPosition { frame: Frame::Done, record })),
        }
    }

    /// Returns the obligation of a container after a child whose value does not matter.
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

    /// Returns the obligation of a container after a child, given its value if items must be
    /// unique.
    fn after_child(
        &mut self,
        obligation: ObligationId,
        verdicts: VerdictsId,
        value: Option<ValueId>,
    ) -> Result<ObligationId, Error> {
        let before = self.parts.obligations.get(obligation.0).clone();
        let queries = self.core.formulas.queried_nodes(&before.formulas);
        let verdicts = self.parts.verdicts.get(verdicts.0).clone();
        let after = before.after_child(&mut self.core, (&queries, &verdicts), value)?;
        Ok(self.parts.obligation(after))
    }

    /// Returns the obligation of an array after a unique item, `None` if the remaining items can no
    /// longer be unique.
    fn after_unique_item(
        &mut self,
        obligation: ObligationId,
        verdicts: VerdictsId,
        record: RecordId,
        from: u32,
    ) -> Result<Option<ObligationId>, Error> {
        if record == NO_RECORD {
            // In a look-ahead, where the value itself does not matter.
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

    /// Returns `true` if some items complete the array.
    fn can_complete_array(&mut self, obligation: ObligationId) -> Result<bool, Error> {
        let required = self.parts.obligations.get(obligation.0).clone();
        let total = required.total(&mut self.core);
        self.core.has_array(total)
    }

    /// Returns `true` if an obligation depends on which items are equal.
    pub(crate) fn has_unique_items(&mut self, obligation: ObligationId) -> bool {
        if let Some(&known) = self.cache.has_unique_items.get(&obligation) {
            return known;
        }
        let unique =
            self.parts.obligations.get(obligation.0).requires_unique_items(&self.core.formulas);
        self.cache.has_unique_items.insert(obligation, unique);
        unique
    }

    /// Returns the recorded item as a value. Fails with a limit if it is nested too deeply, or has
    /// too long a number, to be compared.
    fn recorded_value(&mut self, record: RecordId, from: u32) -> Result<ValueId, Error> {
        let text = self.recorded(record, from);
        let limit = |resource, allowed| Error::Limit { resource, needed: allowed + 1, allowed };
        let json = serde_json::from_slice(&text)
            .map_err(|_| limit(Resource::Nesting, MAX_COMPARABLE_DEPTH))?;
        let schema = &mut self.core.schema;
        let value = schema.values.intern_json(&json, &mut schema.names);
        value.ok_or_else(|| limit(Resource::Digits, MAX_DIGITS as u64))
    }

    /// Fails if one more container would exceed the limit of nesting.
    pub(crate) fn check_nesting(&self, parent: FrameId) -> Result<(), Error> {
        let depth = u64::from(self.depth(parent)) + 1;
        let allowed = u64::from(self.core.limits.nesting);
        if depth > allowed {
            return Err(Error::Limit { resource: Resource::Nesting, needed: depth, allowed });
        }
        Ok(())
    }

    /// Returns `true` if a container may be opened here. The option `depth` limits nested values
    /// that the schema says nothing about; containers that the schema mentions are always allowed.
    pub(crate) fn may_nest(&self, obligation: ObligationId, parent: FrameId) -> bool {
        let most = self.core.options.max_free_depth;
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

    /// Returns the verdicts of a container that ends here, `None` if it cannot end.
    pub(crate) fn end_verdicts(&mut self, obligation: ObligationId) -> Option<VerdictsId> {
        if let Some(&known) = self.cache.end_verdicts.get(&obligation) {
            return known;
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let total = required.total(&mut self.core);
        let ended = required.formulas.iter().skip(1);
        let verdicts: Vec<bool> = ended.map(|&id| self.core.holds_at_end(id)).collect();
        let verdicts = self.core.holds_at_end(total).then(|| self.parts.verdicts(&verdicts));
        self.cache.end_verdicts.insert(obligation, verdicts);
        verdicts
    }

    /// Returns the position after a byte between the parts of an object.
    pub(crate) fn read_object(
        &mut self,
        frame: Frame,
        byte: u8,
        record: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let Frame::Object { obligation, used_names, order, mode, whitespace, parent } = frame
        else {
            return Ok(None);
        };
        let (full, depth) = (self.gap_start(), self.depth(parent) + 1);
        let gap = WhitespaceGap::after(mode);
        // Which names may come does not depend on the whitespace.
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
            // The first whitespace of a layout already decides what comes after it.
            let viable = match mode {
                ContainerState::AfterOpen if begins => self.any_name_viable(next)?,
                ContainerState::AfterValue if begins => self.end_verdicts(obligation).is_some(),
                _ => true,
            };
            let frame = Frame::Object { obligation, used_names, order, mode, whitespace, parent };
            return Ok(viable.then_some(ReaderPosition { frame, record }));
        }
        let (committed, ends) =
            (self.gap_committed(whitespace), self.gap_ends(gap, depth, whitespace));
        let frame = match (mode, byte) {
            (ContainerState::AfterOpen, b'}') if committed => None,
            (ContainerState::AfterValue, b'}') if !ends => None,
            (ContainerState::AfterOpen | ContainerState::AfterValue, b'}') => {
                match self.end_verdicts(obligation) {
                    Some(verdicts) => return self.close_value(parent, verdicts, record),
                    None => return Ok(None),
                }
            }
            (ContainerState::AfterValue, b',') if committed => None,
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
        Ok(frame.map(|frame| ReaderPosition { frame, record }))
    }

    /// Returns the obligations of an object and of the property value after a colon.
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
        let rest = RemainingContainer { json_type: JsonType::Object, used_names: &names };
        // The name was accepted only because this value can be read.
        let start = ChildStart::of_viable(required, &mut self.core, rest)?;
        let start = (self.parts.obligation(start.container), self.parts.obligation(start.child));
        self.cache.properties.insert((obligation, used_names), Some(start));
        Ok(Some(start))
    }

    /// Returns the position after a byte between the items of an array.
    pub(crate) fn read_array(
        &mut self,
        frame: Frame,
        byte: u8,
        record: RecordId,
        extended: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let Frame::Array { obligation, mode, whitespace, from, parent } = frame else {
            return Ok(None);
        };
        let (gap, depth) = (WhitespaceGap::after(mode), self.depth(parent) + 1);
        let (committed, ends) =
            (self.gap_committed(whitespace), self.gap_ends(gap, depth, whitespace));
        match (mode, byte) {
            (ContainerState::AfterOpen, b']') if committed => Ok(None),
            (ContainerState::AfterValue, b']') if !ends => Ok(None),
            (ContainerState::AfterOpen | ContainerState::AfterValue, b']') => {
                match self.end_verdicts(obligation) {
                    Some(verdicts) => self.close_value(parent, verdicts, extended),
                    None => Ok(None),
                }
            }
            (ContainerState::AfterValue, b',') if committed => Ok(None),
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
                Ok(viable.then_some(ReaderPosition { frame, record: extended }))
            }
            (ContainerState::AfterOpen, _) if !ends => Ok(None),
            (ContainerState::AfterOpen, byte) => {
                // The whitespace before the first item was read in the array.
                match self.open_item(obligation, parent, record, self.gap_over())? {
                    Some(position) => self.read(position, byte),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// Returns the position before the next item, `None` if no item may come.
    fn open_item(
        &mut self,
        obligation: ObligationId,
        parent: FrameId,
        record: RecordId,
        whitespace: GapPosition,
    ) -> Result<Option<ReaderPosition>, Error> {
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
        Ok(Some(ReaderPosition {
            frame: Frame::Value { obligation: child, whitespace, parent },
            record,
        }))
    }

    /// Returns the obligations of an array and of its next item, `None` if no item may come.
    fn start_item(
        &mut self,
        obligation: ObligationId,
    ) -> Result<Option<(ObligationId, ObligationId)>, Error> {
        if let Some(&known) = self.cache.items.get(&obligation) {
            return Ok(known);
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let required = required.after_item(&mut self.core)?;
        let rest = RemainingContainer { json_type: JsonType::Array, used_names: &[] };
        let start = match ChildStart::new(required, &mut self.core, rest)? {
            Some(mut start) => {
                if start.child.queries.is_empty()
                    && start.container.requires_unique_items(&self.core.formulas)
                {
                    self.restrict_to_completable(&start.container, &mut start.child)?;
                }
                Some((self.parts.obligation(start.container), self.parts.obligation(start.child)))
            }
            None => None,
        };
        self.cache.items.insert(obligation, start);
        Ok(start)
    }

    /// Restricts an item with few possible values to those that leave enough values for the
    /// remaining unique items.
    fn restrict_to_completable(
        &mut self,
        array: &Obligation,
        child: &mut Obligation,
    ) -> Result<(), Error> {
        let taken = self.core.formulas.conjuncts(array.formulas[0]).into_iter().find_map(|id| {
            match self.core.formulas.get(id) {
                Formula::Atom(FormulaAtom::UniqueWithCurrent(taken)) => Some(taken.to_vec()),
                _ => None,
            }
        });
        let Some(taken) = taken else { return Ok(()) };
        let must = child.formulas[0];
        let listed = self.core.enumerate_values(must, FEW_VALUES, &taken)?;
        let Enumeration::All(values) = listed else { return Ok(()) };
        let mut good = Vec::new();
        for value in values {
            let after = array.after_child(&mut self.core, (&[], &[]), Some(value))?;
            let total = after.total(&mut self.core);
            if self.core.has_array(total)? {
                good.push(value);
            }
        }
        good.sort_unstable();
        let node = self.core.schema.node_for_values(&good);
        child.formulas[0] = self.core.formulas.child(node);
        Ok(())
    }
}
