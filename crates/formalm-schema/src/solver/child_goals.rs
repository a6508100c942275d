//! Projection of a container's residual onto the child being read: what the child must satisfy so
//! that the rest can be completed.

use std::sync::Arc;

use formalm_automata::Error;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaId, TRUE};
use crate::json::property_names::NameId;
use crate::schema_nodes::JsonType;
use crate::solver::SolverTimer;
use crate::solver::context::SolverContext;

/// The remaining part of the array or object that contains the child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemainingContainer<'a> {
    pub(crate) json_type: JsonType,
    /// Names that can no longer be used.
    pub(crate) used_names: &'a [NameId],
}

impl SolverContext {
    /// Returns what a child that satisfies `known` must satisfy in addition, so that the rest can
    /// satisfy a formula without child leaves. The result is a constant except for duplicated
    /// items.
    pub(in crate::solver) fn rest_goal(
        &mut self,
        id: FormulaId,
        known: FormulaId,
        rest: RemainingContainer<'_>,
    ) -> Result<FormulaId, Error> {
        match rest.json_type {
            JsonType::Object => Ok(FormulaArena::constant(self.has_object(id, rest.used_names)?)),
            _ => self.current_item_goal(id, known),
        }
    }

    /// Returns `true` if the rest can satisfy a conjunction of literals after a child that
    /// satisfies `known`.
    fn rest_fits(
        &mut self,
        literals: &[FormulaId],
        known: FormulaId,
        rest: RemainingContainer<'_>,
    ) -> Result<bool, Error> {
        match rest.json_type {
            JsonType::Object => self.object_fits(literals, rest.used_names),
            _ => {
                let goal = self.items_fit(literals, known)?;
                let both = self.base.formulas.both(known, goal);
                Ok(goal == TRUE || goal != FALSE && self.has_value(both)?)
            }
        }
    }

    /// Returns `false` if no superset of the literals can be satisfied by the rest.
    fn rest_may_fit(
        &mut self,
        literals: &[FormulaId],
        rest: RemainingContainer<'_>,
    ) -> Result<bool, Error> {
        match rest.json_type {
            JsonType::Object => self.object_may_fit(literals, rest.used_names),
            _ => Ok(true),
        }
    }

    /// Returns the formula over the child (which satisfies `must`) that holds iff the rest can be
    /// completed.
    pub(crate) fn project_to_child(
        &mut self,
        id: FormulaId,
        must: FormulaId,
        rest: RemainingContainer<'_>,
    ) -> Result<FormulaId, Error> {
        let _solving = SolverTimer::begin();
        if !self.base.formulas.has_child(id) {
            return self.rest_goal(id, must, rest);
        }
        if !self.base.formulas.has_atom(id) {
            return Ok(id);
        }
        let (mut pure, mut mixed) = (Vec::new(), Vec::new());
        for part in self.base.formulas.conjuncts(id) {
            if self.base.formulas.has_atom(part) { mixed.push(part) } else { pure.push(part) }
        }
        let mixed = self.base.formulas.and(mixed);
        let known = self.base.formulas.and([&pure[..], &[must]].concat());
        if !self.base.formulas.has_child(mixed) {
            pure.push(self.rest_goal(mixed, known, rest)?);
            return Ok(self.base.formulas.and(pure));
        }
        if let Some((list, context)) = self.single_disjunction(mixed) {
            let mut branches = Vec::with_capacity(list.len());
            for &one in list.iter() {
                let all = self.base.formulas.both(one, context);
                branches.push(self.project_to_child(all, known, rest)?);
            }
            pure.push(self.base.formulas.or(branches));
            return Ok(self.base.formulas.and(pure));
        }
        let goal = match self.split_by_vectors(mixed, known, rest, false)? {
            Some(goal) => goal,
            None => self.split_by_verdicts(mixed, known, rest, false)?,
        };
        pure.push(goal);
        Ok(self.base.formulas.and(pure))
    }

    /// Returns the operands and the context of the only disjunction that mentions the child.
    fn single_disjunction(&mut self, id: FormulaId) -> Option<(Arc<[FormulaId]>, FormulaId)> {
        let mut parts = self.base.formulas.conjuncts(id);
        let mut mixed = (0..parts.len()).filter(|&at| self.base.formulas.has_child(parts[at]));
        let (at, None) = (mixed.next()?, mixed.next()) else { return None };
        let Formula::Or(list) = self.base.formulas.get(parts.swap_remove(at)).clone() else {
            return None;
        };
        Some((list, self.base.formulas.and(parts)))
    }

