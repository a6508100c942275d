//! Rewrites `oneOf` and chains of `if` as plain disjunctions where the alternatives are disjoint.
//!
//! If no value satisfies two of the alternatives, "exactly one" is the same as "at least one".
//! Likewise, if the conditions of a chain of `if` are disjoint, the chain is a disjunction of
//! (condition and consequence). The solver decides the branches of a disjunction one by one; an
//! "exactly one" or a chain needs a search over all of them. Disjointness comes from
//! [`crate::solver`]'s syntactic check, which is sound but incomplete.

use std::collections::BTreeMap;
use std::sync::Arc;

use formalm_core::{CompactMap, Error};
use rustc_hash::FxHashSet;

use crate::expansion::NodeExpansion;
use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId};
use crate::solver::AlternativeComparison;
use crate::solver::context::SolverContext;

/// Maximum number of optional properties tried as a case split when the required properties do not
/// separate the alternatives. Chosen, not measured.
const MAX_SPLIT_NAMES: usize = 3;

/// Conditions, each with the formula that follows if it holds.
struct ConditionChain {
    conditions: Vec<FormulaId>,
    consequences: Vec<FormulaId>,
    /// The formula that follows if no condition holds.
    otherwise: FormulaId,
    /// If `true`, only the first condition that holds counts (`if`/`else if`); otherwise all of
    /// them do.
    first_match_only: bool,
}

impl Default for ConditionChain {
    fn default() -> ConditionChain {
        ConditionChain {
            conditions: Vec::new(),
            consequences: Vec::new(),
            otherwise: TRUE,
            first_match_only: false,
        }
    }
}

impl ConditionChain {
    fn push(&mut self, condition: FormulaId, then: FormulaId) {
        self.conditions.push(condition);
        self.consequences.push(then);
    }

    /// Returns the formula of the chain links in `of`, without using disjointness.
    fn as_written(
        &self,
        formulas: &mut FormulaArena,
        conditions: &[FormulaId],
        of: &[usize],
        last: FormulaId,
    ) -> FormulaId {
        let mut all = last;
        for &at in of.iter().rev() {
            let fails = formulas.not(conditions[at]);
            let then = formulas.or(vec![fails, self.consequences[at]]);
            if self.first_match_only {
                all = formulas.or(vec![conditions[at], all]);
            }
            all = formulas.both(then, all);
        }
        all
    }
}

/// The rules of a node, sorted by how they are translated.
#[derive(Default)]
struct SortedRules {
    plain: Vec<FormulaId>,
    exactly_one: Vec<Vec<FormulaId>>,
    /// Single conditionals: condition and consequence.
    conditionals: Vec<(FormulaId, FormulaId)>,
    chains: Vec<ConditionChain>,
}

