//! Rows of logits in NumPy arrays: the kernels of `formalm-logits`, and a step of a generation.

use std::cell::RefCell;

use formalm_core::{Error, deadline::Deadline, pool};
use formalm_logits::{
    Allowed, DrawRules, ElementType, Row, RowScan, RowSum, RowSums, Soundness, draw,
};
use numpy::{
    PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors;
use crate::gil_cell::GilGuard;
use crate::interruptible::under;
use crate::matcher::{Cursor, Matcher};

/// Number of logits below which a batch is processed in the caller's thread: other threads take
/// some microseconds to wake.
const PARALLEL_LOGITS: usize = 1 << 16;

/// Largest deviation of a row's sum from 1 where the model returns log-probabilities.
const TOLERANCE: f64 = 1e-3;
/// The same for types of 16 bits.
const TOLERANCE_HALF: f64 = 2e-2;

thread_local! {
    static SCAN: RefCell<RowScan> = RefCell::new(RowScan::default());
}

/// Runs work with this thread's scratch space.
fn with_scan<T>(work: impl FnOnce(&mut RowScan) -> T) -> T {
    SCAN.with(|scan| match scan.try_borrow_mut() {
        Ok(mut scan) => work(&mut scan),
        // Another thread pool's work was stolen within this thread's.
        Err(_) => work(&mut RowScan::default()),
    })
}

/// Returns the type of the elements of an array; none if rows cannot have it.
pub(crate) fn element_type(array: &Bound<'_, PyUntypedArray>) -> Option<ElementType> {
    let kind = array.dtype();
    match (kind.kind(), kind.itemsize(), kind.is_native_byteorder()) {
        (b'f', 2, Some(true)) => Some(ElementType::Float16),
        (b'f', 4, Some(true)) => Some(ElementType::Float32),
        (b'f', 8, Some(true)) => Some(ElementType::Float64),
        (b'u', 2, Some(true)) => Some(ElementType::Bfloat16),
        _ => None,
    }
}

/// Returns the row of a one-dimensional array. An array of uint16 has the bits of bfloat16.
///
/// The array must stay alive, and unchanged, for as long as the row is used.
pub(crate) fn row_of<'a>(array: &'a Bound<'_, PyAny>) -> PyResult<Row<'a>> {
    let py = array.py();
    let wrong = |what: &str| {
        let hint = "pass a contiguous float16, float32 or float64 array of shape (width,)";
        errors::argument(py, &format!("the row {what}"), Some(hint))
    };
    let Ok(array) = array.cast::<PyUntypedArray>() else {
        return Err(wrong("must be a NumPy array"));
    };
    let Some(element) = element_type(array) else {
        return Err(wrong("must have a native floating-point type"));
    };
    let (&[width], &[step]) = (array.shape(), array.strides()) else {
        return Err(wrong("must have one dimension"));
    };
    if step != element.size() as isize && width > 1 {
        return Err(wrong("must be contiguous"));
    }
    if width > i32::MAX as usize {
        return Err(wrong("must have fewer than 2^31 elements"));
    }
    // SAFETY: the pointer is that of a living array, which has `width` contiguous elements.
    Ok(unsafe {
        let start = (*array.as_array_ptr()).fields.data.cast::<u8>();
        Row::from_raw(start, width, element)
    })
}

/// Returns a code of a row's soundness: 0 sound, 1 NaN, 2 infinity, 3 all minus infinity, 4 not
/// normalized although it should be.
pub(crate) fn soundness(sum: impl Into<RowSum>, kind: ElementType, is_normalized: bool) -> u8 {
    let sum: RowSum = sum.into();
    match sum.soundness {
        Soundness::Nan => 1,
        Soundness::PositiveInfinity => 2,
        Soundness::AllNegativeInfinity => 3,
        Soundness::Sound => {
            let is_half = kind.size() == 2;
            let tolerance = if is_half { TOLERANCE_HALF } else { TOLERANCE };
            u8::from(is_normalized && (sum.log_sum_exp.exp() - 1.0).abs() > tolerance) * 4
        }
    }
}

/// Words of a bitmask, from an int32 array of one dimension.
type Words<'py> = PyReadonlyArray1<'py, i32>;

fn allowed<'a>(words: &'a Option<Words<'_>>, size: usize) -> PyResult<Allowed<'a>> {
    let Some(words) = words else { return Ok(Allowed::all(size)) };
    let words = words.as_slice()?;
    // SAFETY: the types have the same layout.
    let words = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u32>(), words.len()) };
    Ok(Allowed::of(words, size))
}

