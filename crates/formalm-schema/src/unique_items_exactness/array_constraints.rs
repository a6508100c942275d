//! The constraints on arrays of a node together with all of its in-place subschemas.
//!
//! If items are constrained independently of their position, then two values that satisfy the same
//! subschemas are interchangeable. An array of distinct items is therefore exact if the number of
//! values of each such *kind* is known.

use std::sync::Arc;

use formalm_core::Error;

use crate::formula::{FALSE, FormulaId, TRUE};
use crate::schema_nodes::{JsonType, KeywordRule, NodeId};
use crate::solver::context::SolverContext;
use crate::solver::{Enumeration, MAX_ENUMERATED};

/// Maximum nesting of in-place subschemas that is examined. Chosen, not measured.
const MAX_LEVELS: u32 = 8;

/// Maximum number of subschemas that distinguish kinds of items; the number of kinds is exponential
/// in it. Chosen, not measured.
const MAX_PARTS: usize = 4;

type PositionRanges = Arc<[(u32, u32, NodeId)]>;

/// The collected constraints on an array.
pub(super) struct ArrayConstraints {
    /// Minimum number of items.
    pub(super) min_items: u64,
    /// Maximum number of items, if all constraints have to hold.
    pub(super) max_items: Option<u64>,
    /// Sum of all item counts that are demanded.
    total_demanded: u64,
    pub(super) items: Vec<PositionRanges>,
    /// Subschemas of `contains` with their minimum and maximum counts.
    contains: Vec<(NodeId, u64, Option<u64>)>,
    /// Some of the constraints need not hold.
    is_optional: bool,
}

impl ArrayConstraints {
    fn new() -> ArrayConstraints {
        ArrayConstraints {
            min_items: 1,
            max_items: None,
            total_demanded: 0,
            items: vec![],
            contains: vec![],
            is_optional: false,
        }
    }

    /// Demands at least this many items.
    fn demand(&mut self, items: u64) {
        self.min_items = self.min_items.max(items);
        self.total_demanded = self.total_demanded.saturating_add(items);
    }

    /// Returns `true` if the kinds of items matter. A single `contains` with at most one item does
    /// not restrict the other items.
    pub(super) fn depends_on_kinds(&self) -> bool {
        self.is_optional
            || match self.contains[..] {
                [] => false,
                [(_, 0 | 1, None)] => !self.are_items_uniform(),
                _ => true,
            }
    }

    /// Returns `true` if the constraints on items do not depend on their position.
    fn are_items_uniform(&self) -> bool {
        self.items.iter().all(|ranges| matches!(ranges[..], [] | [(0, u32::MAX, _)]))
    }

    /// Returns the array constraints of a node; `None` if it has others than these.
    pub(super) fn of_node(
        solver: &mut SolverContext,
        id: NodeId,
    ) -> Result<Option<ArrayConstraints>, Error> {
        let mut constraints = ArrayConstraints::new();
        Ok(constraints.collect(solver, id, false, MAX_LEVELS)?.then_some(constraints))
    }

    /// Returns `true` if arrays are exact for each combination of these nodes, holding or not.
    pub(super) fn are_exact_together(
        solver: &mut SolverContext,
        nodes: &[NodeId],
    ) -> Result<bool, Error> {
        let mut constraints = ArrayConstraints::new();
        for &one in nodes {
            if !constraints.collect(solver, one, true, MAX_LEVELS)? {
                return Ok(false);
            }
        }
        constraints.can_count_kinds(solver)
    }

