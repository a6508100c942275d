//! The property names that may come next in an object.
//!
//! Names that the formulas mention, or that were used already, are decided one by one. All other
//! names fall into classes that the formulas do not distinguish, and one example decides a class.

use formalm_automata::{Error, Machine};

use crate::formula::{Formula, FormulaAtom, FormulaId, TRUE};
use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::machine::LazyTables;
use crate::machine::frame::{
    Frame, NameCandidates, NameOrderId, NextNamesId, ObligationId, QueriesId, UsedNamesId,
};
use crate::machine::reader::cache::{NO_QUERIES, QueryState};
use crate::options::PropertyOrder;
use crate::solver::context::LanguageId;
use crate::solver::{ENOUGH_VALUES, fresh_prefix};

/// Maximum number of implicants of an object's formula for which the allowed names are computed.
/// Chosen, not measured.
const MAX_IMPLICANTS: usize = 64;

/// The viability of a known name, as far as computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameStatus {
    Unknown,
    Allowed,
    Forbidden,
}

/// The names that may come next in an object.
#[derive(Debug)]
pub(crate) struct NextNames {
    pub(crate) obligation: ObligationId,
    pub(crate) used_names: UsedNamesId,
    pub(crate) order: NameOrderId,
    /// The names decided one by one, sorted by their bytes.
    pub(crate) known: Box<[NameId]>,
    status: Box<[NameStatus]>,
    /// The allowed classes of other names, with an example of each.
    classes: Box<[(LanguageId, NameId)]>,
    /// The tests that distinguish names, if they make too many classes to list; see
    /// [`LazyTables::classify_by_tests`].
    pub(crate) tests: Box<[FormulaId]>,
    /// The candidates before the first character of a name.
    pub(crate) start: NameCandidates,
    /// Set if names do not depend on each other: the object has only property rules, required
    /// names, excluded names, and a maximum count.
    pub(crate) independent: bool,
    /// Set if every other name is of an allowed class.
    pub(crate) allows_all_others: bool,
    /// For each class of other names, set if it cannot run out.
    pub(crate) plenty: Box<[bool]>,
}

impl LazyTables {
    /// Returns the tables about the next names of an object.
    pub(crate) fn next_names(
        &mut self,
        obligation: ObligationId,
        used_names: UsedNamesId,
        order: NameOrderId,
    ) -> Result<NextNamesId, Error> {
        if let Some(&known) = self.cache.next_names.get(&(obligation, used_names, order)) {
            return Ok(known);
        }
        let (mut names, tests) = self.mentioned_names(obligation);
        names.extend(self.parts.used_names.get(used_names.0));
        self.core.schema.names.sort(&mut names);
        let independent = self.has_independent_names(obligation);
        let status = vec![NameStatus::Unknown; names.len()].into();
        let start = NameCandidates { from: 0, to: names.len() as u32, classes: NO_QUERIES };
        let classes = [].into();
        let known = names.into();
        let id = NextNamesId(self.name_sets.len() as u32);
        self.name_sets.push(NextNames {
            obligation,
            used_names,
            order,
            known,
            status,
            classes,
            tests: [].into(),
            start,
            independent,
            allows_all_others: false,
            plenty: [].into(),
        });
        self.find_classes(id, &tests)?;
        self.cache.next_names.insert((obligation, used_names, order), id);
        Ok(id)
    }

    /// Returns the tables of an id.
    pub(crate) fn names_at(&self, id: NextNamesId) -> &NextNames {
        &self.name_sets[id.0 as usize]
    }

    /// Returns `true` if names do not depend on each other, see [`NextNames::independent`].
    pub(crate) fn has_independent_names(&self, obligation: ObligationId) -> bool {
        let required = self.parts.obligations.get(obligation.0);
        let formulas = &self.core.formulas;
        let independent = |&id: &FormulaId| match formulas.get(id) {
            Formula::Atom(FormulaAtom::Properties(_) | FormulaAtom::Required(_)) => true,
            _ => {
                formulas.excluded_property(id).is_some()
                    || formulas.max_more_properties(id).is_some()
            }
        };
        required.formulas.len() == 1
            && required.goal == TRUE
            && formulas.conjuncts(required.formulas[0]).iter().all(independent)
    }

