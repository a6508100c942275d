//! Grammars.

use formalm_automata::{Expression as Language, Machine};
use formalm_grammar::{Grammar as Inner, Levels, Lexing, Rules, Syntax, parse_with};
use pyo3::prelude::*;

use crate::automaton::Automaton;
use crate::errors;
use crate::language::Expression;
use crate::machine::AnyMachine;

/// How indentation is told, by the names of terminals.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct IndentationLevels {
    pub(crate) inner: Levels,
}

#[pymethods]
impl IndentationLevels {
    #[new]
    fn new(
        names: [String; 3],
        brackets: [Vec<String>; 2],
        is_python: bool,
        numbers: [u32; 3],
    ) -> IndentationLevels {
        let [newline, indent, dedent] = names;
        let [opening, closing] = brackets;
        let [tab, widest, levels] = numbers;
        let rules = if is_python { Rules::Python } else { Rules::Lark };
        let inner =
            Levels { newline, indent, dedent, opening, closing, rules, tab, widest, levels };
        IndentationLevels { inner }
    }
}

/// A grammar that was read; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Grammar {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Grammar {
    #[new]
    #[pyo3(signature = (text, syntax, lexing=None, start=None, languages=Vec::new(), levels=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        syntax: &str,
        lexing: Option<&str>,
        start: Option<&str>,
        languages: Vec<(String, PyRef<'_, Expression>)>,
        levels: Option<PyRef<'_, IndentationLevels>>,
    ) -> PyResult<Grammar> {
        let (syntax, lexing, languages) = options(py, syntax, lexing, languages)?;
        let levels = levels.map(|levels| levels.inner.clone());
        let read = || parse_with(text, syntax, lexing, start, &languages, levels.as_ref());
        match py.detach(read) {
            Ok(inner) => Ok(Grammar { inner }),
            Err(error) => Err(errors::failure(py, &error, Some(text))),
        }
    }

    /// The terminals expected behind a text, `(name, begun, rules)`, of a machine of this grammar;
    /// none if it is another one or if the text is not viable.
    fn expected(
        &self,
        py: Python<'_>,
        automaton: &Automaton,
        text: &[u8],
    ) -> PyResult<Vec<(String, bool, Vec<String>)>> {
        let AnyMachine::Grammar(machine) = &*automaton.machine else { return Ok(Vec::new()) };
        let found = py.detach(|| match machine.walk(machine.start(), text)? {
            Ok(state) => machine.expected(state),
            Err(_) => Ok(Vec::new()),
        });
        let found = found.map_err(|error| errors::failure(py, &error, None))?;
        let named = found.into_iter().map(|(terminal, begun)| {
            let rules = self.inner.rules_of(terminal).into_iter();
            let rules = rules.map(|rule| self.inner.rules[rule].name.clone());
            (self.inner.terminals[terminal].name.clone(), begun, rules.collect())
        });
        Ok(named.collect())
    }

    #[getter]
    fn lexing(&self) -> &'static str {
        match self.inner.lexing {
            Lexing::Any => "any",
            Lexing::Longest => "longest",
            Lexing::First => "first",
        }
    }
}

/// Options as the core has them.
#[expect(clippy::type_complexity, reason = "three options that belong together")]
pub(crate) fn options(
    py: Python<'_>,
    syntax: &str,
    lexing: Option<&str>,
    languages: Vec<(String, PyRef<'_, Expression>)>,
) -> PyResult<(Syntax, Option<Lexing>, Vec<(String, Language)>)> {
    let syntax = match syntax {
        "lark" => Syntax::Lark,
        "gbnf" => Syntax::Gbnf,
        "ebnf" => Syntax::Ebnf,
        other => {
            let message = format!("there is no syntax {other:?}");
            return Err(errors::argument(py, &message, Some("use \"lark\", \"gbnf\" or \"ebnf\"")));
        }
    };
    let lexing = match lexing {
        None => None,
        Some("any") => Some(Lexing::Any),
        Some("longest") => Some(Lexing::Longest),
        Some("first") => Some(Lexing::First),
        Some(other) => {
            let message = format!("there is no reading {other:?} of lexemes");
            let hint = Some("use \"any\", \"longest\" or \"first\"");
            return Err(errors::argument(py, &message, hint));
        }
    };
    let languages = languages.into_iter().map(|(name, one)| (name, one.language.clone()));
    Ok((syntax, lexing, languages.collect()))
}
