//! `Matcher`: the position of one token sequence.

use std::sync::Arc;

use formalm_constraint::StepInput;
use formalm_core::{Error, InterruptCheck, deadline::Deadline, pool};
use numpy::{PyArray1, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any_machine::AnyMaskClasses;
use crate::cached_mask_arrays::{CachedArray, SharedBitmasks, array};
use crate::errors;
use crate::errors::RejectedInput;
use crate::gil_cell::{GilCell, GilGuard};
use crate::interruptible::{Timeout, under, without_gil, without_gil_or};
use crate::logits::numpy_bitmasks::{BitmaskRow, bitmask, bitmask_of};

type Constraint = formalm_constraint::Constraint<AnyMaskClasses>;
pub(crate) type Cursor = formalm_constraint::Matcher<AnyMaskClasses>;

/// The position of one sequence. Using it in two threads at once raises a `ConcurrencyError`.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Matcher {
    cursor: GilCell<Cursor>,
    width: usize,
    views: Arc<SharedBitmasks>,
    timeout: Timeout,
}

impl Matcher {
    pub(crate) fn new(
        constraint: &Arc<Constraint>,
        width: usize,
        views: &Arc<SharedBitmasks>,
    ) -> Matcher {
        Matcher::of(Cursor::new(Arc::clone(constraint)), width, views)
    }

    pub(crate) fn of(cursor: Cursor, width: usize, views: &Arc<SharedBitmasks>) -> Matcher {
        let timeout = Timeout::default();
        Matcher { cursor: GilCell::new(cursor), width, views: Arc::clone(views), timeout }
    }

    #[inline]
    pub(crate) fn take<'a>(&'a self, py: Python<'a>) -> PyResult<GilGuard<'a, Cursor>> {
        let mut cursor = self.cursor.take(py).ok_or_else(|| errors::concurrency(py))?;
        if cursor.epoch().is_abandoned() {
            Matcher::settle(py, &mut cursor)?;
        }
        Ok(cursor)
    }

    /// Moves a cursor on in a forked child that cannot use its epoch.
    #[cold]
    fn settle(py: Python<'_>, cursor: &mut Cursor) -> PyResult<()> {
        if cursor.constraint().is_lost() {
            return Err(errors::lost_in_fork(py, "constraint"));
        }
        cursor.settle().map_err(|error| errors::failure(py, &error, None))
    }

    /// Returns the allowed ids as words, one bit for each of `width` logits.
    fn words(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let cursor = self.take(py)?;
        let cursor = &*cursor;
        let mut words = vec![0; self.width.div_ceil(32)];
        let filled = py.detach(|| self.timeout.during(|| cursor.fill(&mut words)));
        filled.map_err(|error| errors::failure(py, &error, None))?;
        Ok(words)
    }

    /// Returns the mask as a shared array, and the array that was evicted for it.
    #[inline]
    fn view(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Option<CachedArray>)> {
        let cursor = self.take(py)?;
        if cursor.own_end_tokens().is_some() {
            // The cache is shared by matchers with other end tokens.
            let mut words = vec![0; self.width.div_ceil(32)];
            self.fill(py, &cursor, &mut words)?;
            return Ok((array(py, &words)?.1, None));
        }
        let position = (cursor.epoch().serial(), number_of(&cursor));
        if let Some(array) = self.views.at(py, position) {
            return Ok((array, None));
        }
        let one = &*cursor;
        let form = py.detach(|| self.timeout.during(|| one.form()));
        let form = form.map_err(|error| errors::failure(py, &error, None))?;
        if let Some(form) = &form
            && let Some(array) = self.views.of_identity(py, position, form)
        {
            return Ok((array, None));
        }
        let mut words = vec![0; self.width.div_ceil(32)];
        self.fill(py, one, &mut words)?;
        drop(cursor);
        self.views.of(py, (position, form), &words)
    }

