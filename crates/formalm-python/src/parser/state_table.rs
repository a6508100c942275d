//! States of a parser's machine: places of texts, some of which have a parser.
//!
//! Texts that were read are one tree of bytes, so that a text has one state however it was cut. A
//! state either has a parser of its own or is some bytes further than one that has (inside a
//! string that must follow, or inside a character). Parsers are let go of when there are many, and
//! made again from the nearest one before.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::python_calls::Plan;

/// Parsers kept; others are made again.
const KEPT: usize = 8192;
/// Bytes of texts for each state that is allowed.
const NODES_PER_STATE: u64 = 8;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Node {
    parent: u32,
    byte: u8,
    /// The state that the text leads to, which an equal text may have had before.
    state: u32,
}

/// One state.
#[derive(Debug)]
struct State {
    node: u32,
    /// The state with the parser that this one is behind; itself if it has one.
    base: u32,
    accepting: bool,
    /// Whether the text ends inside a character.
    is_split: bool,
    parser: Option<Py<PyAny>>,
    plan: Option<Arc<Plan>>,
    used: bool,
}

/// All texts and states.
#[derive(Debug)]
pub(super) struct States {
    nodes: Vec<Node>,
    children: FxHashMap<(u32, u8), u32>,
    states: Vec<State>,
    kept: VecDeque<u32>,
    limit: u64,
}

/// More states or bytes than are allowed: how many, and the limit.
pub(super) struct Full(pub(super) u64, pub(super) u64);

/// A parser that is not kept: the nearest one before, and the text between.
pub(super) type Nearest = (Py<PyAny>, Vec<u8>);

/// What is not kept any more. It is dropped by whoever gets it, and not under the lock: a parser's
/// own code may run then.
pub(super) type Gone = Vec<(Py<PyAny>, Option<Arc<Plan>>)>;

