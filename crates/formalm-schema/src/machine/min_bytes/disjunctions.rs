//! What alternatives need together with all that is owed beside them.

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::formula::{Atom, F, Form, Formulas};
use crate::machine::Grown;
use crate::machine::min_bytes::Search;
use crate::machine::min_bytes::containers::{Costs, NEVER};
use crate::names::NameId;

/// Ways through alternatives that are gone one by one.
pub(crate) const WAYS: usize = 64;

/// What is to hold together of more members and items.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) parts: Vec<F>,
    /// More that is asked of the values of members that are owed.
    pub(crate) values: Vec<(NameId, F)>,
}

/// One of several things of which one holds.
enum Choice {
    Part(F),
    /// A member comes with such a value.
    Member(NameId, F),
}

impl Grown {
    /// Bytes of the child and of what comes behind it that all this needs together: the least over
    /// so many ways through alternatives, the rest of which count by themselves.
    pub(crate) fn least_of_ways(
        &mut self,
        mut way: Way,
        ways: usize,
        costs: &mut Costs<'_>,
        search: &mut Search,
    ) -> Result<usize, Error> {
        self.take_sole_alternatives(&mut way.parts);
        let fewest = (0..way.parts.len())
            .filter_map(|at| Some((self.count_of_choices(way.parts[at])?, at)))
            .filter(|&(count, _)| count <= ways)
            .min();
        let Some((count, at)) = fewest else { return self.least_of_way(&way, costs, search) };
        let alternatives = way.parts.remove(at);
        let mut least = NEVER;
        for choice in self.choices(alternatives) {
            search.step()?;
            let mut way = way.clone();
            match choice {
                Choice::Part(part) => way.parts.extend(self.core.formulas.conjuncts(part)),
                Choice::Member(name, value) => {
                    let owed = Atom::Owed([name].into());
                    way.parts.push(self.core.formulas.atom(owed));
                    way.values.push((name, value));
                }
            }
            way.parts.sort_unstable();
            way.parts.dedup();
            least = least.min(self.least_of_ways(way, ways / count, costs, search)?);
        }
        Ok(least)
    }

    /// How many things there are of which one holds if a formula does, if they are told.
    fn count_of_choices(&self, id: F) -> Option<usize> {
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

    fn choices(&mut self, id: F) -> Vec<Choice> {
        match self.core.formulas.get(id).clone() {
            Form::Or(list) => list.iter().map(|&part| Choice::Part(part)).collect(),
            Form::One(list) => {
                let mut all = Vec::with_capacity(list.len());
                for &holds in list.iter() {
                    let mut parts = vec![holds];
                    for &other in list.iter().filter(|&&other| other != holds) {
                        parts.push(self.core.formulas.not(other));
                    }
                    all.push(Choice::Part(self.core.formulas.and(parts)));
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
                    all.extend(names.map(|&name| Choice::Member(name, other)));
                }
                all
            }
            _ => Vec::new(),
        }
    }

    /// Takes alternatives of which only one goes with the names that are owed for that one; names of several statements are owed together.
    fn take_sole_alternatives(&mut self, parts: &mut Vec<F>) {
        let formulas = &self.core.formulas;
        let is_told = |part: &F| {
            let form = formulas.get(*part);
            matches!(form, Form::Or(_) | Form::One(_) | Form::Atom(Atom::Owed(_)))
        };
        // One list of names leaves nothing to do.
        if parts.iter().filter(|part| is_told(part)).count() < 2
            && !parts.iter().any(|&part| matches!(formulas.get(part), Form::Or(_) | Form::One(_)))
        {
            return;
        }
        let mut owed: FxHashSet<NameId> = FxHashSet::default();
        let mut at = 0;
        // Read again from the start whenever more is owed.
        while let Some(&part) = parts.get(at) {
            at += 1;
            match formulas.get(part) {
                Form::Atom(Atom::Owed(names)) => {
                    let before = owed.len();
                    owed.extend(names.iter().copied());
                    if owed.len() > before {
                        at = 0;
                    }
                }
                Form::Or(list) | Form::One(list) => {
                    let goes = |&&one: &&F| !contradicts(formulas, one, &owed);
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
            let mut owed: Vec<NameId> = owed.into_iter().collect();
            owed.sort_unstable();
            parts.retain(|part| !is_owed(part));
            parts.push(self.core.formulas.atom(Atom::Owed(owed.into())));
        }
    }
}

/// Whether a formula asks that one of some names, which are owed, does not come.
fn contradicts(formulas: &Formulas, id: F, owed: &FxHashSet<NameId>) -> bool {
    match formulas.get(id) {
        Form::Not(inner) => match formulas.get(*inner) {
            Form::Atom(Atom::Owed(names)) => names.iter().all(|name| owed.contains(name)),
            _ => false,
        },
        Form::And(list) => list.iter().any(|&one| contradicts(formulas, one, owed)),
        _ => false,
    }
}
