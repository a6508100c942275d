//! Long work that may be interrupted where it holds no lock.
//!
//! Whoever is asked may wait for the interpreter's lock, whose holder may wait for a machine. So a
//! machine asks between two of its own locks only, and only where the caller vouches that nothing
//! above holds one: [`while_asking`] is for machines that are not part of another.

use std::cell::Cell;

use crate::error::Error;

type InterruptCallback = *mut dyn FnMut() -> bool;

thread_local! {
    static ASK: Cell<Option<InterruptCallback>> = const { Cell::new(None) };
}

/// Does `work`, in which [`ask`] asks `wanted`. It must hold no lock that whoever is asked waits for.
pub fn while_asking<T>(wanted: &mut dyn FnMut() -> bool, work: impl FnOnce() -> T) -> T {
    // SAFETY: the lifetime is forgotten only, and the pointer with it before this function returns.
    let ask = unsafe { std::mem::transmute::<&mut dyn FnMut() -> bool, InterruptCallback>(wanted) };
    let _restore = RestoreCallback(ASK.replace(Some(ask)));
    work()
}

/// Does `work`, in which nobody is asked.
pub(crate) fn without_interrupts<T>(work: impl FnOnce() -> T) -> T {
    let _restore = RestoreCallback(ASK.take());
    work()
}

/// Who is asked again when it is dropped.
struct RestoreCallback(Option<InterruptCallback>);

impl Drop for RestoreCallback {
    fn drop(&mut self) {
        ASK.set(self.0);
    }
}

/// Returns `true` if somebody is to be asked.
#[inline]
pub(crate) fn is_interruptible() -> bool {
    ASK.get().is_some()
}

/// Asks whether the work is still wanted, if anybody is to be asked.
pub(crate) fn check_interrupt() -> Result<(), Error> {
    // It is not asked by itself.
    let Some(ask) = ASK.take() else { return Ok(()) };
    // SAFETY: `while_asking` lends it to this thread until it returns, and nobody else uses it.
    let wanted = unsafe { (*ask)() };
    ASK.set(Some(ask));
    if wanted { Ok(()) } else { Err(Error::Interrupted) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_it_is_no_longer_wanted() {
        let mut left = 3;
        let mut wanted = || {
            left -= 1;
            left > 0
        };
        let done = while_asking(&mut wanted, || {
            assert!(is_interruptible());
            (check_interrupt(), check_interrupt(), check_interrupt())
        });
        assert_eq!(done, (Ok(()), Ok(()), Err(Error::Interrupted)));
        assert!(!is_interruptible() && check_interrupt() == Ok(()));
    }
}
