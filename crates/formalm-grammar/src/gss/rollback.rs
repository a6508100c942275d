//! Dropping what was only looked at.

use super::{Stacks, UNKNOWN};

/// How far the arenas reach: what comes after can be dropped again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) nodes: usize,
    pub(super) edges: usize,
    pub(super) sets: usize,
}

/// What was remembered since the mark.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) children: Vec<u32>,
    pub(super) forced: Vec<u32>,
    pub(super) fronts: Vec<(u32, u32)>,
    pub(super) shifts: Vec<(u32, u32)>,
    pub(super) allowed: Vec<u32>,
}

impl Stacks {
    /// Begins to note what is made, so that [`Stacks::forget`] can drop it.
    pub(crate) fn remember(&mut self) {
        let mark = Mark { nodes: self.nodes.len(), edges: self.edges.len(), sets: self.sets.len() };
        self.mark = Some((mark, Log::default()));
    }

    /// Keeps what was made since [`Stacks::remember`].
    pub(crate) fn keep(&mut self) {
        self.mark = None;
    }

    /// How often stacks were dropped: with the same number, edges have the numbers they had.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Drops what was made since [`Stacks::remember`].
    pub(crate) fn forget(&mut self) {
        let Some((mark, log)) = self.mark.take() else { return };
        for edge in log.children {
            if let Some(edge) = self.edges.get_mut(edge as usize) {
                edge.children = UNKNOWN;
            }
        }
        for edge in log.forced {
            self.forced.remove(&edge);
        }
        for key in log.fronts {
            self.fronts.remove(&key);
        }
        for key in log.shifts {
            self.shifts.remove(&key);
        }
        for stacks in log.allowed {
            self.allowed.remove(&stacks);
        }
        for (state, below) in self.nodes.drain(mark.nodes..) {
            self.node_ids.remove(&(state, below));
        }
        self.marks.truncate(mark.nodes);
        for edge in self.edges.drain(mark.edges..) {
            self.edge_ids.remove(&(edge.state, edge.below));
        }
        self.sets.truncate(mark.sets);
        self.epoch += 1;
    }
}
