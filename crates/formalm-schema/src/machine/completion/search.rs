//! Shortest completions, lexicographically least among the shortest.
//!
//! The search runs twice. A* first finds the length *n* of a shortest completion: positions are
//! visited in the order of bytes read plus [`LazyTables::min_bytes`], an admissible lower bound on
//! the rest. A depth-first search then finds the least completion of *n* bytes, along positions
//! whose bound still allows *n*. Both only branch on the bytes that [`super::pruning`] leaves: no
//! optional whitespace, no longer free string, no property that is not required. Required
//! properties come in ascending order if they are independent. Unknown names are equivalent, so
//! only one is followed.

use std::collections::BTreeMap;

use formalm_automata::{Error, Resource};
use rustc_hash::FxHashMap;

use formalm_automata::json_escapes::EscapeState;

use crate::formula::TRUE;
use crate::interner::CompactMap;
use crate::machine::frame::{DONE, Frame, FrameId, ReaderPosition};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::residuals::NO_VERDICTS;
use crate::machine::residuals::string_queries::NO_QUERIES;
use crate::machine::{LazyTables, NO_RECORD};

/// Maximum number of steps; a completion further away is a [`Error::Limit`]. Chosen, not measured.
const MAX_STEPS: u64 = 1_000_000;

/// Maximum number of steps where the caller can use another completion instead. Chosen, not
/// measured.
const FEW_STEPS: u64 = 100_000;

/// Search steps charged for each step of the solver. Chosen, not measured.
const STEPS_READING: u64 = 4;

/// Maximum length of a completion, in bytes. Longer ones would exceed the step limit anyway.
const MAX_BYTES: usize = 100_000;

/// Maximum number of cached completions after a value. Chosen, not measured.
const MAX_CACHED_CLOSINGS: usize = 256;

/// Maximum number of bytes of required properties up to which an unused one-byte name always
/// remains.
const MAX_REQUIRED_BYTES: usize = 500;

