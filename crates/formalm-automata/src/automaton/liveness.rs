//! Liveness of states: a search for an accepting state, where the term does not decide it.
//!
//! ```text
//!  liveness(state):  term shortcut
//!                    ──► depth first, low bytes first
//!                    ──► after DEPTH_FIRST_STATES: best first by estimated missing bytes
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{Error, Resource, StateId, check_limit, interrupt};
use rustc_hash::FxHashSet;

use crate::automaton::transition_table::DEAD;
use crate::automaton::{Automaton, AutomatonCore, LIVE, NOT_LIVE};
use crate::terms::{TermArena, TermId, TermNode};

/// Maximum number of states one search visits where the automaton has very many. Chosen, not
/// measured.
const MAX_SEARCH_STATES: u64 = 6_000;

/// Number of states after which a depth-first search becomes best-first, if something is known to
/// be missing. Chosen, not measured.
const DEPTH_FIRST_STATES: usize = 128;

/// Successors computed between two interrupt checks: milliseconds, and 0.1 s where terms are huge.
const SUCCESSORS_PER_POLL: usize = 1 << 10;

/// Maximum depth of terms that an estimate examines. Chosen, not measured.
const ESTIMATE_DEPTH: usize = 8;

/// Maximum number of terms that an estimate examines. Chosen, not measured.
const ESTIMATE_TERMS: usize = 512;

/// The estimated missing bytes of a state, and a tie-breaker.
type SearchRank = (u32, i64);

/// The frontier of a search: states with successors to visit, each with its next byte class.
enum SearchFrontier {
    /// A stack: the deepest state is last.
    DepthFirst(Vec<(u32, usize)>),
    /// A heap by estimated missing bytes.
    BestFirst(BinaryHeap<Reverse<(SearchRank, u32, usize)>>),
    /// A heap by estimated missing bytes; all successors of one state are visited before the next.
    BestFirstByState((u32, usize), BinaryHeap<Reverse<(SearchRank, u32, usize)>>),
}

impl SearchFrontier {
    /// Returns the next state and byte class, and advances that class.
    fn next(&mut self, classes: usize) -> Option<(u32, usize)> {
        loop {
            let (state, at) = match self {
                SearchFrontier::DepthFirst(list) => {
                    let (state, next) = list.last_mut()?;
                    *next += 1;
                    (*state, *next - 1)
                }
                SearchFrontier::BestFirst(list) => {
                    let Reverse((_, state, next)) = &mut *list.peek_mut()?;
                    *next += 1;
                    (*state, *next - 1)
                }
                SearchFrontier::BestFirstByState((state, next), _) => {
                    *next += 1;
                    (*state, *next - 1)
                }
            };
            if at < classes {
                return Some((state, at));
            }
            match self {
                SearchFrontier::DepthFirst(list) => drop(list.pop()),
                SearchFrontier::BestFirst(list) => drop(list.pop()),
                SearchFrontier::BestFirstByState(now, list) => {
                    let Reverse((_, state, next)) = list.pop()?;
                    *now = (state, next);
                }
            }
        }
    }
}

impl Automaton {
    /// Searches for an accepting state from `root` and marks every state it decides.
    ///
    /// Depth first, lowest bytes first: most states have a completion in plain ASCII, which is
    /// found without visiting multi-byte characters. After some states the search becomes
    /// best-first: with a large counter, depth-first search would read on until the counter runs
    /// out. Automata with very many states are searched best-first from the start, where
    /// depth-first search need not terminate, and up to a limit.
    pub(crate) fn search_liveness(&self, root: u32) -> Result<bool, Error> {
        let mut lock = self.lock();
        if let Some(live) = self.liveness_from_term(&lock, root) {
            return Ok(live);
        }
        let mut open = match self.many_states {
            true => SearchFrontier::BestFirst(BinaryHeap::from([Reverse(((0, 0), root, 0))])),
            false => SearchFrontier::DepthFirst(vec![(root, 0)]),
        };
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([root]);
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut visited = 0;
        while let Some((state, at)) = open.next(self.classes.len()) {
            visited += 1;
            if visited % SUCCESSORS_PER_POLL == 0 && interrupt::is_interruptible() {
                // States keep their numbers whatever other threads add meanwhile.
                drop(lock);
                interrupt::check_interrupt()?;
                lock = self.lock();
            }
            let core = &mut *lock;
            let next = self.fill_row_locked(core, state, at)?;
            let flags = self.flags.get(next as usize);
            if next == DEAD || flags & NOT_LIVE != 0 {
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
                SearchFrontier::DepthFirst(list) => {
                    list.push((next, 0));
                    if seen.len() == DEPTH_FIRST_STATES && self.rank(core, root, 0).0 > 0 {
                        let list = std::mem::take(list).into_iter();
                        let list =
                            list.map(|(one, at)| Reverse((self.rank(core, one, 0), one, at)));
                        open = SearchFrontier::BestFirstByState(
                            (next, self.classes.len()),
                            list.collect(),
                        );
                    }
                }
                SearchFrontier::BestFirstByState(_, list) => {
                    list.push(Reverse((self.rank(core, next, seen.len()), next, 0)));
                }
                SearchFrontier::BestFirst(list) => {
                    check_limit(Resource::States, seen.len() as u64, MAX_SEARCH_STATES)?;
                    match self.liveness_from_term(core, next) {
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
            self.flags.set(state as usize, flags | NOT_LIVE);
        }
        Ok(false)
    }

    /// Ranks a state by its estimated missing bytes; among equals the latest comes first.
    fn rank(&self, core: &AutomatonCore, state: u32, count: usize) -> SearchRank {
        let term = self.term(core, StateId::from_number(state));
        (
            core.terms.estimated_missing_bytes(term, ESTIMATE_DEPTH, &mut { ESTIMATE_TERMS }),
            -(count as i64),
        )
    }

    /// Decides and marks a state's liveness where its term shows it.
    fn liveness_from_term(&self, core: &AutomatonCore, state: u32) -> Option<bool> {
        let live = core.terms.nonempty_shortcut(self.term(core, StateId::from_number(state)))?;
        let flags = self.flags.get(state as usize);
        self.flags.set(state as usize, flags | if live { LIVE } else { NOT_LIVE });
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

impl TermArena {
    /// Returns an estimate of the bytes missing at least, to guide the search.
    fn estimated_missing_bytes(&self, id: TermId, depth: usize, left: &mut usize) -> u32 {
        let least = self.properties(id).min_len;
        let (Some(depth), Some(fewer)) = (depth.checked_sub(1), left.checked_sub(1)) else {
            return least;
        };
        *left = fewer;
        let mut missing = |one: &TermId| self.estimated_missing_bytes(*one, depth, left);
        let guess = match self.get(id) {
            TermNode::Custom(at) => self.recognizers.estimated_missing_bytes(*at),
            TermNode::Cat(first, rest) => {
                let first = missing(first);
                first.saturating_add(missing(rest))
            }
            TermNode::Alt(list) => list.iter().map(missing).min().unwrap_or(0),
            TermNode::And(list) => list.iter().map(missing).max().unwrap_or(0),
            _ => 0,
        };
        guess.max(least)
    }
}
