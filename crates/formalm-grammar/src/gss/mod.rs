//! The graph-structured stack (GSS): interned, shared sets of LR stacks.
//!
//! ```text
//!    node = LR state + set of nodes below      edge = LR state + one node below
//!
//!       [s3]  [s5]      a set of stacks is the set of its topmost nodes
//!         \   /
//!         [s2]          equal sets of stacks have equal ids
//!          |
//!         [s0]
//! ```
//!
//! The result of an edge's reductions depends on that edge alone, so it is cached per edge and not
//! per stack: right recursion and nesting take linear time without lookahead. Every edge points to
//! an older node, so the graph is acyclic. All traversals use explicit stacks.
//!
//! Reference: M. Tomita, "Efficient Parsing for Natural Language" (1985).

mod node_sets;
mod rollback;
mod shift;
mod stack_min_bytes;
mod stack_prefix;
mod unit_reductions;

use formalm_core::Error;
use rustc_hash::FxHashMap;

use crate::limits::StepMeter;
use crate::list_interner::NOTHING;
use crate::lr0;
use crate::lr0::{END_OF_INPUT, Lr0Automaton};
use node_sets::{NodeSets, SetElements};
use rollback::{GssCheckpoint, RollbackLog};
use unit_reductions::UnitReductionChains;

const UNKNOWN: u32 = u32::MAX;
/// The node below the first state.
const BOTTOM: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct GssEdge {
    state: u32,
    below: u32,
    /// The terminals its reductions can shift, as an id of [`Lr0Automaton::sets`].
    allowed: u32,
    /// The id of its chain of unit reductions.
    chain: u32,
    /// The set of edges that its longer reductions lead to.
    children: u32,
    /// Minimum completion bytes.
    bytes: u32,
}

/// Cached properties of a node.
#[derive(Clone, Copy, Debug)]
struct NodeFlags {
    /// `true` if its state, or one that completing its items returns to, is not proven completable.
    unproven: bool,
    /// `true` if more than one stack lies below it.
    branched: bool,
}

/// All stacks built so far.
#[derive(Debug)]
pub(crate) struct Gss {
    pub(crate) lr0: Lr0Automaton,
    pub(crate) meter: StepMeter,
    /// State and set of nodes below, per node.
    nodes: Vec<(u32, u32)>,
    flags: Vec<NodeFlags>,
    node_ids: FxHashMap<(u32, u32), u32>,
    edges: Vec<GssEdge>,
    edge_ids: FxHashMap<(u32, u32), u32>,
    chains: UnitReductionChains,
    /// Sets of nodes and of edges. A set of stacks is the set of its topmost nodes.
    sets: NodeSets,
    /// Cached results of long runs of forced reductions, for some of their edges.
    forced: FxHashMap<u32, u32>,
    /// Edges that shift a terminal, among an edge and those it reduces to.
    shifting_edges: FxHashMap<(u32, u32), u32>,
    shifts: FxHashMap<(u32, u32), u32>,
    /// The terminals that sets of stacks can shift.
    allowed: FxHashMap<u32, u32>,
    start: u32,
    checkpoint: Option<(GssCheckpoint, RollbackLog)>,
    epoch: u64,
    bytes_allowed: u64,
    /// A reused buffer.
    spare: Vec<u32>,
}

impl Gss {
    pub(crate) fn new(lr0: Lr0Automaton, meter: StepMeter, bytes_allowed: u64) -> Gss {
        let mut stacks = Gss {
            lr0,
            meter,
            nodes: Vec::new(),
            flags: Vec::new(),
            node_ids: FxHashMap::default(),
            edges: Vec::new(),
            edge_ids: FxHashMap::default(),
            chains: UnitReductionChains::default(),
            sets: NodeSets::default(),
            forced: FxHashMap::default(),
            shifting_edges: FxHashMap::default(),
            shifts: FxHashMap::default(),
            allowed: FxHashMap::default(),
            start: 0,
            checkpoint: None,
            epoch: 0,
            bytes_allowed,
            spare: Vec::new(),
        };
        let bottom = stacks.node(0, &[BOTTOM]);
        stacks.start = stacks.sets.of(bottom);
        stacks
    }

    /// Returns the stack before any input.
    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    fn node(&mut self, state: u32, below: &[u32]) -> u32 {
        let set = self.sets.intern(below);
        let nodes = &mut self.nodes;
        let fresh = nodes.len() as u32;
        let node = *self.node_ids.entry((state, set)).or_insert_with(|| {
            nodes.push((state, set));
            fresh
        });
        if node == fresh {
            let unproven = self.exposes_unproven(state, below);
            let branched = self.has_branches(below);
            self.flags.push(NodeFlags { unproven, branched });
        }
        node
    }

