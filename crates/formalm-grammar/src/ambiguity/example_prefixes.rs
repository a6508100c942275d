//! Terminals that lead to a state, the fewest of each symbol on the way.

use super::lalr_lookaheads::Lookaheads;
use crate::normal_form::Prepared;

/// Terminals of one example.
const MOST: u32 = 200;

pub(super) struct Examples<'a> {
    prepared: &'a Prepared,
    lookaheads: &'a Lookaheads,
    /// Per symbol: fewest terminals, and the production that has them.
    fewest: Vec<(u32, usize)>,
}

impl<'a> Examples<'a> {
    pub(super) fn new(prepared: &'a Prepared, lookaheads: &'a Lookaheads) -> Examples<'a> {
        let mut fewest = vec![(u32::MAX, 0); prepared.symbols as usize];
        fewest[..prepared.terminals as usize].fill((1, 0));
        let mut changed = true;
        // Passes over all productions: those of what is far from terminals are not needed.
        for _ in 0..MOST {
            if !std::mem::take(&mut changed) {
                break;
            }
            for (at, one) in prepared.productions.iter().enumerate() {
                let all = one.right.iter().map(|&symbol| fewest[symbol as usize].0);
                let count = all.fold(0, u32::saturating_add);
                if count < fewest[one.left as usize].0 {
                    fewest[one.left as usize] = (count, at);
                    changed = true;
                }
            }
        }
        Examples { prepared, lookaheads, fewest }
    }

    /// Terminals that lead to a state; none if there are too many.
    pub(super) fn before(&self, state: u32) -> Vec<usize> {
        let mut symbols = Vec::new();
        let mut at = state;
        while at != 0 {
            let (from, symbol) = self.lookaheads.came[at as usize];
            symbols.push(symbol);
            at = from;
        }
        let count = symbols.iter().map(|&symbol| self.fewest[symbol as usize].0);
        if count.fold(0, u32::saturating_add) > MOST {
            return Vec::new();
        }
        let mut terminals = Vec::new();
        while let Some(symbol) = symbols.pop() {
            if symbol < self.prepared.terminals {
                terminals.push(symbol as usize);
            } else {
                let right = &self.prepared.productions[self.fewest[symbol as usize].1].right;
                symbols.extend(right.iter().rev());
            }
        }
        terminals
    }
}
