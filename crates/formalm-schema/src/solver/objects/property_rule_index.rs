//! Rules about members by the names that they list.
//!
//! `properties` of *n* names is *n* rules. Asking each of them about each name takes n² steps, which
//! 100,000 names do not have; an index is made once for each list that is long.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::formula::Which;
use crate::json::property_names::NameId;
use crate::schema_nodes::NodeId;

type PropertyRules = Arc<[(Which, NodeId)]>;

/// Rules of shorter lists are asked one by one.
const MIN_INDEXED_RULES: usize = 32;

/// Rules that indexes are kept of. Each entry is 4 bytes beside the list itself, which it keeps.
const MAX_RULES: usize = 4_000_000;

/// The places of rules in one list.
#[derive(Debug)]
pub(crate) struct RulePositions {
    /// Kept, so that no other list is made where this one was.
    rules: PropertyRules,
    /// Names with a rule that lists them, sorted by name and then by place.
    named: Vec<(NameId, u32)>,
    /// Rules that list no names.
    others: Vec<u32>,
}

impl RulePositions {
    fn of(rules: &PropertyRules) -> RulePositions {
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (place, (which, _)) in (0u32..).zip(rules.iter()) {
            match &which.names {
                Some(names) => named.extend(names.iter().map(|&name| (name, place))),
                None => others.push(place),
            }
        }
        named.sort_unstable();
        RulePositions { rules: Arc::clone(rules), named, others }
    }

    /// The rules that may speak of a name, in their order.
    pub(crate) fn for_name(&self, name: NameId) -> Vec<u32> {
        let first = self.named.partition_point(|one| one.0 < name);
        let named = self.named[first..].iter().take_while(|one| one.0 == name);
        let mut places: Vec<u32> =
            named.map(|one| one.1).chain(self.others.iter().copied()).collect();
        places.sort_unstable();
        places
    }
}

/// How often a list is asked before an index is worth its sorting.
const USES_BEFORE_INDEX: u32 = 8;

/// Lists that were asked less often and are remembered.
const MAX_COUNTED_LISTS: usize = 4096;

/// Indexes by the address of the list.
#[derive(Debug, Default)]
pub(crate) struct PropertyRuleIndex {
    lists: FxHashMap<usize, Arc<RulePositions>>,
    /// How often lists without an index were asked. They are not kept, so that an address may
    /// have been another list's.
    use_counts: FxHashMap<usize, u32>,
    rules: usize,
}

impl PropertyRuleIndex {
    /// The index of a list, if the list is long and was asked before.
    pub(crate) fn of(&mut self, rules: &PropertyRules) -> Option<Arc<RulePositions>> {
        if rules.len() < MIN_INDEXED_RULES {
            return None;
        }
        let address = rules.as_ptr() as usize;
        if let Some(known) = self.lists.get(&address).filter(|one| Arc::ptr_eq(&one.rules, rules)) {
            return Some(Arc::clone(known));
        }
        if self.use_counts.len() >= MAX_COUNTED_LISTS {
            self.use_counts.clear();
        }
        let asked = self.use_counts.entry(address).or_default();
        *asked += 1;
        if *asked < USES_BEFORE_INDEX {
            return None;
        }
        self.use_counts.remove(&address);
        if self.rules > MAX_RULES {
            self.lists.clear();
            self.rules = 0;
        }
        self.rules += rules.len();
        let made = Arc::new(RulePositions::of(rules));
        self.lists.insert(address, Arc::clone(&made));
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn which(names: Option<&[u32]>) -> Which {
        let names = names.map(|list| list.iter().map(|&name| NameId(name)).collect());
        Which { names, others: [].into(), found: [].into(), missing: [].into() }
    }

    #[test]
    fn the_rules_about_a_name_are_in_their_order() {
        let mut list = Vec::new();
        for at in 0..40u32 {
            let names = [at % 7, 50 + at];
            list.push((which((at % 5 > 0).then_some(&names[..])), NodeId(at)));
        }
        let rules: PropertyRules = list.into();
        let mut indexes = PropertyRuleIndex::default();
        for _ in 1..USES_BEFORE_INDEX {
            assert!(indexes.of(&rules).is_none());
        }
        let index = indexes.of(&rules).unwrap();
        for name in 0..100 {
            let expected: Vec<u32> = (0..40)
                .filter(|&at| match &rules[at as usize].0.names {
                    Some(names) => names.contains(&NameId(name)),
                    None => true,
                })
                .collect();
            assert_eq!(index.for_name(NameId(name)), expected);
        }
    }
}
