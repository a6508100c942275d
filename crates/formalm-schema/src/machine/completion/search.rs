//! Short completions.
//!
//! How long they are is found first, state by state in the order of the bytes that a member through
//! them has at least; then the smallest of that length, along what can still be so short. Both never
//! look along what can only be longer or as long and no smaller: blanks, more of a string that may
//! end and of which nothing is asked, members that are not owed. Where members do not depend on each
//! other, those that are owed come in ascending order. Names that are like no other are all alike.

use std::collections::BTreeMap;

use formalm_automata::{Error, Resource};
use rustc_hash::FxHashMap;

use formalm_automata::spelling::Escape;

use crate::formula::TRUE;
use crate::machine::frame::{DONE, Frame, FrameId, Position};
use crate::machine::min_bytes::SearchBudget;
use crate::machine::reader::cache::{NO_QUERIES, NO_VERDICTS};
use crate::machine::{LazyTables, NO_RECORD};
use crate::table::Map;

/// Steps taken; a completion that is further away is refused.
const MAX_STEPS: u64 = 1_000_000;

/// Steps taken where another text will do as well.
const FEW_STEPS: u64 = 100_000;

/// Steps of a search that one step of reading takes the time of.
const STEPS_READING: u64 = 4;

/// Bytes of a completion; what needs more would take more steps.
const MAX_BYTES: usize = 100_000;

/// Frames of which it is kept how a text is completed behind their values.
const MAX_CACHED_CLOSINGS: usize = 256;

/// Bytes of members within which all names that are not owed may be of one byte.
const MAX_REQUIRED_BYTES: usize = 500;