impl LazyTables {
    /// Returns the lexicographically least of the shortest completions.
    pub(crate) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(state, MAX_STEPS)
    }

    /// Returns a shortest completion with the smaller step limit, for callers that have an
    /// alternative.
    pub(crate) fn shortest_soon(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(state, FEW_STEPS)
    }

    fn shortest_in_steps(&mut self, state: u32, steps: u64) -> Result<Vec<u8>, Error> {
        let position = self.visited.position(state);
        let (frames, records) = (self.reader.frames.len(), self.reader.records.len());
        let budget = &mut SearchBudget::new(steps);
        let mut found = self.complete_from(position, budget);
        if let Err(Error::Limit { .. }) = found
            && let Some(jumped) = self.shortest_within_item(position, steps)?
        {
            found = Ok(jumped);
        }
        self.reader.truncate(frames, records);
        self.bound_cache.limit();
        found
    }

    /// Completes a unique item together with the items after it. The completion is shortest, though
    /// another of equal length may be smaller.
    fn shortest_within_item(
        &mut self,
        position: ReaderPosition,
        steps: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let budget = &mut SearchBudget::new(steps);
        let Some((text, next)) = self.complete_from_inside_item(position, budget)? else {
            return Ok(None);
        };
        let rest = self.complete_from(next, budget)?;
        Ok(Some([&text[..], &rest].concat()))
    }

    /// Completes a position. A value that its parent does not constrain is completed by itself; the
    /// completion after it is cached.
    fn complete_from(
        &mut self,
        position: ReaderPosition,
        budget: &mut SearchBudget,
    ) -> Result<Vec<u8>, Error> {
        let Some((parent, own)) = self.isolated_rest(position, budget)? else {
            return self.search_completion(position, budget);
        };
        // The completion after the value does not depend on the value.
        if let Some(known) = self.cache.closings.get(&parent) {
            return Ok([&own[..], known].concat());
        }
        let Some(closed) = self.reader.close_value(parent, NO_VERDICTS, NO_RECORD)? else {
            return self.search_completion(position, budget);
        };
        let rest = self.search_completion(closed, budget)?;
        if self.cache.closings.len() == MAX_CACHED_CLOSINGS {
            self.cache.closings = CompactMap::default();
        }
        self.cache.closings.insert(parent, rest.clone().into());
        Ok([own, rest].concat())
    }

    /// Returns the shortest rest of a value that its parent does not constrain, and the parent.
    fn isolated_rest(
        &mut self,
        ReaderPosition { frame, record }: ReaderPosition,
        budget: &mut SearchBudget,
    ) -> Result<Option<(FrameId, Vec<u8>)>, Error> {
        if record != NO_RECORD {
            return Ok(None);
        }
        Ok(match frame {
            Frame::String {
                language,
                state,
                queries: NO_QUERIES,
                escape: EscapeState::None,
                parent,
            } => {
                let escapes = self.reader.core.options.escapes;
                Some((parent, self.shortest_suffix(language, state, budget)?.escaped(escapes)))
            }
            Frame::Number { obligation, digits, parent } if parent != DONE => {
                let required = self.reader.residuals.get(obligation);
                if !required.queries.is_empty()
                    || required.formulas.len() > 1
                    || required.goal != TRUE
                {
                    return Ok(None);
                }
                let frame = Frame::Number { obligation, digits, parent: DONE };
                Some((parent, self.search_completion(ReaderPosition { frame, record }, budget)?))
            }
            _ => None,
        })
    }

    /// Runs the search from a position. Fails early if the lower bound exceeds [`MAX_BYTES`].
    fn search_completion(
        &mut self,
        position: ReaderPosition,
        budget: &mut SearchBudget,
    ) -> Result<Vec<u8>, Error> {
        let least = self.min_bytes(position.frame, None, budget)?;
        check_length(least)?;
        let found = self.complete(position, None, budget)?;
        debug_assert!(found.is_some(), "a state that leads nowhere");
        Ok(found.map_or_else(Vec::new, |(text, _)| text))
    }

    /// Returns the least of the shortest completions and the position after it. With `array`, the
    /// parent frame of an array, the completion ends with the current item of that array.
    pub(crate) fn complete(
        &mut self,
        position: ReaderPosition,
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<Option<(Vec<u8>, ReaderPosition)>, Error> {
        match self.shortest_length(position, array, &mut 0, budget)? {
            Some((length, end)) => {
                self.lexicographically_least(position, (length, end), array, budget).map(Some)
            }
            None => Ok(None),
        }
    }

    /// At an end, returns the position after it and a lower bound on the bytes still to come.
    fn end_position(
        &mut self,
        position: ReaderPosition,
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<Option<(ReaderPosition, usize)>, Error> {
        let Some(array) = array else {
            return Ok(self.reader.is_end(position.frame).then_some((position, 0)));
        };
        match self.position_after_item(position, array)? {
            Some(end) => Ok(Some((end, self.min_bytes(end.frame, None, budget)?))),
            None => Ok(None),
        }
    }

    /// Returns the length of a shortest completion and the position after it, `None` if the value
    /// is unsatisfiable. Writes the best lower bound known so far to `bound`.
    pub(crate) fn shortest_length(
        &mut self,
        start: ReaderPosition,
        array: Option<FrameId>,
        bound: &mut usize,
        budget: &mut SearchBudget,
    ) -> Result<Option<(usize, ReaderPosition)>, Error> {
        let mut read = FxHashMap::from_iter([(self.completion_class(start), 0)]);
        // Keyed by the lower bound of members through a position, and by whether a container was
        // just opened: its bound is expensive and is computed last, because an end may be found
        // first. The flag in the entries marks an end, whose bound may exceed that of the position
        // it was found from.
        let mut open = BTreeMap::from([((0, true), vec![(start, 0, false)])]);
        // If only a limited number of items may match, a longer item may leave shorter ones to the
        // rest. The bound of the rest ignores that limit, so the shortest item is the best choice.
        let has_match_budget = array.is_some_and(|array| self.has_match_budget(start.frame, array));
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
            if let Some((end, remaining)) = self.end_position(here, array, budget)? {
                if length + remaining <= all {
                    best = Some((length, end));
                    if !has_match_budget {
                        break;
                    }
                    continue;
                }
                open.entry((length + remaining, false)).or_default().push((end, length, true));
            }
            if read.get(&self.completion_class(here)).is_some_and(|&other| other < length) {
                continue;
            }
            let least = self.min_bytes(here.frame, None, budget)?;
            if length + least > all {
                // The bound of the position is larger than the one it was queued with.
                open.entry((length + least, false)).or_default().push((here, length, false));
                continue;
            }
            if array.is_none()
                && let Some((text, next)) = self.complete_unique_items(here, budget)?
            {
                let length = length + text.len();
                let all = all.max(length + self.min_bytes(next.frame, None, budget)?);
                open.entry((all, false)).or_default().push((next, length, false));
                continue;
            }
            for byte in self.candidate_bytes(here, array, budget)? {
                let Some(next) = self.read_counted(here, byte, budget)? else { continue };
                let before = read.entry(self.completion_class(next)).or_insert(usize::MAX);
                if length + 1 < *before {
                    *before = length + 1;
                    let is_opened = matches!(byte, b'[' | b'{')
                        && matches!(next.frame, Frame::Object { .. } | Frame::Array { .. });
                    let needed = match is_opened {
                        true => 0,
                        false => self.min_bytes(next.frame, Some((here.frame, least)), budget)?,
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
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<(Vec<u8>, ReaderPosition), Error> {
        // A lower bound on the bytes after the end.
        let after_end = self.min_bytes(end.frame, None, budget)?;
        // The numbers of bytes known to be too few to complete a position.
        let mut few: FxHashMap<ReaderPosition, usize> = FxHashMap::default();
        let mut text = Vec::with_capacity(length);
        // Each entry stores the length of the completion before its position.
        let mut way = Vec::new();
        let (mut next, mut before) = (start, 0);
        loop {
            while array.is_none()
                && let Some((more, after)) = self.complete_unique_items(next, budget)?
            {
                text.extend_from_slice(&more);
                next = after;
            }
            way.push((next, self.candidate_bytes(next, array, budget)?, before));
            if text.len() == length
                && let Some((end, more)) = self.end_position(next, array, budget)?
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
                    few.insert(self.completion_class(here), left);
                    text.truncate(*from);
                    way.pop();
                    continue;
                };
                let Some(found) = self.read_counted(here, byte, budget)? else { continue };
                let refused = self.min_bytes(found.frame, None, budget)? >= left + after_end
                    || few.get(&self.completion_class(found)).is_some_and(|&few| few >= left - 1);
                if !refused {
                    (next, before) = (found, text.len());
                    text.push(byte);
                    break;
                }
            }
        }
    }

    /// Returns the position after a byte, and charges the solver's steps to the budget.
    fn read_counted(
        &mut self,
        here: ReaderPosition,
        byte: u8,
        budget: &mut SearchBudget,
    ) -> Result<Option<ReaderPosition>, Error> {
        budget.step()?;
        let next = self.reader.read_byte(here, byte)?;
        budget.steps_of(STEPS_READING * self.reader.core.steps)?;
        Ok(next)
    }

    /// Returns the useful bytes, with `array` only those that stay inside its current item.
    fn candidate_bytes(
        &mut self,
        position: ReaderPosition,
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<std::vec::IntoIter<u8>, Error> {
        let bytes = self.useful_bytes(position, budget)?;
        let is_in = |&byte: &u8| array.is_none_or(|array| self.is_in_item(position, array, byte));
        Ok(bytes.iter().filter(is_in).collect::<Vec<u8>>().into_iter())
    }

    /// Returns a state with the same completions. Unknown names are equivalent if the properties
    /// still required never need the same names.
    pub(crate) fn completes_as(&mut self, state: u32) -> Result<u32, Error> {
        let position = self.visited.position(state);
        let Frame::Name { object, text, candidates, .. } = position.frame else { return Ok(state) };
        let completion_class = self.completion_class(position);
        if completion_class == position
            || self.reader.records.length(text) < 2
            || !self.reader.strings.allows_any_name(&self.reader.core, candidates.classes)
        {
            return Ok(state);
        }
        let Frame::Object { obligation, .. } = self.reader.frames.get(object) else {
            return Ok(state);
        };
        // With so few bytes required, an unused one-byte name remains.
        let must = self.reader.residuals.get(obligation).formulas[0];
        let few =
            self.min_rest_bytes(must, &mut SearchBudget::new(MAX_STEPS))? <= MAX_REQUIRED_BYTES;
        if !few {
            return Ok(state);
        }
        Ok(self.visited.intern(completion_class))
    }

    /// Drops what does not affect the completion: the string of a name that is like no other.
    fn completion_class(&self, mut position: ReaderPosition) -> ReaderPosition {
        if let Frame::Name { object, next_names, candidates, escape, .. } = position.frame
            && position.record == NO_RECORD
            && candidates.from == candidates.to
            && self.reader.name_tables.has_plenty_names(
                &self.reader.strings,
                next_names,
                candidates.classes,
            )
        {
            position.frame =
                Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
        }
        position
    }
}

fn check_length(bytes: usize) -> Result<(), Error> {
    let (needed, allowed) = (bytes as u64, MAX_BYTES as u64);
    let resource = Resource::Bytes;
    if needed > allowed { Err(Error::Limit { resource, needed, allowed }) } else { Ok(()) }
}
