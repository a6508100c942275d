//! How many bytes complete a stack at least: what guides searches for members.

use formalm_automata::Error;
use rustc_hash::FxHashMap;

use super::{BOTTOM, Edge, Stacks, UNKNOWN};

/// A rest that no text completes.
pub(crate) const NEVER: u32 = u32::MAX;

/// Edges above one node that complete each other.
struct Group {
    edges: Vec<u32>,
    /// Where each of them is in the list.
    places: FxHashMap<u32, usize>,
}

impl Stacks {
    /// Bytes of a shortest completion, lexemes being read in any way.
    pub(crate) fn completion_bytes(&mut self, stacks: u32) -> Result<u32, Error> {
        let mut least = NEVER;
        for edge in self.tops(stacks) {
            least = least.min(self.bytes_of_edge(edge)?);
        }
        Ok(least)
    }

    /// Completions of an edge: what is left of an item, then the completion of what it becomes.
    /// Edges above the same node may lead to each other and are settled together.
    fn bytes_of_edge(&mut self, edge: u32) -> Result<u32, Error> {
        let mut path = vec![edge];
        while let Some(&edge) = path.last() {
            if self.edges[edge as usize].bytes != UNKNOWN {
                path.pop();
                continue;
            }
            let (group, ways) = self.ways(edge)?;
            let is_open = |&(_, _, to): &(usize, u32, u32)| {
                to != BOTTOM
                    && !group.places.contains_key(&to)
                    && self.edges[to as usize].bytes == UNKNOWN
            };
            let open: Vec<u32> = ways.iter().filter(|way| is_open(way)).map(|way| way.2).collect();
            if !open.is_empty() {
                path.extend(open);
                continue;
            }
            let mut bytes = vec![NEVER - 1; group.edges.len()];
            let mut changed = true;
            while changed {
                changed = false;
                self.meter.spend(ways.len())?;
                for &(from, own, to) in &ways {
                    let rest = match group.places.get(&to) {
                        _ if to == BOTTOM => 0,
                        Some(&at) => bytes[at],
                        None => self.edges[to as usize].bytes,
                    };
                    let all = own.saturating_add(rest).min(NEVER - 1);
                    changed |= all < bytes[from];
                    bytes[from] = bytes[from].min(all);
                }
            }
            for (&one, bytes) in group.edges.iter().zip(bytes) {
                self.edges[one as usize].bytes = bytes;
            }
        }
        Ok(self.edges[edge as usize].bytes)
    }

    /// The items of an edge: place, symbols pushed, and the edges that it becomes once it is
    /// complete; none of the whole text.
    pub(crate) fn items(&mut self, edge: u32) -> Result<Vec<(usize, u32, Vec<u32>)>, Error> {
        self.meter.spend(1)?;
        let Edge { state, below, .. } = self.edges[edge as usize];
        let kernel: Vec<(u32, u32)> = self.tables.kernel(state).collect();
        let mut items = Vec::with_capacity(kernel.len());
        for (place, pushed) in kernel {
            let place = place as usize;
            let mut becomes = Vec::new();
            if !self.tables.is_goal_at(place) {
                self.reduced(below, (self.tables.left[place], pushed), &mut becomes)?;
            }
            items.push((place, pushed, becomes));
        }
        Ok(items)
    }

    /// Edges above one node that complete each other, and the ways on: `(from, bytes, to)`.
    #[expect(clippy::type_complexity, reason = "two things that belong together")]
    fn ways(&mut self, edge: u32) -> Result<(Group, Vec<(usize, u32, u32)>), Error> {
        let mut group = Group { edges: vec![edge], places: FxHashMap::from_iter([(edge, 0)]) };
        let mut ways = Vec::new();
        let mut at = 0;
        while at < group.edges.len() {
            for (place, pushed, becomes) in self.items(group.edges[at])? {
                let rest = self.tables.rest_bytes(place);
                if self.tables.is_goal_at(place) {
                    ways.push((at, rest, BOTTOM));
                }
                for to in becomes {
                    ways.push((at, rest, to));
                    let fresh = self.edges[to as usize].bytes == UNKNOWN;
                    if pushed == 1 && fresh && !group.places.contains_key(&to) {
                        group.places.insert(to, group.edges.len());
                        group.edges.push(to);
                    }
                }
            }
            at += 1;
        }
        Ok((group, ways))
    }
}
