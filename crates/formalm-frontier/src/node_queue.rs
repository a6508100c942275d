//! A priority queue of the nodes of a tree.

use std::cmp::Ordering;

use crate::binary_heap;
use crate::sequence_tree::SequenceTree;

#[derive(Clone, Copy, Debug)]
struct QueuedNode {
    logprob: f64,
    depth: u32,
    node: u32,
}

/// Nodes by descending log-probability. Ties go to the shorter sequence, then to the one with the
/// smaller tokens, so the order depends on nothing else.
///
/// It is a binary heap of 16 bytes for each node. The order needs the tree, so every method takes it.
#[derive(Clone, Debug, Default)]
pub struct NodeQueue {
    heap: Vec<QueuedNode>,
}

impl NodeQueue {
    /// Returns the number of queued nodes.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns `true` if no node is queued.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns the queued nodes in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.heap.iter().map(|one| one.node)
    }

    /// Returns the best node.
    #[inline]
    pub fn top(&self) -> Option<u32> {
        self.heap.first().map(|one| one.node)
    }

    /// Queues a node.
    pub fn push(&mut self, tree: &SequenceTree, node: u32) {
        let (logprob, depth) = (tree.logprob(node), tree.depth(node));
        let queued = QueuedNode { logprob, depth, node };
        binary_heap::push(&mut self.heap, queued, |one, other| is_before(tree, one, other));
    }

    /// Removes and returns the best node.
    pub fn pop(&mut self, tree: &SequenceTree) -> Option<u32> {
        let best = binary_heap::pop(&mut self.heap, |one, other| is_before(tree, one, other));
        best.map(|one| one.node)
    }
}

#[inline]
fn is_before(tree: &SequenceTree, one: QueuedNode, other: QueuedNode) -> bool {
    let order = other.logprob.total_cmp(&one.logprob).then(one.depth.cmp(&other.depth));
    order.then_with(|| tree.cmp_paths(one.node, other.node)) == Ordering::Less
}
