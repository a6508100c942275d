//! How far what follows a part of a text can matter to the tokens before it.
//!
//! ```text
//!  … "blue│", "name      the quote may begin a pre-token or continue one:      unsettled
//!         │", "n         the n begins one that no text to come can disprove:   settled
//! ```
//!
//! All states that a splitter may be in where a part of a text ends are followed along the text
//! behind it. One is *settled* where it has passed a boundary behind which every text may follow
//! ([`OpenStates`]). Once none is left unsettled, what follows matters to no token before.

use formalm_core::{ForkSafeMutex, Interner};
use rustc_hash::FxHashMap;

use super::boundary_automaton::{BOUNDARIES, Boundary, BoundaryState};
use super::open_states::OpenStates;
use super::pretoken_splitter::Splitter;
use crate::normalization::FilterState;

/// Maximum number of sets; beyond it nothing is known about further ones. Chosen, not measured.
const MAX_SETS: usize = 512;

/// The number of a set of unsettled states.
pub type UnsettledStates = u32;

/// The effect of a byte on a set of unsettled states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsettledStep {
    /// The states that are still unsettled, if any are left.
    pub next: Option<UnsettledStates>,
    /// Identifies the states that the byte settles. The others are refused or still unsettled.
    pub settled: u32,
}

/// A state, and whether it has passed a boundary.
type UnsettledState = (BoundaryState, bool);

/// The number of the first set.
const FIRST: UnsettledStates = 0;

/// Distinguishes the first set from others; no state.
const AT_FIRST: UnsettledState = (BoundaryState::MAX, true);

/// The sets of states of one splitter met so far.
#[derive(Debug, Default)]
pub struct UnsettledBoundaries {
    tables: ForkSafeMutex<UnsettledTables>,
}

#[derive(Debug, Default)]
struct UnsettledTables {
    open: OpenStates,
    /// Whether some state is open, if that was asked.
    has_open: Option<bool>,
    sets: Interner<Box<[UnsettledState]>>,
    /// Sets of positions in a set.
    settled: Interner<Box<[u32]>>,
    steps: FxHashMap<(UnsettledStates, u8), Option<UnsettledStep>>,
}

impl UnsettledBoundaries {
    /// Returns `true` if every text may follow a state between characters, as far as boundaries are
    /// concerned.
    pub fn is_open(&self, splitter: &Splitter, state: BoundaryState) -> bool {
        let boundaries = splitter.boundaries();
        boundaries.is_between_characters(state)
            && self.tables.lock().open.contains(boundaries, boundaries.state_number(state))
    }

    /// Returns `true` if some state is open. Otherwise nothing is ever settled.
    pub fn settles_any(&self, splitter: &Splitter) -> bool {
        let boundaries = splitter.boundaries();
        let UnsettledTables { open, has_open, .. } = &mut *self.tables.lock();
        let states = 0..boundaries.state_count() as u32;
        *has_open
            .get_or_insert_with(|| states.into_iter().any(|state| open.contains(boundaries, state)))
    }

    /// Returns all states in which a splitter may be between two characters. A boundary right there
    /// does not settle anything: tokens begin at it.
    pub fn at_first(&self, splitter: &Splitter) -> UnsettledStates {
        let boundaries = splitter.boundaries();
        let tables = &mut *self.tables.lock();
        if tables.sets.is_empty() {
            let states = 0..boundaries.state_count() as u32;
            let states = states.map(|state| (boundaries.between_characters(state), false));
            tables.sets.intern(states.chain([AT_FIRST]).collect());
        }
        FIRST
    }

    /// Returns what a byte settles. Returns `None` if nothing is known about it.
    pub fn step(
        &self,
        splitter: &Splitter,
        set: UnsettledStates,
        byte: u8,
    ) -> Option<UnsettledStep> {
        let tables = &mut *self.tables.lock();
        if let Some(&known) = tables.steps.get(&(set, byte)) {
            return known;
        }
        let step = tables.compute_step(splitter, set, byte);
        tables.steps.insert((set, byte), step);
        step
    }

    /// Returns the memory in use, in bytes.
    pub(in crate::bpe) fn memory_bytes(&self) -> usize {
        let tables = self.tables.lock();
        let sets = tables.sets.iter().map(|set| 40 + 8 * set.len());
        let settled = tables.settled.iter().map(|set| 40 + 4 * set.len());
        sets.chain(settled).sum::<usize>() + 32 * tables.steps.len() + tables.open.memory_bytes()
    }
}

