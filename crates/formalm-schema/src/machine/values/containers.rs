//! Objects and arrays: the start of an item, the end of a child and of the container.

use formalm_core::{Error, Resource, check_limit};

use crate::json::decimal::MAX_DIGITS;
use crate::json::interned_values::ValueId;
use crate::machine::frame::{
    ContainerState, FRESH, Frame, FrameId, Mark, ObligationId, ReaderPosition, VerdictsId,
};
use crate::machine::values::{AfterEvent, Values};
use crate::machine::{EMPTY_RECORD, NO_RECORD, RecordId};

/// Maximum nesting of a unique item, in containers; `serde_json` reads no deeper value, so no
/// deeper one can be compared.
const MAX_COMPARABLE_DEPTH: u64 = 127;

impl Values {
    /// Closes a value and reports its verdicts to the parent, which keeps its mark.
    pub(crate) fn close_value(
        &mut self,
        parent: FrameId,
        verdicts: VerdictsId,
        record: RecordId,
    ) -> Result<Option<ReaderPosition>, Error> {
        let mode = ContainerState::AfterValue;
        match self.frames.get(parent) {
            Frame::Object { obligation, used_names, order, mark, parent, .. } => {
                let obligation =
                    self.residuals.after_plain_child(&mut self.core, obligation, verdicts)?;
                let frame = Frame::Object { obligation, used_names, order, mode, mark, parent };
                Ok(Some(ReaderPosition { frame, record }))
            }
            Frame::Array { obligation, from, mark, parent, .. } => {
                let unique = self.has_unique_items(obligation);
                let after = if unique {
                    self.after_unique_item(obligation, verdicts, record, from)?
                } else {
                    Some(self.residuals.after_plain_child(&mut self.core, obligation, verdicts)?)
                };
                let Some(obligation) = after else { return Ok(None) };
                let record = if unique && from == 0 { NO_RECORD } else { record };
                let frame = Frame::Array { obligation, mode, mark, from: 0, parent };
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
        check_limit(Resource::Nesting, depth, allowed)
    }

    /// Returns `true` if a limit may depend on the depth of a frame, or of anything that further
    /// `bytes` bytes open in it.
    pub(crate) fn depth_is_limited(&self, frame: FrameId, bytes: usize) -> bool {
        let deepest = u64::from(self.frames.depth(frame)) + bytes as u64 + 2;
        self.core.options.max_free_depth != u32::MAX
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

    /// Ends an object or array.
    pub(crate) fn end_container(&mut self, at: ReaderPosition) -> AfterEvent {
        let (obligation, parent, bracket) = match at.frame {
            Frame::Object { obligation, parent, .. } => (obligation, parent, b"}"),
            Frame::Array { obligation, parent, .. } => (obligation, parent, b"]"),
            _ => return Ok(None),
        };
        let Some(verdicts) = self.end_verdicts(obligation) else { return Ok(None) };
        let record = self.records.write(at.record, bracket);
        self.close_value(parent, verdicts, record)
    }

    /// Returns `true` if another item may begin.
    pub(crate) fn may_start_item(&mut self, obligation: ObligationId) -> Result<bool, Error> {
        Ok(self.residuals.start_item(&mut self.core, obligation)?.is_some())
    }

    /// Begins an item. The array has `mark` after it.
    pub(crate) fn start_item(&mut self, at: ReaderPosition, mark: Mark) -> AfterEvent {
        let Frame::Array { obligation, mode, parent, .. } = at.frame else { return Ok(None) };
        let Some((obligation, child)) = self.residuals.start_item(&mut self.core, obligation)?
        else {
            return Ok(None);
        };
        let separator: &[u8] = if mode == ContainerState::AfterValue { b"," } else { b"" };
        let mut record = self.records.write(at.record, separator);
        let unique = self.has_unique_items(obligation);
        if unique && record == NO_RECORD {
            record = EMPTY_RECORD;
        }
        let from = if unique { self.records.length(record) } else { 0 };
        let mode = ContainerState::InValue;
        let parent = self.frames.intern(Frame::Array { obligation, mode, mark, from, parent });
        Ok(Some(ReaderPosition {
            frame: Frame::Value { obligation: child, mark: FRESH, parent },
            record,
        }))
    }
}
