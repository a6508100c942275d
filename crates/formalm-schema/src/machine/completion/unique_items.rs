//! Completes arrays whose items must be unique and are otherwise uniform, item by item.
//!
//! A search over the whole array would visit every combination of items. But if items only have to
//! be unique, the shortest ones are best whatever follows the array. Each is therefore found by a
//! search of its own, and the least completion lists them in ascending order. All of them together
//! are one step of the enclosing search.

use std::sync::Arc;

use formalm_core::Error;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::machine::NO_RECORD;
use crate::machine::completion::search::CompletionSearch;
use crate::machine::frame::{
    ContainerState, Frame, FrameId, Obligation, ObligationId, ReaderPosition,
};
use crate::machine::numbers::is_number_byte;
use crate::machine::spelling::Spelling;
use crate::machine::values::Values;
use crate::schema_nodes::NodeId;

/// Number of required items from which on they are completed one by one. Chosen, not measured.
const MIN_ITEMS: u64 = 2;

/// The bytes of all required items, and the position after them.
pub(crate) type CompletedItems = (Arc<[u8]>, ReaderPosition);

/// The bytes of each item with the separator before it, and the position after the last.
type ItemStrings = (Vec<Vec<u8>>, ReaderPosition);

/// The items that an array still requires.
#[derive(Clone, Copy)]
struct RequiredItems {
    count: u64,
    /// At least this many must satisfy the node.
    min_matching: Option<(u64, NodeId)>,
    /// Fewer than this many may satisfy the node.
    matching_below: Option<(u64, NodeId)>,
}

impl RequiredItems {
    /// Returns the number of unique items that an array still requires, and what some of them must
    /// match; `None` if anything else is required of the items or of the array.
    fn of(values: &Values, obligation: ObligationId) -> Option<RequiredItems> {
        let required = values.residuals.get(obligation);
        if required.formulas.len() > 1 || required.goal != TRUE {
            return None;
        }
        let formulas = &values.core.base.formulas;
        let mut found = RequiredItems { count: 0, min_matching: None, matching_below: None };
        let mut is_distinct = false;
        for part in formulas.conjuncts(required.formulas[0]) {
            match formulas.get(part) {
                Formula::Atom(FormulaAtom::MinItems(more)) => found.count = found.count.max(*more),
                Formula::Atom(FormulaAtom::UniqueItems(_) | FormulaAtom::UniqueWithCurrent(_)) => {
                    is_distinct = true
                }
                &Formula::Atom(FormulaAtom::Contains(count, node))
                    if found.min_matching.is_none() =>
                {
                    found.min_matching = Some((count, node));
                }
                Formula::Atom(FormulaAtom::Items(ranges, read)) => {
                    let alike = |&(from, to, _): &(u32, u32, _)| {
                        to <= *read || from <= *read && to == u32::MAX
                    };
                    if !ranges.iter().all(alike) {
                        return None;
                    }
                }
                // The obligation of the current item.
                Formula::Child(_) => {}
                Formula::Not(inner) => match formulas.get(*inner) {
                    Formula::Atom(FormulaAtom::MinItems(_)) => {}
                    &Formula::Atom(FormulaAtom::Contains(count, node))
                        if found.matching_below.is_none() =>
                    {
                        found.matching_below = Some((count, node));
                    }
                    _ => return None,
                },
                _ => return None,
            }
        }
        let same = match (found.min_matching, found.matching_below) {
            (Some((_, one)), Some((_, other))) => one == other,
            _ => true,
        };
        (is_distinct && same).then_some(found)
    }

    /// Returns the number of items still required.
    fn all(self) -> u64 {
        self.min_matching.map_or(self.count, |(least, _)| self.count.max(least))
    }
}

/// The current item of an array.
#[derive(Clone, Copy)]
pub(crate) struct CurrentItem {
    /// The parent frame of the array.
    array: FrameId,
}

impl CurrentItem {
    /// Returns `true` if a limited number of further items may match a node.
    pub(crate) fn has_match_budget(self, values: &Values, mut frame: Frame) -> bool {
        while let Some(next) = frame.parent() {
            if let Frame::Array { obligation, parent, .. } = frame
                && parent == self.array
            {
                let required = RequiredItems::of(values, obligation);
                return required
                    .and_then(|required| required.matching_below)
                    .is_some_and(|(count, _)| count > 1);
            }
            frame = values.frames.get(next);
        }
        false
    }

