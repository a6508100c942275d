//! `Encoder`: a BPE tokenizer prepared for canonical decoding.

use std::sync::Arc;

use formalm_vocabulary::{
    Error,
    bpe::{Boundary, BpeEncoder, LostText},
    normalization::normalizer_probes,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::interruptible::in_own_thread;
use crate::prepared_types::prepare_types;
use crate::vocabulary::Vocabulary;

/// The relations that decide which token sequences are canonical.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Encoder {
    pub(crate) inner: Arc<BpeEncoder>,
}

#[pymethods]
impl Encoder {
    /// `answers` are the texts of `probes`, normalized by the library.
    #[new]
    #[pyo3(signature = (tokenizer_json, vocabulary, answers=None))]
    fn new(
        py: Python<'_>,
        tokenizer_json: &[u8],
        vocabulary: &Vocabulary,
        answers: Option<Vec<String>>,
    ) -> PyResult<Encoder> {
        Encoder::checked(py, vocabulary, || {
            BpeEncoder::from_tokenizer_json(tokenizer_json, answers.as_deref())
        })
    }

    /// Returns the texts that the library has to normalize, each with the name of the normalizer.
    #[staticmethod]
    fn probes(py: Python<'_>, tokenizer_json: &[u8]) -> PyResult<Vec<(&'static str, String)>> {
        let probes = normalizer_probes(tokenizer_json).map_err(|e| errors::unreadable(py, &e))?;
        Ok(probes.into_iter().map(|probe| (probe.kind, probe.text)).collect())
    }

    /// Returns the byte position of the first character because of which the normalizer changes a
    /// text; `None` if it does not.
    fn first_change(&self, text: &str) -> Option<usize> {
        self.inner.first_change(text)
    }

    /// Returns the reason why a text has no canonical tokens, a clause about several texts, and the
    /// byte position of the character that shows it; `None` if it has some.
    fn lost_text(&self, text: &str) -> Option<(String, Option<usize>)> {
        LostText::of(&self.inner, text).map(|lost| (lost.reason, lost.at))
    }

    /// The steps of the normalizer that change texts; `None` if there are none.
    #[getter]
    fn normalizer(&self) -> Option<&str> {
        self.inner.splitter().normalizer_name()
    }

    /// Digest of the texts that the normalizer leaves unchanged; `None` if all are.
    #[getter]
    fn normalizer_digest(&self) -> Option<u32> {
        Some(self.inner.splitter().text_filter()?.digest())
    }

    /// Reads the bytes of `save`, for an equal vocabulary and tokenizer.
    #[staticmethod]
    fn from_saved(
        py: Python<'_>,
        data: &[u8],
        vocabulary: &Vocabulary,
        tokenizer_checksum: &[u8],
    ) -> PyResult<Encoder> {
        let vocabulary = Arc::clone(&vocabulary.inner);
        let read = || {
            let encoder = BpeEncoder::from_saved(data, &vocabulary, tokenizer_checksum)?;
            encoder.untabulated_tokens(vocabulary.without_special_bytes());
            Ok(encoder)
        };
        match py.detach(read) {
            Ok(inner) => Ok(Encoder { inner: Arc::new(inner) }),
            Err(error) => Err(errors::unreadable(py, &error)),
        }
    }

