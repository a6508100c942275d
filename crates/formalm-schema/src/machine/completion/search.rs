//! Shortest completions, lexicographically least among the shortest.
//!
//! The search runs twice. A* first finds the length *n* of a shortest completion: positions are
//! visited in the order of bytes read plus [`CompletionSearch::min_bytes`], an admissible lower bound on
//! the rest. A depth-first search then finds the least completion of *n* bytes, along positions
//! whose bound still allows *n*. Both only branch on the bytes that [`super::pruning`] leaves: no
//! optional whitespace, no longer free string, no property that is not required. Required
//! properties come in ascending order if they are independent. Unknown names are equivalent, so
//! only one is followed.

use std::collections::BTreeMap;

use formalm_core::{CompactMap, Error, Resource, check_limit, memory_bytes};
use rustc_hash::FxHashMap;

use crate::formula::{FormulaId, TRUE};
use crate::machine::NO_RECORD;
use crate::machine::completion::pruning::UsefulBytes;
use crate::machine::completion::unique_items::{
    CurrentItem, complete_from_inside_item, complete_unique_items,
};
use crate::machine::frame::{CharState, DONE, Frame, FrameId, ReaderPosition};
use crate::machine::min_bytes::{BoundCache, SearchBudget};
use crate::machine::reader::AnyReader;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::values::Values;

/// Maximum number of steps; a completion further away is a [`Error::Limit`]. Chosen, not measured.
const MAX_STEPS: u64 = 1_000_000;

/// Maximum number of steps where the caller can use another completion instead. Chosen, not
/// measured.
const FEW_STEPS: u64 = 100_000;

/// Search steps charged for each step of the solver. Chosen, not measured.
const STEPS_READING: u64 = 4;

/// Search steps charged for a byte of a recorded item: its record and the frames after it are new
/// and stay until the search ends. Chosen, not measured.
const RECORDING_STEPS: u64 = 2;

/// Maximum length of a completion, in bytes. Longer ones would exceed the step limit anyway.
const MAX_BYTES: usize = 100_000;

/// Maximum number of cached completions after a value. Chosen, not measured.
const MAX_CACHED_CLOSINGS: usize = 256;

/// Maximum number of bytes of required properties up to which an unused one-byte name always
/// remains.
const MAX_REQUIRED_BYTES: usize = 500;

/// The tables that completion searches share.
#[derive(Debug, Default)]
pub(crate) struct CompletionTables {
    pub(crate) bounds: BoundCache,
    /// A lower bound on the bytes of a value, `None` if a deadline cut the search short.
    pub(crate) value_bytes: CompactMap<FormulaId, Option<usize>>,
    /// The shortest completion after a value, by its parent.
    closings: CompactMap<FrameId, Box<[u8]>>,
}

memory_bytes!(CompletionTables { bounds, value_bytes, closings });

impl CompletionTables {
    /// Returns the lexicographically least of the shortest completions.
    pub(crate) fn shortest(
        &mut self,
        reader: &mut AnyReader,
        position: ReaderPosition,
    ) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(reader, position, MAX_STEPS)
    }

    /// Returns a shortest completion with the smaller step limit, for callers that have an
    /// alternative.
    pub(crate) fn shortest_soon(
        &mut self,
        reader: &mut AnyReader,
        position: ReaderPosition,
    ) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(reader, position, FEW_STEPS)
    }

    fn shortest_in_steps(
        &mut self,
        reader: &mut AnyReader,
        position: ReaderPosition,
        steps: u64,
    ) -> Result<Vec<u8>, Error> {
        let (frames, records) = (reader.values.frames.len(), reader.values.records.len());
        let mut found = CompletionSearch::new(reader, self, steps).complete_from(position);
        if let Err(Error::Limit { .. }) = found
            && let Some(jumped) =
                CompletionSearch::new(reader, self, steps).shortest_within_item(position)?
        {
            found = Ok(jumped);
        }
        reader.values.truncate(frames, records);
        self.bounds.limit();
        found
    }

    /// Returns another position with the same completions, if there is one. Unknown names are
    /// equivalent if the properties still required never need the same names.
    pub(crate) fn equivalent_position(
        &mut self,
        reader: &mut AnyReader,
        position: ReaderPosition,
    ) -> Result<Option<ReaderPosition>, Error> {
        let Frame::Name { object, text, candidates, .. } = position.frame else { return Ok(None) };
        let completion_class = completion_class(&reader.values, position);
        if completion_class == position
            || reader.values.records.length(text) < 2
            || !reader.values.strings.allows_any_name(&reader.values.core, candidates.classes)
        {
            return Ok(None);
        }
        let Frame::Object { obligation, .. } = reader.values.frames.get(object) else {
            return Ok(None);
        };
        // With so few bytes required, an unused one-byte name remains.
        let must = reader.values.residuals.get(obligation).formulas[0];
        let least = CompletionSearch::new(reader, self, MAX_STEPS).min_rest_bytes(must)?;
        Ok((least <= MAX_REQUIRED_BYTES).then_some(completion_class))
    }
}

