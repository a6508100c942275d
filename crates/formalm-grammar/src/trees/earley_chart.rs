//! All derivations of a text, packed: items by place, and how they came about.
//!
//! Earley's algorithm (1970). An item is a place in a production and where the production began.
//! Ways to an item are kept as links, and what a symbol derives between two places is one node, so
//! that the chart is the packed forest of all trees. What comes next tells which productions are
//! worth beginning and ending; that makes lists that recur on the right linear.

use std::collections::hash_map::Entry;

use formalm_automata::Error;
use rustc_hash::FxHashMap;

use super::earley_productions::{END, Productions, Steps};
use super::tokenize::{Input, Lexeme};

pub(super) const NONE: u32 = u32::MAX;

/// A production read up to a place.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) place: u32,
    origin: u32,
    /// Where it was read up to.
    pub(super) at: u32,
    /// First of its links; [`NONE`] at the beginning of a production.
    pub(super) link: u32,
}

/// What was read last on the way to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Node(u32),
    Lexeme(u32),
}

/// One way to an item.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) before: u32,
    pub(super) child: Child,
    pub(super) next: u32,
}

/// All that a symbol derives between two places.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) symbol: u32,
    /// Items at the ends of productions.
    pub(super) items: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Chart<'a> {
    pub(super) productions: &'a Productions,
    pub(super) items: Vec<Item>,
    pub(super) links: Vec<Link>,
    pub(super) nodes: Vec<Node>,
    pub(super) lexemes: Vec<Lexeme>,
    /// Items of each place.
    sets: Vec<Set>,
    /// Items of each place that wait for a symbol, sorted.
    waiting: Vec<Box<[(u32, u32)]>>,
    root: Option<u32>,
}

#[derive(Debug, Default)]
struct Set {
    items: Vec<u32>,
    index: FxHashMap<(u32, u32), u32>,
}

/// What is known at the place being read.
#[derive(Default)]
struct Here {
    nodes: FxHashMap<(u32, u32), u32>,
    waiting: FxHashMap<u32, Vec<u32>>,
    scanned: FxHashMap<u32, Vec<(u32, usize)>>,
}

