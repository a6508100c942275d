//! Formulas over enumerated strings (`enum`, `const`), decided without automata.

use std::sync::Arc;

use formalm_core::CompactMap;
use rustc_hash::FxHashSet;

use crate::formula::{Formula, FormulaAtom, FormulaId};
use crate::solver::formula_base::FormulaBase;

/// Enumerations whose union contains all strings of a formula.
pub(in crate::solver) type EnumLists = Vec<Arc<[String]>>;

impl FormulaBase {
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

    /// Returns `true` if the language certainly is that of a search pattern, which is always
    /// viable. Decided without looking at states.
    pub(super) fn is_search_pattern(
        &self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, bool>,
    ) -> bool {
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let is_search = match self.formulas.get(id) {
            Formula::Atom(FormulaAtom::InLanguage(regex)) => {
                self.schema.extensible_regexes.contains(regex)
            }
            Formula::And(list) => list.iter().all(|&one| self.is_search_pattern(one, known)),
            Formula::Or(list) => list.iter().any(|&one| self.is_search_pattern(one, known)),
            _ => false,
        };
        known.insert(id, is_search);
        is_search
    }

    /// Returns the truth of a formula over enumerations: first for strings in none of them, then
    /// for each of `strings`, which must be sorted and contain all enumerated strings.
    pub(crate) fn enum_verdicts(&self, id: FormulaId, strings: &[impl AsRef<str>]) -> Box<[bool]> {
        // Strings in no enumeration are equivalent, and there are infinitely many.
        let mut verdicts = vec![self.holds_for_enum_string(id, None); strings.len() + 1];
        for atom in self.formulas.atoms(id) {
            let FormulaAtom::InLanguage(regex) = atom else { continue };
            for string in
                self.schema.enum_strings.get(&regex).into_iter().flat_map(|list| list.iter())
            {
                if let Ok(at) = strings.binary_search_by(|one| one.as_ref().cmp(string)) {
                    verdicts[at + 1] = self.holds_for_enum_string(id, Some(string));
                }
            }
        }
        verdicts.into()
    }

    /// Returns the truth of a formula over enumerations for a string, or for one in none of them.
    fn holds_for_enum_string(&self, id: FormulaId, string: Option<&str>) -> bool {
        self.formulas.evaluate(id, &mut |atom| match (atom, string) {
            (FormulaAtom::InLanguage(regex), Some(string)) => {
                self.schema.enum_strings.get(regex).is_some_and(|list| {
                    list.binary_search_by(|one| one.as_str().cmp(string)).is_ok()
                })
            }
            _ => false,
        })
    }
}
