//! The arena of nodes and edges, and what their shape alone says.

use formalm_core::{Error, Interner};
use formalm_machines::NEEDS_DEEPER_STACK;

use super::UNKNOWN;
use super::node_sets::{NodeSets, SetElements};
use crate::limits::StepMeter;
use crate::lr0::Lr0Automaton;

/// The node below the first state.
pub(super) const BOTTOM: u32 = u32::MAX;
/// The state of a node that stands for everything below the cut of a prefix.
pub(super) const CUT_OFF: u32 = u32::MAX;

/// Cached facts about an edge; [`UNKNOWN`] if not computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeFacts {
    /// The terminals its reductions can shift, as an id of [`Lr0Automaton::sets`].
    pub(super) allowed: u32,
    /// The id of its chain of unit reductions.
    pub(super) chain: u32,
    /// The set of edges that its longer reductions lead to.
    pub(super) children: u32,
    /// Minimum completion bytes.
    pub(super) bytes: u32,
}

/// Cached properties of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeFlags {
    /// `true` if its state, or one that completing its items returns to, is not proven completable.
    pub(super) unproven: bool,
    /// `true` if more than one stack lies below it.
    branched: bool,
}

/// All nodes and edges built so far.
#[derive(Debug, Default)]
pub(crate) struct StackGraph {
    /// State and set of nodes below, per node.
    pub(super) nodes: Interner<(u32, u32)>,
    pub(super) flags: Vec<NodeFlags>,
    /// State and node below, per edge.
    pub(super) edges: Interner<(u32, u32)>,
    pub(super) edge_facts: Vec<EdgeFacts>,
    /// Sets of nodes and of edges. A set of stacks is the set of its topmost nodes.
    pub(super) sets: NodeSets,
}

/// Sizes of the arena at a checkpoint; everything beyond can be dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraphSize {
    nodes: usize,
    pub(super) edges: usize,
    sets: usize,
}

