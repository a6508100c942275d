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

use crate::lr0::{END, Tables};

/// Beginnings of rules that are looked at.
const WORK: usize = 5_000_000;

impl Tables {
    /// Notes which rests are firm; the fragile terminals, ascending. `None` if firm rests need not
    /// complete sound stacks.
    pub(crate) fn mark_firm(&mut self, brittle: &[u32]) -> Option<Vec<u32>> {
        if brittle.is_empty() {
            self.firm = Vec::new();
            return Some(Vec::new());
        }
        let firm = self.firm_symbols(brittle);
        self.firm = vec![true; self.symbol.len()];
        for place in (0..self.symbol.len()).rev() {
            let symbol = self.symbol[place];
            self.firm[place] = symbol == END
                || (self.firm[place + 1]
                    && (firm[symbol as usize] || self.nullable[symbol as usize]));
        }
        let mut fragile: Vec<u32> = (0..self.symbol.len())
            .filter(|&place| self.symbol[place] < self.terminals && !self.firm[place + 1])
            .map(|place| self.symbol[place])
            .collect();
        fragile.extend(self.begin_behind_rules());
        fragile.sort_unstable();
        fragile.dedup();
        let goal = self.firsts.len() - 1;
        (firm[goal] && self.begins_firmly(&fragile)).then_some(fragile)
    }

    /// Terminals that a rule behind another one begins with, where the rest from there on is not
    /// firm.
    fn begin_behind_rules(&self) -> Vec<u32> {
        let is_rule = |place: usize| {
            let symbol = self.symbol[place];
            symbol != END && symbol >= self.terminals
        };
        let behind = (1..self.symbol.len())
            .filter(|&place| !self.firm[place] && is_rule(place - 1) && is_rule(place))
            .map(|place| self.symbol[place]);
        let mut found = vec![false; self.firsts.len()];
        self.beginnings(behind.collect(), false, &mut found);
        (0..self.terminals).filter(|&one| found[one as usize]).collect()
    }

    fn firm_symbols(&self, brittle: &[u32]) -> Vec<bool> {
        let mut firm = vec![false; self.firsts.len()];
        for terminal in 0..self.terminals {
            firm[terminal as usize] = brittle.binary_search(&terminal).is_err();
        }
        let mut changed = true;
        while changed {
            changed = false;
            for symbol in self.terminals as usize..self.firsts.len() {
                let is_firm =
                    |&symbol: &u32| self.nullable[symbol as usize] || firm[symbol as usize];
                let mut all = self.firsts[symbol].iter();
                if !firm[symbol] && all.any(|&first| self.right(first).iter().all(is_firm)) {
                    firm[symbol] = true;
                    changed = true;
                }
            }
        }
        firm
    }

    fn right(&self, first: u32) -> &[u32] {
        let rest = &self.symbol[first as usize..];
        let end = rest.iter().position(|&symbol| symbol == END);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Whether all that a rule can begin with, but for fragile terminals, is what it can begin
    /// with firmly: for every rule that stands behind something else.
    fn begins_firmly(&self, fragile: &[u32]) -> bool {
        let mut behind: FxHashSet<u32> = FxHashSet::from_iter([self.firsts.len() as u32 - 1]);
        for firsts in &self.firsts {
            for right in firsts.iter().map(|&first| self.right(first)) {
                let others = right.iter().skip(1).filter(|&&symbol| symbol >= self.terminals);
                behind.extend(others);
            }
        }
        if behind.len().saturating_mul(self.symbol.len()) > WORK {
            return false;
        }
        let mut firm = vec![false; self.firsts.len()];
        let mut all = firm.clone();
        behind.into_iter().all(|symbol| {
            self.beginnings(vec![symbol], true, &mut firm);
            self.beginnings(vec![symbol], false, &mut all);
            let mut beginnings = (0..).zip(all.iter().zip(&firm));
            beginnings.all(|(one, (&begins, &firm))| {
                !begins || firm || fragile.binary_search(&one).is_ok()
            })
        })
    }

    /// Symbols that what some symbols derive can begin with, these among them.
    fn beginnings(&self, mut open: Vec<u32>, firmly: bool, found: &mut [bool]) {
        found.fill(false);
        open.iter().for_each(|&symbol| found[symbol as usize] = true);
        while let Some(symbol) = open.pop() {
            for &first in &self.firsts[symbol as usize] {
                for (at, &next) in self.right(first).iter().enumerate() {
                    let follows = self.firm[first as usize + at + 1];
                    if (follows || !firmly)
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
    pub(crate) fn has_fragile(&self) -> bool {
        !self.firm.is_empty()
    }

    /// Whether a state is not sound.
    pub(crate) fn is_fragile(&self, state: u32) -> bool {
        if self.firm.is_empty() {
            return false;
        }
        let goes_on = |place: usize| self.symbol[place] < self.terminals;
        !self.places(state).any(|place| self.firm[place])
            || self.places(state).any(|place| !self.firm[place] && !goes_on(place))
    }
}
