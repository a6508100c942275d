//! What the frontiers of searches, masses and walks share: the language, contexts, and answers of the
//! model.

use std::sync::Arc;

use formalm_constraint::{AdvanceError, STATE_TABLE_LIMIT, StateTable};
use formalm_frontier::{
    Continuations, LengthLimits, Row, RowSum, SharedRow, TokenLanguage, TokenScan, TopK, TreeQuery,
    allowed_at,
};
use formalm_logits::ElementType;
use numpy::npyffi::NPY_ARRAY_OWNDATA;
use numpy::{
    PyArray1, PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::any_machine::AnyMaskClasses;
use crate::errors::{self, RejectedInput};
use crate::gil_cell::{GilCell, GilGuard};
use crate::logits::logit_rows::{element_type, row_of, soundness};
use crate::matcher::Matcher;
use crate::vocabulary::Vocabulary;

/// The states of a constraint as the language of a search.
pub(super) struct ConstraintLanguage(pub(super) StateTable<AnyMaskClasses>);

impl TokenLanguage for ConstraintLanguage {
    type Error = AdvanceError;

    fn step(&mut self, state: u32, token_id: u32) -> Result<u32, AdvanceError> {
        self.0.step(state, token_id)
    }

    fn step_byte(&mut self, state: u32, byte: u8) -> Result<u32, AdvanceError> {
        self.0.step_byte(state, byte)
    }

    fn fill(&mut self, state: u32, words: &mut [u32]) -> Result<(), AdvanceError> {
        Ok(self.0.fill(state, words)?)
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.0.is_accepting(state)
    }

    fn is_finished(&mut self, state: u32) -> Result<bool, AdvanceError> {
        Ok(self.0.is_finished(state)?)
    }
}

/// The contexts of a query: matcher, log-probability, and the number of tokens that the model can
/// read after it.
pub(super) type Contexts<'py> = Vec<(Bound<'py, Matcher>, f64, Option<u32>)>;

/// A query with what it is made from.
pub(super) struct QueryState<S: ?Sized>(pub(super) SearchParts, pub(super) S);

/// A query that Python drives. One thread at a time has it.
pub(super) struct SharedQuery<S: ?Sized> {
    pub(super) vocabulary_size: usize,
    inner: GilCell<QueryState<S>>,
}

impl<S: TreeQuery + Send + 'static> SharedQuery<S> {
    /// Returns a query, and what Python asks of every query about it.
    pub(super) fn new(parts: SearchParts, query: S) -> (Arc<SharedQuery<S>>, Frontier) {
        let vocabulary_size = parts.vocabulary.len();
        let inner = GilCell::new(QueryState(parts, query));
        let query = Arc::new(SharedQuery { vocabulary_size, inner });
        (Arc::clone(&query), Frontier(query))
    }
}

impl<S: ?Sized> SharedQuery<S> {
    /// Borrows the query. In a forked child its states are visited again first, if a thread modified
    /// them at the fork.
    pub(super) fn take<'a>(&'a self, py: Python<'a>) -> PyResult<GilGuard<'a, QueryState<S>>> {
        let mut inner = self
            .inner
            .take(py)
            .ok_or_else(|| errors::in_use(py, "search", "create one per thread"))?;
        inner.0.language.0.settle().map_err(|refusal| refused(py, &refusal))?;
        Ok(inner)
    }

    /// Runs a short step of the query.
    pub(super) fn run<T>(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut S, &mut ConstraintLanguage) -> Result<T, AdvanceError>,
    ) -> PyResult<T> {
        let mut inner = self.take(py)?;
        let QueryState(parts, query) = &mut *inner;
        step(query, &mut parts.language).map_err(|refusal| refused(py, &refusal))
    }

    /// Runs a step of the query while other threads have the interpreter.
    pub(super) fn run_detached<T: Send>(
        &self,
        py: Python<'_>,
        step: impl FnOnce(&mut S, &mut ConstraintLanguage) -> Result<T, AdvanceError> + Send,
    ) -> PyResult<T>
    where
        S: Send,
    {
        let mut inner = self.take(py)?;
        let QueryState(parts, query) = &mut *inner;
        let done = py.detach(|| step(query, &mut parts.language));
        done.map_err(|refusal| refused(py, &refusal))
    }
}

/// The sequences of a query, whichever it is.
#[pyclass(frozen, subclass, module = "formalm._core")]
pub(crate) struct Frontier(Arc<SharedQuery<dyn TreeQuery + Send>>);

