//! Lower bounds on the bytes that complete a container: its remaining required properties or items,
//! plus the value being read.

use formalm_automata::{Error, Machine};
use rustc_hash::FxHashMap;

use std::sync::Arc;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::NameId;
use crate::machine::frame::{DONE, Frame, Obligation, ObligationId, ReaderPosition};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::disjunctions::{BoundBranch, MAX_BRANCHES};
use crate::machine::{LazyTables, NO_RECORD};
use crate::schema_nodes::NodeId;

/// Bytes of a property with its comma, without the characters of its name: `,"":0`.
const PROPERTY_BYTES: usize = 5;

/// Bytes of an item with its comma.
const ITEM_BYTES: usize = 2;

/// Maximum number of search steps for the bound of one value. Chosen, not measured.
const MAX_VALUE_STEPS: u64 = 200_000;

/// Maximum number of leading items that are bounded one by one; the rest counts one byte each.
/// Chosen, not measured.
const MAX_SEPARATE_ITEMS: u64 = 1_000;

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

/// The bounds of a child while the formulas of its container are evaluated.
pub(crate) struct ChildCosts<'a> {
    child: &'a ChildBound,
    queries: &'a [NodeId],
    known: FxHashMap<FormulaId, usize>,
}

impl ChildCosts<'_> {
    /// Returns the bound of a child that satisfies a node.
    fn of(&self, node: NodeId) -> usize {
        let verdict = self.queries.iter().position(|&one| one == node);
        let least = verdict.and_then(|at| self.child.verdicts.get(at)).copied().unwrap_or(0);
        least.max(self.child.must)
    }
}

impl LazyTables {
    /// Returns the bounds of a container whose child is being read. `close` is the number of bytes
    /// that end the container.
    pub(crate) fn min_bytes_after_child(
        &mut self,
        obligation: ObligationId,
        child: ChildBound,
        close: usize,
        budget: &mut SearchBudget,
    ) -> Result<ChildBound, Error> {
        let key = (obligation, child);
        let mut least = match self.bound_cache.container_bounds.get(&key) {
            Some(known) => known.clone(),
            None => {
                let least = self.child_bound_of(obligation, &key.1, budget)?;
                self.bound_cache.container_bounds.insert(key, least.clone());
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
        budget: &mut SearchBudget,
    ) -> Result<ChildBound, Error> {
        let formulas = self.reader.residuals.get(obligation).formulas.clone();
        let queries = self.reader.core.formulas.queried_nodes(&formulas);
        let mut costs = ChildCosts { child, queries: &queries, known: FxHashMap::default() };
        let must = self.min_bytes_with_child(formulas[0], &mut costs, budget)?;
        let mut verdicts = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            verdicts.push(self.min_bytes_with_child(one, &mut costs, budget)?);
        }
        Ok(ChildBound { must, verdicts })
    }

    /// Returns a bound on the bytes of the child and of the rest that a formula over both needs.
    fn min_bytes_with_child(
        &mut self,
        id: FormulaId,
        costs: &mut ChildCosts<'_>,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        if !self.reader.core.formulas.has_child(id) {
            return Ok((costs.child.must + self.min_rest_bytes(id, budget)?).min(UNREACHABLE));
        }
        if let Some(&known) = costs.known.get(&id) {
            return Ok(known);
        }
        let least =
            self.min_bytes_of_formula(id, costs, budget)?.clamp(costs.child.must, UNREACHABLE);
        costs.known.insert(id, least);
        Ok(least)
    }