impl LazyTables {
    /// A shortest continuation; the smallest of several.
    pub(crate) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(state, MAX_STEPS)
    }

    /// The same in fewer steps, for whoever would rather have another text.
    pub(crate) fn shortest_soon(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(state, FEW_STEPS)
    }

    fn shortest_in_steps(&mut self, state: u32, steps: u64) -> Result<Vec<u8>, Error> {
        let position = *self.states.get(state);
        let (frames, records) = (self.frames.len(), self.records.len());
        let budget = &mut SearchBudget::new(steps);
        let mut found = self.complete_from(position, budget);
        if let Err(Error::Limit { .. }) = found
            && let Some(jumped) = self.shortest_within_item(position, steps)?
        {
            found = Ok(jumped);
        }
        self.truncate_tables(frames, records);
        self.bound_cache.limit();
        found
    }

    /// The same from within an item that must be distinct, if that is told with the items behind it;
    /// another one of the same length may be smaller.
    fn shortest_within_item(
        &mut self,
        position: Position,
        steps: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let budget = &mut SearchBudget::new(steps);
        let Some((text, next)) = self.complete_from_inside_item(position, budget)? else {
            return Ok(None);
        };
        let rest = self.complete_from(next, budget)?;
        Ok(Some([&text[..], &rest].concat()))
    }

    fn complete_from(
        &mut self,
        position: Position,
        budget: &mut SearchBudget,
    ) -> Result<Vec<u8>, Error> {
        let Some((parent, own)) = self.isolated_rest(position, budget)? else {
            return self.search_completion(position, budget);
        };
        // What comes behind the value is the same whatever it is.
        if let Some(known) = self.cache.closings.get(&parent) {
            return Ok([&own[..], known].concat());
        }
        let Some(behind) = self.close_value(parent, NO_VERDICTS, NO_RECORD)? else {
            return self.search_completion(position, budget);
        };
        let rest = self.search_completion(behind, budget)?;
        if self.cache.closings.len() == MAX_CACHED_CLOSINGS {
            self.cache.closings = Map::default();
        }
        self.cache.closings.insert(parent, rest.clone().into());
        Ok([own, rest].concat())
    }

    /// What is left of a value of which nothing is asked by what is around it, and what that is.
    fn isolated_rest(
        &mut self,
        Position { frame, record }: Position,
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
                escape: Escape::None,
                parent,
            } => {
                let escapes = self.core.options.escapes;
                Some((parent, self.shortest_suffix(language, state, budget)?.escaped(escapes)))
            }
            Frame::Number { obligation, digits, parent } if parent != DONE => {
                let required = self.parts.obligations.get(obligation.0);
                if !required.asked.is_empty()
                    || required.formulas.len() > 1
                    || required.goal != TRUE
                {
                    return Ok(None);
                }
                let frame = Frame::Number { obligation, digits, parent: DONE };
                Some((parent, self.search_completion(Position { frame, record }, budget)?))
            }
            _ => None,
        })
    }

    fn search_completion(
        &mut self,
        position: Position,
        budget: &mut SearchBudget,
    ) -> Result<Vec<u8>, Error> {
        let least = self.min_bytes(position.frame, None, budget)?;
        check_length(least)?;
        let found = self.complete(position, None, budget)?;
        debug_assert!(found.is_some(), "a state that leads nowhere");
        Ok(found.map_or_else(Vec::new, |(text, _)| text))
    }

    /// The smallest of the shortest continuations, or of those to the end of an item of an array, the
    /// frame below which is given; and where they lead to.
    pub(crate) fn complete(
        &mut self,
        position: Position,
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<Option<(Vec<u8>, Position)>, Error> {
        match self.shortest_length(position, array, &mut 0, budget)? {
            Some((length, end)) => {
                self.lexicographically_least(position, (length, end), array, budget).map(Some)
            }
            None => Ok(None),
        }
    }

    /// At an end the place that is come to, and how many bytes are behind it at least.
    fn end_position(
        &mut self,
        position: Position,
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<Option<(Position, usize)>, Error> {
        let Some(array) = array else {
            return Ok(self.is_end(position.frame).then_some((position, 0)));
        };
        match self.position_after_item(position, array)? {
            Some(end) => Ok(Some((end, self.min_bytes(end.frame, None, budget)?))),
            None => Ok(None),
        }
    }

    /// How many bytes the shortest continuation has, and where it leads to; `None` of a value that
    /// there is not. What is known at the least as the search goes on is written to `bound`.
    pub(crate) fn shortest_length(
        &mut self,
        start: Position,
        array: Option<FrameId>,
        bound: &mut usize,
        budget: &mut SearchBudget,
    ) -> Result<Option<(usize, Position)>, Error> {
        let mut read = FxHashMap::from_iter([(self.completion_class(start), 0)]);
        // By the bytes that members through a place have at least. What a container needs that was
        // opened is found out last: that can be much, and an end may be found before. With whether it
        // is an end, which may be further away than the place itself seems to be.
        let mut open = BTreeMap::from([((0, true), vec![(start, 0, false)])]);
        // Of items of a budget whose bytes those behind make up for, the shortest is the best: what
        // is behind is only known at the least, as if there were no budget.
        let has_match_budget = array.is_some_and(|array| self.has_match_budget(start.frame, array));
        let mut best: Option<(usize, Position)> = None;
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
            if let Some((end, behind)) = self.end_position(here, array, budget)? {
                if length + behind <= all {
                    best = Some((length, end));
                    if !has_match_budget {
                        break;
                    }
                    continue;
                }
                open.entry((length + behind, false)).or_default().push((end, length, true));
            }
            if read.get(&self.completion_class(here)).is_some_and(|&other| other < length) {
                continue;
            }
            let least = self.min_bytes(here.frame, None, budget)?;
            if length + least > all {
                // It was taken for nearer than it is.
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
                    // No byte brings the end nearer by more than itself.
                    let all = all.max(length + 1 + needed);
                    open.entry((all, is_opened)).or_default().push((next, length + 1, false));
                }
            }
        }
        Ok(best)
    }

    /// The smallest continuation of so many bytes, which is the least number, and where it leads to.
    fn lexicographically_least(
        &mut self,
        start: Position,
        (length, end): (usize, Position),
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<(Vec<u8>, Position), Error> {
        // What comes behind the end.
        let behind = self.min_bytes(end.frame, None, budget)?;
        // How many bytes were too few to end from a place.
        let mut few: FxHashMap<Position, usize> = FxHashMap::default();
        let mut text = Vec::with_capacity(length);
        // With how much of the text was there before each place.
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
                && more <= behind
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
                let refused = self.min_bytes(found.frame, None, budget)? >= left + behind
                    || few.get(&self.completion_class(found)).is_some_and(|&few| few >= left - 1);
                if !refused {
                    (next, before) = (found, text.len());
                    text.push(byte);
                    break;
                }
            }
        }
    }

    /// The place after a byte; what is searched for that counts too.
    fn read_counted(
        &mut self,
        here: Position,
        byte: u8,
        budget: &mut SearchBudget,
    ) -> Result<Option<Position>, Error> {
        budget.step()?;
        let next = self.read_byte(here, byte)?;
        budget.steps_of(STEPS_READING * self.core.steps)?;
        Ok(next)
    }

    fn candidate_bytes(
        &mut self,
        position: Position,
        array: Option<FrameId>,
        budget: &mut SearchBudget,
    ) -> Result<std::vec::IntoIter<u8>, Error> {
        let bytes = self.useful_bytes(position, budget)?;
        let is_in = |&byte: &u8| array.is_none_or(|array| self.is_in_item(position, array, byte));
        Ok(bytes.iter().filter(is_in).collect::<Vec<u8>>().into_iter())
    }

    /// A state that is completed as this one: names that are like no other are alike if members
    /// that are still owed never need the same ones.
    pub(crate) fn completes_as(&mut self, state: u32) -> Result<u32, Error> {
        let position = *self.states.get(state);
        let Frame::Name { object, text, candidates, .. } = position.frame else { return Ok(state) };
        let completion_class = self.completion_class(position);
        if completion_class == position
            || self.records.get(text).2 < 2
            || !self.allows_any_name(candidates.classes)
        {
            return Ok(state);
        }
        let Frame::Object { obligation, .. } = *self.frames.get(object.0) else { return Ok(state) };
        // So few names have at most one byte.
        let must = self.parts.obligations.get(obligation.0).formulas[0];
        let few =
            self.min_rest_bytes(must, &mut SearchBudget::new(MAX_STEPS))? <= MAX_REQUIRED_BYTES;
        if !few {
            return Ok(state);
        }
        Ok(self.states.intern(completion_class))
    }

    /// A place without what makes no difference to how it is completed: the text of a name that is
    /// like no other.
    fn completion_class(&self, mut position: Position) -> Position {
        if let Frame::Name { object, next_names, candidates, escape, .. } = position.frame
            && position.record == NO_RECORD
            && candidates.from == candidates.to
            && self.has_plenty_names(next_names, candidates.classes)
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