impl UnsettledTables {
    fn compute_step(
        &mut self,
        splitter: &Splitter,
        set: UnsettledStates,
        byte: u8,
    ) -> Option<UnsettledStep> {
        let boundaries = splitter.boundaries();
        // A byte that the normalizer may refuse tells texts apart that are split alike.
        if let Some(filter) = splitter.text_filter()
            && byte < 0x80
            && filter.step(FilterState::WEAKEST, byte).is_none()
        {
            return None;
        }
        let states = self.sets.get(set).clone();
        let (mut next, mut settled) = (Vec::new(), Vec::new());
        let of_states = states.iter().enumerate().filter(|(_, state)| **state != AT_FIRST);
        for (at, &(state, has_passed)) in of_states {
            for boundary in BOUNDARIES {
                let steps = [
                    boundaries.step(state, byte, boundary),
                    boundaries.step_byte_token(state, byte, boundary),
                ];
                let has_passed = has_passed || boundary != Boundary::Inside && set != FIRST;
                for after in steps.into_iter().flatten() {
                    if has_passed
                        && boundaries.is_between_characters(after)
                        && self.open.contains(boundaries, boundaries.state_number(after))
                    {
                        settled.push(at as u32);
                    } else {
                        next.push((after, has_passed));
                    }
                }
            }
        }
        next.sort_unstable();
        next.dedup();
        settled.dedup();
        if self.sets.len() >= MAX_SETS || self.settled.len() >= MAX_SETS {
            return None;
        }
        let next = (!next.is_empty()).then(|| self.sets.intern(next.into()));
        Some(UnsettledStep { next, settled: self.settled.intern(settled.into()) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pretoken_splitter::SplitterState;
    use super::*;
    use crate::bpe::BpeEncoder;

    /// Returns the encoder of a tokenizer without merges that splits as GPT-4 does.
    fn encoder() -> BpeEncoder {
        let plain = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
        let mut others = (0x100..).filter_map(char::from_u32);
        let listed: Vec<String> = (0..256u32)
            .map(|byte| {
                let own = plain(&byte).then(|| char::from_u32(byte)).flatten();
                let piece = own.or_else(|| others.next()).unwrap_or_default();
                let escape = if matches!(piece, '"' | '\\') { "\\" } else { "" };
                format!("\"{escape}{piece}\": {byte}")
            })
            .collect();
        let pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
        let file = format!(
            r#"{{"added_tokens": [], "pre_tokenizer": {{"type": "Sequence", "pretokenizers": [
                {{"type": "Split", "pattern": {{"Regex": "{pattern}"}}, "behavior": "Isolated",
                  "invert": false}},
                {{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}}]}},
                "decoder": {{"type": "ByteLevel"}},
                "model": {{"type": "BPE", "vocab": {{{}}}, "merges": []}}}}"#,
            listed.join(", ")
        );
        BpeEncoder::from_tokenizer_json(file.as_bytes(), None).expect("a tokenizer")
    }

    fn state(boundaries: BoundaryState) -> SplitterState {
        SplitterState { boundaries, filter: FilterState::WEAKEST }
    }

    proptest! {
        #[test]
        fn every_text_may_follow_an_open_state(text in "[asTl'\", .1é\n\u{301}-]{0,12}") {
            let encoder = encoder();
            let (splitter, unsettled) = (encoder.splitter(), encoder.unsettled_boundaries());
            let (mut open, count) = (0, splitter.boundaries().state_count() as u32);
            for number in 0..count {
                let boundaries = splitter.boundaries().between_characters(number);
                if unsettled.is_open(splitter, boundaries) {
                    open += 1;
                    let found = splitter.pretokens_after(state(boundaries), text.as_bytes());
                    prop_assert!(found.is_some(), "{text:?} after state {number}");
                }
            }
            prop_assert!(0 < open && open < count, "{open} of {count}");
        }
    }

    #[test]
    fn what_was_asked_before_does_not_change_whether_a_state_is_open() {
        let encoder = encoder();
        let (splitter, unsettled) = (encoder.splitter(), encoder.unsettled_boundaries());
        for number in 0..splitter.boundaries().state_count() as u32 {
            let state = splitter.boundaries().between_characters(number);
            let is_open = unsettled.is_open(splitter, state);
            if number % 7 == 0 {
                let alone = UnsettledBoundaries::default();
                assert_eq!(is_open, alone.is_open(splitter, state), "{number}");
            }
        }
    }

    #[test]
    fn a_boundary_at_the_first_byte_settles_nothing() {
        let encoder = encoder();
        let (splitter, unsettled) = (encoder.splitter(), encoder.unsettled_boundaries());
        let first = unsettled.at_first(splitter);
        let settled_by_quote = unsettled.step(splitter, first, b'"').map(|step| step.settled);
        for byte in 0..128 {
            let step = unsettled.step(splitter, first, byte);
            assert!(step.is_some_and(|step| step.next.is_some()), "{byte}");
            assert_eq!(step.map(|step| step.settled), settled_by_quote);
        }
    }

    #[test]
    fn the_letter_of_a_name_settles_what_came_before_its_quote() {
        let encoder = encoder();
        let (splitter, unsettled) = (encoder.splitter(), encoder.unsettled_boundaries());
        let read = |text: &str| {
            let mut set = Some(unsettled.at_first(splitter));
            let mut last = None;
            for &byte in text.as_bytes() {
                let step = unsettled.step(splitter, set.expect("unsettled"), byte).expect("known");
                (set, last) = (step.next, Some(step.settled));
            }
            (set, last)
        };
        let (left, settled) = read("\",\"n");
        assert_eq!(left, None);
        // Other letters settle the same, even those of contractions; punctuation does not.
        assert_eq!(read("\",\"s"), (None, settled));
        assert_ne!(read("\",\"$").0, None);
        // A space begins a pre-token of which anything may come.
        assert_eq!(read("\", ").0, None);
    }
}
