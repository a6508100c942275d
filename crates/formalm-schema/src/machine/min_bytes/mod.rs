//! Admissible lower bounds on the number of bytes that complete a state.
//!
//! ```text
//! bound(position) = own bytes of the innermost value
//!                     └─► parent: child + remaining properties or items + closing bracket
//!                           └─► … up to DONE
//! ```
//!
//! A bound is computed for what must hold and for each verdict that a parent may need. The A*
//! search of [`super::completion`] relies on these bounds being admissible.

pub(crate) mod containers;
pub(crate) mod disjunctions;
pub(crate) mod distinct_values;
pub(crate) mod escaped_strings;
pub(crate) mod numbers;

use formalm_core::{Error, Resource, deadline::DeadlineTicks};
use rustc_hash::FxHashMap;

use crate::formula::FormulaId;
use crate::machine::NO_RECORD;
use crate::machine::completion::search::CompletionSearch;
use crate::machine::completion::unique_items::CompletedItems;
use crate::machine::frame::{
    ContainerState, DONE, Frame, FrameId, NumberPrefixId, ObligationId, ReaderPosition,
};
use crate::machine::min_bytes::containers::{ChildBound, UNREACHABLE};
use crate::machine::min_bytes::distinct_values::DistinctValueBounds;
use crate::machine::min_bytes::escaped_strings::{
    StringBounds, escape_bytes_left, escape_bytes_read, escape_slack,
};
use crate::machine::reader::whitespace::WhitespaceGap;
use crate::machine::residuals::string_queries::{NO_QUERIES, VerdictSource};

/// Bounds that searches have computed.
#[derive(Debug, Default)]
pub(crate) struct BoundCache {
    pub(crate) strings: StringBounds,
    pub(crate) distinct: DistinctValueBounds,
    /// Bounds on further properties and items.
    rest_bytes: FxHashMap<FormulaId, usize>,
    /// The bounds of a container, by its obligation and the bounds of its child.
    container_bounds: FxHashMap<(ObligationId, ChildBound), ChildBound>,
    /// The bounds of numbers, by obligation and prefix.
    number_bounds: FxHashMap<(ObligationId, NumberPrefixId), ChildBound>,
}

impl BoundCache {
    /// Drops all bounds if there are more than [`MAX_CACHED_BOUNDS`].
    pub(crate) fn limit(&mut self) {
        let others = self.rest_bytes.len() + self.container_bounds.len() + self.distinct.len();
        if self.strings.len() + self.number_bounds.len() + others > MAX_CACHED_BOUNDS {
            *self = BoundCache::default();
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        16 * self.rest_bytes.capacity()
            + 64 * self.number_bounds.capacity()
            + 160 * self.container_bounds.capacity()
            + self.strings.memory_bytes()
            + self.distinct.memory_bytes()
    }
}

/// Search steps between two checks of the deadline. Each may include a step of an automaton.
const DEADLINE_INTERVAL: u32 = 64;

/// The step budget of one search.
pub(crate) struct SearchBudget {
    pub(crate) steps: u64,
    pub(crate) limit: u64,
    ticks: DeadlineTicks,
    /// The bounds of all enclosing containers together, by the innermost and the bounds of its
    /// child. Frames are kept while a search runs.
    enclosing_bounds: FxHashMap<(FrameId, ChildBound), usize>,
    /// The completions of unique items, by position.
    pub(crate) completed_items: FxHashMap<ReaderPosition, Option<CompletedItems>>,
}

impl SearchBudget {
    /// Creates a budget of `limit` steps.
    pub(crate) fn new(limit: u64) -> SearchBudget {
        SearchBudget {
            steps: 0,
            limit,
            ticks: DeadlineTicks::default(),
            enclosing_bounds: FxHashMap::default(),
            completed_items: FxHashMap::default(),
        }
    }

    /// Charges one step. Fails if the budget is spent or the deadline has passed.
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.steps_of(1)
    }

