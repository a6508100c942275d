//! Blanks between the parts of a text: so many at most in each gap, or exactly those of a layout.

use crate::machine::Grown;
use crate::machine::frame::{Frame, FrameId, Mode};
use crate::machine::reader::value_start_and_strings::is_blank;

/// Where in a gap a text is: the blanks that may still come or, with a layout, those that came.
pub(crate) type At = u16;

/// Behind the gap of a layout.
const OVER: At = At::MAX;

/// A place where blanks may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Between an opening bracket and the first part.
    First,
    /// Behind a comma.
    Next,
    /// Before the closing bracket behind the last part.
    Close,
    BeforeColon,
    AfterColon,
}

impl Gap {
    /// The gap that an object or array is in.
    pub(crate) fn behind(mode: Mode) -> Gap {
        match mode {
            Mode::First => Gap::First,
            Mode::Next => Gap::Next,
            Mode::Colon => Gap::BeforeColon,
            Mode::Inside | Mode::After => Gap::Close,
        }
    }
}

impl Grown {
    /// At the first byte of every gap.
    pub(crate) fn gap_start(&self) -> At {
        if self.core.options.layout.is_some() { 0 } else { self.core.options.blanks.into() }
    }

    /// Where no blanks come any more.
    pub(crate) fn gap_over(&self) -> At {
        if self.core.options.layout.is_some() { OVER } else { 0 }
    }

    /// Whether blanks of a layout were read already, so that nothing else may come than the part
    /// that stands behind them.
    pub(crate) fn gap_begun(&self, at: At) -> bool {
        at > 0 && self.core.options.layout.is_some()
    }

    /// Objects and arrays that are open, up to a frame.
    pub(crate) fn depth(&self, frame: FrameId) -> u32 {
        self.depths[frame.0 as usize]
    }

    /// The same for a frame that is new.
    pub(crate) fn depth_of(&self, frame: &Frame) -> u32 {
        match *frame {
            Frame::Object { below, .. } | Frame::Array { below, .. } => self.depth(below) + 1,
            _ => 0,
        }
    }

    /// The byte of a layout that comes next in a gap; none where the gap is over, or there is no
    /// layout. `depth` counts the objects and arrays that are open.
    pub(crate) fn gap_byte(&self, gap: Gap, depth: u32, at: At) -> Option<u8> {
        let layout = self.core.options.layout.as_ref().filter(|_| at != OVER)?;
        let mut at = usize::from(at);
        let (blanks, levels) = match gap {
            Gap::First => (&[][..], Some(depth)),
            Gap::Next => (layout.after_comma.bytes(), Some(depth)),
            Gap::Close => (&[][..], Some(depth.saturating_sub(1))),
            Gap::BeforeColon => (layout.before_colon.bytes(), None),
            Gap::AfterColon => (layout.after_colon.bytes(), None),
        };
        if let Some(&byte) = blanks.get(at) {
            return Some(byte);
        }
        at -= blanks.len();
        let (indent, levels) = (layout.indent?, levels?);
        match at.checked_sub(1) {
            None => Some(b'\n'),
            Some(at) => {
                let indent = indent.bytes();
                (at < indent.len() * levels as usize).then(|| indent[at % indent.len()])
            }
        }
    }

    /// Bytes of a layout in a gap; without a layout none are needed.
    pub(crate) fn gap_length(&self, gap: Gap, depth: u32) -> usize {
        let Some(layout) = &self.core.options.layout else { return 0 };
        let line = |levels: u32| {
            layout.indent.map_or(0, |indent| 1 + indent.bytes().len() * levels as usize)
        };
        match gap {
            Gap::First => line(depth),
            Gap::Next => layout.after_comma.bytes().len() + line(depth),
            Gap::Close => line(depth.saturating_sub(1)),
            Gap::BeforeColon => layout.before_colon.bytes().len(),
            Gap::AfterColon => layout.after_colon.bytes().len(),
        }
    }

    /// The place in a gap after a blank; `None` if it may not stand there.
    pub(crate) fn blank(&self, gap: Gap, depth: u32, at: At, byte: u8) -> Option<At> {
        match self.core.options.layout {
            None => at.checked_sub(1).filter(|_| is_blank(byte)),
            Some(_) => (self.gap_byte(gap, depth, at) == Some(byte)).then(|| at + 1),
        }
    }

    /// Whether what stands behind a gap may come.
    pub(crate) fn gap_ends(&self, gap: Gap, depth: u32, at: At) -> bool {
        self.gap_byte(gap, depth, at).is_none()
    }

    /// The gap in which a value is waited for, and its depth.
    pub(crate) fn gap_of_value(&self, below: FrameId) -> (Gap, u32) {
        match self.frames.get(below.0) {
            Frame::Array { .. } => (Gap::Next, self.depth(below)),
            _ => (Gap::AfterColon, self.depth(below)),
        }
    }
}
