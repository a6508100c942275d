//! Whether states lead to a member, where their terms do not say so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use crate::automaton::transition_table::DEAD;
use crate::automaton::{Automaton, BARREN, Core, LIVE, StateId, check};
use crate::error::{Error, Resource};
use crate::runtime::interrupt;
use crate::terms::{Term, TermId, Terms};

/// States that one search looks at where there is no end of them.
const MAX_SEEN: u64 = 6_000;

/// States after which a search that goes deep looks for those that miss the least, if it is known
/// that something is missing.
const DEEP: usize = 128;

/// Successors that a search looks at before it asks whether it is still wanted: milliseconds, and a
/// tenth of a second where terms are huge.
const POLLED: usize = 1 << 10;

/// How deep a guess looks into a term.
const DEPTH: usize = 8;

/// Terms that a guess looks at.
const TERMS: usize = 512;

/// What a state misses, with what orders those that miss as much.
type Rank = (u32, i64);

/// States of a search that have successors to look at, each with its next class.
enum Open {
    /// The deepest one is the last.
    Deep(Vec<(u32, usize)>),
    /// Those that seem to miss the least come first.
    Near(BinaryHeap<Reverse<(Rank, u32, usize)>>),
    /// The same, but all successors of a state are looked at before others are.
    Whole((u32, usize), BinaryHeap<Reverse<(Rank, u32, usize)>>),
}

impl Open {
    /// The next state and its next class; the class behind that is the next one then.
    fn next(&mut self, classes: usize) -> Option<(u32, usize)> {
        loop {
            let (state, at) = match self {
                Open::Deep(list) => {
                    let (state, next) = list.last_mut()?;
                    *next += 1;
                    (*state, *next - 1)
                }
                Open::Near(list) => {
                    let Reverse((_, state, next)) = &mut *list.peek_mut()?;
                    *next += 1;
                    (*state, *next - 1)
                }
                Open::Whole((state, next), _) => {
                    *next += 1;
                    (*state, *next - 1)
                }
            };
            if at < classes {
                return Some((state, at));
            }
            match self {
                Open::Deep(list) => drop(list.pop()),
                Open::Near(list) => drop(list.pop()),
                Open::Whole(now, list) => {
                    let Reverse((_, state, next)) = list.pop()?;
                    *now = (state, next);
                }
            }
        }
    }
}

impl Automaton {
    /// Looks for an accepting state from `root` and marks every state it learns about.
    ///
    /// Depth first, lowest bytes first: most states have a member ahead in plain ASCII, which is
    /// found without looking into characters of several bytes. After some states those come first
    /// that seem to miss the least: beside a large count, depth alone reads on until it runs out.
    /// Where there is no end of states they come first at once, as depth alone would not end, and
    /// not more than some are looked at.
    pub(crate) fn decide(&self, root: u32) -> Result<bool, Error> {
        let mut lock = self.lock();
        if let Some(live) = self.decided(&lock, root) {
            return Ok(live);
        }
        let mut open = match self.endless {
            true => Open::Near(BinaryHeap::from([Reverse(((0, 0), root, 0))])),
            false => Open::Deep(vec![(root, 0)]),
        };
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([root]);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut looked_at = 0;
        while let Some((state, at)) = open.next(self.classes.len()) {
            looked_at += 1;
            if looked_at % POLLED == 0 && interrupt::is_asked() {
                // States keep their numbers whatever others add meanwhile.
                drop(lock);
                interrupt::ask()?;
                lock = self.lock();
            }
            let core = &mut *lock;
            let next = self.fill_locked(core, state, at)?;
            let flags = self.flags.get(next as usize);
            if next == DEAD || flags & BARREN != 0 {
                continue;
            }
            edges.push((next, state));
            if flags & LIVE != 0 {
                self.mark_live(next, &mut edges);
                return Ok(true);
            }
            if !seen.insert(next) {
                continue;
            }
            match &mut open {
                Open::Deep(list) => {
                    list.push((next, 0));
                    if seen.len() == DEEP && self.rank(core, root, 0).0 > 0 {
                        let list = std::mem::take(list).into_iter();
                        let list =
                            list.map(|(one, at)| Reverse((self.rank(core, one, 0), one, at)));
                        open = Open::Whole((next, self.classes.len()), list.collect());
                    }
                }
                Open::Whole(_, list) => {
                    list.push(Reverse((self.rank(core, next, seen.len()), next, 0)));
                }
                Open::Near(list) => {
                    check(Resource::States, seen.len() as u64, MAX_SEEN)?;
                    match self.decided(core, next) {
                        Some(true) => {
                            self.mark_live(next, &mut edges);
                            return Ok(true);
                        }
                        Some(false) => continue,
                        None => {}
                    }
                    let (misses, count) = self.rank(core, next, seen.len());
                    let rank = (misses, if misses > 0 { -count } else { count });
                    list.push(Reverse((rank, next, 0)));
                }
            }
        }
        let mut seen: Vec<u32> = seen.into_iter().collect();
        seen.sort_unstable();
        for &state in &seen {
            let flags = self.flags.get(state as usize);
            self.flags.set(state as usize, flags | BARREN);
        }
        Ok(false)
    }

    /// What a state misses; of those that miss as much, the latest come first.
    fn rank(&self, core: &Core, state: u32, count: usize) -> Rank {
        let term = self.term(core, StateId(state));
        (core.terms.missing(term, DEPTH, &mut { TERMS }), -(count as i64))
    }

    /// Whether a state is live where its term tells; it is marked then.
    fn decided(&self, core: &Core, state: u32) -> Option<bool> {
        let live = core.terms.decided(self.term(core, StateId(state)))?;
        let flags = self.flags.get(state as usize);
        self.flags.set(state as usize, flags | if live { LIVE } else { BARREN });
        Some(live)
    }

    /// Marks all states that reach `state` by the given (successor, state) edges.
    fn mark_live(&self, state: u32, edges: &mut [(u32, u32)]) {
        edges.sort_unstable();
        let mut stack = vec![state];
        while let Some(state) = stack.pop() {
            let flags = self.flags.get(state as usize);
            self.flags.set(state as usize, flags | LIVE);
            let from = edges.partition_point(|edge| edge.0 < state);
            for &(_, before) in edges[from..].iter().take_while(|edge| edge.0 == state) {
                if self.flags.get(before as usize) & LIVE == 0 {
                    stack.push(before);
                }
            }
        }
    }
}

impl Terms {
    /// About how many bytes the texts of a term miss at least: a guess that guides a search.
    fn missing(&self, id: TermId, depth: usize, left: &mut usize) -> u32 {
        let least = self.facts(id).min_len;
        let (Some(depth), Some(fewer)) = (depth.checked_sub(1), left.checked_sub(1)) else {
            return least;
        };
        *left = fewer;
        let mut missing = |one: &TermId| self.missing(*one, depth, left);
        let guess = match self.get(id) {
            Term::Recognized(at) => self.recognizers.missing(*at),
            Term::Cat(first, rest) => {
                let first = missing(first);
                first.saturating_add(missing(rest))
            }
            Term::Alt(list) => list.iter().map(missing).min().unwrap_or(0),
            Term::And(list) => list.iter().map(missing).max().unwrap_or(0),
            _ => 0,
        };
        guess.max(least)
    }
}
