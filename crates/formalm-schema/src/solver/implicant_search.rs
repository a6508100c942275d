//! Enumerates implicants: conjunctions of literals that make a formula true.
//!
//! A DPLL-like search: unit literals are propagated through the waiting disjunctions, then the
//! smallest disjunction is branched on. A theory may prune a partial conjunction early.

use std::convert::Infallible;

use formalm_core::{CompactMap, Error};
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, Formula, FormulaArena, FormulaId, ReplacedLeaves, TRUE};
use crate::solver::formula_base::HasFormulas;

/// Formulas simplified that count as one step. Chosen, not measured.
const SIMPLIFICATIONS_PER_STEP: usize = 48;

/// The callback for an implicant; `true` ends the search.
pub(crate) type ImplicantVisitor<'a, C> =
    dyn FnMut(&mut C, &[FormulaId]) -> Result<bool, Error> + 'a;

/// A search for an implicant that a visitor accepts.
pub(in crate::solver) struct ImplicantSearch<'a, C> {
    /// Remaining steps, [`u64::MAX`] for no budget.
    pub(in crate::solver) steps: u64,
    /// May reject a partial conjunction: no extension of it is tried.
    pub(in crate::solver) fits: &'a mut ImplicantVisitor<'a, C>,
    /// Accepts or rejects an implicant.
    pub(in crate::solver) leaf: &'a mut ImplicantVisitor<'a, C>,
}

impl<C: HasFormulas> ImplicantSearch<'_, C> {
    /// Returns whether an implicant of a formula was accepted. Also `false` if the steps ran out;
    /// then none remain.
    pub(in crate::solver) fn run(&mut self, context: &mut C, id: FormulaId) -> Result<bool, Error> {
        self.branch(context, FxHashSet::default(), vec![id])
    }

    /// One level of the search: propagates `work`, then branches on the smallest waiting
    /// disjunction.
    fn branch(
        &mut self,
        context: &mut C,
        mut chosen: FxHashSet<FormulaId>,
        mut work: Vec<FormulaId>,
    ) -> Result<bool, Error> {
        let base = context.base();
        base.count_step()?;
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return Ok(false);
        }
        let mut waiting: Vec<FormulaId> = Vec::new();
        while !work.is_empty() {
            while let Some(id) = work.pop() {
                match base.formulas.get(id) {
                    Formula::True => {}
                    Formula::False => return Ok(false),
                    Formula::And(list) => work.extend_from_slice(list),
                    Formula::Or(_) | Formula::ExactlyOne(_) => waiting.push(id),
                    Formula::Not(inner)
                        if matches!(base.formulas.get(*inner), Formula::ExactlyOne(_)) =>
                    {
                        waiting.push(id);
                    }
                    Formula::Not(_) | Formula::Atom(_) | Formula::Child(_) => {
                        let opposite = base.formulas.not(id);
                        if chosen.contains(&opposite) {
                            return Ok(false);
                        }
                        chosen.insert(id);
                    }
                }
            }
            if waiting.is_empty() {
                break;
            }
            base.count_steps(waiting.len() / SIMPLIFICATIONS_PER_STEP)?;
            let mut known = literal_values(&mut base.formulas, &chosen);
            for id in std::mem::take(&mut waiting) {
                let simpler = simplify(&mut base.formulas, id, &mut known);
                let target = if simpler == id { &mut waiting } else { &mut work };
                target.push(simpler);
            }
        }
        let mut literals: Vec<FormulaId> = chosen.iter().copied().collect();
        literals.sort_unstable();
        if waiting.is_empty() {
            return (self.leaf)(context, &literals);
        }
        if !(self.fits)(context, &literals)? {
            return Ok(false);
        }
        let formulas = &mut context.base().formulas;
        let smallest =
            (0..waiting.len()).min_by_key(|&at| width(formulas, waiting[at])).unwrap_or(0);
        let next = waiting.swap_remove(smallest);
        for more in disjuncts(formulas, next) {
            let mut work = waiting.clone();
            work.extend(more);
            if self.branch(context, chosen.clone(), work)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the number of branches of a formula.
fn width(formulas: &FormulaArena, id: FormulaId) -> usize {
    match formulas.get(id) {
        Formula::Or(list) => list.len(),
        Formula::ExactlyOne(list) => list.len() + 1,
        Formula::Not(inner) => 2 * width(formulas, *inner),
        _ => 0,
    }
}

/// Returns the branches of a disjunction or of an "exactly one". Branches that demand nothing
/// more come first.
fn disjuncts(formulas: &mut FormulaArena, id: FormulaId) -> Vec<Vec<FormulaId>> {
    match formulas.get(id).clone() {
        Formula::Or(list) => {
            let mut list = list.to_vec();
            list.sort_by_key(|&one| !formulas.holds_at_end(one));
            list.into_iter().map(|one| vec![one]).collect()
        }
        Formula::ExactlyOne(list) => {
            let mut branches: Vec<usize> = (0..list.len()).collect();
            branches.sort_by_key(|&at| !formulas.holds_at_end(list[at]));
            branches.into_iter().map(|at| only_these_hold(formulas, &list, &[at])).collect()
        }
        Formula::Not(inner) => {
            let Formula::ExactlyOne(list) = formulas.get(inner).clone() else {
                return Vec::new();
            };
            let mut branches = vec![only_these_hold(formulas, &list, &[])];
            for left in 0..list.len() {
                for right in left + 1..list.len() {
                    branches.push(vec![list[left], list[right]]);
                }
            }
            branches
        }
        _ => Vec::new(),
    }
}

/// Returns the literals "the operands at `kept` hold and the others fail".
fn only_these_hold(
    formulas: &mut FormulaArena,
    list: &[FormulaId],
    kept: &[usize],
) -> Vec<FormulaId> {
    let each = list.iter().enumerate();
    each.map(|(at, &one)| if kept.contains(&at) { one } else { formulas.not(one) }).collect()
}

/// Returns the truth values that some literals fix.
fn literal_values(
    formulas: &mut FormulaArena,
    literals: &FxHashSet<FormulaId>,
) -> CompactMap<FormulaId, FormulaId> {
    let mut known = CompactMap::default();
    let mut literals: Vec<FormulaId> = literals.iter().copied().collect();
    literals.sort_unstable();
    for literal in literals {
        known.insert(literal, TRUE);
        known.insert(formulas.not(literal), FALSE);
    }
    known
}

/// Returns the formula simplified by known truth values, and memoizes those of its operands.
fn simplify(
    formulas: &mut FormulaArena,
    id: FormulaId,
    known: &mut CompactMap<FormulaId, FormulaId>,
) -> FormulaId {
    let assumed: Result<FormulaId, Infallible> =
        formulas.replace_leaves(id, ReplacedLeaves::All, known, &mut |_, leaf| Ok(leaf));
    match assumed {
        Ok(formula) => formula,
    }
}
