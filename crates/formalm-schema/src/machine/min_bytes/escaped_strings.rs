//! Shortest strings as they are spelled: in JSON a quote takes two bytes and most control characters
//! six.

use std::collections::BTreeMap;
use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, LazyDfa, StateId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::{FormulaId, TRUE};
use crate::machine::frame::CharState;
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::containers::UNREACHABLE;
use crate::machine::min_bytes::distinct_values::{
    LengthCounts, MAX_LENGTH, UNBOUNDED, sum_of_shortest,
};
use crate::machine::spelling::Spelling;
use crate::solver::context::{LanguageId, SolverContext};

/// Automaton work that counts as one search step, by the maximum number of languages the automaton
/// combines. Its states grow exponentially with that number, so larger ones get less work. Chosen,
/// not measured.
const WORK_PER_STEP: [(usize, u64); 3] = [(4, 128), (16, 16), (usize::MAX, 4)];

/// Maximum number of automaton states per length while strings are counted. Chosen, not measured.
const MAX_LAYER_STATES: usize = 500;

/// The rest of a shortest string after some of its bytes were read.
#[derive(Clone, Debug)]
pub(crate) struct StringSuffix {
    text: Arc<[u8]>,
    /// For each byte, the escaped length from it on.
    left: Arc<[usize]>,
    read: usize,
}

impl StringSuffix {
    /// Returns the escaped length of the rest.
    pub(crate) fn len(&self) -> usize {
        self.left.get(self.read).copied().unwrap_or(0)
    }

    /// Returns the rest before escaping.
    pub(crate) fn remaining(&self) -> &[u8] {
        &self.text[self.read..]
    }

    /// Returns the escaped rest and the end of the string.
    pub(crate) fn escaped(&self, spelling: &dyn Spelling) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len() + 1);
        for at in self.read..self.text.len() {
            let byte = self.text[at];
            match spelling.byte_len(byte) {
                1 => text.push(byte),
                // The first byte of a character stands for the whole escape.
                0 => {}
                _ => text.extend(spelling.spell_char(&self.text[at..])),
            }
        }
        text.extend_from_slice(spelling.string_end());
        text
    }

    /// Returns the next byte of the escaped rest, or the first one after it; `None` if the escape
    /// being read belongs to another character.
    pub(crate) fn next(&self, escape: CharState, spelling: &dyn Spelling) -> Option<u8> {
        let Some(&byte) = self.text.get(self.read) else {
            let end = spelling.string_end().first().copied();
            return end.filter(|_| escape == CharState::NONE);
        };
        // Characters that need no escape are not escaped, so an open escape belongs to another one.
        if spelling.byte_len(byte) == 1 {
            return (escape == CharState::NONE).then_some(byte);
        }
        let escape_bytes = spelling.spell_char(&self.text[self.read..]);
        let mut partial = CharState::NONE;
        for next in escape_bytes {
            if partial == escape {
                return Some(next);
            }
            partial = spelling.char_after(partial, next)?;
        }
        None
    }
}

/// Predecessors of a state on shortest paths: the states, and the bytes that lead from them.
type ShortestPredecessors = Vec<(StateId, u8)>;

/// Shortest strings, and the number of strings by length.
#[derive(Debug, Default)]
pub(crate) struct StringBounds {
    /// The shortest rest of a string, by automaton and state.
    suffixes: FxHashMap<(LanguageId, u32), StringSuffix>,
    /// Upper bounds on the number of strings by length; the flag says whether they are escaped.
    counts: FxHashMap<(LanguageId, bool), LengthCounts>,
}

impl StringBounds {
    /// Returns `true` if the shortest rest of a string is known.
    pub(crate) fn knows_suffix(&self, language: LanguageId, state: StateId) -> bool {
        self.suffixes.contains_key(&(language, state.number()))
    }

