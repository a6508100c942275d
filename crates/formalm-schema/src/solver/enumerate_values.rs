//! Enumerates all objects and arrays that satisfy a formula, if there are few.

use formalm_automata::Error;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, TRUE};
use crate::interner::CompactMap;
use crate::json::interned_values::{JsonValue, ValueId};
use crate::json::property_names::NameId;
use crate::machine::Obligation;
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::context::SolverContext;
use crate::solver::{MAX_ENUMERATED, RemainingContainer};

/// Maximum nesting of containers, and maximum number of items, that are enumerated. Deeper ones are
/// left undecided. Chosen, not measured.
const MAX_ENUMERATION_DEPTH: usize = 24;

/// The enumerated values of a formula.
#[derive(Clone, Debug)]
pub(crate) enum Enumeration {
    /// Exactly these.
    All(Vec<ValueId>),
    /// At least as many as requested.
    Plenty,
    /// Undecided.
    Unknown,
}

/// The values found so far.
struct FoundValues {
    values: Vec<ValueId>,
    enough: usize,
    depth: usize,
}

/// The result of an enumeration that stopped early.
type EarlyStop = Option<Enumeration>;

impl FoundValues {
    fn push(&mut self, value: ValueId) -> EarlyStop {
        if !self.values.contains(&value) {
            self.values.push(value);
        }
        (self.values.len() >= self.enough).then_some(Enumeration::Plenty)
    }
}

impl SolverContext {
    /// Returns the objects or arrays that satisfy a formula over their atoms.
    pub(in crate::solver) fn enumerate_containers(
        &mut self,
        formula: FormulaId,
        ty: JsonType,
        enough: usize,
        depth: usize,
    ) -> Result<Enumeration, Error> {
        if formula == TRUE {
            return Ok(Enumeration::Plenty);
        }
        if depth >= MAX_ENUMERATION_DEPTH {
            return Ok(Enumeration::Unknown);
        }
        match self.enumerated.get(&formula) {
            Some((_, Enumeration::All(values))) if values.len() < enough => {
                return Ok(Enumeration::All(values.clone()));
            }
            Some((_, Enumeration::All(_))) => return Ok(Enumeration::Plenty),
            Some((known, Enumeration::Plenty)) if *known >= enough => {
                return Ok(Enumeration::Plenty);
            }
            _ => {}
        }
        let mut found = FoundValues { values: Vec::new(), enough, depth };
        let owes = Obligation { formulas: [formula].into(), queries: [].into(), goal: TRUE };
        let stopped = match ty {
            JsonType::Object => self.enumerate_objects(formula, &mut found)?,
            _ => self.enumerate_arrays(&owes, &mut Vec::new(), &mut found)?,
        };
        let listed = stopped.unwrap_or(Enumeration::All(found.values));
        if !matches!(listed, Enumeration::Unknown) {
            self.enumerated.insert(formula, (enough, listed.clone()));
        }
        Ok(listed)
    }

