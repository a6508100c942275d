//! `GrammarText` and `Grammar`: grammar notations and parsed grammars.

use formalm_core::{Error, LazyDfa};
use formalm_grammar::{
    ColumnRules, GrammarLimits, GrammarNote, IndentationNames, Lexing, ParseOptions, Sublanguage,
    Syntax, inline_languages, parse_with, unusable_alternatives,
};
use pyo3::prelude::*;

use crate::any_machine::AnyMachine;
use crate::errors;
use crate::lazy_automaton::Automaton;
use crate::regular_language::Expression;

/// The indentation rules, by names of terminals.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct IndentationLevels {
    pub(crate) inner: IndentationNames,
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
        let rules = if is_python { ColumnRules::Python } else { ColumnRules::Lark };
        let inner = IndentationNames {
            newline,
            indent,
            dedent,
            opening,
            closing,
            rules,
            tab,
            widest,
            levels,
        };
        IndentationLevels { inner }
    }
}

/// The text of a grammar with its options; not parsed yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct GrammarText {
    pub(crate) text: String,
    pub(crate) options: ParseOptions,
}

#[pymethods]
impl GrammarText {
    /// Returns the sublanguages inside the rules of a Lark text: `(name, text, span)`.
    #[staticmethod]
    #[expect(clippy::type_complexity, reason = "handed to one place in Python")]
    fn inlined(py: Python<'_>, text: &str) -> PyResult<Vec<(String, String, (usize, usize))>> {
        let found =
            inline_languages(text).map_err(|error| errors::failure(py, &error, Some(text)))?;
        let all = found.into_iter();
        Ok(all.map(|one| (one.name, one.text, (one.span.start, one.span.end))).collect())
    }

    #[new]
    #[expect(clippy::too_many_arguments, reason = "one per option of the text")]
    #[pyo3(signature = (text, syntax, lexing=None, start=None, languages=Vec::new(), levels=None,
                        embedded=Vec::new()))]
    fn new(
        py: Python<'_>,
        text: String,
        syntax: &str,
        lexing: Option<&str>,
        start: Option<String>,
        languages: Vec<(String, PyRef<'_, Expression>)>,
        levels: Option<PyRef<'_, IndentationLevels>>,
        embedded: Vec<(String, PyRef<'_, Automaton>)>,
    ) -> PyResult<GrammarText> {
        let languages = languages.into_iter().map(|(name, one)| (name, one.language.clone()));
        let mut machines = Vec::with_capacity(embedded.len());
        for (name, one) in embedded {
            let machine = one.machine()?;
            let is_text = machine.is_text();
            machines.push((name, Sublanguage { machine, is_text }));
        }
        let options = ParseOptions {
            syntax: syntax_of(py, syntax)?,
            lexing: lexing_of(py, lexing)?,
            start,
            languages: languages.collect(),
            indentation: levels.map(|levels| levels.inner.clone()),
            sublanguages: machines,
        };
        Ok(GrammarText { text, options })
    }
}

/// A parsed grammar; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Grammar {
    pub(crate) inner: formalm_grammar::Grammar,
    pub(crate) text: String,
}

/// Adds the line of its position to an error.
pub(crate) fn placed(error: Error, text: &str) -> Error {
    match error {
        Error::Language { message, span: Some(span), hint } if !message.starts_with("line ") => {
            let line = 1 + text.chars().take(span.start).filter(|&one| one == '\n').count();
            Error::Language { message: format!("line {line}: {message}"), span: Some(span), hint }
        }
        other => other,
    }
}

#[pymethods]
impl Grammar {
    #[new]
    fn new(py: Python<'_>, text: PyRef<'_, GrammarText>) -> PyResult<Grammar> {
        let GrammarText { text, options } = &*text;
        match py.detach(|| parse_with(text, options)) {
            Ok(inner) => Ok(Grammar { inner, text: text.clone() }),
            Err(error) => Err(errors::failure(py, &error, Some(text))),
        }
    }

    /// Returns the terminals expected after `text`, `(name, begun, rules)`, in a machine of this
    /// grammar. Returns `None` for another machine or if the text is not viable.
    fn expected(
        &self,
        py: Python<'_>,
        automaton: &Automaton,
        text: &[u8],
    ) -> PyResult<Vec<(String, bool, Vec<String>)>> {
        let machine = automaton.machine()?;
        let AnyMachine::Grammar(machine) = &*machine else { return Ok(Vec::new()) };
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

    /// Named captures: `(name, rule or terminal, bytes left out at the end, span)`.
    fn captures(&self) -> Vec<(String, String, usize, (usize, usize))> {
        let all = self.inner.captures.iter();
        all.map(|one| {
            let span = (one.span.start, one.span.end);
            (one.name.clone(), one.symbol.clone(), one.stop_bytes, span)
        })
        .collect()
    }

    /// Remarks `(message, span)` about alternatives that the longest match makes unusable.
    #[expect(clippy::type_complexity, reason = "handed to one place in Python")]
    fn unusable(&self, py: Python<'_>) -> PyResult<Vec<(String, Option<(usize, usize)>)>> {
        let found = py.detach(|| unusable_alternatives(&self.inner, GrammarLimits::default()));
        let notes = found.map_err(|error| errors::failure(py, &error, Some(&self.text)))?;
        let span = |note: &GrammarNote| note.span.map(|span| (span.start, span.end));
        Ok(notes.into_iter().map(|note| (note.message.clone(), span(&note))).collect())
    }

    /// Names of the special tokens in the text.
    fn special_tokens(&self) -> Vec<String> {
        self.inner.special_tokens.clone()
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

fn syntax_of(py: Python<'_>, name: &str) -> PyResult<Syntax> {
    match name {
        "lark" => Ok(Syntax::Lark),
        "gbnf" => Ok(Syntax::Gbnf),
        "ebnf" => Ok(Syntax::Ebnf),
        other => {
            let message = format!("syntax must be \"lark\", \"gbnf\" or \"ebnf\", got {other:?}");
            Err(errors::argument(py, &message, Some("use \"lark\", \"gbnf\" or \"ebnf\"")))
        }
    }
}

fn lexing_of(py: Python<'_>, name: Option<&str>) -> PyResult<Option<Lexing>> {
    match name {
        None => Ok(None),
        Some("any") => Ok(Some(Lexing::Any)),
        Some("longest") => Ok(Some(Lexing::Longest)),
        Some("first") => Ok(Some(Lexing::First)),
        Some(other) => {
            let message =
                format!("lexing must be \"any\", \"longest\" or \"first\", got {other:?}");
            let hint = Some("use \"any\", \"longest\" or \"first\"");
            Err(errors::argument(py, &message, hint))
        }
    }
}
