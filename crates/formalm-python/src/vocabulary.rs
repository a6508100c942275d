//! `Vocabulary`: token bytes and the tables of masks.

use std::sync::Arc;

use formalm_core::SetOnce;
use formalm_frontier::SortedTokens;

use formalm_machines::special_token_bytes;
use formalm_vocabulary::Error;
use formalm_vocabulary::sentencepiece::piece_bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors;

/// Token id to bytes, with the tables that make masks fast.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Vocabulary {
    pub(crate) inner: Arc<formalm_vocabulary::Vocabulary>,
    /// Token groups that parsers have used, each with its bitmask.
    pub(crate) groups: Py<PyDict>,
    /// Made by the first search over strings.
    sorted: SetOnce<Arc<SortedTokens>>,
}

impl Vocabulary {
    fn of(py: Python<'_>, inner: Arc<formalm_vocabulary::Vocabulary>) -> Vocabulary {
        Vocabulary { inner, groups: PyDict::new(py).unbind(), sorted: SetOnce::default() }
    }

    /// Returns the tokens sorted by bytes.
    pub(crate) fn sorted_tokens(&self, py: Python<'_>) -> Arc<SortedTokens> {
        let tokens = &self.inner;
        py.detach(|| {
            let made = self.sorted.get_or_init(|| {
                let ids = 0..tokens.len() as u32;
                Arc::new(SortedTokens::new(ids.map(|id| tokens.token_bytes(id))))
            });
            Arc::clone(made)
        })
    }
}

fn made(
    py: Python<'_>,
    result: Result<formalm_vocabulary::Vocabulary, Error>,
) -> PyResult<Vocabulary> {
    match result {
        Ok(inner) => Ok(Vocabulary::of(py, Arc::new(inner))),
        Err(error) => Err(errors::unreadable(py, &error)),
    }
}

#[pymethods]
impl Vocabulary {
    #[staticmethod]
    #[pyo3(signature = (tokens, end_token_ids=Vec::new(), names=Vec::new(), notes=Vec::new()))]
    fn from_tokens(
        py: Python<'_>,
        tokens: Vec<Option<Vec<u8>>>,
        end_token_ids: Vec<u32>,
        names: Vec<(String, u32)>,
        notes: Vec<String>,
    ) -> PyResult<Vocabulary> {
        made(
            py,
            py.detach(|| {
                formalm_vocabulary::Vocabulary::from_named_tokens(
                    tokens,
                    end_token_ids,
                    names,
                    notes,
                )
            }),
        )
    }

    #[staticmethod]
    #[pyo3(signature = (text, end_token_ids=None))]
    fn from_tokenizer_json(
        py: Python<'_>,
        text: &[u8],
        end_token_ids: Option<Vec<u32>>,
    ) -> PyResult<Vocabulary> {
        made(
            py,
            py.detach(|| formalm_vocabulary::Vocabulary::from_tokenizer_json(text, end_token_ids)),
        )
    }

    /// Reads a SentencePiece model; returns it with the ids of its end piece.
    #[staticmethod]
    fn from_sentencepiece(py: Python<'_>, model: &[u8]) -> PyResult<(Vocabulary, Vec<u32>)> {
        match py.detach(|| formalm_vocabulary::Vocabulary::from_sentencepiece(model)) {
            Ok((inner, ends)) => Ok((made(py, Ok(inner))?, ends)),
            Err(error) => Err(errors::unreadable(py, &error)),
        }
    }

    /// Returns the bytes of SentencePiece pieces, given with their types; `None` for those without
    /// text. Errors begin with `place` and the index.
    #[staticmethod]
    fn piece_bytes<'py>(
        py: Python<'py>,
        pieces: Vec<(String, i64)>,
        place: &str,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let bytes = |(at, (text, kind)): (usize, &(String, i64))| {
            piece_bytes(text, *kind, &format!("{place}[{at}]"))
                .map(|bytes| bytes.map(|bytes| PyBytes::new(py, &bytes)))
                .map_err(|error| errors::unreadable(py, &error))
        };
        pieces.iter().enumerate().map(bytes).collect()
    }

    #[staticmethod]
    fn from_saved(py: Python<'_>, data: &[u8]) -> PyResult<Vocabulary> {
        made(py, py.detach(|| formalm_vocabulary::Vocabulary::from_saved(data)))
    }

    fn save<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let data = py.detach(|| self.inner.save());
        PyBytes::new(py, &data)
    }

    fn with_end_token_ids(&self, py: Python<'_>, end_token_ids: Vec<u32>) -> PyResult<Vocabulary> {
        made(py, py.detach(|| self.inner.with_end_token_ids(end_token_ids)))
    }

    /// Returns the vocabulary for languages that contain special tokens, which get bytes.
    fn with_special(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Vocabulary> {
        made(py, py.detach(|| self.inner.with_special_tokens(&names)))
    }

    /// The bytes that a special token gets.
    #[staticmethod]
    fn special_bytes<'py>(py: Python<'py>, name: &str) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &special_token_bytes(name))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        token_id: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let id: u32 = errors::integer(token_id, "token id")?;
        if (id as usize) < self.inner.len() {
            return Ok(self.inner.token_bytes(id).map(|bytes| PyBytes::new(py, bytes)));
        }
        let message = format!("token {id} is not in the vocabulary");
        let hint = format!("valid ids are 0 to {}", self.inner.len() - 1);
        Err(errors::argument(py, &message, Some(&hint)))
    }

    /// All token bytes at once; `None` for ids without bytes.
    fn all_token_bytes<'py>(&self, py: Python<'py>) -> Vec<Option<Bound<'py, PyBytes>>> {
        let ids = 0..self.inner.len() as u32;
        ids.map(|id| self.inner.token_bytes(id).map(|bytes| PyBytes::new(py, bytes))).collect()
    }

    #[getter]
    fn end_token_ids(&self) -> Vec<u32> {
        self.inner.end_token_ids().to_vec()
    }

    #[getter]
    fn special_token_ids(&self) -> Vec<u32> {
        self.inner.special_token_ids().collect()
    }

    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let names = PyDict::new(py);
        for (name, id) in self.inner.special_tokens() {
            names.set_item(name, id)?;
        }
        Ok(names)
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.inner.notes().to_vec()
    }

    #[getter]
    fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }

    #[getter]
    fn fingerprint(&self) -> String {
        self.inner.fingerprint().to_owned()
    }
}

/// A checksum that detects damage and mix-ups.
#[pyfunction]
pub(crate) fn checksum<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &py.detach(|| formalm_vocabulary::checksum(data)))
}
