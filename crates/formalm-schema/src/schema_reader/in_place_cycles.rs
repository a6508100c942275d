//! Checks that no schema applies itself to the same value, and that in-place nesting is bounded.
//!
//! A cycle of in-place applicators (`allOf`, `anyOf`, `not`, `$ref`, …) would make a formula refer
//! to itself.

use formalm_core::{Error, Resource, check_limit};

use super::schema_error;
use crate::schema_nodes::{KeywordRule, NodeId, ResolvedSchema};

/// Maximum nesting of in-place subschemas. Formulas are built by recursion over it, so it bounds
/// the stack. Chosen, not measured.
const MAX_IN_PLACE_DEPTH: u64 = 200;

/// Fails with a language error if a schema applies itself to the same value, and with a limit error
/// above [`MAX_IN_PLACE_DEPTH`]. A depth-first search with an explicit stack.
pub(super) fn check_in_place(schema: &ResolvedSchema) -> Result<(), Error> {
    if schema.nodes.iter().all(|node| in_place_subschemas(&node.rules).is_empty()) {
        return Ok(());
    }
    // 0: unvisited, 1: on the path, 2: done.
    let mut marks = vec![0u8; schema.nodes.len()];
    let mut depths = vec![0u64; schema.nodes.len()];
    // Nodes on the path, each with the subschemas that are not visited yet.
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
                        let message =
                            "a schema refers to itself without descending into the instance";
                        return Err(schema_error(&schema.json_pointer(id), message, None));
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

/// Raises the depth of the last node on the path above that of a finished subschema.
fn raise_depth(
    depths: &mut [u64],
    path: &[(NodeId, Vec<NodeId>)],
    below: NodeId,
) -> Result<(), Error> {
    let Some((above, _)) = path.last() else { return Ok(()) };
    let needed = depths[below.0 as usize] + 1;
    check_limit(Resource::Nesting, needed, MAX_IN_PLACE_DEPTH)?;
    let depth = &mut depths[above.0 as usize];
    *depth = needed.max(*depth);
    Ok(())
}

/// Returns the subschemas that a node applies to the same value.
fn in_place_subschemas(rules: &[KeywordRule]) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for rule in rules {
        match rule {
            KeywordRule::AllOf(list) | KeywordRule::AnyOf(list) | KeywordRule::OneOf(list) => {
                nodes.extend(list)
            }
            KeywordRule::Not(node) | KeywordRule::DependentSchema(_, node) => nodes.push(*node),
            KeywordRule::If { condition, then, otherwise: other } => {
                nodes.push(*condition);
                nodes.extend(then);
                nodes.extend(other);
            }
            _ => {}
        }
    }
    nodes
}
