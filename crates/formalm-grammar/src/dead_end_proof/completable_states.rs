//! Which stacks can be completed although some terminals cannot be spelled everywhere.
//!
//! A terminal is *brittle* if the certificate does not say that it can be spelled wherever it may
//! stand. What is left of a production is *firm* if it has a text without brittle terminals. A
//! state is sound if some item of its kernel is firm and all others go on with a terminal. If the
//! state on top of a stack is sound and so are all that completed items come back to, firm rests
//! complete it: what was read of a production is followed by its rest, and then by that of the item
//! that asked for it; states within a production do not matter. For that item to be firm too,
//! whatever a rule can begin with must be a beginning of firm productions as well, which is
//! looked at here, once. A terminal in front of what is not firm is *fragile*: what is behind it
//! may be unsound. So is one that a rule begins with in front of which another rule was complete,
//! if what is left from there on is not firm: the state behind that other rule, where the text
//! might have gone on otherwise or ended, is one that the new rule comes back to.

use rustc_hash::FxHashSet;

use crate::lr0::{END, Lr0Automaton};

/// Beginnings of rules that are looked at.
const MAX_BEGINNING_STEPS: usize = 5_000_000;

impl Lr0Automaton {
    /// Notes which rests are firm; the fragile terminals, ascending. `None` if firm rests need not
    /// complete sound stacks.
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

    /// Terminals that a rule behind another one begins with, where the rest from there on is not
    /// firm.
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

    /// Whether all that a rule can begin with, but for fragile terminals, is what it can begin
    /// with firmly: for every rule that stands behind something else.
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

    /// Symbols that what some symbols derive can begin with, these among them.
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

    /// Whether some state may not be sound.
    pub(crate) fn has_unproven(&self) -> bool {
        !self.always_spellable.is_empty()
    }

    /// Whether a state is not sound.
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
