//! The step budget of derivations.

use crate::error::{Error, Resource};
use crate::runtime::deadline::check_deadline;

/// The error of an exhausted step budget or a passed deadline; [`StepMeter::limit_error`] has the
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

/// The deadline is checked whenever these bits of the step count are zero: about every 0.1 ms.
const DEADLINE_CHECK_MASK: u64 = (1 << 12) - 1;

/// A meter of the steps that derivatives take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepMeter {
    pub(crate) steps: u64,
    pub(crate) allowed: u64,
}

impl StepMeter {
    pub(crate) fn step(&mut self) -> Result<(), BudgetExhausted> {
        self.steps += 1;
        if self.steps & DEADLINE_CHECK_MASK == 0 && check_deadline().is_err() {
            return Err(BudgetExhausted);
        }
        if self.steps > self.allowed { Err(BudgetExhausted) } else { Ok(()) }
    }

    /// Returns the error to report when the budget is exhausted.
    pub(crate) fn limit_error(&self, BudgetExhausted: BudgetExhausted) -> Error {
        let (needed, allowed) = (self.steps, self.allowed);
        let limit = Error::Limit { resource: Resource::Steps, needed, allowed };
        check_deadline().err().unwrap_or(limit)
    }
}
