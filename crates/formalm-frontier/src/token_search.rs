//! Best-first search over token sequences (Dijkstra's algorithm), optionally with a beam.
//!
//! A step never adds probability, so the best entry of the queue bounds everything still to come
//! (Dijkstra's rule). A finished sequence at the head of the queue is the next hit. Nodes further
//! back may be evaluated early to fill a batch: that changes the work and never the order.
//!
//! ```text
//!            collect                 the caller                 expand
//!  queue ──► best nodes, and what ──► asks the model for ──► best child of each, and its end
//!    ▲       follows each             rows                          │
//!    └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! The queue holds one child of each evaluated node: the next one follows when it is taken. Where
//! neither the list of children nor the cache has it, the node is evaluated again, in the same batch.
//!
//! A beam keeps for each length the sequences that leave the queue first. Those are the best of that
//! length: extensions of kept sequences come after them, and nothing better is still to come. This
//! also holds within a batch, as long as none of it is longer than the sequences taken before.

use rustc_hash::FxHashSet;

use crate::child_cache::{Child, ChildCache, FOUND_AT_ONCE};
use crate::node_queue::NodeQueue;
use crate::sequence_tree::{END, NodeArrays, SequenceTree, TreeQuery};
use crate::token_rows::{Continuations, TokenScan};
use crate::{LengthLimits, TokenLanguage};

/// The options of a search over token sequences.
#[derive(Clone, Debug)]
pub struct TokenOptions {
    /// Where sequences end.
    pub lengths: LengthLimits,
    /// Maximum number of sequences of each length.
    pub beams: Option<u32>,
    /// Maximum memory of cached children, in bytes.
    pub cache_bytes: usize,
}

/// Nodes to evaluate together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Nodes that were not evaluated before.
    pub nodes: Vec<u32>,
    /// Nodes whose next children have to be computed again.
    pub again: Vec<u32>,
}

/// A search over token sequences: its tree, its queue, and the steps on them.
#[derive(Debug)]
pub struct TokenSearch {
    tree: SequenceTree,
    queue: NodeQueue,
    children: ChildCache,
    scan: TokenScan,
    /// The queued nodes that are hits.
    hits: FxHashSet<u32>,
    /// Number of sequences of each length that left the queue; counted only with a beam.
    kept: Vec<u32>,
    /// Nodes whose next children were not computed again yet; the queue is not in order before.
    again: Vec<u32>,
    options: TokenOptions,
    cut_by_context: bool,
    cut_by_beam: bool,
}

impl TokenSearch {
    /// Creates a search from the log-probability and the state of each context.
    pub fn new(roots: &[(f64, u32)], scan: TokenScan, options: TokenOptions) -> TokenSearch {
        let mut search = TokenSearch {
            tree: SequenceTree::default(),
            queue: NodeQueue::default(),
            children: ChildCache::new(options.cache_bytes),
            scan,
            hits: FxHashSet::default(),
            kept: Vec::new(),
            again: Vec::new(),
            options,
            cut_by_context: false,
            cut_by_beam: false,
        };
        for &(logprob, state) in roots {
            search.queue_root(logprob, state);
        }
        search
    }

    /// Adds a context that was found while the search runs, and returns its root. `room` is the number
    /// of tokens that the model can read after it. The order of hits is that of a search that had all
    /// contexts from the start, if the context's log-probability is at most the `floor` of all steps
    /// before.
    pub fn add_context(&mut self, logprob: f64, state: u32, room: Option<u32>) -> u32 {
        self.options.lengths.context_rooms.push(room);
        self.queue_root(logprob, state)
    }

    fn queue_root(&mut self, logprob: f64, state: u32) -> u32 {
        let root = self.tree.add_root(logprob, state);
        self.queue.push(&self.tree, root);
        root
    }

    /// Returns the queue.
    pub fn queue(&self) -> &NodeQueue {
        &self.queue
    }

    /// Returns `true` if a beam dropped sequences.
    pub fn cut_by_beam(&self) -> bool {
        self.cut_by_beam
    }

