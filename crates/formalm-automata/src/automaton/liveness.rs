//! Liveness of states: a search for an accepting state, where the term does not decide it.
//!
//! ```text
//!  liveness(state):  term shortcut
//!                    ──► a subset has a member, or a superset has none (recognizers with bounds)
//!                    ──► depth first, low bytes first
//!                    ──► after DEPTH_FIRST_STATES: best first by estimated missing bytes
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{Error, Resource, StateId, check_limit, deadline::check_deadline, interrupt};
use rustc_hash::FxHashSet;

use crate::automaton::transition_table::DEAD;
use crate::automaton::{Automaton, AutomatonCore};
use crate::terms::custom_language::LanguageBound;
use crate::terms::emptiness_shortcuts::EmptinessShortcuts;
use crate::terms::{TermArena, TermId, TermNode};

/// Divisor of the automaton's state limit that gives the maximum number of states one search
/// visits where the automaton has very many: 6,250 of 250,000. Chosen, not measured.
const SEARCH_SHARE: u64 = 40;

/// Number of states after which a depth-first search becomes best-first, if something is known to
/// be missing. Chosen, not measured.
const DEPTH_FIRST_STATES: usize = 128;

/// Successors computed between two interrupt checks: milliseconds, and 0.1 s where terms are huge.
const SUCCESSORS_PER_POLL: usize = 1 << 10;

/// Successors computed between two deadline checks. One successor takes up to milliseconds where a
/// recognizer searches.
const SUCCESSORS_PER_DEADLINE_CHECK: usize = 1 << 3;

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

/// The search for an accepting state from one state.
pub(super) struct LivenessSearch<'a> {
    automaton: &'a Automaton,
    root: u32,
    open: SearchFrontier,
    seen: FxHashSet<u32>,
    /// The (successor, state) edges read.
    edges: Vec<(u32, u32)>,
}

impl LivenessSearch<'_> {
    /// Searches for an accepting state from `root` and marks every state it decides.
    ///
    /// Depth first, lowest bytes first: most states have a completion in plain ASCII, which is
    /// found without visiting multi-byte characters. After some states the search becomes
    /// best-first: with a large counter, depth-first search would read on until the counter runs
    /// out. Automata with very many states are searched best-first from the start, where
    /// depth-first search need not terminate, and up to a limit.
    pub(super) fn run(automaton: &Automaton, root: u32) -> Result<bool, Error> {
        let mut lock = automaton.lock();
        if let Some(live) = liveness_from_term(automaton, &lock, root) {
            return Ok(live);
        }
        if automaton.many_states {
            drop(lock);
            if let Some(live) = liveness_from_bounds(automaton, root)? {
                return Ok(live);
            }
            lock = automaton.lock();
        }
        let open = match automaton.many_states {
            true => SearchFrontier::BestFirst(BinaryHeap::from([Reverse(((0, 0), root, 0))])),
            false => SearchFrontier::DepthFirst(vec![(root, 0)]),
        };
        let seen = FxHashSet::from_iter([root]);
        let mut search = LivenessSearch { automaton, root, open, seen, edges: Vec::new() };
        let mut visited = 0;
        while let Some((state, at)) = search.open.next(automaton.classes.len()) {
            visited += 1;
            if visited % SUCCESSORS_PER_DEADLINE_CHECK == 0 {
                check_deadline()?;
            }
            if visited % SUCCESSORS_PER_POLL == 0 && interrupt::is_interruptible() {
                // States keep their numbers whatever other threads add meanwhile.
                drop(lock);
                interrupt::check_interrupt()?;
                lock = automaton.lock();
            }
            let next = automaton.fill_row_locked(&mut lock, state, at)?;
            if next == DEAD {
                continue;
            }
            match automaton.flags.liveness(next) {
                Some(false) => continue,
                Some(true) => {
                    search.edges.push((next, state));
                    search.mark_live(next);
                    return Ok(true);
                }
                None => search.edges.push((next, state)),
            }
            if !search.seen.insert(next) {
                continue;
            }
            if automaton.many_states {
                drop(lock);
                let live = liveness_from_bounds(automaton, next)?;
                lock = automaton.lock();
                match live {
                    Some(true) => {
                        search.mark_live(next);
                        return Ok(true);
                    }
                    Some(false) => continue,
                    None => {}
                }
            }
            if search.add(&lock, next)? {
                return Ok(true);
            }
        }
        let mut seen: Vec<u32> = search.seen.into_iter().collect();
        seen.sort_unstable();
        seen.into_iter().for_each(|state| automaton.flags.decide(state, false));
        Ok(false)
    }

    /// Adds a state to the frontier; returns `true` if its term shows that it is live.
    fn add(&mut self, core: &AutomatonCore, state: u32) -> Result<bool, Error> {
        let (automaton, count) = (self.automaton, self.seen.len());
        match &mut self.open {
            SearchFrontier::DepthFirst(list) => {
                list.push((state, 0));
                if count == DEPTH_FIRST_STATES && rank(automaton, core, self.root, 0).0 > 0 {
                    let list = std::mem::take(list).into_iter();
                    let list =
                        list.map(|(one, at)| Reverse((rank(automaton, core, one, 0), one, at)));
                    self.open = SearchFrontier::BestFirstByState(
                        (state, automaton.classes.len()),
                        list.collect(),
                    );
                }
            }
            SearchFrontier::BestFirstByState(_, list) => {
                list.push(Reverse((rank(automaton, core, state, count), state, 0)));
            }
            SearchFrontier::BestFirst(list) => {
                check_limit(
                    Resource::States,
                    count as u64,
                    automaton.limits.states / SEARCH_SHARE,
                )?;
                match liveness_from_term(automaton, core, state) {
                    Some(true) => {
                        self.mark_live(state);
                        return Ok(true);
                    }
                    Some(false) => return Ok(false),
                    None => {}
                }
                let (misses, count) = rank(automaton, core, state, count);
                let rank = (misses, if misses > 0 { -count } else { count });
                list.push(Reverse((rank, state, 0)));
            }
        }
        Ok(false)
    }

    /// Marks all states that reach `state` by the edges read.
    fn mark_live(&mut self, state: u32) {
        let (edges, flags) = (&mut self.edges, &self.automaton.flags);
        edges.sort_unstable();
        let mut stack = vec![state];
        while let Some(state) = stack.pop() {
            flags.decide(state, true);
            let from = edges.partition_point(|edge| edge.0 < state);
            for &(_, before) in edges[from..].iter().take_while(|edge| edge.0 == state) {
                if flags.liveness(before) != Some(true) {
                    stack.push(before);
                }
            }
        }
    }
}

