//! Equivalence of unique items: decides if an earlier item's value matters to the rest of an array.
//!
//! Statements about further items concern some nodes. The values of a type fall into cells, by
//! which of these nodes they satisfy, and only equality distinguishes values of a cell. Suppose
//! that every cell has unboundedly many values and that no statement requires equal items. Then an
//! array that can be completed after one value can be completed after any other of the cell: where
//! an item equals it, another value of the cell takes its place. So the value itself can be dropped
//! from the mask class.

use formalm_core::Error;

use crate::formula::{Formula, FormulaArena, FormulaAtom, FormulaId};
use crate::machine::frame::ObligationId;
use crate::machine::mask_class::abstraction::MaskAbstraction;
use crate::machine::mask_class::unbounded_values::UnboundedValues;
use crate::machine::values::Values;
use crate::schema_nodes::JsonType;
use crate::solver::ENOUGH_VALUES;

impl MaskAbstraction {
    /// Returns `true` if no statement about the rest of an array depends on which value of a type,
    /// or of any, an item had.
    pub(crate) fn has_unbounded_cells(
        &self,
        values: &mut Values,
        obligation: ObligationId,
        of: Option<JsonType>,
    ) -> Result<bool, Error> {
        let required = values.residuals.get(obligation).clone();
        let total = required.total(&mut values.core);
        if !values.core.base.formulas.never_requires_equal_items(total) {
            return Ok(false);
        }
        let (mut nodes, mut needed, mut is_array) = (Vec::new(), self.max_token_len as u64, true);
        values.core.base.formulas.any_atom(&[total], |atom| {
            let more = match atom {
                FormulaAtom::Items(ranges, _) => {
                    nodes.extend(ranges.iter().map(|range| range.2));
                    let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                    edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0).into()
                }
                FormulaAtom::Contains(count, node) => {
                    nodes.push(*node);
                    *count
                }
                FormulaAtom::MinItems(count) => *count,
                FormulaAtom::UniqueItems(taken) | FormulaAtom::UniqueWithCurrent(taken) => {
                    taken.len() as u64
                }
                _ => {
                    is_array = false;
                    0
                }
            };
            needed = needed.saturating_add(more);
            !is_array
        });
        Ok(is_array
            && needed <= ENOUGH_VALUES / 2
            && UnboundedValues::new(&mut values.core, 0).cells_are_unbounded(&nodes, of)?)
    }
}

impl FormulaArena {
    /// Returns `true` if a formula may require items to be distinct, but never to be equal.
    fn never_requires_equal_items(&self, id: FormulaId) -> bool {
        let is_unique = |atom: &FormulaAtom| {
            matches!(atom, FormulaAtom::UniqueItems(_) | FormulaAtom::UniqueWithCurrent(_))
        };
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if !self.has_atom(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Formula::Not(_) | Formula::ExactlyOne(_) if self.any_atom(&[id], is_unique) => {
                    return false;
                }
                Formula::And(list) | Formula::Or(list) => stack.extend_from_slice(list),
                _ => {}
            }
        }
        true
    }
}
