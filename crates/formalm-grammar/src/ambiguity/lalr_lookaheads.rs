//! LALR(1) lookahead sets: what may follow each reduction of each state.
//!
//! The LR(0) automaton never pushes an empty symbol. The lookaheads of a nonterminal transition are
//! therefore what the target state shifts, plus the lookaheads of the nonterminals that end with
//! it.
//!
//! Reference: F. DeRemer, T. Pennello, "Efficient computation of LALR(1) look-ahead sets" (1982).

use formalm_core::Error;
use rustc_hash::FxHashMap;

use super::check_state_count;
use crate::limits::StepMeter;
use crate::lr0::{END, Lr0Automaton, join};

/// All LR(0) states with the lookaheads of their reductions.
pub(super) struct LalrLookaheads {
    /// Predecessors per state.
    predecessors: Vec<Vec<u32>>,
    /// The first known predecessor of a state, and the symbol between them.
    pub(super) reached_by: Vec<(u32, u32)>,
    /// FOLLOW of a nonterminal in a state.
    follows: FxHashMap<(u32, u32), Vec<u32>>,
    /// Lookaheads per reduction of a state.
    lookaheads: FxHashMap<(u32, (u32, u32)), Vec<u32>>,
}

/// Returns the last dot position reachable over nullable symbols.
pub(super) fn skip_nullable(lr0: &Lr0Automaton, position: u32) -> u32 {
    let mut position = position;
    loop {
        let symbol = lr0.symbol_at[position as usize];
        if symbol == END || !lr0.nullable[symbol as usize] {
            return position;
        }
        position += 1;
    }
}

impl LalrLookaheads {
    pub(super) fn new(
        lr0: &mut Lr0Automaton,
        meter: &mut StepMeter,
    ) -> Result<LalrLookaheads, Error> {
        let mut all = LalrLookaheads {
            predecessors: vec![Vec::new()],
            reached_by: vec![(0, 0)],
            follows: FxHashMap::default(),
            lookaheads: FxHashMap::default(),
        };
        // States are numbered as they are built, so this loop visits all of them.
        let mut transitions: Vec<(u32, u32, u32)> = Vec::new();
        let mut state = 0;
        while (state as usize) < all.predecessors.len() {
            for symbol in lr0.next_symbols(state) {
                let Some(next) = lr0.goto(state, symbol, meter)? else { continue };
                if next as usize >= all.predecessors.len() {
                    all.predecessors.resize(next as usize + 1, Vec::new());
                    all.reached_by.resize(next as usize + 1, (0, 0));
                    all.reached_by[next as usize] = (state, symbol);
                    check_state_count(all.predecessors.len())?;
                }
                all.predecessors[next as usize].push(state);
                if symbol >= lr0.terminals {
                    transitions.push((state, symbol, next));
                }
            }
            state += 1;
        }
        all.find_follows(lr0, &transitions, meter)?;
        for state in 0..all.len() {
            for &(left, states_below) in lr0.reductions(state) {
                let mut lookaheads = Vec::new();
                for below in all.states_below(state, states_below, meter)? {
                    if let Some(follows) = all.follows.get(&(below, left)) {
                        join(&mut lookaheads, follows);
                    }
                }
                all.lookaheads.insert((state, (left, states_below)), lookaheads);
            }
        }
        Ok(all)
    }

    pub(super) fn len(&self) -> u32 {
        self.predecessors.len() as u32
    }

    /// Returns the lookaheads of a reduction.
    pub(super) fn of(&self, state: u32, reduction: (u32, u32)) -> &[u32] {
        self.lookaheads.get(&(state, reduction)).map_or(&[], |set| &set[..])
    }

    /// Returns the states `count` symbols before a state.
    fn states_below(
        &self,
        state: u32,
        count: u32,
        meter: &mut StepMeter,
    ) -> Result<Vec<u32>, Error> {
        let mut reached = vec![state];
        for _ in 0..count {
            let mut below: Vec<u32> = reached
                .iter()
                .flat_map(|&one| self.predecessors[one as usize].iter().copied())
                .collect();
            meter.spend(below.len())?;
            below.sort_unstable();
            below.dedup();
            reached = below;
        }
        Ok(reached)
    }

    fn find_follows(
        &mut self,
        lr0: &Lr0Automaton,
        transitions: &[(u32, u32, u32)],
        meter: &mut StepMeter,
    ) -> Result<(), Error> {
        // What follows a nonterminal also follows the nonterminals that end with it.
        let mut passed_to: FxHashMap<(u32, u32), Vec<(u32, u32)>> = FxHashMap::default();
        let mut queue = Vec::new();
        for &(state, symbol, next) in transitions {
            let shifts = lr0.sets.get(lr0.shifts(next)).to_vec();
            self.follows.insert((state, symbol), shifts);
            queue.push((state, symbol));
            for &(left, states_below) in lr0.reductions(next) {
                for below in self.states_below(state, states_below - 1, meter)? {
                    passed_to.entry((below, left)).or_default().push((state, symbol));
                }
            }
        }
        while let Some(key) = queue.pop() {
            let own = self.follows[&key].clone();
            for to in passed_to.get(&key).into_iter().flatten() {
                let Some(set) = self.follows.get_mut(to) else { continue };
                meter.spend(own.len() + 1)?;
                let predecessors = set.clone();
                join(set, &own);
                if *set != predecessors {
                    queue.push(*to);
                }
            }
        }
        Ok(())
    }
}
