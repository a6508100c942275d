//! Step 2 of the proof: the LR states whose stacks always-spellable terminals complete.
//!
//! The rest of a production is always spellable if it derives a string without context-dependent
//! terminals. A state is *completable* if some kernel item has such a rest, and every other kernel
//! item continues with a terminal.
//!
//! **Lemma.** If the state on top of a stack is completable, and so are all states that its
//! completed items return to, then always-spellable rests complete the stack. The rest of the item
//! completes its production, then the rest of the item that predicted it follows, and so on; states
//! inside a production do not matter. For the predicting item to be always spellable too, whatever
//! a rule can start with must also start an always-spellable production. That condition is checked
//! here, once per grammar.
//!
//! A terminal before a rest that is not always spellable is *unproven*: the state after it may not
//! be completable. So is the first terminal of a rule that directly follows another rule, if the
//! rest from there on is not always spellable: the state after the first rule, where the input
//! could have continued differently or ended, is one that the new rule returns to.

use rustc_hash::FxHashSet;

use crate::lr0::{END, Lr0Automaton};

/// Maximum work for the check of rule beginnings, in symbols times dot positions. Chosen, not
/// measured.
const MAX_BEGINNING_STEPS: usize = 5_000_000;

impl Lr0Automaton {
    /// Marks the always-spellable rests and returns the unproven terminals, ascending. Returns
    /// `None` if always-spellable rests may not complete completable states.
    pub(crate) fn mark_always_spellable(&mut self, context_dependent: &[u32]) -> Option<Vec<u32>> {
        if context_dependent.is_empty() {
            self.always_spellable = Vec::new();
            return Some(Vec::new());
        }
        let always_spellable = self.always_spellable_symbols(context_dependent);
        self.always_spellable = vec![true; self.symbol_at.len()];
        for position in (0..self.symbol_at.len()).rev() {
            let symbol = self.symbol_at[position];
            self.always_spellable[position] = symbol == END
                || (self.always_spellable[position + 1]
                    && (always_spellable[symbol as usize] || self.nullable[symbol as usize]));
        }
        let mut unproven: Vec<u32> = (0..self.symbol_at.len())
            .filter(|&position| {
                self.symbol_at[position] < self.terminals && !self.always_spellable[position + 1]
            })
            .map(|position| self.symbol_at[position])
            .collect();
        unproven.extend(self.unproven_after_rules());
        unproven.sort_unstable();
        unproven.dedup();
        let goal = self.firsts.len() - 1;
        (always_spellable[goal] && self.begin_always_spellable(&unproven)).then_some(unproven)
    }

    /// Returns the terminals that a rule after another rule starts with, where the rest from there
    /// on is not always spellable.
    fn unproven_after_rules(&self) -> Vec<u32> {
        let is_rule = |position: usize| {
            let symbol = self.symbol_at[position];
            symbol != END && symbol >= self.terminals
        };
        let after_something = (1..self.symbol_at.len())
            .filter(|&position| {
                !self.always_spellable[position] && is_rule(position - 1) && is_rule(position)
            })
            .map(|position| self.symbol_at[position]);
        let mut found = vec![false; self.firsts.len()];
        self.first_symbols(after_something.collect(), false, &mut found);
        (0..self.terminals).filter(|&one| found[one as usize]).collect()
    }

    fn always_spellable_symbols(&self, context_dependent: &[u32]) -> Vec<bool> {
        let mut always_spellable = vec![false; self.firsts.len()];
        for terminal in 0..self.terminals {
            always_spellable[terminal as usize] =
                context_dependent.binary_search(&terminal).is_err();
        }
        let mut changed = true;
        while changed {
            changed = false;
            for symbol in self.terminals as usize..self.firsts.len() {
                let is_firm = |&symbol: &u32| {
                    self.nullable[symbol as usize] || always_spellable[symbol as usize]
                };
                let mut all = self.firsts[symbol].iter();
                if !always_spellable[symbol]
                    && all.any(|&first| self.right(first).iter().all(is_firm))
                {
                    always_spellable[symbol] = true;
                    changed = true;
                }
            }
        }
        always_spellable
    }

    fn right(&self, first: u32) -> &[u32] {
        let rest = &self.symbol_at[first as usize..];
        let end = rest.iter().position(|&symbol| symbol == END);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Returns `true` if everything that a rule can start with, except unproven terminals, also
    /// starts an always-spellable production. Considers every rule that follows something.
    fn begin_always_spellable(&self, unproven: &[u32]) -> bool {
        let mut after_something: FxHashSet<u32> =
            FxHashSet::from_iter([self.firsts.len() as u32 - 1]);
        for firsts in &self.firsts {
            for right in firsts.iter().map(|&first| self.right(first)) {
                let others = right.iter().skip(1).filter(|&&symbol| symbol >= self.terminals);
                after_something.extend(others);
            }
        }
        if after_something.len().saturating_mul(self.symbol_at.len()) > MAX_BEGINNING_STEPS {
            return false;
        }
        let mut always_spellable = vec![false; self.firsts.len()];
        let mut all = always_spellable.clone();
        after_something.into_iter().all(|symbol| {
            self.first_symbols(vec![symbol], true, &mut always_spellable);
            self.first_symbols(vec![symbol], false, &mut all);
            let mut first_symbols = (0..).zip(all.iter().zip(&always_spellable));
            first_symbols.all(|(one, (&begins, &always_spellable))| {
                !begins || always_spellable || unproven.binary_search(&one).is_ok()
            })
        })
    }

    /// Marks the symbols that strings derived from `open` can start with, including `open` itself.
    fn first_symbols(&self, mut open: Vec<u32>, spellable_only: bool, found: &mut [bool]) {
        found.fill(false);
        open.iter().for_each(|&symbol| found[symbol as usize] = true);
        while let Some(symbol) = open.pop() {
            for &first in &self.firsts[symbol as usize] {
                for (at, &next) in self.right(first).iter().enumerate() {
                    let follows = self.always_spellable[first as usize + at + 1];
                    if (follows || !spellable_only)
                        && !std::mem::replace(&mut found[next as usize], true)
                        && next >= self.terminals
                    {
                        open.push(next);
                    }
                    if !self.nullable[next as usize] {
                        break;
                    }
                }
            }
        }
    }

    /// Returns `true` if some state is not proven completable.
    pub(crate) fn has_unproven(&self) -> bool {
        !self.always_spellable.is_empty()
    }

    /// Returns `true` if a state is not proven completable.
    pub(crate) fn is_unproven(&self, state: u32) -> bool {
        if self.always_spellable.is_empty() {
            return false;
        }
        let shifts_terminal = |position: usize| self.symbol_at[position] < self.terminals;
        !self.kernel_positions(state).any(|position| self.always_spellable[position])
            || self
                .kernel_positions(state)
                .any(|position| !self.always_spellable[position] && !shifts_terminal(position))
    }
}
