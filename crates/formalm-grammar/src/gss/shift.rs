//! Reading a terminal.

use formalm_automata::{Error, Resource};
use rustc_hash::FxHashSet;

use super::Stacks;
use super::node_sets::Sets;
use crate::interner::NOTHING;
use crate::limits::check;

/// Of so many reductions in a row that nothing can come before it is remembered where they lead.
const REMEMBERED: usize = 32;

impl Stacks {
    /// The stacks after a terminal; the empty set if it cannot stand here.
    pub(crate) fn shift(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
        if let Some(&next) = self.shifts.get(&(stacks, terminal)) {
            return Ok(next);
        }
        let next = match self.only_edge(stacks) {
            Some(edge) => self.shift_edge(edge, terminal)?,
            None => self.shift_edges(stacks, terminal)?,
        };
        self.shifts.insert((stacks, terminal), next);
        if let Some((_, log)) = &mut self.mark {
            log.shifts.push((stacks, terminal));
        }
        let bytes = self.memory_bytes() as u64;
        check(Resource::Bytes, bytes, self.bytes_allowed)?;
        Ok(next)
    }

    /// The edge at the top, if there is one only.
    pub(super) fn only_edge(&mut self, stacks: u32) -> Option<u32> {
        let (state, below) = self.nodes[Sets::single(stacks)? as usize];
        Some(self.edge(state, Sets::single(below)?))
    }

    /// The same as [`Stacks::shift_edges`] from one edge, as long as no more come of it: nearly
    /// always.
    fn shift_edge(&mut self, edge: u32, terminal: u32) -> Result<u32, Error> {
        if !self.shifts_terminal(edge, terminal)? {
            return Ok(NOTHING);
        }
        let front = self.front(edge, terminal)?;
        let Some(front) = Sets::single(front) else {
            let front = self.sets.get(front).to_vec();
            return self.after_front(front, terminal);
        };
        let (state, below) = self.state_below(front);
        let node = self.node(state, &[below]);
        let Some(next) = self.tables.goto(state, terminal, &mut self.meter)? else {
            return Ok(NOTHING);
        };
        let mut top = self.edge(next, node);
        let (mut count, mut met) = (0, Vec::new());
        while self.is_forced(top) {
            if let Some(&known) = self.forced.get(&top) {
                top = known;
                break;
            }
            self.meter.spend(1)?;
            count += 1;
            if count % REMEMBERED == 0 {
                met.push(top);
            }
            top = match self.only_reduction(top)? {
                Some(one) => one,
                None => {
                    let reduced = self.reductions(top)?;
                    return self.after_tops(reduced);
                }
            };
        }
        self.keep_forced(met, top);
        let (state, below) = self.state_below(top);
        let node = self.node(state, &[below]);
        Ok(self.sets.of(node))
    }

    fn keep_forced(&mut self, edges: Vec<u32>, leads_to: u32) {
        if let Some((_, log)) = &mut self.mark {
            log.forced.extend(&edges);
        }
        self.forced.extend(edges.into_iter().map(|edge| (edge, leads_to)));
    }

    /// The edge that the only reduction of an edge leads to, where nothing else lies below.
    fn only_reduction(&mut self, edge: u32) -> Result<Option<u32>, Error> {
        let (state, mut below) = self.state_below(edge);
        let &[(symbol, popped)] = self.tables.reductions(state) else { return Ok(None) };
        for _ in 1..popped {
            self.meter.spend(1)?;
            self.seen(below)?;
            match Sets::single(self.nodes[below as usize].1) {
                Some(node) => below = node,
                None => return Ok(None),
            }
        }
        self.seen(below)?;
        let state = self.nodes[below as usize].0;
        let next = self.tables.goto(state, symbol, &mut self.meter)?;
        Ok(next.map(|next| self.edge(next, below)).filter(|&next| next != edge))
    }

