//! All tokens as a prefix tree, laid out for whole walks and for single look-ups.

use crate::flat_trie::{self, Flat, Node};
use crate::subtree_signature::{Below, Signature};

/// The prefix tree of a vocabulary's tokens.
#[derive(Debug)]
pub struct Trie {
    flat: Flat,
    order: Vec<u32>,
    rank: Vec<u32>,
    duplicates: Vec<(u32, u32)>,
    spare: u32,
    below: Below,
}

impl Trie {
    /// Builds the tree of tokens `(id, bytes)`; `len` is one more than the largest id there may be.
    pub(crate) fn new(tokens: &[(u32, &[u8])], len: usize) -> Trie {
        let mut order = flat_trie::sorted(tokens.len(), |at| tokens[at].1);
        let spare = (len.div_ceil(32) * 32) as u32;
        let mut duplicates = Vec::new();
        let mut distinct: Vec<(&[u8], u32)> = Vec::with_capacity(tokens.len());
        let mut counts: Vec<u32> = Vec::with_capacity(tokens.len());
        for at in &order {
            let (id, bytes) = tokens[*at as usize];
            match (distinct.last(), counts.last_mut()) {
                (Some(&(last, first)), Some(count)) if last == bytes => {
                    *count += 1;
                    duplicates.push((first, id));
                }
                _ => {
                    distinct.push((bytes, id));
                    counts.push(1);
                }
            }
        }
        order.iter_mut().for_each(|at| *at = tokens[*at as usize].0);
        let flat = Flat::new(distinct.into_iter(), spare);
        let rank = ranks(flat.nodes(), &counts);
        let below = Below::new(flat.nodes());
        Trie { flat, order, rank, duplicates, spare, below }
    }

    /// Nodes in depth-first order. [`Node::word`] and [`Node::slot`] hold a token id; where several
    /// tokens have the same bytes it is the lowest, see [`Trie::duplicates`].
    #[inline]
    pub fn nodes(&self) -> &[Node] {
        self.flat.nodes()
    }

    /// Token ids in depth-first order, that is sorted by bytes, then by id. The tokens of a subtree
    /// are one slice of it.
    #[inline]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Per node how many tokens come before it in [`Trie::order`]; one more entry at the end.
    #[inline]
    pub fn rank(&self) -> &[u32] {
        &self.rank
    }

    /// Tokens that end at a node: none, one, or several with the same bytes.
    #[inline]
    pub fn tokens_at(&self, node: u32) -> &[u32] {
        &self.order[self.rank[node as usize] as usize..self.rank[node as usize + 1] as usize]
    }

    /// Tokens that end strictly below a node.
    #[inline]
    pub fn tokens_below(&self, node: u32) -> &[u32] {
        let end = self.nodes()[node as usize].end();
        &self.order[self.rank[node as usize + 1] as usize..self.rank[end as usize] as usize]
    }

    /// Bytes of a node's children, ascending, and their nodes.
    #[inline]
    pub fn children(&self, node: u32) -> (&[u8], &[u32]) {
        self.flat.children(node)
    }

    /// The child of a node along a byte.
    #[inline]
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        self.flat.child(node, byte)
    }

    /// The node of one byte.
    #[inline]
    pub fn root_child(&self, byte: u8) -> Option<u32> {
        self.flat.root(byte)
    }

    /// The node that `bytes` lead to.
    pub fn find(&self, bytes: &[u8]) -> Option<u32> {
        let (&first, rest) = bytes.split_first()?;
        rest.iter().try_fold(self.root_child(first)?, |node, &byte| self.child(node, byte))
    }

    /// What the bytes strictly below a node are like.
    #[inline]
    pub fn signature(&self, node: u32) -> &Signature {
        self.below.signature(node)
    }

    /// Per node the number of its signature; equal numbers are equal signatures.
    #[inline]
    pub fn signature_ids(&self) -> &[u32] {
        self.below.ids()
    }

    /// All signatures, by number.
    #[inline]
    pub fn signatures(&self) -> &[Signature] {
        self.below.signatures()
    }

    /// Characters of the longest path strictly below a node; 65,535 may also mean more. It means
    /// something only where the signature is not [`Signature::unclean`].
    #[inline]
    pub fn most_characters_below(&self, node: u32) -> usize {
        self.below.most_characters(node)
    }

    /// Pairs `(first, other)` of tokens with the same bytes, `first` the lowest id. A walk that
    /// writes only [`Node::slot`] gives `other` the verdict of `first` afterwards.
    #[inline]
    pub fn duplicates(&self) -> &[(u32, u32)] {
        &self.duplicates
    }

    /// [`Node::slot`] of nodes without a token: the first bit of the word after the mask.
    #[inline]
    pub fn spare(&self) -> u32 {
        self.spare
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.flat.memory_bytes()
            + 4 * (self.order.len() + self.rank.len())
            + 8 * self.duplicates.len()
            + self.below.memory_bytes()
    }
}

/// How many tokens come before each node, given how many end at each node that ends some.
fn ranks(nodes: &[Node], counts: &[u32]) -> Vec<u32> {
    let mut counts = counts.iter();
    let mut rank = Vec::with_capacity(nodes.len() + 1);
    let mut before = 0;
    for node in nodes {
        rank.push(before);
        if node.word().is_some() {
            before += counts.next().copied().unwrap_or_default();
        }
    }
    rank.push(before);
    rank
}
