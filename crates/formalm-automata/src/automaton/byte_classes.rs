//! The byte classes of a language: bytes that none of its leaves distinguishes.

use formalm_core::{ByteSet, Error};

use crate::terms::{TermArena, TermId, TermNode};

/// The classes of bytes that no leaf of a language distinguishes.
#[derive(Clone, Debug)]
pub(crate) struct ByteClasses {
    of: [u8; 256],
    representatives: Vec<u8>,
}

impl ByteClasses {
    /// Creates classes from the bytes at which a new class starts (`starts[0]` is implied).
    pub(crate) fn new(starts: &[bool; 256]) -> ByteClasses {
        let mut classes = ByteClasses { of: [0; 256], representatives: Vec::new() };
        for byte in 0..=255u8 {
            if byte == 0 || starts[usize::from(byte)] {
                classes.representatives.push(byte);
            }
            classes.of[usize::from(byte)] = (classes.representatives.len() - 1) as u8;
        }
        classes
    }

    #[inline]
    pub(crate) fn of(&self, byte: u8) -> usize {
        usize::from(self.of[usize::from(byte)])
    }

    pub(crate) fn representatives(&self) -> &[u8] {
        &self.representatives
    }

    pub(crate) fn len(&self) -> usize {
        self.representatives.len()
    }

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
                set.insert_range(first, last);
            }
        }
        Ok(set)
    }

    /// Computes the classes of bytes that no leaf reachable from `start` distinguishes.
    pub(crate) fn of_term(terms: &TermArena, start: TermId) -> ByteClasses {
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
                    stack.extend(terms.plans.leaves(change));
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
}
