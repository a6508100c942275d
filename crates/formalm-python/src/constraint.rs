//! `Constraint`: an automaton lifted to a vocabulary.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use formalm_constraint::{MemorySizes, NoContinuation, TextBegin};
use formalm_core::ReadingHints;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any_machine::AnyMaskClasses;
use crate::cached_mask_arrays::SharedBitmasks;
use crate::encoder::Encoder;
use crate::errors;
use crate::gil_cell::GilGuard;
use crate::interruptible::{in_own_thread, without_gil};
use crate::lazy_automaton::Automaton;
use crate::matcher::{Cursor, Matcher};
use crate::vocabulary::Vocabulary;

/// Default memory limit of a constraint, in bytes; masks get half of it. Chosen, not measured.
const MEMORY_LIMIT_BYTES: usize = 128 << 20;

/// Upper bound on ids in every vocabulary, and so on logits.
const WIDTH_LIMIT: usize = 1 << 24;

/// An automaton lifted to a vocabulary; shared freely between threads.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Constraint {
    pub(crate) inner: Arc<formalm_constraint::Constraint<AnyMaskClasses>>,
    width: usize,
    views: Arc<SharedBitmasks>,
}

impl Constraint {
    /// Returns the cursor of a matcher of this constraint, or of one that continues a prompt over
    /// the same vocabulary.
    fn cursor<'m>(&self, py: Python<'m>, matcher: &'m Matcher) -> PyResult<GilGuard<'m, Cursor>> {
        let cursor = matcher.take(py)?;
        let other = cursor.constraint();
        let is_own = Arc::ptr_eq(other, &self.inner);
        let continues = || {
            let (own, other) = (self.inner.current(), other.current());
            own.is_canonical()
                && other.is_canonical()
                && Arc::ptr_eq(own.vocabulary(), other.vocabulary())
        };
        if !is_own && !continues() {
            return Err(errors::argument(py, "the matcher belongs to another constraint", None));
        }
        Ok(cursor)
    }
}

#[pymethods]
impl Constraint {
    /// `replace_every` is a testing aid: it replaces epochs after that many steps of a matcher.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "options by name")]
    #[pyo3(signature = (automaton, vocabulary, memory_limit_bytes=None, width=None, encoder=None, begin="anywhere", replace_every=0))]
    fn new(
        py: Python<'_>,
        automaton: &Automaton,
        vocabulary: &Vocabulary,
        memory_limit_bytes: Option<usize>,
        width: Option<usize>,
        encoder: Option<&Encoder>,
        begin: &str,
        replace_every: u32,
    ) -> PyResult<Constraint> {
        let memory_limit_bytes = memory_limit_bytes.unwrap_or(MEMORY_LIMIT_BYTES);
        let size = vocabulary.inner.len();
        let width = width.unwrap_or(size);
        if width < size {
            let message =
                format!("width must be at least the vocabulary size ({size}), got {width}");
            return Err(errors::argument(py, &message, None));
        }
        if width > WIDTH_LIMIT {
            let message = format!("width must be at most {WIDTH_LIMIT}, got {width}");
            return Err(errors::argument(py, &message, None));
        }
        let machine = automaton.machine()?;
        // Masks of parts get a quarter of the memory, see `formalm_constraint::Constraint`.
        let keys = AnyMaskClasses::new(py, machine, vocabulary, memory_limit_bytes / 4);
        let vocabulary = Arc::clone(&vocabulary.inner);
        let inner = match encoder {
            None => formalm_constraint::Constraint::over(keys, vocabulary, memory_limit_bytes),
            Some(encoder) => {
                let encoder = Arc::clone(&encoder.inner);
                let begin = match begin {
                    "anywhere" => TextBegin::Anywhere,
                    "after tokens" => TextBegin::AfterTokens,
                    "with inserted space" => TextBegin::WithInsertedSpace,
                    _ => return Err(errors::argument(py, "begin is not known", None)),
                };
                py.detach(|| {
                    formalm_constraint::Constraint::canonical_over(
                        keys,
                        vocabulary,
                        encoder,
                        memory_limit_bytes,
                        begin,
                    )
                })
                .map_err(|error| errors::failure(py, &error, None))?
            }
        };
        let inner = inner.replacing_every(replace_every);
        let views = Arc::new(SharedBitmasks::new(py, width, memory_limit_bytes));
        Ok(Constraint { inner: Arc::new(inner), width, views })
    }

    fn matcher(&self, py: Python<'_>) -> PyResult<Matcher> {
        if self.inner.is_lost() {
            return Err(errors::lost_in_fork(py, "constraint"));
        }
        Ok(Matcher::new(&self.inner, self.width, &self.views))
    }