    /// Enumerates objects: first finds the names that can occur, then their combinations.
    fn enumerate_objects(
        &mut self,
        formula: FormulaId,
        found: &mut FoundValues,
    ) -> Result<EarlyStop, Error> {
        let (mut names, tests) = self.mentioned_names_and_tests(formula);
        for class in self.name_classes(&tests)? {
            let is_endless = tests.is_empty() || self.has_many_strings(class)?;
            loop {
                self.count_step()?;
                let taken: Vec<String> =
                    names.iter().map(|&name| self.schema.names.get(name).to_owned()).collect();
                let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
                let Some(string) = self.fresh_string(class, &taken)? else { break };
                let name = self.schema.names.intern(&string);
                let begun = self.begin_property(formula, name)?;
                if !begun.child_viable(
                    self,
                    RemainingContainer { json_type: JsonType::Object, used_names: &[] },
                )? {
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
        self.enumerate_properties(formula, &names, 0, &mut Vec::new(), found)
    }

    /// Returns the names that a formula mentions and the tests that distinguish all others.
    fn mentioned_names_and_tests(&mut self, formula: FormulaId) -> (Vec<NameId>, Vec<FormulaId>) {
        let (mut names, mut tests) = (Vec::new(), Vec::new());
        for atom in self.atoms(formula) {
            match atom {
                FormulaAtom::Required(required) => names.extend(required.iter()),
                FormulaAtom::PropertyNames(language) => tests.push(language),
                FormulaAtom::Properties(rules) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten());
                        names.extend(&which.excluded_names);
                        for &regex in which.matched_patterns.iter().chain(&which.unmatched_patterns)
                        {
                            tests.push(self.formulas.atom(FormulaAtom::InLanguage(regex)));
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
    fn child_demands(&mut self, id: FormulaId) -> FormulaId {
        self.child_demands_memoized(id, &mut CompactMap::default())
    }

    fn child_demands_memoized(
        &mut self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, FormulaId>,
    ) -> FormulaId {
        if !self.formulas.has_atom(id) {
            return id;
        }
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let weakened = match self.formulas.get(id).clone() {
            Formula::And(list) => {
                let list =
                    list.iter().map(|&one| self.child_demands_memoized(one, known)).collect();
                self.formulas.and(list)
            }
            Formula::Or(list) => {
                let list =
                    list.iter().map(|&one| self.child_demands_memoized(one, known)).collect();
                self.formulas.or(list)
            }
            _ => TRUE,
        };
        known.insert(id, weakened);
        weakened
    }

    /// Returns the obligation of the value of a property.
    fn begin_property(&mut self, formula: FormulaId, name: NameId) -> Result<Obligation, Error> {
        let owes = Obligation { formulas: [formula].into(), queries: [].into(), goal: TRUE };
        owes.after_name(self, name)
    }

    /// Enumerates objects with properties of these names, in their order from index `from` on.
    fn enumerate_properties(
        &mut self,
        formula: FormulaId,
        names: &[NameId],
        from: usize,
        properties: &mut Vec<(NameId, ValueId)>,
        found: &mut FoundValues,
    ) -> Result<EarlyStop, Error> {
        self.count_step()?;
        if self.holds_at_end(formula) {
            let mut sorted = properties.clone();
            sorted.sort_unstable();
            let object = self.schema.values.intern(JsonValue::Object(sorted.into()));
            if let Some(stopped) = found.push(object) {
                return Ok(Some(stopped));
            }
        }
        for at in from..names.len() {
            let used_names = names[..=at].to_vec();
            let begun = self.begin_property(formula, names[at])?;
            if !begun.clone().child_viable(
                self,
                RemainingContainer { json_type: JsonType::Object, used_names: &used_names },
            )? {
                continue;
            }
            let (container, must, _) = begun.split(self);
            let kept = container.formulas[0];
            let demanded = self.child_demands(kept);
            let must = self.formulas.both(must, demanded);
            // If some values have no continuation, all of them must be known.
            let enough = if self.formulas.has_child(kept) { MAX_ENUMERATED } else { found.enough };
            let values = match self.enumerate_to_depth(must, enough, &[], found.depth + 1)? {
                Enumeration::All(values) => values,
                Enumeration::Plenty if !self.formulas.has_child(kept) => {
                    if self.has_object(kept, &used_names)? {
                        return Ok(Some(Enumeration::Plenty));
                    }
                    continue;
                }
                _ => return Ok(Some(Enumeration::Unknown)),
            };
            let queries = self.formulas.queried_nodes(&[kept]);
            for value in values {
                let verdicts = self.verdicts_of(&queries, value)?;
                let rest = container.after_child(self, (&queries, &verdicts), None)?.formulas[0];
                if rest == FALSE || !self.has_object(rest, &used_names)? {
                    continue;
                }
                properties.push((names[at], value));
                let stopped = self.enumerate_properties(rest, names, at + 1, properties, found)?;
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
        found: &mut FoundValues,
    ) -> Result<EarlyStop, Error> {
        self.count_step()?;
        if self.holds_at_end(owes.formulas[0]) {
            let array = self.schema.values.intern(JsonValue::Array(items.as_slice().into()));
            if let Some(stopped) = found.push(array) {
                return Ok(Some(stopped));
            }
        }
        let begun = owes.after_item(self)?;
        if !begun.clone().child_viable(
            self,
            RemainingContainer { json_type: JsonType::Array, used_names: &[] },
        )? {
            return Ok(None);
        }
        if items.len() >= MAX_ENUMERATION_DEPTH {
            return Ok(Some(Enumeration::Unknown));
        }
        let (container, must, _) = begun.split(self);
        let kept = container.formulas[0];
        let demanded = self.child_demands(kept);
        let must = self.formulas.both(must, demanded);
        let is_free =
            !self.formulas.has_child(kept) && !container.requires_unique_items(&self.formulas);
        let enough = if is_free { found.enough } else { MAX_ENUMERATED };
        let values = match self.enumerate_to_depth(must, enough, &[], found.depth + 1)? {
            Enumeration::All(values) => values,
            // Each value makes another array.
            Enumeration::Plenty if !self.formulas.has_child(kept) => {
                let is_completable = match container.requires_unique_items(&self.formulas) {
                    true => self.holds_at_end(kept),
                    false => self.has_array(kept)?,
                };
                return Ok(Some(if is_completable {
                    Enumeration::Plenty
                } else {
                    Enumeration::Unknown
                }));
            }
            _ => return Ok(Some(Enumeration::Unknown)),
        };
        let queries = self.formulas.queried_nodes(&[kept]);
        for value in values {
            let verdicts = self.verdicts_of(&queries, value)?;
            let rest = container.after_child(self, (&queries, &verdicts), Some(value))?;
            if rest.formulas[0] == FALSE || !self.has_array(rest.formulas[0])? {
                continue;
            }
            items.push(value);
            let stopped = self.enumerate_arrays(&rest, items, found)?;
            items.pop();
            if stopped.is_some() {
                return Ok(stopped);
            }
        }
        Ok(None)
    }

    /// Returns which of some nodes a value satisfies.
    fn verdicts_of(&mut self, queries: &[NodeId], value: ValueId) -> Result<Vec<bool>, Error> {
        let same = self.schema.node_for_values(&[value]);
        let same = self.child(same);
        let mut verdicts = Vec::with_capacity(queries.len());
        for &node in queries {
            let satisfied = self.child(node);
            let both = self.formulas.both(satisfied, same);
            verdicts.push(self.has_value(both)?);
        }
        Ok(verdicts)
    }
}
