//! Where a machine may show a beginning that no member has: items that must be distinct.
//!
//! The theory of arrays lists the values of items, and takes those for plenty that it cannot list.
//! What is shown here to need no more than that is exact; everything else is told.

use std::sync::Arc;

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::Core;
use crate::decimal::Decimal;
use crate::formula::{Atom, F, FALSE, Form, TRUE};
use crate::node::{Effect, NodeId, Note, Rule, Type};
use crate::solve::{FEW_VALUES, Interval, Listed, MAX_LISTED, PLENTY, Scale};

const MESSAGE: &str = "whether values enough are left for distinct items is not decided";

/// Nodes that say more of the same arrays as another one.
const MAX_HOLDERS: usize = 64;

/// Nodes held in place within each other.
const MAX_NESTED: u32 = 8;

/// Lists of what must be contained; each may hold of an item or not.
const MAX_CONTAINED: usize = 3;

/// A node that so many items satisfy at least, and at most.
type Contained = (NodeId, u64, Option<u64>);

impl Core {
    /// A note for each array of distinct items that is not shown to be exact.
    pub(crate) fn undecided_items(&mut self) -> Result<Vec<Note>, Error> {
        let nodes = self.schema.nodes.len() as u32;
        let unique: Vec<NodeId> = (0..nodes)
            .map(NodeId)
            .filter(|&id| {
                self.schema.node(id).rules.iter().any(|rule| matches!(rule, Rule::Unique))
            })
            .collect();
        let mut notes = Vec::new();
        if unique.is_empty() {
            return Ok(notes);
        }
        let (mixed, holders) = (self.mixed_nodes()?, self.holders());
        for id in unique {
            if !self.is_shown_everywhere(id, &mixed, &holders)? {
                let place = format!("{}/uniqueItems", self.schema.place(id));
                let effect = Effect::DeadEnds;
                notes.push(Note { place, message: MESSAGE.to_owned(), effect });
            }
        }
        notes.sort_by(|one, other| one.place.cmp(&other.place));
        notes.dedup();
        Ok(notes)
    }

