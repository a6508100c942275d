//! Proves that infinitely many arrays satisfy a formula.

use std::sync::Arc;

use formalm_core::Error;

use crate::formula::{FALSE, FormulaAtom, FormulaId, TRUE};
use crate::machine::UnboundedValues;
use crate::schema_nodes::JsonType;
use crate::solver::MAX_ENUMERATED;
use crate::solver::arrays::last_edge;
use crate::solver::context::SolverContext;

/// A query for the number of arrays inside some containers.
pub(crate) struct ArrayCardinality<'a> {
    pub(crate) solver: &'a mut SolverContext,
    /// Number of objects and arrays around the array.
    pub(crate) depth: usize,
}

impl ArrayCardinality<'_> {
    /// Returns `true` if a formula provably has infinitely many arrays: of any length, or with
    /// infinitely many first items.
    pub(crate) fn is_infinite(&mut self, id: FormulaId) -> Result<bool, Error> {
        if id == TRUE || id == FALSE {
            return Ok(id == TRUE);
        }
        let depth = self.depth;
        self.solver.search_implicants(id, &mut |_, _| Ok(true), &mut |solver, literals| {
            ArrayCardinality { solver, depth }.has_infinite_items(literals)
        })
    }

    /// Returns `true` if one implicant provably has infinitely many arrays.
    fn has_infinite_items(&mut self, literals: &[FormulaId]) -> Result<bool, Error> {
        let (mut first, mut alike, mut is_bounded, mut is_unique) = (Vec::new(), 0, false, false);
        for &part in literals {
            match self.solver.base.formulas.literal(part) {
                Some((FormulaAtom::Items(ranges, read), true)) => {
                    let (ranges, read) = (Arc::clone(ranges), u64::from(*read));
                    alike = alike.max(u64::from(last_edge(&ranges)));
                    first.push(self.solver.base.item_formula_at(&ranges, read));
                }
                Some((FormulaAtom::MinItems(count), true)) => alike = alike.max(*count),
                Some((FormulaAtom::MinItems(_), false)) => is_bounded = true,
                // The first item can be any that the others are not.
                Some((FormulaAtom::UniqueItems(_), true)) => is_unique = true,
                _ => return Ok(false),
            }
        }
        let longer = |solver: &mut SolverContext, count: u64| {
            let more = solver.base.formulas.atom(FormulaAtom::MinItems(count));
            Ok(solver.items_fit(&[literals, &[more]].concat(), TRUE)? != FALSE)
        };
        if !is_bounded
            && !is_unique
            && alike < MAX_ENUMERATED as u64
            && longer(self.solver, alike + 1)?
        {
            return Ok(true);
        }
        if !longer(self.solver, 1)? {
            return Ok(false);
        }
        let (first, depth) = (self.solver.base.formulas.and(first), self.depth);
        for ty in [JsonType::String, JsonType::Number, JsonType::Array, JsonType::Object] {
            let item = self.solver.formula_for_type(first, ty)?;
            if UnboundedValues::new(self.solver, depth + 1).has_unbounded_values(item, ty)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
