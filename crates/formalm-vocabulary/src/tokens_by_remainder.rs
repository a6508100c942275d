//! Tokens grouped by how they leave a character class: an inverted index from remainders to tokens.
//!
//! ```text
//!  token  =  p · e · u        p within the class L, e the first byte outside
//!  state ──p──► state ──e──► next ──u──► viable?       the answer depends on e·u only
//! ```
//!
//! If a machine loops on class L and leaves it with byte e, it allows p·e·u, p within L, iff the
//! state after e allows u. For each ASCII character e other than a letter, the tokens p·e·u with
//! the first e after a non-empty p are stored under their remainder e·u, in a prefix tree of
//! remainders. A walk from the state after e visits each distinct remainder once, however many
//! tokens share it.
//!
//! Letters are left out: few classes end at a letter, and nearly every token would be listed
//! several times. A remainder that begins beyond ASCII is stored only if p is ASCII, which serves
//! classes that end there.

use formalm_core::MemoryBytes;

use crate::flat_trie::{self, FlatTrie, TrieNode};
use crate::occurring_characters::CharProfile;

/// A token p·r with remainder r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassExit {
    /// The token id.
    pub token: u32,
    /// The characters of p. The bytes of p are those of the token without the remainder, whose
    /// length is the depth of its node.
    pub before: CharProfile,
}

/// The prefix tree of remainders and the tokens of each remainder.
#[derive(Debug)]
pub struct ClassExits {
    flat: FlatTrie,
    /// Per remainder, the start of its tokens in `tokens`; one more entry at the end.
    first: Vec<u32>,
    tokens: Vec<ClassExit>,
}

/// Builder that collects tokens and their remainders.
#[derive(Default)]
pub(crate) struct ExitCollector<'a> {
    found: Vec<(&'a [u8], ClassExit)>,
}

/// ASCII letters: bytes that never begin a stored remainder.
const LETTERS: u128 = {
    let mut letters = 0;
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphabetic() {
            letters |= 1 << byte;
        }
        byte += 1;
    }
    letters
};

impl<'a> ExitCollector<'a> {
    /// Adds the exits of a token whose whole-character prefix is `text`. Returns the profile of
    /// `text`.
    pub(crate) fn add(&mut self, token: u32, bytes: &'a [u8], text: &str) -> CharProfile {
        let mut before = CharProfile::default();
        let mut wide = false;
        for (at, character) in text.char_indices() {
            if at > 0 {
                let fresh = match character.is_ascii() {
                    true => (LETTERS | before.ascii) >> character as u32 & 1 == 0,
                    false => !wide,
                };
                if fresh {
                    self.found.push((&bytes[at..], ClassExit { token, before }));
                }
            }
            wide |= !character.is_ascii();
            before.add(character);
        }
        if !wide && !text.is_empty() && text.len() < bytes.len() {
            self.found.push((&bytes[text.len()..], ClassExit { token, before }));
        }
        before
    }

    pub(crate) fn finish(self) -> ClassExits {
        let (flat, first, tokens) = flat_trie::grouped(&self.found);
        ClassExits { flat, first, tokens }
    }
}

impl ClassExits {
    /// Returns the prefix tree of the remainders.
    #[inline]
    pub fn flat(&self) -> &FlatTrie {
        &self.flat
    }

    /// Returns the nodes in depth-first order; [`TrieNode::word`] is the number of a remainder.
    #[inline]
    pub fn nodes(&self) -> &[TrieNode] {
        self.flat.nodes()
    }

    /// Returns the node of the first byte of a remainder. Its subtree holds all remainders that
    /// begin with `byte`.
    #[inline]
    pub fn root(&self, byte: u8) -> Option<u32> {
        self.flat.root(byte)
    }

    /// Returns the bytes of a node's children, ascending, and the children.
    #[inline]
    pub fn children(&self, node: u32) -> (&[u8], &[u32]) {
        self.flat.children(node)
    }

    /// Returns the tokens with a remainder, in ascending order.
    #[inline]
    pub fn tokens(&self, remainder: u32) -> &[ClassExit] {
        let at = remainder as usize;
        &self.tokens[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Returns `true` if the index covers tokens that leave a class with `byte`.
    #[inline]
    pub fn covers_byte(byte: u8) -> bool {
        byte >= 0x80 || LETTERS >> byte & 1 == 0
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.flat.memory_bytes() + 4 * self.first.len() + size_of_val(&self.tokens[..])
    }
}
