//! Lower bounds for disjunctions: the minimum over the branches, each together with all other
//! obligations.
//!
//! Bounding a disjunction by itself would miss what its branches add to the required properties.
//! Conjunctions of disjunctions are therefore expanded, up to [`MAX_BRANCHES`] branches.

use formalm_core::Error;
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, NameSelector};
use crate::json::property_names::NameId;
use crate::machine::min_bytes::containers::{ContainerBound, UNREACHABLE};
use crate::solver::context::SolverContext;

/// Maximum number of branches of one expansion; further disjunctions are bounded separately.
/// Chosen, not measured.
pub(crate) const MAX_BRANCHES: usize = 64;

/// A conjunction of statements about further properties and items.
#[derive(Clone)]
pub(crate) struct BoundBranch {
    pub(crate) parts: Vec<FormulaId>,
    /// Further formulas about the values of required properties.
    pub(crate) values: Vec<(NameId, FormulaId)>,
}

/// One branch of a disjunction.
enum Disjunct {
    Formula(FormulaId),
    /// A property with a value that satisfies the formula.
    Property(NameId, FormulaId),
}

impl BoundBranch {
    /// Replaces disjunctions of which the required names leave one branch by that branch. Merges
    /// all required names.
    fn take_forced_alternatives(&mut self, formulas: &mut FormulaArena) {
        let parts = &mut self.parts;
        let is_relevant = |part: &FormulaId| {
            let form = formulas.get(*part);
            matches!(
                form,
                Formula::Or(_) | Formula::ExactlyOne(_) | Formula::Atom(FormulaAtom::Required(_))
            )
        };
        // A single list of names leaves nothing to do.
        if parts.iter().filter(|part| is_relevant(part)).count() < 2
            && !parts
                .iter()
                .any(|&part| matches!(formulas.get(part), Formula::Or(_) | Formula::ExactlyOne(_)))
        {
            return;
        }
        let mut required: FxHashSet<NameId> = FxHashSet::default();
        let mut at = 0;
        // Starts again whenever more names become required.
        while let Some(&part) = parts.get(at) {
            at += 1;
            match formulas.get(part) {
                Formula::Atom(FormulaAtom::Required(names)) => {
                    let before = required.len();
                    required.extend(names.iter().copied());
                    if required.len() > before {
                        at = 0;
                    }
                }
                Formula::Or(list) | Formula::ExactlyOne(list) => {
                    let goes = |&&one: &&FormulaId| !excludes_required(formulas, one, &required);
                    let mut left = list.iter().filter(goes);
                    if let (Some(&sole), None) = (left.next(), left.next()) {
                        at -= 1;
                        parts.remove(at);
                        parts.extend(formulas.conjuncts(sole));
                    }
                }
                _ => {}
            }
        }
        let is_required = |&part: &FormulaId| {
            matches!(formulas.get(part), Formula::Atom(FormulaAtom::Required(_)))
        };
        if parts.iter().filter(|part| is_required(part)).count() > 1 {
            let mut required: Vec<NameId> = required.into_iter().collect();
            required.sort_unstable();
            parts.retain(|part| !is_required(part));
            parts.push(formulas.atom(FormulaAtom::Required(required.into())));
        }
    }

