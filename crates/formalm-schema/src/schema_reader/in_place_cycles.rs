//! What a schema as a whole must not do.

use formalm_automata::{Error, Resource};

use super::refuse;
use crate::schema_nodes::{NodeId, Rule, Schema};

/// Schemas applied to one value within each other: their formulas are made by recursion.
const MAX_IN_PLACE_DEPTH: u64 = 200;

/// Refuses schemas that say of a value that it is what they say it is, and those that apply too
/// many to it within each other.
pub(super) fn check_in_place(schema: &Schema) -> Result<(), Error> {
    if schema.nodes.iter().all(|node| in_place_subschemas(&node.rules).is_empty()) {
        return Ok(());
    }
    // 0: unseen, 1: on the way, 2: done.
    let mut marks = vec![0u8; schema.nodes.len()];
    let mut depths = vec![0u64; schema.nodes.len()];
    // Nodes on the way, with what they apply that was not looked at.
    let mut path: Vec<(NodeId, Vec<NodeId>)> = Vec::new();
    for first in 0..schema.nodes.len() {
        let mut next = Some(NodeId(first as u32)).filter(|_| marks[first] == 0);
        loop {
            if let Some(id) = next.take() {
                match marks[id.0 as usize] {
                    0 => {
                        marks[id.0 as usize] = 1;
                        path.push((id, in_place_subschemas(&schema.node(id).rules)));
                    }
                    1 => {
                        let message = "a schema refers to itself without going into the value";
                        return Err(refuse(&schema.place(id), message, None));
                    }
                    _ => raise_depth(&mut depths, &path, id)?,
                }
            }
            let Some((id, rest)) = path.last_mut() else { break };
            match rest.pop() {
                Some(one) => next = Some(one),
                None => {
                    let id = *id;
                    marks[id.0 as usize] = 2;
                    path.pop();
                    raise_depth(&mut depths, &path, id)?;
                }
            }
        }
    }
    Ok(())
}

/// The last node on the way applies one whose depth is known.
fn raise_depth(
    depths: &mut [u64],
    path: &[(NodeId, Vec<NodeId>)],
    below: NodeId,
) -> Result<(), Error> {
    let Some((above, _)) = path.last() else { return Ok(()) };
    let needed = depths[below.0 as usize] + 1;
    if needed > MAX_IN_PLACE_DEPTH {
        return Err(Error::Limit {
            resource: Resource::Nesting,
            needed,
            allowed: MAX_IN_PLACE_DEPTH,
        });
    }
    let depth = &mut depths[above.0 as usize];
    *depth = needed.max(*depth);
    Ok(())
}

/// Nodes applied to the same value.
fn in_place_subschemas(rules: &[Rule]) -> Vec<NodeId> {
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