impl<'a> Chart<'a> {
    pub(super) fn new(
        productions: &'a Productions,
        input: &mut impl Input,
        steps: &mut Steps<'_, '_>,
    ) -> Result<Chart<'a>, Error> {
        let mut chart = Chart {
            productions,
            items: Vec::new(),
            links: Vec::new(),
            nodes: Vec::new(),
            lexemes: Vec::new(),
            sets: Vec::new(),
            waiting: Vec::new(),
            root: None,
        };
        chart.sets.resize_with(input.len() + 1, Set::default);
        let goal = productions.goal;
        for &first in &productions.firsts[goal as usize] {
            chart.add(0, first, 0, None, steps)?;
        }
        for at in 0..=input.len() {
            chart.read(at, input, steps)?;
        }
        Ok(chart)
    }

    /// The node of the whole text.
    pub(super) fn root(&self) -> Option<u32> {
        self.root
    }

    /// The ways to an item.
    pub(super) fn links(&self, item: u32) -> impl Iterator<Item = &Link> + '_ {
        let mut at = self.items[item as usize].link;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            at = link.next;
            Some(link)
        })
    }

    fn add(
        &mut self,
        at: usize,
        place: u32,
        origin: u32,
        came: Option<(u32, Child)>,
        steps: &mut Steps<'_, '_>,
    ) -> Result<(), Error> {
        steps.spend(1)?;
        let set = &mut self.sets[at];
        let new = self.items.len() as u32;
        let item = *set.index.entry((place, origin)).or_insert(new);
        if item == new {
            set.items.push(new);
            self.items.push(Item { place, origin, at: at as u32, link: NONE });
        }
        if let Some((before, child)) = came {
            let next = self.items[item as usize].link;
            self.items[item as usize].link = self.links.len() as u32;
            self.links.push(Link { before, child, next });
        }
        Ok(())
    }

    fn read(
        &mut self,
        at: usize,
        input: &mut impl Input,
        steps: &mut Steps<'_, '_>,
    ) -> Result<(), Error> {
        let next = input.next(at);
        let next = next.unwrap_or(self.productions.end_kind(input.is_free()));
        let mut here = Here::default();
        let mut number = 0;
        while let Some(&item) = self.sets[at].items.get(number) {
            number += 1;
            let symbol = self.productions.symbol[self.items[item as usize].place as usize];
            if symbol == END {
                self.complete(at, item, next, &mut here, steps)?;
            } else if self.productions.is_terminal(symbol) {
                self.scan(at, item, symbol, (input, &mut here), steps)?;
            } else {
                self.predict(at, item, symbol, next, &mut here, steps)?;
            }
        }
        self.sets[at].index = FxHashMap::default();
        let all = here.waiting.into_iter();
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
        here: &mut Here,
        steps: &mut Steps<'_, '_>,
    ) -> Result<(), Error> {
        let waiting = here.waiting.entry(symbol).or_default();
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
        // What is empty here was found before.
        match here.nodes.get(&(symbol, at as u32)) {
            Some(&node) => self.advance(at, item, Child::Node(node), steps),
            None => Ok(()),
        }
    }

    fn scan(
        &mut self,
        at: usize,
        item: u32,
        symbol: u32,
        (input, here): (&mut impl Input, &mut Here),
        steps: &mut Steps<'_, '_>,
    ) -> Result<(), Error> {
        if symbol == self.productions.trail {
            if input.ends(at, steps)? {
                self.lexemes.push(Lexeme { terminal: symbol, start: at, end: at });
                let child = Child::Lexeme(self.lexemes.len() as u32 - 1);
                self.advance(at, item, child, steps)?;
            }
            return Ok(());
        }
        let found = match here.scanned.entry(symbol) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut found = Vec::new();
                for (lexeme, end) in input.lexemes(symbol, at, steps)? {
                    self.lexemes.push(lexeme);
                    found.push((self.lexemes.len() as u32 - 1, end));
                }
                place.insert(found)
            }
        };
        for &(lexeme, end) in &*found {
            self.advance(end, item, Child::Lexeme(lexeme), steps)?;
        }
        Ok(())
    }

    fn advance(
        &mut self,
        to: usize,
        item: u32,
        child: Child,
        steps: &mut Steps<'_, '_>,
    ) -> Result<(), Error> {
        let Item { place, origin, .. } = self.items[item as usize];
        self.add(to, place + 1, origin, Some((item, child)), steps)
    }

    fn complete(
        &mut self,
        at: usize,
        item: u32,
        next: u32,
        here: &mut Here,
        steps: &mut Steps<'_, '_>,
    ) -> Result<(), Error> {
        let Item { place, origin, .. } = self.items[item as usize];
        let symbol = self.productions.left[place as usize];
        let is_goal = symbol == self.productions.goal;
        if !is_goal && !self.productions.follows(symbol, next) {
            return Ok(());
        }
        // The goal may end at several places, behind which only ignored texts stand.
        let key = (symbol, origin);
        let known = if is_goal { self.root } else { here.nodes.get(&key).copied() };
        if let Some(node) = known {
            self.nodes[node as usize].items.push(item);
            return Ok(());
        }
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { symbol, items: vec![item] });
        if is_goal {
            self.root = Some(node);
            return Ok(());
        }
        here.nodes.insert(key, node);
        let waiting: Vec<u32> = if origin as usize == at {
            here.waiting.get(&symbol).cloned().unwrap_or_default()
        } else {
            let all = &self.waiting[origin as usize];
            let from = all.partition_point(|one| one.0 < symbol);
            all[from..].iter().take_while(|one| one.0 == symbol).map(|one| one.1).collect()
        };
        for item in waiting {
            self.advance(at, item, Child::Node(node), steps)?;
        }
        Ok(())
    }
}
