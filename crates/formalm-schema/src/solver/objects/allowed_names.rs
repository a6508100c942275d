//! The set of names that may come next in an object with many overlapping patterns.
//!
//! *n* overlapping patterns can make 2^n classes of names, each with an automaton. But if an object
//! only constrains its values, names and size, then a name may come iff its value is satisfiable.
//! So the set is one Boolean combination of patterns. It is found by branching on patterns whose
//! values conflict; patterns without a conflict are never branched on.

use formalm_core::{Error, Resource};

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::schema_nodes::NodeId;
use crate::solver::ENOUGH_VALUES;
use crate::solver::context::SolverContext;
use crate::solver::objects::{ObjectPlan, ObjectQuery};

/// Maximum number of branches for one object. Chosen, not measured.
const MAX_BRANCHES: usize = 4_096;

/// The names of one branch: those that match the patterns found and no missing one.
struct NameBranching<'a> {
    solver: &'a mut SolverContext,
    /// The rules that select names by pattern.
    rules: Vec<(NameSelector, NodeId)>,
    /// Patterns chosen to match.
    found: Vec<FormulaId>,
    /// Patterns chosen not to match.
    missing: Vec<FormulaId>,
    /// Branches that may still be opened.
    remaining: usize,
}

impl ObjectQuery<'_> {
    /// Returns the unmentioned names that a conjunction of literals allows next; `None` if names
    /// depend on each other.
    pub(in crate::solver) fn allowed_names(
        &mut self,
        literals: &[FormulaId],
    ) -> Result<Option<FormulaId>, Error> {
        let plan = ObjectPlan::new(&self.solver.base.formulas, literals, self.used_names);
        let required_count = plan.required.len() as u64;
        if !plan.duties.is_empty() {
            return Ok(None);
        }
        if plan.max.is_some_and(|most| most <= required_count || most < plan.min) {
            return Ok(Some(FALSE));
        }
        let is_minimum = |id: &FormulaId| {
            matches!(
                self.solver.base.formulas.get(*id),
                Formula::Atom(FormulaAtom::MinProperties(_))
            )
        };
        let others: Vec<FormulaId> =
            literals.iter().copied().filter(|id| !is_minimum(id)).collect();
        if !self.fits(&others)? {
            return Ok(Some(FALSE));
        }
        if plan.min > required_count + 1 && !plan.has_many_names(self.solver)? {
            return Ok(None);
        }
        plan.allowed_names(self.solver).map(Some)
    }
}

impl ObjectPlan {
    /// Returns the names with satisfiable values that satisfy all name constraints.
    fn allowed_names(&self, solver: &mut SolverContext) -> Result<FormulaId, Error> {
        let rules = self.rules.iter().flat_map(|rules| rules.iter().cloned());
        let rules = rules.filter(|(which, _)| which.names.is_none()).collect();
        let mut branching = NameBranching {
            solver,
            rules,
            found: Vec::new(),
            missing: Vec::new(),
            remaining: MAX_BRANCHES,
        };
        let mut all = vec![branching.run()?];
        all.extend(&self.names_in);
        Ok(solver.base.formulas.and(all))
    }

    /// Returns `true` if the names with satisfiable values certainly do not run out.
    pub(super) fn has_many_names(&self, solver: &mut SolverContext) -> Result<bool, Error> {
        let names = self.allowed_names(solver)?;
        let Some(language) = solver.languages.language(&solver.base, names)? else {
            return Ok(false);
        };
        Ok(self.min <= ENOUGH_VALUES / 2
            && solver.languages.has_many_strings(&solver.base, language)?)
    }
}

impl NameBranching<'_> {
    /// Returns the names of a branch whose values are satisfiable. Fails after [`MAX_BRANCHES`].
    fn run(&mut self) -> Result<FormulaId, Error> {
        self.solver.base.count_step()?;
        self.remaining = self.remaining.checked_sub(1).ok_or({
            let allowed = MAX_BRANCHES as u64;
            Error::Limit { resource: Resource::Terms, needed: allowed + 1, allowed }
        })?;
        let mut certain = Vec::new();
        let mut possible: Vec<(FormulaId, FormulaId)> = Vec::new();
        for at in 0..self.rules.len() {
            let value = self.solver.base.child(self.rules[at].1);
            match self.undecided_test(at) {
                RuleApplies::Never => {}
                RuleApplies::Always => certain.push(value),
                RuleApplies::If(test) => possible.push((value, test)),
            }
        }
        let certain = self.solver.base.formulas.and(certain);
        if !self.solver.has_value(certain)? {
            return Ok(FALSE);
        }
        let all = possible.iter().map(|one| one.0).chain([certain]).collect();
        let all = self.solver.base.formulas.and(all);
        if self.solver.has_value(all)? {
            return Ok(TRUE);
        }
        // Drop rules as long as the rest still conflicts.
        let mut at = 0;
        while at < possible.len() {
            let (value, test) = possible.remove(at);
            let others = possible.iter().map(|one| one.0).chain([certain]).collect();
            let others = self.solver.base.formulas.and(others);
            if self.solver.has_value(others)? {
                possible.insert(at, (value, test));
                at += 1;
            }
        }
        let Some(&(_, test)) = possible.first() else { return Ok(FALSE) };
        self.found.push(test);
        let with = self.run()?;
        self.found.pop();
        self.missing.push(test);
        let without = self.run()?;
        self.missing.pop();
        if with == without {
            return Ok(with);
        }
        let other = self.solver.base.formulas.not(test);
        let with = self.solver.base.formulas.both(test, with);
        let without = self.solver.base.formulas.both(other, without);
        Ok(self.solver.base.formulas.or(vec![with, without]))
    }

    /// Returns whether a rule applies to the names of a branch, or a test that decides it.
    fn undecided_test(&mut self, rule: usize) -> RuleApplies {
        let which = &self.rules[rule].0;
        let mut open = None;
        let found = which.matched_patterns.iter().map(|&regex| (regex, true));
        for (regex, is_found) in
            found.chain(which.unmatched_patterns.iter().map(|&regex| (regex, false)))
        {
            let test = self.solver.base.formulas.atom(FormulaAtom::InLanguage(regex));
            let (holds, fails) = match is_found {
                true => (&self.found, &self.missing),
                false => (&self.missing, &self.found),
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
