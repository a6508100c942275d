//! `TokenFrontier` and `StringFrontier`: best-first searches over a constraint.
//!
//! Python asks the model; everything else of a batch is one call: the nodes to evaluate, and what
//! follows from their answers.

use std::sync::Arc;

use formalm_frontier::{
    Batch, EntryArrays, InvalidSearch, NodeArrays, QueueArrays, RowSum, SequenceTree, SharedRow,
    StringOptions, StringSearch, StringStep, TokenOptions, TokenSearch, TreeQuery,
};
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::search_parts::{
    Contexts, Frontier, QueryState, SearchParts, SharedQuery, answers, length_limits, read_rows,
    refused, shared_row,
};
use crate::matcher::Matcher;
use crate::vocabulary::Vocabulary;

fn damaged() -> PyErr {
    pyo3::exceptions::PyValueError::new_err("its arrays do not describe a search")
}

fn array<T: Element + Copy>(arrays: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
    let found = arrays.get_item(name)?.ok_or_else(damaged)?;
    let found: PyReadonlyArray1<'_, T> = found.extract().map_err(|_| damaged())?;
    Ok(found.as_array().to_vec())
}

fn node_arrays(arrays: &Bound<'_, PyDict>) -> PyResult<NodeArrays> {
    Ok(NodeArrays {
        parent: array(arrays, "tree.parent")?,
        token: array(arrays, "tree.token")?,
        logprob: array(arrays, "tree.logprob")?,
    })
}

/// Adds arrays to a dictionary: field, name.
macro_rules! set_arrays {
    ($py:expr, $into:expr, $from:expr; $($field:ident => $name:literal),* $(,)?) => {
        $($into.set_item($name, PyArray1::from_vec($py, $from.$field))?;)*
    };
}

fn set_nodes(py: Python<'_>, into: &Bound<'_, PyDict>, tree: &SequenceTree) -> PyResult<()> {
    let nodes = tree.arrays();
    set_arrays!(py, into, nodes;
        parent => "tree.parent", token => "tree.token", logprob => "tree.logprob");
    Ok(())
}

/// The search over token sequences.
#[pyclass(frozen, extends = Frontier, module = "formalm._core")]
pub(crate) struct TokenFrontier(Arc<SharedQuery<TokenSearch>>);

