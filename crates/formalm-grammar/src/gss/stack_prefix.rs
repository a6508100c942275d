//! Stack prefixes: the top of the stacks, which almost always determines what may follow.
//!
//! A prefix of a parser state adds its visible indentation. Many parser states share one prefix, and
//! with it the terminals that may follow, so masks are computed per prefix.

use formalm_core::Error;
use formalm_machines::NEEDS_DEEPER_STACK;

use super::{BOTTOM, Gss, NodeFlags};
use crate::grammar_state::GrammarState;
use crate::list_interner::NOTHING;

/// The state of a node that stands for everything below the cut.
const CUT_OFF: u32 = u32::MAX;
/// In place of the number of nodes below, for such a node.
const BELOW_CUT: u32 = u32::MAX;
/// Maximum length of an encoded prefix, in integers. Chosen, not measured.
const MAX_PREFIX_WORDS: usize = 200;

impl Gss {
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
            let (state, below) = self.nodes[node as usize];
            let unproven = u32::from(self.flags[node as usize].unproven);
            if depth == 0 {
                list.extend([unproven, BELOW_CUT]);
                continue;
            }
            if list.len() > most || self.is_cut_off(node) {
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
    pub(crate) fn stacks_of_prefix(&mut self, push_prefix: &[u32], number: u32) -> u32 {
        let mut nodes: Vec<u32> = Vec::new();
        // In reverse order, lower nodes come first.
        for pair in push_prefix.rchunks_exact(2) {
            let (word, count) = (pair[0], pair[1]);
            let (state, unproven) = (word / 2, word % 2 != 0);
            let node = match count {
                // Whether a node is unproven may depend on what is cut off, so cut nodes are not
                // shared between prefixes.
                BELOW_CUT => self.node_with_flags(CUT_OFF, self.prefix_tag(number), unproven),
                0 => self.node(state, &[BOTTOM]),
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

    fn prefix_tag(&self, number: u32) -> u32 {
        if self.lr0.has_unproven() { number } else { 0 }
    }

    /// Interns a node with a given unproven flag.
    fn node_with_flags(&mut self, state: u32, below: u32, unproven: bool) -> u32 {
        let fresh = self.nodes.len() as u32;
        let node = *self.node_ids.entry((state, below)).or_insert(fresh);
        if node == fresh {
            let branched = state == CUT_OFF || self.has_branches(&self.sets.get(below));
            self.nodes.push((state, below));
            self.flags.push(NodeFlags { unproven, branched });
        } else {
            self.flags[node as usize].unproven |= unproven;
        }
        node
    }

    /// Returns `true` if a node stands for what was cut off.
    #[inline]
    pub(super) fn is_cut_off(&self, node: u32) -> bool {
        self.nodes[node as usize].0 == CUT_OFF
    }

    /// Fails if a node stands for what was cut off.
    #[inline]
    pub(super) fn require_visible(&self, node: u32) -> Result<(), Error> {
        if self.is_cut_off(node) { Err(NEEDS_DEEPER_STACK) } else { Ok(()) }
    }
}

impl GrammarState {
    /// Returns the id of a parser state's prefix down to a stack depth. Prefixes are never dropped.
    /// Returns `None` if the prefix is too large.
    pub(crate) fn prefix_of(&mut self, parser_state: u32, depth: u32) -> Option<u32> {
        let mut list = Vec::with_capacity(4 * depth as usize + 8);
        let is_complete = match &self.indentation {
            None => true,
            Some(indentation) => indentation.push_prefix(parser_state, depth, &mut list),
        };
        let stacks = self.stacks_of(parser_state);
        let is_complete = is_complete && self.gss.push_prefix(stacks, depth, &mut list);
        is_complete.then(|| self.prefixes.intern(&list))
    }

    /// Returns a parser state that consists of a prefix only. An operation that needs more fails
    /// with `NEEDS_DEEPER_STACK`.
    pub(crate) fn state_of_prefix(&mut self, prefix: u32) -> u32 {
        let list = self.prefixes.copy(prefix);
        let Some(indentation) = &mut self.indentation else {
            return self.gss.stacks_of_prefix(&list, prefix);
        };
        let (front, rest) = indentation.split_prefix(&list);
        match self.gss.stacks_of_prefix(rest, prefix) {
            NOTHING => NOTHING,
            stacks => indentation.state_of_prefix(stacks, front),
        }
    }
}
