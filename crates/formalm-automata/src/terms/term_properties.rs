//! Static properties of terms: nullability, minimum length, alphabet, and dependence on context.

use crate::terms::dawg::ByteAlphabet;
use crate::terms::{TermArena, TermNode};

/// The static properties of a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TermProperties {
    /// No assertion, atomic group, scope, intersection or complement occurs inside: the language is
    /// nonempty and independent of its context.
    pub(crate) pure: bool,
    /// The meaning depends on the input before or after: assertions or atomic groups, unscoped.
    pub(crate) contextual: bool,
    /// `Mark` occurs.
    pub(crate) marked: bool,
    /// The language contains the empty string; exact only if `nullable_is_exact`.
    pub(crate) nullable: bool,
    /// `nullable` is exact: for pure terms, and for Boolean combinations of such.
    pub(crate) nullable_is_exact: bool,
    /// Lower bound on the length of a member, in bytes; saturates.
    pub(crate) min_len: u32,
    /// The bytes of its members; meaningful for pure terms only.
    pub(crate) alphabet: ByteAlphabet,
}

impl TermArena {
    /// Computes the properties of a term from those of its parts.
    pub(crate) fn compute_properties(&self, term: &TermNode) -> TermProperties {
        let plain = TermProperties {
            pure: true,
            contextual: false,
            marked: false,
            nullable: false,
            nullable_is_exact: true,
            min_len: 0,
            alphabet: ByteAlphabet::default(),
        };
        let impure = TermProperties { pure: false, nullable_is_exact: false, ..plain };
        match *term {
            TermNode::Empty => plain,
            TermNode::Epsilon => TermProperties { nullable: true, ..plain },
            TermNode::Full => TermProperties {
                nullable: true,
                alphabet: ByteAlphabet { ascii: !0, wide: true, inside: true, invalid_utf8: true },
                ..plain
            },
            TermNode::Mark => TermProperties { marked: true, nullable: true, ..impure },
            TermNode::Dawg(dag) => TermProperties {
                nullable: self.dawgs.is_accepting(dag),
                min_len: self.dawgs.min_len(dag),
                alphabet: self.dawgs.alphabet(dag),
                ..plain
            },
            TermNode::Custom(at) => TermProperties {
                nullable: self.recognizers.is_accepting(at),
                min_len: self.recognizers.min_bytes(at),
                alphabet: ByteAlphabet {
                    ascii: self.recognizers.ascii_letters(at),
                    wide: true,
                    inside: true,
                    invalid_utf8: true,
                },
                ..plain
            },
            TermNode::Cat(head, tail) => {
                let (head, tail) = (self.properties(head), self.properties(tail));
                let joined = self.join_properties(head, tail);
                let min_len = head.min_len.saturating_add(tail.min_len);
                TermProperties { nullable: head.nullable && tail.nullable, min_len, ..joined }
            }
            TermNode::Alt(ref list)
            | TermNode::Ordered(ref list)
            | TermNode::AtomicRun(ref list) => {
                let run = matches!(term, TermNode::AtomicRun(_));
                let mut all = list.iter().map(|&id| self.properties(id));
                let first = all.next().unwrap_or(plain);
                let joined = all.fold(first, |left, right| TermProperties {
                    nullable: left.nullable || right.nullable,
                    min_len: left.min_len.min(right.min_len),
                    ..self.join_properties(left, right)
                });
                // A run's marks are its own; its atomicity looks at what follows.
                let marked = joined.marked && !run;
                let contextual = joined.contextual || run;
                let settled = joined.nullable_is_exact && !run;
                TermProperties {
                    pure: joined.pure && !run,
                    nullable_is_exact: settled,
                    marked,
                    contextual,
                    ..joined
                }
            }
            TermNode::And(ref list) => {
                let marked = list.iter().any(|&id| self.properties(id).marked);
                let contextual = list.iter().any(|&id| self.properties(id).contextual);
                let min_len = list.iter().map(|&id| self.properties(id).min_len).max().unwrap_or(0);
                let settled = list.iter().all(|&id| self.properties(id).nullable_is_exact);
                let nullable = settled && list.iter().all(|&id| self.properties(id).nullable);
                TermProperties {
                    marked,
                    contextual,
                    min_len,
                    nullable_is_exact: settled,
                    nullable,
                    ..impure
                }
            }
            TermNode::Not(id) => {
                let inner = self.properties(id);
                let nullable = inner.nullable_is_exact && !inner.nullable;
                TermProperties {
                    contextual: inner.contextual,
                    nullable_is_exact: inner.nullable_is_exact,
                    nullable,
                    ..impure
                }
            }
            TermNode::Repeat { body, min, .. } => {
                let body = self.properties(body);
                TermProperties {
                    nullable_is_exact: min == 0 || body.nullable_is_exact,
                    nullable: min == 0 || body.nullable,
                    min_len: body.min_len.saturating_mul(min),
                    ..body
                }
            }
            TermNode::Assert(_) | TermNode::LookBehind { .. } => {
                TermProperties { contextual: true, ..impure }
            }
            TermNode::Atomic(body) => TermProperties {
                contextual: true,
                min_len: self.properties(body).min_len,
                ..impure
            },
            TermNode::Scope { body, .. } => {
                TermProperties { min_len: self.properties(body).min_len, ..impure }
            }
            TermNode::Image { rest, change, nullable } => TermProperties {
                nullable,
                nullable_is_exact: true,
                ..self.image_properties(self.properties(rest), change)
            },
        }
    }

    fn join_properties(&self, left: TermProperties, right: TermProperties) -> TermProperties {
        TermProperties {
            pure: left.pure && right.pure,
            nullable_is_exact: left.nullable_is_exact && right.nullable_is_exact,
            contextual: left.contextual || right.contextual,
            marked: left.marked || right.marked,
            alphabet: left.alphabet.join(right.alphabet),
            ..left
        }
    }
}
