//! Groups of alternatives that no value satisfies together, by a cheap syntactic test.
//!
//! Mostly the alternatives all require one property that discriminates them: by a constant, a type,
//! a range, or a discriminating property of its own. The test is sound but incomplete: what it
//! misses is found by search later, at a cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use formalm_core::Error;
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, NameSelector};
use crate::json::property_names::NameId;
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::SolverTimer;
use crate::solver::context::SolverContext;
use crate::solver::numbers::enclosing_ranges::number_ranges;

/// Maximum nesting of values that are compared. Chosen, not measured.
const MAX_DEPTH: usize = 4;

/// Maximum number of leading items that are compared. Chosen, not measured.
const MAX_ITEMS: u64 = 4;

/// Budget of one comparison of alternatives, in queries about properties and strings. Chosen, not
/// measured.
const MAX_QUESTIONS: usize = 40_000;

/// A partition of the alternatives' indices; alternatives of different groups are disjoint.
type AlternativeGroups = Vec<Vec<usize>>;

/// A union-find structure.
struct UnionFind {
    parent: Vec<usize>,
}

impl UnionFind {
    fn new(count: usize) -> UnionFind {
        UnionFind { parent: (0..count).collect() }
    }

    fn find_root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    fn union(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find_root(one), self.find_root(other));
        self.parent[one.max(other)] = one.min(other);
    }

    fn union_all(&mut self, list: impl IntoIterator<Item = usize>) {
        let mut list = list.into_iter();
        let Some(first) = list.next() else { return };
        list.for_each(|one| self.union(first, one));
    }

    fn into_groups(mut self) -> AlternativeGroups {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.parent.len() {
            groups.entry(self.find_root(at)).or_default().push(at);
        }
        groups.into_values().collect()
    }
}

/// The unconditional facts about an object in a formula.
struct ObjectFacts {
    required: Vec<NameId>,
    properties: Vec<Arc<[(NameSelector, NodeId)]>>,
}

impl ObjectFacts {
    /// Returns what the conjuncts of a formula state unconditionally.
    fn new(formulas: &FormulaArena, id: FormulaId) -> ObjectFacts {
        let mut facts = ObjectFacts { required: Vec::new(), properties: Vec::new() };
        for part in formulas.conjuncts(id) {
            match formulas.get(part) {
                Formula::Atom(FormulaAtom::Required(names)) => facts.required.extend(names.iter()),
                Formula::Atom(FormulaAtom::Properties(rules)) => {
                    facts.properties.push(rules.clone())
                }
                _ => {}
            }
        }
        facts.required.sort_unstable();
        facts.required.dedup();
        facts
    }

    /// Returns what the facts demand of a property's value.
    fn property_formula(
        &self,
        SolverContext { base, languages, .. }: &mut SolverContext,
        name: NameId,
    ) -> Result<FormulaId, Error> {
        let mut all = Vec::with_capacity(self.properties.len());
        for rules in &self.properties {
            all.push(languages.rules_for_name(base, rules, name)?);
        }
        Ok(base.formulas.and(all))
    }
}

/// A comparison of alternatives, with its remaining budget.
pub(crate) struct AlternativeComparison<'a> {
    solver: &'a mut SolverContext,
    /// Remaining queries about properties and strings.
    budget: usize,
}

