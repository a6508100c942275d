//! Reductions of one symbol, which leave what lies below as it is.
//!
//! An operand is a product, a sum, a comparison and so on: a ladder of rules whose reductions pop
//! one symbol each. What they come to depends on the state and the one below it alone, so it is
//! found once for both, and edges are made of those steps only from which something is shifted.

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Stacks, UNKNOWN};
use crate::interner::NOTHING;
use crate::limits::Meter;
use crate::lr0::{self, Tables};

/// In place of the state below, where nothing is reduced.
const NONE: u32 = u32::MAX;

/// What a state comes to above another one by reductions of one symbol.
#[derive(Debug)]
struct Chain {
    /// Itself and the states that take its place, those that shift something.
    states: Box<[u32]>,
    /// What these shift, as a set of [`Tables::sets`].
    shifts: u32,
    /// Left sides that all of them reduce to, with the number of symbols, which are several.
    reductions: Box<[(u32, u32)]>,
}

/// The chains met so far; they are kept, as there are few.
#[derive(Debug, Default)]
pub(super) struct Chains {
    list: Vec<Chain>,
    ids: FxHashMap<(u32, u32), u32>,
    bytes: usize,
}

impl Chains {
    fn number(
        &mut self,
        (state, below): (u32, u32),
        tables: &mut Tables,
        meter: &mut Meter,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.ids.get(&(state, below)) {
            return Ok(known);
        }
        let mut met = vec![state];
        let mut seen = FxHashSet::from_iter([state]);
        let (mut shifts, mut deep) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&state) = met.get(at) {
            lr0::join(&mut shifts, tables.sets.get(tables.shifts(state)));
            for number in 0..tables.reductions(state).len() {
                meter.spend(1)?;
                let (symbol, popped) = tables.reductions(state)[number];
                if popped > 1 {
                    deep.push((symbol, popped));
                } else if let Some(next) = tables.goto(below, symbol, meter)?
                    && seen.insert(next)
                {
                    met.push(next);
                }
            }
            at += 1;
        }
        met.retain(|&state| tables.shifts(state) != NOTHING);
        met.sort_unstable();
        deep.sort_unstable();
        deep.dedup();
        let number = self.list.len() as u32;
        self.bytes += 80 + 4 * met.len() + 8 * deep.len();
        self.ids.insert((state, below), number);
        let shifts = tables.sets.intern(&shifts);
        self.list.push(Chain { states: met.into(), shifts, reductions: deep.into() });
        Ok(number)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

impl Stacks {
    /// The number of an edge's chain.
    pub(super) fn chain(&mut self, edge: u32) -> Result<u32, Error> {
        let super::Edge { state, below, chain, .. } = self.edges[edge as usize];
        if chain != UNKNOWN {
            return Ok(chain);
        }
        let under = if self.tables.reductions(state).is_empty() {
            NONE
        } else {
            self.seen(below)?;
            self.nodes[below as usize].0
        };
        let chain = self.chains.number((state, under), &mut self.tables, &mut self.meter)?;
        self.edges[edge as usize].chain = chain;
        Ok(chain)
    }

    /// What is shifted in the course of a chain.
    pub(super) fn chain_shifts(&self, chain: u32) -> u32 {
        self.chains.list[chain as usize].shifts
    }

    /// Reductions of several symbols to which a chain comes.
    pub(super) fn chain_reductions(&self, chain: u32) -> &[(u32, u32)] {
        &self.chains.list[chain as usize].reductions
    }

    /// The edges of an edge's chain that shift a terminal.
    pub(super) fn chain_front(
        &mut self,
        edge: u32,
        terminal: u32,
        list: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let chain = self.chain(edge)? as usize;
        let below = self.edges[edge as usize].below;
        self.meter.spend(self.chains.list[chain].states.len())?;
        for at in 0..self.chains.list[chain].states.len() {
            let state = self.chains.list[chain].states[at];
            let shifts = self.tables.sets.get(self.tables.shifts(state));
            if lr0::contains(shifts, terminal + 1) {
                list.push(self.edge(state, below));
            }
        }
        Ok(())
    }
}
