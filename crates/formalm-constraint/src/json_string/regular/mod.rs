//! Masks inside JSON strings whose content a regular machine reads.
//!
//! The effect of tokens before the string ends depends only on the machine, its state and the
//! allowed escapes. So it is computed with the methods of regular languages and cached with the
//! vocabulary, where all constraints find it:
//!
//! - tokens without escapes: the machine's own mask, restricted to these tokens;
//! - tokens with escapes: a walk of their spellings. If few bytes may follow, as in an enumeration,
//!   one walk finds both;
//! - closing tokens: those whose prefix is accepted, grouped by the suffix after the quote. The
//!   surroundings of the string decide which suffixes are viable ([`QuoteContinuations`]).

mod continuing_token_set;
mod escaped_walk;
mod finite_words;
mod opening;
mod pure_reference;
mod strategies;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard};

use formalm_automata::Automaton;
use formalm_core::{
    ByteSet, Error, ForkSafeMutex, LazyDfa, LruCache, MaskClassId, Renewal, SetOnce, StateId,
};
use formalm_json::{JsonStringState, escapes::EscapePolicy};
use formalm_machines::{
    AlternativeStrings, ClassRenewal, LiteralList, MaskAutomaton, RegularMaskClasses, StateClasses,
};
use formalm_vocabulary::{JsonStringTokens, Vocabulary, VocabularyExtension};
use rustc_hash::FxHashMap;

use crate::json_string::custom;
use crate::json_string::custom::CustomStringMasks;
use crate::json_string::length::{QuoteContinuations, closing_tokens};
use crate::json_value::ValueLists;
use crate::lexical::LexicalMasks;
use crate::mask::Mask;
use crate::mask_cache::MaskCache;
use crate::shared_masks::SharedMasks;
use crate::sorted_token_reading::LongStringTokens;
use crate::trie_walk::NodeSelections;
use crate::trie_word_reading::{along, read};
use continuing_token_set::ContinuingTokens;
use escaped_walk::continuing_by_walk;
pub(crate) use escaped_walk::walk_escaped;
use finite_words::word_tokens;
pub(crate) use opening::opened;

/// Maximum number of cached machines; the least recently used is evicted. Chosen, not measured.
const MAX_MACHINES: usize = 128;

/// Memory of all tables, in bytes; beyond it the least recently used machines are evicted. 8 MiB,
/// chosen, not measured.
const MAX_TOTAL_BYTES: usize = 8 << 20;

/// Memory of one machine, in bytes; beyond it its tables are rebuilt from scratch. 1 MiB; chosen,
/// not measured.
const MAX_MACHINE_BYTES: usize = 1 << 20;

/// Number of viable bytes up to which a walk is faster than the machine's own mask. Chosen, not
/// measured.
const MAX_WALKED_BYTES: usize = 8;

/// Memory, per machine, of masks that others are derived from, in bytes. Chosen, not measured.
const BASE_MASK_BYTES: usize = 1 << 17;

/// The tables that all constraints over a vocabulary share.
#[derive(Debug, Default)]
pub(crate) struct SharedStringMasks {
    machines: ForkSafeMutex<MachineTable>,
    /// Isolated values that several machines share.
    pub(crate) values: ValueLists,
    /// Masks of classes that several machines share.
    pub(crate) masks: SharedMasks,
    /// Trie nodes at which members of sublanguages can end.
    pub(crate) end_nodes: NodeSelections,
    custom: CustomStringMasks,
    long_tokens: LongStringTokens,
}

/// A machine, by its address: it lives as long as its entry.
type MachineKey = (usize, EscapePolicy);

#[derive(Debug, Default)]
struct MachineTable {
    known: LruCache<MachineKey, Arc<RegularStringMasks>, MAX_MACHINES>,
    /// Memory of the tables of all machines.
    bytes: Arc<AtomicUsize>,
}

