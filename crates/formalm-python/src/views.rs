//! Masks as arrays that are not copied: read-only, and one for all positions with the same mask.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use rustc_hash::FxHashMap;

/// Memory for arrays of one constraint.
const LIMIT_BYTES: usize = 1 << 20;

/// Positions whose arrays are remembered: an array is found for a position at once, or else by the
/// number of its mask.
const MOST_POSITIONS: usize = 1 << 15;

/// The arrays of a constraint that were asked for lately.
pub(crate) struct Views {
    kept: Mutex<Kept>,
    array_bytes: usize,
    most: usize,
}

#[derive(Default)]
struct Kept {
    arrays: Vec<Array>,
    /// Places among the arrays, by the numbers of masks.
    masks: FxHashMap<u64, usize>,
    /// The same by positions, with those numbers: in a place there may be another array by now.
    positions: FxHashMap<u64, (usize, u64)>,
    questions: u64,
}

struct Array {
    number: u64,
    array: Py<PyAny>,
    /// When it was asked for last, as the number of the question.
    asked: u64,
}

impl Views {
    /// No arrays yet; of the memory for masks they take a quarter at most.
    pub(crate) fn new(width: usize, memory_limit_bytes: usize) -> Views {
        let array_bytes = 4 * width.div_ceil(32).max(1);
        let most = LIMIT_BYTES.min(memory_limit_bytes / 4) / array_bytes;
        Views { kept: Mutex::default(), array_bytes, most }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The array of a position, if it is remembered.
    #[inline]
    pub(crate) fn at(&self, py: Python<'_>, position: u64) -> Option<Py<PyAny>> {
        let kept = &mut *self.lock();
        let &(place, number) = kept.positions.get(&position)?;
        let array = kept.arrays.get_mut(place).filter(|array| array.number == number)?;
        if !is_as_made(py, &array.array, self.array_bytes) {
            return None;
        }
        kept.questions += 1;
        array.asked = kept.questions;
        Some(array.array.clone_ref(py))
    }

    /// The array of a position whose mask has a number, if there is one.
    pub(crate) fn of(&self, py: Python<'_>, position: u64, number: u64) -> Option<Py<PyAny>> {
        let kept = &mut *self.lock();
        let &place = kept.masks.get(&number)?;
        if !is_as_made(py, &kept.arrays[place].array, self.array_bytes) {
            return None;
        }
        kept.remember(position, place, number);
        kept.questions += 1;
        kept.arrays[place].asked = kept.questions;
        Some(kept.arrays[place].array.clone_ref(py))
    }

    /// Keeps the array of a position whose mask has a number, in place of the one that was asked
    /// for longest ago if there are too many; that one, which no lock may be held over.
    pub(crate) fn keep(&self, position: u64, number: u64, array: Py<PyAny>) -> Option<Py<PyAny>> {
        if self.most == 0 {
            return None;
        }
        self.lock().put(position, number, array, self.most)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let kept = self.lock();
        kept.arrays.len() * self.array_bytes + kept.positions.capacity() * 25
    }
}

impl Kept {
    /// Keeps an array; the one that it takes the place of.
    fn put(
        &mut self,
        position: u64,
        number: u64,
        array: Py<PyAny>,
        most: usize,
    ) -> Option<Py<PyAny>> {
        self.questions += 1;
        let asked = self.questions;
        if let Some(&place) = self.masks.get(&number) {
            let before = std::mem::replace(&mut self.arrays[place].array, array);
            self.arrays[place].asked = asked;
            self.remember(position, place, number);
            return Some(before);
        }
        let array = Array { number, array, asked };
        let (place, before) = if self.arrays.len() < most {
            self.arrays.push(array);
            (self.arrays.len() - 1, None)
        } else {
            let oldest = self.arrays.iter().enumerate().min_by_key(|(_, one)| one.asked);
            let place = oldest.map_or(0, |(place, _)| place);
            let before = std::mem::replace(&mut self.arrays[place], array);
            self.masks.remove(&before.number);
            (place, Some(before.array))
        };
        self.masks.insert(number, place);
        self.remember(position, place, number);
        before
    }

    fn remember(&mut self, position: u64, place: usize, number: u64) {
        if self.positions.len() >= MOST_POSITIONS {
            self.positions.clear();
        }
        self.positions.insert(position, (place, number));
    }
}

/// Whether an array still has the shape and type that it was made with: its words cannot be written
/// to, but these can be set.
#[inline]
fn is_as_made(py: Python<'_>, array: &Py<PyAny>, bytes: usize) -> bool {
    // SAFETY: what is kept are arrays that were made here.
    let array = unsafe { array.bind(py).cast_unchecked::<PyUntypedArray>() };
    // SAFETY: the pointer is that of a living array.
    let descr = unsafe { (*array.as_array_ptr()).fields.descr };
    let is_int = std::ptr::eq(descr, dtype::<i32>(py).as_dtype_ptr());
    is_int && array.shape() == [bytes / 4] && array.strides() == [4]
}

/// An int32 array of words that cannot be made writable.
pub(crate) fn array<'py>(py: Python<'py>, words: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let bytes = PyBytes::new_with(py, 4 * words.len(), |out| {
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(())
    })?;
    let from_buffer = FROM_BUFFER.import(py, "numpy", "frombuffer")?;
    from_buffer.call1((bytes, dtype::<i32>(py)))
}
