//! Chains of unit reductions, which replace the top state and leave the stack below unchanged.
//!
//! An operand becomes a product, a sum, a comparison and so on, by a ladder of rules that each pop
//! one symbol. The chain depends only on the top state and the state below it, so it is computed
//! once per pair. GSS edges are created only for those states in the chain that shift something.

use formalm_core::{CompactMap, Error};
use rustc_hash::FxHashSet;

use super::{Gss, UNKNOWN};
use crate::NOTHING;
use crate::limits::StepMeter;
use crate::lr0;
use crate::lr0::Lr0Automaton;

/// In place of the state below, for a state without reductions.
const NO_STATE_BELOW: u32 = u32::MAX;

/// The states reached above another state by unit reductions.
#[derive(Debug)]
struct UnitReductionChain {
    /// The state itself and its replacements, restricted to those that shift something.
    states: Box<[u32]>,
    /// The terminals they shift, as an id of [`Lr0Automaton::sets`].
    shifts: u32,
    /// Longer reductions of any state in the chain: left-hand side and number of symbols.
    reductions: Box<[(u32, u32)]>,
}

/// All chains computed so far. They are few and never dropped.
#[derive(Debug, Default)]
pub(super) struct UnitReductionChains {
    /// By the state and the state below.
    list: CompactMap<(u32, u32), UnitReductionChain>,
    bytes: usize,
}

impl UnitReductionChains {
    fn number(
        &mut self,
        (state, below): (u32, u32),
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<u32, Error> {
        if let Some(known) = self.list.find(&(state, below)) {
            return Ok(known);
        }
        let mut states = vec![state];
        let mut seen = FxHashSet::from_iter([state]);
        let (mut shifts, mut long_reductions) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(&state) = states.get(at) {
            lr0::join(&mut shifts, lr0.sets.get(lr0.shifts(state)));
            for number in 0..lr0.reductions(state).len() {
                meter.spend(1)?;
                let (symbol, popped) = lr0.reductions(state)[number];
                if popped > 1 {
                    long_reductions.push((symbol, popped));
                } else if let Some(next) = lr0.goto(below, symbol, meter)?
                    && seen.insert(next)
                {
                    states.push(next);
                }
            }
            at += 1;
        }
        states.retain(|&state| lr0.shifts(state) != NOTHING);
        states.sort_unstable();
        long_reductions.sort_unstable();
        long_reductions.dedup();
        self.bytes += 80 + 4 * states.len() + 8 * long_reductions.len();
        let shifts = lr0.sets.intern(&shifts);
        let chain = UnitReductionChain {
            states: states.into(),
            shifts,
            reductions: long_reductions.into(),
        };
        Ok(self.list.position_or_insert_with((state, below), || chain))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

impl Gss {
    /// Returns the id of an edge's chain.
    pub(super) fn chain(&mut self, edge: u32) -> Result<u32, Error> {
        let ((state, below), chain) =
            (self.graph.edges[edge], self.graph.edge_facts[edge as usize].chain);
        if chain != UNKNOWN {
            return Ok(chain);
        }
        let state_below = if self.lr0.reductions(state).is_empty() {
            NO_STATE_BELOW
        } else {
            self.graph.require_visible(below)?;
            self.graph.nodes[below].0
        };
        let chain = self.chains.number((state, state_below), &mut self.lr0, &mut self.meter)?;
        self.graph.edge_facts[edge as usize].chain = chain;
        Ok(chain)
    }

    /// Returns the terminals shifted in a chain.
    pub(super) fn chain_shifts(&self, chain: u32) -> u32 {
        self.chains.list.value(chain).shifts
    }

    /// Returns the longer reductions reached in a chain.
    pub(super) fn chain_reductions(&self, chain: u32) -> &[(u32, u32)] {
        &self.chains.list.value(chain).reductions
    }

    /// Appends the edges of a chain that shift a terminal.
    pub(super) fn push_shifting_edges(
        &mut self,
        edge: u32,
        terminal: u32,
        list: &mut Vec<u32>,
    ) -> Result<(), Error> {
        let chain = self.chain(edge)?;
        let below = self.graph.edges[edge].1;
        self.meter.spend(self.chains.list.value(chain).states.len())?;
        for at in 0..self.chains.list.value(chain).states.len() {
            let state = self.chains.list.value(chain).states[at];
            let shifts = self.lr0.sets.get(self.lr0.shifts(state));
            if lr0::contains(shifts, terminal + 1) {
                list.push(self.graph.edge(state, below));
            }
        }
        Ok(())
    }
}
