//! Regular languages and their machines.

use std::sync::Arc;

use formalm_automata::explicit::{Relation, Unit, difference, is_text};
use formalm_automata::syntax::{Dialect, Flags, parse};
use formalm_automata::{Automaton as Lazy, Expression as Language, Limits, Machine};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::patient::patient;

/// A regular language as an immutable expression; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Expression {
    language: Language,
}

fn made(py: Python<'_>, result: Result<Language, formalm_automata::Error>) -> PyResult<Expression> {
    match result {
        Ok(language) => Ok(Expression { language }),
        Err(error) => Err(errors::failure(py, &error, None)),
    }
}

#[pymethods]
impl Expression {
    #[staticmethod]
    #[pyo3(signature = (pattern, dialect="python", *, ignore_case=false, multi_line=false,
                        dot_all=false, ascii=false, verbose=false))]
    #[expect(clippy::too_many_arguments, reason = "one per flag of the pattern")]
    fn pattern(
        py: Python<'_>,
        pattern: &str,
        dialect: &str,
        ignore_case: bool,
        multi_line: bool,
        dot_all: bool,
        ascii: bool,
        verbose: bool,
    ) -> PyResult<Expression> {
        let dialect = match dialect {
            "python" => Dialect::Python,
            "ecma" => Dialect::Ecma,
            other => {
                let message = format!("there is no dialect {other:?}");
                return Err(errors::argument(py, &message, Some("use \"python\" or \"ecma\"")));
            }
        };
        let flags = Flags { ignore_case, multi_line, dot_all, ascii, verbose };
        match py.detach(|| parse(pattern, dialect, flags)) {
            Ok(parsed) => Ok(Expression { language: Language::pattern(parsed) }),
            Err(error) => Err(errors::failure(py, &error, Some(pattern))),
        }
    }

    #[staticmethod]
    fn texts(texts: Vec<Vec<u8>>) -> Expression {
        Expression { language: Language::texts(texts) }
    }

    #[getter]
    fn groups(&self) -> Vec<(Option<String>, usize, usize)> {
        let groups = self.language.as_pattern().map(|pattern| pattern.groups.as_slice());
        let groups = groups.unwrap_or_default().iter();
        groups.map(|group| (group.name.clone(), group.span.start, group.span.end)).collect()
    }

    fn union(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(py, Language::union(vec![self.language.clone(), other.language.clone()]))
    }

    fn concatenate(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(py, Language::concat(vec![self.language.clone(), other.language.clone()]))
    }

    fn intersect(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(py, Language::intersection(vec![self.language.clone(), other.language.clone()]))
    }

    fn subtract(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(py, self.language.clone().difference(other.language.clone()))
    }

    fn complement(&self, py: Python<'_>) -> PyResult<Expression> {
        made(py, self.language.clone().complement())
    }

    #[pyo3(signature = (min=0, max=None))]
    fn repeat(&self, py: Python<'_>, min: u32, max: Option<u32>) -> PyResult<Expression> {
        made(py, self.language.clone().repeat(min, max))
    }
}

/// The lazy deterministic machine of an expression.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Automaton {
    pub(crate) machine: Arc<Lazy>,
}

#[pymethods]
impl Automaton {
    #[new]
    #[pyo3(signature = (expression, *, state_limit=None, memory_limit_bytes=None))]
    fn new(
        py: Python<'_>,
        expression: &Expression,
        state_limit: Option<u64>,
        memory_limit_bytes: Option<u64>,
    ) -> PyResult<Automaton> {
        let mut limits = Limits::default();
        limits.states = state_limit.unwrap_or(limits.states);
        limits.bytes = memory_limit_bytes.unwrap_or(limits.bytes);
        match py.detach(|| Lazy::new(&expression.language, limits)) {
            Ok(machine) => Ok(Automaton { machine: Arc::new(machine) }),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// The machine, or none if the language is empty.
    #[staticmethod]
    #[pyo3(signature = (expression, *, state_limit=None))]
    fn of(
        py: Python<'_>,
        expression: &Expression,
        state_limit: Option<u64>,
    ) -> PyResult<Option<Automaton>> {
        let mut limits = Limits::default();
        limits.states = state_limit.unwrap_or(limits.states);
        match py.detach(|| Lazy::of(&expression.language, limits)) {
            Ok(machine) => Ok(machine.map(|machine| Automaton { machine: Arc::new(machine) })),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// Whether all members are UTF-8.
    fn is_text(&self, py: Python<'_>, pair_limit: u64) -> PyResult<bool> {
        if self.machine.is_text() {
            return Ok(true);
        }
        patient(py, |poll| is_text(&*self.machine, pair_limit, poll))
    }

    /// The first text, by length and then from the smallest, that is in one language and not in
    /// the other (or in `left` and not in `right`); none is the empty language.
    #[staticmethod]
    #[pyo3(signature = (left, right, *, inclusion, characters, pair_limit))]
    fn difference<'py>(
        py: Python<'py>,
        left: Option<&Automaton>,
        right: Option<&Automaton>,
        inclusion: bool,
        characters: bool,
        pair_limit: u64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (left, right) = (left.map(|one| &*one.machine), right.map(|one| &*one.machine));
        let (relation, unit) = (relation(inclusion), unit(characters));
        let found = patient(py, |poll| difference(left, right, relation, unit, pair_limit, poll))?;
        Ok(found.map(|text| PyBytes::new(py, &text)))
    }

    fn matches(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        let read = py.detach(|| self.machine.walk(self.machine.start(), text));
        let read = read.map_err(|error| errors::failure(py, &error, None))?;
        Ok(read.is_ok_and(|state| self.machine.is_accepting(state)))
    }

    fn is_viable(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        Ok(self.viable_length(py, text)? == text.len())
    }

    fn viable_length(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        let read = py.detach(|| self.machine.walk(self.machine.start(), text));
        let read = read.map_err(|error| errors::failure(py, &error, None))?;
        Ok(read.err().unwrap_or(text.len()))
    }

    #[pyo3(signature = (prefix=None))]
    fn shortest<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&[u8]>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let prefix = prefix.unwrap_or_default();
        let found = py.detach(|| match self.machine.walk(self.machine.start(), prefix)? {
            Ok(state) => self.machine.shortest(state).map(Some),
            Err(_) => Ok(None),
        });
        let found = found.map_err(|error| errors::failure(py, &error, None))?;
        Ok(found.map(|rest| PyBytes::new(py, &[prefix, &rest].concat())))
    }

    #[getter]
    fn state_count(&self) -> usize {
        self.machine.state_count()
    }

    #[getter]
    fn memory_bytes(&self) -> usize {
        self.machine.memory_bytes()
    }
}

pub(crate) fn unit(characters: bool) -> Unit {
    if characters { Unit::Characters } else { Unit::Labels }
}

pub(crate) fn relation(inclusion: bool) -> Relation {
    if inclusion { Relation::Inclusion } else { Relation::Equivalence }
}
