//! Decides whether `uniqueItems` is enforced exactly, and adds a note where it is not.
//!
//! The array theory enumerates the values of items, and assumes there are enough where it cannot
//! enumerate them. An array for which this assumption is provably harmless is exact. All others get
//! a note: a prefix may be allowed that no instance completes.

mod array_constraints;
mod same_instance;

use std::sync::Arc;

use formalm_core::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::{FALSE, FormulaAtom, FormulaId, TRUE};
use crate::machine::UnboundedValues;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, NoteEffect, SchemaNote};
use crate::solver::context::SolverContext;
use crate::solver::{ArrayCardinality, ENOUGH_VALUES, Enumeration, FEW_VALUES, MAX_ENUMERATED};
use crate::unique_items_exactness::array_constraints::{
    ArrayConstraints, array_capable, items_by_position,
};
use crate::unique_items_exactness::same_instance::same_instance_nodes;

const MESSAGE: &str = "could not prove that enough distinct items remain";

/// Maximum number of nodes that query a node in place. More are reported as not exact. Chosen, not
/// measured.
const MAX_HOLDERS: usize = 64;

/// How nodes constrain arrays that other nodes constrain too.
#[derive(Default)]
struct NodeRelations {
    /// For each node those that query it in place and can hold for arrays.
    holders: FxHashMap<NodeId, Vec<NodeId>>,
    /// For each node those that apply or query it in place.
    parents: FxHashMap<NodeId, Vec<NodeId>>,
    /// For each node others that may constrain the same value through another parent.
    co_instances: FxHashMap<NodeId, Vec<NodeId>>,
}

/// A proof that `uniqueItems` is enforced exactly.
pub(crate) struct UniqueItemsProof<'a> {
    solver: &'a mut SolverContext,
    relations: NodeRelations,
}

impl UniqueItemsProof<'_> {
    /// Returns a note for each `uniqueItems` that is not proven exact.
    pub(crate) fn notes(solver: &mut SolverContext) -> Result<Vec<SchemaNote>, Error> {
        let nodes = solver.base.schema.nodes.len() as u32;
        let unique: Vec<NodeId> = (0..nodes)
            .map(NodeId)
            .filter(|&id| {
                solver
                    .base
                    .schema
                    .node(id)
                    .rules
                    .iter()
                    .any(|rule| matches!(rule, KeywordRule::UniqueItems))
            })
            .collect();
        let mut notes = Vec::new();
        if unique.is_empty() {
            return Ok(notes);
        }
        let relations = NodeRelations::new(solver, &unique)?;
        let mut proof = UniqueItemsProof { solver, relations };
        for id in unique {
            if !proof.is_exact_everywhere(id)? {
                let place = format!("{}/uniqueItems", proof.solver.base.schema.json_pointer(id));
                let effect = NoteEffect::DeadEnds;
                notes.push(SchemaNote { place, message: MESSAGE.to_owned(), effect });
            }
        }
        notes.sort_by(|one, other| one.place.cmp(&other.place));
        notes.dedup();
        Ok(notes)
    }

    /// Returns `true` if the node is proven exact, in every combination with nodes that constrain
    /// the same arrays.
    fn is_exact_everywhere(&mut self, id: NodeId) -> Result<bool, Error> {
        let (mut open, mut seen) = (vec![id], FxHashSet::default());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let is_exact = seen.len() <= MAX_HOLDERS
                && (within_step_limit(self.solver, |solver| is_exact_by_enumeration(solver, id))?
                    || within_step_limit(self.solver, |solver| are_implicants_exact(solver, id))?);
            if !is_exact {
                return Ok(false);
            }
            open.extend(self.relations.holders.get(&id).into_iter().flatten());
        }
        // Nodes that constrain the same value through another parent, if they constrain arrays at
        // all.
        let mut others: Vec<NodeId> = Vec::new();
        let mut in_place: Vec<NodeId> =
            with_ancestors(&[id], &self.relations.parents).into_iter().collect();
        in_place.sort_unstable();
        for one in in_place {
            for &other in self.relations.co_instances.get(&one).into_iter().flatten() {
                let says = self.solver.expand(other, JsonType::Array)?;
                if says != TRUE && says != FALSE && !seen.contains(&other) {
                    others.push(other);
                }
            }
        }
        others.sort_unstable();
        others.dedup();
        if others.is_empty() {
            return Ok(true);
        }
        others.push(id);
        within_step_limit(self.solver, |solver| {
            ArrayConstraints::are_exact_together(solver, &others)
        })
    }
}

impl NodeRelations {
    /// Computes how nodes constrain the same arrays.
    fn new(solver: &mut SolverContext, unique: &[NodeId]) -> Result<NodeRelations, Error> {
        let mut found = NodeRelations::default();
        for at in 0..solver.base.schema.nodes.len() {
            let rules = Arc::clone(&solver.base.schema.nodes[at].rules);
            for rule in rules.iter() {
                let inside: Vec<NodeId> = match rule {
                    KeywordRule::AllOf(list)
                    | KeywordRule::AnyOf(list)
                    | KeywordRule::OneOf(list) => list.clone(),
                    KeywordRule::Not(one) => vec![*one],
                    KeywordRule::If { condition, then, otherwise: other } => {
                        [Some(*condition), *then, *other].into_iter().flatten().collect()
                    }
                    // It constrains objects only.
                    KeywordRule::DependentSchema(_, one) => {
                        found.parents.entry(*one).or_default().push(NodeId(at as u32));
                        continue;
                    }
                    _ => continue,
                };
                for &one in &inside {
                    found.parents.entry(one).or_default().push(NodeId(at as u32));
                }
                for one in array_capable(solver, &inside)? {
                    found.holders.entry(one).or_default().push(NodeId(at as u32));
                }
            }
        }
        let nodes = with_ancestors(unique, &found.parents);
        found.co_instances = same_instance_nodes(&solver.base.schema, &nodes);
        Ok(found)
    }
}