    /// Writes the mask of the matcher's cursor.
    #[inline]
    pub(crate) fn fill(&self, py: Python<'_>, cursor: &Cursor, words: &mut [u32]) -> PyResult<()> {
        let filled = self.timeout.during(|| fill(py, cursor, words));
        filled.map_err(|error| errors::failure(py, &error, None))
    }

    /// Returns the time limit of a mask.
    pub(crate) fn timeout(&self) -> Timeout {
        self.timeout.clone()
    }

    fn ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let words = self.words(py)?;
        let mut ids = Vec::new();
        for (at, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                ids.push(at as u32 * 32 + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Ok(ids)
    }
}

/// Writes the mask of a cursor.
fn fill(py: Python<'_>, cursor: &Cursor, words: &mut [u32]) -> Result<(), Error> {
    // A hit takes less time than releasing the interpreter lock.
    if cursor.fill_ready(words)? { Ok(()) } else { py.detach(|| cursor.fill(words)) }
}

pub(crate) fn refused(
    py: Python<'_>,
    cursor: &Cursor,
    refusal: &formalm_constraint::AdvanceError,
    id: u32,
) -> PyErr {
    let bytes = cursor.epoch().vocabulary().token_bytes(id);
    errors::refusal(py, refusal, RejectedInput::Token(id, bytes))
}

/// Returns a number of the state. Equal numbers mean equal futures, within an epoch.
fn number_of(cursor: &Cursor) -> u64 {
    cursor.position().number() << 1 | u64::from(cursor.has_ended())
}

/// The id of draft tokens outside every vocabulary, such as the padding -1.
const NO_TOKEN: u32 = u32::MAX;

/// Reads the ids of draft tokens; ids outside every vocabulary become [`NO_TOKEN`].
pub(crate) fn draft_ids(
    py: Python<'_>,
    name: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Vec<u32>> {
    let Ok(list) = value.try_iter() else {
        let message = format!("{name} must be a sequence of integers");
        return Err(errors::argument(py, &message, None));
    };
    let id = |id: PyResult<Bound<'_, PyAny>>| {
        let id: i64 = errors::integer(&id?, "token id")?;
        Ok(u32::try_from(id).unwrap_or(NO_TOKEN))
    };
    list.map(id).collect()
}

fn token_id(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    errors::integer(value, "token id")
}

#[pymethods]
impl Matcher {
    #[pyo3(signature = (out, row=None))]
    fn fill_bitmask(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        row: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let cursor = self.take(py)?;
        let cursor = &*cursor;
        let needed = cursor.epoch().words();
        let row = row.map_or(Ok(0), |row| errors::integer(row, "row"))?;
        let array;
        let place = match out.cast::<PyUntypedArray>() {
            Ok(out) => bitmask_of(out, true)?,
            Err(_) => {
                array = py.import("formalm.bitmask")?.call_method1("as_bitmask", (out,))?;
                bitmask(py, &array, true)?
            }
        };
        let mut place = place.row(py, row, needed)?;
        // SAFETY: `out` is alive for the whole call.
        let words = unsafe { place.words() };
        self.fill(py, cursor, words)
    }

    fn bitmask(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // The evicted array is dropped last: that may run user code, which may ask for another
        // mask.
        let (array, _replaced) = self.view(py)?;
        Ok(array)
    }

    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let words = self.words(py)?;
        let bits = (0..self.width).map(|id| words[id >> 5] >> (id & 31) & 1 != 0);
        Ok(PyArray1::from_iter(py, bits))
    }

