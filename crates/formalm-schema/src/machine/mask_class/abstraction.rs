//! What keys forget: whatever no token can tell.
//!
//! * The text of a name that begins no known one, where the classes that it may be of do not run
//!   out: only the class matters, unless a token ends the name and begins another.
//! * What was recorded of an item that is to be distinct from others, where such items do not run
//!   out, and the items before it: only a token that ends the item and goes on inside of another
//!   one can tell. These tokens are asked of the state itself, see
//!   [`formalm_automata::Keys::is_unsure`].

use std::sync::Arc;

use formalm_automata::Error;

use crate::core::Core;
use crate::formula::{Atom, F, FALSE, Form, TRUE, Which};
use crate::machine::frame::{AskedId, DONE, Frame, FrameId, NamingId, OwesId, Place, Reach};
use crate::machine::{Grown, UNRECORDED};
use crate::names::{NameId, PLACEHOLDER};
use crate::node::{NodeId, Type};
use crate::solve::PLENTY;

/// Members within members that are looked at.
const MAX_DEPTH: usize = 6;

impl Grown {
    /// The place with everything forgotten that no token can tell.
    pub(crate) fn normal(&mut self, place: Place) -> Result<Place, Error> {
        let mut place = place;
        if let Frame::Name { object, naming, text, reach, escape } = place.frame
            && text != UNRECORDED
            && reach.from == reach.to
            && self.forgets_names(naming, reach.classes)
        {
            let reach = Reach { from: 0, to: 0, ..reach };
            place.frame = Frame::Name { object, naming, text: UNRECORDED, reach, escape };
        }
        if place.record != UNRECORDED && self.forgets_record(place.frame)? {
            place.record = UNRECORDED;
            self.forget_items_before(&mut place.frame)?;
        }
        Ok(place)
    }

    /// Whether the texts of names that are not known do not matter.
    pub(crate) fn forgets_names(&self, naming: NamingId, classes: AskedId) -> bool {
        !self.tells_names && self.has_plenty_names(naming, classes)
    }

    /// Whether there are more names of all classes that may come than an object ever needs.
    pub(crate) fn has_plenty_names(&self, naming: NamingId, classes: AskedId) -> bool {
        let plenty = self.names_of(naming).plenty.iter();
        let mut alive = self.parts.asked.get(classes.0).iter().zip(plenty);
        alive.all(|(alive, &plenty)| alive.is_none() || plenty)
    }

    /// Whether the items that are being read and must be distinct do not run out.
    fn forgets_record(&mut self, frame: Frame) -> Result<bool, Error> {
        let (mut of, mut below) = match frame {
            Frame::Text { below, .. } => (Some(Type::String), below),
            Frame::Name { object, .. } => (Some(Type::Object), self.below(object)),
            Frame::Object { below, .. } => (Some(Type::Object), below),
            Frame::Array { below, .. } => (Some(Type::Array), below),
            Frame::Value { below, .. } => (None, below),
            Frame::Number { below, .. } => (Some(Type::Number), below),
            Frame::Word { below, .. } => (Some(Type::Bool), below),
            Frame::Done => return Ok(false),
        };
        loop {
            match *self.frames.get(below.0) {
                Frame::Array { owes, below: next, .. } => {
                    if self.is_unique(owes) && !self.forgets_items(owes, of)? {
                        return Ok(false);
                    }
                    (of, below) = (Some(Type::Array), next);
                }
                Frame::Object { below: next, .. } => (of, below) = (Some(Type::Object), next),
                _ => return Ok(true),
            }
        }
    }

    /// Forgets which items came before the one that is being read, in all arrays where items of
    /// every type that may come do not run out.
    fn forget_items_before(&mut self, frame: &mut Frame) -> Result<(), Error> {
        match frame {
            Frame::Text { below, .. }
            | Frame::Object { below, .. }
            | Frame::Value { below, .. }
            | Frame::Number { below, .. }
            | Frame::Word { below, .. } => *below = self.without_items_before(*below)?,
            Frame::Name { object, .. } => *object = self.without_items_before(*object)?,
            Frame::Array { .. } | Frame::Done => {}
        }
        Ok(())
    }

