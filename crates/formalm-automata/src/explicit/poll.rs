//! Long work that asks from time to time whether it is still wanted.

use crate::error::Error;

/// Steps between two questions; about a millisecond of work.
const EVERY: u64 = 1 << 16;

/// Counts steps of work and asks its owner now and then.
pub struct Poll<'a> {
    ask: &'a mut dyn FnMut() -> bool,
    steps: u64,
}

impl<'a> Poll<'a> {
    /// Work that goes on while `ask` answers `true`.
    pub fn new(ask: &'a mut dyn FnMut() -> bool) -> Poll<'a> {
        Poll { ask, steps: 0 }
    }

    /// Notes `steps` more steps.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] once the owner answered `false`.
    #[inline]
    pub fn tick(&mut self, steps: usize) -> Result<(), Error> {
        self.steps += steps as u64 + 1;
        if self.steps < EVERY {
            return Ok(());
        }
        self.steps = 0;
        if (self.ask)() { Ok(()) } else { Err(Error::Interrupted) }
    }
}