/// Returns the log-sum-exp of each row, and the code of its soundness.
#[pyfunction]
pub(crate) fn log_sums(
    py: Python<'_>,
    rows: Vec<Bound<'_, PyAny>>,
    is_normalized: bool,
) -> PyResult<Vec<(f64, u8)>> {
    let rows = rows.iter().map(row_of).collect::<PyResult<Vec<_>>>()?;
    let total: usize = rows.iter().map(|row| row.width()).sum();
    let worthwhile = if total < PARALLEL_LOGITS { usize::MAX } else { 2 };
    Ok(py.detach(|| {
        pool::map(
            &rows,
            worthwhile,
            || (),
            |(), _, &row| {
                let sums = with_scan(|scan| scan.run(row, Allowed::all(0)));
                (sums.log_sum_exp, soundness(sums, row.element_type(), is_normalized))
            },
        )
    }))
}

/// Returns the log-sum-exp of a row and of its allowed tokens, and the code of its soundness.
#[pyfunction]
#[pyo3(signature = (row, words, size, is_normalized))]
pub(crate) fn masked_log_sums(
    py: Python<'_>,
    row: &Bound<'_, PyAny>,
    words: Option<Words<'_>>,
    size: usize,
    is_normalized: bool,
) -> PyResult<(f64, f64, u8)> {
    let row = row_of(row)?;
    let allowed = allowed(&words, size)?;
    let sums = py.detach(|| with_scan(|scan| scan.run(row, allowed)));
    Ok((sums.log_sum_exp, sums.log_allowed, soundness(sums, row.element_type(), is_normalized)))
}

/// Returns the best allowed tokens and their values, best first; those that follow `after`, a token
/// and its value, if it is given.
#[pyfunction]
#[pyo3(signature = (row, words, size, count, after=None))]
#[expect(clippy::type_complexity, reason = "a pair that Python unpacks at once")]
pub(crate) fn best_tokens<'py>(
    py: Python<'py>,
    row: &Bound<'py, PyAny>,
    words: Option<Words<'py>>,
    size: usize,
    count: usize,
    after: Option<(u32, f64)>,
) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>)> {
    let row = row_of(row)?;
    let allowed = allowed(&words, size)?;
    let best = py.detach(|| {
        with_scan(|scan| {
            let after = after.unwrap_or((0, f64::INFINITY));
            scan.best(row, allowed, Some(after), count)
        })
    });
    let ids = PyArray1::from_iter(py, best.iter().map(|one| i64::from(one.0)));
    Ok((ids, PyArray1::from_iter(py, best.iter().map(|one| one.1))))
}

/// Returns an upper bound on the error of the log-sum-exp of a row.
#[pyfunction]
pub(crate) fn row_error(row: &Bound<'_, PyAny>, log_sum: f64) -> PyResult<f64> {
    let row = row_of(row)?;
    Ok(formalm_logits::row_error(row.element_type(), row.width(), log_sum))
}

