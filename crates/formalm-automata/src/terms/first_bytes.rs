//! The bytes with which the members of a term begin.

use formalm_core::ByteSet;

use crate::terms::{EPSILON, TermArena, TermId, TermNode};

/// Maximum number of parts of a term that are read: states of most languages have fewer. Chosen, not
/// measured.
const MAX_TERMS: usize = 64;

impl TermArena {
    /// Returns the bytes with which the members of a pure term begin. Returns `None` for other
    /// terms, and for those of many parts.
    pub(crate) fn first_bytes(&self, id: TermId) -> Option<ByteSet> {
        let mut found = ByteSet::default();
        let (mut open, mut read) = (vec![id], 0);
        while let Some(id) = open.pop() {
            read += 1;
            if read > MAX_TERMS {
                return None;
            }
            let (head, tail) = self.head_and_tail(id);
            let properties = self.properties(head);
            if !properties.pure {
                return None;
            }
            match self.get(head) {
                TermNode::Epsilon => {}
                &TermNode::Dawg(dag) => {
                    for &(low, high, _) in self.dawgs.edges(dag) {
                        found.insert_range(low, high);
                    }
                }
                &TermNode::Repeat { body, .. } => open.push(body),
                TermNode::Alt(list) => open.extend_from_slice(list),
                _ => return None,
            }
            if properties.nullable && tail != EPSILON {
                open.push(tail);
            }
        }
        Some(found)
    }
}
