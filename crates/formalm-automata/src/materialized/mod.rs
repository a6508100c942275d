//! Materialized automata: explicit DFAs that can be minimized, counted, enumerated and drawn.
//!
//! ```text
//!  explore ──► MaterializedDfa ──minimized──► canonical DFA ──► UnitTransitions
//!                                                                    │
//!                                    LengthCounts, RankTable, MemberEnumerator
//! ```
//!
//! A label is a number: a byte, or what the caller numbers. Edges carry ranges of labels. A minimized
//! DFA is trimmed and numbered breadth first by ascending label, so equal languages have equal DFAs.

mod binary_format;
mod language_comparison;
mod length_counts;
mod length_unit;
mod member_enumeration;
mod members_up_to_length;
mod minimization;
mod ranking;
#[cfg(test)]
mod tests;
mod utf8_check;

use std::hash::Hash;

use formalm_core::{
    CompletionClasses, CompletionHints, Interner, LazyDfa, ReadingHints, Renewal, ScratchCopies,
};

pub use binary_format::LoadError;
pub use language_comparison::{LanguageRelation, difference};
pub use length_counts::{LengthCounts, completion_counts};
pub use length_unit::{LengthUnit, UnitTransitions};
pub use member_enumeration::MemberEnumerator;
pub use ranking::{LengthRange, RankTable};
pub use utf8_check::is_utf8;

use formalm_core::{
    ByteSet, Error, InterruptCheck, Machine, Resource, StateId, StepBudget, check_limit,
    steps_taken,
};

/// An edge: the labels `low..=high` lead to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DfaEdge {
    /// First label.
    pub low: u32,
    /// Last label.
    pub high: u32,
    /// The state that each of the labels leads to.
    pub target: u32,
}

impl DfaEdge {
    /// Returns the number of labels.
    pub fn width(&self) -> u32 {
        self.high - self.low + 1
    }
}

/// An explicit deterministic automaton; state 0 is the start.
///
/// The edges of a state are ascending and disjoint, and adjacent ones with the same target are
/// merged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaterializedDfa {
    accepting: Vec<bool>,
    /// The start of the edges of each state, and the end of the last.
    offsets: Vec<usize>,
    edges: Vec<DfaEdge>,
}

/// Size limits of a materialized automaton.
#[derive(Clone, Copy, Debug)]
pub struct DfaSizeLimits {
    /// Maximum number of states, before equivalent ones are merged.
    pub states: u64,
    /// Maximum number of edges, counting each label of a range.
    pub edges: u64,
}

impl MaterializedDfa {
    /// Returns the DFA of the empty language.
    pub fn empty() -> MaterializedDfa {
        MaterializedDfa { accepting: vec![false], offsets: vec![0, 0], edges: Vec::new() }
    }

    /// Returns the minimal DFA of a machine over bytes.
    ///
    /// ```
    /// use formalm_automata::materialized::MaterializedDfa;
    /// use formalm_automata::{Automaton, AutomatonLimits, Expression};
    /// use formalm_core::InterruptCheck;
    ///
    /// let words = Expression::literals(vec![b"bake".to_vec(), b"cake".to_vec()]);
    /// let automaton = Automaton::new(&words, AutomatonLimits::default())?;
    /// let mut proceed = || true;
    /// let dfa = MaterializedDfa::of(&automaton, 1000, &mut InterruptCheck::new(&mut proceed))?;
    /// assert_eq!(dfa.state_count(), 5);
    /// # Ok::<(), formalm_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if it, or the machine, has too many states; [`Error::Interrupted`].
    pub fn of(
        machine: &impl Machine,
        states: u64,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<MaterializedDfa, Error> {
        let (patience, mut visited) = (StepBudget::new(steps_taken()), 0);
        let successors = |state, row: &mut Vec<(u32, StateId)>| {
            visited += 1;
            patience.check(steps_taken(), visited)?;
            for byte in 0..=255u8 {
                row.extend(machine.step(state, byte)?.map(|next| (u32::from(byte), next)));
            }
            Ok(())
        };
        let size = DfaSizeLimits { states, edges: u64::MAX };
        let accepting = |state| machine.is_accepting(state);
        MaterializedDfa::explore(machine.start(), successors, accepting, size, poll)?
            .minimized(poll)
    }

    /// Materializes the states reachable from `start`, breadth first. Equivalent and dead states
    /// are kept: see [`MaterializedDfa::minimized`].
    ///
    /// `successors` pushes labels with their states, each label at most once and in any order.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`], [`Error::Interrupted`], and those of `successors`.
    pub fn explore<S: Copy + Eq + Hash>(
        start: S,
        mut successors: impl FnMut(S, &mut Vec<(u32, S)>) -> Result<(), Error>,
        is_accepting: impl Fn(S) -> Result<bool, Error>,
        size: DfaSizeLimits,
        poll: &mut InterruptCheck<'_>,
    ) -> Result<MaterializedDfa, Error> {
        let mut graph =
            MaterializedDfa { accepting: Vec::new(), offsets: vec![0], edges: Vec::new() };
        let mut states = Interner::from_iter([start]);
        let mut row = Vec::new();
        let mut labels = 0;
        check_limit(Resource::States, 1, size.states)?;
        while let Some(&state) = states.as_slice().get(graph.accepting.len()) {
            row.clear();
            successors(state, &mut row)?;
            row.sort_unstable_by_key(|&(label, _)| label);
            labels += row.len() as u64;
            check_limit(Resource::Edges, labels, size.edges)?;
            for &(label, next) in &row {
                let target = states.intern(next);
                graph.push(DfaEdge { low: label, high: label, target });
            }
            check_limit(Resource::States, states.len() as u64, size.states)?;
            graph.close(is_accepting(state)?);
            poll.tick(row.len() + 64)?;
        }
        Ok(graph)
    }

    /// Adds an edge to the state being built.
    pub(crate) fn push(&mut self, edge: DfaEdge) {
        let from = self.offsets.last().copied().unwrap_or(0);
        match self.edges[from..].last_mut() {
            Some(last) if last.target == edge.target && last.high + 1 == edge.low => {
                last.high = edge.high;
            }
            _ => self.edges.push(edge),
        }
    }

    /// Completes the state being built.
    pub(crate) fn close(&mut self, accepting: bool) {
        self.accepting.push(accepting);
        self.offsets.push(self.edges.len());
    }

    /// Returns the number of states.
    pub fn state_count(&self) -> usize {
        self.accepting.len()
    }

    /// Returns `true` if a state is accepting.
    #[inline]
    pub fn is_accepting(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// Returns `true` if nothing is a member. Only for minimized DFAs.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty() && !self.accepting[0]
    }

    /// Returns the edges of a state, ascending.
    #[inline]
    pub fn edges(&self, state: u32) -> &[DfaEdge] {
        let at = state as usize;
        &self.edges[self.offsets[at]..self.offsets[at + 1]]
    }

    /// Returns the edges of all states in order, counting a range of labels once.
    pub fn all_edges(&self) -> impl Iterator<Item = (u32, DfaEdge)> + '_ {
        let states = 0..self.state_count() as u32;
        states.flat_map(|state| self.edges(state).iter().map(move |&edge| (state, edge)))
    }