    fn allowed_token_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(PyArray1::from_vec(py, self.ids(py)?))
    }

    fn allows(&self, py: Python<'_>, token_id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let cursor = self.take(py)?;
        let cursor = &*cursor;
        let id = self::token_id(token_id)?;
        if id as usize >= self.width {
            return Err(refused(py, cursor, &formalm_constraint::AdvanceError::OutOfRange, id));
        }
        let allows = py.detach(|| self.timeout.during(|| cursor.allows(id)));
        allows.map_err(|error| errors::failure(py, &error, None))
    }

    fn advance(&self, py: Python<'_>, token_id: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut cursor = self.take(py)?;
        let id = self::token_id(token_id)?;
        match self.timeout.during_task("advance", || cursor.advance(id)) {
            Ok(()) => Ok(()),
            Err(refusal) => Err(refused(py, &cursor, &refusal, id)),
        }
    }

    fn advance_many(&self, py: Python<'_>, token_ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut cursor = self.take(py)?;
        let Ok(list) = token_ids.try_iter() else {
            return Err(errors::argument(py, "token_ids must be a sequence of integers", None));
        };
        let ids = list.map(|id| token_id(&id?)).collect::<PyResult<Vec<u32>>>()?;
        let mut raised = None;
        let mut ask = || {
            raised = py.check_signals().err();
            raised.is_none()
        };
        let mut poll = InterruptCheck::new(&mut ask);
        let (count, refusal) =
            self.timeout.during_task("advance", || cursor.advance_many(&ids, &mut poll));
        if let Some(error) = raised {
            let _ = cursor.rollback(count);
            return Err(error);
        }
        match refusal {
            Some(
                refusal @ (formalm_constraint::AdvanceError::Failed(_)
                | formalm_constraint::AdvanceError::OutOfRange),
            ) => {
                let _ = cursor.rollback(count);
                Err(refused(py, &cursor, &refusal, ids[count]))
            }
            _ => Ok(count),
        }
    }

    /// Returns how many tokens would be read; the matcher does not change.
    fn validate_tokens(&self, py: Python<'_>, token_ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut cursor = self.take(py)?;
        let cursor = &mut *cursor;
        let ids = draft_ids(py, "token_ids", token_ids)?;
        let timeout = &self.timeout;
        let counted = py.detach(|| timeout.during(|| cursor.validate(&ids)));
        counted.map_err(|error| errors::failure(py, &error, None))
    }

    /// Returns a matcher at the same position that these tokens end.
    fn with_end_token_ids(&self, py: Python<'_>, end_token_ids: Vec<u32>) -> PyResult<Matcher> {
        let cursor = self.take(py)?.clone().with_end_tokens(end_token_ids);
        let timeout = self.timeout.clone();
        Ok(Matcher { timeout, ..Matcher::of(cursor, self.width, &self.views) })
    }

    fn advance_bytes(&self, py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(text) = text.extract::<&[u8]>() else {
            let hint = "encode a str with text.encode()";
            return Err(errors::argument(py, "the input must be bytes", Some(hint)));
        };
        let mut cursor = self.take(py)?;
        let cursor = &mut *cursor;
        let read = without_gil_or(py, |poll| {
            self.timeout.during_task("advance", || cursor.advance_bytes(text, poll))
        })?;
        read.map_err(|refusal| errors::refusal(py, &refusal, RejectedInput::Text))
    }

    /// Reads bytes that may end inside a character.
    fn advance_inside(&self, py: Python<'_>, text: &[u8]) -> PyResult<()> {
        let mut cursor = self.take(py)?;
        let cursor = &mut *cursor;
        let read = without_gil_or(py, |poll| {
            self.timeout.during_task("advance", || cursor.advance_inside(text, poll))
        })?;
        read.map_err(|refusal| errors::refusal(py, &refusal, RejectedInput::Text))
    }

    #[pyo3(signature = (count=None))]
    fn rollback(&self, py: Python<'_>, count: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let count = count.map_or(Ok(1), |count| errors::integer(count, "count"))?;
        let mut cursor = self.take(py)?;
        if cursor.rollback(count) {
            return Ok(());
        }
        let message = format!(
            "count must not exceed the number of steps taken: cannot roll back {count} of {}",
            cursor.step_count()
        );
        Err(errors::argument(py, &message, Some("advance_bytes() counts as one step")))
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.take(py)?.reset();
        Ok(())
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Matcher> {
        let cursor = self.take(py)?.clone();
        let timeout = self.timeout.clone();
        Ok(Matcher { timeout, ..Matcher::of(cursor, self.width, &self.views) })
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Matcher> {
        self.fork(py)
    }

    fn forced_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let cursor = self.take(py)?;
        let cursor = &*cursor;
        let forced = without_gil(py, |poll| {
            self.timeout.during_task("forced", || cursor.forced_bytes(poll))
        })?;
        Ok(PyBytes::new(py, &forced))
    }

    fn forced_token_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let cursor = self.take(py)?;
        let cursor = &*cursor;
        without_gil(py, |poll| self.timeout.during_task("forced", || cursor.forced_tokens(poll)))
    }

    /// `(error, good, token bytes, live bytes, accepting)`.
    #[expect(clippy::type_complexity, reason = "a record that Python unpacks at once")]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        token_id: &Bound<'_, PyAny>,
    ) -> PyResult<(
        Option<&'static str>,
        usize,
        Option<Bound<'py, PyBytes>>,
        Bound<'py, PyBytes>,
        bool,
    )> {
        use formalm_constraint::AdvanceError;
        let cursor = self.take(py)?;
        let id = self::token_id(token_id)?;
        let explained = self.timeout.during_task("explain", || cursor.explain(id));
        let explained = explained.map_err(|error| errors::failure(py, &error, None))?;
        let bytes = cursor.epoch().vocabulary().token_bytes(id);
        let (name, good) = match explained.refusal {
            None => (None, bytes.map_or(0, <[u8]>::len)),
            Some(AdvanceError::OutOfRange) => {
                return Err(refused(py, &cursor, &AdvanceError::OutOfRange, id));
            }
            Some(AdvanceError::NoBytes) => (Some("special"), 0),
            Some(AdvanceError::NotAccepting) => (Some("not a member"), 0),
            Some(AdvanceError::Ended) => (Some("ended"), 0),
            Some(AdvanceError::NotViable { good }) => (Some("not viable"), good),
            Some(AdvanceError::NotCanonical) => {
                (Some("not canonical"), bytes.map_or(0, <[u8]>::len))
            }
            Some(AdvanceError::NoTokens) => (Some("no tokens"), 0),
            Some(AdvanceError::Failed(error)) => return Err(errors::failure(py, &error, None)),
        };
        let live: Vec<u8> = explained.expected.iter().collect();
        let bytes = bytes.map(|bytes| PyBytes::new(py, bytes));
        Ok((name, good, bytes, PyBytes::new(py, &live), explained.accepting))
    }

    /// The tokens that the text continues, and what was read since: tokens, and bytes without a
    /// token with whether they may end inside a character.
    #[expect(clippy::type_complexity, reason = "a record that Python unpacks at once")]
    fn history<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Vec<u32>, Vec<(Option<u32>, Bound<'py, PyBytes>, bool)>)> {
        let cursor = self.take(py)?;
        let steps = cursor.history().map(|(read, bytes)| {
            let token = match read {
                StepInput::Token(token) | StepInput::End(token) => Some(token),
                StepInput::Bytes | StepInput::Inside => None,
            };
            (token, PyBytes::new(py, bytes), read == StepInput::Inside)
        });
        Ok((cursor.after_tokens().to_vec(), steps.collect()))
    }

    #[getter]
    fn timeout_seconds(&self) -> Option<f64> {
        self.timeout.seconds()
    }

    #[setter]
    fn set_timeout_seconds(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        self.timeout.set(py, seconds)
    }

    /// End tokens that replace those of the vocabulary.
    #[getter]
    fn end_token_ids(&self, py: Python<'_>) -> PyResult<Option<Vec<u32>>> {
        Ok(self.take(py)?.own_end_tokens().map(<[u32]>::to_vec))
    }

    #[getter]
    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.take(py)?.has_ended())
    }

    #[getter]
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        self.take(py)?.is_accepting().map_err(|error| errors::failure(py, &error, None))
    }

    #[getter]
    fn is_finished(&self, py: Python<'_>) -> PyResult<bool> {
        self.take(py)?.is_finished().map_err(|error| errors::failure(py, &error, None))
    }

    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.take(py)?.text()))
    }

    #[getter]
    fn token_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.take(py)?.token_ids())
    }

    #[getter]
    fn state_key(&self, py: Python<'_>) -> PyResult<u128> {
        let cursor = self.take(py)?;
        // States of different epochs never share a number.
        Ok(u128::from(cursor.epoch().serial()) << 64 | u128::from(number_of(&cursor)))
    }

    /// Keeps the matcher and its forks in one numbering of states: its own, or that of another
    /// matcher of the constraint.
    #[pyo3(signature = (other=None))]
    fn pin(&self, py: Python<'_>, other: Option<&Matcher>) -> PyResult<()> {
        let mut cursor = self.take(py)?;
        match other {
            Some(other) if !std::ptr::eq(self, other) => {
                let other = other.take(py)?;
                if !Arc::ptr_eq(cursor.constraint(), other.constraint()) {
                    let message = "the matcher belongs to another constraint";
                    return Err(errors::argument(py, message, None));
                }
                cursor.pin_to(&other);
            }
            _ => cursor.pin(),
        }
        Ok(())
    }
}

