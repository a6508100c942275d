//! Derivatives of formulas by a property name or an item.
//!
//! ```text
//! ∂ₙ properties(rules)   =  properties(rules without n)  ∧  child ⊨ rules(n)
//! ∂ₙ required(N)         =  required(N \ {n})
//! ∂  contains(k, S)      =  (child ⊨ S ∧ contains(k−1, S)) ∨ (child ⊭ S ∧ contains(k, S))
//! ```
//!
//! The child appears as the statement that it satisfies a node. What only the child can fulfill
//! becomes its own obligation; about the rest the container asks queries, whose verdicts replace
//! these statements when the child closes.

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, NameSelector, TRUE};
use crate::interner::CompactMap;
use crate::json::interned_values::ValueId;
use crate::json::property_names::NameId;
use crate::machine::frame::Obligation;
use crate::schema_nodes::{JsonType, KeywordRule, NodeId};
use crate::solver::RemainingContainer;
use crate::solver::context::SolverContext;

/// The obligations of a container and of its new child.
pub(crate) struct ChildStart {
    pub(crate) container: Obligation,
    pub(crate) child: Obligation,
}

impl SolverContext {
    /// Returns the whole obligation as one formula, including the goal over the queries.
    pub(crate) fn total(&mut self, obligation: &Obligation) -> FormulaId {
        let goal = self.base.formulas.substitute_verdicts(
            obligation.goal,
            &obligation.queries,
            &obligation.formulas[1..],
        );
        self.base.formulas.both(goal, obligation.formulas[0])
    }

    /// Returns the obligation after a property of this name has begun.
    pub(crate) fn after_name(
        &mut self,
        obligation: &Obligation,
        name: NameId,
    ) -> Result<Obligation, Error> {
        let mut known = CompactMap::default();
        let formulas: Result<Vec<FormulaId>, Error> = obligation
            .formulas
            .iter()
            .map(|&id| {
                // Conjuncts are kept unchanged: they hold anyway, and many states share them.
                let certain = self.base.formulas.conjuncts(id);
                self.map_atoms(id, &mut known, &|core, atom, leaf| {
                    let is_certain = certain.binary_search(&leaf).is_ok();
                    core.atom_after_name(atom, leaf, name, is_certain)
                })
            })
            .collect();
        Ok(Obligation { formulas: formulas?.into(), ..obligation.clone() })
    }

    /// Returns the obligation after an item has begun.
    pub(crate) fn after_item(&mut self, obligation: &Obligation) -> Result<Obligation, Error> {
        let mut known = CompactMap::default();
        let formulas: Result<Vec<FormulaId>, Error> = obligation
            .formulas
            .iter()
            .map(|&id| {
                self.map_atoms(id, &mut known, &|core, atom, _| Ok(core.atom_after_item(atom)))
            })
            .collect();
        Ok(Obligation { formulas: formulas?.into(), ..obligation.clone() })
    }

    /// Replaces the atoms of a formula.
    fn map_atoms(
        &mut self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, FormulaId>,
        leaf: &impl Fn(&mut SolverContext, FormulaAtom, FormulaId) -> Result<FormulaId, Error>,
    ) -> Result<FormulaId, Error> {
        if let Some(&new) = known.get(&id) {
            return Ok(new);
        }
        let mut all =
            |core: &mut SolverContext, list: &[FormulaId]| -> Result<Vec<FormulaId>, Error> {
                list.iter().map(|&one| core.map_atoms(one, known, leaf)).collect()
            };
        let new = match self.base.formulas.get(id).clone() {
            Formula::Atom(atom) => leaf(self, atom, id)?,
            Formula::Not(inner) => {
                let inner = all(self, &[inner])?[0];
                self.base.formulas.not(inner)
            }
            Formula::And(list) => match self.map_atoms_unless(&list, FALSE, known, leaf)? {
                Some(list) => self.base.formulas.and(list),
                None => FALSE,
            },
            Formula::Or(list) => match self.map_atoms_unless(&list, TRUE, known, leaf)? {
                Some(list) => self.base.formulas.or(list),
                None => TRUE,
            },
            Formula::ExactlyOne(list) => {
                let list = all(self, &list)?;
                self.base.formulas.exactly_one(list)
            }
            Formula::False | Formula::True | Formula::Child(_) => id,
        };
        known.insert(id, new);
        Ok(new)
    }

