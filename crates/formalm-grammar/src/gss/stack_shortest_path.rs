//! Shortest paths over graph-structured stacks, with cached distances.
//!
//! A stack suffix is completed by the rest of its top production and then by what lies below.
//! Suffixes above the same GSS node may lead to each other; such a group is solved together by
//! relaxation. All other successors lie deeper in the stack, so the traversal uses an explicit
//! stack and terminates.

use std::hash::Hash;

use formalm_core::{Error, Interner};

/// The distance of a node that nothing completes.
pub(crate) const NEVER: u32 = u32::MAX;

/// A weighted edge between stack suffixes.
pub(crate) struct PathEdge<N> {
    /// The source, as an index into the group.
    pub(crate) from: usize,
    pub(crate) bytes: u32,
    /// The target; `None` completes the input.
    pub(crate) to: Option<N>,
}

/// Nodes that are solved together, each once.
pub(crate) type NodeGroup<N> = Interner<N>;

/// A graph of stack suffixes whose distances to completion are computed and cached.
pub(crate) trait ShortestPathGraph {
    /// A stack suffix.
    type Node: Copy + Eq + Hash;

    /// Returns the distance of a node, if it was computed.
    fn known(&self, node: &Self::Node) -> Option<u32>;

    /// Caches the distance of a node.
    fn store(&mut self, node: Self::Node, bytes: u32);

    /// Appends the edges that leave `node`, which has index `from`. Adds the unsolved nodes above
    /// the same GSS node to the group.
    fn out_edges(
        &mut self,
        node: Self::Node,
        from: usize,
        group: &mut NodeGroup<Self::Node>,
        out_edges: &mut Vec<PathEdge<Self::Node>>,
    ) -> Result<(), Error>;

    /// Charges steps of work.
    fn spend(&mut self, steps: usize) -> Result<(), Error>;
}

/// Returns the minimum bytes that complete a node, at most `NEVER - 1` if something does.
pub(crate) fn shortest_path<G: ShortestPathGraph>(
    graph: &mut G,
    node: G::Node,
) -> Result<u32, Error> {
    let mut stack = vec![node];
    while let Some(&top) = stack.last() {
        if graph.known(&top).is_some() {
            stack.pop();
            continue;
        }
        let (mut group, mut out_edges) = (NodeGroup::from_iter([top]), Vec::new());
        let mut at = 0;
        while let Some(&node) = group.as_slice().get(at) {
            graph.out_edges(node, at, &mut group, &mut out_edges)?;
            at += 1;
        }
        let before = stack.len();
        let targets = out_edges.iter().filter_map(|edge| edge.to);
        stack.extend(targets.filter(|to| group.find(to).is_none() && graph.known(to).is_none()));
        if stack.len() == before {
            settle_group(graph, group, &out_edges)?;
        }
    }
    Ok(graph.known(&node).unwrap_or(NEVER))
}

/// Solves a group all of whose edges lead into it or to solved nodes.
fn settle_group<G: ShortestPathGraph>(
    graph: &mut G,
    group: NodeGroup<G::Node>,
    out_edges: &[PathEdge<G::Node>],
) -> Result<(), Error> {
    let mut bytes = vec![NEVER; group.len()];
    let mut changed = true;
    while changed {
        changed = false;
        graph.spend(out_edges.len())?;
        for edge in out_edges {
            let more = match edge.to {
                None => 0,
                Some(to) => match group.find(&to) {
                    Some(at) => bytes[at as usize],
                    None => graph.known(&to).unwrap_or(NEVER),
                },
            };
            if edge.bytes == NEVER || more == NEVER {
                continue;
            }
            let all = edge.bytes.saturating_add(more).min(NEVER - 1);
            changed |= all < bytes[edge.from];
            bytes[edge.from] = bytes[edge.from].min(all);
        }
    }
    for (node, bytes) in group.into_entries().into_iter().zip(bytes) {
        graph.store(node, bytes);
    }
    Ok(())
}
