//! Atomic groups and possessive quantifiers.
//!
//! A backtracking matcher enters an atomic group, takes the first way through it that matches a
//! prefix of the remaining text, and never comes back. That is regular: keep the ways (*threads*)
//! in order of preference, each ending in the mark. When one reaches its end, those of lower
//! preference are dropped, and what follows the group may be read under the condition that no
//! thread of higher preference will match a prefix of the same remaining text.

use crate::derive::{Context, Exhausted, Work};
use crate::term::{EMPTY, EPSILON, FULL, MARK, Term, TermId, Terms};

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
        let mut expanded = Vec::new();
        for &thread in threads {
            self.expand(thread, FULL, context, work, &mut Vec::new(), &mut expanded)?;
        }
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

    /// Pushes the ways through `id`, by preference. `path` holds the repetitions entered since the
    /// last byte: entering one again means that an iteration read nothing, which ends it.
    fn expand(
        &mut self,
        id: TermId,
        condition: TermId,
        context: Context,
        work: &mut Work,
        path: &mut Vec<(TermId, TermId)>,
        threads: &mut Vec<Thread>,
    ) -> Result<(), Exhausted> {
        work.step()?;
        let (head, tail) = match *self.get(id) {
            Term::Cat(head, tail) => (head, tail),
            _ => (id, EPSILON),
        };
        match self.get(head).clone() {
            Term::Empty => {}
            Term::Mark => threads.push(Thread { condition, next: None }),
            Term::And(list) => {
                // A guarded thread: conditions, and the one member that has the mark.
                let (marked, mut all): (Vec<_>, Vec<_>) =
                    list.iter().partition(|&&id| self.facts(id).marked);
                all.push(condition);
                let condition = self.and(all);
                for id in marked {
                    self.expand(id, condition, context, work, path, threads)?;
                }
            }
            Term::Alt(list) | Term::Ordered(list) => {
                for &id in list.iter() {
                    let id = self.cat(id, tail);
                    self.expand(id, condition, context, work, path, threads)?;
                }
            }
            Term::Repeat { body, min, max, lazy } => {
                if path.contains(&(body, tail)) {
                    return self.expand(tail, condition, context, work, path, threads);
                }
                if lazy && min == 0 {
                    self.expand(tail, condition, context, work, path, threads)?;
                }
                let rest = self.fewer(body, min, max, lazy);
                let rest = self.cat(rest, tail);
                let iterate = self.cat(body, rest);
                path.push((body, tail));
                self.expand(iterate, condition, context, work, path, threads)?;
                path.pop();
                if !lazy && min == 0 {
                    self.expand(tail, condition, context, work, path, threads)?;
                }
            }
            Term::Assert(_) | Term::Behind { .. } => {
                let here = self.zero(head, context, work)?;
                let condition = self.and(vec![condition, here]);
                if condition != EMPTY {
                    self.expand(tail, condition, context, work, path, threads)?;
                }
            }
            Term::Atomic(body) => {
                let thread = self.cat(body, MARK);
                self.expand_run(&[thread], tail, condition, context, work, path, threads)?;
            }
            Term::Run(inner) => {
                self.expand_run(&inner, tail, condition, context, work, path, threads)?;
            }
            _ => threads.push(Thread { condition, next: Some(id) }),
        }
        Ok(())
    }

    /// An atomic group inside another one. Its reading threads and its ends exclude each other,
    /// so their order does not matter.
    #[expect(clippy::too_many_arguments, reason = "the state of one expansion, passed down")]
    fn expand_run(
        &mut self,
        inner: &[TermId],
        tail: TermId,
        condition: TermId,
        context: Context,
        work: &mut Work,
        path: &mut Vec<(TermId, TermId)>,
        threads: &mut Vec<Thread>,
    ) -> Result<(), Exhausted> {
        let split = self.split(inner, context, work)?;
        let run = self.run(split.reading);
        if run != EMPTY {
            let next = Some(self.cat(run, tail));
            threads.push(Thread { condition, next });
        }
        for end in split.ends {
            let condition = self.and(vec![condition, end]);
            if condition != EMPTY {
                self.expand(tail, condition, context, work, path, threads)?;
            }
        }
        Ok(())
    }
}
