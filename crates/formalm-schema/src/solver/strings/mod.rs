//! The theory of strings: is a Boolean combination of languages satisfiable?
//!
//! If enumerations bound the formula, their strings are tested one by one, without building an
//! automaton for the combination. Otherwise the automaton of the formula decides.

mod always_viable;
pub(in crate::solver) mod fresh_string;
mod string_classes;

use std::sync::Arc;

use formalm_core::{Error, LazyDfa};
use rustc_hash::FxHashSet;

use crate::formula::{Formula, FormulaAtom, FormulaId};
use crate::interner::CompactMap;
use crate::solver::context::SolverContext;

/// Enumerations whose union contains all strings of a formula.
pub(in crate::solver) type EnumLists = Vec<Arc<[String]>>;

impl SolverContext {
    /// Returns `true` if some string satisfies a formula over strings.
    pub(in crate::solver) fn has_string(&mut self, id: FormulaId) -> Result<bool, Error> {
        match self.enum_lists(id) {
            Some(lists) => self.has_enum_string(id, &lists),
            None if self.is_complement_of_enum(id) => Ok(true),
            None => Ok(self.language(id)?.is_some()),
        }
    }

    /// Returns `true` if a formula only excludes enumerated strings; infinitely many others remain.
    pub(in crate::solver) fn is_complement_of_enum(&self, id: FormulaId) -> bool {
        match self.formulas.get(id) {
            Formula::Not(inner) => self.enum_lists(*inner).is_some(),
            Formula::And(parts) => parts.iter().all(|&part| self.is_complement_of_enum(part)),
            _ => false,
        }
    }

    /// Returns the shortest enumerations that contain all strings of a formula; `None` if it is not
    /// bounded by any.
    pub(in crate::solver) fn enum_lists(&self, id: FormulaId) -> Option<EnumLists> {
        self.enum_lists_memoized(id, &mut CompactMap::default())
    }

    fn enum_lists_memoized(
        &self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, Option<EnumLists>>,
    ) -> Option<EnumLists> {
        let is_small = self.formulas.is_small(id);
        if !is_small && let Some(known) = known.get(&id) {
            return known.clone();
        }
        let lists = match self.formulas.get(id) {
            Formula::False => Some(Vec::new()),
            Formula::Atom(FormulaAtom::InLanguage(regex)) => {
                self.schema.enum_strings.get(regex).map(|strings| vec![Arc::clone(strings)])
            }
            Formula::And(parts) => {
                let lists = parts.iter().filter_map(|&part| self.enum_lists_memoized(part, known));
                lists.min_by_key(|lists| lists.iter().map(|strings| strings.len()).sum::<usize>())
            }
            Formula::Or(parts) | Formula::ExactlyOne(parts) => {
                let mut seen = FxHashSet::default();
                let lists: Option<Vec<EnumLists>> =
                    parts.iter().map(|&part| self.enum_lists_memoized(part, known)).collect();
                // Alternatives with shared operands repeat the same enumerations.
                let is_new = |one: &Arc<[String]>| seen.insert(Arc::as_ptr(one));
                lists.map(|lists| lists.into_iter().flatten().filter(is_new).collect())
            }
            _ => None,
        };
        if !is_small {
            known.insert(id, lists.clone());
        }
        lists
    }

    /// Returns `true` if a string of the enumerations satisfies a formula.
    fn has_enum_string(&mut self, id: FormulaId, lists: &EnumLists) -> Result<bool, Error> {
        self.build_automata(id)?;
        for string in lists.iter().flat_map(|strings| strings.iter()) {
            if self.string_satisfies(id, string)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds the automata of all languages that are not enumerations.
    pub(in crate::solver) fn build_automata(&mut self, id: FormulaId) -> Result<(), Error> {
        for atom in self.atoms(id) {
            if let FormulaAtom::InLanguage(regex) = atom
                && !self.schema.enum_strings.contains_key(&regex)
            {
                let atom = self.formulas.atom(FormulaAtom::InLanguage(regex));
                self.language(atom)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if a string satisfies a formula. The automata of its languages must have been
    /// built.
    pub(in crate::solver) fn string_satisfies(
        &self,
        id: FormulaId,
        string: &str,
    ) -> Result<bool, Error> {
        let mut failure = None;
        let holds = self.formulas.evaluate(id, &mut |atom| {
            let FormulaAtom::InLanguage(regex) = atom else { return false };
            if let Some(listed) = self.schema.enum_strings.get(regex) {
                return listed.binary_search_by(|one| one.as_str().cmp(string)).is_ok();
            }
            self.regex_contains(*regex, string).unwrap_or_else(|error| {
                failure = Some(error);
                false
            })
        });
        failure.map_or(Ok(holds), Err)
    }

    /// Returns `true` if a string is in a language whose automaton was built.
    fn regex_contains(
        &self,
        regex: crate::schema_nodes::RegexId,
        string: &str,
    ) -> Result<bool, Error> {
        let Some(language) = self.existing_language(regex) else { return Ok(false) };
        let machine = self.automaton(language);
        let read = machine.walk(machine.start(), string.as_bytes())?;
        Ok(read.is_ok_and(|state| machine.is_accepting(state)))
    }
}
