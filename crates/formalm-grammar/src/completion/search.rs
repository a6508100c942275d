//! Best-first search for a completion: whether a configuration has one, and which one is shortest.
//!
//! Viability is decided in stages: by the dead-end proof, by a short search, by a short search with
//! completion bounds, and by a long search with the closest bounds. A shortest completion is found
//! by A* with the bounds of [`super::min_bytes`] as heuristic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{Error, Resource};
use formalm_machines::{CompletionLength, Precision};
use rustc_hash::FxHashMap;

use crate::completion::stack_shortest_path::NEVER;
use crate::grammar_state::{Configuration, GrammarState};
use crate::limits::check;
use crate::list_interner::NOTHING;

/// Configurations visited before a search that assumed members of an external parser is left open.
/// Chosen, not measured.
const MAX_ASSUMED_CONFIGURATIONS: usize = 1_000;

/// Configurations visited before completion bounds are computed. Completions are usually near.
/// Chosen, not measured.
const NEAR_CONFIGURATIONS: u64 = 300;

/// The share of the allowed steps that such a short search may take: one in this many. Chosen, not
/// measured.
const NEAR_STEP_SHARE: u64 = 4;

/// The weight of a missing byte relative to a byte read. A weight above one is greedy, which
/// suffices because any completion will do. Chosen, not measured.
const MISSING_BYTE_WEIGHT: u32 = 4;

impl GrammarState {
    /// Returns `true` if some completion exists for a configuration.
    pub(crate) fn is_viable(&mut self, configuration: Configuration) -> Result<bool, Error> {
        let configuration = self.after_sublanguage(configuration)?.unwrap_or(configuration);
        if self.is_viable_without_search(configuration)? {
            return Ok(true);
        }
        if let Some(&viable) = self.viable.get(&configuration) {
            return Ok(viable);
        }
        let before = self.bound_precision;
        let viable = self.decide_viability(configuration);
        self.bound_precision = before;
        viable
    }

    /// Decides viability by searches of increasing precision. Completions are usually near, and
    /// precise bounds may cost far more than a short search.
    fn decide_viability(&mut self, configuration: Configuration) -> Result<bool, Error> {
        let max_configurations = self.limits.search;
        for precision in [None, Some(Precision::Fine)] {
            let near = |core: &mut GrammarState| {
                core.search_with_precision(
                    precision,
                    configuration,
                    max_configurations.min(NEAR_CONFIGURATIONS),
                )
            };
            if let Some(viable) = self.with_part_of_steps(near)? {
                return Ok(viable);
            }
        }
        self.search_with_precision(Some(Precision::Finest), configuration, max_configurations)
    }