    /// Returns the number of edges, counting a range of labels once.
    pub fn range_count(&self) -> usize {
        self.edges.len()
    }

    /// Returns the number of edges, counting each label of a range.
    pub fn label_count(&self) -> u64 {
        self.edges.iter().map(|edge| u64::from(edge.width())).sum()
    }

    /// Returns the state after a label.
    #[inline]
    pub fn step_label(&self, state: u32, label: u32) -> Option<u32> {
        let edges = self.edges(state);
        let edge = &edges[edges.partition_point(|edge| edge.high < label)..].first()?;
        (edge.low <= label).then_some(edge.target)
    }

    /// Returns `true` if a sequence of labels is a member.
    pub fn accepts(&self, labels: impl IntoIterator<Item = u32>) -> bool {
        let mut labels = labels.into_iter();
        let end = labels.try_fold(0, |state, label| self.step_label(state, label));
        end.is_some_and(|state| self.is_accepting(state))
    }

    /// Returns the states in topological order, or `None` if there is a cycle.
    pub fn topological(&self) -> Option<Vec<u32>> {
        let mut incoming = vec![0u32; self.state_count()];
        for edge in &self.edges {
            incoming[edge.target as usize] += 1;
        }
        let states = 0..self.state_count() as u32;
        let mut order: Vec<u32> = states.filter(|&state| incoming[state as usize] == 0).collect();
        let mut at = 0;
        while let Some(&state) = order.get(at) {
            at += 1;
            for edge in self.edges(state) {
                incoming[edge.target as usize] -= 1;
                if incoming[edge.target as usize] == 0 {
                    order.push(edge.target);
                }
            }
        }
        (order.len() == self.state_count()).then_some(order)
    }
}

/// A minimal DFA over bytes is a machine, unless its language is empty: then its only state is
/// dead.
impl LazyDfa for MaterializedDfa {
    fn start(&self) -> StateId {
        StateId::from_number(0)
    }

    fn step(&self, state: StateId, byte: u8) -> Result<Option<StateId>, Error> {
        Ok(self.step_label(state.number(), u32::from(byte)).map(StateId::from_number))
    }

    fn is_accepting(&self, state: StateId) -> Result<bool, Error> {
        Ok(self.accepting[state.number() as usize])
    }

    fn live_bytes(&self, state: StateId) -> Result<ByteSet, Error> {
        let mut live = ByteSet::default();
        for edge in self.edges(state.number()) {
            (edge.low..=edge.high).for_each(|label| live.insert(label as u8));
        }
        Ok(live)
    }

    fn shortest_completion(&self, state: StateId) -> Result<Vec<u8>, Error> {
        let labels =
            UnitTransitions::labels(self).shortest(self, state.number()).unwrap_or_default();
        Ok(labels.into_iter().map(|label| label as u8).collect())
    }

    fn memory_bytes(&self) -> usize {
        self.edges.len() * size_of::<DfaEdge>() + self.accepting.len() * (1 + size_of::<usize>())
    }
}

impl ReadingHints for MaterializedDfa {}

impl CompletionHints for MaterializedDfa {}

impl CompletionClasses for MaterializedDfa {}

impl ScratchCopies for MaterializedDfa {}

impl Renewal for MaterializedDfa {}