#[pymethods]
impl Frontier {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.tree().len())
    }

    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.0.take(py)?.1.memory_bytes())
    }

    /// Whether sequences were omitted, or walks stopped, for the model's context.
    #[getter]
    fn cut_by_context(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.take(py)?.1.cut_by_context())
    }

    /// The allowed tokens at a node, without end tokens, and whether an end may follow.
    fn allowed<'py>(
        &self,
        py: Python<'py>,
        node: u32,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, bool)> {
        let (ids, accepting) =
            self.0.run(py, |query, language| allowed_at(query, node, language))?;
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
        let tokens = inner.1.tree().path(node).into_iter();
        let bytes = tokens.flat_map(|id| inner.0.vocabulary.token_bytes(id).unwrap_or_default());
        Ok(PyBytes::new(py, &bytes.copied().collect::<Vec<u8>>()))
    }
}

/// Returns the limits of the lengths of sequences after the contexts.
pub(super) fn length_limits(
    contexts: &Contexts<'_>,
    max_tokens: Option<u32>,
    complete: bool,
) -> LengthLimits {
    let context_rooms = contexts.iter().map(|context| context.2).collect();
    LengthLimits { max_tokens, context_rooms, complete }
}

/// What all queries are made from.
pub(super) struct SearchParts {
    pub(super) vocabulary: Arc<formalm_vocabulary::Vocabulary>,
    pub(super) language: ConstraintLanguage,
    top_k: Option<TopK>,
}

impl SearchParts {
    pub(super) fn new(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        contexts: &Contexts<'_>,
        top_k: Option<(usize, bool)>,
    ) -> PyResult<(SearchParts, Vec<(f64, u32)>)> {
        let mut table = StateTable::new(STATE_TABLE_LIMIT);
        let mut roots = Vec::with_capacity(contexts.len());
        for (matcher, logprob, _) in contexts {
            let cursor = matcher.get().take(py)?.clone();
            let state = py.detach(|| table.add_root(cursor));
            roots.push((*logprob, state.map_err(|error| errors::failure(py, &error, None))?));
        }
        let parts = SearchParts {
            vocabulary: Arc::clone(&vocabulary.inner),
            language: ConstraintLanguage(table),
            top_k: top_k.map(|(k, renormalize)| TopK { k, renormalize }),
        };
        Ok((parts, roots))
    }

    pub(super) fn scan(&self, end_token_ids: Vec<u32>) -> TokenScan {
        TokenScan::new(self.vocabulary.len(), end_token_ids)
    }

    /// Returns the state of a context that was found while the search runs.
    pub(super) fn state(&mut self, py: Python<'_>, matcher: &Matcher) -> PyResult<u32> {
        let cursor = matcher.take(py)?.clone();
        let state = py.detach(|| self.language.0.add_root(cursor));
        state.map_err(|error| errors::failure(py, &error, None))
    }

    /// Returns the rows of a list of answers: arrays, or pairs of ids and log-probabilities.
    pub(super) fn answers<'a, 'py>(&self, answers: &'a [Answer<'py>]) -> Vec<Continuations<'a>> {
        answers.iter().map(|answer| answer.continuations(self.top_k)).collect()
    }
}

/// An answer of the model.
pub(super) enum Answer<'py> {
    Row(Bound<'py, PyUntypedArray>, ElementType, f64),
    Kept(PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>),
}

impl<'py> Answer<'py> {
    /// Checks an array of the vocabulary's size, such an array with an offset, or ids with
    /// log-probabilities.
    fn new(py: Python<'py>, value: &Bound<'py, PyAny>, size: usize) -> PyResult<Answer<'py>> {
        if let Ok(pair) = value.cast::<PyTuple>() {
            let kept: PyResult<(PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>)> =
                pair.extract();
            let Ok((ids, logprobs)) = kept else {
                let (row, offset) = pair.extract()?;
                return Answer::row(py, row, offset, size);
            };
            let fits = ids.len() == logprobs.len();
            if !fits || ids.as_slice().is_err() || logprobs.as_slice().is_err() {
                return Err(errors::argument(py, "ids and log-probabilities must fit", None));
            }
            return Ok(Answer::Kept(ids, logprobs));
        }
        let array = value.cast::<PyUntypedArray>();
        let array = array.map_err(|_| errors::argument(py, "a row must be an array", None))?;
        Answer::row(py, array.clone(), 0.0, size)
    }

    /// Checks a row. Its elements are log-probabilities plus `offset`; uint16 has the bits of
    /// bfloat16.
    fn row(
        py: Python<'py>,
        array: Bound<'py, PyUntypedArray>,
        offset: f64,
        size: usize,
    ) -> PyResult<Answer<'py>> {
        let wrong = |what: &str| errors::argument(py, &format!("a row {what}"), None);
        let Some(float) = element_type(&array) else {
            return Err(wrong("must have a native float type"));
        };
        let contiguous = array.strides() == [float.size() as isize] || array.len() <= 1;
        if array.ndim() != 1 || !contiguous || array.len() < size {
            return Err(wrong("must be contiguous and as wide as the vocabulary"));
        }
        Ok(Answer::Row(array, float, offset))
    }

    fn continuations(&self, top_k: Option<TopK>) -> Continuations<'_> {
        match self {
            Answer::Row(array, kind, offset) => {
                // SAFETY: `new` checked type and contiguity; the array is alive as long as `self`.
                let row = unsafe {
                    let start = (*array.as_array_ptr()).fields.data.cast::<u8>().cast_const();
                    Row::from_raw(start, array.len(), *kind)
                };
                match top_k {
                    None => Continuations::All(row, *offset),
                    Some(rule) => Continuations::Best(row, *offset, rule),
                }
            }
            Answer::Kept(ids, logprobs) => Continuations::Kept(
                ids.as_slice().unwrap_or_default(),
                logprobs.as_slice().unwrap_or_default(),
            ),
        }
    }
}

