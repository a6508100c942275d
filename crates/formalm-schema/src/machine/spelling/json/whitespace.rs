//! Whitespace between the parts of a JSON text: up to a maximum in each gap, or exactly that of a
//! layout.

use crate::machine::frame::{ContainerState, Frame, FrameId, Mark};
use crate::machine::frame_table::FrameTable;
use crate::options::{JsonSchemaOptions, WhitespaceLayout};

/// The position in a gap: the number of bytes read.
pub(crate) type GapPosition = Mark;

/// The position after the gap of a layout.
const GAP_OVER: GapPosition = GapPosition::MAX;

/// Returns `true` if `byte` is JSON whitespace.
pub(crate) fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

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

    /// Returns the gap before a value, and its depth.
    pub(crate) fn before_value(frames: &FrameTable, parent: FrameId) -> (WhitespaceGap, u32) {
        match frames.get(parent) {
            Frame::Array { .. } => (WhitespaceGap::Next, frames.depth(parent)),
            _ => (WhitespaceGap::AfterColon, frames.depth(parent)),
        }
    }
}

/// The whitespace that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextWhitespace {
    None,
    Any,
    /// This byte of a layout, before anything else.
    Only(u8),
}

/// The whitespace that the options allow or prescribe in gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct GapRules {
    layout: Option<WhitespaceLayout>,
    max_whitespace: u8,
}

impl GapRules {
    pub(crate) fn new(options: &JsonSchemaOptions) -> GapRules {
        let &JsonSchemaOptions { layout, max_whitespace, .. } = options;
        GapRules { layout, max_whitespace }
    }

    /// Returns `true` if the whitespace of a layout is prescribed.
    pub(crate) fn has_layout(&self) -> bool {
        self.layout.is_some()
    }

    /// Returns `true` if the whitespace depends on the depth.
    pub(crate) fn has_indent(&self) -> bool {
        self.layout.is_some_and(|layout| layout.indent.is_some())
    }

    /// Returns the position at which no more whitespace may come.
    pub(crate) fn over(&self) -> GapPosition {
        if self.layout.is_some() { GAP_OVER } else { self.max_whitespace.into() }
    }

    /// Returns `true` if whitespace of a layout was read, so that the gap is committed to the part
    /// after it.
    pub(crate) fn is_committed(&self, at: GapPosition) -> bool {
        at > 0 && self.layout.is_some()
    }

    /// Returns the next byte of a layout in a gap, `None` if the gap is over or there is no layout.
    /// `depth` is the number of open containers.
    pub(crate) fn byte(&self, gap: WhitespaceGap, depth: u32, at: GapPosition) -> Option<u8> {
        let layout = self.layout.as_ref().filter(|_| at != GAP_OVER)?;
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

    /// Returns the whitespace that may come next in a gap.
    pub(crate) fn next_whitespace(
        &self,
        gap: WhitespaceGap,
        depth: u32,
        at: GapPosition,
    ) -> NextWhitespace {
        match self.layout {
            None => self.any_whitespace(),
            Some(_) => self.byte(gap, depth, at).map_or(NextWhitespace::None, NextWhitespace::Only),
        }
    }

    /// Returns the whitespace that may come next where nothing more is known.
    pub(crate) fn any_whitespace(&self) -> NextWhitespace {
        let some = match &self.layout {
            None => self.max_whitespace > 0,
            Some(layout) => layout.indent.is_some(),
        };
        if some { NextWhitespace::Any } else { NextWhitespace::None }
    }

    /// Returns the length of a layout's gap, in bytes; 0 without a layout.
    pub(crate) fn length(&self, gap: WhitespaceGap, depth: u32) -> usize {
        let Some(layout) = &self.layout else { return 0 };
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
    pub(crate) fn after(
        &self,
        gap: WhitespaceGap,
        depth: u32,
        at: GapPosition,
        byte: u8,
    ) -> Option<GapPosition> {
        match self.layout {
            None => (at < self.max_whitespace.into() && is_whitespace(byte)).then(|| at + 1),
            Some(_) => (self.byte(gap, depth, at) == Some(byte)).then(|| at + 1),
        }
    }

    /// Returns `true` if some whitespace may fill a gap. It may be wrong about indentation, which
    /// depends on the depth.
    pub(crate) fn may_fill(&self, gap: WhitespaceGap, whitespace: &[u8]) -> bool {
        let Some(layout) = &self.layout else {
            return whitespace.len() <= self.max_whitespace.into();
        };
        match gap {
            WhitespaceGap::BeforeColon => whitespace == layout.before_colon.bytes(),
            WhitespaceGap::AfterColon => whitespace == layout.after_colon.bytes(),
            _ if layout.indent.is_some() => true,
            WhitespaceGap::Next => whitespace == layout.after_comma.bytes(),
            WhitespaceGap::First | WhitespaceGap::Close => whitespace.is_empty(),
        }
    }

    /// Returns `true` if the part after the gap may begin.
    pub(crate) fn ends(&self, gap: WhitespaceGap, depth: u32, at: GapPosition) -> bool {
        self.byte(gap, depth, at).is_none()
    }

    /// Returns the least number of bytes of a comma and the layout's whitespace after it, at any
    /// depth.
    pub(crate) fn comma_bytes(&self) -> usize {
        1 + self.length(WhitespaceGap::Next, 1)
    }

    /// Returns the number of bytes of a colon and the layout's whitespace around it.
    pub(crate) fn colon_bytes(&self) -> usize {
        1 + self.length(WhitespaceGap::BeforeColon, 1) + self.length(WhitespaceGap::AfterColon, 1)
    }
}
