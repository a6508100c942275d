//! Regular languages and their machines.

use std::sync::Arc;

use formalm_automata::Grouping as Prepared;
use formalm_automata::explicit::{Poll, Relation, Unit, difference, is_text};
use formalm_automata::syntax::{Dialect, Flags, parse};
use formalm_automata::{
    Automaton as Lazy, CharSet, Edits, Error, Expression as Language, Front, Limits, Machine,
    Operations, Span, StateId, exact_only,
};
use formalm_grammar::{GrammarAutomaton, Limits as GrammarLimits};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::grammar::Grammar;
use crate::machine::AnyMachine;
use crate::parser::Parser;
use crate::patient::patient;
use crate::schema::JsonSchema;

/// A regular language as an immutable expression; no machine yet.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Expression {
    language: Language,
}

/// Characters of a member and of a text, side by side.
type Pairs = Vec<(Option<char>, Option<char>)>;

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
        let groups = self.language.groups().into_iter();
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
            let message = "an alphabet is a class such as [a-z], or single characters";
            return Err(errors::argument(py, message, None));
        };
        let region = |one: Option<&Expression>| one.map(|one| one.language.clone());
        let edits = Edits {
            budget,
            alphabet,
            operations: Operations { insert, delete, substitute },
            after: region(after),
            before: region(before),
            group,
        };
        made(py, self.language.clone().edits(edits))
    }

    fn edit_script(&self, py: Python<'_>, text: &str) -> PyResult<Option<Pairs>> {
        let limits = Limits::default();
        let script = patient(py, |poll| self.language.edit_script(text, limits, poll))?;
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

/// The state after `text`, or how many of its bytes are viable; asks `poll` on the way.
fn walked(
    machine: &AnyMachine,
    text: &[u8],
    poll: &mut Poll<'_>,
) -> Result<Result<StateId, usize>, Error> {
    /// What a byte may cost where its state is new, as against a step of other work.
    const BYTE: usize = 256;
    let mut state = machine.start();
    if !machine.is_exact() {
        // What is kept of a parser is kept for every place where a walk rests.
        return machine.walk(state, text);
    }
    for (number, piece) in text.chunks(64).enumerate() {
        match machine.walk(state, piece)? {
            Ok(next) => state = next,
            Err(good) => return Ok(Err(number * 64 + good)),
        }
        poll.tick(piece.len() * BYTE)?;
    }
    Ok(Ok(state))
}

/// What a machine can be made of.
#[derive(FromPyObject)]
enum Described<'py> {
    Expression(Bound<'py, Expression>),
    Grammar(Bound<'py, Grammar>),
    Schema(Bound<'py, JsonSchema>),
    Parser(Bound<'py, Parser>),
}

fn limits(states: Option<u64>) -> Limits {
    let limits = Limits::default();
    Limits { states: states.unwrap_or(limits.states), ..limits }
}

fn grammar_limits(states: Option<u64>) -> GrammarLimits {
    let limits = GrammarLimits::default();
    GrammarLimits { states: states.unwrap_or(limits.states), ..limits }
}

/// The lazy deterministic machine of an expression or a grammar.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Automaton {
    pub(crate) machine: Arc<AnyMachine>,
}

#[pymethods]
impl Automaton {
    #[new]
    #[pyo3(signature = (language, *, state_limit=None, memory_limit_bytes=None))]
    fn new(
        py: Python<'_>,
        language: Described<'_>,
        state_limit: Option<u64>,
        memory_limit_bytes: Option<u64>,
    ) -> PyResult<Automaton> {
        let made = match &language {
            Described::Expression(expression) => {
                let mut limits = limits(state_limit);
                // More states need more memory: what the default gives to each.
                let bytes = limits.bytes.max(limits.states.saturating_mul(1 << 10));
                limits.bytes = memory_limit_bytes.unwrap_or(bytes);
                let language = &expression.get().language;
                let made = py.detach(|| Lazy::new(language, limits));
                made.map(|machine| AnyMachine::Regular(Arc::new(machine)))
            }
            Described::Grammar(grammar) => {
                let mut limits = grammar_limits(state_limit);
                limits.bytes = memory_limit_bytes.unwrap_or(limits.bytes);
                let grammar = &grammar.get().inner;
                let made = py.detach(|| GrammarAutomaton::new(grammar, limits));
                made.map(|machine| AnyMachine::Grammar(Arc::new(machine)))
            }
            Described::Schema(schema) => {
                let schema = schema.get();
                let made = py.detach(|| schema.machine(state_limit, memory_limit_bytes));
                made.map(|machine| AnyMachine::Schema(Arc::new(machine)))
            }
            Described::Parser(parser) => {
                let made = parser.get().machine(py, state_limit);
                made.map(|machine| AnyMachine::Parser(Arc::new(machine)))
            }
        };
        match made {
            Ok(machine) => Ok(Automaton { machine: Arc::new(machine) }),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// The machine, or none if the language is empty.
    #[staticmethod]
    #[pyo3(signature = (language, *, state_limit=None))]
    fn of(
        py: Python<'_>,
        language: Described<'_>,
        state_limit: Option<u64>,
    ) -> PyResult<Option<Automaton>> {
        let made = match &language {
            Described::Expression(expression) => {
                let language = &expression.get().language;
                let made = py.detach(|| Lazy::of(language, limits(state_limit)));
                made.map(|machine| machine.map(|one| AnyMachine::Regular(Arc::new(one))))
            }
            Described::Grammar(grammar) => {
                let grammar = &grammar.get().inner;
                let limits = grammar_limits(state_limit);
                let made = py.detach(|| GrammarAutomaton::of(grammar, limits));
                made.map(|machine| machine.map(|one| AnyMachine::Grammar(Arc::new(one))))
            }
            Described::Schema(schema) => {
                let schema = schema.get();
                let made = py.detach(|| schema.machine_or_none(state_limit));
                made.map(|machine| machine.map(|one| AnyMachine::Schema(Arc::new(one))))
            }
            Described::Parser(parser) => {
                let made = parser.get().machine(py, state_limit);
                made.map(|machine| Some(AnyMachine::Parser(Arc::new(machine))))
            }
        };
        match made {
            Ok(machine) => Ok(machine.map(|machine| Automaton { machine: Arc::new(machine) })),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// What the user should know of the grammar: `(message, span)`.
    /// The same with a text in front of every member, unless it is empty if that is asked for;
    /// members that begin with a byte can be left out.
    #[pyo3(signature = (text, *, unless_empty=false, refused=None))]
    fn preceded_by(
        &self,
        py: Python<'_>,
        text: Vec<u8>,
        unless_empty: bool,
        refused: Option<u8>,
    ) -> PyResult<Automaton> {
        let hint = "let the parser read that text itself";
        exact_only(&*self.machine, "members behind a text", hint)
            .map_err(|error| errors::failure(py, &error, None))?;
        let front = Front { text, unless_empty, refused };
        match AnyMachine::behind(&self.machine, front) {
            Some(machine) => Ok(Automaton { machine: Arc::new(machine) }),
            None => Err(errors::argument(py, "there is a text in front already", None)),
        }
    }

    #[getter]
    fn notes(&self) -> Vec<(String, Option<(usize, usize)>)> {
        let AnyMachine::Grammar(grammar) = &*self.machine else { return Vec::new() };
        let span = |span: Span| (span.start, span.end);
        grammar.notes().iter().map(|note| (note.message.clone(), note.span.map(span))).collect()
    }

    /// What the user should know of the schema: `(JSON pointer, message)`.
    #[getter]
    fn remarks(&self) -> Vec<(String, String)> {
        let AnyMachine::Schema(schema) = &*self.machine else { return Vec::new() };
        schema.notes().iter().map(|note| (note.place.clone(), note.message.clone())).collect()
    }

    /// Whether all members are UTF-8.
    fn is_text(&self, py: Python<'_>, pair_limit: u64) -> PyResult<bool> {
        if self.machine.is_text() {
            return Ok(true);
        }
        patient(py, |poll| {
            exact_only(&*self.machine, "lengths in characters", "use unit=\"bytes\"")?;
            is_text(&*self.machine, pair_limit, poll)
        })
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
        let found = patient(py, |poll| {
            let hint = "compare what it says of single texts: matches(text)";
            for machine in [left, right].into_iter().flatten() {
                exact_only(machine, "which members two languages share", hint)?;
            }
            difference(left, right, relation, unit, pair_limit, poll)
        })?;
        Ok(found.map(|text| PyBytes::new(py, &text)))
    }

    fn matches(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        let read = patient(py, |poll| walked(&self.machine, text, poll))?;
        Ok(read.is_ok_and(|state| self.machine.is_accepting(state)))
    }

    fn is_viable(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        Ok(self.viable_length(py, text)? == text.len())
    }

    fn viable_length(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        let read = patient(py, |poll| walked(&self.machine, text, poll))?;
        Ok(read.err().unwrap_or(text.len()))
    }

    #[pyo3(signature = (prefix=None))]
    fn shortest<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&[u8]>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let prefix = prefix.unwrap_or_default();
        let found = patient(py, |poll| match walked(&self.machine, prefix, poll)? {
            Ok(state) => self.machine.shortest(state).map(Some),
            Err(_) => Ok(None),
        })?;
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

/// Where the groups of a language are in one of its members, in bytes.
type Spans = Vec<Option<(usize, usize)>>;

/// A language prepared to tell what its groups capture.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Grouping {
    prepared: Prepared,
}

#[pymethods]
impl Grouping {
    #[new]
    fn new(py: Python<'_>, expression: &Expression, automaton: &Automaton) -> PyResult<Grouping> {
        let AnyMachine::Regular(machine) = &*automaton.machine else {
            return Err(errors::argument(py, "only regular languages have groups", None));
        };
        let machine = Arc::clone(machine);
        let prepared =
            py.detach(|| Prepared::new(&expression.language, machine, Limits::default()));
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
        let found = py.detach(|| self.prepared.captured(text, step_limit));
        let found = found.map_err(|error| errors::failure(py, &error, None))?;
        let pair = |span: std::ops::Range<usize>| (span.start, span.end);
        Ok(found.map(|captured| {
            let spans = captured.spans.into_iter().map(|span| span.map(pair));
            (spans.collect(), captured.asked)
        }))
    }
}

pub(crate) fn unit(characters: bool) -> Unit {
    if characters { Unit::Characters } else { Unit::Labels }
}

pub(crate) fn relation(inclusion: bool) -> Relation {
    if inclusion { Relation::Inclusion } else { Relation::Equivalence }
}
