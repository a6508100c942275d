//! Terms: residual languages of a regular expression.
//!
//! A term denotes a language of whole remaining inputs. Reading a byte turns a term into its
//! derivative; a state of an automaton *is* a term. Equal structure has an equal id, so states meet
//! again, and counters, classes and tails are shared.
//!
//! ```text
//!  Expression ──expression_lowering──┐                  ┌── Edits, RewriteImage  (transduce/)
//!  (pattern)  ──pattern_lowering─────┤                  │
//!                                    ▼                  ▼
//!              constructors ──► TermArena ◄────────── Deriver ◄──► atomic_groups
//!                               interning,            one byte at a time,
//!                               normal forms,         within a step budget
//!                               properties
//!                                ▲  ▲  ▲
//!        leaves: Dawgs, RecognizerTable, ImagePlans
//! ```
//!
//! The [`TermArena`] builds terms and knows what their shape tells: properties, nullability. The
//! [`Deriver`](derivative::Deriver) owns an arena, a step budget, and what it caches of derivatives
//! and images; recursion runs through it, since atomic groups and images contain terms. Questions
//! with parameters of their own are small objects that borrow the arena: emptiness
//! ([`emptiness_shortcuts`]), bytes with equal derivatives ([`byte_equivalence`]).
//!
//! Lookaround needs context. An assertion before a tail is the intersection of two languages of
//! remaining inputs. For lookbehind, the enclosing [`TermNode::Scope`] carries one term per
//! lookbehind, which has read the same bytes and ends in [`TermNode::Mark`] wherever the
//! lookbehind holds.

mod arena;
mod atomic_groups;
pub(crate) mod byte_equivalence;
pub(crate) mod custom_language;
pub(crate) mod dawg;
pub(crate) mod derivative;
pub(crate) mod edit_and_rewrite_plans;
pub(crate) mod emptiness_shortcuts;
pub(crate) mod expression_lowering;
mod first_bytes;
mod image_union;
mod language_bounds;
pub(crate) mod pattern_lowering;
pub(crate) mod term_properties;
mod union_normal_form;

use std::sync::Arc;

use formalm_core::memory_bytes;

use crate::terms::custom_language::RecognizerPosition;
use crate::terms::dawg::DawgId;
use crate::terms::edit_and_rewrite_plans::ImageKind;

pub(crate) use arena::{INITIAL_CAPACITY, TermArena};

/// Identifies a term of one [`TermArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TermId(pub(crate) u32);

memory_bytes!(none: TermId);

/// The empty language.
pub(crate) const EMPTY: TermId = TermId(0);
/// The language of the empty string.
pub(crate) const EPSILON: TermId = TermId(1);
/// The language of all byte strings.
pub(crate) const FULL: TermId = TermId(2);
/// The end of a thread or lookbehind; replaced or resolved, never read past.
pub(crate) const MARK: TermId = TermId(3);

/// The count that stands for "unbounded".
pub(crate) const UNBOUNDED: u32 = u32::MAX;

/// One term. Lists are shared, so that a term can be taken apart while new ones are built.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TermNode {
    Empty,
    Epsilon,
    Full,
    Mark,
    /// The words of an acyclic automaton.
    Dawg(DawgId),
    /// The rest of a recognizer's language.
    Custom(RecognizerPosition),
    /// A concatenation. The first operand is never a `Cat`.
    Cat(TermId, TermId),
    /// A union; sorted.
    Alt(Arc<[TermId]>),
    /// A union in order of preference; only inside atomic groups.
    Ordered(Arc<[TermId]>),
    /// An intersection; sorted.
    And(Arc<[TermId]>),
    /// The complement relative to all byte strings.
    Not(TermId),
    /// `min` to `max` repetitions of the body.
    Repeat {
        body: TermId,
        min: u32,
        max: u32,
        lazy: bool,
    },
    /// An assertion that the remaining input is in a language; reads nothing.
    Assert(TermId),
    /// The assertion that lookbehind number `index` of the enclosing scope holds here (or does
    /// not).
    LookBehind {
        index: u32,
        negative: bool,
    },
    /// An atomic group.
    Atomic(TermId),
    /// An atomic group in progress: threads by preference, each ending in `Mark`.
    AtomicRun(Arc<[TermId]>),
    /// A language whose assertions see only its own string.
    Scope {
        body: TermId,
        behinds: Arc<[TermId]>,
    },
    /// The image of another term's language under edits or rewrites.
    Image {
        rest: TermId,
        change: ImageKind,
        /// The image contains the empty string; stored because deciding it takes work.
        nullable: bool,
    },
}
