//! JSON within a text: the documents of a schema, read character by character.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use formalm_automata::deadline::without_deadline;
use formalm_automata::{CharRecognizer, Error, Machine, StateId};

use crate::machine::SchemaAutomaton;

/// Reads the texts of a schema; states are those of its machine, which shows live ones only.
#[derive(Clone, Debug)]
pub(crate) struct EmbeddedDocument {
    machine: Arc<SchemaAutomaton>,
    /// Whether the machine met a limit.
    gave_up: Arc<AtomicBool>,
}

impl EmbeddedDocument {
    pub(crate) fn new(machine: SchemaAutomaton) -> EmbeddedDocument {
        EmbeddedDocument { machine: Arc::new(machine), gave_up: Arc::default() }
    }

    fn known<T>(&self, answer: Result<T, Error>) -> Option<T> {
        if answer.is_err() {
            self.gave_up.store(true, Ordering::Relaxed);
        }
        answer.ok()
    }

    fn read(&self, state: u32, bytes: &[u8]) -> Option<u32> {
        let mut state = StateId::from_number(state);
        for &byte in bytes {
            // A deadline that ends a step looks like a refusal here; its own limits bound it.
            state = self.known(without_deadline(|| self.machine.step(state, byte)))??;
        }
        Some(state.number())
    }

    /// Whether some text of as many bytes lies between two and leads on.
    fn some_between(&self, state: u32, low: &[u8], high: &[u8]) -> bool {
        let (Some((&first, low)), Some((&last, high))) = (low.split_first(), high.split_first())
        else {
            return true;
        };
        (first..=last).any(|byte| {
            let Some(next) = self.read(state, &[byte]) else { return false };
            let (least, most) = ([0x80; 4], [0xBF; 4]);
            let low = if byte == first { low } else { &least[..low.len()] };
            let high = if byte == last { high } else { &most[..high.len()] };
            self.some_between(next, low, high)
        })
    }
}

impl CharRecognizer for EmbeddedDocument {
    fn start(&self) -> u32 {
        Machine::start(&*self.machine).number()
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        self.read(state, character.encode_utf8(&mut [0; 4]).as_bytes())
    }

    fn accepts_some_in_range(&self, state: u32, first: char, last: char) -> bool {
        let (low, high) = (first.to_string(), last.to_string());
        if low.len() == high.len() {
            return self.some_between(state, low.as_bytes(), high.as_bytes());
        }
        // The characters of each number of bytes.
        let bounds = [('\0', '\u{7F}'), ('\u{80}', '\u{7FF}'), ('\u{800}', '\u{FFFF}')];
        let all = bounds.into_iter().chain([('\u{10000}', char::MAX)]);
        all.map(|(least, most)| (least.max(first), most.min(last)))
            .filter(|(least, most)| least <= most)
            .any(|(least, most)| self.accepts_some_in_range(state, least, most))
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.machine.is_accepting(StateId::from_number(state))
    }

    fn min_chars(&self, state: u32) -> u32 {
        self.estimated_missing_chars(state).div_ceil(4)
    }

    fn estimated_missing_chars(&self, state: u32) -> u32 {
        let state = StateId::from_number(state);
        let least = self.known(without_deadline(|| self.machine.min_bytes(state)));
        least.map_or(0, |least| u32::try_from(least).unwrap_or(u32::MAX))
    }

    fn losses(&self) -> u32 {
        u32::from(self.machine.is_abandoned())
    }

    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        // Its states are as many as texts, so that no machine that has it is kept for others.
        Some(Arc::new(self.clone()))
    }

    fn hit_limit(&self) -> bool {
        self.gave_up.swap(false, Ordering::Relaxed)
    }
}
