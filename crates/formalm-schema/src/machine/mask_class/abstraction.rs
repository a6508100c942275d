//! The mask class of a state: the state without anything that no token distinguishes.
//!
//! Two things are dropped:
//!
//! * The string of an unknown name, as long as its classes have unused names left. Only the class
//!   matters, unless a token ends the name and begins another.
//! * The recorded item under `uniqueItems` and the items before it, as long as the item type has
//!   unused values left. A token that ends the item and begins another could complete a duplicate.
//!   The vocabulary lists such tokens, and they are rechecked against the state itself.

use formalm_core::{CompactMap, Error, memory_bytes};

use crate::formula::{Formula, FormulaAtom, FormulaId, TRUE};
use crate::machine::NO_RECORD;
use crate::machine::frame::{
    Frame, FrameId, NameCandidates, NextNamesId, ObligationId, QueriesId, ReaderPosition,
};
use crate::machine::mask_class::unbounded_values::UnboundedValues;
use crate::machine::values::Values;
use crate::schema_nodes::JsonType;
use crate::solver::ENOUGH_VALUES;

/// What masks do not distinguish, for the tokens of all vocabularies so far.
#[derive(Debug, Default)]
pub(crate) struct MaskAbstraction {
    /// Set if mask classes keep the strings of names that matter to nothing else.
    pub(crate) distinguishes_names: bool,
    /// Length of the longest token, in bytes.
    pub(crate) max_token_len: usize,
    /// For arrays that cannot run out of items of a type (`None`: of any), their obligation at the
    /// first item.
    plenty_items: CompactMap<(ObligationId, Option<JsonType>), Option<ObligationId>>,
    /// Frames without the items read earlier.
    without_earlier_items: CompactMap<FrameId, FrameId>,
}

memory_bytes!(MaskAbstraction { plenty_items, without_earlier_items; distinguishes_names, max_token_len });

impl MaskAbstraction {
    /// Returns the position without anything that no token distinguishes.
    pub(crate) fn apply(
        &mut self,
        values: &mut Values,
        position: ReaderPosition,
    ) -> Result<ReaderPosition, Error> {
        let mut position = position;
        if let Frame::Name { object, next_names, text, candidates, escape } = position.frame
            && text != NO_RECORD
            && candidates.from == candidates.to
            && self.drops_name(values, next_names, candidates.classes)
        {
            let candidates = NameCandidates { from: 0, to: 0, ..candidates };
            position.frame =
                Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
        }
        if position.record != NO_RECORD && self.drops_record(values, position.frame)? {
            position.record = NO_RECORD;
            self.drop_earlier_items(values, &mut position.frame)?;
        }
        Ok(position)
    }

    /// Returns `true` if the strings of unknown names do not matter.
    pub(crate) fn drops_name(
        &self,
        values: &Values,
        next_names: NextNamesId,
        classes: QueriesId,
    ) -> bool {
        !self.distinguishes_names
            && values.name_tables.has_plenty_names(&values.strings, next_names, classes)
    }

    /// Returns `true` if no array with unique items around the frame can run out of items.
    fn drops_record(&mut self, values: &mut Values, frame: Frame) -> Result<bool, Error> {
        let (mut of, mut parent) = match frame {
            Frame::String { parent, .. } => (Some(JsonType::String), parent),
            Frame::Name { object, .. } => {
                (Some(JsonType::Object), values.frames.object_parent(object))
            }
            Frame::Object { parent, .. } => (Some(JsonType::Object), parent),
            Frame::Array { parent, .. } => (Some(JsonType::Array), parent),
            Frame::Value { parent, .. } => (None, parent),
            Frame::Number { parent, .. } => (Some(JsonType::Number), parent),
            Frame::Literal { parent, .. } => (Some(JsonType::Bool), parent),
            Frame::Done => return Ok(false),
        };
        loop {
            match values.frames.get(parent) {
                Frame::Array { obligation, parent: next, .. } => {
                    if values.has_unique_items(obligation)
                        && !self.has_plenty_items(values, obligation, of)?
                    {
                        return Ok(false);
                    }
                    (of, parent) = (Some(JsonType::Array), next);
                }
                Frame::Object { parent: next, .. } => (of, parent) = (Some(JsonType::Object), next),
                _ => return Ok(true),
            }
        }
    }

