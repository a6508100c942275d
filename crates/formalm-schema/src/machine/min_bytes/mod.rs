//! Admissible lower bounds on the number of bytes that complete a state.
//!
//! ```text
//! bound(position) = own bytes of the innermost value
//!                     └─► parent: child + remaining properties or items + end of the container
//!                           └─► … up to DONE
//! ```
//!
//! How many bytes anything takes is asked of the spelling.
//!
//! A bound is computed for what must hold and for each verdict that a parent may need. The A*
//! search of [`super::completion`] relies on these bounds being admissible.

pub(crate) mod containers;
pub(crate) mod disjunctions;
pub(crate) mod distinct_values;
pub(crate) mod escaped_strings;
pub(crate) mod numbers;

use formalm_core::{Error, Resource, check_limit, deadline::DeadlineTicks};
use rustc_hash::FxHashMap;

use crate::formula::FormulaId;
use crate::machine::NO_RECORD;
use crate::machine::completion::search::CompletionSearch;
use crate::machine::completion::unique_items::CompletedItems;
use crate::machine::frame::{DONE, Frame, FrameId, NumberPrefixId, ObligationId, ReaderPosition};
use crate::machine::min_bytes::containers::{ChildBound, UNREACHABLE};
use crate::machine::min_bytes::distinct_values::DistinctValueBounds;
use crate::machine::min_bytes::escaped_strings::StringBounds;
use crate::machine::residuals::string_queries::{NO_QUERIES, VerdictSource};
use crate::machine::spelling::Spelling;
use crate::machine::values::Values;

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
        check_limit(Resource::Steps, self.steps, self.limit)
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
        | Frame::Array { obligation, parent: next, .. } =
            self.reader.values.frames.get(parent)
        {
            let close = self.reader.spelling.close_len(self.reader.values.frames.depth(parent));
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
            Frame::Value { obligation, mark, parent } => {
                let formulas = self.reader.values.residuals.get(obligation).formulas.clone();
                let rest = |search: &CompletionSearch<'_>, value: usize| {
                    search.reader.spelling.value_rest(&search.reader.values, parent, mark, value)
                };
                let must = self.min_value_bytes(formulas[0]);
                let must = rest(self, must);
                let mut verdicts = Vec::with_capacity(formulas.len() - 1);
                for &one in &formulas[1..] {
                    let both = self.reader.values.core.base.formulas.both(formulas[0], one);
                    let value = self.min_value_bytes(both);
                    verdicts.push(rest(self, value));
                }
                (must, verdicts, parent)
            }
            Frame::Literal { rest, parent, .. } => (rest.len(), Vec::new(), parent),
            Frame::Number { obligation, digits, parent } => {
                return Ok(Some((
                    self.tables.bounds.number_bounds(
                        &mut self.reader.values,
                        obligation,
                        digits,
                        &mut self.budget,
                    )?,
                    parent,
                )));
            }
            Frame::String { language, state, queries, escape, parent } => {
                let queries = self.reader.values.strings.get(queries).clone();
                let mut of = |(language, state)| -> Result<usize, Error> {
                    let strings = &mut self.tables.bounds.strings;
                    let (core, spelling) = (&self.reader.values.core, &self.reader.spelling);
                    let budget = &mut self.budget;
                    let rest = strings.shortest_suffix(core, spelling, language, state, budget)?;
                    Ok(rest.len() + spelling.string_end().len())
                };
                let must = of((language, state))?;
                let mut verdicts = Vec::with_capacity(queries.len());
                for one in &queries.machines {
                    verdicts.push(one.map_or(Ok(UNREACHABLE), &mut of)?);
                }
                if let Some(enum_index) = queries.enum_index {
                    // The index of the string in the enumeration is left open.
                    let sources = self.reader.values.strings.enum_index(enum_index).verdicts();
                    let bounds = sources.iter().map(|source| match source {
                        VerdictSource::Machine(at) => verdicts[*at],
                        VerdictSource::Number(_) => must,
                    });
                    verdicts = bounds.collect();
                }
                // An open escape may belong to another character than the shortest string has.
                let partial = self.reader.spelling.partial_len(escape);
                let end = self.reader.spelling.string_end().len();
                let own = |least: usize| match partial.read {
                    0 => least,
                    read => least.saturating_sub(read).max(end + partial.left),
                };
                (own(must), verdicts.into_iter().map(own).collect(), parent)
            }
            Frame::Name { object, text, candidates, escape, .. } => {
                let Frame::Object { obligation, parent, .. } =
                    self.reader.values.frames.get(object)
                else {
                    return Ok(None);
                };
                // If any name is allowed, an unknown one has at least one character.
                let letters = self.reader.values.records.length(text) as usize;
                let is_any = candidates.from == candidates.to
                    && self
                        .reader
                        .values
                        .strings
                        .allows_any_name(&self.reader.values.core, candidates.classes);
                let read = if is_any { letters.min(1) } else { letters };
                let read = (text != NO_RECORD).then_some(read);
                let depth = self.reader.values.frames.depth(parent) + 1;
                // If no known name can still be read, all required ones come later.
                let is_unknown = candidates.from == candidates.to;
                return self.container_bounds_with(obligation, parent, &|search, rest| {
                    let parts = search.min_rest_bytes(rest)?;
                    let later = match is_unknown {
                        true => search.min_required_names_bytes(rest)?,
                        false => 0,
                    };
                    let spelling = &search.reader.spelling;
                    let own = spelling.name_rest(read, escape, parts);
                    let least = own.max(spelling.name_rest(None, escape, 0) + later);
                    Ok(least.min(UNREACHABLE) + spelling.close_len(depth))
                });
            }
            Frame::Object { obligation, parent, .. } | Frame::Array { obligation, parent, .. } => {
                return self.container_bounds(obligation, parent, &|spelling, values, parts| {
                    spelling.container_rest(values, &frame, parts)
                });
            }
        };
        Ok(Some((ChildBound { must, verdicts }, parent)))
    }

    /// Returns the bounds of a container between its parts. `total` maps the bytes of the remaining
    /// parts to the total.
    fn container_bounds(
        &mut self,
        obligation: ObligationId,
        parent: FrameId,
        total: &dyn Fn(&dyn Spelling, &Values, usize) -> usize,
    ) -> Result<Option<(ChildBound, FrameId)>, Error> {
        self.container_bounds_with(obligation, parent, &|search, rest| {
            let parts = search.min_rest_bytes(rest)?;
            Ok(total(&search.reader.spelling, &search.reader.values, parts))
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
        let formulas = self.reader.values.residuals.get(obligation).formulas.clone();
        let must = needs(self, formulas[0])?;
        let mut verdicts = Vec::with_capacity(formulas.len() - 1);
        for &one in &formulas[1..] {
            verdicts.push(needs(self, one)?);
        }
        Ok(Some((ChildBound { must, verdicts }, parent)))
    }
}