    /// Returns the rest that is shortest after escaping, lexicographically least among these.
    pub(crate) fn shortest_suffix(
        &mut self,
        core: &SolverContext,
        spelling: &dyn Spelling,
        language: LanguageId,
        state: StateId,
        budget: &mut SearchBudget,
    ) -> Result<StringSuffix, Error> {
        if let Some(known) = self.suffixes.get(&(language, state.number())) {
            return Ok(known.clone());
        }
        let mut text = shortest_string(core, language, state, budget)?;
        let machine = core.languages.automaton(language);
        if text.iter().any(|&byte| spelling.byte_len(byte) != 1) {
            text = shortest_escaped(machine, state, spelling, budget)?;
        }
        let mut all: usize = text.iter().map(|&byte| spelling.byte_len(byte)).sum();
        let left = text.iter().map(|&byte| {
            let left = all;
            all -= spelling.byte_len(byte);
            left
        });
        let left: Arc<[usize]> = left.collect();
        let text: Arc<[u8]> = text.into();
        let mut at = Some(state);
        for read in 0..=text.len() {
            let Some(here) = at else { break };
            let rest = StringSuffix { text: Arc::clone(&text), left: Arc::clone(&left), read };
            self.suffixes.insert((language, here.number()), rest);
            at = match text.get(read) {
                Some(&byte) => machine.step(here, byte)?,
                None => None,
            };
        }
        Ok(StringSuffix { text, left, read: 0 })
    }

    /// Returns a bound on the total length of `count` distinct strings, before escaping.
    pub(crate) fn min_total_len(
        &mut self,
        core: &mut SolverContext,
        spelling: &dyn Spelling,
        texts: FormulaId,
        count: u64,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let (counts, least) =
            (self.by_length(core, spelling, texts, false)?, min_string_len(core, texts, budget)?);
        Ok(sum_of_shortest(&counts[..], count, least))
    }

    /// Returns upper bounds on the number of strings by length, escaped or not, without quotes.
    pub(crate) fn by_length(
        &mut self,
        core: &mut SolverContext,
        spelling: &dyn Spelling,
        texts: FormulaId,
        escaped: bool,
    ) -> Result<LengthCounts, Error> {
        if texts == TRUE {
            let mut counts = [UNBOUNDED; MAX_LENGTH];
            let plain = (0..0x80).filter(|&byte| spelling.byte_len(byte) == 1).count();
            (counts[0], counts[1]) = (1, plain as u64);
            return Ok(Arc::new(counts));
        }
        let Some(language) = core.languages.language(&core.base, texts)? else {
            return Ok(Arc::new([0; MAX_LENGTH]));
        };
        if let Some(known) = self.counts.get(&(language, escaped)) {
            return Ok(Arc::clone(known));
        }
        let counts = Arc::new(count_strings(core, spelling, language, escaped)?);
        self.counts.insert((language, escaped), Arc::clone(&counts));
        Ok(counts)
    }

    /// Returns the number of cached bounds.
    pub(crate) fn len(&self) -> usize {
        self.suffixes.len() + self.counts.len()
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        80 * self.suffixes.capacity() + 128 * self.counts.capacity()
    }
}

/// Returns the shortest string from a state, before escaping. Charges the automaton's work to
/// the budget.
fn shortest_string(
    core: &SolverContext,
    language: LanguageId,
    state: StateId,
    budget: &mut SearchBudget,
) -> Result<Vec<u8>, Error> {
    let languages = core.base.formulas.atoms_of(&[core.languages.language_formula(language)]).len();
    let in_a_step = WORK_PER_STEP.iter().find(|&&(most, _)| languages <= most);
    let in_a_step = in_a_step.map_or(1, |one| one.1);
    let machine = core.languages.automaton(language);
    let (before, left) = (machine.work(), budget.limit.saturating_sub(budget.steps));
    let found = machine.shortest_within_steps(state, left.saturating_mul(in_a_step));
    budget.steps_of(machine.work().saturating_sub(before) / in_a_step)?;
    found
}

/// Returns the length of the shortest string that satisfies a formula, before escaping.
pub(crate) fn min_string_len(
    core: &mut SolverContext,
    texts: FormulaId,
    budget: &mut SearchBudget,
) -> Result<usize, Error> {
    let Some(language) = core.languages.language(&core.base, texts)? else {
        return Ok(UNREACHABLE);
    };
    let start = core.languages.automaton(language).start();
    Ok(shortest_string(core, language, start, budget)?.len())
}

