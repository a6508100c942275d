//! Deadlines: per-thread time limits that end work with an error.
//!
//! A deadline belongs to a thread, so no function passes one on, and a step without one costs a
//! predictable branch. Work checks it where it counts steps (derivatives, formulas, stacks) and at
//! the nodes of tries. Unlike an interrupt ([`crate::interrupt`]) it calls nobody back, so it may
//! end a step while a machine's lock is held. It acts like a step limit, except that nothing it cut
//! short is cached.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// The time limit of a task.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// The name of the task in messages: a verb.
    pub task: &'static str,
    /// The start of the task.
    pub begun: Instant,
    /// The time allowed from the start.
    pub allowed: Duration,
}

thread_local! {
    static DEADLINE: Cell<Option<Deadline>> = const { Cell::new(None) };
    // Checked first; the deadline itself is read only if this is `true`.
    static IS_SET: Cell<bool> = const { Cell::new(false) };
    // A flag with which another thread ends the work as if the deadline had passed.
    static CANCELLED: Cell<*const AtomicBool> = const { Cell::new(ptr::null()) };
}

impl Deadline {
    /// Creates a deadline for a task that begins now.
    pub fn starting_now(task: &'static str, allowed: Duration) -> Deadline {
        Deadline { task, begun: Instant::now(), allowed }
    }

    /// Runs `work` under this deadline. An enclosing deadline that ends sooner takes precedence.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        let _restore = enter(self);
        work()
    }

    /// As [`Deadline::run`], but the deadline also passes as soon as `cancelled` is set: work for
    /// later then leaves its locks to other threads at its next check.
    pub fn run_unless<T>(self, cancelled: &AtomicBool, work: impl FnOnce() -> T) -> T {
        /// Restores the enclosing flag when dropped.
        struct RestoreFlag(*const AtomicBool);
        impl Drop for RestoreFlag {
            fn drop(&mut self) {
                CANCELLED.set(self.0);
            }
        }
        let _restore = RestoreFlag(CANCELLED.replace(cancelled));
        self.run(work)
    }

    fn ends_before(&self, other: &Deadline) -> bool {
        let left = |one: &Deadline| one.allowed.saturating_sub(one.begun.elapsed());
        left(self) < left(other)
    }
}

/// Puts this thread under a deadline until the guard is dropped.
pub fn enter(deadline: Deadline) -> DeadlineGuard {
    let around = DEADLINE.get();
    DeadlineGuard::set(
        Some(around.filter(|one| one.ends_before(&deadline)).unwrap_or(deadline)),
        around,
    )
}

/// Runs `work` without a deadline: work that is bounded by itself and whose
/// caches would keep what a failure leaves.
pub fn without_deadline<T>(work: impl FnOnce() -> T) -> T {
    let _restore = DeadlineGuard::set(None, DEADLINE.get());
    work()
}

/// Restores the enclosing deadline when dropped.
#[derive(Debug)]
pub struct DeadlineGuard(Option<Deadline>);

impl DeadlineGuard {
    fn set(deadline: Option<Deadline>, before: Option<Deadline>) -> DeadlineGuard {
        DEADLINE.set(deadline);
        IS_SET.set(deadline.is_some());
        DeadlineGuard(before)
    }
}

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        DEADLINE.set(self.0);
        IS_SET.set(self.0.is_some());
    }
}

/// Fails once the deadline of this thread has passed.
///
/// # Errors
///
/// [`Error::Deadline`].
#[inline]
pub fn check_deadline() -> Result<(), Error> {
    if IS_SET.get() { check_clock() } else { Ok(()) }
}

#[cold]
fn check_clock() -> Result<(), Error> {
    let Some(Deadline { task, begun, allowed }) = DEADLINE.get() else { return Ok(()) };
    let taken = begun.elapsed();
    let cancelled = CANCELLED.get();
    // SAFETY: `run_unless` borrows the flag until it has restored the enclosing one.
    let is_cancelled = !cancelled.is_null() && unsafe { (*cancelled).load(Ordering::Relaxed) };
    if taken < allowed && !is_cancelled {
        Ok(())
    } else {
        Err(Error::Deadline { task, taken, allowed })
    }
}

/// A step counter that checks the deadline now and then; past the deadline, at every step.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeadlineTicks(u32);

impl DeadlineTicks {
    /// Counts steps, and checks the deadline after each `every` of them.
    ///
    /// # Errors
    ///
    /// [`Error::Deadline`].
    #[inline]
    pub fn tick(&mut self, steps: usize, every: u32) -> Result<(), Error> {
        self.0 = self.0.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if self.0 < every {
            return Ok(());
        }
        check_deadline()?;
        self.0 = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(allowed: Duration) -> Deadline {
        Deadline::starting_now("wait", allowed)
    }

    #[test]
    fn work_fails_after_its_deadline_and_only_under_it() {
        assert_eq!(check_deadline(), Ok(()));
        let late = after(Duration::ZERO).run(check_deadline);
        assert!(matches!(late, Err(Error::Deadline { task: "wait", .. })));
        assert_eq!(after(Duration::from_secs(1000)).run(check_deadline), Ok(()));
        assert_eq!(check_deadline(), Ok(()));
    }

    #[test]
    fn the_earliest_of_nested_deadlines_applies() {
        let (soon, late) = (after(Duration::ZERO), after(Duration::from_secs(1000)));
        assert!(soon.run(|| late.run(check_deadline)).is_err());
        assert!(late.run(|| soon.run(check_deadline)).is_err());
        assert!(late.run(check_deadline).is_ok());
        assert!(soon.run(|| without_deadline(check_deadline)).is_ok());
    }

    #[test]
    fn ticks_check_the_deadline_every_few_steps() {
        let mut ticks = DeadlineTicks::default();
        after(Duration::ZERO).run(|| {
            assert!((0..9).all(|_| ticks.tick(1, 10).is_ok()));
            assert!((0..9).all(|_| ticks.tick(1, 10).is_err()));
        });
        assert!(ticks.tick(100, 10).is_ok());
    }
}