    /// Serializes the encoder with the checksum of its tokenizer file.
    fn save<'py>(
        &self,
        py: Python<'py>,
        vocabulary: &Vocabulary,
        tokenizer_json: &[u8],
    ) -> Bound<'py, PyBytes> {
        let data = py.detach(|| self.inner.save(&vocabulary.inner, tokenizer_json));
        PyBytes::new(py, &data)
    }

    /// Prepares the insides of common types for all constraints, and returns the number of new
    /// positions.
    fn prepare_types(&self, py: Python<'_>, vocabulary: &Vocabulary) -> PyResult<usize> {
        let (vocabulary, encoder) = (Arc::clone(&vocabulary.inner), Arc::clone(&self.inner));
        in_own_thread(py, move || prepare_types(&vocabulary, &encoder))
    }

    /// Number of positions inside parts that are prepared; that constraints needed and were; and
    /// that constraints needed and were not.
    #[getter]
    fn part_counts(&self) -> (usize, usize, usize) {
        let library = self.inner.part_library();
        let (served, missed) = library.counts();
        (library.len(), served, missed)
    }

    /// Builds the encoder of a tiktoken encoding, given as JSON.
    #[staticmethod]
    fn from_tiktoken(
        py: Python<'_>,
        encoding: &[u8],
        vocabulary: &Vocabulary,
    ) -> PyResult<Encoder> {
        Encoder::checked(py, vocabulary, || BpeEncoder::from_tiktoken(encoding))
    }

    /// Builds the encoder of a SentencePiece model.
    #[staticmethod]
    fn from_sentencepiece(
        py: Python<'_>,
        model: &[u8],
        vocabulary: &Vocabulary,
    ) -> PyResult<Encoder> {
        Encoder::checked(py, vocabulary, || BpeEncoder::from_sentencepiece(model))
    }

    /// Encodes a text without prepending a space; `None` if no tokens spell it.
    fn encode(&self, py: Python<'_>, text: &str) -> Option<Vec<u32>> {
        py.detach(|| self.inner.encode(text))
    }

    /// Returns the starts of the pre-tokens in bytes, and whether each is an added token.
    fn pieces(&self, py: Python<'_>, text: &str) -> PyResult<Vec<(usize, bool)>> {
        let pieces = py.detach(|| self.inner.splitter().pretokens(text.as_bytes()));
        let pieces = pieces
            .ok_or_else(|| errors::argument(py, "the pre-tokenizer cannot split the text", None))?;
        Ok(pieces.into_iter().map(|(start, mark)| (start, mark == Boundary::Added)).collect())
    }

    /// The strings of added tokens.
    fn added_texts(&self) -> Vec<String> {
        self.inner.added_token_strings()
    }

    /// The border characters of the classes that the pre-tokenizer distinguishes.
    fn borders(&self) -> String {
        self.inner.splitter().class_borders().iter().collect()
    }

    /// Returns the two tokens that merging would join across the border of two.
    fn crossing(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        self.inner.crossing_merge(first, second)
    }

    /// Returns the tokens that may not follow (`after`) or precede a token inside a pre-token,
    /// ascending.
    fn forbidden(&self, token_id: u32, after: bool) -> Vec<u32> {
        let mut ids = Vec::new();
        self.inner.forbidden(token_id, after, |tokens| ids.extend_from_slice(tokens));
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the way in which the tokenizer produces a token.
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

    /// Number of tokens made by a rule of no higher rank than that of a part.
    #[getter]
    fn early_count(&self) -> usize {
        self.inner.early_count()
    }

    /// Whether tokens are made by merging.
    #[getter]
    fn is_merging(&self) -> bool {
        self.inner.is_merging()
    }

    /// Whether every text that the pre-tokenizer and the normalizer keep has canonical tokens.
    #[getter]
    fn encodes_all(&self) -> bool {
        self.inner.encodes_all()
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
    /// Builds the encoder and checks that it belongs to the vocabulary.
    fn checked(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        read: impl FnOnce() -> Result<BpeEncoder, Error> + Send,
    ) -> PyResult<Encoder> {
        let vocabulary = Arc::clone(&vocabulary.inner);
        let made = py.detach(|| {
            let encoder = read()?;
            encoder.check(&vocabulary)?;
            encoder.untabulated_tokens(vocabulary.without_special_bytes());
            Ok(encoder)
        });
        match made {
            Ok(inner) => Ok(Encoder { inner: Arc::new(inner) }),
            Err(error) => Err(errors::unreadable(py, &error)),
        }
    }
}