impl NodeExpansion<'_> {
    /// Returns the conjunction of all rules.
    pub(super) fn expand_rules(&mut self, rules: &[KeywordRule]) -> Result<FormulaId, Error> {
        let mut sorted = SortedRules::default();
        self.sort_rules(rules, &mut sorted, &mut FxHashSet::default())?;
        let context = property_context(&mut self.solver.base.formulas, &sorted.plain);
        let mut all = sorted.plain;
        for list in sorted.exactly_one {
            all.push(self.exactly_one(list, context)?);
        }
        let families = group_by_names(&self.solver.base.formulas, sorted.conditionals);
        for chain in sorted.chains.iter().chain(&families) {
            all.push(self.conditional_formula(chain, context)?);
        }
        Ok(self.solver.base.formulas.and(all))
    }

    /// Sorts rules by their kind, including those of in-place `allOf` subschemas.
    fn sort_rules(
        &mut self,
        rules: &[KeywordRule],
        sorted: &mut SortedRules,
        seen: &mut FxHashSet<NodeId>,
    ) -> Result<(), Error> {
        for rule in rules {
            match rule {
                KeywordRule::OneOf(nodes) => sorted.exactly_one.push(self.expand_all(nodes)?),
                KeywordRule::AllOf(nodes) => {
                    for &node in nodes {
                        let within = self.solver.base.schema.node(node).rules.clone();
                        let is_sorted = |rule: &KeywordRule| {
                            matches!(rule, KeywordRule::If { .. } | KeywordRule::AllOf(_))
                        };
                        if within.iter().any(is_sorted) {
                            // A node that was visited contributes nothing new.
                            if seen.insert(node) {
                                self.solver.base.count_step()?;
                                self.sort_rules(&within, sorted, seen)?;
                            }
                        } else {
                            sorted.plain.push(self.expand(node)?);
                        }
                    }
                }
                KeywordRule::If { .. } => self.sort_conditional(rule, sorted)?,
                _ => sorted.plain.push(self.expand_rule(rule, rules)?),
            }
        }
        Ok(())
    }

    /// Collects an `if` whose `else` is again an `if`, and so on, into one chain.
    fn sort_conditional(
        &mut self,
        rule: &KeywordRule,
        sorted: &mut SortedRules,
    ) -> Result<(), Error> {
        let mut chain = ConditionChain { first_match_only: true, ..ConditionChain::default() };
        let mut next = Some(rule.clone());
        while let Some(KeywordRule::If { condition, then, otherwise: other }) = next.take() {
            let condition = self.expand(condition)?;
            let then = then.map_or(Ok(TRUE), |node| self.expand(node))?;
            chain.push(condition, then);
            let Some(other) = other else { break };
            match &self.solver.base.schema.node(other).rules[..] {
                [only @ KeywordRule::If { .. }] => next = Some(only.clone()),
                _ => chain.otherwise = self.expand(other)?,
            }
        }
        match chain.conditions[..] {
            [condition] if chain.otherwise == TRUE => {
                sorted.conditionals.push((condition, chain.consequences[0]))
            }
            _ => sorted.chains.push(chain),
        }
        Ok(())
    }

    /// Returns a formula for "exactly one of `list`", given that `context` holds.
    fn exactly_one(
        &mut self,
        mut list: Vec<FormulaId>,
        context: FormulaId,
    ) -> Result<FormulaId, Error> {
        list.retain(|&one| one != FALSE);
        let build = |solver: &mut SolverContext, list: &[FormulaId], groups: &[Vec<usize>]| {
            let mut branches = Vec::with_capacity(groups.len());
            for group in groups {
                branches.push(
                    solver.base.formulas.exactly_one(group.iter().map(|&at| list[at]).collect()),
                );
            }
            Ok(solver.base.formulas.or(branches))
        };
        self.split_exclusive(&list, context, &build)
    }

    /// Returns the formula of a chain of conditionals, given that `context` holds.
    fn conditional_formula(
        &mut self,
        chain: &ConditionChain,
        context: FormulaId,
    ) -> Result<FormulaId, Error> {
        let build =
            |solver: &mut SolverContext, conditions: &[FormulaId], groups: &[Vec<usize>]| {
                let all: Vec<usize> = (0..conditions.len()).collect();
                if groups.len() < 2 {
                    return Ok(chain.as_written(
                        &mut solver.base.formulas,
                        conditions,
                        &all,
                        chain.otherwise,
                    ));
                }
                let mut branches = Vec::with_capacity(groups.len() + 1);
                for group in groups {
                    let some = group.iter().map(|&at| conditions[at]).collect();
                    let some = solver.base.formulas.or(some);
                    let follows = match group[..] {
                        [at] => chain.consequences[at],
                        // The first condition that holds, and all that hold, are in this group.
                        _ => chain.as_written(&mut solver.base.formulas, conditions, group, TRUE),
                    };
                    branches.push(solver.base.formulas.both(some, follows));
                }
                if !AlternativeComparison::conditions_cover(solver, conditions, context)? {
                    let mut fails = vec![chain.otherwise];
                    for &one in conditions {
                        fails.push(solver.base.formulas.not(one));
                    }
                    branches.push(solver.base.formulas.and(fails));
                }
                Ok(solver.base.formulas.or(branches))
            };
        self.split_exclusive(&chain.conditions, context, &build)
    }

    /// Builds a formula over alternatives from pairwise disjoint groups of them. If the
    /// alternatives are disjoint only when some optional property is present, it builds a case
    /// split on that property.
    fn split_exclusive(
        &mut self,
        list: &[FormulaId],
        context: FormulaId,
        build: &impl Fn(&mut SolverContext, &[FormulaId], &[Vec<usize>]) -> Result<FormulaId, Error>,
    ) -> Result<FormulaId, Error> {
        let whole = [(0..list.len()).collect()];
        if list.len() < 2 || self.solver.expansions.comparing_alternatives {
            return build(self.solver, list, &whole);
        }
        let groups = self.exclusive_groups(list, context)?;
        if self.ty != JsonType::Object {
            return build(self.solver, list, &groups);
        }
        let required = self.solver.base.formulas.required_names(context);
        if groups.len() > 1 {
            let list = self.solver.base.formulas.drop_required(list, &required);
            return build(self.solver, &list, &groups);
        }
        for name in self.solver.base.formulas.shared_names(list) {
            let present = self.solver.base.formulas.required(vec![name]);
            let combined = self.solver.base.formulas.both(context, present);
            let groups = self.exclusive_groups(list, combined)?;
            if groups.len() > 1 {
                let absent = self.solver.base.formulas.not(present);
                let with = self
                    .solver
                    .base
                    .formulas
                    .drop_required(list, &[&required[..], &[name]].concat());
                let with = build(self.solver, &with, &groups)?;
                let without: Vec<FormulaId> = list
                    .iter()
                    .map(|&one| self.solver.base.formulas.assume_absent(one, name))
                    .collect();
                let without = build(self.solver, &without, &whole)?;
                let with = self.solver.base.formulas.both(present, with);
                let without = self.solver.base.formulas.both(absent, without);
                return Ok(self.solver.base.formulas.or(vec![with, without]));
            }
        }
        build(self.solver, list, &whole)
    }

    /// Returns the disjoint groups of formulas that all hold together with `context`.
    fn exclusive_groups(
        &mut self,
        list: &[FormulaId],
        context: FormulaId,
    ) -> Result<Vec<Vec<usize>>, Error> {
        let combined: Vec<FormulaId> =
            list.iter().map(|&one| self.solver.base.formulas.both(one, context)).collect();
        AlternativeComparison::disjoint_groups(self.solver, &combined, self.ty)
    }
}

