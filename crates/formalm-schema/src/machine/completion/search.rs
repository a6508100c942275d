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
use crate::machine::frame::{DONE, Frame, FrameId, Place};
use crate::machine::min_bytes::Search;
use crate::machine::reader::cache::{NO_TRUTHS, NOT_ASKED};
use crate::machine::{Grown, UNRECORDED};
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
const BEHIND: usize = 256;

/// Bytes of members within which all names that are not owed may be of one byte.
const OWED: usize = 500;

impl Grown {
    /// A shortest continuation; the smallest of several.
    pub(crate) fn shortest(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(state, MAX_STEPS)
    }

    /// The same in fewer steps, for whoever would rather have another text.
    pub(crate) fn shortest_soon(&mut self, state: u32) -> Result<Vec<u8>, Error> {
        self.shortest_in_steps(state, FEW_STEPS)
    }

    fn shortest_in_steps(&mut self, state: u32, steps: u64) -> Result<Vec<u8>, Error> {
        let place = *self.states.get(state);
        let (frames, records) = (self.frames.len(), self.records.len());
        let search = &mut Search::new(steps);
        let mut found = self.shortest_from(place, search);
        if let Err(Error::Limit { .. }) = found
            && let Some(jumped) = self.shortest_within_item(place, steps)?
        {
            found = Ok(jumped);
        }
        self.drop_behind(frames, records);
        self.learnt.limit();
        found
    }

    /// The same from within an item that must be distinct, if that is told with the items behind it;
    /// another one of the same length may be smaller.
    fn shortest_within_item(&mut self, place: Place, steps: u64) -> Result<Option<Vec<u8>>, Error> {
        let search = &mut Search::new(steps);
        let Some((text, next)) = self.items_with_this(place, search)? else { return Ok(None) };
        let rest = self.shortest_from(next, search)?;
        Ok(Some([&text[..], &rest].concat()))
    }

    fn shortest_from(&mut self, place: Place, search: &mut Search) -> Result<Vec<u8>, Error> {
        let Some((below, own)) = self.rest_of_value(place, search)? else {
            return self.searched(place, search);
        };
        // What comes behind the value is the same whatever it is.
        if let Some(known) = self.known.behind.get(&below) {
            return Ok([&own[..], known].concat());
        }
        let Some(behind) = self.close(below, NO_TRUTHS, UNRECORDED)? else {
            return self.searched(place, search);
        };
        let rest = self.searched(behind, search)?;
        if self.known.behind.len() == BEHIND {
            self.known.behind = Map::default();
        }
        self.known.behind.insert(below, rest.clone().into());
        Ok([own, rest].concat())
    }

    /// What is left of a value of which nothing is asked by what is around it, and what that is.
    fn rest_of_value(
        &mut self,
        Place { frame, record }: Place,
        search: &mut Search,
    ) -> Result<Option<(FrameId, Vec<u8>)>, Error> {
        if record != UNRECORDED {
            return Ok(None);
        }
        Ok(match frame {
            Frame::Text { language, state, asked: NOT_ASKED, escape: Escape::None, below } => {
                let escapes = self.core.options.escapes;
                Some((below, self.rest_of_text(language, state, search)?.spelled(escapes)))
            }
            Frame::Number { owes, digits, below } if below != DONE => {
                let owed = self.parts.owes.get(owes.0);
                if !owed.asked.is_empty() || owed.formulas.len() > 1 || owed.goal != TRUE {
                    return Ok(None);
                }
                let frame = Frame::Number { owes, digits, below: DONE };
                Some((below, self.searched(Place { frame, record }, search)?))
            }
            _ => None,
        })
    }

    fn searched(&mut self, place: Place, search: &mut Search) -> Result<Vec<u8>, Error> {
        let least = self.needs(place.frame, None, search)?;
        check_length(least)?;
        let found = self.completed(place, None, search)?;
        debug_assert!(found.is_some(), "a state that leads nowhere");
        Ok(found.map_or_else(Vec::new, |(text, _)| text))
    }

    /// The smallest of the shortest continuations, or of those to the end of an item of an array, the
    /// frame below which is given; and where they lead to.
    pub(crate) fn completed(
        &mut self,
        place: Place,
        array: Option<FrameId>,
        search: &mut Search,
    ) -> Result<Option<(Vec<u8>, Place)>, Error> {
        match self.least_length(place, array, &mut 0, search)? {
            Some((length, end)) => self.smallest(place, (length, end), array, search).map(Some),
            None => Ok(None),
        }
    }

    /// At an end the place that is come to, and how many bytes are behind it at least.
    fn ended_at(
        &mut self,
        place: Place,
        array: Option<FrameId>,
        search: &mut Search,
    ) -> Result<Option<(Place, usize)>, Error> {
        let Some(array) = array else {
            return Ok(self.is_end(place.frame).then_some((place, 0)));
        };
        match self.behind_item(place, array)? {
            Some(end) => Ok(Some((end, self.needs(end.frame, None, search)?))),
            None => Ok(None),
        }
    }

