//! Random walks through a tree of token sequences, from its roots to members.
//!
//! Walkers share the evaluated nodes. A *step* is what one draw at a node needs: the probability of an
//! end, that of all allowed tokens, and the masses of blocks of the model's row:
//!
//! ```text
//!  uniform number ──► │ end │      allowed tokens, by id       │ outside the language │
//!                     0                                                              1
//! ```
//!
//! Each evaluated node has a *live share*: the part of its probability that may still lead to members.
//! It is that of its end and its allowed tokens, and shrinks as walks find out about the nodes below.
//! Within a *round*, all walkers use the shares as they were when it began; a tree that changes under a
//! walk would bias it.

use std::collections::VecDeque;

use formalm_logits::{Allowed, DrawTable, RowSums, Soundness, log_sum_of};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::sequence_tree::{SequenceTree, TreeQuery};
use crate::shared_row::SharedRow;
use crate::token_rows::TokenScan;
use crate::{LengthLimits, TokenLanguage};

/// Tokens, ascending, and their probabilities.
pub type TokenProbabilities = (Vec<u32>, Vec<f64>);

/// No node.
const NONE: u32 = u32::MAX;

/// The options of walks.
#[derive(Clone, Debug)]
pub struct WalkOptions {
    /// Where sequences end.
    pub lengths: LengthLimits,
    /// Maximum memory of steps and their rows, in bytes.
    pub step_bytes: usize,
}

/// How a draw chooses among the continuations of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkRule {
    /// Among what the language allows.
    Allowed,
    /// By the model's own probabilities; a draw outside the language is rejected. Where the node was
    /// evaluated in an earlier round, among what may still lead to members.
    Learned,
}

/// The result of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkMove {
    /// The walk goes to this node.
    To(u32),
    /// The walk ends at its node.
    End,
    /// The walk leaves the language.
    Rejected,
}

/// The continuations of a node.
#[derive(Debug)]
enum StepTokens {
    /// The allowed tokens of a row; none of them where the sequence must not grow.
    Row { row: SharedRow, table: DrawTable, is_longest: bool },
    /// Tokens, ascending, and their probabilities.
    Listed(Box<[u32]>, Box<[f64]>),
}

#[derive(Debug)]
struct WalkStep {
    tokens: StepTokens,
    /// The total probability of the tokens.
    children: f64,
    /// The probability of an end.
    end: f64,
    /// `true` if it was used since the cache last looked.
    is_recent: bool,
}

/// What walks know of a node.
#[derive(Clone, Copy, Debug)]
struct WalkNode {
    first_child: u32,
    next_sibling: u32,
    /// The round in which the live share became known.
    round: u32,
    /// `true` if the event has happened whatever follows, so that a walk ends here.
    is_decided: bool,
    /// The log-probability of the node's token after its parent; NaN if it was not looked up.
    logprob: f64,
    /// The probability of ending here; NaN if the node was not evaluated.
    end: f64,
    /// The live share; NaN if the node was not evaluated.
    alive: f64,
}

const UNVISITED: WalkNode = WalkNode {
    first_child: NONE,
    next_sibling: NONE,
    round: 0,
    is_decided: false,
    logprob: f64::NAN,
    end: f64::NAN,
    alive: f64::NAN,
};

/// The tree of several walks, and the steps that can be taken from its nodes.
#[derive(Debug)]
pub struct WalkTree {
    /// The log-probabilities of its nodes, except the roots', are 0.
    tree: SequenceTree,
    nodes: Vec<WalkNode>,
    /// From a node and a token to the child.
    children: FxHashMap<(u32, u32), u32>,
    steps: FxHashMap<u32, WalkStep>,
    /// The nodes with steps, by age.
    order: VecDeque<u32>,
    step_bytes: usize,
    scan: TokenScan,
    options: WalkOptions,
    round: u32,
    /// Nodes whose live share became known in this round.
    fresh: Vec<u32>,
    cut_by_context: bool,
}

impl WalkTree {
    /// Creates a tree from the log-probability and the state of each context.
    pub fn new(roots: &[(f64, u32)], scan: TokenScan, options: WalkOptions) -> WalkTree {
        let mut tree = SequenceTree::default();
        for &(logprob, state) in roots {
            tree.add_root(logprob, state);
        }
        WalkTree {
            nodes: vec![UNVISITED; tree.len()],
            tree,
            children: FxHashMap::default(),
            steps: FxHashMap::default(),
            order: VecDeque::new(),
            step_bytes: 0,
            scan,
            options,
            round: 0,
            fresh: Vec::new(),
            cut_by_context: false,
        }
    }

