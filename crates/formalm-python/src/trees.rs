//! Trees of the members of grammars.

use formalm_grammar::{Limits, Part, Trees as Inner, parse_shaped};
use num_bigint::BigUint;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::automaton::Automaton;
use crate::errors;
use crate::grammar::options;
use crate::language::Expression;
use crate::machine::AnyMachine;

/// A grammar as trees show it.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Trees {
    inner: Inner,
}

#[pymethods]
impl Trees {
    #[new]
    #[pyo3(signature = (text, syntax, lexing=None, start=None, languages=Vec::new()))]
    fn new(
        py: Python<'_>,
        text: &str,
        syntax: &str,
        lexing: Option<&str>,
        start: Option<&str>,
        languages: Vec<(String, PyRef<'_, Expression>)>,
    ) -> PyResult<Trees> {
        let (syntax, lexing, languages) = options(py, syntax, lexing, languages)?;
        let made = py.detach(|| {
            let shaped = parse_shaped(text, syntax, lexing, start, &languages)?;
            Inner::new(shaped, Limits::default())
        });
        match made {
            Ok(inner) => Ok(Trees { inner }),
            Err(error) => Err(errors::failure(py, &error, Some(text))),
        }
    }

    /// Number of trees, and one of them, children first.
    fn parse<'py>(
        &self,
        py: Python<'py>,
        automaton: &Automaton,
        text: &[u8],
        whole: bool,
        step_limit: u64,
    ) -> PyResult<Option<(Option<BigUint>, Bound<'py, PyList>)>> {
        let AnyMachine::Grammar(machine) = &*automaton.machine else { return Ok(None) };
        let parsed = py.detach(|| self.inner.parse(machine, text, whole, step_limit));
        let parsed = parsed.map_err(|error| errors::failure(py, &error, None))?;
        let Some(parsed) = parsed else { return Ok(None) };
        let shaped = self.inner.shaped();
        let branches = PyList::empty(py);
        for one in &parsed.branches {
            let (name, rule) = match one.part {
                Part::Rule(rule, alternative) => {
                    let name = &shaped.grammar.rules[rule].name;
                    // Of a template the name alone, as it is written.
                    let name = name.split('{').next().unwrap_or(name);
                    let alias = shaped.shown[rule].aliases.get(alternative);
                    let alias = alias.and_then(Option::as_deref);
                    (Some(alias.unwrap_or(name)), Some(name))
                }
                Part::Lexeme(terminal) => {
                    (Some(shaped.grammar.terminals[terminal].name.as_str()), None)
                }
                Part::Absent => (None, None),
            };
            let ways = one.ways.as_ref();
            branches.append((name, rule, one.children, one.span, one.kept, ways))?;
        }
        Ok(Some((parsed.count, branches)))
    }
}
