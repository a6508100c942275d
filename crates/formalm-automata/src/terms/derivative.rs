//! Derivatives: the residual of a term after a byte.
//!
//! * Pure terms are split into unions of partial derivatives (Antimirov, 1996). A state is then a
//!   flat union of "residual, then tail".
//! * Boolean terms are derived operand by operand (Brzozowski, 1964).
//! * Contextual heads (assertions, atomic groups and their repetitions) are derived together with
//!   their tail.

use std::sync::Arc;

use formalm_core::{BudgetExhausted, StepMeter};
use rustc_hash::FxHashMap;

use crate::terms::atomic_groups::SplitThreads;
use crate::terms::term_properties::LookBehindContext;
use crate::terms::{EMPTY, EPSILON, FULL, MARK, TermArena, TermId, TermNode, UNBOUNDED};
use crate::transduce::ImageCache;

/// A cache of the derivatives inside a large one. Terms are graphs, so a shared subterm is derived
/// once. It is used only after [`DerivativeCache::FEW_STEPS`].
#[derive(Clone, Debug, Default)]
struct DerivativeCache {
    begun_at: u64,
    known: FxHashMap<(TermId, u8), TermId>,
}

impl DerivativeCache {
    /// Steps of one derivative that are taken without caching. Chosen, not measured.
    const FEW_STEPS: u64 = 64;

    /// Starts a derivative at the given step count.
    fn begin(&mut self, steps: u64) {
        self.begun_at = steps;
        if !self.known.is_empty() {
            self.known = FxHashMap::default();
        }
    }
}

/// Terms, the budget of steps that derive them, and what is cached of derivatives.
///
/// Derivatives recurse through atomic groups (`terms/atomic_groups.rs`) and images (`transduce/`),
/// which borrow the deriver; so it is the one owner of all tables that grow while terms are read.
#[derive(Debug)]
pub(crate) struct Deriver {
    pub(crate) terms: TermArena,
    pub(crate) work: StepMeter,
    cache: DerivativeCache,
    pub(crate) images: ImageCache,
}

impl Deriver {
    /// Creates a deriver of no terms, with a step budget.
    pub(crate) fn new(work: StepMeter) -> Deriver {
        Deriver {
            terms: TermArena::new(),
            work,
            cache: DerivativeCache::default(),
            images: ImageCache::default(),
        }
    }

    /// Returns the same terms with recognizers that grow independently, or `None` if these have few
    /// enough states to share.
    pub(crate) fn independent_copy(&self) -> Option<Deriver> {
        let terms = self.terms.independent_copy()?;
        let (cache, images) = (self.cache.clone(), self.images.clone());
        Some(Deriver { terms, work: self.work, cache, images })
    }

