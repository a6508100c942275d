//! `Automaton`: the lazy machine of a language of any kind.

use std::sync::Arc;

use formalm_automata::{
    Automaton as Lazy, AutomatonLimits,
    materialized::{LanguageRelation, LengthUnit, difference, is_utf8},
    split_among,
};
use formalm_core::{
    Error, InterruptCheck, LazyDfa, Machine, ReadingHints, Resource, SourceSpan, StateId,
    StepBudget, random_member, require_exact, steps_taken,
};
use formalm_grammar::{GrammarAutomaton, GrammarLimits};
use formalm_machines::{Intersection, Position, PositionAutomaton, Prefix};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any_machine::AnyMachine;
use crate::errors;
use crate::grammar::{Grammar, placed};
use crate::interruptible::{
    in_own_thread, without_gil, without_gil_on_machines, without_gil_on_new_machines,
};
use crate::json_schema::{JsonSchema, Remark, remarks};
use crate::parser::Parser;
use crate::regular_language::Expression;
use crate::shared_machine::SharedMachine;

/// Returns the state after `text`, or the number of viable bytes. Checks `poll` on the way.
fn walked(
    machine: &AnyMachine,
    text: &[u8],
    poll: &mut InterruptCheck<'_>,
) -> Result<Result<StateId, usize>, Error> {
    poll.walk(machine, machine.start(), text, Some(StepBudget::new(steps_taken())))
}

