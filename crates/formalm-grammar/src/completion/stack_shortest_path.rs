//! How many bytes complete what is left of a text: shortest ways through things that stand on each
//! other.
//!
//! What is left is completed by what is left of it alone, and then by what lies below. Things above
//! the same node may lead to each other and are settled together; all others lie deeper, so what is
//! asked for is followed with a stack of its own.

use std::hash::Hash;

use formalm_automata::Error;
use rustc_hash::FxHashMap;

/// What no text completes.
pub(crate) const NEVER: u32 = u32::MAX;

/// A way on.
pub(crate) struct PathEdge<N> {
    /// Where it begins, in the list of things that are settled together.
    pub(crate) from: usize,
    pub(crate) bytes: u32,
    /// What it leads to; `None` completes the text.
    pub(crate) to: Option<N>,
}

/// Things that are settled together, each once.
pub(crate) struct NodeGroup<N> {
    nodes: Vec<N>,
    numbers: FxHashMap<N, usize>,
}

impl<N: Copy + Eq + Hash> NodeGroup<N> {
    fn new(first: N) -> NodeGroup<N> {
        NodeGroup { nodes: vec![first], numbers: FxHashMap::from_iter([(first, 0)]) }
    }

    /// Adds a thing, if it is not among them.
    pub(crate) fn add(&mut self, node: N) {
        let nodes = &mut self.nodes;
        self.numbers.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() - 1
        });
    }
}

/// Things that are left to be completed.
pub(crate) trait ShortestPathGraph {
    /// One of them.
    type Node: Copy + Eq + Hash;

    /// The bytes that complete one, if they were found out.
    fn known(&self, node: &Self::Node) -> Option<u32>;

    /// Keeps what was found out.
    fn store(&mut self, node: Self::Node, bytes: u32);

    /// Appends the ways on from one, which is at place `from`, and adds to the group what lies
    /// above the same node and is not known.
    fn out_edges(
        &mut self,
        node: Self::Node,
        from: usize,
        group: &mut NodeGroup<Self::Node>,
        out_edges: &mut Vec<PathEdge<Self::Node>>,
    ) -> Result<(), Error>;

    /// Counts steps of work.
    fn spend(&mut self, steps: usize) -> Result<(), Error>;
}

/// Bytes that complete what is left, at most `NEVER - 1` if something does.
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
        let (mut group, mut out_edges) = (NodeGroup::new(top), Vec::new());
        let mut at = 0;
        while let Some(&node) = group.nodes.get(at) {
            graph.out_edges(node, at, &mut group, &mut out_edges)?;
            at += 1;
        }
        let before = stack.len();
        let targets = out_edges.iter().filter_map(|edge| edge.to);
        stack.extend(
            targets.filter(|to| !group.numbers.contains_key(to) && graph.known(to).is_none()),
        );
        if stack.len() == before {
            settle_group(graph, group, &out_edges)?;
        }
    }
    Ok(graph.known(&node).unwrap_or(NEVER))
}

/// Settles a group all of whose ways lead into it or to what is known.
fn settle_group<G: ShortestPathGraph>(
    graph: &mut G,
    group: NodeGroup<G::Node>,
    out_edges: &[PathEdge<G::Node>],
) -> Result<(), Error> {
    let mut bytes = vec![NEVER; group.nodes.len()];
    let mut changed = true;
    while changed {
        changed = false;
        graph.spend(out_edges.len())?;
        for edge in out_edges {
            let more = match edge.to {
                None => 0,
                Some(to) => match group.numbers.get(&to) {
                    Some(&at) => bytes[at],
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
    for (node, bytes) in group.nodes.into_iter().zip(bytes) {
        graph.store(node, bytes);
    }
    Ok(())
}
