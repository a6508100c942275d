//! A byte trie stored as one flat array in depth-first (preorder) layout, with a child index.
//!
//! ```text
//!  words: a, ab, b           index  0        1        2
//!                            node   a│end 2  b│end 2  b│end 3     skip a subtree = jump to `end`
//! ```
//!
//! A node takes 12 bytes. Eight would do with 8-bit depths and 24-bit ends and ids, but tokens
//! longer than 255 bytes would then need a second structure that every walk must remember. Walks
//! over 128,000 tokens took 1 to 3 % longer with 12 bytes: they wait for transitions, not for
//! memory.

use formalm_core::{ByteSet, memory_bytes};

/// Number of nodes after a node and below its parent from which siblings are looked up in the index
/// of children: fewer are in a few cache lines. Chosen, not measured.
const MIN_INDEXED_NODES: u32 = 64;

/// The absent node: no bit, no word number.
const ABSENT_NODE: u32 = u32::MAX;

/// A trie node: its byte, its depth, the word that ends at it, and the end of its subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrieNode {
    end: u32,
    slot: u32,
    depth: u16,
    byte: u8,
    ends_word: bool,
}

memory_bytes!(none: TrieNode);

impl TrieNode {
    /// Returns the index of the first node after the subtree.
    #[inline]
    pub fn end(self) -> u32 {
        self.end
    }

    /// Returns the byte on the edge to this node.
    #[inline]
    pub fn byte(self) -> u8 {
        self.byte
    }

    /// Returns the number of bytes from the root; first bytes have depth 1.
    #[inline]
    pub fn depth(self) -> usize {
        self.depth as usize
    }

    /// Returns the number of the word that ends at this node, or the trie's spare number. It is a
    /// bit that a walk may set without testing whether a word ends here.
    #[inline]
    pub fn slot(self) -> u32 {
        self.slot
    }

    /// Returns the number of the word that ends at this node, if one does.
    #[inline]
    pub fn word(self) -> Option<u32> {
        self.ends_word.then_some(self.slot)
    }
}

/// A byte trie: the flat array and its child index.
#[derive(Debug)]
pub struct FlatTrie {
    nodes: Vec<TrieNode>,
    /// Per node, the start of its children in the two lists below; one more entry at the end.
    first: Vec<u32>,
    child_bytes: Vec<u8>,
    child_nodes: Vec<u32>,
    roots: Box<[u32; 256]>,
}

memory_bytes!(FlatTrie { nodes, first, child_bytes, child_nodes, roots });

