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

use crate::core::Core;
use crate::formula::{Atom, F, FALSE, Form, TRUE, Which};
use crate::machine::frame::Owes;
use crate::names::NameId;
use crate::node::{NodeId, Rule, Type};
use crate::solve::Rest;
use crate::table::Map;
use crate::value::ValueId;

/// The obligations of a container and of its new child.
pub(crate) struct ChildStart {
    pub(crate) container: Owes,
    pub(crate) child: Owes,
}

impl Core {
    /// Returns the whole obligation as one formula, including the goal over the queries.
    pub(crate) fn total(&mut self, obligation: &Owes) -> F {
        let goal =
            self.formulas.answer(obligation.goal, &obligation.asked, &obligation.formulas[1..]);
        self.formulas.both(goal, obligation.formulas[0])
    }

    /// Returns the obligation after a property of this name has begun.
    pub(crate) fn after_name(&mut self, obligation: &Owes, name: NameId) -> Result<Owes, Error> {
        let mut known = Map::default();
        let formulas: Result<Vec<F>, Error> = obligation
            .formulas
            .iter()
            .map(|&id| {
                // Conjuncts are kept unchanged: they hold anyway, and many states share them.
                let certain = self.formulas.conjuncts(id);
                self.map_atoms(id, &mut known, &|core, atom, leaf| {
                    let is_certain = certain.binary_search(&leaf).is_ok();
                    core.atom_after_name(atom, leaf, name, is_certain)
                })
            })
            .collect();
        Ok(Owes { formulas: formulas?.into(), ..obligation.clone() })
    }

    /// Returns the obligation after an item has begun.
    pub(crate) fn after_item(&mut self, obligation: &Owes) -> Result<Owes, Error> {
        let mut known = Map::default();
        let formulas: Result<Vec<F>, Error> = obligation
            .formulas
            .iter()
            .map(|&id| {
                self.map_atoms(id, &mut known, &|core, atom, _| Ok(core.atom_after_item(atom)))
            })
            .collect();
        Ok(Owes { formulas: formulas?.into(), ..obligation.clone() })
    }

    /// Replaces the atoms of a formula.
    fn map_atoms(
        &mut self,
        id: F,
        known: &mut Map<F, F>,
        leaf: &impl Fn(&mut Core, Atom, F) -> Result<F, Error>,
    ) -> Result<F, Error> {
        if let Some(&new) = known.get(&id) {
            return Ok(new);
        }
        let mut all = |core: &mut Core, list: &[F]| -> Result<Vec<F>, Error> {
            list.iter().map(|&one| core.map_atoms(one, known, leaf)).collect()
        };
        let new = match self.formulas.get(id).clone() {
            Form::Atom(atom) => leaf(self, atom, id)?,
            Form::Not(inner) => {
                let inner = all(self, &[inner])?[0];
                self.formulas.not(inner)
            }
            Form::And(list) => match self.map_atoms_unless(&list, FALSE, known, leaf)? {
                Some(list) => self.formulas.and(list),
                None => FALSE,
            },
            Form::Or(list) => match self.map_atoms_unless(&list, TRUE, known, leaf)? {
                Some(list) => self.formulas.or(list),
                None => TRUE,
            },
            Form::One(list) => {
                let list = all(self, &list)?;
                self.formulas.one(list)
            }
            Form::False | Form::True | Form::Child(_) => id,
        };
        known.insert(id, new);
        Ok(new)
    }

    /// Replaces the atoms of formulas; `None` as soon as one becomes `decides`, which determines
    /// the result.
    fn map_atoms_unless(
        &mut self,
        list: &[F],
        decides: F,
        known: &mut Map<F, F>,
        leaf: &impl Fn(&mut Core, Atom, F) -> Result<F, Error>,
    ) -> Result<Option<Vec<F>>, Error> {
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
        atom: Atom,
        leaf: F,
        name: NameId,
        is_certain: bool,
    ) -> Result<F, Error> {
        Ok(match atom {
            Atom::Members(rules) => {
                let value = self.rules_at(&rules, name)?;
                let rest = if is_certain { leaf } else { self.rules_except(&rules, leaf, name) };
                self.formulas.both(rest, value)
            }
            Atom::Owed(names) => {
                self.owed(names.iter().copied().filter(|&one| one != name).collect())
            }
            Atom::MoreMembers(count) if count > 1 => {
                self.formulas.atom(Atom::MoreMembers(count - 1))
            }
            Atom::MoreMembers(_) => TRUE,
            Atom::NamesIn(names) => {
                if self.is_name_in(names, name)? {
                    leaf
                } else {
                    FALSE
                }
            }
            _ => leaf,
        })
    }

