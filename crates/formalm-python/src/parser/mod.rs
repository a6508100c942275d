//! Parsers that users write in Python, as machines.

mod grammar_masks;
mod opaque;
mod parser_machine;
mod parser_masks;
mod python_calls;
mod state_table;
mod token_groups;
mod trie_walk;

use formalm_automata::Error;
use pyo3::prelude::*;

pub(crate) use grammar_masks::AskingKeys;
pub(crate) use parser_machine::ParserMachine;
pub(crate) use parser_masks::ParserKeys;
use python_calls::Calls;

/// States of a parser's machine, unless the user says otherwise.
const STATE_LIMIT: u64 = 1 << 18;

/// A parser in the state that its language begins with; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Parser {
    start: Py<PyAny>,
    calls: Calls,
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
    /// A copy of `parser` is kept, so that it is not changed with it.
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
        let calls = Calls::new(failure, parser_class, reads_bytes);
        let start = calls.copy(parser).map_err(|error| crate::errors::failure(py, &error, None))?;
        Ok(Parser { start: start.unbind(), calls, compares })
    }
}
