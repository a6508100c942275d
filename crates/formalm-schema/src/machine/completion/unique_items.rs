//! Short completions of arrays whose items must be distinct, and are otherwise alike: item by item.
//!
//! A search for all of them at once meets every choice of the items before. But of values that only
//! have to be distinct the shortest ones are taken, whatever comes behind the array, so that each
//! is found by itself, and the smallest text has them in ascending order. What is found so is one
//! step of the search for what is around the array.

use std::sync::Arc;

use formalm_automata::Error;

use crate::formula::{Atom, F, Form, TRUE};
use crate::machine::frame::{Frame, FrameId, Mode, Owes, OwesId, Place};
use crate::machine::min_bytes::Search;
use crate::machine::numbers::is_part;
use crate::machine::{Grown, UNRECORDED};
use crate::node::NodeId;

/// Fewer items are searched with all else.
const FEW: u64 = 2;

/// The text of items, and the place behind them.
pub(crate) type Jump = (Arc<[u8]>, Place);

/// The texts of items, each with what stands before it, and the place behind them.
type Items = (Vec<Vec<u8>>, Place);

/// Items that an array owes.
#[derive(Clone, Copy)]
struct Owed {
    count: u64,
    /// So many of them at least satisfy a node.
    contained: Option<(u64, NodeId)>,
    /// Fewer than so many satisfy a node.
    fewer: Option<(u64, NodeId)>,
}

impl Owed {
    fn all(self) -> u64 {
        self.contained.map_or(self.count, |(least, _)| self.count.max(least))
    }
}

impl Grown {
    /// The text of all items that are owed, from a place between items; none if they are few, or
    /// depend on each other otherwise.
    pub(crate) fn items_that_differ(
        &mut self,
        place: Place,
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        let Frame::Array { owes, mode: Mode::First | Mode::After, below, .. } = place.frame else {
            return Ok(None);
        };
        let Some(owed) = self.owed_distinct(owes).filter(|owed| owed.all() >= FEW) else {
            return Ok(None);
        };
        if place.record != UNRECORDED {
            return Ok(None);
        }
        if let Some(known) = search.jumps.get(&place) {
            return Ok(known.clone());
        }
        let found = match owed.contained {
            None => self.item_by_item(place, below, search)?,
            Some(contained) => self.contained_first(place, owed, contained, search)?,
        };
        search.jumps.insert(place, found.clone());
        Ok(found)
    }

    /// The same from within an item; another one of the same length may be smaller.
    pub(crate) fn items_with_this(
        &mut self,
        place: Place,
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        let (mut frame, mut array) = (place.frame, None);
        while let Some(below) = frame.below() {
            if let Frame::Array { owes, mode: Mode::Inside, from: 0, below, .. } = frame {
                let owed = self.owed_distinct(owes).filter(|owed| owed.contained.is_none());
                array = owed.map(|_| below).or(array);
            }
            frame = *self.frames.get(below.0);
        }
        match array {
            Some(array) => self.item_by_item(place, array, search),
            None => Ok(None),
        }
    }

    /// Whether some more items may be of a kind, but only so many, of an array the frame below which
    /// is given.
    pub(crate) fn has_budget(&self, mut frame: Frame, array: FrameId) -> bool {
        while let Some(next) = frame.below() {
            if let Frame::Array { owes, below, .. } = frame
                && below == array
            {
                let owed = self.owed_distinct(owes);
                return owed.and_then(|owed| owed.fewer).is_some_and(|(count, _)| count > 1);
            }
            frame = *self.frames.get(next.0);
        }
        false
    }

