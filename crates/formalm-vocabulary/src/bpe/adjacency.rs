//! Which tokens may stand next to each other in what a merging tokenizer makes of a piece of text.
//!
//! A sequence of tokens is what merging makes of its text iff every two neighbours are (if the
//! merging of the whole ever joined across a border, the first time it did would have happened in
//! the merging of those two alone). So the relation of neighbours is all there is to know.
//!
//! A token is always made by the same merges, its last one joins its *left* and *right* part. The
//! *right spine* of a token is the token, its right part, the right part of that, and so on: these
//! are the symbols that stand at its end while it is made. Two tokens may not be neighbours iff a
//! rule joins one of the right spine of the first to one of the left spine of the second at a
//! time when both stand there. Times are ranks: a rule's, or that of its parts if it is lower (a
//! rule cannot apply before its parts exist). In one order of the tokens (depth first, below the
//! left part, later ones first) those that a rule forbids are one interval.
//!
//! A token made by a rule of no higher rank than one of its parts' is *early*; so are those made
//! from early ones. Their times do not tell the order of merges, so their pairs are merged to see.

use std::sync::Arc;

use formalm_automata::Lock;
use rustc_hash::FxHashMap;

use super::merge_rules::{Rule, Rules};
use super::token_orders::{Csr, Interval, Side, depth_first};

/// No token.
pub(crate) const NONE: u32 = u32::MAX;

/// Lists of tokens by a token and whether they come after it.
pub(super) type Patches = FxHashMap<(bool, u32), Arc<[u32]>>;

/// The relation of tokens that may be neighbours.
#[derive(Debug)]
pub(crate) struct Relation {
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
    /// When a token is there: one more than the highest rank used to make it.
    pub(super) time: Vec<u32>,
    pub(super) reachable: Vec<bool>,
    pub(super) early: Vec<bool>,
    pub(super) early_tokens: Vec<u32>,
    pub(super) rules: Rules,
    pub(super) after: Side,
    pub(super) before: Side,
    /// Per token with or beside an early one the tokens that may not follow or precede it.
    pub(super) patches: Lock<Patches>,
}

/// How each token is made.
pub(crate) struct Derivation {
    /// The parts of its last merge; none for a symbol.
    pub(crate) parts: Option<(u32, u32)>,
    /// The rank of its last merge.
    pub(crate) rank: u32,
}

impl Relation {
    /// The relation of `len` tokens, given how those that merging can make are made.
    pub(crate) fn new(made: &[(u32, Derivation)], len: usize) -> Relation {
        let mut relation = Relation {
            left: vec![NONE; len],
            right: vec![NONE; len],
            time: vec![0; len],
            reachable: vec![false; len],
            early: vec![false; len],
            early_tokens: Vec::new(),
            rules: Rules::default(),
            after: Side::default(),
            before: Side::default(),
            patches: Lock::default(),
        };
        for (token, derivation) in made {
            relation.reachable[*token as usize] = true;
            if let Some((left, right)) = derivation.parts {
                relation.left[*token as usize] = left;
                relation.right[*token as usize] = right;
            }
        }
        relation.set_times(made);
        let rules = made.iter().filter_map(|(token, derivation)| {
            let (left, right) = derivation.parts?;
            Some((left, right, Rule { rank: derivation.rank, token: *token }))
        });
        relation.rules = Rules::new(rules.collect());
        relation.after = relation.side(made, true);
        relation.before = relation.side(made, false);
        relation
    }

