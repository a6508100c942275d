//! Reductions of one symbol, which leave what lies below as it is.
//!
//! An operand is a product, a sum, a comparison and so on: a ladder of rules whose reductions pop
//! one symbol each. What they come to depends on the state and the one below it alone, so it is
//! found once for both, and edges are made of those steps only from which something is shifted.

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Gss, UNKNOWN};
use crate::interner::NOTHING;
use crate::limits::StepMeter;
use crate::lr0::{self, Lr0Automaton};

/// In place of the state below, where nothing is reduced.
const NO_STATE_BELOW: u32 = u32::MAX;

/// What a state comes to above another one by reductions of one symbol.
#[derive(Debug)]
struct UnitReductionChain {
    /// Itself and the states that take its place, those that shift something.
    states: Box<[u32]>,
    /// What these shift, as a set of [`Tables::sets`].
    shifts: u32,
    /// Left sides that all of them reduce to, with the number of symbols, which are several.
    reductions: Box<[(u32, u32)]>,
}

/// The chains met so far; they are kept, as there are few.
#[derive(Debug, Default)]
pub(super) struct UnitReductionChains {
    list: Vec<UnitReductionChain>,
    ids: FxHashMap<(u32, u32), u32>,
    bytes: usize,
}

impl UnitReductionChains {
    fn number(
        &mut self,
        (state, below): (u32, u32),
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<u32, Error> {
        if let Some(&known) = self.ids.get(&(state, below)) {
            return Ok(known);
        }
        let mut visited = vec![state];
        let mut require_visible = FxHashSet::from_iter([state]);
        let (mut shifts, mut long_reductions) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&state) = visited.get(at) {
            lr0::join(&mut shifts, lr0.sets.get(lr0.shifts(state)));
            for number in 0..lr0.reductions(state).len() {
                meter.spend(1)?;
                let (symbol, popped) = lr0.reductions(state)[number];
                if popped > 1 {
                    long_reductions.push((symbol, popped));
                } else if let Some(next) = lr0.goto(below, symbol, meter)?
                    && require_visible.insert(next)
                {
                    visited.push(next);
                }
            }
            at += 1;
        }
        visited.retain(|&state| lr0.shifts(state) != NOTHING);
        visited.sort_unstable();
        long_reductions.sort_unstable();
        long_reductions.dedup();
        let number = self.list.len() as u32;
        self.bytes += 80 + 4 * visited.len() + 8 * long_reductions.len();
        self.ids.insert((state, below), number);
        let shifts = lr0.sets.intern(&shifts);
        self.list.push(UnitReductionChain {
            states: visited.into(),
            shifts,
            reductions: long_reductions.into(),
        });
        Ok(number)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

impl Gss {
    /// The number of an edge's chain.
    pub(super) fn chain(&mut self, edge: u32) -> Result<u32, Error> {
        let super::GssEdge { state, below, chain, .. } = self.edges[edge as usize];
        if chain != UNKNOWN {
            return Ok(chain);
        }
        let state_below = if self.lr0.reductions(state).is_empty() {
            NO_STATE_BELOW
        } else {
            self.require_visible(below)?;
            self.nodes[below as usize].0
        };
        let chain = self.chains.number((state, state_below), &mut self.lr0, &mut self.meter)?;
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
    pub(super) fn push_shifting_edges(
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
            let shifts = self.lr0.sets.get(self.lr0.shifts(state));
            if lr0::contains(shifts, terminal + 1) {
                list.push(self.edge(state, below));
            }
        }
        Ok(())
    }
}
