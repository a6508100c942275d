//! Sets of what may be true of a text: states of a constraint on canonical tokens.

use std::sync::Arc;

use formalm_vocabulary::canonical::{Path, Place};
use rustc_hash::FxHashMap;

use super::pairs::Pair;

/// One thing that may be true: a state of the language with a place in the marked text, and the
/// tokens of the current piece as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) pair: Pair,
    pub(crate) path: Path,
}

impl Member {
    pub(crate) fn new(pair: Pair) -> Member {
        Member { pair, path: Path::PLAIN }
    }
}

/// A member as masks know it: a state, or a key of states, with a place and the current piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Masked {
    pub(crate) number: u32,
    pub(crate) is_key: bool,
    pub(crate) place: Place,
    pub(crate) path: Path,
}

/// Numbered sets of members, each with the number of its masks.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    masked: FxHashMap<Masked, u32>,
    ids: FxHashMap<Vec<Member>, u32>,
    list: Vec<Arc<[(u32, Member)]>>,
    total: usize,
}

impl Sets {
    /// The number of a sorted set, and of each member what its masks depend on.
    pub(crate) fn intern(&mut self, set: Vec<Member>, masked: Vec<Masked>) -> u32 {
        if let Some(&id) = self.ids.get(&set) {
            return id;
        }
        let numbered = set.iter().zip(masked).map(|(&member, masked)| {
            let next = self.masked.len() as u32;
            (*self.masked.entry(masked).or_insert(next), member)
        });
        self.list.push(numbered.collect());
        self.total += set.len();
        let id = self.list.len() as u32 - 1;
        self.ids.insert(set, id);
        id
    }

    /// The members of a set, each with the number of its masks.
    pub(crate) fn members(&self, set: u32) -> Arc<[(u32, Member)]> {
        Arc::clone(&self.list[set as usize])
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        32 * self.total + 64 * self.list.len() + 24 * self.masked.len()
    }
}
