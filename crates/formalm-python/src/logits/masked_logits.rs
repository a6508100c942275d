//! `masked_scores`: masked copies of a batch of logits.

use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors;
use crate::logits::numpy_bitmasks::disallow;
use crate::matcher::Matcher;

/// Returns the scores with minus infinity where the row's matcher does not allow the token, and the
/// maximum of each row (NaN if an allowed score is NaN). A row without a matcher allows nothing.
#[pyfunction]
pub(crate) fn masked_scores<'py>(
    py: Python<'py>,
    matchers: Vec<Option<PyRef<'py, Matcher>>>,
    scores: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyArray2<f32>>, Vec<f32>)> {
    let hint = Some("pass scores as a C-contiguous float32 array of shape (rows, width)");
    let Ok(scores) = scores.extract::<PyReadonlyArray2<'py, f32>>() else {
        return Err(errors::argument(py, "scores must be a two-dimensional float32 array", hint));
    };
    let &[rows, width] = scores.shape() else {
        return Err(errors::argument(py, "scores must have two dimensions", hint));
    };
    if rows != matchers.len() {
        let message = format!(
            "the number of matchers ({}) must equal the number of rows of scores ({rows})",
            matchers.len()
        );
        return Err(errors::argument(py, &message, None));
    }
    let Ok(given) = scores.as_slice() else {
        return Err(errors::argument(py, "the rows of scores must be contiguous", hint));
    };
    // SAFETY: the new array is filled at once and not shared yet.
    let (result, written) = unsafe {
        let result = PyArray2::<f32>::new(py, [rows, width], false);
        result.data().copy_from_nonoverlapping(given.as_ptr(), given.len());
        let written = std::slice::from_raw_parts_mut(result.data(), given.len());
        (result, written)
    };
    let mut tops = Vec::with_capacity(rows);
    let mut words = Vec::new();
    for (row, matcher) in matchers.iter().enumerate() {
        let place = row * width..(row + 1) * width;
        let written = &mut written[place];
        let Some(matcher) = matcher else {
            written.fill(f32::NEG_INFINITY);
            tops.push(f32::NEG_INFINITY);
            continue;
        };
        let cursor = matcher.take(py)?;
        let cursor = &*cursor;
        words.resize(cursor.constraint().words().max(width.div_ceil(32)), 0);
        words.fill(0);
        matcher.fill(py, cursor, &mut words)?;
        disallow(written, &words, f32::NEG_INFINITY);
        tops.push(greatest(written));
    }
    Ok((result, tops))
}

/// Returns the maximum, or NaN if one of the numbers is NaN.
fn greatest(numbers: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut best = [f32::NEG_INFINITY; LANES];
    let mut has_nan = [0i32; LANES];
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            let number = chunk[lane];
            best[lane] = if number > best[lane] { number } else { best[lane] };
            let is_nan = (number.to_bits() & 0x7FFF_FFFF).cast_signed() > 0x7F80_0000;
            has_nan[lane] |= i32::from(is_nan);
        }
    }
    let nan = has_nan != [0; LANES] || rest.iter().any(|number| number.is_nan());
    let all = best.iter().chain(rest).fold(f32::NEG_INFINITY, |best, &number| best.max(number));
    if nan { f32::NAN } else { all }
}
