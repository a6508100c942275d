//! Tokenizers taken apart, for canonical tokens.

use std::sync::Arc;

use formalm_vocabulary::Error;
use formalm_vocabulary::bpe::{Boundary, BpeEncoder};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::vocabulary::Vocabulary;

/// What decides which sequences of tokens a tokenizer makes.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Encoder {
    pub(crate) inner: Arc<BpeEncoder>,
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(py: Python<'_>, tokenizer_json: &[u8], vocabulary: &Vocabulary) -> PyResult<Encoder> {
        Encoder::checked(py, vocabulary, || BpeEncoder::from_tokenizer_json(tokenizer_json))
    }

    /// What `save` wrote, for the same vocabulary and tokenizer.
    #[staticmethod]
    fn from_saved(
        py: Python<'_>,
        data: &[u8],
        vocabulary: &Vocabulary,
        tokenizer_json: &[u8],
    ) -> PyResult<Encoder> {
        let vocabulary = Arc::clone(&vocabulary.inner);
        match py.detach(|| BpeEncoder::from_saved(data, &vocabulary, tokenizer_json)) {
            Ok(inner) => Ok(Encoder { inner: Arc::new(inner) }),
            Err(error) => Err(errors::unreadable(py, &error)),
        }
    }

    /// The encoder as bytes, for this tokenizer's file.
    fn save<'py>(
        &self,
        py: Python<'py>,
        vocabulary: &Vocabulary,
        tokenizer_json: &[u8],
    ) -> Bound<'py, PyBytes> {
        let data = py.detach(|| self.inner.save(&vocabulary.inner, tokenizer_json));
        PyBytes::new(py, &data)
    }

    /// From an encoding of tiktoken, as JSON.
    #[staticmethod]
    fn from_tiktoken(
        py: Python<'_>,
        encoding: &[u8],
        vocabulary: &Vocabulary,
    ) -> PyResult<Encoder> {
        Encoder::checked(py, vocabulary, || BpeEncoder::from_tiktoken(encoding))
    }

    /// From a SentencePiece model.
    #[staticmethod]
    fn from_sentencepiece(
        py: Python<'_>,
        model: &[u8],
        vocabulary: &Vocabulary,
    ) -> PyResult<Encoder> {
        Encoder::checked(py, vocabulary, || BpeEncoder::from_sentencepiece(model))
    }

    /// The tokens of a text, no space put in front of it; none if no tokens spell it.
    fn encode(&self, py: Python<'_>, text: &str) -> Option<Vec<u32>> {
        py.detach(|| self.inner.encode(text))
    }

    /// Where the pieces of a text begin, in bytes, and whether each is an added token.
    fn pieces(&self, py: Python<'_>, text: &str) -> PyResult<Vec<(usize, bool)>> {
        let pieces = py.detach(|| self.inner.splitter().pretokens(text.as_bytes()));
        let pieces = pieces.ok_or_else(|| errors::argument(py, "the text has no pieces", None))?;
        Ok(pieces.into_iter().map(|(start, mark)| (start, mark == Boundary::Added)).collect())
    }

    /// The texts of added tokens.
    fn added_texts(&self) -> Vec<String> {
        self.inner.added_token_strings()
    }

    /// Characters beside those that the pre-tokenizer tells apart from them.
    fn borders(&self) -> String {
        self.inner.splitter().class_borders().iter().collect()
    }

    /// The two tokens that merging would join across the border of two.
    fn crossing(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        self.inner.crossing_merge(first, second)
    }

    /// Tokens that may not follow (`after`) or precede a token within a piece, ascending.
    fn forbidden(&self, token_id: u32, after: bool) -> Vec<u32> {
        let mut ids = Vec::new();
        if after {
            self.inner.forbidden_after(token_id, |tokens| ids.extend_from_slice(tokens));
        } else {
            self.inner.forbidden_before(token_id, |tokens| ids.extend_from_slice(tokens));
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Where a token comes from.
    fn kind(&self, token_id: u32) -> &'static str {
        use formalm_vocabulary::bpe::TokenOrigin;
        match self.inner.origin(token_id) {
            TokenOrigin::Merged => "merged",
            TokenOrigin::Whole => "whole",
            TokenOrigin::Byte(_) => "byte",
            TokenOrigin::Added => "added",
            TokenOrigin::Never => "never",
        }
    }

    /// Number of tokens made by a rule that goes before one of its parts'.
    #[getter]
    fn early_count(&self) -> usize {
        self.inner.early_count()
    }

    #[getter]
    fn marks_spaces(&self) -> bool {
        self.inner.escapes_spaces()
    }

    #[getter]
    fn prepends_space(&self) -> bool {
        self.inner.prepends_space()
    }

    #[getter]
    fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }
}

impl Encoder {
    /// What is read, once it is known to be the vocabulary's.
    fn checked(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        read: impl FnOnce() -> Result<BpeEncoder, Error> + Send,
    ) -> PyResult<Encoder> {
        let vocabulary = Arc::clone(&vocabulary.inner);
        let made = py.detach(|| {
            let encoder = read()?;
            encoder.check(&vocabulary)?;
            Ok(encoder)
        });
        match made {
            Ok(inner) => Ok(Encoder { inner: Arc::new(inner) }),
            Err(error) => Err(errors::unreadable(py, &error)),
        }
    }
}
