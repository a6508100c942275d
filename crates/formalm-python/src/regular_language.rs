//! `Expression`: regular languages, and `Grouping`: the captures of their groups.

use std::sync::Arc;

use formalm_automata::{AutomatonLimits, EditOperations, EditRules};
use formalm_core::CharSet;
use formalm_regex::{PatternDialect, PatternFlags, parse};
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;
use crate::interruptible::without_gil;
use crate::lazy_automaton::Automaton;

/// A regular language as an immutable expression; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Expression {
    pub(crate) language: formalm_automata::Expression,
}

/// Characters of a string in the language aligned with those of a text.
type Pairs = Vec<(Option<char>, Option<char>)>;

fn made(
    py: Python<'_>,
    result: Result<formalm_automata::Expression, formalm_core::Error>,
) -> PyResult<Expression> {
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
        let Some(dialect) = PatternDialect::from_name(dialect) else {
            let message = format!("unknown dialect {dialect:?}");
            let hint = "use \"python\", \"python-3.11\", \"python-3.14\", \"ecma\" or \"rust\"";
            return Err(errors::argument(py, &message, Some(hint)));
        };
        let flags = PatternFlags { ignore_case, multi_line, dot_all, ascii, verbose };
        match py.detach(|| parse(pattern, dialect, flags)) {
            Ok(parsed) => {
                Ok(Expression { language: formalm_automata::Expression::pattern(parsed) })
            }
            Err(error) => Err(errors::failure(py, &error, Some(pattern))),
        }
    }

    #[staticmethod]
    fn texts(texts: Vec<Vec<u8>>) -> Expression {
        Expression { language: formalm_automata::Expression::literals(texts) }
    }

    #[getter]
    fn groups(&self) -> Vec<(Option<String>, usize, usize)> {
        let groups = self.language.groups().into_iter();
        groups.map(|group| (group.name.clone(), group.span.start, group.span.end)).collect()
    }

    fn union(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(
            py,
            formalm_automata::Expression::union(vec![
                self.language.clone(),
                other.language.clone(),
            ]),
        )
    }

    fn concatenate(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(
            py,
            formalm_automata::Expression::concat(vec![
                self.language.clone(),
                other.language.clone(),
            ]),
        )
    }

    fn intersect(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(
            py,
            formalm_automata::Expression::intersection(vec![
                self.language.clone(),
                other.language.clone(),
            ]),
        )
    }

    fn subtract(&self, py: Python<'_>, other: &Expression) -> PyResult<Expression> {
        made(py, self.language.clone().difference(other.language.clone()))
    }

    fn complement(&self, py: Python<'_>) -> PyResult<Expression> {
        made(py, self.language.clone().complement())
    }

    #[pyo3(signature = (budget, alphabet=None, *, insert=true, delete=true, substitute=true,
                        after=None, before=None, group=None))]
    #[expect(clippy::too_many_arguments, reason = "one per option of the user")]
    fn edits(
        &self,
        py: Python<'_>,
        budget: u32,
        alphabet: Option<&Expression>,
        insert: bool,
        delete: bool,
        substitute: bool,
        after: Option<&Expression>,
        before: Option<&Expression>,
        group: Option<String>,
    ) -> PyResult<Expression> {
        let Some(alphabet) = alphabet.map_or(Some(CharSet::all()), |one| one.language.as_class())
        else {
            let message = "alphabet must be a character class such as [a-z], or single characters";
            return Err(errors::argument(py, message, None));
        };
        let region = |one: Option<&Expression>| one.map(|one| one.language.clone());
        let edits = EditRules {
            budget,
            alphabet,
            operations: EditOperations { insert, delete, substitute },
            after: region(after),
            before: region(before),
            group,
        };
        made(py, self.language.clone().edits(edits))
    }

    fn edit_script(&self, py: Python<'_>, text: &str) -> PyResult<Option<Pairs>> {
        let limits = AutomatonLimits::default();
        let script = without_gil(py, |poll| self.language.edit_script(text, limits, poll))?;
        Ok(script.map(|script| script.pairs))
    }

    #[pyo3(signature = (rules, *, optional=false))]
    fn rewrite(
        &self,
        py: Python<'_>,
        rules: Vec<(String, PyRef<'_, Expression>)>,
        optional: bool,
    ) -> PyResult<Expression> {
        let rules = rules.into_iter().map(|(source, target)| (source, target.language.clone()));
        made(py, self.language.clone().rewrite(rules.collect(), optional))
    }

    fn reverse(&self, py: Python<'_>) -> PyResult<Expression> {
        made(py, self.language.reverse())
    }

    #[pyo3(signature = (min=0, max=None))]
    fn repeat(&self, py: Python<'_>, min: u32, max: Option<u32>) -> PyResult<Expression> {
        made(py, self.language.clone().repeat(min, max))
    }
}

/// The spans of the groups in a string, in bytes.
type Spans = Vec<Option<(usize, usize)>>;

/// A language prepared to locate the captures of its groups.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Grouping {
    prepared: formalm_automata::CaptureFinder,
}

#[pymethods]
impl Grouping {
    #[new]
    fn new(py: Python<'_>, expression: &Expression, automaton: &Automaton) -> PyResult<Grouping> {
        let machine = automaton.machine()?;
        let AnyMachine::Regular(machine) = &*machine else {
            return Err(errors::argument(py, "capture groups require a regular language", None));
        };
        let machine = Arc::clone(machine);
        let prepared = py.detach(|| {
            formalm_automata::CaptureFinder::new(
                &expression.language,
                machine,
                AutomatonLimits::default(),
            )
        });
        match prepared {
            Ok(prepared) => Ok(Grouping { prepared }),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    fn captured(
        &self,
        py: Python<'_>,
        text: &[u8],
        step_limit: u64,
    ) -> PyResult<Option<(Spans, Vec<bool>)>> {
        let found = py.detach(|| self.prepared.find_captures(text, step_limit));
        let found = found.map_err(|error| errors::failure(py, &error, None))?;
        let pair = |span: std::ops::Range<usize>| (span.start, span.end);
        Ok(found.map(|captured| {
            let spans = captured.spans.into_iter().map(|span| span.map(pair));
            (spans.collect(), captured.was_matched)
        }))
    }
}
