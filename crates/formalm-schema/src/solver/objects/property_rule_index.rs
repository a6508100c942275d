//! An index of property rules by name.
//!
//! `properties` with *n* names is *n* rules. Testing each rule for each name takes n² steps, too
//! many for 100,000 names. So each long list gets an index once it is used repeatedly.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::formula::NameSelector;
use crate::json::property_names::NameId;
use crate::schema_nodes::NodeId;

type PropertyRules = Arc<[(NameSelector, NodeId)]>;

/// Minimum length of a list that is indexed. Chosen, not measured.
const MIN_INDEXED_RULES: usize = 32;

/// Maximum number of rules in all indexes (4 bytes each, plus the list, which the index keeps
/// alive). Beyond it all are dropped. Chosen, not measured.
const MAX_RULES: usize = 4_000_000;

/// The positions of rules in one list.
#[derive(Debug)]
pub(crate) struct RulePositions {
    /// Kept alive, so that its address is not reused.
    rules: PropertyRules,
    /// Pairs of a name and a rule that lists it, sorted.
    named: Vec<(NameId, u32)>,
    /// Rules that do not list names.
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

    /// Returns the positions of the rules that may apply to a name, in order.
    pub(crate) fn for_name(&self, name: NameId) -> Vec<u32> {
        let first = self.named.partition_point(|one| one.0 < name);
        let named = self.named[first..].iter().take_while(|one| one.0 == name);
        let mut places: Vec<u32> =
            named.map(|one| one.1).chain(self.others.iter().copied()).collect();
        places.sort_unstable();
        places
    }
}

/// Number of uses of a list before an index is worth sorting. Chosen, not measured.
const USES_BEFORE_INDEX: u32 = 8;

/// Maximum number of lists whose uses are counted. Chosen, not measured.
const MAX_COUNTED_LISTS: usize = 4096;

/// Indexes by the address of the list.
#[derive(Debug, Default)]
pub(crate) struct PropertyRuleIndex {
    lists: FxHashMap<usize, Arc<RulePositions>>,
    /// Uses of lists without an index. These lists are not kept alive, so an address may have been
    /// reused.
    use_counts: FxHashMap<usize, u32>,
    rules: usize,
}

impl PropertyRuleIndex {
    /// Returns the index of a list, if it is long and used repeatedly.
    pub(crate) fn index_for(&mut self, rules: &PropertyRules) -> Option<Arc<RulePositions>> {
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
        let uses = self.use_counts.entry(address).or_default();
        *uses += 1;
        if *uses < USES_BEFORE_INDEX {
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

    fn which(names: Option<&[u32]>) -> NameSelector {
        let names = names.map(|list| list.iter().map(|&name| NameId(name)).collect());
        NameSelector {
            names,
            excluded_names: [].into(),
            matched_patterns: [].into(),
            unmatched_patterns: [].into(),
        }
    }

    #[test]
    fn rules_for_a_name_keep_their_order() {
        let mut list = Vec::new();
        for at in 0..40u32 {
            let names = [at % 7, 50 + at];
            list.push((which((at % 5 > 0).then_some(&names[..])), NodeId(at)));
        }
        let rules: PropertyRules = list.into();
        let mut indexes = PropertyRuleIndex::default();
        for _ in 1..USES_BEFORE_INDEX {
            assert!(indexes.index_for(&rules).is_none());
        }
        let index = indexes.index_for(&rules).unwrap();
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
