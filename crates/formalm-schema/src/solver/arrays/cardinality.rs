//! Proves that infinitely many arrays satisfy a formula.

use formalm_automata::Error;

use crate::formula::{FALSE, Formula, FormulaAtom, FormulaId, TRUE};
use crate::schema_nodes::JsonType;
use crate::solver::MAX_ENUMERATED;
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
            let (form, positive) = match self.solver.base.formulas.get(part) {
                Formula::Not(inner) => (self.solver.base.formulas.get(*inner), false),
                form => (form, true),
            };
            match form.clone() {
                Formula::Atom(FormulaAtom::Items(ranges, read)) if positive => {
                    let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                    let last = edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0);
                    alike = alike.max(u64::from(last));
                    first.push(self.solver.base.item_formula_at(&ranges, u64::from(read)));
                }
                Formula::Atom(FormulaAtom::MinItems(count)) if positive => alike = alike.max(count),
                Formula::Atom(FormulaAtom::MinItems(_)) => is_bounded = true,
                // The first item can be any that the others are not.
                Formula::Atom(FormulaAtom::UniqueItems(_)) if positive => is_unique = true,
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
            if self.solver.has_unbounded_values(item, ty, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
