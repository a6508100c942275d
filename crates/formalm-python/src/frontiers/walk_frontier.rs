//! `WalkFrontier`: the tree of random walks over a constraint.

use std::sync::Arc;

use formalm_frontier::{RowSums, SharedRow, WalkMove, WalkOptions, WalkRule, WalkTree};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use super::search_parts::{Contexts, Frontier, SearchParts, SharedQuery, length_limits, read_rows};
use crate::errors;
use crate::logits::logit_rows::row_of;
use crate::vocabulary::Vocabulary;

/// The move of a walk that ended, in place of a node.
const ENDED: i64 = -1;
/// The same of one that left the language.
const REJECTED: i64 = -2;

/// Tokens and their probabilities.
type ListedTokens<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// The tree of several random walks, and the steps that can be taken from its nodes.
#[pyclass(frozen, extends = Frontier, module = "formalm._core")]
pub(crate) struct WalkFrontier(Arc<SharedQuery<WalkTree>>);

/// Returns a row in the memory of an array that Python owns, without a copy. Models do not change rows
/// that they returned.
fn owned_row(array: &Bound<'_, PyAny>) -> PyResult<SharedRow> {
    let row = row_of(array)?;
    let (id, bytes) = (array.as_ptr() as usize, row.width() * row.element_type().size());
    // SAFETY: the array has the row's memory, and stays alive with the owner.
    Ok(unsafe { SharedRow::new(row, Arc::new(array.clone().unbind()), id, bytes) })
}

#[pymethods]
impl WalkFrontier {
    #[new]
    #[pyo3(signature = (vocabulary, contexts, *, end_token_ids, complete, max_tokens, step_bytes))]
    fn new(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        contexts: Contexts<'_>,
        end_token_ids: Vec<u32>,
        complete: bool,
        max_tokens: Option<u32>,
        step_bytes: usize,
    ) -> PyResult<PyClassInitializer<WalkFrontier>> {
        let (parts, roots) = SearchParts::new(py, vocabulary, &contexts, None)?;
        let lengths = length_limits(&contexts, max_tokens, complete);
        let options = WalkOptions { lengths, step_bytes };
        let walks = WalkTree::new(&roots, parts.scan(end_token_ids), options);
        let (query, frontier) = SharedQuery::new(parts, walks);
        Ok(PyClassInitializer::from(frontier).add_subclass(WalkFrontier(query)))
    }

    /// The node after a token.
    fn child(&self, py: Python<'_>, node: u32, token_id: u32) -> PyResult<u32> {
        self.0.run(py, |walks, language| walks.child(node, token_id, language))
    }

    /// Whether the model can read each node, or need not.
    fn can_be_evaluated(&self, py: Python<'_>, nodes: Vec<u32>) -> PyResult<Vec<bool>> {
        self.0.run(py, |walks, language| {
            nodes.iter().map(|&node| walks.can_be_evaluated(node, language)).collect()
        })
    }

    /// The nodes that were not evaluated, each once, and then those that are decided.
    fn unevaluated(&self, py: Python<'_>, nodes: Vec<u32>) -> PyResult<(Vec<u32>, Vec<u32>)> {
        self.0.run(py, |walks, language| walks.unevaluated(&nodes, language))
    }

    /// Records the model's rows at nodes, and whether each has log-probabilities. Unless
    /// `needs_factors`, `settle` is not needed. Returns the log-sum-exp of each row with the code of
    /// its soundness; if a row is unsound, nothing is recorded.
    fn record_rows(
        &self,
        py: Python<'_>,
        nodes: Vec<u32>,
        rows: Vec<Bound<'_, PyAny>>,
        is_normalized: Vec<bool>,
        needs_factors: bool,
    ) -> PyResult<Vec<(f64, u8)>> {
        let size = self.0.vocabulary_size;
        let (pairs, kinds) =
            read_rows(py, nodes.clone(), &rows, &is_normalized, size, owned_row, SharedRow::row)?;
        let is_sound = |sums: &[RowSums]| kinds.are_sound(sums);
        let sums = self.0.run_detached(py, |walks, language| {
            let sums = walks.record_rows(pairs, is_sound, language)?;
            if !needs_factors && kinds.are_sound(&sums) {
                nodes.iter().for_each(|&node| walks.settle(node, 1.0));
            }
            Ok(sums)
        })?;
        Ok(kinds.with_codes(&sums))
    }

