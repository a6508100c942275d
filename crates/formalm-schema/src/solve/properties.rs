//! Whether an object exists, by its properties one after the other.
//!
//! Alternatives within alternatives have far more implicants than a property has values that they
//! tell apart. So the property that most of them speak of is decided first, as if it were read
//! first: whether it is there, and which of the subschemas its value satisfies. What is left of the
//! formula is mostly much smaller.

use std::collections::BTreeMap;

use formalm_automata::Error;

use super::Rest;
use crate::core::Core;
use crate::formula::{Atom, F, FALSE, TRUE};
use crate::machine::Owes;
use crate::names::NameId;
use crate::node::Type;

impl Core {
    /// Returns whether properties that can still come satisfy a formula, by deciding the one that
    /// most of its atoms name; `None` if they name none.
    pub(super) fn split_by_property(
        &mut self,
        id: F,
        gone: &[NameId],
    ) -> Result<Option<bool>, Error> {
        let Some((name, is_required)) = self.most_named(id, gone) else { return Ok(None) };
        let mut passed = gone.to_vec();
        passed.push(name);
        passed.sort_unstable();
        if !is_required {
            let without = self.if_absent(id, name);
            if self.some_object(without, &passed)? {
                return Ok(Some(true));
            }
        }
        let owes = Owes { formulas: [id].into(), asked: [].into(), goal: TRUE };
        let with = self.after_name(&owes, name)?.formulas[0];
        if with == FALSE {
            return Ok(Some(false));
        }
        let rest = Rest { of: Type::Object, gone: &passed };
        self.some_child_and_rest(with, rest).map(Some)
    }

    /// Returns the property that most atoms name, required ones first, and whether it is required.
    fn most_named(&self, id: F, gone: &[NameId]) -> Option<(NameId, bool)> {
        let mut counts: BTreeMap<NameId, usize> = BTreeMap::new();
        for atom in self.atoms(id) {
            match atom {
                Atom::Owed(names) => {
                    names.iter().for_each(|&one| *counts.entry(one).or_default() += 1)
                }
                Atom::Members(rules) => {
                    for &one in rules.iter().flat_map(|(which, _)| which.names.iter().flatten()) {
                        *counts.entry(one).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        let required = self.required_names(id);
        counts.retain(|name, _| !gone.contains(name));
        let of = |(&name, &count): (&NameId, &usize)| (required.contains(&name), count, name);
        let (is_required, _, name) =
            counts.iter().map(of).max_by_key(|&(is_required, count, name)| {
                (is_required, count, std::cmp::Reverse(name))
            })?;
        Some((name, is_required))
    }
}