    fn shift_edges(&mut self, stacks: u32, terminal: u32) -> Result<u32, Error> {
        let mut all = Vec::new();
        for edge in self.tops(stacks) {
            if self.shifts_terminal(edge, terminal)? {
                let front = self.front(edge, terminal)?;
                all.extend_from_slice(&self.sets.get(front));
            }
        }
        self.after_front(all, terminal)
    }

    fn after_front(&mut self, front: Vec<u32>, terminal: u32) -> Result<u32, Error> {
        self.meter.spend(front.len())?;
        let grouped = self.grouped(front);
        let mut tops = Vec::new();
        for (state, below) in grouped {
            let node = self.node(state, &below);
            if let Some(next) = self.tables.goto(state, terminal, &mut self.meter)? {
                tops.push(self.edge(next, node));
            }
        }
        self.after_tops(tops)
    }

    fn after_tops(&mut self, mut tops: Vec<u32>) -> Result<u32, Error> {
        self.reduce_forced(&mut tops)?;
        self.meter.spend(tops.len())?;
        Ok(self.united_edges(tops))
    }

    /// Edges that shift a terminal, of those that an edge reduces to and itself.
    fn front(&mut self, edge: u32, terminal: u32) -> Result<u32, Error> {
        if let Some(&known) = self.fronts.get(&(edge, terminal)) {
            return Ok(known);
        }
        let (mut path, mut at) = (Vec::new(), edge);
        loop {
            at = match self.front_of(at, terminal)? {
                Err(open) => {
                    path.push(at);
                    open
                }
                Ok(front) => match path.pop() {
                    Some(above) => above,
                    None => return Ok(front),
                },
            };
        }
    }

    /// The same if it is known of all that the edge reduces to; else one of which it is not.
    fn front_of(&mut self, edge: u32, terminal: u32) -> Result<Result<u32, u32>, Error> {
        let children = self.children(edge)?;
        let mut list = std::mem::take(&mut self.spare);
        list.clear();
        for &child in &*children {
            if !self.shifts_terminal(child, terminal)? {
                continue;
            }
            match self.fronts.get(&(child, terminal)) {
                Some(&front) => list.extend_from_slice(&self.sets.get(front)),
                None => {
                    self.meter.spend(list.len() + 1)?;
                    self.spare = list;
                    return Ok(Err(child));
                }
            }
        }
        self.meter.spend(list.len() + 1)?;
        self.chain_front(edge, terminal, &mut list)?;
        list.sort_unstable();
        list.dedup();
        let front = self.sets.intern(&list);
        self.spare = list;
        self.fronts.insert((edge, terminal), front);
        if let Some((_, log)) = &mut self.mark {
            log.fronts.push((edge, terminal));
        }
        Ok(Ok(front))
    }

    fn state_below(&self, edge: u32) -> (u32, u32) {
        let edge = &self.edges[edge as usize];
        (edge.state, edge.below)
    }

    /// Whether nothing can come before an edge's reductions.
    fn is_forced(&self, edge: u32) -> bool {
        self.tables.shifts(self.edges[edge as usize].state) == NOTHING
    }

    /// Takes reductions that nothing can come before, so that equal futures meet.
    fn reduce_forced(&mut self, tops: &mut Vec<u32>) -> Result<(), Error> {
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

    /// States with what lies below each, both sorted.
    fn grouped(&self, edges: Vec<u32>) -> Vec<(u32, Vec<u32>)> {
        let mut pairs: Vec<(u32, u32)> =
            edges.into_iter().map(|edge| self.state_below(edge)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let groups = pairs.chunk_by(|left, right| left.0 == right.0);
        groups.map(|group| (group[0].0, group.iter().map(|one| one.1).collect())).collect()
    }

    pub(super) fn united_edges(&mut self, edges: Vec<u32>) -> u32 {
        let grouped = self.grouped(edges);
        let mut nodes: Vec<u32> =
            grouped.into_iter().map(|(state, below)| self.node(state, &below)).collect();
        nodes.sort_unstable();
        self.sets.intern(&nodes)
    }
}