    /// Returns `true` if some nodes hold more than one stack.
    fn has_branches(&self, nodes: &[u32]) -> bool {
        match *nodes {
            [BOTTOM] => false,
            [one] => self.flags[one as usize].branched,
            _ => true,
        }
    }

    /// Returns `true` if a state, or one below that its completed items return to, is not proven
    /// completable. States in between never matter again.
    fn exposes_unproven(&self, state: u32, below: &[u32]) -> bool {
        if !self.lr0.has_unproven() {
            return false;
        }
        if self.lr0.is_unproven(state) {
            return true;
        }
        if below.first() == Some(&BOTTOM) {
            return false;
        }
        let pops = self.lr0.pops(state);
        let most = pops.last().copied().unwrap_or(0);
        let mut reached = below.to_vec();
        for popped in 1..=most {
            let unproven = |&one: &u32| self.flags[one as usize].unproven;
            if pops.binary_search(&popped).is_ok() && reached.iter().any(unproven) {
                return true;
            }
            if popped < most {
                if reached.iter().any(|&one| self.is_cut_off(one)) {
                    // A state below the cut may be unproven.
                    return true;
                }
                let mut next = Vec::with_capacity(reached.len());
                for &one in &reached {
                    next.extend_from_slice(&self.sets.get(self.nodes[one as usize].1));
                }
                next.sort_unstable();
                next.dedup();
                reached = next;
            }
        }
        false
    }

    fn edge(&mut self, state: u32, below: u32) -> u32 {
        let edges = &mut self.edges;
        *self.edge_ids.entry((state, below)).or_insert_with(|| {
            let unknown = UNKNOWN;
            let (allowed, chain, children, bytes) = (unknown, unknown, unknown, unknown);
            edges.push(GssEdge { state, below, allowed, chain, children, bytes });
            edges.len() as u32 - 1
        })
    }

    /// Returns the nodes `count` levels below a node; the node itself for zero.
    fn nodes_below(&mut self, mut node: u32, mut count: u32) -> Result<SetElements, Error> {
        while count > 0
            && let Some(below) = NodeSets::single(self.nodes[node as usize].1)
        {
            self.meter.spend(1)?;
            self.require_visible(node)?;
            (node, count) = (below, count - 1);
        }
        if count == 0 {
            self.require_visible(node)?;
            return Ok(SetElements::One(node));
        }
        let mut reached = vec![node];
        for _ in 0..count {
            let mut below: Vec<u32> = Vec::new();
            for &node in &reached {
                self.require_visible(node)?;
                below.extend_from_slice(&self.sets.get(self.nodes[node as usize].1));
            }
            self.meter.spend(below.len())?;
            below.sort_unstable();
            below.dedup();
            reached = below;
        }
        reached.iter().try_for_each(|&node| self.require_visible(node))?;
        Ok(SetElements::Several(reached.into()))
    }

    /// Appends the edges that replace `popped` symbols above a node after a reduction to `symbol`.
    fn push_reduced_edges(
        &mut self,
        below: u32,
        (symbol, popped): (u32, u32),
        list: &mut Vec<u32>,
    ) -> Result<(), Error> {
        for &node in &*self.nodes_below(below, popped - 1)? {
            let state = self.nodes[node as usize].0;
            if let Some(next) = self.lr0.goto(state, symbol, &mut self.meter)? {
                list.push(self.edge(next, node));
            }
        }
        Ok(())
    }

    /// Returns the edges that one reduction of an edge leads to.
    fn reductions(&mut self, edge: u32) -> Result<Vec<u32>, Error> {
        let GssEdge { state, below, .. } = self.edges[edge as usize];
        let mut list = Vec::new();
        for at in 0..self.lr0.reductions(state).len() {
            self.push_reduced_edges(below, self.lr0.reductions(state)[at], &mut list)?;
        }
        self.meter.spend(list.len() + 1)?;
        list.retain(|&child| child != edge);
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }

    /// Returns the edges that the longer reductions of an edge and its unit chain lead to.
    fn children(&mut self, edge: u32) -> Result<SetElements, Error> {
        let GssEdge { below, children, .. } = self.edges[edge as usize];
        if children != UNKNOWN {
            return Ok(self.sets.get(children));
        }
        let chain = self.chain(edge)?;
        let mut list = std::mem::take(&mut self.spare);
        list.clear();
        for at in 0..self.chain_reductions(chain).len() {
            self.push_reduced_edges(below, self.chain_reductions(chain)[at], &mut list)?;
        }
        self.meter.spend(list.len() + 1)?;
        list.sort_unstable();
        list.dedup();
        let set = self.sets.intern(&list);
        self.spare = list;
        self.edges[edge as usize].children = set;
        if let Some((checkpoint, log)) = &mut self.checkpoint
            && (edge as usize) < checkpoint.edges
        {
            log.children.push(edge);
        }
        Ok(self.sets.get(set))
    }

