//! Translates nodes into formulas over the atoms of one type.
//!
//! Each keyword rule becomes an atom or a combination of atoms; rules about other types are
//! vacuously true. Results are memoized by node and type. `oneOf` and `if` have a file of their
//! own, as have `unevaluatedProperties` and `unevaluatedItems`.

mod exclusive_alternatives;
mod unevaluated;

use std::sync::Arc;

use formalm_automata::{Error, Resource};

use crate::formula::{Atom, F, FALSE, TRUE, Which};
use crate::json::interned_values::{Value, ValueId};
use crate::json::property_names::NameId;
use crate::schema_nodes::{NodeId, Rule, Type};
use crate::solver::context::Core;

/// Maximum recursion depth of the expansion, in nodes. Each level takes up to 1 KiB of stack
/// (threads have 2 MiB). Chosen, not measured.
const MAX_EXPANSION_DEPTH: u64 = 500;

impl Core {
    /// Returns the formula that a value of type `of` must satisfy to satisfy the node. Fails if
    /// nodes are nested too deeply or formulas exceed their limits.
    pub(crate) fn expand(&mut self, node: NodeId, ty: Type) -> Result<F, Error> {
        let node = self.schema.representative(node);
        let key = (node, ty, self.comparing_alternatives);
        if let Some(&known) = self.expanded.get(&key) {
            return Ok(known);
        }
        let rules = Arc::clone(&self.schema.node(node).rules);
        if rules.iter().any(|rule| rule.excludes_type(ty)) {
            return Ok(FALSE);
        }
        if self.expansion_depth >= MAX_EXPANSION_DEPTH {
            let (needed, allowed) = (MAX_EXPANSION_DEPTH + 1, MAX_EXPANSION_DEPTH);
            return Err(Error::Limit { resource: Resource::Nesting, needed, allowed });
        }
        self.check_formula_limits()?;
        self.expansion_depth += 1;
        let formula = self.expand_rules(&rules, ty);
        self.expansion_depth -= 1;
        let formula = formula?;
        self.expanded.insert(key, formula);
        Ok(formula)
    }

    /// Returns the formulas of several nodes. Fails if one cannot be expanded.
    pub(crate) fn expand_all(&mut self, nodes: &[NodeId], ty: Type) -> Result<Vec<F>, Error> {
        nodes.iter().map(|&node| self.expand(node, ty)).collect()
    }

    /// Returns the formula of one rule for a value of type `of`. `oneOf` and `if` are translated by
    /// [`SolverContext::expand_rules`], which sees all rules of the node.
    pub(crate) fn expand_rule(
        &mut self,
        rule: &Rule,
        siblings: &[Rule],
        ty: Type,
    ) -> Result<F, Error> {
        Ok(match rule {
            Rule::Never => FALSE,
            Rule::Types { types, integer } => match ty {
                _ if types.contains(&ty) => TRUE,
                Type::Number if *integer => {
                    self.formulas.atom(Atom::Multiple(crate::json::decimal::Decimal::integer(1)))
                }
                _ => FALSE,
            },
            Rule::Enum(values) => self.any_of_values(values, ty),
            Rule::Any(nodes) => {
                let list = self.expand_all(nodes, ty)?;
                self.formulas.or(list)
            }
            Rule::Not(node) => {
                let inner = self.expand(*node, ty)?;
                self.formulas.not(inner)
            }
            _ => match ty {
                Type::Number => self.number_rule(rule),
                Type::String => match rule {
                    Rule::StringLanguage(regex) if self.schema.is_any_string(*regex) => TRUE,
                    Rule::StringLanguage(regex) => self.formulas.atom(Atom::In(*regex)),
                    _ => TRUE,
                },
                Type::Array => self.array_rule(rule, siblings)?,
                Type::Object => self.object_rule(rule, siblings)?,
                Type::Null | Type::Bool => TRUE,
            },
        })
    }

    /// Returns the formula of a rule for numbers.
    fn number_rule(&mut self, rule: &Rule) -> F {
        let (atom, negative) = match rule {
            Rule::IntegerSpelling => (Atom::Whole, false),
            Rule::Minimum(bound) => (Atom::Least(bound.clone()), false),
            Rule::ExclusiveMinimum(bound) => (Atom::Above(bound.clone()), false),
            Rule::Maximum(bound) => (Atom::Above(bound.clone()), true),
            Rule::ExclusiveMaximum(bound) => (Atom::Least(bound.clone()), true),
            Rule::MultipleOf(unit) => (Atom::Multiple(unit.clone()), false),
            _ => return TRUE,
        };
        let atom = self.formulas.atom(atom);
        if negative { self.formulas.not(atom) } else { atom }
    }

    /// Returns the formula of a rule for arrays.
    fn array_rule(&mut self, rule: &Rule, siblings: &[Rule]) -> Result<F, Error> {
        Ok(match rule {
            Rule::Items(ranges) => self.formulas.atom(Atom::Items(ranges.clone(), 0)),
            &Rule::Contains { node, min, max, .. } => {
                let enough = self.at_least(Atom::Contains(min, node), min);
                let Some(max) = max else { return Ok(enough) };
                let many = self.formulas.atom(Atom::Contains(max + 1, node));
                let few = self.formulas.not(many);
                self.formulas.both(enough, few)
            }
            &Rule::MinItems(min) => self.at_least(Atom::MoreItems(min), min),
            &Rule::MaxItems(max) => {
                let many = self.formulas.atom(Atom::MoreItems(max + 1));
                self.formulas.not(many)
            }
            Rule::Unique => self.formulas.atom(Atom::Unique([].into())),
            Rule::UnevaluatedItems(node) => self.unevaluated_items(*node, siblings)?,
            _ => TRUE,
        })
    }

