//! Whether a member of some name may come next in an object.

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::formula::{Atom, F, Form, TRUE};
use crate::machine::Grown;
use crate::machine::frame::{GoneId, NamingId, OrderId, Owes, OwesId};
use crate::machine::reader::next_names::Naming;
use crate::names::NameId;
use crate::node::Type;
use crate::solve::Rest;

/// Alternatives from which on some are tried before it is asked what follows from all of them.
const MANY: usize = 8;

/// Alternatives that are tried.
const TRIED: usize = 2;

impl Grown {
    /// Whether a member of this name may come next.
    pub(crate) fn member_viable(&mut self, id: NamingId, name: NameId) -> Result<bool, Error> {
        let &Naming { owes, gone, order, plain, .. } = self.names_of(id);
        if plain {
            return self.plain_member_viable((owes, gone, order), name);
        }
        let gone = self.gone_after(gone, order, name);
        if self.some_alternative_viable(owes, gone, name)? {
            return Ok(true);
        }
        let owes = self.after_name(owes, name)?;
        let owed = self.parts.owes.get(owes.0).clone();
        let gone = self.parts.gone.get(gone.0).clone();
        self.core.can_begin(owed, Rest { of: Type::Object, gone: &gone })
    }

    /// The same where members do not depend on each other: its value must exist, and no name that
    /// is owed may be passed.
    fn plain_member_viable(
        &mut self,
        (owes, gone, order): (OwesId, GoneId, OrderId),
        name: NameId,
    ) -> Result<bool, Error> {
        let must = self.parts.owes.get(owes.0).formulas[0];
        let mut value = Vec::new();
        if !self.has_room_for(must, name) {
            return Ok(false);
        }
        if !self.owed_may_follow(must, (gone, order), name) {
            return Ok(false);
        }
        for part in self.core.formulas.conjuncts(must) {
            match self.core.formulas.get(part) {
                Form::Atom(Atom::Members(_)) => value.push(self.value_by(part, name)?),
                _ if self.core.formulas.excluded_name(part) == Some(name) => return Ok(false),
                _ => {}
            }
        }
        let value = self.core.formulas.and(value);
        self.core.some_value(value)
    }

    /// Whether an object may have one more member beside those that are owed, or this is one of them.
    fn has_room_for(&self, must: F, name: NameId) -> bool {
        let parts = match self.core.formulas.get(must) {
            Form::And(list) => list,
            _ => &[must][..],
        };
        let most = parts.iter().filter_map(|&part| self.core.formulas.most_members(part)).min();
        let Some(most) = most else { return true };
        let owed = parts.iter().filter_map(|&part| match self.core.formulas.get(part) {
            Form::Atom(Atom::Owed(names)) => Some(names),
            _ => None,
        });
        let lists: Vec<_> = owed.collect();
        if lists.iter().any(|names| names.binary_search(&name).is_ok()) {
            return true;
        }
        let count = match lists[..] {
            [] => 0,
            [names] => names.len(),
            _ => lists.iter().flat_map(|names| names.iter()).collect::<FxHashSet<_>>().len(),
        };
        (count as u64) < most
    }

    /// Returns `true` if no name that is owed is gone or would be passed by this one.
    pub(crate) fn owed_may_follow(
        &self,
        must: F,
        (gone, order): (GoneId, OrderId),
        name: NameId,
    ) -> bool {
        let passed = &self.parts.orders.get(order.0)[..self.passed(order, name)];
        let gone = self.parts.gone.get(gone.0);
        let is_passed = |one: &NameId| {
            *one != name && (passed.contains(one) || gone.binary_search(one).is_ok())
        };
        let parts = match self.core.formulas.get(must) {
            Form::And(list) => list,
            _ => &[must][..],
        };
        !parts.iter().any(|&part| match self.core.formulas.get(part) {
            Form::Atom(Atom::Owed(names)) => names.iter().any(is_passed),
            _ => false,
        })
    }

    /// Whether a member may come by one of the first of many alternatives, which is enough.
    fn some_alternative_viable(
        &mut self,
        owes: OwesId,
        gone: GoneId,
        name: NameId,
    ) -> Result<bool, Error> {
        let owed = self.parts.owes.get(owes.0);
        if owed.goal != TRUE || self.known.after_name.get(&(owes, name)).is_some() {
            return Ok(false);
        }
        let parts = self.core.formulas.conjuncts(owed.formulas[0]);
        let many =
            parts.iter().enumerate().find_map(|(at, &part)| match self.core.formulas.get(part) {
                Form::Or(list) if list.len() >= MANY => Some((at, list.clone())),
                _ => None,
            });
        let Some((at, list)) = many else { return Ok(false) };
        let gone = self.parts.gone.get(gone.0).clone();
        for &one in list.iter().take(TRIED) {
            let mut parts = parts.clone();
            parts[at] = one;
            let must = self.core.formulas.and(parts);
            let owed = Owes { formulas: [must].into(), asked: [].into(), goal: TRUE };
            let after = self.core.after_name(&owed, name)?;
            if self.core.can_begin(after, Rest { of: Type::Object, gone: &gone })? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
