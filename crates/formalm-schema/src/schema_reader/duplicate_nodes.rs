//! Structurally equal subschemas: each node's representative.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::schema_nodes::{KeywordRule, NodeId, ResolvedSchema};

/// Returns for each node the representative of its equivalence class, which may be the node itself.
///
/// Nodes are read before their children, so a backward pass (hash consing) sees the children first.
/// A child that was read earlier because a reference led to it represents itself at that point. So
/// some equal nodes stay distinct, which costs time but no correctness.
pub(super) fn find_representatives(schema: &ResolvedSchema) -> Vec<NodeId> {
    let count = schema.nodes.len();
    let mut same: Vec<NodeId> = (0..count as u32).map(NodeId).collect();
    // The last node of each hash, and for each node the previous one with the same hash.
    let mut last: FxHashMap<u64, NodeId> = FxHashMap::default();
    last.reserve(count);
    let mut before: Vec<Option<NodeId>> = vec![None; count];
    for (at, node) in schema.nodes.iter().enumerate().rev() {
        if let [KeywordRule::AllOf(list)] = &node.rules[..]
            && let [one] = list[..]
        {
            // A node that only refers to another is represented by its target.
            same[at] = one;
            continue;
        }
        let mut hasher = FxHasher::default();
        for rule in &node.rules[..] {
            rule.hash_with(&same, &mut hasher);
        }
        let known = last.entry(hasher.finish()).or_insert(NodeId(at as u32));
        let mut other = Some(*known).filter(|&one| one.0 as usize != at);
        before[at] = other;
        *known = NodeId(at as u32);
        while let Some(one) = other {
            if are_equivalent(&node.rules, &schema.node(one).rules, &same) {
                same[at] = same[one.0 as usize];
                break;
            }
            other = before[one.0 as usize];
        }
    }
    for at in 0..count {
        // References may point forwards or backwards but are acyclic here (checked in
        // `in_place_cycles`).
        let mut last = same[at];
        while last != same[last.0 as usize] {
            last = same[last.0 as usize];
        }
        // Path compression.
        let mut one = at;
        while same[one] != last {
            one = std::mem::replace(&mut same[one], last).0 as usize;
        }
    }
    same
}

/// Returns `true` if two lists of rules are equal up to representatives.
fn are_equivalent(one: &[KeywordRule], other: &[KeywordRule], same: &[NodeId]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.equals(other, same))
}

impl KeywordRule {
    /// Hashes the rule with every node replaced by its representative.
    fn hash_with(&self, same: &[NodeId], hasher: &mut FxHasher) {
        let one = |node: NodeId| same[node.0 as usize];
        match self {
            KeywordRule::Properties(list) => list.iter().for_each(|(which, node)| {
                which.hash(hasher);
                one(*node).hash(hasher);
            }),
            KeywordRule::Items(list) => list.iter().for_each(|&(from, to, node)| {
                (from, to, one(node)).hash(hasher);
            }),
            &KeywordRule::Contains { node, min, max, marks_evaluated: marks } => {
                (one(node), min, max, marks).hash(hasher)
            }
            KeywordRule::AllOf(nodes) | KeywordRule::AnyOf(nodes) | KeywordRule::OneOf(nodes) => {
                nodes.iter().for_each(|&node| one(node).hash(hasher));
            }
            &KeywordRule::If { condition, then, otherwise: other } => {
                (one(condition), then.map(one), other.map(one)).hash(hasher);
            }
            KeywordRule::DependentSchema(name, node) => (name, one(*node)).hash(hasher),
            &KeywordRule::PropertyNames(node)
            | &KeywordRule::Not(node)
            | &KeywordRule::UnevaluatedProperties(node)
            | &KeywordRule::UnevaluatedItems(node) => one(node).hash(hasher),
            rule => return rule.hash(hasher),
        }
        std::mem::discriminant(self).hash(hasher);
    }

    /// Returns `true` if both rules are equal with every node replaced by its representative.
    fn equals(&self, other: &KeywordRule, same: &[NodeId]) -> bool {
        let one = |node: NodeId| same[node.0 as usize];
        let all = |left: &[NodeId], right: &[NodeId]| {
            left.len() == right.len()
                && left.iter().zip(right).all(|(&left, &right)| one(left) == one(right))
        };
        match (self, other) {
            (KeywordRule::Properties(left), KeywordRule::Properties(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(&right[..])
                        .all(|(left, right)| one(left.1) == one(right.1) && left.0 == right.0)
            }
            (KeywordRule::Items(left), KeywordRule::Items(right)) => {
                left.len() == right.len()
                    && left.iter().zip(&right[..]).all(|(left, right)| {
                        (left.0, left.1, one(left.2)) == (right.0, right.1, one(right.2))
                    })
            }
            (
                &KeywordRule::Contains { node: left, min, max, marks_evaluated: marks },
                &KeywordRule::Contains {
                    node: right,
                    min: least,
                    max: most,
                    marks_evaluated: also,
                },
            ) => one(left) == one(right) && (min, max, marks) == (least, most, also),
            (KeywordRule::AllOf(left), KeywordRule::AllOf(right))
            | (KeywordRule::AnyOf(left), KeywordRule::AnyOf(right))
            | (KeywordRule::OneOf(left), KeywordRule::OneOf(right)) => all(left, right),
            (
                &KeywordRule::If { condition, then, otherwise: other },
                &KeywordRule::If { condition: other_condition, then: other_then, otherwise: not },
            ) => {
                one(condition) == one(other_condition)
                    && then.map(one) == other_then.map(one)
                    && other.map(one) == not.map(one)
            }
            (
                KeywordRule::DependentSchema(name, left),
                KeywordRule::DependentSchema(also, right),
            ) => name == also && one(*left) == one(*right),
            (&KeywordRule::PropertyNames(left), &KeywordRule::PropertyNames(right))
            | (&KeywordRule::Not(left), &KeywordRule::Not(right))
            | (
                &KeywordRule::UnevaluatedProperties(left),
                &KeywordRule::UnevaluatedProperties(right),
            )
            | (&KeywordRule::UnevaluatedItems(left), &KeywordRule::UnevaluatedItems(right)) => {
                one(left) == one(right)
            }
            (left, right) => left == right,
        }
    }
}
