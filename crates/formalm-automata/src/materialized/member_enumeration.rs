//! Enumeration of members by length, then in lexicographic order.

use formalm_core::{Error, Resource, check_limit};

use super::{InterruptCheck, MaterializedDfa, UnitTransitions};

/// A lazy enumeration: the next member is found when it is requested.
#[derive(Debug)]
pub struct MemberEnumerator {
    /// For each length, the states that have a completion of exactly that length, as bits.
    completes: Vec<Vec<u64>>,
    /// The length that is being enumerated.
    length: usize,
    /// The last length to enumerate.
    last: Option<usize>,
    /// Maximum memory for `completes`, in bytes.
    limit: u64,
    path: Vec<PathEntry>,
    labels: Vec<u32>,
}

/// A state on the path to the current member.
#[derive(Debug)]
struct PathEntry {
    state: u32,
    /// Characters still to begin.
    left: usize,
    /// The edge and the label to try next.
    edge: usize,
    label: u32,
}

impl MemberEnumerator {
    /// Creates an enumeration of the members whose length is in `first..=last`. Memory is at most
    /// `limit` bytes.
    pub fn new(first: usize, last: Option<usize>, limit: u64) -> MemberEnumerator {
        MemberEnumerator {
            completes: Vec::new(),
            length: first,
            last,
            limit,
            path: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Returns the next member, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Interrupted`]. Another call resumes where it failed.
    pub fn next(
        &mut self,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<Vec<u32>>, Error> {
        loop {
            if self.path.is_empty() && !self.open(graph, measured, poll)? {
                return Ok(None);
            }
            poll.tick(1)?;
            let Some(here) = self.path.last() else { continue };
            let at_end = here.left == 0 && !measured.is_inside(here.state);
            let found = at_end.then(|| self.labels.clone());
            if at_end || !self.descend(graph, measured) {
                self.path.pop();
                self.labels.pop();
                if self.path.is_empty() {
                    self.length += 1;
                }
            }
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Moves to the start of the next length that has members.
    fn open(
        &mut self,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<bool, Error> {
        while self.last.is_none_or(|last| self.length <= last) {
            while self.completes.len() <= self.length {
                if !self.grow(graph, measured, poll)? {
                    return Ok(false);
                }
            }
            if has(&self.completes[self.length], 0) {
                self.path.push(PathEntry { state: 0, left: self.length, edge: 0, label: 0 });
                return Ok(true);
            }
            self.length += 1;
        }
        Ok(false)
    }

    /// Computes the states with completions one longer; returns `false` if no state has any that
    /// long.
    fn grow(
        &mut self,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<bool, Error> {
        let words = graph.state_count().div_ceil(64);
        let bytes = (self.completes.len() as u64 + 1) * (8 * words as u64 + 24);
        check_limit(Resource::Bytes, bytes, self.limit)?;
        poll.tick(graph.state_count() + graph.range_count())?;
        let mut bits = vec![0u64; words];
        let shorter = self.completes.last();
        for state in 0..graph.state_count() as u32 {
            let mut ways = measured.unit_successors(state).iter();
            let completes = !measured.is_inside(state)
                && match shorter {
                    None => graph.is_accepting(state),
                    Some(shorter) => ways.any(|&(target, _)| has(shorter, target)),
                };
            bits[state as usize / 64] |= u64::from(completes) << (state % 64);
        }
        let any = bits.iter().any(|&word| word != 0);
        if any {
            self.completes.push(bits);
        }
        Ok(any)
    }

    /// Follows the next label that leads to a member; returns `false` if there is none.
    fn descend(&mut self, graph: &MaterializedDfa, measured: &UnitTransitions) -> bool {
        let Some(here) = self.path.last_mut() else { return false };
        let left = here.left - usize::from(!measured.is_inside(here.state));
        let completes = &self.completes[left];
        while let Some(edge) = graph.edges(here.state).get(here.edge) {
            let label = here.label.max(edge.low);
            let mut ways = measured.unit_successors(edge.target).iter();
            let leads = if measured.is_inside(edge.target) {
                ways.any(|&(target, _)| has(completes, target))
            } else {
                has(completes, edge.target)
            };
            if leads && label <= edge.high {
                here.label = label + 1;
                let state = edge.target;
                self.labels.push(label);
                self.path.push(PathEntry { state, left, edge: 0, label: 0 });
                return true;
            }
            here.edge += 1;
        }
        false
    }
}

fn has(bits: &[u64], state: u32) -> bool {
    bits[state as usize / 64] >> (state % 64) & 1 != 0
}
