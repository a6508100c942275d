//! Forks of the process: a fork counter, and values that belong to one process.
//!
//! A child of `fork` has one thread, the one that called it. The parent's other threads are gone,
//! and what they were about to do stays undone: a pool has no workers, a held lock is never
//! released. State shared by a whole process is therefore rebuilt in a child.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Returns the number of forks between the first process and this one. Equal numbers read in one
/// process mean that no fork lies between. Always 0 on Windows, which has no forks.
#[inline]
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Acquire)
}

/// Starts the fork counter that [`epoch`] reports. Repeated calls have no effect.
///
/// Forks by C code are counted too; those by a bare system call are not.
pub fn watch() {
    static IS_WATCHED: AtomicBool = AtomicBool::new(false);
    if !IS_WATCHED.swap(true, Ordering::AcqRel) {
        register();
    }
}

#[cfg(unix)]
fn register() {
    use std::ffi::c_int;

    type AtForkHandler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: AtForkHandler,
            parent: AtForkHandler,
            child: AtForkHandler,
        ) -> c_int;
    }

    /// Runs in the child, where almost nothing is safe; a store to an atomic is.
    unsafe extern "C" fn child() {
        EPOCH.fetch_add(1, Ordering::AcqRel);
    }

    // SAFETY: the handler has the signature that POSIX requires, and only stores to an atomic. The
    // call fails only without memory for the entry; then forks are not counted, as before the call.
    unsafe { pthread_atfork(None, None, Some(child)) };
}

#[cfg(not(unix))]
fn register() {}

/// A value of the whole process that each child of a fork builds anew.
///
/// No lock is taken: of two threads that build it at once, one drops its own. A child leaks the
/// parent's value, whose locks may be held by threads that are gone, so that dropping it could wait
/// forever.
#[derive(Debug)]
pub struct PerProcess<T> {
    made: AtomicPtr<(u32, T)>,
}

impl<T: Send + Sync + 'static> PerProcess<T> {
    /// Creates a value that is not built yet.
    pub const fn new() -> PerProcess<T> {
        PerProcess { made: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Returns the value of this process if it is built.
    pub fn get(&'static self) -> Option<&'static T> {
        // SAFETY: what was published is never freed.
        let (made_in, value) = unsafe { self.made.load(Ordering::Acquire).as_ref() }?;
        (*made_in == epoch()).then_some(value)
    }

    /// Returns the value of this process, building it if necessary.
    pub fn get_or_init(&'static self, make: impl FnOnce() -> T) -> &'static T {
        watch();
        let (now, known) = (epoch(), self.made.load(Ordering::Acquire));
        // SAFETY: what was published is never freed.
        if let Some((made_in, value)) = unsafe { known.as_ref() }
            && *made_in == now
        {
            return value;
        }
        let made = Box::into_raw(Box::new((now, make())));
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        match self.made.compare_exchange(known, made, done, failed) {
            // SAFETY: it is published now, and never freed.
            Ok(_) => unsafe { &(*made).1 },
            Err(other) => {
                // SAFETY: nobody else knows it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: what was published is never freed, and is of this epoch: only this
                // process's threads can have replaced what was there.
                unsafe { &(*other).1 }
            }
        }
    }
}

impl<T: Send + Sync + 'static> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_value_is_built_once_per_process() {
        static VALUE: PerProcess<usize> = PerProcess::new();
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let value = || VALUE.get_or_init(|| MADE.fetch_add(1, Ordering::SeqCst));
        assert!(std::ptr::eq(value(), value()));
        assert_eq!((*value(), MADE.load(Ordering::SeqCst)), (0, 1));
    }

    #[test]
    fn threads_that_build_a_value_concurrently_share_one() {
        static VALUE: PerProcess<String> = PerProcess::new();
        let ask = || VALUE.get_or_init(|| "made".to_owned()).as_ptr() as usize;
        let found: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|&one| one == found[0]));
    }
}