    /// Charges `count` steps. Fails if the budget is spent or the deadline has passed.
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

/// Maximum number of cached bounds. Chosen, not measured.
const MAX_CACHED_BOUNDS: usize = 1 << 16;

impl CompletionSearch<'_> {
    /// Returns a lower bound on the bytes of every completion.
    ///
    /// In a string without queries the bound may be derived from that of the frame before it,
    /// because computing it is expensive.
    pub(crate) fn min_bytes(
        &mut self,
        frame: Frame,
        before: Option<(Frame, usize)>,
    ) -> Result<usize, Error> {
        if let (
            Frame::String { language, state, queries: NO_QUERIES, .. },
            Some((Frame::String { .. }, least)),
        ) = (frame, before)
            && !self.tables.bounds.strings.knows_suffix(language, state)
        {
            return Ok(least.saturating_sub(1));
        }
        let Some((child, parent)) = self.min_value_bounds(frame)? else {
            return Ok(0);
        };
        self.min_bytes_in_containers(child, parent)
    }

    /// Returns the bound of a child together with all containers around it.
    fn min_bytes_in_containers(
        &mut self,
        child: ChildBound,
        parent: FrameId,
    ) -> Result<usize, Error> {
        if parent == DONE {
            return Ok(child.must);
        }
        let key = (parent, child);
        if let Some(&known) = self.budget.enclosing_bounds.get(&key) {
            return Ok(known);
        }
        let (mut parent, mut child) = key.clone();
        while let Frame::Object { obligation, parent: next, .. }
        | Frame::Array { obligation, parent: next, .. } = self.reader.frames.get(parent)
        {
            let close =
                self.reader.gaps.length(WhitespaceGap::Close, self.reader.frames.depth(parent)) + 1;
            child = self.min_bytes_after_child(obligation, child, close)?;
            parent = next;
        }
        if self.budget.enclosing_bounds.len() == MAX_CACHED_BOUNDS {
            self.budget.enclosing_bounds.clear();
        }
        self.budget.enclosing_bounds.insert(key, child.must);
        Ok(child.must)
    }

