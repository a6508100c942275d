//! Step budgets for tasks that read many bytes: a limit per task on top of the limits per byte.

use std::cell::Cell;

use crate::check_limit;
use crate::{Error, Resource};

/// Steps that any task may take: about a second of work. Chosen, not measured.
const BASE_STEPS: u64 = 120_000_000;
/// Additional steps for each byte or state visited: about 0.1 ms. Chosen, not measured.
const STEPS_PER_ITEM: u64 = 20_000;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Returns the steps that machines have recorded in this thread. Counting per thread keeps the end
/// of a task independent of other users of the machine. A machine whose bytes all take about as
/// long records none.
pub fn steps_taken() -> u64 {
    TAKEN.get()
}

/// Records steps that a machine has taken.
pub fn record_steps(steps: u64) {
    TAKEN.set(TAKEN.get().wrapping_add(steps));
}

/// The step budget of a task. Machines limit what one byte may take, but a task that stays below
/// that limit at each of many bytes could run for hours.
#[derive(Clone, Copy, Debug)]
pub struct StepBudget {
    steps_at_start: u64,
}

impl StepBudget {
    /// Starts a budget at the current count of [`steps_taken`].
    pub fn new(steps_taken: u64) -> StepBudget {
        StepBudget { steps_at_start: steps_taken }
    }

    /// Fails if the task has exceeded its budget after visiting `visited` bytes or states.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn check(&self, steps_taken: u64, visited: usize) -> Result<(), Error> {
        let allowed = BASE_STEPS.saturating_add(STEPS_PER_ITEM.saturating_mul(visited as u64));
        check_limit(Resource::Steps, steps_taken.saturating_sub(self.steps_at_start), allowed)
    }
}
