//! Whether states lead to a member, where their terms do not say so.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use crate::automaton::{Automaton, BARREN, LIVE, StateId, check};
use crate::error::{Error, Resource};
use crate::table::DEAD;
use crate::term::{Term, TermId, Terms};

/// States that one search looks at where there is no end of them.
const MAX_SEEN: u64 = 6_000;

/// How deep a guess looks into a term.
const DEPTH: usize = 8;

impl Automaton {
    /// Looks for an accepting state from `root` and marks every state it learns about.
    ///
    /// Depth first, lowest bytes first: most states have a member ahead in plain ASCII, which is
    /// found without looking into characters of several bytes. Where there is no end of states,
    /// those come first that seem to miss the least, as depth alone would not end, and not more
    /// than some are looked at.
    pub(crate) fn decide(&self, root: u32) -> Result<bool, Error> {
        let core = &mut self.lock();
        let missing =
            |terms: &Terms, term| if self.endless { terms.missing(term, DEPTH) } else { 0 };
        // What a state misses, its turn, itself and its next class.
        let mut open = BinaryHeap::from([Reverse((0, 0, root, 0))]);
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([root]);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        while let Some(Reverse((misses, turn, state, at))) = open.pop() {
            if at == self.classes.len() {
                continue;
            }
            open.push(Reverse((misses, turn, state, at + 1)));
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
            if seen.insert(next) {
                if self.endless {
                    check(Resource::States, seen.len() as u64, MAX_SEEN)?;
                }
                let misses = missing(&core.terms, self.term(core, StateId(next)));
                let count = seen.len() as i64;
                let turn = if misses > 0 { count } else { -count };
                open.push(Reverse((misses, turn, next, 0)));
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
    fn missing(&self, id: TermId, depth: usize) -> u32 {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        match self.get(id) {
            Term::Recognized(at) => self.recognizers.missing(*at),
            Term::Cat(first, rest) => {
                self.missing(*first, depth).saturating_add(self.missing(*rest, depth))
            }
            Term::Alt(list) => list.iter().map(|&one| self.missing(one, depth)).min().unwrap_or(0),
            Term::And(list) => list.iter().map(|&one| self.missing(one, depth)).max().unwrap_or(0),
            Term::Not(_) => 0,
            _ => self.facts(id).min_len,
        }
    }
}