/// Returns a row without a copy if NumPy owns its memory. The memory of others, such as a view of a
/// longer tensor, may be large beside the row, or change.
pub(super) fn shared_row(array: &Bound<'_, PyAny>) -> PyResult<SharedRow> {
    let row = row_of(array)?;
    let py = array.py();
    let array = array.cast::<PyUntypedArray>()?;
    // SAFETY: both pointers are those of living objects.
    let (base, flags) = unsafe {
        let object = array.as_array_ptr();
        ((*object).fields.base, (*object).fields.flags)
    };
    let owner = if base.is_null() {
        (flags & NPY_ARRAY_OWNDATA != 0).then(|| array.clone())
    } else {
        // SAFETY: as above.
        let base = unsafe { Bound::from_borrowed_ptr(py, base) };
        // SAFETY: as above.
        let owns = |one: &Bound<'_, PyUntypedArray>| unsafe {
            (*one.as_array_ptr()).fields.flags & NPY_ARRAY_OWNDATA != 0
        };
        base.cast_into::<PyUntypedArray>().ok().filter(owns)
    };
    let Some(owner) = owner else { return Ok(SharedRow::copied(row)) };
    let bytes = owner.len() * owner.dtype().itemsize();
    let id = owner.as_ptr() as usize;
    // SAFETY: the owner has the row's memory; models do not change rows that they returned.
    Ok(unsafe { SharedRow::new(row, Arc::new(owner.unbind()), id, bytes) })
}

/// The element types of rows, and whether each has log-probabilities.
pub(super) struct RowKinds(Vec<(ElementType, bool)>);

impl RowKinds {
    fn codes<S: Copy + Into<RowSum>>(&self, sums: &[S]) -> impl Iterator<Item = u8> {
        let each = sums.iter().zip(&self.0);
        each.map(|(&sums, &(kind, is_normalized))| soundness(sums, kind, is_normalized))
    }

    /// Returns `true` if all rows are sound.
    pub(super) fn are_sound<S: Copy + Into<RowSum>>(&self, sums: &[S]) -> bool {
        self.codes(sums).all(|code| code == 0)
    }

    /// Returns the log-sum-exp of each row, and the code of its soundness.
    pub(super) fn with_codes<S: Copy + Into<RowSum>>(&self, sums: &[S]) -> Vec<(f64, u8)> {
        let each = sums.iter().zip(self.codes(sums));
        each.map(|(&one, code)| (one.into().log_sum_exp, code)).collect()
    }
}

/// Reads the model's rows at nodes, each at least `size` wide.
pub(super) fn read_rows<'a, 'py, R>(
    py: Python<'py>,
    nodes: Vec<u32>,
    rows: &'a [Bound<'py, PyAny>],
    is_normalized: &[bool],
    size: usize,
    read: impl Fn(&'a Bound<'py, PyAny>) -> PyResult<R>,
    row: impl Fn(&R) -> Row<'_>,
) -> PyResult<(Vec<(u32, R)>, RowKinds)> {
    let wrong = |what| Err(errors::argument(py, what, None));
    if [rows.len(), is_normalized.len()] != [nodes.len(); 2] {
        return wrong("each node must have one row");
    }
    let (mut pairs, mut kinds) = (Vec::with_capacity(nodes.len()), Vec::new());
    for ((node, array), &is_normalized) in nodes.into_iter().zip(rows).zip(is_normalized) {
        let found = read(array)?;
        if row(&found).width() < size {
            return wrong("a row must be as wide as the vocabulary");
        }
        kinds.push((row(&found).element_type(), is_normalized));
        pairs.push((node, found));
    }
    Ok((pairs, RowKinds(kinds)))
}

pub(super) fn answers<'py>(
    py: Python<'py>,
    nodes: &[u32],
    listed: &Bound<'py, PyList>,
    size: usize,
) -> PyResult<Vec<Answer<'py>>> {
    if nodes.len() != listed.len() {
        return Err(errors::argument(py, "each node must have one answer", None));
    }
    listed.iter().map(|value| Answer::new(py, &value, size)).collect()
}

pub(super) fn refused(py: Python<'_>, refusal: &AdvanceError) -> PyErr {
    errors::refusal(py, refusal, RejectedInput::Text)
}
