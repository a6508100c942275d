//! Decides whether unboundedly many values satisfy a formula.
//!
//! The answer is `true` only if that is certain; where the search gives up, it is `false`.

use std::sync::Arc;

use formalm_core::Error;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::property_names::{NameId, UNMENTIONED_NAME};
use crate::schema_nodes::{JsonType, NodeId};
use crate::solver::ArrayCardinality;
use crate::solver::context::SolverContext;

/// Maximum nesting of objects that are searched for a property with unboundedly many values.
/// Chosen, not measured.
const MAX_OBJECT_DEPTH: usize = 6;

/// Maximum number of nodes that define the cells, of which there are 2ⁿ. Chosen, not measured.
const MAX_NODES: usize = 4;

/// A question about values at some depth of an object.
pub(crate) struct UnboundedValues<'a> {
    core: &'a mut SolverContext,
    /// Number of objects and arrays around the value.
    depth: usize,
}

impl<'a> UnboundedValues<'a> {
    pub(crate) fn new(core: &'a mut SolverContext, depth: usize) -> UnboundedValues<'a> {
        UnboundedValues { core, depth }
    }

    /// Returns `true` if there are plenty of values of a type, or of each type that has any.
    /// Numbers never count as plenty: a token may end one item and contain the whole next one, if
    /// that is a number.
    pub(crate) fn is_plenty(&mut self, id: FormulaId, of: Option<JsonType>) -> Result<bool, Error> {
        for one in JsonType::ALL.into_iter().filter(|&one| of.is_none_or(|of| of == one)) {
            let typed = self.core.formula_for_type(id, one)?;
            let has_any = of.is_some() || self.core.has_value_of_type(typed, one)?;
            if has_any && (one == JsonType::Number || !self.has_unbounded_values(typed, one)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `true` if unboundedly many values of a type satisfy a formula, or at least
    /// `ENOUGH_VALUES`. Returns `false` where this is not certain.
    pub(crate) fn has_unbounded_values(
        &mut self,
        id: FormulaId,
        of: JsonType,
    ) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE && !matches!(of, JsonType::Null | JsonType::Bool));
        }
        match of {
            JsonType::String => match self.core.languages.language(&self.core.base, id)? {
                Some(language) => self.core.languages.has_many_strings(&self.core.base, language),
                None => Ok(false),
            },
            // Numbers are recorded digit by digit and arrays item by item, so only those inside
            // objects count.
            JsonType::Number if self.depth > 0 => self.core.base.numbers(id).has_no_bound(),
            JsonType::Array if 0 < self.depth && self.depth < MAX_OBJECT_DEPTH => {
                ArrayCardinality { solver: self.core, depth: self.depth }.is_infinite(id)
            }
            JsonType::Object if self.depth < MAX_OBJECT_DEPTH => self.is_endless_object(id),
            _ => Ok(false),
        }
    }

    /// Returns `true` if some implicant of the formula has unboundedly many objects.
    fn is_endless_object(&mut self, id: FormulaId) -> Result<bool, Error> {
        let depth = self.depth;
        self.core.search_implicants(id, &mut |_, _| Ok(true), &mut |core, literals| {
            let mut values = UnboundedValues { core, depth };
            Ok(values.core.object_fits(literals, &[])?
                && values.is_endless_by_property(literals)?)
        })
    }

    /// Returns `true` for a satisfiable conjunction if one property has unboundedly many values,
    /// whatever the others are.
    fn is_endless_by_property(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        let (mut names, mut lists, mut has_patterns) = (Vec::new(), Vec::new(), false);
        for &part in literals {
            match self.core.base.formulas.get(part) {
                Formula::Atom(FormulaAtom::Properties(rules)) => {
                    for (which, _) in rules.iter() {
                        names.extend(which.names.iter().flatten().copied());
                        has_patterns |= !which.matched_patterns.is_empty()
                            || !which.unmatched_patterns.is_empty();
                    }
                    lists.push(rules.clone());
                }
                Formula::Atom(FormulaAtom::Required(required)) => {
                    names.extend(required.iter().copied())
                }
                Formula::Atom(FormulaAtom::MinProperties(_)) => {}
                Formula::Not(_) => return self.is_endless_with_negations(literals),
                _ => return Ok(false),
            }
        }
        if !has_patterns {
            // Unmentioned names are equivalent, and there are unboundedly many.
            let other = self.value_by_rules(&lists, UNMENTIONED_NAME)?;
            if self.core.has_value(other)? {
                return Ok(true);
            }
        }
        for name in names {
            if self.has_endless_property(&lists, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a property has unboundedly many values.
    fn has_endless_property(
        &mut self,
        lists: &[Arc<[(NameSelector, NodeId)]>],
        name: NameId,
    ) -> Result<bool, Error> {
        let value = self.value_by_rules(lists, name)?;
        for of in [JsonType::String, JsonType::Number, JsonType::Array, JsonType::Object] {
            let value = self.core.formula_for_type(value, of)?;
            let mut inner = UnboundedValues::new(self.core, self.depth + 1);
            if inner.has_unbounded_values(value, of)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles conjunctions with negations: returns `true` if a required property has unboundedly
    /// many values while the negated statements fail without it.
    fn is_endless_with_negations(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        let (mut required, mut lists) = (Vec::new(), Vec::new());
        for &part in literals {
            match self.core.base.formulas.get(part) {
                Formula::Atom(FormulaAtom::Properties(rules)) => lists.push(rules.clone()),
                Formula::Atom(FormulaAtom::Required(names)) => {
                    required.extend(names.iter().copied())
                }
                Formula::Atom(_) => {}
                Formula::Not(inner)
                    if matches!(self.core.base.formulas.get(*inner), Formula::Atom(_)) => {}
                _ => return Ok(false),
            }
        }
        for name in required {
            let mut others_left = Vec::with_capacity(literals.len());
            for &part in literals {
                let Formula::Not(inner) = *self.core.base.formulas.get(part) else {
                    others_left.push(part);
                    continue;
                };
                let without = match self.core.base.formulas.get(inner).clone() {
                    Formula::Atom(FormulaAtom::Properties(rules)) => {
                        let rules = rules.iter().map(|(which, node)| (which.without(name), *node));
                        self.core.base.formulas.atom(FormulaAtom::Properties(rules.collect()))
                    }
                    _ => inner,
                };
                others_left.push(self.core.base.formulas.not(without));
            }
            if !self.core.object_fits(&others_left, &[])? {
                continue;
            }
            if self.has_endless_property(&lists, name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the formula of a property value under several lists of rules.
    fn value_by_rules(
        &mut self,
        lists: &[Arc<[(NameSelector, NodeId)]>],
        name: NameId,
    ) -> Result<FormulaId, Error> {
        let mut all = Vec::with_capacity(lists.len());
        for rules in lists {
            all.push(self.core.languages.rules_for_name(&mut self.core.base, rules, name)?);
        }
        Ok(self.core.base.formulas.and(all))
    }

    /// Returns `true` if every nonempty cell of a type, or of each type, has unboundedly many
    /// values.
    pub(crate) fn cells_are_unbounded(
        &mut self,
        nodes: &[NodeId],
        of: Option<JsonType>,
    ) -> Result<bool, Error> {
        for one in JsonType::ALL.into_iter().filter(|&one| of.is_none_or(|of| of == one)) {
            let mut formulas = Vec::new();
            for &node in nodes {
                let formula = self.core.base.child(node);
                let formula = self.core.formula_for_type(formula, one)?;
                if formula != TRUE && formula != FALSE && !formulas.contains(&formula) {
                    formulas.push(formula);
                }
            }
            if formulas.len() > MAX_NODES {
                return Ok(false);
            }
            for signs in 0..1usize << formulas.len() {
                let signed = |core: &mut SolverContext, (at, &formula): (usize, &FormulaId)| {
                    if signs >> at & 1 == 1 { formula } else { core.base.formulas.not(formula) }
                };
                let cell =
                    formulas.iter().enumerate().map(|each| signed(self.core, each)).collect();
                let cell = self.core.base.formulas.and(cell);
                if self.core.has_value_of_type(cell, one)?
                    && (one == JsonType::Number || !self.has_unbounded_values(cell, one)?)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
