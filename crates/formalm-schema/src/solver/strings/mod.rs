//! The theory of strings: is a Boolean combination of languages satisfiable?
//!
//! If enumerations bound the formula, their strings are tested one by one, without building an
//! automaton for the combination. Otherwise the automaton of the formula decides.

mod always_viable;
mod enumerations;
pub(in crate::solver) mod fresh_string;
pub(in crate::solver) mod languages;
mod string_classes;

use std::sync::Arc;

use formalm_core::{Error, LazyDfa};

use crate::formula::{FALSE, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::{NodeId, RegexId};
use crate::solver::formula_base::FormulaBase;
use crate::solver::strings::languages::Languages;

pub(in crate::solver) use enumerations::EnumLists;

impl Languages {
    /// Returns `true` if a string satisfies a formula over strings.
    pub(crate) fn contains_string(
        &mut self,
        base: &FormulaBase,
        id: FormulaId,
        text: &str,
    ) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        let Some(language) = self.language(base, id)? else { return Ok(false) };
        let machine = self.automaton(language);
        let read = machine.walk(machine.start(), text.as_bytes())?;
        Ok(read.is_ok_and(|state| machine.is_accepting(state)))
    }

    /// Returns `true` if a name satisfies a formula over strings.
    pub(crate) fn contains_name(
        &mut self,
        base: &FormulaBase,
        id: FormulaId,
        name: NameId,
    ) -> Result<bool, Error> {
        if let Some(tests) = base.schema.names.tests_of_class(name) {
            return Ok(tests.contains(&id));
        }
        let text = base.schema.names.get(name).to_owned();
        self.contains_string(base, id, &text)
    }

    /// Returns `true` if a pattern matches a name.
    pub(crate) fn pattern_matches_name(
        &mut self,
        base: &mut FormulaBase,
        regex: RegexId,
        name: NameId,
    ) -> Result<bool, Error> {
        if let Some(tests) = base.schema.names.tests_of_class(name) {
            let atom = base.formulas.find_atom(&FormulaAtom::InLanguage(regex));
            return Ok(atom.is_some_and(|atom| tests.contains(&atom)));
        }
        if let Some(&known) = self.name_matches.get(&(regex, name)) {
            return Ok(known);
        }
        let formula = base.formulas.atom(FormulaAtom::InLanguage(regex));
        let text = base.schema.names.get(name).to_owned();
        let found = self.contains_string(base, formula, &text)?;
        self.name_matches.insert((regex, name), found);
        Ok(found)
    }

    /// Returns `true` if a selector includes a name.
    pub(crate) fn selects_name(
        &mut self,
        base: &mut FormulaBase,
        which: &NameSelector,
        name: NameId,
    ) -> Result<bool, Error> {
        let listed = match &which.names {
            Some(names) => names.binary_search(&name).is_ok(),
            None => which.excluded_names.binary_search(&name).is_err(),
        };
        if !listed {
            return Ok(false);
        }
        for &regex in &which.matched_patterns {
            if !self.pattern_matches_name(base, regex, name)? {
                return Ok(false);
            }
        }
        for &regex in &which.unmatched_patterns {
            if self.pattern_matches_name(base, regex, name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns what some rules demand of a property's value.
    pub(crate) fn rules_for_name(
        &mut self,
        base: &mut FormulaBase,
        rules: &Arc<[(NameSelector, NodeId)]>,
        name: NameId,
    ) -> Result<FormulaId, Error> {
        let mut all = Vec::new();
        if let Some(index) = self.rule_index.index_for(rules) {
            for place in index.for_name(name) {
                let (which, node) = &rules[place as usize];
                if self.selects_name(base, which, name)? {
                    all.push(base.child(*node));
                }
            }
            return Ok(base.formulas.and(all));
        }
        for (which, node) in rules.iter() {
            if self.selects_name(base, which, name)? {
                all.push(base.child(*node));
            }
        }
        Ok(base.formulas.and(all))
    }

    /// Returns `true` if some string satisfies a formula over strings.
    pub(in crate::solver) fn has_string(
        &mut self,
        base: &mut FormulaBase,
        id: FormulaId,
    ) -> Result<bool, Error> {
        match base.enum_lists(id) {
            Some(lists) => self.has_enum_string(base, id, &lists),
            None if base.is_complement_of_enum(id) => Ok(true),
            None => Ok(self.language(base, id)?.is_some()),
        }
    }

    /// Returns `true` if a string of the enumerations satisfies a formula.
    fn has_enum_string(
        &mut self,
        base: &mut FormulaBase,
        id: FormulaId,
        lists: &EnumLists,
    ) -> Result<bool, Error> {
        self.build_automata(base, id)?;
        for string in lists.iter().flat_map(|strings| strings.iter()) {
            if self.string_satisfies(base, id, string)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds the automata of all languages that are not enumerations.
    pub(in crate::solver) fn build_automata(
        &mut self,
        base: &mut FormulaBase,
        id: FormulaId,
    ) -> Result<(), Error> {
        for atom in base.formulas.atoms(id) {
            if let FormulaAtom::InLanguage(regex) = atom
                && !base.schema.enum_strings.contains_key(&regex)
            {
                let atom = base.formulas.atom(FormulaAtom::InLanguage(regex));
                self.language(base, atom)?;
            }
        }
        Ok(())
    }

    /// Returns `true` if a string satisfies a formula. The automata of its languages must have been
    /// built.
    pub(in crate::solver) fn string_satisfies(
        &self,
        base: &FormulaBase,
        id: FormulaId,
        string: &str,
    ) -> Result<bool, Error> {
        let mut failure = None;
        let holds = base.formulas.evaluate(id, &mut |atom| {
            let FormulaAtom::InLanguage(regex) = atom else { return false };
            if let Some(listed) = base.schema.enum_strings.get(regex) {
                return listed.binary_search_by(|one| one.as_str().cmp(string)).is_ok();
            }
            self.regex_contains(base, *regex, string).unwrap_or_else(|error| {
                failure = Some(error);
                false
            })
        });
        failure.map_or(Ok(holds), Err)
    }

    /// Returns `true` if a string is in a language whose automaton was built.
    fn regex_contains(
        &self,
        base: &FormulaBase,
        regex: RegexId,
        string: &str,
    ) -> Result<bool, Error> {
        let Some(language) = self.existing_language(base, regex) else { return Ok(false) };
        let machine = self.automaton(language);
        let read = machine.walk(machine.start(), string.as_bytes())?;
        Ok(read.is_ok_and(|state| machine.is_accepting(state)))
    }
}
