//! Tokens of a state with a Boolean term, derived from those of a state with a pure term that reads
//! mostly the same.
//!
//! ```text
//!  any name but "en", "de-DE", …      e ──► n ──► -  …     Boolean: A ∧ ¬B
//!        │ other characters           │     │
//!        ▼                            ▼     ▼
//!       .* ◄────────────────────────────────┘              pure: A
//! ```
//!
//! The pure state has a quotient and mostly a known mask. A simultaneous walk of both states finds
//! the tokens of which only one is viable. It follows only the bytes after which the states differ,
//! which are few: as soon as both lead to one state, nothing differs.

use formalm_automata::Automaton;
use formalm_core::{ByteSet, Error, LazyDfa, StateId, deadline::check_deadline};
use formalm_json::{
    JsonStringState,
    escapes::{EscapePolicy, EscapeState, raw_bytes},
    step_json_string,
};
use formalm_vocabulary::{JsonStringTokens, Vocabulary};
use rustc_hash::FxHashMap;

use super::RegularStringMasks;
use super::continuing_token_set::ContinuingTokens;
use super::escaped_walk::walk_escaped;
use crate::mask::{MaskWords, has};

/// Maximum number of nodes that a walk of both states reads before it is abandoned. Chosen, not
/// measured.
const MAX_DIFFERING_NODES: usize = 8192;

/// Maximum number of tokens with escapes that are read from both states. Chosen, not measured.
const MAX_ESCAPED_TOKENS: usize = 1024;

/// Two states; `None` for one that cannot be reached.
type StatePair = (Option<StateId>, Option<StateId>);

/// A simultaneous walk of two states of an automaton.
struct PairWalk<'a> {
    machine: &'a Automaton,
    escapes: EscapePolicy,
    /// The raw bytes after which two states differ.
    differing: FxHashMap<StatePair, ByteSet>,
}

/// The tokens that only one of two states allows.
#[derive(Default)]
struct DifferingTokens {
    add: Vec<u32>,
    remove: Vec<u32>,
}

impl RegularStringMasks {
    /// Derives the tokens that continue the string from those of a pure state. Returns `None` if the
    /// term is pure itself, if most characters lead to no such state, or if too much differs.
    pub(super) fn by_pure_state(
        &self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        text: &JsonStringState,
    ) -> Result<Option<ContinuingTokens>, Error> {
        let machine = &*text.machine;
        if machine.is_pure() || machine.is_pure_state(text.state) {
            return Ok(None);
        }
        let Some(pure) = most_common_loop(vocabulary, text)? else { return Ok(None) };
        let differing = FxHashMap::default();
        let mut walk = PairWalk { machine, escapes: text.escapes, differing };
        let pair = (Some(text.state), Some(pure));
        let mut tokens = DifferingTokens::default();
        let plain = strings.continuing_unescaped();
        if !walk.read_unescaped(vocabulary, plain, pair, &mut tokens)?
            || !walk.read_escaped(vocabulary, strings, pair, &mut tokens)?
        {
            return Ok(None);
        }
        let reference = JsonStringState { state: pure, ..text.clone() };
        let reference = self.continuing(vocabulary, strings, &reference)?;
        let words = vocabulary.len().div_ceil(32);
        Ok(Some(reference.changed(tokens.add, &tokens.remove, words)))
    }
}

/// Returns the pure state to which the first bytes of most tokens lead and in which these bytes
/// stay.
fn most_common_loop(
    vocabulary: &Vocabulary,
    text: &JsonStringState,
) -> Result<Option<StateId>, Error> {
    let (machine, trie) = (&*text.machine, vocabulary.trie());
    let mut all = ByteSet::default();
    all.insert_range(0, 0x7F);
    let mut counts: Vec<(StateId, usize)> = Vec::new();
    for byte in raw_bytes(all, text.escapes).iter().filter(|&byte| byte != b'\\') {
        let Some(root) = trie.root_child(byte) else { continue };
        let Some(next) = machine.step(text.state, byte)? else { continue };
        let count = trie.tokens_below(root).len();
        match counts.iter_mut().find(|one| one.0 == next) {
            Some(known) => known.1 += count,
            None if machine.step(next, byte)? == Some(next) && machine.is_pure_state(next) => {
                counts.push((next, count));
            }
            None => {}
        }
    }
    Ok(counts.into_iter().max_by_key(|one| one.1).map(|one| one.0))
}

