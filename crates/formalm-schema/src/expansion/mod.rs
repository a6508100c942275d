//! Translates nodes into formulas over the atoms of one type.
//!
//! Each keyword rule becomes an atom or a combination of atoms; rules about other types are
//! vacuously true. Results are memoized by node and type. `oneOf` and `if` have a file of their
//! own, as have `unevaluatedProperties` and `unevaluatedItems`.

mod exclusive_alternatives;
mod unevaluated;

use std::sync::Arc;

use formalm_core::{CompactMap, Error, Resource, check_limit, memory_bytes};

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::json::interned_values::{JsonValue, ValueId};
use crate::json::property_names::NameId;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId};
use crate::solver::context::SolverContext;
use crate::solver::formula_base::FormulaBase;

/// Maximum recursion depth of the expansion, in nodes. Each level takes up to 1 KiB of stack
/// (threads have 2 MiB). Chosen, not measured.
const MAX_EXPANSION_DEPTH: u64 = 500;

/// Number of operands above which [`SolverContext::formula_for_type`] memoizes its results. Chosen,
/// not measured.
const MEMOIZED_PARTS: usize = 16;

/// The formulas of the nodes expanded so far. The last part of the keys is
/// `comparing_alternatives`.
#[derive(Debug, Default)]
pub(crate) struct Expansions {
    nodes: CompactMap<(NodeId, JsonType, bool), FormulaId>,
    /// Formulas with many operands over the child, as formulas over the atoms of a type.
    typed: CompactMap<(FormulaId, JsonType, bool), FormulaId>,
    /// Alternatives are being compared, so nodes are expanded without rewriting `oneOf` and `if`.
    pub(crate) comparing_alternatives: bool,
    /// Current depth of nested expansions.
    depth: u64,
}

memory_bytes!(Expansions { nodes, typed; comparing_alternatives, depth });

impl SolverContext {
    /// Returns the formula that a value of a type must satisfy to satisfy the node. Fails if
    /// nodes are nested too deeply or formulas exceed their limits.
    pub(crate) fn expand(&mut self, node: NodeId, ty: JsonType) -> Result<FormulaId, Error> {
        let node = self.base.schema.representative(node);
        let key = (node, ty, self.expansions.comparing_alternatives);
        if let Some(&known) = self.expansions.nodes.get(&key) {
            return Ok(known);
        }
        let rules = Arc::clone(&self.base.schema.node(node).rules);
        if rules.iter().any(|rule| rule.excludes_type(ty)) {
            return Ok(FALSE);
        }
        check_limit(Resource::Nesting, self.expansions.depth + 1, MAX_EXPANSION_DEPTH)?;
        self.base.check_formula_limits()?;
        self.expansions.depth += 1;
        let formula = NodeExpansion { solver: self, ty }.expand_rules(&rules);
        self.expansions.depth -= 1;
        let formula = formula?;
        self.expansions.nodes.insert(key, formula);
        Ok(formula)
    }

    /// Returns a formula over the child as a formula over the atoms of one type.
    pub(crate) fn formula_for_type(
        &mut self,
        id: FormulaId,
        ty: JsonType,
    ) -> Result<FormulaId, Error> {
        match *self.base.formulas.get(id) {
            Formula::True | Formula::False => return Ok(id),
            Formula::Child(node) => return self.expand(node, ty),
            _ => {}
        }
        let key = (id, ty, self.expansions.comparing_alternatives);
        if let Some(&known) = self.expansions.typed.get(&key) {
            return Ok(known);
        }
        let nodes = self.base.formulas.queried_nodes(&[id]);
        let mut answers = Vec::with_capacity(nodes.len());
        for &node in &nodes {
            answers.push(self.expand(node, ty)?);
        }
        let typed = self.base.formulas.substitute_verdicts(id, &nodes, &answers);
        if self.base.formulas.part_count(typed) > MEMOIZED_PARTS {
            self.expansions.typed.insert(key, typed);
        }
        Ok(typed)
    }
}

/// The translation of a node for values of one type.
struct NodeExpansion<'a> {
    solver: &'a mut SolverContext,
    ty: JsonType,
}

