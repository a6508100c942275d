//! What a node says of arrays together with all that it holds in place.
//!
//! Items that are alike wherever they stand differ only in what they are: two values of which the
//! same is true, as far as the node asks, can take each other's place. So an array of distinct items
//! is exact if it is known how many values there are of each kind.

use std::sync::Arc;

use formalm_automata::Error;

use crate::formula::{F, FALSE, TRUE};
use crate::schema_nodes::{NodeId, Rule, Type};
use crate::solver::context::Core;
use crate::solver::{Listed, MAX_LISTED};

/// Nodes held in place within each other.
const MAX_LEVELS: u32 = 8;

/// Nodes that items may satisfy or not.
const MAX_PARTS: usize = 4;

type Ranges = Arc<[(u32, u32, NodeId)]>;

/// What is said of arrays.
pub(super) struct Said {
    /// So many items there are at least.
    pub(super) least: u64,
    /// So many items there are at most, if all of it has to hold.
    pub(super) most: Option<u64>,
    /// The numbers of items that are asked for, taken together.
    sum: u64,
    pub(super) items: Vec<Ranges>,
    /// So many items of a node there are at least, and at most.
    contained: Vec<(NodeId, u64, Option<u64>)>,
    /// Not all of it need hold.
    alternatives: bool,
}

impl Said {
    fn new() -> Said {
        Said { least: 1, most: None, sum: 0, items: vec![], contained: vec![], alternatives: false }
    }

    fn asks_for(&mut self, items: u64) {
        self.least = self.least.max(items);
        self.sum = self.sum.saturating_add(items);
    }

    /// Whether it matters of which kinds items are. One item that must be of a kind, and that there
    /// is not yet, takes nothing from the others.
    pub(super) fn has_kinds(&self) -> bool {
        self.alternatives
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
}

impl Core {
    /// What the items of each stretch of places have to satisfy together, and the place after its
    /// last one. Places beyond the last item that there can be are left out.
    pub(super) fn items_by_place(
        &mut self,
        items: &[Ranges],
        most: Option<u64>,
    ) -> Result<Vec<(F, Option<u64>)>, Error> {
        let ranges = items.iter().flat_map(|ranges| ranges.iter());
        let mut edges: Vec<u64> = ranges
            .flat_map(|&(from, to, _)| [from, to])
            .filter(|&edge| edge != u32::MAX)
            .map(u64::from)
            .chain([0])
            .chain(most)
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let mut places = Vec::with_capacity(edges.len());
        for (at, &edge) in edges.iter().enumerate() {
            let all = items.iter().map(|ranges| self.ranges_at(ranges, edge)).collect();
            let item = self.formulas.and(all);
            if most.is_some_and(|most| edge >= most) || !self.some_value(item)? {
                break;
            }
            places.push((item, edges.get(at + 1).copied()));
        }
        Ok(places)
    }

    /// What is said of arrays; none if there is more to it.
    pub(super) fn said_of_arrays(&mut self, id: NodeId) -> Result<Option<Said>, Error> {
        let mut said = Said::new();
        Ok(self.gather(id, false, &mut said, MAX_LEVELS)?.then_some(said))
    }

    /// Whether arrays are exact of which all these nodes may hold, or not.
    pub(super) fn are_together_exact(&mut self, nodes: &[NodeId]) -> Result<bool, Error> {
        let mut said = Said::new();
        for &one in nodes {
            if !self.gather(one, true, &mut said, MAX_LEVELS)? {
                return Ok(false);
            }
        }
        self.are_kinds_counted(&said)
    }

    /// Adds what a node says, of which `either` may be asked, that it holds or that it does not.
    fn gather(
        &mut self,
        id: NodeId,
        either: bool,
        said: &mut Said,
        levels: u32,
    ) -> Result<bool, Error> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(false) };
        said.alternatives |= either;
        let rules = Arc::clone(&self.schema.node(id).rules);
        for rule in rules.iter() {
            let (inside, negates): (Vec<NodeId>, bool) = match rule {
                Rule::Items(ranges) => {
                    said.items.push(Arc::clone(ranges));
                    continue;
                }
                Rule::MinItems(min) => {
                    said.asks_for(*min);
                    continue;
                }
                Rule::MaxItems(max) => {
                    if either {
                        said.asks_for(max.saturating_add(1));
                    }
                    said.most = Some(said.most.map_or(*max, |most| most.min(*max)));
                    continue;
                }
                Rule::Contains { node, min, max, .. } => {
                    said.contained.push((*node, *min, *max));
                    let most = max.filter(|_| either).map_or(0, |max| max.saturating_add(1));
                    said.sum = said.sum.saturating_add((*min).max(most));
                    continue;
                }
                Rule::All(list) | Rule::Any(list) => (list.clone(), false),
                Rule::One(list) => (list.clone(), true),
                Rule::Not(one) => (vec![*one], true),
                Rule::If { condition, then, other } => {
                    ([Some(*condition), *then, *other].into_iter().flatten().collect(), true)
                }
                Rule::Unique
                | Rule::Types { .. }
                | Rule::MinMembers(_)
                | Rule::MaxMembers(_)
                | Rule::Members(_)
                | Rule::Required(_)
                | Rule::Names(_)
                | Rule::NamesWith(..)
                | Rule::SchemaWith(..)
                | Rule::Text(_) => continue,
                _ => return Ok(false),
            };
            let inside = self.of_arrays(&inside)?;
            // Where all but one are out of the question, that one has to hold.
            let is_forced = match rule {
                Rule::All(_) => true,
                Rule::Any(_) | Rule::One(_) => inside.len() == 1,
                _ => false,
            };
            said.alternatives |= !is_forced;
            let either = either || negates && !is_forced;
            for one in inside {
                if !self.gather(one, either, said, levels)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The nodes among some that some array satisfies, as far as one sees.
    pub(super) fn of_arrays(&mut self, nodes: &[NodeId]) -> Result<Vec<NodeId>, Error> {
        let mut found = Vec::with_capacity(nodes.len());
        for &one in nodes {
            if self.expand(one, Type::Array)? != FALSE {
                found.push(one);
            }
        }
        Ok(found)
    }

    /// Whether items are alike wherever they stand, and it is known of each kind how many values it
    /// has.
    pub(super) fn are_kinds_counted(&mut self, said: &Said) -> Result<bool, Error> {
        let mut parts = Vec::with_capacity(said.items.len() + said.contained.len());
        if !said.are_alike() {
            return Ok(false);
        }
        let items = said.items.iter().flat_map(|ranges| ranges.iter());
        let same = |node| self.schema.same(node);
        parts.extend(items.map(|&(_, _, node)| (same(node), said.alternatives)));
        let bounded = |&(node, _, max): &(NodeId, u64, Option<u64>)| {
            (same(node), said.alternatives || max.is_some())
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
