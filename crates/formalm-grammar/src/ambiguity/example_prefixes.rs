//! Example prefixes: a short sequence of terminals that leads to an LR state.

use super::lalr_lookaheads::LalrLookaheads;
use crate::normal_form::NormalizedGrammar;

/// Maximum terminals per example.
const MAX_TERMINALS: u32 = 200;

pub(super) struct ExamplePrefixes<'a> {
    normalized: &'a NormalizedGrammar,
    lookaheads: &'a LalrLookaheads,
    /// Per symbol: minimum number of terminals, and the production that attains it.
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
        // Each pass covers all productions. Symbols far from terminals are not needed.
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

    /// Returns terminals that lead to a state; empty if there are too many.
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
