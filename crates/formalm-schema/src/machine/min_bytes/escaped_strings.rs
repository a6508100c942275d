//! Shortest strings after JSON escaping, where a quote takes two bytes and most control characters
//! six.

use std::collections::BTreeMap;
use std::sync::Arc;

use formalm_automata::Automaton;
use formalm_core::{Error, LazyDfa, StateId};
use formalm_json::escapes::{EscapePolicy, EscapeState, EscapeStep, read_string_byte};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::{FormulaId, TRUE};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::containers::UNREACHABLE;
use crate::machine::min_bytes::distinct_values::{
    LengthCounts, MAX_LENGTH, UNBOUNDED, escaped_byte_len, sum_of_shortest,
};
use crate::solver::context::{LanguageId, SolverContext};

/// Automaton work that counts as one search step, by the maximum number of languages the automaton
/// combines. Its states grow exponentially with that number, so larger ones get less work. Chosen,
/// not measured.
const WORK_PER_STEP: [(usize, u64); 3] = [(4, 128), (16, 16), (usize::MAX, 4)];

/// Maximum number of automaton states per length while strings are counted. Chosen, not measured.
const MAX_LAYER_STATES: usize = 500;

/// Number of ASCII characters that need no escape.
const PRINTABLE_ASCII: u64 = 94;

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

    /// Returns the escaped rest with the closing quote.
    pub(crate) fn escaped(&self, escapes: EscapePolicy) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len() + 1);
        for at in self.read..self.text.len() {
            let byte = self.text[at];
            match escaped_len(byte, escapes) {
                1 => text.push(byte),
                // The first byte of a character stands for the whole escape.
                0 => {}
                _ => text.extend(escape_char(&self.text[at..], escapes)),
            }
        }
        text.push(b'"');
        text
    }

    /// Returns the next byte of the escaped rest, or the quote at its end; `None` if the escape
    /// being read belongs to another character.
    pub(crate) fn next(&self, escape: EscapeState, escapes: EscapePolicy) -> Option<u8> {
        let Some(&byte) = self.text.get(self.read) else {
            return (escape == EscapeState::None).then_some(b'"');
        };
        // Characters that need no escape are not escaped, so an open escape belongs to another one.
        if escaped_len(byte, escapes) == 1 {
            return (escape == EscapeState::None).then_some(byte);
        }
        let escape_bytes = escape_char(&self.text[self.read..], escapes);
        let mut partial = EscapeState::None;
        for next in escape_bytes {
            if partial == escape {
                return Some(next);
            }
            match read_string_byte(partial, next, escapes) {
                EscapeStep::Partial(further) => partial = further,
                _ => return None,
            }
        }
        None
    }
}

/// Returns the number of bytes read of an open escape.
pub(crate) fn escape_bytes_read(escape: EscapeState) -> usize {
    let first = |high: Option<u16>| if high.is_some() { 6 } else { 0 };
    match escape {
        EscapeState::None => 0,
        EscapeState::Backslash { high } => first(high) + 1,
        EscapeState::Hex { high, digits, .. } => first(high) + 2 + usize::from(digits),
        EscapeState::HighSurrogate { .. } => 6,
    }
}

/// Returns a lower bound on the bytes that finish an open escape.
pub(crate) fn escape_bytes_left(escape: EscapeState) -> usize {
    match escape {
        EscapeState::None => 0,
        EscapeState::Backslash { high: None } => 1,
        EscapeState::Backslash { high: Some(_) } => 5,
        EscapeState::Hex { digits, .. } => 4usize.saturating_sub(digits.into()),
        EscapeState::HighSurrogate { .. } => 6,
    }
}

/// Returns the bytes that finish an open escape, less the longest UTF-8 encoding it may stand for.
pub(crate) fn escape_slack(escape: EscapeState, escapes: EscapePolicy) -> isize {
    match escape {
        EscapeState::None | EscapeState::Backslash { high: None } => 0,
        EscapeState::Backslash { high: Some(_) } => 1,
        EscapeState::HighSurrogate { .. } => 2,
        EscapeState::Hex { high: None, digits, .. } => {
            let most = if escapes == EscapePolicy::Minimal { 1 } else { 3 };
            4 - (digits as isize) - most
        }
        EscapeState::Hex { high: Some(_), digits, .. } => -(digits as isize),
    }
}