#[pymethods]
impl TokenFrontier {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "options by name")]
    #[pyo3(signature = (vocabulary, contexts, *, end_token_ids, complete, max_tokens, top_k, beams, cache_bytes))]
    fn new(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        contexts: Contexts<'_>,
        end_token_ids: Vec<u32>,
        complete: bool,
        max_tokens: Option<u32>,
        top_k: Option<(usize, bool)>,
        beams: Option<u32>,
        cache_bytes: usize,
    ) -> PyResult<PyClassInitializer<TokenFrontier>> {
        let (parts, roots) = SearchParts::new(py, vocabulary, &contexts, top_k)?;
        let lengths = length_limits(&contexts, max_tokens, complete);
        let options = TokenOptions { lengths, beams, cache_bytes };
        let search = TokenSearch::new(&roots, parts.scan(end_token_ids), options);
        let (query, frontier) = SharedQuery::new(parts, search);
        Ok(PyClassInitializer::from(frontier).add_subclass(TokenFrontier(query)))
    }

    /// Number of queued nodes.
    #[getter]
    fn queued(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.queue().len())
    }

    /// Whether sequences were omitted for a beam.
    #[getter]
    fn cut_by_beam(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.take(py)?.1.cut_by_beam())
    }

    /// `(logprob, is_hit)` of the best queued node; `None` if the search is over.
    fn top(&self, py: Python<'_>) -> PyResult<Option<(f64, bool)>> {
        Ok(self.0.take(py)?.1.top())
    }

    fn pop_hit(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        Ok(self.0.take(py)?.1.pop_hit())
    }

    /// An upper bound on what is still to come; infinity while children have to be computed again.
    #[getter]
    fn best_bound(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.0.take(py)?.1.best_bound())
    }

    /// Adds a context and returns its root.
    fn add_context(
        &self,
        py: Python<'_>,
        matcher: &Bound<'_, Matcher>,
        logprob: f64,
        room: Option<u32>,
    ) -> PyResult<u32> {
        let mut inner = self.0.take(py)?;
        let state = inner.0.state(py, matcher.get())?;
        Ok(inner.1.add_context(logprob, state, room))
    }

    /// Nodes above `floor` to evaluate, and nodes to evaluate again for their next children.
    #[pyo3(signature = (room, floor=None))]
    fn collect(
        &self,
        py: Python<'_>,
        room: usize,
        floor: Option<f64>,
    ) -> PyResult<(Vec<u32>, Vec<u32>)> {
        let Batch { nodes, again } =
            self.0.run_detached(py, |search, language| search.collect(room, floor, language))?;
        Ok((nodes, again))
    }

    /// Undoes `collect`.
    fn put_back(&self, py: Python<'_>, nodes: Vec<u32>, again: Vec<u32>) -> PyResult<()> {
        self.0.take(py)?.1.put_back(&Batch { nodes, again });
        Ok(())
    }

    /// Queues the continuations of nodes; the last `again` ones were evaluated before.
    fn expand<'py>(
        &self,
        py: Python<'py>,
        nodes: Vec<u32>,
        rows: &Bound<'py, PyList>,
        again: usize,
    ) -> PyResult<()> {
        let mut inner = self.0.take(py)?;
        let QueryState(parts, search) = &mut *inner;
        let answers = answers(py, &nodes, rows, self.0.vocabulary_size)?;
        let answers = parts.answers(&answers);
        let language = &mut parts.language;
        let first = nodes.len().saturating_sub(again);
        let done = py.detach(|| {
            for (place, (&node, answer)) in nodes.iter().zip(answers).enumerate() {
                if place < first {
                    search.expand(node, answer, language)?;
                } else {
                    search.expand_again(node, answer, language)?;
                }
            }
            Ok(())
        });
        done.map_err(|refusal| refused(py, &refusal))
    }

    fn steps(&self, py: Python<'_>, node: u32) -> PyResult<Vec<f64>> {
        Ok(self.0.take(py)?.1.tree().steps(node))
    }

    fn logprob_of(&self, py: Python<'_>, node: u32) -> PyResult<f64> {
        Ok(self.0.take(py)?.1.tree().logprob(node))
    }

    /// Everything but the model's answers, for `restore`.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.0.take(py)?;
        let found = PyDict::new(py);
        set_nodes(py, &found, inner.1.tree())?;
        let queue = inner.1.queue_arrays();
        set_arrays!(py, found, queue;
            queue => "queue", hits => "hits", kept => "kept", again => "again",
            list_nodes => "lists.nodes", list_counts => "lists.counts", list_more => "lists.more",
            list_lengths => "lists.lengths", listed_ids => "listed.ids",
            listed_logprobs => "listed.logprobs");
        Ok(found)
    }

    /// Restores a new search; raises a `ValueError` if the arrays do not describe one.
    fn restore(
        &self,
        py: Python<'_>,
        arrays: &Bound<'_, PyDict>,
        cut: (bool, bool),
    ) -> PyResult<()> {
        let queue = QueueArrays {
            queue: array(arrays, "queue")?,
            hits: array(arrays, "hits")?,
            kept: array(arrays, "kept")?,
            again: array(arrays, "again")?,
            list_nodes: array(arrays, "lists.nodes")?,
            list_counts: array(arrays, "lists.counts")?,
            list_more: array(arrays, "lists.more")?,
            list_lengths: array(arrays, "lists.lengths")?,
            listed_ids: array(arrays, "listed.ids")?,
            listed_logprobs: array(arrays, "listed.logprobs")?,
        };
        let nodes = node_arrays(arrays)?;
        let mut inner = self.0.take(py)?;
        let restored = inner.1.restore(&nodes, &queue, self.0.vocabulary_size, cut);
        if restored { Ok(()) } else { Err(damaged()) }
    }
}

