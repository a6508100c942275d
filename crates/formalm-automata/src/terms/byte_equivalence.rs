//! Bytes that a term does not tell apart.

use crate::terms::{EPSILON, Term, TermId, Terms};

/// Unions, intersections and runs of optional parts that are longer are not looked into.
const LOOKED_AT: usize = 8;

/// Terms that are looked at for a byte; beyond them every byte is taken to be told apart.
const TERMS: usize = 64;

fn join(one: (u8, u8), other: (u8, u8)) -> (u8, u8) {
    (one.0.max(other.0), one.1.min(other.1))
}

impl Terms {
    /// Bytes around `byte` that have the same derivative, as far as that is quick to tell.
    pub(crate) fn span(&self, id: TermId, byte: u8) -> (u8, u8) {
        self.span_within(id, byte, &mut { TERMS })
    }

    /// The same, of at most as many terms as are left.
    fn span_within(&self, id: TermId, byte: u8, left: &mut usize) -> (u8, u8) {
        let mut span = (0, 255);
        let mut rest = id;
        for _ in 0..LOOKED_AT {
            let Some(fewer) = left.checked_sub(1) else { break };
            *left = fewer;
            let (head, tail) = self.head_and_tail(rest);
            let facts = self.facts(head);
            span = join(
                span,
                match self.get(head) {
                    Term::Empty | Term::Epsilon | Term::Full => span,
                    &Term::Dag(dag) => self.dags.span(dag, byte),
                    &Term::Recognized(at) => self.recognized_span(at, byte),
                    &Term::Repeat { body, .. } if self.facts(body).pure => {
                        self.span_within(body, byte, left)
                    }
                    Term::Alt(list) if list.len() <= LOOKED_AT && facts.pure => {
                        self.span_of_all(list, byte, left)
                    }
                    Term::And(list) if list.len() <= LOOKED_AT => {
                        self.span_of_all(list, byte, left)
                    }
                    &Term::Not(id) => self.span_within(id, byte, left),
                    _ => return (byte, byte),
                },
            );
            // Of pure terms alone it is known whether they are nullable.
            if facts.pure && !facts.nullable || tail == EPSILON {
                return span;
            }
            rest = tail;
        }
        (byte, byte)
    }

    fn span_of_all(&self, list: &[TermId], byte: u8, left: &mut usize) -> (u8, u8) {
        list.iter().fold((0, 255), |span, &id| join(span, self.span_within(id, byte, left)))
    }
}
