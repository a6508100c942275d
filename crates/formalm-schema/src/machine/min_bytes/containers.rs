//! How many bytes what a container owes has at least: members and items that are still to come, and
//! the value at hand, by the formulas that say it.

use formalm_automata::{Error, Machine};
use rustc_hash::FxHashMap;

use std::sync::Arc;

use crate::formula::{Atom, F, FALSE, Form, TRUE, Which};
use crate::machine::frame::{DONE, Frame, Owes, OwesId, Place};
use crate::machine::min_bytes::Search;
use crate::machine::min_bytes::disjunctions::{WAYS, Way};
use crate::machine::{Grown, UNRECORDED};
use crate::names::NameId;
use crate::node::NodeId;

/// Bytes of a member with a comma in front, its name aside: `,"":0`.
const MEMBER: usize = 5;

/// Bytes of an item with a comma in front.
const ITEM: usize = 2;

/// Steps taken to find how long a value is at least.
const VALUE_STEPS: u64 = 200_000;

/// Items by which each may be another kind of value.
const ITEMS: u64 = 1_000;

/// Names that are owed and looked at in the time of a step.
const NAMES_IN_A_STEP: usize = 8;

/// Values of members that are kept, by the rules that say them.
const VALUES: usize = 1 << 20;

/// More bytes than a text has.
pub(crate) const NEVER: usize = 1 << 40;

/// Bytes that the value at hand has at least, and with it all that is open above a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Child {
    pub(crate) must: usize,
    /// The same if a truth is to hold; of those that are not told nothing more is known.
    pub(crate) truths: Vec<usize>,
}

/// What is known of the child of a container while its formulas are gone through.
pub(crate) struct Costs<'a> {
    child: &'a Child,
    asked: &'a [NodeId],
    known: FxHashMap<F, usize>,
}

impl Costs<'_> {
    fn of(&self, node: NodeId) -> usize {
        let truth = self.asked.iter().position(|&one| one == node);
        let least = truth.and_then(|at| self.child.truths.get(at)).copied().unwrap_or(0);
        least.max(self.child.must)
    }
}

impl Grown {
    /// What a container needs whose child is being read, `close` bytes to end it included.
    pub(crate) fn after_least(
        &mut self,
        owes: OwesId,
        child: Child,
        close: usize,
        search: &mut Search,
    ) -> Result<Child, Error> {
        let asked = (owes, child);
        let mut least = match self.learnt.children.get(&asked) {
            Some(known) => known.clone(),
            None => {
                let least = self.with_child(owes, &asked.1, search)?;
                self.learnt.children.insert(asked, least.clone());
                least
            }
        };
        least.must += close;
        least.truths.iter_mut().for_each(|least| *least += close);
        Ok(least)
    }

