//! Sets of what may be true of a text: states of a constraint on canonical tokens.

use std::sync::Arc;

use formalm_vocabulary::bpe::PretokenState;
use rustc_hash::FxHashMap;

use super::product::Pair;

/// One thing that may be true: a state of the language with a place in the marked text, by number, and
/// the tokens of the current piece as far as they matter. In a state of a constraint the number is
/// that of a position that a text has come to, in a search that of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) pair: Pair,
    pub(crate) path: PretokenState,
}

impl Member {
    pub(crate) fn new(pair: Pair) -> Member {
        Member { pair, path: PretokenState::PLAIN }
    }
}

/// Numbered sets of members, each with the number of its masks.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    masked: FxHashMap<Member, u32>,
    ids: FxHashMap<Vec<Member>, u32>,
    list: Vec<Arc<[Numbered]>>,
    total: usize,
}

/// A member, and the one whose masks it has, numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    pub(crate) member: Member,
    pub(crate) masked: Member,
    pub(crate) id: u32,
}

impl Sets {
    /// The number of a sorted set, given of each member the one whose masks it has.
    pub(crate) fn intern(&mut self, set: Vec<Member>, masked: Vec<Member>) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let numbered = set.iter().zip(masked).map(|(&member, masked)| {
            let next = self.masked.len() as u32;
            Numbered { member, masked, id: *self.masked.entry(masked).or_insert(next) }
        });
        self.list.push(numbered.collect());
        self.total += set.len();
        let id = self.list.len() as u32 - 1;
        self.ids.insert(set, id);
        id
    }

    /// The members of a set.
    pub(crate) fn members(&self, set: u32) -> Arc<[Numbered]> {
        Arc::clone(&self.list[set as usize])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        44 * self.total + 64 * self.list.len() + 16 * self.masked.len()
    }
}
