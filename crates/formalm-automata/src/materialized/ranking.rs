//! Ranking and unranking of members: a bijection between numbers and members in lexicographic
//! order.
//!
//! The table holds, for each state and remaining length, the number of completions. At each state a
//! member's number determines the edge to follow, and the edge determines its share of the number.

use formalm_core::{Error, Resource, check_limit};
use num_bigint::BigUint;

use super::length_counts::{completion_counts, number_bytes, number_steps};
use super::{DfaEdge, InterruptCheck, MaterializedDfa, UnitTransitions};

/// The lengths of the members that a table ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthRange {
    /// Members of exactly this length.
    Exactly(usize),
    /// Members of at most this length.
    AtMost(usize),
    /// All members of a finite language.
    Any,
}

/// Ranks the members in a range of lengths from 0, in lexicographic order (not shortest first).
#[derive(Debug)]
pub struct RankTable {
    span: LengthRange,
    /// Layers by depth; a single one where the depth makes no difference.
    layers: Vec<CompletionLayer>,
}

/// The number of completions of each state that strings of this depth reach.
#[derive(Debug)]
struct CompletionLayer {
    states: Vec<u32>,
    values: Vec<BigUint>,
}

impl CompletionLayer {
    fn value(&self, state: u32) -> Option<&BigUint> {
        self.values.get(self.states.binary_search(&state).ok()?)
    }
}

