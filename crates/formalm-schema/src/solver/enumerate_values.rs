//! Enumerates all objects and arrays that satisfy a formula, if there are few.

use formalm_automata::Error;

use crate::formula::{Atom, F, FALSE, Form, TRUE};
use crate::interner::Map;
use crate::json::interned_values::{Value, ValueId};
use crate::json::property_names::NameId;
use crate::machine::Owes;
use crate::schema_nodes::{NodeId, Type};
use crate::solver::context::Core;
use crate::solver::{MAX_ENUMERATED, Rest};

/// Maximum nesting of containers, and maximum number of items, that are enumerated. Deeper ones are
/// left undecided. Chosen, not measured.
const MAX_ENUMERATION_DEPTH: usize = 24;

/// The enumerated values of a formula.
#[derive(Clone, Debug)]
pub(crate) enum Listed {
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
type EarlyStop = Option<Listed>;

impl FoundValues {
    fn push(&mut self, value: ValueId) -> EarlyStop {
        if !self.values.contains(&value) {
            self.values.push(value);
        }
        (self.values.len() >= self.enough).then_some(Listed::Plenty)
    }
}

impl Core {
    /// Returns the objects or arrays that satisfy a formula over their atoms.
    pub(in crate::solver) fn enumerate_containers(
        &mut self,
        formula: F,
        ty: Type,
        enough: usize,
        depth: usize,
    ) -> Result<Listed, Error> {
        if formula == TRUE {
            return Ok(Listed::Plenty);
        }
        if depth >= MAX_ENUMERATION_DEPTH {
            return Ok(Listed::Unknown);
        }
        match self.enumerated.get(&formula) {
            Some((_, Listed::All(values))) if values.len() < enough => {
                return Ok(Listed::All(values.clone()));
            }
            Some((_, Listed::All(_))) => return Ok(Listed::Plenty),
            Some((known, Listed::Plenty)) if *known >= enough => return Ok(Listed::Plenty),
            _ => {}
        }
        let mut found = FoundValues { values: Vec::new(), enough, depth };
        let owes = Owes { formulas: [formula].into(), asked: [].into(), goal: TRUE };
        let stopped = match ty {
            Type::Object => self.enumerate_objects(formula, &mut found)?,
            _ => self.enumerate_arrays(&owes, &mut Vec::new(), &mut found)?,
        };
        let listed = stopped.unwrap_or(Listed::All(found.values));
        if !matches!(listed, Listed::Unknown) {
            self.enumerated.insert(formula, (enough, listed.clone()));
        }
        Ok(listed)
    }

    /// Enumerates objects: first finds the names that can occur, then their combinations.
    fn enumerate_objects(
        &mut self,
        formula: F,
        found: &mut FoundValues,
    ) -> Result<EarlyStop, Error> {
        let (mut names, tests) = self.mentioned_names_and_tests(formula);
        for class in self.classes(&tests)? {
            let is_endless = tests.is_empty() || self.has_plenty_texts(class)?;
            loop {
                self.step()?;
                let taken: Vec<String> =
                    names.iter().map(|&name| self.schema.names.get(name).to_owned()).collect();
                let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
                let Some(string) = self.fresh_text(class, &taken)? else { break };
                let name = self.schema.names.intern(&string);
                let begun = self.begin_property(formula, name)?;
                if !self.can_begin(begun, Rest { of: Type::Object, gone: &[] })? {
                    // All names of a class behave alike.
                    break;
                }
                if is_endless {
                    return Ok(Some(Listed::Plenty));
                }
                names.push(name);
                if names.len() > MAX_ENUMERATED {
                    return Ok(Some(Listed::Unknown));
                }
            }
        }
        self.enumerate_properties(formula, &names, 0, &mut Vec::new(), found)
    }