impl States {
    pub(super) fn new(start: Py<PyAny>, accepting: bool, limit: u64) -> States {
        let root = Node { parent: NONE, byte: 0, state: 0 };
        let first = State {
            node: 0,
            base: 0,
            accepting,
            is_split: false,
            parser: Some(start),
            plan: None,
            used: true,
        };
        let (nodes, states) = (vec![root], vec![first]);
        let (children, kept) = (FxHashMap::default(), VecDeque::new());
        States { nodes, children, states, kept, limit }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn is_accepting(&self, state: u32) -> bool {
        self.states[state as usize].accepting
    }

    /// Whether a state is inside a character.
    pub(super) fn is_split(&self, state: u32) -> bool {
        self.states[state as usize].is_split
    }

    /// The state after a text that was read before; states inside a character only if asked for.
    pub(super) fn find(&self, state: u32, text: &[u8], inside: bool) -> Option<u32> {
        let mut node = self.states[state as usize].node;
        for &byte in text {
            node = *self.children.get(&(node, byte))?;
        }
        let found = self.nodes[node as usize].state;
        (found != NONE && (inside || !self.states[found as usize].is_split)).then_some(found)
    }

    /// The state with a parser that a state is behind, and by which bytes.
    pub(super) fn tail(&self, state: u32) -> (u32, Vec<u8>) {
        let State { node, base, .. } = self.states[state as usize];
        (base, self.text(self.states[base as usize].node, node))
    }

    /// The bytes from a node to one below it.
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

    /// The parser of a state that has one, with no text if it is kept.
    pub(super) fn nearest(&mut self, py: Python<'_>, base: u32) -> Nearest {
        let own = self.states[base as usize].node;
        let mut node = own;
        loop {
            let Node { parent, state, .. } = self.nodes[node as usize];
            let known = if state == NONE { None } else { self.states.get_mut(state as usize) };
            if let Some(known) = known
                && let Some(parser) = &known.parser
            {
                let parser = parser.clone_ref(py);
                known.used = true;
                return (parser, self.text(node, own));
            }
            // The first state keeps its parser, so this ends there.
            node = parent;
        }
    }

    /// Keeps a parser that was made again.
    pub(super) fn keep(&mut self, py: Python<'_>, base: u32, parser: &Py<PyAny>) -> Gone {
        let state = &mut self.states[base as usize];
        if state.parser.is_some() {
            return Vec::new();
        }
        state.parser = Some(parser.clone_ref(py));
        self.kept.push_back(base);
        self.let_go()
    }

    pub(super) fn plan(&self, base: u32) -> Option<Arc<Plan>> {
        self.states[base as usize].plan.clone()
    }

    pub(super) fn set_plan(&mut self, base: u32, plan: &Arc<Plan>) {
        let state = &mut self.states[base as usize];
        if state.parser.is_some() && state.plan.is_none() {
            state.plan = Some(Arc::clone(plan));
        }
    }

    /// A text leads to a state that there is.
    pub(super) fn join(&mut self, state: u32, text: &[u8], known: u32) -> Result<(), Full> {
        let node = self.path(state, text)?;
        self.nodes[node as usize].state = known;
        Ok(())
    }

    /// The state of a text behind another one, without a parser of its own.
    pub(super) fn add_inside(
        &mut self,
        state: u32,
        text: &[u8],
        is_split: bool,
    ) -> Result<u32, Full> {
        let base = self.states[state as usize].base;
        let node = self.path(state, text)?;
        self.push(node, |_| (base, false, is_split, None))
    }

    /// The state of a text with its parser; whether it is new, and what is not kept any more.
    pub(super) fn add(
        &mut self,
        state: u32,
        text: &[u8],
        accepting: bool,
        parser: &Bound<'_, PyAny>,
    ) -> Result<(u32, bool, Gone), Full> {
        let node = self.path(state, text)?;
        let count = self.states.len();
        let own = || Some(parser.clone().unbind());
        let number = self.push(node, |number| (number, accepting, false, own()))?;
        if self.states.len() == count {
            return Ok((number, false, Vec::new()));
        }
        self.kept.push_back(number);
        Ok((number, true, self.let_go()))
    }

    fn push(
        &mut self,
        node: u32,
        make: impl FnOnce(u32) -> (u32, bool, bool, Option<Py<PyAny>>),
    ) -> Result<u32, Full> {
        let known = self.nodes[node as usize].state;
        if known != NONE {
            return Ok(known);
        }
        let number = self.states.len() as u32;
        if u64::from(number) >= self.limit {
            return Err(Full(u64::from(number) + 1, self.limit));
        }
        let (base, accepting, is_split, parser) = make(number);
        let used = parser.is_some();
        self.states.push(State { node, base, accepting, is_split, parser, plan: None, used });
        self.nodes[node as usize].state = number;
        Ok(number)
    }

    /// The node of a text.
    fn path(&mut self, state: u32, text: &[u8]) -> Result<u32, Full> {
        let most = self.limit.saturating_mul(NODES_PER_STATE).clamp(1 << 12, 1 << 30);
        let needed = (self.nodes.len() + text.len()) as u64;
        if needed > most {
            return Err(Full(self.limit + 1, self.limit));
        }
        let mut node = self.states[state as usize].node;
        for &byte in text {
            let next = self.nodes.len() as u32;
            let child = *self.children.entry((node, byte)).or_insert(next);
            if child == next {
                self.nodes.push(Node { parent: node, byte, state: NONE });
            }
            node = child;
        }
        Ok(node)
    }

    /// Lets go of parsers beyond those that are kept, of those first that were not asked for.
    fn let_go(&mut self) -> Gone {
        let mut gone = Vec::new();
        while self.kept.len() > KEPT {
            let Some(oldest) = self.kept.pop_front() else { break };
            let state = &mut self.states[oldest as usize];
            if std::mem::take(&mut state.used) {
                self.kept.push_back(oldest);
            } else if let Some(parser) = state.parser.take() {
                gone.push((parser, state.plan.take()));
            }
        }
        gone
    }

    /// Memory in use, in bytes, with so many for each parser that is kept.
    pub(super) fn memory_bytes(&self, parser_bytes: usize) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.children.capacity() * 8 / 7 * 13
            + self.states.capacity() * size_of::<State>()
            + self.kept.len() * parser_bytes
    }
}
