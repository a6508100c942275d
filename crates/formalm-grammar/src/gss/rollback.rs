//! Rolls the GSS back after a lookahead.

use super::{Gss, UNKNOWN};

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
        self.checkpoint = Some((self.graph.size(), RollbackLog::default()));
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
        let Some((size, log)) = self.checkpoint.take() else { return };
        for edge in log.children {
            if let Some(edge) = self.graph.edge_facts.get_mut(edge as usize) {
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
        self.graph.truncate(size);
        self.epoch += 1;
    }
}
