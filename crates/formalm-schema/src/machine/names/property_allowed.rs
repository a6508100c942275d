//! Decides whether a property of a given name may come next in an object.

use formalm_core::Error;
use rustc_hash::FxHashSet;

use crate::formula::{Formula, FormulaAtom, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::machine::frame::{NameOrderId, NextNamesId, Obligation, ObligationId, UsedNamesId};
use crate::machine::names::NextNames;
use crate::machine::names::name_query::NameQuery;
use crate::schema_nodes::JsonType;
use crate::solver::RemainingContainer;
use crate::solver::context::SolverContext;

/// Number of alternatives from which on the first ones are tried before the derivative by all is
/// computed. Chosen, not measured.
const MIN_ALTERNATIVES: usize = 8;

/// Maximum number of alternatives that are tried. Chosen, not measured.
const MAX_TRIED: usize = 3;

impl NameQuery<'_> {
    /// Returns `true` if a property of this name may come next.
    pub(crate) fn property_viable(&mut self, id: NextNamesId, name: NameId) -> Result<bool, Error> {
        let &NextNames { obligation, used_names, order, independent, .. } = self.tables.get(id);
        if independent {
            return self.independent_property_viable((obligation, used_names, order), name);
        }
        let used_names = self.tables.used_names_after(self.core, used_names, order, name);
        if self.early_alternative_viable(obligation, used_names, name)? {
            return Ok(true);
        }
        let obligation = self.residuals.after_name(self.core, obligation, name)?;
        let required = self.residuals.get(obligation).clone();
        let used_names = self.tables.used(used_names);
        required
            .child_viable(self.core, RemainingContainer { json_type: JsonType::Object, used_names })
    }

    /// Decides the case where names are independent: the value must exist, and no required name may
    /// be skipped.
    fn independent_property_viable(
        &mut self,
        (obligation, used_names, order): (ObligationId, UsedNamesId, NameOrderId),
        name: NameId,
    ) -> Result<bool, Error> {
        let must = self.residuals.get(obligation).formulas[0];
        let mut value = Vec::new();
        if !has_room_for(self.core, must, name) {
            return Ok(false);
        }
        if !self.tables.required_may_follow(self.core, must, (used_names, order), name) {
            return Ok(false);
        }
        for part in self.core.base.formulas.conjuncts(must) {
            match self.core.base.formulas.get(part) {
                Formula::Atom(FormulaAtom::Properties(_)) => {
                    value.push(self.residuals.property_value(self.core, part, name)?)
                }
                _ if self.core.base.formulas.excluded_property(part) == Some(name) => {
                    return Ok(false);
                }
                _ => {}
            }
        }
        let value = self.core.base.formulas.and(value);
        self.core.has_value(value)
    }

    /// Returns `true` if one of many alternatives allows the property, which suffices. Those that
    /// list the name are tried, and others that it leaves as they are.
    fn early_alternative_viable(
        &mut self,
        obligation: ObligationId,
        used_names: UsedNamesId,
        name: NameId,
    ) -> Result<bool, Error> {
        let required = self.residuals.get(obligation);
        if required.goal != TRUE || self.residuals.knows_after_name(obligation, name) {
            return Ok(false);
        }
        let parts = self.core.base.formulas.conjuncts(required.formulas[0]);
        let many = parts.iter().enumerate().find_map(|(at, &part)| {
            match self.core.base.formulas.get(part) {
                Formula::Or(list) if list.len() >= MIN_ALTERNATIVES => Some((at, list.clone())),
                _ => None,
            }
        });
        let Some((at, list)) = many else { return Ok(false) };
        let used_names = self.tables.used(used_names);
        let base = &mut self.core.base;
        let mut tried: Vec<FormulaId> = Vec::with_capacity(MAX_TRIED);
        for &one in list.iter() {
            if tried.len() + 1 < MAX_TRIED && base.name_mentions(one).lists(name) {
                tried.push(one);
            }
        }
        // The names of the last ones are the least likely to be skipped in a declared order.
        let open = list.iter().rev().find(|&&one| base.name_mentions(one).leaves_unchanged(name));
        tried.extend(open);
        if tried.is_empty() {
            tried.extend(&list[..MAX_TRIED]);
        }
        for one in tried {
            let mut parts = parts.clone();
            parts[at] = one;
            let must = self.core.base.formulas.and(parts);
            let required = Obligation { formulas: [must].into(), queries: [].into(), goal: TRUE };
            let after = required.after_name(self.core, name)?;
            if after.child_viable(
                self.core,
                RemainingContainer { json_type: JsonType::Object, used_names },
            )? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns `true` if the object may have one property more than the required ones, or if `name`
/// is one of these.
fn has_room_for(core: &SolverContext, must: FormulaId, name: NameId) -> bool {
    let parts = match core.base.formulas.get(must) {
        Formula::And(list) => list,
        _ => &[must][..],
    };
    let most = parts.iter().filter_map(|&part| core.base.formulas.max_more_properties(part)).min();
    let Some(most) = most else { return true };
    let required = parts.iter().filter_map(|&part| match core.base.formulas.get(part) {
        Formula::Atom(FormulaAtom::Required(names)) => Some(names),
        _ => None,
    });
    let lists: Vec<_> = required.collect();
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
