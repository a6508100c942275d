//! The theory of objects: is a conjunction of object atoms satisfiable?
//!
//! Properties are independent except through names and counts. So the search chooses absent and
//! required properties, then a witness for each negated atom (a property that breaks a rule, or has
//! a name outside of a language), and then fills up to the minimum size.

mod allowed_names;
pub(in crate::solver) mod property_rule_index;
mod property_split;

use std::collections::BTreeMap;
use std::sync::Arc;

use formalm_automata::Error;

use super::{ENOUGH_VALUES, SolverTimer};
use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::NodeId;
use crate::solver::context::{LanguageId, SolverContext};

/// Steps of the assignment of witnesses before the search splits on properties instead. Twelve
/// witnesses over ten names have 10^12 assignments. Chosen, not measured.
const DUTY_STEPS: u64 = 500;

/// Maximum number of cached fresh names; the cache is cleared beyond it. Chosen, not measured.
const MAX_FRESH: usize = 10_000;

/// Maximum number of names to differ from, for a fresh name to be cached. Chosen, not measured.
const MAX_TAKEN: usize = 256;

/// Names copied that count as one step. Chosen, not measured.
const NAMES_PER_STEP: usize = 64;

/// Required names visited that count as one step. Chosen, not measured.
const REQUIRED_PER_STEP: usize = 256;

/// Fresh names of a class that are taken before its size is examined. Chosen, not measured.
const FEW_NAMES: usize = 16;

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

/// The properties chosen so far, with the formulas of their values.
type ChosenProperties = BTreeMap<NameId, FormulaId>;

impl SolverContext {
    /// Returns `true` if further properties can satisfy a formula over object atoms. Fails if a
    /// limit is exceeded.
    pub(crate) fn has_object(
        &mut self,
        id: FormulaId,
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        if id == FALSE || self.base.formulas.holds_at_end(id) {
            return Ok(id != FALSE);
        }
        let parts = self.base.formulas.conjuncts(id);
        if parts.iter().all(|&part| self.base.formulas.is_literal(part)) {
            self.base.count_step()?;
            return self.object_fits(&parts, used_names);
        }
        if self.answers.splits > 0 {
            return self.has_object_memoized(id, used_names);
        }
        self.search_object(id, used_names)
    }

    /// Returns `true` if properties can satisfy a formula that is not a conjunction of literals.
    pub(in crate::solver) fn search_object(
        &mut self,
        id: FormulaId,
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        let fits = |solver: &mut SolverContext, literals: &[FormulaId]| {
            solver.object_may_fit(literals, used_names)
        };
        let (patience, mut gave_up) = (self.answers.implicant_steps(), false);
        let found = self.find_implicant(id, patience, &mut { fits }, &mut |solver, literals| {
            let found = solver.object_fits_quickly(literals, used_names)?;
            gave_up |= found.is_none();
            Ok(found.unwrap_or(true))
        })?;
        if let Some(found) = found.filter(|_| !gave_up) {
            return Ok(found);
        }
        match self.split_by_property(id, used_names)? {
            Some(found) => Ok(found),
            None => self.search_implicants(id, &mut { fits }, &mut |solver, literals| {
                solver.object_fits(literals, used_names)
            }),
        }
    }