    /// Branches on the verdicts of the child, skipping impossible combinations, and decides the
    /// rest for each.
    ///
    /// `known` is what the child satisfies already. With `any`, one branch that works is enough.
    fn split_by_verdicts(
        &mut self,
        id: FormulaId,
        known: FormulaId,
        rest: RemainingContainer<'_>,
        any: bool,
    ) -> Result<FormulaId, Error> {
        self.base.count_step()?;
        if !self.base.formulas.has_child(id) {
            let goal = self.rest_goal(id, known, rest)?;
            let both = self.base.formulas.both(known, goal);
            return Ok(if goal == TRUE || self.has_value(both)? { goal } else { FALSE });
        }
        let Some(&node) = self.base.formulas.queried_nodes(&[id]).first() else { return Ok(FALSE) };
        let child = self.base.formulas.child(node);
        let mut sides = [FALSE; 2];
        let mut possible = [true; 2];
        for (at, verdict) in [TRUE, FALSE].into_iter().enumerate() {
            let literal = if verdict == TRUE { child } else { self.base.formulas.not(child) };
            let both = self.base.formulas.both(known, literal);
            if !self.has_value(both)? {
                possible[at] = false;
                continue;
            }
            let smaller = self.base.formulas.substitute_verdicts(id, &[node], &[verdict]);
            sides[at] = self.split_by_verdicts(smaller, both, rest, any)?;
            if any && sides[at] != FALSE {
                return Ok(TRUE);
            }
        }
        // A verdict that is forced need not be stated.
        match possible {
            [true, false] => return Ok(sides[0]),
            [false, true] => return Ok(sides[1]),
            _ if sides[0] == sides[1] => return Ok(sides[0]),
            _ => {}
        }
        let other = self.base.formulas.not(child);
        let with = self.base.formulas.both(child, sides[0]);
        let without = self.base.formulas.both(other, sides[1]);
        Ok(self.base.formulas.or(vec![with, without]))
    }

    /// Returns `true` if some child and some rest together satisfy a formula.
    pub(crate) fn has_child_and_rest(
        &mut self,
        id: FormulaId,
        rest: RemainingContainer<'_>,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        let (mut pure, mut apart, mut mixed) = (Vec::new(), Vec::new(), Vec::new());
        for part in self.base.formulas.conjuncts(id) {
            match (self.base.formulas.has_child(part), self.base.formulas.has_atom(part)) {
                (true, false) => pure.push(part),
                (true, true) => mixed.push(part),
                _ => apart.push(part),
            }
        }
        let pure = self.base.formulas.and(pure);
        if mixed.is_empty() {
            if !self.has_value(pure)? {
                return Ok(false);
            }
            let apart = self.base.formulas.and(apart);
            let goal = self.rest_goal(apart, pure, rest)?;
            let child = self.base.formulas.both(pure, goal);
            return self.has_value(child);
        }
        let child = |solver: &mut SolverContext, literals: &[FormulaId]| {
            let children =
                literals.iter().copied().filter(|&one| solver.base.formulas.has_child(one));
            let mut children: Vec<FormulaId> = children.collect();
            children.push(pure);
            solver.base.formulas.and(children)
        };
        let fits = |solver: &mut SolverContext, literals: &[FormulaId]| {
            let child = child(solver, literals);
            Ok(solver.has_value(child)? && solver.rest_may_fit(literals, rest)?)
        };
        mixed.extend(apart);
        let mixed = self.base.formulas.and(mixed);
        let patience = self.answers.implicant_steps();
        let found =
            self.find_implicant(mixed, patience, &mut { fits }, &mut |solver, literals| {
                if !fits(solver, literals)? {
                    return Ok(false);
                }
                let atoms =
                    literals.iter().copied().filter(|&one| !solver.base.formulas.has_child(one));
                let atoms: Vec<FormulaId> = atoms.collect();
                let child = child(solver, literals);
                solver.rest_fits(&atoms, child, rest)
            })?;
        match found {
            Some(found) => Ok(found),
            // The formula has more implicants than the child has verdicts.
            None => match self.split_by_vectors(mixed, pure, rest, true)? {
                Some(found) => Ok(found == TRUE),
                None => Ok(self.split_by_verdicts(mixed, pure, rest, true)? == TRUE),
            },
        }
    }
}
