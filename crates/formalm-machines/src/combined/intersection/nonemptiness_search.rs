//! Best-first search for a common member of a machine and a regular language: existence, and the
//! nearest one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{Error, Resource, check_limit, deadline::DeadlineTicks, steps_taken};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    CompletionLength, IntersectionBounds, Nonemptiness, NonemptinessSearch, Precision, SearchCache,
    StatePair,
};

/// The effort of one search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchEffort {
    /// The precision at which the machine bounds completions.
    pub(super) precision: Precision,
    /// Maximum number of pairs visited.
    max_pairs: usize,
    /// Number of bytes of a lower bound that count as one pair: finding such long members takes
    /// most of the time.
    bytes_per_pair: usize,
}

/// Efforts tried in turn until one decides. The limits are chosen, not measured.
pub(super) const EFFORTS: [SearchEffort; 3] = [
    SearchEffort { precision: Precision::Coarse, max_pairs: 5_000, bytes_per_pair: 16 },
    SearchEffort { precision: Precision::Fine, max_pairs: 20_000, bytes_per_pair: 16 },
    SearchEffort { precision: Precision::Finest, max_pairs: 50_000, bytes_per_pair: 16 },
];
/// The effort for machines that report nothing. Chosen, not measured.
pub(super) const PLAIN_EFFORT: SearchEffort =
    SearchEffort { precision: Precision::Coarse, max_pairs: 50_000, bytes_per_pair: 1 };

/// Maximum number of machine steps of one search: one or two seconds. Chosen, not measured.
const MAX_MACHINE_STEPS: u64 = 10_000_000;
/// Weight of a missing byte relative to a byte read, where any member will do. A higher value is
/// greedier. Chosen, not measured.
const MISSING_BYTE_WEIGHT: usize = 4;

/// A visited pair, the number of the one before it, and the byte in between.
type VisitedPair = (StatePair, usize, u8);

/// What a search visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchSpace {
    States,
    /// Abstract states alone: each step is followed by an abstraction.
    AbstractStates,
}

impl<M: IntersectionBounds> NonemptinessSearch<M> {
    /// Searches for a common member, visiting pairs first that seem to need the fewest bytes.
    pub(super) fn find_common_member(
        &self,
        from: StatePair,
        effort: SearchEffort,
        cache: &mut SearchCache,
    ) -> Result<bool, Error> {
        let found = self.explore(from, SearchSpace::States, effort, cache)?;
        if let Some(visited) = &found {
            record_nonempty(visited, cache);
        }
        Ok(found.is_some())
    }

    /// Searches from an abstract state among abstract ones, which are few where names or items may not repeat. Every
    /// completion of a state completes its abstract state, so where there is no common member of
    /// the abstract states, there is none.
    ///
    /// Returns a candidate, which may repeat something; `None` if the pair has no common member.
    pub(super) fn find_candidate(
        &self,
        from: StatePair,
        effort: SearchEffort,
        cache: &mut SearchCache,
    ) -> Result<Option<Vec<u8>>, Error> {
        if cache.nonempty.get(&from) == Some(&Nonemptiness::Empty) {
            return Ok(None);
        }
        let found = self.explore(from, SearchSpace::AbstractStates, effort, cache)?;
        let Some(visited) = found else { return Ok(None) };
        let last = visited.len() - 1;
        let rest = self.known_completion(visited[last].0, cache)?.unwrap_or_default();
        let mut candidate: Vec<u8> = rest.into_iter().rev().collect();
        let mut at = last;
        while at > 0 {
            candidate.push(visited[at].2);
            at = visited[at].1;
        }
        candidate.reverse();
        Ok(Some(candidate))
    }

    /// Visits pairs, those first that seem to need the fewest bytes. Returns them if the last one
    /// is live, each with the number of the one before it and the byte in between; `None` if no
    /// pair is, which is recorded.
    fn explore(
        &self,
        from: StatePair,
        space: SearchSpace,
        effort: SearchEffort,
        cache: &mut SearchCache,
    ) -> Result<Option<Vec<VisitedPair>>, Error> {
        let mut visited: Vec<VisitedPair> = vec![(from, 0, 0)];
        let mut seen = FxHashSet::from_iter([from]);
        let mut queue = BinaryHeap::from([(Reverse(0), 0usize, 0usize)]);
        let mut work = SearchMeter::new(effort.max_pairs);
        if self.is_member(from)? {
            return Ok(Some(visited));
        }
        while let Some((_, read, at)) = queue.pop() {
            work.check_steps()?;
            for byte in 0..=255 {
                let Some(mut next) = self.advance(visited[at].0, byte)? else { continue };
                if space == SearchSpace::AbstractStates {
                    next.0 = self.machine.abstract_state(next.0)?;
                }
                if !seen.insert(next) {
                    continue;
                }
                visited.push((next, at, byte));
                let known = self.completion_without_search(next, effort.precision, cache)?;
                let is_alive = matches!(cache.nonempty.get(&next), Some(Nonemptiness::Nonempty(_)));
                let needs = match known {
                    CompletionLength::Never => continue,
                    CompletionLength::AtLeast(bytes) if !is_alive && !self.is_member(next)? => {
                        bytes
                    }
                    _ => return Ok(Some(visited)),
                };
                work.spend(1 + needs / effort.bytes_per_pair)?;
                let rank = needs.saturating_mul(MISSING_BYTE_WEIGHT).saturating_add(read + 1);
                queue.push((Reverse(rank), read + 1, visited.len() - 1));
            }
        }
        cache.nonempty.extend(visited.into_iter().map(|one| (one.0, Nonemptiness::Empty)));
        Ok(None)
    }

