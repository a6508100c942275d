//! How many bytes complete a stack at least: what guides searches for members.

use formalm_automata::Error;

use super::{Edge, Stacks, UNKNOWN};
use crate::completion::stack_shortest_path::{Group, NEVER, Rests, Way, least};

impl Stacks {
    /// Bytes of a shortest completion, lexemes being read in any way.
    pub(crate) fn completion_bytes(&mut self, stacks: u32) -> Result<u32, Error> {
        let mut bytes = NEVER;
        for edge in self.tops(stacks) {
            bytes = bytes.min(least(self, edge)?);
        }
        Ok(bytes)
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
}

impl Rests for Stacks {
    /// An edge: what is left of an item, then the completion of what it becomes.
    type Rest = u32;

    fn known(&self, edge: &u32) -> Option<u32> {
        Some(self.edges[*edge as usize].bytes).filter(|&bytes| bytes != UNKNOWN)
    }

    fn keep(&mut self, edge: u32, bytes: u32) {
        self.edges[edge as usize].bytes = bytes.min(NEVER - 1);
    }

    fn ways(
        &mut self,
        edge: u32,
        from: usize,
        group: &mut Group<u32>,
        ways: &mut Vec<Way<u32>>,
    ) -> Result<(), Error> {
        for (place, pushed, becomes) in self.items(edge)? {
            let bytes = self.tables.rest_bytes(place).min(NEVER - 1);
            if self.tables.is_goal_at(place) {
                ways.push(Way { from, bytes, to: None });
            }
            for to in becomes {
                ways.push(Way { from, bytes, to: Some(to) });
                if pushed == 1 && self.known(&to).is_none() {
                    group.add(to);
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.meter.spend(steps)
    }
}
