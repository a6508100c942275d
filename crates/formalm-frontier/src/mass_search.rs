//! The probability of an event, bounded by the masses of the token sequences that may belong to it.
//!
//! The *mass* of a sequence is its probability. A sequence whose event is decided leaves the search;
//! an evaluated one passes its mass to its children, and what the language does not allow is lost:
//!
//! ```text
//!  open mass    ── evaluate ──► open masses of children + decided end + nothing
//!    │ accepted                        │ too long for the model, or not shown by it
//!    ▼                                 ▼
//!  decided, passed to the caller      parked: undecided for good
//! ```
//!
//! The largest masses are evaluated first. The children of a node are summed once, by the scan of its
//! row, and subtracted one by one as they are taken, so a node with fifty thousand children costs what
//! is taken from it.
//!
//! Every sum has a bound of its own rounding error, and every mass the error of the log-sum-exps of
//! the rows that its tokens were read from.

use formalm_logits::{Row, RowSums, Soundness, log_sum_of, row_error};
use rustc_hash::FxHashSet;

use crate::child_cache::{Child, ChildCache, best_first};
use crate::log_sum::CompensatedSum;
use crate::node_queue::NodeQueue;
use crate::sequence_tree::{SequenceTree, TreeQuery};
use crate::token_rows::TokenScan;
use crate::{LengthLimits, TokenLanguage};

/// Children of a node that are found in one pass over its row. Few of a mass are taken: 32 take 10 µs
/// less than 120.
const FOUND_AT_ONCE: usize = 32;
/// Children that a decoding rule left are cached up to this number; more are computed again.
const MOST_CACHED: usize = 1024;
/// A mass of children that is summed once and subtracted child by child has the error of two
/// logarithms, in either direction.
const ERROR_FACTOR: f64 = 2.1;
/// Maximum number of token steps in the check that a context leads to a member at all.
const STEPS_LOOKED_AT: usize = 5000;

/// The options of a search for masses.
#[derive(Clone, Debug)]
pub struct MassOptions {
    /// Where sequences end.
    pub lengths: LengthLimits,
    /// For each context, the number of its tokens whose log-probabilities its own one sums.
    pub given_lengths: Vec<u32>,
    /// `true` for an event that may happen after any number of tokens: sequences of the maximum
    /// length stay undecided, and contexts that surely lead to no member are left out.
    pub is_unbounded: bool,
    /// Upper bound on the error of the log-sum-exps that the contexts' log-probabilities contain.
    pub row_error: f64,
    /// Maximum memory of cached children, in bytes.
    pub cache_bytes: usize,
}

/// A sequence that belongs to the event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecidedMass {
    /// Its node, or the one that it ends after.
    pub node: u32,
    /// Its probability.
    pub mass: f64,
    /// Upper bound on the relative error of that.
    pub relative_error: f64,
}

/// Nodes to evaluate together, and masses that were decided without the model.
#[derive(Clone, Debug, Default)]
pub struct MassBatch {
    /// Nodes that were not evaluated before.
    pub nodes: Vec<u32>,
    /// Nodes whose next children have to be computed again.
    pub again: Vec<u32>,
    /// Nodes whose event is decided.
    pub decided: Vec<DecidedMass>,
}

/// The children of an evaluated node, before they are queued.
struct EvaluatedNode {
    node: u32,
    /// The best ones after the skipped ones.
    children: Vec<Child>,
    skipped: usize,
    /// `true` if there are no others.
    is_all: bool,
    /// The mass of all children, and an upper bound on its error against their masses one by one.
    mass: f64,
    error: f64,
    /// The log-probability of the sequence with an end.
    end: f64,
    /// Upper bound on the error of the row's log-sum-exp.
    row_error: f64,
}

/// A search for masses: its tree, its queue, and the sums of what is undecided.
#[derive(Debug)]
pub struct MassSearch {
    tree: SequenceTree,
    queue: NodeQueue,
    children: ChildCache,
    scan: TokenScan,
    /// Nodes whose next children were not computed again yet.
    again: Vec<u32>,
    options: MassOptions,
    cut_by_context: bool,
    open: f64,
    open_error: f64,
    parked: CompensatedSum,
    parked_error: f64,
}

