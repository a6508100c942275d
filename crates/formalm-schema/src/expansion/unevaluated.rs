//! `unevaluatedProperties` and `unevaluatedItems` as formulas.
//!
//! A subschema that is applied in place evaluates some names or items, but only if it holds. So
//! each evaluated set comes with a condition. A property or item none of whose conditions holds
//! must satisfy the subschema of the `unevaluated…` keyword.

use formalm_core::{Error, Resource, check_limit};
use rustc_hash::FxHashSet;

use crate::expansion::NodeExpansion;
use crate::formula::{FormulaArena, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, RegexId};

/// Maximum number of patterns (or `contains`) that one such keyword distinguishes: the formula has
/// two cases for each, so at most 256. More are a limit error. Chosen, not measured.
const MAX_DISTINGUISHED: usize = 8;

/// Items that are evaluated under a condition.
#[derive(Default)]
struct EvaluatedItems {
    ranges: Vec<(FormulaId, u32, u32)>,
    contains: Vec<(FormulaId, NodeId)>,
}

/// Fails if one keyword would have to distinguish more than [`MAX_DISTINGUISHED`] conditions.
fn check_distinguished(count: usize) -> Result<(), Error> {
    check_limit(Resource::Terms, 1 << count.min(63), 1 << MAX_DISTINGUISHED)
}