/// Ranks a state by its estimated missing bytes; among equals the latest comes first.
fn rank(automaton: &Automaton, core: &AutomatonCore, state: u32, count: usize) -> SearchRank {
    let term = automaton.term(core, StateId::from_number(state));
    let mut estimate = MissingBytes { terms: &core.deriver.terms, left: ESTIMATE_TERMS };
    (estimate.of(term, ESTIMATE_DEPTH), -(count as i64))
}

/// Decides and marks a state's liveness where its term shows it.
fn liveness_from_term(automaton: &Automaton, core: &AutomatonCore, state: u32) -> Option<bool> {
    let term = automaton.term(core, StateId::from_number(state));
    let live = EmptinessShortcuts::is_nonempty(&core.deriver.terms, term)?;
    automaton.flags.decide(state, live);
    Some(live)
}

/// Decides and marks a state's liveness where a simpler language decides it: a subset that has a
/// member, or a superset that has none. A search in these that gives up decides nothing.
fn liveness_from_bounds(automaton: &Automaton, state: u32) -> Result<Option<bool>, Error> {
    for bound in [LanguageBound::Lower, LanguageBound::Upper] {
        let simpler = {
            let core = &mut *automaton.lock();
            let term = automaton.term(core, StateId::from_number(state));
            let Some(term) = core.deriver.terms.bound(term, bound) else { continue };
            automaton.intern(core, term)
        };
        let live = simpler.and_then(|state| Ok(state != DEAD && automaton.is_live(state)?));
        match live {
            Ok(live) if live == (bound == LanguageBound::Lower) => {
                automaton.flags.decide(state, live);
                return Ok(Some(live));
            }
            Ok(_) => {}
            Err(error) if error.is_limit() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// An estimate of the bytes missing at least, to guide the search.
struct MissingBytes<'a> {
    terms: &'a TermArena,
    /// Number of terms that may still be examined.
    left: usize,
}

impl MissingBytes<'_> {
    /// Returns the estimate for a term, by its parts down to a depth.
    fn of(&mut self, id: TermId, depth: usize) -> u32 {
        let terms = self.terms;
        let least = terms.properties(id).min_len;
        let (Some(depth), Some(fewer)) = (depth.checked_sub(1), self.left.checked_sub(1)) else {
            return least;
        };
        self.left = fewer;
        let mut missing = |one: &TermId| self.of(*one, depth);
        let guess = match terms.get(id) {
            TermNode::Custom(at) => terms.recognizers.estimated_missing_bytes(*at),
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
