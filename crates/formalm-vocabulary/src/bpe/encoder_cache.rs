//! What is found of a vocabulary's tokens as it is needed, and shared by all constraints.

use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

use formalm_automata::Lock;
use rustc_hash::FxHashMap;

use super::class_exit_targets::{Exits, Stay};
use super::encoder::{Encoder, Kind};
use super::pretoken_splitter::{Mark, Place};
use super::token_set::TokenSet;
use super::token_transitions::{Landing, Passages};
use crate::Vocabulary;

/// Memory for each kind of what is kept, in bytes; beyond it the oldest is let go.
const MOST_BYTES: usize = 12 << 20;

/// Tokens by the place they lead to.
pub type Landed = [(Place, TokenSet)];

/// How the tokens of the vocabulary are read, made when first asked for.
#[derive(Debug)]
pub(super) struct Reading {
    passages: Option<Passages>,
    /// Tokens that have no passage and are not part of a character.
    odd: Vec<u32>,
    landings: Kept<(Place, Mark), Landing>,
    exits: Kept<Stay, Exits>,
    /// Tokens within a set of characters by where they lead.
    joined: Kept<(Stay, Place, Mark), Landed>,
}

/// What was asked for lately.
#[derive(Debug)]
pub(super) struct Kept<K, V: ?Sized>(Lock<Inner<K, V>>);

#[derive(Debug)]
struct Inner<K, V: ?Sized> {
    known: FxHashMap<K, (Arc<V>, usize)>,
    order: VecDeque<K>,
    bytes: usize,
}

impl<K, V: ?Sized> Default for Kept<K, V> {
    fn default() -> Kept<K, V> {
        let (known, order) = (FxHashMap::default(), VecDeque::new());
        Kept(Lock::new(Inner { known, order, bytes: 0 }))
    }
}

impl<K: Copy + Eq + Hash, V: ?Sized> Kept<K, V> {
    /// What is kept, or what is made now, of so many bytes.
    pub(super) fn of(&self, key: K, make: impl FnOnce() -> (Arc<V>, usize)) -> Arc<V> {
        let inner = || self.0.lock();
        if let Some((known, _)) = inner().known.get(&key) {
            return Arc::clone(known);
        }
        let (made, bytes) = make();
        let inner = &mut *inner();
        if inner.known.insert(key, (Arc::clone(&made), bytes)).is_none() {
            inner.order.push_back(key);
            inner.bytes += bytes;
        }
        while inner.bytes > MOST_BYTES && inner.order.len() > 1 {
            let oldest = inner.order.pop_front().and_then(|key| inner.known.remove(&key));
            inner.bytes -= oldest.map_or(0, |oldest| oldest.1);
        }
        made
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.lock().bytes
    }
}

impl Encoder {
    /// How the tokens that merging makes pass through the splitter, given their vocabulary; none if
    /// that is too many ways to tell them apart.
    pub fn passages(&self, vocabulary: &Vocabulary) -> Option<&Passages> {
        self.reading(vocabulary).passages.as_ref()
    }

    /// Tokens that have no passage, apart from those for single bytes and those that begin inside
    /// of a character.
    pub fn odd_tokens(&self, vocabulary: &Vocabulary) -> &[u32] {
        &self.reading(vocabulary).odd
    }

    /// Where tokens with a passage lead from a place between characters, the first byte with a
    /// mark, and not into an added token.
    pub fn landing(
        &self,
        vocabulary: &Vocabulary,
        passages: &Passages,
        (place, mark): (Place, Mark),
    ) -> Arc<Landing> {
        self.reading(vocabulary).landings.of((place, mark), || {
            let landing = passages.landing(self.splitter(), place, mark);
            let bytes = landing.memory_bytes();
            (Arc::new(landing), bytes)
        })
    }

    /// How tokens leave a set of characters.
    pub fn exits(&self, vocabulary: &Vocabulary, passages: &Passages, stay: Stay) -> Arc<Exits> {
        self.reading(vocabulary).exits.of(stay, || {
            let exits = Exits::new(vocabulary.trie(), passages, stay);
            let bytes = exits.memory_bytes();
            (Arc::new(exits), bytes)
        })
    }

    /// Where tokens with a passage and within a set of characters lead from a place between
    /// characters, the first byte with a mark.
    pub fn joined(
        &self,
        vocabulary: &Vocabulary,
        passages: &Passages,
        stay: Stay,
        (place, mark): (Place, Mark),
    ) -> Arc<Landed> {
        self.reading(vocabulary).joined.of((stay, place, mark), || {
            let exits = self.exits(vocabulary, passages, stay);
            let landing = self.landing(vocabulary, passages, (place, mark));
            let list: Vec<(Place, TokenSet)> = match &exits.within {
                TokenSet::Mask(within) => {
                    let both = |(place, tokens): &(Place, TokenSet)| {
                        let both = tokens.within(within);
                        (!both.is_empty()).then_some((*place, both))
                    };
                    landing.groups().iter().filter_map(both).collect()
                }
                TokenSet::List(within) => passages.sort(&landing, within),
            };
            let bytes = list.iter().map(|(_, tokens)| 8 + tokens.memory_bytes()).sum();
            (list.into(), bytes)
        })
    }

    fn reading(&self, vocabulary: &Vocabulary) -> &Reading {
        self.reading.get_or_init(|| {
            let begins = |token: u32| {
                let first = vocabulary.token_bytes(token).and_then(<[u8]>::first);
                first.is_some_and(|byte| !(0x80..0xc0).contains(byte))
            };
            let merged = |token: u32| self.kind(token) == Kind::Merged;
            let plain = |token: u32| merged(token) && begins(token) && !self.wholes.notes(token);
            let len = self.kinds.len().max(vocabulary.len());
            let passages = Passages::new(&self.splitter, vocabulary.trie(), (len, plain));
            let is_odd = |token: &u32| {
                begins(*token)
                    && !matches!(self.kind(*token), Kind::Never | Kind::Byte(_))
                    && !passages.as_ref().is_some_and(|passages| passages.has(*token))
            };
            let odd = (0..self.kinds.len() as u32).filter(is_odd).collect();
            let (landings, exits, joined) = Default::default();
            Reading { passages, odd, landings, exits, joined }
        })
    }

    /// Memory of what was found, in bytes.
    pub(super) fn shared_bytes(&self) -> usize {
        let reading = self.reading.get().map_or(0, |reading| {
            reading.passages.as_ref().map_or(0, Passages::memory_bytes)
                + 4 * reading.odd.len()
                + reading.landings.memory_bytes()
                + reading.exits.memory_bytes()
                + reading.joined.memory_bytes()
        });
        self.neighbours.memory_bytes() + reading
    }
}
