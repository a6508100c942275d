//! Competing stacks: the other stacks that read the same lexemes as the one being completed.
//!
//! Every terminal allowed on any of them competes. They are tracked as stacks of LR(1) states, like
//! the stack being completed, but only down to depth [`MAX_DEPTH`] and at most [`MAX_STACKS`] at a
//! time. A stack popped below that depth is dropped. Dropping competitors keeps the result an
//! over-approximation of what can be spelled.

use formalm_core::{Error, ListInterner, memory_bytes};
use formalm_machines::Precision;
use rustc_hash::{FxHashMap, FxHashSet};

use super::CompletionBounds;
use super::lr1_items::Lr1States;
use crate::NOTHING;
use crate::configuration_reader::ConfigurationReader;
use crate::limits::StepMeter;
use crate::lr0;
use crate::lr0::Lr0Automaton;

/// LR(1) states kept per stack. Chosen, not measured.
const MAX_DEPTH: usize = 6;
/// Stacks tracked at a time. Chosen, not measured.
const MAX_STACKS: usize = 8;
/// Stacks visited by the reductions between two lexemes. Chosen, not measured.
const MAX_REDUCED_STACKS: usize = 64;

/// The tables that LR(1) states are built from.
type Lr1Context<'a> = (&'a mut Lr1States, &'a mut Lr0Automaton, &'a mut StepMeter);

/// Interned sets of stacks; each stack lists its upper LR(1) states, topmost last.
#[derive(Debug, Default)]
pub(super) struct CompetingStacks {
    /// The sets: for each stack its height, then its states.
    sets: ListInterner,
    /// Successor sets by terminal, and these extended by the followed stack.
    after_terminal: FxHashMap<(u32, u32), u32>,
    with_followed: FxHashMap<(u32, [u32; 2]), u32>,
    allowed: FxHashMap<u32, u32>,
}

memory_bytes!(CompetingStacks { sets, after_terminal, with_followed, allowed });

impl CompetingStacks {
    /// Interns a set of stacks. Truncates deep stacks, drops those that are a suffix of a longer
    /// one, and keeps the first [`MAX_STACKS`].
    pub(super) fn number(&mut self, mut stacks: Vec<Vec<u32>>) -> u32 {
        for stack in &mut stacks {
            stack.drain(..stack.len().saturating_sub(MAX_DEPTH));
        }
        stacks.sort_unstable();
        stacks.dedup();
        let known = stacks.clone();
        let is_more =
            |stack: &&Vec<u32>, one: &Vec<u32>| one.len() > stack.len() && one.ends_with(stack);
        stacks.retain(|stack| !known.iter().any(|one| is_more(&stack, one)));
        stacks.truncate(MAX_STACKS);
        let mut set = Vec::new();
        for stack in stacks {
            set.push(stack.len() as u32);
            set.extend(stack);
        }
        self.sets.intern(&set)
    }

    fn stacks(&self, set: u32) -> Vec<Vec<u32>> {
        let mut rest = self.sets.get(set);
        let mut stacks = Vec::new();
        while let Some((&height, above)) = rest.split_first() {
            let (stack, others) = above.split_at(height as usize);
            stacks.push(stack.to_vec());
            rest = others;
        }
        stacks
    }

    /// Returns the set after a terminal, including the followed stack, given by its two topmost
    /// states.
    pub(super) fn after(
        &mut self,
        set: u32,
        terminal: u32,
        followed: [u32; 2],
        lr1: Lr1Context<'_>,
    ) -> Result<u32, Error> {
        let after_terminal = match self.after_terminal.get(&(set, terminal)) {
            Some(&known) => known,
            None => {
                let stacks = shift_stacks(self.stacks(set), terminal, lr1)?;
                let after_terminal = self.number(stacks);
                self.after_terminal.insert((set, terminal), after_terminal);
                after_terminal
            }
        };
        if let Some(&known) = self.with_followed.get(&(after_terminal, followed)) {
            return Ok(known);
        }
        let mut stacks = self.stacks(after_terminal);
        let with_followed = if stacks.iter().any(|stack| stack.ends_with(&followed)) {
            after_terminal
        } else {
            stacks.push(followed.to_vec());
            self.number(stacks)
        };
        self.with_followed.insert((after_terminal, followed), with_followed);
        Ok(with_followed)
    }

    /// Returns the terminals allowed on some stack of a set.
    pub(super) fn allowed(&mut self, set: u32, lr1: Lr1Context<'_>) -> Result<u32, Error> {
        if let Some(&known) = self.allowed.get(&set) {
            return Ok(known);
        }
        let (lr1_states, lr0, meter) = lr1;
        let mut allowed = NOTHING;
        for stack in self.stacks(set) {
            let top = stack.last().copied().unwrap_or(NOTHING);
            let own = lr1_states.allowed(top, lr0, meter)?;
            allowed = lr0.joined(allowed, own);
        }
        self.allowed.insert(set, allowed);
        Ok(allowed)
    }
}

impl CompletionBounds {
    /// Returns the set of stacks above some GSS edges.
    pub(super) fn competing_stacks_on(
        &mut self,
        edges: &[u32],
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        if self.precision != Precision::Finest {
            return Ok(NOTHING);
        }
        let mut stacks = Vec::with_capacity(edges.len());
        for &edge in edges {
            let (mut stack, mut next) = (Vec::new(), Some(edge));
            while let Some(edge) = next.filter(|_| stack.len() < MAX_DEPTH) {
                stack.push(self.top_state(edge, reader)?);
                next = reader.parser.gss.graph.only_below(edge);
            }
            stack.reverse();
            stacks.push(stack);
        }
        Ok(self.competing.number(stacks))
    }

    /// Returns the set of stacks after a terminal, including the one with these states.
    pub(super) fn competing_stacks_after(
        &mut self,
        set: u32,
        terminal: u32,
        lr1_states: [u32; 2],
        reader: &mut ConfigurationReader,
    ) -> Result<u32, Error> {
        if self.precision != Precision::Finest {
            return Ok(NOTHING);
        }
        let lr1 = (&mut self.lr1_states, &mut reader.parser.gss.lr0, &mut reader.parser.gss.meter);
        self.competing.after(set, terminal, lr1_states, lr1)
    }
}

/// Returns the stacks after a terminal, as far as they are known.
fn shift_stacks(
    stacks: Vec<Vec<u32>>,
    terminal: u32,
    (lr1_states, lr0, meter): Lr1Context<'_>,
) -> Result<Vec<Vec<u32>>, Error> {
    let mut seen: FxHashSet<Vec<u32>> = stacks.iter().cloned().collect();
    let (mut open, mut shifted) = (stacks, Vec::new());
    while let Some(stack) = open.pop() {
        meter.spend(1)?;
        let Some(&top) = stack.last() else { continue };
        let next = lr1_states.goto(top, terminal, (lr0, meter))?;
        if next != NOTHING {
            shifted.push([&stack[..], &[next]].concat());
        }
        for (left, pushed, follow) in lr1_states.reductions(top, lr0, meter)?.to_vec() {
            let below = stack.len().saturating_sub(pushed as usize);
            if below == 0 || !lr0::contains(lr0.sets.get(follow), terminal + 1) {
                continue;
            }
            let next = lr1_states.goto(stack[below - 1], left, (lr0, meter))?;
            let reduced = [&stack[..below], &[next]].concat();
            if next != NOTHING && seen.len() < MAX_REDUCED_STACKS && seen.insert(reduced.clone()) {
                open.push(reduced);
            }
        }
    }
    Ok(shifted)
}
