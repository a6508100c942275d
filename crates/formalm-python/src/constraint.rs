//! Constraints.

use std::sync::Arc;

use formalm_automata::Machine;
use formalm_constraint::{Constraint as Inner, Unfollowed};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::automaton::Automaton;
use crate::encoder::Encoder;
use crate::errors;
use crate::machine::AnyKeys;
use crate::matcher::{Cursor, Matcher};
use crate::patient::aside;
use crate::turns::Turn;
use crate::views::Views;
use crate::vocabulary::Vocabulary;

/// Memory for stored masks, unless the user says otherwise.
const MEMORY_LIMIT_BYTES: usize = 64 << 20;

/// Ids are below this in every vocabulary, so logits are too.
const WIDTH_LIMIT: usize = 1 << 24;

/// An automaton lifted to a vocabulary; shared freely between threads.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Constraint {
    pub(crate) inner: Arc<Inner<AnyKeys>>,
    width: usize,
    views: Arc<Views>,
}

impl Constraint {
    /// Where a matcher of this constraint is.
    fn cursor<'m>(&self, py: Python<'m>, matcher: &'m Matcher) -> PyResult<Turn<'m, Cursor>> {
        let cursor = matcher.take(py)?;
        if !Arc::ptr_eq(cursor.constraint(), &self.inner) {
            return Err(errors::argument(py, "the matcher belongs to another constraint", None));
        }
        Ok(cursor)
    }
}

#[pymethods]
impl Constraint {
    #[new]
    #[pyo3(signature = (automaton, vocabulary, memory_limit_bytes=None, width=None, encoder=None, begins=true))]
    fn new(
        py: Python<'_>,
        automaton: &Automaton,
        vocabulary: &Vocabulary,
        memory_limit_bytes: Option<usize>,
        width: Option<usize>,
        encoder: Option<&Encoder>,
        begins: bool,
    ) -> PyResult<Constraint> {
        let memory_limit_bytes = memory_limit_bytes.unwrap_or(MEMORY_LIMIT_BYTES);
        let size = vocabulary.inner.len();
        let width = width.unwrap_or(size);
        if width < size {
            let message = format!("a width of {width} is less than the {size} ids there are");
            return Err(errors::argument(py, &message, None));
        }
        if width > WIDTH_LIMIT {
            let message = format!("a width of {width} is more than the {WIDTH_LIMIT} ids allowed");
            return Err(errors::argument(py, &message, None));
        }
        let machine = Arc::clone(&automaton.machine);
        let keys = AnyKeys::new(py, machine, vocabulary, memory_limit_bytes);
        let vocabulary = Arc::clone(&vocabulary.inner);
        let inner = match encoder {
            None => Inner::over(keys, vocabulary, memory_limit_bytes),
            Some(encoder) => {
                let encoder = Arc::clone(&encoder.inner);
                py.detach(|| {
                    Inner::canonical_over(keys, vocabulary, encoder, memory_limit_bytes, begins)
                })
                .map_err(|error| errors::failure(py, &error, None))?
            }
        };
        let views = Arc::new(Views::new(py, width, memory_limit_bytes));
        Ok(Constraint { inner: Arc::new(inner), width, views })
    }

    fn matcher(&self) -> Matcher {
        Matcher::new(&self.inner, self.width, &self.views)
    }

    /// A matcher after tokens, or none and how many of them some text may have begun with.
    fn matcher_after(
        &self,
        py: Python<'_>,
        token_ids: Vec<u32>,
    ) -> PyResult<(Option<Matcher>, usize)> {
        let constraint = Arc::clone(&self.inner);
        match py.detach(|| Cursor::after(constraint, &token_ids)) {
            Ok(cursor) => Ok((Some(Matcher::of(cursor, self.width, &self.views)), token_ids.len())),
            Err(Unfollowed::Prompt { good }) => Ok((None, good)),
            Err(Unfollowed::Language) => Ok((None, token_ids.len())),
            Err(Unfollowed::Failed(error)) => Err(errors::failure(py, &error, None)),
        }
    }

    #[getter]
    fn width(&self) -> usize {
        self.width
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> usize {
        let machine = self.inner.machine().memory_bytes();
        self.inner.memory_bytes() + machine + self.views.memory_bytes(py)
    }

    /// Whether all that is allowed is known to lead to a member.
    #[getter]
    fn is_exact(&self) -> bool {
        self.inner.machine().is_exact()
    }

    /// Number of questions about canonical tokens that a bounded search left open.
    #[getter]
    fn undecided_count(&self) -> usize {
        self.inner.undecided_count()
    }

    /// Number of states that tokens were left out for leading to where a text has to end within a
    /// budget.
    #[getter]
    fn given_up_count(&self) -> usize {
        self.inner.given_up_count()
    }

    #[getter]
    fn mask_count(&self) -> usize {
        self.inner.mask_count()
    }

    fn shortest_token_ids(
        &self,
        py: Python<'_>,
        matcher: &Matcher,
        limit: u32,
    ) -> PyResult<Option<Vec<u32>>> {
        let cursor = self.cursor(py, matcher)?;
        if cursor.has_ended() {
            return Ok(Some(Vec::new()));
        }
        let (inner, position) = (Arc::clone(&self.inner), cursor.position());
        drop(cursor);
        aside(py, move || inner.shortest_tokens(position, limit))
    }

    fn completes_within(&self, py: Python<'_>, matcher: &Matcher, limit: u32) -> PyResult<bool> {
        let cursor = self.cursor(py, matcher)?;
        if cursor.has_ended() {
            return Ok(true);
        }
        let (inner, position) = (Arc::clone(&self.inner), cursor.position());
        drop(cursor);
        aside(py, move || inner.completes_within(position, limit))
    }

    fn completion_mask<'py>(
        &self,
        py: Python<'py>,
        matcher: &Matcher,
        budget: u32,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let cursor = self.cursor(py, matcher)?;
        let mut words = vec![0; self.width.div_ceil(32)];
        if !cursor.has_ended() {
            let (inner, position) = (Arc::clone(&self.inner), cursor.position());
            drop(cursor);
            words = aside(py, move || {
                inner.fill_within(position, budget, &mut words)?;
                Ok(words)
            })?;
        }
        let bits = (0..self.width).map(|id| words[id >> 5] >> (id & 31) & 1 != 0);
        Ok(PyArray1::from_iter(py, bits))
    }
}
