//! A user's parser as a machine: states are created by appending to copies of the parser.
//!
//! No lock is held while the parser is called or a Python object is dropped: parsers may call back,
//! and may take as long as they like.

use std::fmt;
use std::sync::{Arc, MutexGuard};

use formalm_core::{
    ByteSet, CompletionClasses, CompletionHints, Error, ForkSafeMutex, LazyDfa, Machine,
    ReadingHints, Renewal, ScratchCopies, ScratchPosition, StateId, char_len, into_dyn_machine,
    require_exact,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::input_trie::{Evicted, StateTable, TooManyStates};
use super::parser_size::ParserSizes;
use super::python_calls::{NextInput, ParserCalls, call_error, contract_error, limit};

/// A lazy machine over the inputs that a parser does not reject.
pub(crate) struct ParserMachine {
    pub(super) calls: ParserCalls,
    /// Parsers that compare by value, each with its state.
    known: Option<Py<PyDict>>,
    states: ForkSafeMutex<StateTable>,
    sizes: ParserSizes,
    /// The arguments to make it again.
    start: Py<PyAny>,
    state_limit: u64,
}

/// The result of reading bytes after a parser.
enum AppendOutcome<'py> {
    /// Number of viable bytes.
    Refused(usize),
    /// Nothing was appended: the input ends inside a string that must follow or, if `true`, inside
    /// a character.
    Inside(bool),
    Read(Bound<'py, PyAny>),
}

impl fmt::Debug for ParserMachine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ParserMachine").finish_non_exhaustive()
    }
}

impl ParserMachine {
    pub(super) fn new(
        parser: &Bound<'_, PyAny>,
        calls: ParserCalls,
        compares: bool,
        state_limit: u64,
    ) -> Result<ParserMachine, Error> {
        let py = parser.py();
        let start = calls.copy(parser)?;
        let accepting = calls.is_accepting(&start)?;
        let known = if compares {
            let known = PyDict::new(py);
            known.set_item(&start, 0).map_err(|error| call_error(py, error, COMPARING))?;
            Some(known.unbind())
        } else {
            None
        };
        let start = start.unbind();
        let states =
            ForkSafeMutex::new(StateTable::new(start.clone_ref(py), accepting, state_limit));
        let sizes = ParserSizes::default();
        Ok(ParserMachine { calls, known, states, sizes, start, state_limit })
    }

    pub(super) fn compares(&self) -> bool {
        self.known.is_some()
    }

