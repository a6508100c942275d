//! Which nodes speak of the same value from different places: children of nodes that hold of the same
//! array or object.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::upwards;
use crate::core::Core;
use crate::formula::Which;
use crate::node::{NodeId, Rule};
use crate::value::{Value, ValueId};

/// Children beyond these are taken to be together with none.
const MAX_CHILDREN: usize = 4_096;

/// Where a child stands.
enum At {
    Items(u32, u32),
    Members(Which),
    Anywhere,
}

impl At {
    /// Whether both may be the same place.
    fn meets(&self, other: &At) -> bool {
        match (self, other) {
            (At::Anywhere, _) | (_, At::Anywhere) => true,
            (At::Items(from, to), At::Items(other, end)) => from < end && other < to,
            (At::Members(one), At::Members(other)) => match (&one.names, &other.names) {
                (Some(one), Some(other)) => one.iter().any(|name| other.contains(name)),
                (Some(names), None) => names.iter().any(|name| !other.others.contains(name)),
                (None, Some(names)) => names.iter().any(|name| !one.others.contains(name)),
                (None, None) => true,
            },
            (At::Items(..), At::Members(_)) | (At::Members(_), At::Items(..)) => false,
        }
    }
}

/// What speaks of the same value from different places.
#[derive(Default)]
pub(super) struct Together {
    /// By the node those that may speak of the same value, though nothing holds both in place.
    pub(super) others: FxHashMap<NodeId, Vec<NodeId>>,
    /// Nodes of whose values it matters which they are, and not only of which kinds: items of
    /// distinct ones among which there are kinds, and parts of values that are listed.
    pub(super) told_apart: FxHashSet<NodeId>,
    /// By the node those of which it describes a part, or that hold it in place.
    pub(super) around: FxHashMap<NodeId, Vec<NodeId>>,
}

/// Children of a node and of all that it holds in place.
#[derive(Default)]
struct Children {
    all: Vec<(At, NodeId)>,
    is_distinct: bool,
}

impl Core {
    /// What speaks of the same values as some nodes, from elsewhere.
    pub(super) fn together(
        &self,
        nodes: &FxHashSet<NodeId>,
        parents: &FxHashMap<NodeId, Vec<NodeId>>,
    ) -> Together {
        let mut found = Together { around: parents.clone(), ..Together::default() };
        let all = (0..self.schema.nodes.len() as u32).map(NodeId);
        let has_lists =
            |rule: &Rule| matches!(rule, Rule::Values(values) if self.has_containers(values));
        let listed = all.filter(|&id| self.schema.node(id).rules.iter().any(has_lists));
        let lists = upwards(&listed.collect::<Vec<NodeId>>(), parents);
        for at in 0..self.schema.nodes.len() {
            let here = NodeId(at as u32);
            let Children { all: children, is_distinct } = self.children_in_place(here);
            for &(_, child) in &children {
                found.around.entry(child).or_default().push(here);
            }
            if lists.contains(&here) {
                found.told_apart.extend(children.iter().map(|&(_, child)| child));
            }
            if children.len() > MAX_CHILDREN {
                continue;
            }
            for (place, one) in children.iter().filter(|(_, node)| lists.contains(node)) {
                let meets = |(other, node): &&(At, NodeId)| node != one && place.meets(other);
                found.told_apart.extend(children.iter().filter(meets).map(|&(_, child)| child));
            }
            let of_items = |place: &At| matches!(place, At::Items(..));
            if is_distinct && children.iter().filter(|(place, _)| of_items(place)).count() > 1 {
                let items = children.iter().filter(|(place, _)| of_items(place));
                found.told_apart.extend(items.map(|&(_, child)| child));
            }
            for (place, child) in children.iter().filter(|(_, child)| nodes.contains(child)) {
                let others =
                    children.iter().filter(|(other, node)| node != child && place.meets(other));
                let list = found.others.entry(*child).or_default();
                for &(_, other) in others {
                    if !list.contains(&other) {
                        list.push(other);
                    }
                }
            }
        }
        found
    }

    fn children_in_place(&self, id: NodeId) -> Children {
        let (mut open, mut seen) = (vec![id], FxHashSet::default());
        let mut found = Children::default();
        let children = &mut found.all;
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
                    Rule::Items(ranges) => children
                        .extend(ranges.iter().map(|&(from, to, node)| (At::Items(from, to), node))),
                    Rule::Members(rules) => children.extend(
                        rules.iter().map(|(which, node)| (At::Members(which.clone()), *node)),
                    ),
                    Rule::Contains { node, .. } => children.push((At::Items(0, u32::MAX), *node)),
                    Rule::RestOfItems(node) | Rule::RestOfMembers(node) => {
                        children.push((At::Anywhere, *node));
                    }
                    Rule::Unique => found.is_distinct = true,
                    _ => {}
                }
            }
        }
        found
    }

    /// Whether arrays or objects are among some values.
    fn has_containers(&self, values: &[ValueId]) -> bool {
        let value = |&id: &ValueId| self.schema.values.get(id);
        values.iter().any(|id| matches!(value(id), Value::Array(_) | Value::Object(_)))
    }
}
