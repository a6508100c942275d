//! Interrupt checks for long work: a step counter that asks its owner now and then whether to
//! continue.

use std::time::{Duration, Instant};

use crate::Error;
use crate::Machine;
use crate::StateId;
use crate::deadline::check_deadline;
use crate::{StepBudget, steps_taken};

/// Steps between two questions to the owner: about a millisecond of work.
const STEPS_PER_POLL: u64 = 1 << 16;

/// Inputs of at most this many bytes are read without looking at the clock: single steps of a
/// search.
const UNPOLLED_BYTES: usize = 8;
/// Maximum number of bytes read in one piece: about 0.01 ms where states are known.
const MAX_PIECE_BYTES: usize = 1 << 12;
/// Target time of a piece. At this rate Ctrl-C is answered at once, and the microsecond that a
/// question takes is negligible.
const PIECE_TIME: Duration = Duration::from_millis(2);
/// Steps that a byte of a quick piece counts for.
const STEPS_PER_BYTE: usize = 16;

/// A step counter that asks its owner now and then whether to continue.
pub struct InterruptCheck<'a> {
    ask: &'a mut dyn FnMut() -> bool,
    steps: u64,
}

impl<'a> InterruptCheck<'a> {
    /// Creates a check for work that continues while `ask` returns `true`.
    pub fn new(ask: &'a mut dyn FnMut() -> bool) -> InterruptCheck<'a> {
        InterruptCheck { ask, steps: 0 }
    }

    /// Counts `steps` more steps.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] once the owner has answered `false`; [`Error::Deadline`].
    #[inline]
    pub fn tick(&mut self, steps: usize) -> Result<(), Error> {
        self.steps += steps as u64 + 1;
        if self.steps < STEPS_PER_POLL {
            return Ok(());
        }
        self.ask()
    }

    /// Asks now.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if the owner answers `false`; [`Error::Deadline`].
    pub fn ask(&mut self) -> Result<(), Error> {
        self.steps = 0;
        check_deadline()?;
        if (self.ask)() { Ok(()) } else { Err(Error::Interrupted) }
    }

    /// Reads `text` from `state` as [`crate::LazyDfa::walk`] does, with interrupt checks.
    ///
    /// No lock of the machine is held while the owner is asked, who may wait for somebody that
    /// waits for the machine. The cost of a byte is not known beforehand: a known state takes
    /// nanoseconds, a new one up to a tenth of a second. So the length of the pieces read in one go
    /// follows the clock.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`], those of the machine, and [`Error::Limit`] if `patience` ends.
    pub fn walk<M: Machine + ?Sized>(
        &mut self,
        machine: &M,
        state: StateId,
        text: &[u8],
        patience: Option<StepBudget>,
    ) -> Result<Result<StateId, usize>, Error> {
        if text.len() <= UNPOLLED_BYTES || !machine.is_exact() {
            // A parser's states are kept for every position where a walk pauses.
            return machine.walk(state, text);
        }
        let (mut state, mut at, mut size) = (state, 0, UNPOLLED_BYTES);
        while at < text.len() {
            let begun = Instant::now();
            let piece = &text[at..text.len().min(at + size)];
            match machine.walk(state, piece)? {
                Ok(next) => state = next,
                Err(good) => return Ok(Err(at + good)),
            }
            at += piece.len();
            patience.map_or(Ok(()), |patience| patience.check(steps_taken(), at))?;
            let taken = begun.elapsed();
            if taken < PIECE_TIME {
                size = (size * 2).min(MAX_PIECE_BYTES);
                self.tick(piece.len().saturating_mul(STEPS_PER_BYTE))?;
            } else {
                size = (size / 4).max(1);
                self.ask()?;
            }
        }
        Ok(Ok(state))
    }
}
