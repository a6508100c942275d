//! The arena of hash-consed terms: interning, and constructors that keep a normal form.

use std::convert::Infallible;
use std::sync::Arc;

use formalm_core::{CharSet, Interner};
use rustc_hash::FxHashSet;

use crate::terms::custom_language::RecognizerTable;
use crate::terms::dawg::{DawgId, Dawgs, END};
use crate::terms::edit_and_rewrite_plans::ImagePlans;
use crate::terms::term_properties::TermProperties;
use crate::terms::{EMPTY, EPSILON, FULL, MARK, TermId, TermNode, UNBOUNDED};

/// Initial capacity of the tables: the number of terms that nearly every language has.
pub(crate) const INITIAL_CAPACITY: usize = 14;

/// The arena of terms, with the tables of their leaves.
#[derive(Clone, Debug)]
pub(crate) struct TermArena {
    terms: Interner<TermNode>,
    properties: Vec<TermProperties>,
    list_bytes: usize,
    pub(crate) dawgs: Dawgs,
    pub(crate) recognizers: RecognizerTable,
    pub(crate) plans: ImagePlans,
    /// The language of all strings, once it was requested.
    pub(super) any_string: Option<TermId>,
}

impl TermArena {
    pub(crate) fn new() -> TermArena {
        let mut terms = TermArena {
            terms: Interner::with_capacity(INITIAL_CAPACITY),
            properties: Vec::with_capacity(INITIAL_CAPACITY),
            list_bytes: 0,
            dawgs: Dawgs::new(),
            recognizers: RecognizerTable::default(),
            plans: ImagePlans::default(),
            any_string: None,
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
        self.terms.get(id.0)
    }

    pub(crate) fn properties(&self, id: TermId) -> TermProperties {
        self.properties[id.0 as usize]
    }

    /// Returns the memory in use, in bytes, to a good approximation; plans of images are small.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.terms.table_bytes()
            + self.properties.capacity() * size_of::<TermProperties>()
            + self.list_bytes
            + self.dawgs.memory_bytes()
    }

    /// Returns the number of terms.
    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn intern(&mut self, term: TermNode) -> TermId {
        if let Some(id) = self.terms.find(&term) {
            return TermId(id);
        }
        let properties = self.compute_properties(&term);
        if let TermNode::Alt(list)
        | TermNode::And(list)
        | TermNode::Ordered(list)
        | TermNode::AtomicRun(list) = &term
        {
            self.list_bytes += 16 + list.len() * size_of::<TermId>();
        }
        self.properties.push(properties);
        TermId(self.terms.intern_new(term))
    }

    pub(crate) fn dawg(&mut self, dag: DawgId) -> TermId {
        if dag == END { EPSILON } else { self.intern(TermNode::Dawg(dag)) }
    }

    /// Returns the language of one character of a set.
    pub(crate) fn class(&mut self, set: &CharSet) -> TermId {
        match self.dawgs.class(set) {
            Some(dag) => self.dawg(dag),
            None => EMPTY,
        }
    }

    /// Returns the language of some strings, which need not be sorted.
    pub(crate) fn literals(&mut self, texts: Vec<Vec<u8>>) -> TermId {
        let Ok(found) = self.literals_checked(texts, || Ok::<_, Infallible>(()));
        found
    }

    /// Returns the language of some strings, and fails where `check`, called at each string, does.
    pub(crate) fn literals_checked<E>(
        &mut self,
        mut texts: Vec<Vec<u8>>,
        check: impl FnMut() -> Result<(), E>,
    ) -> Result<TermId, E> {
        texts.sort_unstable();
        texts.dedup();
        let found = self.dawgs.words_checked(&texts, check)?;
        Ok(found.map_or(EMPTY, |dag| self.dawg(dag)))
    }