impl NodeExpansion<'_> {
    /// Returns the subschemas applied in place, each with the condition under which its evaluation
    /// counts.
    fn conditional_subschemas(
        &mut self,
        rules: &[KeywordRule],
        condition: FormulaId,
    ) -> Result<Vec<(FormulaId, NodeId)>, Error> {
        let mut parts = Vec::new();
        for rule in rules {
            match rule {
                KeywordRule::AllOf(nodes) => {
                    parts.extend(nodes.iter().map(|&node| (condition, node)))
                }
                KeywordRule::AnyOf(nodes) | KeywordRule::OneOf(nodes) => {
                    for &node in nodes {
                        let holds = self.expand(node)?;
                        parts.push((self.solver.base.formulas.both(condition, holds), node));
                    }
                }
                KeywordRule::If { condition: query, then, otherwise: other } => {
                    let holds = self.expand(*query)?;
                    let fails = self.solver.base.formulas.not(holds);
                    let holds = self.solver.base.formulas.both(condition, holds);
                    parts.push((holds, *query));
                    parts.extend(then.map(|node| (holds, node)));
                    let fails = self.solver.base.formulas.both(condition, fails);
                    parts.extend(other.map(|node| (fails, node)));
                }
                KeywordRule::DependentSchema(name, node) if self.ty == JsonType::Object => {
                    let present = self.solver.base.formulas.required(vec![*name]);
                    parts.push((self.solver.base.formulas.both(condition, present), *node));
                }
                _ => {}
            }
        }
        Ok(parts)
    }

    /// Adds the name selectors that rules evaluate, each with its condition.
    fn collect_evaluated_properties(
        &mut self,
        rules: &[KeywordRule],
        condition: FormulaId,
        nested: bool,
        covered: &mut Vec<(FormulaId, NameSelector)>,
        seen: &mut FxHashSet<(FormulaId, NodeId)>,
    ) -> Result<(), Error> {
        for rule in rules {
            match rule {
                KeywordRule::Properties(list) => {
                    covered.extend(list.iter().map(|(which, _)| (condition, which.clone())));
                }
                KeywordRule::UnevaluatedProperties(_) if nested => {
                    covered.push((condition, NameSelector::every()))
                }
                _ => {}
            }
        }
        for (condition, node) in self.conditional_subschemas(rules, condition)? {
            if seen.insert((condition, node)) {
                self.solver.base.count_step()?;
                let rules = self.solver.base.schema.node(node).rules.clone();
                self.collect_evaluated_properties(&rules, condition, true, covered, seen)?;
            }
        }
        Ok(())
    }

    /// Returns the formula of `unevaluatedProperties`: a property that no valid subschema evaluates
    /// satisfies `rest`.
    pub(super) fn unevaluated_properties(
        &mut self,
        rest: NodeId,
        rules: &[KeywordRule],
    ) -> Result<FormulaId, Error> {
        let mut covered = Vec::new();
        self.collect_evaluated_properties(
            rules,
            TRUE,
            false,
            &mut covered,
            &mut FxHashSet::default(),
        )?;
        let (mut names, mut regexes): (Vec<_>, Vec<RegexId>) = (Vec::new(), Vec::new());
        for (_, which) in &covered {
            names.extend(which.names.iter().flatten());
            names.extend(&which.excluded_names);
            regexes.extend(which.matched_patterns.iter().chain(&which.unmatched_patterns));
        }
        names.sort_unstable();
        names.dedup();
        regexes.sort_unstable();
        regexes.dedup();
        check_distinguished(regexes.len())?;
        let mut all = Vec::new();
        for &name in &names {
            let mut conditions = Vec::new();
            for (condition, which) in &covered {
                if self.solver.languages.selects_name(&mut self.solver.base, which, name)? {
                    conditions.push(*condition);
                }
            }
            all.push(rule_unless(
                &mut self.solver.base.formulas,
                conditions,
                (NameSelector::only(name), rest),
            ));
        }
        for bits in 0..1usize << regexes.len() {
            let (found, missing): (Vec<_>, Vec<_>) =
                regexes.iter().enumerate().partition(|(at, _)| bits >> at & 1 != 0);
            let found: Box<[_]> = found.into_iter().map(|(_, &id)| id).collect();
            let missing: Box<[_]> = missing.into_iter().map(|(_, &id)| id).collect();
            let conditions = covered.iter().filter(|(_, which)| {
                which.names.is_none()
                    && which.matched_patterns.iter().all(|id| found.contains(id))
                    && which.unmatched_patterns.iter().all(|id| missing.contains(id))
            });
            let conditions = conditions.map(|&(condition, _)| condition).collect();
            let which = NameSelector {
                names: None,
                excluded_names: names.clone().into(),
                matched_patterns: found,
                unmatched_patterns: missing,
            };
            all.push(rule_unless(&mut self.solver.base.formulas, conditions, (which, rest)));
        }
        Ok(self.solver.base.formulas.and(all))
    }

    /// Adds the item positions that rules evaluate, each with its condition.
    fn collect_evaluated_items(
        &mut self,
        rules: &[KeywordRule],
        condition: FormulaId,
        nested: bool,
        covered: &mut EvaluatedItems,
        seen: &mut FxHashSet<(FormulaId, NodeId)>,
    ) -> Result<(), Error> {
        for rule in rules {
            match rule {
                KeywordRule::Items(list) => {
                    covered.ranges.extend(list.iter().map(|&(from, to, _)| (condition, from, to)));
                }
                KeywordRule::UnevaluatedItems(_) if nested => {
                    covered.ranges.push((condition, 0, u32::MAX))
                }
                KeywordRule::Contains { node, marks_evaluated: true, .. } => {
                    covered.contains.push((condition, *node));
                }
                _ => {}
            }
        }
        for (condition, node) in self.conditional_subschemas(rules, condition)? {
            if seen.insert((condition, node)) {
                self.solver.base.count_step()?;
                let rules = self.solver.base.schema.node(node).rules.clone();
                self.collect_evaluated_items(&rules, condition, true, covered, seen)?;
            }
        }
        Ok(())
    }

    /// Returns the formula of `unevaluatedItems`: an item that no valid subschema evaluates
    /// satisfies `rest`.
    pub(super) fn unevaluated_items(
        &mut self,
        rest: NodeId,
        rules: &[KeywordRule],
    ) -> Result<FormulaId, Error> {
        let mut covered = EvaluatedItems::default();
        self.collect_evaluated_items(rules, TRUE, false, &mut covered, &mut FxHashSet::default())?;
        check_distinguished(covered.contains.len())?;
        let mut edges = vec![0, u32::MAX];
        for &(_, from, to) in &covered.ranges {
            edges.extend([from, to]);
        }
        edges.sort_unstable();
        edges.dedup();
        let mut all = Vec::new();
        for edge in edges.windows(2) {
            let (from, to) = (edge[0], edge[1]);
            let inside = covered.ranges.iter().filter(|&&(_, low, high)| low <= from && to <= high);
            let mut branches: Vec<FormulaId> = inside.map(|&(condition, ..)| condition).collect();
            for bits in 0..1usize << covered.contains.len() {
                let chosen = (0..covered.contains.len()).filter(|at| bits >> at & 1 != 0);
                let chosen: Vec<_> = chosen.map(|at| covered.contains[at]).collect();
                let mut nodes = vec![rest];
                nodes.extend(chosen.iter().map(|&(_, node)| node));
                let node = if nodes.len() == 1 {
                    rest
                } else {
                    self.solver.base.schema.any_of_node(nodes)
                };
                let mut needs: Vec<FormulaId> =
                    chosen.iter().map(|&(condition, _)| condition).collect();
                needs.push(
                    self.solver
                        .base
                        .formulas
                        .atom(FormulaAtom::Items([(from, to, node)].into(), 0)),
                );
                branches.push(self.solver.base.formulas.and(needs));
            }
            all.push(self.solver.base.formulas.or(branches));
        }
        Ok(self.solver.base.formulas.and(all))
    }
}

/// Returns the formula that one of the conditions holds or the property rule does.
fn rule_unless(
    formulas: &mut FormulaArena,
    mut conditions: Vec<FormulaId>,
    rule: (NameSelector, NodeId),
) -> FormulaId {
    conditions.push(formulas.atom(FormulaAtom::Properties([rule].into())));
    formulas.or(conditions)
}
