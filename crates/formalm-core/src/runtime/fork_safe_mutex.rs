//! A mutex that survives forks: a child never waits for a thread that it does not have.
//!
//! ```text
//!          fork, first use in the child
//!  IN_USE ──────────────────────────────► free? ─ yes ─► IN_USE  the child keeps the value
//!                                           └──── no ──► LOST    never touched again, or replaced
//! ```
//!
//! A thread that holds a lock while another one forks does not exist in the child. Nobody releases
//! the lock there, and the value may be half written. So each lock knows the process that uses it.
//! Its first user in another process checks whether it is free. If so, no thread was changing the
//! value, and the child keeps it. If not, the lock is abandoned: the value is never touched again,
//! not even dropped.
//!
//! The check costs a user two loads and a comparison. Rejected alternatives: a fork handler that
//! takes all locks, which would wait for running computations, and for threads that wait for the
//! interpreter; a count of holders in each lock, which costs two more exchanges per byte.

use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use crate::process_fork;

/// A fork number that never occurs: the original value is not used.
const NEVER: u32 = u32::MAX;

/// A thread is checking whether the lock is abandoned.
const CHECKING: u64 = 0;
/// The value, or its replacement, is in use.
const IN_USE: u64 = 1;
/// The value is lost.
const LOST: u64 = 2;

/// Packs the state of a lock: a process, by its fork number, and what is known of the lock there.
fn state_of(fork: u32, known: u64) -> u64 {
    u64::from(fork) << 2 | known
}

/// A value that one thread at a time uses, in every process of a fork tree.
pub struct ForkSafeMutex<T> {
    /// The fork number in which the original value is known to be intact.
    ready_in: AtomicU32,
    mutex: ManuallyDrop<Mutex<T>>,
    /// See [`state_of`].
    state: AtomicU64,
    /// The replacement, once the original value is lost.
    replacement: AtomicPtr<Mutex<T>>,
    /// Number of times that the value was lost.
    losses: AtomicU32,
    /// Builds a replacement.
    make_replacement: Option<fn() -> T>,
}

// SAFETY: it owns its values, as a mutex does, and hands them to one thread at a time.
unsafe impl<T: Send> Send for ForkSafeMutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ForkSafeMutex<T> {}

impl<T> ForkSafeMutex<T> {
    /// Creates a lock for a value that others hold references into. In a child of a fork its owner
    /// must check [`ForkSafeMutex::is_abandoned`] and rebuild everything in that case.
    pub fn new(value: T) -> ForkSafeMutex<T> {
        ForkSafeMutex::of(value, None)
    }

    fn of(value: T, anew: Option<fn() -> T>) -> ForkSafeMutex<T> {
        let now = process_fork::epoch();
        ForkSafeMutex {
            ready_in: AtomicU32::new(now),
            mutex: ManuallyDrop::new(Mutex::new(value)),
            state: AtomicU64::new(state_of(now, IN_USE)),
            replacement: AtomicPtr::default(),
            losses: AtomicU32::new(0),
            make_replacement: anew,
        }
    }

    /// Locks the value. A poisoned lock is used as it is: every user leaves the value consistent
    /// between any two calls that may panic.
    ///
    /// # Panics
    ///
    /// If the value is lost and cannot be replaced. The alternative would be to wait forever, where
    /// an owner forgot to check [`ForkSafeMutex::is_abandoned`].
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if self.ready_in.load(Ordering::Acquire) == process_fork::epoch() {
            self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
        } else {
            self.lock_elsewhere()
        }
    }

    #[cold]
    fn lock_elsewhere(&self) -> MutexGuard<'_, T> {
        match self.mutex_here() {
            Some(mutex) => mutex.lock().unwrap_or_else(PoisonError::into_inner),
            None => panic!("a thread that did not survive a fork of the process was at work on it"),
        }
    }

    /// Returns `true` if another thread was changing the value when the process forked, so that
    /// this process cannot use it. Never waits.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        self.ready_in.load(Ordering::Acquire) != process_fork::epoch()
            && self.mutex_here().is_none()
    }

    /// Returns how often the value was lost and replaced.
    pub fn losses(&self) -> u32 {
        if self.ready_in.load(Ordering::Acquire) != process_fork::epoch() {
            self.mutex_here();
        }
        self.losses.load(Ordering::Relaxed)
    }

    /// Returns the mutex to use in this process, or `None` if the value is lost.
    fn mutex_here(&self) -> Option<&Mutex<T>> {
        let now = process_fork::epoch();
        loop {
            let known = self.state.load(Ordering::Acquire);
            if known == state_of(now, IN_USE) {
                return Some(self.mutex_in_use());
            } else if known == state_of(now, LOST) {
                return None;
            } else if known == state_of(now, CHECKING) {
                // Another thread of this process is checking and does not wait itself.
                std::thread::sleep(Duration::from_micros(10));
                continue;
            }
            let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            let asking = state_of(now, CHECKING);
            if self.state.compare_exchange(known, asking, done, failed).is_ok() {
                let found = self.adopt(now);
                self.state.store(state_of(now, found), Ordering::Release);
            }
        }
    }

    fn mutex_in_use(&self) -> &Mutex<T> {
        // SAFETY: what was published is freed with the lock.
        unsafe { self.replacement.load(Ordering::Acquire).as_ref() }.unwrap_or(&self.mutex)
    }

    /// Checks whether the value is intact. No other thread of this process uses it meanwhile.
    fn adopt(&self, now: u32) -> u64 {
        if is_free(self.mutex_in_use()) {
            let is_in_place = self.replacement.load(Ordering::Acquire).is_null();
            self.ready_in.store(if is_in_place { now } else { NEVER }, Ordering::Release);
            return IN_USE;
        }
        self.losses.fetch_add(1, Ordering::Relaxed);
        let Some(anew) = self.make_replacement else { return LOST };
        let made = Box::into_raw(Box::new(Mutex::new(anew())));
        // A lost value is leaked.
        self.replacement.store(made, Ordering::Release);
        IN_USE
    }
}

