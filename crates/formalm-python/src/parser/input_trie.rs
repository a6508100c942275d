//! The states of a parser machine: nodes of a trie of inputs, some of which own a parser.
//!
//! Inputs that were read form one trie of bytes, so that an input has one state however it was
//! split. A state either owns a parser or lies some bytes after one that does, inside a string that
//! must follow or inside a character. If there are many parsers, some are evicted and rebuilt from
//! the nearest ancestor.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::python_calls::NextInput;

/// Maximum number of parsers kept; others are rebuilt. Chosen, not measured.
const MAX_PARSERS: usize = 8192;
/// Maximum number of trie nodes per allowed state. Chosen, not measured.
const NODES_PER_STATE: u64 = 8;

const NO_STATE: u32 = u32::MAX;

#[derive(Debug)]
struct InputNode {
    parent: u32,
    byte: u8,
    /// The state of the input, which an equal input may have had before.
    state: u32,
}

/// One state.
#[derive(Debug)]
struct ParserState {
    node: u32,
    /// The state with the parser that this one is derived from; itself if it owns one.
    base: u32,
    accepting: bool,
    /// `true` if the input ends inside a character.
    ends_inside_character: bool,
    parser: Option<Py<PyAny>>,
    plan: Option<Arc<NextInput>>,
    used: bool,
}

/// All inputs and states.
#[derive(Debug)]
pub(super) struct StateTable {
    nodes: Vec<InputNode>,
    children: FxHashMap<(u32, u8), u32>,
    states: Vec<ParserState>,
    with_parser: VecDeque<u32>,
    limit: u64,
}

/// Too many states or bytes: the number, and the limit.
pub(super) struct TooManyStates(pub(super) u64, pub(super) u64);

/// The nearest ancestor with a parser, and the bytes between.
pub(super) type Nearest = (Py<PyAny>, Vec<u8>);

/// Evicted objects. The receiver drops them outside of the lock, because that may run code of the
/// parser.
pub(super) type Evicted = Vec<(Py<PyAny>, Option<Arc<NextInput>>)>;

