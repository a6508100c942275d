//! Stacks beside the one that is completed: they read the same lexemes in other ways.
//!
//! What may stand at any of them competes. They are followed as the one that is completed is, by
//! kernels, but only as far as their upper parts are known: one that is completed below these is
//! lost, and with it some of what competes.

use formalm_automata::{Error, Look};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Completions;
use super::lr1_items::Kernels;
use crate::interner::{Lists, NOTHING};
use crate::limits::Meter;
use crate::lr0::{self, Tables};
use crate::state::Core;

/// Kernels that are known of a stack.
const DEPTH: usize = 6;
/// Stacks that are followed.
const MOST: usize = 8;
/// Stacks that are met between two lexemes.
const MET: usize = 64;

/// What kernels are made with.
type Made<'a> = (&'a mut Kernels, &'a mut Tables, &'a mut Meter);

/// Sets of stacks, each the kernels at its top, the topmost last.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    /// The sets: of each stack its height, then its kernels.
    sets: Lists,
    /// The sets behind terminals, and these with the stack that was followed there.
    behind: FxHashMap<(u32, u32), u32>,
    with: FxHashMap<(u32, [u32; 2]), u32>,
    allowed: FxHashMap<u32, u32>,
}

impl Rivals {
    /// The number of a set.
    pub(super) fn number(&mut self, mut stacks: Vec<Vec<u32>>) -> u32 {
        for stack in &mut stacks {
            stack.drain(..stack.len().saturating_sub(DEPTH));
        }
        stacks.sort_unstable();
        stacks.dedup();
        let known = stacks.clone();
        let is_more =
            |stack: &&Vec<u32>, one: &Vec<u32>| one.len() > stack.len() && one.ends_with(stack);
        stacks.retain(|stack| !known.iter().any(|one| is_more(&stack, one)));
        stacks.truncate(MOST);
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

    /// The set behind a terminal, with the stack that was followed there: its two topmost kernels.
    pub(super) fn after(
        &mut self,
        set: u32,
        terminal: u32,
        followed: [u32; 2],
        made: Made<'_>,
    ) -> Result<u32, Error> {
        let behind = match self.behind.get(&(set, terminal)) {
            Some(&known) => known,
            None => {
                let stacks = shifted(self.stacks(set), terminal, made)?;
                let behind = self.number(stacks);
                self.behind.insert((set, terminal), behind);
                behind
            }
        };
        if let Some(&known) = self.with.get(&(behind, followed)) {
            return Ok(known);
        }
        let mut stacks = self.stacks(behind);
        let with = if stacks.iter().any(|stack| stack.ends_with(&followed)) {
            behind
        } else {
            stacks.push(followed.to_vec());
            self.number(stacks)
        };
        self.with.insert((behind, followed), with);
        Ok(with)
    }

    /// Terminals that may stand at some stack of a set.
    pub(super) fn allowed(&mut self, set: u32, made: Made<'_>) -> Result<u32, Error> {
        if let Some(&known) = self.allowed.get(&set) {
            return Ok(known);
        }
        let (kernels, tables, meter) = made;
        let mut allowed = NOTHING;
        for stack in self.stacks(set) {
            let top = stack.last().copied().unwrap_or(NOTHING);
            let own = kernels.allowed(top, tables, meter)?;
            allowed = tables.joined(allowed, own);
        }
        self.allowed.insert(set, allowed);
        Ok(allowed)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.sets.memory_bytes()
            + self.behind.len() * 20
            + self.with.len() * 24
            + self.allowed.len() * 16
    }
}

impl Completions {
    /// The stacks of some edges.
    pub(super) fn rivals_on(&mut self, edges: &[u32], core: &mut Core) -> Result<u32, Error> {
        if self.look != Look::Closest {
            return Ok(NOTHING);
        }
        let mut stacks = Vec::with_capacity(edges.len());
        for &edge in edges {
            let (mut stack, mut next) = (Vec::new(), Some(edge));
            while let Some(edge) = next.filter(|_| stack.len() < DEPTH) {
                stack.push(self.top(edge, core)?);
                next = core.stacks.only_below(edge);
            }
            stack.reverse();
            stacks.push(stack);
        }
        Ok(self.rivals.number(stacks))
    }

    /// The stacks of a set behind a terminal, and the one with these kernels.
    pub(super) fn rivals_after(
        &mut self,
        set: u32,
        terminal: u32,
        kernels: [u32; 2],
        core: &mut Core,
    ) -> Result<u32, Error> {
        if self.look != Look::Closest {
            return Ok(NOTHING);
        }
        let made = (&mut self.kernels, &mut core.stacks.tables, &mut core.stacks.meter);
        self.rivals.after(set, terminal, kernels, made)
    }
}

/// What stacks come to behind a terminal, where it is known.
fn shifted(
    stacks: Vec<Vec<u32>>,
    terminal: u32,
    (kernels, tables, meter): Made<'_>,
) -> Result<Vec<Vec<u32>>, Error> {
    let mut seen: FxHashSet<Vec<u32>> = stacks.iter().cloned().collect();
    let (mut open, mut shifted) = (stacks, Vec::new());
    while let Some(stack) = open.pop() {
        meter.spend(1)?;
        let Some(&top) = stack.last() else { continue };
        let next = kernels.goto(top, terminal, (tables, meter))?;
        if next != NOTHING {
            shifted.push([&stack[..], &[next]].concat());
        }
        for (left, pushed, follow) in kernels.reductions(top, tables, meter)?.to_vec() {
            let below = stack.len().saturating_sub(pushed as usize);
            if below == 0 || !lr0::contains(tables.sets.get(follow), terminal + 1) {
                continue;
            }
            let next = kernels.goto(stack[below - 1], left, (tables, meter))?;
            let reduced = [&stack[..below], &[next]].concat();
            if next != NOTHING && seen.len() < MET && seen.insert(reduced.clone()) {
                open.push(reduced);
            }
        }
    }
    Ok(shifted)
}
