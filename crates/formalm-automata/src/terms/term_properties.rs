//! What is known of a term without reading.

use crate::terms::dawg::Alphabet;
use crate::terms::{Term, Terms};

/// What is known of a term without reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// No assertion, atomic group, scope, intersection or complement inside: never empty, and
    /// nothing depends on what surrounds it.
    pub(crate) pure: bool,
    /// The meaning depends on the text before or after: assertions or atomic groups, unscoped.
    pub(crate) contextual: bool,
    /// `Mark` occurs.
    pub(crate) marked: bool,
    /// The empty text belongs to it; exact for settled terms only.
    pub(crate) nullable: bool,
    /// `nullable` is exact: for pure terms, and for what is made of such by Boolean operations.
    pub(crate) settled: bool,
    /// Lower bound of the length of a text, in bytes; saturates.
    pub(crate) min_len: u32,
    /// What its texts are made of; meaningful for pure terms only.
    pub(crate) alphabet: Alphabet,
}

impl Terms {
    /// What is known of a term from what is known of its parts.
    pub(crate) fn facts_of(&self, term: &Term) -> Facts {
        let plain = Facts {
            pure: true,
            contextual: false,
            marked: false,
            nullable: false,
            settled: true,
            min_len: 0,
            alphabet: Alphabet::default(),
        };
        let impure = Facts { pure: false, settled: false, ..plain };
        match *term {
            Term::Empty => plain,
            Term::Epsilon => Facts { nullable: true, ..plain },
            Term::Full => Facts {
                nullable: true,
                alphabet: Alphabet { ascii: !0, wide: true, inside: true, stray: true },
                ..plain
            },
            Term::Mark => Facts { marked: true, nullable: true, ..impure },
            Term::Dag(dag) => Facts {
                nullable: self.dags.is_accepting(dag),
                min_len: self.dags.min_len(dag),
                alphabet: self.dags.alphabet(dag),
                ..plain
            },
            Term::Recognized(at) => Facts {
                nullable: self.recognizers.is_accepting(at),
                min_len: self.recognizers.least(at),
                alphabet: Alphabet {
                    ascii: self.recognizers.letters(at),
                    wide: true,
                    inside: true,
                    stray: true,
                },
                ..plain
            },
            Term::Cat(head, tail) => {
                let (head, tail) = (self.facts(head), self.facts(tail));
                let joined = self.joined(head, tail);
                let min_len = head.min_len.saturating_add(tail.min_len);
                Facts { nullable: head.nullable && tail.nullable, min_len, ..joined }
            }
            Term::Alt(ref list) | Term::Ordered(ref list) | Term::Run(ref list) => {
                let run = matches!(term, Term::Run(_));
                let mut all = list.iter().map(|&id| self.facts(id));
                let first = all.next().unwrap_or(plain);
                let joined = all.fold(first, |left, right| Facts {
                    nullable: left.nullable || right.nullable,
                    min_len: left.min_len.min(right.min_len),
                    ..self.joined(left, right)
                });
                // A run's marks are its own; its atomicity looks at what follows.
                let marked = joined.marked && !run;
                let contextual = joined.contextual || run;
                let settled = joined.settled && !run;
                Facts { pure: joined.pure && !run, settled, marked, contextual, ..joined }
            }
            Term::And(ref list) => {
                let marked = list.iter().any(|&id| self.facts(id).marked);
                let contextual = list.iter().any(|&id| self.facts(id).contextual);
                let min_len = list.iter().map(|&id| self.facts(id).min_len).max().unwrap_or(0);
                let settled = list.iter().all(|&id| self.facts(id).settled);
                let nullable = settled && list.iter().all(|&id| self.facts(id).nullable);
                Facts { marked, contextual, min_len, settled, nullable, ..impure }
            }
            Term::Not(id) => {
                let inner = self.facts(id);
                let nullable = inner.settled && !inner.nullable;
                Facts { contextual: inner.contextual, settled: inner.settled, nullable, ..impure }
            }
            Term::Repeat { body, min, .. } => {
                let body = self.facts(body);
                Facts {
                    settled: min == 0 || body.settled,
                    nullable: min == 0 || body.nullable,
                    min_len: body.min_len.saturating_mul(min),
                    ..body
                }
            }
            Term::Assert(_) | Term::Behind { .. } => Facts { contextual: true, ..impure },
            Term::Atomic(body) => {
                Facts { contextual: true, min_len: self.facts(body).min_len, ..impure }
            }
            Term::Scope { body, .. } => Facts { min_len: self.facts(body).min_len, ..impure },
            Term::Image { rest, change, nullable } => {
                Facts { nullable, settled: true, ..self.image_facts(self.facts(rest), change) }
            }
        }
    }

    fn joined(&self, left: Facts, right: Facts) -> Facts {
        Facts {
            pure: left.pure && right.pure,
            settled: left.settled && right.settled,
            contextual: left.contextual || right.contextual,
            marked: left.marked || right.marked,
            alphabet: left.alphabet.join(right.alphabet),
            ..left
        }
    }
}
