//! The names that may come in an object whose patterns make many classes of names.
//!
//! Patterns that overlap make up to 2^n classes, and each would need a machine of its own. Where an
//! object asks nothing but the values of properties, a name may come if its value can exist. So the
//! names that may come are one Boolean combination of the patterns, found by branching on patterns
//! whose values conflict: patterns without a conflict are never branched on.

use std::sync::Arc;

use formalm_automata::{Error, Resource};

use super::Grown;
use super::frame::NamingId;
use super::naming::Naming;
use crate::core::Core;
use crate::formula::{Atom, F, FALSE, Form, TRUE, Which};
use crate::names::PLACEHOLDER;
use crate::node::NodeId;

/// Branches on patterns, in one object.
const MAX_BRANCHES: usize = 4_096;

type Rules = Arc<[(Which, NodeId)]>;

/// The patterns that are found in a name and those that are not, as far as it is chosen.
struct Branch {
    found: Vec<F>,
    missing: Vec<F>,
}

impl Grown {
    /// Returns the names that no formula mentions and whose value can exist, as a formula over
    /// tests of names.
    pub(super) fn names_with_values(&mut self, id: NamingId, tests: &[F]) -> Result<F, Error> {
        let &Naming { owes, gone, order, .. } = self.names_of(id);
        let must = self.parts.owes.get(owes.0).formulas[0];
        if !self.owed_may_follow(must, (gone, order), PLACEHOLDER) {
            return Ok(FALSE);
        }
        let mut rules: Vec<Rules> = Vec::new();
        for part in self.core.formulas.conjuncts(must) {
            if let Form::Atom(Atom::Members(list)) = self.core.formulas.get(part) {
                rules.push(Arc::clone(list));
            }
        }
        let patterned = rules.iter().flat_map(|list| list.iter());
        let mut patterned: Vec<(Which, NodeId)> =
            patterned.filter(|(which, _)| which.names.is_none()).cloned().collect();
        patterned.dedup();
        let mut branch = Branch { found: Vec::new(), missing: Vec::new() };
        let mut left = MAX_BRANCHES + 16 * tests.len();
        self.core.names_beside(&patterned, &mut branch, &mut left)
    }
}

impl Core {
    /// Returns the names of a branch whose value can exist.
    fn names_beside(
        &mut self,
        rules: &[(Which, NodeId)],
        branch: &mut Branch,
        left: &mut usize,
    ) -> Result<F, Error> {
        self.step()?;
        *left = left.checked_sub(1).ok_or({
            let allowed = MAX_BRANCHES as u64;
            Error::Limit { resource: Resource::Terms, needed: allowed + 1, allowed }
        })?;
        let mut certain = Vec::new();
        let mut possible: Vec<(F, F)> = Vec::new();
        for (which, node) in rules {
            let value = self.child(*node);
            match self.open_test(which, branch) {
                Applies::Never => {}
                Applies::Always => certain.push(value),
                Applies::If(test) => possible.push((value, test)),
            }
        }
        let certain = self.formulas.and(certain);
        if !self.some_value(certain)? {
            return Ok(FALSE);
        }
        let all = possible.iter().map(|one| one.0).chain([certain]).collect();
        let all = self.formulas.and(all);
        if self.some_value(all)? {
            return Ok(TRUE);
        }
        // Leaves out rules as long as the others still conflict.
        let mut at = 0;
        while at < possible.len() {
            let (value, test) = possible.remove(at);
            let others = possible.iter().map(|one| one.0).chain([certain]).collect();
            let others = self.formulas.and(others);
            if self.some_value(others)? {
                possible.insert(at, (value, test));
                at += 1;
            }
        }
        let Some(&(_, test)) = possible.first() else { return Ok(FALSE) };
        branch.found.push(test);
        let with = self.names_beside(rules, branch, left)?;
        branch.found.pop();
        branch.missing.push(test);
        let without = self.names_beside(rules, branch, left)?;
        branch.missing.pop();
        if with == without {
            return Ok(with);
        }
        let other = self.formulas.not(test);
        let with = self.formulas.both(test, with);
        let without = self.formulas.both(other, without);
        Ok(self.formulas.or(vec![with, without]))
    }

    /// Returns whether a rule applies to the names of a branch, or a test that says so.
    fn open_test(&mut self, which: &Which, branch: &Branch) -> Applies {
        let mut open = None;
        let found = which.found.iter().map(|&regex| (regex, true));
        for (regex, is_found) in found.chain(which.missing.iter().map(|&regex| (regex, false))) {
            let test = self.formulas.atom(Atom::In(regex));
            let (holds, fails) = match is_found {
                true => (&branch.found, &branch.missing),
                false => (&branch.missing, &branch.found),
            };
            if fails.contains(&test) {
                return Applies::Never;
            }
            if !holds.contains(&test) {
                open.get_or_insert(test);
            }
        }
        open.map_or(Applies::Always, Applies::If)
    }
}

/// Whether a rule applies to names.
enum Applies {
    Always,
    Never,
    If(F),
}