    /// Returns the node after a token.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn child<L: TokenLanguage>(
        &mut self,
        node: u32,
        token_id: u32,
        language: &mut L,
    ) -> Result<u32, L::Error> {
        if let Some(&child) = self.children.get(&(node, token_id)) {
            return Ok(child);
        }
        let logprob = self.token_logprob(node, token_id, language)?.unwrap_or(f64::NAN);
        Ok(self.add_child(node, token_id, logprob))
    }

    fn add_child(&mut self, node: u32, token_id: u32, logprob: f64) -> u32 {
        let child = self.tree.add(node, token_id as i32, 0.0);
        let next_sibling = std::mem::replace(&mut self.nodes[node as usize].first_child, child);
        self.nodes.push(WalkNode { next_sibling, logprob, ..UNVISITED });
        self.children.insert((node, token_id), child);
        child
    }

    /// Returns the log-probability of a token after a node, minus infinity if it is not allowed;
    /// `None` if the node's step is not cached.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn token_logprob<L: TokenLanguage>(
        &mut self,
        node: u32,
        token_id: u32,
        language: &mut L,
    ) -> Result<Option<f64>, L::Error> {
        let Some(step) = self.steps.get(&node) else { return Ok(None) };
        Ok(Some(match &step.tokens {
            StepTokens::Row { is_longest: true, .. } => f64::NEG_INFINITY,
            StepTokens::Row { row, table, .. } => {
                let state = self.tree.state(node, language)?;
                self.scan.look(language, state)?;
                match self.scan.allows(token_id) {
                    true => (row.row().get(token_id as usize) - table.sums().log_sum_exp).min(0.0),
                    false => f64::NEG_INFINITY,
                }
            }
            StepTokens::Listed(ids, probabilities) => match ids.binary_search(&token_id) {
                Ok(at) => probabilities[at].ln(),
                Err(_) => f64::NEG_INFINITY,
            },
        }))
    }

    /// Returns `true` if the event has happened at a node whatever follows.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn is_decided<L: TokenLanguage>(
        &mut self,
        node: u32,
        language: &mut L,
    ) -> Result<bool, L::Error> {
        if self.options.lengths.complete {
            return Ok(false);
        }
        let state = self.tree.state(node, language)?;
        Ok(language.is_accepting(state))
    }

    /// Returns `true` if a walk can go on from a node or end there, and `false` if the model cannot
    /// read that far.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn can_be_evaluated<L: TokenLanguage>(
        &mut self,
        node: u32,
        language: &mut L,
    ) -> Result<bool, L::Error> {
        let (depth, context) = (self.tree.depth(node), self.tree.root(node));
        let room = self.options.lengths.context_rooms[context as usize];
        if room.is_none_or(|room| depth <= room) || self.is_decided(node, language)? {
            return Ok(true);
        }
        self.cut_by_context = true;
        Ok(false)
    }

    /// Returns the nodes that were not evaluated, each once, and then those among them that need no
    /// evaluation because they are decided.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn unevaluated<L: TokenLanguage>(
        &mut self,
        nodes: &[u32],
        language: &mut L,
    ) -> Result<(Vec<u32>, Vec<u32>), L::Error> {
        let (mut wanted, mut decided) = (Vec::new(), Vec::new());
        let mut seen = FxHashSet::default();
        for &node in nodes {
            if !self.nodes[node as usize].alive.is_nan() || !seen.insert(node) {
                continue;
            }
            let is_decided = self.is_decided(node, language)?;
            if is_decided { decided.push(node) } else { wanted.push(node) }
        }
        Ok((wanted, decided))
    }

    /// Records the model's rows at nodes. Returns the sums of each. If `is_sound` rejects them,
    /// nothing is recorded.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`]; nothing is recorded then.
    pub fn record_rows<L: TokenLanguage>(
        &mut self,
        rows: Vec<(u32, SharedRow)>,
        is_sound: impl Fn(&[RowSums]) -> bool,
        language: &mut L,
    ) -> Result<Vec<RowSums>, L::Error> {
        let (mut all, mut recorded) = (Vec::new(), Vec::new());
        for (node, row) in rows {
            let state = self.tree.state(node, language)?;
            let accepting = self.scan.look(language, state)?;
            let is_longest = !self.options.lengths.may_grow(self.tree.depth(node));
            let table = self.scan.draw_table(row.row(), is_longest);
            let sums = table.sums();
            all.push(sums);
            if sums.soundness != Soundness::Sound {
                continue;
            }
            let probability = |log: f64| (log - sums.log_sum_exp).min(0.0).exp();
            let ends = self.scan.end_token_ids();
            let end = match accepting && !ends.is_empty() {
                true => probability(log_sum_of(row.row(), ends)),
                false => 0.0,
            };
            let children = probability(sums.log_allowed);
            let tokens = StepTokens::Row { row, table, is_longest };
            recorded.push((node, WalkStep { tokens, children, end, is_recent: true }));
        }
        if is_sound(&all) {
            for (node, step) in recorded {
                self.keep(node, step);
            }
        }
        Ok(all)
    }

    /// Records the tokens that may follow a node, ascending, with their probabilities and that of an
    /// end. A sequence of the maximum length keeps only the end.
    pub fn record_listed(&mut self, node: u32, ids: &[u32], probabilities: &[f64], end: f64) {
        let grows = self.options.lengths.may_grow(self.tree.depth(node));
        let (ids, probabilities) = if grows { (ids, probabilities) } else { (&[][..], &[][..]) };
        let tokens = StepTokens::Listed(ids.into(), probabilities.into());
        let children = probabilities.iter().sum();
        self.keep(node, WalkStep { tokens, children, end, is_recent: true });
    }

    /// Returns the probability of ending at a node; `None` if it was not evaluated.
    pub fn end(&self, node: u32) -> Option<f64> {
        Some(self.nodes[node as usize].end).filter(|end| !end.is_nan())
    }

    /// Multiplies the probability of ending at a node, whose step was just recorded, by a factor, and
    /// makes its live share known.
    pub fn settle(&mut self, node: u32, factor: f64) {
        let Some(step) = self.steps.get_mut(&node) else { return };
        step.end *= factor;
        let (end, alive) = (step.end, step.children + step.end);
        self.nodes[node as usize].end = end;
        self.set_alive(node, alive);
    }

    /// Records that a walk ends at a decided node, or leads nowhere, with `kept` as its live share.
    pub fn decide(&mut self, node: u32, kept: f64) {
        let known = &mut self.nodes[node as usize];
        (known.is_decided, known.end) = (true, kept);
        self.set_alive(node, kept);
    }

    /// Records that a node that cannot be evaluated leads nowhere.
    pub fn forbid(&mut self, node: u32) {
        if self.nodes[node as usize].alive.is_nan() {
            self.nodes[node as usize].round = self.round;
        }
        self.nodes[node as usize].alive = 0.0;
        self.fresh.push(node);
    }

    fn set_alive(&mut self, node: u32, alive: f64) {
        let known = &mut self.nodes[node as usize];
        if known.alive.is_nan() {
            (known.alive, known.round) = (alive, self.round);
            self.fresh.push(node);
        }
    }

    /// Returns the live share of a node; `None` if it was not evaluated.
    pub fn alive(&self, node: u32) -> Option<f64> {
        Some(self.nodes[node as usize].alive).filter(|alive| !alive.is_nan())
    }

    /// Returns `true` if a draw at an evaluated node needs its row, which was evicted.
    pub fn is_missing(&self, node: u32) -> bool {
        !self.nodes[node as usize].is_decided && !self.steps.contains_key(&node)
    }

    /// Draws a continuation of an evaluated node at a uniform number. Also returns the total
    /// probability that the draw was among; with [`WalkRule::Allowed`] that is its weight. Returns
    /// `None` if [`WalkTree::is_missing`].
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn draw<L: TokenLanguage>(
        &mut self,
        node: u32,
        uniform: f64,
        rule: WalkRule,
        language: &mut L,
    ) -> Result<Option<(WalkMove, f64)>, L::Error> {
        let known = self.nodes[node as usize];
        if known.is_decided {
            let is_in =
                if rule == WalkRule::Allowed { known.end > 0.0 } else { uniform < known.end };
            let is_old = rule == WalkRule::Learned && known.round < self.round;
            let found =
                if is_in || is_old && known.end > 0.0 { WalkMove::End } else { WalkMove::Rejected };
            return Ok(Some((found, known.end)));
        }
        let is_learned = rule == WalkRule::Learned && known.round < self.round;
        let (tokens, factors) =
            if is_learned { self.live_shares(node, self.round) } else { (Vec::new(), Vec::new()) };
        let Some(step) = self.steps.get_mut(&node) else { return Ok(None) };
        step.is_recent = true;
        let step = &*step;
        let allowed = match step.tokens {
            StepTokens::Row { is_longest: false, .. } => {
                let state = self.tree.state(node, language)?;
                self.scan.look(language, state)?;
                self.scan.allowed()
            }
            _ => Allowed::all(0),
        };
        let children = step.reweighted(allowed, &tokens, &factors);
        let total = children + step.end;
        let target = match rule == WalkRule::Allowed || is_learned {
            true => uniform * total,
            false => uniform,
        };
        // New in this round: the model's own distribution, with rejection.
        if total <= 0.0 || target >= total && rule == WalkRule::Learned && !is_learned {
            return Ok(Some((WalkMove::Rejected, total)));
        }
        let Some(token) = step.draw(allowed, target, children, &tokens, &factors) else {
            return Ok(Some((WalkMove::End, total)));
        };
        let child = match self.children.get(&(node, token)) {
            Some(&child) => child,
            None => {
                let logprob = step.logprob(token);
                self.add_child(node, token, logprob)
            }
        };
        Ok(Some((WalkMove::To(child), total)))
    }

    /// Returns the allowed tokens of an evaluated node, ascending, with their probabilities. Returns
    /// `None` if [`WalkTree::is_missing`].
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn listed<L: TokenLanguage>(
        &mut self,
        node: u32,
        language: &mut L,
    ) -> Result<Option<TokenProbabilities>, L::Error> {
        if self.nodes[node as usize].is_decided {
            return Ok(Some((Vec::new(), Vec::new())));
        }
        let Some(step) = self.steps.get_mut(&node) else { return Ok(None) };
        step.is_recent = true;
        let (row, log_sum) = match &step.tokens {
            StepTokens::Listed(ids, probabilities) => {
                return Ok(Some((ids.to_vec(), probabilities.to_vec())));
            }
            StepTokens::Row { is_longest: true, .. } => {
                return Ok(Some((Vec::new(), Vec::new())));
            }
            StepTokens::Row { row, table, .. } => (row.row(), table.sums().log_sum_exp),
        };
        let state = self.tree.state(node, language)?;
        self.scan.look(language, state)?;
        let (mut ids, mut probabilities) = (Vec::new(), Vec::new());
        self.scan.each_allowed(|id| {
            let logprob = row.get(id as usize) - log_sum;
            if logprob > f64::NEG_INFINITY {
                ids.push(id);
                probabilities.push(logprob.min(0.0).exp());
            }
        });
        Ok(Some((ids, probabilities)))
    }

    /// Returns the log-probability of each token from the root to a node; NaN where it was not looked
    /// up.
    pub fn step_logprobs(&self, node: u32) -> Vec<f64> {
        let mut found = Vec::with_capacity(self.tree.depth(node) as usize);
        let mut at = node;
        while let Some(above) = self.tree.parent(at) {
            found.push(self.nodes[at as usize].logprob);
            at = above;
        }
        found.reverse();
        found
    }

    /// Begins a round of walks.
    pub fn begin_round(&mut self) {
        self.round += 1;
        self.fresh.clear();
    }

    /// Returns the nodes evaluated in this round and all above them, the deepest first: those whose
    /// live shares [`WalkTree::learn`] has to compute.
    pub fn to_learn(&self) -> Vec<u32> {
        let mut changed: FxHashSet<u32> = self.fresh.iter().copied().collect();
        for &node in &self.fresh {
            let mut at = node;
            while let Some(above) = self.tree.parent(at)
                && changed.insert(above)
            {
                at = above;
            }
        }
        let mut nodes: Vec<u32> = changed.into_iter().collect();
        nodes.sort_unstable_by_key(|&node| (std::cmp::Reverse(self.tree.depth(node)), node));
        nodes
    }

    /// Computes the live shares of nodes from those of their children. Returns the number of nodes
    /// done before one whose step was evicted.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::fill`].
    pub fn learn<L: TokenLanguage>(
        &mut self,
        nodes: &[u32],
        language: &mut L,
    ) -> Result<usize, L::Error> {
        for (done, &node) in nodes.iter().enumerate() {
            let known = self.nodes[node as usize];
            if known.alive == 0.0 || known.is_decided {
                continue;
            }
            let (tokens, factors) = self.live_shares(node, u32::MAX);
            let Some(step) = self.steps.get_mut(&node) else { return Ok(done) };
            step.is_recent = true;
            let step = &*step;
            let allowed = match step.tokens {
                StepTokens::Row { is_longest: false, .. } if !tokens.is_empty() => {
                    let state = self.tree.state(node, language)?;
                    self.scan.look(language, state)?;
                    self.scan.allowed()
                }
                _ => Allowed::all(0),
            };
            self.nodes[node as usize].alive =
                step.reweighted(allowed, &tokens, &factors) + step.end;
        }
        Ok(nodes.len())
    }

    /// Returns the children whose live share was known before a round and is not one, ascending, and
    /// the shares.
    fn live_shares(&self, node: u32, round: u32) -> (Vec<u32>, Vec<f64>) {
        let mut shares = Vec::new();
        let mut at = self.nodes[node as usize].first_child;
        while at != NONE {
            let child = self.nodes[at as usize];
            if !child.alive.is_nan() && child.round < round && child.alive != 1.0 {
                shares.push((self.tree.token(at) as u32, child.alive));
            }
            at = child.next_sibling;
        }
        shares.sort_unstable_by_key(|one| one.0);
        shares.into_iter().unzip()
    }

    /// Caches a step, and evicts those that were not used for longest. The newest is kept whatever
    /// its size.
    fn keep(&mut self, node: u32, step: WalkStep) {
        self.nodes[node as usize].end = step.end;
        self.step_bytes += step.memory_bytes();
        match self.steps.insert(node, step) {
            Some(before) => self.step_bytes -= before.memory_bytes(),
            None => self.order.push_back(node),
        }
        while self.step_bytes > self.options.step_bytes && self.order.len() > 1 {
            let Some(oldest) = self.order.pop_front() else { break };
            let Some(step) = self.steps.get_mut(&oldest) else { continue };
            if step.is_recent || oldest == node {
                step.is_recent = false;
                self.order.push_back(oldest);
                continue;
            }
            self.step_bytes -= step.memory_bytes();
            self.steps.remove(&oldest);
        }
    }
}

