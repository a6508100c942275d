//! `Trees`: parse trees of grammars, ambiguity and counts.

use formalm_grammar::{
    CountOptions, GrammarLimits, RuleBody, RuleKind, TreeNodeKind, ambiguity, parse_shaped,
    tree_counts,
};
use num_bigint::BigUint;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::any_machine::AnyMachine;
use crate::errors;
use crate::grammar::GrammarText;
use crate::interruptible::without_gil;
use crate::lazy_automaton::{Automaton, unit};

/// A grammar in the form that trees show.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Trees {
    inner: formalm_grammar::TreeParser,
}

#[pymethods]
impl Trees {
    #[new]
    fn new(py: Python<'_>, text: PyRef<'_, GrammarText>) -> PyResult<Trees> {
        let GrammarText { text, options } = &*text;
        let made = py.detach(|| {
            formalm_grammar::TreeParser::new(parse_shaped(text, options)?, GrammarLimits::default())
        });
        match made {
            Ok(inner) => Ok(Trees { inner }),
            Err(error) => Err(errors::failure(py, &error, Some(text))),
        }
    }

    /// Returns the number of trees, and one of them, children first.
    fn parse<'py>(
        &self,
        py: Python<'py>,
        automaton: &Automaton,
        text: &[u8],
        whole: bool,
        step_limit: u64,
    ) -> PyResult<Option<(Option<BigUint>, Bound<'py, PyList>)>> {
        let machine = automaton.machine()?;
        let AnyMachine::Grammar(machine) = &*machine else { return Ok(None) };
        let parsed =
            without_gil(py, |poll| self.inner.parse(machine, text, whole, step_limit, poll))?;
        let Some(parsed) = parsed else { return Ok(None) };
        let shaped = self.inner.shaped_grammar();
        let branches = PyList::empty(py);
        for one in &parsed.nodes {
            let (name, rule) = match one.kind {
                TreeNodeKind::Rule(rule, alternative) => {
                    let name = &shaped.grammar.rules[rule].name;
                    // Only the name of a template, as written.
                    let name = name.split('{').next().unwrap_or(name);
                    let alias = shaped.tree_shapes[rule].aliases.get(alternative);
                    let alias = alias.and_then(Option::as_deref);
                    (Some(alias.unwrap_or(name)), Some(name))
                }
                TreeNodeKind::Lexeme(terminal) => {
                    (Some(shaped.grammar.terminals[terminal].name.as_str()), None)
                }
                TreeNodeKind::Placeholder => (None, None),
            };
            let ways = one.tree_count.as_ref();
            branches.append((name, rule, one.children, one.span, one.is_shown, ways))?;
        }
        Ok(Some((parsed.tree_count, branches)))
    }

    /// Returns the rules with two derivations, and where the next lexeme does not decide how to
    /// continue: `(rules, continues, next terminals, terminals before)`.
    #[expect(clippy::type_complexity, reason = "handed to one place in Python")]
    fn ambiguity(
        &self,
        py: Python<'_>,
    ) -> PyResult<(Vec<usize>, Vec<(Vec<usize>, bool, Vec<Option<usize>>, Vec<usize>)>)> {
        let plain = self.inner.shaped_grammar().plain();
        let found = py.detach(|| ambiguity(&plain, GrammarLimits::default()));
        let found = found.map_err(|error| errors::failure(py, &error, None))?;
        let conflicts = found.conflicts.into_iter();
        let conflicts =
            conflicts.map(|one| (one.rules, one.can_shift, one.lookaheads, one.example_prefix));
        Ok((found.ambiguous_rules, conflicts.collect()))
    }

    /// Number of inputs with a tree, by length; `None` if unbounded.
    fn counts(
        &self,
        py: Python<'_>,
        most: usize,
        characters: bool,
        step_limit: u64,
    ) -> PyResult<Vec<Option<BigUint>>> {
        let lengths =
            CountOptions { max_length: most, unit: unit(characters), max_steps: step_limit };
        without_gil(py, |poll| tree_counts(self.inner.shaped_grammar(), lengths, poll))
    }

    /// Names of the terminals.
    fn terminals(&self) -> Vec<String> {
        let all = &self.inner.shaped_grammar().grammar.terminals;
        all.iter().map(|one| one.name.clone()).collect()
    }

    /// Shortest non-empty strings of the terminals; `None` for terminals without one.
    fn terminal_texts(&self, py: Python<'_>) -> PyResult<Vec<Option<Vec<u8>>>> {
        let texts = py.detach(|| self.inner.shortest_lexemes());
        texts.map_err(|error| errors::failure(py, &error, None))
    }

    /// Ignored terminals.
    fn ignored(&self) -> Vec<usize> {
        self.inner.shaped_grammar().grammar.ignored.clone()
    }

    /// Per rule `(name, kind, span, first terminals, nullable, body)`, the start first. A body is
    /// nested tuples that begin with their kind.
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let shaped = self.inner.shaped_grammar();
        let begins = py.detach(|| self.inner.first_terminals(GrammarLimits::default()));
        let begins = begins.map_err(|error| errors::failure(py, &error, None))?;
        let rules = PyList::empty(py);
        let all = shaped.grammar.rules.iter().zip(&shaped.tree_shapes).zip(begins);
        for ((rule, shown), begins) in all {
            let kind = match shown.kind {
                RuleKind::Rule => "rule",
                RuleKind::OmittedLexeme => "lexeme",
                RuleKind::Placeholder(_) => "nothing",
            };
            let span = rule.span.map(|span| (span.start, span.end));
            let (begins, empty) =
                begins.map_or((None, None), |(all, empty)| (Some(all), Some(empty)));
            rules.append((&rule.name, kind, span, begins, empty, node(py, &rule.body)?))?;
        }
        Ok(rules)
    }

    /// The number of the start rule.
    #[getter]
    fn start(&self) -> usize {
        self.inner.shaped_grammar().grammar.start
    }
}

/// Converts a right-hand side to nested tuples, nested at most as deeply as the parser accepts.
fn node<'py>(py: Python<'py>, one: &RuleBody) -> PyResult<Bound<'py, PyTuple>> {
    let all =
        |list: &[RuleBody]| list.iter().map(|one| node(py, one)).collect::<PyResult<Vec<_>>>();
    match one {
        RuleBody::Empty => ("empty",).into_pyobject(py),
        RuleBody::Terminal(at) => ("terminal", at).into_pyobject(py),
        RuleBody::Rule(at) => ("rule", at).into_pyobject(py),
        RuleBody::Sequence(list) => ("sequence", all(list)?).into_pyobject(py),
        RuleBody::Choice(list) => ("choice", all(list)?).into_pyobject(py),
        RuleBody::Repeat(one, min, max) => ("repeat", node(py, one)?, min, max).into_pyobject(py),
    }
}
