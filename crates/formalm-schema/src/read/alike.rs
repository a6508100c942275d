//! Subschemas that say the same at several places.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::node::{NodeId, Rule, Schema};

/// For each node the first one found that says the same, which may be itself.
///
/// Nodes are read before their parts, so that going backwards meets the parts first. Where a part
/// was read earlier, because it is referred to, it stands for itself alone: nodes that are told
/// apart though they say the same cost time and nothing else.
pub(super) fn alike(schema: &Schema) -> Vec<NodeId> {
    let mut same: Vec<NodeId> = (0..schema.nodes.len() as u32).map(NodeId).collect();
    let mut first: FxHashMap<Cow<'_, [Rule]>, NodeId> = FxHashMap::default();
    for (at, node) in schema.nodes.iter().enumerate().rev() {
        let rules = if node.rules.iter().any(Rule::has_parts) {
            Cow::Owned(node.rules.iter().map(|rule| rule.with_parts(&same)).collect())
        } else {
            Cow::Borrowed(&node.rules[..])
        };
        same[at] = *first.entry(rules).or_insert(NodeId(at as u32));
    }
    same
}

impl Rule {
    fn has_parts(&self) -> bool {
        matches!(
            self,
            Rule::Members(_)
                | Rule::Names(_)
                | Rule::Items(_)
                | Rule::Contains { .. }
                | Rule::All(_)
                | Rule::Any(_)
                | Rule::One(_)
                | Rule::Not(_)
                | Rule::If { .. }
                | Rule::SchemaWith(..)
                | Rule::RestOfMembers(_)
                | Rule::RestOfItems(_)
        )
    }

    /// The rule with every node replaced by the one that stands for it.
    fn with_parts(&self, same: &[NodeId]) -> Rule {
        let one = |node: NodeId| same[node.0 as usize];
        let all = |nodes: &[NodeId]| nodes.iter().map(|&node| one(node)).collect();
        match self {
            Rule::Members(list) => Rule::Members(
                list.iter().map(|(which, node)| (which.clone(), one(*node))).collect(),
            ),
            &Rule::Names(node) => Rule::Names(one(node)),
            Rule::Items(list) => {
                Rule::Items(list.iter().map(|&(from, to, node)| (from, to, one(node))).collect())
            }
            &Rule::Contains { node, min, max, marks } => {
                Rule::Contains { node: one(node), min, max, marks }
            }
            Rule::All(nodes) => Rule::All(all(nodes)),
            Rule::Any(nodes) => Rule::Any(all(nodes)),
            Rule::One(nodes) => Rule::One(all(nodes)),
            &Rule::Not(node) => Rule::Not(one(node)),
            &Rule::If { condition, then, other } => {
                Rule::If { condition: one(condition), then: then.map(one), other: other.map(one) }
            }
            Rule::SchemaWith(name, node) => Rule::SchemaWith(*name, one(*node)),
            &Rule::RestOfMembers(node) => Rule::RestOfMembers(one(node)),
            &Rule::RestOfItems(node) => Rule::RestOfItems(one(node)),
            other => other.clone(),
        }
    }
}
