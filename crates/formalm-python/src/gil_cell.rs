//! A cell that one thread at a time borrows, protected by the interpreter lock and cheaper than a
//! mutex.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// A value with an exclusive borrow flag.
///
/// A mutex costs two atomic exchanges, a substantial part of the time of a cached mask. Borrows
/// begin and end in threads attached to the interpreter: with its lock no other thread runs in
/// between, and a plain load and store suffice.
pub(crate) struct GilCell<T: ?Sized> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value, as with a mutex.
unsafe impl<T: Send + ?Sized> Sync for GilCell<T> {}

/// An exclusive borrow, released when dropped.
///
/// It is neither sent to another thread nor shared. Code that runs without the interpreter lock
/// gets at most its content, and the borrow ends in an attached thread.
pub(crate) struct GilGuard<'a, T: ?Sized> {
    of: &'a GilCell<T>,
    attached: PhantomData<Python<'a>>,
}

impl<T> GilCell<T> {
    pub(crate) fn new(value: T) -> GilCell<T> {
        GilCell { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }
}

impl<T: ?Sized> GilCell<T> {
    /// Borrows the value, or returns `None` while it is borrowed.
    #[inline]
    pub(crate) fn take<'a>(&'a self, _attached: Python<'a>) -> Option<GilGuard<'a, T>> {
        let is_taken = if cfg!(Py_GIL_DISABLED) {
            self.taken.swap(true, Ordering::Acquire)
        } else {
            let is_taken = self.taken.load(Ordering::Acquire);
            self.taken.store(true, Ordering::Relaxed);
            is_taken
        };
        if is_taken { None } else { Some(GilGuard { of: self, attached: PhantomData }) }
    }
}

impl<T: ?Sized> Drop for GilGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.of.taken.store(false, Ordering::Release);
    }
}

impl<T: ?Sized> Deref for GilGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the borrow.
        unsafe { &*self.of.value.get() }
    }
}

impl<T: ?Sized> DerefMut for GilGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the borrow.
        unsafe { &mut *self.of.value.get() }
    }
}