    /// Runs a search with a share of the allowed steps. Returns `None` if that is not enough.
    fn with_part_of_steps(
        &mut self,
        search: impl FnOnce(&mut GrammarState) -> Result<bool, Error>,
    ) -> Result<Option<bool>, Error> {
        let call = self.gss.meter.begin_separate(self.limits.steps / NEAR_STEP_SHARE);
        let found = search(self);
        self.gss.meter.end_separate(call);
        match found {
            Err(Error::Limit { resource: Resource::Readings | Resource::Steps, .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    fn search_with_precision(
        &mut self,
        precision: Option<Precision>,
        configuration: Configuration,
        max_configurations: u64,
    ) -> Result<bool, Error> {
        self.bound_precision = precision;
        let viable = match self.completion(configuration)? {
            CompletionLength::Never => false,
            CompletionLength::Exactly(_) => true,
            _ => return self.search_for_completion(configuration, max_configurations),
        };
        self.record_viable(configuration, viable);
        Ok(viable)
    }

    /// Returns `true` if a configuration is viable without a search.
    fn is_viable_without_search(&mut self, configuration: Configuration) -> Result<bool, Error> {
        let configuration = self.after_sublanguage(configuration)?.unwrap_or(configuration);
        // The acceptance test comes second because it is slower.
        Ok(self.is_proven_viable(configuration)? || self.accepts(configuration)?)
    }

    /// Returns `true` if the dead-end proof shows that a configuration is viable.
    fn is_proven_viable(&mut self, configuration: Configuration) -> Result<bool, Error> {
        let Configuration { lexeme, parser_state, negative_threads } = configuration;
        if configuration.is_in_sublanguage()
            || !self.is_lexeme_safe(lexeme, negative_threads)?
            || !self.is_completable_at(parser_state)?
        {
            return Ok(false);
        }
        if !configuration.is_between() || self.dead_end_proof.unproven().is_empty() {
            return Ok(true);
        }
        let context = self.context(parser_state)?;
        self.fits_separator(context, negative_threads)
    }

    /// Searches from one configuration, nearest estimated completion first, and caches what it
    /// learns. Configurations are judged separately: only one of them is the true split of the
    /// final input.
    fn search_for_completion(
        &mut self,
        from: Configuration,
        max_configurations: u64,
    ) -> Result<bool, Error> {
        let mode = self.sublanguages.answers.assume_ends();
        self.sublanguages.answers.assumed = false;
        let begins = self.sublanguages.begin_scratch();
        let found = self.search_configurations(from, max_configurations);
        if begins {
            self.sublanguages.end_scratch();
        }
        self.sublanguages.answers.mode = mode;
        found
    }

    fn search_configurations(
        &mut self,
        from: Configuration,
        max_configurations: u64,
    ) -> Result<bool, Error> {
        let mut visited: Vec<(Configuration, usize)> = vec![(from, 0)];
        let mut seen: FxHashMap<Configuration, ()> = FxHashMap::from_iter([(from, ())]);
        let mut queue: BinaryHeap<(Reverse<u32>, u32, usize)> = BinaryHeap::new();
        queue.push((Reverse(0), 0, 0));
        let mut next = Vec::new();
        // Cached verdicts must not influence where a search gives up, so that answers do not depend
        // on history.
        let has_external_parsers = self.has_external_parsers();
        while let Some((_, read, at)) = queue.pop() {
            for byte in self.lexer.representatives().to_vec() {
                next.clear();
                self.push_successors(visited[at].0, byte, &mut next)?;
                for &configuration in &next {
                    let known = self.viable.get(&configuration).copied();
                    if (known == Some(false) && !has_external_parsers)
                        || seen.insert(configuration, ()).is_some()
                    {
                        continue;
                    }
                    visited.push((configuration, at));
                    let found =
                        known == Some(true) || self.is_viable_without_search(configuration)?;
                    if found {
                        self.mark_viable(&visited);
                        return Ok(true);
                    }
                    if self.sublanguages.answers.assumed
                        && visited.len() > MAX_ASSUMED_CONFIGURATIONS
                    {
                        self.record_viable(from, true);
                        return Ok(true);
                    }
                    check(Resource::Readings, visited.len() as u64, max_configurations)?;
                    let missing_bytes = self.min_bytes(configuration)?;
                    if missing_bytes == NEVER {
                        continue;
                    }
                    let missing_bytes = missing_bytes.saturating_mul(MISSING_BYTE_WEIGHT);
                    let rank = Reverse(missing_bytes.saturating_add(read + 1));
                    queue.push((rank, read + 1, visited.len() - 1));
                }
            }
        }
        for (configuration, _) in visited {
            self.record_viable(configuration, false);
        }
        Ok(false)
    }

    /// Marks the configurations on the path to the last visited one as viable.
    fn mark_viable(&mut self, visited: &[(Configuration, usize)]) {
        let mut at = visited.len() - 1;
        loop {
            self.record_viable(visited[at].0, true);
            if at == 0 {
                return;
            }
            at = visited[at].1;
        }
    }

    /// Returns the shortest completion of a state, and the smallest of several. The search may pass
    /// dead states: no completion through one exists, so none is shorter.
    pub(crate) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        let mut exact: FxHashMap<u32, u32> = FxHashMap::default();
        let mut state = state;
        // Rules that double each other have members too long to write out. Lengths beyond 32 bits
        // are saturated.
        check(Resource::Text, u64::from(self.min_bytes_of_state(state)?), self.limits.text)?;
        let Some(mut left) = self.completion_distance(state, u32::MAX, &mut exact)? else {
            return Ok(Vec::new());
        };
        let mut text = Vec::new();
        while left > 0 {
            if let Some((member, after)) = self.forced_sublanguage_completion(state)? {
                left = left.saturating_sub(member.len() as u32);
                text.extend(member);
                state = after;
                continue;
            }
            left -= 1;
            let before = text.len();
            for byte in self.lexer.representatives().to_vec() {
                self.gss.meter.reset();
                let next = self.step_unchecked(state, byte)?;
                if next != NOTHING
                    && self.completion_distance(next, left, &mut exact)? == Some(left)
                {
                    text.push(byte);
                    state = next;
                    break;
                }
            }
            if text.len() == before {
                break;
            }
        }
        Ok(text)
    }

    /// Returns the bytes to the nearest member, if at most `most`.
    fn completion_distance(
        &mut self,
        state: u32,
        most: u32,
        exact: &mut FxHashMap<u32, u32>,
    ) -> Result<Option<u32>, Error> {
        let min_bytes = self.min_bytes_of_state(state)?;
        if min_bytes > most || !self.needs_viability_checks {
            return Ok(Some(min_bytes).filter(|&min_bytes| min_bytes <= most));
        }
        if let Some(&known) = exact.get(&state) {
            return Ok(Some(known).filter(|&known| known <= most));
        }
        let mut visited: Vec<(u32, usize, u32)> = vec![(state, 0, 0)];
        let mut seen: FxHashMap<u32, u32> = FxHashMap::from_iter([(state, 0)]);
        let mut queue = BinaryHeap::from([(Reverse(min_bytes), 0u32, 0usize)]);
        let before = self.gss.meter.total();
        while let Some((Reverse(all), read, at)) = queue.pop() {
            let here = visited[at].0;
            let rest = match exact.get(&here) {
                Some(&rest) => Some(rest),
                None if all == read => self.is_accepting(here)?.then_some(0),
                None => None,
            };
            if let Some(rest) = rest.filter(|rest| read + rest <= all) {
                return Ok(
                    Some(record_distances(&visited, at, rest, exact)).filter(|&one| one <= most)
                );
            }
            if let Some(rest) = rest {
                queue.push((Reverse(read + rest), read, at));
                continue;
            }
            let steps = self.gss.meter.total() - before;
            check(Resource::Steps, steps, self.limits.nearest)?;
            for (next, read) in self.successor_states(here, read)? {
                if seen.get(&next).is_some_and(|&before| before <= read) {
                    continue;
                }
                seen.insert(next, read);
                check(Resource::States, visited.len() as u64 + 1, self.limits.states)?;
                let bound = self.min_bytes_of_state(next)?;
                let all = bound.saturating_add(read);
                if all <= most && bound != NEVER {
                    visited.push((next, at, read));
                    queue.push((Reverse(all), read, visited.len() - 1));
                }
            }
        }
        Ok(None)
    }

    /// Returns the states that a shortest completion may visit next, with the bytes read so far:
    /// after one byte, or after a member of a sublanguage.
    fn successor_states(&mut self, state: u32, read: u32) -> Result<Vec<(u32, u32)>, Error> {
        if let Some((member, after)) = self.forced_sublanguage_completion(state)? {
            return Ok(vec![(after, read + member.len() as u32)]);
        }
        let mut states = Vec::new();
        for byte in self.lexer.representatives().to_vec() {
            self.gss.meter.reset();
            let next = self.step_unchecked(state, byte)?;
            if next != NOTHING {
                states.push((next, read + 1));
            }
        }
        Ok(states)
    }

    /// Returns a lower bound on the bytes that complete a state.
    pub(crate) fn min_bytes_of_state(&mut self, state: u32) -> Result<u32, Error> {
        let mut min_bytes = u32::MAX;
        for configuration in self.configurations(state) {
            min_bytes = min_bytes.min(self.min_bytes(configuration)?);
        }
        Ok(min_bytes)
    }

    /// Returns `true` if the input may end in a state.
    pub(crate) fn is_accepting(&mut self, state: u32) -> Result<bool, Error> {
        for configuration in self.configurations(state) {
            if self.accepts(configuration)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Caches the distances along the path to entry `at`, which is `rest` bytes from a member. Returns
/// the distance of the first entry.
fn record_distances(
    visited: &[(u32, usize, u32)],
    at: usize,
    rest: u32,
    exact: &mut FxHashMap<u32, u32>,
) -> u32 {
    let all = visited[at].2 + rest;
    let mut at = at;
    loop {
        exact.insert(visited[at].0, all - visited[at].2);
        if at == 0 {
            return all;
        }
        at = visited[at].1;
    }
}