    /// Returns the names that the formulas of an object mention, and the tests that distinguish all
    /// others.
    pub(crate) fn mentioned_names(
        &mut self,
        obligation: ObligationId,
    ) -> (Vec<NameId>, Vec<FormulaId>) {
        let (mut names, mut tests) = (Vec::new(), Vec::new());
        let required = self.parts.obligations.get(obligation.0);
        let atoms: Vec<FormulaAtom> =
            required.formulas.iter().flat_map(|&id| self.core.atoms(id)).collect();
        for atom in atoms {
            match atom {
                FormulaAtom::Properties(rules) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten());
                        names.extend(&which.excluded_names);
                        for &regex in which.matched_patterns.iter().chain(&which.unmatched_patterns)
                        {
                            tests.push(self.core.formulas.atom(FormulaAtom::InLanguage(regex)));
                        }
                    }
                }
                FormulaAtom::Required(list) => names.extend(list.iter()),
                FormulaAtom::PropertyNames(language) => tests.push(language),
                _ => {}
            }
        }
        tests.sort_unstable();
        tests.dedup();
        (names, tests)
    }

    /// Finds the allowed classes of other names.
    fn find_classes(&mut self, id: NextNamesId, tests: &[FormulaId]) -> Result<(), Error> {
        let all = match self.core.name_classes_if_few(tests)? {
            Some(all) => all,
            None => match self.unmentioned_names(id)? {
                Some(viable) => return self.classify_by_tests(id, tests, viable),
                None => self.core.name_classes(tests)?,
            },
        };
        let mut classes = Vec::with_capacity(all.len());
        for &class in &all {
            let name = if tests.is_empty() {
                // A name that is like no other.
                UNMENTIONED_NAME
            } else {
                let known = &self.names_at(id).known;
                let taken: Vec<&str> =
                    known.iter().map(|&name| self.core.schema.names.get(name)).collect();
                let Some(text) = self.core.fresh_string(class, &taken)? else { continue };
                self.core.schema.names.intern(&text)
            };
            if self.property_viable(id, name)? {
                classes.push((class, name));
            }
        }
        let start =
            classes.iter().map(|&(class, _)| Some((class, self.core.automaton(class).start())));
        let start: Box<[_]> = start.collect();
        self.name_sets[id.0 as usize].start.classes = self.parts.machines(start);
        self.name_sets[id.0 as usize].allows_all_others = classes.len() == all.len();
        let few = self.names_needed(id) <= ENOUGH_VALUES / 2;
        let mut plenty = Vec::with_capacity(classes.len());
        for &(class, _) in &classes {
            plenty.push(few && self.core.has_many_strings(class)?);
        }
        self.name_sets[id.0 as usize].plenty = plenty.into();
        self.name_sets[id.0 as usize].classes = classes.into();
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
        let Some(language) = self.core.language(viable)? else { return Ok(()) };
        let mut machines = Vec::with_capacity(tests.len() + 1);
        machines.push(Some((language, self.core.automaton(language).start())));
        for &test in tests {
            let test = self.core.language(test)?;
            machines.push(test.map(|test| (test, self.core.automaton(test).start())));
        }
        let plenty =
            self.names_needed(id) <= ENOUGH_VALUES / 2 && self.core.has_many_strings(language)?;
        let classes = self.parts.guarded_machines(machines.into());
        let next_names = &mut self.name_sets[id.0 as usize];
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
        let &NextNames { obligation, used_names, order, independent, .. } = self.names_at(id);
        let required = self.parts.obligations.get(obligation.0).clone();
        let used_names = self.used_names_after(used_names, order, UNMENTIONED_NAME);
        let used_names = self.parts.used_names.get(used_names.0).clone();
        let must = required.total(&mut self.core);
        let (mut implicants, mut are_free) = (Vec::new(), true);
        self.core.search_implicants(must, &mut |_, _| Ok(true), &mut |core, literals| {
            are_free &= implicants.len() < MAX_IMPLICANTS;
            if !are_free {
                return Ok(true);
            }
            match core.names_of_implicant(literals, &used_names)? {
                Some(names) => implicants.push(names),
                None => are_free = false,
            }
            Ok(!are_free)
        })?;
        if !are_free {
            return Ok(None);
        }
        let names = self.core.formulas.or(implicants);
        if independent {
            return Ok(Some(names));
        }
        // Names that can run out depend on those used before.
        let Some(language) = self.core.language(names)? else { return Ok(Some(names)) };
        let are_many =
            self.names_needed(id) <= ENOUGH_VALUES / 2 && self.core.has_many_strings(language)?;
        Ok(are_many.then_some(names))
    }

    /// Returns a number of names that suffices for everything the object requires and a token
    /// reads.
    pub(crate) fn names_needed(&self, id: NextNamesId) -> u64 {
        let &NextNames { obligation, used_names, .. } = self.names_at(id);
        let required = self.parts.obligations.get(obligation.0);
        let atoms = required.formulas.iter().flat_map(|&id| self.core.atoms(id));
        let more =
            atoms.map(|atom| if let FormulaAtom::MinProperties(count) = atom { count } else { 0 });
        let read = self.parts.used_names.get(used_names.0).len() + self.max_token_len;
        more.fold(read as u64, u64::saturating_add)
    }

    /// Returns the number of declared names that can no longer come after `name`.
    pub(crate) fn skipped_by_order(&self, order: NameOrderId, name: NameId) -> usize {
        if self.core.options.property_order == PropertyOrder::Any {
            return 0;
        }
        let declared = self.parts.orders.get(order.0);
        // A name that is not declared comes after all that are.
        declared.iter().position(|&one| one == name).unwrap_or(declared.len())
    }

    /// Returns the names that can no longer come after `name`.
    pub(crate) fn used_names_after(
        &mut self,
        used_names: UsedNamesId,
        order: NameOrderId,
        name: NameId,
    ) -> UsedNamesId {
        if let Some(&known) = self.cache.used_names_after.get(&(used_names, order, name)) {
            return known;
        }
        let skipped_by_order = self.skipped_by_order(order, name);
        let mut after = self.parts.used_names.get(used_names.0).to_vec();
        after.extend((!name.is_symbolic()).then_some(name));
        after.extend(&self.parts.orders.get(order.0)[..skipped_by_order]);
        after.sort_unstable();
        after.dedup();
        let after = UsedNamesId(self.parts.used_names.intern(after.into()));
        self.cache.used_names_after.insert((used_names, order, name), after);
        after
    }

    /// Returns the obligation of an object after a name.
    pub(crate) fn after_name(
        &mut self,
        obligation: ObligationId,
        name: NameId,
    ) -> Result<ObligationId, Error> {
        if let Some(&known) = self.cache.after_name.get(&(obligation, name)) {
            return Ok(known);
        }
        let required = self.parts.obligations.get(obligation.0).clone();
        let after = required.after_name(&mut self.core, name)?;
        let after = self.parts.obligation(after);
        self.cache.after_name.insert((obligation, name), after);
        Ok(after)
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
        let NextNames { known, status, used_names, .. } = self.names_at(id);
        let name = known[at as usize];
        match status[at as usize] {
            NameStatus::Unknown => {}
            found => return Ok(found == NameStatus::Allowed),
        }
        let is_used = self.parts.used_names.get(used_names.0).binary_search(&name).is_ok();
        let viable = !is_used && self.property_viable(id, name)?;
        self.name_sets[id.0 as usize].status[at as usize] =
            if viable { NameStatus::Allowed } else { NameStatus::Forbidden };
        Ok(viable)
    }

    /// Returns the string of a known name.
    pub(crate) fn known_name(&self, id: NextNamesId, at: u32) -> &str {
        self.core.schema.names.get(self.names_at(id).known[at as usize])
    }

    /// Returns the candidates after one more byte of a name, `None` if there are none. `depth`
    /// bytes were read before it.
    pub(crate) fn narrow(
        &mut self,
        id: NextNamesId,
        candidates: NameCandidates,
        depth: usize,
        byte: u8,
        text: impl Fn(&LazyTables) -> Vec<u8>,
    ) -> Result<Option<NameCandidates>, Error> {
        let classes = self.advance_queries(candidates.classes, &[byte])?;
        let mut narrow = NameCandidates { classes, ..candidates };
        if candidates.from < candidates.to {
            let names = &self.core.schema.names;
            let range = &self.names_at(id).known[candidates.from as usize..candidates.to as usize];
            let at = |name: &NameId| names.get(*name).as_bytes().get(depth).copied();
            let before = range.partition_point(|name| at(name) < Some(byte));
            let until = range.partition_point(|name| at(name) <= Some(byte));
            narrow.to = candidates.from + until as u32;
            narrow.from = candidates.from + before as u32;
            if before == until {
                (narrow.from, narrow.to) = (0, 0);
            }
        }
        let viable = self.any_class_viable(id, narrow, || [text(self), vec![byte]].concat())?
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
        for &(class, state) in
            self.parts.queries.get(classes.0).required_machines().iter().flatten()
        {
            // The class of all names cannot run out.
            if from == to || self.core.language_formula(class) == TRUE {
                return Ok(true);
            }
            let read = text();
            let known = (from..to).map(|at| self.known_name(id, at).as_bytes());
            let taken: Vec<&[u8]> = known.filter_map(|name| name.strip_prefix(&read[..])).collect();
            if fresh_prefix(&**self.core.automaton(class), state, &taken)?.is_some() {
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
        let queries = self.parts.queries.get(classes.0);
        let alive: Vec<_> = queries.required_machines().iter().flatten().copied().collect();
        let allows_all_others = self.names_at(id).allows_all_others;
        for (class, state) in alive {
            let is_open = match allows_all_others {
                true => self.core.automaton(class).step(state, b'a')?.is_some(),
                false => self.core.is_always_viable(class, state)?,
            };
            if is_open {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the object after a name, before its colon.
    pub(crate) fn close_name(&mut self, frame: Frame) -> Result<Option<Frame>, Error> {
        let Frame::Name { next_names, text, candidates, .. } = frame else { return Ok(None) };
        let length = self.records.get(text).2 as usize;
        let exact = candidates.from < candidates.to
            && self.known_name(next_names, candidates.from).len() == length;
        let (name, like) = if exact {
            if !self.known_name_viable(next_names, candidates.from)? {
                return Ok(None);
            }
            let name = self.names_at(next_names).known[candidates.from as usize];
            (name, name)
        } else {
            let Some(like) = self.class_example(next_names, candidates) else { return Ok(None) };
            (self.recorded_name(text), like)
        };
        self.object_after_name(frame, (name, like))
    }

    /// Returns the object after `name`, which has the same rules as `like`.
    pub(crate) fn object_after_name(
        &mut self,
        frame: Frame,
        (name, like): (NameId, NameId),
    ) -> Result<Option<Frame>, Error> {
        let Frame::Name { object, next_names, .. } = frame else { return Ok(None) };
        let &NextNames { obligation, used_names, order, .. } = self.names_at(next_names);
        let obligation = self.after_name(obligation, like)?;
        let used_names = self.used_names_after(used_names, order, name);
        let Frame::Object { parent, .. } = *self.frames.get(object.0) else { return Ok(None) };
        let (mode, whitespace) =
            (crate::machine::frame::ContainerState::AfterName, self.gap_start());
        Ok(Some(Frame::Object { obligation, used_names, order, mode, whitespace, parent }))
    }

    /// Returns the example of the class that a name belongs to.
    pub(crate) fn class_example(
        &mut self,
        next_names: NextNamesId,
        candidates: NameCandidates,
    ) -> Option<NameId> {
        let states = self.parts.queries.get(candidates.classes.0);
        let is_end = |one: &QueryState| {
            one.is_some_and(|(text, state)| self.core.automaton(text).is_accepting(state))
        };
        if states.has_guard {
            let (guard, tests) = states.split_first()?;
            if !is_end(guard) {
                return None;
            }
            let tests = self.names_at(next_names).tests.iter().zip(tests);
            let found = tests.filter(|(_, state)| is_end(state)).map(|(&test, _)| test);
            let found: Vec<FormulaId> = found.collect();
            return Some(self.core.schema.names.intern_test_class(&found));
        }
        let (class, _) = states
            .iter()
            .flatten()
            .find(|(class, state)| self.core.automaton(*class).is_accepting(*state))?;
        let found = self.names_at(next_names).classes.iter().find(|(one, _)| one == class);
        found.map(|&(_, name)| name)
    }
}
