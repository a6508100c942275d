//! Lower bounds on the bytes that complete a container: its remaining required properties or items,
//! plus the value being read.

use std::sync::Arc;

use formalm_core::Error;
use rustc_hash::FxHashMap;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::NameId;
use crate::machine::NO_RECORD;
use crate::machine::completion::search::CompletionSearch;
use crate::machine::frame::{DONE, FRESH, Frame, Obligation, ObligationId, ReaderPosition};
use crate::machine::min_bytes::BoundCache;
use crate::machine::min_bytes::disjunctions::{BoundBranch, MAX_BRANCHES};
use crate::machine::min_bytes::escaped_strings::min_string_len;
use crate::machine::reader::Reader;
use crate::machine::values::Values;
use crate::schema_nodes::NodeId;
use crate::solver::context::SolverContext;

/// Least bytes of a value in any spelling.
const VALUE_BYTES: usize = 1;

/// Maximum number of search steps for the bound of one value. Chosen, not measured.
const MAX_VALUE_STEPS: u64 = 200_000;

/// Maximum number of leading items that are bounded one by one; the rest counts one byte each.
/// Chosen, not measured.
const MAX_SEPARATE_ITEMS: u64 = 1_000;

/// Maximum number of leading places at which an item that `contains` asks for is bounded by itself.
/// Chosen, not measured.
const MAX_CONTAINED_PLACES: u32 = 4;

/// Maximum number of statements of `contains` whose items are counted one beside the other. Chosen,
/// not measured.
const MAX_APART: usize = 8;

/// Required names bounded per search step. Chosen, not measured.
const NAMES_PER_STEP: usize = 8;

/// The bound of an unsatisfiable formula, longer than any input.
pub(crate) const UNREACHABLE: usize = 1 << 40;

/// Lower bounds on the bytes of the value being read, including all frames nested inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChildBound {
    pub(crate) must: usize,
    /// The bounds if the respective verdict is to hold. Verdicts without an entry have the bound
    /// `must`.
    pub(crate) verdicts: Vec<usize>,
}

/// The bounds of one container while its formulas are evaluated.
pub(crate) struct ContainerBound<'s, 'a> {
    pub(crate) search: &'s mut CompletionSearch<'a>,
    child: &'s ChildBound,
    queries: &'s [NodeId],
    known: FxHashMap<FormulaId, usize>,
}

