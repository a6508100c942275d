//! Derivatives of atomic groups and possessive quantifiers, by ordered threads.
//!
//! **Theorem.** An atomic group is regular. A backtracking matcher enters it, takes the first path
//! that matches a prefix of the remaining input, and never comes back. So keep the paths
//! (*threads*) in order of preference, each ending in `Mark`. When a thread reaches its end,
//!
//! 1. threads of lower preference are dropped;
//! 2. the tail may be read on the condition that no thread of higher preference will match a prefix
//!    of the same remaining input.

use std::rc::Rc;

use formalm_core::BudgetExhausted;

use crate::terms::derivative::Deriver;
use crate::terms::term_properties::LookBehindContext;
use crate::terms::{EMPTY, FULL, MARK, TermId, TermNode};

/// A thread at one position: the condition on the remaining input under which it is open, and what
/// it reads next (`None` if it ends here).
struct MatchThread {
    condition: TermId,
    next: Option<TermId>,
}

/// The threads of a run, split into those that end here and those that read on.
pub(super) struct SplitThreads {
    /// Conditions under which the group ends here.
    pub(super) ends: Vec<TermId>,
    /// Threads that read on, by preference.
    pub(super) reading: Vec<TermId>,
}

/// A thread that is not yet split at its choices.
struct PendingThread {
    id: TermId,
    condition: TermId,
    entered: Option<Rc<EnteredRepetitions>>,
}

/// The repetitions entered since the last byte, innermost first.
struct EnteredRepetitions {
    repetition: (TermId, TermId),
    outside: Option<Rc<EnteredRepetitions>>,
}

impl EnteredRepetitions {
    fn has(mut entered: Option<&Rc<EnteredRepetitions>>, repetition: (TermId, TermId)) -> bool {
        while let Some(one) = entered {
            if one.repetition == repetition {
                return true;
            }
            entered = one.outside.as_ref();
        }
        false
    }
}

/// The expansion of threads at one position.
struct ThreadExpansion<'a> {
    deriver: &'a mut Deriver,
    context: LookBehindContext<'a>,
    /// Threads to split; the preferred one is last.
    pending: Vec<PendingThread>,
    found: Vec<MatchThread>,
}

impl SplitThreads {
    /// Splits the threads of a run at one position.
    pub(super) fn of(
        deriver: &mut Deriver,
        threads: &[TermId],
        context: LookBehindContext,
    ) -> Result<SplitThreads, BudgetExhausted> {
        let expanded = ThreadExpansion::of(deriver, threads, context)?;
        let mut split = SplitThreads { ends: Vec::new(), reading: Vec::new() };
        // The condition that no thread so far has ended here.
        let mut open = FULL;
        for thread in expanded {
            let condition = deriver.terms.and(vec![thread.condition, open]);
            if condition == EMPTY {
                continue;
            }
            match thread.next {
                Some(next) => {
                    let next = deriver.terms.and(vec![condition, next]);
                    if !split.reading.contains(&next) {
                        split.reading.push(next);
                    }
                }
                None => {
                    let mut end = vec![condition];
                    for &higher in &split.reading {
                        let prefixes = deriver.terms.replace_mark(higher, FULL);
                        end.push(deriver.terms.not(prefixes));
                    }
                    split.ends.push(deriver.terms.and(end));
                    let otherwise = deriver.terms.not(thread.condition);
                    open = deriver.terms.and(vec![open, otherwise]);
                    if open == EMPTY {
                        break;
                    }
                }
            }
        }
        Ok(split)
    }
}