impl RankTable {
    /// Computes the table within `limit` bytes. Returns `None` for [`LengthRange::Any`] if there
    /// are infinitely many members.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Interrupted`].
    pub fn new(
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        span: LengthRange,
        limit: u64,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<RankTable>, Error> {
        let length = match span {
            LengthRange::Exactly(length) | LengthRange::AtMost(length) => length,
            LengthRange::Any => {
                let Some(values) = completion_counts(graph, limit, poll)? else { return Ok(None) };
                let states = (0..graph.state_count() as u32).collect();
                return Ok(Some(RankTable {
                    span,
                    layers: vec![CompletionLayer { states, values }],
                }));
            }
        };
        let mut table =
            RankTable { span, layers: reachable_layers(measured, length, limit, poll)? };
        let mut bytes = 0;
        for depth in (0..table.layers.len()).rev() {
            bytes = table.complete(depth, graph, measured, (bytes, limit), poll)?;
        }
        Ok(Some(table))
    }

    /// Computes the values of a layer from those of the next.
    fn complete(
        &mut self,
        depth: usize,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        (mut bytes, limit): (u64, u64),
        poll: &mut InterruptCheck<'_>,
    ) -> Result<u64, Error> {
        let stops = self.stops(depth);
        let (before, after) = self.layers.split_at_mut(depth + 1);
        let (layer, below) = (&mut before[depth], after.first());
        for &state in &layer.states {
            let mut value = BigUint::from(u32::from(stops && graph.is_accepting(state)));
            for &(target, ways) in measured.unit_successors(state) {
                if let Some(more) = below.and_then(|below| below.value(target)) {
                    poll.tick(2 * number_steps(more))?;
                    value += more * ways;
                }
            }
            bytes += number_bytes(&value) + size_of::<u32>() as u64;
            check_limit(Resource::Bytes, bytes, limit)?;
            layer.values.push(value);
        }
        poll.tick(1)?;
        Ok(bytes)
    }

    /// Returns `true` if strings of this length may be members.
    fn stops(&self, depth: usize) -> bool {
        !matches!(self.span, LengthRange::Exactly(length) if length != depth)
    }

    /// Returns the range of lengths.
    pub fn span(&self) -> LengthRange {
        self.span
    }

    /// Returns the number of members.
    pub fn total(&self) -> BigUint {
        self.layers[0].value(0).cloned().unwrap_or_default()
    }

    /// Returns the number of completions of a state between characters.
    fn value(&self, state: u32, depth: usize) -> Option<&BigUint> {
        let depth = if self.span == LengthRange::Any { 0 } else { depth };
        self.layers.get(depth)?.value(state)
    }

    /// Returns the number of completions of a state at a depth. For a state inside a character, the
    /// depth is that after the character.
    fn through(&self, measured: &UnitTransitions, state: u32, depth: usize) -> BigUint {
        if !measured.is_inside(state) {
            return self.value(state, depth).cloned().unwrap_or_default();
        }
        let ways = measured.unit_successors(state).iter();
        ways.filter_map(|&(target, ways)| Some(self.value(target, depth)? * ways)).sum()
    }

    /// Returns the member with a number below [`RankTable::total`]; `None` beyond.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`].
    pub fn unrank(
        &self,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        number: &BigUint,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<Vec<u32>>, Error> {
        if *number >= self.total() {
            return Ok(None);
        }
        let mut number = number.clone();
        let (mut state, mut depth, mut labels) = (0, 0, Vec::new());
        loop {
            if !measured.is_inside(state) {
                if self.stops(depth) && graph.is_accepting(state) {
                    if number == BigUint::ZERO {
                        return Ok(Some(labels));
                    }
                    number -= 1u32;
                }
                depth += 1;
            }
            if let &[(target, ways)] = measured.unit_successors(state)
                && let Some(each) = self.value(target, depth)
            {
                // One division decides the whole character, since every choice has the same
                // continuations.
                let chosen = &number / each;
                number -= &chosen * each;
                poll.tick(4 * number_steps(each))?;
                let chosen = u64::try_from(&chosen).unwrap_or(ways);
                if spell_char(graph, measured, state, chosen, &mut labels).is_none() {
                    return Ok(None);
                }
                state = target;
                continue;
            }
            let Some(edge) = self.choose(graph.edges(state), measured, depth, &mut number, poll)?
            else {
                return Ok(None);
            };
            let each = self.through(measured, edge.target, depth);
            let skipped = &number / &each;
            number -= &skipped * each;
            labels.push(edge.low + u32::try_from(&skipped).unwrap_or(0));
            state = edge.target;
        }
    }

    /// Returns the edge that contains the completion with a number, and makes the number relative
    /// to that edge. One exists if the number is below the completions of the state.
    fn choose<'g>(
        &self,
        edges: &'g [DfaEdge],
        measured: &UnitTransitions,
        depth: usize,
        number: &mut BigUint,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<&'g DfaEdge>, Error> {
        for edge in edges {
            let all = self.through(measured, edge.target, depth) * edge.width();
            poll.tick(4 * number_steps(&all))?;
            if *number < all {
                return Ok(Some(edge));
            }
            *number -= all;
        }
        Ok(None)
    }

    /// Returns the number of a member, or `None` if the labels are not a member of the range.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`].
    pub fn rank(
        &self,
        graph: &MaterializedDfa,
        measured: &UnitTransitions,
        labels: &[u32],
        poll: &mut InterruptCheck<'_>,
    ) -> Result<Option<BigUint>, Error> {
        let mut number = BigUint::ZERO;
        let (mut state, mut depth) = (0, 0);
        for &label in labels {
            if !measured.is_inside(state) {
                number += u32::from(self.stops(depth) && graph.is_accepting(state));
                depth += 1;
            }
            let mut target = None;
            for edge in graph.edges(state) {
                if label < edge.low {
                    break;
                }
                let skipped = edge.width().min(label - edge.low);
                let each = self.through(measured, edge.target, depth);
                poll.tick(2 * number_steps(&each))?;
                number += each * skipped;
                target = is_on(edge, label).then_some(edge.target);
            }
            let Some(target) = target else { return Ok(None) };
            state = target;
        }
        let is_member =
            !measured.is_inside(state) && self.stops(depth) && graph.is_accepting(state);
        Ok(is_member.then_some(number))
    }
}

/// Appends the labels of the character, or its rest, with a number among those that start at
/// `state` and lead to one state. Returns `None` if there are not enough.
fn spell_char(
    graph: &MaterializedDfa,
    measured: &UnitTransitions,
    mut state: u32,
    mut number: u64,
    labels: &mut Vec<u32>,
) -> Option<()> {
    loop {
        let mut way = None;
        for edge in graph.edges(state) {
            let rest = measured.unit_successors(edge.target).first().map_or(1, |&(_, ways)| ways);
            let each = if measured.is_inside(edge.target) { rest } else { 1 };
            if number < each * u64::from(edge.width()) {
                way = Some((edge, each));
                break;
            }
            number -= each * u64::from(edge.width());
        }
        let (edge, each) = way?;
        labels.push(edge.low + (number / each) as u32);
        number %= each;
        state = edge.target;
        if !measured.is_inside(state) {
            return Some(());
        }
    }
}

fn is_on(edge: &DfaEdge, label: u32) -> bool {
    (edge.low..=edge.high).contains(&label)
}

/// Returns the states that strings of each length up to `length` reach.
fn reachable_layers(
    measured: &UnitTransitions,
    length: usize,
    limit: u64,
    poll: &mut InterruptCheck<'_>,
) -> Result<Vec<CompletionLayer>, Error> {
    let mut layers = Vec::new();
    let mut states = vec![0];
    let mut bytes = 0;
    while !states.is_empty() && layers.len() <= length {
        bytes += states.len() as u64 * (size_of::<u32>() + size_of::<BigUint>()) as u64;
        check_limit(Resource::Bytes, bytes, limit)?;
        let mut next: Vec<u32> = Vec::new();
        for &state in &states {
            next.extend(measured.unit_successors(state).iter().map(|&(target, _)| target));
        }
        poll.tick(4 * next.len())?;
        next.sort_unstable();
        next.dedup();
        layers.push(CompletionLayer { states, values: Vec::new() });
        states = next;
    }
    Ok(layers)
}