    fn with_child(
        &mut self,
        owes: OwesId,
        child: &Child,
        search: &mut Search,
    ) -> Result<Child, Error> {
        let formulas = self.parts.owes.get(owes.0).formulas.clone();
        let asked = self.core.formulas.asked(&formulas);
        let mut costs = Costs { child, asked: &asked, known: FxHashMap::default() };
        let must = self.least_of(formulas[0], &mut costs, search)?;
        let mut truths = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            truths.push(self.least_of(one, &mut costs, search)?);
        }
        Ok(Child { must, truths })
    }

    /// Bytes of the child and of what comes behind it that a formula over both needs.
    fn least_of(
        &mut self,
        id: F,
        costs: &mut Costs<'_>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        if !self.core.formulas.has_child(id) {
            return Ok((costs.child.must + self.rest(id, search)?).min(NEVER));
        }
        if let Some(&known) = costs.known.get(&id) {
            return Ok(known);
        }
        let least = self.least_of_parts(id, costs, search)?.clamp(costs.child.must, NEVER);
        costs.known.insert(id, least);
        Ok(least)
    }

    fn least_of_parts(
        &mut self,
        id: F,
        costs: &mut Costs<'_>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        match self.core.formulas.get(id).clone() {
            Form::Or(list) => self.least_of_any(&list, costs, search),
            _ => {
                let parts = self.core.formulas.conjuncts(id);
                let way = Way { parts, values: Vec::new() };
                self.least_of_ways(way, WAYS, costs, search)
            }
        }
    }

    fn least_of_any(
        &mut self,
        list: &[F],
        costs: &mut Costs<'_>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        let mut least = NEVER;
        for &one in list {
            least = least.min(self.least_of(one, costs, search)?);
        }
        Ok(least)
    }

    /// Bytes that more members or items have at least, each with a comma in front.
    pub(crate) fn rest(&mut self, id: F, search: &mut Search) -> Result<usize, Error> {
        if id == TRUE || id == FALSE {
            return Ok(if id == TRUE { 0 } else { NEVER });
        }
        if let Some(&known) = self.learnt.rests.get(&id) {
            return Ok(known);
        }
        let child = Child { must: 0, truths: Vec::new() };
        let mut costs = Costs { child: &child, asked: &[], known: FxHashMap::default() };
        let least = self.least_of_parts(id, &mut costs, search)?.min(NEVER);
        self.learnt.rests.insert(id, least);
        Ok(least)
    }

    /// The same of what is to hold together, alternatives among it by themselves.
    pub(crate) fn least_of_way(
        &mut self,
        way: &Way,
        costs: &mut Costs<'_>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        let parts = &way.parts;
        let (mut here, mut all) = (costs.child.must, 0);
        let (comma, colon) = (self.comma() - 1, self.colon() - 1);
        let (mut named, mut members, mut least) = (0, 0, 0);
        let mut owed: Arc<[NameId]> = [].into();
        let is_rule =
            |&part: &F| matches!(self.core.formulas.get(part), Form::Atom(Atom::Members(_)));
        let rules: Vec<F> = parts.iter().copied().filter(is_rule).collect();
        // What one member needs that is none of these.
        let mut one_more = 0;
        for &part in parts {
            match self.core.formulas.get(part).clone() {
                Form::Atom(Atom::Owed(names)) => {
                    search.steps_of((names.len() / NAMES_IN_A_STEP) as u64)?;
                    for &name in names.iter() {
                        named += MEMBER - 1 + comma + colon;
                        named += self.core.schema.names.get(name).len();
                        named += self.least_member(&rules, &way.values, name, search)?;
                    }
                    owed = names;
                }
                Form::Atom(Atom::MoreMembers(count)) => members = count,
                Form::Atom(Atom::MoreItems(count)) => {
                    least = least.max(self.least_items(parts, count, comma, search)?);
                }
                Form::Atom(Atom::Contains(count, node)) => {
                    let value = self.core.child(node);
                    let each = ITEM - 1 + comma + self.least_value(value, search);
                    least = least.max(times(count, each));
                }
                Form::Child(node) => here = here.max(costs.of(node)),
                Form::Or(list) | Form::One(list) => {
                    all = all.max(self.least_of_any(&list, costs, search)?);
                }
                Form::Not(inner) if !self.core.formulas.has_child(inner) => {
                    let needed = self.rest_without(inner, search)?;
                    if self.speaks_of_any(inner, way)? {
                        least = least.max(needed);
                    } else {
                        one_more = one_more.max(needed);
                    }
                }
                Form::False => return Ok(NEVER),
                _ => {}
            }
        }
        named += one_more;
        // Names that are not owed have other texts, of which one at most is empty.
        let told = owed.len() + usize::from(one_more > 0);
        let others = members.saturating_sub(told as u64);
        if others > 0 {
            let names = self.names_that_may_come(parts)?;
            let texts = match names {
                TRUE => times(others - 1, 1),
                _ => self.least_texts(names, others, search)?,
            };
            let each = times(others, MEMBER + comma + colon);
            named = named.saturating_add(each).saturating_add(texts);
        }
        Ok(all.max(here + least.max(named)))
    }

    /// Whether a statement is about anything but members of other names than those that are owed.
    fn speaks_of_any(&mut self, inner: F, way: &Way) -> Result<bool, Error> {
        let Form::Atom(Atom::Members(rules)) = self.core.formulas.get(inner).clone() else {
            return Ok(true);
        };
        for &part in &way.parts {
            let Form::Atom(Atom::Owed(names)) = self.core.formulas.get(part).clone() else {
                continue;
            };
            for &name in names.iter() {
                if self.core.rules_at(&rules, name)? != TRUE {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Bytes of so many more items.
    fn least_items(
        &mut self,
        parts: &[F],
        count: u64,
        comma: usize,
        search: &mut Search,
    ) -> Result<usize, Error> {
        let mut lists = Vec::new();
        let mut last = 0;
        let taken = parts.iter().find_map(|&part| match self.core.formulas.get(part) {
            Form::Atom(Atom::Unique(taken) | Atom::UniqueWith(taken)) => Some(taken.to_vec()),
            _ => None,
        });
        for &part in parts {
            if let Form::Atom(Atom::Items(ranges, read)) = self.core.formulas.get(part).clone() {
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let edge = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                last = last.max(u64::from(edge.saturating_sub(read)));
                lists.push((ranges, read));
            }
        }
        // Behind the last edge all items are alike.
        let told = last.min(ITEMS).min(count);
        let mut all = 0usize;
        for at in 0..=told {
            let alike = if at < told { 1 } else { count - told };
            let each = match alike {
                0 => break,
                _ if at == ITEMS => ITEM + comma,
                _ => {
                    let mut value = Vec::with_capacity(lists.len());
                    for (ranges, read) in &lists {
                        value.push(self.core.ranges_at(ranges, u64::from(*read) + at));
                    }
                    let value = self.core.formulas.and(value);
                    let least = self.least_value(value, search);
                    if let Some(taken) = taken.as_ref().filter(|_| alike > 1 || last == 0) {
                        let values = self.least_distinct(value, taken, alike, least)?;
                        all = all.saturating_add(values);
                        ITEM - 1 + comma
                    } else {
                        ITEM - 1 + comma + least
                    }
                }
            };
            all = all.saturating_add(times(alike, each));
        }
        Ok(all)
    }

    /// Bytes of what makes a statement about members or items wrong.
    fn rest_without(&mut self, inner: F, search: &mut Search) -> Result<usize, Error> {
        let Form::Atom(atom) = self.core.formulas.get(inner).clone() else { return Ok(0) };
        let (comma, colon) = (self.comma() - 1, self.colon() - 1);
        Ok(match atom {
            Atom::Members(rules) => {
                let mut least = NEVER;
                for (which, node) in rules.iter() {
                    let value = self.least_other(*node, search);
                    let name = self.shortest_known(which);
                    least = least.min(MEMBER - 1 + comma + colon + name + value);
                }
                least
            }
            Atom::NamesIn(names) => {
                let names = self.core.formulas.not(names);
                MEMBER + comma + colon + self.least_text(names, search)?
            }
            Atom::Items(ranges, read) => {
                let mut least = NEVER;
                for &(from, to, node) in ranges.iter().filter(|range| range.1 > read) {
                    let before = times(u64::from(from.saturating_sub(read)), ITEM + comma);
                    let value = self.least_other(node, search);
                    least = least.min(before.saturating_add(ITEM - 1 + comma + value));
                    debug_assert!(from < to);
                }
                least
            }
            Atom::Unique(taken) => {
                let more = if taken.is_empty() { 2 } else { 1 };
                more * (ITEM + comma)
            }
            Atom::UniqueWith(taken) if taken.is_empty() => ITEM + comma,
            _ => 0,
        })
    }

    fn shortest_known(&self, which: &Which) -> usize {
        let names = which.names.iter().flatten();
        names.map(|&name| self.core.schema.names.get(name).len()).min().unwrap_or(0)
    }

    fn least_other(&mut self, node: NodeId, search: &mut Search) -> usize {
        let value = self.core.child(node);
        let other = self.core.formulas.not(value);
        if other == FALSE { NEVER } else { self.least_value(other, search) }
    }

    /// Bytes of the shortest text of which a formula holds, before it is spelled.
    pub(crate) fn least_text(&mut self, texts: F, search: &mut Search) -> Result<usize, Error> {
        let Some(language) = self.core.language(texts)? else { return Ok(NEVER) };
        let start = self.core.text(language).start();
        Ok(self.counted_text(language, start, search)?.len())
    }

    /// Bytes that the value of a member has at least, given the rules of its object and what more is
    /// asked of values.
    fn least_member(
        &mut self,
        rules: &[F],
        more: &[(NameId, F)],
        name: NameId,
        search: &mut Search,
    ) -> Result<usize, Error> {
        let more = more.iter().filter(|(owed, _)| *owed == name);
        let mut value: Vec<F> = more.map(|&(_, value)| value).collect();
        for &part in rules {
            value.push(self.value_by(part, name)?);
        }
        let value = match value[..] {
            [one] => one,
            _ => self.core.formulas.and(value),
        };
        Ok(self.least_value(value, search))
    }

    /// What rules, which are a formula, say of the value of a member.
    pub(crate) fn value_by(&mut self, rules: F, name: NameId) -> Result<F, Error> {
        if let Some(&known) = self.known.values.get(&(rules, name)) {
            return Ok(known);
        }
        let Form::Atom(Atom::Members(list)) = self.core.formulas.get(rules).clone() else {
            return Ok(TRUE);
        };
        let value = self.core.rules_at(&list, name)?;
        if self.known.values.len() < VALUES {
            self.known.values.insert((rules, name), value);
        }
        Ok(value)
    }

    /// Bytes that a value has at least that is looked for in few steps.
    pub(crate) fn least_value(&mut self, value: F, search: &mut Search) -> usize {
        if value == TRUE || value == FALSE {
            return if value == TRUE { 1 } else { NEVER };
        }
        if let Some(&Some(known)) = self.known.least.get(&value) {
            return known;
        }
        // Whoever asks for it on the way has to do with this.
        self.known.least.insert(value, Some(1));
        let owes = Owes { formulas: [value].into(), asked: [].into(), goal: TRUE };
        let frame = Frame::Value { owes: self.parts.owes(owes), blanks: 0, below: DONE };
        let limit = search.limit;
        search.limit = limit.min(search.steps + VALUE_STEPS);
        let mut bound = 1;
        let place = Place { frame, record: UNRECORDED };
        let found = self.least_length(place, None, &mut bound, search);
        search.limit = limit;
        let least = match found {
            Ok(least) => least.map_or(NEVER, |(least, _)| least),
            Err(Error::Deadline { .. }) => {
                // The step that asked fails soon, and the next call searches again.
                self.known.least.insert(value, None);
                return bound.max(1);
            }
            // Not found in time.
            Err(_) => bound,
        };
        let least = least.max(1);
        self.known.least.insert(value, Some(least));
        least
    }
}

fn times(count: u64, each: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each)
}
