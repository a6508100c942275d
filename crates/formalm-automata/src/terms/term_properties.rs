//! Static properties of terms: nullability, minimum length, alphabet, and dependence on context.

use std::num::NonZeroU32;

use crate::terms::dawg::ByteAlphabet;
use crate::terms::edit_and_rewrite_plans::{EditPlan, EditsId, ImageKind};
use crate::terms::{EMPTY, TermArena, TermId, TermNode, UNBOUNDED};

/// The lookbehinds of the enclosing scope, at the current position.
pub(crate) type LookBehindContext<'a> = &'a [TermId];

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
    /// Some member has `min_len` bytes, unless that is saturated.
    pub(crate) min_len_is_exact: bool,
    /// A number of characters that can be appended to every member as often as one likes, or fewer:
    /// members end with a loop. Alternatives may differ, and the number bounds that of each. `None`
    /// if the term does not show it.
    pub(crate) appendable_chars: Option<NonZeroU32>,
    /// The bytes of its members; meaningful for pure terms only.
    pub(crate) alphabet: ByteAlphabet,
    /// A hand-written recognizer may read part of a member.
    pub(crate) has_recognizer: bool,
}

impl TermArena {
    /// Computes the properties of a term from those of its parts.
    pub(super) fn compute_properties(&self, term: &TermNode) -> TermProperties {
        let plain = TermProperties {
            pure: true,
            contextual: false,
            marked: false,
            nullable: false,
            nullable_is_exact: true,
            min_len: 0,
            min_len_is_exact: true,
            appendable_chars: None,
            alphabet: ByteAlphabet::default(),
            has_recognizer: false,
        };
        let impure = TermProperties {
            pure: false,
            nullable_is_exact: false,
            min_len_is_exact: false,
            ..plain
        };
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
                min_len_is_exact: false,
                alphabet: ByteAlphabet {
                    ascii: self.recognizers.ascii_letters(at),
                    wide: true,
                    inside: true,
                    invalid_utf8: true,
                },
                has_recognizer: true,
                ..plain
            },
            TermNode::Cat(head, tail) => {
                let (head, tail) = (self.properties(head), self.properties(tail));
                let joined = head.join(tail);
                let min_len = head.min_len.saturating_add(tail.min_len);
                TermProperties {
                    nullable: head.nullable && tail.nullable,
                    min_len,
                    appendable_chars: tail.appendable_chars,
                    ..joined
                }
            }
            TermNode::Alt(ref list)
            | TermNode::Ordered(ref list)
            | TermNode::AtomicRun(ref list) => {
                let run = matches!(term, TermNode::AtomicRun(_));
                let is_union = matches!(term, TermNode::Alt(_));
                let mut all = list.iter().map(|&id| self.properties(id));
                let first = all.next().unwrap_or(plain);
                let joined = all.fold(first, |left, right| TermProperties {
                    nullable: left.nullable || right.nullable,
                    min_len: left.min_len.min(right.min_len),
                    appendable_chars: left
                        .appendable_chars
                        .zip(right.appendable_chars)
                        .map(|(one, other)| one.max(other)),
                    ..left.join(right)
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
                    appendable_chars: joined.appendable_chars.filter(|_| is_union),
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
                    has_recognizer: list.iter().any(|&id| self.properties(id).has_recognizer),
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
                    has_recognizer: inner.has_recognizer,
                    ..impure
                }
            }
            TermNode::Repeat { body, min, max, .. } => {
                let is_loop = max == UNBOUNDED && self.is_utf8(body);
                let body = self.properties(body);
                let is_known = is_loop && body.pure && body.min_len_is_exact;
                let shortest = NonZeroU32::new(body.min_len).filter(|one| one.get() < UNBOUNDED);
                TermProperties {
                    appendable_chars: shortest.filter(|_| is_known),
                    nullable_is_exact: min == 0 || body.nullable_is_exact,
                    nullable: min == 0 || body.nullable,
                    min_len: body.min_len.saturating_mul(min),
                    ..body
                }
            }
            TermNode::Assert(_) | TermNode::LookBehind { .. } => {
                TermProperties { contextual: true, has_recognizer: true, ..impure }
            }
            TermNode::Atomic(body) => TermProperties {
                contextual: true,
                min_len: self.properties(body).min_len,
                has_recognizer: self.properties(body).has_recognizer,
                ..impure
            },
            // What the lookbehinds read is not looked at.
            TermNode::Scope { body, .. } => TermProperties {
                min_len: self.properties(body).min_len,
                has_recognizer: true,
                ..impure
            },
            TermNode::Image { rest, change, nullable } => TermProperties {
                nullable,
                nullable_is_exact: true,
                min_len_is_exact: false,
                appendable_chars: None,
                ..self.image_properties(self.properties(rest), change)
            },
        }
    }

    /// Returns the properties of an image, except `nullable`.
    fn image_properties(&self, rest: TermProperties, change: ImageKind) -> TermProperties {
        let edited = |edits: EditsId, budget: u32| {
            let plan = self.plans.edits(edits);
            rest.edited(plan, budget, self.properties(plan.alphabet).alphabet)
        };
        match change {
            ImageKind::Edit { budget, edits, .. } => edited(edits, budget),
            ImageKind::Gate { edits, .. } => {
                TermProperties { pure: false, ..edited(edits, self.plans.edits(edits).budget) }
            }
            ImageKind::Rewrite { rules } => {
                let plan = self.plans.rewrites(rules);
                let targets = plan.rules.iter().map(|rule| self.properties(rule.target));
                let unchanged =
                    TermProperties { min_len: 0, pure: rest.pure && plan.optional, ..rest };
                targets.fold(unchanged, |all, target| TermProperties {
                    pure: all.pure && target.pure,
                    alphabet: all.alphabet.join(target.alphabet),
                    ..all
                })
            }
        }
    }

    /// Returns a lower bound on the characters of a pure term's members, if these are valid UTF-8;
    /// otherwise 0.
    pub(crate) fn min_chars_of_utf8(&self, id: TermId) -> u32 {
        let TermProperties { pure, min_len, alphabet, .. } = self.properties(id);
        match pure && self.is_utf8(id) {
            true if alphabet.wide => min_len.div_ceil(4),
            true => min_len,
            false => 0,
        }
    }

    /// Returns `true` if the term contains the empty string at the end of the whole input.
    pub(crate) fn nullable(&self, mut id: TermId, context: LookBehindContext) -> bool {
        loop {
            let properties = self.properties(id);
            if properties.nullable_is_exact {
                return properties.nullable;
            }
            match self.get(id) {
                TermNode::Mark => return true,
                &TermNode::Cat(head, tail) => {
                    if !self.nullable(head, context) {
                        return false;
                    }
                    id = tail;
                }
                TermNode::Alt(list) | TermNode::Ordered(list) | TermNode::AtomicRun(list) => {
                    return list.iter().any(|&id| self.nullable(id, context));
                }
                TermNode::And(list) => return list.iter().all(|&id| self.nullable(id, context)),
                &TermNode::Not(inner) => return !self.nullable(inner, context),
                &TermNode::Repeat { body, min, .. } => {
                    if min == 0 {
                        return true;
                    }
                    id = body;
                }
                &TermNode::Assert(inner) | &TermNode::Atomic(inner) => id = inner,
                &TermNode::LookBehind { index, negative } => {
                    // At the end of the input, a lookbehind that has reached its mark holds.
                    let behind = context.get(index as usize).copied().unwrap_or(EMPTY);
                    return self.nullable(behind, context) != negative;
                }
                TermNode::Scope { body, behinds } => return self.nullable(*body, behinds),
                &TermNode::Image { nullable, .. } => return nullable,
                _ => return false,
            }
        }
    }
}

impl TermProperties {
    /// Returns what holds of a concatenation or union by both parts; the rest is that of `self`.
    fn join(self, other: TermProperties) -> TermProperties {
        TermProperties {
            pure: self.pure && other.pure,
            nullable_is_exact: self.nullable_is_exact && other.nullable_is_exact,
            contextual: self.contextual || other.contextual,
            marked: self.marked || other.marked,
            min_len_is_exact: self.min_len_is_exact && other.min_len_is_exact,
            alphabet: self.alphabet.join(other.alphabet),
            has_recognizer: self.has_recognizer || other.has_recognizer,
            ..self
        }
    }

    /// Returns the properties of the strings within `budget` edits, except `nullable`; `written` is
    /// the alphabet of the plan.
    fn edited(self, plan: &EditPlan, budget: u32, written: ByteAlphabet) -> TermProperties {
        let shrinks = plan.operations.delete || plan.operations.substitute;
        let lost = if shrinks { budget.saturating_mul(4) } else { 0 };
        TermProperties {
            pure: self.pure && plan.before.is_none(),
            min_len: self.min_len.saturating_sub(lost),
            alphabet: self.alphabet.join(written),
            ..self
        }
    }
}