/// Fills one row per matcher, in parallel; the row of None allows everything.
#[pyfunction]
#[pyo3(signature = (matchers, out, rows=None))]
pub(crate) fn fill_bitmasks(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    rows: Option<Vec<Bound<'_, PyAny>>>,
) -> PyResult<()> {
    let listed: Vec<Option<Bound<'_, Matcher>>> = matchers.extract()?;
    let count = listed.len();
    let rows: Vec<usize> = match rows {
        Some(rows) => {
            rows.iter().map(|row| errors::integer(row, "row")).collect::<PyResult<_>>()?
        }
        None => (0..count).collect(),
    };
    if rows.len() != count {
        let message = format!(
            "rows must have one entry per matcher: got {count} matchers and {} rows",
            rows.len()
        );
        return Err(errors::argument(py, &message, None));
    }
    let mut sorted = rows.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(errors::argument(py, "rows must be distinct", None));
    }
    let array = bitmask(py, out, true)?;
    let mut guards = Vec::with_capacity(count);
    for matcher in &listed {
        guards.push(matcher.as_ref().map(|matcher| matcher.get().take(py)).transpose()?);
    }
    let mut jobs: Vec<(&Cursor, BitmaskRow, Option<Deadline>)> = Vec::with_capacity(count);
    let mut free = Vec::new();
    for ((guard, &row), matcher) in guards.iter().zip(&rows).zip(&listed) {
        match (guard, matcher) {
            (Some(guard), Some(matcher)) => {
                let needed = guard.epoch().words();
                // Waiting for other rows counts toward the time of the call.
                jobs.push((guard, array.row(py, row, needed)?, matcher.get().timeout.deadline()));
            }
            _ => free.push(array.row(py, row, 0)?),
        }
    }
    for row in &mut free {
        words(row).fill(u32::MAX);
    }
    fn words(row: &mut BitmaskRow) -> &mut [u32] {
        // SAFETY: `out` is alive for the whole call and no row is given twice.
        unsafe { row.words() }
    }
    let filled = py.detach(|| {
        // Copying a cached mask takes less time than waking another thread.
        let mut left = Vec::new();
        for (cursor, mut row, deadline) in jobs {
            if !under(deadline, || cursor.fill_ready(words(&mut row)))? {
                left.push((cursor, row, deadline));
            }
        }
        pool::try_for_each(&mut left, |(cursor, row, deadline)| {
            under(*deadline, || cursor.fill(words(row)))
        })
    });
    filled.map_err(|error| errors::failure(py, &error, None))
}
