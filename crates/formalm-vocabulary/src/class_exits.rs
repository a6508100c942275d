//! Tokens that leave a set of characters, by the byte with which they leave it.
//!
//! A machine that stays in one state on a set L of characters and leaves it with a byte e allows
//! p·e·u, p within L, iff the state after e allows u. For each e that is an ASCII character other
//! than a letter the tokens p·e·u with the first e after a non-empty p are kept under their
//! remainders e·u, in a prefix tree of remainders: a walk from the state after e meets each
//! distinct remainder once, whatever the number of tokens. Letters are left out: sets that end at
//! a letter are rare, and nearly every token would be listed several times. Bytes beyond ASCII are
//! kept for p of ASCII characters only: sets that end there.

use crate::char_profile::Profile;
use crate::flat_trie::{self, Flat, Node};

/// A token p·r with remainder r.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The token.
    pub token: u32,
    /// The characters of p. Its bytes are those of the token without the remainder, whose length
    /// is the depth of its node.
    pub before: Profile,
}

/// The prefix tree of remainders and the tokens of each.
#[derive(Debug)]
pub struct Crossings {
    flat: Flat,
    /// Per remainder where its tokens begin; one more entry at the end.
    first: Vec<u32>,
    tokens: Vec<Crossing>,
}

/// Tokens and their remainders while they are collected.
#[derive(Default)]
pub(crate) struct Collector<'a> {
    found: Vec<(&'a [u8], Crossing)>,
}

/// ASCII bytes that end no kept p: letters.
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

impl<'a> Collector<'a> {
    /// Adds the crossings of a token whose clean part is `text`, and returns its profile.
    pub(crate) fn add(&mut self, token: u32, bytes: &'a [u8], text: &str) -> Profile {
        let mut before = Profile::default();
        let mut wide = false;
        for (at, character) in text.char_indices() {
            if at > 0 {
                let fresh = match character.is_ascii() {
                    true => (LETTERS | before.ascii) >> character as u32 & 1 == 0,
                    false => !wide,
                };
                if fresh {
                    self.found.push((&bytes[at..], Crossing { token, before }));
                }
            }
            wide |= !character.is_ascii();
            before.add(character);
        }
        if !wide && !text.is_empty() && text.len() < bytes.len() {
            self.found.push((&bytes[text.len()..], Crossing { token, before }));
        }
        before
    }

    pub(crate) fn finish(self) -> Crossings {
        let found = self.found;
        let order = flat_trie::sorted(found.len(), |at| found[at].0);
        let mut remainders: Vec<(&[u8], u32)> = Vec::new();
        let (mut first, mut tokens) = (Vec::new(), Vec::with_capacity(found.len()));
        for at in order {
            let (remainder, crossing) = found[at as usize];
            if remainders.last().is_none_or(|&(last, _)| last != remainder) {
                remainders.push((remainder, remainders.len() as u32));
                first.push(tokens.len() as u32);
            }
            tokens.push(crossing);
        }
        first.push(tokens.len() as u32);
        let spare = remainders.len() as u32;
        Crossings { flat: Flat::new(remainders.into_iter(), spare), first, tokens }
    }
}

impl Crossings {
    /// Nodes in depth-first order; [`Node::word`] is the number of a remainder.
    #[inline]
    pub fn nodes(&self) -> &[Node] {
        self.flat.nodes()
    }

    /// The node of the remainder's first byte; below it are all remainders that begin with it.
    #[inline]
    pub fn root(&self, byte: u8) -> Option<u32> {
        self.flat.root(byte)
    }

    /// Bytes of a node's children, ascending, and their nodes.
    #[inline]
    pub fn children(&self, node: u32) -> (&[u8], &[u32]) {
        self.flat.children(node)
    }

    /// The tokens with a remainder, in ascending order.
    #[inline]
    pub fn tokens(&self, remainder: u32) -> &[Crossing] {
        let at = remainder as usize;
        &self.tokens[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Whether the tokens that leave a set with `byte` are kept here.
    #[inline]
    pub fn keeps(byte: u8) -> bool {
        byte >= 0x80 || LETTERS >> byte & 1 == 0
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.flat.memory_bytes() + 4 * self.first.len() + size_of_val(&self.tokens[..])
    }
}
