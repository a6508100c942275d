//! Projection of a container's residual onto the child being read: what the child must satisfy so
//! that the rest can be completed.

use std::sync::Arc;

use formalm_core::Error;

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

impl<'a> RemainingContainer<'a> {
    /// Returns the rest of an object in which these names can no longer be used.
    pub(crate) fn object(used_names: &'a [NameId]) -> RemainingContainer<'a> {
        RemainingContainer { json_type: JsonType::Object, used_names }
    }

    /// Returns the rest of an array.
    pub(crate) fn array() -> RemainingContainer<'static> {
        RemainingContainer { json_type: JsonType::Array, used_names: &[] }
    }
}

impl RemainingContainer<'_> {
    /// Returns what a child that satisfies `known` must satisfy in addition, so that the rest can
    /// satisfy a formula without child leaves. The result is a constant except for duplicated
    /// items.
    pub(super) fn goal(
        self,
        solver: &mut SolverContext,
        id: FormulaId,
        known: FormulaId,
    ) -> Result<FormulaId, Error> {
        match self.json_type {
            JsonType::Object => Ok(FormulaArena::constant(solver.has_object(id, self.used_names)?)),
            _ => solver.current_item_goal(id, known),
        }
    }

    /// Returns `true` if the rest can satisfy a conjunction of literals after a child that
    /// satisfies `known`.
    fn fits(
        self,
        solver: &mut SolverContext,
        literals: &[FormulaId],
        known: FormulaId,
    ) -> Result<bool, Error> {
        match self.json_type {
            JsonType::Object => solver.object_fits(literals, self.used_names),
            _ => {
                let goal = solver.items_fit(literals, known)?;
                let both = solver.base.formulas.both(known, goal);
                Ok(goal == TRUE || goal != FALSE && solver.has_value(both)?)
            }
        }
    }

    /// Returns `false` if no superset of the literals can be satisfied by the rest.
    fn may_fit(self, solver: &mut SolverContext, literals: &[FormulaId]) -> Result<bool, Error> {
        match self.json_type {
            JsonType::Object => solver.objects(self.used_names).may_fit(literals),
            _ => Ok(true),
        }
    }

    /// Returns the formula over the child (which satisfies `must`) that holds iff the rest can be
    /// completed.
    pub(crate) fn project_to_child(
        self,
        solver: &mut SolverContext,
        id: FormulaId,
        must: FormulaId,
    ) -> Result<FormulaId, Error> {
        let _solving = SolverTimer::begin();
        if !solver.base.formulas.has_child(id) {
            return self.goal(solver, id, must);
        }
        if !solver.base.formulas.has_atom(id) {
            return Ok(id);
        }
        let (mut pure, mut mixed) = (Vec::new(), Vec::new());
        for part in solver.base.formulas.conjuncts(id) {
            if solver.base.formulas.has_atom(part) { mixed.push(part) } else { pure.push(part) }
        }
        let mixed = solver.base.formulas.and(mixed);
        let known = solver.base.formulas.and([&pure[..], &[must]].concat());
        if !solver.base.formulas.has_child(mixed) {
            pure.push(self.goal(solver, mixed, known)?);
            return Ok(solver.base.formulas.and(pure));
        }
        if let Some((list, context)) = single_disjunction(&mut solver.base.formulas, mixed) {
            let mut branches = Vec::with_capacity(list.len());
            for &one in list.iter() {
                let all = solver.base.formulas.both(one, context);
                branches.push(self.project_to_child(solver, all, known)?);
            }
            pure.push(solver.base.formulas.or(branches));
            return Ok(solver.base.formulas.and(pure));
        }
        let goal = match self.split_by_vectors(solver, mixed, known, false)? {
            Some(goal) => goal,
            None => self.split_by_verdicts(solver, mixed, known, false)?,
        };
        pure.push(goal);
        Ok(solver.base.formulas.and(pure))
    }

    /// Branches on the verdicts of the child, skipping impossible combinations, and decides the
    /// rest for each.
    ///
    /// `known` is what the child satisfies already. With `any`, one branch that works is enough.
    fn split_by_verdicts(
        self,
        solver: &mut SolverContext,
        id: FormulaId,
        known: FormulaId,
        any: bool,
    ) -> Result<FormulaId, Error> {
        solver.base.count_step()?;
        if !solver.base.formulas.has_child(id) {
            let goal = self.goal(solver, id, known)?;
            let both = solver.base.formulas.both(known, goal);
            return Ok(if goal == TRUE || solver.has_value(both)? { goal } else { FALSE });
        }
        let Some(&node) = solver.base.formulas.queried_nodes(&[id]).first() else {
            return Ok(FALSE);
        };
        let child = solver.base.formulas.child(node);
        let mut sides = [FALSE; 2];
        let mut possible = [true; 2];
        for (at, verdict) in [TRUE, FALSE].into_iter().enumerate() {
            let literal = if verdict == TRUE { child } else { solver.base.formulas.not(child) };
            let both = solver.base.formulas.both(known, literal);
            if !solver.has_value(both)? {
                possible[at] = false;
                continue;
            }
            let smaller = solver.base.formulas.substitute_verdicts(id, &[node], &[verdict]);
            sides[at] = self.split_by_verdicts(solver, smaller, both, any)?;
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
        let other = solver.base.formulas.not(child);
        let with = solver.base.formulas.both(child, sides[0]);
        let without = solver.base.formulas.both(other, sides[1]);
        Ok(solver.base.formulas.or(vec![with, without]))
    }

    /// Returns `true` if some child and some rest together satisfy a formula.
    pub(crate) fn fits_with_child(
        self,
        solver: &mut SolverContext,
        id: FormulaId,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        let (mut pure, mut apart, mut mixed) = (Vec::new(), Vec::new(), Vec::new());
        for part in solver.base.formulas.conjuncts(id) {
            match (solver.base.formulas.has_child(part), solver.base.formulas.has_atom(part)) {
                (true, false) => pure.push(part),
                (true, true) => mixed.push(part),
                _ => apart.push(part),
            }
        }
        let pure = solver.base.formulas.and(pure);
        if mixed.is_empty() {
            if !solver.has_value(pure)? {
                return Ok(false);
            }
            let apart = solver.base.formulas.and(apart);
            let goal = self.goal(solver, apart, pure)?;
            let child = solver.base.formulas.both(pure, goal);
            return solver.has_value(child);
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
            Ok(solver.has_value(child)? && self.may_fit(solver, literals)?)
        };
        mixed.extend(apart);
        let mixed = solver.base.formulas.and(mixed);
        let patience = solver.answers.implicant_steps();
        let found =
            solver.find_implicant(mixed, patience, &mut { fits }, &mut |solver, literals| {
                if !fits(solver, literals)? {
                    return Ok(false);
                }
                let atoms =
                    literals.iter().copied().filter(|&one| !solver.base.formulas.has_child(one));
                let atoms: Vec<FormulaId> = atoms.collect();
                let child = child(solver, literals);
                self.fits(solver, &atoms, child)
            })?;
        match found {
            Some(found) => Ok(found),
            // The formula has more implicants than the child has verdicts.
            None => match self.split_by_vectors(solver, mixed, pure, true)? {
                Some(found) => Ok(found == TRUE),
                None => Ok(self.split_by_verdicts(solver, mixed, pure, true)? == TRUE),
            },
        }
    }
}

/// Returns the operands and the context of the only disjunction that mentions the child.
fn single_disjunction(
    formulas: &mut FormulaArena,
    id: FormulaId,
) -> Option<(Arc<[FormulaId]>, FormulaId)> {
    let mut parts = formulas.conjuncts(id);
    let mut mixed = (0..parts.len()).filter(|&at| formulas.has_child(parts[at]));
    let (at, None) = (mixed.next()?, mixed.next()) else { return None };
    let Formula::Or(list) = formulas.get(parts.swap_remove(at)).clone() else {
        return None;
    };
    Some((list, formulas.and(parts)))
}