    /// Returns the position after the item, if it may end here.
    pub(crate) fn end(
        self,
        values: &mut Values,
        position: ReaderPosition,
    ) -> Result<Option<ReaderPosition>, Error> {
        match position.frame {
            Frame::Array { mode: ContainerState::AfterValue, parent, .. }
                if parent == self.array =>
            {
                Ok(Some(position))
            }
            // A number ends only with the byte after it.
            Frame::Number { obligation, digits, parent } => {
                let of = values.frames.get(parent);
                if !matches!(of, Frame::Array { parent, .. } if parent == self.array) {
                    return Ok(None);
                }
                match values.number_end(obligation, digits) {
                    Some(verdicts) => values.close_value(parent, verdicts, position.record),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// Returns `true` if a byte continues the item.
    pub(crate) fn contains(self, values: &Values, position: ReaderPosition, byte: u8) -> bool {
        match position.frame {
            Frame::Array { mode: ContainerState::AfterValue, parent, .. } => parent != self.array,
            Frame::Number { parent, .. } => {
                let of = values.frames.get(parent);
                is_number_byte(byte)
                    || !matches!(of, Frame::Array { parent, .. } if parent == self.array)
            }
            _ => true,
        }
    }
}

/// Completes all required items from a position between items; `None` if there are few, or if
/// they depend on each other in another way.
pub(crate) fn complete_unique_items(
    search: &mut CompletionSearch<'_>,
    position: ReaderPosition,
) -> Result<Option<CompletedItems>, Error> {
    let Frame::Array {
        obligation,
        mode: ContainerState::AfterOpen | ContainerState::AfterValue,
        parent,
        ..
    } = position.frame
    else {
        return Ok(None);
    };
    if search.reader.spelling.item_separator().is_none() {
        return Ok(None);
    }
    let Some(required) = RequiredItems::of(&search.reader.values, obligation)
        .filter(|required| required.all() >= MIN_ITEMS)
    else {
        return Ok(None);
    };
    if position.record != NO_RECORD {
        return Ok(None);
    }
    if let Some(known) = search.budget.completed_items.get(&position) {
        return Ok(known.clone());
    }
    let found = match required.min_matching {
        None => ItemCompletion { search, array: parent }.item_by_item(position)?,
        Some(min_matching) => ItemCompletion { search, array: parent }.matching_items_first(
            position,
            required,
            min_matching,
        )?,
    };
    search.budget.completed_items.insert(position, found.clone());
    Ok(found)
}

/// Completes all required items from inside an item. The completion is shortest, though another
/// of equal length may be smaller.
pub(crate) fn complete_from_inside_item(
    search: &mut CompletionSearch<'_>,
    position: ReaderPosition,
) -> Result<Option<CompletedItems>, Error> {
    if search.reader.spelling.item_separator().is_none() {
        return Ok(None);
    }
    let (mut frame, mut array) = (position.frame, None);
    while let Some(parent) = frame.parent() {
        if let Frame::Array { obligation, mode: ContainerState::InValue, from: 0, parent, .. } =
            frame
        {
            let required = RequiredItems::of(&search.reader.values, obligation)
                .filter(|required| required.min_matching.is_none());
            array = required.map(|_| parent).or(array);
        }
        frame = search.reader.values.frames.get(parent);
    }
    match array {
        Some(array) => ItemCompletion { search, array }.item_by_item(position),
        None => Ok(None),
    }
}

/// Completes the required items of one array, whose parent frame is `array`.
struct ItemCompletion<'s, 'a> {
    search: &'s mut CompletionSearch<'a>,
    array: FrameId,
}

impl ItemCompletion<'_, '_> {
    fn formulas(&self) -> &FormulaArena {
        &self.search.reader.values.core.base.formulas
    }

    /// Completes all required items, some of which must match a node: first the shortest matching
    /// ones, then the shortest of the others.
    fn matching_items_first(
        &mut self,
        start: ReaderPosition,
        required: RequiredItems,
        (least, node): (u64, NodeId),
    ) -> Result<Option<CompletedItems>, Error> {
        let parent = self.array;
        let Frame::Array { obligation, .. } = start.frame else { return Ok(None) };
        let own = self
            .formulas()
            .conjuncts(self.search.reader.values.residuals.get(obligation).formulas[0]);
        let mut rest = Vec::with_capacity(own.len());
        for part in own {
            let kept = match self.formulas().get(part) {
                Formula::Atom(atom) => !matches!(
                    atom,
                    FormulaAtom::Contains(..)
                        | FormulaAtom::MinItems(_)
                        | FormulaAtom::UniqueItems(_)
                ),
                Formula::Not(_) => false,
                _ => true,
            };
            if kept {
                rest.push(part);
            }
        }
        let ranges = [(0, u32::MAX, node)].into();
        let of_node =
            self.search.reader.values.core.base.formulas.atom(FormulaAtom::Items(ranges, 0));
        let mut left = Vec::new();
        if let Some((count, _)) = required.matching_below {
            let many = self
                .search
                .reader
                .values
                .core
                .base
                .formulas
                .atom(FormulaAtom::Contains(count.saturating_sub(least), node));
            left.push(self.search.reader.values.core.base.formulas.not(many));
        }
        let (mut position, mut texts) = (start, Vec::new());
        for (count, more) in [(least, vec![of_node]), (required.all() - least, left)] {
            if count == 0 {
                continue;
            }
            let Frame::Array { obligation, mode, mark, from, .. } = position.frame else {
                return Ok(None);
            };
            let parts = self
                .formulas()
                .conjuncts(self.search.reader.values.residuals.get(obligation).formulas[0]);
            let is_unique = |part: &FormulaId| {
                matches!(self.formulas().get(*part), Formula::Atom(FormulaAtom::UniqueItems(_)))
            };
            let Some(unique) = parts.into_iter().find(is_unique) else { return Ok(None) };
            let required =
                self.search.reader.values.core.base.formulas.atom(FormulaAtom::MinItems(count));
            let queries = [&rest[..], &more, &[unique, required]].concat();
            let queries = self.search.reader.values.core.base.formulas.and(queries);
            let plain = Obligation { formulas: [queries].into(), queries: [].into(), goal: TRUE };
            let obligation = self.search.reader.values.residuals.intern(plain);
            position.frame = Frame::Array { obligation, mode, mark, from, parent };
            let Some((more, after)) = self.complete_each_item(position)? else {
                return Ok(None);
            };
            texts.extend(more);
            position = after;
        }
        // Reads the items in the original array, to check that they fulfill its obligation.
        let text = sorted_items(&self.search.reader.spelling, &texts, false);
        let mut end = start;
        for &byte in &text {
            match self.search.reader.read_byte(end, byte)? {
                Some(next) => end = next,
                None => return Ok(None),
            }
        }
        // A number ends only with the byte after it.
        let end = CurrentItem { array: parent }.end(&mut self.search.reader.values, end)?;
        let is_done = |position: &ReaderPosition| match position.frame {
            Frame::Array { obligation, .. } => {
                RequiredItems::of(&self.search.reader.values, obligation)
                    .is_some_and(|required| required.all() == 0)
            }
            _ => false,
        };
        Ok(end.filter(is_done).map(|end| (text.into(), end)))
    }

    /// Completes all required items and sorts them.
    fn item_by_item(&mut self, start: ReaderPosition) -> Result<Option<CompletedItems>, Error> {
        // Set if the first item has begun.
        let is_started =
            !matches!(start.frame, Frame::Array { parent, .. } if parent == self.array);
        let found = self.complete_each_item(start)?;
        Ok(found.map(|(texts, end)| {
            (sorted_items(&self.search.reader.spelling, &texts, is_started).into(), end)
        }))
    }

    /// Completes the required items one by one, each with the separator before it.
    fn complete_each_item(&mut self, start: ReaderPosition) -> Result<Option<ItemStrings>, Error> {
        let array = self.array;
        let (mut position, mut texts) = (start, Vec::<Vec<u8>>::new());
        let is_between = |position: ReaderPosition| match position.frame {
            Frame::Array { mode: ContainerState::AfterValue, parent, .. } => parent == array,
            _ => false,
        };
        loop {
            let mut text = Vec::new();
            if is_between(position) || !texts.is_empty() {
                let Some(separator) = self.search.reader.spelling.item_separator() else {
                    return Ok(None);
                };
                let Some(next) = self.search.reader.read_byte(position, separator)? else {
                    return Ok(None);
                };
                text.push(separator);
                position = next;
            }
            let Some((item, next)) = self.search.complete(position, Some(CurrentItem { array }))?
            else {
                return Ok(None);
            };
            text.extend(item);
            texts.push(text);
            position = next;
            let required = match position.frame {
                Frame::Array { obligation, .. } => {
                    RequiredItems::of(&self.search.reader.values, obligation)
                }
                _ => None,
            };
            match required.filter(|required| required.min_matching.is_none()) {
                None => return Ok(None),
                Some(RequiredItems { count: 0, .. }) => break,
                Some(_) => {}
            }
        }
        Ok(Some((texts, position)))
    }
}

/// Returns the items in ascending order, with the separators in place. An item that has begun stays
/// first.
fn sorted_items(spelling: &dyn Spelling, texts: &[Vec<u8>], is_started: bool) -> Vec<u8> {
    let separator = spelling.item_separator();
    let is_before = |byte: &u8| Some(*byte) == separator || spelling.is_item_gap(*byte);
    let parts = texts.iter().map(|text| {
        let item = text.iter().position(|byte| !is_before(byte)).unwrap_or(text.len());
        text.split_at(item)
    });
    let (before, mut items): (Vec<&[u8]>, Vec<&[u8]>) = parts.unzip();
    let ended = |item: &[u8]| [item, separator.as_slice()].concat();
    let begun = usize::from(is_started);
    items[begun..].sort_by_key(|item| ended(item));
    before.iter().zip(&items).flat_map(|(before, item)| [*before, *item].concat()).collect()
}
