//! The numbers being read: interned prefixes, and memoized steps between them.

use std::sync::Arc;

use formalm_core::{CompactMap, Error, Interner};

use crate::formula::{FALSE, FormulaId, TRUE};
use crate::machine::frame::{NumberPrefix, NumberPrefixId, ObligationId, VerdictsId};
use crate::machine::numbers::interval_sets::NumberResidual;
use crate::machine::numbers::{NumberPlan, NumberSet};
use crate::machine::residuals::Residuals;
use crate::solver::NumberScale;
use crate::solver::context::SolverContext;

/// Interned number prefixes, and the steps between them.
#[derive(Debug, Default)]
pub(crate) struct NumberTables {
    prefixes: Interner<NumberPrefix>,
    plans: CompactMap<ObligationId, Arc<NumberPlan>>,
    /// The number after a byte; the key is `None` before its first byte.
    after: CompactMap<(ObligationId, Option<NumberPrefixId>, u8), Option<NumberPrefixId>>,
    ends: CompactMap<(ObligationId, NumberPrefixId), Option<VerdictsId>>,
    /// One representative for all number prefixes with equal residuals.
    representatives: CompactMap<(ObligationId, bool, NumberResidual), NumberPrefix>,
}

impl NumberTables {
    #[inline]
    pub(crate) fn get(&self, id: NumberPrefixId) -> &NumberPrefix {
        self.prefixes.get(id.0)
    }

    fn intern(&mut self, digits: NumberPrefix) -> NumberPrefixId {
        NumberPrefixId(self.prefixes.intern(digits))
    }

    /// Returns the number after one more byte, `None` if no allowed number continues so.
    pub(crate) fn after_byte(
        &mut self,
        core: &mut SolverContext,
        residuals: &Residuals,
        obligation: ObligationId,
        digits: Option<NumberPrefixId>,
        byte: u8,
    ) -> Result<Option<NumberPrefixId>, Error> {
        if let Some(&known) = self.after.get(&(obligation, digits, byte)) {
            return Ok(known);
        }
        let before = digits.map(|digits| self.get(digits).clone());
        let plan = self.plan(core, residuals, obligation);
        let after = plan.digits_after(core, before, byte)?;
        let after = after.map(|digits| self.representative(obligation, &plan, digits));
        let after = after.map(|digits| self.intern(digits));
        self.after.insert((obligation, digits, byte), after);
        Ok(after)
    }

    /// Returns `true` if the integer part may continue with any number of any digits.
    pub(crate) fn any_digits(
        &mut self,
        core: &mut SolverContext,
        residuals: &Residuals,
        obligation: ObligationId,
        digits: NumberPrefixId,
    ) -> bool {
        let plan = self.plan(core, residuals, obligation);
        let digits = self.get(digits);
        matches!(&plan.sets, Some(NumberSet::Intervals(intervals)) if intervals.any_digits(digits))
    }

    /// Returns the verdicts of a number that ends here, `None` if it cannot.
    pub(crate) fn end_verdicts(
        &mut self,
        core: &mut SolverContext,
        residuals: &mut Residuals,
        obligation: ObligationId,
        digits: NumberPrefixId,
    ) -> Option<VerdictsId> {
        if let Some(&known) = self.ends.get(&(obligation, digits)) {
            return known;
        }
        let number = self.get(digits).clone();
        let required = residuals.get(obligation).clone();
        let plan = self.plan(core, residuals, obligation);
        let within = plan.sets.as_ref().and_then(|sets| sets.holds(&number));
        let ends = match within {
            Some(within) => within,
            None => number.satisfies(&core.base.formulas, plan.total),
        };
        let ends = ends.then(|| {
            let all = required.formulas.iter().skip(1);
            let verdicts: Vec<bool> =
                all.map(|&id| number.satisfies(&core.base.formulas, id)).collect();
            residuals.intern_verdicts(&verdicts)
        });
        self.ends.insert((obligation, digits), ends);
        ends
    }

    /// Returns everything that an obligation requires of a number.
    pub(crate) fn plan(
        &mut self,
        core: &mut SolverContext,
        residuals: &Residuals,
        obligation: ObligationId,
    ) -> Arc<NumberPlan> {
        if let Some(known) = self.plans.get(&obligation) {
            return Arc::clone(known);
        }
        let required = residuals.get(obligation).clone();
        let total = required.total(core);
        let constant = |id: &FormulaId| *id == TRUE || *id == FALSE;
        let all: Vec<FormulaId> = required.formulas.iter().copied().chain([total]).collect();
        let scale = NumberScale::new(core.base.formulas.atoms_of(&all));
        let plain = !core.options.allow_exponents;
        let sets = plain.then(|| NumberSet::new(core, total, &scale)).flatten();
        let plan = Arc::new(NumberPlan {
            total,
            unconstrained: required.formulas.iter().all(constant),
            no_queries: required.formulas.iter().skip(1).all(constant),
            scale,
            sets,
        });
        self.plans.insert(obligation, Arc::clone(&plan));
        plan
    }

    /// Returns the representative of all prefixes with equal residuals.
    fn representative(
        &mut self,
        obligation: ObligationId,
        plan: &NumberPlan,
        digits: NumberPrefix,
    ) -> NumberPrefix {
        let folds = plan.no_queries && !plan.unconstrained;
        let sets = plan.sets.as_ref().filter(|_| folds);
        match sets.and_then(|sets| sets.residual(&digits)) {
            Some(residual) => {
                let key = (obligation, digits.negative, residual);
                if let Some(known) = self.representatives.get(&key) {
                    return known.clone();
                }
                self.representatives.insert(key, digits.clone());
                digits
            }
            None => digits,
        }
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let digits = self.prefixes.iter().map(|one| one.digits.bits() as usize / 8 + 24);
        digits.sum::<usize>()
            + self.prefixes.table_bytes()
            + 300 * self.plans.len()
            + 48 * self.representatives.len()
            + self.plans.table_bytes()
            + self.after.table_bytes()
            + self.ends.table_bytes()
            + self.representatives.table_bytes()
    }
}