impl StackGraph {
    pub(super) fn node(&mut self, state: u32, below: &[u32], lr0: &Lr0Automaton) -> u32 {
        let set = self.sets.intern(below);
        let fresh = self.nodes.len() as u32;
        let node = self.nodes.intern((state, set));
        if node == fresh {
            let unproven = self.exposes_unproven(state, below, lr0);
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
    fn exposes_unproven(&self, state: u32, below: &[u32], lr0: &Lr0Automaton) -> bool {
        if !lr0.has_unproven() {
            return false;
        }
        if lr0.is_unproven(state) {
            return true;
        }
        if below.first() == Some(&BOTTOM) {
            return false;
        }
        let pops = lr0.pops(state);
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
                    next.extend_from_slice(&self.sets.get(self.nodes[one].1));
                }
                next.sort_unstable();
                next.dedup();
                reached = next;
            }
        }
        false
    }

    pub(super) fn edge(&mut self, state: u32, below: u32) -> u32 {
        let edge = self.edges.intern((state, below));
        if edge as usize == self.edge_facts.len() {
            let unknown = UNKNOWN;
            let (allowed, chain, children, bytes) = (unknown, unknown, unknown, unknown);
            self.edge_facts.push(EdgeFacts { allowed, chain, children, bytes });
        }
        edge
    }

    /// Returns the nodes `count` levels below a node; the node itself for zero.
    pub(super) fn nodes_below(
        &self,
        mut node: u32,
        mut count: u32,
        meter: &mut StepMeter,
    ) -> Result<SetElements, Error> {
        while count > 0
            && let Some(below) = NodeSets::single(self.nodes[node].1)
        {
            meter.spend(1)?;
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
                below.extend_from_slice(&self.sets.get(self.nodes[node].1));
            }
            meter.spend(below.len())?;
            below.sort_unstable();
            below.dedup();
            reached = below;
        }
        reached.iter().try_for_each(|&node| self.require_visible(node))?;
        Ok(SetElements::Several(reached.into()))
    }

    /// Appends the edges that replace `popped` symbols above a node after a reduction to `symbol`.
    pub(super) fn push_reduced_edges(
        &mut self,
        below: u32,
        (symbol, popped): (u32, u32),
        list: &mut Vec<u32>,
        (lr0, meter): (&mut Lr0Automaton, &mut StepMeter),
    ) -> Result<(), Error> {
        for &node in &*self.nodes_below(below, popped - 1, meter)? {
            let state = self.nodes[node].0;
            if let Some(next) = lr0.goto(state, symbol, meter)? {
                list.push(self.edge(next, node));
            }
        }
        Ok(())
    }

    /// Returns the edges at the top of a set of stacks.
    pub(crate) fn tops(&mut self, stacks: u32) -> Vec<u32> {
        let mut edges = Vec::new();
        for &node in &*self.sets.get(stacks) {
            let (state, below) = self.nodes[node];
            for &node in &*self.sets.get(below) {
                edges.push(self.edge(state, node));
            }
        }
        edges
    }

    /// Returns the only edge below an edge, if it is unique and known.
    pub(crate) fn only_below(&mut self, edge: u32) -> Option<u32> {
        let below = self.edges[edge].1;
        if below == BOTTOM || self.is_cut_off(below) {
            return None;
        }
        let (state, below) = self.nodes[below];
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

    /// Returns the edge at the top, if there is only one.
    pub(super) fn only_edge(&mut self, stacks: u32) -> Option<u32> {
        let (state, below) = self.nodes[NodeSets::single(stacks)?];
        Some(self.edge(state, NodeSets::single(below)?))
    }

    pub(super) fn state_below(&self, edge: u32) -> (u32, u32) {
        self.edges[edge]
    }

    /// Groups edges by state, with the sorted nodes below each.
    pub(super) fn group_by_state(&self, edges: Vec<u32>) -> Vec<(u32, Vec<u32>)> {
        let mut pairs: Vec<(u32, u32)> =
            edges.into_iter().map(|edge| self.state_below(edge)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let groups = pairs.chunk_by(|left, right| left.0 == right.0);
        groups.map(|group| (group[0].0, group.iter().map(|one| one.1).collect())).collect()
    }

    pub(super) fn stacks_of_edges(&mut self, edges: Vec<u32>, lr0: &Lr0Automaton) -> u32 {
        let groups = self.group_by_state(edges);
        let mut nodes: Vec<u32> =
            groups.into_iter().map(|(state, below)| self.node(state, &below, lr0)).collect();
        nodes.sort_unstable();
        self.sets.intern(&nodes)
    }

    /// Interns a node with a given unproven flag.
    pub(super) fn node_with_flags(&mut self, state: u32, below: u32, unproven: bool) -> u32 {
        let fresh = self.nodes.len() as u32;
        let node = self.nodes.intern((state, below));
        if node == fresh {
            let branched = state == CUT_OFF || self.has_branches(&self.sets.get(below));
            self.flags.push(NodeFlags { unproven, branched });
        } else {
            self.flags[node as usize].unproven |= unproven;
        }
        node
    }

    /// Returns `true` if a node stands for what was cut off.
    #[inline]
    pub(super) fn is_cut_off(&self, node: u32) -> bool {
        self.nodes[node].0 == CUT_OFF
    }

    /// Fails if a node stands for what was cut off.
    #[inline]
    pub(super) fn require_visible(&self, node: u32) -> Result<(), Error> {
        if self.is_cut_off(node) { Err(NEEDS_DEEPER_STACK) } else { Ok(()) }
    }

    pub(super) fn size(&self) -> GraphSize {
        let (nodes, edges, sets) = (self.nodes.len(), self.edges.len(), self.sets.len());
        GraphSize { nodes, edges, sets }
    }

    /// Drops everything made since the arena had a size.
    pub(super) fn truncate(&mut self, size: GraphSize) {
        self.nodes.truncate(size.nodes);
        self.flags.truncate(size.nodes);
        self.edges.truncate(size.edges);
        self.edge_facts.truncate(size.edges);
        self.sets.truncate(size.sets);
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // By number, so that a rollback gives back what a lookahead took.
        self.nodes.len() * 26 + self.edges.len() * 44 + self.sets.memory_bytes()
    }
}