    /// How many more items an array owes that are only to be distinct, and of what some of them must
    /// be; none if anything else is asked of them or of the array.
    fn owed_distinct(&self, owes: OwesId) -> Option<Owed> {
        let owed = self.parts.owes.get(owes.0);
        if owed.formulas.len() > 1 || owed.goal != TRUE {
            return None;
        }
        let formulas = &self.core.formulas;
        let mut found = Owed { count: 0, contained: None, fewer: None };
        let mut is_distinct = false;
        for part in formulas.conjuncts(owed.formulas[0]) {
            match formulas.get(part) {
                Form::Atom(Atom::MoreItems(more)) => found.count = found.count.max(*more),
                Form::Atom(Atom::Unique(_) | Atom::UniqueWith(_)) => is_distinct = true,
                &Form::Atom(Atom::Contains(count, node)) if found.contained.is_none() => {
                    found.contained = Some((count, node));
                }
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
                    &Form::Atom(Atom::Contains(count, node)) if found.fewer.is_none() => {
                        found.fewer = Some((count, node));
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
        let same = match (found.contained, found.fewer) {
            (Some((_, one)), Some((_, other))) => one == other,
            _ => true,
        };
        (is_distinct && same).then_some(found)
    }

    /// The text of all items that are owed, some of which must be of a node: the shortest of these,
    /// then the shortest of all that are left.
    fn contained_first(
        &mut self,
        start: Place,
        owed: Owed,
        (least, node): (u64, NodeId),
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        let Frame::Array { owes, below, .. } = start.frame else { return Ok(None) };
        let own = self.core.formulas.conjuncts(self.parts.owes.get(owes.0).formulas[0]);
        let mut rest = Vec::with_capacity(own.len());
        for part in own {
            let kept = match self.core.formulas.get(part) {
                Form::Atom(atom) => {
                    !matches!(atom, Atom::Contains(..) | Atom::MoreItems(_) | Atom::Unique(_))
                }
                Form::Not(_) => false,
                _ => true,
            };
            if kept {
                rest.push(part);
            }
        }
        let ranges = [(0, u32::MAX, node)].into();
        let of_node = self.core.formulas.atom(Atom::Items(ranges, 0));
        let mut left = Vec::new();
        if let Some((count, _)) = owed.fewer {
            let many = self.core.formulas.atom(Atom::Contains(count.saturating_sub(least), node));
            left.push(self.core.formulas.not(many));
        }
        let (mut place, mut texts) = (start, Vec::new());
        for (count, more) in [(least, vec![of_node]), (owed.all() - least, left)] {
            if count == 0 {
                continue;
            }
            let Frame::Array { owes, mode, blanks, from, .. } = place.frame else {
                return Ok(None);
            };
            let parts = self.core.formulas.conjuncts(self.parts.owes.get(owes.0).formulas[0]);
            let is_unique =
                |part: &F| matches!(self.core.formulas.get(*part), Form::Atom(Atom::Unique(_)));
            let Some(unique) = parts.into_iter().find(is_unique) else { return Ok(None) };
            let owed = self.core.formulas.atom(Atom::MoreItems(count));
            let asked = [&rest[..], &more, &[unique, owed]].concat();
            let asked = self.core.formulas.and(asked);
            let plain = Owes { formulas: [asked].into(), asked: [].into(), goal: TRUE };
            let owes = self.parts.owes(plain);
            place.frame = Frame::Array { owes, mode, blanks, from, below };
            let Some((more, after)) = self.each_item(place, below, search)? else {
                return Ok(None);
            };
            texts.extend(more);
            place = after;
        }
        // The items themselves do for what was asked of the array.
        let text = in_order(&texts, false);
        let mut end = start;
        for &byte in &text {
            match self.read_fresh(end, byte)? {
                Some(next) => end = next,
                None => return Ok(None),
            }
        }
        // A number ends with what is behind it.
        let end = self.behind_item(end, below)?;
        let is_done = |place: &Place| match place.frame {
            Frame::Array { owes, .. } => {
                self.owed_distinct(owes).is_some_and(|owed| owed.all() == 0)
            }
            _ => false,
        };
        Ok(end.filter(is_done).map(|end| (text.into(), end)))
    }

    fn item_by_item(
        &mut self,
        start: Place,
        array: FrameId,
        search: &mut Search,
    ) -> Result<Option<Jump>, Error> {
        // Whether the first one is begun.
        let is_begun = !matches!(start.frame, Frame::Array { below, .. } if below == array);
        let found = self.each_item(start, array, search)?;
        Ok(found.map(|(texts, end)| (in_order(&texts, is_begun).into(), end)))
    }

    /// The texts of all items that are owed, each with what stands before it, and the place behind.
    fn each_item(
        &mut self,
        start: Place,
        array: FrameId,
        search: &mut Search,
    ) -> Result<Option<Items>, Error> {
        let (mut place, mut texts) = (start, Vec::<Vec<u8>>::new());
        let is_between = |place: Place| match place.frame {
            Frame::Array { mode: Mode::After, below, .. } => below == array,
            _ => false,
        };
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
            match owed.filter(|owed| owed.contained.is_none()) {
                None => return Ok(None),
                Some(Owed { count: 0, .. }) => break,
                Some(_) => {}
            }
        }
        Ok(Some((texts, place)))
    }

    /// The place behind an item of an array, the frame below which is given, if it may end here.
    pub(crate) fn behind_item(
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
    pub(crate) fn is_in_item(&self, place: Place, array: FrameId, byte: u8) -> bool {
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
