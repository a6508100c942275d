//! Enumerates all objects and arrays that satisfy a formula, if there are few.

use formalm_core::{CompactMap, Error};

use crate::formula::{FALSE, Formula, FormulaArena, FormulaAtom, FormulaId, TRUE};
use crate::json::interned_values::{JsonValue, ValueId};
use crate::json::property_names::NameId;
use crate::machine::Obligation;
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::RemainingContainer;
use crate::solver::context::SolverContext;
use crate::solver::enumeration::{Enumeration, MAX_ENUMERATED};

/// Maximum nesting of containers, and maximum number of items, that are enumerated. Deeper ones are
/// left undecided. Chosen, not measured.
const MAX_ENUMERATION_DEPTH: usize = 24;

/// The result of an enumeration that stopped early.
type EarlyStop = Option<Enumeration>;

/// The enumeration of the objects or arrays of one formula.
pub(super) struct ContainerEnumeration<'a> {
    solver: &'a mut SolverContext,
    /// The values found so far.
    values: Vec<ValueId>,
    enough: usize,
    depth: usize,
}

impl<'a> ContainerEnumeration<'a> {
    /// Creates an enumeration that stops with `enough` values, inside `depth` containers.
    pub(super) fn new(
        solver: &'a mut SolverContext,
        enough: usize,
        depth: usize,
    ) -> ContainerEnumeration<'a> {
        ContainerEnumeration { solver, values: Vec::new(), enough, depth }
    }

    fn push(&mut self, value: ValueId) -> EarlyStop {
        if !self.values.contains(&value) {
            self.values.push(value);
        }
        (self.values.len() >= self.enough).then_some(Enumeration::Plenty)
    }

    /// Returns the objects or arrays that satisfy a formula over their atoms.
    pub(super) fn run(mut self, formula: FormulaId, ty: JsonType) -> Result<Enumeration, Error> {
        if formula == TRUE {
            return Ok(Enumeration::Plenty);
        }
        if self.depth >= MAX_ENUMERATION_DEPTH {
            return Ok(Enumeration::Unknown);
        }
        match self.solver.enumerations.containers.get(&formula) {
            Some((_, Enumeration::All(values))) if values.len() < self.enough => {
                return Ok(Enumeration::All(values.clone()));
            }
            Some((_, Enumeration::All(_))) => return Ok(Enumeration::Plenty),
            Some((known, Enumeration::Plenty)) if *known >= self.enough => {
                return Ok(Enumeration::Plenty);
            }
            _ => {}
        }
        let owes = Obligation { formulas: [formula].into(), queries: [].into(), goal: TRUE };
        let stopped = match ty {
            JsonType::Object => self.enumerate_objects(formula)?,
            _ => self.enumerate_arrays(&owes, &mut Vec::new())?,
        };
        let listed = stopped.unwrap_or(Enumeration::All(self.values));
        if !matches!(listed, Enumeration::Unknown) {
            self.solver.enumerations.containers.insert(formula, (self.enough, listed.clone()));
        }
        Ok(listed)
    }

    /// Enumerates objects: first finds the names that can occur, then their combinations.
    fn enumerate_objects(&mut self, formula: FormulaId) -> Result<EarlyStop, Error> {
        let (mut names, tests) = mentioned_names_and_tests(&mut self.solver.base.formulas, formula);
        for class in self.solver.languages.name_classes(&mut self.solver.base, &tests)? {
            let is_endless = tests.is_empty()
                || self.solver.languages.has_many_strings(&self.solver.base, class)?;
            loop {
                self.solver.base.count_step()?;
                let taken: Vec<String> = names
                    .iter()
                    .map(|&name| self.solver.base.schema.names.get(name).to_owned())
                    .collect();
                let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
                let Some(string) = self.solver.languages.fresh_string(class, &taken)? else {
                    break;
                };
                let name = self.solver.base.schema.names.intern(&string);
                let begun = begin_property(self.solver, formula, name)?;
                if !begun.child_viable(self.solver, RemainingContainer::object(&[]))? {
                    // All names of a class behave alike.
                    break;
                }
                if is_endless {
                    return Ok(Some(Enumeration::Plenty));
                }
                names.push(name);
                if names.len() > MAX_ENUMERATED {
                    return Ok(Some(Enumeration::Unknown));
                }
            }
        }
        self.enumerate_properties(formula, &names, 0, &mut Vec::new())
    }

    /// Enumerates objects with properties of these names, in their order from index `from` on.
    fn enumerate_properties(
        &mut self,
        formula: FormulaId,
        names: &[NameId],
        from: usize,
        properties: &mut Vec<(NameId, ValueId)>,
    ) -> Result<EarlyStop, Error> {
        self.solver.base.count_step()?;
        if self.solver.base.formulas.holds_at_end(formula) {
            let mut sorted = properties.clone();
            sorted.sort_unstable();
            let object = self.solver.base.schema.values.intern(JsonValue::Object(sorted.into()));
            if let Some(stopped) = self.push(object) {
                return Ok(Some(stopped));
            }
        }
        for at in from..names.len() {
            let used_names = names[..=at].to_vec();
            let begun = begin_property(self.solver, formula, names[at])?;
            if !begun.clone().child_viable(self.solver, RemainingContainer::object(&used_names))? {
                continue;
            }
            let (container, must, _) = begun.split(self.solver);
            let kept = container.formulas[0];
            let demanded = child_demands(&mut self.solver.base.formulas, kept);
            let must = self.solver.base.formulas.both(must, demanded);
            // If some values have no continuation, all of them must be known.
            let enough = if self.solver.base.formulas.has_child(kept) {
                MAX_ENUMERATED
            } else {
                self.enough
            };
            let values = match self.solver.enumerate_to_depth(must, enough, &[], self.depth + 1)? {
                Enumeration::All(values) => values,
                Enumeration::Plenty if !self.solver.base.formulas.has_child(kept) => {
                    if self.solver.has_object(kept, &used_names)? {
                        return Ok(Some(Enumeration::Plenty));
                    }
                    continue;
                }
                _ => return Ok(Some(Enumeration::Unknown)),
            };
            let queries = self.solver.base.formulas.queried_nodes(&[kept]);
            for value in values {
                let verdicts = verdicts_of(self.solver, &queries, value)?;
                let rest =
                    container.after_child(self.solver, (&queries, &verdicts), None)?.formulas[0];
                if rest == FALSE || !self.solver.has_object(rest, &used_names)? {
                    continue;
                }
                properties.push((names[at], value));
                let stopped = self.enumerate_properties(rest, names, at + 1, properties)?;
                properties.pop();
                if stopped.is_some() {
                    return Ok(stopped);
                }
            }
        }
        Ok(None)
    }

    /// Enumerates arrays, item by item.
    fn enumerate_arrays(
        &mut self,
        owes: &Obligation,
        items: &mut Vec<ValueId>,
    ) -> Result<EarlyStop, Error> {
        self.solver.base.count_step()?;
        if self.solver.base.formulas.holds_at_end(owes.formulas[0]) {
            let array =
                self.solver.base.schema.values.intern(JsonValue::Array(items.as_slice().into()));
            if let Some(stopped) = self.push(array) {
                return Ok(Some(stopped));
            }
        }
        let begun = owes.after_item(self.solver)?;
        if !begun.clone().child_viable(self.solver, RemainingContainer::array())? {
            return Ok(None);
        }
        if items.len() >= MAX_ENUMERATION_DEPTH {
            return Ok(Some(Enumeration::Unknown));
        }
        let (container, must, _) = begun.split(self.solver);
        let kept = container.formulas[0];
        let demanded = child_demands(&mut self.solver.base.formulas, kept);
        let must = self.solver.base.formulas.both(must, demanded);
        let is_free = !self.solver.base.formulas.has_child(kept)
            && !container.requires_unique_items(&self.solver.base.formulas);
        let enough = if is_free { self.enough } else { MAX_ENUMERATED };
        let values = match self.solver.enumerate_to_depth(must, enough, &[], self.depth + 1)? {
            Enumeration::All(values) => values,
            // Each value makes another array.
            Enumeration::Plenty if !self.solver.base.formulas.has_child(kept) => {
                let is_completable =
                    match container.requires_unique_items(&self.solver.base.formulas) {
                        true => self.solver.base.formulas.holds_at_end(kept),
                        false => self.solver.has_array(kept)?,
                    };
                return Ok(Some(if is_completable {
                    Enumeration::Plenty
                } else {
                    Enumeration::Unknown
                }));
            }
            _ => return Ok(Some(Enumeration::Unknown)),
        };
        let queries = self.solver.base.formulas.queried_nodes(&[kept]);
        for value in values {
            let verdicts = verdicts_of(self.solver, &queries, value)?;
            let rest = container.after_child(self.solver, (&queries, &verdicts), Some(value))?;
            if rest.formulas[0] == FALSE || !self.solver.has_array(rest.formulas[0])? {
                continue;
            }
            items.push(value);
            let stopped = self.enumerate_arrays(&rest, items)?;
            items.pop();
            if stopped.is_some() {
                return Ok(stopped);
            }
        }
        Ok(None)
    }
}

