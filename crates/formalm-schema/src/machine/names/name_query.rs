//! Decides which names may come next in an object.

use formalm_core::{Error, LazyDfa};

use crate::formula::{FormulaId, TRUE};
use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::machine::frame::{
    NameCandidates, NameOrderId, NextNamesId, ObligationId, QueriesId, UsedNamesId,
};
use crate::machine::names::{NameStatus, NameTables, NextNames};
use crate::machine::residuals::Residuals;
use crate::machine::residuals::child_start::ChildStart;
use crate::machine::residuals::string_queries::{NO_QUERIES, QueryState, StringQueries};
use crate::schema_nodes::JsonType;
use crate::solver::context::SolverContext;
use crate::solver::name_mentions::NameMentions;
use crate::solver::{ENOUGH_VALUES, RemainingContainer, fresh_prefix};

/// Maximum number of implicants of an object's formula for which the allowed names are computed.
/// Chosen, not measured.
const MAX_IMPLICANTS: usize = 64;

/// Asks which names may come next, and fills the tables.
pub(crate) struct NameQuery<'a> {
    pub(crate) core: &'a mut SolverContext,
    pub(crate) residuals: &'a mut Residuals,
    pub(crate) strings: &'a mut StringQueries,
    pub(crate) tables: &'a mut NameTables,
}

