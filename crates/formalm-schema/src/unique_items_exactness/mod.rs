//! Decides whether `uniqueItems` is enforced exactly, and adds a note where it is not.
//!
//! The array theory enumerates the values of items, and assumes there are enough where it cannot
//! enumerate them. An array for which this assumption is provably harmless is exact. All others get
//! a note: a prefix may be allowed that no instance completes.

mod array_constraints;
mod same_instance;

use std::sync::Arc;

use formalm_automata::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, TRUE};
use crate::json::decimal::Decimal;
use crate::machine::UnboundedValues;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId, NoteEffect, SchemaNote};
use crate::solver::context::SolverContext;
use crate::solver::{
    ENOUGH_VALUES, Enumeration, FEW_VALUES, MAX_ENUMERATED, NumberInterval, NumberScale,
};

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

impl SolverContext {
    /// Returns a note for each `uniqueItems` that is not proven exact.
    pub(crate) fn unique_items_notes(&mut self) -> Result<Vec<SchemaNote>, Error> {
        let nodes = self.schema.nodes.len() as u32;
        let unique: Vec<NodeId> = (0..nodes)
            .map(NodeId)
            .filter(|&id| {
                self.schema
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
        let relations = self.node_relations(&unique)?;
        for id in unique {
            if !self.is_exact_everywhere(id, &relations)? {
                let place = format!("{}/uniqueItems", self.schema.json_pointer(id));
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
    fn is_exact_everywhere(
        &mut self,
        id: NodeId,
        NodeRelations { holders, parents, co_instances }: &NodeRelations,
    ) -> Result<bool, Error> {
        let (mut open, mut seen) = (vec![id], FxHashSet::default());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let is_exact = seen.len() <= MAX_HOLDERS
                && (self.within_step_limit(|solver| solver.is_exact_by_enumeration(id))?
                    || self.within_step_limit(|solver| solver.are_implicants_exact(id))?);
            if !is_exact {
                return Ok(false);
            }
            open.extend(holders.get(&id).into_iter().flatten());
        }
        // Nodes that constrain the same value through another parent, if they constrain arrays at
        // all.
        let mut others: Vec<NodeId> = Vec::new();
        let mut in_place: Vec<NodeId> = with_ancestors(&[id], parents).into_iter().collect();
        in_place.sort_unstable();
        for one in in_place {
            for &other in co_instances.get(&one).into_iter().flatten() {
                let says = self.expand(other, JsonType::Array)?;
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
        self.within_step_limit(|solver| solver.is_conjunction_exact(&others))
    }

    /// Runs a proof within the step limit of one search. Returns `false` if it runs out.
    fn within_step_limit(
        &mut self,
        proof: impl FnOnce(&mut SolverContext) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        self.steps = 0;
        match proof(self) {
            Err(Error::Limit { .. }) => {
                self.answers.abandon();
                Ok(false)
            }
            proven => proven,
        }
    }

    /// Computes how nodes constrain the same arrays.
    fn node_relations(&mut self, unique: &[NodeId]) -> Result<NodeRelations, Error> {
        let mut found = NodeRelations::default();
        for at in 0..self.schema.nodes.len() {
            let rules = Arc::clone(&self.schema.nodes[at].rules);
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
                for one in self.array_capable(&inside)? {
                    found.holders.entry(one).or_default().push(NodeId(at as u32));
                }
            }
        }
        let nodes = with_ancestors(unique, &found.parents);
        found.co_instances = self.same_instance_nodes(&nodes);
        Ok(found)
    }

    /// Returns `true` if enumerating values suffices for the distinct items of a node.
    fn is_exact_by_enumeration(&mut self, id: NodeId) -> Result<bool, Error> {
        let Some(constraints) = self.array_constraints(id)? else { return Ok(false) };
        if constraints.depends_on_kinds() {
            return self.can_count_kinds(&constraints);
        }
        let items = self.items_by_position(&constraints.items, constraints.max_items)?;
        self.have_enough_values(&items, constraints.min_items)
    }

    /// Returns `true` if enumerating values suffices for each implicant of a node. For disjoint
    /// alternatives this is the weaker demand.
    fn are_implicants_exact(&mut self, id: NodeId) -> Result<bool, Error> {
        let formula = self.expand(id, JsonType::Array)?;
        let is_inexact =
            self.search_implicants(formula, &mut |_, _| Ok(true), &mut |solver, literals| {
                Ok(!solver.is_implicant_exact(literals)?)
            })?;
        Ok(!is_inexact)
    }

    /// Returns `true` if enumerating values suffices for arrays of one implicant.
    fn is_implicant_exact(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        let (mut items, mut min_items, mut max_items, mut is_unique) = (Vec::new(), 1, None, false);
        let mut is_plain = true;
        for &literal in literals {
            let (form, positive) = match self.formulas.get(literal) {
                Formula::Not(inner) => (self.formulas.get(*inner), false),
                form => (form, true),
            };
            match (form, positive) {
                (Formula::Atom(FormulaAtom::Items(ranges, _)), true) => {
                    items.push(Arc::clone(ranges))
                }
                (Formula::Atom(FormulaAtom::MinItems(count)), true) => {
                    min_items = min_items.max(*count)
                }
                (Formula::Atom(FormulaAtom::MinItems(count)), false) => {
                    let few = count.saturating_sub(1);
                    max_items = Some(max_items.map_or(few, |max_items: u64| max_items.min(few)));
                }
                (Formula::Atom(FormulaAtom::UniqueItems(_)), true) => is_unique = true,
                (Formula::Atom(FormulaAtom::UniqueItems(_)), false) => {
                    (is_unique, is_plain) = (true, false)
                }
                _ => is_plain = false,
            }
        }
        if !is_unique || max_items.is_some_and(|max_items| max_items < min_items) {
            return Ok(true);
        }
        let items = self.items_by_position(&items, max_items)?;
        Ok(is_plain && self.have_enough_values(&items, min_items)?)
    }

    /// Returns `true` if items that differ only by position have enough values to be distinct,
    /// however the previous ones were chosen. Each item comes with the end of its range of
    /// positions.
    fn have_enough_values(
        &mut self,
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
            if !matches!(self.enumerate_values(items[at].0, FEW_VALUES, &[])?, Enumeration::All(_))
            {
                break;
            }
            at += 1;
        }
        // Uniform items can swap their values.
        if let [(alike, _)] = items[at..]
            && min_items <= MAX_ENUMERATED as u64
            && !matches!(self.enumerate_values(alike, MAX_ENUMERATED, &[])?, Enumeration::Unknown)
        {
            return Ok(true);
        }
        for &(item, end) in &items[at..] {
            // With as many values as there are positions so far, one is always left.
            let are_enough = match end {
                Some(end) if end <= MAX_ENUMERATED as u64 => {
                    matches!(self.enumerate_values(item, end as usize, &[])?, Enumeration::Plenty)
                }
                _ => false,
            };
            if !are_enough && !self.has_infinite_values(item)? {
                return Ok(false);
            }
        }
        Ok(min_items <= MAX_ENUMERATED as u64 || at == 0 && min_items <= ENOUGH_VALUES / 2)
    }

    /// Returns `true` if an item provably has infinitely many values.
    fn has_infinite_values(&mut self, item: FormulaId) -> Result<bool, Error> {
        for ty in [JsonType::String, JsonType::Number, JsonType::Array, JsonType::Object] {
            let formula = self.formula_for_type(item, ty)?;
            let endless = match ty {
                JsonType::Number => self.is_infinite_number(formula)?,
                JsonType::Array => self.is_infinite_array(formula, 0)?,
                _ => UnboundedValues::new(self, 0).has_unbounded_values(formula, ty)?,
            };
            if endless {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a formula provably has infinitely many arrays: of any length, or with
    /// infinitely many first items.
    pub(crate) fn is_infinite_array(&mut self, id: FormulaId, depth: usize) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        self.search_implicants(id, &mut |_, _| Ok(true), &mut |solver, literals| {
            solver.has_infinite_items(literals, depth)
        })
    }

    /// Returns `true` if one implicant provably has infinitely many arrays.
    fn has_infinite_items(&mut self, literals: &[FormulaId], depth: usize) -> Result<bool, Error> {
        let (mut first, mut alike, mut is_bounded, mut is_unique) = (Vec::new(), 0, false, false);
        for &part in literals {
            let (form, positive) = match self.formulas.get(part) {
                Formula::Not(inner) => (self.formulas.get(*inner), false),
                form => (form, true),
            };
            match form.clone() {
                Formula::Atom(FormulaAtom::Items(ranges, read)) if positive => {
                    let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                    let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                    alike = alike.max(u64::from(last));
                    first.push(self.item_formula_at(&ranges, u64::from(read)));
                }
                Formula::Atom(FormulaAtom::MinItems(count)) if positive => alike = alike.max(count),
                Formula::Atom(FormulaAtom::MinItems(_)) => is_bounded = true,
                // The first item can be any that the others are not.
                Formula::Atom(FormulaAtom::UniqueItems(_)) if positive => is_unique = true,
                _ => return Ok(false),
            }
        }
        let longer = |solver: &mut SolverContext, count: u64| {
            let more = solver.formulas.atom(FormulaAtom::MinItems(count));
            solver.array_fits(&[literals, &[more]].concat())
        };
        if !is_bounded && !is_unique && alike < MAX_ENUMERATED as u64 && longer(self, alike + 1)? {
            return Ok(true);
        }
        if !longer(self, 1)? {
            return Ok(false);
        }
        let first = self.formulas.and(first);
        for ty in [JsonType::String, JsonType::Number, JsonType::Array, JsonType::Object] {
            let item = self.formula_for_type(first, ty)?;
            if UnboundedValues::new(self, depth + 1).has_unbounded_values(item, ty)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a formula holds for arbitrarily large numbers. Multiples recur, so one
    /// beyond every bound suffices.
    pub(crate) fn is_infinite_number(&mut self, id: FormulaId) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        let id = self.drop_exclusions(id);
        let above = Decimal::new(NumberScale::new(&self.atoms(id)).above, 0);
        let beyond = NumberInterval { low: Some((above, false)), high: None };
        for within in [beyond.clone(), beyond.mirrored()] {
            if self.find_number(id, &within)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
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
