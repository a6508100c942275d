//! Objects and arrays between their parts: brackets, commas, colons, and the end of a child.

use formalm_core::{Error, Resource};

use crate::json::decimal::MAX_DIGITS;
use crate::json::interned_values::ValueId;
use crate::machine::frame::{
    ContainerState, Frame, FrameId, ObligationId, ReaderPosition, VerdictsId,
};
use crate::machine::reader::Reader;
use crate::machine::reader::whitespace::{GapPosition, WhitespaceGap, is_whitespace};
use crate::machine::{EMPTY_RECORD, NO_RECORD, RecordId};

/// Maximum nesting of a unique item, in containers; `serde_json` reads no deeper value, so no
/// deeper one can be compared.
const MAX_COMPARABLE_DEPTH: u64 = 127;

impl Reader {
    /// Closes a value and reports its verdicts to the parent.
    pub(crate) fn close_value(
        &mut self,
        parent: FrameId,
        verdicts: VerdictsId,
        record: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let whitespace = self.gaps.start();
        let mode = ContainerState::AfterValue;
        match self.frames.get(parent) {
            Frame::Object { obligation, used_names, order, parent, .. } => {
                let obligation =
                    self.residuals.after_plain_child(&mut self.core, obligation, verdicts)?;
                let frame =
                    Frame::Object { obligation, used_names, order, mode, whitespace, parent };
                Ok(Some(ReaderPosition { frame, record }))
            }
            Frame::Array { obligation, from, parent, .. } => {
                let unique = self.has_unique_items(obligation);
                let after = if unique {
                    self.after_unique_item(obligation, verdicts, record, from)?
                } else {
                    Some(self.residuals.after_plain_child(&mut self.core, obligation, verdicts)?)
                };
                let Some(obligation) = after else { return Ok(None) };
                let record = if unique && from == 0 { NO_RECORD } else { record };
                let frame = Frame::Array { obligation, mode, whitespace, from: 0, parent };
                Ok(Some(ReaderPosition { frame, record }))
            }
            _ => Ok(Some(ReaderPosition { frame: Frame::Done, record })),
        }
    }

    /// Returns the obligation of an array after a unique item, `None` if the remaining items can no
    /// longer be unique. In a look-ahead nothing is recorded, and the value itself does not matter.
    fn after_unique_item(
        &mut self,
        obligation: ObligationId,
        verdicts: VerdictsId,
        record: RecordId,
        from: u32,
    ) -> Result<Option<ObligationId>, Error> {
        if record == NO_RECORD {
            return self.residuals.after_unrecorded_item(&mut self.core, obligation, verdicts);
        }
        let value = self.recorded_value(record, from)?;
        self.residuals.after_unique_item(&mut self.core, obligation, verdicts, value)
    }

    /// Returns `true` if an obligation depends on which items are equal.
    pub(crate) fn has_unique_items(&mut self, obligation: ObligationId) -> bool {
        self.residuals.has_unique_items(&self.core, obligation)
    }

    /// Returns the verdicts of a container that ends here, `None` if it cannot end.
    pub(crate) fn end_verdicts(&mut self, obligation: ObligationId) -> Option<VerdictsId> {
        self.residuals.end_verdicts(&mut self.core, obligation)
    }

    /// Returns the recorded item as a value. Fails with a limit if it is nested too deeply, or has
    /// too long a number, to be compared.
    fn recorded_value(&mut self, record: RecordId, from: u32) -> Result<ValueId, Error> {
        let text = self.records.bytes_from(record, from);
        let limit = |resource, allowed| Error::Limit { resource, needed: allowed + 1, allowed };
        let json = serde_json::from_slice(&text)
            .map_err(|_| limit(Resource::Nesting, MAX_COMPARABLE_DEPTH))?;
        let schema = &mut self.core.base.schema;
        let value = schema.values.intern_json(&json, &mut schema.names);
        value.ok_or_else(|| limit(Resource::Digits, MAX_DIGITS as u64))
    }

