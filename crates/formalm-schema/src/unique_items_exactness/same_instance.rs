//! Nodes that constrain the same value through different parents: children of nodes that apply to
//! one array or object.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::NameSelector;
use crate::schema_nodes::{KeywordRule, NodeId, ResolvedSchema};

/// Maximum number of children of a node that are compared; larger nodes are skipped. Chosen, not
/// measured.
const MAX_CHILDREN: usize = 4_096;

/// The position of a child in its container.
enum ChildPosition {
    Items(u32, u32),
    Properties(NameSelector),
    Anywhere,
}

impl ChildPosition {
    /// Returns `true` if both positions can be the same.
    fn overlaps(&self, other: &ChildPosition) -> bool {
        match (self, other) {
            (ChildPosition::Anywhere, _) | (_, ChildPosition::Anywhere) => true,
            (ChildPosition::Items(from, to), ChildPosition::Items(other, end)) => {
                from < end && other < to
            }
            (ChildPosition::Properties(one), ChildPosition::Properties(other)) => {
                match (&one.names, &other.names) {
                    (Some(one), Some(other)) => one.iter().any(|name| other.contains(name)),
                    (Some(names), None) => {
                        names.iter().any(|name| !other.excluded_names.contains(name))
                    }
                    (None, Some(names)) => {
                        names.iter().any(|name| !one.excluded_names.contains(name))
                    }
                    (None, None) => true,
                }
            }
            (ChildPosition::Items(..), ChildPosition::Properties(_))
            | (ChildPosition::Properties(_), ChildPosition::Items(..)) => false,
        }
    }
}

/// Returns for each node the others that may constrain the same value through another parent.
pub(super) fn same_instance_nodes(
    schema: &ResolvedSchema,
    nodes: &FxHashSet<NodeId>,
) -> FxHashMap<NodeId, Vec<NodeId>> {
    let mut found: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
    for at in 0..schema.nodes.len() {
        let children = children_in_place(schema, NodeId(at as u32));
        if children.len() > MAX_CHILDREN {
            continue;
        }
        for (place, child) in children.iter().filter(|(_, child)| nodes.contains(child)) {
            let others =
                children.iter().filter(|(other, node)| node != child && place.overlaps(other));
            let list = found.entry(*child).or_default();
            for &(_, other) in others {
                if !list.contains(&other) {
                    list.push(other);
                }
            }
        }
    }
    found
}

/// Returns the children of a node and of its in-place subschemas, with their positions.
fn children_in_place(schema: &ResolvedSchema, id: NodeId) -> Vec<(ChildPosition, NodeId)> {
    let (mut open, mut seen) = (vec![id], FxHashSet::default());
    let mut children = Vec::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        for rule in Arc::clone(&schema.node(id).rules).iter() {
            match rule {
                KeywordRule::AllOf(list) | KeywordRule::AnyOf(list) | KeywordRule::OneOf(list) => {
                    open.extend(list)
                }
                KeywordRule::Not(one) | KeywordRule::DependentSchema(_, one) => open.push(*one),
                KeywordRule::If { condition, then, otherwise: other } => {
                    open.extend([Some(*condition), *then, *other].into_iter().flatten());
                }
                KeywordRule::Items(ranges) => children.extend(
                    ranges.iter().map(|&(from, to, node)| (ChildPosition::Items(from, to), node)),
                ),
                KeywordRule::Properties(rules) => children.extend(
                    rules
                        .iter()
                        .map(|(which, node)| (ChildPosition::Properties(which.clone()), *node)),
                ),
                KeywordRule::Contains { node, .. } => {
                    children.push((ChildPosition::Items(0, u32::MAX), *node))
                }
                KeywordRule::UnevaluatedItems(node) | KeywordRule::UnevaluatedProperties(node) => {
                    children.push((ChildPosition::Anywhere, *node));
                }
                _ => {}
            }
        }
    }
    children
}