impl CompletionSearch<'_> {
    /// Returns the bounds of a container whose child is being read. `close` is the number of bytes
    /// that end the container.
    pub(crate) fn min_bytes_after_child(
        &mut self,
        obligation: ObligationId,
        child: ChildBound,
        close: usize,
    ) -> Result<ChildBound, Error> {
        let key = (obligation, child);
        let mut least = match self.tables.bounds.container_bounds.get(&key) {
            Some(known) => known.clone(),
            None => {
                let least = self.child_bound_of(obligation, &key.1)?;
                self.tables.bounds.container_bounds.insert(key, least.clone());
                least
            }
        };
        least.must += close;
        least.verdicts.iter_mut().for_each(|least| *least += close);
        Ok(least)
    }

    /// Computes the bounds of a container with a child being read.
    fn child_bound_of(
        &mut self,
        obligation: ObligationId,
        child: &ChildBound,
    ) -> Result<ChildBound, Error> {
        let formulas = self.reader.values.residuals.get(obligation).formulas.clone();
        let queries = self.reader.values.core.base.formulas.queried_nodes(&formulas);
        let mut bound =
            ContainerBound { search: self, child, queries: &queries, known: FxHashMap::default() };
        let must = bound.of(formulas[0])?;
        let mut verdicts = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            verdicts.push(bound.of(one)?);
        }
        Ok(ChildBound { must, verdicts })
    }

    /// Returns a bound on the bytes of further properties or items, each after another one.
    pub(crate) fn min_rest_bytes(&mut self, id: FormulaId) -> Result<usize, Error> {
        if id == TRUE || id == FALSE {
            return Ok(if id == TRUE { 0 } else { UNREACHABLE });
        }
        if let Some(&known) = self.tables.bounds.rest_bytes.get(&id) {
            return Ok(known);
        }
        let child = ChildBound { must: 0, verdicts: Vec::new() };
        let mut bound = ContainerBound {
            search: self,
            child: &child,
            queries: &[],
            known: FxHashMap::default(),
        };
        let least = bound.of_formula(id)?.min(UNREACHABLE);
        self.tables.bounds.rest_bytes.insert(id, least);
        Ok(least)
    }

    /// Returns a bound on the bytes of the required properties alone, each with its comma.
    pub(crate) fn min_required_names_bytes(&mut self, id: FormulaId) -> Result<usize, Error> {
        let formulas = &mut self.reader.values.core.base.formulas;
        let mut parts = formulas.conjuncts(id);
        let is = |part: &FormulaId, wanted: fn(&FormulaAtom) -> bool| matches!(formulas.get(*part), Formula::Atom(atom) if wanted(atom));
        if !parts.iter().any(|part| is(part, |atom| matches!(atom, FormulaAtom::Required(_)))) {
            return Ok(0);
        }
        // The rules bound the values.
        parts.retain(|part| {
            is(part, |atom| matches!(atom, FormulaAtom::Required(_) | FormulaAtom::Properties(_)))
        });
        let all = formulas.and(parts);
        self.min_rest_bytes(all)
    }

    /// Returns a bound on the bytes of a value, from a search with few steps. Never fails; the
    /// bound gets weaker instead.
    pub(crate) fn min_value_bytes(&mut self, value: FormulaId) -> usize {
        if value == TRUE || value == FALSE {
            return if value == TRUE { VALUE_BYTES } else { UNREACHABLE };
        }
        if let Some(&Some(known)) = self.tables.value_bytes.get(&value) {
            return known;
        }
        self.search_value(value).0
    }

    /// Searches for a shortest value with few steps. Returns a bound on its bytes; and if it was
    /// found, its bytes and the position after it.
    fn search_value(&mut self, value: FormulaId) -> (usize, Option<(usize, ReaderPosition)>) {
        // Recursive formulas use this bound while the search runs.
        self.tables.value_bytes.insert(value, Some(1));
        let obligation = Obligation { formulas: [value].into(), queries: [].into(), goal: TRUE };
        let frame = Frame::Value {
            obligation: self.reader.values.residuals.intern(obligation),
            mark: FRESH,
            parent: DONE,
        };
        let limit = self.budget.limit;
        self.budget.limit = limit.min(self.budget.steps + MAX_VALUE_STEPS);
        let mut bound = 1;
        let position = ReaderPosition { frame, record: NO_RECORD };
        let found = self.shortest_length(position, None, &mut bound);
        self.budget.limit = limit;
        let found = match found {
            Ok(found) => {
                bound = found.map_or(UNREACHABLE, |(least, _)| least);
                found
            }
            Err(Error::Deadline { .. }) => {
                // The step that asked fails soon, and the next call searches again.
                self.tables.value_bytes.insert(value, None);
                return (bound.max(1), None);
            }
            // The search exceeded its steps.
            Err(_) => None,
        };
        let least = bound.max(1);
        self.tables.value_bytes.insert(value, Some(least));
        (least, found)
    }

    /// Returns the bytes of a shortest value and the position after it, for the position before a
    /// value of which no bound is known yet; `None` elsewhere, and where that takes many steps.
    pub(crate) fn shortest_new_value(
        &mut self,
        position: ReaderPosition,
    ) -> Option<(usize, ReaderPosition)> {
        let ReaderPosition { frame, record: NO_RECORD } = position else { return None };
        let Frame::Value { obligation, mark: FRESH, parent: DONE } = frame else { return None };
        let value = self.reader.values.residuals.only_formula(obligation)?;
        let is_known = matches!(self.tables.value_bytes.get(&value), Some(Some(_)));
        if is_known || value == TRUE || value == FALSE {
            return None;
        }
        self.search_value(value).1
    }
}

impl ContainerBound<'_, '_> {
    pub(crate) fn formulas(&self) -> &FormulaArena {
        &self.search.reader.values.core.base.formulas
    }

    /// Returns the bound of a child that satisfies a node.
    fn child_bytes(&self, node: NodeId) -> usize {
        let verdict = self.queries.iter().position(|&one| one == node);
        let least = verdict.and_then(|at| self.child.verdicts.get(at)).copied().unwrap_or(0);
        least.max(self.child.must)
    }

