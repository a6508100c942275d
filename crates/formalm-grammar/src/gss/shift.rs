//! Shifting a terminal: reductions that enable it, the shift, and the forced reductions after it.

use formalm_core::{Error, Resource};
use rustc_hash::FxHashSet;

use super::Gss;
use super::node_sets::NodeSets;
use crate::NOTHING;
use crate::limits::check;

/// Interval at which runs of forced reductions are cached, in reductions. Chosen, not measured.
const FORCED_CACHE_INTERVAL: usize = 32;

impl Gss {
    /// Returns the stacks after a terminal; the empty set if it is not allowed.
    pub(crate) fn shift(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
        if let Some(&next) = self.shifts.get(&(stacks, terminal)) {
            return Ok(next);
        }
        let next = match self.graph.only_edge(stacks) {
            Some(edge) => self.shift_edge(edge, terminal)?,
            None => self.shift_edges(stacks, terminal)?,
        };
        self.shifts.insert((stacks, terminal), next);
        if let Some((_, log)) = &mut self.checkpoint {
            log.shifts.push((stacks, terminal));
        }
        let bytes = self.memory_bytes() as u64;
        check(Resource::Bytes, bytes, self.bytes_allowed)?;
        Ok(next)
    }

    /// As `shift_edges` for a single edge, as long as it yields single edges: the common case.
    fn shift_edge(&mut self, edge: u32, terminal: u32) -> Result<u32, Error> {
        if !self.shifts_terminal(edge, terminal)? {
            return Ok(NOTHING);
        }
        let shifting_edges = self.shifting_edges(edge, terminal)?;
        let Some(shifting_edges) = NodeSets::single(shifting_edges) else {
            let shifting_edges = self.graph.sets.get(shifting_edges).to_vec();
            return self.shift_all(shifting_edges, terminal);
        };
        let (state, below) = self.graph.state_below(shifting_edges);
        let node = self.graph.node(state, &[below], &self.lr0);
        let Some(next) = self.lr0.goto(state, terminal, &mut self.meter)? else {
            return Ok(NOTHING);
        };
        let mut top = self.graph.edge(next, node);
        let (mut count, mut visited) = (0, Vec::new());
        while self.is_forced(top) {
            if let Some(&known) = self.forced.get(&top) {
                top = known;
                break;
            }
            self.meter.spend(1)?;
            count += 1;
            if count % FORCED_CACHE_INTERVAL == 0 {
                visited.push(top);
            }
            top = match self.only_reduction(top)? {
                Some(one) => one,
                None => {
                    let reduced = self.reductions(top)?;
                    return self.after_tops(reduced);
                }
            };
        }
        self.keep_forced(visited, top);
        let (state, below) = self.graph.state_below(top);
        let node = self.graph.node(state, &[below], &self.lr0);
        Ok(self.graph.sets.of(node))
    }

    fn keep_forced(&mut self, edges: Vec<u32>, leads_to: u32) {
        if let Some((_, log)) = &mut self.checkpoint {
            log.forced.extend(&edges);
        }
        self.forced.extend(edges.into_iter().map(|edge| (edge, leads_to)));
    }

    /// Returns the edge after the only reduction of an edge, if a single path lies below.
    fn only_reduction(&mut self, edge: u32) -> Result<Option<u32>, Error> {
        let (state, mut below) = self.graph.state_below(edge);
        let &[(symbol, popped)] = self.lr0.reductions(state) else { return Ok(None) };
        for _ in 1..popped {
            self.meter.spend(1)?;
            self.graph.require_visible(below)?;
            match NodeSets::single(self.graph.nodes[below].1) {
                Some(node) => below = node,
                None => return Ok(None),
            }
        }
        self.graph.require_visible(below)?;
        let state = self.graph.nodes[below].0;
        let next = self.lr0.goto(state, symbol, &mut self.meter)?;
        Ok(next.map(|next| self.graph.edge(next, below)).filter(|&next| next != edge))
    }