/// Counts the strings of an automaton by length, layer by layer.
fn count_strings(
    core: &SolverContext,
    spelling: &dyn Spelling,
    language: LanguageId,
    escaped: bool,
) -> Result<[u64; MAX_LENGTH], Error> {
    let machine = core.languages.automaton(language);
    let byte_len = |byte: u8| if escaped { spelling.shared_byte_len(byte) } else { 1 };
    let mut layers: Vec<BTreeMap<u32, u64>> = vec![BTreeMap::new(); MAX_LENGTH];
    layers[0].insert(machine.start().number(), 1);
    let mut counts = [UNBOUNDED; MAX_LENGTH];
    for at in 0..MAX_LENGTH {
        let layer = std::mem::take(&mut layers[at]);
        if layer.len() > MAX_LAYER_STATES {
            // Beyond this length the counts stay unbounded.
            break;
        }
        counts[at] = 0;
        for (state, count) in layer {
            let state = StateId::from_number(state);
            if machine.is_accepting(state) {
                counts[at] = counts[at].saturating_add(count).min(UNBOUNDED);
            }
            for byte in machine.live_bytes(state)?.iter() {
                let Some(later) = layers.get_mut(at + byte_len(byte)) else {
                    continue;
                };
                if let Some(next) = machine.step(state, byte)? {
                    let all = later.entry(next.number()).or_insert(0);
                    *all = all.saturating_add(count).min(UNBOUNDED);
                }
            }
        }
    }
    Ok(counts)
}

/// Returns the string that is shortest after escaping, by Dijkstra's algorithm; the
/// lexicographically least of several.
fn shortest_escaped(
    machine: &Automaton,
    start: StateId,
    spelling: &dyn Spelling,
    budget: &mut SearchBudget,
) -> Result<Vec<u8>, Error> {
    let bytes = byte_representatives(machine, spelling);
    let mut found: FxHashMap<u32, (usize, ShortestPredecessors)> = FxHashMap::default();
    found.insert(start.number(), (0, ShortestPredecessors::new()));
    let mut open = BTreeMap::from([(0, vec![start])]);
    let mut ends: Vec<StateId> = Vec::new();
    while let Some(mut least) = open.first_entry() {
        let length = *least.key();
        let Some(here) = least.get_mut().pop() else {
            least.remove();
            // All states on shortest paths have been settled.
            if !ends.is_empty() {
                break;
            }
            continue;
        };
        if found.get(&here.number()).is_some_and(|known| known.0 < length) {
            continue;
        }
        if machine.is_accepting(here) {
            ends.push(here);
            continue;
        }
        budget.step()?;
        for &byte in &bytes {
            let Some(next) = machine.step(here, byte)? else { continue };
            let length = length + spelling.byte_len(byte);
            let known =
                found.entry(next.number()).or_insert((usize::MAX, ShortestPredecessors::new()));
            if length < known.0 {
                *known = (length, vec![(here, byte)]);
                open.entry(length).or_default().push(next);
            } else if length == known.0 {
                known.1.push((here, byte));
            }
        }
    }
    Ok(lexicographically_least(start, ends, &found, spelling))
}

/// Returns, for each class of bytes that the automaton does not distinguish, the one with the
/// shortest escape.
fn byte_representatives(machine: &Automaton, spelling: &dyn Spelling) -> Vec<u8> {
    let starts = machine.class_starts();
    let ends = starts.iter().skip(1).map(|&next| next - 1).chain([255]);
    let of = |(&start, end): (&u8, u8)| {
        (start..=end).min_by_key(|&byte| (spelling.byte_len(byte), spelling.byte_order(byte)))
    };
    starts.iter().zip(ends).filter_map(of).collect()
}

/// Returns the lexicographically least string along shortest paths from a state to one of several
/// ends.
fn lexicographically_least(
    start: StateId,
    ends: Vec<StateId>,
    found: &FxHashMap<u32, (usize, ShortestPredecessors)>,
    spelling: &dyn Spelling,
) -> Vec<u8> {
    let mut after: FxHashMap<u32, (u8, StateId)> = FxHashMap::default();
    let mut left = ends;
    let mut seen: FxHashSet<u32> = left.iter().map(|end| end.number()).collect();
    while let Some(state) = left.pop() {
        for &(before, byte) in found.get(&state.number()).map_or(&[][..], |known| &known.1) {
            let way = after.entry(before.number()).or_insert((byte, state));
            if spelling.byte_order(byte) < spelling.byte_order(way.0) {
                *way = (byte, state);
            }
            if seen.insert(before.number()) {
                left.push(before);
            }
        }
    }
    let mut text = Vec::new();
    let mut state = start;
    while let Some(&(byte, next)) = after.get(&state.number()) {
        text.push(byte);
        state = next;
    }
    text
}
