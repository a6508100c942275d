//! The children of evaluated nodes, best first, a few at a time.
//!
//! A node that was evaluated has up to as many children as the vocabulary has tokens, of which a
//! search takes a few. The first ones are listed for good. Some more are cached under a byte budget;
//! the others are computed again from a new answer of the model.
//!
//! ```text
//!  best 8            next 112                    all others
//!  list, kept        cache, oldest evicted       a new answer
//! ```

use std::cmp::Ordering;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::node_queue::NodeQueue;
use crate::sequence_tree::SequenceTree;

/// Children that are listed at first. A search takes 2 of most nodes.
const FIRST_LISTED: usize = 8;
/// Up to this many children are listed at once; listing the rest later would cost more.
const ALL_LISTED: usize = 16;
/// Children of a node that are found in one pass over its row: at most 1.4 kB in the cache. Twice as
/// many are fewer than the blocks of a row of 128k, so that few others are looked at.
pub(crate) const FOUND_AT_ONCE: usize = 120;

/// A token and the log-probability of the sequence with it.
pub(crate) type Child = (u32, f64);

/// The order of children: best first, ties by token.
#[inline]
pub(crate) fn best_first(one: &Child, other: &Child) -> Ordering {
    other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
}

/// The listed children of a node that were not taken.
#[derive(Debug, Default)]
struct ChildList {
    /// Best last.
    listed: Vec<Child>,
    /// Number of children listed so far.
    count: u32,
    /// `true` if there are children that were never listed.
    more: bool,
}

/// The next children of a node.
pub(crate) enum NextChild {
    /// The next best child.
    Child(Child),
    /// There is none.
    None,
    /// There may be more; they have to be computed again, see [`ChildCache::count`].
    Evicted,
}

/// The children that follow the listed ones of a node, unordered.
#[derive(Debug)]
struct CachedChildren {
    ids: Box<[u32]>,
    logprobs: Box<[f64]>,
    /// `true` if these are all.
    is_rest: bool,
}

/// Lists of children, and a cache of those that follow.
#[derive(Debug)]
pub(crate) struct ChildCache {
    lists: FxHashMap<u32, ChildList>,
    cached: FxHashMap<u32, CachedChildren>,
    /// Nodes in the order of insertion into the cache; some are gone.
    order: VecDeque<u32>,
    cached_bytes: usize,
    budget_bytes: usize,
    listed: usize,
}

impl ChildCache {
    pub(crate) fn new(budget_bytes: usize) -> ChildCache {
        ChildCache {
            lists: FxHashMap::default(),
            cached: FxHashMap::default(),
            order: VecDeque::new(),
            cached_bytes: 0,
            budget_bytes,
            listed: 0,
        }
    }

    /// Returns the memory of the lists, without the cache, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        48 * self.lists.len() + size_of::<Child>() * self.listed
    }

    /// Returns the number of children of a node that were listed so far.
    pub(crate) fn count(&self, node: u32) -> usize {
        self.lists.get(&node).map_or(0, |list| list.count as usize)
    }

    /// Sets the number of listed children of a node, all of which were taken.
    pub(crate) fn restore(&mut self, node: u32, count: u32, listed: Vec<Child>, more: bool) {
        self.listed += listed.len();
        self.lists.insert(node, ChildList { listed, count, more });
    }

    /// Returns the lists of nodes with children that were not taken: node, count, children (best
    /// last), more.
    pub(crate) fn lists(&self) -> Vec<(u32, u32, &[Child], bool)> {
        let mut lists: Vec<_> = self
            .lists
            .iter()
            .map(|(&node, list)| (node, list.count, &list.listed[..], list.more))
            .collect();
        lists.sort_unstable_by_key(|list| list.0);
        lists
    }

    /// Lists children of a node. `found` are its best ones without the first `skipped`, in any
    /// order, and `is_rest` says that there are no others.
    pub(crate) fn list(&mut self, node: u32, mut found: Vec<Child>, skipped: usize, is_rest: bool) {
        let total = skipped + found.len();
        let wanted = if is_rest && total <= ALL_LISTED {
            found.len()
        } else {
            found.len().min(skipped + FIRST_LISTED)
        };
        if wanted < found.len() && wanted > 0 {
            found.select_nth_unstable_by(wanted - 1, best_first);
        }
        let rest = found.split_off(wanted);
        let mut listed = found;
        listed.sort_unstable_by(|one, other| best_first(other, one));
        listed.shrink_to_fit();
        self.listed += listed.len();
        let (count, more) = ((skipped + wanted) as u32, !is_rest || !rest.is_empty());
        if let Some(before) = self.lists.insert(node, ChildList { listed, count, more }) {
            self.listed -= before.listed.len();
        }
        if !rest.is_empty() {
            self.keep(node, &rest, is_rest);
        }
    }

    /// Queues the next child of an evaluated node, if there is one. Returns `false` if it has to be
    /// computed again.
    pub(crate) fn queue_next(
        &mut self,
        parent: u32,
        tree: &mut SequenceTree,
        queue: &mut NodeQueue,
    ) -> bool {
        match self.next(parent) {
            NextChild::Child((token, logprob)) => {
                let child = tree.add(parent, token as i32, logprob);
                queue.push(tree, child);
                true
            }
            NextChild::None => true,
            NextChild::Evicted => false,
        }
    }

    /// Takes the next child of a node.
    pub(crate) fn next(&mut self, node: u32) -> NextChild {
        let Some(list) = self.lists.get_mut(&node) else { return NextChild::None };
        if list.listed.is_empty() && list.more {
            let count = list.count as usize;
            let Some(cached) = self.cached.remove(&node) else { return NextChild::Evicted };
            self.cached_bytes -= bytes(&cached);
            let found = cached.ids.iter().copied().zip(cached.logprobs.iter().copied()).collect();
            self.list(node, found, count, cached.is_rest);
            return self.next(node);
        }
        match list.listed.pop() {
            Some(child) => {
                self.listed -= 1;
                if list.listed.is_empty() && !list.more {
                    self.lists.remove(&node);
                }
                NextChild::Child(child)
            }
            None => NextChild::None,
        }
    }

    fn keep(&mut self, node: u32, rest: &[Child], is_rest: bool) {
        let cached = CachedChildren {
            ids: rest.iter().map(|child| child.0).collect(),
            logprobs: rest.iter().map(|child| child.1).collect(),
            is_rest,
        };
        let size = bytes(&cached);
        if size > self.budget_bytes {
            return;
        }
        self.cached_bytes += size;
        if let Some(before) = self.cached.insert(node, cached) {
            self.cached_bytes -= bytes(&before);
        }
        self.order.push_back(node);
        while self.cached_bytes > self.budget_bytes {
            let Some(oldest) = self.order.pop_front() else { break };
            if let Some(gone) = self.cached.remove(&oldest) {
                self.cached_bytes -= bytes(&gone);
            }
        }
    }
}

fn bytes(cached: &CachedChildren) -> usize {
    96 + 12 * cached.ids.len()
}
