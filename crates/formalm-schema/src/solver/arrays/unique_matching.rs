//! Distinct items: a bipartite matching of items with values.
//!
//! Items with at least as many values as there are items always find a free one. Only the scarce
//! items need a matching, which is found by augmenting paths.

use std::sync::Arc;

use formalm_core::Error;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::formula::FormulaId;
use crate::json::interned_values::ValueId;
use crate::solver::arrays::ArraySearch;
use crate::solver::enumeration::{Enumeration, MAX_ENUMERATED, VALUES_PER_STEP};

impl ArraySearch<'_> {
    /// Returns `true` if all items can have distinct values, none of them `taken`. `current` is the
    /// formula of the item being read.
    pub(super) fn can_be_distinct(
        &mut self,
        items: &[(FormulaId, u64)],
        current: Option<FormulaId>,
        taken: &[ValueId],
    ) -> Result<bool, Error> {
        let mut scarce: Vec<Arc<[ValueId]>> = Vec::new();
        let mut kinds = 0;
        let all = items.iter().fold(0, |all: u64, kind| all.saturating_add(kind.1));
        let all = all.saturating_add(u64::from(current.is_some()));
        let enough = usize::try_from(all).map_or(MAX_ENUMERATED, |all| all.min(MAX_ENUMERATED));
        let mut known: FxHashMap<FormulaId, Enumeration> = FxHashMap::default();
        let current = current.map(|current| (current, 1));
        for (at, &(item, count)) in items.iter().chain(&current).enumerate() {
            // All others have enough values, whatever the current item takes.
            if at == items.len() && scarce.is_empty() {
                break;
            }
            let listed = match known.get(&item) {
                Some(listed) => listed.clone(),
                None => self.solver.enumerate_values(item, enough, taken)?,
            };
            known.insert(item, listed.clone());
            let Enumeration::All(values) = listed else { continue };
            if (values.len() as u64) < count {
                return Ok(false);
            }
            let values: Arc<[ValueId]> = values.into();
            scarce.extend((0..count).map(|_| Arc::clone(&values)));
            kinds += 1;
        }
        if kinds == 1 {
            // One kind of items, with as many values as items.
            return Ok(true);
        }
        // An item with as many values as there are items always finds a free one.
        let mut owner = FxHashMap::default();
        for item in 0..scarce.len() {
            self.solver.base.count_steps(scarce[item].len() / VALUES_PER_STEP)?;
            if !augment_matching(item, &scarce, &mut owner, &mut FxHashSet::default()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Assigns a value to an item along an augmenting path. Returns `false` if there is none.
fn augment_matching(
    item: usize,
    values: &[Arc<[ValueId]>],
    owner: &mut FxHashMap<ValueId, usize>,
    tried: &mut FxHashSet<ValueId>,
) -> bool {
    if let Some(&free) = values[item].iter().find(|value| !owner.contains_key(value)) {
        owner.insert(free, item);
        return true;
    }
    for &value in values[item].iter() {
        if !tried.insert(value) {
            continue;
        }
        let other = owner[&value];
        if augment_matching(other, values, owner, tried) {
            owner.insert(value, item);
            return true;
        }
    }
    false
}
