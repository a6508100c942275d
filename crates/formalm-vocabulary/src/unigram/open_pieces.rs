//! Open pieces: everything before the end of the last token that affects the tokens after it.

use std::sync::Arc;

use formalm_core::{CompactMap, ForkSafeMutex};

/// The open pieces at the end of a token, and the bytes of a character begun after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenPieces {
    /// The best score up to the end of the last token; zero if scores are relative to it.
    pub(super) base: f64,
    /// Per start before that end, ascending: the trie node of the text since then, and the best
    /// score up to the start.
    pub(super) pairs: Vec<(u32, f64)>,
    /// Bytes of a character that is spelled in byte tokens.
    pub(super) character: Vec<u8>,
}

impl OpenPieces {
    /// Returns `true` if nothing read so far affects the next tokens.
    pub fn is_clean(&self) -> bool {
        self.pairs.is_empty() && self.character.is_empty() && self.base == 0.0
    }

    /// Returns `true` if no character has been begun in byte tokens.
    pub fn is_between_characters(&self) -> bool {
        self.character.is_empty()
    }

    /// Creates the state of a model without scores.
    pub(crate) fn of_nodes(base: f64, pairs: Vec<(u32, f64)>) -> OpenPieces {
        OpenPieces { base, pairs, character: Vec::new() }
    }

    pub(crate) fn base(&self) -> f64 {
        self.base
    }

    /// Returns the trie nodes, by start.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = u32> + '_ {
        self.pairs.iter().map(|&(node, _)| node)
    }

    fn key(&self) -> Box<[u32]> {
        let halves = |score: f64| [score.to_bits() as u32, (score.to_bits() >> 32) as u32];
        let mut key = Vec::with_capacity(3 * self.pairs.len() + 4);
        key.extend(halves(self.base));
        for &(node, score) in &self.pairs {
            key.push(node);
            key.extend(halves(score));
        }
        if !self.character.is_empty() {
            key.push(u32::MAX);
            key.extend(self.character.iter().map(|&byte| u32::from(byte)));
        }
        key.into()
    }
}

/// The open pieces that a constraint has met, numbered. Number 0 is the beginning of a pre-token.
#[derive(Debug)]
pub struct OpenPiecesTable(ForkSafeMutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    list: CompactMap<Box<[u32]>, Arc<OpenPieces>>,
    bytes: usize,
}

impl Default for OpenPiecesTable {
    fn default() -> OpenPiecesTable {
        let table = OpenPiecesTable(ForkSafeMutex::default());
        table.intern(OpenPieces::default());
        table
    }
}

impl OpenPiecesTable {
    /// Returns the number of a state.
    pub(crate) fn intern(&self, state: OpenPieces) -> u32 {
        let key = state.key();
        let mut numbered = self.0.lock();
        if let Some(known) = numbered.list.find(&*key) {
            return known;
        }
        numbered.bytes += 160 + 12 * key.len();
        numbered.list.position_or_insert_with(key, || Arc::new(state))
    }

    /// Returns a state by its number; the beginning of a pre-token for a number of another table.
    pub(crate) fn get(&self, number: u32) -> Arc<OpenPieces> {
        let numbered = self.0.lock();
        let number = if (number as usize) < numbered.list.len() { number } else { 0 };
        Arc::clone(numbered.list.value(number))
    }

    /// Returns the memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// Returns `true` if a thread was modifying the table while the process was forked.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }
}