/// Returns the names that a formula mentions and the tests that distinguish all others.
fn mentioned_names_and_tests(
    formulas: &mut FormulaArena,
    formula: FormulaId,
) -> (Vec<NameId>, Vec<FormulaId>) {
    let (mut names, mut tests) = (Vec::new(), Vec::new());
    for atom in formulas.atoms(formula) {
        match atom {
            FormulaAtom::Required(required) => names.extend(required.iter()),
            FormulaAtom::PropertyNames(language) => tests.push(language),
            FormulaAtom::Properties(rules) => {
                for (which, _) in rules.iter() {
                    names.extend(which.names.iter().flatten());
                    names.extend(&which.excluded_names);
                    for &regex in which.matched_patterns.iter().chain(&which.unmatched_patterns) {
                        tests.push(formulas.atom(FormulaAtom::InLanguage(regex)));
                    }
                }
            }
            _ => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    tests.sort_unstable();
    tests.dedup();
    (names, tests)
}

/// Returns what a formula demands of the child, whatever follows it.
fn child_demands(formulas: &mut FormulaArena, id: FormulaId) -> FormulaId {
    child_demands_memoized(formulas, id, &mut CompactMap::default())
}

fn child_demands_memoized(
    formulas: &mut FormulaArena,
    id: FormulaId,
    known: &mut CompactMap<FormulaId, FormulaId>,
) -> FormulaId {
    if !formulas.has_atom(id) {
        return id;
    }
    if let Some(&known) = known.get(&id) {
        return known;
    }
    let weakened = match formulas.get(id).clone() {
        Formula::And(list) => {
            let list =
                list.iter().map(|&one| child_demands_memoized(formulas, one, known)).collect();
            formulas.and(list)
        }
        Formula::Or(list) => {
            let list =
                list.iter().map(|&one| child_demands_memoized(formulas, one, known)).collect();
            formulas.or(list)
        }
        _ => TRUE,
    };
    known.insert(id, weakened);
    weakened
}

/// Returns the obligation of the value of a property.
fn begin_property(
    solver: &mut SolverContext,
    formula: FormulaId,
    name: NameId,
) -> Result<Obligation, Error> {
    let owes = Obligation { formulas: [formula].into(), queries: [].into(), goal: TRUE };
    owes.after_name(solver, name)
}

/// Returns which of some nodes a value satisfies.
fn verdicts_of(
    solver: &mut SolverContext,
    queries: &[NodeId],
    value: ValueId,
) -> Result<Vec<bool>, Error> {
    let same = solver.base.schema.node_for_values(&[value]);
    let same = solver.base.child(same);
    let mut verdicts = Vec::with_capacity(queries.len());
    for &node in queries {
        let satisfied = solver.base.child(node);
        let both = solver.base.formulas.both(satisfied, same);
        verdicts.push(solver.has_value(both)?);
    }
    Ok(verdicts)
}
