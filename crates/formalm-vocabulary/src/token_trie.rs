//! The prefix tree of all tokens, laid out for whole walks and for single look-ups.

use formalm_core::MemoryBytes;

use crate::flat_trie::{self, FlatTrie, TrieNode};
use crate::subtree_characters::{SubtreeSignature, SubtreeSignatures};

/// The prefix tree of a vocabulary's tokens.
#[derive(Debug)]
pub struct TokenTrie {
    flat: FlatTrie,
    order: Vec<u32>,
    rank: Vec<u32>,
    duplicates: Vec<(u32, u32)>,
    spare: u32,
    below: SubtreeSignatures,
    /// Per node, the bytes of the longest continuation of a token below it, at most 255.
    heights: Vec<u8>,
}

impl TokenTrie {
    /// Builds the trie of tokens `(id, bytes)`. `len` is one more than the largest possible id.
    pub(crate) fn new(tokens: &[(u32, &[u8])], len: usize) -> TokenTrie {
        let mut order = flat_trie::sorted_positions(tokens.len(), |at| tokens[at].1);
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
        let flat = FlatTrie::new(distinct.into_iter(), spare);
        let rank = ranks(flat.nodes(), &counts);
        let below = SubtreeSignatures::new(flat.nodes());
        let heights = heights(flat.nodes());
        TokenTrie { flat, order, rank, duplicates, spare, below, heights }
    }

    /// Returns the trie without what is known of its tokens.
    #[inline]
    pub fn flat(&self) -> &FlatTrie {
        &self.flat
    }

    /// Returns the nodes in depth-first order. [`TrieNode::word`] and [`TrieNode::slot`] hold a
    /// token id. If several tokens have the same bytes it is the lowest; see
    /// [`TokenTrie::duplicates`].
    #[inline]
    pub fn nodes(&self) -> &[TrieNode] {
        self.flat.nodes()
    }

    /// Returns the token ids in depth-first order, that is sorted by bytes, then by id. The tokens
    /// of a subtree are one slice of it.
    #[inline]
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns, per node, the number of tokens before it in [`TokenTrie::order`]; one more entry at
    /// the end.
    #[inline]
    pub fn rank(&self) -> &[u32] {
        &self.rank
    }

    /// Returns the tokens that end at a node: none, one, or several with the same bytes.
    #[inline]
    pub fn tokens_at(&self, node: u32) -> &[u32] {
        &self.order[self.rank[node as usize] as usize..self.rank[node as usize + 1] as usize]
    }

    /// Returns the tokens that end strictly below a node.
    #[inline]
    pub fn tokens_below(&self, node: u32) -> &[u32] {
        let end = self.nodes()[node as usize].end();
        &self.order[self.rank[node as usize + 1] as usize..self.rank[end as usize] as usize]
    }

    /// Returns the bytes of a node's children, ascending, and the children.
    #[inline]
    pub fn children(&self, node: u32) -> (&[u8], &[u32]) {
        self.flat.children(node)
    }

    /// Returns the child of a node along a byte.
    #[inline]
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        self.flat.child(node, byte)
    }

    /// Returns the node of a first byte.
    #[inline]
    pub fn root_child(&self, byte: u8) -> Option<u32> {
        self.flat.root(byte)
    }

    /// Returns the node that `bytes` lead to.
    pub fn find(&self, bytes: &[u8]) -> Option<u32> {
        let (&first, rest) = bytes.split_first()?;
        rest.iter().try_fold(self.root_child(first)?, |node, &byte| self.child(node, byte))
    }

    /// Returns the signature of the bytes strictly below a node.
    #[inline]
    pub fn signature(&self, node: u32) -> &SubtreeSignature {
        self.below.signature(node)
    }

    /// Returns the number of bytes of the longest continuation of a token below a node, at most
    /// 255.
    #[inline]
    pub fn height(&self, node: u32) -> u8 {
        self.heights[node as usize]
    }

    /// Returns all signatures, indexed by number.
    #[inline]
    pub fn signatures(&self) -> &[SubtreeSignature] {
        self.below.signatures()
    }

    /// Returns pairs `(first, other)` of tokens with the same bytes, `first` the lowest id. A walk
    /// that writes only [`TrieNode::slot`] copies the verdict of `first` to `other` afterwards.
    #[inline]
    pub fn duplicates(&self) -> &[(u32, u32)] {
        &self.duplicates
    }

    /// Returns the [`TrieNode::slot`] of nodes without a token: the first bit of the word after the
    /// mask.
    #[inline]
    pub fn spare_slot(&self) -> u32 {
        self.spare
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.flat.memory_bytes()
            + 4 * (self.order.len() + self.rank.len())
            + 8 * self.duplicates.len()
            + self.below.memory_bytes()
            + self.heights.len()
    }
}

/// Returns the height of each node, see [`TokenTrie::height`].
fn heights(nodes: &[TrieNode]) -> Vec<u8> {
    let deepest = nodes.iter().map(|node| node.depth()).max().unwrap_or(0);
    // Per depth, the bytes from the parent of the nodes there to the deepest node read so far.
    let mut below = vec![0u8; deepest + 2];
    let mut heights = vec![0; nodes.len()];
    for (node, height) in nodes.iter().zip(&mut heights).rev() {
        *height = std::mem::take(&mut below[node.depth() + 1]);
        let above = &mut below[node.depth()];
        *above = height.saturating_add(1).max(*above);
    }
    heights
}

/// Returns the number of tokens before each node, given the number of tokens at each node that ends
/// some.
fn ranks(nodes: &[TrieNode], counts: &[u32]) -> Vec<u32> {
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
