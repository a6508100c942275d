//! Sets of what may be true of a text: states of a constraint on canonical tokens.

use formalm_vocabulary::canonical::Path;
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

/// Numbered sets.
#[derive(Debug, Default)]
pub(crate) struct Sets {
    ids: FxHashMap<Box<[Member]>, u32>,
    list: Vec<Box<[Member]>>,
    total: usize,
}

impl Sets {
    /// The number of a sorted set.
    pub(crate) fn intern(&mut self, members: Vec<Member>) -> u32 {
        let members: Box<[Member]> = members.into();
        if let Some(&id) = self.ids.get(&members) {
            return id;
        }
        let id = self.list.len() as u32;
        self.total += members.len();
        self.list.push(members.clone());
        self.ids.insert(members, id);
        id
    }

    pub(crate) fn members(&self, set: u32) -> &[Member] {
        &self.list[set as usize]
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        2 * size_of::<Member>() * self.total + 56 * self.list.len()
    }
}