/// The effect of tokens inside the strings of one machine.
#[derive(Debug)]
struct RegularStringMasks {
    /// The classes of all states, and those of states with pure terms in a machine with others.
    classes: [SetOnce<Box<StringClassTables>>; 2],
    max_token_len: usize,
    machine: Arc<Automaton>,
    tables: ForkSafeMutex<RegularStringTables>,
    /// Memory of the tables of all machines.
    total: Arc<AtomicUsize>,
}

/// The classes of a machine's states.
#[derive(Debug)]
struct StringClassTables {
    keys: RegularMaskClasses,
    /// Tables for computing masks; only masks that others are derived from are kept here.
    own: (LexicalMasks, MaskCache, QuoteContinuations),
}

#[derive(Debug, Default)]
struct RegularStringTables {
    /// By the number of the tables that a class is from, and the class.
    by_key: FxHashMap<(usize, MaskClassId), ContinuingTokens>,
    continuing: FxHashMap<StateId, ContinuingTokens>,
    ends: FxHashMap<StateId, Arc<ClosingTokens>>,
    bytes: usize,
}

/// The tokens that close a string.
#[derive(Debug, Default)]
struct ClosingTokens {
    /// A state in which the string may end.
    state: Option<StateId>,
    /// Tokens that end with the quote.
    exact: Vec<u32>,
    /// `(suffix, token)` of tokens with a suffix.
    with_suffix: Vec<(u32, u32)>,
}

/// Returns the mask of a class inside a string; `None` if it is not between two characters.
pub(crate) fn mask(
    keys: &impl MaskAutomaton,
    vocabulary: &Vocabulary,
    continuations: &QuoteContinuations,
    (key, text): (MaskClassId, &JsonStringState),
) -> Result<Option<Mask>, Error> {
    if !text.is_char_boundary()? {
        return Ok(None);
    }
    let Some(kept) = vocabulary.extension::<SharedStringMasks>() else { return Ok(None) };
    let strings = vocabulary.json_string_tokens(text.escapes);
    let listed = word_tokens(vocabulary, strings, text)?;
    let (continuing, ends) = match (listed, &text.transient) {
        (Some((continuing, ends)), _) => (continuing, Arc::new(ends)),
        (None, Some(transient)) => {
            let words = custom::continuing(&kept.custom, vocabulary, (text, transient))?;
            (
                ContinuingTokens::of(Mask::from_words(words)),
                Arc::new(ClosingTokens::of(strings, text)?),
            )
        }
        (None, None) => {
            let within = kept.bounded(vocabulary, text);
            (within.continuing(vocabulary, strings, text)?, within.ends(strings, text)?)
        }
    };
    let ended = ends.viable(keys, continuations, (strings, key))?;
    let words = vocabulary.len().div_ceil(32);
    Ok(Some(continuing.with(ended, words)))
}

/// Returns the tokens of a table that close a string, read by its machine; `None` if the string is
/// not between two characters, or if no machine alone reads it.
pub(crate) fn closing_by_machine(
    keys: &impl MaskAutomaton,
    continuations: &QuoteContinuations,
    strings: &JsonStringTokens,
    key: MaskClassId,
) -> Result<Option<Vec<u32>>, Error> {
    let Some(text) = keys.json_string_state(key)? else { return Ok(None) };
    if text.transient.is_some() || !text.is_char_boundary()? {
        return Ok(None);
    }
    ClosingTokens::of(strings, &text)?.viable(keys, continuations, (strings, key)).map(Some)
}