    /// Returns the language of all strings: any number of characters.
    pub(crate) fn any_string(&mut self) -> TermId {
        if let Some(known) = self.any_string {
            return known;
        }
        let any = self.class(&CharSet::all());
        let all = self.repeat(any, 0, UNBOUNDED, false);
        self.any_string = Some(all);
        all
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
        if tail == FULL {
            let properties = self.properties(head);
            if properties.pure && properties.nullable {
                return FULL;
            }
            // Any input follows, of which nothing else is asked.
            if let TermNode::Assert(rest) = *self.get(head) {
                return rest;
            }
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

    /// Returns `body{min,max}`.
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

    /// Returns `body{min,max}`, merged with an inner repetition where that is exact.
    ///
    /// `(x{m,n}){p,q}` is `x{pm,qn}` if the intervals `[cm, cn]` for `c = p..q` leave no gap.
    pub(crate) fn repeat_merged(&mut self, body: TermId, min: u32, max: u32) -> TermId {
        if let Some((inner, m, n)) = self.repetition(body) {
            let first = min.max(1);
            let no_gap = u64::from(first + 1) * u64::from(m) <= u64::from(first) * u64::from(n) + 1;
            let from_zero = min > 0 || m <= 1;
            let product = |a: u32, b: u32| {
                if a == 0 || b == 0 {
                    return Some(0);
                }
                if a == UNBOUNDED || b == UNBOUNDED {
                    return Some(UNBOUNDED);
                }
                a.checked_mul(b).filter(|&product| product != UNBOUNDED)
            };
            if let (true, true, Some(low), Some(high)) = (
                (n == UNBOUNDED || no_gap || max <= first),
                from_zero,
                product(min, m),
                product(max, n),
            ) {
                return self.repeat(inner, low, high, false);
            }
        }
        self.repeat(body, min, max, false)
    }

    /// Returns a repetition after one iteration.
    pub(crate) fn decrement_repetition(
        &mut self,
        body: TermId,
        min: u32,
        max: u32,
        lazy: bool,
    ) -> TermId {
        let max = if max == UNBOUNDED { max } else { max - 1 };
        self.repeat(body, min.saturating_sub(1), max, lazy)
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
        let mut seen = FxHashSet::default();
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
        self.widen_counted_classes(&mut flat);
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

    /// Replaces C{m,n} by Σ{m,n}, with Σ all characters, where another operand has characters of C
    /// only: only the number matters.
    fn widen_counted_classes(&mut self, list: &mut [TermId]) {
        for at in 0..list.len() {
            let Some((body, min, max)) = self.repetition(list[at]) else { continue };
            let TermNode::Dawg(dag) = self.get(body) else { continue };
            let Some(cover) = self.dawgs.class_cover(*dag).filter(|cover| !cover.is_total()) else {
                continue;
            };
            // Operands before this one may have been replaced, and no longer be within the class.
            let is_within = |&(other, &id): &(usize, &TermId)| {
                let properties = self.properties(id);
                other != at && properties.pure && properties.alphabet.within(cover)
            };
            if list.iter().enumerate().any(|one| is_within(&one)) {
                let any = self.class(&CharSet::all());
                list[at] = self.repeat(any, min, max, false);
            }
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
        let body = self.without_leading_assertions(body, &behinds);
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

    /// Returns what follows assertions at the beginning of a whole string, in conjunction with what
    /// they ask of it.
    fn without_leading_assertions(&mut self, body: TermId, behinds: &[TermId]) -> TermId {
        let TermNode::Cat(head, tail) = *self.get(body) else { return body };
        match *self.get(head) {
            TermNode::LookBehind { index, negative }
                if behinds.get(index as usize) == Some(&MARK) =>
            {
                // The mark is here, whatever follows.
                if negative { EMPTY } else { self.without_leading_assertions(tail, behinds) }
            }
            TermNode::Assert(rest) => {
                let tail = self.without_leading_assertions(tail, behinds);
                self.and(vec![rest, tail])
            }
            _ => body,
        }
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

    /// Returns `m` and `n` of Σ{m,n}, with Σ all characters.
    pub(crate) fn any_char_counts(&self, id: TermId) -> Option<(u32, u32)> {
        let (body, least, most) = self.repetition(id)?;
        let TermNode::Dawg(dag) = self.get(body) else { return None };
        let cover = self.dawgs.class_cover(*dag)?;
        cover.is_total().then_some((least, most))
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
