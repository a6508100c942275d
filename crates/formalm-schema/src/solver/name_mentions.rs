//! What formulas over an object say about property names.
//!
//! An object with hundreds of alternatives is read name by name, and most names concern few of
//! them. What an alternative says about names is therefore computed once: a name that it does not
//! list, and that no rule about all other names applies to, leaves it unchanged.

use std::sync::Arc;

use formalm_core::CompactMap;
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::json::property_names::NameId;
use crate::schema_nodes::{KeywordRule, ResolvedSchema};

/// The names in a formula over an object.
#[derive(Debug, Default)]
pub(crate) struct NameMentions {
    /// The names that atoms list, sorted by id.
    pub(crate) names: Vec<NameId>,
    /// The tests that distinguish all other names, sorted.
    pub(crate) tests: Vec<FormulaId>,
    /// A number of properties that suffices for all lower bounds; saturates.
    pub(crate) min_properties: u64,
    /// The effect of a property whose name is not listed.
    others: OtherNames,
}

/// The formula after a property whose name it does not list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum OtherNames {
    /// The formula itself.
    #[default]
    Unchanged,
    /// Another one.
    Changed,
    /// The formula that never holds.
    Refused,
}

impl NameMentions {
    /// Returns `true` if the formula after a property of this name is the same one.
    pub(crate) fn leaves_unchanged(&self, name: NameId) -> bool {
        self.others == OtherNames::Unchanged && !self.lists(name)
    }

    /// Returns the formula after a property of this name, if it is not listed and the formula,
    /// `id`, stays the same or can no longer hold.
    pub(crate) fn after_other_name(&self, id: FormulaId, name: NameId) -> Option<FormulaId> {
        match self.others {
            OtherNames::Changed => None,
            _ if self.lists(name) => None,
            OtherNames::Unchanged => Some(id),
            OtherNames::Refused => Some(FALSE),
        }
    }

    /// Returns `true` if a name is listed.
    pub(crate) fn lists(&self, name: NameId) -> bool {
        self.names.binary_search(&name).is_ok()
    }

    fn add(&mut self, other: &NameMentions) {
        self.names.extend(&other.names);
        self.tests.extend(&other.tests);
        self.min_properties = self.min_properties.saturating_add(other.min_properties);
        self.others = self.others.max(other.others);
    }

    fn sort(&mut self) {
        self.names.sort_unstable();
        self.names.dedup();
        self.tests.sort_unstable();
        self.tests.dedup();
    }
}

/// The mentions of formulas, as far as computed.
#[derive(Debug, Default)]
pub(crate) struct NameMentionsCache {
    known: CompactMap<FormulaId, Arc<NameMentions>>,
    list_bytes: usize,
}

impl NameMentionsCache {
    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.known.table_bytes() + self.list_bytes
    }

    /// Returns what a formula says about names.
    pub(crate) fn of(&mut self, of: &mut SchemaFormulas<'_>, id: FormulaId) -> &Arc<NameMentions> {
        let at = match self.known.find(&id) {
            Some(at) => at,
            None => {
                let mut found = of.listed_names(id);
                found.sort();
                if of.refuses_other_names(id) {
                    found.others = OtherNames::Refused;
                }
                let bytes = 4 * (found.names.capacity() + found.tests.capacity());
                self.list_bytes += bytes + size_of::<NameMentions>() + 16;
                self.known.position_or_insert_with(id, || Arc::new(found))
            }
        };
        self.known.value(at)
    }

    /// Returns what some formulas together say about names. Names may occur several times.
    pub(crate) fn of_all(
        &mut self,
        of: &mut SchemaFormulas<'_>,
        all: &[FormulaId],
    ) -> NameMentions {
        let (mut found, mut seen) = (NameMentions::default(), FxHashSet::default());
        let mut stack = all.to_vec();
        while let Some(id) = stack.pop() {
            if of.formulas.is_small(id) {
                found.add(&of.listed_names(id));
                continue;
            }
            if !seen.insert(id) {
                continue;
            }
            match of.formulas.get(id) {
                Formula::Not(inner) => stack.push(*inner),
                Formula::And(list) | Formula::Or(list) | Formula::ExactlyOne(list) => {
                    let list = Arc::clone(list);
                    for &one in list.iter() {
                        match of.formulas.is_small(one) {
                            true => {
                                let mentions = Arc::clone(self.of(of, one));
                                found.add(&mentions);
                            }
                            false => stack.push(one),
                        }
                    }
                }
                Formula::False | Formula::True | Formula::Child(_) | Formula::Atom(_) => {}
            }
        }
        found.tests.sort_unstable();
        found.tests.dedup();
        found
    }
}

/// The formulas over the nodes of a schema.
pub(crate) struct SchemaFormulas<'a> {
    pub(crate) formulas: &'a mut FormulaArena,
    pub(crate) schema: &'a ResolvedSchema,
}

impl SchemaFormulas<'_> {
    /// Returns `true` if a conjunct refuses all names that it does not list.
    fn refuses_other_names(&self, id: FormulaId) -> bool {
        self.formulas.conjuncts(id).into_iter().any(|part| {
            let Formula::Atom(FormulaAtom::Properties(rules)) = self.formulas.get(part) else {
                return false;
            };
            rules.iter().any(|(which, node)| {
                which.names.is_none()
                    && which.matched_patterns.is_empty()
                    && which.unmatched_patterns.is_empty()
                    && matches!(self.schema.node(*node).rules[..], [KeywordRule::Never])
            })
        })
    }

    /// Returns what the atoms of a formula say about names, unsorted.
    fn listed_names(&mut self, id: FormulaId) -> NameMentions {
        let (mut found, mut regexes) = (NameMentions::default(), Vec::new());
        self.formulas.visit_atoms(id, &mut |atom| match atom {
            FormulaAtom::Properties(rules) => {
                for (which, _) in rules.iter() {
                    found.names.extend(which.names.iter().flatten());
                    found.names.extend(&which.excluded_names);
                    if which.names.is_none() {
                        found.others = OtherNames::Changed;
                    }
                    regexes.extend(which.matched_patterns.iter().copied());
                    regexes.extend(which.unmatched_patterns.iter().copied());
                }
            }
            FormulaAtom::Required(list) => found.names.extend(list.iter()),
            FormulaAtom::PropertyNames(language) => {
                found.tests.push(*language);
                found.others = OtherNames::Changed;
            }
            FormulaAtom::MinProperties(count) => {
                found.min_properties = found.min_properties.saturating_add(*count);
                found.others = OtherNames::Changed;
            }
            _ => {}
        });
        for regex in regexes {
            found.tests.push(self.formulas.atom(FormulaAtom::InLanguage(regex)));
        }
        found
    }
}
