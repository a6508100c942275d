//! Byte equivalence: ranges of bytes with equal derivatives, so that one derivative fills many
//! slots.

use crate::terms::{EPSILON, TermArena, TermId, TermNode};

/// Maximum length of unions, intersections and runs of optional parts that are examined. Chosen,
/// not measured.
const MAX_PARTS: usize = 8;

/// Maximum number of terms examined for one byte; beyond it the byte is its own class. Chosen, not
/// measured.
const MAX_TERMS: usize = 64;

fn join(one: (u8, u8), other: (u8, u8)) -> (u8, u8) {
    (one.0.max(other.0), one.1.min(other.1))
}

impl TermArena {
    /// Returns the bytes around `byte` with the same derivative, as far as that is cheap to
    /// determine.
    pub(crate) fn byte_span(&self, id: TermId, byte: u8) -> (u8, u8) {
        self.byte_span_limited(id, byte, &mut { MAX_TERMS })
    }

    /// Returns that range while examining at most `left` terms.
    fn byte_span_limited(&self, id: TermId, byte: u8, left: &mut usize) -> (u8, u8) {
        let mut span = (0, 255);
        let mut rest = id;
        for _ in 0..MAX_PARTS {
            let Some(fewer) = left.checked_sub(1) else { break };
            *left = fewer;
            let (head, tail) = self.head_and_tail(rest);
            let properties = self.properties(head);
            span = join(
                span,
                match self.get(head) {
                    TermNode::Empty | TermNode::Epsilon | TermNode::Full => span,
                    &TermNode::Dawg(dag) => self.dawgs.byte_span(dag, byte),
                    &TermNode::Custom(at) => self.custom_byte_span(at, byte),
                    &TermNode::Repeat { body, .. } if self.properties(body).pure => {
                        self.byte_span_limited(body, byte, left)
                    }
                    TermNode::Alt(list) if list.len() <= MAX_PARTS && properties.pure => {
                        self.common_byte_span(list, byte, left)
                    }
                    TermNode::And(list) if list.len() <= MAX_PARTS => {
                        self.common_byte_span(list, byte, left)
                    }
                    &TermNode::Not(id) => self.byte_span_limited(id, byte, left),
                    _ => return (byte, byte),
                },
            );
            // Nullability is exact for pure terms only.
            if properties.pure && !properties.nullable || tail == EPSILON {
                return span;
            }
            rest = tail;
        }
        (byte, byte)
    }

    fn common_byte_span(&self, list: &[TermId], byte: u8, left: &mut usize) -> (u8, u8) {
        list.iter().fold((0, 255), |span, &id| join(span, self.byte_span_limited(id, byte, left)))
    }
}