/// One row of a step.
struct StepRow<'a> {
    row: Row<'a>,
    cursor: Option<(&'a Cursor, Option<Deadline>)>,
    byte_cursor: Option<(&'a Cursor, Option<Deadline>)>,
    /// The mask, if the caller has it.
    mask: Option<&'a [u32]>,
    uniform: f64,
}

/// What a step found for one row.
struct StepResult {
    token: Option<u32>,
    value: f64,
    sums: RowSums,
    log_bytes: f64,
    soundness: u8,
}

/// Chooses the next token of each sequence of a batch, and advances its matcher.
///
/// For each row: the mask, the sums of the row and of the allowed tokens, a draw by the rules
/// `(temperature, top_k, top_p, min_p)`. Tokens in `ends` do not advance a matcher. Returns for each
/// row `(token, value, log sum, log sum of the allowed, log sum of the byte matcher's, soundness,
/// finished)`; the token is -1 if none has probability, and no matcher advances if a row is unsound.
#[pyfunction]
#[pyo3(signature = (rows, is_normalized, size, matchers, byte_matchers, masks, ends, rules, uniforms))]
#[expect(clippy::too_many_arguments, clippy::type_complexity, reason = "one call per step")]
pub(crate) fn generation_step<'py>(
    py: Python<'py>,
    rows: Vec<Bound<'py, PyAny>>,
    is_normalized: bool,
    size: usize,
    matchers: Vec<Option<Bound<'py, Matcher>>>,
    byte_matchers: Option<Vec<Option<Bound<'py, Matcher>>>>,
    masks: Option<Vec<Option<Words<'py>>>>,
    ends: Vec<u32>,
    rules: (f64, Option<usize>, Option<f64>, Option<f64>),
    uniforms: Vec<f64>,
) -> PyResult<Vec<(i64, f64, f64, f64, f64, u8, bool)>> {
    let count = rows.len();
    let lengths = [matchers.len(), uniforms.len()];
    let others = [byte_matchers.as_ref().map(Vec::len), masks.as_ref().map(Vec::len)];
    if lengths != [count; 2] || others.iter().flatten().any(|&length| length != count) {
        return Err(errors::argument(py, "the arguments of a step must have equal lengths", None));
    }
    let (temperature, top_k, top_p, min_p) = rules;
    let rules = DrawRules { temperature, top_k, top_p, min_p };
    let views = rows.iter().map(row_of).collect::<PyResult<Vec<_>>>()?;
    let mut guards = take_all(py, &matchers)?;
    let mut byte_guards =
        byte_matchers.as_deref().map(|matchers| take_all(py, matchers)).transpose()?;
    let results = {
        let timed = |matcher: &Option<Bound<'py, Matcher>>| {
            matcher.as_ref().and_then(|one| one.get().timeout().deadline())
        };
        let jobs = (0..count).map(|at| {
            let cursor = guards[at].as_ref().map(|guard| (&**guard, timed(&matchers[at])));
            let byte_cursor = match (&byte_guards, &byte_matchers) {
                (Some(guards), Some(matchers)) => {
                    guards[at].as_ref().map(|guard| (&**guard, timed(&matchers[at])))
                }
                _ => None,
            };
            let mask = match masks.as_ref().and_then(|masks| masks[at].as_ref()) {
                None => None,
                Some(words) => {
                    let words = words.as_slice()?;
                    // SAFETY: the types have the same layout.
                    Some(unsafe {
                        std::slice::from_raw_parts(words.as_ptr().cast::<u32>(), words.len())
                    })
                }
            };
            Ok(StepRow { row: views[at], cursor, byte_cursor, mask, uniform: uniforms[at] })
        });
        let jobs = jobs.collect::<PyResult<Vec<_>>>()?;
        let total: usize = views.iter().map(|row| row.width()).sum();
        let worthwhile = if total < PARALLEL_LOGITS { usize::MAX } else { 2 };
        let results = py.detach(|| {
            pool::map(&jobs, worthwhile, Vec::new, |words, _, job| {
                step_row(job, words, size, is_normalized, &rules)
            })
        });
        let results: Result<Vec<StepResult>, Error> = results.into_iter().collect();
        results.map_err(|error| errors::failure(py, &error, None))?
    };
    let is_sound = results.iter().all(|one| one.soundness == 0);
    let mut found = Vec::with_capacity(count);
    for (at, one) in results.iter().enumerate() {
        let mut finished = false;
        if let Some(token) = one.token
            && is_sound
            && !ends.contains(&token)
        {
            if let Some(cursor) = &mut guards[at] {
                advance(py, cursor, token)?;
                finished =
                    cursor.is_finished().map_err(|error| errors::failure(py, &error, None))?;
            }
            if let Some(guards) = &mut byte_guards
                && let Some(cursor) = &mut guards[at]
            {
                advance(py, cursor, token)?;
            }
        }
        let token = one.token.map_or(-1, i64::from);
        let (sum, allowed) = (one.sums.log_sum_exp, one.sums.log_allowed);
        found.push((token, one.value, sum, allowed, one.log_bytes, one.soundness, finished));
    }
    Ok(found)
}

/// Borrows the cursors of a batch.
fn take_all<'a, 'py: 'a>(
    py: Python<'py>,
    matchers: &'a [Option<Bound<'py, Matcher>>],
) -> PyResult<Vec<Option<GilGuard<'a, Cursor>>>> {
    matchers.iter().map(|one| one.as_ref().map(|one| one.get().take(py)).transpose()).collect()
}

fn advance(py: Python<'_>, cursor: &mut Cursor, token: u32) -> PyResult<()> {
    cursor.advance(token).map_err(|refusal| crate::matcher::refused(py, cursor, &refusal, token))
}

fn step_row(
    job: &StepRow<'_>,
    words: &mut Vec<u32>,
    size: usize,
    is_normalized: bool,
    rules: &DrawRules,
) -> Result<StepResult, Error> {
    let row = job.row;
    let log_bytes = match job.byte_cursor {
        None => f64::NAN,
        Some(cursor) => {
            fill(cursor, words)?;
            with_scan(|scan| scan.run(row, Allowed::of(words, size))).log_allowed
        }
    };
    let allowed = match (job.mask, job.cursor) {
        (Some(mask), _) => Allowed::of(mask, size),
        (None, Some(cursor)) => {
            fill(cursor, words)?;
            Allowed::of(words, size)
        }
        (None, None) => Allowed::all(size),
    };
    Ok(with_scan(|scan| {
        let sums = scan.run(row, allowed);
        let soundness = soundness(sums, row.element_type(), is_normalized);
        let token =
            if soundness == 0 { draw(scan, row, allowed, rules, job.uniform) } else { None };
        let value = token.map_or(f64::NAN, |token| row.get(token as usize));
        StepResult { token, value, sums, log_bytes, soundness }
    }))
}

fn fill(cursor: (&Cursor, Option<Deadline>), words: &mut Vec<u32>) -> Result<(), Error> {
    let (cursor, deadline) = cursor;
    words.clear();
    words.resize(cursor.epoch().words(), 0);
    under(deadline, || if cursor.fill_ready(words)? { Ok(()) } else { cursor.fill(words) })
}
