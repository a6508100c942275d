//! How many bytes the members through a state have at least.

pub(crate) mod containers;
pub(crate) mod disjunctions;
pub(crate) mod distinct_values;
pub(crate) mod escaped_strings;
pub(crate) mod numbers;

use formalm_automata::deadline::DeadlineTicks;
use formalm_automata::{Error, Resource};
use rustc_hash::FxHashMap;

use std::sync::Arc;

use crate::core::TextId;
use crate::formula::F;
use crate::machine::completion::unique_items::CompletedItems;
use crate::machine::frame::{
    ContainerState, DONE, Frame, FrameId, NumberPrefixId, ObligationId, Position,
};
use crate::machine::min_bytes::containers::{ChildBound, UNREACHABLE};
use crate::machine::min_bytes::distinct_values::{LengthCounts, ValueLengths};
use crate::machine::min_bytes::escaped_strings::{
    StringSuffix, escape_bytes_left, escape_bytes_read, escape_slack,
};
use crate::machine::reader::cache::NO_QUERIES;
use crate::machine::reader::enum_verdicts::VerdictSource;
use crate::machine::reader::whitespace::WhitespaceGap;
use crate::machine::{LazyTables, NO_RECORD};
use crate::value::ValueId;

/// What searches for completions have learnt.
#[derive(Debug, Default)]
pub(crate) struct BoundCache {
    /// By its machine's state what a text needs.
    pub(crate) texts: FxHashMap<(TextId, u32), StringSuffix>,
    /// By their machine how many texts of each length, spelled or not, there are at most.
    pub(crate) counts: FxHashMap<(TextId, bool), LengthCounts>,
    /// How long the values of a formula are, and by which length one of them was counted.
    pub(crate) values: FxHashMap<F, Arc<ValueLengths>>,
    pub(crate) lengths: FxHashMap<(F, ValueId), usize>,
    /// Bytes that more members and items need at least.
    pub(crate) rests: FxHashMap<F, usize>,
    /// By what a container owes and what the child needs that is being read, what both need.
    pub(crate) children: FxHashMap<(ObligationId, ChildBound), ChildBound>,
    /// By what they owe and what was read what numbers need.
    pub(crate) numbers: FxHashMap<(ObligationId, NumberPrefixId), ChildBound>,
}

impl BoundCache {
    /// Forgets everything if it is much.
    pub(crate) fn limit(&mut self) {
        let others = self.rests.len() + self.children.len() + self.counts.len();
        let others = others + self.values.len() + self.lengths.len();
        if self.texts.len() + self.numbers.len() + others > MAX_CACHED_BOUNDS {
            *self = BoundCache::default();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let (texts, rests, numbers) =
            (self.texts.capacity(), self.rests.capacity(), self.numbers.capacity());
        let (children, counts) = (self.children.capacity(), self.counts.capacity());
        let (values, lengths) = (self.values.capacity(), self.lengths.capacity());
        let known = 128 * (counts + values) + 24 * lengths;
        80 * texts + 16 * rests + 64 * numbers + 160 * children + known
    }
}

/// Steps between two looks at the deadline; each may be one of a machine.
const DEADLINE_INTERVAL: u32 = 64;

/// A search for one completion.
pub(crate) struct SearchBudget {
    pub(crate) steps: u64,
    pub(crate) limit: u64,
    ticks: DeadlineTicks,
    /// By the place what items that must be distinct are completed with at once.
    pub(crate) jumps: FxHashMap<Position, Option<CompletedItems>>,
}

impl SearchBudget {
    /// A search that takes at most so many steps.
    pub(crate) fn new(limit: u64) -> SearchBudget {
        SearchBudget {
            steps: 0,
            limit,
            ticks: DeadlineTicks::default(),
            jumps: FxHashMap::default(),
        }
    }

    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.steps_of(1)
    }

    /// Counts what takes the time of several steps.
    pub(crate) fn steps_of(&mut self, count: u64) -> Result<(), Error> {
        self.steps += count;
        self.ticks.tick(1, DEADLINE_INTERVAL)?;
        if self.steps > self.limit {
            let (needed, allowed) = (self.steps, self.limit);
            return Err(Error::Limit { resource: Resource::Steps, needed, allowed });
        }
        Ok(())
    }
}

/// Answers that are kept.
const MAX_CACHED_BOUNDS: usize = 1 << 16;

impl LazyTables {
    /// Bytes that every continuation has at least; within a text of which nothing is asked that may
    /// be taken from what the frame before needs, which is much to find out.
    pub(crate) fn min_bytes(
        &mut self,
        frame: Frame,
        before: Option<(Frame, usize)>,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        if let (
            Frame::String { language, state, queries: NO_QUERIES, .. },
            Some((Frame::String { .. }, least)),
        ) = (frame, before)
            && !self.bound_cache.texts.contains_key(&(language, state.number()))
        {
            return Ok(least.saturating_sub(1));
        }
        let Some((mut child, mut parent)) = self.min_value_bounds(frame, budget)? else {
            return Ok(0);
        };
        while let Frame::Object { obligation, parent: next, .. }
        | Frame::Array { obligation, parent: next, .. } = *self.frames.get(parent.0)
        {
            let close = self.gap_length(WhitespaceGap::Close, self.depth(parent)) + 1;
            child = self.min_bytes_after_child(obligation, child, close, budget)?;
            parent = next;
        }
        Ok(child.must)
    }

