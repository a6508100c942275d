//! The mask class of a state: the state without anything that no token distinguishes.
//!
//! Two things are dropped:
//!
//! * The string of an unknown name, as long as its classes have unused names left. Only the class
//!   matters, unless a token ends the name and begins another.
//! * The recorded item under `uniqueItems` and the items before it, as long as the item type has
//!   unused values left. A token that ends the item and begins another could complete a duplicate.
//!   The vocabulary lists such tokens, and they are rechecked against the state itself.

use std::sync::Arc;

use formalm_automata::Error;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::machine::frame::{
    DONE, Frame, FrameId, NameCandidates, NextNamesId, ObligationId, QueriesId, ReaderPosition,
};
use crate::machine::{LazyTables, NO_RECORD};
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::ArrayCardinality;
use crate::solver::ENOUGH_VALUES;
use crate::solver::context::SolverContext;

/// Maximum nesting of objects that are searched for a property with unboundedly many values.
/// Chosen, not measured.
const MAX_OBJECT_DEPTH: usize = 6;

impl LazyTables {
    /// Returns the position without anything that no token distinguishes.
    pub(crate) fn mask_abstraction(
        &mut self,
        position: ReaderPosition,
    ) -> Result<ReaderPosition, Error> {
        let mut position = position;
        if let Frame::Name { object, next_names, text, candidates, escape } = position.frame
            && text != NO_RECORD
            && candidates.from == candidates.to
            && self.drops_name(next_names, candidates.classes)
        {
            let candidates = NameCandidates { from: 0, to: 0, ..candidates };
            position.frame =
                Frame::Name { object, next_names, text: NO_RECORD, candidates, escape };
        }
        if position.record != NO_RECORD && self.drops_record(position.frame)? {
            position.record = NO_RECORD;
            self.drop_earlier_items(&mut position.frame)?;
        }
        Ok(position)
    }

    /// Returns `true` if the strings of unknown names do not matter.
    pub(crate) fn drops_name(&self, next_names: NextNamesId, classes: QueriesId) -> bool {
        !self.distinguishes_names && self.has_plenty_names(next_names, classes)
    }

    /// Returns `true` if each class has more names than an object ever needs.
    pub(crate) fn has_plenty_names(&self, next_names: NextNamesId, classes: QueriesId) -> bool {
        let plenty = self.names_at(next_names).plenty.iter();
        let mut alive = self.parts.queries.get(classes.0).iter().zip(plenty);
        alive.all(|(alive, &plenty)| alive.is_none() || plenty)
    }

