//! A tree of token sequences, stored in arrays.
//!
//! ```text
//!  root ──the──► node 1 ── cat──► node 4        parent   token   depth   log-probability   state
//!    └────a────► node 2                         4 bytes  4       4       8                 4
//! ```
//!
//! Nodes are numbered in the order of creation, so a parent precedes its children. Each context of
//! the query has a root. Contexts are numbered in the order of their roots; a root may be added after
//! other nodes.

use std::cmp::Ordering;

use crate::TokenLanguage;
use crate::token_rows::TokenScan;

/// The token of a node that represents the end of its parent.
pub const END: i32 = -1;
/// The token of a root.
const ROOT: i32 = -2;
/// The state of a node whose state was never requested.
const UNKNOWN: u32 = u32::MAX;

/// The arrays of a tree that a checkpoint stores.
#[derive(Clone, Debug, Default)]
pub struct NodeArrays {
    /// The parent of each node; -1 for roots.
    pub parent: Vec<i32>,
    /// The token of each node.
    pub token: Vec<i32>,
    /// The log-probability of each whole sequence.
    pub logprob: Vec<f64>,
}

/// Token sequences that share their beginnings.
#[derive(Clone, Debug, Default)]
pub struct SequenceTree {
    parent: Vec<i32>,
    token: Vec<i32>,
    depth: Vec<u32>,
    logprob: Vec<f64>,
    state: Vec<u32>,
    /// The root of each context, ascending.
    roots: Vec<u32>,
}

/// A search, a mass or walks over a tree of token sequences.
pub trait TreeQuery {
    /// Returns the tree.
    fn tree(&self) -> &SequenceTree;

    /// Returns the tree, and the scan of rows at its nodes.
    fn tree_and_scan(&mut self) -> (&mut SequenceTree, &mut TokenScan);

    /// Returns the memory of the tree and the queue, in bytes, without cached rows.
    fn memory_bytes(&self) -> usize;

    /// Returns `true` if sequences were omitted, or walks stopped, since the model cannot read
    /// further.
    fn cut_by_context(&self) -> bool;
}

/// Returns the tokens that may follow a node of a query, without end tokens, and whether an end may.
///
/// # Errors
///
/// As [`TokenLanguage::fill`].
pub fn allowed_at<L: TokenLanguage>(
    query: &mut (impl TreeQuery + ?Sized),
    node: u32,
    language: &mut L,
) -> Result<(Vec<u32>, bool), L::Error> {
    let (tree, scan) = query.tree_and_scan();
    let state = tree.state(node, language)?;
    scan.allowed_ids(language, state)
}

