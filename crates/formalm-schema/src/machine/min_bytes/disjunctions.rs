//! What alternatives need together with all that is owed beside them.

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::formula::{Atom, F, Form, Formulas};
use crate::machine::LazyTables;
use crate::machine::min_bytes::SearchBudget;
use crate::machine::min_bytes::containers::{ChildCosts, UNREACHABLE};
use crate::names::NameId;

/// Ways through alternatives that are gone one by one.
pub(crate) const MAX_BRANCHES: usize = 64;

/// What is to hold together of more members and items.
#[derive(Clone)]
pub(crate) struct Branch {
    pub(crate) parts: Vec<F>,
    /// More that is asked of the values of members that are owed.
    pub(crate) values: Vec<(NameId, F)>,
}

/// One of several things of which one holds.
enum Disjunct {
    Formula(F),
    /// A member comes with such a value.
    Property(NameId, F),
}

impl LazyTables {
    /// Bytes of the child and of what comes behind it that all this needs together: the least over
    /// so many ways through alternatives, the rest of which count by themselves.
    pub(crate) fn min_bytes_of_branches(
        &mut self,
        mut branch: Branch,
        max_branches: usize,
        costs: &mut ChildCosts<'_>,
        budget: &mut SearchBudget,
    ) -> Result<usize, Error> {
        self.take_forced_alternatives(&mut branch.parts);
        let fewest = (0..branch.parts.len())
            .filter_map(|at| Some((self.disjunct_count(branch.parts[at])?, at)))
            .filter(|&(count, _)| count <= max_branches)
            .min();
        let Some((count, at)) = fewest else {
            return self.min_bytes_of_branch(&branch, costs, budget);
        };
        let alternatives = branch.parts.remove(at);
        let mut least = UNREACHABLE;
        for choice in self.disjuncts(alternatives) {
            budget.step()?;
            let mut branch = branch.clone();
            match choice {
                Disjunct::Formula(part) => branch.parts.extend(self.core.formulas.conjuncts(part)),
                Disjunct::Property(name, value) => {
                    let required = Atom::Owed([name].into());
                    branch.parts.push(self.core.formulas.atom(required));
                    branch.values.push((name, value));
                }
            }
            branch.parts.sort_unstable();
            branch.parts.dedup();
            least = least.min(self.min_bytes_of_branches(
                branch,
                max_branches / count,
                costs,
                budget,
            )?);
        }
        Ok(least)
    }

    /// How many things there are of which one holds if a formula does, if they are told.
    fn disjunct_count(&self, id: F) -> Option<usize> {
        match self.core.formulas.get(id) {
            Form::Or(list) | Form::One(list) => Some(list.len()),
            Form::Not(inner) => match self.core.formulas.get(*inner) {
                Form::Atom(Atom::Members(rules)) => {
                    rules.iter().map(|(which, _)| Some(which.names.as_ref()?.len())).sum()
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn disjuncts(&mut self, id: F) -> Vec<Disjunct> {
        match self.core.formulas.get(id).clone() {
            Form::Or(list) => list.iter().map(|&part| Disjunct::Formula(part)).collect(),
            Form::One(list) => {
                let mut all = Vec::with_capacity(list.len());
                for &holds in list.iter() {
                    let mut parts = vec![holds];
                    for &other in list.iter().filter(|&&other| other != holds) {
                        parts.push(self.core.formulas.not(other));
                    }
                    all.push(Disjunct::Formula(self.core.formulas.and(parts)));
                }
                all
            }
            Form::Not(inner) => {
                let Form::Atom(Atom::Members(rules)) = self.core.formulas.get(inner).clone() else {
                    return Vec::new();
                };
                let mut all = Vec::new();
                for (which, node) in rules.iter() {
                    let value = self.core.child(*node);
                    let other = self.core.formulas.not(value);
                    let names = which.names.iter().flatten();
                    all.extend(names.map(|&name| Disjunct::Property(name, other)));
                }
                all
            }
            _ => Vec::new(),
        }
    }

    /// Takes alternatives of which only one goes with the names that are owed for that one; names of several statements are owed together.
    fn take_forced_alternatives(&mut self, parts: &mut Vec<F>) {
        let formulas = &self.core.formulas;
        let is_distinguished = |part: &F| {
            let form = formulas.get(*part);
            matches!(form, Form::Or(_) | Form::One(_) | Form::Atom(Atom::Owed(_)))
        };
        // One list of names leaves nothing to do.
        if parts.iter().filter(|part| is_distinguished(part)).count() < 2
            && !parts.iter().any(|&part| matches!(formulas.get(part), Form::Or(_) | Form::One(_)))
        {
            return;
        }
        let mut required: FxHashSet<NameId> = FxHashSet::default();
        let mut at = 0;
        // Read again from the start whenever more is owed.
        while let Some(&part) = parts.get(at) {
            at += 1;
            match formulas.get(part) {
                Form::Atom(Atom::Owed(names)) => {
                    let before = required.len();
                    required.extend(names.iter().copied());
                    if required.len() > before {
                        at = 0;
                    }
                }
                Form::Or(list) | Form::One(list) => {
                    let goes = |&&one: &&F| !excludes_required(formulas, one, &required);
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
        let is_owed = |&part: &F| matches!(formulas.get(part), Form::Atom(Atom::Owed(_)));
        if parts.iter().filter(|part| is_owed(part)).count() > 1 {
            let mut required: Vec<NameId> = required.into_iter().collect();
            required.sort_unstable();
            parts.retain(|part| !is_owed(part));
            parts.push(self.core.formulas.atom(Atom::Owed(required.into())));
        }
    }
}

/// Whether a formula asks that one of some names, which are owed, does not come.
fn excludes_required(formulas: &Formulas, id: F, required: &FxHashSet<NameId>) -> bool {
    match formulas.get(id) {
        Form::Not(inner) => match formulas.get(*inner) {
            Form::Atom(Atom::Owed(names)) => names.iter().all(|name| required.contains(name)),
            _ => false,
        },
        Form::And(list) => list.iter().any(|&one| excludes_required(formulas, one, required)),
        _ => false,
    }
}
