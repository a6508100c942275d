//! NumPy arrays without copies.

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::prelude::*;

use crate::errors;

/// `NPY_ARRAY_WRITEABLE`.
const WRITEABLE: std::ffi::c_int = 0x0400;

/// A row of a writable int32 bitmask array.
///
/// The words are written while the interpreter lock may be released; as with every array, that
/// nobody else writes to them meanwhile is up to the caller.
pub(crate) struct Row {
    start: *mut u32,
    words: usize,
}

// SAFETY: a row is a place in memory that its array keeps alive for the duration of the call.
unsafe impl Send for Row {}

impl Row {
    /// The words of the row.
    ///
    /// # Safety
    ///
    /// The array the row was taken from must be alive, and no other row taken from the same
    /// place may be in use.
    pub(crate) unsafe fn words(&mut self) -> &mut [u32] {
        // SAFETY: `bitmask` checked type, contiguity and bounds; the caller answers for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.words) }
    }
}

/// A checked two-dimensional (or one-dimensional) int32 array.
pub(crate) struct Bitmask {
    start: *mut u8,
    rows: usize,
    stride: isize,
    words: usize,
}

impl Bitmask {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn row(&self, py: Python<'_>, row: usize, needed: usize) -> PyResult<Row> {
        if row >= self.rows {
            let message = format!("row {row} of a bitmask with {} rows", self.rows);
            return Err(errors::argument(py, &message, None));
        }
        if self.words < needed {
            let message = format!("a row needs {needed} words, this bitmask has {}", self.words);
            return Err(errors::argument(py, &message, Some("use new_bitmask(rows, width)")));
        }
        // SAFETY: `row` is one of the array's rows.
        let start = unsafe { self.start.offset(self.stride * row as isize) };
        Ok(Row { start: start.cast(), words: self.words })
    }
}

/// Takes an int32 array apart; `writable` if it will be written to.
pub(crate) fn bitmask(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    writable: bool,
) -> PyResult<Bitmask> {
    let wrong = |what: &str| {
        let hint = "a bitmask is a C-contiguous int32 array of shape (rows, words) or (words,)";
        errors::argument(py, &format!("the bitmask {what}"), Some(hint))
    };
    let Ok(array) = array.cast::<PyUntypedArray>() else {
        return Err(wrong("is not a NumPy array"));
    };
    if !array.dtype().is_equiv_to(&dtype::<i32>(py)) {
        return Err(wrong("is not of type int32"));
    }
    let (shape, strides) = (array.shape(), array.strides());
    let (rows, words, stride, step) = match (shape, strides) {
        (&[words], &[step]) => (1, words, 0, step),
        (&[rows, words], &[stride, step]) => (rows, words, stride, step),
        _ => return Err(wrong("does not have one or two dimensions")),
    };
    if step != 4 && words > 1 {
        return Err(wrong("has rows that are not contiguous"));
    }
    // SAFETY: the pointer is that of a living array.
    let (flags, start) = unsafe {
        let raw = array.as_array_ptr();
        ((*raw).fields.flags, (*raw).fields.data.cast::<u8>())
    };
    if writable && flags & WRITEABLE == 0 {
        return Err(wrong("is read-only"));
    }
    if start.align_offset(4) != 0 || stride % 4 != 0 {
        return Err(wrong("is not aligned"));
    }
    Ok(Bitmask { start, rows, stride, words })
}

/// Element types of logits.
#[derive(Clone, Copy)]
enum Float {
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
        let hint = "logits are a writable float16, float32 or float64 array (rows, width)";
        errors::argument(py, &format!("the logits {what}"), Some(hint))
    };
    let Ok(array) = logits.cast::<PyUntypedArray>() else {
        return Err(wrong("are not a NumPy array"));
    };
    let kind = array.dtype();
    let float = match (kind.kind(), kind.itemsize(), kind.is_native_byteorder()) {
        (b'f', 2, Some(true)) => Float::Half,
        (b'f', 4, Some(true)) => Float::Single,
        (b'f', 8, Some(true)) => Float::Double,
        _ => return Err(wrong("are not of a native float type")),
    };
    let (rows, width, stride, step) = match (array.shape(), array.strides()) {
        (&[width], &[step]) => (1, width, 0, step),
        (&[rows, width], &[stride, step]) => (rows, width, stride, step),
        _ => return Err(wrong("do not have one or two dimensions")),
    };
    if rows != masks.rows() {
        let message = format!("{rows} rows of logits, {} rows of bitmask", masks.rows());
        return Err(errors::argument(py, &message, None));
    }
    // SAFETY: the pointer is that of a living array.
    let (flags, start) = unsafe {
        let raw = array.as_array_ptr();
        ((*raw).fields.flags, (*raw).fields.data.cast::<u8>())
    };
    if flags & WRITEABLE == 0 {
        return Err(wrong("are read-only"));
    }
    for row in 0..rows {
        let mut mask = masks.row(py, row, 0)?;
        // SAFETY: the array is alive and the interpreter lock is held.
        let words = unsafe { mask.words() };
        for token in 0..width {
            // Logits beyond the mask belong to no token.
            let allowed = words.get(token >> 5).is_some_and(|word| word >> (token & 31) & 1 != 0);
            if !allowed {
                // SAFETY: `row` and `token` are within the shape, and strides are the array's.
                unsafe {
                    let place = start.offset(stride * row as isize + step * token as isize);
                    match float {
                        Float::Half => place.cast::<u16>().write_unaligned(0xFC00),
                        Float::Single => place.cast::<f32>().write_unaligned(f32::NEG_INFINITY),
                        Float::Double => place.cast::<f64>().write_unaligned(f64::NEG_INFINITY),
                    }
                }
            }
        }
    }
    Ok(())
}
