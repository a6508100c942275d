//! Minimum completion bytes of a stack if every split into lexemes counts.

use formalm_core::Error;

use super::{Gss, UNKNOWN};
use crate::gss::stack_shortest_path::{
    NEVER, NodeGroup, PathEdge, ShortestPathGraph, shortest_path,
};

impl Gss {
    /// Returns the minimum bytes that complete a set of stacks, ignoring competition between
    /// lexemes.
    pub(crate) fn min_completion_bytes(&mut self, stacks: u32) -> Result<u32, Error> {
        let mut bytes = NEVER;
        for edge in self.graph.tops(stacks) {
            bytes = bytes.min(shortest_path(self, edge)?);
        }
        Ok(bytes)
    }

    /// Returns the items of an edge: dot position, symbols pushed, and the edges that the edge
    /// becomes after the reduction. The start item has none.
    pub(crate) fn items(&mut self, edge: u32) -> Result<Vec<(usize, u32, Vec<u32>)>, Error> {
        self.meter.spend(1)?;
        let (state, below) = self.graph.edges[edge];
        let kernel: Vec<(u32, u32)> = self.lr0.kernel(state).collect();
        let mut items = Vec::with_capacity(kernel.len());
        for (position, pushed) in kernel {
            let position = position as usize;
            let mut becomes = Vec::new();
            if !self.lr0.is_goal_at(position) {
                let reduction = (self.lr0.left[position], pushed);
                let tables = (&mut self.lr0, &mut self.meter);
                self.graph.push_reduced_edges(below, reduction, &mut becomes, tables)?;
            }
            items.push((position, pushed, becomes));
        }
        Ok(items)
    }
}

impl ShortestPathGraph for Gss {
    /// An edge: the rest of an item, then the completion of the edge it becomes.
    type Node = u32;

    fn known(&self, edge: &u32) -> Option<u32> {
        Some(self.graph.edge_facts[*edge as usize].bytes).filter(|&bytes| bytes != UNKNOWN)
    }

    fn store(&mut self, edge: u32, bytes: u32) {
        self.graph.edge_facts[edge as usize].bytes = bytes.min(NEVER - 1);
    }

    fn out_edges(
        &mut self,
        edge: u32,
        from: usize,
        group: &mut NodeGroup<u32>,
        out_edges: &mut Vec<PathEdge<u32>>,
    ) -> Result<(), Error> {
        for (position, pushed, becomes) in self.items(edge)? {
            let bytes = self.lr0.rest_bytes(position).min(NEVER - 1);
            if self.lr0.is_goal_at(position) {
                out_edges.push(PathEdge { from, bytes, to: None });
            }
            for to in becomes {
                out_edges.push(PathEdge { from, bytes, to: Some(to) });
                if pushed == 1 && self.known(&to).is_none() {
                    group.intern(to);
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.meter.spend(steps)
    }
}