impl SequenceTree {
    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Returns `true` if there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        24 * self.len() + 4 * self.roots.len()
    }

    /// Adds the root of the next context and returns its node.
    pub fn add_root(&mut self, logprob: f64, state: u32) -> u32 {
        let node = self.push(-1, ROOT, 0, logprob, state);
        self.roots.push(node);
        node
    }

    /// Adds a child and returns its node.
    #[inline]
    pub fn add(&mut self, parent: u32, token: i32, logprob: f64) -> u32 {
        let depth = self.depth[parent as usize] + 1;
        self.push(parent as i32, token, depth, logprob, UNKNOWN)
    }

    #[inline]
    fn push(&mut self, parent: i32, token: i32, depth: u32, logprob: f64, state: u32) -> u32 {
        self.parent.push(parent);
        self.token.push(token);
        self.depth.push(depth);
        self.logprob.push(logprob);
        self.state.push(state);
        self.parent.len() as u32 - 1
    }

    /// Returns the parent of a node; `None` for a root.
    #[inline]
    pub fn parent(&self, node: u32) -> Option<u32> {
        u32::try_from(self.parent[node as usize]).ok()
    }

    /// Returns the token of a node.
    #[inline]
    pub fn token(&self, node: u32) -> i32 {
        self.token[node as usize]
    }

    /// Returns the number of tokens from the root to a node.
    #[inline]
    pub fn depth(&self, node: u32) -> u32 {
        self.depth[node as usize]
    }

    /// Returns the log-probability of the sequence of a node.
    #[inline]
    pub fn logprob(&self, node: u32) -> f64 {
        self.logprob[node as usize]
    }

    /// Returns the tokens from the root to a node, without an end.
    pub fn path(&self, node: u32) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(self.depth(node) as usize);
        let mut at = node;
        while let Some(above) = self.parent(at) {
            tokens.extend(u32::try_from(self.token(at)));
            at = above;
        }
        tokens.reverse();
        tokens
    }

    /// Returns the log-probability of each token from the root to a node.
    pub fn steps(&self, node: u32) -> Vec<f64> {
        let mut steps = Vec::with_capacity(self.depth(node) as usize);
        let mut at = node;
        while let Some(above) = self.parent(at) {
            steps.push(self.logprob(at) - self.logprob(above));
            at = above;
        }
        steps.reverse();
        steps
    }

    /// Returns the number of the context of a node.
    pub fn root(&self, mut node: u32) -> u32 {
        while let Some(above) = self.parent(node) {
            node = above;
        }
        self.roots.partition_point(|&root| root < node) as u32
    }

    /// Returns the state of the language at a node, computed along the path where it is unknown.
    ///
    /// # Errors
    ///
    /// As [`TokenLanguage::step`].
    pub fn state<L: TokenLanguage>(
        &mut self,
        node: u32,
        language: &mut L,
    ) -> Result<u32, L::Error> {
        let known = self.state[node as usize];
        if known != UNKNOWN {
            return Ok(known);
        }
        let mut unknown = vec![node];
        let mut state = loop {
            let last = unknown[unknown.len() - 1];
            let Some(above) = self.parent(last) else { break UNKNOWN };
            match self.state[above as usize] {
                UNKNOWN => unknown.push(above),
                state => break state,
            }
        };
        for node in unknown.into_iter().rev() {
            state = language.step(state, self.token(node) as u32)?;
            self.state[node as usize] = state;
        }
        Ok(state)
    }

    /// Orders nodes of equal depth by their tokens, then by their root. It walks to the roots, so
    /// only ties should reach it.
    pub fn cmp_paths(&self, one: u32, other: u32) -> Ordering {
        let (mut a, mut b) = (one, other);
        let mut order = Ordering::Equal;
        while a != b {
            match (self.parent(a), self.parent(b)) {
                (Some(above), Some(other_above)) => {
                    // The difference that is nearest to the root decides.
                    order = self.token(a).cmp(&self.token(b)).then(order);
                    (a, b) = (above, other_above);
                }
                // Roots, or nodes of different depths.
                (above, other_above) => {
                    return order.then(above.is_some().cmp(&other_above.is_some())).then(a.cmp(&b));
                }
            }
        }
        order
    }

    /// Returns the arrays for a checkpoint.
    pub fn arrays(&self) -> NodeArrays {
        let (parent, token, logprob) =
            (self.parent.clone(), self.token.clone(), self.logprob.clone());
        NodeArrays { parent, token, logprob }
    }

    /// Restores the tree that [`SequenceTree::arrays`] described; its roots are in place. Returns
    /// `false` if the arrays do not describe a tree over a vocabulary of `vocabulary_size` tokens
    /// with these roots, before all other nodes.
    #[must_use]
    pub fn restore(&mut self, arrays: &NodeArrays, vocabulary_size: usize) -> bool {
        let (roots, size) = (self.len(), arrays.parent.len());
        if arrays.token.len() != size || arrays.logprob.len() != size || size < roots {
            return false;
        }
        for node in 0..size {
            let (parent, token) = (arrays.parent[node], arrays.token[node]);
            let is_root = node < roots;
            let fits = if is_root {
                parent == -1 && token == ROOT
            } else {
                (0..node as i64).contains(&i64::from(parent))
                    && (i64::from(END)..vocabulary_size as i64).contains(&i64::from(token))
                    && arrays.token[parent as usize] != END
            };
            // Rounding may put a log-probability a little above 0.
            if !fits || arrays.logprob[node].is_nan() || arrays.logprob[node] > 1e-6 {
                return false;
            }
            if is_root {
                self.logprob[node] = arrays.logprob[node];
            } else {
                self.add(parent as u32, token, arrays.logprob[node]);
            }
        }
        true
    }
}