    /// Returns the terminals that an edge and its reductions can shift.
    pub(crate) fn allowed_of_edge(&mut self, edge: u32) -> Result<u32, Error> {
        let (mut path, mut at) = (Vec::new(), edge);
        while self.edges[edge as usize].allowed == UNKNOWN {
            match self.compute_allowed(at)? {
                Some(open) => path.push(std::mem::replace(&mut at, open)),
                None => at = path.pop().unwrap_or(edge),
            }
        }
        Ok(self.edges[edge as usize].allowed)
    }

    /// Computes the terminals that an edge can shift, if they are known for all its reductions.
    /// Otherwise returns a reduction for which they are not.
    fn compute_allowed(&mut self, edge: u32) -> Result<Option<u32>, Error> {
        let children = self.children(edge)?;
        let open = |one: &u32| self.edges[*one as usize].allowed == UNKNOWN;
        if let Some(at) = children.iter().position(open) {
            self.meter.spend(at)?;
            return Ok(Some(children[at]));
        }
        let chain = self.chain(edge)?;
        let mut allowed = self.chain_shifts(chain);
        for &child in &*children {
            allowed = self.lr0.joined(allowed, self.edges[child as usize].allowed);
        }
        self.meter.spend(children.len() + 1)?;
        self.edges[edge as usize].allowed = allowed;
        Ok(None)
    }

    fn shifts_terminal(&mut self, edge: u32, terminal: u32) -> Result<bool, Error> {
        let allowed = self.allowed_of_edge(edge)?;
        Ok(lr0::contains(self.lr0.sets.get(allowed), terminal + 1))
    }

    /// Returns the edges at the top of a set of stacks.
    pub(crate) fn tops(&mut self, stacks: u32) -> Vec<u32> {
        let mut edges = Vec::new();
        for &node in &*self.sets.get(stacks) {
            let (state, below) = self.nodes[node as usize];
            for &node in &*self.sets.get(below) {
                edges.push(self.edge(state, node));
            }
        }
        edges
    }

    /// Returns the only edge below an edge, if it is unique and known.
    pub(crate) fn only_below(&mut self, edge: u32) -> Option<u32> {
        let below = self.edges[edge as usize].below;
        if below == BOTTOM || self.is_cut_off(below) {
            return None;
        }
        let (state, below) = self.nodes[below as usize];
        Some(self.edge(state, NodeSets::single(below)?))
    }

    /// Returns `true` if some state on the stacks is not proven completable.
    pub(crate) fn is_unproven(&self, stacks: u32) -> bool {
        self.sets.get(stacks).iter().any(|&node| self.flags[node as usize].unproven)
    }

    /// Returns `true` if there is more than one stack.
    pub(crate) fn is_branched(&self, stacks: u32) -> bool {
        self.has_branches(&self.sets.get(stacks))
    }

    /// Returns the terminals that a set of stacks can shift, as an id of [`Lr0Automaton::sets`]. It
    /// contains [`END_OF_INPUT`] if the input may end.
    pub(crate) fn allowed(&mut self, stacks: u32) -> Result<u32, Error> {
        if let Some(&allowed) = self.allowed.get(&stacks) {
            return Ok(allowed);
        }
        let allowed = match self.only_edge(stacks) {
            Some(edge) => self.allowed_of_edge(edge)?,
            None => self.allowed_of_all(stacks)?,
        };
        self.allowed.insert(stacks, allowed);
        if let Some((_, log)) = &mut self.checkpoint {
            log.allowed.push(stacks);
        }
        Ok(allowed)
    }

    fn allowed_of_all(&mut self, stacks: u32) -> Result<u32, Error> {
        let mut joined = NOTHING;
        for edge in self.tops(stacks) {
            let allowed = self.allowed_of_edge(edge)?;
            joined = self.lr0.joined(joined, allowed);
        }
        Ok(joined)
    }

    /// Returns `true` if the input may end here.
    pub(crate) fn is_accepting(&mut self, stacks: u32) -> Result<bool, Error> {
        let allowed = self.allowed(stacks)?;
        Ok(lr0::contains(self.lr0.sets.get(allowed), END_OF_INPUT))
    }

    /// Returns the union of two sets of stacks.
    pub(crate) fn union(&mut self, left: u32, right: u32) -> u32 {
        if left == right {
            return left;
        }
        let edges = [self.tops(left), self.tops(right)].concat();
        self.stacks_of_edges(edges)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.len() * 34
            + self.edges.len() * 44
            + (self.shifting_edges.len() + self.shifts.len()) * 20
            + (self.allowed.len() + self.forced.len()) * 12
            + self.sets.memory_bytes()
            + self.chains.memory_bytes()
            + self.lr0.memory_bytes()
    }
}
