//! `Graph`: materialized automata over bytes or tokens, with counting, ranking and enumeration.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use formalm_automata::materialized::{self, DfaSizeLimits, LengthRange, LoadError, difference};
use formalm_core::{Error, ForkSafeMutex, require_exact};
use num_bigint::BigUint;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::constraint::Constraint;
use crate::errors;
use crate::graph_cache::GraphCache;
use crate::interruptible::without_gil;
use crate::lazy_automaton::{Automaton, relation, unit};

/// A minimal deterministic graph whose labels are bytes or token ids.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Graph {
    shared: Arc<GraphCache>,
}

fn span(kind: &str, length: usize) -> PyResult<LengthRange> {
    match kind {
        "exactly" => Ok(LengthRange::Exactly(length)),
        "at most" => Ok(LengthRange::AtMost(length)),
        "any" => Ok(LengthRange::Any),
        other => Err(PyValueError::new_err(format!(
            "length must be \"exactly\", \"at most\" or \"any\", got {other:?}"
        ))),
    }
}

impl Graph {
    fn over(graph: materialized::MaterializedDfa, is_tokens: bool) -> Graph {
        Graph { shared: Arc::new(GraphCache::new(graph, is_tokens)) }
    }

    fn inner(&self) -> &materialized::MaterializedDfa {
        &self.shared.graph
    }
}

#[pymethods]
impl Graph {
    /// Materializes a machine over bytes, or its strings up to a length; `None` is the empty
    /// language.
    #[staticmethod]
    #[pyo3(signature = (automaton, state_limit, max_bytes=None))]
    fn of(
        py: Python<'_>,
        automaton: Option<&Automaton>,
        state_limit: u64,
        max_bytes: Option<usize>,
    ) -> PyResult<Graph> {
        let Some(automaton) = automaton else {
            return Ok(Graph::over(materialized::MaterializedDfa::empty(), false));
        };
        let machine = automaton.machine()?;
        let machine = &*machine;
        let graph = without_gil(py, |poll| {
            require_exact(
                machine,
                "the set of all members",
                "search() and mass() do not need an automaton",
            )?;
            match max_bytes {
                None => materialized::MaterializedDfa::of(machine, state_limit, poll),
                Some(most) => {
                    materialized::MaterializedDfa::with_max_len(machine, most, state_limit, poll)
                }
            }
        })?;
        Ok(Graph::over(graph, false))
    }

    #[staticmethod]
    fn of_tokens(
        py: Python<'_>,
        constraint: &Constraint,
        state_limit: u64,
        edge_limit: u64,
    ) -> PyResult<Graph> {
        let size = DfaSizeLimits { states: state_limit, edges: edge_limit };
        let graph = without_gil(py, |poll| constraint.inner.graph(size, poll))?;
        Ok(Graph::over(graph, true))
    }

    #[staticmethod]
    #[pyo3(signature = (data, token_count=None))]
    fn load(py: Python<'_>, data: &[u8], token_count: Option<u32>) -> PyResult<Graph> {
        let labels = token_count.unwrap_or(256);
        let read = without_gil(py, |poll| {
            match materialized::MaterializedDfa::load(data, labels, poll) {
                Err(LoadError::Interrupted) => Err(Error::Interrupted),
                other => Ok(other),
            }
        })?;
        let message = match read {
            Ok(graph) => return Ok(Graph::over(graph, token_count.is_some())),
            Err(LoadError::Label) => "data is not a saved automaton".to_owned(),
            Err(LoadError::Version(version)) => {
                format!("unsupported saved automaton: version {version}, expected version 1")
            }
            Err(_) => "the saved automaton is damaged".to_owned(),
        };
        Err(errors::argument(py, &message, None))
    }

