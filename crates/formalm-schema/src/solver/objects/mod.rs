//! The theory of objects: is a conjunction of object atoms satisfiable?
//!
//! Properties are independent except through names and counts. So the search chooses absent and
//! required properties, then a witness for each negated atom (a property that breaks a rule, or has
//! a name outside of a language), and then fills up to the minimum size.

mod allowed_names;
pub(in crate::solver) mod property_rule_index;
mod property_search;
mod property_split;

use std::sync::Arc;

use formalm_core::Error;

use crate::formula::{FALSE, FormulaArena, FormulaAtom, FormulaId, NameSelector};
use crate::json::property_names::NameId;
use crate::schema_nodes::NodeId;
use crate::solver::SolverTimer;
use crate::solver::context::SolverContext;
use crate::solver::objects::property_search::PropertySearch;

/// Steps of the assignment of witnesses before the search splits on properties instead. Twelve
/// witnesses over ten names have 10^12 assignments. Chosen, not measured.
const DUTY_STEPS: u64 = 500;

/// A demand on at least one property.
#[derive(Clone)]
pub(in crate::solver) enum WitnessDuty {
    /// The property violates one of these rules.
    BreaksRules(Arc<[(NameSelector, NodeId)]>),
    /// The property's name is not in this language.
    NameOutside(FormulaId),
}

/// A conjunction of atoms about the rest of an object.
#[derive(Default)]
pub(in crate::solver) struct ObjectPlan {
    pub(in crate::solver) rules: Vec<Arc<[(NameSelector, NodeId)]>>,
    pub(in crate::solver) names_in: Vec<FormulaId>,
    /// Sorted.
    pub(in crate::solver) required: Vec<NameId>,
    /// Lists of names; of each list at least one must be absent.
    absent_choices: Vec<Arc<[NameId]>>,
    pub(in crate::solver) min: u64,
    pub(in crate::solver) max: Option<u64>,
    pub(in crate::solver) duties: Vec<WitnessDuty>,
    /// Names mentioned by any atom, sorted.
    mentioned: Vec<NameId>,
    /// Tests that distinguish the names that are not mentioned.
    tests: Vec<FormulaId>,
}

/// A query for the properties that an object can still get.
pub(in crate::solver) struct ObjectQuery<'a> {
    pub(in crate::solver) solver: &'a mut SolverContext,
    /// Names that can no longer be used.
    pub(in crate::solver) used_names: &'a [NameId],
}