    fn states(&self) -> MutexGuard<'_, StateTable> {
        self.states.lock()
    }

    pub(crate) fn state_count(&self) -> usize {
        self.states().len()
    }

    pub(crate) fn is_text(&self) -> bool {
        !self.calls.reads_bytes
    }

    /// Returns the state with a parser from which a state is derived, and the bytes between.
    pub(super) fn tail(&self, state: u32) -> (u32, Vec<u8>) {
        self.states().tail(state)
    }

    /// Returns the cached answer about what may follow a state.
    pub(super) fn cached_plan(&self, state: u32) -> Option<Arc<NextInput>> {
        let states = self.states();
        let (base, _) = states.tail(state);
        states.plan(base)
    }

    /// Returns the parser's answer about what may follow.
    pub(super) fn plan(&self, py: Python<'_>, base: u32) -> Result<Arc<NextInput>, Error> {
        if let Some(plan) = self.states().plan(base) {
            return Ok(plan);
        }
        let plan = Arc::new(self.calls.plan(&self.parser(py, base)?)?);
        self.states().set_plan(base, &plan);
        Ok(plan)
    }

    /// Returns the parser of a state that has one, to be copied.
    pub(super) fn parser<'py>(
        &self,
        py: Python<'py>,
        base: u32,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let (nearest, text) = self.states().nearest(py, base);
        let nearest = nearest.into_bound(py);
        if text.is_empty() {
            return Ok(nearest);
        }
        let parser = self.calls.copy(&nearest)?;
        self.must_append(&parser, &text, "it accepted before")?;
        let evicted = self.states().keep(py, base, parser.as_unbound());
        self.remove_evicted(py, &evicted)?;
        Ok(parser)
    }

    /// Appends bytes that the parser itself has announced.
    pub(super) fn must_append(
        &self,
        parser: &Bound<'_, PyAny>,
        text: &[u8],
        why: &str,
    ) -> Result<(), Error> {
        if self.calls.append(parser, text)? {
            return Ok(());
        }
        let text = String::from_utf8_lossy(text);
        let message = format!("append() of a parser rejected {text:?}, which {why}");
        let hint =
            "whether append() rejects a string must not depend on how it is split into calls";
        Err(contract_error(parser.py(), &message, Some(hint)))
    }

    /// Removes evicted parsers from the lookup table.
    fn remove_evicted(&self, py: Python<'_>, evicted: &Evicted) -> Result<(), Error> {
        let Some(known) = &self.known else { return Ok(()) };
        for (parser, _) in evicted {
            let known = known.bind(py);
            let found = known.contains(parser).map_err(|error| call_error(py, error, COMPARING))?;
            if found {
                known.del_item(parser).map_err(|error| call_error(py, error, COMPARING))?;
            }
        }
        Ok(())
    }

    /// Returns the state after bytes, which may end inside a character if `inside`.
    fn read(&self, state: u32, text: &[u8], inside: bool) -> Result<Result<u32, usize>, Error> {
        if text.is_empty() {
            return Ok(Ok(state));
        }
        if let Some(found) = self.states().find(state, text, inside) {
            return Ok(Ok(found));
        }
        Python::attach(|py| self.read_new(py, state, text, inside))
    }

    fn read_new(
        &self,
        py: Python<'_>,
        state: u32,
        text: &[u8],
        inside: bool,
    ) -> Result<Result<u32, usize>, Error> {
        let (base, mut data) = self.tail(state);
        let before = data.len();
        data.extend_from_slice(text);
        let plan = self.plan(py, base)?;
        let parser = self.parser(py, base)?;
        let outcome = if plan.strings.is_empty() {
            self.free(&parser, &data, inside)?
        } else {
            self.forced(&parser, &plan.strings, &data, inside)?
        };
        match outcome {
            AppendOutcome::Refused(good) => Ok(Err(good.saturating_sub(before))),
            AppendOutcome::Inside(ends_inside_character) => {
                let added = self.states().add_inside(state, text, ends_inside_character);
                added.map(Ok).map_err(|full| too_many(py, &full))
            }
            AppendOutcome::Read(next) => self.add(state, text, (&next, &parser)).map(Ok),
        }
    }

    /// Reads bytes of which one of the strings is a prefix, or the other way round.
    fn forced<'py>(
        &self,
        parser: &Bound<'py, PyAny>,
        strings: &[Box<[u8]>],
        data: &[u8],
        inside: bool,
    ) -> Result<AppendOutcome<'py>, Error> {
        if let Some(string) = strings.iter().find(|string| data.starts_with(string)) {
            let parser = self.calls.copy(parser)?;
            self.must_append(&parser, string, "next_strings() returned")?;
            let rest = &data[string.len()..];
            if rest.is_empty() {
                return Ok(AppendOutcome::Read(parser));
            }
            return Ok(match self.free(&parser, rest, inside)? {
                AppendOutcome::Refused(good) => AppendOutcome::Refused(string.len() + good),
                other => other,
            });
        }
        let common = |string: &[u8]| string.iter().zip(data).take_while(|(a, b)| a == b).count();
        let good = strings.iter().map(|string| common(string)).max().unwrap_or_default();
        let whole = self.whole(&data[..good]);
        let ends_inside_character = whole < good;
        Ok(match good == data.len() && (inside || !ends_inside_character) {
            true => AppendOutcome::Inside(ends_inside_character),
            false => AppendOutcome::Refused(whole),
        })
    }

    /// Reads unconstrained bytes.
    fn free<'py>(
        &self,
        parser: &Bound<'py, PyAny>,
        data: &[u8],
        inside: bool,
    ) -> Result<AppendOutcome<'py>, Error> {
        let whole = self.whole(data);
        if whole == data.len() {
            let parser = self.calls.copy(parser)?;
            if self.calls.append(&parser, data)? {
                return Ok(AppendOutcome::Read(parser));
            }
        } else if inside && whole == 0 && is_begun(data) {
            return Ok(AppendOutcome::Inside(true));
        }
        self.viable_length(parser, &data[..whole]).map(AppendOutcome::Refused)
    }

    /// Returns the length of the whole characters of the input, unless the parser reads bytes.
    fn whole(&self, data: &[u8]) -> usize {
        if self.calls.reads_bytes {
            return data.len();
        }
        std::str::from_utf8(data).map_or_else(|error| error.valid_up_to(), str::len)
    }

    /// Returns the number of bytes that are accepted one character after the other.
    fn viable_length(&self, parser: &Bound<'_, PyAny>, data: &[u8]) -> Result<usize, Error> {
        let parser = self.calls.copy(parser)?;
        let mut good = 0;
        while good < data.len() {
            let width = if self.calls.reads_bytes { 1 } else { char_len(data[good]) };
            if !self.calls.append(&parser, &data[good..good + width])? {
                break;
            }
            good += width;
        }
        Ok(good)
    }

    /// Adds the state of an input with its parser, given the one that it was copied from.
    fn add(
        &self,
        state: u32,
        text: &[u8],
        (parser, origin): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
    ) -> Result<u32, Error> {
        let py = parser.py();
        let accepting = self.calls.is_accepting(parser)?;
        let comparing = |error| call_error(py, error, COMPARING);
        if let Some(known) = &self.known
            && let Some(number) = known.bind(py).get_item(parser).map_err(comparing)?
        {
            let number = number.extract().map_err(comparing)?;
            let merged = self.states().join(state, text, number);
            return merged.map(|()| number).map_err(|full| too_many(py, &full));
        }
        let added = self.states().add(state, text, accepting, parser);
        let (number, is_new, evicted) = added.map_err(|full| too_many(py, &full))?;
        if is_new {
            self.sizes.record(parser, origin);
            if let Some(known) = &self.known {
                known.bind(py).set_item(parser, number).map_err(comparing)?;
            }
        }
        self.remove_evicted(py, &evicted)?;
        Ok(number)
    }
}