/// Runs a proof within the step limit of one search. Returns `false` if it runs out.
fn within_step_limit(
    solver: &mut SolverContext,
    proof: impl FnOnce(&mut SolverContext) -> Result<bool, Error>,
) -> Result<bool, Error> {
    solver.base.reset_steps();
    match proof(solver) {
        Err(Error::Limit { .. }) => {
            solver.answers.abandon();
            Ok(false)
        }
        proven => proven,
    }
}

/// Returns `true` if enumerating values suffices for the distinct items of a node.
fn is_exact_by_enumeration(solver: &mut SolverContext, id: NodeId) -> Result<bool, Error> {
    let Some(constraints) = ArrayConstraints::of_node(solver, id)? else { return Ok(false) };
    if constraints.depends_on_kinds() {
        return constraints.can_count_kinds(solver);
    }
    let items = items_by_position(solver, &constraints.items, constraints.max_items)?;
    have_enough_values(solver, &items, constraints.min_items)
}

/// Returns `true` if enumerating values suffices for each implicant of a node. For disjoint
/// alternatives this is the weaker demand.
fn are_implicants_exact(solver: &mut SolverContext, id: NodeId) -> Result<bool, Error> {
    let formula = solver.expand(id, JsonType::Array)?;
    let is_inexact =
        solver.search_implicants(formula, &mut |_, _| Ok(true), &mut |solver, literals| {
            Ok(!is_implicant_exact(solver, literals)?)
        })?;
    Ok(!is_inexact)
}

/// Returns `true` if enumerating values suffices for arrays of one implicant.
fn is_implicant_exact(solver: &mut SolverContext, literals: &[FormulaId]) -> Result<bool, Error> {
    let (mut items, mut min_items, mut max_items, mut is_unique) = (Vec::new(), 1, None, false);
    let mut is_plain = true;
    for &literal in literals {
        match solver.base.formulas.literal(literal) {
            Some((FormulaAtom::Items(ranges, _), true)) => items.push(Arc::clone(ranges)),
            Some((FormulaAtom::MinItems(count), true)) => min_items = min_items.max(*count),
            Some((FormulaAtom::MinItems(count), false)) => {
                let few = count.saturating_sub(1);
                max_items = Some(max_items.map_or(few, |max_items: u64| max_items.min(few)));
            }
            Some((FormulaAtom::UniqueItems(_), positive)) => {
                is_unique = true;
                is_plain &= positive;
            }
            _ => is_plain = false,
        }
    }
    if !is_unique || max_items.is_some_and(|max_items| max_items < min_items) {
        return Ok(true);
    }
    let items = items_by_position(solver, &items, max_items)?;
    Ok(is_plain && have_enough_values(solver, &items, min_items)?)
}

/// Returns `true` if items that differ only by position have enough values to be distinct,
/// however the previous ones were chosen. Each item comes with the end of its range of
/// positions.
fn have_enough_values(
    solver: &mut SolverContext,
    items: &[(FormulaId, Option<u64>)],
    min_items: u64,
) -> Result<bool, Error> {
    if let [] | [(_, Some(0 | 1))] = items {
        return Ok(true);
    }
    // The search tries the few values of such an item one by one, and keeps those that leave
    // enough for the others.
    let mut at = 0;
    while at < items.len() {
        if !matches!(solver.enumerate_values(items[at].0, FEW_VALUES, &[])?, Enumeration::All(_)) {
            break;
        }
        at += 1;
    }
    // Uniform items can swap their values.
    if let [(alike, _)] = items[at..]
        && min_items <= MAX_ENUMERATED as u64
        && !matches!(solver.enumerate_values(alike, MAX_ENUMERATED, &[])?, Enumeration::Unknown)
    {
        return Ok(true);
    }
    for &(item, end) in &items[at..] {
        // With as many values as there are positions so far, one is always left.
        let are_enough = match end {
            Some(end) if end <= MAX_ENUMERATED as u64 => {
                matches!(solver.enumerate_values(item, end as usize, &[])?, Enumeration::Plenty)
            }
            _ => false,
        };
        if !are_enough && !has_infinite_values(solver, item)? {
            return Ok(false);
        }
    }
    Ok(min_items <= MAX_ENUMERATED as u64 || at == 0 && min_items <= ENOUGH_VALUES / 2)
}

/// Returns `true` if an item provably has infinitely many values.
fn has_infinite_values(solver: &mut SolverContext, item: FormulaId) -> Result<bool, Error> {
    for ty in [JsonType::String, JsonType::Number, JsonType::Array, JsonType::Object] {
        let formula = solver.formula_for_type(item, ty)?;
        let endless = match ty {
            JsonType::Number => solver.base.numbers(formula).has_no_bound()?,
            JsonType::Array => ArrayCardinality { solver, depth: 0 }.is_infinite(formula)?,
            _ => UnboundedValues::new(solver, 0).has_unbounded_values(formula, ty)?,
        };
        if endless {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns these nodes and all that apply or query them in place, transitively.
fn with_ancestors(nodes: &[NodeId], parents: &FxHashMap<NodeId, Vec<NodeId>>) -> FxHashSet<NodeId> {
    let mut all: FxHashSet<NodeId> = nodes.iter().copied().collect();
    let mut open = nodes.to_vec();
    while let Some(id) = open.pop() {
        open.extend(parents.get(&id).into_iter().flatten().filter(|&&one| all.insert(one)));
    }
    all
}