    fn shift_edges(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
        let mut all = Vec::new();
        for edge in self.graph.tops(stacks) {
            if self.shifts_terminal(edge, terminal)? {
                let shifting_edges = self.shifting_edges(edge, terminal)?;
                all.extend_from_slice(&self.graph.sets.get(shifting_edges));
            }
        }
        self.shift_all(all, terminal)
    }

    fn shift_all(&mut self, shifting_edges: Vec<u32>, terminal: u32) -> Result<u32, Error> {
        self.meter.spend(shifting_edges.len())?;
        let groups = self.graph.group_by_state(shifting_edges);
        let mut tops = Vec::new();
        for (state, below) in groups {
            let node = self.graph.node(state, &below, &self.lr0);
            if let Some(next) = self.lr0.goto(state, terminal, &mut self.meter)? {
                tops.push(self.graph.edge(next, node));
            }
        }
        self.after_tops(tops)
    }

    fn after_tops(&mut self, mut tops: Vec<u32>) -> Result<u32, Error> {
        self.reduce_forced_edges(&mut tops)?;
        self.meter.spend(tops.len())?;
        Ok(self.graph.stacks_of_edges(tops, &self.lr0))
    }

    /// Returns the edges that shift a terminal, among an edge and those it reduces to.
    fn shifting_edges(&mut self, edge: u32, terminal: u32) -> Result<u32, Error> {
        if let Some(&known) = self.shifting_edges.get(&(edge, terminal)) {
            return Ok(known);
        }
        let (mut path, mut at) = (Vec::new(), edge);
        loop {
            at = match self.compute_shifting_edges(at, terminal)? {
                Err(open) => {
                    path.push(at);
                    open
                }
                Ok(shifting_edges) => match path.pop() {
                    Some(above) => above,
                    None => return Ok(shifting_edges),
                },
            };
        }
    }

    /// Computes these edges, if they are known for all reductions of the edge. Otherwise returns a
    /// reduction for which they are not.
    fn compute_shifting_edges(
        &mut self,
        edge: u32,
        terminal: u32,
    ) -> Result<Result<u32, u32>, Error> {
        let children = self.children(edge)?;
        let mut list = std::mem::take(&mut self.spare);
        list.clear();
        for &child in &*children {
            if !self.shifts_terminal(child, terminal)? {
                continue;
            }
            match self.shifting_edges.get(&(child, terminal)) {
                Some(&shifting_edges) => {
                    list.extend_from_slice(&self.graph.sets.get(shifting_edges))
                }
                None => {
                    self.meter.spend(list.len() + 1)?;
                    self.spare = list;
                    return Ok(Err(child));
                }
            }
        }
        self.meter.spend(list.len() + 1)?;
        self.push_shifting_edges(edge, terminal, &mut list)?;
        list.sort_unstable();
        list.dedup();
        let shifting_edges = self.graph.sets.intern(&list);
        self.spare = list;
        self.shifting_edges.insert((edge, terminal), shifting_edges);
        if let Some((_, log)) = &mut self.checkpoint {
            log.shifting_edges.push((edge, terminal));
        }
        Ok(Ok(shifting_edges))
    }

    /// Returns `true` if an edge can only reduce.
    fn is_forced(&self, edge: u32) -> bool {
        self.lr0.shifts(self.graph.edges[edge].0) == NOTHING
    }

    /// Applies reductions that no shift can precede, so that equal futures merge.
    fn reduce_forced_edges(&mut self, tops: &mut Vec<u32>) -> Result<(), Error> {
        let mut done = Vec::with_capacity(tops.len());
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        while let Some(edge) = tops.pop() {
            if !seen.insert(edge) {
                continue;
            }
            if self.is_forced(edge) {
                tops.extend(self.reductions(edge)?);
            } else {
                done.push(edge);
            }
            self.meter.spend(1)?;
        }
        *tops = done;
        Ok(())
    }
}