    /// Returns the log-probability of the best queued node, and whether it is the next hit. Returns
    /// `None` if the search is over.
    pub fn top(&self) -> Option<(f64, bool)> {
        let is_next = |node| self.again.is_empty() && self.hits.contains(&node);
        match self.queue.top() {
            Some(node) => Some((self.tree.logprob(node), is_next(node))),
            None if self.again.is_empty() => None,
            None => Some((f64::NEG_INFINITY, false)),
        }
    }

    /// Returns an upper bound on the log-probability of what is still to come from these contexts:
    /// infinity while children have to be computed again, `None` if the search is over.
    pub fn best_bound(&self) -> Option<f64> {
        if !self.again.is_empty() {
            return Some(f64::INFINITY);
        }
        self.queue.top().map(|node| self.tree.logprob(node))
    }

    /// Removes and returns the best queued node, if it is a hit.
    pub fn pop_hit(&mut self) -> Option<u32> {
        if !self.again.is_empty() {
            return None;
        }
        let node = self.queue.top().filter(|node| self.hits.contains(node))?;
        self.queue.pop(&self.tree);
        self.hits.remove(&node);
        Some(node)
    }

    /// Takes the best nodes to evaluate, at most `room`, and queues those that are also hits as
    /// hits. After an error the search is as before.
    ///
    /// `floor` bounds the contexts that may be added later, if there are any: only nodes above it are
    /// taken.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn collect<L: TokenLanguage>(
        &mut self,
        room: usize,
        floor: Option<f64>,
        language: &mut L,
    ) -> Result<Batch, L::Error> {
        let mut hits = Vec::new();
        let mut batch = Batch { nodes: Vec::new(), again: std::mem::take(&mut self.again) };
        let done = self.collect_into((room, floor), language, &mut batch, &mut hits);
        for &node in &hits {
            self.queue.push(&self.tree, node);
        }
        if let Err(error) = done {
            self.put_back(&batch);
            return Err(error);
        }
        Ok(batch)
    }

    fn collect_into<L: TokenLanguage>(
        &mut self,
        (room, floor): (usize, Option<f64>),
        language: &mut L,
        batch: &mut Batch,
        hits: &mut Vec<u32>,
    ) -> Result<(), L::Error> {
        let complete = self.options.lengths.complete;
        let mut longest = None;
        while batch.nodes.len() + batch.again.len() < room {
            let Some(top) = self.queue.top() else { break };
            if longest.is_some_and(|longest| self.tree.depth(top) > longest) {
                break;
            }
            if floor.is_some_and(|floor| self.tree.logprob(top) <= floor) {
                break;
            }
            let Some(node) = self.queue.pop(&self.tree) else { break };
            if self.hits.contains(&node) {
                hits.push(node);
                continue;
            }
            let depth = self.tree.depth(node);
            let parent = self.tree.parent(node);
            if let Some(beams) = self.options.beams {
                self.kept.resize(self.kept.len().max(depth as usize + 1), 0);
                if self.kept[depth as usize] >= beams {
                    self.cut_by_beam = true;
                    continue; // and so are its siblings, which are worse
                }
            }
            let state = match self.tree.state(node, language) {
                Ok(state) => state,
                Err(error) => {
                    self.queue.push(&self.tree, node);
                    return Err(error);
                }
            };
            let finished = match !complete && language.is_accepting(state) {
                true => language.is_finished(state),
                false => Ok(false),
            };
            let finished = match finished {
                Ok(finished) => finished,
                Err(error) => {
                    self.queue.push(&self.tree, node);
                    return Err(error);
                }
            };
            if let Some(parent) = parent
                && !self.children.queue_next(parent, &mut self.tree, &mut self.queue)
                && !batch.again.contains(&parent)
            {
                batch.again.push(parent);
                if batch.nodes.len() + batch.again.len() >= room {
                    self.queue.push(&self.tree, node);
                    break;
                }
            }
            if let Some(kept) = self.options.beams.and(self.kept.get_mut(depth as usize)) {
                *kept += 1;
            }
            if !complete && language.is_accepting(state) {
                self.hits.insert(node);
                hits.push(node);
            }
            if !finished && self.may_extend(node) {
                batch.nodes.push(node);
                longest = self.options.beams.map(|_| depth);
            }
            if self.options.beams.is_some() && !batch.again.is_empty() {
                break; // a sibling that is not listed yet may be better than what follows
            }
        }
        Ok(())
    }

    /// Undoes [`TokenSearch::collect`] for nodes that were not evaluated.
    pub fn put_back(&mut self, batch: &Batch) {
        for &node in &batch.nodes {
            let depth = self.tree.depth(node) as usize;
            if let Some(kept) = self.options.beams.and(self.kept.get_mut(depth)) {
                *kept -= 1;
            }
            // A hit is queued already.
            if !self.hits.remove(&node) {
                self.queue.push(&self.tree, node);
            }
        }
        self.again.extend_from_slice(&batch.again);
    }

    /// Queues the continuations of an evaluated node: its best child, and its end.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn expand<L: TokenLanguage>(
        &mut self,
        node: u32,
        answer: Continuations<'_>,
        language: &mut L,
    ) -> Result<(), L::Error> {
        let state = self.tree.state(node, language)?;
        let logprob = self.tree.logprob(node);
        let (scan, count) = (&mut self.scan, (0, FOUND_AT_ONCE));
        let found = scan.best_children(answer, language, state, logprob, count)?;
        if self.options.lengths.complete && found.end > f64::NEG_INFINITY {
            let ending = self.tree.add(node, END, found.end);
            self.hits.insert(ending);
            self.queue.push(&self.tree, ending);
        }
        if self.options.lengths.may_grow(self.tree.depth(node)) && !found.children.is_empty() {
            self.children.list(node, found.children, 0, found.is_all);
            self.children.queue_next(node, &mut self.tree, &mut self.queue);
        }
        Ok(())
    }

    /// Queues the next child of a node that was evaluated again.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn expand_again<L: TokenLanguage>(
        &mut self,
        node: u32,
        answer: Continuations<'_>,
        language: &mut L,
    ) -> Result<(), L::Error> {
        let state = self.tree.state(node, language)?;
        let (logprob, skipped) = (self.tree.logprob(node), self.children.count(node));
        // Each time as many as before, so that a node with many children is evaluated again rarely.
        let range = (skipped, FOUND_AT_ONCE.max(skipped));
        let found = self.scan.best_children(answer, language, state, logprob, range)?;
        self.children.list(node, found.children, skipped, found.is_all);
        self.children.queue_next(node, &mut self.tree, &mut self.queue);
        Ok(())
    }

    fn may_extend(&mut self, node: u32) -> bool {
        let (depth, root) = (self.tree.depth(node), self.tree.root(node));
        let may = self.options.lengths.may_extend(depth, root);
        self.cut_by_context |= may.is_none();
        may == Some(true)
    }

    /// Returns the queue, the hits and the lists of children for a checkpoint.
    pub fn queue_arrays(&self) -> QueueArrays {
        let lists = self.children.lists();
        let mut hits: Vec<u32> = self.hits.iter().copied().collect();
        hits.sort_unstable();
        QueueArrays {
            queue: self.queue.nodes().collect(),
            hits,
            kept: self.kept.clone(),
            again: self.again.clone(),
            list_nodes: lists.iter().map(|list| list.0).collect(),
            list_counts: lists.iter().map(|list| list.1).collect(),
            list_more: lists.iter().map(|list| list.3).collect(),
            list_lengths: lists.iter().map(|list| list.2.len() as u32).collect(),
            listed_ids: lists.iter().flat_map(|list| list.2).map(|child| child.0).collect(),
            listed_logprobs: lists.iter().flat_map(|list| list.2).map(|child| child.1).collect(),
        }
    }

    /// Restores a new search to the state that [`SequenceTree::arrays`] and
    /// [`TokenSearch::queue_arrays`] described. Returns `false` if the arrays do not describe a
    /// search; this one must not be used then.
    #[must_use]
    pub fn restore(
        &mut self,
        nodes: &NodeArrays,
        arrays: &QueueArrays,
        vocabulary_size: usize,
        (cut_by_context, cut_by_beam): (bool, bool),
    ) -> bool {
        if !self.tree.restore(nodes, vocabulary_size) || !arrays.fit(self.tree.len()) {
            return false;
        }
        let below = |id: &u32| (*id as usize) < vocabulary_size;
        if !arrays.listed_ids.iter().all(below) {
            return false;
        }
        self.queue = NodeQueue::default();
        for &node in &arrays.queue {
            self.queue.push(&self.tree, node);
        }
        self.hits = arrays.hits.iter().copied().collect();
        (self.kept, self.again) = (arrays.kept.clone(), arrays.again.clone());
        let mut at = 0;
        for (list, &node) in arrays.list_nodes.iter().enumerate() {
            let end = at + arrays.list_lengths[list] as usize;
            let ids = arrays.listed_ids[at..end].iter().copied();
            let listed: Vec<Child> =
                ids.zip(arrays.listed_logprobs[at..end].iter().copied()).collect();
            at = end;
            self.children.restore(node, arrays.list_counts[list], listed, arrays.list_more[list]);
        }
        (self.cut_by_context, self.cut_by_beam) = (cut_by_context, cut_by_beam);
        true
    }
}