    /// Returns a lower bound on the bytes to a common member; [`usize::MAX`] if there is none.
    fn bound(
        &self,
        pair: StatePair,
        effort: SearchEffort,
        cache: &mut SearchCache,
    ) -> Result<usize, Error> {
        Ok(match self.completion_without_search(pair, effort.precision, cache)? {
            CompletionLength::Never => usize::MAX,
            CompletionLength::AtLeast(bytes) | CompletionLength::Exactly(bytes) => bytes,
            CompletionLength::Unknown => 0,
        })
    }

    /// Returns the exact distance to the nearest common member (A*). The bound is consistent: it
    /// never shrinks by more than the bytes read.
    pub(super) fn shortest_distance(
        &self,
        from: StatePair,
        effort: SearchEffort,
        cache: &mut SearchCache,
    ) -> Result<Option<usize>, Error> {
        if let Some(&known) = cache.distance.get(&from) {
            return Ok(known);
        }
        let mut visited: Vec<(StatePair, usize, usize)> = vec![(from, 0, 0)];
        let mut nearest: FxHashMap<StatePair, usize> = FxHashMap::from_iter([(from, 0)]);
        let mut work = SearchMeter::new(effort.max_pairs);
        let mut queue =
            BinaryHeap::from([(Reverse(self.bound(from, effort, cache)?), 0usize, 0usize)]);
        while let Some((Reverse(all), read, at)) = queue.pop() {
            let here = visited[at].0;
            let rest = match cache.distance.get(&here) {
                Some(&known) => known,
                None => self.is_member(here)?.then_some(0),
            };
            match rest {
                Some(rest) if read + rest <= all => {
                    record_distances(&visited, at, rest, cache);
                    return Ok(Some(read + rest));
                }
                Some(rest) => {
                    queue.push((Reverse(read + rest), read, at));
                    continue;
                }
                None if cache.distance.contains_key(&here) || nearest[&here] < read => continue,
                None => {}
            }
            work.check_steps()?;
            for byte in 0..=255 {
                let Some(next) = self.advance(here, byte)? else { continue };
                if nearest.get(&next).is_some_and(|&before| before <= read + 1) {
                    continue;
                }
                nearest.insert(next, read + 1);
                let bound = self.bound(next, effort, cache)?;
                if bound == usize::MAX {
                    continue;
                }
                work.spend(1 + bound / effort.bytes_per_pair)?;
                visited.push((next, at, read + 1));
                queue.push((Reverse(read + 1 + bound), read + 1, visited.len() - 1));
            }
        }
        for (pair, _, _) in visited {
            cache.distance.insert(pair, None);
        }
        Ok(None)
    }
}

/// Pairs visited between two looks at the deadline; each may take a machine step.
const PAIRS_PER_DEADLINE_CHECK: u32 = 64;

/// A meter of one search.
struct SearchMeter {
    spent: usize,
    most: usize,
    /// Machine steps taken before the search.
    before: u64,
    ticks: DeadlineTicks,
}

impl SearchMeter {
    fn new(most: usize) -> SearchMeter {
        SearchMeter { spent: 0, most, before: steps_taken(), ticks: DeadlineTicks::default() }
    }

    fn spend(&mut self, work: usize) -> Result<(), Error> {
        self.spent += work;
        self.ticks.tick(work, PAIRS_PER_DEADLINE_CHECK)?;
        check_steps_limit(self.spent as u64, self.most as u64)
    }

    fn check_steps(&self) -> Result<(), Error> {
        check_steps_limit(steps_taken().wrapping_sub(self.before), MAX_MACHINE_STEPS)
    }
}

fn check_steps_limit(needed: u64, allowed: u64) -> Result<(), Error> {
    check_limit(Resource::Steps, needed, allowed)
}

/// Records that the last visited pair is live, and so is the path to it.
fn record_nonempty(visited: &[VisitedPair], cache: &mut SearchCache) {
    let mut at = visited.len() - 1;
    cache.nonempty.entry(visited[at].0).or_insert(Nonemptiness::Nonempty(None));
    while at > 0 {
        let (_, before, byte) = visited[at];
        cache.nonempty.insert(visited[before].0, Nonemptiness::Nonempty(Some(byte)));
        at = before;
    }
}

/// Records the distances along the path to entry `at`, which is `rest` bytes from a member.
fn record_distances(
    visited: &[(StatePair, usize, usize)],
    mut at: usize,
    rest: usize,
    cache: &mut SearchCache,
) {
    let all = visited[at].2 + rest;
    loop {
        let (pair, before, read) = visited[at];
        cache.distance.insert(pair, Some(all - read));
        if at == 0 {
            return;
        }
        at = before;
    }
}