    fn save<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner().save())
    }

    #[getter]
    fn state_count(&self) -> usize {
        self.inner().state_count()
    }

    #[getter]
    fn range_count(&self) -> usize {
        self.inner().range_count()
    }

    #[getter]
    fn label_count(&self) -> u64 {
        self.inner().label_count()
    }

    #[getter]
    fn is_empty(&self) -> bool {
        self.inner().is_empty()
    }

    #[getter]
    fn is_finite(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner().topological().is_some())
    }

    fn accepting(&self) -> Vec<u32> {
        let states = 0..self.inner().state_count() as u32;
        states.filter(|&state| self.inner().is_accepting(state)).collect()
    }

    /// Rows of source, first label, last label, target.
    fn ranges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let edges = self.inner().all_edges();
        let rows = edges.flat_map(|(source, edge)| [source, edge.low, edge.high, edge.target]);
        PyArray1::from_iter(py, rows).reshape([self.inner().range_count(), 4])
    }

    /// Rows of source, label, target.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let edges = self.inner().all_edges();
        let rows = edges.flat_map(|(source, edge)| {
            (edge.low..=edge.high).flat_map(move |label| [source, label, edge.target])
        });
        PyArray1::from_iter(py, rows).reshape([self.inner().label_count() as usize, 3])
    }

    fn after(&self, state: u32, label: u32) -> Option<u32> {
        self.inner().step_label(state, label)
    }

    fn accepts(&self, sequence: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.inner().accepts(self.shared.labels(sequence)?))
    }

    fn shortest<'py>(
        &self,
        py: Python<'py>,
        characters: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = without_gil(py, |poll| {
            Ok(self.shared.measured(characters, poll)?.shortest(self.inner(), 0))
        })?;
        found.map(|labels| self.shared.member(py, labels)).transpose()
    }

    /// Number of strings of all lengths; `None` if there are infinitely many.
    fn total(&self, py: Python<'_>, limit_bytes: u64) -> PyResult<Option<BigUint>> {
        let totals = without_gil(py, |poll| {
            materialized::completion_counts(self.inner(), limit_bytes, poll)
        })?;
        Ok(totals.and_then(|totals| totals.into_iter().next()))
    }

    /// Number of strings by length, up to `length`; shorter if no longer strings exist.
    fn counts(
        &self,
        py: Python<'_>,
        length: usize,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<Vec<BigUint>> {
        without_gil(py, |poll| {
            self.shared.count((characters, limit_bytes), poll, |tally| {
                let counts = tally.counts();
                let end = counts.len().min(length.saturating_add(1));
                (end > length || tally.is_complete()).then(|| counts[..end].to_vec())
            })
        })
    }

    /// Number of strings of one length, or of at most that length.
    fn count(
        &self,
        py: Python<'_>,
        length: usize,
        at_most: bool,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<BigUint> {
        without_gil(py, |poll| {
            self.shared.count((characters, limit_bytes), poll, |tally| {
                let counts = tally.counts();
                let known = counts.len() > length || tally.is_complete();
                known.then(|| match at_most {
                    true => counts.iter().take(length.saturating_add(1)).sum(),
                    false => counts.get(length).cloned().unwrap_or_default(),
                })
            })
        })
    }

    /// Number of strings of a span of lengths; `None` if there are infinitely many.
    fn span_total(
        &self,
        py: Python<'_>,
        kind: &str,
        length: usize,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<Option<BigUint>> {
        let span = span(kind, length)?;
        let table =
            without_gil(py, |poll| self.shared.table(span, (characters, limit_bytes), poll))?;
        Ok(table.map(|table| table.total()))
    }

    /// Returns the strings of a span with the given ranks, each below the span's total.
    fn unrank<'py>(
        &self,
        py: Python<'py>,
        numbers: Vec<BigUint>,
        kind: &str,
        length: usize,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<Bound<'py, PyList>> {
        let span = span(kind, length)?;
        let shared = &self.shared;
        let found = without_gil(py, |poll| {
            let mut found = Vec::with_capacity(numbers.len());
            if let Some(table) = shared.table(span, (characters, limit_bytes), poll)? {
                let measured = shared.measured(characters, poll)?;
                for number in &numbers {
                    found.extend(table.unrank(&shared.graph, measured, number, poll)?);
                }
            }
            Ok(found)
        })?;
        if found.len() != numbers.len() {
            return Err(PyValueError::new_err("a rank is outside the length range"));
        }
        let members = found.into_iter().map(|labels| shared.member(py, labels));
        PyList::new(py, members.collect::<PyResult<Vec<_>>>()?)
    }

    /// Returns the length of the string with a rank in order of length, and its rank within that
    /// length.
    fn locate(
        &self,
        py: Python<'_>,
        number: BigUint,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<Option<(usize, BigUint)>> {
        let (mut length, mut rest) = (0, number);
        without_gil(py, |poll| {
            self.shared.count((characters, limit_bytes), poll, |tally| {
                while let Some(count) = tally.counts().get(length) {
                    if rest < *count {
                        return Some(Some((length, rest.clone())));
                    }
                    rest -= count;
                    length += 1;
                }
                tally.is_complete().then_some(None)
            })
        })
    }

    /// Returns the rank of a string among those of its length.
    fn rank(
        &self,
        py: Python<'_>,
        sequence: &Bound<'_, PyAny>,
        length: usize,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<Option<BigUint>> {
        let labels = self.shared.labels(sequence)?;
        let shared = &self.shared;
        without_gil(py, |poll| {
            let span = LengthRange::Exactly(length);
            let Some(table) = shared.table(span, (characters, limit_bytes), poll)? else {
                return Ok(None);
            };
            table.rank(&shared.graph, shared.measured(characters, poll)?, &labels, poll)
        })
    }

    /// Iterates over the strings of lengths from `first` to `last`, by length.
    #[pyo3(signature = (first, last, characters, limit_bytes))]
    fn members(
        &self,
        py: Python<'_>,
        first: usize,
        last: Option<usize>,
        characters: bool,
        limit_bytes: u64,
    ) -> PyResult<Members> {
        without_gil(py, |poll| self.shared.measured(characters, poll).map(|_| ()))?;
        let place =
            ForkSafeMutex::new(materialized::MemberEnumerator::new(first, last, limit_bytes));
        Ok(Members { shared: Arc::clone(&self.shared), characters, place })
    }

    /// Returns the first string that is in one language and not in the other (or in this one and
    /// not in `other`).
    #[pyo3(signature = (other, *, inclusion, characters, pair_limit))]
    fn difference<'py>(
        &self,
        py: Python<'py>,
        other: &Graph,
        inclusion: bool,
        characters: bool,
        pair_limit: u64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let side = |graph: &Graph| (!graph.inner().is_empty()).then(|| Arc::clone(&graph.shared));
        let (left, right) = (side(self), side(other));
        let (relation, unit) = (relation(inclusion), unit(characters));
        let found = without_gil(py, |poll| {
            for side in [&left, &right].into_iter().flatten() {
                side.measured(characters, poll)?;
            }
            let left = left.as_ref().map(|side| &side.graph);
            let right = right.as_ref().map(|side| &side.graph);
            difference(left, right, relation, unit, pair_limit, poll)
        })?;
        Ok(found.map(|text| PyBytes::new(py, &text)))
    }

    fn __eq__(&self, other: &Graph) -> bool {
        self.shared.is_tokens == other.shared.is_tokens && self.inner() == other.inner()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner().hash(&mut hasher);
        hasher.finish()
    }
}

/// Iterator over strings.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Members {
    shared: Arc<GraphCache>,
    characters: bool,
    place: ForkSafeMutex<materialized::MemberEnumerator>,
}

#[pymethods]
impl Members {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.place.is_abandoned() {
            return Err(errors::in_use(py, "iterator", "give each thread its own iterator"));
        }
        let found = without_gil(py, |poll| {
            let measured = self.shared.measured(self.characters, poll)?;
            let mut place = self.place.lock();
            place.next(&self.shared.graph, measured, poll)
        })?;
        found.map(|labels| self.shared.member(py, labels)).transpose()
    }
}