/// The search over strings.
#[pyclass(frozen, extends = Frontier, module = "formalm._core")]
pub(crate) struct StringFrontier(Arc<SharedQuery<StringSearch>>);

/// Data, tokens, log-probability, tokenizations, context, log-probabilities of the tokens.
type FoundString<'py> = (Bound<'py, PyBytes>, Vec<u32>, f64, usize, u32, Vec<f64>);

#[pymethods]
impl StringFrontier {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "options by name")]
    #[pyo3(signature = (vocabulary, contexts, *, end_token_ids, complete, max_tokens, top_k, tolerance, cache_bytes))]
    fn new(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        contexts: Contexts<'_>,
        end_token_ids: Vec<u32>,
        complete: bool,
        max_tokens: Option<u32>,
        top_k: Option<(usize, bool)>,
        tolerance: f64,
        cache_bytes: usize,
    ) -> PyResult<PyClassInitializer<StringFrontier>> {
        let (mut parts, roots) = SearchParts::new(py, vocabulary, &contexts, top_k)?;
        let lengths = length_limits(&contexts, max_tokens, complete);
        let options = StringOptions { lengths, tolerance, cache_bytes };
        let (tokens, scan) = (vocabulary.sorted_tokens(py), parts.scan(end_token_ids));
        let language = &mut parts.language;
        let search = py.detach(|| StringSearch::new(&roots, tokens, scan, options, language));
        let search = search.map_err(|refusal| refused(py, &refusal))?;
        let (query, frontier) = SharedQuery::new(parts, search);
        Ok(PyClassInitializer::from(frontier).add_subclass(StringFrontier(query)))
    }

    /// Number of queued strings.
    #[getter]
    fn queued(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.queue_len())
    }

    /// An upper bound on what is still to come.
    #[getter]
    fn best_bound(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.0.take(py)?.1.best_bound())
    }

    #[getter]
    fn is_exhausted(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.take(py)?.1.is_exhausted())
    }

    /// Adds a context and returns its root.
    fn add_context(
        &self,
        py: Python<'_>,
        matcher: &Bound<'_, Matcher>,
        logprob: f64,
        room: Option<u32>,
    ) -> PyResult<u32> {
        let mut inner = self.0.take(py)?;
        let QueryState(parts, search) = &mut *inner;
        let state = parts.state(py, matcher.get())?;
        let root = search.add_context(logprob, state, room, &mut parts.language);
        root.map_err(|refusal| refused(py, &refusal))
    }

    fn begin_batch(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py)?.1.begin_batch();
        Ok(())
    }

    /// Runs until a string is found, the model is needed, or nothing exceeds `floor`: the string, or
    /// the nodes to evaluate and whether they were evaluated before.
    #[pyo3(signature = (batch, floor=None))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        batch: usize,
        floor: Option<f64>,
    ) -> PyResult<(Option<FoundString<'py>>, Vec<u32>, bool)> {
        let step =
            self.0.run_detached(py, |search, language| search.step(batch, floor, language))?;
        Ok(match step {
            StringStep::Hit(hit) => {
                let data = PyBytes::new(py, &hit.data);
                let (logprob, count) = (hit.logprob, hit.tokenizations);
                let found = (data, hit.token_ids, logprob, count, hit.context, hit.steps);
                (Some(found), Vec::new(), false)
            }
            StringStep::Evaluate(nodes) => (None, nodes, false),
            StringStep::Recall(nodes) => (None, nodes, true),
        })
    }

    /// Queues again what waited for an evaluation.
    fn requeue(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py)?.1.requeue();
        Ok(())
    }

    /// Records the model's rows at nodes, which were not checked, and whether each has
    /// log-probabilities. Returns the log-sum-exp of each, and the code of its soundness; if one is
    /// unsound, nothing is recorded.
    fn record_rows(
        &self,
        py: Python<'_>,
        nodes: Vec<u32>,
        rows: Vec<Bound<'_, PyAny>>,
        is_normalized: Vec<bool>,
    ) -> PyResult<Vec<(f64, u8)>> {
        let size = self.0.vocabulary_size;
        let (pairs, kinds) =
            read_rows(py, nodes, &rows, &is_normalized, size, shared_row, SharedRow::row)?;
        let each = pairs.into_iter().zip(is_normalized);
        let answers: Vec<_> =
            each.map(|((node, row), normalized)| (node, row, normalized)).collect();
        let is_sound = |sums: &[RowSum]| kinds.are_sound(sums);
        let sums = self.0.run_detached(py, |search, language| {
            search.record_rows(&answers, is_sound, language)
        })?;
        Ok(kinds.with_codes(&sums))
    }

    /// Records the model's answers at nodes.
    fn record<'py>(
        &self,
        py: Python<'py>,
        nodes: Vec<u32>,
        rows: &Bound<'py, PyList>,
    ) -> PyResult<()> {
        let mut inner = self.0.take(py)?;
        let QueryState(parts, search) = &mut *inner;
        let answers = answers(py, &nodes, rows, self.0.vocabulary_size)?;
        let answers = parts.answers(&answers);
        let language = &mut parts.language;
        let done = py.detach(|| {
            let mut pairs = nodes.iter().zip(answers);
            pairs.try_for_each(|(&node, answer)| search.record(node, answer, language))
        });
        done.map_err(|refusal| refused(py, &refusal))
    }

    /// Everything but the model's answers, for `restore`. No batch may be in progress.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.0.take(py)?;
        let found = PyDict::new(py);
        set_nodes(py, &found, inner.1.tree())?;
        let entries = inner.1.entry_arrays();
        set_arrays!(py, found, entries;
            ends => "ends", string_parents => "strings.parents", string_bytes => "strings.bytes",
            strings => "entries.strings", contexts => "entries.contexts",
            members => "entries.members", bounds => "entries.bounds", done => "entries.done",
            exact_lengths => "exact.lengths", exact => "exact",
            pending_lengths => "pending.lengths", pending => "pending",
            range_lengths => "ranges.lengths", ranges => "ranges",
            range_logprobs => "ranges.logprobs");
        Ok(found)
    }

    /// Restores a new search; raises a `ValueError` if the arrays do not describe one.
    fn restore(&self, py: Python<'_>, arrays: &Bound<'_, PyDict>, cut: bool) -> PyResult<()> {
        let entries = EntryArrays {
            ends: array(arrays, "ends")?,
            string_parents: array(arrays, "strings.parents")?,
            string_bytes: array(arrays, "strings.bytes")?,
            strings: array(arrays, "entries.strings")?,
            contexts: array(arrays, "entries.contexts")?,
            members: array(arrays, "entries.members")?,
            bounds: array(arrays, "entries.bounds")?,
            done: array(arrays, "entries.done")?,
            exact_lengths: array(arrays, "exact.lengths")?,
            exact: array(arrays, "exact")?,
            pending_lengths: array(arrays, "pending.lengths")?,
            pending: array(arrays, "pending")?,
            range_lengths: array(arrays, "ranges.lengths")?,
            ranges: array(arrays, "ranges")?,
            range_logprobs: array(arrays, "ranges.logprobs")?,
        };
        let nodes = node_arrays(arrays)?;
        let mut inner = self.0.take(py)?;
        let QueryState(parts, search) = &mut *inner;
        let (language, size) = (&mut parts.language, self.0.vocabulary_size);
        match search.restore(&nodes, &entries, size, cut, language) {
            Ok(()) => Ok(()),
            Err(InvalidSearch::Arrays) => Err(damaged()),
            Err(InvalidSearch::Language(refusal)) => Err(refused(py, &refusal)),
        }
    }
}