impl StateTable {
    pub(super) fn new(start: Py<PyAny>, accepting: bool, limit: u64) -> StateTable {
        let root = InputNode { parent: NO_STATE, byte: 0, state: 0 };
        let first = ParserState {
            node: 0,
            base: 0,
            accepting,
            ends_inside_character: false,
            parser: Some(start),
            plan: None,
            used: true,
        };
        let (nodes, states) = (vec![root], vec![first]);
        let (children, with_parser) = (FxHashMap::default(), VecDeque::new());
        StateTable { nodes, children, states, with_parser, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn is_accepting(&self, state: u32) -> bool {
        self.states[state as usize].accepting
    }

    /// Returns `true` if a state is inside a character.
    pub(super) fn ends_inside_character(&self, state: u32) -> bool {
        self.states[state as usize].ends_inside_character
    }

    /// Returns the state after bytes that were read before; states inside a character only if
    /// `inside`.
    pub(super) fn find(&self, state: u32, text: &[u8], inside: bool) -> Option<u32> {
        let mut node = self.states[state as usize].node;
        for &byte in text {
            node = *self.children.get(&(node, byte))?;
        }
        let found = self.nodes[node as usize].state;
        (found != NO_STATE && (inside || !self.states[found as usize].ends_inside_character))
            .then_some(found)
    }

    /// Returns the state with a parser from which a state is derived, and the bytes between.
    pub(super) fn tail(&self, state: u32) -> (u32, Vec<u8>) {
        let ParserState { node, base, .. } = self.states[state as usize];
        (base, self.text(self.states[base as usize].node, node))
    }

    /// Returns the bytes from a node to a descendant.
    fn text(&self, from: u32, mut to: u32) -> Vec<u8> {
        let mut text = Vec::new();
        while to != from {
            let node = &self.nodes[to as usize];
            text.push(node.byte);
            to = node.parent;
        }
        text.reverse();
        text
    }

    /// Returns the nearest ancestor with a parser; no bytes if the state's own parser is kept.
    pub(super) fn nearest(&mut self, py: Python<'_>, base: u32) -> Nearest {
        let own = self.states[base as usize].node;
        let mut node = own;
        loop {
            let InputNode { parent, state, .. } = self.nodes[node as usize];
            let known = if state == NO_STATE { None } else { self.states.get_mut(state as usize) };
            if let Some(known) = known
                && let Some(parser) = &known.parser
            {
                let parser = parser.clone_ref(py);
                known.used = true;
                return (parser, self.text(node, own));
            }
            // The first state keeps its parser, so the loop ends there.
            node = parent;
        }
    }

    /// Stores a rebuilt parser.
    pub(super) fn keep(&mut self, py: Python<'_>, base: u32, parser: &Py<PyAny>) -> Evicted {
        let state = &mut self.states[base as usize];
        if state.parser.is_some() {
            return Vec::new();
        }
        state.parser = Some(parser.clone_ref(py));
        self.with_parser.push_back(base);
        self.evict()
    }

    pub(super) fn plan(&self, base: u32) -> Option<Arc<NextInput>> {
        self.states[base as usize].plan.clone()
    }

    pub(super) fn set_plan(&mut self, base: u32, plan: &Arc<NextInput>) {
        let state = &mut self.states[base as usize];
        if state.parser.is_some() && state.plan.is_none() {
            state.plan = Some(Arc::clone(plan));
        }
    }

    /// Maps an input to an existing state.
    pub(super) fn join(
        &mut self,
        state: u32,
        text: &[u8],
        known: u32,
    ) -> Result<(), TooManyStates> {
        let node = self.path(state, text)?;
        self.nodes[node as usize].state = known;
        Ok(())
    }

    /// Adds the state of an input without a parser of its own.
    pub(super) fn add_inside(
        &mut self,
        state: u32,
        text: &[u8],
        ends_inside_character: bool,
    ) -> Result<u32, TooManyStates> {
        let base = self.states[state as usize].base;
        let node = self.path(state, text)?;
        self.push(node, |_| (base, false, ends_inside_character, None))
    }

    /// Adds the state of an input with its parser. Returns whether it is new, and evicted objects.
    pub(super) fn add(
        &mut self,
        state: u32,
        text: &[u8],
        accepting: bool,
        parser: &Bound<'_, PyAny>,
    ) -> Result<(u32, bool, Evicted), TooManyStates> {
        let node = self.path(state, text)?;
        let count = self.states.len();
        let own = || Some(parser.clone().unbind());
        let number = self.push(node, |number| (number, accepting, false, own()))?;
        if self.states.len() == count {
            return Ok((number, false, Vec::new()));
        }
        self.with_parser.push_back(number);
        Ok((number, true, self.evict()))
    }

    fn push(
        &mut self,
        node: u32,
        make: impl FnOnce(u32) -> (u32, bool, bool, Option<Py<PyAny>>),
    ) -> Result<u32, TooManyStates> {
        let known = self.nodes[node as usize].state;
        if known != NO_STATE {
            return Ok(known);
        }
        let number = self.states.len() as u32;
        if u64::from(number) >= self.limit {
            return Err(TooManyStates(u64::from(number) + 1, self.limit));
        }
        let (base, accepting, ends_inside_character, parser) = make(number);
        let used = parser.is_some();
        self.states.push(ParserState {
            node,
            base,
            accepting,
            ends_inside_character,
            parser,
            plan: None,
            used,
        });
        self.nodes[node as usize].state = number;
        Ok(number)
    }

    /// Returns the node of an input.
    fn path(&mut self, state: u32, text: &[u8]) -> Result<u32, TooManyStates> {
        let most = self.limit.saturating_mul(NODES_PER_STATE).clamp(1 << 12, 1 << 30);
        let needed = (self.nodes.len() + text.len()) as u64;
        if needed > most {
            return Err(TooManyStates(self.limit + 1, self.limit));
        }
        let mut node = self.states[state as usize].node;
        for &byte in text {
            let next = self.nodes.len() as u32;
            let child = *self.children.entry((node, byte)).or_insert(next);
            if child == next {
                self.nodes.push(InputNode { parent: node, byte, state: NO_STATE });
            }
            node = child;
        }
        Ok(node)
    }

    /// Evicts parsers beyond the limit, unused ones first.
    fn evict(&mut self) -> Evicted {
        let mut evicted = Vec::new();
        while self.with_parser.len() > MAX_PARSERS {
            let Some(oldest) = self.with_parser.pop_front() else { break };
            let state = &mut self.states[oldest as usize];
            if std::mem::take(&mut state.used) {
                self.with_parser.push_back(oldest);
            } else if let Some(parser) = state.parser.take() {
                evicted.push((parser, state.plan.take()));
            }
        }
        evicted
    }

    /// Returns the memory in use, in bytes, counting `parser_bytes` per kept parser.
    pub(super) fn memory_bytes(&self, parser_bytes: usize) -> usize {
        self.nodes.capacity() * size_of::<InputNode>()
            + self.children.capacity() * 8 / 7 * 13
            + self.states.capacity() * size_of::<ParserState>()
            + self.with_parser.len() * parser_bytes
    }
}
