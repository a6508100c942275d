//! Values that one thread at a time works with, found free or busy at less cost than by a mutex.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// A value that is somebody's turn or nobody's.
///
/// A mutex costs two atomic exchanges, which is a good part of the time that a known mask takes.
/// Turns are taken and given back by threads that are attached to the interpreter: with its lock
/// no other thread is at it meanwhile, and a plain load and store do.
pub(crate) struct Turns<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value, as with a mutex.
unsafe impl<T: Send> Sync for Turns<T> {}

/// A turn, given back when it is dropped.
///
/// It is neither sent to another thread nor shared, so code that runs without the interpreter's
/// lock gets what is in it at most, and the turn ends where the thread is attached.
pub(crate) struct Turn<'a, T> {
    of: &'a Turns<T>,
    attached: PhantomData<Python<'a>>,
}

impl<T> Turns<T> {
    pub(crate) fn new(value: T) -> Turns<T> {
        Turns { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// A turn, or none while somebody has it.
    #[inline]
    pub(crate) fn take<'a>(&'a self, _attached: Python<'a>) -> Option<Turn<'a, T>> {
        let is_taken = if cfg!(Py_GIL_DISABLED) {
            self.taken.swap(true, Ordering::Acquire)
        } else {
            let is_taken = self.taken.load(Ordering::Acquire);
            self.taken.store(true, Ordering::Relaxed);
            is_taken
        };
        if is_taken { None } else { Some(Turn { of: self, attached: PhantomData }) }
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.of.taken.store(false, Ordering::Release);
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the turn is this one's.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Turn<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the turn is this one's.
        unsafe { &mut *self.of.value.get() }
    }
}
