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

use crate::terms::{EMPTY, EPSILON, FULL, MARK, TermArena, TermId, TermNode, UNBOUNDED};

/// A cache of the derivatives inside a large one. Terms are graphs, so a shared subterm is derived
/// once. It is used only after [`DerivativeCache::FEW_STEPS`].
#[derive(Clone, Debug, Default)]
pub(crate) struct DerivativeCache {
    begun_at: u64,
    known: FxHashMap<(TermId, u8), TermId>,
}

impl DerivativeCache {
    /// Steps of one derivative that are taken without caching. Chosen, not measured.
    const FEW_STEPS: u64 = 64;

    /// Starts a derivative at the given step count.
    pub(crate) fn begin(&mut self, steps: u64) {
        self.begun_at = steps;
        if !self.known.is_empty() {
            self.known = FxHashMap::default();
        }
    }
}

/// The lookbehinds of the enclosing scope, at the position of the derivative.
pub(crate) type LookBehindContext<'a> = &'a [TermId];

impl TermArena {
    /// Returns the derivative by `byte`.
    pub(crate) fn derive(
        &mut self,
        id: TermId,
        byte: u8,
        context: LookBehindContext,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        if let Some(only) = self.derive_leaf(id, byte) {
            return Ok(only);
        }
        let is_long = work.steps > self.derivation.begun_at + DerivativeCache::FEW_STEPS;
        let is_kept = is_long && !self.properties(id).contextual;
        if is_kept && let Some(&known) = self.derivation.known.get(&(id, byte)) {
            return Ok(known);
        }
        let mut sum = Vec::new();
        self.derive_into(id, byte, context, work, &mut sum)?;
        let derivative = self.alt(sum);
        if is_kept {
            self.derivation.known.insert((id, byte), derivative);
        }
        Ok(derivative)
    }

