//! Zero-copy access to NumPy bitmasks and logits, and `apply_bitmask`.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;

use crate::errors;

/// `NPY_ARRAY_WRITEABLE`.
const NPY_ARRAY_WRITEABLE: std::ffi::c_int = 0x0400;

/// `NPY_INT`, which has 32 bits on every platform that NumPy supports.
const NPY_INT: std::ffi::c_int = 5;

/// A row of a writable int32 bitmask array.
///
/// The words are written while the interpreter lock may be released. As with every array, the
/// caller makes sure that no other thread writes to them meanwhile.
pub(crate) struct BitmaskRow {
    start: *mut u32,
    words: usize,
}

// SAFETY: a row points into memory that its array keeps alive for the duration of the call.
unsafe impl Send for BitmaskRow {}

impl BitmaskRow {
    /// Returns the words of the row.
    ///
    /// # Safety
    ///
    /// The array the row was taken from must be alive, and no other row taken from the same place
    /// may be in use.
    pub(crate) unsafe fn words(&mut self) -> &mut [u32] {
        // SAFETY: `bitmask` checked type, contiguity and bounds; the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.words) }
    }
}

/// A checked two-dimensional (or one-dimensional) int32 array.
pub(crate) struct BitmaskArray {
    start: *mut u8,
    rows: usize,
    stride: isize,
    words: usize,
}

impl BitmaskArray {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn row(&self, py: Python<'_>, row: usize, needed: usize) -> PyResult<BitmaskRow> {
        if row >= self.rows {
            let message =
                format!("row {row} is out of range for a bitmask with {} rows", self.rows);
            return Err(errors::argument(py, &message, None));
        }
        if self.words < needed {
            let message =
                format!("a bitmask row must have at least {needed} words, got {}", self.words);
            return Err(errors::argument(
                py,
                &message,
                Some("create the bitmask with new_bitmask(rows, width)"),
            ));
        }
        // SAFETY: `row` is one of the array's rows.
        let start = unsafe { self.start.offset(self.stride * row as isize) };
        Ok(BitmaskRow { start: start.cast(), words: self.words })
    }
}

/// Checks an int32 array; `writable` if it will be written to.
pub(crate) fn bitmask(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    writable: bool,
) -> PyResult<BitmaskArray> {
    match array.cast::<PyUntypedArray>() {
        Ok(array) => bitmask_of(array, writable),
        Err(_) => Err(no_bitmask(py, "must be a NumPy array")),
    }
}

fn no_bitmask(py: Python<'_>, what: &str) -> PyErr {
    let hint = "pass a C-contiguous int32 array of shape (rows, words) or (words,)";
    errors::argument(py, &format!("the bitmask {what}"), Some(hint))
}

/// Checks an object that is known to be an array.
pub(crate) fn bitmask_of(
    array: &Bound<'_, PyUntypedArray>,
    writable: bool,
) -> PyResult<BitmaskArray> {
    let py = array.py();
    let wrong = |what: &str| no_bitmask(py, what);
    let kind = array.dtype();
    let plain = kind.num() == NPY_INT && kind.is_native_byteorder() == Some(true);
    if !plain && !kind.is_equiv_to(&dtype::<i32>(py)) {
        return Err(wrong("must be of type int32"));
    }
    let (shape, strides) = (array.shape(), array.strides());
    let (rows, words, stride, step) = match (shape, strides) {
        (&[words], &[step]) => (1, words, 0, step),
        (&[rows, words], &[stride, step]) => (rows, words, stride, step),
        _ => return Err(wrong("must have one or two dimensions")),
    };
    if step != 4 && words > 1 {
        return Err(wrong("must have contiguous rows"));
    }
    // SAFETY: the pointer is that of a living array.
    let (flags, start) = unsafe {
        let raw = array.as_array_ptr();
        ((*raw).fields.flags, (*raw).fields.data.cast::<u8>())
    };
    if writable && flags & NPY_ARRAY_WRITEABLE == 0 {
        return Err(wrong("must be writable"));
    }
    if start.align_offset(4) != 0 || stride % 4 != 0 {
        return Err(wrong("must be aligned"));
    }
    Ok(BitmaskArray { start, rows, stride, words })
}

/// The element types of logits.
#[derive(Clone, Copy)]
enum FloatType {
    Half,
    Single,
    Double,
}

