//! The arena of hash-consed terms: residual languages of a regular expression.
//!
//! A term denotes a language of whole remaining inputs. Reading a byte turns a term into its
//! derivative ([`derivative`]); a state of an automaton *is* a term. Equal structure has an equal
//! id, so states meet again, and counters, classes and tails are shared.
//!
//! Lookaround needs context. An assertion before a tail is the intersection of two languages of
//! remaining inputs. For lookbehind, the enclosing [`TermNode::Scope`] carries one term per
//! lookbehind, which has read the same bytes and ends in [`TermNode::Mark`] wherever the
//! lookbehind holds.

mod atomic_groups;
mod byte_equivalence;
pub(crate) mod custom_language;
pub(crate) mod dawg;
pub(crate) mod derivative;
mod emptiness_shortcuts;
pub(crate) mod pattern_lowering;
pub(crate) mod term_properties;
mod union_normal_form;

use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::language_expression::Expression;
use crate::terms::custom_language::{RecognizerPosition, RecognizerTable};
use crate::terms::dawg::{DawgId, Dawgs, END};
use crate::terms::derivative::DerivativeCache;
use crate::terms::term_properties::TermProperties;
use crate::transduce::{ImageKind, ImageTables};

/// Identifies a term of one [`TermArena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TermId(pub(crate) u32);

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

/// Initial capacity of the tables: the number of terms that nearly every language has.
pub(crate) const INITIAL_CAPACITY: usize = 14;

/// The arena of terms.
#[derive(Clone, Debug)]
pub(crate) struct TermArena {
    terms: Vec<TermNode>,
    properties: Vec<TermProperties>,
    ids: FxHashMap<TermNode, TermId>,
    pub(crate) dawgs: Dawgs,
    pub(crate) recognizers: RecognizerTable,
    /// Terms of shared expressions by address, during lowering.
    pub(crate) lowered_expressions: FxHashMap<usize, (Expression, TermId)>,
    /// Cached parts of the current derivative.
    pub(crate) derivation: DerivativeCache,
    /// The language of all strings, once it was requested.
    pub(crate) any_string: Option<TermId>,
    pub(crate) images: ImageTables,
    list_bytes: usize,
}

impl TermArena {
    pub(crate) fn new() -> TermArena {
        let mut terms = TermArena {
            terms: Vec::with_capacity(INITIAL_CAPACITY),
            properties: Vec::with_capacity(INITIAL_CAPACITY),
            ids: FxHashMap::with_capacity_and_hasher(INITIAL_CAPACITY, FxBuildHasher),
            dawgs: Dawgs::new(),
            recognizers: RecognizerTable::default(),
            lowered_expressions: FxHashMap::default(),
            derivation: DerivativeCache::default(),
            any_string: None,
            images: ImageTables::default(),
            list_bytes: 0,
        };
        for term in [TermNode::Empty, TermNode::Epsilon, TermNode::Full, TermNode::Mark] {
            terms.intern(term);
        }
        terms
    }

    /// Returns the same terms with recognizers that grow independently, or `None` if these have few
    /// enough states to share.
    pub(crate) fn independent_copy(&self) -> Option<TermArena> {
        let recognizers = self.recognizers.independent_copy()?;
        Some(TermArena { recognizers, ..self.clone() })
    }

    pub(crate) fn get(&self, id: TermId) -> &TermNode {
        &self.terms[id.0 as usize]
    }

    pub(crate) fn properties(&self, id: TermId) -> TermProperties {
        self.properties[id.0 as usize]
    }

