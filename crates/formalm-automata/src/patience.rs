//! How much work a task may be that asks machines about many bytes.

use crate::automaton::check;
use crate::error::{Error, Resource};

/// Steps that any task may take: about a second of them.
const ANY: u64 = 120_000_000;
/// Steps for each byte or state that was looked at: about a tenth of a millisecond.
const EACH: u64 = 20_000;

/// A bound for tasks that read many bytes. Machines limit what one byte may take; a task that stays
/// below that at each of many could go on for hours.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    before: u64,
}

impl Patience {
    /// A task that begins when its machines have taken so many steps, see
    /// [`Machine::steps_taken`](crate::Machine::steps_taken).
    pub fn new(steps_taken: u64) -> Patience {
        Patience { before: steps_taken }
    }

    /// Whether it may go on, having looked at some bytes or states.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`].
    pub fn check(&self, steps_taken: u64, looked_at: usize) -> Result<(), Error> {
        let allowed = ANY.saturating_add(EACH.saturating_mul(looked_at as u64));
        check(Resource::Steps, steps_taken.saturating_sub(self.before), allowed)
    }
}
