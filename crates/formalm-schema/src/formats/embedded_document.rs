//! JSON documents inside a string, read character by character by another schema's automaton.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use formalm_automata::{CharRecognizer, GrowingStates, MemberLengths};
use formalm_core::{CompletionHints, Error, LazyDfa, Renewal, StateId, deadline::without_deadline};

use crate::machine::SchemaAutomaton;

/// A recognizer of the documents of a schema. Its states are those of the schema automaton, all of
/// which are live.
#[derive(Clone, Debug)]
pub(crate) struct EmbeddedDocument {
    machine: Arc<SchemaAutomaton>,
    /// Set when the automaton exceeds a limit.
    limit_reached: Arc<AtomicBool>,
}

impl EmbeddedDocument {
    pub(crate) fn new(machine: SchemaAutomaton) -> EmbeddedDocument {
        EmbeddedDocument { machine: Arc::new(machine), limit_reached: Arc::default() }
    }

    /// Returns the answer; notes the limit that an error reports.
    fn or_record_limit<T>(&self, answer: Result<T, Error>) -> Option<T> {
        if answer.is_err() {
            self.limit_reached.store(true, Ordering::Relaxed);
        }
        answer.ok()
    }

    fn read(&self, state: u32, bytes: &[u8]) -> Option<u32> {
        let mut state = StateId::from_number(state);
        for &byte in bytes {
            // A step that a deadline ends would look like a rejection. The automaton's own limits
            // bound it instead.
            state = self.or_record_limit(without_deadline(|| self.machine.step(state, byte)))??;
        }
        Some(state.number())
    }

    /// Returns `true` if the automaton reads some UTF-8 encoding from `low` to `high`, which have
    /// the same number of bytes.
    fn some_encoding_between(&self, state: u32, low: &[u8], high: &[u8]) -> bool {
        let (Some((&first, low)), Some((&last, high))) = (low.split_first(), high.split_first())
        else {
            return true;
        };
        (first..=last).any(|byte| {
            let Some(next) = self.read(state, &[byte]) else { return false };
            let (least, most) = ([0x80; 4], [0xBF; 4]);
            let low = if byte == first { low } else { &least[..low.len()] };
            let high = if byte == last { high } else { &most[..high.len()] };
            self.some_encoding_between(next, low, high)
        })
    }
}

impl CharRecognizer for EmbeddedDocument {
    fn start(&self) -> u32 {
        LazyDfa::start(&*self.machine).number()
    }

    fn step(&self, state: u32, character: char) -> Option<u32> {
        self.read(state, character.encode_utf8(&mut [0; 4]).as_bytes())
    }

    fn accepts_some_in_range(&self, state: u32, first: char, last: char) -> bool {
        let (low, high) = (first.to_string(), last.to_string());
        if low.len() == high.len() {
            return self.some_encoding_between(state, low.as_bytes(), high.as_bytes());
        }
        // Split the range by the number of bytes of its characters.
        let bounds = [('\0', '\u{7F}'), ('\u{80}', '\u{7FF}'), ('\u{800}', '\u{FFFF}')];
        let all = bounds.into_iter().chain([('\u{10000}', char::MAX)]);
        all.map(|(least, most)| (least.max(first), most.min(last)))
            .filter(|(least, most)| least <= most)
            .any(|(least, most)| self.accepts_some_in_range(state, least, most))
    }

    fn is_accepting(&self, state: u32) -> bool {
        self.machine.is_accepting(StateId::from_number(state))
    }

    fn member_lengths(&self) -> Option<&dyn MemberLengths> {
        Some(self)
    }

    fn growing_states(&self) -> Option<&dyn GrowingStates> {
        Some(self)
    }
}

impl MemberLengths for EmbeddedDocument {
    fn min_chars(&self, state: u32) -> u32 {
        self.estimated_missing_chars(state).div_ceil(4)
    }

    fn estimated_missing_chars(&self, state: u32) -> u32 {
        let state = StateId::from_number(state);
        let least = self.or_record_limit(without_deadline(|| self.machine.min_bytes(state)));
        least.map_or(0, |least| u32::try_from(least).unwrap_or(u32::MAX))
    }
}

impl GrowingStates for EmbeddedDocument {
    fn independent_copy(&self) -> Option<Arc<dyn CharRecognizer>> {
        // It has as many states as inputs, so no automaton that contains it is cached.
        Some(Arc::new(self.clone()))
    }

    fn hit_limit(&self) -> bool {
        self.limit_reached.swap(false, Ordering::Relaxed)
    }

    fn losses(&self) -> u32 {
        u32::from(self.machine.is_abandoned())
    }
}
