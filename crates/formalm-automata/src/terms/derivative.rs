//! Derivatives: what a term becomes when a byte is read.
//!
//! Pure terms are taken apart into sums of residuals (Antimirov, 1996), so that a state is a flat
//! union of "residual, then tail". Boolean terms are derived member by member (Brzozowski, 1964).
//! Contextual heads (assertions, atomic groups, and repetitions of them) are read together with
//! the tail they stand in front of.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Error, Resource};
use crate::runtime::deadline::check_deadline;
use crate::terms::{EMPTY, EPSILON, FULL, MARK, Term, TermId, Terms, UNBOUNDED};

/// The budget of steps is used up, or the time is; [`Work::spent`] knows the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// The deadline is checked each time these bits of the number of steps are zero: each 0.1 ms or so.
const CHECKED: u64 = (1 << 12) - 1;

/// Counts the steps taken while terms are derived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) steps: u64,
    pub(crate) allowed: u64,
}

impl Work {
    pub(crate) fn step(&mut self) -> Result<(), Exhausted> {
        self.steps += 1;
        if self.steps & CHECKED == 0 && check_deadline().is_err() {
            return Err(Exhausted);
        }
        if self.steps > self.allowed { Err(Exhausted) } else { Ok(()) }
    }

    /// The error to report when the budget is used up.
    pub(crate) fn spent(&self, Exhausted: Exhausted) -> Error {
        let (needed, allowed) = (self.steps, self.allowed);
        let limit = Error::Limit { resource: Resource::Steps, needed, allowed };
        check_deadline().err().unwrap_or(limit)
    }
}

/// Derivatives within a larger one, which are remembered once it has taken some steps: terms are a
/// graph, and what stands at several places is derived once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Derivation {
    begun_at: u64,
    known: FxHashMap<(TermId, u8), TermId>,
}

impl Derivation {
    /// Steps of one derivative that is read without remembering anything.
    const FEW_STEPS: u64 = 64;

    /// Begins a derivative when so many steps were taken.
    pub(crate) fn begin(&mut self, steps: u64) {
        self.begun_at = steps;
        if !self.known.is_empty() {
            self.known = FxHashMap::default();
        }
    }
}

/// The look-behinds of the enclosing scope, at the position where the derivative is taken.
pub(crate) type Context<'a> = &'a [TermId];

