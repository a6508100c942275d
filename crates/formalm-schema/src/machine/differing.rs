//! Short completions of arrays whose items must be distinct, and are otherwise alike: item by item.
//!
//! A search for all of them at once meets every choice of the items before. But of values that only
//! have to be distinct the shortest ones are taken, whatever comes behind the array, so that each
//! is found by itself, and the smallest text has them in ascending order. What is found so is one
//! step of the search for what is around the array.

use std::sync::Arc;

use formalm_automata::Error;

use super::frame::{Frame, FrameId, Mode, OwesId, Place};
use super::needs::Search;
use super::numbers::is_part;
use super::{Grown, UNRECORDED};
use crate::formula::{Atom, Form, TRUE};

/// Fewer items are searched with all else.
const FEW: u64 = 2;

/// The text of items, and the place behind them.
pub(super) type Jump = (Arc<[u8]>, Place);

impl Grown {
    /// The text of all items that are owed, from a place between items; none if they are few, or
    /// depend on each other otherwise.
    pub(super) fn items_that_differ(
        &mut self,
        place: Place,
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        let Frame::Array { owes, mode: Mode::First | Mode::After, below, .. } = place.frame else {
            return Ok(None);
        };
        if place.record != UNRECORDED || self.owed_distinct(owes).is_none_or(|owed| owed < FEW) {
            return Ok(None);
        }
        if let Some(known) = search.jumps.get(&place) {
            return Ok(known.clone());
        }
        let found = self.item_by_item(place, below, search)?;
        search.jumps.insert(place, found.clone());
        Ok(found)
    }

    /// The same from within an item; another one of the same length may be smaller.
    pub(super) fn items_with_this(
        &mut self,
        place: Place,
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        let (mut frame, mut array) = (place.frame, None);
        loop {
            let below = match frame {
                Frame::Done => break,
                Frame::Array { owes, mode: Mode::Inside, from: 0, below, .. } => {
                    array = self.owed_distinct(owes).map(|_| below).or(array);
                    below
                }
                Frame::Name { object, .. } => object,
                Frame::Value { below, .. }
                | Frame::Object { below, .. }
                | Frame::Array { below, .. }
                | Frame::Text { below, .. }
                | Frame::Number { below, .. }
                | Frame::Word { below, .. } => below,
            };
            frame = *self.frames.get(below.0);
        }
        match array {
            Some(array) => self.item_by_item(place, array, search),
            None => Ok(None),
        }
    }

    /// How many more items an array owes that are only to be distinct; none if anything else is
    /// asked of them or of the array.
    fn owed_distinct(&self, owes: OwesId) -> Option<u64> {
        let owed = self.parts.owes.get(owes.0);
        if owed.formulas.len() > 1 || owed.goal != TRUE {
            return None;
        }
        let formulas = &self.core.formulas;
        let (mut count, mut is_distinct) = (0, false);
        for part in formulas.conjuncts(owed.formulas[0]) {
            match formulas.get(part) {
                Form::Atom(Atom::MoreItems(more)) => count = *more,
                Form::Atom(Atom::Unique(_) | Atom::UniqueWith(_)) => is_distinct = true,
                Form::Atom(Atom::Items(ranges, read)) => {
                    let alike = |&(from, to, _): &(u32, u32, _)| {
                        to <= *read || from <= *read && to == u32::MAX
                    };
                    if !ranges.iter().all(alike) {
                        return None;
                    }
                }
                // What the present item has to be.
                Form::Child(_) => {}
                Form::Not(inner) => match formulas.get(*inner) {
                    Form::Atom(Atom::MoreItems(_)) => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
        is_distinct.then_some(count)
    }

    fn item_by_item(
        &mut self,
        start: Place,
        array: FrameId,
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        let (mut place, mut texts) = (start, Vec::<Vec<u8>>::new());
        let is_between = |place: Place| match place.frame {
            Frame::Array { mode: Mode::After, below, .. } => below == array,
            _ => false,
        };
        // Whether the first one is begun.
        let is_begun = !matches!(start.frame, Frame::Array { below, .. } if below == array);
        loop {
            let mut text = Vec::new();
            if is_between(place) || !texts.is_empty() {
                let Some(next) = self.read_fresh(place, b',')? else { return Ok(None) };
                text.push(b',');
                place = next;
            }
            let Some((item, next)) = self.completed(place, Some(array), search)? else {
                return Ok(None);
            };
            text.extend(item);
            texts.push(text);
            place = next;
            let owed = match place.frame {
                Frame::Array { owes, .. } => self.owed_distinct(owes),
                _ => None,
            };
            match owed {
                None => return Ok(None),
                Some(0) => break,
                Some(_) => {}
            }
        }
        Ok(Some((in_order(&texts, is_begun).into(), place)))
    }

    /// The place behind an item of an array, the frame below which is given, if it may end here.
    pub(super) fn behind_item(
        &mut self,
        place: Place,
        array: FrameId,
    ) -> Result<Option<Place>, Error> {
        match place.frame {
            Frame::Array { mode: Mode::After, below, .. } if below == array => Ok(Some(place)),
            // A number ends with what is behind it.
            Frame::Number { owes, digits, below } => {
                let of = *self.frames.get(below.0);
                if !matches!(of, Frame::Array { below, .. } if below == array) {
                    return Ok(None);
                }
                match self.number_end(owes, digits) {
                    Some(truths) => self.close(below, truths, place.record),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// Whether a byte goes on with an item of an array, the frame below which is given.
    pub(super) fn is_in_item(&self, place: Place, array: FrameId, byte: u8) -> bool {
        match place.frame {
            Frame::Array { mode: Mode::After, below, .. } => below != array,
            Frame::Number { below, .. } => {
                let of = *self.frames.get(below.0);
                is_part(byte) || !matches!(of, Frame::Array { below, .. } if below == array)
            }
            _ => true,
        }
    }
}

/// Items with what stands before each of them, in ascending order; one that was begun stays first.
fn in_order(texts: &[Vec<u8>], is_begun: bool) -> Vec<u8> {
    let is_before = |byte: &u8| b", \t\r\n".contains(byte);
    let parts = texts.iter().map(|text| {
        let item = text.iter().position(|byte| !is_before(byte)).unwrap_or(text.len());
        text.split_at(item)
    });
    let (before, mut items): (Vec<&[u8]>, Vec<&[u8]>) = parts.unzip();
    let ended = |item: &[u8]| [item, b","].concat();
    let begun = usize::from(is_begun);
    items[begun..].sort_by_key(|item| ended(item));
    before.iter().zip(&items).flat_map(|(before, item)| [*before, *item].concat()).collect()
}