/// Returns the required names and property rules of the unconditional part.
fn property_context(formulas: &mut FormulaArena, plain: &[FormulaId]) -> FormulaId {
    let all = formulas.and(plain.to_vec());
    let mut kept = formulas.conjuncts(all);
    kept.retain(|&part| {
        matches!(
            formulas.get(part),
            Formula::Atom(FormulaAtom::Required(_) | FormulaAtom::Properties(_))
        )
    });
    formulas.and(kept)
}

impl FormulaArena {
    /// Returns up to [`MAX_SPLIT_NAMES`] names whose properties every alternative constrains.
    fn shared_names(&self, list: &[FormulaId]) -> Vec<NameId> {
        let mut shared: Option<Vec<NameId>> = None;
        for &one in list {
            let mut names = Vec::new();
            for part in self.conjuncts(one) {
                if let Formula::Atom(FormulaAtom::Properties(rules)) = self.get(part) {
                    names.extend(
                        rules.iter().filter_map(|(which, _)| which.names.as_ref()).flatten(),
                    );
                }
            }
            match &mut shared {
                None => shared = Some(names),
                Some(shared) => shared.retain(|name| names.contains(name)),
            }
        }
        let mut shared = shared.unwrap_or_default();
        shared.truncate(MAX_SPLIT_NAMES);
        shared
    }

    /// Returns the formulas simplified by the fact that the names in `required` are required anyway.
    fn drop_required(&mut self, list: &[FormulaId], required: &[NameId]) -> Vec<FormulaId> {
        let mut known = CompactMap::default();
        let mut with = |id: FormulaId| {
            self.replace_atoms(id, &mut known, &|all, atom| match atom {
                FormulaAtom::Required(names) => all.required(
                    names.iter().copied().filter(|one| !required.contains(one)).collect(),
                ),
                atom => all.atom(atom),
            })
        };
        list.iter().map(|&one| with(one)).collect()
    }

    /// Returns the formula that is left if the property is absent.
    pub(crate) fn assume_absent(&mut self, id: FormulaId, name: NameId) -> FormulaId {
        self.replace_atoms(id, &mut CompactMap::default(), &|all, atom| match atom {
            FormulaAtom::Required(names) if names.contains(&name) => FALSE,
            FormulaAtom::Properties(rules) => {
                let rules = rules.iter().filter_map(|(which, node)| {
                    let which = which.without(name);
                    let is_left = which.names.as_ref().is_none_or(|names| !names.is_empty());
                    is_left.then_some((which, *node))
                });
                let rules: Arc<[_]> = rules.collect();
                if rules.is_empty() { TRUE } else { all.atom(FormulaAtom::Properties(rules)) }
            }
            atom => all.atom(atom),
        })
    }

    /// Returns the formula with every atom replaced by `new`. Shared operands are replaced once.
    fn replace_atoms(
        &mut self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, FormulaId>,
        new: &impl Fn(&mut FormulaArena, FormulaAtom) -> FormulaId,
    ) -> FormulaId {
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let mut replaced = |solver: &mut FormulaArena, list: &[FormulaId]| -> Vec<FormulaId> {
            list.iter().map(|&one| solver.replace_atoms(one, known, new)).collect()
        };
        let replaced = match self.get(id).clone() {
            Formula::Atom(atom) => new(self, atom),
            Formula::Not(inner) => {
                let inner = replaced(self, &[inner])[0];
                self.not(inner)
            }
            Formula::And(list) => {
                let list = replaced(self, &list);
                self.and(list)
            }
            Formula::Or(list) => {
                let list = replaced(self, &list);
                self.or(list)
            }
            Formula::ExactlyOne(list) => {
                let list = replaced(self, &list);
                self.exactly_one(list)
            }
            Formula::False | Formula::True | Formula::Child(_) => id,
        };
        known.insert(id, replaced);
        replaced
    }
}

/// Groups conditionals that constrain the same properties into chains.
fn group_by_names(
    formulas: &FormulaArena,
    all: Vec<(FormulaId, FormulaId)>,
) -> Vec<ConditionChain> {
    let mut families: BTreeMap<Vec<NameId>, ConditionChain> = BTreeMap::new();
    for (condition, then) in all {
        let mut names = Vec::new();
        for part in formulas.conjuncts(condition) {
            match formulas.get(part) {
                Formula::Atom(FormulaAtom::Required(required)) => names.extend(required.iter()),
                Formula::Atom(FormulaAtom::Properties(rules)) => {
                    names.extend(
                        rules.iter().filter_map(|(which, _)| which.names.as_ref()).flatten(),
                    );
                }
                _ => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        families.entry(names).or_default().push(condition, then);
    }
    families.into_values().collect()
}
