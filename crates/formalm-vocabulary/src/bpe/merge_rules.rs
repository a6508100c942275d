//! BPE merge rules, and greedy merging by them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use formalm_core::memory_bytes;

/// Number of symbols up to which the lowest rank is found by a linear scan; longer inputs use a
/// heap. Chosen, not measured.
const MAX_SCANNED_SYMBOLS: usize = 48;

/// A merge rule: two adjacent tokens become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MergeRule {
    /// Lower ranks apply first.
    pub(crate) rank: u32,
    /// The resulting token.
    pub(crate) token: u32,
}

memory_bytes!(none: MergeRule);

/// Marks an empty slot.
const EMPTY: u32 = u32::MAX;

/// Merge rules by the pair they join: an open-addressing hash table, built in one pass over the
/// rules and at most half full.
#[derive(Clone, Debug)]
pub(crate) struct MergeRules {
    list: Vec<(u32, u32, MergeRule)>,
    slots: Vec<u32>,
}

memory_bytes!(MergeRules { list, slots });

impl Default for MergeRules {
    fn default() -> MergeRules {
        MergeRules::new(Vec::new())
    }
}

impl MergeRules {
    /// Builds the table of the rules `(left, right, rule)`. If a pair occurs twice, the later rule
    /// counts.
    pub(crate) fn new(list: Vec<(u32, u32, MergeRule)>) -> MergeRules {
        let slots = vec![EMPTY; (2 * list.len()).next_power_of_two().max(2)];
        let mut rules = MergeRules { list, slots };
        for at in 0..rules.list.len() {
            let (left, right, _) = rules.list[at];
            let slot = rules.slot(left, right);
            rules.slots[slot] = at as u32;
        }
        rules
    }

    /// Returns the slot of the rule of a pair, or the empty slot where it would be.
    #[inline]
    fn slot(&self, left: u32, right: u32) -> usize {
        let mask = self.slots.len() - 1;
        let key = u64::from(left) << 32 | u64::from(right);
        // The upper bits of the product depend on all bits of the key.
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.slots[slot] {
                EMPTY => return slot,
                at => {
                    let (first, second, _) = self.list[at as usize];
                    if (first, second) == (left, right) {
                        return slot;
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Returns the rule of a pair.
    #[inline]
    pub(crate) fn get(&self, left: u32, right: u32) -> Option<MergeRule> {
        match self.slots[self.slot(left, right)] {
            EMPTY => None,
            at => Some(self.list[at as usize].2),
        }
    }

    /// Merges in place until no rule applies: always the lowest rank, and among equal ranks the
    /// leftmost. Calls `joined` with the pair and the rule of every merge, in order.
    pub(crate) fn merge(
        &self,
        symbols: &mut Vec<u32>,
        mut joined: impl FnMut((u32, u32), MergeRule),
    ) {
        if symbols.len() <= MAX_SCANNED_SYMBOLS {
            self.merge_few(symbols, &mut joined);
        } else {
            self.merge_many(symbols, &mut joined);
        }
    }

    fn merge_few(&self, symbols: &mut Vec<u32>, joined: &mut impl FnMut((u32, u32), MergeRule)) {
        let mut rules: Vec<Option<MergeRule>> =
            symbols.windows(2).map(|pair| self.get(pair[0], pair[1])).collect();
        loop {
            let ranked = rules.iter().enumerate().filter_map(|(at, rule)| Some((at, (*rule)?)));
            let Some((at, rule)) = ranked.min_by_key(|(at, rule)| (rule.rank, *at)) else { return };
            joined((symbols[at], symbols[at + 1]), rule);
            symbols[at] = rule.token;
            symbols.remove(at + 1);
            rules.remove(at);
            if at > 0 {
                rules[at - 1] = self.get(symbols[at - 1], symbols[at]);
            }
            if at < rules.len() {
                rules[at] = self.get(symbols[at], symbols[at + 1]);
            }
        }
    }

    fn merge_many(&self, symbols: &mut Vec<u32>, joined: &mut impl FnMut((u32, u32), MergeRule)) {
        const NONE: usize = usize::MAX;
        const GONE: u32 = u32::MAX;
        let count = symbols.len();
        let mut next: Vec<usize> = (1..count).chain([NONE]).collect();
        let mut before: Vec<usize> = [NONE].into_iter().chain(0..count - 1).collect();
        let mut queue = BinaryHeap::new();
        let push = |queue: &mut BinaryHeap<_>, symbols: &[u32], at: usize, after: usize| {
            if let Some(rule) = self.get(symbols[at], symbols[after]) {
                queue.push(Reverse((rule.rank, at, symbols[at], symbols[after], rule.token)));
            }
        };
        for at in 0..count - 1 {
            push(&mut queue, symbols, at, at + 1);
        }
        while let Some(Reverse((rank, at, left, right, token))) = queue.pop() {
            // An entry is stale once either symbol has changed.
            let after = next[at];
            if symbols[at] != left || after == NONE || symbols[after] != right {
                continue;
            }
            joined((left, right), MergeRule { rank, token });
            symbols[at] = token;
            symbols[after] = GONE;
            next[at] = next[after];
            if next[at] != NONE {
                before[next[at]] = at;
                push(&mut queue, symbols, at, next[at]);
            }
            if before[at] != NONE {
                push(&mut queue, symbols, before[at], at);
            }
        }
        symbols.retain(|&symbol| symbol != GONE);
    }
}
