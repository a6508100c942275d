//! Enumerates implicants: conjunctions of literals that make a formula true.
//!
//! A DPLL-like search: unit literals are propagated through the waiting disjunctions, then the
//! smallest disjunction is branched on. A theory may prune a partial conjunction early.

use std::convert::Infallible;

use formalm_automata::Error;
use rustc_hash::FxHashSet;

use crate::formula::{FALSE, Formula, FormulaId, ReplacedLeaves, TRUE};
use crate::interner::CompactMap;
use crate::solver::SolverTimer;
use crate::solver::context::SolverContext;

/// Formulas simplified that count as one step. Chosen, not measured.
const SIMPLIFICATIONS_PER_STEP: usize = 48;

/// The callback for an implicant; `true` ends the search.
pub(in crate::solver) type ImplicantVisitor<'a> =
    dyn FnMut(&mut SolverContext, &[FormulaId]) -> Result<bool, Error> + 'a;

impl SolverContext {
    /// Calls `leaf` for implicants until it returns `true`. Returns whether it did, or `None` if
    /// `patience` (in steps) ran out.
    ///
    /// `fits` may reject a partial conjunction: no extension of it is tried.
    pub(in crate::solver) fn find_implicant(
        &mut self,
        id: FormulaId,
        patience: u64,
        fits: &mut ImplicantVisitor<'_>,
        leaf: &mut ImplicantVisitor<'_>,
    ) -> Result<Option<bool>, Error> {
        let mut left = patience;
        let found = self.branch(FxHashSet::default(), vec![id], &mut left, fits, leaf)?;
        Ok((found || left > 0).then_some(found))
    }

    /// Calls `leaf` for implicants until it returns `true`, without a step budget of its own.
    pub(crate) fn search_implicants(
        &mut self,
        id: FormulaId,
        fits: &mut ImplicantVisitor<'_>,
        leaf: &mut ImplicantVisitor<'_>,
    ) -> Result<bool, Error> {
        let _solving = SolverTimer::begin();
        let mut patience = u64::MAX;
        self.branch(FxHashSet::default(), vec![id], &mut patience, fits, leaf)
    }

    /// One level of the search: propagates `work`, then branches on the smallest waiting
    /// disjunction.
    fn branch(
        &mut self,
        mut chosen: FxHashSet<FormulaId>,
        mut work: Vec<FormulaId>,
        patience: &mut u64,
        fits: &mut ImplicantVisitor<'_>,
        leaf: &mut ImplicantVisitor<'_>,
    ) -> Result<bool, Error> {
        self.base.count_step()?;
        *patience = patience.saturating_sub(1);
        if *patience == 0 {
            return Ok(false);
        }
        let mut waiting: Vec<FormulaId> = Vec::new();
        while !work.is_empty() {
            while let Some(id) = work.pop() {
                match self.base.formulas.get(id) {
                    Formula::True => {}
                    Formula::False => return Ok(false),
                    Formula::And(list) => work.extend_from_slice(list),
                    Formula::Or(_) | Formula::ExactlyOne(_) => waiting.push(id),
                    Formula::Not(inner)
                        if matches!(self.base.formulas.get(*inner), Formula::ExactlyOne(_)) =>
                    {
                        waiting.push(id);
                    }
                    Formula::Not(_) | Formula::Atom(_) | Formula::Child(_) => {
                        let opposite = self.base.formulas.not(id);
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
            self.base.count_steps(waiting.len() / SIMPLIFICATIONS_PER_STEP)?;
            let mut known = self.literal_values(&chosen);
            for id in std::mem::take(&mut waiting) {
                let simpler = self.simplify(id, &mut known);
                let target = if simpler == id { &mut waiting } else { &mut work };
                target.push(simpler);
            }
        }
        let mut literals: Vec<FormulaId> = chosen.iter().copied().collect();
        literals.sort_unstable();
        if waiting.is_empty() {
            return leaf(self, &literals);
        }
        if !fits(self, &literals)? {
            return Ok(false);
        }
        let smallest = (0..waiting.len()).min_by_key(|&at| self.width(waiting[at])).unwrap_or(0);
        let next = waiting.swap_remove(smallest);
        for more in self.disjuncts(next) {
            let mut work = waiting.clone();
            work.extend(more);
            if self.branch(chosen.clone(), work, patience, fits, leaf)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of branches of a formula.
    fn width(&self, id: FormulaId) -> usize {
        match self.base.formulas.get(id) {
            Formula::Or(list) => list.len(),
            Formula::ExactlyOne(list) => list.len() + 1,
            Formula::Not(inner) => 2 * self.width(*inner),
            _ => 0,
        }
    }

    /// Returns the branches of a disjunction or of an "exactly one". Branches that demand nothing
    /// more come first.
    fn disjuncts(&mut self, id: FormulaId) -> Vec<Vec<FormulaId>> {
        match self.base.formulas.get(id).clone() {
            Formula::Or(list) => {
                let mut list = list.to_vec();
                list.sort_by_key(|&one| !self.base.formulas.holds_at_end(one));
                list.into_iter().map(|one| vec![one]).collect()
            }
            Formula::ExactlyOne(list) => {
                let mut branches: Vec<usize> = (0..list.len()).collect();
                branches.sort_by_key(|&at| !self.base.formulas.holds_at_end(list[at]));
                branches.into_iter().map(|at| self.only_these_hold(&list, &[at])).collect()
            }
            Formula::Not(inner) => {
                let Formula::ExactlyOne(list) = self.base.formulas.get(inner).clone() else {
                    return Vec::new();
                };
                let mut branches = vec![self.only_these_hold(&list, &[])];
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
    fn only_these_hold(&mut self, list: &[FormulaId], kept: &[usize]) -> Vec<FormulaId> {
        let each = list.iter().enumerate();
        each.map(|(at, &one)| if kept.contains(&at) { one } else { self.base.formulas.not(one) })
            .collect()
    }

    /// Returns the truth values that some literals fix.
    fn literal_values(
        &mut self,
        literals: &FxHashSet<FormulaId>,
    ) -> CompactMap<FormulaId, FormulaId> {
        let mut known = CompactMap::default();
        let mut literals: Vec<FormulaId> = literals.iter().copied().collect();
        literals.sort_unstable();
        for literal in literals {
            known.insert(literal, TRUE);
            known.insert(self.base.formulas.not(literal), FALSE);
        }
        known
    }

    /// Returns the formula simplified by known truth values, and memoizes those of its operands.
    fn simplify(
        &mut self,
        id: FormulaId,
        known: &mut CompactMap<FormulaId, FormulaId>,
    ) -> FormulaId {
        let assumed: Result<FormulaId, Infallible> =
            self.base
                .formulas
                .replace_leaves(id, ReplacedLeaves::All, known, &mut |_, leaf| Ok(leaf));
        match assumed {
            Ok(formula) => formula,
        }
    }
}
