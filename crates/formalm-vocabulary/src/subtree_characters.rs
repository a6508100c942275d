//! Summaries of the subtrees of the token trie, so that a walk can accept whole subtrees without
//! reading them.
//!
//! ```text
//!  state q loops on class C       node n in state q:  signature(n) ⊆ C  ⇒  allow every token below n
//! ```
//!
//! If a machine loops in one state on a character class, it allows every token below a node reached
//! in that state whose remaining bytes are whole characters of the class. The signature of the node
//! answers this without a walk. It reads the bytes below as if a character began at the node, which
//! is where a machine that loops on characters stands. At the first byte of a longer character, it
//! reads that character as well: then a machine that stands before the byte allows every token below.

use formalm_core::{ByteSet, Interner, WideParts, memory_bytes};

use crate::flat_trie::TrieNode;
use crate::occurring_characters::wide_part;

/// The characters that the bytes strictly below a node spell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SubtreeSignature {
    ascii: u128,
    has_wide: bool,
    /// The parts of the whole characters beyond ASCII.
    wide: WideParts,
    unclean: bool,
}

memory_bytes!(none: SubtreeSignature);

impl SubtreeSignature {
    /// Returns the ASCII characters that occur; bit `b` stands for byte `b`.
    #[inline]
    pub fn ascii(&self) -> u128 {
        self.ascii
    }

    /// Returns `true` if characters beyond ASCII occur.
    #[inline]
    pub fn has_non_ascii(&self) -> bool {
        self.has_wide
    }

    /// Returns `true` unless no byte of a set occurs. Bytes beyond ASCII are not distinguished.
    #[inline]
    pub fn has_any_of(&self, bytes: ByteSet) -> bool {
        let [.., third, fourth] = bytes.words();
        self.ascii & bytes.ascii() != 0 || self.has_wide && (third | fourth) != 0
    }

    /// Returns `true` if some token below does not continue with whole characters only. At the first
    /// byte of a longer character, the rest of it is whole.
    #[inline]
    pub fn unclean(&self) -> bool {
        self.unclean
    }

    /// Returns `true` if everything below consists of whole characters of the class that has the
    /// ASCII characters in `ascii` and all characters of the parts in `wide`.
    #[inline]
    pub fn is_within(&self, ascii: u128, wide: WideParts) -> bool {
        !self.unclean && self.ascii & !ascii == 0 && self.wide.is_within(wide)
    }
}

/// The signatures of all nodes, stored once each.
#[derive(Debug)]
pub(crate) struct SubtreeSignatures {
    ids: Vec<u32>,
    signatures: Vec<SubtreeSignature>,
}

memory_bytes!(SubtreeSignatures { ids, signatures });

/// An incomplete UTF-8 sequence: the bytes still missing and the range of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PartialUtf8 {
    missing: u8,
    low: u8,
    high: u8,
    /// The bits of the character read so far.
    value: u32,
}

const BOUNDARY: PartialUtf8 = PartialUtf8 { missing: 0, low: 0, high: 0, value: 0 };

impl PartialUtf8 {
    /// Reads one more byte. Returns the new state and whether the bytes so far are valid UTF-8; if
    /// not, the next byte counts as the beginning of a character.
    fn step(self, byte: u8) -> (PartialUtf8, bool) {
        if self.missing > 0 && (self.low..=self.high).contains(&byte) {
            let value = self.value << 6 | u32::from(byte & 0x3F);
            return (PartialUtf8 { missing: self.missing - 1, low: 0x80, high: 0xBF, value }, true);
        }
        let good = self.missing == 0;
        let after = |missing: u8, low, high| {
            let value = u32::from(byte & (0x3F >> missing));
            (PartialUtf8 { missing, low, high, value }, good)
        };
        match byte {
            0..=0x7F => (BOUNDARY, good),
            0xC2..=0xDF => after(1, 0x80, 0xBF),
            0xE0 => after(2, 0xA0, 0xBF),
            0xED => after(2, 0x80, 0x9F),
            0xE1..=0xEF => after(2, 0x80, 0xBF),
            0xF0 => after(3, 0x90, 0xBF),
            0xF1..=0xF3 => after(3, 0x80, 0xBF),
            0xF4 => after(3, 0x80, 0x8F),
            _ => (BOUNDARY, false),
        }
    }
}

/// Per-node data of the backward pass.
#[derive(Clone, Copy, Default)]
struct NodePass {
    parent: u32,
    /// The byte breaks a character, some path below does, or a token ends inside one.
    broken: bool,
    /// The node is inside a character.
    within: bool,
    /// The byte is the first of a longer character.
    begins: bool,
    /// The part of the character that the byte completes, if it is beyond ASCII.
    wide: WideParts,
    signature: SubtreeSignature,
}

impl SubtreeSignatures {
    pub(crate) fn new(nodes: &[TrieNode]) -> SubtreeSignatures {
        let mut seen = forward(nodes);
        let mut signatures = Interner::from_iter([SubtreeSignature::default()]);
        let mut ids = vec![0; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let here = seen[at];
            let has_children = nodes[at].end() as usize > at + 1;
            let is_unclean_here = match here.begins {
                true => here.broken,
                false => here.within && has_children,
            };
            let unclean = here.signature.unclean || is_unclean_here;
            let signature = SubtreeSignature { unclean, ..here.signature };
            if has_children {
                ids[at] = signatures.intern(signature);
            }
            if let Some(parent) = seen.get_mut(here.parent as usize) {
                let byte = nodes[at].byte();
                let own = if byte < 0x80 { 1 << byte } else { 0 };
                parent.signature.wide =
                    parent.signature.wide.union(here.signature.wide).union(here.wide);
                parent.signature.ascii |= here.signature.ascii | own;
                parent.signature.has_wide |= here.signature.has_wide || byte >= 0x80;
                parent.signature.unclean |= here.broken;
                parent.broken |= here.broken;
            }
        }
        SubtreeSignatures { ids, signatures: signatures.into_entries() }
    }

    #[inline]
    pub(crate) fn signatures(&self) -> &[SubtreeSignature] {
        &self.signatures
    }

    #[inline]
    pub(crate) fn signature(&self, node: u32) -> &SubtreeSignature {
        &self.signatures[self.ids[node as usize] as usize]
    }
}

/// Forward pass: the parent of each node, and whether the node is inside a character or breaks one.
fn forward(nodes: &[TrieNode]) -> Vec<NodePass> {
    let mut path: Vec<(u32, PartialUtf8)> = Vec::new();
    let mut seen = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        path.truncate(node.depth() - 1);
        let (parent, before) = path.last().copied().unwrap_or((u32::MAX, BOUNDARY));
        let (after, good) = before.step(node.byte());
        let within = after.missing > 0;
        let broken = !good || within && node.word().is_some();
        let completed = !within && node.byte() >= 0x80 && good;
        let character = completed.then(|| char::from_u32(after.value)).flatten();
        let wide = character.map_or(WideParts::default(), |c| WideParts::one(wide_part(c)));
        let begins = within && before.missing == 0;
        seen.push(NodePass { parent, broken, within, begins, wide, ..NodePass::default() });
        path.push((at as u32, after));
    }
    seen
}