/// Sets disallowed logits to minus infinity in place.
#[pyfunction]
pub(crate) fn apply_bitmask(
    py: Python<'_>,
    logits: &Bound<'_, PyAny>,
    bitmask: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let masks = self::bitmask(py, bitmask, false)?;
    let wrong = |what: &str| {
        let hint = "pass a writable float16, float32 or float64 array of shape (rows, width)";
        errors::argument(py, &format!("the logits {what}"), Some(hint))
    };
    let Ok(array) = logits.cast::<PyUntypedArray>() else {
        return Err(wrong("must be a NumPy array"));
    };
    let kind = array.dtype();
    let float = match (kind.kind(), kind.itemsize(), kind.is_native_byteorder()) {
        (b'f', 2, Some(true)) => FloatType::Half,
        (b'f', 4, Some(true)) => FloatType::Single,
        (b'f', 8, Some(true)) => FloatType::Double,
        _ => return Err(wrong("must have a native float type")),
    };
    let (rows, width, stride, step) = match (array.shape(), array.strides()) {
        (&[width], &[step]) => (1, width, 0, step),
        (&[rows, width], &[stride, step]) => (rows, width, stride, step),
        _ => return Err(wrong("must have one or two dimensions")),
    };
    if rows != masks.rows() {
        let message = format!(
            "logits and bitmask must have the same number of rows, got {rows} and {}",
            masks.rows()
        );
        return Err(errors::argument(py, &message, None));
    }
    // SAFETY: the pointer is that of a living array.
    let (flags, start) = unsafe {
        let raw = array.as_array_ptr();
        ((*raw).fields.flags, (*raw).fields.data.cast::<u8>())
    };
    if flags & NPY_ARRAY_WRITEABLE == 0 {
        return Err(wrong("must be writable"));
    }
    let row_of = LogitRow { start, step, width };
    for row in 0..rows {
        let mut mask = masks.row(py, row, 0)?;
        // SAFETY: the array is alive, writable and held by the interpreter lock; `row` is within
        // its shape, and strides are the array's own.
        unsafe {
            let words = mask.words();
            let cells = row_of.moved(stride * row as isize);
            match float {
                FloatType::Half => cells.disallow::<u16>(words, 0xFC00),
                FloatType::Single => cells.disallow(words, f32::NEG_INFINITY),
                FloatType::Double => cells.disallow(words, f64::NEG_INFINITY),
            }
        }
    }
    Ok(())
}

/// A row of logits in memory.
#[derive(Clone, Copy)]
struct LogitRow {
    start: *mut u8,
    /// Distance from one logit to the next, in bytes.
    step: isize,
    width: usize,
}

impl LogitRow {
    fn moved(self, bytes: isize) -> LogitRow {
        LogitRow { start: self.start.wrapping_offset(bytes), ..self }
    }

    /// Writes `low` where `words` has no bit. Logits beyond the bitmask belong to no token.
    ///
    /// # Safety
    ///
    /// The row is alive, writable, of type `T`, and not in use elsewhere.
    unsafe fn disallow<T: Copy>(self, words: &[u32], low: T) {
        let size = size_of::<T>();
        if self.step == size as isize && self.start.align_offset(align_of::<T>()) == 0 {
            // SAFETY: the row is contiguous and aligned.
            let row = unsafe { std::slice::from_raw_parts_mut(self.start.cast::<T>(), self.width) };
            disallow(row, words, low);
            return;
        }
        for token in 0..self.width {
            let allowed = words.get(token >> 5).is_some_and(|word| word >> (token & 31) & 1 != 0);
            if !allowed {
                // SAFETY: `token` is within the row.
                unsafe {
                    let place = self.start.offset(self.step * token as isize);
                    place.cast::<T>().write_unaligned(low);
                }
            }
        }
    }
}

/// Writes `low` where `words` has no bit. Elements beyond the bitmask belong to no token.
pub(crate) fn disallow<T: Copy>(row: &mut [T], words: &[u32], low: T) {
    let known = row.len().min(words.len() * 32);
    let (known, beyond) = row.split_at_mut(known);
    beyond.fill(low);
    for (cells, &word) in known.chunks_mut(32).zip(words) {
        match word {
            u32::MAX => {}
            0 => cells.fill(low),
            // Every element is written: without a branch the compiler vectorizes the loop.
            _ => cells.iter_mut().zip(BITS).for_each(|(cell, bit)| {
                *cell = if word & bit != 0 { *cell } else { low };
            }),
        }
    }
}

/// The bits of a word, lowest first.
const BITS: [u32; 32] = {
    let mut bits = [0; 32];
    let mut at = 0;
    while at < 32 {
        bits[at] = 1 << at;
        at += 1;
    }
    bits
};
