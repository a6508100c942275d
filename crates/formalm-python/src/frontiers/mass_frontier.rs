//! `MassFrontier`: the undecided token sequences of a mass, over a constraint.

use std::sync::Arc;

use formalm_frontier::{DecidedMass, MassBatch, MassOptions, MassSearch, RowSums, TreeQuery};
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::search_parts::{
    Contexts, Frontier, SearchParts, SharedQuery, length_limits, read_rows, refused,
};
use crate::errors;
use crate::logits::logit_rows::row_of;
use crate::vocabulary::Vocabulary;

/// Node, mass, and a bound on its relative error.
type Decided = Vec<(u32, f64, f64)>;

/// Tokens that a decoding rule left, and their log-probabilities.
type KeptTokens<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>);

fn decided(found: &[DecidedMass]) -> Decided {
    found.iter().map(|one| (one.node, one.mass, one.relative_error)).collect()
}

/// The token sequences whose event is undecided, each with its probability as its mass.
#[pyclass(frozen, extends = Frontier, module = "formalm._core")]
pub(crate) struct MassFrontier(Arc<SharedQuery<MassSearch>>);

#[pymethods]
impl MassFrontier {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "options by name")]
    #[pyo3(signature = (vocabulary, contexts, *, given_lengths, end_token_ids, complete, max_tokens, is_unbounded, row_error, cache_bytes))]
    fn new(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        contexts: Contexts<'_>,
        given_lengths: Vec<u32>,
        end_token_ids: Vec<u32>,
        complete: bool,
        max_tokens: Option<u32>,
        is_unbounded: bool,
        row_error: f64,
        cache_bytes: usize,
    ) -> PyResult<PyClassInitializer<MassFrontier>> {
        if given_lengths.len() != contexts.len() {
            return Err(errors::argument(py, "each context must have one length", None));
        }
        let (mut parts, roots) = SearchParts::new(py, vocabulary, &contexts, None)?;
        let lengths = length_limits(&contexts, max_tokens, complete);
        let options = MassOptions { lengths, given_lengths, is_unbounded, row_error, cache_bytes };
        let (scan, language) = (parts.scan(end_token_ids), &mut parts.language);
        let search = py.detach(|| MassSearch::new(&roots, scan, options, language));
        let search = search.map_err(|refusal| refused(py, &refusal))?;
        let (query, frontier) = SharedQuery::new(parts, search);
        Ok(PyClassInitializer::from(frontier).add_subclass(MassFrontier(query)))
    }

    /// Number of queued nodes.
    #[getter]
    fn queued(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.queue().len())
    }

    #[getter]
    fn is_exhausted(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.take(py)?.1.is_exhausted())
    }

    /// The log-probability of the best queued node.
    #[getter]
    fn best(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let inner = self.0.take(py)?;
        Ok(inner.1.queue().top().map(|node| inner.1.tree().logprob(node)))
    }

    /// An upper bound on all undecided mass.
    #[getter]
    fn open_mass(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.0.take(py)?.1.open_mass())
    }

    /// An upper bound on the mass that stays undecided.
    #[getter]
    fn parked_mass(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.0.take(py)?.1.parked_mass())
    }

    /// An upper bound on the error of any row's log-sum-exp so far.
    #[getter]
    fn row_error(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.0.take(py)?.1.row_error())
    }

    /// Nodes to evaluate, nodes to evaluate again for their next children, and decided masses.
    fn collect(&self, py: Python<'_>, room: usize) -> PyResult<(Vec<u32>, Vec<u32>, Decided)> {
        let batch = self.0.run_detached(py, |search, language| search.collect(room, language))?;
        let found = decided(&batch.decided);
        Ok((batch.nodes, batch.again, found))
    }

    /// Undoes `collect` for nodes that were not evaluated.
    fn put_back(&self, py: Python<'_>, nodes: Vec<u32>, again: Vec<u32>) -> PyResult<()> {
        self.0.take(py)?.1.put_back(&MassBatch { nodes, again, decided: Vec::new() });
        Ok(())
    }

    /// Passes masses to children, given the model's rows and whether each has log-probabilities; the
    /// last `again` nodes were evaluated before. Returns the log-sum-exp of each row with the code of
    /// its soundness, and decided masses; if a row is unsound, nothing changes.
    fn expand_rows(
        &self,
        py: Python<'_>,
        nodes: Vec<u32>,
        rows: Vec<Bound<'_, PyAny>>,
        is_normalized: Vec<bool>,
        again: usize,
    ) -> PyResult<(Vec<(f64, u8)>, Decided)> {
        let size = self.0.vocabulary_size;
        let (pairs, kinds) = read_rows(py, nodes, &rows, &is_normalized, size, row_of, |&row| row)?;
        let is_sound = |sums: &[RowSums]| kinds.are_sound(sums);
        let (sums, found) = self.0.run_detached(py, |search, language| {
            search.expand_rows(&pairs, again, is_sound, language)
        })?;
        Ok((kinds.with_codes(&sums), decided(&found)))
    }

    /// The same, given the tokens that a decoding rule left, ascending, and their log-probabilities.
    fn expand_kept(
        &self,
        py: Python<'_>,
        nodes: Vec<u32>,
        kept: Vec<KeptTokens<'_>>,
        again: usize,
    ) -> PyResult<Decided> {
        if kept.len() != nodes.len() || kept.iter().any(|one| one.0.len() != one.1.len()) {
            return Err(errors::argument(py, "ids and log-probabilities must fit", None));
        }
        let mut answers = Vec::with_capacity(nodes.len());
        for (node, one) in nodes.into_iter().zip(&kept) {
            answers.push((node, one.0.as_slice()?, one.1.as_slice()?));
        }
        let found = self
            .0
            .run_detached(py, |search, language| search.expand_kept(&answers, again, language))?;
        Ok(decided(&found))
    }

    /// Keeps a share of a node's mass as undecided for good.
    fn park(&self, py: Python<'_>, node: u32, share: f64) -> PyResult<()> {
        self.0.take(py)?.1.park(node, share);
        Ok(())
    }
}
