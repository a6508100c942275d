//! Whitespace between the parts of a JSON text: up to a maximum in each gap, or exactly that of a
//! layout.

use crate::machine::LazyTables;
use crate::machine::frame::{ContainerState, Frame, FrameId};
use crate::machine::reader::value_start_and_strings::is_whitespace;

/// The position in a gap: the whitespace that may still come or, with a layout, the number of bytes
/// read.
pub(crate) type GapPosition = u16;

/// The position after the gap of a layout.
const GAP_OVER: GapPosition = GapPosition::MAX;

/// A gap in which whitespace may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhitespaceGap {
    /// Between an opening bracket and the first part.
    First,
    /// After a comma.
    Next,
    /// After the last part, before the closing bracket.
    Close,
    BeforeColon,
    AfterColon,
}

impl WhitespaceGap {
    /// Returns the gap that an object or array is in.
    pub(crate) fn after(mode: ContainerState) -> WhitespaceGap {
        match mode {
            ContainerState::AfterOpen => WhitespaceGap::First,
            ContainerState::AfterComma => WhitespaceGap::Next,
            ContainerState::AfterName => WhitespaceGap::BeforeColon,
            ContainerState::InValue | ContainerState::AfterValue => WhitespaceGap::Close,
        }
    }
}

impl LazyTables {
    /// Returns the position at the start of every gap.
    pub(crate) fn gap_start(&self) -> GapPosition {
        if self.core.options.layout.is_some() { 0 } else { self.core.options.max_whitespace.into() }
    }

    /// Returns the position at which no more whitespace may come.
    pub(crate) fn gap_over(&self) -> GapPosition {
        if self.core.options.layout.is_some() { GAP_OVER } else { 0 }
    }

    /// Returns `true` if whitespace of a layout was read, so that the gap is committed to the part
    /// after it.
    pub(crate) fn gap_committed(&self, at: GapPosition) -> bool {
        at > 0 && self.core.options.layout.is_some()
    }

    /// Returns the number of open objects and arrays up to a frame.
    pub(crate) fn depth(&self, frame: FrameId) -> u32 {
        self.depths[frame.0 as usize]
    }

    /// Computes the depth of a new frame.
    pub(crate) fn depth_of(&self, frame: &Frame) -> u32 {
        match *frame {
            Frame::Object { parent, .. } | Frame::Array { parent, .. } => self.depth(parent) + 1,
            _ => 0,
        }
    }

    /// Returns the next byte of a layout in a gap, `None` if the gap is over or there is no layout.
    /// `depth` is the number of open containers.
    pub(crate) fn gap_byte(&self, gap: WhitespaceGap, depth: u32, at: GapPosition) -> Option<u8> {
        let layout = self.core.options.layout.as_ref().filter(|_| at != GAP_OVER)?;
        let mut at = usize::from(at);
        let (whitespace, levels) = match gap {
            WhitespaceGap::First => (&[][..], Some(depth)),
            WhitespaceGap::Next => (layout.after_comma.bytes(), Some(depth)),
            WhitespaceGap::Close => (&[][..], Some(depth.saturating_sub(1))),
            WhitespaceGap::BeforeColon => (layout.before_colon.bytes(), None),
            WhitespaceGap::AfterColon => (layout.after_colon.bytes(), None),
        };
        if let Some(&byte) = whitespace.get(at) {
            return Some(byte);
        }
        at -= whitespace.len();
        let (indent, levels) = (layout.indent?, levels?);
        match at.checked_sub(1) {
            None => Some(b'\n'),
            Some(at) => {
                let indent = indent.bytes();
                (at < indent.len() * levels as usize).then(|| indent[at % indent.len()])
            }
        }
    }

    /// Returns the length of a layout's gap, in bytes; 0 without a layout.
    pub(crate) fn gap_length(&self, gap: WhitespaceGap, depth: u32) -> usize {
        let Some(layout) = &self.core.options.layout else { return 0 };
        let line = |levels: u32| {
            layout.indent.map_or(0, |indent| 1 + indent.bytes().len() * levels as usize)
        };
        match gap {
            WhitespaceGap::First => line(depth),
            WhitespaceGap::Next => layout.after_comma.bytes().len() + line(depth),
            WhitespaceGap::Close => line(depth.saturating_sub(1)),
            WhitespaceGap::BeforeColon => layout.before_colon.bytes().len(),
            WhitespaceGap::AfterColon => layout.after_colon.bytes().len(),
        }
    }

    /// Returns the position in a gap after a byte of whitespace, `None` if it is not allowed there.
    pub(crate) fn after_whitespace(
        &self,
        gap: WhitespaceGap,
        depth: u32,
        at: GapPosition,
        byte: u8,
    ) -> Option<GapPosition> {
        match self.core.options.layout {
            None => at.checked_sub(1).filter(|_| is_whitespace(byte)),
            Some(_) => (self.gap_byte(gap, depth, at) == Some(byte)).then(|| at + 1),
        }
    }

    /// Returns `true` if the part after the gap may begin.
    pub(crate) fn gap_ends(&self, gap: WhitespaceGap, depth: u32, at: GapPosition) -> bool {
        self.gap_byte(gap, depth, at).is_none()
    }

    /// Returns the gap before a value, and its depth.
    pub(crate) fn gap_of_value(&self, parent: FrameId) -> (WhitespaceGap, u32) {
        match self.frames.get(parent.0) {
            Frame::Array { .. } => (WhitespaceGap::Next, self.depth(parent)),
            _ => (WhitespaceGap::AfterColon, self.depth(parent)),
        }
    }
}