    /// Adds the constraints of a node. With `either`, both its truth and its falsehood may be
    /// demanded. Returns `false` if it has other self.
    fn collect(
        &mut self,
        solver: &mut SolverContext,
        id: NodeId,
        either: bool,
        levels: u32,
    ) -> Result<bool, Error> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(false) };
        self.is_optional |= either;
        let rules = Arc::clone(&solver.base.schema.node(id).rules);
        for rule in rules.iter() {
            let (inside, negates): (Vec<NodeId>, bool) = match rule {
                KeywordRule::Items(ranges) => {
                    self.items.push(Arc::clone(ranges));
                    continue;
                }
                KeywordRule::MinItems(min) => {
                    self.demand(*min);
                    continue;
                }
                KeywordRule::MaxItems(max) => {
                    if either {
                        self.demand(max.saturating_add(1));
                    }
                    self.max_items =
                        Some(self.max_items.map_or(*max, |max_items| max_items.min(*max)));
                    continue;
                }
                KeywordRule::Contains { node, min, max, .. } => {
                    self.contains.push((*node, *min, *max));
                    let max_items = max.filter(|_| either).map_or(0, |max| max.saturating_add(1));
                    self.total_demanded = self.total_demanded.saturating_add((*min).max(max_items));
                    continue;
                }
                KeywordRule::AllOf(list) | KeywordRule::AnyOf(list) => (list.clone(), false),
                KeywordRule::OneOf(list) => (list.clone(), true),
                KeywordRule::Not(one) => (vec![*one], true),
                KeywordRule::If { condition, then, otherwise: other } => {
                    ([Some(*condition), *then, *other].into_iter().flatten().collect(), true)
                }
                KeywordRule::UniqueItems
                | KeywordRule::Types { .. }
                | KeywordRule::MinProperties(_)
                | KeywordRule::MaxProperties(_)
                | KeywordRule::Properties(_)
                | KeywordRule::Required(_)
                | KeywordRule::PropertyNames(_)
                | KeywordRule::DependentRequired(..)
                | KeywordRule::DependentSchema(..)
                | KeywordRule::StringLanguage(_) => continue,
                _ => return Ok(false),
            };
            let inside = array_capable(solver, &inside)?;
            // If only one alternative can hold for arrays, it has to.
            let is_forced = match rule {
                KeywordRule::AllOf(_) => true,
                KeywordRule::AnyOf(_) | KeywordRule::OneOf(_) => inside.len() == 1,
                _ => false,
            };
            self.is_optional |= !is_forced;
            let either = either || negates && !is_forced;
            for one in inside {
                if !self.collect(solver, one, either, levels)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns `true` if items are uniform and the values of each kind can be counted.
    pub(super) fn can_count_kinds(&self, solver: &mut SolverContext) -> Result<bool, Error> {
        let mut parts = Vec::with_capacity(self.items.len() + self.contains.len());
        if !self.are_items_uniform() {
            return Ok(false);
        }
        let items = self.items.iter().flat_map(|ranges| ranges.iter());
        let same = |node| solver.base.schema.representative(node);
        parts.extend(items.map(|&(_, _, node)| (same(node), self.is_optional)));
        let bounded = |&(node, _, max): &(NodeId, u64, Option<u64>)| {
            (same(node), self.is_optional || max.is_some())
        };
        parts.extend(self.contains.iter().map(bounded));
        parts.sort_unstable();
        parts.dedup();
        if self.total_demanded > MAX_ENUMERATED as u64 / 2 || parts.len() > MAX_PARTS {
            return Ok(false);
        }
        let mut kinds: Vec<FormulaId> = vec![TRUE];
        for (node, either) in parts {
            let is_one = solver.base.child(node);
            let mut sides = vec![is_one];
            if either {
                sides.push(solver.base.formulas.not(is_one));
            }
            for at in 0..kinds.len() {
                for &side in &sides {
                    kinds.push(solver.base.formulas.both(kinds[at], side));
                }
            }
        }
        for kind in kinds {
            if matches!(solver.enumerate_values(kind, MAX_ENUMERATED, &[])?, Enumeration::Unknown) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns for each range of positions the formula of its items and the end of the range.
/// Ranges after the last possible item are left out.
pub(super) fn items_by_position(
    solver: &mut SolverContext,
    items: &[PositionRanges],
    max_items: Option<u64>,
) -> Result<Vec<(FormulaId, Option<u64>)>, Error> {
    let ranges = items.iter().flat_map(|ranges| ranges.iter());
    let mut edges: Vec<u64> = ranges
        .flat_map(|&(from, to, _)| [from, to])
        .filter(|&edge| edge != u32::MAX)
        .map(u64::from)
        .chain([0])
        .chain(max_items)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    let mut places = Vec::with_capacity(edges.len());
    for (at, &edge) in edges.iter().enumerate() {
        let all = items.iter().map(|ranges| solver.base.item_formula_at(ranges, edge)).collect();
        let item = solver.base.formulas.and(all);
        if max_items.is_some_and(|max_items| edge >= max_items) || !solver.has_value(item)? {
            break;
        }
        places.push((item, edges.get(at + 1).copied()));
    }
    Ok(places)
}

/// Returns the nodes that arrays can satisfy, by a cheap test.
pub(super) fn array_capable(
    solver: &mut SolverContext,
    nodes: &[NodeId],
) -> Result<Vec<NodeId>, Error> {
    let mut found = Vec::with_capacity(nodes.len());
    for &one in nodes {
        if solver.expand(one, JsonType::Array)? != FALSE {
            found.push(one);
        }
    }
    Ok(found)
}
