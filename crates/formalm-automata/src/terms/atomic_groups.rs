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

use formalm_core::{BudgetExhausted, StepMeter};

use crate::terms::derivative::LookBehindContext;
use crate::terms::{EMPTY, FULL, MARK, TermArena, TermId, TermNode};

/// A thread at one position: the condition on the remaining input under which it is open, and what
/// it reads next (`None` if it ends here).
struct MatchThread {
    condition: TermId,
    next: Option<TermId>,
}

/// The threads of a run, split into those that end here and those that read on.
struct SplitThreads {
    /// Conditions under which the group ends here.
    ends: Vec<TermId>,
    /// Threads that read on, by preference.
    reading: Vec<TermId>,
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

impl TermArena {
    pub(crate) fn derive_run(
        &mut self,
        threads: &[TermId],
        tail: TermId,
        byte: u8,
        context: LookBehindContext,
        work: &mut StepMeter,
        sum: &mut Vec<TermId>,
    ) -> Result<(), BudgetExhausted> {
        let split = self.split_threads(threads, context, work)?;
        for end in split.ends {
            let condition = self.derive(end, byte, context, work)?;
            if condition != EMPTY {
                let after = self.derive(tail, byte, context, work)?;
                let both = self.and(vec![condition, after]);
                sum.push(both);
            }
        }
        let mut next = Vec::with_capacity(split.reading.len());
        for thread in split.reading {
            next.push(self.derive(thread, byte, context, work)?);
        }
        let run = self.atomic_run(next);
        let run = self.cat(run, tail);
        sum.push(run);
        Ok(())
    }

    /// Returns the condition under which the group reads nothing.
    pub(crate) fn empty_condition_of_run(
        &mut self,
        threads: &[TermId],
        context: LookBehindContext,
        work: &mut StepMeter,
    ) -> Result<TermId, BudgetExhausted> {
        let split = self.split_threads(threads, context, work)?;
        Ok(self.alt(split.ends))
    }

    fn split_threads(
        &mut self,
        threads: &[TermId],
        context: LookBehindContext,
        work: &mut StepMeter,
    ) -> Result<SplitThreads, BudgetExhausted> {
        let expanded = self.expand_threads(threads, context, work)?;
        let mut split = SplitThreads { ends: Vec::new(), reading: Vec::new() };
        // The condition that no thread so far has ended here.
        let mut open = FULL;
        for thread in expanded {
            let condition = self.and(vec![thread.condition, open]);
            if condition == EMPTY {
                continue;
            }
            match thread.next {
                Some(next) => {
                    let next = self.and(vec![condition, next]);
                    if !split.reading.contains(&next) {
                        split.reading.push(next);
                    }
                }
                None => {
                    let mut end = vec![condition];
                    for &higher in &split.reading {
                        let prefixes = self.replace_mark(higher, FULL);
                        end.push(self.not(prefixes));
                    }
                    split.ends.push(self.and(end));
                    let otherwise = self.not(thread.condition);
                    open = self.and(vec![open, otherwise]);
                    if open == EMPTY {
                        break;
                    }
                }
            }
        }
        Ok(split)
    }

    /// Expands threads at their choices, by preference.
    ///
    /// Depth first on an explicit stack: a pattern may require very many iterations that read
    /// nothing.
    fn expand_threads(
        &mut self,
        threads: &[TermId],
        context: LookBehindContext,
        work: &mut StepMeter,
    ) -> Result<Vec<MatchThread>, BudgetExhausted> {
        let mut found = Vec::new();
        let start = |&id: &TermId| PendingThread { id, condition: FULL, entered: None };
        let mut stack: Vec<PendingThread> = threads.iter().rev().map(start).collect();
        while let Some(way) = stack.pop() {
            work.step()?;
            // Alternatives are pushed in order and then reversed, so that the preferred one is
            // popped first.
            let from = stack.len();
            self.expand_thread(way, context, work, &mut stack, &mut found)?;
            stack[from..].reverse();
        }
        Ok(found)
    }

    /// Pushes the threads that `way` divides into, or records it as one thread.
    fn expand_thread(
        &mut self,
        way: PendingThread,
        context: LookBehindContext,
        work: &mut StepMeter,
        ways: &mut Vec<PendingThread>,
        found: &mut Vec<MatchThread>,
    ) -> Result<(), BudgetExhausted> {
        let PendingThread { id, condition, entered } = way;
        let (head, tail) = self.head_and_tail(id);
        let mut go = |id, condition, entered: &Option<Rc<EnteredRepetitions>>| {
            ways.push(PendingThread { id, condition, entered: entered.clone() });
        };
        match self.get(head).clone() {
            TermNode::Empty => {}
            TermNode::Mark => found.push(MatchThread { condition, next: None }),
            TermNode::And(list) => {
                // A guarded thread: conditions, and the one operand that has the mark.
                let (marked, mut all): (Vec<_>, Vec<_>) =
                    list.iter().partition(|&&id| self.properties(id).marked);
                all.push(condition);
                let condition = self.and(all);
                for id in marked {
                    go(id, condition, &entered);
                }
            }
            TermNode::Alt(list) | TermNode::Ordered(list) => {
                for &id in list.iter() {
                    go(self.cat(id, tail), condition, &entered);
                }
            }
            TermNode::Repeat { body, min, max, lazy } => {
                // Entering a repetition a second time means that an iteration read nothing. It
                // counts while more iterations are required, and ends the repetition otherwise.
                let again = EnteredRepetitions::has(entered.as_ref(), (body, tail));
                if again && min == 0 {
                    go(tail, condition, &entered);
                    return Ok(());
                }
                if lazy && min == 0 {
                    go(tail, condition, &entered);
                }
                let rest = self.decrement_repetition(body, min, max, lazy);
                let rest = self.cat(rest, tail);
                let inside = if again {
                    entered.clone()
                } else {
                    let outside = entered.clone();
                    Some(Rc::new(EnteredRepetitions { repetition: (body, tail), outside }))
                };
                go(self.cat(body, rest), condition, &inside);
                if !lazy && min == 0 {
                    go(tail, condition, &entered);
                }
            }
            TermNode::Assert(_) | TermNode::LookBehind { .. } => {
                let here = self.empty_condition(head, context, work)?;
                let condition = self.and(vec![condition, here]);
                if condition != EMPTY {
                    go(tail, condition, &entered);
                }
            }
            TermNode::Atomic(_) | TermNode::AtomicRun(_) => {
                // A nested atomic group. Its reading threads and its ends exclude each other, so
                // their order does not matter.
                let inner = match self.get(head).clone() {
                    TermNode::AtomicRun(inner) => inner,
                    TermNode::Atomic(body) => [self.cat(body, MARK)].into(),
                    _ => return Ok(()),
                };
                let split = self.split_threads(&inner, context, work)?;
                let run = self.atomic_run(split.reading);
                if run != EMPTY {
                    let next = Some(self.cat(run, tail));
                    found.push(MatchThread { condition, next });
                }
                for end in split.ends {
                    let condition = self.and(vec![condition, end]);
                    if condition != EMPTY {
                        go(tail, condition, &entered);
                    }
                }
            }
            _ => found.push(MatchThread { condition, next: Some(id) }),
        }
        Ok(())
    }
}
