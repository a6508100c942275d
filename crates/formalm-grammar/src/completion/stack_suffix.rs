//! Completion of stack suffixes under a control: the rests of their items, one after the other.

use formalm_core::Error;

use super::CompletionBounds;
use super::cfl_reachability::{ControlState, ReachabilityGoal, end_of_input};
use crate::configuration_reader::ConfigurationReader;
use crate::gss::stack_shortest_path::{NodeGroup, PathEdge, ShortestPathGraph};

/// A GSS edge with everything below it, and the control at its top.
pub(super) type SuffixNode = (u32, ControlState);

/// The graph of stack suffixes with controls, for [`ShortestPathGraph`].
pub(super) struct StackSuffixGraph<'a> {
    pub(super) bounds: &'a mut CompletionBounds,
    pub(super) reader: &'a mut ConfigurationReader,
}

impl ShortestPathGraph for StackSuffixGraph<'_> {
    type Node = SuffixNode;

    fn known(&self, node: &SuffixNode) -> Option<u32> {
        self.bounds.suffix_bounds.get(node).copied()
    }

    fn store(&mut self, node: SuffixNode, bytes: u32) {
        self.bounds.suffix_bounds.insert(node, bytes);
    }

    fn out_edges(
        &mut self,
        (edge, control): SuffixNode,
        from: usize,
        group: &mut NodeGroup<SuffixNode>,
        out_edges: &mut Vec<PathEdge<SuffixNode>>,
    ) -> Result<(), Error> {
        let lr1_state = self.bounds.top_state(edge, self.reader)?;
        for (position, pushed, becomes) in self.reader.parser.gss.items(edge)? {
            let goal = ReachabilityGoal::Rest(position as u32, pushed > 0);
            for (after, bytes) in self.bounds.answers_of((lr1_state, goal, control), self.reader)? {
                if after == end_of_input() {
                    out_edges.push(PathEdge { from, bytes, to: None });
                    continue;
                }
                for &edge in &becomes {
                    let to = (edge, after);
                    out_edges.push(PathEdge { from, bytes, to: Some(to) });
                    if pushed == 1 && self.known(&to).is_none() {
                        group.intern(to);
                    }
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.reader.meter().spend(steps)
    }
}