impl TreeQuery for WalkTree {
    fn tree(&self) -> &SequenceTree {
        &self.tree
    }

    fn tree_and_scan(&mut self) -> (&mut SequenceTree, &mut TokenScan) {
        (&mut self.tree, &mut self.scan)
    }

    fn memory_bytes(&self) -> usize {
        let fresh = 4 * self.fresh.len();
        self.tree.memory_bytes()
            + size_of::<WalkNode>() * self.nodes.len()
            + 20 * self.children.len()
            + fresh
    }

    fn cut_by_context(&self) -> bool {
        self.cut_by_context
    }
}

impl WalkStep {
    fn memory_bytes(&self) -> usize {
        size_of::<WalkStep>()
            + match &self.tokens {
                StepTokens::Row { row, table, .. } => row.owner().bytes + table.memory_bytes(),
                StepTokens::Listed(ids, _) => 12 * ids.len(),
            }
    }

    /// Returns the log-probability of an allowed token.
    fn logprob(&self, token: u32) -> f64 {
        match &self.tokens {
            StepTokens::Row { row, table, .. } => {
                (row.row().get(token as usize) - table.sums().log_sum_exp).min(0.0)
            }
            StepTokens::Listed(ids, probabilities) => {
                ids.binary_search(&token).map_or(f64::NEG_INFINITY, |at| probabilities[at].ln())
            }
        }
    }