impl MassSearch {
    /// Creates a search from the log-probability and the state of each context.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn new<L: TokenLanguage>(
        roots: &[(f64, u32)],
        scan: TokenScan,
        options: MassOptions,
        language: &mut L,
    ) -> Result<MassSearch, L::Error> {
        let mut search = MassSearch {
            tree: SequenceTree::default(),
            queue: NodeQueue::default(),
            children: ChildCache::new(options.cache_bytes),
            scan,
            again: Vec::new(),
            options,
            cut_by_context: false,
            open: 0.0,
            open_error: 0.0,
            parked: CompensatedSum::default(),
            parked_error: 0.0,
        };
        for &(logprob, state) in roots {
            let root = search.tree.add_root(logprob, state);
            // Otherwise every output of the model would stay undecided.
            if search.options.is_unbounded && search.leads_nowhere(state, language)? {
                continue;
            }
            search.gain(logprob.exp(), 0.0);
            search.queue.push(&search.tree, root);
        }
        Ok(search)
    }

    /// Returns the queue.
    pub fn queue(&self) -> &NodeQueue {
        &self.queue
    }

    /// Returns `true` if no undecided sequence can be evaluated.
    pub fn is_exhausted(&self) -> bool {
        self.queue.is_empty() && self.again.is_empty()
    }

    /// Returns an upper bound on the mass of all undecided sequences.
    pub fn open_mass(&self) -> f64 {
        self.open.max(0.0) + self.open_error
    }

    /// Returns an upper bound on the mass of the sequences that stay undecided. When the search is
    /// exhausted, that is all, and more accurate than a difference of large numbers.
    pub fn parked_mass(&self) -> f64 {
        self.parked.value() + self.parked_error
    }

    /// Returns an upper bound on the error of any row's log-sum-exp so far.
    pub fn row_error(&self) -> f64 {
        self.options.row_error
    }

    /// Takes the open nodes with the largest masses, at most `room`, and decides those that need no
    /// evaluation. After an error the search is as before.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn collect<L: TokenLanguage>(
        &mut self,
        room: usize,
        language: &mut L,
    ) -> Result<MassBatch, L::Error> {
        let mut batch =
            MassBatch { again: std::mem::take(&mut self.again), ..MassBatch::default() };
        while batch.nodes.len() + batch.again.len() < room {
            let Some(node) = self.queue.pop(&self.tree) else { break };
            let state = match self.tree.state(node, language) {
                Ok(state) => state,
                Err(error) => {
                    self.queue.push(&self.tree, node);
                    self.put_back(&batch);
                    return Err(error);
                }
            };
            if let Some(parent) = self.tree.parent(node)
                && !self.children.queue_next(parent, &mut self.tree, &mut self.queue)
                && !batch.again.contains(&parent)
            {
                batch.again.push(parent);
                if batch.nodes.len() + batch.again.len() >= room {
                    self.queue.push(&self.tree, node);
                    break;
                }
            }
            if !self.options.lengths.complete && language.is_accepting(state) {
                let (logprob, depth) = (self.tree.logprob(node), self.tree.depth(node));
                self.lose(logprob);
                batch.decided.push(self.decided(node, logprob, depth));
            } else if self.may_extend(node) {
                batch.nodes.push(node);
            } else {
                self.close(node);
            }
        }
        Ok(batch)
    }

    /// Undoes [`MassSearch::collect`] for nodes that were not evaluated.
    pub fn put_back(&mut self, batch: &MassBatch) {
        for one in &batch.decided {
            self.gain(one.mass, 0.0);
            self.queue.push(&self.tree, one.node);
        }
        for &node in &batch.nodes {
            self.queue.push(&self.tree, node);
        }
        self.again.extend_from_slice(&batch.again);
    }

    /// Passes the masses of nodes to their children, given the model's rows; the last `again` ones
    /// were evaluated before. Returns the sums of each row, and the ends that belong to the event. If
    /// `is_sound` rejects the sums, nothing is changed.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`]; nothing is changed then.
    pub fn expand_rows<L: TokenLanguage>(
        &mut self,
        rows: &[(u32, Row<'_>)],
        again: usize,
        is_sound: impl Fn(&[RowSums]) -> bool,
        language: &mut L,
    ) -> Result<(Vec<RowSums>, Vec<DecidedMass>), L::Error> {
        let first = rows.len().saturating_sub(again);
        let (mut sums, mut evaluated) = (Vec::new(), Vec::new());
        for (place, &(node, row)) in rows.iter().enumerate() {
            let skipped = if place < first { 0 } else { self.children.count(node) };
            let (of_row, one) = self.read_row(node, row, skipped, language)?;
            sums.push(of_row);
            evaluated.push(one);
        }
        if !is_sound(&sums) {
            return Ok((sums, Vec::new()));
        }
        Ok((sums, self.apply(evaluated, first)))
    }

    /// As [`MassSearch::expand_rows`], given the tokens that a decoding rule left after each node,
    /// ascending, and their log-probabilities.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`]; nothing is changed then.
    pub fn expand_kept<L: TokenLanguage>(
        &mut self,
        kept: &[(u32, &[u32], &[f64])],
        again: usize,
        language: &mut L,
    ) -> Result<Vec<DecidedMass>, L::Error> {
        let first = kept.len().saturating_sub(again);
        let mut evaluated = Vec::with_capacity(kept.len());
        for (place, &(node, ids, logprobs)) in kept.iter().enumerate() {
            let skipped = if place < first { 0 } else { self.children.count(node) };
            evaluated.push(self.read_kept(node, ids, logprobs, skipped, language)?);
        }
        Ok(self.apply(evaluated, first))
    }

    /// Keeps a share of the mass of an evaluated node as undecided for good: that of the children
    /// that the model did not show.
    pub fn park(&mut self, node: u32, share: f64) {
        let logprob = self.tree.logprob(node);
        let mass = logprob.exp() * share;
        self.gain(mass, 0.0);
        self.park_mass(node, logprob, mass);
    }

    fn read_row<L: TokenLanguage>(
        &mut self,
        node: u32,
        row: Row<'_>,
        skipped: usize,
        language: &mut L,
    ) -> Result<(RowSums, EvaluatedNode), L::Error> {
        let state = self.tree.state(node, language)?;
        let accepting = self.scan.look(language, state)?;
        let sums = self.scan.sums(row);
        let mut found = EvaluatedNode::new(node, skipped);
        if sums.soundness != Soundness::Sound {
            return Ok((sums, found));
        }
        let base = self.tree.logprob(node) - sums.log_sum_exp;
        found.row_error = row_error(row.element_type(), row.width(), sums.log_sum_exp);
        found.mass = (base + sums.log_allowed).exp();
        found.error = found.row_error * found.mass * ERROR_FACTOR;
        if accepting && !self.scan.end_token_ids().is_empty() {
            found.end = base + log_sum_of(row, self.scan.end_token_ids());
        }
        if self.options.lengths.may_grow(self.tree.depth(node)) {
            // As many as before, so that a node with many children is evaluated again rarely.
            let wanted = skipped + FOUND_AT_ONCE.max(skipped);
            let mut best = self.scan.best_of_scan(row, wanted + 1);
            found.is_all = best.len() <= wanted;
            best.truncate(wanted);
            best.drain(..skipped.min(best.len()));
            found.children = best.into_iter().map(|(id, value)| (id, base + value)).collect();
        }
        Ok((sums, found))
    }

    fn read_kept<L: TokenLanguage>(
        &mut self,
        node: u32,
        ids: &[u32],
        logprobs: &[f64],
        skipped: usize,
        language: &mut L,
    ) -> Result<EvaluatedNode, L::Error> {
        let state = self.tree.state(node, language)?;
        let accepting = self.scan.look(language, state)?;
        let base = self.tree.logprob(node);
        let mut found = EvaluatedNode::new(node, skipped);
        if accepting {
            let kept: Vec<Child> = ids.iter().copied().zip(logprobs.iter().copied()).collect();
            found.end = base + self.scan.end_of_kept(&kept);
        }
        let mut sum = CompensatedSum::default();
        for (&id, &logprob) in ids.iter().zip(logprobs) {
            if logprob > f64::NEG_INFINITY && self.scan.allows(id) {
                found.children.push((id, base + logprob));
                sum.add((base + logprob).exp());
            }
        }
        found.mass = sum.value();
        if !self.options.lengths.may_grow(self.tree.depth(node)) {
            found.children.clear();
        }
        let most = skipped + MOST_CACHED.max(skipped);
        if found.children.len() > most {
            found.children.select_nth_unstable_by(most - 1, best_first);
            found.children.truncate(most);
            found.is_all = false;
        }
        if skipped > 0 {
            found.children.sort_unstable_by(best_first);
            found.children.drain(..skipped.min(found.children.len()));
        }
        Ok(found)
    }

    /// Subtracts the masses of nodes, adds those of their children and queues the best child of each.
    /// Nodes from place `first` on only list their next children.
    fn apply(&mut self, evaluated: Vec<EvaluatedNode>, first: usize) -> Vec<DecidedMass> {
        let mut decided = Vec::new();
        for (place, one) in evaluated.into_iter().enumerate() {
            let (node, depth) = (one.node, self.tree.depth(one.node));
            self.options.row_error = self.options.row_error.max(one.row_error);
            if place < first {
                self.lose(self.tree.logprob(node));
                if self.options.lengths.complete && one.end > f64::NEG_INFINITY {
                    decided.push(self.decided(node, one.end, depth + 1));
                }
                if !self.options.lengths.may_grow(depth) {
                    continue;
                }
                self.gain(one.mass, one.error);
            }
            if place >= first || !one.children.is_empty() {
                self.children.list(node, one.children, one.skipped, one.is_all);
                self.children.queue_next(node, &mut self.tree, &mut self.queue);
            }
        }
        decided
    }

    fn may_extend(&mut self, node: u32) -> bool {
        let (depth, context) = (self.tree.depth(node), self.tree.root(node));
        let may = self.options.lengths.may_extend(depth, context);
        self.cut_by_context |= may.is_none();
        may == Some(true)
    }

    /// Closes a node that is too long for a member, or undecided for good.
    fn close(&mut self, node: u32) {
        let (logprob, depth) = (self.tree.logprob(node), self.tree.depth(node));
        self.lose(logprob);
        let counted = depth + u32::from(!self.options.lengths.complete);
        let is_short = self.options.lengths.max_tokens.is_none_or(|most| counted <= most);
        if is_short || self.options.is_unbounded {
            let mass = logprob.exp();
            self.gain(mass, 0.0);
            self.park_mass(node, logprob, mass);
        }
    }

    fn park_mass(&mut self, node: u32, logprob: f64, mass: f64) {
        self.parked.add(mass);
        self.parked_error += mass * self.relative_error(node, logprob, self.tree.depth(node));
    }

    fn decided(&self, node: u32, logprob: f64, depth: u32) -> DecidedMass {
        let relative_error = self.relative_error(node, logprob, depth);
        DecidedMass { node, mass: logprob.exp(), relative_error }
    }

    /// Returns the relative error of the exponential of `logprob`, which sums `depth` rounded terms
    /// after those of the node's context. Each subtracts the log-sum-exp of a row.
    fn relative_error(&self, node: u32, logprob: f64, depth: u32) -> f64 {
        let given = self.options.given_lengths[self.tree.root(node) as usize];
        let terms = f64::from(depth + given);
        let rounding = f64::EPSILON * (terms + 2.0) * (logprob.abs() + 16.0);
        rounding + (terms * self.options.row_error).exp_m1()
    }

    fn gain(&mut self, mass: f64, error: f64) {
        self.open += mass;
        self.open_error += 8.0 * f64::EPSILON * (mass + self.open.abs()) + error;
    }

    fn lose(&mut self, logprob: f64) {
        let mass = logprob.exp();
        self.open -= mass;
        self.open_error += 8.0 * f64::EPSILON * (mass + self.open.abs());
    }

    /// Returns `true` if a short search shows that no tokens lead from a state to a member.
    fn leads_nowhere<L: TokenLanguage>(
        &mut self,
        start: u32,
        language: &mut L,
    ) -> Result<bool, L::Error> {
        if language.is_accepting(start) {
            return Ok(false);
        }
        let mut seen = FxHashSet::from_iter([start]);
        let (mut waiting, mut steps) = (vec![start], 0);
        while let Some(state) = waiting.pop() {
            let (ids, _) = self.scan.allowed_ids(language, state)?;
            steps += ids.len();
            if steps > STEPS_LOOKED_AT {
                return Ok(false);
            }
            for id in ids {
                let after = language.step(state, id)?;
                if language.is_accepting(after) {
                    return Ok(false);
                }
                if seen.insert(after) {
                    waiting.push(after);
                }
            }
        }
        Ok(true)
    }
}

impl TreeQuery for MassSearch {
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

impl EvaluatedNode {
    fn new(node: u32, skipped: usize) -> EvaluatedNode {
        EvaluatedNode {
            node,
            children: Vec::new(),
            skipped,
            is_all: true,
            mass: 0.0,
            error: 0.0,
            end: f64::NEG_INFINITY,
            row_error: 0.0,
        }
    }
}