    /// How many bytes the shortest continuation has, and where it leads to; `None` of a value that
    /// there is not. What is known at the least as the search goes on is written to `bound`.
    pub(crate) fn least_length(
        &mut self,
        start: Place,
        array: Option<FrameId>,
        bound: &mut usize,
        search: &mut Search,
    ) -> Result<Option<(usize, Place)>, Error> {
        let mut read = FxHashMap::from_iter([(self.alike(start), 0)]);
        // By the bytes that members through a place have at least. What a container needs that was
        // opened is found out last: that can be much, and an end may be found before. With whether it
        // is an end, which may be further away than the place itself seems to be.
        let mut open = BTreeMap::from([((0, true), vec![(start, 0, false)])]);
        // Of items of a budget whose bytes those behind make up for, the shortest is the best: what
        // is behind is only known at the least, as if there were no budget.
        let has_budget = array.is_some_and(|array| self.has_budget(start.frame, array));
        let mut best: Option<(usize, Place)> = None;
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
            if let Some((end, behind)) = self.ended_at(here, array, search)? {
                if length + behind <= all {
                    best = Some((length, end));
                    if !has_budget {
                        break;
                    }
                    continue;
                }
                open.entry((length + behind, false)).or_default().push((end, length, true));
            }
            if read.get(&self.alike(here)).is_some_and(|&other| other < length) {
                continue;
            }
            let least = self.needs(here.frame, None, search)?;
            if length + least > all {
                // It was taken for nearer than it is.
                open.entry((length + least, false)).or_default().push((here, length, false));
                continue;
            }
            if array.is_none()
                && let Some((text, next)) = self.items_that_differ(here, search)?
            {
                let length = length + text.len();
                let all = all.max(length + self.needs(next.frame, None, search)?);
                open.entry((all, false)).or_default().push((next, length, false));
                continue;
            }
            for byte in self.tried(here, array, search)? {
                let Some(next) = self.read_weighed(here, byte, search)? else { continue };
                let before = read.entry(self.alike(next)).or_insert(usize::MAX);
                if length + 1 < *before {
                    *before = length + 1;
                    let is_opened = matches!(byte, b'[' | b'{')
                        && matches!(next.frame, Frame::Object { .. } | Frame::Array { .. });
                    let needed = match is_opened {
                        true => 0,
                        false => self.needs(next.frame, Some((here.frame, least)), search)?,
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
    fn smallest(
        &mut self,
        start: Place,
        (length, end): (usize, Place),
        array: Option<FrameId>,
        search: &mut Search,
    ) -> Result<(Vec<u8>, Place), Error> {
        // What comes behind the end.
        let behind = self.needs(end.frame, None, search)?;
        // How many bytes were too few to end from a place.
        let mut few: FxHashMap<Place, usize> = FxHashMap::default();
        let mut text = Vec::with_capacity(length);
        // With how much of the text was there before each place.
        let mut way = Vec::new();
        let (mut next, mut before) = (start, 0);
        loop {
            while array.is_none()
                && let Some((more, after)) = self.items_that_differ(next, search)?
            {
                text.extend_from_slice(&more);
                next = after;
            }
            way.push((next, self.tried(next, array, search)?, before));
            if text.len() == length
                && let Some((end, more)) = self.ended_at(next, array, search)?
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
                    few.insert(self.alike(here), left);
                    text.truncate(*from);
                    way.pop();
                    continue;
                };
                let Some(found) = self.read_weighed(here, byte, search)? else { continue };
                let refused = self.needs(found.frame, None, search)? >= left + behind
                    || few.get(&self.alike(found)).is_some_and(|&few| few >= left - 1);
                if !refused {
                    (next, before) = (found, text.len());
                    text.push(byte);
                    break;
                }
            }
        }
    }

    /// The place after a byte; what is searched for that counts too.
    fn read_weighed(
        &mut self,
        here: Place,
        byte: u8,
        search: &mut Search,
    ) -> Result<Option<Place>, Error> {
        search.step()?;
        let next = self.read_fresh(here, byte)?;
        search.steps_of(STEPS_READING * self.core.steps)?;
        Ok(next)
    }

    fn tried(
        &mut self,
        place: Place,
        array: Option<FrameId>,
        search: &mut Search,
    ) -> Result<std::vec::IntoIter<u8>, Error> {
        let bytes = self.worth_trying(place, search)?;
        let is_in = |&byte: &u8| array.is_none_or(|array| self.is_in_item(place, array, byte));
        Ok(bytes.iter().filter(is_in).collect::<Vec<u8>>().into_iter())
    }

    /// A state that is completed as this one: names that are like no other are alike if members
    /// that are still owed never need the same ones.
    pub(crate) fn completes_as(&mut self, state: u32) -> Result<u32, Error> {
        let place = *self.states.get(state);
        let Frame::Name { object, text, reach, .. } = place.frame else { return Ok(state) };
        let alike = self.alike(place);
        if alike == place || self.records.get(text).2 < 2 || !self.takes_any(reach.classes) {
            return Ok(state);
        }
        let Frame::Object { owes, .. } = *self.frames.get(object.0) else { return Ok(state) };
        // So few names have at most one byte.
        let must = self.parts.owes.get(owes.0).formulas[0];
        let few = self.rest(must, &mut Search::new(MAX_STEPS))? <= OWED;
        if !few {
            return Ok(state);
        }
        Ok(self.states.intern(alike))
    }

    /// A place without what makes no difference to how it is completed: the text of a name that is
    /// like no other.
    fn alike(&self, mut place: Place) -> Place {
        if let Frame::Name { object, naming, reach, escape, .. } = place.frame
            && place.record == UNRECORDED
            && reach.from == reach.to
            && self.has_plenty_names(naming, reach.classes)
        {
            place.frame = Frame::Name { object, naming, text: UNRECORDED, reach, escape };
        }
        place
    }
}

fn check_length(bytes: usize) -> Result<(), Error> {
    let (needed, allowed) = (bytes as u64, MAX_BYTES as u64);
    let resource = Resource::Bytes;
    if needed > allowed { Err(Error::Limit { resource, needed, allowed }) } else { Ok(()) }
}
