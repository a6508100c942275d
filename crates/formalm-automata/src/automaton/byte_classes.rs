//! The byte classes that a language does not distinguish.

use formalm_core::{ByteSet, Error};

use crate::automaton::transition_table::ByteClasses;
use crate::terms::{TermArena, TermId, TermNode};

impl ByteClasses {
    /// Returns the bytes of all classes whose representative is live.
    pub(crate) fn live_bytes(
        &self,
        mut is_live: impl FnMut(u8) -> Result<bool, Error>,
    ) -> Result<ByteSet, Error> {
        let mut set = ByteSet::default();
        let starts = self.representatives();
        for (at, &first) in starts.iter().enumerate() {
            if is_live(first)? {
                let last = starts.get(at + 1).map_or(255, |next| next - 1);
                (first..=last).for_each(|byte| set.insert(byte));
            }
        }
        Ok(set)
    }
}

/// Computes the classes of bytes that no leaf reachable from `start` distinguishes.
pub(crate) fn byte_classes(terms: &TermArena, start: TermId) -> ByteClasses {
    let mut starts = [false; 256];
    let mut seen = vec![false; terms.len()];
    let mut seen_dags = vec![false; terms.dawgs.len()];
    let mut stack = vec![start];
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        match terms.get(id) {
            TermNode::Dawg(dag) => terms.dawgs.mark_starts(*dag, &mut seen_dags, &mut starts),
            TermNode::Alt(list)
            | TermNode::Ordered(list)
            | TermNode::And(list)
            | TermNode::AtomicRun(list) => {
                stack.extend_from_slice(list);
            }
            TermNode::Scope { body, behinds } => {
                stack.push(*body);
                stack.extend_from_slice(behinds);
            }
            &TermNode::Cat(head, tail) => stack.extend([head, tail]),
            &TermNode::Not(inner) | &TermNode::Assert(inner) | &TermNode::Atomic(inner) => {
                stack.push(inner)
            }
            &TermNode::Repeat { body, .. } => stack.push(body),
            &TermNode::Image { rest, change, .. } => {
                // Edits read whole characters, whose first byte determines how many follow.
                for byte in [0x80, 0xC0, 0xE0, 0xF0] {
                    starts[byte] = true;
                }
                stack.push(rest);
                stack.extend(terms.images.leaves(change));
            }
            // A recognizer may distinguish any two bytes.
            TermNode::Custom(_) => starts = [true; 256],
            TermNode::Empty
            | TermNode::Epsilon
            | TermNode::Full
            | TermNode::Mark
            | TermNode::LookBehind { .. } => {}
        }
    }
    ByteClasses::new(&starts)
}