    /// Returns the bound of a formula: the minimum over a disjunction, or over the branches of a
    /// conjunction.
    fn min_bytes_of_formula(
        &mut self,
        id: FormulaId,
        costs: &mut ChildCosts<'_>,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        match self.reader.core.formulas.get(id).clone() {
            Formula::Or(list) => self.min_bytes_of_any(&list, costs, budget),
            _ => {
                let parts = self.reader.core.formulas.conjuncts(id);
                let branch = BoundBranch { parts, values: Vec::new() };
                self.min_bytes_of_branches(branch, MAX_BRANCHES, costs, budget)
            }
        }
    }

    /// Returns the minimum over the disjuncts.
    fn min_bytes_of_any(
        &mut self,
        list: &[FormulaId],
        costs: &mut ChildCosts<'_>,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let mut least = UNREACHABLE;
        for &one in list {
            least = least.min(self.min_bytes_with_child(one, costs, budget)?);
        }
        Ok(least)
    }

    /// Returns a bound on the bytes of further properties or items, each with its comma.
    pub(crate) fn min_rest_bytes(
        &mut self,
        id: FormulaId,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        if id == TRUE || id == FALSE {
            return Ok(if id == TRUE { 0 } else { UNREACHABLE });
        }
        if let Some(&known) = self.bound_cache.rest_bytes.get(&id) {
            return Ok(known);
        }
        let child = ChildBound { must: 0, verdicts: Vec::new() };
        let mut costs = ChildCosts { child: &child, queries: &[], known: FxHashMap::default() };
        let least = self.min_bytes_of_formula(id, &mut costs, budget)?.min(UNREACHABLE);
        self.bound_cache.rest_bytes.insert(id, least);
        Ok(least)
    }

    /// Returns a bound for a conjunction. Disjunctions in it are bounded separately, and the
    /// maximum counts.
    pub(crate) fn min_bytes_of_branch(
        &mut self,
        branch: &BoundBranch,
        costs: &mut ChildCosts<'_>,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let parts = &branch.parts;
        let (mut here, mut all) = (costs.child.must, 0);
        let (comma, colon) =
            (self.reader.gaps.comma_bytes() - 1, self.reader.gaps.colon_bytes() - 1);
        let (mut named, mut members, mut least) = (0, 0, 0);
        let mut required: Arc<[NameId]> = [].into();
        let is_rule = |&part: &FormulaId| {
            matches!(self.reader.core.formulas.get(part), Formula::Atom(FormulaAtom::Properties(_)))
        };
        let rules: Vec<FormulaId> = parts.iter().copied().filter(is_rule).collect();
        // Bytes of one property other than the required ones.
        let mut one_more = 0;
        for &part in parts {
            match self.reader.core.formulas.get(part).clone() {
                Formula::Atom(FormulaAtom::Required(names)) => {
                    budget.steps_of((names.len() / NAMES_PER_STEP) as u64)?;
                    for &name in names.iter() {
                        named += PROPERTY_BYTES - 1 + comma + colon;
                        named += self.reader.core.schema.names.get(name).len();
                        named += self.min_property_bytes(&rules, &branch.values, name, budget)?;
                    }
                    required = names;
                }
                Formula::Atom(FormulaAtom::MinProperties(count)) => members = count,
                Formula::Atom(FormulaAtom::MinItems(count)) => {
                    least = least.max(self.min_item_bytes(parts, count, comma, budget)?);
                }
                Formula::Atom(FormulaAtom::Contains(count, node)) => {
                    let value = self.reader.core.child(node);
                    let each = ITEM_BYTES - 1 + comma + self.min_value_bytes(value, budget);
                    least = least.max(saturating_times(count, each));
                }
                Formula::Child(node) => here = here.max(costs.of(node)),
                Formula::Or(list) | Formula::ExactlyOne(list) => {
                    all = all.max(self.min_bytes_of_any(&list, costs, budget)?);
                }
                Formula::Not(inner) if !self.reader.core.formulas.has_child(inner) => {
                    let needed = self.min_violation_bytes(inner, budget)?;
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
        named += one_more;
        // Further names differ from each other, so at most one is empty.
        let separate = required.len() + usize::from(one_more > 0);
        let others = members.saturating_sub(separate as u64);
        if others > 0 {
            let names = self.allowed_names(parts)?;
            let texts = match names {
                TRUE => saturating_times(others - 1, 1),
                _ => self.min_strings_len(names, others, budget)?,
            };
            let each = saturating_times(others, PROPERTY_BYTES + comma + colon);
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
        let Formula::Atom(FormulaAtom::Properties(rules)) =
            self.reader.core.formulas.get(inner).clone()
        else {
            return Ok(true);
        };
        for &part in &branch.parts {
            let Formula::Atom(FormulaAtom::Required(names)) =
                self.reader.core.formulas.get(part).clone()
            else {
                continue;
            };
            for &name in names.iter() {
                if self.reader.core.rules_for_name(&rules, name)? != TRUE {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns a bound on the bytes of `count` further items.
    fn min_item_bytes(
        &mut self,
        parts: &[FormulaId],
        count: u64,
        comma: usize,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let mut lists = Vec::new();
        let mut last = 0;
        let taken = parts.iter().find_map(|&part| match self.reader.core.formulas.get(part) {
            Formula::Atom(
                FormulaAtom::UniqueItems(taken) | FormulaAtom::UniqueWithCurrent(taken),
            ) => Some(taken.to_vec()),
            _ => None,
        });
        for &part in parts {
            if let Formula::Atom(FormulaAtom::Items(ranges, read)) =
                self.reader.core.formulas.get(part).clone()
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
                _ if at == MAX_SEPARATE_ITEMS => ITEM_BYTES + comma,
                _ => {
                    let mut value = Vec::with_capacity(lists.len());
                    for (ranges, read) in &lists {
                        value.push(self.reader.core.item_formula_at(ranges, u64::from(*read) + at));
                    }
                    let value = self.reader.core.formulas.and(value);
                    let least = self.min_value_bytes(value, budget);
                    if let Some(taken) = taken.as_ref().filter(|_| repeats > 1 || last == 0) {
                        let values = self.min_distinct_bytes(value, taken, repeats, least)?;
                        all = all.saturating_add(values);
                        ITEM_BYTES - 1 + comma
                    } else {
                        ITEM_BYTES - 1 + comma + least
                    }
                }
            };
            all = all.saturating_add(saturating_times(repeats, each));
        }
        Ok(all)
    }

    /// Returns a bound on the bytes that violate a statement about properties or items.
    fn min_violation_bytes(
        &mut self,
        inner: FormulaId,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let Formula::Atom(atom) = self.reader.core.formulas.get(inner).clone() else {
            return Ok(0);
        };
        let (comma, colon) =
            (self.reader.gaps.comma_bytes() - 1, self.reader.gaps.colon_bytes() - 1);
        Ok(match atom {
            FormulaAtom::Properties(rules) => {
                let mut least = UNREACHABLE;
                for (which, node) in rules.iter() {
                    let value = self.min_other_value_bytes(*node, budget);
                    let name = self.shortest_listed_name(which);
                    least = least.min(PROPERTY_BYTES - 1 + comma + colon + name + value);
                }
                least
            }
            FormulaAtom::PropertyNames(names) => {
                let names = self.reader.core.formulas.not(names);
                PROPERTY_BYTES + comma + colon + self.min_string_len(names, budget)?
            }
            FormulaAtom::Items(ranges, read) => {
                let mut least = UNREACHABLE;
                for &(from, to, node) in ranges.iter().filter(|range| range.1 > read) {
                    let before =
                        saturating_times(u64::from(from.saturating_sub(read)), ITEM_BYTES + comma);
                    let value = self.min_other_value_bytes(node, budget);
                    least = least.min(before.saturating_add(ITEM_BYTES - 1 + comma + value));
                    debug_assert!(from < to);
                }
                least
            }
            FormulaAtom::UniqueItems(taken) => {
                let more = if taken.is_empty() { 2 } else { 1 };
                more * (ITEM_BYTES + comma)
            }
            FormulaAtom::UniqueWithCurrent(taken) if taken.is_empty() => ITEM_BYTES + comma,
            _ => 0,
        })
    }

    /// Returns the length of the shortest name that a rule lists.
    fn shortest_listed_name(&self, which: &NameSelector) -> usize {
        let names = which.names.iter().flatten();
        names.map(|&name| self.reader.core.schema.names.get(name).len()).min().unwrap_or(0)
    }

    /// Returns a bound on the bytes of a value that violates a node.
    fn min_other_value_bytes(&mut self, node: NodeId, budget: &mut SearchBudget) -> usize {
        let value = self.reader.core.child(node);
        let other = self.reader.core.formulas.not(value);
        if other == FALSE { UNREACHABLE } else { self.min_value_bytes(other, budget) }
    }

    /// Returns the length of the shortest string that satisfies a formula, before escaping.
    pub(crate) fn min_string_len(
        &mut self,
        texts: FormulaId,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let Some(language) = self.reader.core.language(texts)? else { return Ok(UNREACHABLE) };
        let start = self.reader.core.automaton(language).start();
        Ok(self.shortest_string(language, start, budget)?.len())
    }

    /// Returns a bound on the bytes of a property value, given the rules of its object and further
    /// formulas about values.
    fn min_property_bytes(
        &mut self,
        rules: &[FormulaId],
        more: &[(NameId, FormulaId)],
        name: NameId,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        let more = more.iter().filter(|(required, _)| *required == name);
        let mut value: Vec<FormulaId> = more.map(|&(_, value)| value).collect();
        for &part in rules {
            value.push(self.reader.residuals.property_value(&mut self.reader.core, part, name)?);
        }
        let value = match value[..] {
            [one] => one,
            _ => self.reader.core.formulas.and(value),
        };
        Ok(self.min_value_bytes(value, budget))
    }

    /// Returns a bound on the bytes of a value, from a search with few steps. Never fails; the
    /// bound gets weaker instead.
    pub(crate) fn min_value_bytes(&mut self, value: FormulaId, budget: &mut SearchBudget) -> usize {
        if value == TRUE || value == FALSE {
            return if value == TRUE { 1 } else { UNREACHABLE };
        }
        if let Some(&Some(known)) = self.cache.min_value_bytes.get(&value) {
            return known;
        }
        // Recursive formulas use this bound while the search runs.
        self.cache.min_value_bytes.insert(value, Some(1));
        let obligation = Obligation { formulas: [value].into(), queries: [].into(), goal: TRUE };
        let frame = Frame::Value {
            obligation: self.reader.residuals.intern(obligation),
            whitespace: 0,
            parent: DONE,
        };
        let limit = budget.limit;
        budget.limit = limit.min(budget.steps + MAX_VALUE_STEPS);
        let mut bound = 1;
        let position = ReaderPosition { frame, record: NO_RECORD };
        let found = self.shortest_length(position, None, &mut bound, budget);
        budget.limit = limit;
        let least = match found {
            Ok(least) => least.map_or(UNREACHABLE, |(least, _)| least),
            Err(Error::Deadline { .. }) => {
                // The step that asked fails soon, and the next call searches again.
                self.cache.min_value_bytes.insert(value, None);
                return bound.max(1);
            }
            // The search exceeded its steps.
            Err(_) => bound,
        };
        let least = least.max(1);
        self.cache.min_value_bytes.insert(value, Some(least));
        least
    }
}

fn saturating_times(count: u64, each: usize) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each)
}