    /// Returns a matcher after tokens, or `None` and the number of tokens that some text may begin
    /// with.
    fn matcher_after(
        &self,
        py: Python<'_>,
        token_ids: Vec<u32>,
    ) -> PyResult<(Option<Matcher>, usize)> {
        if self.inner.is_lost() {
            return Err(errors::lost_in_fork(py, "constraint"));
        }
        let constraint = Arc::clone(&self.inner);
        match py.detach(|| Cursor::after(constraint, &token_ids)) {
            Ok(cursor) => Ok((Some(Matcher::of(cursor, self.width, &self.views)), token_ids.len())),
            Err(NoContinuation::Prompt { good }) => Ok((None, good)),
            Err(NoContinuation::Language) => Ok((None, token_ids.len())),
            Err(NoContinuation::Failed(error)) => Err(errors::failure(py, &error, None)),
        }
    }

    #[getter]
    fn width(&self) -> usize {
        self.width
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> usize {
        let stats = py.detach(|| self.inner.stats());
        stats.current.total() + stats.pinned + self.views.memory_bytes(py)
    }

    /// Returns the memory by part, of pinned epochs, and of the limit, in bytes; the number of
    /// pinned epochs; and the number of replacements.
    fn stats(&self, py: Python<'_>) -> (BTreeMap<&'static str, usize>, usize, usize) {
        let stats = py.detach(|| self.inner.stats());
        let MemorySizes { machine, classes, completions, canonical, masks } = stats.current;
        let bytes = BTreeMap::from([
            ("machine", machine),
            ("classes", classes),
            ("completions", completions),
            ("canonical", canonical),
            ("masks", masks),
            ("arrays", self.views.memory_bytes(py)),
            ("pinned", stats.pinned),
            ("limit", stats.limit),
        ]);
        (bytes, stats.pinned_epochs, stats.replacements)
    }

    /// Computes masks ahead of requests for at most `seconds`, and returns how many it cached.
    #[pyo3(signature = (seconds, encoder=None))]
    fn warm_up(&self, py: Python<'_>, seconds: f64, encoder: Option<&Encoder>) -> PyResult<usize> {
        if self.inner.is_lost() {
            return Err(errors::lost_in_fork(py, "constraint"));
        }
        let budget = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let encoder = encoder.map(|encoder| &*encoder.inner);
        without_gil(py, |poll| self.inner.warm_up(encoder, budget, poll))
    }

    /// Returns whether everything allowed is known to be completable.
    #[getter]
    fn is_exact(&self) -> bool {
        self.inner.current().machine().is_exact()
    }

    /// Number of queries about canonical tokens that a bounded search left undecided.
    #[getter]
    fn undecided_count(&self) -> usize {
        self.inner.undecided_count()
    }

    /// Number of states whose completion search gave up; within a budget, tokens that lead to them
    /// are masked out.
    #[getter]
    fn given_up_count(&self) -> usize {
        self.inner.given_up_count()
    }

    /// Returns a member without canonical tokens, the number of such members and of all members if
    /// both are known, and whether the search gave up.
    #[allow(clippy::type_complexity, reason = "a tuple of Python")]
    fn excluded_members<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Option<Bound<'py, PyBytes>>, Option<(u128, u128)>, bool)> {
        let epoch = self.inner.current();
        let excluded = in_own_thread(py, move || epoch.excluded_members())?;
        let example = excluded.example.map(|text| PyBytes::new(py, &text));
        Ok((example, excluded.counts, excluded.is_unknown))
    }

    #[getter]
    fn mask_count(&self) -> usize {
        self.inner.current().mask_count()
    }

    fn shortest_token_ids(
        &self,
        py: Python<'_>,
        matcher: &Matcher,
        limit: u32,
    ) -> PyResult<Option<Vec<u32>>> {
        let cursor = self.cursor(py, matcher)?.clone();
        let timeout = matcher.timeout();
        in_own_thread(py, move || timeout.during(|| cursor.shortest_tokens(limit)))
    }

    fn completes_within(&self, py: Python<'_>, matcher: &Matcher, limit: u32) -> PyResult<bool> {
        let cursor = self.cursor(py, matcher)?.clone();
        let timeout = matcher.timeout();
        in_own_thread(py, move || timeout.during(|| cursor.completes_within(limit)))
    }

    fn completion_mask<'py>(
        &self,
        py: Python<'py>,
        matcher: &Matcher,
        budget: u32,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let cursor = self.cursor(py, matcher)?.clone();
        let mut words = vec![0; self.width.div_ceil(32)];
        let timeout = matcher.timeout();
        let words = in_own_thread(py, move || {
            timeout.during(|| cursor.fill_within(budget, &mut words))?;
            Ok(words)
        })?;
        let bits = (0..self.width).map(|id| words[id >> 5] >> (id & 31) & 1 != 0);
        Ok(PyArray1::from_iter(py, bits))
    }
}
