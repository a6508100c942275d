//! Step meters for single operations: they end at a step limit or at the deadline.

use crate::deadline::check_deadline;
use crate::{Error, Resource};

/// The error of an exhausted step budget or a passed deadline; [`StepMeter::limit_error`] has the
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetExhausted;

/// The deadline is checked whenever these bits of the step count are zero: about every 0.1 ms.
const DEADLINE_CHECK_MASK: u64 = (1 << 12) - 1;

/// A meter of the steps that derivatives take.
#[derive(Clone, Copy, Debug)]
pub struct StepMeter {
    /// Steps taken.
    pub steps: u64,
    /// Maximum number of steps.
    pub allowed: u64,
}

impl StepMeter {
    /// Counts a step.
    ///
    /// # Errors
    ///
    /// [`BudgetExhausted`] beyond the limit, and now and then after the deadline.
    #[inline]
    pub fn step(&mut self) -> Result<(), BudgetExhausted> {
        self.steps += 1;
        if self.steps & DEADLINE_CHECK_MASK == 0 && check_deadline().is_err() {
            return Err(BudgetExhausted);
        }
        if self.steps > self.allowed { Err(BudgetExhausted) } else { Ok(()) }
    }

    /// Returns the error to report when the budget is exhausted.
    pub fn limit_error(&self, BudgetExhausted: BudgetExhausted) -> Error {
        let (needed, allowed) = (self.steps, self.allowed);
        let limit = Error::Limit { resource: Resource::Steps, needed, allowed };
        check_deadline().err().unwrap_or(limit)
    }
}