    fn without_items_before(&mut self, id: FrameId) -> Result<FrameId, Error> {
        if let Some(&known) = self.known.without_items.get(&id) {
            return Ok(known);
        }
        let mut frame = *self.frames.get(id.0);
        match &mut frame {
            Frame::Object { below, .. } => *below = self.without_items_before(*below)?,
            Frame::Array { owes, from, below, .. } => {
                *below = self.without_items_before(*below)?;
                *from = 0;
                if self.is_unique(*owes) && self.forgets_items(*owes, None)? {
                    *owes =
                        self.known.forgets.get(&(*owes, None)).copied().flatten().unwrap_or(*owes);
                }
            }
            _ => return Ok(id),
        }
        let without = self.frame(frame);
        self.known.without_items.insert(id, without);
        Ok(without)
    }

    fn below(&self, frame: FrameId) -> FrameId {
        match *self.frames.get(frame.0) {
            Frame::Object { below, .. } => below,
            _ => DONE,
        }
    }

    /// Whether an array does not run out of items of a type, or of any, wherever in it they are.
    pub(crate) fn forgets_items(&mut self, owes: OwesId, of: Option<Type>) -> Result<bool, Error> {
        if let Some(&known) = self.known.forgets.get(&(owes, of)) {
            return Ok(known.is_some());
        }
        let forgets = match self.item_of_many(owes)? {
            Some((item, fresh)) => self.core.is_plenty(item, of)?.then_some(fresh),
            None => self.has_endless_cells(owes, of)?.then_some(owes),
        };
        self.known.forgets.insert((owes, of), forgets);
        Ok(forgets.is_some())
    }

    /// What every item of an array has to satisfy, and what the array owes at its first item;
    /// `None` if other things matter.
    fn item_of_many(&mut self, owes: OwesId) -> Result<Option<(F, OwesId)>, Error> {
        let mut owed = self.parts.owes.get(owes.0).clone();
        if owed.formulas.len() != 1 || owed.goal != TRUE {
            return Ok(None);
        }
        let (mut item, mut owing, mut needed) = (Vec::new(), Vec::new(), self.horizon as u64);
        for part in self.core.formulas.conjuncts(owed.formulas[0]) {
            let (form, positive) = match self.core.formulas.get(part) {
                Form::Not(inner) => (self.core.formulas.get(*inner), false),
                form => (form, true),
            };
            match form {
                Form::Atom(Atom::Items(ranges, _)) if positive => {
                    if ranges.iter().any(|&(from, to, _)| (from, to) != (0, u32::MAX)) {
                        return Ok(None);
                    }
                    item.extend(ranges.iter().map(|range| range.2));
                }
                Form::Atom(Atom::UniqueWith(taken)) if positive => {
                    needed = needed.saturating_add(taken.len() as u64);
                    continue;
                }
                Form::Atom(Atom::MoreItems(count)) => needed = needed.saturating_add(*count),
                _ => return Ok(None),
            }
            owing.push(part);
        }
        if needed > PLENTY / 2 {
            return Ok(None);
        }
        let item = item.into_iter().map(|node| self.core.child(node)).collect();
        let item = self.core.formulas.and(item);
        owing.push(self.core.formulas.atom(Atom::UniqueWith([].into())));
        owed.formulas[0] = self.core.formulas.and(owing);
        Ok(Some((item, self.parts.owes(owed))))
    }
}

impl Core {
    /// Whether values of a type, or of each type that has any, do not run out. Numbers always count
    /// as if they did: a token may end one item and have the next one, a number, whole.
    fn is_plenty(&mut self, id: F, of: Option<Type>) -> Result<bool, Error> {
        for one in Type::ALL.into_iter().filter(|&one| of.is_none_or(|of| of == one)) {
            let typed = self.of_type(id, one)?;
            let has_any = of.is_some() || self.some_of_type(typed, one)?;
            if has_any && (one == Type::Number || !self.is_endless(typed, one, 0)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether there is certainly no end of values of a type that satisfy a formula over its
    /// atoms, or at least [`PLENTY`] of them; where it is not certain, no.
    pub(crate) fn is_endless(&mut self, id: F, of: Type, depth: usize) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE && !matches!(of, Type::Null | Type::Bool));
        }
        match of {
            Type::String => match self.language(id)? {
                Some(language) => self.has_plenty_texts(language),
                None => Ok(false),
            },
            // A number itself is recorded digit by digit, and an array item by item: here only
            // those within objects are asked for.
            Type::Number if depth > 0 => self.is_endless_number(id),
            Type::Array if 0 < depth && depth < MAX_DEPTH => self.is_endless_array(id, depth),
            Type::Object if depth < MAX_DEPTH => self.is_endless_object(id, depth),
            _ => Ok(false),
        }
    }

