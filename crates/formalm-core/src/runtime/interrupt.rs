//! Interrupts of long work, at points where it holds no lock.
//!
//! The owner that is asked may wait for the interpreter's lock, whose holder may wait for a
//! machine. So a machine asks only between two of its own locks, and only where the caller
//! guarantees that nothing above holds one. [`with_interrupts`] is for machines that are not part
//! of another.

use std::cell::Cell;

use crate::Error;

type InterruptCallback = *mut dyn FnMut() -> bool;

thread_local! {
    static ASK: Cell<Option<InterruptCallback>> = const { Cell::new(None) };
}

/// Runs `work`, in which `check_interrupt` asks `wanted`. It must hold no lock that the owner may
/// wait for.
pub fn with_interrupts<T>(wanted: &mut dyn FnMut() -> bool, work: impl FnOnce() -> T) -> T {
    // SAFETY: only the lifetime is erased, and the pointer is dropped before this function returns.
    let ask = unsafe { std::mem::transmute::<&mut dyn FnMut() -> bool, InterruptCallback>(wanted) };
    let _restore = RestoreCallback(ASK.replace(Some(ask)));
    work()
}

/// Runs `work` without interrupts.
pub fn without_interrupts<T>(work: impl FnOnce() -> T) -> T {
    let _restore = RestoreCallback(ASK.take());
    work()
}

/// Restores the enclosing callback when dropped.
struct RestoreCallback(Option<InterruptCallback>);

impl Drop for RestoreCallback {
    fn drop(&mut self) {
        ASK.set(self.0);
    }
}

/// Returns `true` if an owner can be asked.
#[inline]
pub fn is_interruptible() -> bool {
    ASK.get().is_some()
}

/// Asks the owner, if there is one, whether the work is still wanted.
pub fn check_interrupt() -> Result<(), Error> {
    // The callback is not asked recursively.
    let Some(ask) = ASK.take() else { return Ok(()) };
    // SAFETY: `with_interrupts` lends the callback to this thread until it returns, and nobody else
    // uses it.
    let wanted = unsafe { (*ask)() };
    ASK.set(Some(ask));
    if wanted { Ok(()) } else { Err(Error::Interrupted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_its_owner_cancels_it() {
        let mut left = 3;
        let mut wanted = || {
            left -= 1;
            left > 0
        };
        let done = with_interrupts(&mut wanted, || {
            assert!(is_interruptible());
            (check_interrupt(), check_interrupt(), check_interrupt())
        });
        assert_eq!(done, (Ok(()), Ok(()), Err(Error::Interrupted)));
        assert!(!is_interruptible() && check_interrupt() == Ok(()));
    }
}
