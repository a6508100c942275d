//! The Earley chart of an input: all derivations, packed into a forest.
//!
//! An item is a dot position in a production and the origin of that production. The chart keeps
//! every way to reach an item as a back pointer, and one node per symbol and span; it is therefore
//! the shared packed parse forest. Lookahead decides which productions to predict and to complete,
//! which makes right-recursive lists linear.
//!
//! References: J. Earley, "An efficient context-free parsing algorithm" (1970); E. Scott,
//! "SPPF-style parsing" from Earley charts, ENTCS 203(2), 53-67 (2008).

use std::collections::hash_map::Entry;

use formalm_core::Error;
use rustc_hash::FxHashMap;

use super::earley_productions::{END, EarleyProductions, StepBudget};
use super::lexeme_sources::{Lexeme, LexemeSource};

pub(super) const NO_LINK: u32 = u32::MAX;

/// A production read up to a dot position.
#[derive(Debug)]
pub(super) struct EarleyItem {
    pub(super) position: u32,
    origin: u32,
    /// The input position it was read up to.
    pub(super) at: u32,
    /// Its first back pointer; [`NO_LINK`] at the start of a production.
    pub(super) back_pointer: u32,
}

/// The last symbol read on the way to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChartChild {
    Node(u32),
    Lexeme(u32),
}

/// One way to reach an item.
#[derive(Debug)]
pub(super) struct BackPointer {
    pub(super) before: u32,
    pub(super) child: ChartChild,
    pub(super) next: u32,
}

/// All derivations of a symbol between two positions.
#[derive(Debug)]
pub(super) struct ForestNode {
    pub(super) symbol: u32,
    /// Completed items of its productions.
    pub(super) items: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct EarleyChart<'a> {
    pub(super) productions: &'a EarleyProductions,
    pub(super) items: Vec<EarleyItem>,
    pub(super) back_pointers: Vec<BackPointer>,
    pub(super) nodes: Vec<ForestNode>,
    pub(super) lexemes: Vec<Lexeme>,
    /// Items per position.
    sets: Vec<EarleySet>,
    /// Items per position that wait for a symbol, sorted.
    waiting: Vec<Box<[(u32, u32)]>>,
    root: Option<u32>,
}

#[derive(Debug, Default)]
struct EarleySet {
    items: Vec<u32>,
    index: FxHashMap<(u32, u32), u32>,
}

/// The tables of the position being read.
#[derive(Default)]
struct CurrentPosition {
    nodes: FxHashMap<(u32, u32), u32>,
    waiting: FxHashMap<u32, Vec<u32>>,
    scanned: FxHashMap<u32, Vec<(u32, usize)>>,
}

impl<'a> EarleyChart<'a> {
    pub(super) fn new(
        productions: &'a EarleyProductions,
        source: &mut impl LexemeSource,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<EarleyChart<'a>, Error> {
        let mut chart = EarleyChart {
            productions,
            items: Vec::new(),
            back_pointers: Vec::new(),
            nodes: Vec::new(),
            lexemes: Vec::new(),
            sets: Vec::new(),
            waiting: Vec::new(),
            root: None,
        };
        chart.sets.resize_with(source.len() + 1, EarleySet::default);
        let goal = productions.goal;
        for &first in &productions.firsts[goal as usize] {
            chart.add(0, first, 0, None, steps)?;
        }
        for at in 0..=source.len() {
            chart.read(at, source, steps)?;
        }
        Ok(chart)
    }

    /// Returns the node of the whole input.
    pub(super) fn root(&self) -> Option<u32> {
        self.root
    }

