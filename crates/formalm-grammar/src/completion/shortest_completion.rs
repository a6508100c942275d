//! Shortest completions, by A* with completion bounds as heuristic.
//!
//! The search may pass dead states: no completion through one exists, so none is shorter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::{Error, Resource};
use rustc_hash::FxHashMap;

use crate::NOTHING;
use crate::grammar_state::GrammarState;
use crate::gss::stack_shortest_path::NEVER;
use crate::limits::check;

/// A search for a shortest completion of a state.
pub(crate) struct ShortestCompletion<'a> {
    grammar: &'a mut GrammarState,
    /// Bytes to the nearest member, per state, as far as they are known.
    exact: FxHashMap<u32, u32>,
}

impl ShortestCompletion<'_> {
    pub(crate) fn new(grammar: &mut GrammarState) -> ShortestCompletion<'_> {
        ShortestCompletion { grammar, exact: FxHashMap::default() }
    }

    /// Returns the shortest completion of a state, and the smallest of several.
    pub(crate) fn find(&mut self, mut state: u32) -> Result<Vec<u8>, Error> {
        // Rules that double each other have members too long to write out. Lengths beyond 32 bits
        // are saturated.
        check(
            Resource::Text,
            u64::from(self.grammar.min_bytes(state)?),
            self.grammar.limits().text,
        )?;
        let Some(mut left) = self.distance(state, u32::MAX)? else {
            return Ok(Vec::new());
        };
        let mut text = Vec::new();
        while left > 0 {
            if let Some((member, after)) = self.grammar.forced_sublanguage_completion(state)? {
                left = left.saturating_sub(member.len() as u32);
                text.extend(member);
                state = after;
                continue;
            }
            left -= 1;
            let before = text.len();
            for byte in self.grammar.reader.lexer.threads.representatives().to_vec() {
                self.grammar.meter().reset();
                let next = self.grammar.step_unchecked(state, byte)?;
                if next != NOTHING && self.distance(next, left)? == Some(left) {
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
    fn distance(&mut self, state: u32, most: u32) -> Result<Option<u32>, Error> {
        let min_bytes = self.grammar.min_bytes(state)?;
        if min_bytes > most || !self.grammar.reader.lexer.needs_viability_checks {
            return Ok(Some(min_bytes).filter(|&min_bytes| min_bytes <= most));
        }
        if let Some(&known) = self.exact.get(&state) {
            return Ok(Some(known).filter(|&known| known <= most));
        }
        let mut visited: Vec<(u32, usize, u32)> = vec![(state, 0, 0)];
        let mut seen: FxHashMap<u32, u32> = FxHashMap::from_iter([(state, 0)]);
        let mut queue = BinaryHeap::from([(Reverse(min_bytes), 0u32, 0usize)]);
        let before = self.grammar.meter().total();
        while let Some((Reverse(all), read, at)) = queue.pop() {
            let here = visited[at].0;
            let rest = match self.exact.get(&here) {
                Some(&rest) => Some(rest),
                None if all == read => self.grammar.is_accepting(here)?.then_some(0),
                None => None,
            };
            if let Some(rest) = rest.filter(|rest| read + rest <= all) {
                return Ok(Some(self.record(&visited, at, rest)).filter(|&one| one <= most));
            }
            if let Some(rest) = rest {
                queue.push((Reverse(read + rest), read, at));
                continue;
            }
            let steps = self.grammar.meter().total() - before;
            check(Resource::Steps, steps, self.grammar.limits().nearest)?;
            for (next, read) in self.successor_states(here, read)? {
                if seen.get(&next).is_some_and(|&before| before <= read) {
                    continue;
                }
                seen.insert(next, read);
                check(Resource::States, visited.len() as u64 + 1, self.grammar.limits().states)?;
                let bound = self.grammar.min_bytes(next)?;
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
        if let Some((member, after)) = self.grammar.forced_sublanguage_completion(state)? {
            return Ok(vec![(after, read + member.len() as u32)]);
        }
        let mut states = Vec::new();
        for byte in self.grammar.reader.lexer.threads.representatives().to_vec() {
            self.grammar.meter().reset();
            let next = self.grammar.step_unchecked(state, byte)?;
            if next != NOTHING {
                states.push((next, read + 1));
            }
        }
        Ok(states)
    }

    /// Caches the distances along the path to entry `at`, which is `rest` bytes from a member. Returns
    /// the distance of the first entry.
    fn record(&mut self, visited: &[(u32, usize, u32)], at: usize, rest: u32) -> u32 {
        let all = visited[at].2 + rest;
        let mut at = at;
        loop {
            self.exact.insert(visited[at].0, all - visited[at].2);
            if at == 0 {
                return all;
            }
            at = visited[at].1;
        }
    }
}
