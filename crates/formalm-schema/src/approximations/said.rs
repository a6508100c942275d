//! What a node says of arrays together with all that it holds in place.
//!
//! Items that are alike wherever they stand differ only in what they are: two values of which the
//! same is true, as far as the node asks, can take each other's place. So an array of distinct items
//! is exact if it is known how many values there are of each kind.

use std::sync::Arc;

use formalm_automata::Error;

use crate::core::Core;
use crate::formula::{F, FALSE, TRUE};
use crate::node::{NodeId, Rule, Type};
use crate::solve::{Listed, MAX_LISTED};

/// Nodes held in place within each other.
const MAX_LEVELS: u32 = 8;

/// Nodes that items may satisfy or not.
const MAX_PARTS: usize = 4;

type Ranges = Arc<[(u32, u32, NodeId)]>;

/// What is said of arrays.
pub(super) struct Said {
    /// So many items there are at least.
    pub(super) least: u64,
    /// The numbers of items that are asked for, taken together.
    sum: u64,
    items: Vec<Ranges>,
    /// So many items of a node there are at least, and at most.
    contained: Vec<(NodeId, u64, Option<u64>)>,
    /// Not all of it need hold.
    alternatives: bool,
}

impl Said {
    /// Whether it matters of which kinds items are. One item that must be of a kind, and that there
    /// is not yet, takes nothing from the others.
    pub(super) fn has_kinds(&self) -> bool {
        self.alternatives
            || self.items.len() > 1
            || match self.contained[..] {
                [] => false,
                [(_, 0 | 1, None)] => !self.are_alike(),
                _ => true,
            }
    }

    /// Whether the same is asked of all items.
    fn are_alike(&self) -> bool {
        self.items.iter().all(|ranges| matches!(ranges[..], [] | [(0, u32::MAX, _)]))
    }

    /// What is said of each item where that is said once.
    pub(super) fn items(&self) -> &[(u32, u32, NodeId)] {
        self.items.first().map_or(&[], |ranges| &**ranges)
    }
}

impl Core {
    /// What is said of arrays; none if there is more to it.
    pub(super) fn said_of_arrays(&mut self, id: NodeId) -> Result<Option<Said>, Error> {
        let mut said =
            Said { least: 1, sum: 0, items: vec![], contained: vec![], alternatives: false };
        Ok(self.gather(id, &mut said, MAX_LEVELS)?.then_some(said))
    }

    /// Whether arrays are exact of which all these nodes may hold, or not.
    pub(super) fn are_together_exact(&mut self, nodes: &[NodeId]) -> Result<bool, Error> {
        let mut said =
            Said { least: 1, sum: 0, items: vec![], contained: vec![], alternatives: true };
        for &one in nodes {
            if !self.gather(one, &mut said, MAX_LEVELS)? {
                return Ok(false);
            }
        }
        self.are_kinds_counted(&said)
    }

    fn gather(&mut self, id: NodeId, said: &mut Said, levels: u32) -> Result<bool, Error> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(false) };
        let rules = Arc::clone(&self.schema.node(id).rules);
        for rule in rules.iter() {
            match rule {
                Rule::Items(ranges) => said.items.push(Arc::clone(ranges)),
                Rule::MinItems(min) => {
                    said.least = said.least.max(*min);
                    said.sum = said.sum.saturating_add(*min);
                }
                Rule::Contains { node, min, max, .. } => {
                    said.contained.push((*node, *min, *max));
                    said.sum = said.sum.saturating_add(*min);
                }
                Rule::All(list) => {
                    for &one in list {
                        if !self.gather(one, said, levels)? {
                            return Ok(false);
                        }
                    }
                }
                Rule::Any(list) => {
                    said.alternatives = true;
                    for &one in list {
                        let of_arrays = self.expand(one, Type::Array)?;
                        if of_arrays != FALSE && !self.gather(one, said, levels)? {
                            return Ok(false);
                        }
                    }
                }
                Rule::Unique
                | Rule::Types { .. }
                | Rule::MaxItems(_)
                | Rule::MinMembers(_)
                | Rule::MaxMembers(_)
                | Rule::Members(_)
                | Rule::Required(_)
                | Rule::Names(_)
                | Rule::Text(_) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether items are alike wherever they stand, and it is known of each kind how many values it
    /// has.
    pub(super) fn are_kinds_counted(&mut self, said: &Said) -> Result<bool, Error> {
        let mut parts = Vec::with_capacity(said.items.len() + said.contained.len());
        if !said.are_alike() {
            return Ok(false);
        }
        let items = said.items.iter().flat_map(|ranges| ranges.iter());
        parts.extend(items.map(|&(_, _, node)| (node, said.alternatives)));
        let bounded = |&(node, _, max): &(NodeId, u64, Option<u64>)| {
            (node, said.alternatives || max.is_some())
        };
        parts.extend(said.contained.iter().map(bounded));
        parts.sort_unstable();
        parts.dedup();
        if said.sum > MAX_LISTED as u64 / 2 || parts.len() > MAX_PARTS {
            return Ok(false);
        }
        let mut kinds: Vec<F> = vec![TRUE];
        for (node, either) in parts {
            let is_one = self.child(node);
            let mut ways = vec![is_one];
            if either {
                ways.push(self.formulas.not(is_one));
            }
            for at in 0..kinds.len() {
                for &way in &ways {
                    kinds.push(self.formulas.both(kinds[at], way));
                }
            }
        }
        for kind in kinds {
            if matches!(self.list_values(kind, MAX_LISTED, &[])?, Listed::Unknown) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