impl NameQuery<'_> {
    /// Returns the tables about the next names of an object.
    pub(crate) fn next_names(
        &mut self,
        obligation: ObligationId,
        used_names: UsedNamesId,
        order: NameOrderId,
    ) -> Result<NextNamesId, Error> {
        if let Some(&known) = self.tables.by_object.get(&(obligation, used_names, order)) {
            return Ok(known);
        }
        let mentions = self.residuals.mentioned_names(self.core, obligation);
        let NameMentions { mut names, tests, min_properties, .. } = mentions;
        names.extend(self.tables.used(used_names));
        self.tables.sort_names(self.core, &mut names);
        let independent = self.residuals.has_independent_names(self.core, obligation);
        let status = vec![NameStatus::Unknown; names.len()].into();
        let start = NameCandidates { from: 0, to: names.len() as u32, classes: NO_QUERIES };
        let classes = [].into();
        let known = names.into();
        let id = NextNamesId(self.tables.sets.len() as u32);
        self.tables.sets.push(NextNames {
            obligation,
            used_names,
            order,
            known,
            status,
            classes,
            tests: [].into(),
            start,
            independent,
            min_properties,
            allows_all_others: false,
            plenty: [].into(),
        });
        self.find_classes(id, &tests)?;
        self.tables.by_object.insert((obligation, used_names, order), id);
        Ok(id)
    }

    /// Returns `true` if some name may come next in the object.
    pub(crate) fn any_viable(&mut self, next_names: NextNamesId) -> Result<bool, Error> {
        let start = self.tables.get(next_names).start;
        Ok(self.any_class_viable(next_names, start, Vec::new)?
            || self.any_known_name_viable(next_names, (start.from, start.to))?)
    }

    /// Finds the allowed classes of other names.
    fn find_classes(&mut self, id: NextNamesId, tests: &[FormulaId]) -> Result<(), Error> {
        let all = match self.core.languages.name_classes_if_few(&mut self.core.base, tests)? {
            Some(all) => all,
            None => match self.unmentioned_names(id)? {
                Some(viable) => return self.classify_by_tests(id, tests, viable),
                None => self.core.languages.name_classes(&mut self.core.base, tests)?,
            },
        };
        let mut classes = Vec::with_capacity(all.len());
        for &class in &all {
            let name = if tests.is_empty() {
                // A name that is like no other.
                UNMENTIONED_NAME
            } else {
                let known = &self.tables.get(id).known;
                let taken: Vec<&str> =
                    known.iter().map(|&name| self.core.base.schema.names.get(name)).collect();
                let Some(text) = self.core.languages.fresh_string(class, &taken)? else { continue };
                self.core.base.schema.names.intern(&text)
            };
            if self.property_viable(id, name)? {
                classes.push((class, name));
            }
        }
        let start = classes
            .iter()
            .map(|&(class, _)| Some((class, self.core.languages.automaton(class).start())));
        let start: Box<[_]> = start.collect();
        self.tables.sets[id.0 as usize].start.classes = self.strings.machines(start);
        self.tables.sets[id.0 as usize].allows_all_others = classes.len() == all.len();
        let few = self.tables.names_needed(id) <= ENOUGH_VALUES / 2;
        let mut plenty = Vec::with_capacity(classes.len());
        for &(class, _) in &classes {
            plenty.push(few && self.core.languages.has_many_strings(&self.core.base, class)?);
        }
        self.tables.sets[id.0 as usize].plenty = plenty.into();
        self.tables.sets[id.0 as usize].classes = classes.into();
        Ok(())
    }

    /// Classifies names by the tests themselves, if these make many classes.
    ///
    /// One automaton reads the allowed names, and one each test. The set of tests that a name
    /// satisfies is known when the name ends, so classes that no name of the input belongs to cost
    /// nothing.
    fn classify_by_tests(
        &mut self,
        id: NextNamesId,
        tests: &[FormulaId],
        viable: FormulaId,
    ) -> Result<(), Error> {
        let Some(language) = self.core.languages.language(&self.core.base, viable)? else {
            return Ok(());
        };
        let mut machines = Vec::with_capacity(tests.len() + 1);
        machines.push(Some((language, self.core.languages.automaton(language).start())));
        for &test in tests {
            let test = self.core.languages.language(&self.core.base, test)?;
            machines.push(test.map(|test| (test, self.core.languages.automaton(test).start())));
        }
        let plenty = self.tables.names_needed(id) <= ENOUGH_VALUES / 2
            && self.core.languages.has_many_strings(&self.core.base, language)?;
        let classes = self.strings.guarded_machines(machines.into());
        let next_names = &mut self.tables.sets[id.0 as usize];
        next_names.start.classes = classes;
        next_names.allows_all_others = viable == TRUE;
        next_names.plenty = [plenty].into();
        next_names.tests = tests.into();
        Ok(())
    }

    /// Returns the allowed names that no formula mentions, as a formula over tests of names; `None`
    /// if names depend on each other.
    pub(crate) fn unmentioned_names(
        &mut self,
        id: NextNamesId,
    ) -> Result<Option<FormulaId>, Error> {
        let &NextNames { obligation, used_names, order, independent, .. } = self.tables.get(id);
        let required = self.residuals.get(obligation).clone();
        let used_names =
            self.tables.used_names_after(self.core, used_names, order, UNMENTIONED_NAME);
        let used_names = self.tables.used(used_names);
        let must = required.total(self.core);
        let (mut implicants, mut are_free) = (Vec::new(), true);
        self.core.search_implicants(must, &mut |_, _| Ok(true), &mut |core, literals| {
            are_free &= implicants.len() < MAX_IMPLICANTS;
            if !are_free {
                return Ok(true);
            }
            match core.names_of_implicant(literals, used_names)? {
                Some(names) => implicants.push(names),
                None => are_free = false,
            }
            Ok(!are_free)
        })?;
        if !are_free {
            return Ok(None);
        }
        let names = self.core.base.formulas.or(implicants);
        if independent {
            return Ok(Some(names));
        }
        // Names that can run out depend on those used before.
        let Some(language) = self.core.languages.language(&self.core.base, names)? else {
            return Ok(Some(names));
        };
        let are_many = self.tables.names_needed(id) <= ENOUGH_VALUES / 2
            && self.core.languages.has_many_strings(&self.core.base, language)?;
        Ok(are_many.then_some(names))
    }

    /// Returns `true` if a known name in the range may come next.
    pub(crate) fn any_known_name_viable(
        &mut self,
        id: NextNamesId,
        (from, to): (u32, u32),
    ) -> Result<bool, Error> {
        for at in from..to {
            if self.known_name_viable(id, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a known name may come next.
    pub(crate) fn known_name_viable(&mut self, id: NextNamesId, at: u32) -> Result<bool, Error> {
        let NextNames { known, status, used_names, .. } = self.tables.get(id);
        let name = known[at as usize];
        match status[at as usize] {
            NameStatus::Unknown => {}
            found => return Ok(found == NameStatus::Allowed),
        }
        let is_used = self.tables.used(*used_names).binary_search(&name).is_ok();
        let viable = !is_used && self.property_viable(id, name)?;
        self.tables.sets[id.0 as usize].status[at as usize] =
            if viable { NameStatus::Allowed } else { NameStatus::Forbidden };
        Ok(viable)
    }

    /// Returns the candidates after one more byte of a name, `None` if there are none. `depth`
    /// bytes were read before it.
    pub(crate) fn narrow(
        &mut self,
        id: NextNamesId,
        candidates: NameCandidates,
        depth: usize,
        byte: u8,
        text: impl Fn() -> Vec<u8>,
    ) -> Result<Option<NameCandidates>, Error> {
        let classes = self.strings.advance(self.core, candidates.classes, &[byte])?;
        let mut narrow = NameCandidates { classes, ..candidates };
        if candidates.from < candidates.to {
            let names = &self.core.base.schema.names;
            let range =
                &self.tables.get(id).known[candidates.from as usize..candidates.to as usize];
            let at = |name: &NameId| names.get(*name).as_bytes().get(depth).copied();
            let before = range.partition_point(|name| at(name) < Some(byte));
            let until = range.partition_point(|name| at(name) <= Some(byte));
            narrow.to = candidates.from + until as u32;
            narrow.from = candidates.from + before as u32;
            if before == until {
                (narrow.from, narrow.to) = (0, 0);
            }
        }
        let viable = self.any_class_viable(id, narrow, || [text(), vec![byte]].concat())?
            || self.any_known_name_viable(id, (narrow.from, narrow.to))?;
        Ok(viable.then_some(narrow))
    }

    /// Returns `true` if a name that is not known may still come.
    pub(crate) fn any_class_viable(
        &self,
        id: NextNamesId,
        candidates: NameCandidates,
        text: impl Fn() -> Vec<u8>,
    ) -> Result<bool, Error> {
        let NameCandidates { from, to, classes } = candidates;
        for &(class, state) in self.strings.get(classes).required_machines().iter().flatten() {
            // The class of all names cannot run out.
            if from == to || self.core.languages.language_formula(class) == TRUE {
                return Ok(true);
            }
            let read = text();
            let known = (from..to).map(|at| self.tables.known_name(self.core, id, at).as_bytes());
            let taken: Vec<&[u8]> = known.filter_map(|name| name.strip_prefix(&read[..])).collect();
            if fresh_prefix(&**self.core.languages.automaton(class), state, &taken)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if an unknown name can continue with any character. The state must be between
    /// two characters.
    pub(crate) fn is_open_name(
        &mut self,
        id: NextNamesId,
        classes: QueriesId,
    ) -> Result<bool, Error> {
        let queries = self.strings.get(classes);
        let alive: Vec<_> = queries.required_machines().iter().flatten().copied().collect();
        let allows_all_others = self.tables.get(id).allows_all_others;
        for (class, state) in alive {
            let is_open = match allows_all_others {
                true => self.core.languages.automaton(class).step(state, b'a')?.is_some(),
                false => self.core.languages.is_always_viable(&self.core.base, class, state)?,
            };
            if is_open {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the example of the class that a name belongs to.
    pub(crate) fn class_example(
        &mut self,
        next_names: NextNamesId,
        candidates: NameCandidates,
    ) -> Option<NameId> {
        let states = self.strings.get(candidates.classes);
        let is_end = |one: &QueryState| {
            one.is_some_and(|(text, state)| self.core.languages.automaton(text).is_accepting(state))
        };
        if states.has_guard {
            let (guard, tests) = states.split_first()?;
            if !is_end(guard) {
                return None;
            }
            let tests = self.tables.get(next_names).tests.iter().zip(tests);
            let found = tests.filter(|(_, state)| is_end(state)).map(|(&test, _)| test);
            let found: Vec<FormulaId> = found.collect();
            return Some(self.core.base.schema.names.intern_test_class(&found));
        }
        let (class, _) = states
            .iter()
            .flatten()
            .find(|(class, state)| self.core.languages.automaton(*class).is_accepting(*state))?;
        let found = self.tables.get(next_names).classes.iter().find(|(one, _)| one == class);
        found.map(|&(_, name)| name)
    }

    /// Returns the obligations of an object and of the property value after a colon.
    pub(crate) fn start_property(
        &mut self,
        obligation: ObligationId,
        used_names: UsedNamesId,
    ) -> Result<Option<(ObligationId, ObligationId)>, Error> {
        if let Some(&known) = self.tables.properties.get(&(obligation, used_names)) {
            return Ok(known);
        }
        let required = self.residuals.get(obligation).clone();
        let names = self.tables.used(used_names);
        let rest = RemainingContainer { json_type: JsonType::Object, used_names: names };
        // The name was accepted only because this value can be read.
        let start = ChildStart::of_viable(required, self.core, rest)?;
        let start = (self.residuals.intern(start.container), self.residuals.intern(start.child));
        self.tables.properties.insert((obligation, used_names), Some(start));
        Ok(Some(start))
    }
}