    /// Returns a bound on the bytes of the child and of the rest that a formula over both needs.
    fn of(&mut self, id: FormulaId) -> Result<usize, Error> {
        if !self.formulas().has_child(id) {
            return Ok((self.child.must + self.search.min_rest_bytes(id)?).min(UNREACHABLE));
        }
        if let Some(&known) = self.known.get(&id) {
            return Ok(known);
        }
        let least = self.of_formula(id)?.clamp(self.child.must, UNREACHABLE);
        self.known.insert(id, least);
        Ok(least)
    }

    /// Returns the bound of a formula: the minimum over a disjunction, or over the branches of a
    /// conjunction.
    fn of_formula(&mut self, id: FormulaId) -> Result<usize, Error> {
        match self.formulas().get(id).clone() {
            Formula::Or(list) => self.of_any(&list),
            _ => {
                let parts = self.formulas().conjuncts(id);
                let branch = BoundBranch { parts, values: Vec::new() };
                self.of_branches(branch, MAX_BRANCHES)
            }
        }
    }

    /// Returns the minimum over the disjuncts.
    fn of_any(&mut self, list: &[FormulaId]) -> Result<usize, Error> {
        let mut least = UNREACHABLE;
        for &one in list {
            least = least.min(self.of(one)?);
        }
        Ok(least)
    }

    /// Returns a bound for a conjunction. Disjunctions in it are bounded separately, and the
    /// maximum counts.
    pub(crate) fn of_branch(&mut self, branch: &BoundBranch) -> Result<usize, Error> {
        let parts = &branch.parts;
        let is_denied = |part: &FormulaId| matches!(self.formulas().get(*part), Formula::Not(inner) if parts.contains(inner));
        if parts.iter().any(is_denied) {
            return Ok(UNREACHABLE);
        }
        let (mut here, mut all) = (self.child.must, 0);
        let spelling = &self.search.reader.spelling;
        let (item_len, property_len) = (spelling.item_len(), spelling.property_len());
        let (mut named, mut members, mut least) = (0, 0, 0);
        let mut required: Arc<[NameId]> = [].into();
        let mut contained = Vec::new();
        let is_rule = |&part: &FormulaId| {
            matches!(self.formulas().get(part), Formula::Atom(FormulaAtom::Properties(_)))
        };
        let rules: Vec<FormulaId> = parts.iter().copied().filter(is_rule).collect();
        // Bytes of one property other than the required ones.
        let mut one_more = 0;
        for &part in parts {
            match self.formulas().get(part).clone() {
                Formula::Atom(FormulaAtom::Required(names)) => {
                    self.search.budget.steps_of((names.len() / NAMES_PER_STEP) as u64)?;
                    for &name in names.iter() {
                        named += property_len;
                        named += self.search.reader.values.core.base.schema.names.get(name).len();
                        named += self.min_property_bytes(&rules, &branch.values, name)?;
                    }
                    required = names;
                }
                Formula::Atom(FormulaAtom::MinProperties(count)) => members = count,
                Formula::Atom(FormulaAtom::MinItems(count)) => {
                    least = least.max(self.min_item_bytes(parts, count, item_len)?);
                }
                Formula::Atom(FormulaAtom::Contains(count, node)) => contained.push((count, node)),
                Formula::Child(node) => here = here.max(self.child_bytes(node)),
                Formula::Or(list) | Formula::ExactlyOne(list) => {
                    all = all.max(self.of_any(&list)?);
                }
                Formula::Not(inner) if !self.formulas().has_child(inner) => {
                    let needed = self.min_violation_bytes(inner)?;
                    if self.concerns_other_names(inner, branch)? {
                        least = least.max(needed);
                    } else {
                        one_more = one_more.max(needed);
                    }
                }
                Formula::False => return Ok(UNREACHABLE),
                _ => {}
            }
        }
        least = least.max(self.min_bytes_of_contained(parts, &contained, item_len));
        named += one_more;
        // Further names differ from each other, so at most one is empty.
        let separate = required.len() + usize::from(one_more > 0);
        let others = members.saturating_sub(separate as u64);
        if others > 0 {
            let names = branch.allowed_names(&mut self.search.reader.values.core)?;
            let CompletionSearch { reader, tables, budget } = &mut *self.search;
            let Reader { values: Values { core, .. }, spelling } = &mut **reader;
            let strings = &mut tables.bounds.strings;
            let texts = match names {
                TRUE => saturating_times(others - 1, 1),
                _ => strings.min_total_len(core, spelling, names, others, budget)?,
            };
            let each = saturating_times(others, property_len + VALUE_BYTES);
            named = named.saturating_add(each).saturating_add(texts);
        }
        Ok(all.max(here + least.max(named)))
    }

