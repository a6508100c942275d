//! Deadlines: work of a thread that ends with an error once its time is up.
//!
//! A deadline belongs to a thread, so no function passes one on and a step without one pays a
//! predictable branch. Work checks it where it counts steps (derivatives, formulas, stacks) and at
//! the nodes of tries. Unlike an interrupt ([`crate::runtime::interrupt`]) it asks nobody, so it may end a
//! step in the midst of a machine's lock: a deadline is like a limit of steps, but for that nothing
//! is kept of what it cut short.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::error::Error;

/// The time that a task may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// Name of the task in messages: a verb.
    pub task: &'static str,
    /// Start of the task.
    pub begun: Instant,
    /// Time that the task may take from there on.
    pub allowed: Duration,
}

thread_local! {
    static DEADLINE: Cell<Option<Deadline>> = const { Cell::new(None) };
    // Read alone where there is no deadline.
    static IS_SET: Cell<bool> = const { Cell::new(false) };
}

impl Deadline {
    /// A deadline for a task that begins now.
    pub fn starting_now(task: &'static str, allowed: Duration) -> Deadline {
        Deadline { task, begun: Instant::now(), allowed }
    }

    /// Does `work` under this deadline. A deadline around it that ends sooner holds instead.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let _restore = enter(self);
        work()
    }

    fn ends_before(&self, other: &Deadline) -> bool {
        let left = |one: &Deadline| one.allowed.saturating_sub(one.begun.elapsed());
        left(self) < left(other)
    }
}

/// Puts this thread under a deadline until the result is dropped.
pub fn enter(deadline: Deadline) -> Restore {
    let around = DEADLINE.get();
    Restore::set(Some(around.filter(|one| one.ends_before(&deadline)).unwrap_or(deadline)), around)
}

/// Does `work` under no deadline: work that is bounded by itself and keeps what a failure leaves.
pub fn suspended<T>(work: impl FnOnce() -> T) -> T {
    let _restore = Restore::set(None, DEADLINE.get());
    work()
}

/// The deadline before, restored on drop.
#[derive(Debug)]
pub struct Restore(Option<Deadline>);

impl Restore {
    fn set(deadline: Option<Deadline>, before: Option<Deadline>) -> Restore {
        DEADLINE.set(deadline);
        IS_SET.set(deadline.is_some());
        Restore(before)
    }
}

impl Drop for Restore {
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
    if taken < allowed { Ok(()) } else { Err(Error::Deadline { task, taken, allowed }) }
}

/// Counts steps of work and checks the deadline now and then; past the deadline, at each.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeadlineTicks(u32);

impl DeadlineTicks {
    /// Notes steps; checks the deadline after each `every` of them.
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
    fn work_fails_once_its_time_is_up_and_only_there() {
        assert_eq!(check_deadline(), Ok(()));
        let late = after(Duration::ZERO).during(check_deadline);
        assert!(matches!(late, Err(Error::Deadline { task: "wait", .. })));
        assert_eq!(after(Duration::from_secs(1000)).during(check_deadline), Ok(()));
        assert_eq!(check_deadline(), Ok(()));
    }

    #[test]
    fn the_deadline_that_ends_first_holds() {
        let (soon, late) = (after(Duration::ZERO), after(Duration::from_secs(1000)));
        assert!(soon.during(|| late.during(check_deadline)).is_err());
        assert!(late.during(|| soon.during(check_deadline)).is_err());
        assert!(late.during(check_deadline).is_ok());
        assert!(soon.during(|| suspended(check_deadline)).is_ok());
    }

    #[test]
    fn the_deadline_is_checked_after_some_steps() {
        let mut ticks = DeadlineTicks::default();
        after(Duration::ZERO).during(|| {
            assert!((0..9).all(|_| ticks.tick(1, 10).is_ok()));
            assert!((0..9).all(|_| ticks.tick(1, 10).is_err()));
        });
        assert!(ticks.tick(100, 10).is_ok());
    }
}