    /// Returns the rules about all properties except one that was read.
    fn rules_except(&mut self, rules: &[(Which, NodeId)], leaf: F, name: NameId) -> F {
        let mentions = |which: &Which| {
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
        if left.is_empty() { TRUE } else { self.formulas.atom(Atom::Members(left.into())) }
    }

    /// Returns the derivative of an atom by an item.
    fn atom_after_item(&mut self, atom: Atom) -> F {
        match atom {
            Atom::Items(ranges, read) => {
                let item = self.ranges_at(&ranges, u64::from(read));
                let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                let endless = ranges.iter().any(|range| range.1 == u32::MAX);
                let read = (read + 1).min(last);
                if read == last && !endless {
                    return item;
                }
                let rest = self.formulas.atom(Atom::Items(ranges, read));
                self.formulas.both(rest, item)
            }
            Atom::MoreItems(count) if count > 1 => self.formulas.atom(Atom::MoreItems(count - 1)),
            Atom::MoreItems(_) => TRUE,
            Atom::Contains(count, node) => {
                let counted = self.child(node);
                let other = self.formulas.not(counted);
                let same = self.formulas.atom(Atom::Contains(count, node));
                let fewer = match count {
                    1 => TRUE,
                    _ => self.formulas.atom(Atom::Contains(count - 1, node)),
                };
                let (yes, no) =
                    (self.formulas.both(counted, fewer), self.formulas.both(other, same));
                self.formulas.or(vec![yes, no])
            }
            Atom::Unique(taken) => {
                let rest = self.formulas.atom(Atom::UniqueWith(taken.clone()));
                if taken.is_empty() {
                    return rest;
                }
                let node = self.schema.node_of_values(&taken);
                let repeated = self.child(node);
                let other = self.formulas.not(repeated);
                self.formulas.both(other, rest)
            }
            other => self.formulas.atom(other),
        }
    }

    /// Moves the conjuncts that only concern the child out of the container. Returns the container,
    /// the child's part, and their total.
    pub(crate) fn part(&mut self, obligation: Owes) -> (Owes, F, F) {
        let (mut must, mut kept) = (Vec::new(), Vec::new());
        for part in self.formulas.conjuncts(obligation.formulas[0]) {
            let moves = self.formulas.has_child(part) && !self.formulas.has_atom(part);
            if moves { must.push(part) } else { kept.push(part) }
        }
        let must = self.formulas.and(must);
        let mut container = obligation;
        container.formulas[0] = self.formulas.and(kept);
        let total = self.total(&container);
        (container, must, total)
    }

    /// Returns `true` if a child can be read.
    pub(crate) fn can_begin(&mut self, obligation: Owes, rest: Rest<'_>) -> Result<bool, Error> {
        let (_, must, total) = self.part(obligation);
        let all = self.formulas.both(total, must);
        self.some_child_and_rest(all, rest)
    }

    /// Splits an obligation between container and child, `None` if no child can be read.
    pub(crate) fn split_child(
        &mut self,
        obligation: Owes,
        rest: Rest<'_>,
    ) -> Result<Option<ChildStart>, Error> {
        let viable = self.can_begin(obligation.clone(), rest)?;
        if viable { self.split_viable_child(obligation, rest).map(Some) } else { Ok(None) }
    }

    /// Splits an obligation between container and child, given that a child can be read.
    pub(crate) fn split_viable_child(
        &mut self,
        obligation: Owes,
        rest: Rest<'_>,
    ) -> Result<ChildStart, Error> {
        let (mut container, must, _) = self.part(obligation);
        self.substitute_verdicts(must, container.formulas.iter_mut());
        let total = self.total(&container);
        let is_repeated = rest.of == Type::Array && self.may_need_equal_item(total);
        let asks = container.formulas.iter().any(|&one| self.formulas.has_child(one));
        let child = Owes { formulas: [must].into(), asked: [].into(), goal: TRUE };
        let mut start = ChildStart { container, child };
        if asks || is_repeated {
            let goal = self.project(total, must, rest)?;
            self.move_queries_to_child(goal, &mut start);
        }
        Ok(start)
    }

    /// Substitutes the verdicts that formula `id` implies into `formulas`. Returns the literals
    /// that imply them.
    fn substitute_verdicts<'a>(
        &mut self,
        id: F,
        formulas: impl Iterator<Item = &'a mut F>,
    ) -> Vec<F> {
        let mut literals: Vec<(NodeId, F, F)> = Vec::new();
        for part in self.formulas.conjuncts(id) {
            match *self.formulas.get(part) {
                Form::Child(node) => literals.push((node, TRUE, part)),
                Form::Not(inner) => {
                    if let Form::Child(node) = *self.formulas.get(inner) {
                        literals.push((node, FALSE, part));
                    }
                }
                _ => {}
            }
        }
        literals.sort_unstable();
        let nodes: Vec<NodeId> = literals.iter().map(|one| one.0).collect();
        let verdicts: Vec<F> = literals.iter().map(|one| one.1).collect();
        for one in formulas {
            *one = self.formulas.answer(*one, &nodes, &verdicts);
        }
        literals.into_iter().map(|one| one.2).collect()
    }