impl NodeExpansion<'_> {
    /// Returns the formula of a node.
    fn expand(&mut self, node: NodeId) -> Result<FormulaId, Error> {
        self.solver.expand(node, self.ty)
    }

    /// Returns the formulas of several nodes. Fails if one cannot be expanded.
    fn expand_all(&mut self, nodes: &[NodeId]) -> Result<Vec<FormulaId>, Error> {
        nodes.iter().map(|&node| self.expand(node)).collect()
    }

    /// Returns the formula of one rule for a value of the type. `oneOf` and `if` are translated by
    /// [`NodeExpansion::expand_rules`], which sees all rules of the node.
    fn expand_rule(
        &mut self,
        rule: &KeywordRule,
        siblings: &[KeywordRule],
    ) -> Result<FormulaId, Error> {
        let ty = self.ty;
        Ok(match rule {
            KeywordRule::Never => FALSE,
            KeywordRule::Types { types, integer } => {
                match ty {
                    _ if types.contains(&ty) => TRUE,
                    JsonType::Number if *integer => self.solver.base.formulas.atom(
                        FormulaAtom::MultipleOf(crate::json::decimal::Decimal::from_integer(1)),
                    ),
                    _ => FALSE,
                }
            }
            KeywordRule::Enum(values) => self.solver.base.any_of_values(values, ty),
            KeywordRule::AnyOf(nodes) => {
                let list = self.expand_all(nodes)?;
                self.solver.base.formulas.or(list)
            }
            KeywordRule::Not(node) => {
                let inner = self.expand(*node)?;
                self.solver.base.formulas.not(inner)
            }
            _ => match ty {
                JsonType::Number => self.solver.base.number_rule(rule),
                JsonType::String => match rule {
                    KeywordRule::StringLanguage(regex)
                        if self.solver.base.schema.is_any_string(*regex) =>
                    {
                        TRUE
                    }
                    KeywordRule::StringLanguage(regex) => {
                        self.solver.base.formulas.atom(FormulaAtom::InLanguage(*regex))
                    }
                    _ => TRUE,
                },
                JsonType::Array => self.array_rule(rule, siblings)?,
                JsonType::Object => self.object_rule(rule, siblings)?,
                JsonType::Null | JsonType::Bool => TRUE,
            },
        })
    }

    /// Returns the formula of a rule for arrays.
    fn array_rule(
        &mut self,
        rule: &KeywordRule,
        siblings: &[KeywordRule],
    ) -> Result<FormulaId, Error> {
        Ok(match rule {
            KeywordRule::Items(ranges) => {
                self.solver.base.formulas.atom(FormulaAtom::Items(ranges.clone(), 0))
            }
            &KeywordRule::Contains { node, min, max, .. } => {
                let enough =
                    self.solver.base.formulas.at_least(FormulaAtom::Contains(min, node), min);
                let Some(max) = max else { return Ok(enough) };
                let many = self.solver.base.formulas.atom(FormulaAtom::Contains(max + 1, node));
                let few = self.solver.base.formulas.not(many);
                self.solver.base.formulas.both(enough, few)
            }
            &KeywordRule::MinItems(min) => {
                self.solver.base.formulas.at_least(FormulaAtom::MinItems(min), min)
            }
            &KeywordRule::MaxItems(max) => {
                let many = self.solver.base.formulas.atom(FormulaAtom::MinItems(max + 1));
                self.solver.base.formulas.not(many)
            }
            KeywordRule::UniqueItems => {
                self.solver.base.formulas.atom(FormulaAtom::UniqueItems([].into()))
            }
            KeywordRule::UnevaluatedItems(node) => self.unevaluated_items(*node, siblings)?,
            _ => TRUE,
        })
    }

    /// Returns the formula of a rule for objects.
    fn object_rule(
        &mut self,
        rule: &KeywordRule,
        siblings: &[KeywordRule],
    ) -> Result<FormulaId, Error> {
        Ok(match rule {
            KeywordRule::Properties(list) => {
                self.solver.base.formulas.atom(FormulaAtom::Properties(list.clone()))
            }
            KeywordRule::Required(names) => self.solver.base.formulas.required(names.clone()),
            &KeywordRule::MinProperties(min) => {
                self.solver.base.formulas.at_least(FormulaAtom::MinProperties(min), min)
            }
            &KeywordRule::MaxProperties(max) => {
                let many = self.solver.base.formulas.atom(FormulaAtom::MinProperties(max + 1));
                self.solver.base.formulas.not(many)
            }
            KeywordRule::PropertyNames(node) => {
                match self.solver.expand(*node, JsonType::String)? {
                    TRUE => TRUE,
                    names => self.solver.base.formulas.atom(FormulaAtom::PropertyNames(names)),
                }
            }
            KeywordRule::DependentRequired(name, names) => {
                let present = self.solver.base.formulas.required(vec![*name]);
                let (absent, required) = (
                    self.solver.base.formulas.not(present),
                    self.solver.base.formulas.required(names.clone()),
                );
                self.solver.base.formulas.or(vec![absent, required])
            }
            KeywordRule::DependentSchema(name, node) => {
                let present = self.solver.base.formulas.required(vec![*name]);
                let (absent, holds) = (
                    self.solver.base.formulas.not(present),
                    self.solver.expand(*node, JsonType::Object)?,
                );
                self.solver.base.formulas.or(vec![absent, holds])
            }
            KeywordRule::UnevaluatedProperties(node) => {
                self.unevaluated_properties(*node, siblings)?
            }
            _ => TRUE,
        })
    }
}