    /// Returns a formula satisfied by every name whose value may exist.
    pub(crate) fn allowed_names(&self, core: &mut SolverContext) -> Result<FormulaId, Error> {
        let mut all = Vec::new();
        for &part in &self.parts {
            match core.base.formulas.get(part).clone() {
                Formula::Atom(FormulaAtom::PropertyNames(names)) => all.push(names),
                Formula::Atom(FormulaAtom::Properties(rules)) => {
                    for (which, node) in rules.iter().filter(|rule| rule.0.names.is_none()) {
                        if core.base.child(*node) == FALSE {
                            all.push(names_outside(core, which));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(core.base.formulas.and(all))
    }
}

impl ContainerBound<'_, '_> {
    /// Returns a bound on the bytes of the child and of the rest: the minimum over at most
    /// `max_branches` branches.
    pub(crate) fn of_branches(
        &mut self,
        mut branch: BoundBranch,
        max_branches: usize,
    ) -> Result<usize, Error> {
        branch.take_forced_alternatives(&mut self.search.reader.values.core.base.formulas);
        let fewest = (0..branch.parts.len())
            .filter_map(|at| {
                Some((
                    disjunct_count(
                        &self.search.reader.values.core.base.formulas,
                        branch.parts[at],
                    )?,
                    at,
                ))
            })
            .filter(|&(count, _)| count <= max_branches)
            .min();
        let Some((count, at)) = fewest else {
            return self.of_branch(&branch);
        };
        let alternatives = branch.parts.remove(at);
        let mut least = UNREACHABLE;
        for choice in disjuncts(&mut self.search.reader.values.core, alternatives) {
            self.search.budget.step()?;
            let mut branch = branch.clone();
            match choice {
                Disjunct::Formula(part) => branch.parts.extend(self.formulas().conjuncts(part)),
                Disjunct::Property(name, value) => {
                    let required = FormulaAtom::Required([name].into());
                    branch.parts.push(self.search.reader.values.core.base.formulas.atom(required));
                    branch.values.push((name, value));
                }
            }
            branch.parts.sort_unstable();
            branch.parts.dedup();
            least = least.min(self.of_branches(branch, max_branches / count)?);
        }
        Ok(least)
    }
}

/// Returns the number of branches of a formula, `None` if it has none that can be listed.
fn disjunct_count(formulas: &FormulaArena, id: FormulaId) -> Option<usize> {
    match formulas.get(id) {
        Formula::Or(list) | Formula::ExactlyOne(list) => Some(list.len()),
        Formula::Not(inner) => match formulas.get(*inner) {
            Formula::Atom(FormulaAtom::Properties(rules)) => {
                rules.iter().map(|(which, _)| Some(which.names.as_ref()?.len())).sum()
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the branches of a formula.
fn disjuncts(core: &mut SolverContext, id: FormulaId) -> Vec<Disjunct> {
    match core.base.formulas.get(id).clone() {
        Formula::Or(list) => list.iter().map(|&part| Disjunct::Formula(part)).collect(),
        Formula::ExactlyOne(list) => {
            let mut all = Vec::with_capacity(list.len());
            for &holds in list.iter() {
                let mut parts = vec![holds];
                for &other in list.iter().filter(|&&other| other != holds) {
                    parts.push(core.base.formulas.not(other));
                }
                all.push(Disjunct::Formula(core.base.formulas.and(parts)));
            }
            all
        }
        Formula::Not(inner) => {
            let Formula::Atom(FormulaAtom::Properties(rules)) =
                core.base.formulas.get(inner).clone()
            else {
                return Vec::new();
            };
            let mut all = Vec::new();
            for (which, node) in rules.iter() {
                let value = core.base.child(*node);
                let other = core.base.formulas.not(value);
                let names = which.names.iter().flatten();
                all.extend(names.map(|&name| Disjunct::Property(name, other)));
            }
            all
        }
        _ => Vec::new(),
    }
}

/// Returns the names that do not match a pattern rule.
fn names_outside(core: &mut SolverContext, which: &NameSelector) -> FormulaId {
    let (schema, formulas) = (&mut core.base.schema, &mut core.base.formulas);
    let names =
        which.excluded_names.iter().map(|&name| schema.names.get(name).to_owned()).collect();
    let listed = schema.enum_regex(names);
    let mut any = vec![formulas.atom(FormulaAtom::InLanguage(listed))];
    any.extend(
        which.unmatched_patterns.iter().map(|&regex| formulas.atom(FormulaAtom::InLanguage(regex))),
    );
    for &regex in &which.matched_patterns {
        let found = formulas.atom(FormulaAtom::InLanguage(regex));
        any.push(formulas.not(found));
    }
    formulas.or(any)
}

/// Returns `true` if a formula excludes one of the required names.
fn excludes_required(formulas: &FormulaArena, id: FormulaId, required: &FxHashSet<NameId>) -> bool {
    match formulas.get(id) {
        Formula::Not(inner) => match formulas.get(*inner) {
            Formula::Atom(FormulaAtom::Required(names)) => {
                names.iter().all(|name| required.contains(name))
            }
            _ => false,
        },
        Formula::And(list) => list.iter().any(|&one| excludes_required(formulas, one, required)),
        _ => false,
    }
}