impl TreeQuery for TokenSearch {
    fn tree(&self) -> &SequenceTree {
        &self.tree
    }

    fn tree_and_scan(&mut self) -> (&mut SequenceTree, &mut TokenScan) {
        (&mut self.tree, &mut self.scan)
    }

    fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.children.memory_bytes() + 16 * self.queue.len()
    }

    fn cut_by_context(&self) -> bool {
        self.cut_by_context
    }
}

/// The arrays of a queue that a checkpoint stores.
#[derive(Clone, Debug, Default)]
pub struct QueueArrays {
    /// The queued nodes, in no particular order.
    pub queue: Vec<u32>,
    /// Those that are hits.
    pub hits: Vec<u32>,
    /// Number of sequences of each length that left the queue; counted only with a beam.
    pub kept: Vec<u32>,
    /// Nodes whose next children were not computed again yet.
    pub again: Vec<u32>,
    /// The nodes with lists of children.
    pub list_nodes: Vec<u32>,
    /// Number of children of each that were ever listed.
    pub list_counts: Vec<u32>,
    /// Whether others were never listed.
    pub list_more: Vec<bool>,
    /// Number of children of each that are listed and were not taken.
    pub list_lengths: Vec<u32>,
    /// Their tokens, the best last.
    pub listed_ids: Vec<u32>,
    /// The log-probabilities of the sequences with them.
    pub listed_logprobs: Vec<f64>,
}

impl QueueArrays {
    /// Returns `true` if the arrays fit each other and a tree of `size` nodes.
    fn fit(&self, size: usize) -> bool {
        let exists = |node: &u32| (*node as usize) < size;
        let queued: FxHashSet<u32> = self.queue.iter().copied().collect();
        let nodes = [&self.queue, &self.again, &self.list_nodes];
        let lists = self.list_nodes.len();
        let lengths = [self.list_counts.len(), self.list_more.len(), self.list_lengths.len()];
        let listed: usize = self.list_lengths.iter().map(|&length| length as usize).sum();
        nodes.iter().all(|nodes| nodes.iter().all(exists))
            && self.hits.iter().all(|hit| queued.contains(hit))
            && queued.len() == self.queue.len()
            && lengths.iter().all(|&length| length == lists)
            && self.listed_ids.len() == listed
            && self.listed_logprobs.len() == listed
            && self.listed_logprobs.iter().all(|&logprob| logprob <= 1e-6)
    }
}