    /// Replaces the atoms of formulas; `None` as soon as one becomes `decides`, which determines
    /// the result.
    fn map_atoms_unless(
        &mut self,
        list: &[FormulaId],
        decides: FormulaId,
        known: &mut CompactMap<FormulaId, FormulaId>,
        leaf: &impl Fn(&mut SolverContext, FormulaAtom, FormulaId) -> Result<FormulaId, Error>,
    ) -> Result<Option<Vec<FormulaId>>, Error> {
        let mut new = Vec::with_capacity(list.len());
        for &one in list {
            let one = self.map_atoms(one, known, leaf)?;
            if one == decides {
                return Ok(None);
            }
            new.push(one);
        }
        Ok(Some(new))
    }

    /// Returns the derivative of an atom by a property name.
    fn atom_after_name(
        &mut self,
        atom: FormulaAtom,
        leaf: FormulaId,
        name: NameId,
        is_certain: bool,
    ) -> Result<FormulaId, Error> {
        Ok(match atom {
            FormulaAtom::Properties(rules) => {
                let value = self.languages.rules_for_name(&mut self.base, &rules, name)?;
                let rest = if is_certain { leaf } else { self.rules_except(&rules, leaf, name) };
                self.base.formulas.both(rest, value)
            }
            FormulaAtom::Required(names) => self
                .base
                .formulas
                .required(names.iter().copied().filter(|&one| one != name).collect()),
            FormulaAtom::MinProperties(count) if count > 1 => {
                self.base.formulas.atom(FormulaAtom::MinProperties(count - 1))
            }
            FormulaAtom::MinProperties(_) => TRUE,
            FormulaAtom::PropertyNames(names) => {
                if self.languages.contains_name(&self.base, names, name)? { leaf } else { FALSE }
            }
            _ => leaf,
        })
    }

    /// Returns the rules about all properties except one that was read.
    fn rules_except(
        &mut self,
        rules: &[(NameSelector, NodeId)],
        leaf: FormulaId,
        name: NameId,
    ) -> FormulaId {
        let mentions = |which: &NameSelector| {
            which.names.as_ref().is_some_and(|names| names.binary_search(&name).is_ok())
        };
        if !rules.iter().any(|(which, _)| mentions(which)) {
            return leaf;
        }
        let mut left = Vec::with_capacity(rules.len());
        for (which, node) in rules {
            if !mentions(which) {
                left.push((which.clone(), *node));
            } else if which.names.as_ref().is_some_and(|names| names.len() > 1) {
                left.push((which.without(name), *node));
            }
        }
        if left.is_empty() {
            TRUE
        } else {
            self.base.formulas.atom(FormulaAtom::Properties(left.into()))
        }
    }

    /// Returns the derivative of an atom by an item.
    fn atom_after_item(&mut self, atom: FormulaAtom) -> FormulaId {
        match atom {
            FormulaAtom::Items(ranges, read) => {
                let item = self.base.item_formula_at(&ranges, u64::from(read));
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                let endless = ranges.iter().any(|range| range.1 == u32::MAX);
                let read = (read + 1).min(last);
                if read == last && !endless {
                    return item;
                }
                let rest = self.base.formulas.atom(FormulaAtom::Items(ranges, read));
                self.base.formulas.both(rest, item)
            }
            FormulaAtom::MinItems(count) if count > 1 => {
                self.base.formulas.atom(FormulaAtom::MinItems(count - 1))
            }
            FormulaAtom::MinItems(_) => TRUE,
            FormulaAtom::Contains(count, node) => {
                let counted = self.base.child(node);
                let other = self.base.formulas.not(counted);
                let same = self.base.formulas.atom(FormulaAtom::Contains(count, node));
                let fewer = match count {
                    1 => TRUE,
                    _ => self.base.formulas.atom(FormulaAtom::Contains(count - 1, node)),
                };
                let (yes, no) =
                    (self.base.formulas.both(counted, fewer), self.base.formulas.both(other, same));
                self.base.formulas.or(vec![yes, no])
            }
            FormulaAtom::UniqueItems(taken) => {
                let rest = self.base.formulas.atom(FormulaAtom::UniqueWithCurrent(taken.clone()));
                if taken.is_empty() {
                    return rest;
                }
                let node = self.base.schema.node_for_values(&taken);
                let repeated = self.base.child(node);
                let other = self.base.formulas.not(repeated);
                self.base.formulas.both(other, rest)
            }
            other => self.base.formulas.atom(other),
        }
    }

