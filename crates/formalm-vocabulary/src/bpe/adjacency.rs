//! The adjacency relation of a BPE tokenizer: which tokens may stand next to each other inside a
//! pre-token.
//!
//! **Theorem.** A sequence of tokens is canonical (BPE makes exactly these tokens from its bytes)
//! iff every two adjacent ones are. If merging the whole string ever joined across a token border,
//! the first such merge would also happen when the two tokens are merged alone. The relation of
//! adjacent tokens therefore decides canonicality.
//!
//! ```text
//!    first = …·R2·R1·R0            second = L0·L1·L2·…
//!            right spine                    left spine          R0 = first, R1 = right part of R0, …
//!    forbidden iff some rule (Ri, Lj) applies while both Ri and Lj exist
//! ```
//!
//! BPE always makes a token by the same merges; its last merge joins its *left* and *right* part.
//! The *right spine* of a token is the token, its right part, the right part of that, and so on:
//! the symbols at its end while it is made. Two tokens may not be adjacent iff a rule joins an
//! element of the right spine of the first to an element of the left spine of the second while both
//! exist. Times are ranks: the rank of a rule, or that of its parts if it is higher (a rule cannot
//! apply before its parts exist). Order the tokens depth first, below the left part, later ones
//! first: then the tokens that one rule forbids are one interval.
//!
//! A token is *early* if the rank of its rule is no higher than that of a part, or if a part is
//! early. The times of early tokens do not give the order of merges, so pairs with an early token
//! are decided by merging them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use formalm_core::{ForkSafeMutex, MemoryBytes, SetOnce};
use rustc_hash::FxHashMap;

use super::forbidden_intervals::{AdjacencySide, Csr, ForbiddenInterval, depth_first};
use super::merge_rules::{MergeRule, MergeRules};

/// The absent token.
pub(crate) const NONE: u32 = u32::MAX;

/// Lists of forbidden tokens by a token and the side on which they stand.
pub(super) type EarlyTokenPatches = FxHashMap<(bool, u32), Arc<[u32]>>;

/// Early tokens by an element of the spine of their neighbor.
#[derive(Debug, Default)]
pub(super) struct EarlyPartners {
    /// The early tokens with one element of a spine.
    early: Vec<Box<[u32]>>,
    /// By an element of the neighbor's spine, the lists of those with an element that some rule
    /// joins to it.
    lists: FxHashMap<u32, Vec<u32>>,
}

/// The adjacency relation of the tokens that merging can make.
#[derive(Debug)]
pub(crate) struct Adjacency {
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
    /// The time at which a token exists: one more than the highest rank used to make it.
    pub(super) time: Vec<u32>,
    pub(super) reachable: Vec<bool>,
    pub(super) early: Vec<bool>,
    pub(super) early_tokens: Vec<u32>,
    pub(super) rules: MergeRules,
    pub(super) after: AdjacencySide,
    pub(super) before: AdjacencySide,
    /// Cache: per token that is early or stands next to an early one, the tokens that may not
    /// follow or precede it.
    pub(super) patches: ForkSafeMutex<EarlyTokenPatches>,
    /// By side, per element of a spine, the early tokens with an element that some rule joins to it.
    pub(super) early_partners: [SetOnce<EarlyPartners>; 2],
    /// By side, the positions of the early tokens in its order, ascending.
    pub(super) early_positions: [SetOnce<Box<[u32]>>; 2],
}

/// The last merge that makes a token.
pub(crate) struct TokenDerivation {
    /// The parts of the merge; `None` for a base symbol.
    pub(crate) parts: Option<(u32, u32)>,
    /// The rank of the merge.
    pub(crate) rank: u32,
}

impl Adjacency {
    /// Builds the relation of `len` tokens from the derivations of those that merging can make.
    pub(crate) fn new(derivations: &[(u32, TokenDerivation)], len: usize) -> Adjacency {
        let mut adjacency = Adjacency {
            left: vec![NONE; len],
            right: vec![NONE; len],
            time: vec![0; len],
            reachable: vec![false; len],
            early: vec![false; len],
            early_tokens: Vec::new(),
            rules: MergeRules::default(),
            after: AdjacencySide::default(),
            before: AdjacencySide::default(),
            patches: ForkSafeMutex::default(),
            early_partners: Default::default(),
            early_positions: Default::default(),
        };
        for (token, derivation) in derivations {
            adjacency.reachable[*token as usize] = true;
            if let Some((left, right)) = derivation.parts {
                adjacency.left[*token as usize] = left;
                adjacency.right[*token as usize] = right;
            }
        }
        adjacency.set_times(derivations);
        let rules = derivations.iter().filter_map(|(token, derivation)| {
            let (left, right) = derivation.parts?;
            Some((left, right, MergeRule { rank: derivation.rank, token: *token }))
        });
        adjacency.rules = MergeRules::new(rules.collect());
        adjacency.after = adjacency.build_side(derivations, true);
        adjacency.before = adjacency.build_side(derivations, false);
        adjacency
    }

