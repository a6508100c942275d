//! Lazy machines of languages of every kind.

use std::sync::Arc;

use formalm_automata::explicit::{Poll, Relation, Unit, difference, is_text};
use formalm_automata::{
    Automaton as Lazy, Composed, Error, Filtered, Front, Letter, Limits, Machine, Patience,
    Resource, Span, StateId, divided, exact_only, random_member, steps_taken,
};
use formalm_grammar::{GrammarAutomaton, Limits as GrammarLimits};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any_machine::AnyMachine;
use crate::errors;
use crate::grammar::{Grammar, placed};
use crate::interruptible::{aside, interruptible, patient, patient_with};
use crate::json_schema::{JsonSchema, Remark, remarks};
use crate::parser::Parser;
use crate::regular_language::Expression;
use crate::shared_machine::SharedMachine;

/// The state after `text`, or how many of its bytes are viable; asks `poll` on the way.
fn walked(
    machine: &AnyMachine,
    text: &[u8],
    poll: &mut Poll<'_>,
) -> Result<Result<StateId, usize>, Error> {
    poll.walk(machine, machine.start(), text, Some(Patience::new(steps_taken())))
}

/// What a machine can be made of.
enum Described<'py> {
    Expression(Bound<'py, Expression>),
    Grammar(Bound<'py, Grammar>),
    Schema(Bound<'py, JsonSchema>),
    Parser(Bound<'py, Parser>),
}

/// Derived code would raise an exception for each kind that it is not, which takes longer than to
/// read a small schema.
impl<'py> FromPyObject<'_, 'py> for Described<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Described<'py>> {
        if let Ok(schema) = object.cast::<JsonSchema>() {
            Ok(Described::Schema(schema.to_owned()))
        } else if let Ok(expression) = object.cast::<Expression>() {
            Ok(Described::Expression(expression.to_owned()))
        } else if let Ok(grammar) = object.cast::<Grammar>() {
            Ok(Described::Grammar(grammar.to_owned()))
        } else {
            Ok(Described::Parser(object.cast::<Parser>()?.to_owned()))
        }
    }
}

fn limits(states: Option<u64>) -> Limits {
    let limits = Limits::default();
    Limits { states: states.unwrap_or(limits.states), ..limits }
}

fn grammar_limits(states: Option<u64>) -> GrammarLimits {
    let limits = GrammarLimits::default();
    GrammarLimits { states: states.unwrap_or(limits.states), ..limits }
}

/// States of combinations with what is not regular: as many as its own machine may have.
fn mixed_limit(states: Option<u64>) -> u64 {
    states.unwrap_or(GrammarLimits::default().states)
}

/// The lazy deterministic machine of a language.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Automaton {
    shared: SharedMachine,
}

impl Automaton {
    pub(crate) fn new(machine: AnyMachine) -> Automaton {
        Automaton { shared: SharedMachine::new(Arc::new(machine)) }
    }

    /// The machine as it is now: one that others have read with, or one that has read nothing.
    pub(crate) fn machine(&self) -> Arc<AnyMachine> {
        self.shared.get()
    }

    /// Refuses a parser as a part of others: machines of parts show what leads to a member only,
    /// and hold locks while they read, which a parser must not find held.
    pub(crate) fn joins_others(&self) -> Result<(), Error> {
        let hint = "let the parser read the other language too, or filter by what it says";
        exact_only(&*self.machine(), "members of a combination", hint)
    }
}

#[pymethods]
impl Automaton {
    #[new]
    #[pyo3(signature = (language, *, state_limit=None, memory_limit_bytes=None))]
    fn made(
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
                let made = interruptible(py, |_| Lazy::new(language, limits))?;
                Ok(made).map(|machine| AnyMachine::Regular(Arc::new(machine)))
            }
            Described::Grammar(grammar) => {
                let mut limits = grammar_limits(state_limit);
                limits.bytes = memory_limit_bytes.unwrap_or(limits.bytes);
                let inner = &grammar.get().inner;
                let made = py.detach(|| GrammarAutomaton::new(inner, limits));
                let made = made.map_err(|error| placed(error, &grammar.get().text));
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
            Ok(machine) => Ok(Automaton::new(machine)),
            Err(error) => {
                let source = match &language {
                    Described::Grammar(grammar) => Some(&*grammar.get().text),
                    _ => None,
                };
                Err(errors::failure(py, &error, source))
            }
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
                let made = interruptible(py, |_| Lazy::of(language, limits(state_limit)))?;
                Ok(made).map(|machine| machine.map(|one| AnyMachine::Regular(Arc::new(one))))
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
            Ok(machine) => Ok(machine.map(Automaton::new)),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// The machine of an expression whose letters are machines: each with the letters that may
    /// follow it, and whether it may be the last.
    #[staticmethod]
    #[pyo3(signature = (letters, first, *, empty, state_limit=None))]
    fn composed(
        py: Python<'_>,
        letters: Vec<(PyRef<'_, Automaton>, Vec<u32>, bool)>,
        first: Vec<u32>,
        empty: bool,
        state_limit: Option<u64>,
    ) -> PyResult<Automaton> {
        for (letter, _, _) in &letters {
            letter.joins_others().map_err(|error| errors::failure(py, &error, None))?;
        }
        let count = letters.len() as u32;
        let mut all = letters.iter().flat_map(|one| &one.1).chain(&first);
        if all.any(|&one| one >= count) {
            return Err(errors::argument(py, "there is no letter of this number", None));
        }
        let letters = letters.into_iter().map(|(one, follows, last)| Letter {
            machine: one.machine(),
            follows: follows.into(),
            last,
        });
        let letters: Vec<Letter<AnyMachine>> = letters.collect();
        let states = mixed_limit(state_limit);
        match py.detach(|| Composed::new(letters, &first, empty, states)) {
            Ok(made) => Ok(Automaton::new(AnyMachine::Composed(Arc::new(made)))),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// Where the pieces of a text end that are members of languages in a row, those beyond the list of
    /// its last one; none if it cannot be divided so.
    #[staticmethod]
    #[pyo3(signature = (languages, text, *, least, most, step_limit))]
    fn divided(
        py: Python<'_>,
        languages: Vec<Option<PyRef<'_, Automaton>>>,
        text: &[u8],
        least: usize,
        most: Option<usize>,
        step_limit: u64,
    ) -> PyResult<Option<Vec<usize>>> {
        let machine = |one: Option<PyRef<'_, Automaton>>| one.map(|one| one.machine());
        let machines: Vec<Option<Arc<AnyMachine>>> = languages.into_iter().map(machine).collect();
        let found = py.detach(|| {
            let members: Vec<Option<&dyn Machine>> =
                machines.iter().map(|one| one.as_deref().map(|one| one as &dyn Machine)).collect();
            divided(&members, (least, most), text, step_limit)
        });
        found.map_err(|error| errors::failure(py, &error, None))
    }

    /// The machine of the members that a regular language has too; none if there is none.
    #[pyo3(signature = (regular, *, state_limit=None))]
    fn filtered(
        &self,
        py: Python<'_>,
        regular: &Automaton,
        state_limit: Option<u64>,
    ) -> PyResult<Option<Automaton>> {
        self.joins_others().map_err(|error| errors::failure(py, &error, None))?;
        let regular = regular.machine();
        let AnyMachine::Regular(regular) = &*regular else {
            return Err(errors::argument(py, "only regular languages filter others", None));
        };
        let states = mixed_limit(state_limit);
        let (machine, regular) = (self.machine(), Arc::clone(regular));
        match py.detach(|| Filtered::of(machine, regular, states)) {
            Ok(made) => Ok(made.map(|one| Automaton::new(AnyMachine::Filtered(Arc::new(one))))),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

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
        exact_only(&*self.machine(), "members behind a text", hint)
            .map_err(|error| errors::failure(py, &error, None))?;
        let front = Front { text, unless_empty, refused };
        match AnyMachine::behind(&self.machine(), front) {
            Some(machine) => Ok(Automaton::new(machine)),
            None => Err(errors::argument(py, "there is a text in front already", None)),
        }
    }

    /// What the user should know of the grammar: `(message, span)`.
    #[getter]
    fn notes(&self) -> Vec<(String, Option<(usize, usize)>)> {
        let machine = self.machine();
        let AnyMachine::Grammar(grammar) = &*machine else { return Vec::new() };
        let span = |span: Span| (span.start, span.end);
        grammar.notes().iter().map(|note| (note.message.clone(), note.span.map(span))).collect()
    }

    /// What the user should know of the schema: `(JSON pointer, message, effect)`.
    #[getter]
    fn remarks(&self, py: Python<'_>) -> Vec<Remark> {
        let machine = self.machine();
        let AnyMachine::Schema(schema) = &*machine else { return Vec::new() };
        remarks(py.detach(|| schema.all_notes()))
    }

    /// JSON pointers of the subschemas that can be reached.
    #[getter]
    fn places(&self, py: Python<'_>) -> Vec<String> {
        let machine = self.machine();
        let AnyMachine::Schema(schema) = &*machine else { return Vec::new() };
        py.detach(|| schema.places())
    }

    /// Whether all members are UTF-8.
    fn is_text(&self, py: Python<'_>, pair_limit: u64) -> PyResult<bool> {
        self.shared.ask(py, |machine| {
            if machine.is_text() {
                return Ok(true);
            }
            patient_with(py, &[machine], |poll| {
                exact_only(&**machine, "lengths in characters", "use unit=\"bytes\"")?;
                is_text(&**machine, pair_limit, poll)
            })
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
        let (left, right) = (left.map(Automaton::machine), right.map(Automaton::machine));
        let (left, right) = (left.as_deref(), right.as_deref());
        let (relation, unit) = (relation(inclusion), unit(characters));
        let machines: Vec<&AnyMachine> = left.into_iter().chain(right).collect();
        let found = patient_with(py, &machines, |poll| {
            let hint = "compare what it says of single texts: matches(text)";
            for machine in [left, right].into_iter().flatten() {
                exact_only(machine, "which members two languages share", hint)?;
            }
            difference(left, right, relation, unit, pair_limit, poll)
        })?;
        Ok(found.map(|text| PyBytes::new(py, &text)))
    }

    fn matches(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        self.shared.ask(py, |machine| {
            let read = |poll: &mut Poll<'_>| match walked(machine, text, poll)? {
                Ok(state) => machine.is_accepting(state),
                Err(_) => Ok(false),
            };
            patient_with(py, &[machine], |poll| match read(poll) {
                // Whether its beginnings lead to a member was not found out, which need not matter.
                Err(
                    limit @ Error::Limit { resource: Resource::Readings | Resource::Steps, .. },
                ) => machine.is_member(text)?.ok_or(limit),
                read => read,
            })
        })
    }

    fn is_viable(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        Ok(self.viable_length(py, text)? == text.len())
    }

    fn viable_length(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        let read = |machine: &Arc<AnyMachine>| {
            patient_with(py, &[machine], |poll| walked(machine, text, poll))
        };
        Ok(self.shared.ask(py, read)?.err().unwrap_or(text.len()))
    }

    #[pyo3(signature = (prefix=None))]
    fn shortest<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<&[u8]>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let prefix = prefix.unwrap_or_default();
        self.shared.ask(py, |machine| {
            let read = patient_with(py, &[machine], |poll| walked(machine, prefix, poll))?;
            let Ok(state) = read else { return Ok(None) };
            let asked = Arc::clone(machine);
            let rest = match machine.is_exact() {
                true => aside(py, move || asked.shortest(state))?,
                // A parser is asked in the thread that asks.
                false => patient(py, |_| asked.shortest(state))?,
            };
            Ok(Some(PyBytes::new(py, &[prefix, &rest].concat())))
        })
    }

    /// A member drawn at random: bytes at random at first, then the shortest way to an end.
    fn random_member<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        random_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let drawn = self.shared.ask(py, |machine| {
            patient_with(py, &[machine], |poll| random_member(&**machine, seed, random_bytes, poll))
        })?;
        Ok(PyBytes::new(py, &drawn))
    }

    /// Whether every viable text is known to lead to a member.
    #[getter]
    fn is_exact(&self) -> bool {
        self.machine().is_exact()
    }

    #[getter]
    fn state_count(&self) -> usize {
        self.machine().state_count()
    }

    #[getter]
    fn memory_bytes(&self) -> usize {
        self.machine().memory_bytes()
    }
}

pub(crate) fn unit(characters: bool) -> Unit {
    if characters { Unit::Characters } else { Unit::Labels }
}

pub(crate) fn relation(inclusion: bool) -> Relation {
    if inclusion { Relation::Inclusion } else { Relation::Equivalence }
}