impl FlatTrie {
    /// Builds the trie from distinct non-empty words in ascending order, each with its number.
    /// Nodes where no word ends get the `spare` number. Words must have at most 65,535 bytes.
    pub(crate) fn new<'a>(words: impl Iterator<Item = (&'a [u8], u32)>, spare: u32) -> FlatTrie {
        let mut nodes = Vec::new();
        let mut last: &[u8] = &[];
        let mut path: Vec<u32> = Vec::new();
        for (word, number) in words {
            let common = last.iter().zip(word).take_while(|(a, b)| a == b).count();
            close(&mut nodes, &mut path, common);
            for &byte in &word[common..] {
                path.push(nodes.len() as u32);
                let depth = path.len() as u16;
                nodes.push(TrieNode { end: 0, slot: spare, depth, byte, ends_word: false });
            }
            if let Some(node) = nodes.last_mut() {
                (node.slot, node.ends_word) = (number, true);
            }
            last = word;
        }
        close(&mut nodes, &mut path, 0);
        FlatTrie::with_index(nodes)
    }

    fn with_index(nodes: Vec<TrieNode>) -> FlatTrie {
        let mut first = Vec::with_capacity(nodes.len() + 1);
        let mut child_bytes = Vec::with_capacity(nodes.len());
        let mut child_nodes = Vec::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            first.push(child_nodes.len() as u32);
            let mut child = at as u32 + 1;
            while child < node.end {
                let found = nodes[child as usize];
                child_bytes.push(found.byte);
                child_nodes.push(child);
                child = found.end;
            }
        }
        first.push(child_nodes.len() as u32);
        let mut roots = Box::new([ABSENT_NODE; 256]);
        let mut root = 0;
        while let Some(node) = nodes.get(root) {
            roots[node.byte as usize] = root as u32;
            root = node.end as usize;
        }
        FlatTrie { nodes, first, child_bytes, child_nodes, roots }
    }

    /// Returns the nodes in depth-first order.
    #[inline]
    pub fn nodes(&self) -> &[TrieNode] {
        &self.nodes
    }

    /// Returns the node of a first byte.
    #[inline]
    pub fn root(&self, byte: u8) -> Option<u32> {
        let node = self.roots[byte as usize];
        (node != ABSENT_NODE).then_some(node)
    }

    /// Returns the bytes of the children, ascending, and the children.
    #[inline]
    pub fn children(&self, node: u32) -> (&[u8], &[u32]) {
        let range = self.first[node as usize] as usize..self.first[node as usize + 1] as usize;
        (&self.child_bytes[range.clone()], &self.child_nodes[range])
    }

    /// Returns the child of a node along a byte.
    #[inline]
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let (bytes, nodes) = self.children(node);
        bytes.binary_search(&byte).ok().map(|at| nodes[at])
    }

    /// Returns the first node after the subtree of `node`, or a later one if no sibling of `node`
    /// before it has a byte of `bytes`; at most the end of `parent`, whose child `node` is. First
    /// bytes have no parent.
    #[inline]
    pub fn next_sibling(&self, parent: Option<u32>, node: u32, bytes: ByteSet) -> u32 {
        let (end, next) = (|at: u32| self.nodes[at as usize].end, self.nodes[node as usize]);
        let last = parent.map_or(self.nodes.len() as u32, end);
        if last - next.end <= MIN_INDEXED_NODES {
            return next.end;
        }
        let Some(parent) = parent else {
            let mut others = (next.byte..=u8::MAX).skip(1).filter(|&byte| bytes.contains(byte));
            return others.find_map(|byte| self.root(byte)).unwrap_or(last);
        };
        let (siblings, nodes) = self.children(parent);
        let after = siblings.partition_point(|&byte| byte <= next.byte);
        match siblings[after..].iter().position(|&byte| bytes.contains(byte)) {
            Some(found) => nodes[after + found],
            None => last,
        }
    }
}

/// Closes the subtrees of the nodes on `path` deeper than `depth`.
fn close(nodes: &mut [TrieNode], path: &mut Vec<u32>, depth: usize) {
    let end = nodes.len() as u32;
    for node in path.drain(depth..) {
        nodes[node as usize].end = end;
    }
}

/// Groups values by their words, which must not be empty. Returns the trie of the words, the start of
/// each word's values, with one more entry at the end, and the values.
pub(crate) fn grouped<T: Copy>(list: &[(&[u8], T)]) -> (FlatTrie, Vec<u32>, Vec<T>) {
    let mut words: Vec<(&[u8], u32)> = Vec::new();
    let (mut first, mut values) = (Vec::new(), Vec::with_capacity(list.len()));
    for at in sorted_positions(list.len(), |at| list[at].0) {
        let (word, value) = list[at as usize];
        if words.last().is_none_or(|&(last, _)| last != word) {
            words.push((word, words.len() as u32));
            first.push(values.len() as u32);
        }
        values.push(value);
    }
    first.push(values.len() as u32);
    let spare = words.len() as u32;
    (FlatTrie::new(words.into_iter(), spare), first, values)
}

/// Returns the positions of `words` in ascending byte order; equal words stay in order of position.
pub(crate) fn sorted_positions<'a>(count: usize, word: impl Fn(usize) -> &'a [u8]) -> Vec<u32> {
    // Eight bytes decide most comparisons. Stored in the key they save two cache misses.
    let head = |word: &[u8]| {
        let mut bytes = [0; 8];
        let length = word.len().min(8);
        bytes[..length].copy_from_slice(&word[..length]);
        u64::from_be_bytes(bytes)
    };
    let mut keys: Vec<(u64, u32)> = (0..count).map(|at| (head(word(at)), at as u32)).collect();
    keys.sort_unstable_by(|a, b| {
        let rest = || word(a.1 as usize).cmp(word(b.1 as usize));
        a.0.cmp(&b.0).then_with(rest).then(a.1.cmp(&b.1))
    });
    keys.into_iter().map(|(_, at)| at).collect()
}
