//! What reading may cost.

use formalm_automata::deadline::DeadlineTicks;
use formalm_automata::{Error, Resource};

/// What a machine may use. Exceeding it is an [`Error::Limit`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States kept: one for each position that was visited and is told apart from the others.
    pub states: u64,
    /// Bytes of memory for states, stacks and tables.
    pub bytes: u64,
    /// Steps of work for one byte that is read: items, reductions and edges of stacks.
    pub steps: u64,
    /// States looked at to find out whether a member is still reachable.
    pub search: u64,
    /// Steps of work in one search for the nearest member.
    pub nearest: u64,
    /// Steps of work for what completes a state beside a regular language, beyond which it is not
    /// known.
    pub completions: u64,
    /// Productions that the rules may become.
    pub productions: u64,
    /// Bytes of a shortest member that is written out.
    pub text: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            states: 2_000_000,
            bytes: 1 << 30,
            steps: 4_000_000,
            search: 20_000,
            nearest: 50_000_000,
            completions: 10_000_000,
            productions: 1_000_000,
            text: 1_000_000,
        }
    }
}

/// Steps of work counted apart that are one of the call.
const SEPARATE_SHARE: u64 = 4;

/// Steps between two looks at the deadline: about 0.1 ms.
const DEADLINE_CHECK_STEPS: u32 = 1 << 12;

/// Counts the steps of one call.
#[derive(Debug)]
pub(crate) struct StepMeter {
    spent: u64,
    allowed: u64,
    /// Steps of the calls before this one.
    before: u64,
    ticks: DeadlineTicks,
}

impl StepMeter {
    pub(crate) fn new(allowed: u64) -> StepMeter {
        StepMeter { spent: 0, allowed, before: 0, ticks: DeadlineTicks::default() }
    }

    /// Begins a new call.
    pub(crate) fn reset(&mut self) {
        self.before += self.spent;
        self.spent = 0;
    }

    /// Begins work that is counted apart from the call; what [`Meter::go_on`] takes.
    pub(crate) fn begin_separate(&mut self, allowed: u64) -> (u64, u64) {
        let call = (self.spent, self.allowed);
        self.before += self.spent;
        (self.spent, self.allowed) = (0, allowed);
        call
    }

    /// Goes on with a call behind work that was counted apart. Some of it counts: a call that asks
    /// for such work again and again has to end as well.
    pub(crate) fn end_separate(&mut self, (spent, allowed): (u64, u64)) {
        let counted = spent + self.spent / SEPARATE_SHARE;
        self.before = (self.before + self.spent).saturating_sub(counted);
        (self.spent, self.allowed) = (counted, allowed);
    }

    /// Steps of all calls.
    pub(crate) fn total(&self) -> u64 {
        self.before + self.spent
    }

    #[inline]
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.spent += steps as u64;
        self.ticks.tick(steps, DEADLINE_CHECK_STEPS)?;
        check(Resource::Steps, self.spent, self.allowed)
    }
}

#[inline]
pub(crate) fn check(resource: Resource, needed: u64, allowed: u64) -> Result<(), Error> {
    if needed > allowed { Err(Error::Limit { resource, needed, allowed }) } else { Ok(()) }
}