impl Terms {
    /// The term after `byte`.
    pub(crate) fn derive(
        &mut self,
        id: TermId,
        byte: u8,
        context: Context,
        work: &mut Work,
    ) -> Result<TermId, Exhausted> {
        if let Some(only) = self.derive_leaf(id, byte) {
            return Ok(only);
        }
        let is_long = work.steps > self.derivation.begun_at + Derivation::FEW_STEPS;
        let is_kept = is_long && !self.facts(id).contextual;
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

    /// The derivative of a term that begins with a leaf which is not nullable: by far the most
    /// common kind inside characters, and worth a short way.
    fn derive_leaf(&mut self, id: TermId, byte: u8) -> Option<TermId> {
        let (head, tail) = self.head_and_tail(id);
        match *self.get(head) {
            Term::Dag(dag) if !self.dags.is_accepting(dag) => {
                let Some(next) = self.dags.step(dag, byte) else { return Some(EMPTY) };
                let next = self.dag(next);
                Some(self.cat(next, tail))
            }
            _ => None,
        }
    }

    /// Pushes the members of a union that is the derivative.
    pub(crate) fn derive_into(
        &mut self,
        mut id: TermId,
        byte: u8,
        context: Context,
        work: &mut Work,
        sum: &mut Vec<TermId>,
    ) -> Result<(), Exhausted> {
        // A loop over nullable heads, not a recursion: a pattern may have very many.
        loop {
            work.step()?;
            let (head, tail) = self.head_and_tail(id);
            let facts = self.facts(head);
            if facts.contextual {
                return self.derive_contextual(head, tail, byte, context, work, sum);
            }
            let from = sum.len();
            self.derive_head(head, byte, context, work, sum)?;
            if tail != EPSILON {
                for residual in sum.iter_mut().skip(from) {
                    *residual = self.cat(*residual, tail);
                }
            }
            let nullable = if facts.pure { facts.nullable } else { self.nullable(head, context) };
            if !nullable || tail == EPSILON {
                return Ok(());
            }
            id = tail;
        }
    }

    /// The derivative of a head that does not look at its surroundings.
    fn derive_head(
        &mut self,
        head: TermId,
        byte: u8,
        context: Context,
        work: &mut Work,
        sum: &mut Vec<TermId>,
    ) -> Result<(), Exhausted> {
        match self.get(head).clone() {
            Term::Full => sum.push(FULL),
            Term::Dag(dag) => {
                if let Some(next) = self.dags.step(dag, byte) {
                    let next = self.dag(next);
                    sum.push(next);
                }
            }
            Term::Recognized(at) => sum.extend(self.derive_recognized(at, byte)?),
            Term::Alt(list) | Term::Ordered(list) => {
                for &id in list.iter() {
                    self.derive_into(id, byte, context, work, sum)?;
                }
            }
            Term::And(list) => {
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
            Term::Not(id) => {
                let inner = self.derive(id, byte, context, work)?;
                let outside = self.not(inner);
                sum.push(outside);
            }
            Term::Repeat { body, min, max, lazy } => {
                let from = sum.len();
                self.derive_into(body, byte, context, work, sum)?;
                let rest = self.fewer(body, min, max, lazy);
                for residual in sum.iter_mut().skip(from) {
                    *residual = self.cat(*residual, rest);
                }
            }
            Term::Scope { body, behinds } => {
                let next = self.derive_scope(body, &behinds, byte, work)?;
                sum.push(next);
            }
            Term::Image { .. } => self.derive_image(head, byte, work, sum)?,
            _ => {}
        }
        Ok(())
    }

    /// A repetition after one more iteration.
    pub(crate) fn fewer(&mut self, body: TermId, min: u32, max: u32, lazy: bool) -> TermId {
        let max = if max == UNBOUNDED { max } else { max - 1 };
        self.repeat(body, min.saturating_sub(1), max, lazy)
    }

    fn derive_scope(
        &mut self,
        body: TermId,
        behinds: &Arc<[TermId]>,
        byte: u8,
        work: &mut Work,
    ) -> Result<TermId, Exhausted> {
        let next = self.derive(body, byte, behinds, work)?;
        if !self.facts(next).contextual {
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
        context: Context,
        work: &mut Work,
        sum: &mut Vec<TermId>,
    ) -> Result<(), Exhausted> {
        match self.get(head).clone() {
            Term::Alt(list) | Term::Ordered(list) => {
                for &id in list.iter() {
                    let id = self.cat(id, tail);
                    self.derive_into(id, byte, context, work, sum)?;
                }
            }
            Term::And(_) | Term::Not(_) => {
                // A whole remaining text already: what follows it is inside.
                self.derive_head(head, byte, context, work, sum)?;
            }
            Term::Assert(_) | Term::Behind { .. } => {
                let condition = self.zero(head, context, work)?;
                self.derive_both(condition, tail, byte, context, work, sum)?;
            }
            Term::Atomic(body) => {
                let thread = self.cat(body, MARK);
                self.derive_run(&[thread], tail, byte, context, work, sum)?;
            }
            Term::Run(threads) => {
                self.derive_run(&threads, tail, byte, context, work, sum)?;
            }
            Term::Repeat { body, min, max, lazy } => {
                // Iterations that read something, with the rest of the count and the tail in
                // the place of the mark.
                let marked = self.cat(body, MARK);
                let once = self.derive(marked, byte, context, work)?;
                let rest = self.fewer(body, min, max, lazy);
                let after = self.cat(rest, tail);
                let next = self.replace_mark(once, after);
                sum.push(next);
                if min == 0 {
                    return self.derive_into(tail, byte, context, work, sum);
                }
                // Iterations that read nothing: under the same condition all that are still
                // required may read nothing, before or after one that reads.
                let condition = self.zero(body, context, work)?;
                if condition != EMPTY {
                    self.derive_both(condition, tail, byte, context, work, sum)?;
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

    /// Pushes the derivative of "`condition` holds of the remaining text, which is in `tail`".
    fn derive_both(
        &mut self,
        condition: TermId,
        tail: TermId,
        byte: u8,
        context: Context,
        work: &mut Work,
        sum: &mut Vec<TermId>,
    ) -> Result<(), Exhausted> {
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

    /// Whether the empty text belongs to the term, at the end of the whole text.
    pub(crate) fn nullable(&self, mut id: TermId, context: Context) -> bool {
        loop {
            let facts = self.facts(id);
            if facts.settled {
                return facts.nullable;
            }
            match self.get(id) {
                Term::Mark => return true,
                &Term::Cat(head, tail) => {
                    if !self.nullable(head, context) {
                        return false;
                    }
                    id = tail;
                }
                Term::Alt(list) | Term::Ordered(list) | Term::Run(list) => {
                    return list.iter().any(|&id| self.nullable(id, context));
                }
                Term::And(list) => return list.iter().all(|&id| self.nullable(id, context)),
                &Term::Not(inner) => return !self.nullable(inner, context),
                &Term::Repeat { body, min, .. } => {
                    if min == 0 {
                        return true;
                    }
                    id = body;
                }
                &Term::Assert(inner) | &Term::Atomic(inner) => id = inner,
                &Term::Behind { index, negative } => {
                    // At the end, a look-behind that has come to its mark holds.
                    let behind = context.get(index as usize).copied().unwrap_or(EMPTY);
                    return self.nullable(behind, context) != negative;
                }
                Term::Scope { body, behinds } => return self.nullable(*body, behinds),
                &Term::Image { nullable, .. } => return nullable,
                _ => return false,
            }
        }
    }

    /// The condition on the remaining text under which the term reads nothing here.
    pub(crate) fn zero(
        &mut self,
        id: TermId,
        context: Context,
        work: &mut Work,
    ) -> Result<TermId, Exhausted> {
        work.step()?;
        let facts = self.facts(id);
        if facts.pure {
            return Ok(if facts.nullable { FULL } else { EMPTY });
        }
        Ok(match self.get(id).clone() {
            Term::Mark => FULL,
            Term::Cat(head, tail) => {
                let first = self.zero(head, context, work)?;
                if first == EMPTY {
                    return Ok(EMPTY);
                }
                let second = self.zero(tail, context, work)?;
                self.and(vec![first, second])
            }
            Term::Alt(list) | Term::Ordered(list) => {
                let mut any = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    any.push(self.zero(id, context, work)?);
                }
                self.alt(any)
            }
            Term::And(list) => {
                // Obligations on the remaining text stay; the marked part is asked.
                let mut all = Vec::with_capacity(list.len());
                for &id in list.iter() {
                    let marked = self.facts(id).marked;
                    all.push(if marked { self.zero(id, context, work)? } else { id });
                }
                self.and(all)
            }
            Term::Repeat { body, min, .. } => {
                if min == 0 {
                    FULL
                } else {
                    self.zero(body, context, work)?
                }
            }
            Term::Assert(rest) => rest,
            Term::Behind { index, negative } => {
                let behind = context.get(index as usize).copied().unwrap_or(EMPTY);
                let holds = self.zero(behind, context, work)?;
                if negative { self.not(holds) } else { holds }
            }
            Term::Atomic(body) => {
                let thread = self.cat(body, MARK);
                self.zero_of_run(&[thread], context, work)?
            }
            Term::Run(threads) => self.zero_of_run(&threads, context, work)?,
            Term::Scope { body, behinds } => {
                if self.nullable(body, &behinds) {
                    FULL
                } else {
                    EMPTY
                }
            }
            Term::Image { nullable: true, .. } => FULL,
            _ => EMPTY,
        })
    }
}