impl AlternativeComparison<'_> {
    /// Returns a partition of formulas over the atoms of a type: no value satisfies formulas of two
    /// groups.
    ///
    /// Nodes are expanded here without rewriting their own alternatives, so that the recursion
    /// ends.
    pub(crate) fn disjoint_groups(
        solver: &mut SolverContext,
        list: &[FormulaId],
        ty: JsonType,
    ) -> Result<AlternativeGroups, Error> {
        let _solving = SolverTimer::begin();
        if solver.expansions.comparing_alternatives {
            return Ok(vec![(0..list.len()).collect()]);
        }
        solver.expansions.comparing_alternatives = true;
        let mut comparison = AlternativeComparison { solver, budget: MAX_QUESTIONS };
        let groups = comparison.groups_of_type(list, ty, 0);
        solver.expansions.comparing_alternatives = false;
        groups
    }

    /// Returns `true` if one of the conditions certainly holds in a context: they test one required
    /// property and list all strings that the context allows there.
    pub(crate) fn conditions_cover(
        solver: &mut SolverContext,
        conditions: &[FormulaId],
        context: FormulaId,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        let context = ObjectFacts::new(&solver.base.formulas, context);
        let before = std::mem::replace(&mut solver.expansions.comparing_alternatives, true);
        let covers = find_covering(solver, conditions, &context);
        solver.expansions.comparing_alternatives = before;
        covers
    }

    /// Returns the partition of formulas over the atoms of one type.
    fn groups_of_type(
        &mut self,
        list: &[FormulaId],
        ty: JsonType,
        depth: usize,
    ) -> Result<AlternativeGroups, Error> {
        let mut joined = UnionFind::new(list.len());
        match ty {
            JsonType::Bool => {
                for truth in [true, false] {
                    let all = 0..list.len();
                    joined.union_all(all.filter(|&at| {
                        self.solver.base.formulas.holds_for_boolean(list[at], truth)
                    }));
                }
            }
            JsonType::String => self.join_strings(list, &mut joined)?,
            JsonType::Number => join_numbers(&self.solver.base.formulas, list, &mut joined),
            JsonType::Object if depth < MAX_DEPTH => {
                return self.groups_of_objects(list, depth);
            }
            JsonType::Array if depth < MAX_DEPTH => {
                return self.groups_of_arrays(list, depth);
            }
            _ => joined.union_all(0..list.len()),
        }
        Ok(joined.into_groups())
    }

    /// Returns the partition of formulas over the child.
    fn groups_of_values(
        &mut self,
        list: &[FormulaId],
        depth: usize,
    ) -> Result<AlternativeGroups, Error> {
        let mut joined = UnionFind::new(list.len());
        for ty in JsonType::ALL {
            let (mut typed, mut places) = (Vec::new(), Vec::new());
            for (at, &one) in list.iter().enumerate() {
                let one = self.solver.formula_for_type(one, ty)?;
                if one != FALSE {
                    typed.push(one);
                    places.push(at);
                }
            }
            for group in self.groups_of_type(&typed, ty, depth)? {
                joined.union_all(group.into_iter().map(|at| places[at]));
            }
        }
        Ok(joined.into_groups())
    }

    /// Unites formulas that may share a string.
    fn join_strings(&mut self, list: &[FormulaId], joined: &mut UnionFind) -> Result<(), Error> {
        let listed: Vec<_> = list.iter().map(|&one| self.solver.base.enum_lists(one)).collect();
        let others: Vec<usize> = (0..list.len()).filter(|&at| listed[at].is_none()).collect();
        joined.union_all(others.iter().copied());
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, lists) in listed.iter().enumerate() {
            for string in lists.iter().flatten().flat_map(|strings| strings.iter()) {
                joined.union(at, *first.entry(string).or_insert(at));
            }
        }
        let Some(&other) = others.first() else { return Ok(()) };
        for (string, at) in first {
            for &one in &others {
                self.budget = self.budget.saturating_sub(1);
                if self.budget == 0 || self.may_be_satisfied_by(list[one], string)? {
                    joined.union(at, other);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns `false` if a string certainly does not satisfy a formula. Does not build an
    /// automaton to find out.
    fn may_be_satisfied_by(&self, id: FormulaId, string: &str) -> Result<bool, Error> {
        let mut is_listed = true;
        for atom in self.solver.base.formulas.atoms(id) {
            is_listed &= matches!(atom, FormulaAtom::InLanguage(regex) if self.solver.base.schema.enum_strings.contains_key(&regex));
        }
        Ok(!is_listed || self.solver.languages.string_satisfies(&self.solver.base, id, string)?)
    }

    /// Refines the partition item by item, as far as all arrays are long enough.
    fn groups_of_arrays(
        &mut self,
        list: &[FormulaId],
        depth: usize,
    ) -> Result<AlternativeGroups, Error> {
        let mut groups: AlternativeGroups = vec![(0..list.len()).collect()];
        for place in 0..MAX_ITEMS {
            let (mut items, mut is_there) = (Vec::with_capacity(list.len()), true);
            for &one in list {
                let (mut item, mut least) = (Vec::new(), 0);
                for part in self.solver.base.formulas.conjuncts(one) {
                    match self.solver.base.formulas.get(part).clone() {
                        Formula::Atom(FormulaAtom::Items(ranges, read)) => {
                            item.push(
                                self.solver.base.item_formula_at(&ranges, u64::from(read) + place),
                            );
                        }
                        Formula::Atom(FormulaAtom::MinItems(count)) => least = least.max(count),
                        _ => {}
                    }
                }
                is_there &= least > place;
                items.push(self.solver.base.formulas.and(item));
            }
            if !is_there {
                break;
            }
            let mut finer = AlternativeGroups::new();
            for group in groups {
                let within: Vec<FormulaId> = group.iter().map(|&at| items[at]).collect();
                for part in self.groups_of_values(&within, depth + 1)? {
                    finer.push(part.into_iter().map(|at| group[at]).collect());
                }
            }
            groups = finer;
        }
        Ok(groups)
    }

    /// Refines the partition until no name discriminates any more.
    fn groups_of_objects(
        &mut self,
        list: &[FormulaId],
        depth: usize,
    ) -> Result<AlternativeGroups, Error> {
        let facts: Vec<ObjectFacts> =
            list.iter().map(|&one| ObjectFacts::new(&self.solver.base.formulas, one)).collect();
        let mut open: AlternativeGroups = vec![(0..list.len()).collect()];
        let mut groups = AlternativeGroups::new();
        while let Some(group) = open.pop() {
            match self.split_by_discriminator(&facts, &group, depth)? {
                Some(finer) => open.extend(finer),
                None => groups.push(group),
            }
        }
        Ok(groups)
    }

    /// Splits a group by the first name that discriminates it. Returns `None` if no name does.
    fn split_by_discriminator(
        &mut self,
        facts: &[ObjectFacts],
        group: &[usize],
        depth: usize,
    ) -> Result<Option<AlternativeGroups>, Error> {
        if group.len() < 2 {
            return Ok(None);
        }
        let mut counts: BTreeMap<NameId, usize> = BTreeMap::new();
        for &name in group.iter().flat_map(|&at| &facts[at].required) {
            *counts.entry(name).or_default() += 1;
        }
        for (&name, &count) in &counts {
            if self.budget < group.len() {
                return Ok(None);
            }
            self.budget -= group.len();
            let mut values = Vec::with_capacity(group.len());
            for &at in group {
                values.push(facts[at].property_formula(self.solver, name)?);
            }
            let finer = if count == group.len() {
                self.groups_of_values(&values, depth + 1)?
            } else {
                self.groups_by_presence(facts, group, name, &values)?
            };
            if finer.len() > 1 {
                let finer = finer.into_iter();
                return Ok(Some(
                    finer.map(|part| part.into_iter().map(|at| group[at]).collect()).collect(),
                ));
            }
        }
        Ok(None)
    }

    /// Partitions a group by the presence of a property, if each formula either requires or forbids
    /// it.
    fn groups_by_presence(
        &mut self,
        facts: &[ObjectFacts],
        group: &[usize],
        name: NameId,
        values: &[FormulaId],
    ) -> Result<AlternativeGroups, Error> {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (at, &one) in group.iter().enumerate() {
            if facts[one].required.binary_search(&name).is_ok() {
                with.push(at);
            } else if self.has_no_type(values[at])? {
                without.push(at);
            } else {
                return Ok(vec![(0..group.len()).collect()]);
            }
        }
        Ok(vec![with, without])
    }

    /// Returns `true` if a formula is false for every type.
    fn has_no_type(&mut self, id: FormulaId) -> Result<bool, Error> {
        for ty in JsonType::ALL {
            if self.solver.formula_for_type(id, ty)? != FALSE {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Unites formulas whose number ranges overlap.
fn join_numbers(formulas: &FormulaArena, list: &[FormulaId], joined: &mut UnionFind) {
    let mut all = Vec::new();
    for (at, &one) in list.iter().enumerate() {
        all.extend(number_ranges(formulas, one).into_iter().map(|span| (span, at)));
    }
    all.sort();
    let mut last = None;
    for (span, at) in all {
        match last.take() {
            Some((high, other)) if span.low <= high => {
                joined.union(at, other);
                last = Some((high.max(span.high), at));
            }
            _ => last = Some((span.high, at)),
        }
    }
}

/// Returns the result of [`AlternativeComparison::conditions_cover`], for the facts of the context.
fn find_covering(
    solver: &mut SolverContext,
    conditions: &[FormulaId],
    context: &ObjectFacts,
) -> Result<bool, Error> {
    let Some(&first) = conditions.first() else { return Ok(false) };
    let Formula::Atom(FormulaAtom::Properties(rules)) = solver.base.formulas.get(first).clone()
    else {
        return Ok(false);
    };
    let Some([name]) = rules.first().and_then(|(which, _)| which.names.as_deref()) else {
        return Ok(false);
    };
    let name = *name;
    if context.required.binary_search(&name).is_err() {
        return Ok(false);
    }
    let allowed = context.property_formula(solver, name)?;
    let mut strings: FxHashSet<String> = FxHashSet::default();
    for ty in JsonType::ALL {
        match (ty, solver.formula_for_type(allowed, ty)?) {
            (_, FALSE) => {}
            (JsonType::String, typed) => {
                let Some(lists) = solver.base.enum_lists(typed) else { return Ok(false) };
                strings.extend(lists.iter().flat_map(|strings| strings.iter().cloned()));
            }
            _ => return Ok(false),
        }
    }
    for &condition in conditions {
        let Formula::Atom(FormulaAtom::Properties(rules)) =
            solver.base.formulas.get(condition).clone()
        else {
            continue;
        };
        if rules.iter().any(|(which, _)| which.names.as_deref() != Some(&[name])) {
            continue;
        }
        let value = solver.languages.rules_for_name(&mut solver.base, &rules, name)?;
        let value = solver.formula_for_type(value, JsonType::String)?;
        if let Formula::Atom(FormulaAtom::InLanguage(regex)) = solver.base.formulas.get(value)
            && let Some(listed) = solver.base.schema.enum_strings.get(regex)
        {
            listed.iter().for_each(|string| {
                strings.remove(string);
            });
        }
    }
    Ok(strings.is_empty())
}