    /// Makes implied verdicts obligations of the child, so that they need no query.
    fn move_queries_to_child(
        &mut self,
        mut goal: F,
        ChildStart { container, child }: &mut ChildStart,
    ) {
        let implied = goal;
        let mut must =
            self.substitute_verdicts(implied, container.formulas.iter_mut().chain([&mut goal]));
        must.push(child.formulas[0]);
        let queries = self.formulas.asked(&container.formulas);
        // The goal may mention nodes that the container does not ask about.
        if self.formulas.asked(&[goal]).iter().any(|node| queries.binary_search(node).is_err()) {
            must.push(std::mem::replace(&mut goal, TRUE));
        }
        let mut formulas = vec![self.formulas.and(must)];
        formulas.extend(queries.iter().map(|&node| self.formulas.child(node)));
        *child = Owes { formulas: formulas.into(), asked: queries.into(), goal };
    }

    /// Returns `true` if a later item may have to equal the one being read.
    fn may_need_equal_item(&self, id: F) -> bool {
        self.may_need_equal_item_within(id, &mut Map::default())
    }

    fn may_need_equal_item_within(&self, id: F, known: &mut Map<F, bool>) -> bool {
        let is_small = self.formulas.is_small(id);
        if !is_small && let Some(&known) = known.get(&id) {
            return known;
        }
        let may_be = match self.formulas.get(id) {
            Form::Not(inner) => {
                matches!(self.formulas.get(*inner), Form::Atom(Atom::UniqueWith(_)))
                    || matches!(self.formulas.get(*inner), Form::One(_))
                        && self.may_need_equal_item_within(*inner, known)
            }
            Form::And(list) | Form::Or(list) => {
                list.iter().any(|&one| self.may_need_equal_item_within(one, known))
            }
            Form::One(list) => {
                self.formulas.some_atom(list, |atom| matches!(atom, Atom::UniqueWith(_)))
            }
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
        obligation: &Owes,
        queries: &[NodeId],
        verdicts: &[bool],
        value: Option<ValueId>,
    ) -> Result<Owes, Error> {
        let verdicts: Vec<F> =
            verdicts.iter().map(|&verdict| crate::formula::Formulas::constant(verdict)).collect();
        let mut known = Map::default();
        let mut formulas = Vec::with_capacity(obligation.formulas.len());
        for &id in &obligation.formulas {
            let id = self.formulas.answer(id, queries, &verdicts);
            formulas.push(self.map_atoms(id, &mut known, &|core, atom, leaf| match atom {
                Atom::UniqueWith(taken) => {
                    let mut taken = taken.to_vec();
                    taken.extend(value);
                    taken.sort_unstable();
                    taken.dedup();
                    Ok(core.formulas.atom(Atom::Unique(taken.into())))
                }
                _ => Ok(leaf),
            })?);
        }
        Ok(Owes { formulas: formulas.into(), ..obligation.clone() })
    }

    /// Returns `true` if items have to be remembered.
    pub(crate) fn has_unique(&self, obligation: &Owes) -> bool {
        obligation.formulas.iter().any(|&id| {
            let is_unique = |atom: &Atom| matches!(atom, Atom::Unique(_) | Atom::UniqueWith(_));
            self.formulas.some_atom(&[id], is_unique)
        })
    }

    /// Returns the names in the order in which the nodes of a formula declare them, then the
    /// required ones.
    pub(crate) fn declared(&self, obligation: &Owes) -> Vec<NameId> {
        let (mut names, mut required) = (Vec::new(), Vec::new());
        let mut visited = FxHashSet::default();
        for node in self.formulas.asked(&obligation.formulas) {
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
        let rules = &self.schema.node(node).rules;
        for rule in rules.iter() {
            match rule {
                Rule::Members(list) => {
                    names.extend(
                        list.iter().filter_map(|(which, _)| which.names.as_ref()).flatten(),
                    );
                }
                Rule::Required(list) => required.extend(list),
                _ => {}
            }
        }
        for rule in rules.iter() {
            match rule {
                Rule::All(nodes) | Rule::Any(nodes) | Rule::One(nodes) => {
                    nodes.iter().for_each(|&node| self.declare(node, names, required, visited));
                }
                Rule::If { condition, then, other } => {
                    let nodes = [Some(*condition), *then, *other];
                    for node in nodes.into_iter().flatten() {
                        self.declare(node, names, required, visited);
                    }
                }
                Rule::SchemaWith(_, node) => self.declare(*node, names, required, visited),
                _ => {}
            }
        }
    }
}