    fn is_endless_object(&mut self, id: F, depth: usize) -> Result<bool, Error> {
        self.implicants(id, &mut |_, _| Ok(true), &mut |core, literals| {
            Ok(core.object_fits(literals, &[])? && core.is_endless_members(literals, depth)?)
        })
    }

    /// The same for a conjunction that some object satisfies: whether one member has no end of
    /// values, whatever the others are.
    fn is_endless_members(&mut self, literals: &[F], depth: usize) -> Result<bool, Error> {
        let (mut names, mut lists, mut has_patterns) = (Vec::new(), Vec::new(), false);
        for &part in literals {
            match self.formulas.get(part) {
                Form::Atom(Atom::Members(rules)) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten().copied());
                        has_patterns |= !which.found.is_empty() || !which.missing.is_empty();
                    }
                    lists.push(rules.clone());
                }
                Form::Atom(Atom::Owed(owed)) => names.extend(owed.iter().copied()),
                Form::Atom(Atom::MoreMembers(_)) => {}
                Form::Not(_) => return self.is_endless_beside(literals, depth),
                _ => return Ok(false),
            }
        }
        if !has_patterns {
            // All names that nothing speaks of are alike, and there is no end of them.
            let other = self.value_in(&lists, PLACEHOLDER)?;
            if self.some_value(other)? {
                return Ok(true);
            }
        }
        for name in names {
            if self.is_endless_member(&lists, name, depth)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether there is no end of values of a member.
    fn is_endless_member(
        &mut self,
        lists: &[Arc<[(Which, NodeId)]>],
        name: NameId,
        depth: usize,
    ) -> Result<bool, Error> {
        let value = self.value_in(lists, name)?;
        for of in [Type::String, Type::Number, Type::Array, Type::Object] {
            let value = self.of_type(value, of)?;
            if self.is_endless(value, of, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same where something must not hold: whether a member that is owed has no end of values,
    /// while all that must fail fails without it.
    fn is_endless_beside(&mut self, literals: &[F], depth: usize) -> Result<bool, Error> {
        let (mut owed, mut lists) = (Vec::new(), Vec::new());
        for &part in literals {
            match self.formulas.get(part) {
                Form::Atom(Atom::Members(rules)) => lists.push(rules.clone()),
                Form::Atom(Atom::Owed(names)) => owed.extend(names.iter().copied()),
                Form::Atom(_) => {}
                Form::Not(inner) if matches!(self.formulas.get(*inner), Form::Atom(_)) => {}
                _ => return Ok(false),
            }
        }
        for name in owed {
            let mut beside = Vec::with_capacity(literals.len());
            for &part in literals {
                let Form::Not(inner) = *self.formulas.get(part) else {
                    beside.push(part);
                    continue;
                };
                let without = match self.formulas.get(inner).clone() {
                    Form::Atom(Atom::Members(rules)) => {
                        let rules = rules.iter().map(|(which, node)| (which.without(name), *node));
                        self.formulas.atom(Atom::Members(rules.collect()))
                    }
                    _ => inner,
                };
                beside.push(self.formulas.not(without));
            }
            if !self.object_fits(&beside, &[])? {
                continue;
            }
            if self.is_endless_member(&lists, name, depth)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn value_in(&mut self, lists: &[Arc<[(Which, NodeId)]>], name: NameId) -> Result<F, Error> {
        let mut all = Vec::with_capacity(lists.len());
        for rules in lists {
            all.push(self.rules_at(rules, name)?);
        }
        Ok(self.formulas.and(all))
    }
}