    /// Returns the bounds of the innermost value by itself, also for each verdict, and its parent.
    fn min_value_bounds(&mut self, frame: Frame) -> Result<Option<(ChildBound, FrameId)>, Error> {
        let (must, verdicts, parent) = match frame {
            Frame::Done => return Ok(None),
            Frame::Value { obligation, whitespace, parent } => {
                let (gap, depth) = WhitespaceGap::before_value(&self.reader.frames, parent);
                let gap = match parent {
                    DONE => 0,
                    _ => self.reader.gaps.length(gap, depth).saturating_sub(whitespace.into()),
                };
                let formulas = self.reader.residuals.get(obligation).formulas.clone();
                let must = gap + self.min_value_bytes(formulas[0]);
                let mut verdicts = Vec::with_capacity(formulas.len() - 1);
                for &one in &formulas[1..] {
                    let both = self.reader.core.base.formulas.both(formulas[0], one);
                    verdicts.push(gap + self.min_value_bytes(both));
                }
                (must, verdicts, parent)
            }
            Frame::Literal { rest, parent, .. } => (rest.len(), Vec::new(), parent),
            Frame::Number { obligation, digits, parent } => {
                return Ok(Some((
                    self.tables.bounds.number_bounds(
                        self.reader,
                        obligation,
                        digits,
                        &mut self.budget,
                    )?,
                    parent,
                )));
            }
            Frame::String { language, state, queries, escape, parent } => {
                let queries = self.reader.strings.get(queries).clone();
                let mut of = |(language, state)| -> Result<usize, Error> {
                    let strings = &mut self.tables.bounds.strings;
                    let core = &self.reader.core;
                    let rest = strings.shortest_suffix(core, language, state, &mut self.budget)?;
                    Ok(rest.len() + 1)
                };
                let must = of((language, state))?;
                let mut verdicts = Vec::with_capacity(queries.len());
                for one in &queries.machines {
                    verdicts.push(one.map_or(Ok(UNREACHABLE), &mut of)?);
                }
                if let Some(enum_index) = queries.enum_index {
                    // The index of the string in the enumeration is left open.
                    let sources = self.reader.strings.enum_index(enum_index).verdicts();
                    let bounds = sources.iter().map(|source| match source {
                        VerdictSource::Machine(at) => verdicts[*at],
                        VerdictSource::Number(_) => must,
                    });
                    verdicts = bounds.collect();
                }
                // An open escape may belong to another character than the shortest string has.
                let read = escape_bytes_read(escape);
                let own = |least: usize| match read {
                    0 => least,
                    _ => least.saturating_sub(read).max(1 + escape_bytes_left(escape)),
                };
                (own(must), verdicts.into_iter().map(own).collect(), parent)
            }
            Frame::Name { object, text, candidates, escape, .. } => {
                let Frame::Object { obligation, parent, .. } = self.reader.frames.get(object)
                else {
                    return Ok(None);
                };
                // The bytes read, including the quote, may belong to a required name, whose comma
                // has been read as well. If any name is allowed, an unknown one has at least one
                // character.
                let letters = self.reader.records.length(text) as usize;
                let is_any = candidates.from == candidates.to
                    && self.reader.strings.allows_any_name(&self.reader.core, candidates.classes);
                let read = if is_any { letters.min(1) } else { letters }
                    + 1
                    + self.reader.gaps.comma_bytes();
                let known = text != NO_RECORD;
                let slack = escape_slack(escape, self.reader.core.options.escapes);
                let own = |required: usize| {
                    let rest = if known { required.saturating_sub(read) } else { 0 };
                    rest.saturating_add_signed(slack).max(3 + escape_bytes_left(escape))
                };
                let close = self
                    .reader
                    .gaps
                    .length(WhitespaceGap::Close, self.reader.frames.depth(parent) + 1)
                    + 1;
                if candidates.from == candidates.to {
                    // No required name can still be read, so all of them come later.
                    return self.container_bounds_with(obligation, parent, &|search, rest| {
                        let own_name = 3 + escape_bytes_left(escape);
                        let later = search.min_required_names_bytes(rest)?;
                        let least = own(search.min_rest_bytes(rest)?);
                        Ok(least.max(own_name + later).min(UNREACHABLE) + close)
                    });
                }
                return self
                    .container_bounds(obligation, parent, &|required| own(required) + close);
            }
            Frame::Object { obligation, mode, whitespace, parent, .. }
            | Frame::Array { obligation, mode, whitespace, parent, .. } => {
                let close = self
                    .reader
                    .gaps
                    .length(WhitespaceGap::Close, self.reader.frames.depth(parent) + 1);
                let committed = self.reader.gaps.is_committed(whitespace);
                let comma = self.reader.gaps.comma_bytes();
                let needs = |required: usize| {
                    let own = match mode {
                        ContainerState::AfterOpen => required.saturating_sub(comma),
                        ContainerState::AfterComma => required.saturating_sub(comma).max(4),
                        ContainerState::AfterName => 2 + required,
                        ContainerState::InValue | ContainerState::AfterValue => required,
                    };
                    let close = match (mode, committed) {
                        (ContainerState::AfterOpen, false) if required == 0 => 0,
                        (ContainerState::AfterValue, true) => {
                            close.saturating_sub(whitespace.into())
                        }
                        _ => close,
                    };
                    own + close + 1
                };
                return self.container_bounds(obligation, parent, &needs);
            }
        };
        Ok(Some((ChildBound { must, verdicts }, parent)))
    }

    /// Returns the bounds of a container between its parts. `needs` maps the bytes of the remaining
    /// parts to the total.
    fn container_bounds(
        &mut self,
        obligation: ObligationId,
        parent: FrameId,
        needs: &dyn Fn(usize) -> usize,
    ) -> Result<Option<(ChildBound, FrameId)>, Error> {
        self.container_bounds_with(obligation, parent, &|search, rest| {
            Ok(needs(search.min_rest_bytes(rest)?))
        })
    }

    /// Returns the bounds of a container between its parts. `needs` maps the formula of the
    /// remaining parts to the total.
    fn container_bounds_with(
        &mut self,
        obligation: ObligationId,
        parent: FrameId,
        needs: &dyn Fn(&mut Self, FormulaId) -> Result<usize, Error>,
    ) -> Result<Option<(ChildBound, FrameId)>, Error> {
        let formulas = self.reader.residuals.get(obligation).formulas.clone();
        let must = needs(self, formulas[0])?;
        let mut verdicts = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            verdicts.push(needs(self, one)?);
        }
        Ok(Some((ChildBound { must, verdicts }, parent)))
    }
}