/// The descriptions from which a machine can be compiled.
enum LanguageSource<'py> {
    Expression(Bound<'py, Expression>),
    Grammar(Bound<'py, Grammar>),
    Schema(Bound<'py, JsonSchema>),
    Parser(Bound<'py, Parser>),
}

/// Derived code would raise an exception for each kind that does not match, which takes longer than
/// reading a small schema.
impl<'py> FromPyObject<'_, 'py> for LanguageSource<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<LanguageSource<'py>> {
        if let Ok(schema) = object.cast::<JsonSchema>() {
            Ok(LanguageSource::Schema(schema.to_owned()))
        } else if let Ok(expression) = object.cast::<Expression>() {
            Ok(LanguageSource::Expression(expression.to_owned()))
        } else if let Ok(grammar) = object.cast::<Grammar>() {
            Ok(LanguageSource::Grammar(grammar.to_owned()))
        } else {
            Ok(LanguageSource::Parser(object.cast::<Parser>()?.to_owned()))
        }
    }
}

fn limits(states: Option<u64>) -> AutomatonLimits {
    let limits = AutomatonLimits::default();
    AutomatonLimits { states: states.unwrap_or(limits.states), ..limits }
}

fn grammar_limits(states: Option<u64>) -> GrammarLimits {
    let limits = GrammarLimits::default();
    GrammarLimits { states: states.unwrap_or(limits.states), ..limits }
}

/// Returns the state limit of combinations with non-regular machines: as many as the machine's own
/// limit.
fn mixed_limit(states: Option<u64>) -> u64 {
    states.unwrap_or(GrammarLimits::default().states)
}

/// The lazy deterministic machine of a language.
#[pyclass(frozen, module = "formalm._core")]
pub(crate) struct Automaton {
    shared: SharedMachine,
}

/// A remark about a grammar, with the place in its text.
type GrammarRemark = (String, Option<(usize, usize)>);

impl Automaton {
    pub(crate) fn new(machine: AnyMachine) -> Automaton {
        Automaton { shared: SharedMachine::new(Arc::new(machine)) }
    }

    /// Returns the current machine: one that others have used, or a fresh one. Fails in a forked
    /// child where neither can be used.
    pub(crate) fn machine(&self) -> PyResult<Arc<AnyMachine>> {
        Python::attach(|py| self.shared.get(py))
    }

    /// Rejects a parser as a part of other machines: parts are exact, and they hold locks while
    /// they read, which a parser must not find held.
    pub(crate) fn joins_others(&self, py: Python<'_>) -> PyResult<()> {
        let hint = "let the parser read the other language too, or filter its results";
        require_exact(&*self.machine()?, "members of a combination", hint)
            .map_err(|error| errors::failure(py, &error, None))
    }
}

#[pymethods]
impl Automaton {
    #[new]
    #[pyo3(signature = (language, *, state_limit=None, memory_limit_bytes=None))]
    fn made(
        py: Python<'_>,
        language: LanguageSource<'_>,
        state_limit: Option<u64>,
        memory_limit_bytes: Option<u64>,
    ) -> PyResult<Automaton> {
        let made = match &language {
            LanguageSource::Expression(expression) => {
                let mut limits = limits(state_limit);
                // More states need more memory: the ratio of the defaults.
                let bytes = limits.bytes.max(limits.states.saturating_mul(1 << 10));
                limits.bytes = memory_limit_bytes.unwrap_or(bytes);
                let language = &expression.get().language;
                let made = without_gil_on_new_machines(py, |_| Lazy::new(language, limits))?;
                Ok(made).map(|machine| AnyMachine::Regular(Arc::new(machine)))
            }
            LanguageSource::Grammar(grammar) => {
                let mut limits = grammar_limits(state_limit);
                limits.bytes = memory_limit_bytes.unwrap_or(limits.bytes);
                let inner = &grammar.get().inner;
                let made = py.detach(|| GrammarAutomaton::new(inner, limits));
                let made = made.map_err(|error| placed(error, &grammar.get().text));
                made.map(|machine| AnyMachine::Grammar(Arc::new(machine)))
            }
            LanguageSource::Schema(schema) => {
                let schema = schema.get();
                let made = py.detach(|| schema.machine(state_limit, memory_limit_bytes));
                made.map(|machine| AnyMachine::Schema(Arc::new(machine)))
            }
            LanguageSource::Parser(parser) => {
                let made = parser.get().machine(py, state_limit);
                made.map(|machine| AnyMachine::Parser(Arc::new(machine)))
            }
        };
        match made {
            Ok(machine) => Ok(Automaton::new(machine)),
            Err(error) => {
                let source = match &language {
                    LanguageSource::Grammar(grammar) => Some(&*grammar.get().text),
                    _ => None,
                };
                Err(errors::failure(py, &error, source))
            }
        }
    }

    /// Compiles the machine; `None` if the language is empty.
    #[staticmethod]
    #[pyo3(signature = (language, *, state_limit=None))]
    fn of(
        py: Python<'_>,
        language: LanguageSource<'_>,
        state_limit: Option<u64>,
    ) -> PyResult<Option<Automaton>> {
        let made = match &language {
            LanguageSource::Expression(expression) => {
                let language = &expression.get().language;
                let made =
                    without_gil_on_new_machines(py, |_| Lazy::of(language, limits(state_limit)))?;
                Ok(made).map(|machine| machine.map(|one| AnyMachine::Regular(Arc::new(one))))
            }
            LanguageSource::Grammar(grammar) => {
                let grammar = &grammar.get().inner;
                let limits = grammar_limits(state_limit);
                let made = py.detach(|| GrammarAutomaton::new_if_nonempty(grammar, limits));
                made.map(|machine| machine.map(|one| AnyMachine::Grammar(Arc::new(one))))
            }
            LanguageSource::Schema(schema) => {
                let schema = schema.get();
                let made = py.detach(|| schema.machine_or_none(state_limit));
                made.map(|machine| machine.map(|one| AnyMachine::Schema(Arc::new(one))))
            }
            LanguageSource::Parser(parser) => {
                let made = parser.get().machine(py, state_limit);
                made.map(|machine| Some(AnyMachine::Parser(Arc::new(machine))))
            }
        };
        match made {
            Ok(machine) => Ok(machine.map(Automaton::new)),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// Compiles a position automaton of machines: each with the positions that may follow it, and
    /// whether it may be the last.
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
            letter.joins_others(py)?;
        }
        let count = letters.len() as u32;
        let mut all = letters.iter().flat_map(|one| &one.1).chain(&first);
        if all.any(|&one| one >= count) {
            return Err(errors::argument(py, "the position index is out of range", None));
        }
        let letters = letters.into_iter().map(|(one, follows, last)| {
            Ok(Position { machine: one.machine()?, follows: follows.into(), last })
        });
        let letters: Vec<Position<AnyMachine>> = letters.collect::<PyResult<_>>()?;
        let states = mixed_limit(state_limit);
        match py.detach(|| PositionAutomaton::new(letters, &first, empty, states)) {
            Ok(made) => Ok(Automaton::new(AnyMachine::Composed(Arc::new(made)))),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// Returns the ends of the pieces into which `text` splits as a concatenation of languages,
    /// items of the last list included; `None` if it cannot be split.
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
        let machine = |one: Option<PyRef<'_, Automaton>>| one.map(|one| one.machine()).transpose();
        let machines: Vec<Option<Arc<AnyMachine>>> =
            languages.into_iter().map(machine).collect::<PyResult<_>>()?;
        let found = py.detach(|| {
            let members: Vec<Option<&dyn Machine>> =
                machines.iter().map(|one| one.as_deref().map(|one| one as &dyn Machine)).collect();
            split_among(&members, (least, most), text, step_limit)
        });
        found.map_err(|error| errors::failure(py, &error, None))
    }

    /// Intersects the language with a regular one; `None` if no string is in both.
    #[pyo3(signature = (regular, *, state_limit=None))]
    fn filtered(
        &self,
        py: Python<'_>,
        regular: &Automaton,
        state_limit: Option<u64>,
    ) -> PyResult<Option<Automaton>> {
        self.joins_others(py)?;
        let regular = regular.machine()?;
        let AnyMachine::Regular(regular) = &*regular else {
            return Err(errors::argument(
                py,
                "an operand of this intersection must be a regular language",
                None,
            ));
        };
        let states = mixed_limit(state_limit);
        let (machine, regular) = (self.machine()?, Arc::clone(regular));
        match py.detach(|| Intersection::of(machine, regular, states)) {
            Ok(made) => Ok(made.map(|one| Automaton::new(AnyMachine::Filtered(Arc::new(one))))),
            Err(error) => Err(errors::failure(py, &error, None)),
        }
    }

    /// Prepends `text` to every string, optionally unless the string is empty. Strings that begin
    /// with a given byte can be left out.
    #[pyo3(signature = (text, *, unless_empty=false, refused=None))]
    fn preceded_by(
        &self,
        py: Python<'_>,
        text: Vec<u8>,
        unless_empty: bool,
        refused: Option<u8>,
    ) -> PyResult<Automaton> {
        let hint = "let the parser read that prefix itself";
        require_exact(&*self.machine()?, "members after a prefix", hint)
            .map_err(|error| errors::failure(py, &error, None))?;
        let front = Prefix { text, unless_empty, refused_first_byte: refused };
        match AnyMachine::behind(&self.machine()?, front) {
            Some(machine) => Ok(Automaton::new(machine)),
            None => Err(errors::argument(py, "the language has a prefix already", None)),
        }
    }

    /// Remarks about the grammar: `(message, span)`.
    #[getter]
    fn notes(&self) -> PyResult<Vec<GrammarRemark>> {
        let machine = self.machine()?;
        let AnyMachine::Grammar(grammar) = &*machine else { return Ok(Vec::new()) };
        let span = |span: SourceSpan| (span.start, span.end);
        let notes = grammar.notes().iter();
        Ok(notes.map(|note| (note.message.clone(), note.span.map(span))).collect())
    }

    /// Remarks about the schema: `(JSON pointer, message, effect)`.
    #[getter]
    fn remarks(&self, py: Python<'_>) -> PyResult<Vec<Remark>> {
        let machine = self.machine()?;
        let AnyMachine::Schema(schema) = &*machine else { return Ok(Vec::new()) };
        Ok(remarks(py.detach(|| schema.all_notes())))
    }

    /// JSON pointers of the reachable subschemas.
    #[getter]
    fn places(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let machine = self.machine()?;
        let AnyMachine::Schema(schema) = &*machine else { return Ok(Vec::new()) };
        Ok(py.detach(|| schema.subschema_pointers()))
    }

    /// Returns whether all strings are UTF-8.
    fn is_text(&self, py: Python<'_>, pair_limit: u64) -> PyResult<bool> {
        self.shared.ask(py, |machine| {
            if machine.is_text() {
                return Ok(true);
            }
            without_gil_on_machines(py, &[machine], |poll| {
                require_exact(&**machine, "lengths in characters", "use unit=\"bytes\"")?;
                is_utf8(&**machine, pair_limit, poll)
            })
        })
    }

    /// Returns the first string, by length and then in byte order, that is in one language and not
    /// in the other (or in `left` and not in `right`). `None` stands for the empty language.
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
        let left = left.map(Automaton::machine).transpose()?;
        let right = right.map(Automaton::machine).transpose()?;
        let (left, right) = (left.as_deref(), right.as_deref());
        let (relation, unit) = (relation(inclusion), unit(characters));
        let machines: Vec<&AnyMachine> = left.into_iter().chain(right).collect();
        let found = without_gil_on_machines(py, &machines, |poll| {
            let hint = "compare single strings with matches(text)";
            for machine in [left, right].into_iter().flatten() {
                require_exact(machine, "the members that two languages share", hint)?;
            }
            difference(left, right, relation, unit, pair_limit, poll)
        })?;
        Ok(found.map(|text| PyBytes::new(py, &text)))
    }

    fn matches(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        self.shared.ask(py, |machine| {
            let read = |poll: &mut InterruptCheck<'_>| match walked(machine, text, poll)? {
                Ok(state) => machine.is_accepting(state),
                Err(_) => Ok(false),
            };
            without_gil_on_machines(py, &[machine], |poll| match read(poll) {
                // The viability of the prefixes was not decided; it need not matter.
                Err(
                    limit @ Error::Limit { resource: Resource::Readings | Resource::Steps, .. },
                ) => machine.membership(text)?.ok_or(limit),
                read => read,
            })
        })
    }

    fn is_viable(&self, py: Python<'_>, text: &[u8]) -> PyResult<bool> {
        Ok(self.viable_length(py, text)? == text.len())
    }

    fn viable_length(&self, py: Python<'_>, text: &[u8]) -> PyResult<usize> {
        let read = |machine: &Arc<AnyMachine>| {
            without_gil_on_machines(py, &[machine], |poll| walked(machine, text, poll))
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
            let read =
                without_gil_on_machines(py, &[machine], |poll| walked(machine, prefix, poll))?;
            let Ok(state) = read else { return Ok(None) };
            let asked = Arc::clone(machine);
            let rest = match machine.is_exact() {
                true => in_own_thread(py, move || asked.shortest_completion(state))?,
                // A parser is called in the calling thread.
                false => without_gil(py, |_| asked.shortest_completion(state))?,
            };
            Ok(Some(PyBytes::new(py, &[prefix, &rest].concat())))
        })
    }

    /// Draws a random string: random bytes at first, then the shortest completion.
    fn random_member<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        random_bytes: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let drawn = self.shared.ask(py, |machine| {
            without_gil_on_machines(py, &[machine], |poll| {
                random_member(&**machine, seed, random_bytes, poll)
            })
        })?;
        Ok(PyBytes::new(py, &drawn))
    }

    /// Returns whether every viable input is known to be completable.
    #[getter]
    fn is_exact(&self) -> PyResult<bool> {
        Ok(self.machine()?.is_exact())
    }

    #[getter]
    fn state_count(&self) -> PyResult<usize> {
        Ok(self.machine()?.state_count())
    }

    #[getter]
    fn memory_bytes(&self) -> PyResult<usize> {
        Ok(self.machine()?.memory_bytes())
    }
}

pub(crate) fn unit(characters: bool) -> LengthUnit {
    if characters { LengthUnit::Characters } else { LengthUnit::Labels }
}

pub(crate) fn relation(inclusion: bool) -> LanguageRelation {
    if inclusion { LanguageRelation::Inclusion } else { LanguageRelation::Equivalence }
}