    /// Times, parts before wholes.
    fn set_times(&mut self, made: &[(u32, Derivation)]) {
        let mut known: Vec<bool> = self.left.iter().map(|&left| left == NONE).collect();
        let rank: FxHashMap<u32, u32> = made.iter().map(|(t, d)| (*t, d.rank)).collect();
        let mut stack = Vec::new();
        for (token, _) in made {
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
                // Of equal ranks a rule of lower rank may come in between, at the border.
                self.early[at] = own <= parts_time || self.early[parts[0]] || self.early[parts[1]];
                if self.early[at] {
                    self.early_tokens.push(top);
                }
                known[at] = true;
            }
        }
    }

    /// The intervals of one side: of those that follow, or of those that precede.
    fn side(&self, made: &[(u32, Derivation)], after: bool) -> Side {
        let (parent, other) =
            if after { (&self.left, &self.right) } else { (&self.right, &self.left) };
        let len = parent.len();
        // Later children first, so that those from some time on are together.
        let mut latest: Vec<u32> = made.iter().map(|(token, _)| *token).collect();
        latest.sort_unstable_by_key(|&token| (std::cmp::Reverse(self.time[token as usize]), token));
        let children = Csr::new(&latest, len, |token| parent[token as usize]);
        let (order, position, end) = depth_first(&latest, &children, parent);
        // A rule forbids, beside one of its parts, what is made from the other no earlier.
        let by_token = Csr::new(&latest, len, |token| parent[token as usize]);
        let mut intervals = Vec::with_capacity(by_token.items.len());
        for token in 0..len as u32 {
            // From the earliest rule on.
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
                intervals.push(Interval { time, start: position[near as usize], end });
            }
        }
        Side { order, offsets: by_token.offsets, intervals }
    }

    /// One more than the highest token.
    pub(crate) fn len(&self) -> usize {
        self.reachable.len()
    }

    /// Whether merging makes this token from its own bytes.
    #[inline]
    pub(crate) fn is_reachable(&self, token: u32) -> bool {
        self.reachable.get(token as usize).copied().unwrap_or_default()
    }

    /// Number of tokens whose pairs are merged to see.
    pub(crate) fn early_count(&self) -> usize {
        self.early_tokens.len()
    }

    /// The rules that can apply.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The rule that joins `first` and `second` across their border, if they may not be
    /// neighbours: the tokens it joins. Both are reachable.
    pub(crate) fn crossing(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        if self.early[first as usize] || self.early[second as usize] {
            return self.crossing_merged(first, second);
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

    /// The same by merging the symbols of both.
    fn crossing_merged(&self, first: u32, second: u32) -> Option<(u32, u32)> {
        let mut symbols = Vec::new();
        self.symbols(first, &mut symbols);
        let border = symbols.len();
        self.symbols(second, &mut symbols);
        // Lengths in symbols tell where in the text a merge is.
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

    /// Appends the symbols that a token is made of.
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

    /// Hands out, some several times, the tokens that may not follow `token`, or if not `after`
    /// those that may not precede it.
    pub(crate) fn forbidden(&self, token: u32, after: bool, mut each: impl FnMut(&[u32])) {
        if !self.is_reachable(token) {
            return;
        }
        if self.early_tokens.is_empty() {
            return self.forbidden_by_time(token, after, &mut each);
        }
        // Early tokens within the intervals may be allowed: the lists leave them out.
        let patch = self.patch(token, after);
        if !self.early[token as usize] {
            self.forbidden_by_time(token, after, &mut |tokens| {
                for &token in tokens.iter().filter(|&&token| !self.early[token as usize]) {
                    each(&[token]);
                }
            });
        }
        each(&patch);
    }

    /// Early tokens, and what may not stand beside a token as far as they are concerned; none
    /// where intervals tell all.
    pub(crate) fn patched(&self, token: u32, after: bool) -> Option<(&[u32], Arc<[u32]>)> {
        let has_early = !self.early_tokens.is_empty();
        has_early.then(|| (&self.early_tokens[..], self.patch(token, after)))
    }

    /// Whether intervals tell nothing of a token.
    pub(crate) fn is_early(&self, token: u32) -> bool {
        self.early[token as usize]
    }

    /// The tokens in the order of one side.
    pub(crate) fn order(&self, after: bool) -> &[u32] {
        if after { &self.after.order } else { &self.before.order }
    }

    /// Tokens in the intervals of a token.
    fn forbidden_by_time(&self, token: u32, after: bool, each: &mut impl FnMut(&[u32])) {
        let order = self.order(after);
        self.intervals(token, after, |start, end| each(&order[start as usize..end as usize]));
    }

    /// The intervals of the order of one side that may not stand beside a token, early tokens
    /// aside; some overlap.
    pub(crate) fn intervals(&self, token: u32, after: bool, mut each: impl FnMut(u32, u32)) {
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

    /// What may not stand beside a token, as far as early tokens are concerned.
    fn patch(&self, token: u32, after: bool) -> Arc<[u32]> {
        let patches = || self.patches.lock();
        if let Some(patch) = patches().get(&(after, token)) {
            return Arc::clone(patch);
        }
        let crosses = |other: u32| {
            let (first, second) = if after { (token, other) } else { (other, token) };
            self.crossing(first, second).is_some()
        };
        let mut list: Vec<u32> = if self.early[token as usize] {
            let mut list = Vec::new();
            let add = &mut |tokens: &[u32]| list.extend_from_slice(tokens);
            self.intervals_whole(token, after, add);
            list.sort_unstable();
            list.dedup();
            list
        } else {
            self.early_tokens.clone()
        };
        list.retain(|&other| crosses(other));
        let patch: Arc<[u32]> = list.into();
        patches().insert((after, token), Arc::clone(&patch));
        patch
    }

    /// Every token whose spine has something that a rule joins to something of the token's.
    fn intervals_whole(&self, token: u32, after: bool, each: &mut impl FnMut(&[u32])) {
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

    /// Where the descendants of the token at a place end.
    fn descendants_end(&self, side: &Side, start: u32, after: bool) -> u32 {
        let parent = if after { &self.left } else { &self.right };
        let top = side.order[start as usize];
        let below = |&token: &u32| {
            let mut token = token;
            while token != top && token != NONE {
                token = parent[token as usize];
            }
            token == top
        };
        // Descendants are together, so this stops at the first that is none.
        start + side.order[start as usize..].iter().take_while(|token| below(token)).count() as u32
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let sides = self.after.memory_bytes() + self.before.memory_bytes();
        14 * self.left.len() + self.rules.memory_bytes() + sides
    }
}
