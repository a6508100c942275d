//! The interned frames, and the nesting depth of each.

use formalm_core::{Interner, memory_bytes};

use crate::machine::frame::{DONE, Frame, FrameId};

/// The interned frames.
#[derive(Debug)]
pub(crate) struct FrameTable {
    frames: Interner<Frame>,
    /// Number of open objects and arrays, by frame.
    depths: Vec<u32>,
}

memory_bytes!(FrameTable { frames, depths });

impl Default for FrameTable {
    fn default() -> FrameTable {
        let mut frames = Interner::default();
        frames.intern(Frame::Done);
        FrameTable { frames, depths: vec![0] }
    }
}

impl FrameTable {
    pub(crate) fn intern(&mut self, frame: Frame) -> FrameId {
        let id = self.frames.intern(frame);
        if id as usize == self.depths.len() {
            self.depths.push(self.depth_of(&frame));
        }
        FrameId(id)
    }

    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> Frame {
        *self.frames.get(id.0)
    }

    /// Returns the number of open objects and arrays up to a frame.
    #[inline]
    pub(crate) fn depth(&self, frame: FrameId) -> u32 {
        self.depths[frame.0 as usize]
    }

    /// Computes the depth of a new frame.
    fn depth_of(&self, frame: &Frame) -> u32 {
        match *frame {
            Frame::Object { parent, .. } | Frame::Array { parent, .. } => self.depth(parent) + 1,
            _ => 0,
        }
    }

    /// Returns the parent of an object.
    pub(crate) fn object_parent(&self, id: FrameId) -> FrameId {
        match self.get(id) {
            Frame::Object { parent, .. } => parent,
            _ => DONE,
        }
    }

    /// Returns the number of objects, arrays, strings and names that are open.
    pub(crate) fn open_count(&self, mut frame: Frame) -> usize {
        let mut open = 0;
        while let Some(parent) = frame.parent() {
            let is_open = !matches!(
                frame,
                Frame::Value { .. } | Frame::Number { .. } | Frame::Literal { .. }
            );
            (frame, open) = (self.get(parent), open + usize::from(is_open));
        }
        open
    }

    /// Clears the offsets of items in an input that is no longer recorded.
    pub(crate) fn clear_item_starts(&mut self, frame: &mut Frame) {
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
            self.get(at)
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
            at = self.intern(frame);
        }
        at
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Drops the frames from number `length` on; nothing may refer to them.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.frames.truncate(length);
        self.depths.truncate(length);
    }
}