    /// Returns `true` if no array with unique items around the frame can run out of items.
    fn drops_record(&mut self, frame: Frame) -> Result<bool, Error> {
        let (mut of, mut parent) = match frame {
            Frame::String { parent, .. } => (Some(JsonType::String), parent),
            Frame::Name { object, .. } => (Some(JsonType::Object), self.parent(object)),
            Frame::Object { parent, .. } => (Some(JsonType::Object), parent),
            Frame::Array { parent, .. } => (Some(JsonType::Array), parent),
            Frame::Value { parent, .. } => (None, parent),
            Frame::Number { parent, .. } => (Some(JsonType::Number), parent),
            Frame::Literal { parent, .. } => (Some(JsonType::Bool), parent),
            Frame::Done => return Ok(false),
        };
        loop {
            match *self.frames.get(parent.0) {
                Frame::Array { obligation, parent: next, .. } => {
                    if self.has_unique_items(obligation)
                        && !self.has_plenty_items(obligation, of)?
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
    fn drop_earlier_items(&mut self, frame: &mut Frame) -> Result<(), Error> {
        match frame {
            Frame::String { parent, .. }
            | Frame::Object { parent, .. }
            | Frame::Value { parent, .. }
            | Frame::Number { parent, .. }
            | Frame::Literal { parent, .. } => *parent = self.without_earlier_items(*parent)?,
            Frame::Name { object, .. } => *object = self.without_earlier_items(*object)?,
            Frame::Array { .. } | Frame::Done => {}
        }
        Ok(())
    }

    /// Returns the frame and its parents without earlier items, where these cannot run out.
    fn without_earlier_items(&mut self, id: FrameId) -> Result<FrameId, Error> {
        if let Some(&known) = self.cache.without_earlier_items.get(&id) {
            return Ok(known);
        }
        let mut frame = *self.frames.get(id.0);
        match &mut frame {
            Frame::Object { parent, .. } => *parent = self.without_earlier_items(*parent)?,
            Frame::Array { obligation, from, parent, .. } => {
                *parent = self.without_earlier_items(*parent)?;
                *from = 0;
                if self.has_unique_items(*obligation) && self.has_plenty_items(*obligation, None)? {
                    *obligation = self
                        .cache
                        .plenty_items
                        .get(&(*obligation, None))
                        .copied()
                        .flatten()
                        .unwrap_or(*obligation);
                }
            }
            _ => return Ok(id),
        }
        let without = self.frame(frame);
        self.cache.without_earlier_items.insert(id, without);
        Ok(without)
    }

    fn parent(&self, frame: FrameId) -> FrameId {
        match *self.frames.get(frame.0) {
            Frame::Object { parent, .. } => parent,
            _ => DONE,
        }
    }

    /// Returns `true` if an array cannot run out of items of a type, or of any, at any depth inside
    /// the item.
    pub(crate) fn has_plenty_items(
        &mut self,
        obligation: ObligationId,
        of: Option<JsonType>,
    ) -> Result<bool, Error> {
        if let Some(&known) = self.cache.plenty_items.get(&(obligation, of)) {
            return Ok(known.is_some());
        }
        let representative = match self.uniform_item(obligation)? {
            Some((item, fresh)) => self.core.is_plenty(item, of)?.then_some(fresh),
            None => self.has_unbounded_cells(obligation, of)?.then_some(obligation),
        };
        self.cache.plenty_items.insert((obligation, of), representative);
        Ok(representative.is_some())
    }

    /// Returns the formula of all items and the array's obligation at its first item; `None` if
    /// anything else matters.
    fn uniform_item(
        &mut self,
        obligation: ObligationId,
    ) -> Result<Option<(FormulaId, ObligationId)>, Error> {
        let mut required = self.parts.obligations.get(obligation.0).clone();
        if required.formulas.len() != 1 || required.goal != TRUE {
            return Ok(None);
        }
        let (mut item, mut owing, mut needed) = (Vec::new(), Vec::new(), self.max_token_len as u64);
        for part in self.core.base.formulas.conjuncts(required.formulas[0]) {
            let (form, positive) = match self.core.base.formulas.get(part) {
                Formula::Not(inner) => (self.core.base.formulas.get(*inner), false),
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
        let item = item.into_iter().map(|node| self.core.base.child(node)).collect();
        let item = self.core.base.formulas.and(item);
        owing.push(self.core.base.formulas.atom(FormulaAtom::UniqueWithCurrent([].into())));
        required.formulas[0] = self.core.base.formulas.and(owing);
        Ok(Some((item, self.parts.obligation(required))))
    }
}

impl SolverContext {
    /// Returns `true` if there are plenty of values of a type, or of each type that has any.
    /// Numbers never count as plenty: a token may end one item and contain the whole next one, if
    /// that is a number.
    fn is_plenty(&mut self, id: FormulaId, of: Option<JsonType>) -> Result<bool, Error> {
        for one in JsonType::ALL.into_iter().filter(|&one| of.is_none_or(|of| of == one)) {
            let typed = self.formula_for_type(id, one)?;
            let has_any = of.is_some() || self.has_value_of_type(typed, one)?;
            if has_any && (one == JsonType::Number || !self.has_unbounded_values(typed, one, 0)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if unboundedly many values of a type satisfy a formula, or at least
    /// [`ENOUGH_VALUES`]. Returns `false` where this is not certain.
    pub(crate) fn has_unbounded_values(
        &mut self,
        id: FormulaId,
        of: JsonType,
        depth: usize,
    ) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE && !matches!(of, JsonType::Null | JsonType::Bool));
        }
        match of {
            JsonType::String => match self.languages.language(&self.base, id)? {
                Some(language) => self.languages.has_many_strings(&self.base, language),
                None => Ok(false),
            },
            // Numbers are recorded digit by digit and arrays item by item, so only those inside
            // objects count.
            JsonType::Number if depth > 0 => self.base.numbers(id).is_infinite(),
            JsonType::Array if 0 < depth && depth < MAX_OBJECT_DEPTH => {
                ArrayCardinality { solver: self, depth: depth }.is_infinite(id)
            }
            JsonType::Object if depth < MAX_OBJECT_DEPTH => self.is_endless_object(id, depth),
            _ => Ok(false),
        }
    }

    /// Returns `true` if some implicant of the formula has unboundedly many objects.
    fn is_endless_object(&mut self, id: FormulaId, depth: usize) -> Result<bool, Error> {
        self.search_implicants(id, &mut |_, _| Ok(true), &mut |core, literals| {
            Ok(core.object_fits(literals, &[])? && core.is_endless_by_property(literals, depth)?)
        })
    }

    /// Returns `true` for a satisfiable conjunction if one property has unboundedly many values,
    /// whatever the others are.
    fn is_endless_by_property(
        &mut self,
        literals: &[FormulaId],
        depth: usize,
    ) -> Result<bool, Error> {
        let (mut names, mut lists, mut has_patterns) = (Vec::new(), Vec::new(), false);
        for &part in literals {
            match self.base.formulas.get(part) {
                Formula::Atom(FormulaAtom::Properties(rules)) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten().copied());
                        has_patterns |= !which.matched_patterns.is_empty()
                            || !which.unmatched_patterns.is_empty();
                    }
                    lists.push(rules.clone());
                }
                Formula::Atom(FormulaAtom::Required(required)) => {
                    names.extend(required.iter().copied())
                }
                Formula::Atom(FormulaAtom::MinProperties(_)) => {}
                Formula::Not(_) => return self.is_endless_with_negations(literals, depth),
                _ => return Ok(false),
            }
        }
        if !has_patterns {
            // Unmentioned names are equivalent, and there are unboundedly many.
            let other = self.value_by_rules(&lists, UNMENTIONED_NAME)?;
            if self.has_value(other)? {
                return Ok(true);
            }
        }
        for name in names {
            if self.has_endless_property(&lists, name, depth)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a property has unboundedly many values.
    fn has_endless_property(
        &mut self,
        lists: &[Arc<[(NameSelector, NodeId)]>],
        name: NameId,
        depth: usize,
    ) -> Result<bool, Error> {
        let value = self.value_by_rules(lists, name)?;
        for of in [JsonType::String, JsonType::Number, JsonType::Array, JsonType::Object] {
            let value = self.formula_for_type(value, of)?;
            if self.has_unbounded_values(value, of, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles conjunctions with negations: returns `true` if a required property has unboundedly
    /// many values while the negated statements fail without it.
    fn is_endless_with_negations(
        &mut self,
        literals: &[FormulaId],
        depth: usize,
    ) -> Result<bool, Error> {
        let (mut required, mut lists) = (Vec::new(), Vec::new());
        for &part in literals {
            match self.base.formulas.get(part) {
                Formula::Atom(FormulaAtom::Properties(rules)) => lists.push(rules.clone()),
                Formula::Atom(FormulaAtom::Required(names)) => {
                    required.extend(names.iter().copied())
                }
                Formula::Atom(_) => {}
                Formula::Not(inner)
                    if matches!(self.base.formulas.get(*inner), Formula::Atom(_)) => {}
                _ => return Ok(false),
            }
        }
        for name in required {
            let mut others_left = Vec::with_capacity(literals.len());
            for &part in literals {
                let Formula::Not(inner) = *self.base.formulas.get(part) else {
                    others_left.push(part);
                    continue;
                };
                let without = match self.base.formulas.get(inner).clone() {
                    Formula::Atom(FormulaAtom::Properties(rules)) => {
                        let rules = rules.iter().map(|(which, node)| (which.without(name), *node));
                        self.base.formulas.atom(FormulaAtom::Properties(rules.collect()))
                    }
                    _ => inner,
                };
                others_left.push(self.base.formulas.not(without));
            }
            if !self.object_fits(&others_left, &[])? {
                continue;
            }
            if self.has_endless_property(&lists, name, depth)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the formula of a property value under several lists of rules.
    fn value_by_rules(
        &mut self,
        lists: &[Arc<[(NameSelector, NodeId)]>],
        name: NameId,
    ) -> Result<FormulaId, Error> {
        let mut all = Vec::with_capacity(lists.len());
        for rules in lists {
            all.push(self.languages.rules_for_name(&mut self.base, rules, name)?);
        }
        Ok(self.base.formulas.and(all))
    }
}