    /// Returns the ways to reach an item.
    pub(super) fn back_pointers(&self, item: u32) -> impl Iterator<Item = &BackPointer> + '_ {
        let mut at = self.items[item as usize].back_pointer;
        std::iter::from_fn(move || {
            let back_pointer = self.back_pointers.get(at as usize)?;
            at = back_pointer.next;
            Some(back_pointer)
        })
    }

    fn add(
        &mut self,
        at: usize,
        position: u32,
        origin: u32,
        came_from: Option<(u32, ChartChild)>,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        steps.spend(1)?;
        let set = &mut self.sets[at];
        let new = self.items.len() as u32;
        let item = *set.index.entry((position, origin)).or_insert(new);
        if item == new {
            set.items.push(new);
            self.items.push(EarleyItem { position, origin, at: at as u32, back_pointer: NO_LINK });
        }
        if let Some((before, child)) = came_from {
            let next = self.items[item as usize].back_pointer;
            self.items[item as usize].back_pointer = self.back_pointers.len() as u32;
            self.back_pointers.push(BackPointer { before, child, next });
        }
        Ok(())
    }

    fn read(
        &mut self,
        at: usize,
        source: &mut impl LexemeSource,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        let next = source.next(at);
        let next = next.unwrap_or(self.productions.end_kind(source.is_free()));
        let mut current = CurrentPosition::default();
        let mut number = 0;
        while let Some(&item) = self.sets[at].items.get(number) {
            number += 1;
            let symbol = self.productions.symbol[self.items[item as usize].position as usize];
            if symbol == END {
                self.complete(at, item, next, &mut current, steps)?;
            } else if self.productions.is_terminal(symbol) {
                self.scan(at, item, symbol, (source, &mut current), steps)?;
            } else {
                self.predict(at, item, symbol, next, &mut current, steps)?;
            }
        }
        self.sets[at].index = FxHashMap::default();
        let all = current.waiting.into_iter();
        let mut waiting: Vec<(u32, u32)> =
            all.flat_map(|(symbol, list)| list.into_iter().map(move |one| (symbol, one))).collect();
        waiting.sort_unstable();
        self.waiting.push(waiting.into());
        Ok(())
    }

    fn predict(
        &mut self,
        at: usize,
        item: u32,
        symbol: u32,
        next: u32,
        current: &mut CurrentPosition,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        let waiting = current.waiting.entry(symbol).or_default();
        waiting.push(item);
        if waiting.len() == 1 {
            for number in 0..self.productions.firsts[symbol as usize].len() {
                let first = self.productions.firsts[symbol as usize][number];
                steps.spend(1)?;
                if self.productions.begins(first, next) {
                    self.add(at, first, at as u32, None, steps)?;
                }
            }
        }
        // A node that is empty here was completed before.
        match current.nodes.get(&(symbol, at as u32)) {
            Some(&node) => self.advance(at, item, ChartChild::Node(node), steps),
            None => Ok(()),
        }
    }

    fn scan(
        &mut self,
        at: usize,
        item: u32,
        symbol: u32,
        (source, current): (&mut impl LexemeSource, &mut CurrentPosition),
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        if symbol == self.productions.trail {
            if source.ends(at, steps)? {
                self.lexemes.push(Lexeme { terminal: symbol, start: at, end: at });
                let child = ChartChild::Lexeme(self.lexemes.len() as u32 - 1);
                self.advance(at, item, child, steps)?;
            }
            return Ok(());
        }
        let found = match current.scanned.entry(symbol) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(position) => {
                let mut found = Vec::new();
                for (lexeme, end) in source.lexemes(symbol, at, steps)? {
                    self.lexemes.push(lexeme);
                    found.push((self.lexemes.len() as u32 - 1, end));
                }
                position.insert(found)
            }
        };
        for &(lexeme, end) in &*found {
            self.advance(end, item, ChartChild::Lexeme(lexeme), steps)?;
        }
        Ok(())
    }

    fn advance(
        &mut self,
        to: usize,
        item: u32,
        child: ChartChild,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        let EarleyItem { position, origin, .. } = self.items[item as usize];
        self.add(to, position + 1, origin, Some((item, child)), steps)
    }

    fn complete(
        &mut self,
        at: usize,
        item: u32,
        next: u32,
        current: &mut CurrentPosition,
        steps: &mut StepBudget<'_, '_>,
    ) -> Result<(), Error> {
        let EarleyItem { position, origin, .. } = self.items[item as usize];
        let symbol = self.productions.left[position as usize];
        let is_goal = symbol == self.productions.goal;
        if !is_goal && !self.productions.follows(symbol, next) {
            return Ok(());
        }
        // The start production may end at several positions, followed by ignored input only.
        let key = (symbol, origin);
        let known = if is_goal { self.root } else { current.nodes.get(&key).copied() };
        if let Some(node) = known {
            self.nodes[node as usize].items.push(item);
            return Ok(());
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(ForestNode { symbol, items: vec![item] });
        if is_goal {
            self.root = Some(node);
            return Ok(());
        }
        current.nodes.insert(key, node);
        let waiting: Vec<u32> = if origin as usize == at {
            current.waiting.get(&symbol).cloned().unwrap_or_default()
        } else {
            let all = &self.waiting[origin as usize];
            let from = all.partition_point(|one| one.0 < symbol);
            all[from..].iter().take_while(|one| one.0 == symbol).map(|one| one.1).collect()
        };
        for item in waiting {
            self.advance(at, item, ChartChild::Node(node), steps)?;
        }
        Ok(())
    }
}