impl FormulaBase {
    /// Returns the formula that the value equals one of `values`.
    fn any_of_values(&mut self, values: &[ValueId], ty: JsonType) -> FormulaId {
        let (mut list, mut texts) = (Vec::new(), Vec::new());
        for &id in values {
            let value = self.schema.values.get(id);
            if value.json_type() != ty {
                continue;
            }
            match (value.clone(), ty) {
                (JsonValue::Null, JsonType::Null) => return TRUE,
                (JsonValue::Bool(truth), JsonType::Bool) => {
                    let atom = self.formulas.atom(FormulaAtom::IsTrue);
                    list.push(if truth { atom } else { self.formulas.not(atom) });
                }
                (JsonValue::Number(number), JsonType::Number) => {
                    list.push(self.formulas.atom(FormulaAtom::EqualTo(number)));
                }
                (JsonValue::String(text), JsonType::String) => texts.push(text),
                (JsonValue::Array(items), JsonType::Array) => list.push(self.equal_array(&items)),
                (JsonValue::Object(properties), JsonType::Object) => {
                    list.push(self.equal_object(&properties))
                }
                _ => {}
            }
        }
        if !texts.is_empty() {
            let regex = self.schema.enum_regex(texts);
            list.push(self.formulas.atom(FormulaAtom::InLanguage(regex)));
        }
        self.formulas.or(list)
    }

    /// Returns the formula of arrays equal to one with these items.
    fn equal_array(&mut self, items: &[ValueId]) -> FormulaId {
        let mut ranges = Vec::with_capacity(items.len());
        for (at, &item) in items.iter().enumerate() {
            ranges.push((at as u32, at as u32 + 1, self.schema.node_for_values(&[item])));
        }
        let count = items.len() as u64;
        let long = self.formulas.atom(FormulaAtom::MinItems(count + 1));
        let mut all = vec![
            self.formulas.not(long),
            self.formulas.at_least(FormulaAtom::MinItems(count), count),
        ];
        if !ranges.is_empty() {
            all.push(self.formulas.atom(FormulaAtom::Items(ranges.into(), 0)));
        }
        self.formulas.and(all)
    }

    /// Returns the formula of objects equal to one with these properties.
    fn equal_object(&mut self, properties: &[(NameId, ValueId)]) -> FormulaId {
        let mut rules = Vec::with_capacity(properties.len());
        for &(name, value) in properties {
            let node = self.schema.node_for_values(&[value]);
            rules.push((NameSelector::only(name), node));
        }
        let count = properties.len() as u64;
        let large = self.formulas.atom(FormulaAtom::MinProperties(count + 1));
        let names = properties.iter().map(|&(name, _)| name).collect();
        let mut all = vec![self.formulas.not(large), self.formulas.required(names)];
        if !rules.is_empty() {
            all.push(self.formulas.atom(FormulaAtom::Properties(rules.into())));
        }
        self.formulas.and(all)
    }

    /// Returns the formula of a rule for numbers.
    fn number_rule(&mut self, rule: &KeywordRule) -> FormulaId {
        let (atom, negative) = match rule {
            KeywordRule::IntegerSpelling => (FormulaAtom::IntegerSpelling, false),
            KeywordRule::Minimum(bound) => (FormulaAtom::AtLeast(bound.clone()), false),
            KeywordRule::ExclusiveMinimum(bound) => {
                (FormulaAtom::GreaterThan(bound.clone()), false)
            }
            KeywordRule::Maximum(bound) => (FormulaAtom::GreaterThan(bound.clone()), true),
            KeywordRule::ExclusiveMaximum(bound) => (FormulaAtom::AtLeast(bound.clone()), true),
            KeywordRule::MultipleOf(unit) => (FormulaAtom::MultipleOf(unit.clone()), false),
            _ => return TRUE,
        };
        let atom = self.formulas.atom(atom);
        if negative { self.formulas.not(atom) } else { atom }
    }
}

impl KeywordRule {
    /// Returns `true` if the rule alone rules out the type.
    fn excludes_type(&self, ty: JsonType) -> bool {
        match self {
            KeywordRule::Never => true,
            KeywordRule::Types { types, integer } => {
                !(types.contains(&ty) || *integer && ty == JsonType::Number)
            }
            _ => false,
        }
    }
}

impl NameSelector {
    /// Returns the selector of one name.
    pub(crate) fn only(name: NameId) -> NameSelector {
        let names = Some([name].into());
        NameSelector {
            names,
            excluded_names: [].into(),
            matched_patterns: [].into(),
            unmatched_patterns: [].into(),
        }
    }

    /// Returns the selector of the same names except `name`.
    pub(crate) fn without(&self, name: NameId) -> NameSelector {
        let mut which = self.clone();
        match &mut which.names {
            Some(names) => *names = names.iter().copied().filter(|&one| one != name).collect(),
            None => {
                let mut others = which.excluded_names.to_vec();
                others.push(name);
                others.sort_unstable();
                others.dedup();
                which.excluded_names = others.into();
            }
        }
        which
    }

    /// Returns the selector of every name.
    pub(crate) fn every() -> NameSelector {
        NameSelector {
            names: None,
            excluded_names: [].into(),
            matched_patterns: [].into(),
            unmatched_patterns: [].into(),
        }
    }
}
