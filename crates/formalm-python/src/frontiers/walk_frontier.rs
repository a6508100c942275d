//! `WalkFrontier`: the tree of random walks over a constraint.

use std::sync::Arc;

use formalm_frontier::{RowSums, SharedRow, WalkMove, WalkOptions, WalkRule, WalkTree};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::search_parts::{Contexts, SearchParts, SharedQuery, length_limits, read_rows, refused};
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
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct WalkFrontier(SharedQuery<WalkTree>);

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
    ) -> PyResult<WalkFrontier> {
        let (parts, roots) = SearchParts::new(py, vocabulary, &contexts, None)?;
        let lengths = length_limits(&contexts, max_tokens, complete);
        let options = WalkOptions { lengths, step_bytes };
        let walks = WalkTree::new(&roots, parts.scan(end_token_ids), options);
        Ok(WalkFrontier(SharedQuery::new(parts, walks)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.tree().len())
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.memory_bytes())
    }

    /// Whether walks were stopped for the model's context.
    #[getter]
    fn cut_by_context(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.take(py)?.1.cut_by_context())
    }

    /// The node after a token.
    fn child(&self, py: Python<'_>, node: u32, token_id: u32) -> PyResult<u32> {
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let child = walks.child(node, token_id, &mut parts.language);
        child.map_err(|refusal| refused(py, &refusal))
    }

    /// Whether the model can read each node, or need not.
    fn can_be_evaluated(&self, py: Python<'_>, nodes: Vec<u32>) -> PyResult<Vec<bool>> {
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let each = nodes.iter().map(|&node| walks.can_be_evaluated(node, &mut parts.language));
        each.collect::<Result<_, _>>().map_err(|refusal| refused(py, &refusal))
    }

    /// The nodes that were not evaluated, each once, and then those that are decided.
    fn unevaluated(&self, py: Python<'_>, nodes: Vec<u32>) -> PyResult<(Vec<u32>, Vec<u32>)> {
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let found = walks.unevaluated(&nodes, &mut parts.language);
        found.map_err(|refusal| refused(py, &refusal))
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
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let size = self.0.vocabulary_size;
        let (pairs, kinds) =
            read_rows(py, nodes.clone(), &rows, &is_normalized, size, owned_row, SharedRow::row)?;
        let language = &mut parts.language;
        let is_sound = |sums: &[RowSums]| kinds.are_sound(sums);
        let sums = py.detach(|| walks.record_rows(pairs, is_sound, language));
        let sums = sums.map_err(|refusal| refused(py, &refusal))?;
        if !needs_factors && kinds.are_sound(&sums) {
            nodes.iter().for_each(|&node| walks.settle(node, 1.0));
        }
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
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let rule = if is_learned { WalkRule::Learned } else { WalkRule::Allowed };
        let language = &mut parts.language;
        let drawn = py.detach(|| {
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
        });
        drawn.map_err(|refusal| refused(py, &refusal))
    }

    /// The allowed tokens of an evaluated node with their probabilities; `None` if its row was
    /// evicted.
    fn listed<'py>(&self, py: Python<'py>, node: u32) -> PyResult<Option<ListedTokens<'py>>> {
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let listed = py.detach(|| walks.listed(node, &mut parts.language));
        let Some((ids, probabilities)) = listed.map_err(|refusal| refused(py, &refusal))? else {
            return Ok(None);
        };
        let ids = PyArray1::from_iter(py, ids.into_iter().map(i64::from));
        Ok(Some((ids, PyArray1::from_vec(py, probabilities))))
    }

    /// The log-probability of each token from the root to a node; NaN where it was not looked up.
    fn step_logprobs(&self, py: Python<'_>, node: u32) -> PyResult<Vec<f64>> {
        Ok(self.0.take(py)?.1.step_logprobs(node))
    }

    /// The log-probability of a token after a node; `None` if the node's row was evicted.
    fn token_logprob(&self, py: Python<'_>, node: u32, token_id: u32) -> PyResult<Option<f64>> {
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let logprob = walks.token_logprob(node, token_id, &mut parts.language);
        logprob.map_err(|refusal| refused(py, &refusal))
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
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let done = py.detach(|| walks.learn(&nodes, &mut parts.language));
        done.map_err(|refusal| refused(py, &refusal))
    }

    /// The allowed tokens at a node, without end tokens, and whether an end may follow.
    fn allowed<'py>(
        &self,
        py: Python<'py>,
        node: u32,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, bool)> {
        let mut inner = self.0.take(py)?;
        let (parts, walks) = &mut *inner;
        let (ids, accepting) =
            walks.allowed(node, &mut parts.language).map_err(|refusal| refused(py, &refusal))?;
        Ok((PyArray1::from_iter(py, ids.into_iter().map(i64::from)), accepting))
    }

    fn path(&self, py: Python<'_>, node: u32) -> PyResult<Vec<u32>> {
        Ok(self.0.take(py)?.1.tree().path(node))
    }

    fn root(&self, py: Python<'_>, node: u32) -> PyResult<u32> {
        Ok(self.0.take(py)?.1.tree().root(node))
    }

    /// -1 for a root.
    fn parent_of(&self, py: Python<'_>, node: u32) -> PyResult<i64> {
        Ok(self.0.take(py)?.1.tree().parent(node).map_or(-1, i64::from))
    }

    fn token_of(&self, py: Python<'_>, node: u32) -> PyResult<i32> {
        Ok(self.0.take(py)?.1.tree().token(node))
    }

    /// The bytes that the tokens of a node spell.
    fn data<'py>(&self, py: Python<'py>, node: u32) -> PyResult<Bound<'py, PyBytes>> {
        let inner = self.0.take(py)?;
        Ok(PyBytes::new(py, &inner.0.bytes(inner.1.tree(), node)))
    }
}
