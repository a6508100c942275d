//! Resource limits of a grammar automaton, and the step meter that enforces them.

pub(crate) use formalm_core::check_limit as check;
use formalm_core::{Error, Resource, deadline::DeadlineTicks};

/// The resources that an automaton may use. Exceeding one is an [`Error::Limit`].
#[derive(Clone, Copy, Debug)]
pub struct GrammarLimits {
    /// Interned states: one per distinguishable position visited.
    pub states: u64,
    /// Bytes for states, stacks and tables.
    pub bytes: u64,
    /// Steps of work per input byte: items, reductions and GSS edges.
    pub steps: u64,
    /// Configurations visited to decide whether a member is still reachable.
    pub search: u64,
    /// Steps of work per search for a shortest completion.
    pub nearest: u64,
    /// Steps of work for the completion bounds of an intersection with a regular language. Beyond
    /// it the bound is unknown.
    pub completions: u64,
    /// Productions that the rules may be lowered to.
    pub productions: u64,
    /// Bytes of a shortest member that is written out.
    pub text: u64,
}

impl Default for GrammarLimits {
    fn default() -> GrammarLimits {
        GrammarLimits {
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

/// Separately counted steps that cost the call one step. Chosen, not measured.
const SEPARATE_SHARE: u64 = 4;

/// Steps between two checks of the deadline: about 0.1 ms.
const DEADLINE_CHECK_STEPS: u32 = 1 << 12;

/// Counts the steps of one call.
#[derive(Debug)]
pub(crate) struct StepMeter {
    spent: u64,
    allowed: u64,
    /// Steps of all earlier calls.
    before: u64,
    ticks: DeadlineTicks,
}

impl StepMeter {
    pub(crate) fn new(allowed: u64) -> StepMeter {
        StepMeter { spent: 0, allowed, before: 0, ticks: DeadlineTicks::default() }
    }

    /// Starts a new call.
    pub(crate) fn reset(&mut self) {
        self.before += self.spent;
        self.spent = 0;
    }

    /// Starts work that is counted separately. Returns the state of the call for
    /// [`StepMeter::end_separate`].
    pub(crate) fn begin_separate(&mut self, allowed: u64) -> (u64, u64) {
        let call = (self.spent, self.allowed);
        self.before += self.spent;
        (self.spent, self.allowed) = (0, allowed);
        call
    }

    /// Resumes a call after separately counted work. A share of that work is charged to the call,
    /// so that a call which requests it repeatedly still ends.
    pub(crate) fn end_separate(&mut self, (spent, allowed): (u64, u64)) {
        let counted = spent + self.spent / SEPARATE_SHARE;
        self.before = (self.before + self.spent).saturating_sub(counted);
        (self.spent, self.allowed) = (counted, allowed);
    }

    /// Returns the steps of all calls.
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
