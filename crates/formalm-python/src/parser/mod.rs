//! Parsers that users write in Python, as machines.
//!
//! ```text
//!  Parser ──copy──► ParserMachine ──► states: a trie of inputs, some nodes own a parser
//!                        │
//!                        └──► masks: forced strings │ token groups │ walk of the vocabulary trie
//! ```

mod direct_mask_automaton;
mod embedded_parser_masks;
mod input_trie;
mod parser_machine;
mod parser_masks;
mod parser_size;
mod python_calls;
mod token_groups;
mod trie_walk;

use formalm_core::Error;
use pyo3::prelude::*;

pub(crate) use embedded_parser_masks::GrammarParserMasks;
pub(crate) use parser_machine::ParserMachine;
pub(crate) use parser_masks::ParserMasks;
use python_calls::ParserCalls;

/// Default state limit of a parser machine.
const STATE_LIMIT: u64 = 1 << 18;

/// A parser in its initial state; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Parser {
    start: Py<PyAny>,
    calls: ParserCalls,
    compares: bool,
}

impl Parser {
    pub(crate) fn machine(
        &self,
        py: Python<'_>,
        state_limit: Option<u64>,
    ) -> Result<ParserMachine, Error> {
        let limit = state_limit.unwrap_or(STATE_LIMIT).min(u64::from(u32::MAX >> 4));
        ParserMachine::new(self.start.bind(py), self.calls.clone_ref(py), self.compares, limit)
    }
}

#[pymethods]
impl Parser {
    /// Keeps a copy of `parser`, so that later changes have no effect.
    #[new]
    #[pyo3(signature = (parser, *, failure, parser_class, reads_bytes, compares))]
    fn new(
        parser: &Bound<'_, PyAny>,
        failure: Py<PyAny>,
        parser_class: Py<PyAny>,
        reads_bytes: bool,
        compares: bool,
    ) -> PyResult<Parser> {
        let py = parser.py();
        let calls = ParserCalls::new(failure, parser_class, reads_bytes);
        let start = calls.copy(parser).map_err(|error| crate::errors::failure(py, &error, None))?;
        Ok(Parser { start: start.unbind(), calls, compares })
    }
}