/// Returns `true` if nobody holds a mutex.
fn is_free<T>(mutex: &Mutex<T>) -> bool {
    !matches!(mutex.try_lock(), Err(TryLockError::WouldBlock))
}

/// A lock for a value that may be discarded at any time, such as a cache. A child of a fork that
/// cannot use it starts with an empty one.
impl<T: Default> Default for ForkSafeMutex<T> {
    fn default() -> ForkSafeMutex<T> {
        ForkSafeMutex::of(T::default(), Some(T::default))
    }
}

impl<T> Drop for ForkSafeMutex<T> {
    fn drop(&mut self) {
        let instead = *self.replacement.get_mut();
        if !is_free(self.mutex_in_use()) {
            return;
        }
        if instead.is_null() {
            // SAFETY: nobody uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.mutex) };
        } else {
            // SAFETY: it comes from a box, and nobody else has it.
            drop(unsafe { Box::from_raw(instead) });
        }
    }
}

impl<T> fmt::Debug for ForkSafeMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// A check whether the values of several locks are intact in this process, done once per process.
#[derive(Debug)]
pub struct ForkCheck {
    /// The fork number in which they are known to be intact.
    done_in: AtomicU32,
}

impl ForkCheck {
    /// Creates the check for values that were just built.
    pub fn new() -> ForkCheck {
        ForkCheck { done_in: AtomicU32::new(process_fork::epoch()) }
    }

    /// Returns `true` if a value is abandoned; `look` finds out where that is unknown.
    #[inline]
    pub fn is_abandoned(&self, look: impl FnOnce() -> bool) -> bool {
        let now = process_fork::epoch();
        if self.done_in.load(Ordering::Acquire) == now {
            return false;
        }
        let is_abandoned = look();
        if !is_abandoned {
            self.done_in.store(now, Ordering::Release);
        }
        is_abandoned
    }
}

impl Default for ForkCheck {
    fn default() -> ForkCheck {
        ForkCheck::new()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts drops.
    #[derive(Default)]
    struct DropCounter(Vec<u32>, Option<Arc<AtomicUsize>>);

    impl Drop for DropCounter {
        fn drop(&mut self) {
            if let Some(dropped) = &self.1 {
                dropped.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Puts a lock into the state that a child of a fork finds.
    fn forked<T>(lock: &ForkSafeMutex<T>) {
        lock.ready_in.store(NEVER - 1, Ordering::SeqCst);
        lock.state.store(state_of(NEVER - 1, IN_USE), Ordering::SeqCst);
    }

    #[test]
    fn a_child_keeps_values_that_no_thread_held() {
        for lock in [ForkSafeMutex::new(vec![1]), ForkSafeMutex::default()] {
            lock.lock().push(2);
            let before = lock.lock().clone();
            forked(&lock);
            assert!(!lock.is_abandoned());
            assert_eq!(*lock.lock(), before);
            assert_eq!(lock.losses(), 0);
        }
    }

    #[test]
    fn a_child_does_not_wait_for_a_lock_held_during_the_fork() {
        let dropped = Arc::new(AtomicUsize::new(0));
        let lock = ForkSafeMutex::new(DropCounter(vec![1], Some(Arc::clone(&dropped))));
        std::mem::forget(lock.lock());
        forked(&lock);
        assert!(lock.is_abandoned());
        // A child of the child does not wait either.
        forked(&lock);
        assert!(lock.is_abandoned());
        drop(lock);
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_cache_held_during_the_fork_starts_empty() {
        let lock = ForkSafeMutex::<DropCounter>::default();
        let dropped = Arc::new(AtomicUsize::new(0));
        lock.lock().1 = Some(Arc::clone(&dropped));
        std::mem::forget(lock.lock());
        for generation in 1..3 {
            forked(&lock);
            assert!(!lock.is_abandoned());
            assert!(lock.lock().0.is_empty());
            lock.lock().0.push(7);
            forked(&lock);
            assert_eq!(lock.lock().0, [7]);
            assert_eq!(lock.losses(), generation);
            if generation == 1 {
                std::mem::forget(lock.lock());
            }
        }
        lock.lock().1 = Some(Arc::clone(&dropped));
        drop(lock);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn threads_of_a_child_check_a_lock_concurrently() {
        for _ in 0..50 {
            let lock = ForkSafeMutex::new(0);
            forked(&lock);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        assert!(!lock.is_abandoned());
                        *lock.lock() += 1;
                    });
                }
            });
            assert_eq!(*lock.lock(), 8);
        }
    }
}
