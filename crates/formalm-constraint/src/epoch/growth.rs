//! Growth of an epoch, and its replacement when it exceeds its budget.
//!
//! Tables grow inside their own locks and are not counted there. Their size is measured from time
//! to time, by the work done since. A measurement adds up capacities and takes a few microseconds.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use formalm_core::{ForkCheck, LazyDfa};
use formalm_machines::MaskClasses;

use super::StateEpoch;
use crate::canonical::CanonicalMasks;

/// Work between two measurements, in tokens read. Chosen, not measured: what these tokens intern
/// is small compared to any budget, and the measurement costs less than 1 % of reading them.
const TOKENS_BETWEEN_MEASUREMENTS: u32 = 256;

/// Factors by which there may be more work between two measurements while the budget is far: one
/// for each MiB of the budget, within these bounds. The size of machines with hundreds of parts
/// takes a millisecond to add up, a fifth of the time of their first masks if it is added up after
/// every 128 of them. Chosen, not measured.
const MEASUREMENT_FACTORS: (usize, usize) = (16, 64);

/// Work that a new mask counts as, in tokens read. Chosen, not measured.
pub(super) const TOKENS_PER_MASK: u32 = 32;

/// Minimum factor by which an epoch grows before it is replaced. A budget below the size of the
/// language itself then costs memory, not time. Chosen, not measured.
const MIN_GROWTH_FACTOR: usize = 4;

/// The budget of an epoch and its current size.
#[derive(Debug)]
pub(super) struct EpochGrowth {
    /// The number of the epoch, unique in the process.
    serial: u64,
    /// Tokens read since the last measurement.
    noted: AtomicU32,
    /// Work until the next measurement, in tokens read.
    interval: AtomicU32,
    /// Size at the last measurement without masks, in bytes.
    bytes: AtomicUsize,
    /// Size at which the epoch is replaced, in bytes.
    budget: AtomicUsize,
    retired: AtomicBool,
    survey: ForkCheck,
}

impl EpochGrowth {
    /// Creates growth without a budget.
    pub(super) fn unbounded() -> EpochGrowth {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        EpochGrowth {
            serial: NEXT.fetch_add(1, Ordering::Relaxed),
            noted: AtomicU32::new(0),
            interval: AtomicU32::new(TOKENS_BETWEEN_MEASUREMENTS),
            bytes: AtomicUsize::new(0),
            budget: AtomicUsize::new(usize::MAX),
            retired: AtomicBool::new(false),
            survey: ForkCheck::new(),
        }
    }
}

impl<K: MaskClasses> StateEpoch<K> {
    /// Returns `true` if the process was forked while a thread modified the epoch; that thread does
    /// not exist here. The epoch must not be used then; [`crate::Constraint::current`] returns
    /// another one.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.growth.survey.is_abandoned(|| {
            let canonical = self.canonical.as_deref();
            self.keys.is_abandoned() || canonical.is_some_and(CanonicalMasks::is_abandoned)
        })
    }

    /// Returns the number of the epoch, unique in the process.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.growth.serial
    }

    /// Sets the budget, in bytes, to at least four times the current size.
    pub(crate) fn limit_growth(&self, budget: usize) {
        let bytes = self.state_bytes();
        let budget = budget.max(bytes.saturating_mul(MIN_GROWTH_FACTOR));
        self.growth.bytes.store(bytes, Ordering::Relaxed);
        self.growth.budget.store(budget, Ordering::Relaxed);
    }

    /// Records that about `tokens` tokens were read, and measures from time to time whether the
    /// epoch has to be replaced.
    #[inline]
    pub(crate) fn note(&self, tokens: u32) {
        let noted = self.growth.noted.fetch_add(tokens, Ordering::Relaxed);
        if noted.saturating_add(tokens) >= self.growth.interval.load(Ordering::Relaxed) {
            self.measure();
        }
    }

    #[cold]
    fn measure(&self) {
        self.growth.noted.store(0, Ordering::Relaxed);
        let budget = self.growth.budget.load(Ordering::Relaxed);
        if budget == usize::MAX {
            return;
        }
        let bytes = self.state_bytes();
        let before = self.growth.bytes.swap(bytes, Ordering::Relaxed);
        if bytes > budget {
            self.retire();
        }
        // At four times the rate of growth so far, the budget is not exceeded before the next
        // measurement.
        let growth = bytes.saturating_sub(before).max(1);
        let measured = self.growth.interval.load(Ordering::Relaxed) / TOKENS_BETWEEN_MEASUREMENTS;
        let left = budget.saturating_sub(bytes).saturating_mul(measured as usize);
        let factor = left / growth.saturating_mul(4);
        let factor = match self.canonical {
            // Searches for canonical tokens grow by leaps, and cost more than a measurement.
            Some(_) => 1,
            None => {
                let (least, most) = MEASUREMENT_FACTORS;
                factor.clamp(1, (budget >> 20).clamp(least, most)) as u32
            }
        };
        self.growth.interval.store(TOKENS_BETWEEN_MEASUREMENTS * factor, Ordering::Relaxed);
    }

    /// Makes new matchers begin in another epoch.
    pub(crate) fn retire(&self) {
        self.growth.retired.store(true, Ordering::Release);
    }

    /// Revokes [`StateEpoch::retire`] if no other epoch can be made. The epoch may double its size
    /// before the next attempt.
    pub(crate) fn keep_on(&self) {
        let bytes = self.state_bytes();
        let _ = self.growth.budget.fetch_max(bytes.saturating_mul(2), Ordering::Relaxed);
        self.growth.retired.store(false, Ordering::Release);
    }

    /// Raises the budget of an epoch that a matcher moved to, to a multiple of its current size.
    /// Matchers then move less often the more they have read.
    pub(crate) fn grow_with(&self) {
        if self.growth.budget.load(Ordering::Relaxed) != usize::MAX {
            let bytes = self.state_bytes();
            let budget = bytes.saturating_mul(MIN_GROWTH_FACTOR);
            let _ = self.growth.budget.fetch_max(budget, Ordering::Relaxed);
        }
    }

    /// Returns `true` if new matchers begin in another epoch.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.growth.retired.load(Ordering::Acquire)
    }

    /// Returns `true` if the epoch has grown so much that its matchers have to move.
    pub(crate) fn is_crowded(&self) -> bool {
        let budget = self.growth.budget.load(Ordering::Relaxed);
        self.growth.bytes.load(Ordering::Relaxed) > budget.saturating_mul(2)
    }

    /// Returns the size of everything numbered by input, in bytes: machine, mask classes,
    /// completions, canonical states. Masks and tables of the vocabulary have limits of their own.
    pub(crate) fn state_bytes(&self) -> usize {
        let canonical = self.canonical.as_deref().map_or(0, CanonicalMasks::memory_bytes);
        let machine = self.machine().memory_bytes() + self.ahead_bytes();
        machine + self.class_bytes() + self.completion_bytes() + canonical
    }
}