    /// Returns `true` if a formula concerns anything but properties that are not required.
    fn concerns_other_names(
        &mut self,
        inner: FormulaId,
        branch: &BoundBranch,
    ) -> Result<bool, Error> {
        let Formula::Atom(FormulaAtom::Properties(rules)) = self.formulas().get(inner).clone()
        else {
            return Ok(true);
        };
        for &part in &branch.parts {
            let Formula::Atom(FormulaAtom::Required(names)) = self.formulas().get(part).clone()
            else {
                continue;
            };
            for &name in names.iter() {
                if self.search.reader.values.core.languages.rules_for_name(
                    &mut self.search.reader.values.core.base,
                    &rules,
                    name,
                )? != TRUE
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns a bound on the bytes of the further items that statements of `contains` ask for.
    /// Those of statements that no item satisfies together are different items.
    fn min_bytes_of_contained(
        &mut self,
        parts: &[FormulaId],
        contained: &[(u64, NodeId)],
        item_len: usize,
    ) -> usize {
        let mut least = 0;
        let mut apart: Vec<FormulaId> = Vec::new();
        let mut sum = 0usize;
        for &(count, node) in contained {
            let value = self.search.reader.values.core.base.child(node);
            let each = item_len + self.min_contained_bytes(parts, value);
            let all = saturating_times(count, each);
            least = least.max(all);
            if contained.len() > 1
                && apart.len() < MAX_APART
                && apart.clone().into_iter().all(|other| self.excludes(other, value))
            {
                apart.push(value);
                sum = sum.saturating_add(all);
            }
        }
        least.max(sum)
    }

    /// Returns `true` if no value satisfies both formulas. `false` may be unknown.
    fn excludes(&mut self, one: FormulaId, other: FormulaId) -> bool {
        let both = self.search.reader.values.core.base.formulas.and(vec![one, other]);
        self.search.min_value_bytes(both) >= UNREACHABLE
    }

    /// Returns a bound on the bytes of a further item that `contains` asks for: it satisfies what is
    /// said of its place, too.
    fn min_contained_bytes(&mut self, parts: &[FormulaId], value: FormulaId) -> usize {
        let base = &mut self.search.reader.values.core.base;
        let mut lists = Vec::new();
        let mut last = 0;
        for &part in parts {
            if let Formula::Atom(FormulaAtom::Items(ranges, read)) = base.formulas.get(part).clone()
            {
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let edge = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                last = last.max(edge.saturating_sub(read));
                lists.push((ranges, read));
            }
        }
        if lists.is_empty() || last > MAX_CONTAINED_PLACES {
            return self.search.min_value_bytes(value);
        }
        let mut least = UNREACHABLE;
        for at in 0..=last {
            let base = &mut self.search.reader.values.core.base;
            let mut both = vec![value];
            for (ranges, read) in &lists {
                both.push(base.item_formula_at(ranges, u64::from(*read) + u64::from(at)));
            }
            let both = base.formulas.and(both);
            least = least.min(self.search.min_value_bytes(both));
        }
        least
    }

    /// Returns a bound on the bytes of `count` further items.
    fn min_item_bytes(
        &mut self,
        parts: &[FormulaId],
        count: u64,
        item_len: usize,
    ) -> Result<usize, Error> {
        let mut lists = Vec::new();
        let mut last = 0;
        let taken = parts.iter().find_map(|&part| match self.formulas().get(part) {
            Formula::Atom(
                FormulaAtom::UniqueItems(taken) | FormulaAtom::UniqueWithCurrent(taken),
            ) => Some(taken.to_vec()),
            _ => None,
        });
        for &part in parts {
            if let Formula::Atom(FormulaAtom::Items(ranges, read)) =
                self.formulas().get(part).clone()
            {
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let edge = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                last = last.max(u64::from(edge.saturating_sub(read)));
                lists.push((ranges, read));
            }
        }
        // After the last edge all items satisfy the same node.
        let separate = last.min(MAX_SEPARATE_ITEMS).min(count);
        let mut all = 0usize;
        for at in 0..=separate {
            let repeats = if at < separate { 1 } else { count - separate };
            let each = match repeats {
                0 => break,
                _ if at == MAX_SEPARATE_ITEMS => item_len + VALUE_BYTES,
                _ => {
                    let mut value = Vec::with_capacity(lists.len());
                    for (ranges, read) in &lists {
                        value.push(
                            self.search
                                .reader
                                .values
                                .core
                                .base
                                .item_formula_at(ranges, u64::from(*read) + at),
                        );
                    }
                    let value = self.search.reader.values.core.base.formulas.and(value);
                    let least = self.search.min_value_bytes(value);
                    if let Some(taken) = taken.as_ref().filter(|_| repeats > 1 || last == 0) {
                        let CompletionSearch { reader, tables, .. } = &mut *self.search;
                        let Reader { values: Values { core, .. }, spelling } = &mut **reader;
                        let BoundCache { distinct, strings, .. } = &mut tables.bounds;
                        let values = distinct.min_bytes(
                            core,
                            spelling,
                            strings,
                            value,
                            taken,
                            (repeats, least),
                        )?;
                        all = all.saturating_add(values);
                        item_len
                    } else {
                        item_len + least
                    }
                }
            };
            all = all.saturating_add(saturating_times(repeats, each));
        }
        Ok(all)
    }

    /// Returns a bound on the bytes that violate a statement about properties or items.
    fn min_violation_bytes(&mut self, inner: FormulaId) -> Result<usize, Error> {
        let Formula::Atom(atom) = self.formulas().get(inner).clone() else {
            return Ok(0);
        };
        let spelling = &self.search.reader.spelling;
        let (item_len, property_len) = (spelling.item_len(), spelling.property_len());
        Ok(match atom {
            FormulaAtom::Properties(rules) => {
                let mut least = UNREACHABLE;
                for (which, node) in rules.iter() {
                    let value = self.min_other_value_bytes(*node);
                    let name = shortest_listed_name(&self.search.reader.values.core, which);
                    least = least.min(property_len + name + value);
                }
                least
            }
            FormulaAtom::PropertyNames(names) => {
                let names = self.search.reader.values.core.base.formulas.not(names);
                property_len
                    + VALUE_BYTES
                    + min_string_len(
                        &mut self.search.reader.values.core,
                        names,
                        &mut self.search.budget,
                    )?
            }
            FormulaAtom::Items(ranges, read) => {
                let mut least = UNREACHABLE;
                for &(from, to, node) in ranges.iter().filter(|range| range.1 > read) {
                    let before = saturating_times(
                        u64::from(from.saturating_sub(read)),
                        item_len + VALUE_BYTES,
                    );
                    let value = self.min_other_value_bytes(node);
                    least = least.min(before.saturating_add(item_len + value));
                    debug_assert!(from < to);
                }
                least
            }
            FormulaAtom::UniqueItems(taken) => {
                let more = if taken.is_empty() { 2 } else { 1 };
                more * (item_len + VALUE_BYTES)
            }
            FormulaAtom::UniqueWithCurrent(taken) if taken.is_empty() => item_len + VALUE_BYTES,
            _ => 0,
        })
    }

    /// Returns a bound on the bytes of a value that violates a node.
    fn min_other_value_bytes(&mut self, node: NodeId) -> usize {
        let value = self.search.reader.values.core.base.child(node);
        let other = self.search.reader.values.core.base.formulas.not(value);
        if other == FALSE { UNREACHABLE } else { self.search.min_value_bytes(other) }
    }

    /// Returns a bound on the bytes of a property value, given the rules of its object and further
    /// formulas about values.
    fn min_property_bytes(
        &mut self,
        rules: &[FormulaId],
        more: &[(NameId, FormulaId)],
        name: NameId,
    ) -> Result<usize, Error> {
        let more = more.iter().filter(|(required, _)| *required == name);
        let mut value: Vec<FormulaId> = more.map(|&(_, value)| value).collect();
        for &part in rules {
            value.push(self.search.reader.values.residuals.property_value(
                &mut self.search.reader.values.core,
                part,
                name,
            )?);
        }
        let value = match value[..] {
            [one] => one,
            _ => self.search.reader.values.core.base.formulas.and(value),
        };
        Ok(self.search.min_value_bytes(value))
    }
}

/// Returns the length of the shortest name that a rule lists.
fn shortest_listed_name(core: &SolverContext, which: &NameSelector) -> usize {
    let names = which.names.iter().flatten();
    names.map(|&name| core.base.schema.names.get(name).len()).min().unwrap_or(0)
}

fn saturating_times(count: u64, each: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each)
}
