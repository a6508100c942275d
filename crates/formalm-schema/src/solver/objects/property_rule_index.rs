//! Rules about members by the names that they list.
//!
//! `properties` of *n* names is *n* rules. Asking each of them about each name takes n² steps, which
//! 100,000 names do not have; an index is made once for each list that is long.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::formula::Which;
use crate::json::property_names::NameId;
use crate::schema_nodes::NodeId;

type Rules = Arc<[(Which, NodeId)]>;

/// Rules of shorter lists are asked one by one.
const LONG: usize = 32;

/// Rules that indexes are kept of. Each entry is 4 bytes beside the list itself, which it keeps.
const MAX_RULES: usize = 4_000_000;

/// The places of rules in one list.
#[derive(Debug)]
pub(crate) struct Places {
    /// Kept, so that no other list is made where this one was.
    rules: Rules,
    /// Names with a rule that lists them, sorted by name and then by place.
    named: Vec<(NameId, u32)>,
    /// Rules that list no names.
    others: Vec<u32>,
}

impl Places {
    fn of(rules: &Rules) -> Places {
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (place, (which, _)) in (0u32..).zip(rules.iter()) {
            match &which.names {
                Some(names) => named.extend(names.iter().map(|&name| (name, place))),
                None => others.push(place),
            }
        }
        named.sort_unstable();
        Places { rules: Arc::clone(rules), named, others }
    }

    /// The rules that may speak of a name, in their order.
    pub(crate) fn about(&self, name: NameId) -> Vec<u32> {
        let first = self.named.partition_point(|one| one.0 < name);
        let named = self.named[first..].iter().take_while(|one| one.0 == name);
        let mut places: Vec<u32> =
            named.map(|one| one.1).chain(self.others.iter().copied()).collect();
        places.sort_unstable();
        places
    }
}

/// How often a list is asked before an index is worth its sorting.
const WORTHWHILE: u32 = 8;

/// Lists that were asked less often and are remembered.
const MAX_ASKED: usize = 4096;

/// Indexes by the address of the list.
#[derive(Debug, Default)]
pub(crate) struct RuleIndex {
    lists: FxHashMap<usize, Arc<Places>>,
    /// How often lists without an index were asked. They are not kept, so that an address may
    /// have been another list's.
    asked: FxHashMap<usize, u32>,
    rules: usize,
}

impl RuleIndex {
    /// The index of a list, if the list is long and was asked before.
    pub(crate) fn of(&mut self, rules: &Rules) -> Option<Arc<Places>> {
        if rules.len() < LONG {
            return None;
        }
        let address = rules.as_ptr() as usize;
        if let Some(known) = self.lists.get(&address).filter(|one| Arc::ptr_eq(&one.rules, rules)) {
            return Some(Arc::clone(known));
        }
        if self.asked.len() >= MAX_ASKED {
            self.asked.clear();
        }
        let asked = self.asked.entry(address).or_default();
        *asked += 1;
        if *asked < WORTHWHILE {
            return None;
        }
        self.asked.remove(&address);
        if self.rules > MAX_RULES {
            self.lists.clear();
            self.rules = 0;
        }
        self.rules += rules.len();
        let made = Arc::new(Places::of(rules));
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
        let rules: Rules = list.into();
        let mut indexes = RuleIndex::default();
        for _ in 1..WORTHWHILE {
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
            assert_eq!(index.about(NameId(name)), expected);
        }
    }
}