/// Returns the mask of a class inside a string that continues as any of several automata allows;
/// `None` if it is not between two characters. Closing tokens and exceptions are read by the class.
pub(crate) fn mask_of_any(
    keys: &impl MaskAutomaton,
    vocabulary: &Vocabulary,
    continuations: &QuoteContinuations,
    (key, strings): (MaskClassId, &AlternativeStrings),
) -> Result<Option<Mask>, Error> {
    let Some(kept) = vocabulary.extension::<SharedStringMasks>() else { return Ok(None) };
    let words = vocabulary.len().div_ceil(32);
    let tables = vocabulary.json_string_tokens(strings.exceptions.escapes);
    let mut all = ContinuingTokens::Few([].into());
    for text in &strings.states {
        if !text.is_char_boundary()? {
            return Ok(None);
        }
        let continuing = kept.bounded(vocabulary, text).continuing(vocabulary, tables, text)?;
        all = if strings.states.len() == 1 { continuing } else { all.or(&continuing, words) };
    }
    let mut allowed = closing_tokens(keys, continuations, tables, key)?;
    let inside = StringPlace { node: None, opening_len: 0, strings: tables };
    let (viable, refused) = read_exceptions(keys, vocabulary, (key, &strings.exceptions), &inside)?;
    let all = all.without(&refused);
    allowed.extend(viable);
    Ok(Some(all.with(allowed, words)))
}

/// A place before the content of a string: inside it, or behind an opening that tokens have.
struct StringPlace<'a> {
    /// The node of the opening; `None` inside.
    node: Option<u32>,
    /// The number of bytes of the opening.
    opening_len: usize,
    /// The tokens by their effect from there on.
    strings: &'a JsonStringTokens,
}

/// Reads the tokens whose content begins one of some texts, from the class at a place. Returns those
/// that are viable, and the others.
fn read_exceptions(
    keys: &impl MaskAutomaton,
    vocabulary: &Vocabulary,
    (key, texts): (MaskClassId, &LiteralList),
    place: &StringPlace<'_>,
) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let (mut viable, mut refused) = (Vec::new(), Vec::new());
    let (trie, strings) = (vocabulary.trie(), place.strings);
    let mut nodes = Vec::new();
    along(trie, place.node, texts, |node| nodes.push(node));
    // Nodes come in the order of a walk, so the classes above a node are on the stack.
    let mut stack = vec![Some(key)];
    for node in nodes {
        let here = trie.nodes()[node as usize];
        let depth = here.depth() - place.opening_len;
        stack.truncate(depth);
        let before = stack[depth - 1];
        let next = before.map_or(Ok(None), |before| keys.step(before, here.byte()))?;
        stack.push(next);
        let tokens = if next.is_some() { &mut viable } else { &mut refused };
        tokens.extend_from_slice(trie.tokens_at(node));
    }
    let list: Vec<&[u8]> = texts.iter().collect();
    // A state is the range of the texts that begin with what was read, and its length.
    let step = |(from, to, depth): (usize, usize, usize), byte: u8| {
        let at = |text: &&[u8]| text.get(depth).copied();
        let range = &list[from..to];
        let first = range.partition_point(|text| at(text) < Some(byte));
        let end = range.partition_point(|text| at(text) <= Some(byte));
        Ok((first < end).then_some((from + first, from + end, depth + 1)))
    };
    let start = ((0, list.len(), 0), texts.escapes);
    let mut spelled: Vec<u32> = Vec::new();
    let spellings = strings.escaped_spellings();
    walk_escaped(spellings, start, (&step, &|_| None), &mut |_, spelling, _| {
        spelled.extend_from_slice(strings.escaped_tokens(spelling));
    })?;
    for token in spelled {
        let bytes = vocabulary.token_bytes(token).unwrap_or_default();
        let is_viable = read(keys, key, &bytes[place.opening_len..])?.is_some();
        if is_viable { &mut viable } else { &mut refused }.push(token);
    }
    Ok((viable, refused))
}

