//! Atomic groups and possessive quantifiers.
//!
//! A backtracking matcher enters an atomic group, takes the first way through it that matches a
//! prefix of the remaining text, and never comes back. That is regular: keep the ways (*threads*)
//! in order of preference, each ending in the mark. When one reaches its end, those of lower
//! preference are dropped, and what follows the group may be read under the condition that no
//! thread of higher preference will match a prefix of the same remaining text.

use std::rc::Rc;

use crate::terms::derivative::{Context, Exhausted, Work};
use crate::terms::{EMPTY, FULL, MARK, Term, TermId, Terms};

/// A way through the group from here: the condition on the remaining text under which it is open,
/// and what it reads next (`None`: it ends here).
struct Thread {
    condition: TermId,
    next: Option<TermId>,
}

/// The threads of a run at one position.
struct Split {
    /// Conditions under which the group ends here.
    ends: Vec<TermId>,
    /// Threads that read on, by preference.
    reading: Vec<TermId>,
}

/// A way through the group that is still to be divided.
struct Way {
    id: TermId,
    condition: TermId,
    entered: Option<Rc<Entered>>,
}

/// The repetitions entered since the last byte, innermost first.
struct Entered {
    repetition: (TermId, TermId),
    outside: Option<Rc<Entered>>,
}

impl Entered {
    fn has(mut entered: Option<&Rc<Entered>>, repetition: (TermId, TermId)) -> bool {
        while let Some(one) = entered {
            if one.repetition == repetition {
                return true;
            }
            entered = one.outside.as_ref();
        }
        false
    }
}

impl Terms {
    pub(crate) fn derive_run(
        &mut self,
        threads: &[TermId],
        tail: TermId,
        byte: u8,
        context: Context,
        work: &mut Work,
        sum: &mut Vec<TermId>,
    ) -> Result<(), Exhausted> {
        let split = self.split(threads, context, work)?;
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
        let run = self.run(next);
        let run = self.cat(run, tail);
        sum.push(run);
        Ok(())
    }

    /// The condition under which the group reads nothing.
    pub(crate) fn zero_of_run(
        &mut self,
        threads: &[TermId],
        context: Context,
        work: &mut Work,
    ) -> Result<TermId, Exhausted> {
        let split = self.split(threads, context, work)?;
        Ok(self.alt(split.ends))
    }

    fn split(
        &mut self,
        threads: &[TermId],
        context: Context,
        work: &mut Work,
    ) -> Result<Split, Exhausted> {
        let expanded = self.expand(threads, context, work)?;
        let mut split = Split { ends: Vec::new(), reading: Vec::new() };
        // No thread so far has ended here.
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

    /// The ways through the threads, by preference.
    ///
    /// Depth first with a stack of its own: required iterations that read nothing can be as many
    /// as a pattern asks for.
    fn expand(
        &mut self,
        threads: &[TermId],
        context: Context,
        work: &mut Work,
    ) -> Result<Vec<Thread>, Exhausted> {
        let mut found = Vec::new();
        let start = |&id: &TermId| Way { id, condition: FULL, entered: None };
        let mut stack: Vec<Way> = threads.iter().rev().map(start).collect();
        while let Some(way) = stack.pop() {
            work.step()?;
            // Ways are pushed in order and turned round: the preferred one is popped first.
            let from = stack.len();
            self.expand_way(way, context, work, &mut stack, &mut found)?;
            stack[from..].reverse();
        }
        Ok(found)
    }

    /// Pushes the ways that `way` divides into, or the thread that it is.
    fn expand_way(
        &mut self,
        way: Way,
        context: Context,
        work: &mut Work,
        ways: &mut Vec<Way>,
        found: &mut Vec<Thread>,
    ) -> Result<(), Exhausted> {
        let Way { id, condition, entered } = way;
        let (head, tail) = self.head_and_tail(id);
        let mut go = |id, condition, entered: &Option<Rc<Entered>>| {
            ways.push(Way { id, condition, entered: entered.clone() });
        };
        match self.get(head).clone() {
            Term::Empty => {}
            Term::Mark => found.push(Thread { condition, next: None }),
            Term::And(list) => {
                // A guarded thread: conditions, and the one member that has the mark.
                let (marked, mut all): (Vec<_>, Vec<_>) =
                    list.iter().partition(|&&id| self.facts(id).marked);
                all.push(condition);
                let condition = self.and(all);
                for id in marked {
                    go(id, condition, &entered);
                }
            }
            Term::Alt(list) | Term::Ordered(list) => {
                for &id in list.iter() {
                    go(self.cat(id, tail), condition, &entered);
                }
            }
            Term::Repeat { body, min, max, lazy } => {
                // Entering a repetition again means that an iteration read nothing. That counts
                // while more are required, and ends the repetition when none are.
                let again = Entered::has(entered.as_ref(), (body, tail));
                if again && min == 0 {
                    go(tail, condition, &entered);
                    return Ok(());
                }
                if lazy && min == 0 {
                    go(tail, condition, &entered);
                }
                let rest = self.fewer(body, min, max, lazy);
                let rest = self.cat(rest, tail);
                let inside = if again {
                    entered.clone()
                } else {
                    let outside = entered.clone();
                    Some(Rc::new(Entered { repetition: (body, tail), outside }))
                };
                go(self.cat(body, rest), condition, &inside);
                if !lazy && min == 0 {
                    go(tail, condition, &entered);
                }
            }
            Term::Assert(_) | Term::Behind { .. } => {
                let here = self.zero(head, context, work)?;
                let condition = self.and(vec![condition, here]);
                if condition != EMPTY {
                    go(tail, condition, &entered);
                }
            }
            Term::Atomic(_) | Term::Run(_) => {
                // An atomic group inside another one. Its reading threads and its ends exclude
                // each other, so their order does not matter.
                let inner = match self.get(head).clone() {
                    Term::Run(inner) => inner,
                    Term::Atomic(body) => [self.cat(body, MARK)].into(),
                    _ => return Ok(()),
                };
                let split = self.split(&inner, context, work)?;
                let run = self.run(split.reading);
                if run != EMPTY {
                    let next = Some(self.cat(run, tail));
                    found.push(Thread { condition, next });
                }
                for end in split.ends {
                    let condition = self.and(vec![condition, end]);
                    if condition != EMPTY {
                        go(tail, condition, &entered);
                    }
                }
            }
            _ => found.push(Thread { condition, next: Some(id) }),
        }
        Ok(())
    }
}
