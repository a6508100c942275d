//! What is left of stacks: the rests of their items, one after the other.

use formalm_automata::Error;

use super::Completions;
use super::cfl_reachability::{Asked, Control, done};
use crate::completion::stack_shortest_path::{Group, Rests, Way};
use crate::state::Core;

/// What is left of an edge of the stacks and all below it.
pub(super) type Left = (u32, Control);

/// What is left of stacks, beside a control.
pub(super) struct Stacked<'a> {
    pub(super) beside: &'a mut Completions,
    pub(super) core: &'a mut Core,
}

impl Rests for Stacked<'_> {
    type Rest = Left;

    fn known(&self, rest: &Left) -> Option<u32> {
        self.beside.rests.get(rest).copied()
    }

    fn keep(&mut self, rest: Left, bytes: u32) {
        self.beside.rests.insert(rest, bytes);
    }

    fn ways(
        &mut self,
        (edge, control): Left,
        from: usize,
        group: &mut Group<Left>,
        ways: &mut Vec<Way<Left>>,
    ) -> Result<(), Error> {
        let kernel = self.beside.top(edge, self.core)?;
        for (place, pushed, becomes) in self.core.stacks.items(edge)? {
            let asked = Asked::Rest(place as u32, pushed > 0);
            for (behind, bytes) in self.beside.ends((kernel, asked, control), self.core)? {
                if behind == done() {
                    ways.push(Way { from, bytes, to: None });
                    continue;
                }
                for &edge in &becomes {
                    let to = (edge, behind);
                    ways.push(Way { from, bytes, to: Some(to) });
                    if pushed == 1 && self.known(&to).is_none() {
                        group.add(to);
                    }
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Result<(), Error> {
        self.core.stacks.meter.spend(steps)
    }
}