    /// Returns the memory in use, in bytes, to a good approximation.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes() + self.images.memory_bytes()
    }

    /// Returns the derivative of a term that depends on nothing around it; caches start anew.
    pub(crate) fn derive_state(&mut self, id: TermId, byte: u8) -> Result<TermId, BudgetExhausted> {
        self.cache.begin(self.work.steps);
        self.derive(id, byte, &[])
    }

    /// Returns the derivative by `byte`.
    pub(crate) fn derive(
        &mut self,
        id: TermId,
        byte: u8,
        context: LookBehindContext,
    ) -> Result<TermId, BudgetExhausted> {
        if let Some(only) = self.derive_leaf(id, byte) {
            return Ok(only);
        }
        let is_long = self.work.steps > self.cache.begun_at + DerivativeCache::FEW_STEPS;
        let is_kept = is_long && !self.terms.properties(id).contextual;
        if is_kept && let Some(&known) = self.cache.known.get(&(id, byte)) {
            return Ok(known);
        }
        let mut sum = Vec::new();
        self.derive_into(id, byte, context, &mut sum)?;
        let derivative = self.terms.alt(sum);
        if is_kept {
            self.cache.known.insert((id, byte), derivative);
        }
        Ok(derivative)
    }

    /// Derives a term that begins with a leaf that is not nullable, by far the most common kind
    /// inside characters.
    fn derive_leaf(&mut self, id: TermId, byte: u8) -> Option<TermId> {
        let (head, tail) = self.terms.head_and_tail(id);
        match *self.terms.get(head) {
            TermNode::Dawg(dag) if !self.terms.dawgs.is_accepting(dag) => {
                let Some(next) = self.terms.dawgs.step(dag, byte) else { return Some(EMPTY) };
                let next = self.terms.dawg(next);
                Some(self.terms.cat(next, tail))
            }
            _ => None,
        }
    }

    /// Pushes the operands of the union that is the derivative.
    pub(crate) fn derive_into(
        &mut self,
        mut id: TermId,
        byte: u8,
        context: LookBehindContext,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        // Iterates over nullable heads instead of recursing: a pattern may have very many.
        loop {
            self.work.step()?;
            let (head, tail) = self.terms.head_and_tail(id);
            let properties = self.terms.properties(head);
            if properties.contextual {
                return self.derive_contextual(head, tail, byte, context, sum);
            }
            let from = sum.len();
            self.derive_head(head, byte, context, sum)?;
            if tail != EPSILON {
                for residual in sum.iter_mut().skip(from) {
                    *residual = self.terms.cat(*residual, tail);
                }
            }
            let nullable = if properties.pure {
                properties.nullable
            } else {
                self.terms.nullable(head, context)
            };
            if !nullable || tail == EPSILON {
                return Ok(());
            }
            id = tail;
        }
    }

    /// Derives a head that does not look at its context.
    fn derive_head(
        &mut self,
        head: TermId,
        byte: u8,
        context: LookBehindContext,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        match self.terms.get(head).clone() {
            TermNode::Full => sum.push(FULL),
            TermNode::Dawg(dag) => {
                if let Some(next) = self.terms.dawgs.step(dag, byte) {
                    let next = self.terms.dawg(next);
                    sum.push(next);
                }
            }
            TermNode::Custom(at) => {
                if let Some(next) = self.terms.recognizers.step_within_limits(at, byte)? {
                    sum.push(self.terms.intern(TermNode::Custom(next)));
                }
            }
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                for &id in list.iter() {
                    self.derive_into(id, byte, context, sum)?;
                }
            }
            TermNode::And(list) => {
                let mut parts = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    let part = self.derive(id, byte, context)?;
                    if part == EMPTY {
                        return Ok(());
                    }
                    parts.push(part);
                }
                let all = self.terms.and(parts);
                sum.push(all);
            }
            TermNode::Not(id) => {
                let inner = self.derive(id, byte, context)?;
                let outside = self.terms.not(inner);
                sum.push(outside);
            }
            TermNode::Repeat { body, min, max, lazy } => {
                let from = sum.len();
                self.derive_into(body, byte, context, sum)?;
                let rest = self.terms.decrement_repetition(body, min, max, lazy);
                for residual in sum.iter_mut().skip(from) {
                    *residual = self.terms.cat(*residual, rest);
                }
            }
            TermNode::Scope { body, behinds } => {
                let next = self.derive_scope(body, &behinds, byte)?;
                sum.push(next);
            }
            TermNode::Image { .. } => self.derive_image(head, byte, sum)?,
            _ => {}
        }
        Ok(())
    }

    fn derive_scope(
        &mut self,
        body: TermId,
        behinds: &Arc<[TermId]>,
        byte: u8,
    ) -> Result<TermId, BudgetExhausted> {
        let next = self.derive(body, byte, behinds)?;
        if !self.terms.properties(next).contextual {
            return Ok(next);
        }
        let mut read = Vec::with_capacity(behinds.len());
        for &behind in behinds.iter() {
            read.push(self.derive(behind, byte, behinds)?);
        }
        Ok(self.terms.scope(next, read.into()))
    }

    fn derive_contextual(
        &mut self,
        head: TermId,
        tail: TermId,
        byte: u8,
        context: LookBehindContext,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        match self.terms.get(head).clone() {
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                for &id in list.iter() {
                    let id = self.terms.cat(id, tail);
                    self.derive_into(id, byte, context, sum)?;
                }
            }
            TermNode::And(_) | TermNode::Not(_) => {
                // This is already a whole remaining input; its tail is inside.
                self.derive_head(head, byte, context, sum)?;
            }
            TermNode::Assert(_) | TermNode::LookBehind { .. } => {
                let condition = self.empty_condition(head, context)?;
                self.derive_conditional(condition, tail, byte, context, sum)?;
            }
            TermNode::Atomic(body) => {
                let thread = self.terms.cat(body, MARK);
                self.derive_run(&[thread], tail, byte, context, sum)?;
            }
            TermNode::AtomicRun(threads) => {
                self.derive_run(&threads, tail, byte, context, sum)?;
            }
            TermNode::Repeat { body, min, max, lazy } => {
                // Iterations that read something: the rest of the count and the tail replace the
                // mark.
                let marked = self.terms.cat(body, MARK);
                let once = self.derive(marked, byte, context)?;
                let rest = self.terms.decrement_repetition(body, min, max, lazy);
                let after = self.terms.cat(rest, tail);
                let next = self.terms.replace_mark(once, after);
                sum.push(next);
                if min == 0 {
                    return self.derive_into(tail, byte, context, sum);
                }
                // Iterations that read nothing: under the same condition all further required ones
                // may read nothing too, before or after one that reads.
                let condition = self.empty_condition(body, context)?;
                if condition != EMPTY {
                    self.derive_conditional(condition, tail, byte, context, sum)?;
                    if max > 1 {
                        let fewer = if max == UNBOUNDED { max } else { max - 2 };
                        let rest = self.terms.repeat(body, 0, fewer, lazy);
                        let after = self.terms.cat(rest, tail);
                        let next = self.terms.replace_mark(once, after);
                        let condition = self.derive(condition, byte, context)?;
                        let both = self.terms.and(vec![condition, next]);
                        sum.push(both);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Pushes the derivative of "`condition` holds for the remaining input, which is in `tail`".
    fn derive_conditional(
        &mut self,
        condition: TermId,
        tail: TermId,
        byte: u8,
        context: LookBehindContext,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        match condition {
            EMPTY => Ok(()),
            FULL => self.derive_into(tail, byte, context, sum),
            _ => {
                let condition = self.derive(condition, byte, context)?;
                let tail = self.derive(tail, byte, context)?;
                let both = self.terms.and(vec![condition, tail]);
                sum.push(both);
                Ok(())
            }
        }
    }

    /// Returns the condition on the remaining input under which the term reads nothing here.
    pub(crate) fn empty_condition(
        &mut self,
        id: TermId,
        context: LookBehindContext,
    ) -> Result<TermId, BudgetExhausted> {
        self.work.step()?;
        let properties = self.terms.properties(id);
        if properties.pure {
            return Ok(if properties.nullable { FULL } else { EMPTY });
        }
        Ok(match self.terms.get(id).clone() {
            TermNode::Mark => FULL,
            TermNode::Cat(head, tail) => {
                let first = self.empty_condition(head, context)?;
                if first == EMPTY {
                    return Ok(EMPTY);
                }
                let second = self.empty_condition(tail, context)?;
                self.terms.and(vec![first, second])
            }
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                let mut any = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    any.push(self.empty_condition(id, context)?);
                }
                self.terms.alt(any)
            }
            TermNode::And(list) => {
                // Obligations on the remaining input stay; the marked operand decides.
                let mut all = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    let marked = self.terms.properties(id).marked;
                    all.push(if marked { self.empty_condition(id, context)? } else { id });
                }
                self.terms.and(all)
            }
            TermNode::Repeat { body, min, .. } => {
                if min == 0 {
                    FULL
                } else {
                    self.empty_condition(body, context)?
                }
            }
            TermNode::Assert(rest) => rest,
            TermNode::LookBehind { index, negative } => {
                let behind = context.get(index as usize).copied().unwrap_or(EMPTY);
                let holds = self.empty_condition(behind, context)?;
                if negative { self.terms.not(holds) } else { holds }
            }
            TermNode::Atomic(body) => {
                let thread = self.terms.cat(body, MARK);
                self.empty_condition_of_run(&[thread], context)?
            }
            TermNode::AtomicRun(threads) => self.empty_condition_of_run(&threads, context)?,
            TermNode::Scope { body, behinds } => {
                if self.terms.nullable(body, &behinds) {
                    FULL
                } else {
                    EMPTY
                }
            }
            TermNode::Image { nullable: true, .. } => FULL,
            _ => EMPTY,
        })
    }

    /// Pushes the derivative of an atomic group in progress before a tail.
    fn derive_run(
        &mut self,
        threads: &[TermId],
        tail: TermId,
        byte: u8,
        context: LookBehindContext,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        let split = SplitThreads::of(self, threads, context)?;
        for end in split.ends {
            let condition = self.derive(end, byte, context)?;
            if condition != EMPTY {
                let after = self.derive(tail, byte, context)?;
                let both = self.terms.and(vec![condition, after]);
                sum.push(both);
            }
        }
        let mut next = Vec::with_capacity(split.reading.len());
        for thread in split.reading {
            next.push(self.derive(thread, byte, context)?);
        }
        let run = self.terms.atomic_run(next);
        let run = self.terms.cat(run, tail);
        sum.push(run);
        Ok(())
    }

    /// Returns the condition under which the group reads nothing.
    fn empty_condition_of_run(
        &mut self,
        threads: &[TermId],
        context: LookBehindContext,
    ) -> Result<TermId, BudgetExhausted> {
        let split = SplitThreads::of(self, threads, context)?;
        Ok(self.terms.alt(split.ends))
    }
}
