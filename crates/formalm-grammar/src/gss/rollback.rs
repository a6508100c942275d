//! Rolls the GSS back after a lookahead.

use super::{Gss, UNKNOWN};

/// Arena sizes at a checkpoint; everything beyond can be dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct GssCheckpoint {
    pub(super) nodes: usize,
    pub(super) edges: usize,
    pub(super) sets: usize,
}

/// Cache entries added since the checkpoint.
#[derive(Debug, Default)]
pub(super) struct RollbackLog {
    pub(super) children: Vec<u32>,
    pub(super) forced: Vec<u32>,
    pub(super) shifting_edges: Vec<(u32, u32)>,
    pub(super) shifts: Vec<(u32, u32)>,
    pub(super) allowed: Vec<u32>,
}

impl Gss {
    /// Starts to log new entries, so that [`Gss::rollback`] can drop them.
    pub(crate) fn checkpoint(&mut self) {
        let checkpoint = GssCheckpoint {
            nodes: self.nodes.len(),
            edges: self.edges.len(),
            sets: self.sets.len(),
        };
        self.checkpoint = Some((checkpoint, RollbackLog::default()));
    }

    /// Keeps everything made since [`Gss::checkpoint`].
    pub(crate) fn commit(&mut self) {
        self.checkpoint = None;
    }

    /// Returns the number of rollbacks so far. While it is unchanged, edge ids stay valid.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Drops everything made since [`Gss::checkpoint`].
    pub(crate) fn rollback(&mut self) {
        let Some((checkpoint, log)) = self.checkpoint.take() else { return };
        for edge in log.children {
            if let Some(edge) = self.edges.get_mut(edge as usize) {
                edge.children = UNKNOWN;
            }
        }
        for edge in log.forced {
            self.forced.remove(&edge);
        }
        for key in log.shifting_edges {
            self.shifting_edges.remove(&key);
        }
        for key in log.shifts {
            self.shifts.remove(&key);
        }
        for stacks in log.allowed {
            self.allowed.remove(&stacks);
        }
        for (state, below) in self.nodes.drain(checkpoint.nodes..) {
            self.node_ids.remove(&(state, below));
        }
        self.flags.truncate(checkpoint.nodes);
        for edge in self.edges.drain(checkpoint.edges..) {
            self.edge_ids.remove(&(edge.state, edge.below));
        }
        self.sets.truncate(checkpoint.sets);
        self.epoch += 1;
    }
}
