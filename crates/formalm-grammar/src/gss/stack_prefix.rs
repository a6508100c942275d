//! Stack prefixes: the top of the stacks, which almost always determines what may follow.
//!
//! A prefix of a parser state adds its visible indentation. Many parser states share one prefix, and
//! with it the terminals that may follow, so masks are computed per prefix.

use super::stack_graph::{BOTTOM, CUT_OFF, StackGraph};
use crate::lr0::Lr0Automaton;

/// In place of the number of nodes below, for such a node.
const BELOW_CUT: u32 = u32::MAX;
/// Maximum length of an encoded prefix, in integers. Chosen, not measured.
const MAX_PREFIX_WORDS: usize = 200;

impl StackGraph {
    /// Appends the nodes of stacks from the top down to a depth: state, unproven flag, and number
    /// of nodes below. Returns `false` if there are too many.
    pub(crate) fn push_prefix(&self, stacks: u32, depth: u32, list: &mut Vec<u32>) -> bool {
        let most = list.len() + MAX_PREFIX_WORDS;
        let mut open: Vec<(u32, u32)> = Vec::new();
        // In the common case, nodes form a single path.
        let mut next = None;
        match self.sets.get(stacks)[..] {
            [node] => next = Some((node, depth)),
            ref nodes => open.extend(nodes.iter().rev().map(|&node| (node, depth))),
        }
        while let Some((node, depth)) = next.take().or_else(|| open.pop()) {
            let (state, below) = self.nodes[node];
            let unproven = u32::from(self.flags[node as usize].unproven);
            // Stacks that are cut off themselves show as much as they have.
            if depth == 0 || self.is_cut_off(node) {
                list.extend([unproven, BELOW_CUT]);
                continue;
            }
            if list.len() > most {
                return false;
            }
            let below = self.sets.get(below);
            let is_last = below.first() == Some(&BOTTOM);
            list.extend([2 * state + unproven, if is_last { 0 } else { below.len() as u32 }]);
            if let (false, &[node]) = (is_last, &below[..]) {
                next = Some((node, depth - 1));
            } else if !is_last {
                open.extend(below.iter().rev().map(|&node| (node, depth - 1)));
            }
        }
        true
    }

    /// Returns the stacks that a prefix encodes, cut off below; `number` is the prefix's own id.
    pub(crate) fn stacks_of_prefix(
        &mut self,
        push_prefix: &[u32],
        number: u32,
        lr0: &Lr0Automaton,
    ) -> u32 {
        let mut nodes: Vec<u32> = Vec::new();
        // Whether a node is unproven may depend on what is cut off, so cut nodes are not shared
        // between prefixes then.
        let tag = if lr0.has_unproven() { number } else { 0 };
        // In reverse order, lower nodes come first.
        for pair in push_prefix.rchunks_exact(2) {
            let (word, count) = (pair[0], pair[1]);
            let (state, unproven) = (word / 2, word % 2 != 0);
            let node = match count {
                BELOW_CUT => self.node_with_flags(CUT_OFF, tag, unproven),
                0 => self.node(state, &[BOTTOM], lr0),
                _ => {
                    let mut below = nodes.split_off(nodes.len() - count as usize);
                    below.sort_unstable();
                    below.dedup();
                    let below = self.sets.intern(&below);
                    self.node_with_flags(state, below, unproven)
                }
            };
            nodes.push(node);
        }
        nodes.sort_unstable();
        nodes.dedup();
        self.sets.intern(&nodes)
    }
}
