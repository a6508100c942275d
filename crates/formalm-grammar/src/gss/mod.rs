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
mod stack_graph;
mod stack_min_bytes;
mod stack_prefix;
pub(crate) mod stack_shortest_path;
mod unit_reductions;

use formalm_core::Error;
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::limits::StepMeter;
use crate::lr0;
use crate::lr0::{END_OF_INPUT, Lr0Automaton};
use node_sets::SetElements;
use rollback::RollbackLog;
use stack_graph::{BOTTOM, GraphSize, StackGraph};
use unit_reductions::UnitReductionChains;

const UNKNOWN: u32 = u32::MAX;

/// All stacks built so far.
#[derive(Debug)]
pub(crate) struct Gss {
    pub(crate) lr0: Lr0Automaton,
    pub(crate) meter: StepMeter,
    pub(crate) graph: StackGraph,
    chains: UnitReductionChains,
    /// Cached results of long runs of forced reductions, for some of their edges.
    forced: FxHashMap<u32, u32>,
    /// Edges that shift a terminal, among an edge and those it reduces to.
    shifting_edges: FxHashMap<(u32, u32), u32>,
    shifts: FxHashMap<(u32, u32), u32>,
    /// The terminals that sets of stacks can shift.
    allowed: FxHashMap<u32, u32>,
    start: u32,
    checkpoint: Option<(GraphSize, RollbackLog)>,
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
            graph: StackGraph::default(),
            chains: UnitReductionChains::default(),
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
        let bottom = stacks.graph.node(0, &[BOTTOM], &stacks.lr0);
        stacks.start = stacks.graph.sets.of(bottom);
        stacks
    }

    /// Returns the stack before any input.
    pub(crate) fn start(&self) -> u32 {
        self.start
    }

    /// Returns the edges that one reduction of an edge leads to.
    fn reductions(&mut self, edge: u32) -> Result<Vec<u32>, Error> {
        let (state, below) = self.graph.edges[edge];
        let mut list = Vec::new();
        for at in 0..self.lr0.reductions(state).len() {
            let reduction = self.lr0.reductions(state)[at];
            let tables = (&mut self.lr0, &mut self.meter);
            self.graph.push_reduced_edges(below, reduction, &mut list, tables)?;
        }
        self.meter.spend(list.len() + 1)?;
        list.retain(|&child| child != edge);
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }

    /// Returns the edges that the longer reductions of an edge and its unit chain lead to.
    fn children(&mut self, edge: u32) -> Result<SetElements, Error> {
        let (below, children) =
            (self.graph.edges[edge].1, self.graph.edge_facts[edge as usize].children);
        if children != UNKNOWN {
            return Ok(self.graph.sets.get(children));
        }
        let chain = self.chain(edge)?;
        let mut list = std::mem::take(&mut self.spare);
        list.clear();
        for at in 0..self.chain_reductions(chain).len() {
            let reduction = self.chain_reductions(chain)[at];
            let tables = (&mut self.lr0, &mut self.meter);
            self.graph.push_reduced_edges(below, reduction, &mut list, tables)?;
        }
        self.meter.spend(list.len() + 1)?;
        list.sort_unstable();
        list.dedup();
        let set = self.graph.sets.intern(&list);
        self.spare = list;
        self.graph.edge_facts[edge as usize].children = set;
        if let Some((checkpoint, log)) = &mut self.checkpoint
            && (edge as usize) < checkpoint.edges
        {
            log.children.push(edge);
        }
        Ok(self.graph.sets.get(set))
    }

    /// Returns the terminals that an edge and its reductions can shift.
    pub(crate) fn allowed_of_edge(&mut self, edge: u32) -> Result<u32, Error> {
        let (mut path, mut at) = (Vec::new(), edge);
        while self.graph.edge_facts[edge as usize].allowed == UNKNOWN {
            match self.compute_allowed(at)? {
                Some(open) => path.push(std::mem::replace(&mut at, open)),
                None => at = path.pop().unwrap_or(edge),
            }
        }
        Ok(self.graph.edge_facts[edge as usize].allowed)
    }

    /// Computes the terminals that an edge can shift, if they are known for all its reductions.
    /// Otherwise returns a reduction for which they are not.
    fn compute_allowed(&mut self, edge: u32) -> Result<Option<u32>, Error> {
        let children = self.children(edge)?;
        let open = |one: &u32| self.graph.edge_facts[*one as usize].allowed == UNKNOWN;
        if let Some(at) = children.iter().position(open) {
            self.meter.spend(at)?;
            return Ok(Some(children[at]));
        }
        let chain = self.chain(edge)?;
        let mut allowed = self.chain_shifts(chain);
        for &child in &*children {
            allowed = self.lr0.joined(allowed, self.graph.edge_facts[child as usize].allowed);
        }
        self.meter.spend(children.len() + 1)?;
        self.graph.edge_facts[edge as usize].allowed = allowed;
        Ok(None)
    }

    fn shifts_terminal(&mut self, edge: u32, terminal: u32) -> Result<bool, Error> {
        let allowed = self.allowed_of_edge(edge)?;
        Ok(lr0::contains(self.lr0.sets.get(allowed), terminal + 1))
    }

    /// Returns the terminals that a set of stacks can shift, as an id of [`Lr0Automaton::sets`]. It
    /// contains [`END_OF_INPUT`] if the input may end.
    pub(crate) fn allowed(&mut self, stacks: u32) -> Result<u32, Error> {
        if let Some(&allowed) = self.allowed.get(&stacks) {
            return Ok(allowed);
        }
        let allowed = match self.graph.only_edge(stacks) {
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
        for edge in self.graph.tops(stacks) {
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
        let edges = [self.graph.tops(left), self.graph.tops(right)].concat();
        self.graph.stacks_of_edges(edges, &self.lr0)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.graph.memory_bytes()
            + (self.shifting_edges.len() + self.shifts.len()) * 20
            + (self.allowed.len() + self.forced.len()) * 12
            + self.chains.memory_bytes()
            + self.lr0.memory_bytes()
    }
}