impl PairWalk<'_> {
    /// Returns the states after a byte; `None` if they are equal.
    fn step(machine: &Automaton, pair: StatePair, byte: u8) -> Result<Option<StatePair>, Error> {
        let after = |state: Option<StateId>| state.map_or(Ok(None), |one| machine.step(one, byte));
        let next = (after(pair.0)?, after(pair.1)?);
        Ok((next.0 != next.1).then_some(next))
    }

    /// Returns the raw bytes after which two states differ.
    fn differing(&mut self, pair: StatePair) -> Result<ByteSet, Error> {
        if let Some(&known) = self.differing.get(&pair) {
            return Ok(known);
        }
        let content = match pair {
            (Some(first), Some(second)) => self.machine.differing_bytes(first, second)?,
            (Some(one), None) | (None, Some(one)) => self.machine.live_bytes(one)?,
            (None, None) => ByteSet::default(),
        };
        let raw = raw_bytes(content, self.escapes);
        self.differing.insert(pair, raw);
        Ok(raw)
    }

    /// Finds the tokens without escapes that only one of two states allows, among `plain`. Returns
    /// `false` if the walk takes too long.
    fn read_unescaped(
        &mut self,
        vocabulary: &Vocabulary,
        plain: &MaskWords,
        pair: StatePair,
        tokens: &mut DifferingTokens,
    ) -> Result<bool, Error> {
        let trie = vocabulary.trie();
        let first = self.differing(pair)?;
        let mut nodes_read = 0;
        let mut open: Vec<(u32, StatePair)> = Vec::new();
        let roots = first.iter().filter_map(|byte| trie.root_child(byte));
        open.extend(roots.map(|root| (root, pair)));
        while let Some((node, before)) = open.pop() {
            nodes_read += 1;
            if nodes_read > MAX_DIFFERING_NODES {
                return Ok(false);
            }
            check_deadline()?;
            let byte = trie.nodes()[node as usize].byte();
            let Some(next) = PairWalk::step(self.machine, before, byte)? else { continue };
            let list = match next {
                (Some(_), None) => Some(&mut tokens.add),
                (None, Some(_)) => Some(&mut tokens.remove),
                _ => None,
            };
            if let Some(list) = list {
                let here = trie.tokens_at(node).iter().copied();
                list.extend(here.filter(|&token| has(plain, token)));
            }
            let (bytes, children) = trie.children(node);
            if !children.is_empty() {
                let differing = self.differing(next)?;
                let below = bytes.iter().zip(children);
                let below = below.filter(|&(&byte, _)| differing.contains(byte));
                open.extend(below.map(|(_, &child)| (child, next)));
            }
        }
        Ok(true)
    }

    /// Finds the tokens with escapes that only one of two states allows. Returns `false` if there
    /// are too many candidates.
    fn read_escaped(
        &mut self,
        vocabulary: &Vocabulary,
        strings: &JsonStringTokens,
        pair: StatePair,
        tokens: &mut DifferingTokens,
    ) -> Result<bool, Error> {
        let (machine, escapes) = (self.machine, self.escapes);
        let step = |pair: StatePair, byte: u8| PairWalk::step(machine, pair, byte);
        let mut candidates = Vec::new();
        let spellings = strings.escaped_spellings();
        walk_escaped(spellings, (pair, escapes), (&step, &|_| None), &mut |_, spelling, _| {
            candidates.extend_from_slice(strings.escaped_tokens(spelling));
        })?;
        if candidates.len() > MAX_ESCAPED_TOKENS {
            return Ok(false);
        }
        // A token may end inside an escape, of which some completions differ and others do not.
        for token in candidates {
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            match (self.is_viable(pair.0, bytes)?, self.is_viable(pair.1, bytes)?) {
                (true, false) => tokens.add.push(token),
                (false, true) => tokens.remove.push(token),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Returns `true` if the string may continue with raw bytes from a state.
    fn is_viable(&self, state: Option<StateId>, bytes: &[u8]) -> Result<bool, Error> {
        let step = |state: StateId, byte: u8| self.machine.step(state, byte);
        let mut at = state.map(|state| (state, EscapeState::None));
        for &byte in bytes {
            let Some(before) = at else { break };
            at = step_json_string(before, byte, self.escapes, &step)?;
        }
        Ok(at.is_some())
    }
}