    /// Records the tokens that may follow a node, ascending, with their probabilities and that of an
    /// end.
    fn record_listed(
        &self,
        py: Python<'_>,
        node: u32,
        ids: PyReadonlyArray1<'_, u32>,
        probabilities: PyReadonlyArray1<'_, f64>,
        end: f64,
    ) -> PyResult<()> {
        let (ids, probabilities) = (ids.as_slice()?, probabilities.as_slice()?);
        if ids.len() != probabilities.len() {
            return Err(errors::argument(py, "each token must have one probability", None));
        }
        self.0.take(py)?.1.record_listed(node, ids, probabilities, end);
        Ok(())
    }

    /// The probability of ending at a node; `None` if it was not evaluated.
    fn end(&self, py: Python<'_>, node: u32) -> PyResult<Option<f64>> {
        Ok(self.0.take(py)?.1.end(node))
    }

    /// Multiplies the probability of ending at a node that was just recorded by a factor.
    fn settle(&self, py: Python<'_>, node: u32, factor: f64) -> PyResult<()> {
        self.0.take(py)?.1.settle(node, factor);
        Ok(())
    }

    /// Records that walks end at a node, with `kept` as its live share.
    fn decide(&self, py: Python<'_>, node: u32, kept: f64) -> PyResult<()> {
        self.0.take(py)?.1.decide(node, kept);
        Ok(())
    }

    /// Records that nodes that cannot be evaluated lead nowhere.
    fn forbid(&self, py: Python<'_>, nodes: Vec<u32>) -> PyResult<()> {
        let mut inner = self.0.take(py)?;
        nodes.into_iter().for_each(|node| inner.1.forbid(node));
        Ok(())
    }

    /// The live share of a node; `None` if it was not evaluated.
    fn alive(&self, py: Python<'_>, node: u32) -> PyResult<Option<f64>> {
        Ok(self.0.take(py)?.1.alive(node))
    }

    /// Draws at nodes: the next node of each, -1 for an end or -2 outside the language, and the total
    /// probability that the draw was among. Stops before a node whose row was evicted.
    fn draw(
        &self,
        py: Python<'_>,
        nodes: Vec<u32>,
        uniforms: Vec<f64>,
        is_learned: bool,
    ) -> PyResult<(Vec<i64>, Vec<f64>)> {
        let rule = if is_learned { WalkRule::Learned } else { WalkRule::Allowed };
        self.0.run_detached(py, |walks, language| {
            let (mut moves, mut totals) = (Vec::new(), Vec::new());
            for (&node, &uniform) in nodes.iter().zip(&uniforms) {
                let Some((found, total)) = walks.draw(node, uniform, rule, language)? else {
                    break;
                };
                moves.push(match found {
                    WalkMove::To(child) => i64::from(child),
                    WalkMove::End => ENDED,
                    WalkMove::Rejected => REJECTED,
                });
                totals.push(total);
            }
            Ok((moves, totals))
        })
    }

    /// The allowed tokens of an evaluated node with their probabilities; `None` if its row was
    /// evicted.
    fn listed<'py>(&self, py: Python<'py>, node: u32) -> PyResult<Option<ListedTokens<'py>>> {
        let listed = self.0.run_detached(py, |walks, language| walks.listed(node, language))?;
        let Some((ids, probabilities)) = listed else { return Ok(None) };
        let ids = PyArray1::from_iter(py, ids.into_iter().map(i64::from));
        Ok(Some((ids, PyArray1::from_vec(py, probabilities))))
    }

    /// The log-probability of each token from the root to a node; NaN where it was not looked up.
    fn step_logprobs(&self, py: Python<'_>, node: u32) -> PyResult<Vec<f64>> {
        Ok(self.0.take(py)?.1.step_logprobs(node))
    }

    /// The log-probability of a token after a node; `None` if the node's row was evicted.
    fn token_logprob(&self, py: Python<'_>, node: u32, token_id: u32) -> PyResult<Option<f64>> {
        self.0.run(py, |walks, language| walks.token_logprob(node, token_id, language))
    }

    fn begin_round(&self, py: Python<'_>) -> PyResult<()> {
        self.0.take(py)?.1.begin_round();
        Ok(())
    }

    /// The nodes whose live shares `learn` has to compute, the deepest first.
    fn to_learn(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.0.take(py)?.1.to_learn())
    }

    /// Computes live shares. Returns the number of nodes done before one whose row was evicted.
    fn learn(&self, py: Python<'_>, nodes: Vec<u32>) -> PyResult<usize> {
        self.0.run_detached(py, |walks, language| walks.learn(&nodes, language))
    }
}