    /// Returns the memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        // A map is filled to seven eighths and has one byte per slot.
        let places = self.ids.capacity() * 8 / 7;
        self.terms.capacity() * size_of::<TermNode>()
            + self.properties.capacity() * size_of::<TermProperties>()
            + places * (size_of::<(TermNode, TermId)>() + 1)
            + self.list_bytes
            + self.dawgs.memory_bytes()
            + self.images.memory_bytes()
    }

    /// Returns the number of terms.
    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn intern(&mut self, term: TermNode) -> TermId {
        if let Some(&id) = self.ids.get(&term) {
            return id;
        }
        let properties = self.compute_properties(&term);
        if let TermNode::Alt(list)
        | TermNode::And(list)
        | TermNode::Ordered(list)
        | TermNode::AtomicRun(list) = &term
        {
            self.list_bytes += 16 + list.len() * size_of::<TermId>();
        }
        let id = TermId(self.terms.len() as u32);
        self.terms.push(term.clone());
        self.properties.push(properties);
        self.ids.insert(term, id);
        id
    }

    pub(crate) fn dawg(&mut self, dag: DawgId) -> TermId {
        if dag == END { EPSILON } else { self.intern(TermNode::Dawg(dag)) }
    }

    pub(crate) fn cat(&mut self, head: TermId, tail: TermId) -> TermId {
        match (head, tail) {
            (EMPTY, _) | (_, EMPTY) => return EMPTY,
            (EPSILON, other) | (other, EPSILON) => return other,
            _ => {}
        }
        if let TermNode::Cat(first, rest) = *self.get(head) {
            return self.cat_deep(first, rest, tail);
        }
        let properties = self.properties(head);
        if tail == FULL && properties.pure && properties.nullable {
            return FULL;
        }
        self.intern(TermNode::Cat(head, tail))
    }

    /// Returns `(first rest) tail`, re-associated to the right without recursion.
    fn cat_deep(&mut self, first: TermId, rest: TermId, tail: TermId) -> TermId {
        let mut heads = vec![first];
        let mut rest = rest;
        while let TermNode::Cat(head, next) = *self.get(rest) {
            heads.push(head);
            rest = next;
        }
        heads.push(rest);
        heads.into_iter().rev().fold(tail, |tail, head| self.cat(head, tail))
    }

    pub(crate) fn repeat(&mut self, body: TermId, min: u32, max: u32, lazy: bool) -> TermId {
        let properties = self.properties(body);
        // Iterations that read nothing make up for required ones. A lazy repetition keeps its
        // count, because it tries the body before it leaves.
        let min = if properties.pure && properties.nullable && !lazy { 0 } else { min };
        match (body, min, max) {
            (_, _, 0) | (EPSILON, _, _) | (EMPTY, 0, _) => return EPSILON,
            (EMPTY, _, _) => return EMPTY,
            (_, 1, 1) => return body,
            _ => {}
        }
        self.intern(TermNode::Repeat { body, min, max, lazy })
    }

    pub(crate) fn ordered(&mut self, list: Vec<TermId>) -> TermId {
        let mut kept: Vec<TermId> = Vec::with_capacity(list.len());
        for id in list {
            if id != EMPTY && !kept.contains(&id) {
                kept.push(id);
            }
        }
        match kept[..] {
            [] => EMPTY,
            [only] => only,
            _ => self.intern(TermNode::Ordered(kept.into())),
        }
    }

    pub(crate) fn atomic_run(&mut self, mut threads: Vec<TermId>) -> TermId {
        threads.retain(|&id| id != EMPTY);
        let mut seen = rustc_hash::FxHashSet::default();
        threads.retain(|&id| seen.insert(id));
        if threads.is_empty() { EMPTY } else { self.intern(TermNode::AtomicRun(threads.into())) }
    }

    pub(crate) fn and(&mut self, list: Vec<TermId>) -> TermId {
        let mut flat = Vec::with_capacity(list.len());
        for id in list {
            match self.get(id) {
                TermNode::And(inner) => flat.extend_from_slice(inner),
                _ => flat.push(id),
            }
        }
        flat.retain(|&id| id != FULL);
        if self.excludes_all_strings(&flat) {
            return EMPTY;
        }
        if flat.iter().any(|&id| Some(id) != self.any_string && self.is_utf8(id)) {
            flat.retain(|&id| Some(id) != self.any_string);
        }
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&EMPTY) || self.has_opposites(&flat) {
            return EMPTY;
        }
        match flat[..] {
            [] => FULL,
            [only] => only,
            _ => self.intern(TermNode::And(flat.into())),
        }
    }

    /// Returns `true` if only valid UTF-8 is required and a complement excludes all of it.
    fn excludes_all_strings(&self, list: &[TermId]) -> bool {
        let Some(any) = self.any_string else { return false };
        let takes_all = |id: &TermId| match self.get(*id) {
            &TermNode::Not(inner) => match self.get(inner) {
                TermNode::Alt(list) => list.contains(&any),
                _ => inner == any,
            },
            _ => false,
        };
        list.iter().any(takes_all) && list.iter().any(|&id| self.is_utf8(id))
    }

    /// Returns `true` if all members are known to be valid UTF-8 that starts between two
    /// characters.
    pub(crate) fn is_utf8(&self, id: TermId) -> bool {
        let TermProperties { pure, alphabet, .. } = self.properties(id);
        let is_spelled = pure && !alphabet.inside && !alphabet.invalid_utf8;
        is_spelled || matches!(self.get(id), TermNode::Custom(at) if at.is_char_boundary())
    }

    fn has_opposites(&self, list: &[TermId]) -> bool {
        list.iter().any(|&id| match self.get(id) {
            TermNode::Not(inner) => list.binary_search(inner).is_ok(),
            _ => false,
        })
    }

    pub(crate) fn not(&mut self, id: TermId) -> TermId {
        match *self.get(id) {
            TermNode::Empty => FULL,
            TermNode::Full => EMPTY,
            TermNode::Not(inner) => inner,
            _ => self.intern(TermNode::Not(id)),
        }
    }

    pub(crate) fn assert(&mut self, rest: TermId) -> TermId {
        match rest {
            FULL => EPSILON,
            EMPTY => EMPTY,
            _ => self.intern(TermNode::Assert(rest)),
        }
    }

    pub(crate) fn look_behind(&mut self, index: u32, negative: bool) -> TermId {
        self.intern(TermNode::LookBehind { index, negative })
    }

    pub(crate) fn atomic(&mut self, body: TermId) -> TermId {
        let plain =
            matches!(self.get(body), TermNode::Dawg(_) | TermNode::Epsilon | TermNode::Empty);
        if plain { body } else { self.intern(TermNode::Atomic(body)) }
    }

    pub(crate) fn scope(&mut self, body: TermId, behinds: Arc<[TermId]>) -> TermId {
        if !self.properties(body).contextual {
            return body;
        }
        let (mut body, mut all) = (body, Vec::new());
        if let TermNode::Alt(list) = self.get(body)
            && list.iter().any(|&one| !self.properties(one).contextual)
        {
            // Alternatives without lookaround stay outside the scope, where they are recognized as
            // such.
            let (inside, outside) = list.iter().partition(|&&one| self.properties(one).contextual);
            (body, all) = (self.alt(inside), outside);
        }
        all.push(self.intern(TermNode::Scope { body, behinds }));
        self.alt(all)
    }

    /// Returns head and tail; the tail of a term that is no concatenation is `EPSILON`.
    pub(crate) fn head_and_tail(&self, id: TermId) -> (TermId, TermId) {
        match *self.get(id) {
            TermNode::Cat(head, tail) => (head, tail),
            _ => (id, EPSILON),
        }
    }

    /// Returns `(body, min, max)` of a repetition.
    pub(crate) fn repetition(&self, id: TermId) -> Option<(TermId, u32, u32)> {
        match *self.get(id) {
            TermNode::Repeat { body, min, max, .. } => Some((body, min, max)),
            _ => None,
        }
    }

    /// Replaces `Mark` by `tail`.
    pub(crate) fn replace_mark(&mut self, id: TermId, tail: TermId) -> TermId {
        if !self.properties(id).marked {
            return id;
        }
        match self.get(id).clone() {
            TermNode::Mark => tail,
            TermNode::Cat(head, rest) => {
                let rest = self.replace_mark(rest, tail);
                self.cat(head, rest)
            }
            TermNode::Alt(list) => {
                let list = list.iter().map(|&id| self.replace_mark(id, tail)).collect();
                self.alt(list)
            }
            TermNode::Ordered(list) => {
                let list = list.iter().map(|&id| self.replace_mark(id, tail)).collect();
                self.ordered(list)
            }
            TermNode::And(list) => {
                let list = list.iter().map(|&id| self.replace_mark(id, tail)).collect();
                self.and(list)
            }
            _ => id,
        }
    }
}
