//! The tokens inside parts of languages that recur, such as the strings and numbers of JSON. They
//! are prepared once, saved with the encoder, and shared by all languages.
//!
//! ```text
//!  {"day": "20│24-01-31", …
//!             24           settled     stays inside, and text of the part follows, whatever is after it
//!             1            unsettled   stays inside; what is after the part may decide
//!             24-01-31",   unsettled   leaves the part
//! ```
//!
//! A part is identified by its *name*: the digest of the minimal automaton of what it reads on from
//! a position. Names do not depend on the process, nor on the language around the part. Unsettled
//! tokens are grouped by where they lead, so that a language decides them group by group.

mod saved;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formalm_core::{ByteSet, ForkSafeMutex, Interner};
use rustc_hash::FxHashMap;

use super::pretokenizer::boundary_automaton::BoundaryState;
use super::token_set::TokenSet;
use super::whole_tokens::PretokenState;
use crate::saved_vocabulary::digest;

/// Maximum size of a library, in bytes; beyond it nothing is added. 12 MiB; chosen, not measured.
const MAX_BYTES: usize = 12 << 20;

/// A position inside a part, not after pieces of a whole token. The state of the splitter is between
/// two characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartPositionKey {
    /// The name of what the part reads on.
    pub name: u128,
    /// The state of the splitter. There is no normalizer.
    pub boundaries: BoundaryState,
}

/// The tokens that may follow a position inside a part.
#[derive(Debug)]
pub struct PartTokens {
    /// The tokens that stay inside and are allowed whatever comes after the part: those that
    /// continue a pre-token, without checking adjacency, and those that begin one.
    pub settled: [Arc<TokenSet>; 2],
    /// The other tokens. All that are in neither list are allowed nowhere.
    pub unsettled: Box<[Arc<UnsettledTokens>]>,
}

/// Tokens that lead to one state, whatever that is in the language around the part.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct UnsettledTokens {
    /// `true` if they begin a pre-token.
    pub begins: bool,
    /// The state of the splitter after them.
    pub boundaries: BoundaryState,
    /// The state of the pre-token after them.
    pub pretoken: PretokenState,
    /// The tokens; there is at least one.
    pub tokens: Arc<TokenSet>,
}

/// The prepared positions.
#[derive(Debug, Default)]
pub struct PartLibrary {
    tables: ForkSafeMutex<PartTables>,
    served: AtomicUsize,
    missed: AtomicUsize,
}

#[derive(Debug, Default)]
struct PartTables {
    /// Equal sets are kept once.
    sets: Interner<Arc<TokenSet>>,
    groups: Interner<Arc<UnsettledTokens>>,
    positions: FxHashMap<PartPositionKey, Arc<PartTokens>>,
    /// The bytes that the prepared positions read on, and whether their parts may end there.
    first_bytes: Vec<(ByteSet, bool)>,
    bytes: usize,
}

impl PartLibrary {
    /// Returns the name of a part that a description determines.
    pub fn name_of(description: &[u8]) -> u128 {
        u128::from_le_bytes(digest(description))
    }

    /// Returns `true` if nothing is prepared.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of prepared positions.
    pub fn len(&self) -> usize {
        self.tables.lock().positions.len()
    }

    /// Returns `true` if a position is prepared.
    pub fn contains(&self, key: &PartPositionKey) -> bool {
        self.tables.lock().positions.contains_key(key)
    }

    /// Returns `false` if no prepared position is in a state that goes on with these bytes, of which
    /// at most `exits` end the part.
    pub fn may_contain(&self, live: ByteSet, exits: usize) -> bool {
        self.tables.lock().first_bytes.iter().any(|&(read, may_end)| {
            let rest = live.len() - read.intersection(live).len();
            read == live || may_end && read.intersection(live) == read && rest <= exits
        })
    }

    /// Returns the tokens at a position that a language needs, if they are prepared.
    pub fn get(&self, key: &PartPositionKey) -> Option<Arc<PartTokens>> {
        let known = self.tables.lock().positions.get(key).map(Arc::clone);
        let count = if known.is_some() { &self.served } else { &self.missed };
        count.fetch_add(1, Ordering::Relaxed);
        known
    }

    /// Counts a position that a language needs and that is not prepared.
    pub fn count_missed(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many positions inside parts languages needed so far: those that were prepared,
    /// and those that were not.
    pub fn counts(&self) -> (usize, usize) {
        (self.served.load(Ordering::Relaxed), self.missed.load(Ordering::Relaxed))
    }

    /// Adds a position with the bytes that it reads on, and whether the part may end there. Returns
    /// `false` if there is no room for it.
    pub fn insert(
        &self,
        key: PartPositionKey,
        first_bytes: (ByteSet, bool),
        tokens: PartTokens,
    ) -> bool {
        let tables = &mut *self.tables.lock();
        let is_added = tables.insert(key, tokens);
        if is_added {
            tables.note(first_bytes);
        }
        is_added
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.tables.lock().bytes
    }
}

impl PartTables {
    fn note(&mut self, first_bytes: (ByteSet, bool)) {
        if !self.first_bytes.contains(&first_bytes) {
            self.first_bytes.push(first_bytes);
        }
    }

    fn insert(&mut self, key: PartPositionKey, tokens: PartTokens) -> bool {
        if self.bytes > MAX_BYTES {
            return false;
        }
        let PartTokens { settled, unsettled } = tokens;
        let settled = settled.map(|set| self.share(set));
        let unsettled: Box<[Arc<UnsettledTokens>]> =
            unsettled.into_iter().map(|group| self.share_group(group)).collect();
        self.bytes += size_of::<(PartPositionKey, PartTokens)>() + 2 * size_of::<usize>();
        self.bytes += size_of_val(&unsettled[..]);
        self.positions.insert(key, Arc::new(PartTokens { settled, unsettled }));
        true
    }

    /// Returns the one copy of a group.
    fn share_group(&mut self, group: Arc<UnsettledTokens>) -> Arc<UnsettledTokens> {
        if let Some(known) = self.groups.find(&group) {
            return Arc::clone(&self.groups[known]);
        }
        let UnsettledTokens { begins, boundaries, pretoken, ref tokens } = *group;
        let tokens = self.share(Arc::clone(tokens));
        let group = Arc::new(UnsettledTokens { begins, boundaries, pretoken, tokens });
        self.bytes += size_of::<UnsettledTokens>() + 4 * size_of::<usize>();
        self.groups.intern(Arc::clone(&group));
        group
    }

    /// Returns the one copy of a set.
    fn share(&mut self, set: Arc<TokenSet>) -> Arc<TokenSet> {
        let (bytes, known) = (set.memory_bytes(), self.sets.len());
        let number = self.sets.intern(set);
        if number as usize == known {
            self.bytes += bytes + 4 * size_of::<usize>();
        }
        Arc::clone(self.sets.get(number))
    }
}
