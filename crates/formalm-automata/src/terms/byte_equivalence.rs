//! Byte equivalence: ranges of bytes with equal derivatives, so that one derivative fills many
//! slots.

use crate::terms::{EPSILON, TermArena, TermId, TermNode};

/// Maximum length of unions, intersections and runs of optional parts that are examined. Chosen,
/// not measured.
const MAX_PARTS: usize = 8;

/// Maximum number of terms examined for one byte; beyond it the byte is its own class. Chosen, not
/// measured.
const MAX_TERMS: usize = 64;

/// The search for the bytes around one byte with the same derivative.
pub(crate) struct ByteSpan<'a> {
    terms: &'a TermArena,
    byte: u8,
    /// Number of terms that may still be examined.
    left: usize,
}

impl ByteSpan<'_> {
    /// Returns the bytes around `byte` with the same derivative of a term, as far as that is cheap
    /// to determine.
    pub(crate) fn around(terms: &TermArena, id: TermId, byte: u8) -> (u8, u8) {
        ByteSpan { terms, byte, left: MAX_TERMS }.of(id)
    }

    fn of(&mut self, id: TermId) -> (u8, u8) {
        let (terms, byte) = (self.terms, self.byte);
        let mut span = (0, 255);
        let mut rest = id;
        for _ in 0..MAX_PARTS {
            let Some(fewer) = self.left.checked_sub(1) else { break };
            self.left = fewer;
            let (head, tail) = terms.head_and_tail(rest);
            let properties = terms.properties(head);
            span = join(
                span,
                match terms.get(head) {
                    TermNode::Empty | TermNode::Epsilon | TermNode::Full => span,
                    &TermNode::Dawg(dag) => terms.dawgs.byte_span(dag, byte),
                    &TermNode::Custom(at) => terms.recognizers.byte_span(at, byte),
                    &TermNode::Repeat { body, .. } if terms.properties(body).pure => self.of(body),
                    TermNode::Alt(list) if list.len() <= MAX_PARTS && properties.pure => {
                        self.common(list)
                    }
                    TermNode::And(list) if list.len() <= MAX_PARTS => self.common(list),
                    &TermNode::Not(id) => self.of(id),
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

    /// Returns the bytes with the same derivatives of all terms of a list.
    fn common(&mut self, list: &[TermId]) -> (u8, u8) {
        list.iter().fold((0, 255), |span, &id| join(span, self.of(id)))
    }
}

fn join(one: (u8, u8), other: (u8, u8)) -> (u8, u8) {
    (one.0.max(other.0), one.1.min(other.1))
}
