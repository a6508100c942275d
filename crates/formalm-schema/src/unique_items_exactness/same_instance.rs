//! Which nodes speak of the same value from different places: children of nodes that hold of the same
//! array or object.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::Which;
use crate::schema_nodes::{NodeId, Rule};
use crate::solver::context::Core;

/// Children beyond these are taken to be together with none.
const MAX_CHILDREN: usize = 4_096;

/// Where a child stands.
enum ChildPosition {
    Items(u32, u32),
    Properties(Which),
    Anywhere,
}

impl ChildPosition {
    /// Whether both may be the same place.
    fn overlaps(&self, other: &ChildPosition) -> bool {
        match (self, other) {
            (ChildPosition::Anywhere, _) | (_, ChildPosition::Anywhere) => true,
            (ChildPosition::Items(from, to), ChildPosition::Items(other, end)) => {
                from < end && other < to
            }
            (ChildPosition::Properties(one), ChildPosition::Properties(other)) => {
                match (&one.names, &other.names) {
                    (Some(one), Some(other)) => one.iter().any(|name| other.contains(name)),
                    (Some(names), None) => names.iter().any(|name| !other.others.contains(name)),
                    (None, Some(names)) => names.iter().any(|name| !one.others.contains(name)),
                    (None, None) => true,
                }
            }
            (ChildPosition::Items(..), ChildPosition::Properties(_))
            | (ChildPosition::Properties(_), ChildPosition::Items(..)) => false,
        }
    }
}

impl Core {
    /// By the node those that may speak of the same value, though nothing holds both in place.
    pub(super) fn same_instance_nodes(
        &self,
        nodes: &FxHashSet<NodeId>,
    ) -> FxHashMap<NodeId, Vec<NodeId>> {
        let mut found: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for at in 0..self.schema.nodes.len() {
            let children = self.children_in_place(NodeId(at as u32));
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

    /// The children of a node and of all that it holds in place.
    fn children_in_place(&self, id: NodeId) -> Vec<(ChildPosition, NodeId)> {
        let (mut open, mut seen) = (vec![id], FxHashSet::default());
        let mut children = Vec::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            for rule in Arc::clone(&self.schema.node(id).rules).iter() {
                match rule {
                    Rule::All(list) | Rule::Any(list) | Rule::One(list) => open.extend(list),
                    Rule::Not(one) | Rule::SchemaWith(_, one) => open.push(*one),
                    Rule::If { condition, then, other } => {
                        open.extend([Some(*condition), *then, *other].into_iter().flatten());
                    }
                    Rule::Items(ranges) => children.extend(
                        ranges
                            .iter()
                            .map(|&(from, to, node)| (ChildPosition::Items(from, to), node)),
                    ),
                    Rule::Members(rules) => children.extend(
                        rules
                            .iter()
                            .map(|(which, node)| (ChildPosition::Properties(which.clone()), *node)),
                    ),
                    Rule::Contains { node, .. } => {
                        children.push((ChildPosition::Items(0, u32::MAX), *node))
                    }
                    Rule::UnevaluatedItems(node) | Rule::UnevaluatedProperties(node) => {
                        children.push((ChildPosition::Anywhere, *node));
                    }
                    _ => {}
                }
            }
        }
        children
    }
}
