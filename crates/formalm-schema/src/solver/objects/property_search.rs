//! The search for properties that satisfy a conjunction of object atoms.

use std::collections::BTreeMap;

use formalm_core::Error;

use crate::formula::{FALSE, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::solver::ENOUGH_VALUES;
use crate::solver::context::{LanguageId, SolverContext};
use crate::solver::objects::{ObjectPlan, WitnessDuty};

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

/// The properties chosen so far, with the formulas of their values.
type ChosenProperties = BTreeMap<NameId, FormulaId>;

/// A search for the properties of a plan.
pub(super) struct PropertySearch<'a> {
    solver: &'a mut SolverContext,
    plan: &'a ObjectPlan,
    used_names: &'a [NameId],
    /// Names chosen to be absent.
    absent: Vec<NameId>,
    /// Used and absent names, sorted.
    unusable: Vec<NameId>,
}

impl<'a> PropertySearch<'a> {
    pub(super) fn new(
        solver: &'a mut SolverContext,
        plan: &'a ObjectPlan,
        used_names: &'a [NameId],
    ) -> PropertySearch<'a> {
        PropertySearch { solver, plan, used_names, absent: Vec::new(), unusable: Vec::new() }
    }

    /// Returns `true` if there are properties that satisfy the plan.
    pub(super) fn run(&mut self) -> Result<bool, Error> {
        self.choose_absent(0)
    }

    /// Chooses an absent name of each list, then continues with the required names.
    fn choose_absent(&mut self, at: usize) -> Result<bool, Error> {
        let plan = self.plan;
        let Some(list) = plan.absent_choices.get(at) else {
            return self.choose_required();
        };
        for &name in list.iter() {
            if plan.required.binary_search(&name).is_ok() {
                continue;
            }
            self.absent.push(name);
            let found = self.choose_absent(at + 1)?;
            self.absent.pop();
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the required properties, then continues with the witnesses.
    fn choose_required(&mut self) -> Result<bool, Error> {
        let plan = self.plan;
        if plan.max.is_some_and(|most| plan.required.len() as u64 > most || plan.min > most) {
            return Ok(false);
        }
        let mut properties = ChosenProperties::new();
        let mut unusable: Vec<NameId> = [self.used_names, &self.absent].concat();
        unusable.sort_unstable();
        self.solver.base.count_steps(plan.required.len() / REQUIRED_PER_STEP)?;
        for &name in &plan.required {
            if unusable.binary_search(&name).is_ok() {
                return Ok(false);
            }
            let value = plan.property_value(self.solver, name)?;
            if !self.solver.has_value(value)? {
                return Ok(false);
            }
            properties.insert(name, value);
        }
        self.unusable = unusable;
        self.assign_witnesses(0, &mut properties)
    }

    /// Assigns each witness demand to a property, then fills up to the minimum.
    fn assign_witnesses(
        &mut self,
        at: usize,
        properties: &mut ChosenProperties,
    ) -> Result<bool, Error> {
        let plan = self.plan;
        self.solver.base.count_step()?;
        if let Some(remaining) = &mut self.solver.answers.duty_steps {
            *remaining = remaining.saturating_sub(1);
            if *remaining == 0 {
                return Ok(false);
            }
        }
        let Some(duty) = plan.duties.get(at) else {
            return self.fill_to_minimum(properties);
        };
        let room = plan.max.is_none_or(|most| (properties.len() as u64) < most);
        let mut candidates: Vec<NameId> = properties.keys().copied().collect();
        if room {
            candidates.extend(plan.mentioned.iter().filter(|name| {
                !properties.contains_key(name) && self.unusable.binary_search(name).is_err()
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
                            self.solver
                                .languages
                                .name_classes(&mut self.solver.base, &plan.tests)?
                                .into_iter(),
                        ),
                    };
                    let Some(class) = classes.next() else { break };
                    let Some(name) = self.fresh_name(class, properties)? else {
                        continue;
                    };
                    name
                }
            };
            let broken = match duty {
                WitnessDuty::BreaksRules(rules) => {
                    let kept =
                        self.solver.languages.rules_for_name(&mut self.solver.base, rules, name)?;
                    self.solver.base.formulas.not(kept)
                }
                WitnessDuty::NameOutside(names) => {
                    let string = self.solver.base.schema.names.get(name).to_owned();
                    if self.solver.languages.contains_string(&self.solver.base, *names, &string)? {
                        FALSE
                    } else {
                        TRUE
                    }
                }
            };
            let before = properties.get(&name).copied();
            let value = match before {
                Some(value) => value,
                None => plan.property_value(self.solver, name)?,
            };
            let value = self.solver.base.formulas.both(value, broken);
            if !self.solver.has_value(value)? {
                continue;
            }
            properties.insert(name, value);
            let found = self.assign_witnesses(at + 1, properties)?;
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
    fn fill_to_minimum(&mut self, properties: &ChosenProperties) -> Result<bool, Error> {
        let plan = self.plan;
        let mut properties = properties.clone();
        for &name in &plan.mentioned {
            if properties.len() as u64 >= plan.min {
                return Ok(true);
            }
            if properties.contains_key(&name) || self.unusable.binary_search(&name).is_ok() {
                continue;
            }
            let value = plan.property_value(self.solver, name)?;
            if self.solver.has_value(value)? {
                properties.insert(name, value);
            }
        }
        if (properties.len() as u64) < plan.min
            && self
                .solver
                .languages
                .name_classes_if_few(&mut self.solver.base, &plan.tests)?
                .is_none()
            && plan.has_many_names(self.solver)?
        {
            return Ok(true);
        }
        for class in self.solver.languages.name_classes(&mut self.solver.base, &plan.tests)? {
            let mut made_up = 0;
            while (properties.len() as u64) < plan.min {
                self.solver.base.count_steps(1 + properties.len() / NAMES_PER_STEP)?;
                let Some(name) = self.fresh_name(class, &properties)? else {
                    break;
                };
                let value = plan.property_value(self.solver, name)?;
                if !self.solver.has_value(value)? {
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
                    && self.solver.languages.has_many_strings(&self.solver.base, class)?
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
        class: LanguageId,
        properties: &ChosenProperties,
    ) -> Result<Option<NameId>, Error> {
        let taken = self.plan.mentioned.iter().chain(properties.keys()).chain(&self.unusable);
        let mut taken: Vec<NameId> = taken.copied().filter(|name| !name.is_symbolic()).collect();
        taken.sort_unstable();
        taken.dedup();
        let is_kept = taken.len() <= MAX_TAKEN;
        if is_kept
            && let Some(&known) = self.solver.languages.fresh_names.get(&(class, taken.clone()))
        {
            return Ok(known);
        }
        let strings: Vec<&str> =
            taken.iter().map(|&name| self.solver.base.schema.names.get(name)).collect();
        let string = self.solver.languages.fresh_string(class, &strings)?;
        let name = string.map(|string| self.solver.base.schema.names.intern(&string));
        if self.solver.languages.fresh_names.len() >= MAX_FRESH {
            self.solver.languages.fresh_names.clear();
        }
        if is_kept {
            self.solver.languages.fresh_names.insert((class, taken), name);
        }
        Ok(name)
    }
}