impl ObjectQuery<'_> {
    /// Returns `true` if further properties can satisfy a formula over object atoms. Fails if a
    /// limit is exceeded.
    pub(in crate::solver) fn decide(&mut self, id: FormulaId) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if id == FALSE || self.solver.base.formulas.holds_at_end(id) {
            return Ok(id != FALSE);
        }
        let parts = self.solver.base.formulas.conjuncts(id);
        if parts.iter().all(|&part| self.solver.base.formulas.literal(part).is_some()) {
            self.solver.base.count_step()?;
            return self.fits(&parts);
        }
        if self.solver.answers.splits > 0 {
            return self.decide_memoized(id);
        }
        self.search(id)
    }

    /// Returns `true` if properties can satisfy a formula that is not a conjunction of literals.
    pub(super) fn search(&mut self, id: FormulaId) -> Result<bool, Error> {
        let used_names = self.used_names;
        let fits = |solver: &mut SolverContext, literals: &[FormulaId]| {
            ObjectQuery { solver, used_names }.may_fit(literals)
        };
        let (patience, mut gave_up) = (self.solver.answers.implicant_steps(), false);
        let found =
            self.solver.find_implicant(id, patience, &mut { fits }, &mut |solver, literals| {
                let found = ObjectQuery { solver, used_names }.fits_quickly(literals)?;
                gave_up |= found.is_none();
                Ok(found.unwrap_or(true))
            })?;
        if let Some(found) = found.filter(|_| !gave_up) {
            return Ok(found);
        }
        match self.split_by_property(id)? {
            Some(found) => Ok(found),
            None => self.solver.search_implicants(id, &mut { fits }, &mut |solver, literals| {
                ObjectQuery { solver, used_names }.fits(literals)
            }),
        }
    }

    /// Returns `false` if a required property has no value. Then no larger conjunction fits either.
    pub(super) fn may_fit(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        let plan = ObjectPlan::new(&self.solver.base.formulas, literals, self.used_names);
        for &name in &plan.required {
            if self.used_names.contains(&name) {
                return Ok(false);
            }
            let value = plan.property_value(self.solver, name)?;
            if !self.solver.has_value(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if properties can satisfy a conjunction of literals.
    pub(in crate::solver) fn fits(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        if let Some(found) = self.fits_quickly(literals)? {
            return Ok(found);
        }
        let all = self.solver.base.formulas.and(literals.to_vec());
        if let Some(found) = self.split_by_property(all)? {
            return Ok(found);
        }
        let before = self.solver.answers.duty_steps.take();
        let found = self.search_properties(literals);
        self.solver.answers.duty_steps = before;
        found
    }

    /// Returns `true` if properties can satisfy a conjunction of literals; `None` if there are too
    /// many assignments of witnesses.
    fn fits_quickly(&mut self, literals: &[FormulaId]) -> Result<Option<bool>, Error> {
        let before = self.solver.answers.duty_steps.replace(DUTY_STEPS);
        let found = self.search_properties(literals);
        let remaining = std::mem::replace(&mut self.solver.answers.duty_steps, before);
        let found = found?;
        Ok((found || remaining != Some(0)).then_some(found))
    }

    /// Searches for properties that satisfy a conjunction of literals.
    fn search_properties(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        let mut plan = ObjectPlan::new(&self.solver.base.formulas, literals, self.used_names);
        // Without other demands, the required properties decide.
        if !plan.duties.is_empty() || plan.min > plan.required.len() as u64 {
            plan.collect_mentioned(&mut self.solver.base.formulas);
        }
        PropertySearch::new(self.solver, &plan, self.used_names).run()
    }
}

impl ObjectPlan {
    /// Collects the literals of a conjunction.
    pub(super) fn new(
        formulas: &FormulaArena,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> ObjectPlan {
        let mut plan = ObjectPlan::default();
        for &literal in literals {
            if let Some((atom, positive)) = formulas.literal(literal) {
                plan.add(atom.clone(), positive, used_names);
            }
        }
        plan.required.sort_unstable();
        plan.required.dedup();
        plan
    }

    /// Collects the names and tests that the plan mentions.
    fn collect_mentioned(&mut self, formulas: &mut FormulaArena) {
        let mut tests: Vec<FormulaId> = self.names_in.clone();
        self.mentioned.extend(&self.required);
        let mut broken = Vec::new();
        for duty in &self.duties {
            match duty {
                WitnessDuty::BreaksRules(rules) => broken.push(rules),
                WitnessDuty::NameOutside(names) => tests.push(*names),
            }
        }
        for (which, _) in self.rules.iter().chain(broken).flat_map(|rules| rules.iter()) {
            self.mentioned.extend(which.names.iter().flatten());
            self.mentioned.extend(&which.excluded_names);
            for &regex in which.matched_patterns.iter().chain(&which.unmatched_patterns) {
                tests.push(formulas.atom(FormulaAtom::InLanguage(regex)));
            }
        }
        self.mentioned.sort_unstable();
        self.mentioned.dedup();
        tests.sort_unstable();
        tests.dedup();
        self.tests = tests;
    }

    /// Returns the formula of a property's value; [`FALSE`] if the property is forbidden.
    fn property_value(
        &self,
        SolverContext { base, languages, .. }: &mut SolverContext,
        name: NameId,
    ) -> Result<FormulaId, Error> {
        for &names in &self.names_in {
            let string = base.schema.names.get(name).to_owned();
            if !languages.contains_string(base, names, &string)? {
                return Ok(FALSE);
            }
        }
        let mut all = Vec::new();
        for rules in &self.rules {
            all.push(languages.rules_for_name(base, rules, name)?);
        }
        Ok(base.formulas.and(all))
    }

    fn add(&mut self, atom: FormulaAtom, positive: bool, used_names: &[NameId]) {
        match (atom, positive) {
            (FormulaAtom::Properties(rules), true) => self.rules.push(rules),
            (FormulaAtom::Properties(rules), false) => {
                self.duties.push(WitnessDuty::BreaksRules(rules))
            }
            (FormulaAtom::PropertyNames(names), true) => self.names_in.push(names),
            (FormulaAtom::PropertyNames(names), false) => {
                self.duties.push(WitnessDuty::NameOutside(names))
            }
            (FormulaAtom::Required(names), true) => self.required.extend(names.iter()),
            // A name that was passed over is absent already.
            (FormulaAtom::Required(names), false)
                if names.iter().any(|name| used_names.contains(name)) => {}
            (FormulaAtom::Required(names), false) => self.absent_choices.push(names),
            (FormulaAtom::MinProperties(count), true) => self.min = self.min.max(count),
            (FormulaAtom::MinProperties(count), false) => {
                let most = count.saturating_sub(1);
                self.max = Some(self.max.map_or(most, |so_far| so_far.min(most)));
            }
            _ => {}
        }
    }
}
