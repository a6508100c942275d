//! What lies below a node of the token tree, so that a walk can take whole subtrees unread.
//!
//! A machine that stays in one state on a set of characters allows every token below a node where
//! it stands in that state, if the bytes below spell whole characters of the set. The signature of
//! a node answers this without a walk. It reads the bytes below as if a character began there:
//! that is where a machine that stays on characters stands.

use rustc_hash::FxHashMap;

use crate::flat_trie::Node;

/// What the bytes strictly below a node are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    ascii: u128,
    has_wide: bool,
    unclean: bool,
}

impl Signature {
    /// The ASCII characters that occur, bit `b` for byte `b`.
    #[inline]
    pub fn ascii(&self) -> u128 {
        self.ascii
    }

    /// Whether characters beyond ASCII occur.
    #[inline]
    pub fn has_wide(&self) -> bool {
        self.has_wide
    }

    /// Whether some token below does not go on with whole characters only.
    #[inline]
    pub fn unclean(&self) -> bool {
        self.unclean
    }

    /// Whether everything below consists of whole characters from a set: the ASCII part is given,
    /// and `wide` says whether the set has all characters beyond ASCII.
    #[inline]
    pub fn is_within(&self, ascii: u128, wide: bool) -> bool {
        !self.unclean && self.ascii & !ascii == 0 && (wide || !self.has_wide)
    }
}

/// The signatures of all nodes.
#[derive(Debug)]
pub(crate) struct Below {
    ids: Vec<u32>,
    signatures: Vec<Signature>,
    characters: Vec<u16>,
}

/// The unfinished character at a node: bytes still missing and the range of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unfinished {
    left: u8,
    low: u8,
    high: u8,
}

const BOUNDARY: Unfinished = Unfinished { left: 0, low: 0, high: 0 };

impl Unfinished {
    /// After one more byte, and whether the bytes so far are still UTF-8; if not, the next byte
    /// counts as the beginning of a character.
    fn step(self, byte: u8) -> (Unfinished, bool) {
        if self.left > 0 && (self.low..=self.high).contains(&byte) {
            return match self.left {
                1 => (BOUNDARY, true),
                left => (Unfinished { left: left - 1, low: 0x80, high: 0xBF }, true),
            };
        }
        let good = self.left == 0;
        let after = |left, low, high| (Unfinished { left, low, high }, good);
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

/// What is known of a node while its subtree is read from the back.
#[derive(Clone, Copy, Default)]
struct Seen {
    parent: u32,
    /// The byte breaks a character, or some path below does, or a token ends within one.
    broken: bool,
    within: bool,
    signature: Signature,
    characters: u16,
}

impl Below {
    pub(crate) fn new(nodes: &[Node]) -> Below {
        let mut seen = forward(nodes);
        let mut known: FxHashMap<Signature, u32> = FxHashMap::default();
        let mut signatures = vec![Signature::default()];
        known.insert(Signature::default(), 0);
        let mut ids = vec![0; nodes.len()];
        let mut characters = vec![0; nodes.len()];
        for at in (0..nodes.len()).rev() {
            let here = seen[at];
            let has_children = nodes[at].end() as usize > at + 1;
            let signature = Signature {
                unclean: here.signature.unclean || here.within && has_children,
                ..here.signature
            };
            if has_children {
                ids[at] = *known.entry(signature).or_insert_with(|| {
                    signatures.push(signature);
                    signatures.len() as u32 - 1
                });
            }
            characters[at] = here.characters;
            if let Some(parent) = seen.get_mut(here.parent as usize) {
                let byte = nodes[at].byte();
                let own = if byte < 0x80 { 1 << byte } else { 0 };
                parent.signature.ascii |= here.signature.ascii | own;
                parent.signature.has_wide |= here.signature.has_wide || byte >= 0x80;
                parent.signature.unclean |= here.broken;
                parent.broken |= here.broken;
                // Every byte that does not continue a character begins one.
                let begins = u16::from(!(0x80..0xC0).contains(&byte));
                parent.characters = parent.characters.max(here.characters.saturating_add(begins));
            }
        }
        Below { ids, signatures, characters }
    }

    #[inline]
    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    #[inline]
    pub(crate) fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    #[inline]
    pub(crate) fn signature(&self, node: u32) -> &Signature {
        &self.signatures[self.ids[node as usize] as usize]
    }

    #[inline]
    pub(crate) fn most_characters(&self, node: u32) -> usize {
        self.characters[node as usize] as usize
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        4 * self.ids.len() + 2 * self.characters.len() + size_of_val(&self.signatures[..])
    }
}

/// Parents, and which nodes stand within a character or break one.
fn forward(nodes: &[Node]) -> Vec<Seen> {
    let mut path: Vec<(u32, Unfinished)> = Vec::new();
    let mut seen = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        path.truncate(node.depth() - 1);
        let (parent, before) = path.last().copied().unwrap_or((u32::MAX, BOUNDARY));
        let (after, good) = before.step(node.byte());
        let within = after.left > 0;
        let broken = !good || within && node.word().is_some();
        seen.push(Seen { parent, broken, within, ..Seen::default() });
        path.push((at as u32, after));
    }
    seen
}