impl SharedStringMasks {
    fn lock(&self) -> MutexGuard<'_, MachineTable> {
        self.machines.lock()
    }

    fn of(&self, vocabulary: &Vocabulary, text: &JsonStringState) -> Arc<RegularStringMasks> {
        let machine_key = (Arc::as_ptr(&text.machine) as usize, text.escapes);
        let machines = &mut *self.lock();
        if let Some(known) = machines.known.get(&machine_key).filter(|known| !known.is_abandoned())
        {
            return known;
        }
        while machines.bytes.load(Relaxed) > MAX_TOTAL_BYTES && machines.known.evict_oldest() {}
        let machine = Arc::clone(&text.machine);
        let total = Arc::clone(&machines.bytes);
        let within = RegularStringMasks::new(machine, vocabulary.longest_token_bytes(), total);
        let within = Arc::new(within);
        machines.known.insert(machine_key, Arc::clone(&within), 1);
        within
    }

    /// Returns the tables of a machine, which are rebuilt next time if they have grown too much.
    fn bounded(&self, vocabulary: &Vocabulary, text: &JsonStringState) -> Arc<RegularStringMasks> {
        let within = self.of(vocabulary, text);
        if within.memory_bytes() > MAX_MACHINE_BYTES {
            self.evict(text);
        }
        within
    }

    /// Evicts a machine that has grown too much.
    fn evict(&self, text: &JsonStringState) {
        let machine_key = (Arc::as_ptr(&text.machine) as usize, text.escapes);
        self.lock().known.remove(&machine_key);
    }
}

impl VocabularyExtension for SharedStringMasks {
    fn memory_bytes(&self) -> usize {
        let machines: usize = self.lock().known.values().map(|one| one.memory_bytes()).sum();
        machines
            + self.values.memory_bytes()
            + self.masks.memory_bytes()
            + self.custom.memory_bytes()
            + self.long_tokens.memory_bytes()
    }
}

impl Drop for RegularStringMasks {
    fn drop(&mut self) {
        self.total.fetch_sub(self.tables().bytes, Relaxed);
    }
}

impl RegularStringMasks {
    fn new(
        machine: Arc<Automaton>,
        max_token_len: usize,
        total: Arc<AtomicUsize>,
    ) -> RegularStringMasks {
        RegularStringMasks {
            classes: Default::default(),
            max_token_len,
            machine,
            tables: ForkSafeMutex::default(),
            total,
        }
    }

