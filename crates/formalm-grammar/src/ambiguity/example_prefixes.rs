//! Terminals that lead to a state, the fewest of each symbol on the way.

use super::lalr_lookaheads::LalrLookaheads;
use crate::normal_form::NormalizedGrammar;

/// Terminals of one example.
const MAX_TERMINALS: u32 = 200;

pub(super) struct ExamplePrefixes<'a> {
    normalized: &'a NormalizedGrammar,
    lookaheads: &'a LalrLookaheads,
    /// Per symbol: fewest terminals, and the production that has them.
    fewest: Vec<(u32, usize)>,
}

impl<'a> ExamplePrefixes<'a> {
    pub(super) fn new(
        normalized: &'a NormalizedGrammar,
        lookaheads: &'a LalrLookaheads,
    ) -> ExamplePrefixes<'a> {
        let mut fewest = vec![(u32::MAX, 0); normalized.symbols as usize];
        fewest[..normalized.terminals as usize].fill((1, 0));
        let mut changed = true;
        // Passes over all productions: those of what is far from terminals are not needed.
        for _ in 0..MAX_TERMINALS {
            if !std::mem::take(&mut changed) {
                break;
            }
            for (at, one) in normalized.productions.iter().enumerate() {
                let all = one.right.iter().map(|&symbol| fewest[symbol as usize].0);
                let count = all.fold(0, u32::saturating_add);
                if count < fewest[one.left as usize].0 {
                    fewest[one.left as usize] = (count, at);
                    changed = true;
                }
            }
        }
        ExamplePrefixes { normalized, lookaheads, fewest }
    }

    /// Terminals that lead to a state; none if there are too many.
    pub(super) fn before(&self, state: u32) -> Vec<usize> {
        let mut symbols = Vec::new();
        let mut at = state;
        while at != 0 {
            let (from, symbol) = self.lookaheads.reached_by[at as usize];
            symbols.push(symbol);
            at = from;
        }
        let count = symbols.iter().map(|&symbol| self.fewest[symbol as usize].0);
        if count.fold(0, u32::saturating_add) > MAX_TERMINALS {
            return Vec::new();
        }
        let mut terminals = Vec::new();
        while let Some(symbol) = symbols.pop() {
            if symbol < self.normalized.terminals {
                terminals.push(symbol as usize);
            } else {
                let right = &self.normalized.productions[self.fewest[symbol as usize].1].right;
                symbols.extend(right.iter().rev());
            }
        }
        terminals
    }
}