    /// Computes the times, parts before wholes.
    fn set_times(&mut self, derivations: &[(u32, TokenDerivation)]) {
        let mut known: Vec<bool> = self.left.iter().map(|&left| left == NONE).collect();
        let rank: FxHashMap<u32, u32> = derivations.iter().map(|(t, d)| (*t, d.rank)).collect();
        let mut stack = Vec::new();
        for (token, _) in derivations {
            stack.push(*token);
            while let Some(&top) = stack.last() {
                let at = top as usize;
                if known[at] {
                    stack.pop();
                    continue;
                }
                let parts = [self.left[at] as usize, self.right[at] as usize];
                if let Some(&part) = parts.iter().find(|&&part| !known[part]) {
                    stack.push(part as u32);
                    continue;
                }
                let own = rank.get(&top).map_or(0, |rank| rank + 1);
                let parts_time = self.time[parts[0]].max(self.time[parts[1]]);
                self.time[at] = own.max(parts_time);
                // With equal ranks, a rule of lower rank may apply in between at the border.
                self.early[at] = own <= parts_time || self.early[parts[0]] || self.early[parts[1]];
                if self.early[at] {
                    self.early_tokens.push(top);
                }
                known[at] = true;
            }
        }
    }

    /// Computes the intervals of the tokens that follow (`after`) or precede.
    fn build_side(&self, derivations: &[(u32, TokenDerivation)], after: bool) -> AdjacencySide {
        let (parent, other) =
            if after { (&self.left, &self.right) } else { (&self.right, &self.left) };
        let len = parent.len();
        // Later children first, so that those from some time on are contiguous.
        let mut latest: Vec<u32> = derivations.iter().map(|(token, _)| *token).collect();
        latest.sort_unstable_by_key(|&token| (std::cmp::Reverse(self.time[token as usize]), token));
        let children = Csr::new(&latest, len, |token| parent[token as usize]);
        let (order, position, end) = depth_first(&latest, &children, parent);
        // A rule forbids, next to one of its parts, every token made from the other part that is
        // not earlier than the rule.
        let by_token = Csr::new(&latest, len, |token| parent[token as usize]);
        let mut intervals = Vec::with_capacity(by_token.items.len());
        for token in 0..len as u32 {
            // In order of time, the earliest rule first.
            for &rule in by_token.of(token).iter().rev() {
                let time = self.time[rule as usize];
                let near = other[rule as usize];
                let siblings = children.of(near);
                let count = siblings.partition_point(|&child| {
                    let later = self.time[child as usize];
                    if after { later >= time } else { later > time }
                });
                let end = match count.checked_sub(1) {
                    Some(last) => end[siblings[last] as usize],
                    None => position[near as usize] + 1,
                };
                intervals.push(ForbiddenInterval { time, start: position[near as usize], end });
            }
        }
        AdjacencySide { order, offsets: by_token.offsets, intervals }
    }

    /// Returns one more than the highest token.
    pub(crate) fn len(&self) -> usize {
        self.reachable.len()
    }

    /// Returns `true` if merging makes this token from its own bytes.
    #[inline]
    pub(crate) fn is_reachable(&self, token: u32) -> bool {
        self.reachable.get(token as usize).copied().unwrap_or_default()
    }

    /// Returns the number of early tokens, whose pairs are decided by merging.
    pub(crate) fn early_count(&self) -> usize {
        self.early_tokens.len()
    }

    /// Returns the rules that can apply.
    pub(crate) fn rules(&self) -> &MergeRules {
        &self.rules
    }

    /// Returns the pair that a rule joins across the border of `first` and `second`, or `None` if
    /// they may be adjacent. Both tokens must be reachable.
    pub(crate) fn crossing_merge(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        if self.early[first as usize] || self.early[second as usize] {
            return self.crossing_by_merging(first, second);
        }
        let (mut x, mut y) = (first, second);
        let mut limit = u32::MAX;
        loop {
            if let Some(rule) = self.rules.get(x, y)
                && self.time[rule.token as usize] < limit
            {
                return Some((x, y));
            }
            let (earlier, later) = (self.time[x as usize], self.time[y as usize]);
            if earlier > later {
                limit = earlier;
                x = self.right[x as usize];
            } else if later > 0 {
                limit = later + 1;
                y = self.left[y as usize];
            } else {
                return None;
            }
        }
    }