/// Name of the comparison of parsers in messages.
pub(super) const COMPARING: &str = "__eq__() or __hash__()";

/// Returns `true` if the bytes are the beginning of a character.
fn is_begun(data: &[u8]) -> bool {
    std::str::from_utf8(data)
        .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

fn too_many(py: Python<'_>, full: &TooManyStates) -> Error {
    let hint = "give the parser __eq__ and __hash__ that compare its state, so that equal states \
                are merged, or pass a larger state_limit";
    limit(py, "states", full.0, full.1, hint)
}

impl LazyDfa for ParserMachine {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        let next = self.read(state.number(), &[byte], true)?;
        Ok(next.ok().map(StateId::from_number))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(self.states().is_accepting(state.number()))
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let (base, tail) = self.tail(state.number());
        let plan = Python::attach(|py| self.plan(py, base))?;
        let mut live = ByteSet::default();
        if plan.strings.is_empty() {
            (0..=255).for_each(|byte| live.insert(byte));
        }
        for string in plan.strings.iter().filter(|string| string.starts_with(&tail)) {
            live.insert(string[tail.len()]);
        }
        Ok(live)
    }

    fn shortest_completion(&self, _: StateId) -> Result<Vec<u8>, Error> {
        let hint = "is_viable(text) reports whether the parser rejects an input";
        require_exact(self, "a shortest member", hint).map(|()| Vec::new())
    }

    fn memory_bytes(&self) -> usize {
        self.states().memory_bytes(self.sizes.mean_bytes())
    }

    fn walk(&self, state: StateId, text: &[u8]) -> Result<Result<StateId, usize>, Error> {
        let read = self.read(state.number(), text, false)?;
        Ok(read.map(StateId::from_number))
    }
}

impl ReadingHints for ParserMachine {
    fn is_finite(&self) -> bool {
        false
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn is_char_boundary(&self, state: StateId) -> bool {
        !self.states().ends_inside_character(state.number())
    }
}

impl CompletionHints for ParserMachine {}

impl CompletionClasses for ParserMachine {}

impl ScratchCopies for ParserMachine {
    fn scratch_copy_at(&self, state: StateId) -> Result<Option<ScratchPosition>, Error> {
        Python::attach(|py| {
            let (base, tail) = self.tail(state.number());
            let parser = self.parser(py, base)?;
            let calls = self.calls.clone_ref(py);
            let aside =
                ParserMachine::new(&parser, calls, self.compares(), u64::from(u32::MAX >> 4))?;
            let Ok(state) = aside.read(0, &tail, true)? else {
                return Err(contract_error(
                    py,
                    "next_strings() of a parser differs in its copy()",
                    None,
                ));
            };
            Ok(Some((Arc::new(aside) as Arc<dyn Machine>, StateId::from_number(state))))
        })
    }
}

impl Renewal for ParserMachine {
    fn is_abandoned(&self) -> bool {
        self.states.is_abandoned()
    }

    fn fresh_copy(&self) -> Result<Option<ParserMachine>, Error> {
        Python::attach(|py| {
            // Nothing is ever appended to the parser of the first state.
            let (calls, compares) = (self.calls.clone_ref(py), self.compares());
            ParserMachine::new(self.start.bind(py), calls, compares, self.state_limit).map(Some)
        })
    }

    fn dyn_fresh_copy(&self) -> Result<Option<Arc<dyn Machine>>, Error> {
        into_dyn_machine(self.fresh_copy())
    }
}
