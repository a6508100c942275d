//! Equivalence of unique items: decides if an earlier item's value matters to the rest of an array.
//!
//! Statements about further items concern some nodes. The values of a type fall into cells, by
//! which of these nodes they satisfy, and only equality distinguishes values of a cell. Suppose
//! that every cell has unboundedly many values and that no statement requires equal items. Then an
//! array that can be completed after one value can be completed after any other of the cell: where
//! an item equals it, another value of the cell takes its place. So the value itself can be dropped
//! from the mask class.

use formalm_automata::Error;

use crate::core::Core;
use crate::formula::{Atom, F, FALSE, Form, Formulas, TRUE};
use crate::machine::LazyTables;
use crate::machine::frame::ObligationId;
use crate::node::{NodeId, Type};
use crate::solve::PLENTY;

/// Maximum number of nodes that define the cells, of which there are 2ⁿ. Chosen, not measured.
const MAX_NODES: usize = 4;

impl LazyTables {
    /// Returns `true` if no statement about the rest of an array depends on which value of a type,
    /// or of any, an item had.
    pub(crate) fn has_unbounded_cells(
        &mut self,
        obligation: ObligationId,
        of: Option<Type>,
    ) -> Result<bool, Error> {
        let required = self.parts.obligations.get(obligation.0).clone();
        let total = self.core.total(&required);
        if !self.core.formulas.never_requires_equal_items(total) {
            return Ok(false);
        }
        let (mut nodes, mut needed, mut is_array) = (Vec::new(), self.max_token_len as u64, true);
        self.core.formulas.some_atom(&[total], |atom| {
            let more = match atom {
                Atom::Items(ranges, _) => {
                    nodes.extend(ranges.iter().map(|range| range.2));
                    let edges = ranges.iter().flat_map(|&(from, to, _)| [from, to]);
                    edges.filter(|&edge| edge != u32::MAX).max().unwrap_or(0).into()
                }
                Atom::Contains(count, node) => {
                    nodes.push(*node);
                    *count
                }
                Atom::MoreItems(count) => *count,
                Atom::Unique(taken) | Atom::UniqueWith(taken) => taken.len() as u64,
                _ => {
                    is_array = false;
                    0
                }
            };
            needed = needed.saturating_add(more);
            !is_array
        });
        Ok(is_array && needed <= PLENTY / 2 && self.core.cells_are_unbounded(&nodes, of)?)
    }
}

impl Core {
    /// Returns `true` if every nonempty cell of a type, or of each type, has unboundedly many
    /// values.
    fn cells_are_unbounded(&mut self, nodes: &[NodeId], of: Option<Type>) -> Result<bool, Error> {
        for one in Type::ALL.into_iter().filter(|&one| of.is_none_or(|of| of == one)) {
            let mut formulas = Vec::new();
            for &node in nodes {
                let formula = self.child(node);
                let formula = self.of_type(formula, one)?;
                if formula != TRUE && formula != FALSE && !formulas.contains(&formula) {
                    formulas.push(formula);
                }
            }
            if formulas.len() > MAX_NODES {
                return Ok(false);
            }
            for signs in 0..1usize << formulas.len() {
                let signed = |core: &mut Core, (at, &formula): (usize, &F)| {
                    if signs >> at & 1 == 1 { formula } else { core.formulas.not(formula) }
                };
                let cell = formulas.iter().enumerate().map(|each| signed(self, each)).collect();
                let cell = self.formulas.and(cell);
                if self.some_of_type(cell, one)?
                    && (one == Type::Number || !self.is_endless(cell, one, 0)?)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

impl Formulas {
    /// Returns `true` if a formula may require items to be distinct, but never to be equal.
    fn never_requires_equal_items(&self, id: F) -> bool {
        let is_unique = |atom: &Atom| matches!(atom, Atom::Unique(_) | Atom::UniqueWith(_));
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if !self.has_atom(id) || !seen.insert(id) {
                continue;
            }
            match self.get(id) {
                Form::Not(_) | Form::One(_) if self.some_atom(&[id], is_unique) => return false,
                Form::And(list) | Form::Or(list) => stack.extend_from_slice(list),
                _ => {}
            }
        }
        true
    }
}