    /// Returns the probability of all tokens after those of some, ascending, are multiplied.
    fn reweighted(&self, allowed: Allowed<'_>, tokens: &[u32], factors: &[f64]) -> f64 {
        if tokens.is_empty() {
            return self.children;
        }
        match &self.tokens {
            StepTokens::Row { row, table, .. } => {
                let found = table.reweighted_log_sum(row.row(), allowed, tokens, factors);
                (found - table.sums().log_sum_exp).min(0.0).exp()
            }
            StepTokens::Listed(ids, probabilities) => {
                weights(ids, probabilities, tokens, factors).sum()
            }
        }
    }

    /// Returns the token at a point of the cumulative probabilities, `None` for an end. `children` is
    /// [`WalkStep::reweighted`] of the tokens.
    fn draw(
        &self,
        allowed: Allowed<'_>,
        target: f64,
        children: f64,
        tokens: &[u32],
        factors: &[f64],
    ) -> Option<u32> {
        if target < self.end || children <= 0.0 {
            return None;
        }
        match &self.tokens {
            StepTokens::Row { row, table, .. } => {
                let uniform = (target - self.end) / children;
                table.draw(row.row(), allowed, uniform, tokens, factors)
            }
            StepTokens::Listed(ids, probabilities) => {
                let (mut reached, mut last) = (0.0, None);
                for (&id, weight) in ids.iter().zip(weights(ids, probabilities, tokens, factors)) {
                    if weight > 0.0 {
                        last = Some(id);
                        reached += weight;
                        if reached > target - self.end {
                            break;
                        }
                    }
                }
                last
            }
        }
    }
}

/// Returns probabilities after those of some tokens are multiplied.
fn weights<'a>(
    ids: &'a [u32],
    probabilities: &'a [f64],
    tokens: &'a [u32],
    factors: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    let factor = |id: &u32| tokens.binary_search(id).map_or(1.0, |at| factors[at]);
    ids.iter().zip(probabilities).map(move |(id, probability)| probability * factor(id))
}
