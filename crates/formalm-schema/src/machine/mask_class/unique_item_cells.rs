//! Arrays of distinct items of which more is asked than the same of every item.
//!
//! Statements about the items that are still to come ask some nodes of them. The values of a type
//! fall into cells, by which of these nodes they satisfy, and nothing but equality tells two values
//! of a cell apart. Where every cell has no end of values, and no statement needs equal items, an
//! array that goes on beside one value goes on beside any other: wherever an item equals it, another
//! value of the same cell will do. So what the value was does not matter.

use formalm_automata::Error;

use crate::core::Core;
use crate::formula::{Atom, F, FALSE, Form, Formulas, TRUE};
use crate::machine::LazyTables;
use crate::machine::frame::ObligationId;
use crate::node::{NodeId, Type};
use crate::solve::PLENTY;

/// Nodes by which values are told apart, for which cells are gone through.
const MAX_NODES: usize = 4;

impl LazyTables {
    /// Whether no statement about the rest of an array can tell which value of a type, or of any, an
    /// item has had.
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
    /// Whether there is no end of values of a type, or of each type, in every cell that has any.
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
    /// Whether a formula says of items that they are distinct, never that some are equal.
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