    /// Returns the formula of a rule for objects.
    fn object_rule(&mut self, rule: &Rule, siblings: &[Rule]) -> Result<F, Error> {
        Ok(match rule {
            Rule::Members(list) => self.formulas.atom(Atom::Members(list.clone())),
            Rule::Required(names) => self.owed(names.clone()),
            &Rule::MinProperties(min) => self.at_least(Atom::MoreMembers(min), min),
            &Rule::MaxProperties(max) => {
                let many = self.formulas.atom(Atom::MoreMembers(max + 1));
                self.formulas.not(many)
            }
            Rule::PropertyNames(node) => match self.expand(*node, Type::String)? {
                TRUE => TRUE,
                names => self.formulas.atom(Atom::NamesIn(names)),
            },
            Rule::DependentRequired(name, names) => {
                let present = self.owed(vec![*name]);
                let (absent, required) = (self.formulas.not(present), self.owed(names.clone()));
                self.formulas.or(vec![absent, required])
            }
            Rule::SchemaWith(name, node) => {
                let present = self.owed(vec![*name]);
                let (absent, holds) =
                    (self.formulas.not(present), self.expand(*node, Type::Object)?);
                self.formulas.or(vec![absent, holds])
            }
            Rule::UnevaluatedProperties(node) => self.unevaluated_properties(*node, siblings)?,
            _ => TRUE,
        })
    }

    /// Returns the atom "at least `count`", which is [`TRUE`] for zero.
    fn at_least(&mut self, atom: Atom, count: u64) -> F {
        if count == 0 { TRUE } else { self.formulas.atom(atom) }
    }

    /// Returns the formula that requires these names.
    pub(crate) fn owed(&mut self, mut names: Vec<NameId>) -> F {
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { TRUE } else { self.formulas.atom(Atom::Owed(names.into())) }
    }

    /// Returns the formula that the value equals one of `values`.
    fn any_of_values(&mut self, values: &[ValueId], ty: Type) -> F {
        let (mut list, mut texts) = (Vec::new(), Vec::new());
        for &id in values {
            let value = self.schema.values.get(id);
            if value.json_type() != ty {
                continue;
            }
            match (value.clone(), ty) {
                (Value::Null, Type::Null) => return TRUE,
                (Value::Bool(truth), Type::Bool) => {
                    let atom = self.formulas.atom(Atom::IsTrue);
                    list.push(if truth { atom } else { self.formulas.not(atom) });
                }
                (Value::Number(number), Type::Number) => {
                    list.push(self.formulas.atom(Atom::Equal(number)));
                }
                (Value::String(text), Type::String) => texts.push(text),
                (Value::Array(items), Type::Array) => list.push(self.equal_array(&items)),
                (Value::Object(properties), Type::Object) => {
                    list.push(self.equal_object(&properties))
                }
                _ => {}
            }
        }
        if !texts.is_empty() {
            let regex = self.schema.texts(texts);
            list.push(self.formulas.atom(Atom::In(regex)));
        }
        self.formulas.or(list)
    }

    /// Returns the formula of arrays equal to one with these items.
    fn equal_array(&mut self, items: &[ValueId]) -> F {
        let mut ranges = Vec::with_capacity(items.len());
        for (at, &item) in items.iter().enumerate() {
            ranges.push((at as u32, at as u32 + 1, self.schema.node_of_values(&[item])));
        }
        let count = items.len() as u64;
        let long = self.formulas.atom(Atom::MoreItems(count + 1));
        let mut all = vec![self.formulas.not(long), self.at_least(Atom::MoreItems(count), count)];
        if !ranges.is_empty() {
            all.push(self.formulas.atom(Atom::Items(ranges.into(), 0)));
        }
        self.formulas.and(all)
    }

    /// Returns the formula of objects equal to one with these properties.
    fn equal_object(&mut self, properties: &[(NameId, ValueId)]) -> F {
        let mut rules = Vec::with_capacity(properties.len());
        for &(name, value) in properties {
            let node = self.schema.node_of_values(&[value]);
            rules.push((Which::only(name), node));
        }
        let count = properties.len() as u64;
        let large = self.formulas.atom(Atom::MoreMembers(count + 1));
        let names = properties.iter().map(|&(name, _)| name).collect();
        let mut all = vec![self.formulas.not(large), self.owed(names)];
        if !rules.is_empty() {
            all.push(self.formulas.atom(Atom::Members(rules.into())));
        }
        self.formulas.and(all)
    }
}

impl Rule {
    /// Returns `true` if the rule alone rules out the type.
    fn excludes_type(&self, ty: Type) -> bool {
        match self {
            Rule::Never => true,
            Rule::Types { types, integer } => {
                !(types.contains(&ty) || *integer && ty == Type::Number)
            }
            _ => false,
        }
    }
}

impl Which {
    /// Returns the selector of one name.
    pub(crate) fn only(name: NameId) -> Which {
        let names = Some([name].into());
        Which { names, others: [].into(), found: [].into(), missing: [].into() }
    }

    /// Returns the selector of the same names except `name`.
    pub(crate) fn without(&self, name: NameId) -> Which {
        let mut which = self.clone();
        match &mut which.names {
            Some(names) => *names = names.iter().copied().filter(|&one| one != name).collect(),
            None => {
                let mut others = which.others.to_vec();
                others.push(name);
                others.sort_unstable();
                others.dedup();
                which.others = others.into();
            }
        }
        which
    }

    /// Returns the selector of every name.
    pub(crate) fn every() -> Which {
        Which { names: None, others: [].into(), found: [].into(), missing: [].into() }
    }
}
