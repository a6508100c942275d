//! Lengths in characters or labels, and the DFA's transitions in that unit.

use std::collections::VecDeque;

use formalm_core::Error;

use super::{DfaEdge, InterruptCheck, MaterializedDfa, is_utf8};

/// A unit of length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LengthUnit {
    /// Characters, for labels that are bytes of UTF-8.
    Characters,
    /// Labels: bytes, or what the caller numbers.
    Labels,
}

/// The transitions of a DFA by whole characters (or labels). Only states between characters count;
/// those inside one are passed through.
#[derive(Debug)]
pub struct UnitTransitions {
    /// States between two bytes of a character.
    inside: Vec<bool>,
    /// The successors by the next character, or the rest of the current one, each with the number
    /// of characters that lead there.
    onward: Vec<Box<[(u32, u64)]>>,
}

impl UnitTransitions {
    /// Computes the transitions of a minimal DFA in a unit.
    ///
    /// # Errors
    ///
    /// [`Error::Language`] if the unit is characters and some member is not UTF-8;
    /// [`Error::Interrupted`].
    pub fn new(
        graph: &MaterializedDfa,
        unit: LengthUnit,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<UnitTransitions, Error> {
        if unit == LengthUnit::Labels {
            return Ok(UnitTransitions::labels(graph));
        }
        if !is_utf8(graph, u64::MAX, poll)? {
            return Err(Error::language(
                "lengths in characters require UTF-8, but some member is not valid UTF-8",
                Some("use unit=\"bytes\""),
            ));
        }
        // Inside a character only continuation bytes may follow.
        let inside = (0..graph.state_count() as u32).map(|state| {
            graph.edges(state).first().is_some_and(|edge| (0x80..0xC0).contains(&edge.low))
        });
        Ok(UnitTransitions::with_inside_states(graph, inside.collect()))
    }

    /// Computes the transitions by single labels.
    pub fn labels(graph: &MaterializedDfa) -> UnitTransitions {
        UnitTransitions::with_inside_states(graph, vec![false; graph.state_count()])
    }

    fn with_inside_states(graph: &MaterializedDfa, inside: Vec<bool>) -> UnitTransitions {
        let count = graph.state_count();
        let mut measured = UnitTransitions { inside, onward: vec![Box::default(); count] };
        let mut waiting: Vec<u32> =
            (0..count as u32).filter(|&state| measured.inside[state as usize]).collect();
        // A character has at most three more bytes, so this ends after three rounds.
        while !waiting.is_empty() {
            let is_ready = |edge: &DfaEdge| {
                let target = edge.target as usize;
                !measured.inside[target] || !measured.onward[target].is_empty()
            };
            let (ready, rest): (Vec<u32>, Vec<u32>) =
                waiting.iter().partition(|&&state| graph.edges(state).iter().all(is_ready));
            if ready.is_empty() {
                break;
            }
            ready.iter().for_each(|&state| measured.fill(graph, state));
            waiting = rest;
        }
        for state in 0..count as u32 {
            if !measured.inside[state as usize] {
                measured.fill(graph, state);
            }
        }
        measured
    }

    fn fill(&mut self, graph: &MaterializedDfa, state: u32) {
        let mut ways: Vec<(u32, u64)> = Vec::new();
        for edge in graph.edges(state) {
            let width = u64::from(edge.width());
            if self.inside[edge.target as usize] {
                let rest = self.onward[edge.target as usize].iter();
                ways.extend(rest.map(|&(target, count)| (target, count * width)));
            } else {
                ways.push((edge.target, width));
            }
        }
        ways.sort_unstable_by_key(|&(target, _)| target);
        ways.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        self.onward[state as usize] = ways.into_boxed_slice();
    }

    /// Returns `true` if a state is between two bytes of a character.
    #[inline]
    pub(crate) fn is_inside(&self, state: u32) -> bool {
        self.inside[state as usize]
    }

    /// Returns the successors by the next character, or the rest of the current one, each with the
    /// number of characters that lead there.
    #[inline]
    pub(crate) fn unit_successors(&self, state: u32) -> &[(u32, u64)] {
        &self.onward[state as usize]
    }

    /// Returns the smallest shortest path from a state to an accepting one, or `None` if there is
    /// none.
    pub fn shortest(&self, graph: &MaterializedDfa, from: u32) -> Option<Vec<u32>> {
        let far = self.distances(graph);
        let through = |state: u32| {
            if !self.is_inside(state) {
                return far[state as usize];
            }
            let ways = self.unit_successors(state).iter();
            ways.map(|&(target, _)| far[target as usize]).min().unwrap_or(u32::MAX)
        };
        let mut left = through(from);
        let (mut state, mut labels) = (from, Vec::new());
        if left == u32::MAX {
            return None;
        }
        while left > 0 || self.is_inside(state) {
            left -= u32::from(!self.is_inside(state));
            let mut edges = graph.edges(state).iter();
            let edge = edges.find(|edge| through(edge.target) == left)?;
            labels.push(edge.low);
            state = edge.target;
        }
        Some(labels)
    }

    /// Computes the distance to an accepting state, for states between characters.
    fn distances(&self, graph: &MaterializedDfa) -> Vec<u32> {
        let count = graph.state_count();
        let mut sources: Vec<Vec<u32>> = vec![Vec::new(); count];
        for state in (0..count as u32).filter(|&state| !self.is_inside(state)) {
            for &(target, _) in self.unit_successors(state) {
                sources[target as usize].push(state);
            }
        }
        let mut far = vec![u32::MAX; count];
        let states = 0..count as u32;
        let mut queue: VecDeque<u32> = states.filter(|&state| graph.is_accepting(state)).collect();
        queue.iter().for_each(|&state| far[state as usize] = 0);
        while let Some(state) = queue.pop_front() {
            for &source in &sources[state as usize] {
                if far[source as usize] == u32::MAX {
                    far[source as usize] = far[state as usize] + 1;
                    queue.push_back(source);
                }
            }
        }
        far
    }
}