    /// Returns the names that a formula mentions and the tests that distinguish all others.
    fn mentioned_names_and_tests(&mut self, formula: F) -> (Vec<NameId>, Vec<F>) {
        let (mut names, mut tests) = (Vec::new(), Vec::new());
        for atom in self.atoms(formula) {
            match atom {
                Atom::Owed(required) => names.extend(required.iter()),
                Atom::NamesIn(language) => tests.push(language),
                Atom::Members(rules) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten());
                        names.extend(&which.others);
                        for &regex in which.found.iter().chain(&which.missing) {
                            tests.push(self.formulas.atom(Atom::In(regex)));
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
    fn child_demands(&mut self, id: F) -> F {
        self.child_demands_memoized(id, &mut Map::default())
    }

    fn child_demands_memoized(&mut self, id: F, known: &mut Map<F, F>) -> F {
        if !self.formulas.has_atom(id) {
            return id;
        }
        if let Some(&known) = known.get(&id) {
            return known;
        }
        let weakened = match self.formulas.get(id).clone() {
            Form::And(list) => {
                let list =
                    list.iter().map(|&one| self.child_demands_memoized(one, known)).collect();
                self.formulas.and(list)
            }
            Form::Or(list) => {
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
    fn begin_property(&mut self, formula: F, name: NameId) -> Result<Owes, Error> {
        let owes = Owes { formulas: [formula].into(), asked: [].into(), goal: TRUE };
        self.after_name(&owes, name)
    }

    /// Enumerates objects with properties of these names, in their order from index `from` on.
    fn enumerate_properties(
        &mut self,
        formula: F,
        names: &[NameId],
        from: usize,
        properties: &mut Vec<(NameId, ValueId)>,
        found: &mut FoundValues,
    ) -> Result<EarlyStop, Error> {
        self.step()?;
        if self.holds_at_end(formula) {
            let mut sorted = properties.clone();
            sorted.sort_unstable();
            let object = self.schema.values.intern(Value::Object(sorted.into()));
            if let Some(stopped) = found.push(object) {
                return Ok(Some(stopped));
            }
        }
        for at in from..names.len() {
            let used_names = names[..=at].to_vec();
            let begun = self.begin_property(formula, names[at])?;
            if !self.can_begin(begun.clone(), Rest { of: Type::Object, gone: &used_names })? {
                continue;
            }
            let (container, must, _) = self.part(begun);
            let kept = container.formulas[0];
            let demanded = self.child_demands(kept);
            let must = self.formulas.both(must, demanded);
            // If not every value leads on, all of them must be known.
            let enough = if self.formulas.has_child(kept) { MAX_ENUMERATED } else { found.enough };
            let values = match self.enumerate_to_depth(must, enough, &[], found.depth + 1)? {
                Listed::All(values) => values,
                Listed::Plenty if !self.formulas.has_child(kept) => {
                    if self.has_object(kept, &used_names)? {
                        return Ok(Some(Listed::Plenty));
                    }
                    continue;
                }
                _ => return Ok(Some(Listed::Unknown)),
            };
            let queries = self.formulas.asked(&[kept]);
            for value in values {
                let verdicts = self.verdicts_of(&queries, value)?;
                let rest = self.after_child(&container, &queries, &verdicts, None)?.formulas[0];
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
        owes: &Owes,
        items: &mut Vec<ValueId>,
        found: &mut FoundValues,
    ) -> Result<EarlyStop, Error> {
        self.step()?;
        if self.holds_at_end(owes.formulas[0]) {
            let array = self.schema.values.intern(Value::Array(items.as_slice().into()));
            if let Some(stopped) = found.push(array) {
                return Ok(Some(stopped));
            }
        }
        let begun = self.after_item(owes)?;
        if !self.can_begin(begun.clone(), Rest { of: Type::Array, gone: &[] })? {
            return Ok(None);
        }
        if items.len() >= MAX_ENUMERATION_DEPTH {
            return Ok(Some(Listed::Unknown));
        }
        let (container, must, _) = self.part(begun);
        let kept = container.formulas[0];
        let demanded = self.child_demands(kept);
        let must = self.formulas.both(must, demanded);
        let is_free = !self.formulas.has_child(kept) && !self.has_unique(&container);
        let enough = if is_free { found.enough } else { MAX_ENUMERATED };
        let values = match self.enumerate_to_depth(must, enough, &[], found.depth + 1)? {
            Listed::All(values) => values,
            // Each value makes another array.
            Listed::Plenty if !self.formulas.has_child(kept) => {
                let is_completable = match self.has_unique(&container) {
                    true => self.holds_at_end(kept),
                    false => self.some_array(kept)?,
                };
                return Ok(Some(if is_completable { Listed::Plenty } else { Listed::Unknown }));
            }
            _ => return Ok(Some(Listed::Unknown)),
        };
        let queries = self.formulas.asked(&[kept]);
        for value in values {
            let verdicts = self.verdicts_of(&queries, value)?;
            let rest = self.after_child(&container, &queries, &verdicts, Some(value))?;
            if rest.formulas[0] == FALSE || !self.some_array(rest.formulas[0])? {
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
        let same = self.schema.node_of_values(&[value]);
        let same = self.child(same);
        let mut verdicts = Vec::with_capacity(queries.len());
        for &node in queries {
            let satisfied = self.child(node);
            let both = self.formulas.both(satisfied, same);
            verdicts.push(self.some_value(both)?);
        }
        Ok(verdicts)
    }
}