/// One search for a shortest completion.
///
/// The bounds of a value come from a search of its own, so search and bounds call each other. What
/// both need is here; the parts that need less are query objects of their own.
pub(crate) struct CompletionSearch<'a> {
    pub(crate) reader: &'a mut AnyReader,
    pub(crate) tables: &'a mut CompletionTables,
    pub(crate) budget: SearchBudget,
}

impl<'a> CompletionSearch<'a> {
    /// Creates a search of at most `steps` steps.
    fn new(
        reader: &'a mut AnyReader,
        tables: &'a mut CompletionTables,
        steps: u64,
    ) -> CompletionSearch<'a> {
        CompletionSearch { reader, tables, budget: SearchBudget::new(steps) }
    }

    /// Returns the question about the bytes that a completion may continue with.
    fn useful_bytes(&mut self) -> UsefulBytes<'_> {
        UsefulBytes {
            reader: self.reader,
            strings: &mut self.tables.bounds.strings,
            budget: &mut self.budget,
        }
    }

    /// Completes a unique item together with the items after it. The completion is shortest, though
    /// another of equal length may be smaller.
    fn shortest_within_item(&mut self, position: ReaderPosition) -> Result<Option<Vec<u8>>, Error> {
        let Some((text, next)) = complete_from_inside_item(self, position)? else {
            return Ok(None);
        };
        let rest = self.complete_from(next)?;
        Ok(Some([&text[..], &rest].concat()))
    }

    /// Completes a position. A value that its parent does not constrain is completed by itself; the
    /// completion after it is cached.
    fn complete_from(&mut self, position: ReaderPosition) -> Result<Vec<u8>, Error> {
        let Some((parent, own)) = self.isolated_rest(position)? else {
            return self.search_completion(position);
        };
        // The completion after the value does not depend on the value.
        if let Some(known) = self.tables.closings.get(&parent) {
            return Ok([&own[..], known].concat());
        }
        let Some(closed) = self.reader.values.close_value(parent, NO_VERDICTS, NO_RECORD)? else {
            return self.search_completion(position);
        };
        let rest = self.search_completion(closed)?;
        if self.tables.closings.len() == MAX_CACHED_CLOSINGS {
            self.tables.closings = CompactMap::default();
        }
        self.tables.closings.insert(parent, rest.clone().into());
        Ok([own, rest].concat())
    }

    /// Returns the shortest rest of a value that its parent does not constrain, and the parent.
    fn isolated_rest(
        &mut self,
        ReaderPosition { frame, record }: ReaderPosition,
    ) -> Result<Option<(FrameId, Vec<u8>)>, Error> {
        if record != NO_RECORD {
            return Ok(None);
        }
        Ok(match frame {
            Frame::String {
                language,
                state,
                queries: NO_QUERIES,
                escape: CharState::NONE,
                parent,
            } => {
                let strings = &mut self.tables.bounds.strings;
                let (core, spelling) = (&self.reader.values.core, &self.reader.spelling);
                let budget = &mut self.budget;
                let rest = strings.shortest_suffix(core, spelling, language, state, budget)?;
                Some((parent, rest.escaped(spelling)))
            }
            Frame::Number { obligation, digits, parent } if parent != DONE => {
                let required = self.reader.values.residuals.get(obligation);
                if !required.queries.is_empty()
                    || required.formulas.len() > 1
                    || required.goal != TRUE
                {
                    return Ok(None);
                }
                let frame = Frame::Number { obligation, digits, parent: DONE };
                Some((parent, self.search_completion(ReaderPosition { frame, record })?))
            }
            _ => None,
        })
    }

    /// Runs the search from a position. Fails early if the lower bound exceeds [`MAX_BYTES`].
    fn search_completion(&mut self, position: ReaderPosition) -> Result<Vec<u8>, Error> {
        // The search that would bound a value finds it, mostly.
        if let Some(found) = self.shortest_new_value(position) {
            return Ok(self.lexicographically_least(position, found, None)?.0);
        }
        let least = self.min_bytes(position.frame, None)?;
        check_length(least)?;
        let found = self.complete(position, None)?;
        debug_assert!(found.is_some(), "a state that leads nowhere");
        Ok(found.map_or_else(Vec::new, |(text, _)| text))
    }

    /// Returns the least of the shortest completions and the position after it. With `item`,
    /// the completion ends with this item of an array.
    pub(crate) fn complete(
        &mut self,
        position: ReaderPosition,
        item: Option<CurrentItem>,
    ) -> Result<Option<(Vec<u8>, ReaderPosition)>, Error> {
        match self.shortest_length(position, item, &mut 0)? {
            Some((length, end)) => {
                self.lexicographically_least(position, (length, end), item).map(Some)
            }
            None => Ok(None),
        }
    }

    /// At an end, returns the position after it and a lower bound on the bytes still to come.
    fn end_position(
        &mut self,
        position: ReaderPosition,
        item: Option<CurrentItem>,
    ) -> Result<Option<(ReaderPosition, usize)>, Error> {
        let Some(item) = item else {
            return Ok(self.reader.is_end(position).then_some((position, 0)));
        };
        match item.end(&mut self.reader.values, position)? {
            Some(end) => Ok(Some((end, self.min_bytes(end.frame, None)?))),
            None => Ok(None),
        }
    }

    /// Returns the length of a shortest completion and the position after it, `None` if the value
    /// is unsatisfiable. Writes the best lower bound known so far to `bound`.
    pub(crate) fn shortest_length(
        &mut self,
        start: ReaderPosition,
        item: Option<CurrentItem>,
        bound: &mut usize,
    ) -> Result<Option<(usize, ReaderPosition)>, Error> {
        let mut read = FxHashMap::from_iter([(completion_class(&self.reader.values, start), 0)]);
        // Keyed by the lower bound of members through a position, and by whether a container was
        // just opened: its bound is expensive and is computed last, because an end may be found
        // first. The flag in the entries marks an end, whose bound may exceed that of the position
        // it was found from.
        let mut open = BTreeMap::from([((0, true), vec![(start, 0, false)])]);
        // If only a limited number of items may match, a longer item may leave shorter ones to the
        // rest. The bound of the rest ignores that limit, so the shortest item is the best choice.
        let has_match_budget =
            item.is_some_and(|item| item.has_match_budget(&self.reader.values, start.frame));
        let mut best: Option<(usize, ReaderPosition)> = None;
        while let Some(mut least) = open.first_entry() {
            let (all, _) = *least.key();
            if best.is_some() && all > *bound {
                break;
            }
            let Some((here, length, is_end)) = least.get_mut().pop() else {
                least.remove();
                continue;
            };
            *bound = all;
            check_length(all)?;
            if best.is_some_and(|(shortest, _)| shortest <= length) {
                continue;
            }
            if is_end {
                best = Some((length, here));
                continue;
            }
            if let Some((end, remaining)) = self.end_position(here, item)? {
                if length + remaining <= all {
                    best = Some((length, end));
                    if !has_match_budget {
                        break;
                    }
                    continue;
                }
                open.entry((length + remaining, false)).or_default().push((end, length, true));
            }
            if read
                .get(&completion_class(&self.reader.values, here))
                .is_some_and(|&other| other < length)
            {
                continue;
            }
            let least = self.min_bytes(here.frame, None)?;
            if length + least > all {
                // The bound of the position is larger than the one it was queued with.
                open.entry((length + least, false)).or_default().push((here, length, false));
                continue;
            }
            if item.is_none()
                && let Some((text, next)) = complete_unique_items(self, here)?
            {
                let length = length + text.len();
                let all = all.max(length + self.min_bytes(next.frame, None)?);
                open.entry((all, false)).or_default().push((next, length, false));
                continue;
            }
            for byte in self.candidate_bytes(here, item)? {
                let Some(next) = self.read_counted(here, byte)? else { continue };
                let before =
                    read.entry(completion_class(&self.reader.values, next)).or_insert(usize::MAX);
                if length + 1 < *before {
                    *before = length + 1;
                    let is_opened = next.frame.is_opened_after(&here.frame);
                    let needed = match is_opened {
                        true => 0,
                        false => self.min_bytes(next.frame, Some((here.frame, least)))?,
                    };
                    // Pathmax: one byte cannot bring the end nearer by more than one.
                    let all = all.max(length + 1 + needed);
                    open.entry((all, is_opened)).or_default().push((next, length + 1, false));
                }
            }
        }
        Ok(best)
    }

    /// Returns the least completion of the shortest length, and the position after it.
    fn lexicographically_least(
        &mut self,
        start: ReaderPosition,
        (length, end): (usize, ReaderPosition),
        item: Option<CurrentItem>,
    ) -> Result<(Vec<u8>, ReaderPosition), Error> {
        // A lower bound on the bytes after the end.
        let after_end = self.min_bytes(end.frame, None)?;
        // The numbers of bytes known to be too few to complete a position.
        let mut few: FxHashMap<ReaderPosition, usize> = FxHashMap::default();
        let mut text = Vec::with_capacity(length);
        // Each entry stores the length of the completion before its position.
        let mut way = Vec::new();
        let (mut next, mut before) = (start, 0);
        loop {
            while item.is_none()
                && let Some((more, after)) = complete_unique_items(self, next)?
            {
                text.extend_from_slice(&more);
                next = after;
            }
            way.push((next, self.candidate_bytes(next, item)?, before));
            if text.len() == length
                && let Some((end, more)) = self.end_position(next, item)?
                && more <= after_end
            {
                return Ok((text, end));
            }
            loop {
                let Some((here, bytes, from)) = way.last_mut() else {
                    debug_assert!(false, "a length that no continuation has");
                    return Ok((text, start));
                };
                let (here, left) = (*here, length.saturating_sub(text.len()));
                let Some(byte) = bytes.next().filter(|_| left > 0) else {
                    few.insert(completion_class(&self.reader.values, here), left);
                    text.truncate(*from);
                    way.pop();
                    continue;
                };
                let Some(found) = self.read_counted(here, byte)? else { continue };
                let refused = self.min_bytes(found.frame, None)? >= left + after_end
                    || few
                        .get(&completion_class(&self.reader.values, found))
                        .is_some_and(|&few| few >= left - 1);
                if !refused {
                    (next, before) = (found, text.len());
                    text.push(byte);
                    break;
                }
            }
        }
    }

    /// Returns the position after a byte, and charges the step and those of the solver.
    fn read_counted(
        &mut self,
        here: ReaderPosition,
        byte: u8,
    ) -> Result<Option<ReaderPosition>, Error> {
        self.budget.steps_of(if here.record == NO_RECORD { 1 } else { RECORDING_STEPS })?;
        let next = self.reader.read_byte(here, byte)?;
        self.budget.steps_of(STEPS_READING * self.reader.values.core.base.steps())?;
        Ok(next)
    }

    /// Returns the useful bytes, with `item` only those that stay inside it.
    fn candidate_bytes(
        &mut self,
        position: ReaderPosition,
        item: Option<CurrentItem>,
    ) -> Result<std::vec::IntoIter<u8>, Error> {
        let bytes = self.useful_bytes().of(position)?;
        let is_in =
            |&byte: &u8| item.is_none_or(|item| item.contains(&self.reader.values, position, byte));
        Ok(bytes.iter().filter(is_in).collect::<Vec<u8>>().into_iter())
    }
}

/// Drops what does not affect the completion: the string of a name that is like no other.
fn completion_class(values: &Values, mut position: ReaderPosition) -> ReaderPosition {
    if let Frame::Name { object, next_names, candidates, escape, .. } = position.frame
        && position.record == NO_RECORD
        && candidates.from == candidates.to
        && values.name_tables.has_plenty_names(&values.strings, next_names, candidates.classes)
    {
        position.frame = Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
    }
    position
}

fn check_length(bytes: usize) -> Result<(), Error> {
    check_limit(Resource::Bytes, bytes as u64, MAX_BYTES as u64)
}