    fn tables(&self) -> MutexGuard<'_, RegularStringTables> {
        self.tables.lock()
    }

    fn memory_bytes(&self) -> usize {
        let classes = self.classes.iter().filter_map(SetOnce::get);
        let classes: usize = classes.map(|one| one.keys.memory_bytes()).sum();
        size_of::<RegularStringMasks>() + classes + self.tables().bytes
    }

    fn is_abandoned(&self) -> bool {
        let mut known = self.classes.iter().filter_map(SetOnce::get);
        self.machine.is_abandoned() || known.any(|one| one.keys.is_abandoned())
    }

    /// Returns the tables of a number.
    fn classes(&self, number: usize) -> &StringClassTables {
        self.classes[number].get_or_init(|| {
            let (machine, length) = (Arc::clone(&self.machine), self.max_token_len);
            let keys = match number {
                0 => RegularMaskClasses::new(machine, length),
                _ => RegularMaskClasses::of_pure_states(machine, length),
            };
            let memo = MaskCache::new(BASE_MASK_BYTES);
            let own = (LexicalMasks::default(), memo, QuoteContinuations::default());
            Box::new(StringClassTables { keys, own })
        })
    }

    /// Returns the number of the tables for a state, and its class.
    fn class_of(&self, text: &JsonStringState) -> Result<(usize, MaskClassId), Error> {
        let number = usize::from(text.machine.is_pure_state(text.state));
        Ok((number, self.classes(number).keys.mask_class(text.state)?))
    }

    /// Counts bytes of the tables.
    fn count(&self, tables: &mut RegularStringTables, bytes: usize) {
        // A map entry takes about as much again as its content.
        tables.bytes += bytes + 64;
        self.total.fetch_add(bytes + 64, Relaxed);
    }

    /// Returns the tokens that continue the string.
    fn continuing(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<ContinuingTokens, Error> {
        if let Some(known) = self.tables().continuing.get(&text.state) {
            return Ok(known.clone());
        }
        let live = match text.machine.first_bytes(text.state) {
            Some(live) => live,
            None => text.machine.live_bytes(text.state)?,
        };
        let few = if live.len() <= MAX_WALKED_BYTES {
            continuing_by_walk(vocabulary, text, live)?
        } else {
            None
        };
        let (continuing, bytes) = match few {
            Some(few) => (few.clone(), few.bytes()),
            None => (self.by_class(vocabulary, strings, text)?, 0),
        };
        let mut tables = self.tables();
        self.count(&mut tables, bytes);
        tables.continuing.insert(text.state, continuing.clone());
        Ok(continuing)
    }

    /// Returns the tokens that continue the string, if many bytes may follow.
    fn by_class(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<ContinuingTokens, Error> {
        let key = self.class_of(text)?;
        if let Some(known) = self.tables().by_key.get(&key) {
            return Ok(known.clone());
        }
        let (continuing, is_shared) = self.find(vocabulary, strings, text)?;
        let mut tables = self.tables();
        self.count(&mut tables, if is_shared { 0 } else { continuing.bytes() });
        tables.by_key.insert(key, continuing.clone());
        Ok(continuing)
    }

    /// Returns the tokens that close the string.
    fn ends(
        &self,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<Arc<ClosingTokens>, Error> {
        if let Some(known) = self.tables().ends.get(&text.state) {
            return Ok(Arc::clone(known));
        }
        let ends = Arc::new(ClosingTokens::of(strings, text)?);
        let mut tables = self.tables();
        self.count(&mut tables, 4 * ends.exact.len() + 8 * ends.with_suffix.len());
        tables.ends.insert(text.state, Arc::clone(&ends));
        Ok(ends)
    }
}

impl ClosingTokens {
    fn of(strings: &JsonStringTokens, text: &JsonStringState) -> Result<ClosingTokens, Error> {
        let machine = &text.machine;
        // No spelling is shorter than what it spells.
        if machine.min_bytes_by_term(text.state) as usize > strings.longest_prefix() {
            return Ok(ClosingTokens::default());
        }
        let step = |state: StateId, byte: u8| machine.step(state, byte);
        let first = |state: StateId| machine.first_bytes(state);
        let is_end = |state: StateId| machine.is_accepting(state);
        let start = (text.state, text.escapes);
        let (ends, state) = ClosingTokens::read(strings, start, (&step, &first), &is_end)?;
        Ok(ClosingTokens { state, ..ends })
    }

    /// Reads prefixes. Returns the tokens that close after them, and a state in which the string may
    /// end.
    fn read<S: Copy>(
        strings: &JsonStringTokens,
        from: (S, EscapePolicy),
        machine: (&impl Fn(S, u8) -> Result<Option<S>, Error>, &impl Fn(S) -> Option<ByteSet>),
        is_end: &impl Fn(S) -> bool,
    ) -> Result<(ClosingTokens, Option<S>), Error> {
        let (mut ends, mut last) = (ClosingTokens::default(), None);
        let mut end = |text: u32, state: S| {
            if is_end(state) {
                last = Some(state);
                for one in strings.closing_tokens(text) {
                    match one.suffix {
                        None => ends.exact.push(one.token),
                        Some(rest) => ends.with_suffix.push((rest, one.token)),
                    }
                }
            }
        };
        end(0, from.0);
        walk_escaped(strings.prefixes(), from, machine, &mut |_, text, state| end(text, state))?;
        Ok((ends, last))
    }

    /// Returns those after which the surroundings of a string's class read on.
    fn viable(
        &self,
        keys: &impl MaskAutomaton,
        continuations: &QuoteContinuations,
        (strings, key): (&JsonStringTokens, MaskClassId),
    ) -> Result<Vec<u32>, Error> {
        let Some(state) = self.state else { return Ok(Vec::new()) };
        let Some(closed) = keys.step(keys.with_string_state(key, state)?, b'"')? else {
            return Ok(Vec::new());
        };
        let viable = continuations.of(keys, strings, closed)?;
        let with_suffix = self.with_suffix.iter().filter(|&&(rest, _)| viable.has(rest));
        let with_suffix = with_suffix.map(|&(_, token)| token);
        Ok(self.exact.iter().copied().chain(with_suffix).collect())
    }
}
