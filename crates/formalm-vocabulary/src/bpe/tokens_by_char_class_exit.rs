//! Tokens grouped by how they leave a character class: the part of reading them that all looping
//! states share.
//!
//! ```text
//!  looping state q ──p within the class──► q ──exit bytes──► q' ──rest of the token──►
//!                   skipped                   once per group     read by a walk
//! ```
//!
//! A state that loops on a character class reads tokens of such characters without a change. The
//! others leave the class somewhere. All that leave it with the same bytes lead to the same state,
//! from which a walk reads the rest.

use formalm_core::{CompactMap, WideParts};

use super::token_set::{MIN_BITMASK_SIZE, TokenSet, set_bit};
use super::token_transitions::TokenTransitions;
use crate::TokenTrie;

/// A character class: its ASCII part, and whether it has all characters beyond.
pub type CoarseCharClass = (u128, bool);

/// The tokens that begin at a character boundary, grouped by how they leave a character class.
#[derive(Debug)]
pub struct ExitTargets {
    /// Tokens with a transition and no other characters than those of the class.
    pub within: TokenSet,
    /// The groups of tokens that leave the class.
    pub exits: Vec<ExitGroup>,
}

/// The tokens that leave the class with the same bytes: those of a character outside of the class,
/// of no character, or the first bytes of a character inside.
#[derive(Debug)]
pub struct ExitGroup {
    /// The bytes from the end of the last character inside the class.
    pub bytes: Vec<u8>,
    /// Tokens that end with these bytes, except those that end at `nodes`.
    pub tokens: Vec<u32>,
    /// Trie nodes whose path ends with these bytes; a walk continues from them.
    pub nodes: Vec<u32>,
}

/// An incomplete UTF-8 sequence: its bytes, the number of missing bytes, and the range of the next
/// one.
#[derive(Clone, Copy, Default)]
struct PartialSequence {
    bytes: [u8; 4],
    len: usize,
    missing: u8,
    low: u8,
    high: u8,
}

impl ExitTargets {
    pub(super) fn new(
        trie: &TokenTrie,
        passages: &TokenTransitions,
        (ascii, wide): CoarseCharClass,
    ) -> ExitTargets {
        let mut groups = ExitGroups::default();
        let mut within = Vec::new();
        let nodes = trie.nodes();
        let wide_parts = if wide { WideParts::ALL } else { WideParts::default() };
        let mut stack = vec![PartialSequence::default()];
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
                groups.of(&next).nodes.push(node);
                at = here.end() as usize;
                continue;
            }
            if next.missing > 0 {
                let tokens = trie.tokens_at(node);
                if !tokens.is_empty() {
                    groups.of(&next).tokens.extend_from_slice(tokens);
                }
            } else {
                within.extend_from_slice(trie.tokens_at(node));
                if trie.signature(node).is_within(ascii, wide_parts) {
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
        let within = match within.len() < MIN_BITMASK_SIZE {
            true => TokenSet::List(within),
            false => {
                let mut words = vec![0; passages.all().len()];
                within.into_iter().for_each(|token| set_bit(&mut words, token));
                TokenSet::Mask(words)
            }
        };
        let exits = groups.list.into_entries().into_iter().map(|one| one.1).collect();
        ExitTargets { within, exits }
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let each = |exit: &ExitGroup| 80 + 4 * (exit.tokens.len() + exit.nodes.len());
        self.within.memory_bytes() + self.exits.iter().map(each).sum::<usize>()
    }
}

#[derive(Default)]
struct ExitGroups {
    list: CompactMap<([u8; 4], usize), ExitGroup>,
}

impl ExitGroups {
    fn of(&mut self, end: &PartialSequence) -> &mut ExitGroup {
        let at = self.list.position_or_insert_with((end.bytes, end.len), || {
            let bytes = end.bytes[..end.len].to_vec();
            ExitGroup { bytes, tokens: Vec::new(), nodes: Vec::new() }
        });
        self.list.value_mut(at)
    }
}

impl PartialSequence {
    /// Reads one more byte. Returns the new state and whether the byte may belong to a character of
    /// the class; for a first byte beyond ASCII, `wide` decides.
    fn step(mut self, byte: u8, wide: bool) -> (PartialSequence, bool) {
        let begins = self.missing == 0;
        if begins {
            self.len = 0;
            self.bytes = [0; 4];
        }
        self.bytes[self.len] = byte;
        self.len += 1;
        let (missing, low, high) = match (begins, byte) {
            (false, _) if (self.low..=self.high).contains(&byte) => (self.missing - 1, 0x80, 0xbf),
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
        (PartialSequence { missing, low, high, ..self }, true)
    }
}