    /// Decides a pair with an early token by merging the base symbols of both.
    fn crossing_by_merging(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        let mut symbols = Vec::new();
        self.symbols(first, &mut symbols);
        let border = symbols.len();
        self.symbols(second, &mut symbols);
        // Lengths in symbols locate a merge in the string.
        let mut parts: Vec<(u32, usize)> = symbols.iter().map(|&symbol| (symbol, 1)).collect();
        loop {
            let ranked = parts
                .windows(2)
                .enumerate()
                .filter_map(|(at, pair)| Some((at, self.rules.get(pair[0].0, pair[1].0)?)));
            let (at, rule) = ranked.min_by_key(|(at, rule)| (rule.rank, *at))?;
            let until: usize = parts[..=at].iter().map(|part| part.1).sum();
            if until == border {
                return Some((parts[at].0, parts[at + 1].0));
            }
            parts[at] = (rule.token, parts[at].1 + parts[at + 1].1);
            parts.remove(at + 1);
        }
    }

    /// Appends the base symbols of a token.
    fn symbols(&self, token: u32, out: &mut Vec<u32>) {
        let mut stack = vec![token];
        while let Some(token) = stack.pop() {
            if self.left[token as usize] == NONE {
                out.push(token);
            } else {
                stack.extend([self.right[token as usize], self.left[token as usize]]);
            }
        }
    }

    /// Passes to `each`, some several times, the tokens that may not follow `token` (`after`) or
    /// may not precede it.
    pub(crate) fn for_each_forbidden(&self, token: u32, after: bool, mut each: impl FnMut(&[u32])) {
        if !self.is_reachable(token) {
            return;
        }
        if self.early_tokens.is_empty() {
            return self.forbidden_by_intervals(token, after, &mut each);
        }
        // Early tokens inside the intervals may be allowed, so the intervals leave them out; the
        // patch lists the forbidden ones.
        let patch = self.patch(token, after);
        if !self.early[token as usize] {
            let (order, early) = (self.order(after), self.early_positions(after));
            self.for_each_interval(token, after, |mut start, end| {
                let first = early.partition_point(|&at| at < start);
                for &at in early[first..].iter().take_while(|&&at| at < end) {
                    if start < at {
                        each(&order[start as usize..at as usize]);
                    }
                    start = at + 1;
                }
                if start < end {
                    each(&order[start as usize..end as usize]);
                }
            });
        }
        each(&patch);
    }

    /// Returns the positions of the early tokens in the order of one side.
    fn early_positions(&self, after: bool) -> &[u32] {
        self.early_positions[usize::from(after)].get_or_init(|| {
            let order = self.order(after).iter().enumerate();
            let early = order.filter(|(_, token)| self.early[**token as usize]);
            early.map(|(at, _)| at as u32).collect()
        })
    }

    /// Returns the early tokens and the patch of a token. Returns `None` if intervals alone decide.
    pub(crate) fn early_patch(&self, token: u32, after: bool) -> Option<(&[u32], Arc<[u32]>)> {
        let has_early = !self.early_tokens.is_empty();
        has_early.then(|| (&self.early_tokens[..], self.patch(token, after)))
    }

    /// Returns `true` if a token is early, so that intervals say nothing about it.
    pub(crate) fn is_early(&self, token: u32) -> bool {
        self.early[token as usize]
    }

    /// Returns the tokens in the order of one side.
    pub(crate) fn order(&self, after: bool) -> &[u32] {
        if after { &self.after.order } else { &self.before.order }
    }

    /// Passes the tokens in the intervals of a token to `each`.
    fn forbidden_by_intervals(&self, token: u32, after: bool, each: &mut impl FnMut(&[u32])) {
        let order = self.order(after);
        self.for_each_interval(token, after, |start, end| {
            each(&order[start as usize..end as usize])
        });
    }