    /// Moves the conjuncts that only concern the child out of the container. Returns the container,
    /// the child's part, and their total.
    pub(crate) fn split_obligation(
        &mut self,
        obligation: Obligation,
    ) -> (Obligation, FormulaId, FormulaId) {
        let (mut must, mut kept) = (Vec::new(), Vec::new());
        for part in self.base.formulas.conjuncts(obligation.formulas[0]) {
            let moves = self.base.formulas.has_child(part) && !self.base.formulas.has_atom(part);
            if moves { must.push(part) } else { kept.push(part) }
        }
        let must = self.base.formulas.and(must);
        let mut container = obligation;
        container.formulas[0] = self.base.formulas.and(kept);
        let total = self.total(&container);
        (container, must, total)
    }

    /// Returns `true` if a child can be read.
    pub(crate) fn child_viable(
        &mut self,
        obligation: Obligation,
        rest: RemainingContainer<'_>,
    ) -> Result<bool, Error> {
        let (_, must, total) = self.split_obligation(obligation);
        let all = self.base.formulas.both(total, must);
        rest.fits_with_child(self, all)
    }

    /// Splits an obligation between container and child, `None` if no child can be read.
    pub(crate) fn split_child(
        &mut self,
        obligation: Obligation,
        rest: RemainingContainer<'_>,
    ) -> Result<Option<ChildStart>, Error> {
        let viable = self.child_viable(obligation.clone(), rest)?;
        if viable { self.split_viable_child(obligation, rest).map(Some) } else { Ok(None) }
    }

    /// Splits an obligation between container and child, given that a child can be read.
    pub(crate) fn split_viable_child(
        &mut self,
        obligation: Obligation,
        rest: RemainingContainer<'_>,
    ) -> Result<ChildStart, Error> {
        let (mut container, must, _) = self.split_obligation(obligation);
        self.substitute_verdicts(must, container.formulas.iter_mut());
        let total = self.total(&container);
        let is_repeated = rest.json_type == JsonType::Array && self.may_need_equal_item(total);
        let asks = container.formulas.iter().any(|&one| self.base.formulas.has_child(one));
        let child = Obligation { formulas: [must].into(), queries: [].into(), goal: TRUE };
        let mut start = ChildStart { container, child };
        if asks || is_repeated {
            let goal = rest.project_to_child(self, total, must)?;
            self.move_queries_to_child(goal, &mut start);
        }
        Ok(start)
    }

