//! What keys forget: whatever no token can tell.
//!
//! * The text of a name that begins no known one, where its classes of names do not run out: only
//!   the class matters, unless a token ends the name and begins another.
//! * What was recorded of an item that is to be distinct from others, where there is no end of
//!   such items: only a token that ends the item and goes on inside of another one can tell. These
//!   tokens are asked of the state itself, see [`formalm_automata::Keys::is_unsure`].

use formalm_automata::{Error, Machine, StateId};

use super::frame::{Frame, FrameId, NamingId, OwesId, Place, Reach};
use super::{Grown, UNRECORDED};
use crate::core::{Core, TextId};
use crate::formula::{Atom, F, FALSE, Form, TRUE, Which};
use crate::names::PLACEHOLDER;
use crate::node::Type;

/// Steps of the search for a loop.
const MAX_STEPS: usize = 2_000;
/// Members within members that are looked at.
const MAX_DEPTH: usize = 6;

impl Grown {
    /// The place with everything forgotten that no token can tell.
    pub(super) fn normal(&mut self, place: Place) -> Result<Place, Error> {
        let mut place = place;
        if let Frame::Name { object, naming, text, reach, escape } = place.frame
            && text != UNRECORDED
            && reach.from == reach.to
            && self.forgets_names(naming)
        {
            let reach = Reach { from: 0, to: 0, ..reach };
            place.frame = Frame::Name { object, naming, text: UNRECORDED, reach, escape };
        }
        if place.record != UNRECORDED && self.forgets_record(place.frame)? {
            place.record = UNRECORDED;
        }
        Ok(place)
    }

    /// Whether the texts of names that are not known do not matter.
    pub(super) fn forgets_names(&self, naming: NamingId) -> bool {
        !self.tells_names && self.names_of(naming).endless
    }

    /// Whether the items that are being read and must be distinct have no end of others.
    fn forgets_record(&mut self, frame: Frame) -> Result<bool, Error> {
        let (mut of, mut below) = match frame {
            Frame::Text { below, .. } => (Type::String, below),
            Frame::Name { object, .. } => (Type::Object, object),
            Frame::Object { below, .. } => (Type::Object, below),
            Frame::Array { below, .. } => (Type::Array, below),
            _ => return Ok(false),
        };
        if let Frame::Name { .. } = frame {
            below = self.below(below);
        }
        loop {
            match *self.frames.get(below.0) {
                Frame::Array { owes, below: next, .. } => {
                    if self.is_unique(owes) && !self.forgets_items(owes, of)? {
                        return Ok(false);
                    }
                    (of, below) = (Type::Array, next);
                }
                Frame::Object { below: next, .. } => (of, below) = (Type::Object, next),
                _ => return Ok(true),
            }
        }
    }

    fn below(&self, frame: FrameId) -> FrameId {
        match *self.frames.get(frame.0) {
            Frame::Object { below, .. } => below,
            _ => super::frame::DONE,
        }
    }

    /// Whether an array has no end of items of a type, wherever in it they are.
    fn forgets_items(&mut self, owes: OwesId, of: Type) -> Result<bool, Error> {
        if let Some(&known) = self.known.forgets.get(&(owes, of)) {
            return Ok(known);
        }
        let forgets = self.forgets_items_fresh(owes, of)?;
        self.known.forgets.insert((owes, of), forgets);
        Ok(forgets)
    }

    fn forgets_items_fresh(&mut self, owes: OwesId, of: Type) -> Result<bool, Error> {
        let owed = self.parts.owes.get(owes.0);
        if owed.formulas.len() != 1 || owed.goal != TRUE {
            return Ok(false);
        }
        let mut item = Vec::new();
        for part in self.core.formulas.conjuncts(owed.formulas[0]) {
            let (form, positive) = match self.core.formulas.get(part) {
                Form::Not(inner) => (self.core.formulas.get(*inner), false),
                form => (form, true),
            };
            match form {
                Form::Atom(Atom::Items(ranges, _)) if positive => {
                    if ranges.iter().any(|&(from, to, _)| (from, to) != (0, u32::MAX)) {
                        return Ok(false);
                    }
                    item.extend(ranges.iter().map(|range| range.2));
                }
                Form::Atom(Atom::UniqueWith(_)) if positive => {}
                Form::Atom(Atom::MoreItems(_)) => {}
                _ => return Ok(false),
            }
        }
        let item = item.into_iter().map(|node| self.core.child(node)).collect();
        let item = self.core.formulas.and(item);
        let item = self.core.of_type(item, of)?;
        self.core.is_endless(item, of, 0)
    }
}

impl Core {
    /// Whether there is certainly no end of values of a type that satisfy a formula over its
    /// atoms; where it is not certain, no.
    pub(crate) fn is_endless(&mut self, id: F, of: Type, depth: usize) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE && !matches!(of, Type::Null | Type::Bool));
        }
        match of {
            Type::String => match self.language(id)? {
                Some(language) => self.is_endless_text(language),
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
                    for (which, _) in rules {
                        names.extend(which.names.iter().flatten().copied());
                        has_patterns |= !which.found.is_empty() || !which.missing.is_empty();
                    }
                    lists.push(rules.clone());
                }
                Form::Atom(Atom::Owed(owed)) => names.extend(owed.iter().copied()),
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
            let value = self.value_in(&lists, name)?;
            for of in [Type::String, Type::Number, Type::Array, Type::Object] {
                let value = self.of_type(value, of)?;
                if self.is_endless(value, of, depth + 1)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn value_in(
        &mut self,
        lists: &[Box<[(Which, crate::node::NodeId)]>],
        name: crate::names::NameId,
    ) -> Result<F, Error> {
        let mut all = Vec::with_capacity(lists.len());
        for rules in lists {
            all.push(self.rules_at(rules, name)?);
        }
        Ok(self.formulas.and(all))
    }

    /// Whether a language of texts has certainly no end: whether a search soon meets a loop.
    pub(crate) fn is_endless_text(&self, language: TextId) -> Result<bool, Error> {
        if self.class_formula(language) == TRUE {
            return Ok(true);
        }
        let machine = self.text(language);
        let mut way: Vec<(StateId, Vec<u8>)> = Vec::new();
        let mut done = rustc_hash::FxHashSet::default();
        let mut open = Some(machine.start());
        for _ in 0..MAX_STEPS {
            if let Some(state) = open.take() {
                // Where most bytes lead the loops are, and these are among the last.
                way.push((state, machine.live_bytes(state)?.iter().collect()));
            }
            let Some((state, bytes)) = way.last_mut() else { return Ok(false) };
            let Some(byte) = bytes.pop() else {
                done.insert(*state);
                way.pop();
                continue;
            };
            let Some(next) = machine.step(*state, byte)? else { continue };
            if way.iter().any(|&(one, _)| one == next) {
                return Ok(true);
            }
            if !done.contains(&next) {
                open = Some(next);
            }
        }
        Ok(false)
    }
}