    /// Passes to `each` the intervals, in the order of one side, of the tokens that may not stand
    /// next to `token`, ignoring early tokens. Some intervals overlap.
    pub(crate) fn for_each_interval(
        &self,
        token: u32,
        after: bool,
        mut each: impl FnMut(u32, u32),
    ) {
        let (side, spine) =
            if after { (&self.after, &self.right) } else { (&self.before, &self.left) };
        let (mut here, mut bound) = (token, u32::MAX);
        loop {
            for interval in side.of(here) {
                let forbids = if after { interval.time < bound } else { interval.time <= bound };
                if !forbids {
                    break;
                }
                each(interval.start, interval.end);
            }
            if spine[here as usize] == NONE {
                return;
            }
            bound = self.time[here as usize];
            here = spine[here as usize];
        }
    }

    /// Returns the cached list of tokens that may not stand next to a token, as far as early tokens
    /// are involved.
    fn patch(&self, token: u32, after: bool) -> Arc<[u32]> {
        let patches = || self.patches.lock();
        if let Some(patch) = patches().get(&(after, token)) {
            return Arc::clone(patch);
        }
        let crosses = |other: u32| {
            let (first, second) = if after { (token, other) } else { (other, token) };
            self.crossing_merge(first, second).is_some()
        };
        let mut list: Vec<u32> = if self.early[token as usize] {
            let mut list = Vec::new();
            let add = &mut |tokens: &[u32]| list.extend_from_slice(tokens);
            self.candidate_intervals(token, after, add);
            list.sort_unstable();
            list.dedup();
            list
        } else {
            self.early_candidates(token, after)
        };
        list.retain(|&other| crosses(other));
        let patch: Arc<[u32]> = list.into();
        patches().insert((after, token), Arc::clone(&patch));
        patch
    }

    /// Returns the early tokens whose spine has an element that some rule joins to an element of the
    /// spine of `token`. Others may stand next to it.
    fn early_candidates(&self, token: u32, after: bool) -> Vec<u32> {
        let partners = self.early_partners[usize::from(after)].get_or_init(|| {
            let mut elements: Vec<(u32, u32)> = Vec::new();
            for &early in &self.early_tokens {
                elements.extend(self.spine(early, !after).map(|element| (element, early)));
            }
            elements.sort_unstable();
            // The intervals of an element on the other side begin at what rules join to it.
            let side = if after { &self.before } else { &self.after };
            let mut partners = EarlyPartners::default();
            for of_element in elements.chunk_by(|one, other| one.0 == other.0) {
                let list = partners.early.len() as u32;
                partners.early.push(of_element.iter().map(|pair| pair.1).collect());
                for interval in side.of(of_element[0].0) {
                    let near = side.order[interval.start as usize];
                    partners.lists.entry(near).or_default().push(list);
                }
            }
            partners
        });
        let near = self.spine(token, after).filter_map(|one| partners.lists.get(&one));
        let early = near.flatten().flat_map(|&list| &partners.early[list as usize]);
        let mut list: Vec<u32> = early.copied().collect();
        list.sort_unstable();
        list.dedup();
        list
    }

    /// Returns the symbols at the end (`at_end`) or the beginning of a token while it is made.
    fn spine(&self, token: u32, at_end: bool) -> impl Iterator<Item = u32> {
        let inner = if at_end { &self.right } else { &self.left };
        let part = |&token: &u32| Some(inner[token as usize]).filter(|&part| part != NONE);
        std::iter::successors(Some(token), part)
    }

    /// Passes to `each` a superset: every token whose spine has an element that some rule joins to
    /// an element of the spine of `token`.
    fn candidate_intervals(&self, token: u32, after: bool, each: &mut impl FnMut(&[u32])) {
        let (side, spine) =
            if after { (&self.after, &self.right) } else { (&self.before, &self.left) };
        let mut here = token;
        loop {
            for interval in side.of(here) {
                let whole = self.descendants_end(side, interval.start, after);
                each(&side.order[interval.start as usize..whole as usize]);
            }
            if spine[here as usize] == NONE {
                return;
            }
            here = spine[here as usize];
        }
    }

    /// Returns the end of the descendants of the token at position `start`.
    fn descendants_end(&self, side: &AdjacencySide, start: u32, after: bool) -> u32 {
        let parent = if after { &self.left } else { &self.right };
        let top = side.order[start as usize];
        let below = |&token: &u32| {
            let mut token = token;
            while token != top && token != NONE {
                token = parent[token as usize];
            }
            token == top
        };
        // Descendants are contiguous, so this stops at the first token that is none.
        start + side.order[start as usize..].iter().take_while(|token| below(token)).count() as u32
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let sides = self.after.memory_bytes() + self.before.memory_bytes();
        14 * self.left.len() + self.rules.memory_bytes() + sides
    }
}