    /// Fails if one more container would exceed the limit of nesting.
    pub(crate) fn check_nesting(&self, parent: FrameId) -> Result<(), Error> {
        let depth = u64::from(self.frames.depth(parent)) + 1;
        let allowed = u64::from(self.core.base.limits.nesting);
        if depth > allowed {
            return Err(Error::Limit { resource: Resource::Nesting, needed: depth, allowed });
        }
        Ok(())
    }

    /// Returns `true` if the depth of a frame, or of anything that further `bytes` bytes open in it,
    /// matters.
    pub(crate) fn depth_matters(&self, frame: FrameId, bytes: usize) -> bool {
        let deepest = u64::from(self.frames.depth(frame)) + bytes as u64 + 2;
        self.gaps.has_layout()
            || self.core.options.max_free_depth != u32::MAX
            || deepest > u64::from(self.core.base.limits.nesting)
    }

    /// Returns `true` if a container may be opened here. The option `depth` limits nested values
    /// that the schema says nothing about; containers that the schema mentions are always allowed.
    pub(crate) fn may_nest(&self, obligation: ObligationId, parent: FrameId) -> bool {
        let most = self.core.options.max_free_depth;
        let is_open = |obligation: ObligationId| self.residuals.is_unconstrained(obligation);
        if most == u32::MAX || !is_open(obligation) {
            return true;
        }
        let (mut depth, mut at) = (0, parent);
        while depth < most {
            at = match self.frames.get(at) {
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
        let (full, depth) = (self.gaps.start(), self.frames.depth(parent) + 1);
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
            let begins = self.gaps.has_layout() && whitespace == 0;
            let Some(whitespace) = self.gaps.after(gap, depth, whitespace, byte) else {
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
            (self.gaps.is_committed(whitespace), self.gaps.ends(gap, depth, whitespace));
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
                let Some((obligation, child)) =
                    self.names().start_property(obligation, used_names)?
                else {
                    return Ok(None);
                };
                let mode = ContainerState::InValue;
                let object =
                    Frame::Object { obligation, used_names, order, mode, whitespace: full, parent };
                let parent = self.frames.intern(object);
                Some(Frame::Value { obligation: child, whitespace: full, parent })
            }
            _ => None,
        };
        Ok(frame.map(|frame| ReaderPosition { frame, record }))
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
        let (gap, depth) = (WhitespaceGap::after(mode), self.frames.depth(parent) + 1);
        let (committed, ends) =
            (self.gaps.is_committed(whitespace), self.gaps.ends(gap, depth, whitespace));
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
                self.open_item(obligation, parent, extended, self.gaps.start())
            }
            (ContainerState::AfterOpen | ContainerState::AfterValue, byte)
                if is_whitespace(byte) =>
            {
                let begins = self.gaps.has_layout() && whitespace == 0;
                let Some(whitespace) = self.gaps.after(gap, depth, whitespace, byte) else {
                    return Ok(None);
                };
                let viable = match mode {
                    ContainerState::AfterOpen if begins => {
                        self.residuals.start_item(&mut self.core, obligation)?.is_some()
                    }
                    ContainerState::AfterValue if begins => self.end_verdicts(obligation).is_some(),
                    _ => true,
                };
                let frame = Frame::Array { obligation, mode, whitespace, from, parent };
                Ok(viable.then_some(ReaderPosition { frame, record: extended }))
            }
            (ContainerState::AfterOpen, _) if !ends => Ok(None),
            (ContainerState::AfterOpen, byte) => {
                // The whitespace before the first item was read in the array.
                match self.open_item(obligation, parent, record, self.gaps.over())? {
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
        let Some((obligation, child)) = self.residuals.start_item(&mut self.core, obligation)?
        else {
            return Ok(None);
        };
        let unique = self.has_unique_items(obligation);
        let record = if unique && record == NO_RECORD { EMPTY_RECORD } else { record };
        let from = if unique { self.records.length(record) } else { 0 };
        let full = self.gaps.start();
        let array = Frame::Array {
            obligation,
            mode: ContainerState::InValue,
            whitespace: full,
            from,
            parent,
        };
        let parent = self.frames.intern(array);
        Ok(Some(ReaderPosition {
            frame: Frame::Value { obligation: child, whitespace, parent },
            record,
        }))
    }
}
