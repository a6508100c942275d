//! A once-cell that is read without a lock and that a fork never leaves half initialized.
//!
//! With `OnceLock`, threads wait while one of them builds the value. If the process forks
//! meanwhile, that thread does not exist in the child, and waiting would never end. Here a thread
//! of the child takes over.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::process_fork;

/// No thread is building the value.
const NOBODY: u64 = 0;
/// Maximum pause between two looks at a value that another thread is building. Chosen, not
/// measured.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// A cell for a value that is set at most once.
pub struct SetOnce<T> {
    value: AtomicPtr<T>,
    /// One more than the fork number of the thread that builds it, or [`NOBODY`].
    maker: AtomicU64,
    /// Neither `Send` nor `Sync` unless said below.
    owned: PhantomData<*mut T>,
}

// SAFETY: the cell owns its `T`, which moves with it.
unsafe impl<T: Send> Send for SetOnce<T> {}
// SAFETY: a shared cell hands out `&T` and takes a `T` that another thread may drop.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}

impl<T> SetOnce<T> {
    /// Creates an empty cell.
    pub const fn new() -> SetOnce<T> {
        let value = AtomicPtr::new(std::ptr::null_mut());
        SetOnce { value, maker: AtomicU64::new(NOBODY), owned: PhantomData }
    }

    /// Returns the value if it is set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: a published value lives as long as the cell.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the value, setting it to the result of `make` if necessary.
    ///
    /// Other threads wait meanwhile, so that expensive tables are not built twice. A child of a
    /// fork does not wait for a thread it lacks: it builds the value itself. If `make` panics, the
    /// next thread tries again. `make` must not access this very value.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.init(make),
        }
    }

    #[cold]
    fn init(&self, make: impl FnOnce() -> T) -> &T {
        process_fork::watch();
        let mut pause = Duration::from_micros(10);
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            let me = u64::from(process_fork::epoch()) + 1;
            let maker = self.maker.load(Ordering::Acquire);
            // A thread that builds it in another epoch belongs to a parent process.
            if maker == me {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            if self.maker.compare_exchange(maker, me, done, failed).is_ok() {
                let _turn = MakerGuard(&self.maker);
                // Another thread may have set it and released its guard since the look above.
                return match self.get() {
                    Some(value) => value,
                    None => self.set(make()),
                };
            }
        }
    }

    /// Sets the value unless there is one, and returns the one that remains. Never waits.
    pub fn set(&self, value: T) -> &T {
        let made = Box::into_raw(Box::new(value));
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        match self.value.compare_exchange(std::ptr::null_mut(), made, done, failed) {
            // SAFETY: it is published now and lives as long as the place.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: nobody else knows it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as above; it is not null.
                unsafe { &*other }
            }
        }
    }
}

/// The right of one thread to build the value, released if that panics.
struct MakerGuard<'a>(&'a AtomicU64);