impl ThreadExpansion<'_> {
    /// Expands threads at their choices, by preference.
    ///
    /// Depth first on an explicit stack: a pattern may require very many iterations that read
    /// nothing.
    fn of(
        deriver: &mut Deriver,
        threads: &[TermId],
        context: LookBehindContext,
    ) -> Result<Vec<MatchThread>, BudgetExhausted> {
        let start = |&id: &TermId| PendingThread { id, condition: FULL, entered: None };
        let pending = threads.iter().rev().map(start).collect();
        let mut expansion = ThreadExpansion { deriver, context, pending, found: Vec::new() };
        while let Some(thread) = expansion.pending.pop() {
            expansion.deriver.work.step()?;
            // Alternatives are pushed in order and then reversed, so that the preferred one is
            // popped first.
            let from = expansion.pending.len();
            expansion.expand(thread)?;
            expansion.pending[from..].reverse();
        }
        Ok(expansion.found)
    }

    /// Pushes the threads that a thread divides into, or records it as one.
    fn expand(
        &mut self,
        PendingThread { id, condition, entered }: PendingThread,
    ) -> Result<(), BudgetExhausted> {
        let (head, tail) = self.deriver.terms.head_and_tail(id);
        match self.deriver.terms.get(head).clone() {
            TermNode::Empty => {}
            TermNode::Mark => self.found.push(MatchThread { condition, next: None }),
            TermNode::And(list) => {
                // A guarded thread: conditions, and the one operand that has the mark.
                let (marked, mut all): (Vec<_>, Vec<_>) =
                    list.iter().partition(|&&id| self.deriver.terms.properties(id).marked);
                all.push(condition);
                let condition = self.deriver.terms.and(all);
                for id in marked {
                    self.push(id, condition, &entered);
                }
            }
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                for &id in list.iter() {
                    let next = self.deriver.terms.cat(id, tail);
                    self.push(next, condition, &entered);
                }
            }
            TermNode::Repeat { body, min, max, lazy } => {
                // Entering a repetition a second time means that an iteration read nothing. It
                // counts while more iterations are required, and ends the repetition otherwise.
                let again = EnteredRepetitions::has(entered.as_ref(), (body, tail));
                if again && min == 0 {
                    self.push(tail, condition, &entered);
                    return Ok(());
                }
                if lazy && min == 0 {
                    self.push(tail, condition, &entered);
                }
                let rest = self.deriver.terms.decrement_repetition(body, min, max, lazy);
                let rest = self.deriver.terms.cat(rest, tail);
                let inside = if again {
                    entered.clone()
                } else {
                    let outside = entered.clone();
                    Some(Rc::new(EnteredRepetitions { repetition: (body, tail), outside }))
                };
                let iteration = self.deriver.terms.cat(body, rest);
                self.push(iteration, condition, &inside);
                if !lazy && min == 0 {
                    self.push(tail, condition, &entered);
                }
            }
            TermNode::Assert(_) | TermNode::LookBehind { .. } => {
                let here = self.deriver.empty_condition(head, self.context)?;
                let condition = self.deriver.terms.and(vec![condition, here]);
                if condition != EMPTY {
                    self.push(tail, condition, &entered);
                }
            }
            TermNode::Atomic(_) | TermNode::AtomicRun(_) => {
                // A nested atomic group. Its reading threads and its ends exclude each other, so
                // their order does not matter.
                let inner = match self.deriver.terms.get(head).clone() {
                    TermNode::AtomicRun(inner) => inner,
                    TermNode::Atomic(body) => [self.deriver.terms.cat(body, MARK)].into(),
                    _ => return Ok(()),
                };
                let split = SplitThreads::of(self.deriver, &inner, self.context)?;
                let run = self.deriver.terms.atomic_run(split.reading);
                if run != EMPTY {
                    let next = Some(self.deriver.terms.cat(run, tail));
                    self.found.push(MatchThread { condition, next });
                }
                for end in split.ends {
                    let condition = self.deriver.terms.and(vec![condition, end]);
                    if condition != EMPTY {
                        self.push(tail, condition, &entered);
                    }
                }
            }
            _ => self.found.push(MatchThread { condition, next: Some(id) }),
        }
        Ok(())
    }

    fn push(&mut self, id: TermId, condition: TermId, entered: &Option<Rc<EnteredRepetitions>>) {
        self.pending.push(PendingThread { id, condition, entered: entered.clone() });
    }
}
