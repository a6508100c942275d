//! The reader: the position after one more byte, in some spelling.
//!
//! ```text
//! byte ──► spelling ──events──► values ──► residuals, names, numbers, solver
//! ```

use formalm_core::Error;

use crate::machine::frame::{FrameId, ReaderPosition};
use crate::machine::spelling::Spelling;
use crate::machine::spelling::json::Json;
use crate::machine::values::Values;

/// Reads inputs byte by byte: a spelling, and the values that it spells.
///
/// Searches that read few bytes take an [`AnyReader`], so that they are compiled once.
#[derive(Debug)]
pub(crate) struct Reader<S: Spelling + ?Sized = Json> {
    pub(crate) values: Values,
    pub(crate) spelling: S,
}

/// A reader of any spelling.
pub(crate) type AnyReader = Reader<dyn Spelling>;

impl<S: Spelling + ?Sized> Reader<S> {
    /// Returns the position after `byte`, with the full step limit of the solver for this byte.
    pub(crate) fn read_byte(
        &mut self,
        position: ReaderPosition,
        byte: u8,
    ) -> Result<Option<ReaderPosition>, Error> {
        self.values.core.base.reset_steps();
        let read = self.spelling.read(&mut self.values, position, byte);
        if read.is_err() {
            self.values.core.answers.abandon();
        }
        read
    }

    /// Returns `true` if the depth of a frame, or of anything that further `bytes` bytes open in it,
    /// matters.
    pub(crate) fn depth_matters(&self, frame: FrameId, bytes: usize) -> bool {
        self.spelling.depends_on_depth() || self.values.depth_is_limited(frame, bytes)
    }

    /// Returns `true` if an input that led to `position` is an instance.
    pub(crate) fn is_end(&mut self, position: ReaderPosition) -> bool {
        self.spelling.is_end(&mut self.values, position)
    }

    /// Returns `true` if `text` completes `position`. Frames built on the way are dropped.
    pub(crate) fn is_completed(
        &mut self,
        position: ReaderPosition,
        text: &[u8],
    ) -> Result<bool, Error> {
        let (frames, records) = (self.values.frames.len(), self.values.records.len());
        let mut position = Some(position);
        for &byte in text {
            let Some(here) = position else { break };
            position = match self.read_byte(here, byte) {
                Ok(next) => next,
                Err(error) => {
                    self.values.truncate(frames, records);
                    return Err(error);
                }
            };
        }
        let ends = position.is_some_and(|position| self.is_end(position));
        self.values.truncate(frames, records);
        Ok(ends)
    }
}