/// Returns the escape of the first character of `text`.
fn escape_char(text: &[u8], escapes: EscapePolicy) -> Vec<u8> {
    if let Some(&byte) = text.first()
        && escaped_len(byte, escapes) == 2
    {
        return vec![b'\\', (escaped_order(byte, escapes) >> 8) as u8];
    }
    let length =
        (1..=text.len().min(4)).find(|&length| std::str::from_utf8(&text[..length]).is_ok());
    let character = length.and_then(|length| std::str::from_utf8(&text[..length]).ok());
    let units = character.into_iter().flat_map(str::encode_utf16);
    units.flat_map(|unit| format!("\\u{unit:04x}").into_bytes()).collect()
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
        language: LanguageId,
        state: StateId,
        budget: &mut SearchBudget,
    ) -> Result<StringSuffix, Error> {
        if let Some(known) = self.suffixes.get(&(language, state.number())) {
            return Ok(known.clone());
        }
        let mut text = shortest_string(core, language, state, budget)?;
        let (machine, escapes) = (core.languages.automaton(language), core.options.escapes);
        if text.iter().any(|&byte| escaped_len(byte, escapes) != 1) {
            text = shortest_escaped(machine, state, escapes, budget)?;
        }
        let mut all: usize = text.iter().map(|&byte| escaped_len(byte, escapes)).sum();
        let left = text.iter().map(|&byte| {
            let left = all;
            all -= escaped_len(byte, escapes);
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
        texts: FormulaId,
        count: u64,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let (counts, least) =
            (self.by_length(core, texts, false)?, min_string_len(core, texts, budget)?);
        Ok(sum_of_shortest(&counts[..], count, least))
    }

    /// Returns upper bounds on the number of strings by length, escaped or not, without quotes.
    pub(crate) fn by_length(
        &mut self,
        core: &mut SolverContext,
        texts: FormulaId,
        escaped: bool,
    ) -> Result<LengthCounts, Error> {
        if texts == TRUE {
            let mut counts = [UNBOUNDED; MAX_LENGTH];
            (counts[0], counts[1]) = (1, PRINTABLE_ASCII);
            return Ok(Arc::new(counts));
        }
        let Some(language) = core.languages.language(&core.base, texts)? else {
            return Ok(Arc::new([0; MAX_LENGTH]));
        };
        if let Some(known) = self.counts.get(&(language, escaped)) {
            return Ok(Arc::clone(known));
        }
        let counts = Arc::new(count_strings(core, language, escaped)?);
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
    language: LanguageId,
    escaped: bool,
) -> Result<[u64; MAX_LENGTH], Error> {
    let (machine, escapes) = (core.languages.automaton(language), core.options.escapes);
    let byte_len = |byte: u8| if escaped { escaped_byte_len(byte, escapes) } else { 1 };
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

/// Returns the escaped length of a byte. The first byte of a character counts for its whole escape.
pub(crate) fn escaped_len(byte: u8, escapes: EscapePolicy) -> usize {
    match byte {
        b'"' | b'\\' | 0x08..=0x0A | 0x0C | 0x0D => 2,
        0..0x20 => 6,
        0x80.. if escapes == EscapePolicy::Ascii => match byte {
            0x80..0xC0 => 0,
            0xF0.. => 12,
            _ => 6,
        },
        _ => 1,
    }
}

/// Returns a sort key: the first three bytes of the escape, the first one most significant.
fn escaped_order(byte: u8, escapes: EscapePolicy) -> u32 {
    let of = |bytes: [u8; 3]| u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
    let letter = match byte {
        0x08 => b'b',
        0x09 => b't',
        0x0A => b'n',
        0x0C => b'f',
        0x0D => b'r',
        b'"' | b'\\' => byte,
        _ if escaped_len(byte, escapes) == 1 => return of([byte, 0, 0]),
        _ => return of([b'\\', b'u', byte]),
    };
    of([b'\\', letter, 0])
}

/// Returns the string that is shortest after escaping, by Dijkstra's algorithm; the
/// lexicographically least of several.
fn shortest_escaped(
    machine: &Automaton,
    start: StateId,
    escapes: EscapePolicy,
    budget: &mut SearchBudget,
) -> Result<Vec<u8>, Error> {
    let bytes = byte_representatives(machine, escapes);
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
            let length = length + escaped_len(byte, escapes);
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
    Ok(lexicographically_least(start, ends, &found, escapes))
}

/// Returns, for each class of bytes that the automaton does not distinguish, the one with the
/// shortest escape.
fn byte_representatives(machine: &Automaton, escapes: EscapePolicy) -> Vec<u8> {
    let starts = machine.class_starts();
    let ends = starts.iter().skip(1).map(|&next| next - 1).chain([255]);
    let of = |(&start, end): (&u8, u8)| {
        (start..=end).min_by_key(|&byte| (escaped_len(byte, escapes), escaped_order(byte, escapes)))
    };
    starts.iter().zip(ends).filter_map(of).collect()
}

/// Returns the lexicographically least string along shortest paths from a state to one of several
/// ends.
fn lexicographically_least(
    start: StateId,
    ends: Vec<StateId>,
    found: &FxHashMap<u32, (usize, ShortestPredecessors)>,
    escapes: EscapePolicy,
) -> Vec<u8> {
    let mut after: FxHashMap<u32, (u8, StateId)> = FxHashMap::default();
    let mut left = ends;
    let mut seen: FxHashSet<u32> = left.iter().map(|end| end.number()).collect();
    while let Some(state) = left.pop() {
        for &(before, byte) in found.get(&state.number()).map_or(&[][..], |known| &known.1) {
            let way = after.entry(before.number()).or_insert((byte, state));
            if escaped_order(byte, escapes) < escaped_order(way.0, escapes) {
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
