//! Tokens by how they leave a set of characters: what all states that stay on it have in common.
//!
//! A state that stays where it is on a set of characters reads tokens of such characters without a
//! change. The others leave the set somewhere, and what they are up to there is no matter: all
//! that leave it with the same bytes are led to one state, from which a walk reads the rest.

use rustc_hash::FxHashMap;

use super::token_set::{DENSE, TokenSet, set};
use super::token_transitions::Passages;
use crate::Trie;

/// A set of characters: its ASCII part, and whether it has all characters beyond.
pub type Stay = (u128, bool);

/// The tokens that begin where a character does, by how they leave a set of characters.
#[derive(Debug)]
pub struct Exits {
    /// Tokens with a passage that have no other characters.
    pub within: TokenSet,
    /// The ways out.
    pub ways: Vec<Exit>,
}

/// Tokens that leave the set with the same bytes: those of a character outside of it or of no
/// character, or part of one within.
#[derive(Debug)]
pub struct Exit {
    /// From the end of the last character within the set.
    pub bytes: Vec<u8>,
    /// Tokens that end with these bytes, but for those that end at `nodes`.
    pub tokens: Vec<u32>,
    /// Nodes of the vocabulary's tree that end with these bytes, to be read further.
    pub nodes: Vec<u32>,
}

/// The unfinished character at a node: its first bytes, how many are missing, and the range of the
/// next one.
#[derive(Clone, Copy, Default)]
struct Unfinished {
    bytes: [u8; 4],
    len: usize,
    left: u8,
    low: u8,
    high: u8,
}

impl Exits {
    pub(super) fn new(trie: &Trie, passages: &Passages, (ascii, wide): Stay) -> Exits {
        let mut ways = Ways::default();
        let mut within = Vec::new();
        let nodes = trie.nodes();
        let mut stack = vec![Unfinished::default()];
        let mut at = 0;
        while at < nodes.len() {
            let (here, node) = (nodes[at], at as u32);
            let (depth, byte) = (here.depth(), here.byte());
            if depth == 1 && (0x80..0xc0).contains(&byte) {
                at = here.end() as usize;
                continue;
            }
            let (next, stays) = stack[depth - 1].step(byte, wide);
            let stays = stays && (byte >= 0x80 || ascii >> byte & 1 != 0);
            if !stays {
                ways.of(&next).nodes.push(node);
                at = here.end() as usize;
                continue;
            }
            if next.left > 0 {
                let tokens = trie.tokens_at(node);
                if !tokens.is_empty() {
                    ways.of(&next).tokens.extend_from_slice(tokens);
                }
            } else {
                within.extend_from_slice(trie.tokens_at(node));
                if trie.signature(node).is_within(ascii, wide) {
                    within.extend_from_slice(trie.tokens_below(node));
                    at = here.end() as usize;
                    continue;
                }
            }
            stack.truncate(depth);
            stack.push(next);
            at += 1;
        }
        within.retain(|&token| passages.has(token));
        let within = match within.len() < DENSE {
            true => TokenSet::List(within),
            false => {
                let mut words = vec![0; passages.all().len()];
                within.into_iter().for_each(|token| set(&mut words, token));
                TokenSet::Mask(words)
            }
        };
        Exits { within, ways: ways.list }
    }

    /// Memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let each = |exit: &Exit| 80 + 4 * (exit.tokens.len() + exit.nodes.len());
        self.within.memory_bytes() + self.ways.iter().map(each).sum::<usize>()
    }
}

#[derive(Default)]
struct Ways {
    index: FxHashMap<([u8; 4], usize), usize>,
    list: Vec<Exit>,
}

impl Ways {
    fn of(&mut self, end: &Unfinished) -> &mut Exit {
        let at = *self.index.entry((end.bytes, end.len)).or_insert_with(|| {
            let bytes = end.bytes[..end.len].to_vec();
            self.list.push(Exit { bytes, tokens: Vec::new(), nodes: Vec::new() });
            self.list.len() - 1
        });
        &mut self.list[at]
    }
}

impl Unfinished {
    /// After one more byte, and whether it may be one of a character: of a first byte beyond ASCII
    /// `wide` says so.
    fn step(mut self, byte: u8, wide: bool) -> (Unfinished, bool) {
        let begins = self.left == 0;
        if begins {
            self.len = 0;
            self.bytes = [0; 4];
        }
        self.bytes[self.len] = byte;
        self.len += 1;
        let (left, low, high) = match (begins, byte) {
            (false, _) if (self.low..=self.high).contains(&byte) => (self.left - 1, 0x80, 0xbf),
            (true, 0..=0x7f) => (0, 0, 0),
            (true, _) if !wide => return (self, false),
            (true, 0xc2..=0xdf) => (1, 0x80, 0xbf),
            (true, 0xe0) => (2, 0xa0, 0xbf),
            (true, 0xed) => (2, 0x80, 0x9f),
            (true, 0xe1..=0xef) => (2, 0x80, 0xbf),
            (true, 0xf0) => (3, 0x90, 0xbf),
            (true, 0xf1..=0xf3) => (3, 0x80, 0xbf),
            (true, 0xf4) => (3, 0x80, 0x8f),
            _ => return (self, false),
        };
        (Unfinished { left, low, high, ..self }, true)
    }
}
