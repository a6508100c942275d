//! Decides an object property by property (case split).
//!
//! Nested alternatives have far more implicants than one property has distinguishable values. So
//! the search decides the most constrained property first, as if it were read first: whether it is
//! present, and which subschemas its value satisfies. The residual is usually much smaller.

use std::collections::{BTreeMap, BTreeSet};

use formalm_core::{CompactMap, Error};

use crate::formula::{FALSE, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::machine::Obligation;
use crate::solver::RemainingContainer;
use crate::solver::context::SolverContext;
use crate::solver::objects::ObjectQuery;

impl ObjectQuery<'_> {
    /// Returns whether further properties can satisfy a formula, by splitting on the most
    /// constrained one; `None` if no atom mentions a name.
    pub(super) fn split_by_property(&mut self, id: FormulaId) -> Result<Option<bool>, Error> {
        let Some((name, is_required)) =
            most_constrained_property(&self.solver.base.formulas, id, self.used_names)
        else {
            return Ok(None);
        };
        let mut used_after = self.used_names.to_vec();
        used_after.push(name);
        used_after.sort_unstable();
        self.solver.answers.splits += 1;
        let found = decide_property(self.solver, id, (name, is_required), &used_after);
        self.solver.answers.splits = self.solver.answers.splits.saturating_sub(1);
        if self.solver.answers.splits == 0 {
            self.solver.answers.objects = CompactMap::default();
        }
        found.map(Some)
    }

    /// Returns whether properties can satisfy a formula. Memoized, since different values of one
    /// property often leave the same residual.
    pub(super) fn decide_memoized(&mut self, id: FormulaId) -> Result<bool, Error> {
        let key = (id, relevant_used_names(&self.solver.base.formulas, id, self.used_names));
        if let Some(&known) = self.solver.answers.objects.get(&key) {
            return Ok(known);
        }
        let found = self.search(id)?;
        self.solver.answers.objects.insert(key, found);
        Ok(found)
    }
}

/// Decides the formula with the property absent, then with it present.
fn decide_property(
    solver: &mut SolverContext,
    id: FormulaId,
    (name, is_required): (NameId, bool),
    used_after: &[NameId],
) -> Result<bool, Error> {
    if !is_required {
        let without = solver.base.formulas.assume_absent(id, name);
        if solver.has_object(without, used_after)? {
            return Ok(true);
        }
    }
    let owes = Obligation { formulas: [id].into(), queries: [].into(), goal: TRUE };
    let with = owes.after_name(solver, name)?.formulas[0];
    if with == FALSE {
        return Ok(false);
    }
    RemainingContainer::object(used_after).fits_with_child(solver, with)
}

/// Returns the used names that a formula can distinguish from others.
fn relevant_used_names(
    formulas: &FormulaArena,
    id: FormulaId,
    used_names: &[NameId],
) -> Vec<NameId> {
    let mut mentioned = BTreeSet::new();
    for atom in formulas.atoms(id) {
        match atom {
            FormulaAtom::Required(names) => mentioned.extend(names.iter().copied()),
            FormulaAtom::Properties(rules) => {
                for (which, _) in rules.iter() {
                    if !which.matched_patterns.is_empty() || !which.unmatched_patterns.is_empty() {
                        return used_names.to_vec();
                    }
                    mentioned.extend(which.names.iter().flatten());
                    mentioned.extend(&which.excluded_names);
                }
            }
            _ => return used_names.to_vec(),
        }
    }
    used_names.iter().copied().filter(|name| mentioned.contains(name)).collect()
}

/// Returns the name that most atoms mention, required ones first, and whether it is required.
fn most_constrained_property(
    formulas: &FormulaArena,
    id: FormulaId,
    used_names: &[NameId],
) -> Option<(NameId, bool)> {
    let mut counts: BTreeMap<NameId, usize> = BTreeMap::new();
    for atom in formulas.atoms(id) {
        match atom {
            FormulaAtom::Required(names) => {
                names.iter().for_each(|&one| *counts.entry(one).or_default() += 1)
            }
            FormulaAtom::Properties(rules) => {
                for &one in rules.iter().flat_map(|(which, _)| which.names.iter().flatten()) {
                    *counts.entry(one).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    let required = formulas.required_names(id);
    counts.retain(|name, _| !used_names.contains(name));
    let of = |(&name, &count): (&NameId, &usize)| (required.contains(&name), count, name);
    let (is_required, _, name) = counts
        .iter()
        .map(of)
        .max_by_key(|&(is_required, count, name)| (is_required, count, std::cmp::Reverse(name)))?;
    Some((name, is_required))
}