    /// Whether the items of a node are shown to be exact, and those of all nodes that say more of
    /// the same arrays.
    fn is_shown_everywhere(
        &mut self,
        id: NodeId,
        mixed: &FxHashSet<NodeId>,
        holders: &FxHashMap<NodeId, Vec<NodeId>>,
    ) -> Result<bool, Error> {
        let (mut open, mut seen) = (vec![id], FxHashSet::default());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if seen.len() > MAX_HOLDERS || mixed.contains(&id) || !self.soon_shown(id)? {
                return Ok(false);
            }
            open.extend(holders.get(&id).into_iter().flatten());
        }
        Ok(true)
    }

    /// By the node those that hold it in place with all else they say.
    fn holders(&self) -> FxHashMap<NodeId, Vec<NodeId>> {
        let mut holders: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (at, node) in self.schema.nodes.iter().enumerate() {
            for rule in node.rules.iter() {
                if let Rule::All(list) = rule {
                    for &one in list {
                        holders.entry(one).or_default().push(NodeId(at as u32));
                    }
                }
            }
        }
        holders
    }

    /// Whether the items of a node are shown to be exact within the limits of a search.
    fn soon_shown(&mut self, id: NodeId) -> Result<bool, Error> {
        self.steps = 0;
        match self.always_distinct(id) {
            Err(Error::Limit { .. }) => {
                self.answers.abandon();
                Ok(false)
            }
            shown => shown,
        }
    }

    /// Nodes of which other nodes decide whether they hold of an array, or that hold of it beside
    /// alternatives.
    fn mixed_nodes(&mut self) -> Result<FxHashSet<NodeId>, Error> {
        let mut mixed = FxHashSet::default();
        for at in 0..self.schema.nodes.len() {
            let rules = Arc::clone(&self.schema.nodes[at].rules);
            let alone = rules.iter().filter(|rule| speaks_of_arrays(rule)).count() == 1;
            for rule in rules.iter() {
                let (inside, plain): (Vec<NodeId>, bool) = match rule {
                    Rule::Any(list) | Rule::One(list) => (list.clone(), alone),
                    Rule::Not(one) => (vec![*one], false),
                    Rule::If { condition, then, other } => {
                        ([Some(*condition), *then, *other].into_iter().flatten().collect(), false)
                    }
                    _ => continue,
                };
                let mut of_arrays = Vec::with_capacity(inside.len());
                for one in inside {
                    if self.expand(one, Type::Array)? != FALSE {
                        of_arrays.push(one);
                    }
                }
                if !plain || of_arrays.len() > 1 {
                    mixed.extend(of_arrays);
                }
            }
        }
        Ok(self.spread(mixed))
    }

    /// What nodes in place hold is mixed where they are.
    fn spread(&self, mut mixed: FxHashSet<NodeId>) -> FxHashSet<NodeId> {
        let mut open: Vec<NodeId> = mixed.iter().copied().collect();
        while let Some(id) = open.pop() {
            for rule in self.schema.node(id).rules.iter() {
                if let Rule::All(list) | Rule::Any(list) | Rule::One(list) = rule {
                    open.extend(list.iter().filter(|&&one| mixed.insert(one)));
                }
            }
        }
        mixed
    }

    /// Whether listing values is enough for the distinct items of a node.
    fn always_distinct(&mut self, id: NodeId) -> Result<bool, Error> {
        let (mut least, mut ranges) = (1, None);
        let mut contained: Vec<Contained> = Vec::new();
        let Some(rules) = self.rules_in_place(id, MAX_NESTED) else { return Ok(false) };
        for rule in rules {
            match rule {
                Rule::Items(all) if ranges.is_none() => ranges = Some(all),
                Rule::MinItems(min) => least = least.max(min),
                Rule::Contains { node, min, max, .. } => contained.push((node, min, max)),
                Rule::Unique
                | Rule::Types { .. }
                | Rule::MaxItems(_)
                | Rule::MinMembers(_)
                | Rule::MaxMembers(_)
                | Rule::Members(_)
                | Rule::Required(_)
                | Rule::Names(_)
                | Rule::Text(_) => {}
                _ => return Ok(false),
            }
        }
        let ranges = ranges.unwrap_or_default();
        if !self.are_contained_counted(least, &ranges, &contained)? {
            return Ok(false);
        }
        // Of an item with few values, those are kept to after which the others can be distinct.
        let mut at = 0;
        while at < ranges.len() {
            let item = self.child(ranges[at].2);
            if !matches!(self.list_values(item, FEW_VALUES, &[])?, Listed::All(_)) {
                break;
            }
            at += 1;
        }
        // Items all alike can take each other's values.
        if let [(_, u32::MAX, alike)] = ranges[at..]
            && least <= MAX_LISTED as u64
            && self.is_counted(alike)?
        {
            return Ok(true);
        }
        for &(_, _, node) in &ranges[at..] {
            if !self.has_no_end(node)? {
                return Ok(false);
            }
        }
        Ok(least <= MAX_LISTED as u64 || at == 0 && least <= PLENTY / 2)
    }

    /// The rules of a node and of what it holds in place; none if these are too many.
    fn rules_in_place(&self, id: NodeId, levels: u32) -> Option<Vec<Rule>> {
        let levels = levels.checked_sub(1)?;
        let mut all = Vec::new();
        for rule in self.schema.node(id).rules.iter() {
            match rule {
                Rule::All(list) => {
                    for &one in list {
                        all.extend(self.rules_in_place(one, levels)?);
                    }
                }
                _ => all.push(rule.clone()),
            }
        }
        Some(all)
    }

    /// Whether it is known how many values items have that count for what must, or must not, be
    /// contained. That one item is contained which no other one is needs no count.
    fn are_contained_counted(
        &mut self,
        least: u64,
        ranges: &[(u32, u32, NodeId)],
        contained: &[Contained],
    ) -> Result<bool, Error> {
        if matches!(contained, [] | [(_, 0 | 1, None)]) {
            return Ok(true);
        }
        let all = contained.iter().fold(least, |sum, (_, min, _)| sum.saturating_add(*min));
        if all > MAX_LISTED as u64 / 2 || contained.len() > MAX_CONTAINED {
            return Ok(false);
        }
        let mut items: Vec<F> = vec![TRUE];
        items.extend(ranges.iter().map(|&(_, _, node)| self.child(node)));
        for &(node, _, max) in contained {
            let counted = self.child(node);
            let mut more = vec![counted];
            more.extend(max.map(|_| self.formulas.not(counted)));
            for at in 0..items.len() {
                for &part in &more {
                    items.push(self.formulas.both(items[at], part));
                }
            }
        }
        for item in items {
            if matches!(self.list_values(item, MAX_LISTED, &[])?, Listed::Unknown) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it is known how many values a node has, as far as it matters.
    fn is_counted(&mut self, id: NodeId) -> Result<bool, Error> {
        let item = self.child(id);
        Ok(!matches!(self.list_values(item, MAX_LISTED, &[])?, Listed::Unknown))
    }

    /// Whether a node is shown to have no end of values.
    fn has_no_end(&mut self, id: NodeId) -> Result<bool, Error> {
        for of in [Type::String, Type::Number, Type::Array, Type::Object] {
            let formula = self.expand(id, of)?;
            let endless = match of {
                Type::Number => self.is_endless_number(formula)?,
                Type::Array => self.is_endless_array(formula, 0)?,
                _ => self.is_endless(formula, of, 0)?,
            };
            if endless {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether arrays that satisfy a formula are shown to have no end: items of any number, or a
    /// first item of which there is no end.
    pub(crate) fn is_endless_array(&mut self, id: F, depth: usize) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        self.implicants(id, &mut |_, _| Ok(true), &mut |core, literals| {
            core.has_endless_items(literals, depth)
        })
    }

    fn has_endless_items(&mut self, literals: &[F], depth: usize) -> Result<bool, Error> {
        let (mut first, mut alike, mut is_bounded) = (Vec::new(), 0, false);
        for &part in literals {
            let (form, positive) = match self.formulas.get(part) {
                Form::Not(inner) => (self.formulas.get(*inner), false),
                form => (form, true),
            };
            match form.clone() {
                Form::Atom(Atom::Items(ranges, read)) if positive => {
                    let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                    let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                    alike = alike.max(u64::from(last));
                    first.push(self.ranges_at(&ranges, u64::from(read)));
                }
                Form::Atom(Atom::MoreItems(count)) if positive => alike = alike.max(count),
                Form::Atom(Atom::MoreItems(_)) => is_bounded = true,
                _ => return Ok(false),
            }
        }
        let longer = |core: &mut Core, count: u64| {
            let more = core.formulas.atom(Atom::MoreItems(count));
            core.array_fits(&[literals, &[more]].concat())
        };
        if !is_bounded && alike < MAX_LISTED as u64 && longer(self, alike + 1)? {
            return Ok(true);
        }
        if !longer(self, 1)? {
            return Ok(false);
        }
        let first = self.formulas.and(first);
        for of in [Type::String, Type::Number, Type::Array, Type::Object] {
            let item = self.of_type(first, of)?;
            if self.is_endless(item, of, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether some number beyond all bounds satisfies a formula; multiples come again and again.
    pub(crate) fn is_endless_number(&mut self, id: F) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        let id = self.without_exceptions(id);
        let above = Decimal::new(Scale::new(&self.atoms(id)).above, 0);
        let beyond = Interval { low: Some((above, false)), high: None };
        for within in [beyond.clone(), beyond.mirrored()] {
            if self.number_within(id, &within)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a rule beside another one says more of an array, its type aside.
fn speaks_of_arrays(rule: &Rule) -> bool {
    matches!(
        rule,
        Rule::Values(_)
            | Rule::Items(_)
            | Rule::Contains { .. }
            | Rule::MinItems(_)
            | Rule::MaxItems(_)
            | Rule::Unique
            | Rule::All(_)
            | Rule::Any(_)
            | Rule::One(_)
            | Rule::Not(_)
            | Rule::If { .. }
            | Rule::RestOfItems(_)
    )
}