impl Drop for MakerGuard<'_> {
    fn drop(&mut self) {
        self.0.store(NOBODY, Ordering::Release);
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> SetOnce<T> {
        SetOnce::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> SetOnce<T> {
        let place = SetOnce::new();
        place.set(value);
        place
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> SetOnce<T> {
        self.get().cloned().map_or_else(SetOnce::new, SetOnce::from)
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("SetOnce").field(&self.get()).finish()
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: nobody else has it any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

/// A slice that is allocated once and read without a lock: a building block of growing tables that
/// never move. Never waits: of two threads that build it at once, one drops its own.
pub struct OnceSlice<T> {
    first: AtomicPtr<T>,
    /// Written before `first`, with the same number by every thread that builds it.
    len: AtomicUsize,
    /// Neither `Send` nor `Sync` unless said below.
    owned: PhantomData<*mut T>,
}

// SAFETY: it owns its values, which go along.
unsafe impl<T: Send> Send for OnceSlice<T> {}
// SAFETY: a shared one hands out `&T` and takes values that another thread may drop.
unsafe impl<T: Send + Sync> Sync for OnceSlice<T> {}

impl<T> OnceSlice<T> {
    /// Creates an empty slice.
    pub const fn new() -> OnceSlice<T> {
        let first = AtomicPtr::new(std::ptr::null_mut());
        OnceSlice { first, len: AtomicUsize::new(0), owned: PhantomData }
    }

    /// Returns the values if they are allocated.
    #[inline]
    pub fn get(&self) -> Option<&[T]> {
        let first = self.first.load(Ordering::Acquire);
        if first.is_null() {
            return None;
        }
        // SAFETY: the length was written before the pointer was published, and is that of the
        // slice it points to.
        Some(unsafe { std::slice::from_raw_parts(first, self.len.load(Ordering::Relaxed)) })
    }

    /// Returns the values, setting them to the result of `make` if necessary. `make` always returns
    /// `len` values.
    ///
    /// # Panics
    ///
    /// If `make` returns another number of values.
    pub fn get_or_init(&self, len: usize, make: impl FnOnce() -> Box<[T]>) -> &[T] {
        match self.get() {
            Some(values) => values,
            None => self.init(len, make()),
        }
    }

    #[cold]
    fn init(&self, len: usize, made: Box<[T]>) -> &[T] {
        assert_eq!(made.len(), len, "a segment has one length");
        let made = Box::into_raw(made);
        self.len.store(len, Ordering::Relaxed);
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        let null = std::ptr::null_mut();
        match self.first.compare_exchange(null, made.cast(), done, failed) {
            // SAFETY: it is published now and lives as long as the segment.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: nobody else knows it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: it is not null, and of the same length.
                unsafe { std::slice::from_raw_parts(other, len) }
            }
        }
    }
}

impl<T> Default for OnceSlice<T> {
    fn default() -> OnceSlice<T> {
        OnceSlice::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceSlice<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Segment").field(&self.get()).finish()
    }
}

impl<T> Drop for OnceSlice<T> {
    fn drop(&mut self) {
        let (first, len) = (*self.first.get_mut(), *self.len.get_mut());
        if !first.is_null() {
            // SAFETY: it came from a box of this length, and nobody else has it any more.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, len)) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_value_is_set_once_and_dropped_once() {
        let one = Arc::new(1);
        let place = SetOnce::new();
        assert!(place.get().is_none());
        assert_eq!(**place.get_or_init(|| Arc::clone(&one)), 1);
        assert_eq!(**place.get_or_init(|| unreachable!()), 1);
        assert_eq!(**place.set(Arc::new(2)), 1);
        assert_eq!(Arc::strong_count(&one), 2);
        assert_eq!(Arc::strong_count(place.clone().get().unwrap()), 3);
        drop(place);
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[test]
    fn threads_that_build_a_slice_concurrently_share_one() {
        let segment: OnceSlice<Arc<u8>> = OnceSlice::new();
        let one = Arc::new(1);
        let make = || vec![Arc::clone(&one); 3].into_boxed_slice();
        assert!(segment.get().is_none());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(segment.get_or_init(3, make).len(), 3));
            }
        });
        assert_eq!((segment.get().unwrap().len(), Arc::strong_count(&one)), (3, 4));
        drop(segment);
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[test]
    fn threads_wait_for_the_one_that_builds_the_value() {
        let (place, made) = (SetOnce::new(), AtomicUsize::new(0));
        let make = || {
            std::thread::sleep(Duration::from_millis(20));
            made.fetch_add(1, Ordering::SeqCst)
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(*place.get_or_init(make), 0));
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_value_whose_builder_was_lost_in_a_fork_is_built_anew() {
        let place = SetOnce::new();
        // The state a child finds: a thread of another epoch has begun.
        place.maker.store(u64::from(process_fork::epoch()) + 2, Ordering::Release);
        assert_eq!(*place.get_or_init(|| 5), 5);
    }

    #[test]
    fn after_a_panic_another_thread_can_build_the_value() {
        let place = SetOnce::new();
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            place.get_or_init(|| panic!("not today"));
        }));
        assert!(failed.is_err());
        assert_eq!(*place.get_or_init(|| 7), 7);
    }
}