    /// Drops the earlier items from all surrounding arrays that cannot run out of items of any
    /// allowed type.
    fn drop_earlier_items(&mut self, values: &mut Values, frame: &mut Frame) -> Result<(), Error> {
        match frame {
            Frame::String { parent, .. }
            | Frame::Object { parent, .. }
            | Frame::Value { parent, .. }
            | Frame::Number { parent, .. }
            | Frame::Literal { parent, .. } => {
                *parent = self.without_earlier_items(values, *parent)?
            }
            Frame::Name { object, .. } => *object = self.without_earlier_items(values, *object)?,
            Frame::Array { .. } | Frame::Done => {}
        }
        Ok(())
    }

    /// Returns the frame and its parents without earlier items, where these cannot run out.
    fn without_earlier_items(
        &mut self,
        values: &mut Values,
        id: FrameId,
    ) -> Result<FrameId, Error> {
        if let Some(&known) = self.without_earlier_items.get(&id) {
            return Ok(known);
        }
        let mut frame = values.frames.get(id);
        match &mut frame {
            Frame::Object { parent, .. } => {
                *parent = self.without_earlier_items(values, *parent)?
            }
            Frame::Array { obligation, from, parent, .. } => {
                *parent = self.without_earlier_items(values, *parent)?;
                *from = 0;
                if values.has_unique_items(*obligation)
                    && self.has_plenty_items(values, *obligation, None)?
                {
                    *obligation = self
                        .plenty_items
                        .get(&(*obligation, None))
                        .copied()
                        .flatten()
                        .unwrap_or(*obligation);
                }
            }
            _ => return Ok(id),
        }
        let without = values.frames.intern(frame);
        self.without_earlier_items.insert(id, without);
        Ok(without)
    }

    /// Returns `true` if an array cannot run out of items of a type, or of any, at any depth inside
    /// the item.
    pub(crate) fn has_plenty_items(
        &mut self,
        values: &mut Values,
        obligation: ObligationId,
        of: Option<JsonType>,
    ) -> Result<bool, Error> {
        if let Some(&known) = self.plenty_items.get(&(obligation, of)) {
            return Ok(known.is_some());
        }
        let representative = match self.uniform_item(values, obligation)? {
            Some((item, fresh)) => {
                UnboundedValues::new(&mut values.core, 0).is_plenty(item, of)?.then_some(fresh)
            }
            None => self.has_unbounded_cells(values, obligation, of)?.then_some(obligation),
        };
        self.plenty_items.insert((obligation, of), representative);
        Ok(representative.is_some())
    }

    /// Returns the formula of all items and the array's obligation at its first item; `None` if
    /// anything else matters.
    fn uniform_item(
        &self,
        values: &mut Values,
        obligation: ObligationId,
    ) -> Result<Option<(FormulaId, ObligationId)>, Error> {
        let mut required = values.residuals.get(obligation).clone();
        if required.formulas.len() != 1 || required.goal != TRUE {
            return Ok(None);
        }
        let (mut item, mut owing, mut needed) = (Vec::new(), Vec::new(), self.max_token_len as u64);
        for part in values.core.base.formulas.conjuncts(required.formulas[0]) {
            let (form, positive) = match values.core.base.formulas.get(part) {
                Formula::Not(inner) => (values.core.base.formulas.get(*inner), false),
                form => (form, true),
            };
            match form {
                Formula::Atom(FormulaAtom::Items(ranges, _)) if positive => {
                    if ranges.iter().any(|&(from, to, _)| (from, to) != (0, u32::MAX)) {
                        return Ok(None);
                    }
                    item.extend(ranges.iter().map(|range| range.2));
                }
                Formula::Atom(FormulaAtom::UniqueWithCurrent(taken)) if positive => {
                    needed = needed.saturating_add(taken.len() as u64);
                    continue;
                }
                Formula::Atom(FormulaAtom::MinItems(count)) => {
                    needed = needed.saturating_add(*count)
                }
                _ => return Ok(None),
            }
            owing.push(part);
        }
        if needed > ENOUGH_VALUES / 2 {
            return Ok(None);
        }
        let item = item.into_iter().map(|node| values.core.base.child(node)).collect();
        let item = values.core.base.formulas.and(item);
        owing.push(values.core.base.formulas.atom(FormulaAtom::UniqueWithCurrent([].into())));
        required.formulas[0] = values.core.base.formulas.and(owing);
        Ok(Some((item, values.residuals.intern(required))))
    }
}