    /// What the value at hand needs by itself, also for each truth that is asked of it, and the
    /// frame below.
    fn min_value_bounds(
        &mut self,
        frame: Frame,
        budget: &mut SearchBudget,
    ) -> Result<Option<(ChildBound, FrameId)>, Error> {
        let (must, verdicts, parent) = match frame {
            Frame::Done => return Ok(None),
            Frame::Value { obligation, whitespace, parent } => {
                let (gap, depth) = self.gap_of_value(parent);
                let gap = match parent {
                    DONE => 0,
                    _ => self.gap_length(gap, depth).saturating_sub(whitespace.into()),
                };
                let formulas = self.parts.obligations.get(obligation.0).formulas.clone();
                let must = gap + self.min_value_bytes(formulas[0], budget);
                let mut verdicts = Vec::with_capacity(formulas.len() - 1);
                for &one in &formulas[1..] {
                    let both = self.core.formulas.both(formulas[0], one);
                    verdicts.push(gap + self.min_value_bytes(both, budget));
                }
                (must, verdicts, parent)
            }
            Frame::Literal { rest, parent, .. } => (rest.len(), Vec::new(), parent),
            Frame::Number { obligation, digits, parent } => {
                return Ok(Some((self.number_bounds(obligation, digits, budget)?, parent)));
            }
            Frame::String { language, state, queries, escape, parent } => {
                let queries = self.parts.queries.get(queries.0).clone();
                let mut of = |(language, state)| -> Result<usize, Error> {
                    let rest = self.shortest_suffix(language, state, budget)?;
                    Ok(rest.len() + 1)
                };
                let must = of((language, state))?;
                let mut verdicts = Vec::with_capacity(queries.len());
                for one in &queries.machines {
                    verdicts.push(one.map_or(Ok(UNREACHABLE), &mut of)?);
                }
                if let Some(enum_index) = queries.enum_index {
                    // Which of the listed texts it will be is left open.
                    let told = self.parts.enum_indexes[enum_index as usize].verdicts();
                    let told = told.iter().map(|told| match told {
                        VerdictSource::Machine(at) => verdicts[*at],
                        VerdictSource::Number(_) => must,
                    });
                    verdicts = told.collect();
                }
                // What is spelled of a character may be of another one than the shortest text has.
                let begun = escape_bytes_read(escape);
                let own = |least: usize| match begun {
                    0 => least,
                    _ => least.saturating_sub(begun).max(1 + escape_bytes_left(escape)),
                };
                (own(must), verdicts.into_iter().map(own).collect(), parent)
            }
            Frame::Name { object, text, candidates, escape, .. } => {
                let Frame::Object { obligation, parent, .. } = *self.frames.get(object.0) else {
                    return Ok(None);
                };
                // What was read, its quote too, may be of a name that is owed, of which the comma
                // is read as well. Of other names one letter is, if they may be any.
                let letters = self.records.get(text).2 as usize;
                let is_any =
                    candidates.from == candidates.to && self.allows_any_name(candidates.classes);
                let read = if is_any { letters.min(1) } else { letters } + 1 + self.comma_bytes();
                let known = text != NO_RECORD;
                let spelled = escape_slack(escape, self.core.options.escapes);
                let own = |required: usize| {
                    let rest = if known { required.saturating_sub(read) } else { 0 };
                    rest.saturating_add_signed(spelled).max(3 + escape_bytes_left(escape))
                };
                let close = self.gap_length(WhitespaceGap::Close, self.depth(parent) + 1) + 1;
                return self.container_bounds(obligation, parent, budget, &|required| {
                    own(required) + close
                });
            }
            Frame::Object { obligation, mode, whitespace, parent, .. }
            | Frame::Array { obligation, mode, whitespace, parent, .. } => {
                let close = self.gap_length(WhitespaceGap::Close, self.depth(parent) + 1);
                let begun = self.gap_begun(whitespace);
                let comma = self.comma_bytes();
                let needs = |required: usize| {
                    let own = match mode {
                        ContainerState::AfterOpen => required.saturating_sub(comma),
                        ContainerState::AfterComma => required.saturating_sub(comma).max(4),
                        ContainerState::AfterName => 2 + required,
                        ContainerState::InValue | ContainerState::AfterValue => required,
                    };
                    let close = match (mode, begun) {
                        (ContainerState::AfterOpen, false) if required == 0 => 0,
                        (ContainerState::AfterValue, true) => {
                            close.saturating_sub(whitespace.into())
                        }
                        _ => close,
                    };
                    own + close + 1
                };
                return self.container_bounds(obligation, parent, budget, &needs);
            }
        };
        Ok(Some((ChildBound { must, verdicts }, parent)))
    }

    /// What an object or array needs between its parts, given what it does for what is owed.
    fn container_bounds(
        &mut self,
        obligation: ObligationId,
        parent: FrameId,
        budget: &mut SearchBudget,
        needs: &dyn Fn(usize) -> usize,
    ) -> Result<Option<(ChildBound, FrameId)>, Error> {
        let formulas = self.parts.obligations.get(obligation.0).formulas.clone();
        let must = needs(self.min_rest_bytes(formulas[0], budget)?);
        let mut verdicts = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            verdicts.push(needs(self.min_rest_bytes(one, budget)?));
        }
        Ok(Some((ChildBound { must, verdicts }, parent)))
    }

    /// Bytes of a comma and the blanks of a layout behind it at least, wherever it stands.
    pub(crate) fn comma_bytes(&self) -> usize {
        1 + self.gap_length(WhitespaceGap::Next, 1)
    }

    pub(crate) fn colon_bytes(&self) -> usize {
        1 + self.gap_length(WhitespaceGap::BeforeColon, 1)
            + self.gap_length(WhitespaceGap::AfterColon, 1)
    }
}
