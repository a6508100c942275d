//! The set of names that may come next in an object with many overlapping patterns.
//!
//! *n* overlapping patterns can make 2^n classes of names, each with an automaton. But if an object
//! only constrains its values, names and size, then a name may come iff its value is satisfiable.
//! So the set is one Boolean combination of patterns. It is found by branching on patterns whose
//! values conflict; patterns without a conflict are never branched on.

use formalm_automata::{Error, Resource};

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::NodeId;
use crate::solver::ENOUGH_VALUES;
use crate::solver::context::SolverContext;
use crate::solver::objects::ObjectPlan;

/// Maximum number of branches for one object. Chosen, not measured.
const MAX_BRANCHES: usize = 4_096;

/// The patterns chosen to match, and those chosen not to match.
#[derive(Default)]
struct PatternBranch {
    found: Vec<FormulaId>,
    missing: Vec<FormulaId>,
}

impl SolverContext {
    /// Returns the unmentioned names whose value is satisfiable, as a formula over name tests.
    fn names_with_values(
        &mut self,
        rules: impl Iterator<Item = (NameSelector, NodeId)>,
    ) -> Result<FormulaId, Error> {
        let patterned: Vec<(NameSelector, NodeId)> =
            rules.filter(|(which, _)| which.names.is_none()).collect();
        let mut budget = MAX_BRANCHES;
        self.branch_names(&patterned, &mut PatternBranch::default(), &mut budget)
    }

    /// Returns the unmentioned names that a conjunction of literals allows next; `None` if names
    /// depend on each other.
    pub(crate) fn names_of_implicant(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<Option<FormulaId>, Error> {
        let plan = self.object_plan(literals, used_names);
        let required_count = plan.required.len() as u64;
        if !plan.duties.is_empty() {
            return Ok(None);
        }
        if plan.max.is_some_and(|most| most <= required_count || most < plan.min) {
            return Ok(Some(FALSE));
        }
        let is_minimum = |id: &FormulaId| {
            matches!(self.base.formulas.get(*id), Formula::Atom(FormulaAtom::MinProperties(_)))
        };
        let others: Vec<FormulaId> =
            literals.iter().copied().filter(|id| !is_minimum(id)).collect();
        if !self.object_fits(&others, used_names)? {
            return Ok(Some(FALSE));
        }
        if plan.min > required_count + 1 && !self.has_many_names(&plan)? {
            return Ok(None);
        }
        self.names_of_plan(&plan).map(Some)
    }

    /// Returns the names with satisfiable values that satisfy all name constraints.
    fn names_of_plan(&mut self, plan: &ObjectPlan) -> Result<FormulaId, Error> {
        let rules = plan.rules.iter().flat_map(|rules| rules.iter().cloned());
        let mut all = vec![self.names_with_values(rules)?];
        all.extend(&plan.names_in);
        Ok(self.base.formulas.and(all))
    }

    /// Returns `true` if the names with satisfiable values certainly do not run out.
    pub(in crate::solver) fn has_many_names(&mut self, plan: &ObjectPlan) -> Result<bool, Error> {
        let names = self.names_of_plan(plan)?;
        let Some(language) = self.languages.language(&self.base, names)? else { return Ok(false) };
        Ok(plan.min <= ENOUGH_VALUES / 2
            && self.languages.has_many_strings(&self.base, language)?)
    }

    /// Returns the names of a branch whose values are satisfiable. Fails after [`MAX_BRANCHES`].
    fn branch_names(
        &mut self,
        rules: &[(NameSelector, NodeId)],
        branch: &mut PatternBranch,
        budget: &mut usize,
    ) -> Result<FormulaId, Error> {
        self.base.count_step()?;
        *budget = budget.checked_sub(1).ok_or({
            let allowed = MAX_BRANCHES as u64;
            Error::Limit { resource: Resource::Terms, needed: allowed + 1, allowed }
        })?;
        let mut certain = Vec::new();
        let mut possible: Vec<(FormulaId, FormulaId)> = Vec::new();
        for (which, node) in rules {
            let value = self.base.child(*node);
            match self.undecided_test(which, branch) {
                RuleApplies::Never => {}
                RuleApplies::Always => certain.push(value),
                RuleApplies::If(test) => possible.push((value, test)),
            }
        }
        let certain = self.base.formulas.and(certain);
        if !self.has_value(certain)? {
            return Ok(FALSE);
        }
        let all = possible.iter().map(|one| one.0).chain([certain]).collect();
        let all = self.base.formulas.and(all);
        if self.has_value(all)? {
            return Ok(TRUE);
        }
        // Drop rules as long as the rest still conflicts.
        let mut at = 0;
        while at < possible.len() {
            let (value, test) = possible.remove(at);
            let others = possible.iter().map(|one| one.0).chain([certain]).collect();
            let others = self.base.formulas.and(others);
            if self.has_value(others)? {
                possible.insert(at, (value, test));
                at += 1;
            }
        }
        let Some(&(_, test)) = possible.first() else { return Ok(FALSE) };
        branch.found.push(test);
        let with = self.branch_names(rules, branch, budget)?;
        branch.found.pop();
        branch.missing.push(test);
        let without = self.branch_names(rules, branch, budget)?;
        branch.missing.pop();
        if with == without {
            return Ok(with);
        }
        let other = self.base.formulas.not(test);
        let with = self.base.formulas.both(test, with);
        let without = self.base.formulas.both(other, without);
        Ok(self.base.formulas.or(vec![with, without]))
    }

    /// Returns whether a rule applies to the names of a branch, or a test that decides it.
    fn undecided_test(&mut self, which: &NameSelector, branch: &PatternBranch) -> RuleApplies {
        let mut open = None;
        let found = which.matched_patterns.iter().map(|&regex| (regex, true));
        for (regex, is_found) in
            found.chain(which.unmatched_patterns.iter().map(|&regex| (regex, false)))
        {
            let test = self.base.formulas.atom(FormulaAtom::InLanguage(regex));
            let (holds, fails) = match is_found {
                true => (&branch.found, &branch.missing),
                false => (&branch.missing, &branch.found),
            };
            if fails.contains(&test) {
                return RuleApplies::Never;
            }
            if !holds.contains(&test) {
                open.get_or_insert(test);
            }
        }
        open.map_or(RuleApplies::Always, RuleApplies::If)
    }
}

/// The relation of a rule to the names of a branch.
enum RuleApplies {
    Always,
    Never,
    If(FormulaId),
}