    /// Substitutes the verdicts that formula `id` implies into `formulas`. Returns the literals
    /// that imply them.
    fn substitute_verdicts<'a>(
        &mut self,
        id: FormulaId,
        formulas: impl Iterator<Item = &'a mut FormulaId>,
    ) -> Vec<FormulaId> {
        let mut literals: Vec<(NodeId, FormulaId, FormulaId)> = Vec::new();
        for part in self.base.formulas.conjuncts(id) {
            match *self.base.formulas.get(part) {
                Formula::Child(node) => literals.push((node, TRUE, part)),
                Formula::Not(inner) => {
                    if let Formula::Child(node) = *self.base.formulas.get(inner) {
                        literals.push((node, FALSE, part));
                    }
                }
                _ => {}
            }
        }
        literals.sort_unstable();
        let nodes: Vec<NodeId> = literals.iter().map(|one| one.0).collect();
        let verdicts: Vec<FormulaId> = literals.iter().map(|one| one.1).collect();
        for one in formulas {
            *one = self.base.formulas.substitute_verdicts(*one, &nodes, &verdicts);
        }
        literals.into_iter().map(|one| one.2).collect()
    }

    /// Makes implied verdicts obligations of the child, so that they need no query.
    fn move_queries_to_child(
        &mut self,
        mut goal: FormulaId,
        ChildStart { container, child }: &mut ChildStart,
    ) {
        let implied = goal;
        let mut must =
            self.substitute_verdicts(implied, container.formulas.iter_mut().chain([&mut goal]));
        must.push(child.formulas[0]);
        let queries = self.base.formulas.queried_nodes(&container.formulas);
        // The goal may mention nodes that the container does not ask about.
        if self
            .base
            .formulas
            .queried_nodes(&[goal])
            .iter()
            .any(|node| queries.binary_search(node).is_err())
        {
            must.push(std::mem::replace(&mut goal, TRUE));
        }
        let mut formulas = vec![self.base.formulas.and(must)];
        formulas.extend(queries.iter().map(|&node| self.base.formulas.child(node)));
        *child = Obligation { formulas: formulas.into(), queries: queries.into(), goal };
    }

    /// Returns `true` if a later item may have to equal the one being read.
    fn may_need_equal_item(&self, id: FormulaId) -> bool {
        self.may_need_equal_item_within(id, &mut CompactMap::default())
    }

    fn may_need_equal_item_within(
        &self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, bool>,
    ) -> bool {
        let is_small = self.base.formulas.is_small(id);
        if !is_small && let Some(&known) = known.get(&id) {
            return known;
        }
        let may_be = match self.base.formulas.get(id) {
            Formula::Not(inner) => {
                matches!(
                    self.base.formulas.get(*inner),
                    Formula::Atom(FormulaAtom::UniqueWithCurrent(_))
                ) || matches!(self.base.formulas.get(*inner), Formula::ExactlyOne(_))
                    && self.may_need_equal_item_within(*inner, known)
            }
            Formula::And(list) | Formula::Or(list) => {
                list.iter().any(|&one| self.may_need_equal_item_within(one, known))
            }
            Formula::ExactlyOne(list) => self
                .base
                .formulas
                .any_atom(list, |atom| matches!(atom, FormulaAtom::UniqueWithCurrent(_))),
            _ => false,
        };
        if !is_small {
            known.insert(id, may_be);
        }
        may_be
    }

    /// Returns the obligation of a container once its child has closed.
    pub(crate) fn after_child(
        &mut self,
        obligation: &Obligation,
        queries: &[NodeId],
        verdicts: &[bool],
        value: Option<ValueId>,
    ) -> Result<Obligation, Error> {
        let verdicts: Vec<FormulaId> = verdicts
            .iter()
            .map(|&verdict| crate::formula::FormulaArena::constant(verdict))
            .collect();
        let mut known = CompactMap::default();
        let mut formulas = Vec::with_capacity(obligation.formulas.len());
        for &id in &obligation.formulas {
            let id = self.base.formulas.substitute_verdicts(id, queries, &verdicts);
            formulas.push(self.map_atoms(id, &mut known, &|core, atom, leaf| match atom {
                FormulaAtom::UniqueWithCurrent(taken) => {
                    let mut taken = taken.to_vec();
                    taken.extend(value);
                    taken.sort_unstable();
                    taken.dedup();
                    Ok(core.base.formulas.atom(FormulaAtom::UniqueItems(taken.into())))
                }
                _ => Ok(leaf),
            })?);
        }
        Ok(Obligation { formulas: formulas.into(), ..obligation.clone() })
    }

    /// Returns `true` if items have to be remembered.
    pub(crate) fn requires_unique_items(&self, obligation: &Obligation) -> bool {
        obligation.formulas.iter().any(|&id| {
            let is_unique = |atom: &FormulaAtom| {
                matches!(atom, FormulaAtom::UniqueItems(_) | FormulaAtom::UniqueWithCurrent(_))
            };
            self.base.formulas.any_atom(&[id], is_unique)
        })
    }

    /// Returns the names in the order in which the nodes of a formula declare them, then the
    /// required ones.
    pub(crate) fn declared(&self, obligation: &Obligation) -> Vec<NameId> {
        let (mut names, mut required) = (Vec::new(), Vec::new());
        let mut visited = FxHashSet::default();
        for node in self.base.formulas.queried_nodes(&obligation.formulas) {
            self.declare(node, &mut names, &mut required, &mut visited);
        }
        names.extend(required);
        let mut seen = FxHashSet::default();
        names.retain(|&name| seen.insert(name));
        names
    }

    fn declare(
        &self,
        node: NodeId,
        names: &mut Vec<NameId>,
        required: &mut Vec<NameId>,
        visited: &mut FxHashSet<NodeId>,
    ) {
        if !visited.insert(node) {
            return;
        }
        let rules = &self.base.schema.node(node).rules;
        for rule in rules.iter() {
            match rule {
                KeywordRule::Properties(list) => {
                    names.extend(
                        list.iter().filter_map(|(which, _)| which.names.as_ref()).flatten(),
                    );
                }
                KeywordRule::Required(list) => required.extend(list),
                _ => {}
            }
        }
        for rule in rules.iter() {
            match rule {
                KeywordRule::AllOf(nodes)
                | KeywordRule::AnyOf(nodes)
                | KeywordRule::OneOf(nodes) => {
                    nodes.iter().for_each(|&node| self.declare(node, names, required, visited));
                }
                KeywordRule::If { condition, then, otherwise: other } => {
                    let nodes = [Some(*condition), *then, *other];
                    for node in nodes.into_iter().flatten() {
                        self.declare(node, names, required, visited);
                    }
                }
                KeywordRule::DependentSchema(_, node) => {
                    self.declare(*node, names, required, visited)
                }
                _ => {}
            }
        }
    }
}
