//! What a schema as a whole must not do.

use formalm_automata::Error;

use super::refuse;
use crate::node::{NodeId, Rule, Schema};

/// Refuses schemas that say of a value that it is what they say it is.
pub(super) fn in_place(schema: &Schema) -> Result<(), Error> {
    // 0: unseen, 1: on the way, 2: done.
    let mut marks = vec![0u8; schema.nodes.len()];
    for first in 0..schema.nodes.len() {
        let mut path: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
        let mut next = Some(NodeId(first as u32)).filter(|_| marks[first] == 0);
        loop {
            if let Some(id) = next.take() {
                match marks[id.0 as usize] {
                    0 => {
                        marks[id.0 as usize] = 1;
                        path.push((id, applied(&schema.node(id).rules)));
                    }
                    1 => {
                        let message = "a schema refers to itself without going into the value";
                        return Err(refuse(&schema.node(id).place, message, None));
                    }
                    _ => {}
                }
            }
            let Some((id, rest)) = path.last_mut() else { break };
            match rest.pop() {
                Some(one) => next = Some(one),
                None => {
                    marks[id.0 as usize] = 2;
                    path.pop();
                }
            }
        }
    }
    Ok(())
}

/// Nodes applied to the same value.
fn applied(rules: &[Rule]) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for rule in rules {
        match rule {
            Rule::All(list) | Rule::Any(list) | Rule::One(list) => nodes.extend(list),
            Rule::Not(node) | Rule::SchemaWith(_, node) => nodes.push(*node),
            Rule::If { condition, then, other } => {
                nodes.push(*condition);
                nodes.extend(then);
                nodes.extend(other);
            }
            _ => {}
        }
    }
    nodes
}