    /// Returns `false` if a required property has no value. Then no larger conjunction fits either.
    pub(in crate::solver) fn object_may_fit(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        let plan = self.object_plan(literals, used_names);
        for &name in &plan.required {
            if used_names.contains(&name) {
                return Ok(false);
            }
            let value = self.property_value(&plan, name)?;
            if !self.has_value(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if properties can satisfy a conjunction of literals.
    pub(crate) fn object_fits(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        if let Some(found) = self.object_fits_quickly(literals, used_names)? {
            return Ok(found);
        }
        let all = self.base.formulas.and(literals.to_vec());
        if let Some(found) = self.split_by_property(all, used_names)? {
            return Ok(found);
        }
        let before = self.answers.duty_steps.take();
        let found = self.search_properties(literals, used_names);
        self.answers.duty_steps = before;
        found
    }

    /// Returns `true` if properties can satisfy a conjunction of literals; `None` if there are too
    /// many assignments of witnesses.
    fn object_fits_quickly(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<Option<bool>, Error> {
        let before = self.answers.duty_steps.replace(DUTY_STEPS);
        let found = self.search_properties(literals, used_names);
        let remaining = std::mem::replace(&mut self.answers.duty_steps, before);
        let found = found?;
        Ok((found || remaining != Some(0)).then_some(found))
    }

    /// Searches for properties that satisfy a conjunction of literals.
    fn search_properties(
        &mut self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        let mut plan = self.object_plan(literals, used_names);
        // Without other demands, the required properties decide.
        if !plan.duties.is_empty() || plan.min > plan.required.len() as u64 {
            self.collect_mentioned(&mut plan);
        }
        self.choose_absent(&plan, 0, &mut Vec::new(), used_names)
    }

    /// Collects the literals of a conjunction.
    pub(in crate::solver) fn object_plan(
        &self,
        literals: &[FormulaId],
        used_names: &[NameId],
    ) -> ObjectPlan {
        let mut plan = ObjectPlan::default();
        for &literal in literals {
            let (atom, positive) = match self.base.formulas.get(literal) {
                Formula::Atom(atom) => (atom.clone(), true),
                Formula::Not(inner) => match self.base.formulas.get(*inner) {
                    Formula::Atom(atom) => (atom.clone(), false),
                    _ => continue,
                },
                _ => continue,
            };
            plan.add(atom, positive, used_names);
        }
        plan.required.sort_unstable();
        plan.required.dedup();
        plan
    }

    /// Collects the names and tests that the plan mentions.
    fn collect_mentioned(&mut self, plan: &mut ObjectPlan) {
        let mut tests: Vec<FormulaId> = plan.names_in.clone();
        plan.mentioned.extend(&plan.required);
        let mut broken = Vec::new();
        for duty in &plan.duties {
            match duty {
                WitnessDuty::BreaksRules(rules) => broken.push(rules),
                WitnessDuty::NameOutside(names) => tests.push(*names),
            }
        }
        for (which, _) in plan.rules.iter().chain(broken).flat_map(|rules| rules.iter()) {
            plan.mentioned.extend(which.names.iter().flatten());
            plan.mentioned.extend(&which.excluded_names);
            for &regex in which.matched_patterns.iter().chain(&which.unmatched_patterns) {
                tests.push(self.base.formulas.atom(FormulaAtom::InLanguage(regex)));
            }
        }
        plan.mentioned.sort_unstable();
        plan.mentioned.dedup();
        tests.sort_unstable();
        tests.dedup();
        plan.tests = tests;
    }

    /// Chooses an absent name of each list, then continues with the required names.
    fn choose_absent(
        &mut self,
        plan: &ObjectPlan,
        at: usize,
        absent: &mut Vec<NameId>,
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        let Some(list) = plan.absent_choices.get(at) else {
            return self.choose_required(plan, absent, used_names);
        };
        for &name in list.iter() {
            if plan.required.binary_search(&name).is_ok() {
                continue;
            }
            absent.push(name);
            let found = self.choose_absent(plan, at + 1, absent, used_names)?;
            absent.pop();
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the required properties, then continues with the witnesses.
    fn choose_required(
        &mut self,
        plan: &ObjectPlan,
        absent: &[NameId],
        used_names: &[NameId],
    ) -> Result<bool, Error> {
        if plan.max.is_some_and(|most| plan.required.len() as u64 > most || plan.min > most) {
            return Ok(false);
        }
        let mut properties = ChosenProperties::new();
        let mut unusable: Vec<NameId> = [used_names, absent].concat();
        unusable.sort_unstable();
        self.base.count_steps(plan.required.len() / REQUIRED_PER_STEP)?;
        for &name in &plan.required {
            if unusable.binary_search(&name).is_ok() {
                return Ok(false);
            }
            let value = self.property_value(plan, name)?;
            if !self.has_value(value)? {
                return Ok(false);
            }
            properties.insert(name, value);
        }
        self.assign_witnesses(plan, 0, &mut properties, &unusable)
    }

    /// Returns the formula of a property's value; [`FALSE`] if the property is forbidden.
    fn property_value(&mut self, plan: &ObjectPlan, name: NameId) -> Result<FormulaId, Error> {
        for &names in &plan.names_in {
            let string = self.base.schema.names.get(name).to_owned();
            if !self.languages.contains_string(&self.base, names, &string)? {
                return Ok(FALSE);
            }
        }
        let mut all = Vec::new();
        for rules in &plan.rules {
            all.push(self.languages.rules_for_name(&mut self.base, rules, name)?);
        }
        Ok(self.base.formulas.and(all))
    }

    /// Assigns each witness demand to a property, then fills up to the minimum.
    fn assign_witnesses(
        &mut self,
        plan: &ObjectPlan,
        at: usize,
        properties: &mut ChosenProperties,
        unusable: &[NameId],
    ) -> Result<bool, Error> {
        self.base.count_step()?;
        if let Some(remaining) = &mut self.answers.duty_steps {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                return Ok(false);
            }
        }
        let Some(duty) = plan.duties.get(at) else {
            return self.fill_to_minimum(plan, properties, unusable);
        };
        let room = plan.max.is_none_or(|most| (properties.len() as u64) < most);
        let mut candidates: Vec<NameId> = properties.keys().copied().collect();
        if room {
            candidates.extend(plan.mentioned.iter().filter(|name| {
                !properties.contains_key(name) && unusable.binary_search(name).is_err()
            }));
        }
        let mut classes: Option<std::vec::IntoIter<LanguageId>> = (!room).then(Default::default);
        candidates.reverse();
        loop {
            // A fresh name is only made up if no other works.
            let name = match candidates.pop() {
                Some(name) => name,
                None => {
                    let classes = match &mut classes {
                        Some(classes) => classes,
                        None => classes.insert(
                            self.languages.name_classes(&mut self.base, &plan.tests)?.into_iter(),
                        ),
                    };
                    let Some(class) = classes.next() else { break };
                    let Some(name) = self.fresh_name(plan, class, properties, unusable)? else {
                        continue;
                    };
                    name
                }
            };
            let broken = match duty {
                WitnessDuty::BreaksRules(rules) => {
                    let kept = self.languages.rules_for_name(&mut self.base, rules, name)?;
                    self.base.formulas.not(kept)
                }
                WitnessDuty::NameOutside(names) => {
                    let string = self.base.schema.names.get(name).to_owned();
                    if self.languages.contains_string(&self.base, *names, &string)? {
                        FALSE
                    } else {
                        TRUE
                    }
                }
            };
            let before = properties.get(&name).copied();
            let value = match before {
                Some(value) => value,
                None => self.property_value(plan, name)?,
            };
            let value = self.base.formulas.both(value, broken);
            if !self.has_value(value)? {
                continue;
            }
            properties.insert(name, value);
            let found = self.assign_witnesses(plan, at + 1, properties, unusable)?;
            match before {
                Some(value) => properties.insert(name, value),
                None => properties.remove(&name),
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if there are enough properties. Their values are independent.
    fn fill_to_minimum(
        &mut self,
        plan: &ObjectPlan,
        properties: &ChosenProperties,
        unusable: &[NameId],
    ) -> Result<bool, Error> {
        let mut properties = properties.clone();
        for &name in &plan.mentioned {
            if properties.len() as u64 >= plan.min {
                return Ok(true);
            }
            if properties.contains_key(&name) || unusable.binary_search(&name).is_ok() {
                continue;
            }
            let value = self.property_value(plan, name)?;
            if self.has_value(value)? {
                properties.insert(name, value);
            }
        }
        if (properties.len() as u64) < plan.min
            && self.languages.name_classes_if_few(&mut self.base, &plan.tests)?.is_none()
            && self.has_many_names(plan)?
        {
            return Ok(true);
        }
        for class in self.languages.name_classes(&mut self.base, &plan.tests)? {
            let mut made_up = 0;
            while (properties.len() as u64) < plan.min {
                self.base.count_steps(1 + properties.len() / NAMES_PER_STEP)?;
                let Some(name) = self.fresh_name(plan, class, &properties, unusable)? else {
                    break;
                };
                let value = self.property_value(plan, name)?;
                if !self.has_value(value)? {
                    break;
                }
                if plan.tests.is_empty() {
                    // Unrestricted names do not run out.
                    return Ok(true);
                }
                properties.insert(name, value);
                made_up += 1;
                let remaining = plan.min.saturating_sub(properties.len() as u64);
                if made_up == FEW_NAMES
                    && remaining < ENOUGH_VALUES / 2
                    && self.languages.has_many_strings(&self.base, class)?
                {
                    // All names of a class behave alike.
                    return Ok(true);
                }
            }
        }
        Ok(properties.len() as u64 >= plan.min)
    }

    /// Returns a name of a class that is neither mentioned nor used.
    fn fresh_name(
        &mut self,
        plan: &ObjectPlan,
        class: LanguageId,
        properties: &ChosenProperties,
        unusable: &[NameId],
    ) -> Result<Option<NameId>, Error> {
        let taken = plan.mentioned.iter().chain(properties.keys()).chain(unusable);
        let mut taken: Vec<NameId> = taken.copied().filter(|name| !name.is_symbolic()).collect();
        taken.sort_unstable();
        taken.dedup();
        let is_kept = taken.len() <= MAX_TAKEN;
        if is_kept && let Some(&known) = self.languages.fresh_names.get(&(class, taken.clone())) {
            return Ok(known);
        }
        let strings: Vec<&str> =
            taken.iter().map(|&name| self.base.schema.names.get(name)).collect();
        let string = self.languages.fresh_string(class, &strings)?;
        let name = string.map(|string| self.base.schema.names.intern(&string));
        if self.languages.fresh_names.len() >= MAX_FRESH {
            self.languages.fresh_names.clear();
        }
        if is_kept {
            self.languages.fresh_names.insert((class, taken), name);
        }
        Ok(name)
    }
}

impl ObjectPlan {
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
