//! How much an epoch has grown, and when another one takes its place.
//!
//! Tables grow behind their own locks and are not counted there: what they take is measured from time
//! to time, by the work that was done since. A measurement adds up capacities and takes a few
//! microseconds.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use formalm_automata::{Keys, Survey};

use super::StateEpoch;
use crate::canonical::Canonical;

/// Work between two measurements, in tokens read. Chosen, not measured: what so many tokens intern is
/// small beside any budget, and the measurement costs less than a hundredth of reading them.
const TOKENS_BETWEEN_MEASUREMENTS: u32 = 256;

/// Work that a new mask counts for, in tokens read. Chosen, not measured.
pub(super) const TOKENS_PER_MASK: u32 = 32;

/// An epoch is replaced at no less than this multiple of what it had in the beginning, so that a
/// budget below what the language itself takes makes memory grow, and not time.
const LEAST_GROWTH: usize = 4;

/// An epoch's budget and what it takes of it.
#[derive(Debug)]
pub(super) struct Growth {
    /// The number of the epoch, unique in the process.
    serial: u64,
    /// Tokens read since the last measurement.
    noted: AtomicU32,
    /// Bytes at the last measurement, masks aside.
    bytes: AtomicUsize,
    /// Bytes at which the epoch is to be replaced.
    budget: AtomicUsize,
    retired: AtomicBool,
    survey: Survey,
}

impl Growth {
    /// Growth that nobody limits.
    pub(super) fn unbounded() -> Growth {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Growth {
            serial: NEXT.fetch_add(1, Ordering::Relaxed),
            noted: AtomicU32::new(0),
            bytes: AtomicUsize::new(0),
            budget: AtomicUsize::new(usize::MAX),
            retired: AtomicBool::new(false),
            survey: Survey::new(),
        }
    }
}

impl<K: Keys> StateEpoch<K> {
    /// Whether a thread was at work on it while the process was forked, and does not exist in this
    /// one. Nothing in it may be asked then; [`crate::Constraint::current`] is another one.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.growth.survey.finds_abandoned(|| {
            let canonical = self.canonical.as_deref();
            self.keys.is_abandoned() || canonical.is_some_and(Canonical::is_abandoned)
        })
    }

    /// The number of the epoch; no other one of the process has it.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.growth.serial
    }

    /// Gives the epoch a budget in bytes, or four times what it takes now if that is more.
    pub(crate) fn limit_growth(&self, budget: usize) {
        let bytes = self.state_bytes();
        let budget = budget.max(bytes.saturating_mul(LEAST_GROWTH));
        self.growth.bytes.store(bytes, Ordering::Relaxed);
        self.growth.budget.store(budget, Ordering::Relaxed);
    }

    /// Notes that about so many tokens were read, and finds out now and then whether the epoch is
    /// to be replaced.
    #[inline]
    pub(crate) fn note(&self, tokens: u32) {
        let noted = self.growth.noted.fetch_add(tokens, Ordering::Relaxed);
        if noted.saturating_add(tokens) >= TOKENS_BETWEEN_MEASUREMENTS {
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
        self.growth.bytes.store(bytes, Ordering::Relaxed);
        if bytes > budget {
            self.retire();
        }
    }

    /// Sees to it that new matchers begin in another epoch.
    pub(crate) fn retire(&self) {
        self.growth.retired.store(true, Ordering::Release);
    }

    /// Takes that back, where there is no other epoch to be had: this one may grow to twice its
    /// size before it is tried again.
    pub(crate) fn keep_on(&self) {
        let bytes = self.state_bytes();
        let _ = self.growth.budget.fetch_max(bytes.saturating_mul(2), Ordering::Relaxed);
        self.growth.retired.store(false, Ordering::Release);
    }

    /// Gives an epoch that a matcher moved to room for as much as it has now, several times over, so
    /// that matchers move less and less often the more they have read.
    pub(crate) fn grow_with(&self) {
        if self.growth.budget.load(Ordering::Relaxed) != usize::MAX {
            let bytes = self.state_bytes();
            let budget = bytes.saturating_mul(LEAST_GROWTH);
            let _ = self.growth.budget.fetch_max(budget, Ordering::Relaxed);
        }
    }

    /// Whether new matchers begin in another epoch.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        self.growth.retired.load(Ordering::Acquire)
    }

    /// Whether the epoch has grown so far that matchers in it have to move on.
    pub(crate) fn is_crowded(&self) -> bool {
        let budget = self.growth.budget.load(Ordering::Relaxed);
        self.growth.bytes.load(Ordering::Relaxed) > budget.saturating_mul(2)
    }

    /// Bytes of all that is numbered by what was read: machine, mask classes, completions, pairs
    /// of canonical tokens. Masks and what depends on the vocabulary have limits of their own.
    pub(crate) fn state_bytes(&self) -> usize {
        let sizes = self.sizes();
        sizes.machine + sizes.classes + sizes.completions + sizes.canonical
    }
}
