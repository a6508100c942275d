//! How much work a task may be that asks machines about many bytes.

use std::cell::Cell;

use crate::automaton::check;
use crate::error::{Error, Resource};

/// Steps that any task may take: about a second of them.
const BASE_STEPS: u64 = 120_000_000;
/// Steps for each byte or state that was looked at: about a tenth of a millisecond.
const STEPS_PER_ITEM: u64 = 20_000;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Steps of work that machines have noted in this thread: what others do with the same machine must
/// not matter to where a task ends. A machine whose bytes all take about as long notes none.
pub fn steps_taken() -> u64 {
    TAKEN.get()
}

/// Notes steps that a machine has taken.
pub fn note_steps(steps: u64) {
    TAKEN.set(TAKEN.get().wrapping_add(steps));
}

/// A bound for tasks that read many bytes. Machines limit what one byte may take; a task that stays
/// below that at each of many could go on for hours.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    steps_at_start: u64,
}

impl Patience {
    /// A task that begins when so many steps were taken, see [`steps_taken`].
    pub fn new(steps_taken: u64) -> Patience {
        Patience { steps_at_start: steps_taken }
    }

    /// Whether it may go on, having looked at some bytes or states.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn check(&self, steps_taken: u64, looked_at: usize) -> Result<(), Error> {
        let allowed = BASE_STEPS.saturating_add(STEPS_PER_ITEM.saturating_mul(looked_at as u64));
        check(Resource::Steps, steps_taken.saturating_sub(self.steps_at_start), allowed)
    }
}