    /// Derives a term that begins with a leaf that is not nullable, by far the most common kind
    /// inside characters.
    fn derive_leaf(&mut self, id: TermId, byte: u8) -> Option<TermId> {
        let (head, tail) = self.head_and_tail(id);
        match *self.get(head) {
            TermNode::Dawg(dag) if !self.dawgs.is_accepting(dag) => {
                let Some(next) = self.dawgs.step(dag, byte) else { return Some(EMPTY) };
                let next = self.dawg(next);
                Some(self.cat(next, tail))
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
        work: &mut StepMeter,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        // Iterates over nullable heads instead of recursing: a pattern may have very many.
        loop {
            work.step()?;
            let (head, tail) = self.head_and_tail(id);
            let properties = self.properties(head);
            if properties.contextual {
                return self.derive_contextual(head, tail, byte, context, work, sum);
            }
            let from = sum.len();
            self.derive_head(head, byte, context, work, sum)?;
            if tail != EPSILON {
                for residual in sum.iter_mut().skip(from) {
                    *residual = self.cat(*residual, tail);
                }
            }
            let nullable =
                if properties.pure { properties.nullable } else { self.nullable(head, context) };
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
        work: &mut StepMeter,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        match self.get(head).clone() {
            TermNode::Full => sum.push(FULL),
            TermNode::Dawg(dag) => {
                if let Some(next) = self.dawgs.step(dag, byte) {
                    let next = self.dawg(next);
                    sum.push(next);
                }
            }
            TermNode::Custom(at) => sum.extend(self.derive_custom(at, byte)?),
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                for &id in list.iter() {
                    self.derive_into(id, byte, context, work, sum)?;
                }
            }
            TermNode::And(list) => {
                let mut parts = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    let part = self.derive(id, byte, context, work)?;
                    if part == EMPTY {
                        return Ok(());
                    }
                    parts.push(part);
                }
                let all = self.and(parts);
                sum.push(all);
            }
            TermNode::Not(id) => {
                let inner = self.derive(id, byte, context, work)?;
                let outside = self.not(inner);
                sum.push(outside);
            }
            TermNode::Repeat { body, min, max, lazy } => {
                let from = sum.len();
                self.derive_into(body, byte, context, work, sum)?;
                let rest = self.decrement_repetition(body, min, max, lazy);
                for residual in sum.iter_mut().skip(from) {
                    *residual = self.cat(*residual, rest);
                }
            }
            TermNode::Scope { body, behinds } => {
                let next = self.derive_scope(body, &behinds, byte, work)?;
                sum.push(next);
            }
            TermNode::Image { .. } => self.derive_image(head, byte, work, sum)?,
            _ => {}
        }
        Ok(())
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

    fn derive_scope(
        &mut self,
        body: TermId,
        behinds: &Arc<[TermId]>,
        byte: u8,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        let next = self.derive(body, byte, behinds, work)?;
        if !self.properties(next).contextual {
            return Ok(next);
        }
        let mut read = Vec::with_capacity(behinds.len());
        for &behind in behinds.iter() {
            read.push(self.derive(behind, byte, behinds, work)?);
        }
        Ok(self.scope(next, read.into()))
    }

    fn derive_contextual(
        &mut self,
        head: TermId,
        tail: TermId,
        byte: u8,
        context: LookBehindContext,
        work: &mut StepMeter,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        match self.get(head).clone() {
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                for &id in list.iter() {
                    let id = self.cat(id, tail);
                    self.derive_into(id, byte, context, work, sum)?;
                }
            }
            TermNode::And(_) | TermNode::Not(_) => {
                // This is already a whole remaining input; its tail is inside.
                self.derive_head(head, byte, context, work, sum)?;
            }
            TermNode::Assert(_) | TermNode::LookBehind { .. } => {
                let condition = self.empty_condition(head, context, work)?;
                self.derive_conditional(condition, tail, byte, context, work, sum)?;
            }
            TermNode::Atomic(body) => {
                let thread = self.cat(body, MARK);
                self.derive_run(&[thread], tail, byte, context, work, sum)?;
            }
            TermNode::AtomicRun(threads) => {
                self.derive_run(&threads, tail, byte, context, work, sum)?;
            }
            TermNode::Repeat { body, min, max, lazy } => {
                // Iterations that read something: the rest of the count and the tail replace the
                // mark.
                let marked = self.cat(body, MARK);
                let once = self.derive(marked, byte, context, work)?;
                let rest = self.decrement_repetition(body, min, max, lazy);
                let after = self.cat(rest, tail);
                let next = self.replace_mark(once, after);
                sum.push(next);
                if min == 0 {
                    return self.derive_into(tail, byte, context, work, sum);
                }
                // Iterations that read nothing: under the same condition all further required ones
                // may read nothing too, before or after one that reads.
                let condition = self.empty_condition(body, context, work)?;
                if condition != EMPTY {
                    self.derive_conditional(condition, tail, byte, context, work, sum)?;
                    if max > 1 {
                        let fewer = if max == UNBOUNDED { max } else { max - 2 };
                        let rest = self.repeat(body, 0, fewer, lazy);
                        let after = self.cat(rest, tail);
                        let next = self.replace_mark(once, after);
                        let condition = self.derive(condition, byte, context, work)?;
                        let both = self.and(vec![condition, next]);
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
        work: &mut StepMeter,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        match condition {
            EMPTY => Ok(()),
            FULL => self.derive_into(tail, byte, context, work, sum),
            _ => {
                let condition = self.derive(condition, byte, context, work)?;
                let tail = self.derive(tail, byte, context, work)?;
                let both = self.and(vec![condition, tail]);
                sum.push(both);
                Ok(())
            }
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

    /// Returns the condition on the remaining input under which the term reads nothing here.
    pub(crate) fn empty_condition(
        &mut self,
        id: TermId,
        context: LookBehindContext,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        work.step()?;
        let properties = self.properties(id);
        if properties.pure {
            return Ok(if properties.nullable { FULL } else { EMPTY });
        }
        Ok(match self.get(id).clone() {
            TermNode::Mark => FULL,
            TermNode::Cat(head, tail) => {
                let first = self.empty_condition(head, context, work)?;
                if first == EMPTY {
                    return Ok(EMPTY);
                }
                let second = self.empty_condition(tail, context, work)?;
                self.and(vec![first, second])
            }
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                let mut any = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    any.push(self.empty_condition(id, context, work)?);
                }
                self.alt(any)
            }
            TermNode::And(list) => {
                // Obligations on the remaining input stay; the marked operand decides.
                let mut all = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    let marked = self.properties(id).marked;
                    all.push(if marked { self.empty_condition(id, context, work)? } else { id });
                }
                self.and(all)
            }
            TermNode::Repeat { body, min, .. } => {
                if min == 0 {
                    FULL
                } else {
                    self.empty_condition(body, context, work)?
                }
            }
            TermNode::Assert(rest) => rest,
            TermNode::LookBehind { index, negative } => {
                let behind = context.get(index as usize).copied().unwrap_or(EMPTY);
                let holds = self.empty_condition(behind, context, work)?;
                if negative { self.not(holds) } else { holds }
            }
            TermNode::Atomic(body) => {
                let thread = self.cat(body, MARK);
                self.empty_condition_of_run(&[thread], context, work)?
            }
            TermNode::AtomicRun(threads) => self.empty_condition_of_run(&threads, context, work)?,
            TermNode::Scope { body, behinds } => {
                if self.nullable(body, &behinds) {
                    FULL
                } else {
                    EMPTY
                }
            }
            TermNode::Image { nullable: true, .. } => FULL,
            _ => EMPTY,
        })
    }
}
